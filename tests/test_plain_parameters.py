"""Numbers given in numpy's types are computed with as Python's own, of whatever precision."""

import inspect
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from support import rows

import skdp
import skdp.model_selection
import skdp.preprocessing
from skdp import OperaSVC
from skdp.accounting import (
    ApproxDPEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    GDPAccountant,
    LaplaceEvent,
    LastIterateEvent,
    ObjectivePerturbationEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RandomAllocationEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
    UniformSampledEvent,
    calibrate_event,
    calibrate_noise_multiplier,
    calibrate_sample_rate,
    calibrate_steps,
    composition_noise_multiplier,
    dpsgd_epsilon,
    group_privacy,
)
from skdp.base.parameters import PlainParameters, check_real, plain
from skdp.budget import BudgetAccountant
from skdp.mechanisms import (
    ContributionBound,
    GaussianMechanism,
    PoissonSampler,
    RandomStopping,
    RandomStream,
    UniformSubsetSampler,
    analytic_gaussian_delta,
    analytic_gaussian_epsilon,
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
    exponential_mechanism,
    gaussian_mechanism,
    laplace_mechanism,
    permute_and_flip,
    report_noisy_max,
)
from skdp.preprocessing import NumericColumn

FLOATS = (np.float16, np.float32, np.float64, np.longdouble)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)

# A value of every parameter that is a number, which all of its owners take.
NUMBERS = {
    **{"epsilon": 1.3, "delta": 0.0011, "data_norm": 2.7, "alpha": 0.37},
    **{"intercept_scaling": 0.7, "noise_multiplier": 3.3, "max_grad_norm": 0.61},
    **{"momentum": 0.3, "beta_1": 0.8, "radius": 3.3, "beta_2": 0.9},
    **{"learning_rate_init": 0.13, "learning_rate_final": 0.3, "decay_share": 0.7},
    **{"average": 0.3, "half_width": 0.7, "prior_precision": 0.4},
    **{"class_weight": {0: 1.3, 1: 0.7}, "prevalence": {0: 0.4, 1: 0.6}, "lower": -0.7},
    **{"upper": 0.9, "row_norm": 1.3, "smallest": 0.01, "resolution": 0.013, "norm": 1.7},
    **{"holdout_fraction": 0.3, "expected_candidates": 3.3, "stopping_shape": 1.7},
    **{"selection_share": 0.3, "refit_share": 0.3, "max_iter": 9, "batch_size": 60},
    **{"physical_batch_size": 50, "n_components": 2, "n_iter": 3, "cv": 3, "random_state": 7},
    **{"verbose": 0, "n_jobs": 1, "quantiles": (0.1, 0.9), "step_weights": {"clf": 0.3}},
    **{"n_scales": 1, "n_angles": 3, "max_order": 1, "normalize_groups": 2, "n_teachers": 8},
    **{"n_queries": 9, "max_answers": 5, "threshold": 0.7, "threshold_share": 0.3},
    **{"n_filters": 3, "patch_size": 2, "grid_size": 1, "input_norm": 1.7, "n_groups": 2},
    **{"max_unit_rows": 3, "target_bounds": (-0.7, 0.9), "width": 0.3, "quantile": 0.4},
}
OTHERS = set(
    """
    accountant activation adjacency aggregation calibrate calibration center classes
    clipping coefs_init columns estimator fit_intercept hidden_layer_sizes image_shape
    intercepts_init learning_rate loss method noise_aware noisy_scores numerics
    param_distributions param_grid privacy product refit sampling scoring semi_supervised
    solver student teacher unit_weighting whiten with_mean with_std
    """.split()
)


def listed():
    for module in (skdp, skdp.preprocessing, skdp.model_selection):
        for name in module.__all__:
            cls = getattr(module, name)
            if isinstance(cls, type) and issubclass(cls, BaseEstimator):
                yield cls


EVERYTHING = list(listed())


def bare(cls):
    given = {
        "estimator": OperaSVC(),
        "teacher": OperaSVC(),
        "param_grid": {},
        "param_distributions": {},
    }
    given.update(lower=-1.0, upper=1.0, image_shape=(2, 2))
    wanted = inspect.signature(cls).parameters
    return cls(**{name: value for name, value in given.items() if name in wanted})


