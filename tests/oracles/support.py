"""Estimators and tables that tests share."""

import numpy as np

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
    PATEClassifier,
    VariationalLogisticRegression,
)

ESTIMATORS = (
    OperaLogisticRegression,
    OperaSVC,
    GrpuaLogisticRegression,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    DPSGDClassifier,
    VariationalLogisticRegression,
)

# One of each method, and both kinds of losses of margins.
FAMILIES = (
    OperaLogisticRegression,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    DPSGDClassifier,
    VariationalLogisticRegression,
)


class Untouchable:
    """A budget that fails the test if anything is charged."""

    def charge(self, *args, **named):
        raise AssertionError("charged before validation")

    reserve = remaining = charge


class WithPublicRows(PATEClassifier):
    """PATE for checks that know of rows and labels alone: it brings public rows along."""

    n_public = 60

    def _read(self, X, y, params):
        if params.get("X_public") is None:
            shape = getattr(X, "shape", None)
            width = np.asarray(X, dtype=object).shape[-1] if shape is None else shape[-1]
            public = np.random.default_rng(0).standard_normal((self.n_public, width))
            if hasattr(X, "columns"):
                public = type(X)(public, columns=X.columns)
            params = {**params, "X_public": public}
        return super()._read(X, y, params)


def rows(n=300, d=4, n_classes=2, seed=0):
    """Return rows of norm at most 1 with labels that a linear rule explains in part."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    scores = X @ rng.standard_normal((d, n_classes)) + 0.1 * rng.standard_normal((n, n_classes))
    return X, scores.argmax(axis=1)


def neighbour(X, y, rng, n_classes):
    """Replace the first record by one at the norm bound, opposite or random, perhaps relabelled."""
    other, labels = X.copy(), y.copy()
    direction = rng.standard_normal(X.shape[1])
    X[0] = direction / np.linalg.norm(direction)
    other[0] = -X[0] if rng.random() < 0.5 else X[0]
    labels[0] = rng.integers(n_classes)
    return X, y, other, labels


def worst_pair():
    """Return neighbours of which one record speaks, to both sides."""
    X, y = np.zeros((60, 4)), np.ones(60, dtype=int)
    X[0, 0] = 1.0
    return X, y, -X, y


def distance(one, other):
    """Return the distance of two samples' means in deviations, estimated as of a common one."""
    spread = np.sqrt(0.5 * (np.var(one, ddof=1) + np.var(other, ddof=1)))
    return (np.mean(one) - np.mean(other)) / spread
