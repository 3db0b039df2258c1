"""Compile the loops of fits in advance, once per machine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone

from skdp.estimators._dpsgd import DPSGDClassifier
from skdp.estimators._grpua import GrpuaLogisticRegression
from skdp.estimators._objective import ObjectivePerturbationLogisticRegression
from skdp.estimators._opera import OperaLogisticRegression
from skdp.mechanisms.random_stream import load_generator

# Fits to synthetic rows charge nothing.
_UNCOUNTED = SimpleNamespace(reserve=lambda *_, **__: None)


def warm_up(*estimators: Any, verbose: int = 0) -> None:
    """Compile the loops of private estimators in advance, to make the first fit faster.

    Each estimator is fitted to a few synthetic rows, which charges no budget. Compiled loops are
    stored on disk: one call per machine is enough.

    Parameters
    ----------
    *estimators : estimators
        Private estimators with the parameters of the later fits. Without any, the defaults of
        logistic regression with output, objective and gradient perturbation and DP-SGD, for dense
        float64 rows and two classes.
    verbose : int, default=0
        If positive, print a line per estimator.

    Examples
    --------
    >>> import skdp
    >>> skdp.warm_up(skdp.OperaLogisticRegression())
    """
    chosen = estimators or (
        OperaLogisticRegression(),
        ObjectivePerturbationLogisticRegression(),
        GrpuaLogisticRegression(),
        DPSGDClassifier(),
    )
    load_generator()
    # Fixed rows, independent of any random generator of the process.
    X = np.linspace(-0.5, 0.5, 100).reshape(50, 2)
    for estimator in chosen:
        if verbose:
            print(f"[warm_up] {type(estimator).__name__}: compiling loops, once per machine ...")
        copy = clone(estimator).set_params(
            accountant=_UNCOUNTED, verbose=0, data_norm=1.0, delta=1e-6, random_state=None
        )
        classes = getattr(copy, "classes", None)
        classes = [0, 1] if classes is None else classes
        copy.fit(X, np.asarray(classes)[np.arange(50) % len(classes)])