def as_type(number, value):
    if isinstance(value, tuple):
        return tuple(number(part) for part in value)
    if isinstance(value, dict):
        return {name: number(part) for name, part in value.items()}
    return number(value)


@pytest.mark.daily(6)
@pytest.mark.parametrize("cls", EVERYTHING, ids=lambda cls: cls.__name__)
def test_every_parameter_is_kept_as_a_plain_number_however_it_is_set(cls):
    assert issubclass(cls, PlainParameters)
    for name in inspect.signature(cls).parameters:
        assert (name in NUMBERS) != (name in OTHERS), f"say what {name} is"
        if name in OTHERS:
            continue
        value = NUMBERS[name]
        whole = isinstance(value, int)
        for number in (*FLOATS, *INTEGERS, Fraction):
            if number in FLOATS and whole:
                continue
            given = as_type(number, 1 if number in INTEGERS and not whole else value)
            if name in ("quantiles", "step_weights") and number in INTEGERS:
                continue
            exact = as_type(float if number not in INTEGERS else int, given)
            one = bare(cls).set_params(**{name: given})
            other = bare(cls)
            setattr(other, name, given)
            third = clone(one)
            fourth = cls(**{**bare(cls).get_params(deep=False), name: given})
            for model in (one, other, third, fourth):
                kept = getattr(model, name)
                assert kept == exact
                leaves = kept.values() if isinstance(kept, dict) else kept
                leaves = leaves if isinstance(kept, tuple | dict) else [kept]
                assert all(type(leaf) in (float, int) for leaf in leaves), (name, number)


def settings(cls, number):
    """Return all parameters of a class in a type of number, and as Python's of the same value."""
    wanted = [name for name in inspect.signature(cls).parameters if name in NUMBERS]
    wanted = [name for name in wanted if name not in ("random_state", "n_jobs", "step_weights")]
    if "lower" in wanted:  # bounds of features stand in place of a bound on rows
        wanted = [name for name in wanted if name not in ("input_norm", "n_groups")]
    typed, python = {}, {}
    for name in wanted:
        whole = isinstance(NUMBERS[name], int)
        typed[name] = as_type(np.int8 if whole else number, NUMBERS[name])
        python[name] = as_type(int if whole else float, typed[name])
    if "image_shape" in inspect.signature(cls).parameters:
        typed["image_shape"], python["image_shape"] = (np.int8(2), np.int16(2)), (2, 2)
    return typed, python


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning", "ignore:With n=")
@pytest.mark.parametrize("cls", EVERYTHING, ids=lambda cls: cls.__name__)
def test_a_fit_releases_the_same(cls):
    number = (np.float16, np.longdouble)[EVERYTHING.index(cls) % 2]
    if cls in (
        skdp.PATEClassifier,
        skdp.preprocessing.SchemaEncoder,
        *map(vars(skdp.model_selection).get, SEARCHES),
    ):
        pytest.skip("no number of its own is computed with, or tested below or with its own tests")
    typed, python = settings(cls, number)
    X, y = rows()
    released = []
    for parameters in (typed, python):
        model = cls(**parameters)
        if "random_state" in inspect.signature(cls).parameters:
            model.set_params(random_state=7)
        model.fit(X, y)
        kept = {name: value for name, value in vars(model).items() if name.endswith("_")}
        if hasattr(model, "privacy_plan"):
            kept["plan"] = model.privacy_plan(np.int16(300), np.int8(4))
            assert kept["plan"] == model.privacy_plan(300, 4)
        released.append(repr(kept))
    assert released[0] == released[1]


SEARCHES = ("PrivateGridSearchCV", "PrivateRandomizedSearchCV")


@pytest.mark.daily(1)
@pytest.mark.parametrize("method", ["random-stopping", "holdout", "cv"])
def test_a_search_plans_the_same(method):
    cls = skdp.model_selection.PrivateGridSearchCV
    typed, python = settings(cls, np.float16)
    plans = []
    for parameters, alpha in ((typed, np.float16(0.1)), (python, float(np.float16(0.1)))):
        search = cls(OperaSVC(), {"alpha": [alpha, 1.0]}, method=method, **parameters)
        plans.append(search.privacy_plan(np.int16(300), np.int8(4)))
    assert plans[0] == plans[1]


