"""Classifiers with hidden layers: what they publish, where they start, and what they refuse."""

import json
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.neural_network import MLPClassifier
from support import Untouchable, rows
from threadpoolctl import threadpool_limits

from skdp import DPSGDClassifier, GrpuaMLPClassifier
from skdp.audit import audit_epsilon
from skdp.reporting import PrivacySpent, privacy_statement
from skdp.testing import FrozenStream, check_private_estimator, replay_on_neighbour
from skdp.testing.replay import differences, fit_both

OF_LINES = {"coef_", "intercept_"}
OF_NETWORKS = {"coefs_", "intercepts_", "activation_", "out_activation_", "n_layers_", "n_outputs_"}
# No step is long enough to move a weight.
STANDING = {"learning_rate_init": 1e-200, "max_iter": 1}


def network(*hidden, cls=DPSGDClassifier, **settings):
    return cls(
        **{"hidden_layer_sizes": hidden or (4,), "max_iter": 5, "data_norm": 1.0, **settings}
    )


def public_weights(*sizes, seed=0):
    rng = np.random.default_rng(seed)
    coefs = [rng.standard_normal(pair) for pair in pairwise(sizes)]
    return coefs, [rng.standard_normal(outputs) for outputs in sizes[1:]]


@pytest.mark.parametrize(
    ("activation", "n_classes"), [("relu", 2), ("relu", 3), ("tanh", 2), ("identity", 3)]
)
def test_attributes_and_answers_are_those_of_scikit_learn(activation, n_classes):
    X, y = rows(n_classes=n_classes)
    model = network(5, 3, activation=activation, epsilon=50.0).fit(X, y)
    peer = MLPClassifier((5, 3), activation, max_iter=1, solver="sgd")
    with pytest.warns(UserWarning, match="reached"):
        peer.fit(X, y)
    for name in ("coefs_", "intercepts_"):
        own, theirs = getattr(model, name), getattr(peer, name)
        assert [each.shape for each in own] == [each.shape for each in theirs]
        setattr(peer, name, own)
    for name in ("n_layers_", "n_outputs_", "out_activation_"):
        assert getattr(model, name) == getattr(peer, name)
    assert model.activation_ == activation and not hasattr(model, "coef_")
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), 1e-9, 1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    assert model.decision_function(X).shape == ((300,) if n_classes == 2 else (300, 3))
    single = model.decision_function(X.astype(np.float32))
    np.testing.assert_allclose(single, model.decision_function(X), rtol=1e-4, atol=1e-5)


def test_a_fit_with_other_layers_leaves_nothing_of_the_last_one_behind(table):
    model = network(max_iter=1)
    for sizes, own, others in (
        ((3,), OF_NETWORKS, OF_LINES),
        ((), OF_LINES, OF_NETWORKS),
        ((2, 2), OF_NETWORKS, OF_LINES),
    ):
        model.set_params(hidden_layer_sizes=sizes).fit(*table)
        assert own <= set(vars(model)) and not others & set(vars(model))
        assert set(model.privacy_spent_.released) <= set(vars(model))
        assert model.predict(table[0]).shape == table[1].shape


def test_training_learns(table):
    X, _ = table
    bent = (np.abs(X[:, 0]) > 0.4).astype(int)
    model = network(16, epsilon=1e5, max_iter=200, max_grad_norm=1.0, learning_rate_init=0.5)
    assert model.fit(X, bent).score(X, bent) > 0.85
    line = DPSGDClassifier(1e5, data_norm=1.0).fit(X, bent)
    assert line.score(X, bent) < 0.8


@pytest.mark.parametrize("data_norm", [1.0, 5.0])
def test_public_weights_are_where_training_starts(table, data_norm):
    """In the units of the rows, and it is from there that the penalty counts."""
    X, y = table
    coefs, intercepts = public_weights(4, 3, 1)
    settings = {"data_norm": data_norm, "coefs_init": coefs, "intercepts_init": intercepts}
    held = {"epsilon": 1e6, "alpha": 1e3, "max_iter": 100, "learning_rate_init": 1e-4}
    settings["calibrate"] = None
    for other in (STANDING, STANDING | {"intercept_scaling": 3.0}, held):
        model = network(3, **{**settings, **other}).fit(data_norm * X, y)
        tolerance = 1e-2 if other is held else 1e-12
        for own, given in zip(model.coefs_ + model.intercepts_, coefs + intercepts, strict=True):
            np.testing.assert_allclose(own, given, atol=tolerance)
    told = " ".join(model.privacy_spent_.assumptions)
    assert "initial weights coefs_init= and intercepts_init= are public" in told
    assert "coefs_init" not in " ".join(network(3).fit(X, y).privacy_spent_.assumptions)


