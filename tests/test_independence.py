"""No two mechanisms of a fit draw from one place of one stream: equal noise would cancel."""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed, parallel_backend
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from support import ESTIMATORS
from watched_streams import draws_of_a_fit, watched_draws

import skdp
from skdp import (
    DPSGDClassifier,
    DPSGDRegressor,
    GrpuaHuberRegressor,
    GrpuaLogisticRegression,
    GrpuaMLPClassifier,
    GrpuaSVC,
    ObjectivePerturbationHuberRegressor,
    ObjectivePerturbationSVC,
    OperaHuberRegressor,
    OperaLogisticRegression,
    OperaSVC,
    PATEClassifier,
    PrivateLinearRegression,
    PrivateRidge,
)
from skdp.budget import BudgetAccountant
from skdp.inference import PrivateInference
from skdp.mechanisms import RandomStream, random_stream, record_releases
from skdp.metrics import (
    PrivateCalibrator,
    PrivateEvaluation,
    PrivateRegressionEvaluation,
    PrivateThreshold,
)
from skdp.model_selection import PrivateGridSearchCV, PrivateRandomizedSearchCV
from skdp.model_selection._search import METHODS
from skdp.preprocessing import (
    DPPCA,
    BooleanColumn,
    DPQuantileClipper,
    DPStandardScaler,
    NumericColumn,
    TableSchema,
)
from skdp.statistics import (
    private_contingency_table,
    private_count,
    private_histogram,
    private_mean,
    private_quantile,
    private_table_one,
    private_top_k,
    private_variance,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((240, 4))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = (X[:, 0] > 0.0).astype(int)
THREE = Y + (X[:, 1] > 0.3)
GROUPS = np.arange(240) // 2
MODEL = LogisticRegression().fit(X, Y)
BOUNDS = {"target_bounds": (-1.0, 1.0)}
COUNTED = {"class_weight": "balanced", "prevalence": "private"}
STEPS = {"max_iter": 4}
SCHEMA = TableSchema([NumericColumn("age", -1, 1), BooleanColumn("ill")])
SEEDS = (None, 7)


def fit(make, y=Y, **given):
    return lambda seed: make(random_state=seed).fit(X, y, **given)


def of(kind, *parameters, **settings):
    return lambda random_state: kind(*parameters, random_state=random_state, **settings)


def search(method, kind=PrivateGridSearchCV, **more):
    def run(seed):
        pipeline = make_pipeline(DPPCA(2), OperaSVC(classes=[0, 1]))
        options = {"method": method, "cv": 2, "expected_candidates": 2, **more}
        kind(
            pipeline, {"operasvc__alpha": [0.1, 1.0]}, epsilon=4.0, random_state=seed, **options
        ).fit(X, Y)

    return run


def several(seed):
    """Fit a pipeline with several private steps, each with a state of its own if seeded."""
    state = None if seed is None else np.random.RandomState(seed)
    scalers = [
        (DPStandardScaler(lower=-1.0, upper=1.0, random_state=state), [0, 1]),
        (DPQuantileClipper(lower=-1.0, upper=1.0, random_state=state), [2, 3]),
    ]
    make_pipeline(make_column_transformer(*scalers), OperaSVC(random_state=state)).fit(X, Y)


def folds(seed):
    """Fit folds and classes one against the rest in threads."""
    model = OneVsRestClassifier(OperaSVC(classes=[0, 1], random_state=seed), n_jobs=2)
    with parallel_backend("threading", n_jobs=2):
        cross_validate(model, X, THREE, cv=StratifiedKFold(3), n_jobs=2, error_score="raise")


def statistics(seed):
    own = {"epsilon": 1.0, "random_state": seed}
    private_count(Y, **own)
    private_table_one(pd.DataFrame({"age": X[:, 0], "ill": Y}), SCHEMA, by="ill", **own)
    private_top_k(Y, 1, categories=[0, 1, 2], counts=True, **own)
    for kind in ({"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}):
        private_histogram(Y, categories=[0, 1], **own, **kind)
        private_contingency_table([Y, THREE], categories=[[0, 1], [0, 1, 2]], **own, **kind)
        for statistic in (private_mean, private_variance, private_quantile):
            statistic(X[:, 0], lower=-1.0, upper=1.0, **own, **kind)


def judged(kind, *given, model=MODEL, **settings):
    return lambda seed: kind(*given, random_state=seed, **settings).evaluate(model, X, Y)


RELEASES = {
    **{kind.__name__: fit(of(kind)) for kind in ESTIMATORS},
    **{f"{kind.__name__}, 3": fit(of(kind), THREE) for kind in ESTIMATORS},
    **{f"{kind.__name__}, ids": fit(of(kind), groups=GROUPS) for kind in ESTIMATORS},
    "discrete": fit(of(OperaSVC, numerics="discrete")),
    "discrete objective": fit(of(ObjectivePerturbationSVC, numerics="discrete")),
    "pure": fit(of(OperaSVC, delta=0.0)),
    "pure objective": fit(of(ObjectivePerturbationSVC, delta=0.0)),
    "calibrated": fit(of(OperaLogisticRegression, calibrate="private")),
    "counted": fit(of(OperaSVC, **COUNTED)),
    "counted, objective": fit(of(ObjectivePerturbationSVC, **COUNTED)),
    "counted, calibrated": fit(
        of(GrpuaLogisticRegression, calibrate="private", **COUNTED, **STEPS)
    ),
    "lots": fit(of(DPSGDClassifier, batch_size=20, **STEPS)),
    "lots of ids": fit(of(DPSGDClassifier, batch_size=20, **STEPS), groups=GROUPS),
    "uniform lots": fit(of(GrpuaSVC, batch_size=20, sampling="uniform", **STEPS)),
    "network": fit(of(DPSGDClassifier, hidden_layer_sizes=(4,), batch_size=20, **STEPS)),
    "adaptive": fit(
        of(DPSGDClassifier, hidden_layer_sizes=(4,), max_grad_norm="adaptive", **STEPS)
    ),
    "wide network": fit(of(GrpuaMLPClassifier, hidden_layer_sizes=(4,), **STEPS)),
    "linear regression": fit(of(PrivateLinearRegression, **BOUNDS), X[:, 1]),
    "regressor": fit(of(DPSGDRegressor, **BOUNDS, **STEPS), X[:, 1]),
    **{
        f"Huber, {kind.__name__}": fit(of(kind, **BOUNDS), X[:, 1])
        for kind in (OperaHuberRegressor, GrpuaHuberRegressor, ObjectivePerturbationHuberRegressor)
    },
    "ridge": fit(of(PrivateRidge, **BOUNDS), X[:, 1]),
    **{
        f"PATE, {aggregation}": fit(
            of(
                PATEClassifier,
                LogisticRegression(),
                n_teachers=5,
                n_queries=20,
                aggregation=aggregation,
            ),
            X_public=X[:20],
        )
        for aggregation in ("gaussian", "confident-gaussian", "laplace")
    },
    "scaler": fit(of(DPStandardScaler, lower=-1.0, upper=1.0)),
    "clipper": fit(of(DPQuantileClipper, lower=-1.0, upper=1.0)),
    "components": fit(of(DPPCA, 2, center=True)),
    "pipeline": several,
    "folds": folds,
    **{f"search, {method}": search(method) for method in METHODS},
    "random search": search(METHODS[0], PrivateRandomizedSearchCV, n_iter=2),
    "statistics": statistics,
    "evaluation": judged(PrivateEvaluation),
    "regression": judged(
        PrivateRegressionEvaluation, model=Ridge().fit(X, Y), largest_error=2.0, **BOUNDS
    ),
    "inference": judged(PrivateInference, data_norm=1.0),
    "fit and inference": lambda seed: PrivateInference(random_state=seed).evaluate(
        OperaLogisticRegression(random_state=seed).fit(X, Y), X, Y
    ),
    "sandwich": judged(
        PrivateInference, data_norm=1.0, covariance="sandwich", adjacency="add-remove"
    ),
    "calibrator": lambda seed: PrivateCalibrator(MODEL, random_state=seed).fit(X, Y),
    "threshold": lambda seed: PrivateThreshold(MODEL, random_state=seed).fit(X, Y),
}


@cache
def drawn(name, seed):
    """Return the draws of what is released, and the names that were charged for it."""
    budget = BudgetAccountant(1e6, 0.5, composition="basic")
    with budget, watched_draws() as draws:
        RELEASES[name](seed)
    return draws, {entry["label"].split(".")[0] for entry in budget.entries()}


@pytest.mark.parametrize(
    ("name", "seed"),
    [*((name, None) for name in RELEASES), *((name, 7) for name in RELEASES if ", " not in name)],
)
def test_nothing_is_drawn_twice(name, seed):
    draws, _ = drawn(name, seed)
    assert draws.keys and not draws.repeated()


def test_all_that_is_public_and_draws_noise_is_watched():
    """Whatever is new is to be added above."""
    charged = set().union(*(drawn(name, None)[1] for name in RELEASES))
    public = [
        name
        for module in (
            skdp.estimators,
            skdp.preprocessing,
            skdp.metrics,
            skdp.inference,
            skdp.model_selection,
        )
        for name in module.__all__
        if hasattr(getattr(module, name), "_fit") or hasattr(getattr(module, name), "evaluate")
    ]
    public += [name for name in skdp.statistics.__all__ if name.startswith("private_")]
    assert len(public) > 25 and set(public) <= charged


def test_workers_share_no_draw():
    """Folds in processes, and classes one against the rest, with one seed and without any."""
    parts = [(X[k::3], Y[k::3]) for k in range(3)]
    parts += [(X, (THREE == label).astype(int)) for label in range(3)]
    tasks = [
        delayed(draws_of_a_fit)(OperaSVC(random_state=seed), *part)
        for seed in SEEDS
        for part in parts
    ]
    keys, repeated = zip(*Parallel(n_jobs=2)(tasks), strict=True)
    keys = [key for each in keys for key in each]
    assert not any(repeated) and len(set(keys)) == len(keys) >= len(tasks)


# Faults, and what they have in common: something is drawn from where something was drawn before.


def without_labels(stream, label):
    """Give all children the key of the stream itself."""
    return type(stream)(stream._key, seeded=stream.seeded)


def rewound(draw):
    """Draw from the beginning each time."""

    def again(stream, *given):
        stream._counter, stream._waiting = itertools.count(), {}
        return draw(stream, *given)

    return again


def without_context(random_state, context=b""):
    return RESOLVE(random_state)


RESOLVE = random_stream.resolve_random_state
SHARING = ("counted", "counted, objective", "calibrated", "pure objective", "linear regression")
SHARING += ("discrete objective", "lots", "network", "PATE, confident-gaussian", "search, cv")


@pytest.mark.parametrize(("name", "seed"), [(name, SEEDS[k % 2]) for k, name in enumerate(SHARING)])
def test_two_releases_of_one_stream_are_seen(name, seed, monkeypatch):
    monkeypatch.setattr(RandomStream, "spawn", without_labels)
    with watched_draws() as draws:
        RELEASES[name](seed)
    assert draws.repeated()


@pytest.mark.parametrize(
    ("name", "drawing"),
    [(name, "_fill") for name in ("statistics", "evaluation")]
    + [(name, "standard_normal") for name in ("GrpuaSVC", "adaptive")],
)
def test_a_stream_that_goes_back_is_seen(name, drawing, monkeypatch):
    monkeypatch.setattr(RandomStream, drawing, rewound(getattr(RandomStream, drawing)))
    with record_releases() as trace, watched_draws() as draws:
        RELEASES[name](7)
    assert draws.repeated()
    if name == "GrpuaSVC":  # equal noise, up to its scale
        one, two = ((each.output - each.value) / each.sigma for each in trace.releases[:2])
        assert np.allclose(one, two)


@pytest.mark.parametrize(
    ("name", "module"),
    [("folds", "skdp.fitting"), ("statistics", "skdp.statistics._terms")],
)
def test_one_seed_for_several_tables_is_seen(name, module, monkeypatch):
    monkeypatch.setattr(f"{module}.resolve_random_state", without_context)
    with watched_draws() as draws:
        RELEASES[name](7)
    assert draws.repeated()