def test_arrays_of_bounds_are_doubles():
    bounds = np.array([0.1, -0.3], dtype=np.float16)
    scaler = skdp.preprocessing.BoundedScaler(bounds, np.float16(0.7))
    assert scaler.lower.dtype == np.float64 and type(scaler.upper) is float
    assert clone(scaler).lower is not scaler.lower
    doubles = np.array([0.1, 0.2])
    assert skdp.preprocessing.BoundedScaler(doubles).lower is doubles
    column = NumericColumn("a", np.float16(0.1), np.float32(0.7), cuts=[np.float16(0.3)])
    assert all(type(value) is float for value in (column.lower, column.upper, *column.cuts))


@pytest.mark.parametrize("value", [0.5, 7, True, None, "auto", Decimal("0.5"), 1j, (1, "a"), {}])
def test_what_is_plain_or_no_number_stays_the_same_object(value):
    assert plain(value) is value


def test_what_is_a_number_in_another_guise_becomes_plain():
    for value, expected in (
        (np.bool_(True), True),
        (np.str_("auto"), "auto"),
        (Fraction(1, 3), 1 / 3),
        (np.longdouble(1) / 3, 1 / 3),
        ([np.float16(0.5), {"a": (np.int8(3),)}], [0.5, {"a": (3,)}]),
    ):
        got = plain(value)
        assert type(got) is type(expected) and got == expected
    assert type(plain([np.float16(0.5)])[0]) is float


@pytest.mark.parametrize("value", [np.array(0.5), np.array(0.5, dtype=np.float16), Decimal("0.5")])
def test_arrays_without_dimensions_and_decimals_are_refused(value):
    with pytest.raises(TypeError, match="alpha must be a real number"):
        OperaSVC(alpha=value).privacy_plan(300, 4)


@pytest.mark.parametrize("value", [10**400, Fraction(10**400), np.longdouble(10) ** 4000])
def test_numbers_beyond_doubles_are_refused(value):
    with pytest.raises(ValueError, match="alpha must be finite"):
        check_real("alpha", plain(value), above=0.0)


STEP = GaussianEvent(2.0)


def choices(mechanism):
    def many(**named):
        stream = RandomStream.from_seed(3)
        return [mechanism([1.0, 2.0, 1.5], stream=stream, **named) for _ in range(40)]

    return many


def lots(sampler):
    return lambda **named: sampler(stream=RandomStream.from_seed(3), **named).draw(30)


def noisy(**named):
    stream = RandomStream.from_seed(3)
    return GaussianMechanism(stream=stream, label="", **named).release(np.ones(3))


def composed(epsilon, delta, count, rtol):
    events = PoissonSampledEvent(0.1, STEP)
    accountant = PLDAccountant(rtol=rtol).compose(events, count)
    return accountant.epsilon(delta), GDPAccountant().compose(STEP, count).delta(epsilon)


def charged(epsilon, delta, limit):
    budget = BudgetAccountant(limit, 0.1, composition="basic")
    budget.reserve(STEP, epsilon=epsilon, delta=delta)
    return budget.spent(), budget.remaining()