WRONG = [
    ({"hidden_layer_sizes": (3, 0)}, ValueError, "hidden_layer_sizes must be at least 1"),
    ({"hidden_layer_sizes": -1}, ValueError, "hidden_layer_sizes must be at least 1"),
    ({"hidden_layer_sizes": True}, TypeError, "hidden_layer_sizes must be an integer"),
    ({"hidden_layer_sizes": (2.0,)}, TypeError, "number of units of each hidden layer"),
    ({"hidden_layer_sizes": "8"}, TypeError, "hidden_layer_sizes must be an integer"),
    ({"hidden_layer_sizes": None}, TypeError, "hidden_layer_sizes must be an integer"),
    ({"hidden_layer_sizes": [[3]]}, TypeError, "hidden_layer_sizes must be an integer"),
    ({"hidden_layer_sizes": (2,) * 101}, ValueError, "may list at most 100 layers"),
    ({"hidden_layer_sizes": 10**9}, ValueError, "smaller layers"),
    ({"activation": "logistic"}, ValueError, "activation must be one of 'relu', 'tanh'"),
    ({"clipping": "layer"}, ValueError, "clipping must be one of"),
    ({"max_grad_norm": "adaptive", "hidden_layer_sizes": ()}, ValueError, "fixed max_grad_norm"),
    ({"max_grad_norm": "median"}, TypeError, "max_grad_norm must be a real number or 'auto' or"),
    (
        {"clipping": "per-layer", "hidden_layer_sizes": ()},
        ValueError,
        "supported only for networks",
    ),
    ({"coefs_init": [], "hidden_layer_sizes": ()}, ValueError, "supported only for networks"),
    ({"coefs_init": [np.ones((4, 3))]}, ValueError, r"shapes \[\(4, 3\), \(3, 1\)\].*got \[\(4, 3"),
    ({"coefs_init": [np.ones((3, 4)), np.ones((3, 1))]}, ValueError, "from the first layer"),
    ({"coefs_init": [np.ones((4, 3)), np.full((3, 1), np.nan)]}, ValueError, "NaN or infinity"),
    ({"coefs_init": [np.ones((4, 3)), np.full((3, 1), 1e11)]}, ValueError, "at most 1e"),
    ({"coefs_init": 1.0}, TypeError, "coefs_init must be a list of arrays"),
    ({"coefs_init": ["a", "b"]}, TypeError, "coefs_init must be a list of arrays"),
    ({"intercepts_init": [np.ones(3), np.ones((1, 1))]}, ValueError, r"\[\(3,\), \(1,\)\]"),
    (
        {"intercepts_init": [np.ones(3)] * 2, "fit_intercept": False},
        ValueError,
        "cannot be given with fit_intercept",
    ),
    ({"max_grad_norm": 1e11}, ValueError, "at most 1e[+]10"),
    ({"max_grad_norm": 1e-9}, ValueError, "max_grad_norm must be finite and at least 1e-06"),
    ({"intercept_scaling": 1e300}, ValueError, "intercept_scaling must be finite"),
    (
        {"epsilon": None, "noise_multiplier": 1e50, "batch_size": 1, "max_iter": 1},
        *(ValueError, r"clipping norm must be in \[1e-10, 1e\+10\]"),
    ),
    ({"coefs_init": (x for x in [])}, TypeError, "coefs_init must be a list of arrays"),
    ({"average": "exponential"}, TypeError, "average must be a real number or 'ema'"),
]


@pytest.mark.parametrize(("parameters", "error", "message"), WRONG)
def test_mistakes_are_named_before_the_charge(table, parameters, error, message):
    model = network(3, **{"accountant": Untouchable(), **parameters})
    with pytest.raises(error, match=message):
        model.fit(*table)
    if "_init" not in message:
        with pytest.raises(error, match=message):
            model.privacy_plan(300, 4)


