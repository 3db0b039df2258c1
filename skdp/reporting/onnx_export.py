"""Fitted models as ONNX, which other languages and devices run."""

from __future__ import annotations

from typing import Any

import numpy as np


def to_onnx(model: Any, *, dtype: str = "float32") -> Any:
    """Return a fitted classifier, or a pipeline that ends in one, as an ONNX model.

    Only what the fit has released goes into the file: weights, labels and public parameters.

    Parameters
    ----------
    model : estimator, Pipeline or search
        A fitted linear classifier of skdp or a network, alone or behind `BoundedScaler` and
        transformers of scikit-learn that `privacy_statement` finds no leak in.
    dtype : {"float32", "float64"}, default="float32"
        Type of the numbers that the ONNX model takes and computes with.

    Returns
    -------
    onnx.ModelProto
        Its input "X" has shape (rows, features). Its outputs are the labels, and the
        probabilities in the order of ``classes_`` or, of support vector classifiers, the scores in
        that order, -s and s for two classes.

    Raises
    ------
    ImportError
        If skl2onnx is missing: ``pip install 'skdp[onnx]'``.
    TypeError
        If a step has no counterpart in ONNX: `TableSchema`'s encoder, private transformers and
        the variational classifier have none. The message names it.
    ValueError
        If a step leaks, or labels are neither texts, integers of 32 bits nor booleans.

    Notes
    -----
    In float32, scores differ by some 1e-7 of their terms, so that labels may differ where the two
    largest scores are as close as that. Booleans come out as 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.reporting import to_onnx
    >>> X = np.tile([[0.6, 0.8], [-0.6, 0.8]], (500, 1))
    >>> model = OperaLogisticRegression(data_norm=1.0).fit(X, X[:, 0] > 0)
    >>> [each.name for each in to_onnx(model).graph.output]
    ['label', 'probabilities']
    """
    try:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    except ImportError as error:
        raise ImportError("to_onnx needs skl2onnx: pip install 'skdp[onnx]'.") from error
    kinds = {"float32": FloatTensorType, "float64": DoubleTensorType}
    if dtype not in kinds:
        raise ValueError(f"dtype must be one of {tuple(kinds)}, got {dtype!r}.")
    twin = _twin_of_all(model)
    last = twin.steps[-1][1] if hasattr(twin, "steps") else twin
    scores = not hasattr(model, "predict_proba")
    options = {"zipmap": False} | ({"raw_scores": True} if scores else {})
    return convert_sklearn(
        twin,
        name="skdp",
        initial_types=[("X", kinds[dtype]([None, twin.n_features_in_]))],
        options={id(last): options},
    )


def _twin_of_all(model: Any) -> Any:
    """Return what scikit-learn alone would predict the same with, if nothing of it leaks."""
    # Loads the whole of scikit-learn's preprocessing.
    from sklearn.utils.validation import check_is_fitted

    from skdp.reporting._examine import examine

    check_is_fitted(model)
    for finding in examine(model, "estimator"):
        if finding.kind == "leaking":
            raise ValueError(f"{finding.name} leaks private rows: {finding.remedy}")
    chosen = getattr(model, "best_estimator_", model)
    if not hasattr(chosen, "classes_"):
        raise TypeError(f"{type(chosen).__name__} is no classifier, and others are not exported.")
    _check_labels(chosen.classes_)
    return _twin(chosen)


def _check_labels(labels: np.ndarray) -> None:
    texts = all(isinstance(label, str) for label in labels)
    if not texts and np.asarray(labels).dtype.kind not in "biu":
        raise ValueError("labels must be texts, integers or booleans: ONNX knows no others.")
    if not texts and any(not -(2**31) <= int(label) < 2**31 for label in labels):
        raise ValueError("integer labels must fit 32 bits: skl2onnx wraps others round.")


def _twin(step: Any) -> Any:
    from sklearn.pipeline import Pipeline

    if isinstance(step, Pipeline):
        parts = [each for each in step.steps if each[1] not in (None, "passthrough")]
        return Pipeline([(name, _twin(part)) for name, part in parts])
    make = getattr(step, "_as_sklearn", None)
    if make is not None:
        return make()
    inside = step.get_params(deep=True).values() if hasattr(step, "get_params") else ()
    ours = [part for part in (step, *inside) if type(part).__module__.startswith("skdp.")]
    known = step is None or isinstance(step, str) or type(step).__module__.startswith("sklearn.")
    if known and not ours:
        return step
    name = type(ours[0] if ours else step).__name__
    raise TypeError(
        f"{name} has no counterpart in ONNX. Apply it before, and export what follows it, as in "
        "to_onnx(pipeline[-1])."
    )