SIGMA = {"epsilon": 0.3, "delta": 1e-3, "sensitivity": 2.7}
PURE = {"epsilon": 0.3, "sensitivity": 2.7}
RUN = {"sample_rate": 0.02, "steps": 10, "delta": 1e-3}
ENTRIES = {
    "gaussian": (GaussianEvent, {"noise_multiplier": 2.3}),
    "laplace": (LaplaceEvent, {"noise_multiplier": 2.3}),
    "discrete gaussian": (DiscreteGaussianEvent, {"noise_multiplier": 2.3, "sensitivity": 3}),
    "discrete laplace": (DiscreteLaplaceEvent, {"noise_multiplier": 2.3, "sensitivity": 3}),
    "poisson": (lambda **k: PoissonSampledEvent(event=STEP, **k), {"sample_rate": 0.013}),
    "uniform": (
        lambda **k: UniformSampledEvent(event=STEP, **k),
        {"batch_size": 5, "dataset_size": 100},
    ),
    "allocation": (lambda **k: RandomAllocationEvent(event=STEP, **k), {"lots": 5}),
    "repeated": (lambda **k: RepeatedEvent(STEP, **k), {"count": 7}),
    "pure": (PureDPEvent, {"epsilon": 0.3}),
    "approximate": (ApproxDPEvent, {"epsilon": 0.3, "delta": 1e-3}),
    "objective": (
        ObjectivePerturbationEvent,
        {"noise_multiplier": 2.3, "curvature": 0.1, "approximation": 0.01, "outputs": 2},
    ),
    "selection": (lambda **k: RepeatAndSelectEvent(STEP, **k), {"mean": 3.3, "shape": 0.7}),
    "last iterate": (
        lambda **k: LastIterateEvent.from_units(PoissonSampledEvent(0.1, STEP), **k),
        {
            **{"steps": 10, "step_size": 0.3, "smoothness": 1.1, "strong_convexity": 0.01},
            **{"diameter": 2.2, "noise": 0.3, "dataset_size": 100},
        },
    ),
    "sigma": (analytic_gaussian_sigma, SIGMA),
    "epsilon": (analytic_gaussian_epsilon, {"sigma": 1.3, "delta": 1e-3, "sensitivity": 2.7}),
    "delta": (analytic_gaussian_delta, {"sigma": 1.3, "epsilon": 0.3, "sensitivity": 2.7}),
    "classical": (classical_gaussian_sigma, SIGMA),
    "gaussian mechanism": (lambda **k: gaussian_mechanism([1.0], random_state=3, **k), SIGMA),
    "laplace mechanism": (lambda **k: laplace_mechanism([1.0], random_state=3, **k), PURE),
    "noise": (noisy, {"sensitivity": 1.3, "sigma": 2.7}),
    "permute and flip": (choices(permute_and_flip), PURE),
    "exponential": (choices(exponential_mechanism), PURE),
    "noisy max": (choices(report_noisy_max), PURE),
    "contribution": (lambda **k: ContributionBound(reason="", **k), {"norm": 1.3, "gap": 2.1}),
    "clipping": (ContributionBound.from_clipping, {"max_grad_norm": 1.3}),
    "poisson lots": (lots(PoissonSampler), {"n_rows": 100, "sample_rate": 0.113}),
    "uniform lots": (lots(UniformSubsetSampler), {"n_rows": 100, "batch_size": 7}),
    "stopping": (RandomStopping, {"mean": 3.3, "shape": 0.7}),
    "group": (lambda **k: group_privacy(**k), {"epsilon": 0.3, "delta": 1e-3, "size": 3}),
    "dpsgd": (dpsgd_epsilon, {**RUN, "noise_multiplier": 1.3}),
    "multiplier": (calibrate_noise_multiplier, {**RUN, "epsilon": 1.3}),
    "steps": (
        calibrate_steps,
        {"epsilon": 1.3, "delta": 1e-3, "sample_rate": 0.02, "noise_multiplier": 1.3},
    ),
    "rate": (
        calibrate_sample_rate,
        {"epsilon": 1.3, "delta": 1e-3, "steps": 10, "noise_multiplier": 1.3},
    ),
    "closed form": (composition_noise_multiplier, {**RUN, "epsilon": 1.3}),
    "any event": (lambda **k: calibrate_event(GaussianEvent, **k), {"epsilon": 1.3, "delta": 1e-3}),
    "accountants": (composed, {"epsilon": 0.3, "delta": 1e-3, "count": 3, "rtol": 1e-3}),
    "budget": (charged, {"epsilon": 1.3, "delta": 0.03, "limit": 1.7}),
}


@pytest.mark.daily(14)
@pytest.mark.parametrize("name", ENTRIES)
def test_entry_points_compute_in_double_precision(name):
    function, given = ENTRIES[name]
    for number, short in ((np.float16, np.int8), (np.longdouble, np.uint64)):
        typed = {k: short(v) if isinstance(v, int) else number(v) for k, v in given.items()}
        python = {k: int(v) if isinstance(given[k], int) else float(v) for k, v in typed.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert repr(function(**typed)) == repr(function(**python))