def test_a_plan_needs_no_rows(table):
    X, y = table
    settings = {"epsilon": None, "noise_multiplier": 2.0, "classes": [0, 1], "batch_size": 50}
    model = network(7, 3, clipping="per-layer", **settings)
    assert model.privacy_plan(*X.shape) == model.fit(X, y).privacy_spent_
    spent = model.privacy_spent_
    assert spent.released == ("coefs_", "intercepts_", "classes_", "calibration_")
    assert PrivacySpent.from_dict(json.loads(spent.to_json())) == spent


CLIPPING = {
    "flat": {"max_grad_norm": 0.05},
    "per-layer": {"max_grad_norm": 0.05, "clipping": "per-layer"},
    "normalize": {"max_grad_norm": 0.05, "clipping": "normalize"},
    "adaptive": {"max_grad_norm": "adaptive"},
    "gradient perturbation": {"cls": GrpuaMLPClassifier, "max_grad_norm": 0.05},
    "inside a ball": {"cls": GrpuaMLPClassifier, "max_grad_norm": None, "radius": 0.7},
}


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("clipping", CLIPPING)
def test_replay_on_neighbours(adjacency, clipping):
    rng = np.random.default_rng(0)
    for seed, activation in enumerate(("relu", "tanh", "identity")):
        n_classes = 2 + seed % 2
        X, y = rows(n=60, n_classes=n_classes, seed=seed)
        other, labels = X.copy(), y.copy()
        X[0] = [1.0, 0.0, 0.0, 0.0]
        other[0] = -X[0]
        labels[0] = rng.integers(n_classes)
        if adjacency == "add-remove":  # to which a row of zeros adds nothing
            other[0], labels = 0.0, y
        model = network(
            4,
            3,
            **{"activation": activation, "adjacency": adjacency},
            **{"fit_intercept": adjacency == "replace-one", "classes": range(n_classes)},
            **{"max_iter": 3, "batch_size": 30 if seed == 1 else 60, **CLIPPING[clipping]},
        )
        report = replay_on_neighbour(model, X, y, other, labels, seed=seed)
        assert report.distances.size == 3
        if seed == 0 and clipping == "flat" and adjacency == "add-remove":
            assert report.largest_ratio > 0.999


HOSTILE = {"zeros": np.zeros(4), "extreme": np.array([1e9, -1e9, 1e-9, 0.0])}


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_nothing_reachable_tells_neighbours_apart(adjacency, hostile):
    X, y = rows(60)
    other, labels = X.copy(), y.copy()
    other[7], labels[7] = HOSTILE[hostile], 1 - y[7]
    model = network(4, 3, adjacency=adjacency, classes=[0, 1], clipping="normalize")
    fitted = fit_both(model, (X, y), (other, labels))
    assert differences(*fitted) == []
    assert privacy_statement(fitted[0]).to_dict()["holds_for_the_whole"]


@pytest.mark.slow
@pytest.mark.parametrize("clipping", ["flat", "gradient perturbation", "inside a ball"])
def test_it_passes_what_third_parties_must_pass(clipping):
    model = network(3, max_iter=2, **CLIPPING[clipping])
    results = check_private_estimator(model, n_draws=60)
    assert {result["status"] for result in results} == {"passed"}


def test_no_ball_is_so_small_that_its_norm_cannot_be_clipped_to(table):
    zeros = [np.zeros((4, 3)), np.zeros((3, 1))]
    settings = {"fit_intercept": False, "coefs_init": zeros, "accountant": Untouchable()}
    model = network(3, cls=GrpuaMLPClassifier, max_grad_norm=None, radius=1e-60, **settings)
    with pytest.raises(ValueError, match="clipping norm must be in"):
        model.fit(*table)


@pytest.mark.parametrize("release", ["model", "all"])
def test_adaptive_norms_can_be_audited_with_a_row_less(table, release):
    model = network(2, max_grad_norm="adaptive", max_iter=2, delta=1e-5)
    result = audit_epsilon(model, *table, n_trials=100, release=release, random_state=0)
    assert result.epsilon_lower <= model.epsilon


