"""Attacks on the look: seeds, steps that fail or speak, careless models, statements."""

import warnings
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skdp
from skdp.budget import BudgetAccountant
from skdp.inference import PrivateInference, PublicWeights
from skdp.inference._regression import ErrorPlan
from skdp.inference._release import BOUNDS, LookPlan
from skdp.mechanisms import record_releases
from skdp.preprocessing import BoundedScaler, CategoricalColumn, NumericColumn, TableSchema
from skdp.solvers import Rows

BOTH = ["add-remove", "replace-one"]
N = 1500
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (N, 3))
Y = (RNG.random(N) < expit(0.4 + X @ [2.0, -1.0, 0.0])).astype(int)
MODEL = LogisticRegression().fit(X, Y)


def released(model, rows, labels=Y, **terms):
    """Return the releases of all stages."""
    with record_releases() as trace:
        PrivateInference(**terms).evaluate(model, rows, labels)
    return trace.releases


def noises(releases):
    return [(release.output - release.value) / release.sigma for release in releases]


def assert_no_noise_twice(first, second):
    """Where exact sums differ, no number has the same noise: a difference would show them."""
    for one, other, own, others in zip(first, second, noises(first), noises(second), strict=True):
        if one.value.size != other.value.size or np.abs(one.value - other.value).max() > 1e-6:
            assert not np.isin(np.round(own, 6), np.round(others, 6)).any()


@pytest.mark.parametrize("adjacency", BOTH)
def test_a_seed_gives_no_noise_twice_if_only_a_later_stage_differs(adjacency):
    """The score of the fit, and the schema's prior, enter the weights of the second stage."""
    terms = {"random_state": 3, "adjacency": adjacency}
    fit = skdp.ObjectivePerturbationLogisticRegression(
        data_norm=1.0, max_grad_norm=None, calibrate=None
    )
    fit = make_pipeline(BoundedScaler(-0.5, 0.5), fit).fit(X, Y)
    here, elsewhere = released(fit, X, **terms), released(fit, X.copy(), **terms)
    np.testing.assert_array_equal(here[0].output, elsewhere[0].output)  # the same stage
    assert np.abs(here[1].value - elsewhere[1].value).max() > 1e-6
    assert_no_noise_twice(here, elsewhere)

    frame = pd.DataFrame({"a": 100.0 * X[:, 0], "b": np.array(list("uvw"))[np.arange(N) % 3]})
    schema = TableSchema([NumericColumn("a", -50, 50), CategoricalColumn("b", list("uvw"))])
    piped = schema.pipeline(skdp.OperaLogisticRegression(epsilon=1.0)).fit(frame, Y)
    encoded = np.asarray(piped[:-1].transform(frame), dtype=float)
    assert_no_noise_twice(released(piped, frame, **terms), released(piped[-1], encoded, **terms))


def test_stages_at_the_same_weights_have_their_own_noise(monkeypatch):
    monkeypatch.setattr("skdp.inference._release.LARGEST_WEIGHT", 0.0)  # nothing is corrected
    stages = released(PublicWeights([2.0, 1.0, 0.0]), X, data_norm=1.0, random_state=3)
    for first, second in pairwise(stages):
        np.testing.assert_array_equal(first.value, second.value)
        assert np.abs(np.subtract(*noises([first, second]))).min() > 1e-6


class Plain(TransformerMixin, BaseEstimator):
    """A step that passes rows on, of Dask block by block; `of_block` may misbehave."""

    def fit(self, rows, y=None):
        self.fitted_ = True
        return self

    def transform(self, rows):
        if hasattr(rows, "map_blocks"):
            return rows.map_blocks(self.of_block, dtype=float, meta=np.empty((0, 3)))
        return self.of_block(np.asarray(rows))

    def of_block(self, rows):
        return rows


class Dropping(Plain):
    """A step that omits rows, which made-up ones do not show."""

    def of_block(self, rows):
        return rows[~np.isin(rows[:, 0], X[:7, 0])]


class Speaking(Plain):
    """A step that says what it reads."""

    def of_block(self, rows):
        if np.isin(rows[:, 0], X[:7, 0]).any():
            print(f"row {rows[0]}")
            warnings.warn(f"row {rows[0]}", stacklevel=1)
        return rows


class Failing(Plain):
    """A step that fails on private rows, and quotes them."""

    def of_block(self, rows):
        if np.isin(rows[:, 0], X[:7, 0]).any():
            raise ValueError(f"row {rows[0]}")
        return rows


def lazy(rows):
    return pytest.importorskip("dask.array", reason="needs dask").from_array(rows, chunks=(400, 3))


@pytest.mark.parametrize("place", [np.asarray, lazy])
@pytest.mark.parametrize("adjacency", BOTH)
def test_the_number_of_rows_that_a_step_keeps_is_withheld(place, adjacency):
    budget = BudgetAccountant(3.0, 1e-5, adjacency=adjacency)
    look = PrivateInference(data_norm=1.0, accountant=budget)
    with pytest.raises(ValueError, match="charge stays") as raised:
        look.evaluate(make_pipeline(Dropping().fit(X), MODEL), place(X), Y)
    assert raised.value.__context__ is None and raised.value.__cause__ is None
    assert str(N) not in str(raised.value) and len(budget.entries()) == 1


