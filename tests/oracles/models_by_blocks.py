"""Private models of every kind of pass over a table, and a table, for tests of tables in blocks."""

import numpy as np

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
    PrivateLinearRegression,
    PrivateRidge,
    VariationalLogisticRegression,
)

PUBLIC = {"epsilon": 1.0, "data_norm": 1.0}
LOTS = {"epsilon": None, "noise_multiplier": 2.0, "data_norm": 1.0}
MODELS = {
    "output": OperaLogisticRegression(**PUBLIC),
    "objective": ObjectivePerturbationLogisticRegression(**PUBLIC),
    "all rows": GrpuaLogisticRegression(**PUBLIC, max_iter=5),
    "small lots": DPSGDClassifier(**LOTS, batch_size=30, max_iter=40),
    "large lots": DPSGDClassifier(**LOTS, batch_size=1500, max_iter=4),
    "subsets": DPSGDClassifier(**LOTS, adjacency="replace-one", batch_size=40, max_iter=9),
    "momentum, network": DPSGDClassifier(**LOTS, hidden_layer_sizes=(3,), max_iter=3),
    "posterior": VariationalLogisticRegression(**PUBLIC, batch_size=300, max_iter=3),
    "moments": PrivateRidge(**PUBLIC, target_bounds=(0.0, 1.0)),
    "moments, steps": PrivateLinearRegression(**PUBLIC, target_bounds=(0.0, 1.0)),
}
N_ROWS, N_COLUMNS = 2600, 4


def make_table():
    """Return rows with zeros, and two labels."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((N_ROWS, N_COLUMNS)) < 0.4, 0.0, rng.normal(size=(N_ROWS, N_COLUMNS)))
    return X, (X[:, 0] + rng.normal(size=N_ROWS) > 0.3).astype(np.int8)


def weights(model):
    """Return all weights of a fitted model, one after the other."""
    found = model.coefs_ if getattr(model, "coefs_", None) else [model.coef_, model.intercept_]
    return np.concatenate([np.ravel(array) for array in found])