def test_what_bounds_the_gradients_is_told(table):
    model = network(3, cls=GrpuaMLPClassifier, data_norm=2.0, max_grad_norm=1.0).fit(*table)
    assert "clipped" in model.privacy_spent_.assumptions[-1]
    assert "norm at most 1; " in model.privacy_spent_.mechanism
    start = network(3, data_norm=2.0, **STANDING).fit(*table)
    model.set_params(max_grad_norm=None, radius=0.3, epsilon=0.1).fit(*table)
    told = model.privacy_spent_.assumptions[-1]
    assert "null row replaces" in model.privacy_spent_.arithmetic
    assert "at weights in the ball of radius 0.3" in told and "clipped" not in told
    moved = [own - from_ for own, from_ in zip(model.coefs_, start.coefs_, strict=True)]
    moved[0] *= 2.0 / 4.0  # back in the units of the network
    moved += model.intercepts_
    assert np.linalg.norm(np.concatenate([part.ravel() for part in moved])) <= 0.3 * (1 + 1e-9)


def test_lots_of_fixed_size(table):
    X, y = table
    model = network(3, cls=GrpuaMLPClassifier, sampling="uniform", batch_size=20, classes=[0, 1])
    report = replay_on_neighbour(model, X, y, np.vstack([-X[:1], X[1:]]), y)
    assert report.distances.size == 5
    assert "subset of fixed size" in " ".join(model.privacy_plan(300, 4).assumptions)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"hidden_layer_sizes": ()}, ValueError, "Use GrpuaLogisticRegression"),
        ({"calibration": "hidden-state"}, ValueError, "is not convex"),
        ({"max_grad_norm": "adaptive"}, TypeError, "max_grad_norm must be a real number or 'auto'"),
        ({"max_grad_norm": 1e11}, ValueError, "max_grad_norm must be finite"),
        ({"max_grad_norm": None, "radius": 1e11}, ValueError, "smaller radius or fewer layers"),
        ({"radius": -1.0}, ValueError, "radius must be"),
        ({"sampling": "uniform", "adjacency": "add-remove"}, ValueError, "fixed size"),
    ],
)
def test_mistakes_of_gradient_perturbation(table, parameters, error, message):
    settings = {"cls": GrpuaMLPClassifier, "accountant": Untouchable(), **parameters}
    with pytest.raises(error, match=message):
        network(3, **settings).fit(*table)


# Several blocks of rows, and draws of noise that are shared out; the line's 10 x 2,101 weights are
# added up by the BLAS.
SHARED_OUT = {
    "network": (network(300, 250), (1050, 8, 3)),
    "inside a ball": (network(300, 250, **CLIPPING["inside a ball"]), (1050, 8, 3)),
    "wide line": (DPSGDClassifier(data_norm=1.0), (350, 2100, 10)),
}


@pytest.mark.parametrize(
    ("kind", "dtype"), zip(SHARED_OUT, (np.float64, np.float32, np.float32), strict=True)
)
def test_weights_do_not_depend_on_threads(kind, dtype):
    model, shape = SHARED_OUT[kind]
    X, y = rows(*shape)
    model = clone(model).set_params(random_state=0, max_iter=2, batch_size=len(X) - 50)
    fits = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            fits.append(clone(model).fit(X.astype(dtype), y))
    assert differences(*fits) == []


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_rows_and_single_precision(table, make):
    X, y = table
    X = np.where(X > 0.0, X, 0.0)
    dense = network(3, random_state=FrozenStream.from_seed(0)).fit(X, y)
    for other in (make(X), X.astype(np.float32), make(X.astype(np.float32))):
        model = network(3, random_state=FrozenStream.from_seed(0)).fit(other, y)
        # In single precision gradients are clipped a little more, for the rounding of sums.
        tolerance = 1e-10 if other.dtype == np.float64 else 0.03
        for own, known in zip(model.coefs_, dense.coefs_, strict=True):
            np.testing.assert_allclose(own, known, tolerance, tolerance)
        scores = model.decision_function(other)
        np.testing.assert_allclose(scores, dense.decision_function(X), tolerance, tolerance)