@pytest.mark.parametrize("place", [np.asarray, lazy])
def test_steps_are_silent_and_what_they_say_of_rows_is_withheld(place, capfd, recwarn):
    look = PrivateInference(data_norm=1.0)
    look.evaluate(make_pipeline(Speaking().fit(X), MODEL), place(X), Y)
    said = capfd.readouterr()
    assert "row" not in said.out + said.err
    assert not [warning for warning in recwarn if "row" in str(warning.message)]
    with pytest.raises(ValueError, match="charge stays") as raised:
        look.evaluate(make_pipeline(Failing().fit(X), MODEL), place(X), Y)
    assert raised.value.__context__ is None and raised.value.__cause__ is None


@pytest.mark.parametrize("kind", [*BOUNDS, "regression"])
def test_no_error_of_numpy_depends_on_rows(kind):
    """Some users let numpy raise where numbers overflow or vanish."""
    rng, rows = np.random.default_rng(0), {"intercept_value": 0.5, "data_norm": 1.0}
    by_unit = {"row_weight": np.full(60, 0.5), "n_units": 30}
    given = rng.choice([-1, 1], 60).astype(np.int8), "signs"
    plan = None if kind == "regression" else LookPlan.build(1.0, 1e-6, *kind)
    if plan is None:
        plan = ErrorPlan.build(1.0, 1e-6, "add-remove", limit=1e-9)
        given = rng.standard_normal(60) * 1e-300, "real"
    rows |= {"targets": given[0], "target_kind": given[1]}
    with np.errstate(all="raise"):
        for size, scale in product((1.0, 740.0, 1e4, 1e90), (1e-300, 1e-160, 1.0, 1e300)):
            for units, codes in (({}, None), (by_unit, np.arange(60) // 2)):
                X = rng.standard_normal((60, 3)) * scale
                table = Rows.from_matrix(X, **rows, **units)
                assert np.isfinite(plan.sum(table, size * rng.standard_normal(4), codes)).all()


def test_a_plan_of_a_budget_pays_for_every_look():
    """Rounding of the sensitivity of several outputs does not make another event."""
    for epsilon in np.geomspace(0.01, 10.0, 40):
        events = [ErrorPlan.build(epsilon, 1e-6, adjacency).event for adjacency in BOTH]
        for kind in BOUNDS:
            for count in (1, 2, 3):
                plan = LookPlan.build(epsilon, 1e-6, *kind, n_outputs=count)
                noise, norm = Fraction(plan.sums.sigma), Fraction(BOUNDS[kind].l2)
                wanted = Fraction(plan.event.noise_multiplier) * norm
                assert noise**2 >= wanted**2 * count  # at least that of the event, exactly
                events.append(plan.event)
        assert len(set(events)) == 1
    labels = np.where(X[:, 2] > 0.2, 2, Y)
    model = skdp.OperaLogisticRegression(data_norm=1.0).fit(X, labels)
    for epsilon in (0.5, 0.7, 1.3):
        look = PrivateInference(epsilon, reference=0)
        with BudgetAccountant(9.0, 1e-4).plan([look.privacy_plan(N)]):
            look.evaluate(model, X, labels)


@pytest.mark.parametrize("bound", [np.nan, np.inf, 0.0, -1.0, 1e-60, "1.0", None, True])
def test_a_model_with_a_bound_that_is_none_is_refused_before_the_charge(bound):
    class Careless(LogisticRegression):
        _row_bound = bound

    budget = BudgetAccountant(3.0, 1e-5)
    with pytest.raises((ValueError, TypeError), match="data_norm must be"):
        PrivateInference(accountant=budget).evaluate(Careless().fit(X, Y), X, Y)
    assert not budget.entries()


class Meddling(Plain):
    """A step that writes rows into the coefficients of the model."""

    def of_block(self, rows):
        if np.isin(rows[:, 0], X[:1, 0]).any():
            self.model.coef_[:] = rows[0]
        return rows


def test_weights_are_those_that_were_read_before_the_rows():
    step, model = Meddling().fit(X), LogisticRegression().fit(X, Y)
    honest = released(make_pipeline(Plain().fit(X), model), X, data_norm=1.0)
    step.model, before = model, model.coef_.copy()
    trace = released(make_pipeline(step, model), X, data_norm=1.0)
    assert not np.array_equal(model.coef_, before)
    np.testing.assert_array_equal(trace[0].value, honest[0].value)


class Slightly(Plain):
    """A step that adds a little of all other rows, as rounding might."""

    def of_block(self, rows):
        return rows + 1e-7 * np.mean(rows, axis=0)


class Suddenly(Plain):
    """A step that mixes rows of short tables, and of no others."""

    def of_block(self, rows):
        return rows - np.mean(rows, axis=0) * (len(rows) < 2000)


@pytest.mark.parametrize("kind", [Slightly, Suddenly])
def test_steps_see_rows_as_they_saw_made_up_ones(kind):
    """The mean of huge rows would be no little."""
    model = make_pipeline(kind().fit(X), MODEL)
    other = X.copy()
    other[7] = 1e12
    one, two = (released(model, rows, data_norm=1.0)[0] for rows in (X, other))
    assert np.linalg.norm(one.value - two.value) <= one.sensitivity * (1.0 + 1e-9)
