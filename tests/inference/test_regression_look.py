"""A look at a regression: sensitivity, noise, sums, intervals, models and refusals."""

import json
import math
import pickle
from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse, stats
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from support import Untouchable

import skdp
from skdp.accounting import GaussianEvent
from skdp.budget import BudgetAccountant
from skdp.inference import PrivateInference, PublicWeights
from skdp.inference._regression import ERROR_BOUNDS, INSIDE, ErrorPlan
from skdp.inference._release import LARGEST_WEIGHT, constant_value
from skdp.mechanisms import RandomStream, record_releases
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.plans.second_moments import unpack_matrix
from skdp.preprocessing import (
    BooleanColumn,
    BoundedScaler,
    CategoricalColumn,
    NumericColumn,
    NumericLabel,
    PrivacyUnit,
    TableSchema,
)
from skdp.reporting import privacy_statement
from skdp.solvers import Rows
from skdp.testing import check_private_estimator
from skdp.testing.replay import differences, fit_both

BOTH = list(ERROR_BOUNDS)


def plan_of(adjacency, limit=0.3):
    return ErrorPlan.build(1.0, 1e-6, adjacency, limit=limit)


def rows_of(X, y, constant=0.0, shares=None, n_units=None, data_norm=1.0):
    X = np.ascontiguousarray(X, dtype=float)
    given = X, np.asarray(y, dtype=float), data_norm, constant, "real"
    return Rows.from_matrix(*given, shares, n_units)


def vector(plan, X, y, theta, constant=0.0, **units):
    return plan.sum(rows_of(X, y, constant, **units), np.asarray(theta, dtype=float))


def squared_distance(p, t, b, adjacency):
    """Return the squared distance of two records without the last coordinate, as in the proof.

    `p` is the sizes of residuals, the lengths of rows, and the cosine.
    """
    s, r, norm, length, cosine = p
    if adjacency == "add-remove":
        return (s * norm) ** 2 + t**2 * norm**4 + b**2 * (1.0 - s**2) ** 2
    both = s * r * norm * length * cosine
    scores = (s * norm) ** 2 + (r * length) ** 2 + 2.0 * both
    moments = norm**4 + length**4 - 2.0 * (norm * length * cosine) ** 2
    return scores + t**2 * moments + b**2 * (s**2 - r**2) ** 2


@pytest.mark.parametrize("adjacency", BOTH)
def test_factors_cost_what_is_declared(adjacency):
    """A search of residuals, lengths and angles; larger factors exceed the bound."""
    (t, b, norm), a = ERROR_BOUNDS[adjacency], INSIDE
    grid = np.linspace(0.0, 1.0, 9)
    mesh = np.meshgrid(grid, grid, grid, grid, np.linspace(-1.0, 1.0, 17))
    over = [(1.0, 1.0, False), (1.01, 1.0, True), (1.0, 1.3 if t < 0.5 else 2.1, True)]
    for of_t, of_b, exceeded in over:
        value = partial(squared_distance, t=of_t * t, b=of_b * b, adjacency=adjacency)
        found = value(mesh)
        top = float(found.max())
        for at in np.argsort(found, axis=None)[-200::40]:
            start = [part.ravel()[at] for part in mesh]
            box = [(0, 1)] * 4 + [(-1, 1)]
            best = optimize.minimize(lambda p, of=value: -of(p), start, bounds=box)
            top = max(top, -float(best.fun))
        assert (top + a**2 > norm**2 * (1.0 + 1e-9)) == exceeded
        assert top + a**2 > norm**2 * 0.9999


def attaining():
    """Return two rows of one direction, with residuals of opposite sign at the limit and before."""
    X = np.array([[0.6, 0.8], [0.6, 0.8]])
    return X, np.array([5.0, -0.3 * (1.0 - 1e-9)]), np.zeros(2)


def hostile_rows(rng, width, count=9):
    rows = rng.standard_normal((count, width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[::4] *= rng.uniform(0.0, 1.0, (len(rows[::4]), 1))
    rows[1::4] *= 1e200
    rows[2::4] = rows[2] + 10.0 ** rng.uniform(-9, 0) * rng.standard_normal(rows[2::4].shape)
    rows[3] = 0.0
    targets = [-1e200, -0.31, -0.29, 0.0, 0.1, 1e300]
    return [(row, target) for row in rows for target in targets]


@pytest.mark.parametrize("adjacency", BOTH)
def test_no_pair_of_rows_is_further_apart_than_declared(adjacency):
    plan, rng = plan_of(adjacency), np.random.default_rng(0)
    largest = 0.0
    for trial in range(12):
        width = 1 + trial % 3
        constant = constant_value(width, trial % 2 == 0)
        size = [0.0, 1e-6, 0.3, 3.0, 1e30, LARGEST_WEIGHT / 10][trial % 6]
        theta = rng.standard_normal(width + (constant > 0)) * size
        table = hostile_rows(rng, width)
        found = np.array([vector(plan, [x], [y], theta, constant) for x, y in table])
        if adjacency == "replace-one":
            found = np.linalg.norm(found[:, None] - found[None], axis=2)
        else:
            found = np.linalg.norm(found, axis=1)
        largest = max(largest, found.max())
    assert 0.99 * plan.sums.l2 < largest <= plan.sums.l2


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("units", [False, True])
def test_the_declared_distance_is_attained(adjacency, units):
    plan = plan_of(adjacency)
    X, y, theta = attaining()
    copies = [3, 5] if units else [1, 1]

    def record(k):
        shares = np.full(copies[k], 1.0 / copies[k]) if units else None
        table = np.tile(X[k], (copies[k], 1)), np.full(copies[k], y[k])
        return vector(plan, *table, theta, shares=shares, n_units=1 if units else None)

    first, second = record(0), record(1)
    gap = first - second if adjacency == "replace-one" else second
    assert 0.999 * plan.sums.l2 < np.linalg.norm(gap) <= plan.sums.l2


@pytest.mark.parametrize("adjacency", BOTH)
def test_units_are_no_further_apart_than_declared(adjacency):
    plan, rng = plan_of(adjacency), np.random.default_rng(1)
    theta = np.array([0.4, -2.0])
    for _ in range(40):
        pair = []
        for count in rng.integers(1, 7, 2):
            chosen = hostile_rows(rng, 2)[:: rng.integers(1, 9)][:count]
            X, y = map(np.array, zip(*chosen, strict=True))
            shares = np.full(len(X), 1.0 / len(X))
            pair.append(vector(plan, X, y, theta, shares=shares, n_units=1))
        gaps = [pair[0] - pair[1]] if adjacency == "replace-one" else pair
        assert max(map(np.linalg.norm, gaps)) <= plan.sums.l2


@pytest.mark.parametrize("adjacency", BOTH)
def test_each_block_has_its_noise(adjacency):
    """False alarms: below 1e-7 each, by the law of a sum of squares; 10 % more or less is seen."""
    n, bounds = 10**7, ERROR_BOUNDS[adjacency]
    plan = ErrorPlan.build(1.0, 1e-6, adjacency, limit=0.3, n_records=n)
    stream, theta = RandomStream.from_seed(1), np.zeros(3)
    counts = 0.5 * n * bounds.squares, 0.8 * n * INSIDE
    exact = np.append(np.zeros(9), counts)
    looks = [plan.release([exact], [theta], stream)[0] for _ in range(2000)]
    sigma = analytic_gaussian_sigma(1.0, 1e-6)
    assert type(plan.event) is GaussianEvent
    assert plan.event.noise_multiplier == pytest.approx(sigma, rel=1e-12)
    s1, off = bounds.l2 * sigma, np.triu_indices(3, 1)
    information = np.array([look.information for look in looks])
    assert np.array_equal(information, information.transpose(0, 2, 1))
    gain = 0.8 / 0.3  # slope over limit; the mean square is .5
    s2 = s1 * gain**2 / 0.5 / bounds.information
    inside, square = (
        np.array([of(look) for look in looks])
        for of in (lambda look: look.slope, lambda look: (look.size / 0.3) ** 2)
    )
    blocks = [
        (np.array([look.score for look in looks]), s1 * gain / 0.5, "score_noise"),
        (np.diagonal(information, axis1=1, axis2=2), s2, "matrix_noise"),
        (information[:, off[0], off[1]] * math.sqrt(2.0), s2, "matrix_noise"),
        (n * (square - 0.5), s1 / bounds.squares, None),
        (n * (inside - 0.8), s1 / INSIDE, None),
    ]
    for values, noise, own in blocks:
        assert own is None or getattr(looks[0], own) == pytest.approx(noise, rel=1e-3)
        total, count = float(np.sum((values / noise) ** 2)), values.size
        low, high = stats.chi2.ppf([1e-8, 1.0 - 1e-8], count)
        assert low < total < high
        assert not low < total * 1.15**2 < high and not low < total / 1.15**2 < high
    one = np.column_stack([np.reshape(block[0], (2000, -1))[:, 0] for block in blocks])
    assert np.abs(np.corrcoef(one.T) - np.eye(5)).max() < 6.0 / math.sqrt(2000)


N = 3000
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (N, 3))
X[RNG.random((N, 3)) < 0.2] = 0.0
Y = 3.0 + X @ [2.0, -1.0, 0.0] + RNG.normal(0.0, 0.4, N)
IDS = RNG.integers(0, 800, N)
WEIGHTS = PublicWeights([2.0, -1.0, 0.0], 3.0, classes=None)
KNOWN = {"data_norm": 1.0, "target_bounds": (0.0, 6.0), "error_sd": 0.4}
LOOK = PrivateInference(**KNOWN)
EXACT = KNOWN | {"epsilon": 1e6, "delta": 0.5, "prior_sd": 1e3}


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("constant", [0.0, 0.5])
@pytest.mark.parametrize("by_unit", [False, True])
def test_sums_are_those_of_the_formulas(adjacency, constant, by_unit, monkeypatch):
    monkeypatch.setattr("skdp.plans.moment_regression._BLOCK_ENTRIES", 333)
    plan, bounds = plan_of(adjacency), ERROR_BOUNDS[adjacency]
    table, y = 3.0 * X[:500], Y[:500] - 3.0
    theta = np.array([1.0, -2.0, 0.5, 0.2])[: 3 + (constant > 0.0)]
    codes = np.unique(IDS[:500], return_inverse=True)[1] if by_unit else None
    shares = None if codes is None else (1.0 / np.bincount(codes))[codes]
    n_units = None if codes is None else codes.max() + 1
    found = vector(plan, table, y, theta, constant, shares=shares, n_units=n_units, data_norm=0.7)
    score, moments, counts = np.zeros(theta.size), np.zeros((theta.size,) * 2), np.zeros(2)
    for k, x in enumerate(table):
        weight = min(1.0, 0.7**2 / max(x @ x, 1e-300))  # of rows beyond the bound
        row = np.append(x / 0.7, constant)[: theta.size] / math.hypot(1.0, constant)
        s = np.clip((y[k] - row @ theta) / 0.3, -1.0, 1.0)
        share = 1.0 if shares is None else shares[k]
        score += weight * share * s * row
        moments += weight * share * np.outer(row, row)
        counts += share * (1.0 - s**2), share * (abs(s) < 1.0)
    np.testing.assert_allclose(found[: theta.size], score, atol=1e-9)
    packed = found[theta.size : -2] / bounds.information
    np.testing.assert_allclose(unpack_matrix(packed, theta.size), moments, atol=1e-9)
    np.testing.assert_allclose(found[-2:] / (bounds.squares, INSIDE), counts, atol=1e-9)
    csr = Rows.from_matrix(sparse.csr_matrix(table), y, 0.7, constant, "real", shares, n_units)
    np.testing.assert_allclose(plan.sum(csr, theta), found, atol=1e-9)


def least_squares(table, y):
    """Return coefficients with the intercept last, and their standard errors, as textbooks do."""
    rows = np.column_stack([table, np.ones(len(table))])
    inverse = np.linalg.inv(rows.T @ rows)
    beta = inverse @ rows.T @ y
    variance = np.sum((y - rows @ beta) ** 2) / (len(y) - rows.shape[1])
    return beta, np.sqrt(variance * np.diag(inverse))


def test_without_noise_clips_and_prior_intervals_are_the_textbook_s():
    """With 40 records, so that degrees of freedom show."""
    table, y = X[:40], Y[:40]
    beta, errors = least_squares(table, y)
    best = PublicWeights(beta[:-1], beta[-1], classes=None)
    look = PrivateInference(**EXACT | {"error_sd": 4.0})
    for model in (best, WEIGHTS, LinearRegression().fit(table, y)):
        found = look.evaluate(model, table, y).table()
        assert list(found["name"]) == ["x0", "x1", "x2", "(intercept)"]
        np.testing.assert_allclose(found["coefficient"], beta, atol=0.5 * errors.min())
        if model is not WEIGHTS:
            np.testing.assert_allclose(found["high"] - found["low"], 3.92 * errors, rtol=0.01)


def test_without_noise_estimates_are_those_of_the_huber_loss():
    """One step from weights that are off; the width is that of the clipped residuals."""
    limit = 0.6
    rows = np.column_stack([X, np.ones(N)])
    best = optimize.root(
        lambda beta: rows.T @ np.clip(Y - rows @ beta, -limit, limit), np.append(WEIGHTS.coef_, 3.0)
    ).x
    near = PublicWeights(best[:-1] + 0.01, best[-1] - 0.01, classes=None)
    result = PrivateInference(**EXACT).evaluate(near, X, Y)
    table = result.table()
    psi = np.clip(Y - rows @ best, -limit, limit)
    variance = np.mean(psi**2) / np.mean(np.abs(psi) < limit) ** 2
    errors = np.sqrt(variance * np.diag(np.linalg.inv(rows.T @ rows)))
    np.testing.assert_allclose(table["coefficient"], best, atol=0.4 * errors.min())
    np.testing.assert_allclose(table["high"] - table["low"], 3.92 * errors, rtol=0.01)
    assert 3.0 * result.look.size == pytest.approx(np.sqrt(np.mean(psi**2)), rel=0.01)
    assert 0.0 < result.change_of_margins < 0.1
    assert table["p_value"][0] < 1e-9 and 1e-4 < table["p_value"][2] <= 1.0
    assert (table["prior_share"] < 1e-3).all() and result.advice == []


def covered(tables, adjacency, seed, scale=1.0, law=None):
    """Return how many intervals of slopes contain them, and their width over the one without noise.

    The declared size of errors is `scale` times theirs.
    """
    rng = np.random.default_rng(seed)
    hits, widths, beta = 0, [], np.array([0.3, -0.2, 0.0])
    for _ in range(tables):
        table = rng.uniform(-1.0, 1.0, (4000, 3))
        error = rng.normal(size=4000) if law is None else law(rng)
        y = 2.0 + table @ beta + 0.2 * error
        start = PublicWeights(beta + rng.normal(0.0, 0.02, 3), 2.01, classes=None)
        look = PrivateInference(
            *(2.0, 1e-6), adjacency=adjacency, data_norm=math.sqrt(3.0), target_bounds=(0.0, 4.0),
            error_sd=0.2 * scale,
        )  # fmt: skip
        found = look.evaluate(start, table, y).table()
        hits += int(np.sum((found["low"][:3] <= beta) & (beta <= found["high"][:3])))
        widths.append((found["high"] - found["low"])[:3] / (3.92 * least_squares(table, y)[1][:3]))
    return hits, float(np.mean(widths))


@pytest.mark.parametrize(("adjacency", "width"), [("add-remove", 1.12), ("replace-one", 1.3)])
def test_intervals_cover(adjacency, width):
    """False alarms below 1e-7, by the binomial law of 75 slopes."""
    hits, found = covered(25, adjacency, 5)
    assert hits >= stats.binom.ppf(1e-7, 75, 0.95)
    assert 1.0 < found < width


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    ("scale", "law"),
    [
        (1.0, None),
        (4.0, None),
        (0.25, None),
        (1.0, lambda rng: rng.standard_t(2, 4000)),
        (1.0, lambda rng: rng.exponential(size=4000) - 1.0),
    ],
    ids=["normal", "too wide", "too narrow", "heavy", "skewed"],
)
def test_intervals_cover_whatever_is_declared(adjacency, scale, law):
    """False alarms below 1e-7: of 900 slopes, by the binomial law of coverage .95 or more."""
    hits, _ = covered(300, adjacency, 6, scale, law)
    assert stats.binom.ppf(1e-7, 900, 0.95) <= hits <= stats.binom.ppf(1.0 - 1e-7, 900, 0.975)


REGRESSORS = [
    skdp.PrivateRidge,
    skdp.PrivateLinearRegression,
    skdp.OperaHuberRegressor,
    skdp.GrpuaHuberRegressor,
    skdp.ObjectivePerturbationHuberRegressor,
    skdp.DPSGDRegressor,
]


def exact(model, *table, look=LOOK, **given):
    with record_releases() as trace:
        clone(look).evaluate(model, *table, **given)
    (release,) = trace.releases
    return release.value


@pytest.mark.parametrize("kind", REGRESSORS, ids=lambda kind: kind.__name__)
def test_linear_regressors(kind):
    model = kind(epsilon=8.0, data_norm=1.0, target_bounds=(0.0, 6.0))
    if kind is skdp.DPSGDRegressor:
        model.set_params(max_iter=200)
    model.fit(X, Y)
    look = PrivateInference(epsilon=8.0, error_sd=0.4)
    table = look.evaluate(model, X, Y).table()
    assert table["low"][0] < 2.2 and 1.8 < table["high"][0] and table["p_value"][0] < 1e-3
    published = PublicWeights(model.coef_, float(model.intercept_), classes=None)
    np.testing.assert_allclose(exact(model, X, Y), exact(published, X, Y), rtol=1e-12)
    released = getattr(model, "residual_std_", getattr(model, "scale_", None))
    if released is None:
        with pytest.raises(ValueError, match="declare error_sd"):
            PrivateInference().evaluate(model, X, Y)
    else:
        found = PrivateInference().evaluate(model, X, Y)
        assert found.part.limit == pytest.approx(1.5 * released / 3.0)


def test_without_an_intercept_targets_are_about_that_of_the_model():
    for kind in (skdp.PrivateRidge, skdp.PrivateLinearRegression):
        known = {"epsilon": 8.0, "data_norm": 1.0, "target_bounds": (-3.0, 3.0)}
        model = kind(fit_intercept=False, **known).fit(X, Y - 3.0)
        table = PrivateInference(8.0, error_sd=0.4).evaluate(model, X, Y - 3.0).table()
        assert list(table["name"]) == ["x0", "x1", "x2"]
        assert table["low"][0] < 2.2 and 1.8 < table["high"][0] and table["low"][0] > 1.0


def schema_of(**ward):
    return TableSchema(
        [
            NumericColumn("age", 0, 100, unit="years"),
            CategoricalColumn("ward", ["A", "B", "C"], **ward),
        ],
        label=NumericLabel("stay", 0, 6, unit="days", source="tariff"),
        unit=PrivacyUnit("patient", column="id"),
    )


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    age, ward = rng.uniform(0, 100, 10_000), rng.integers(0, 3, 10_000)
    stay = 2.0 + 0.02 * age + np.array([0.0, 0.5, -0.5])[ward] + rng.normal(0, 0.4, 10_000)
    table = {"age": age, "ward": np.array(["A", "B", "C"])[ward], "stay": stay}
    return pd.DataFrame(table | {"id": np.arange(10_000)})


def rows_of_schema(frame):
    return schema_of().split(frame, groups=True)[0]


RIDGE = skdp.PrivateRidge(epsilon=3.0)


@pytest.mark.parametrize("regressor", [RIDGE, skdp.PrivateLinearRegression(epsilon=3.0)])
@pytest.mark.parametrize(
    "ward", [{}, {"encoding": "one-hot"}, {"drop": "A"}], ids=["centred", "one-hot", "drop"]
)
def test_a_schema_gives_units_and_reference_levels(frame, ward, regressor):
    """One-hot columns add up to a constant, and still have narrow intervals."""
    model = schema_of(**ward).pipeline(clone(regressor)).fit(frame)
    result = PrivateInference(epsilon=3.0, error_sd=0.4).evaluate(model, frame)
    table = result.to_frame().set_index("name")
    assert list(table.index) == ["age", "ward=A", "ward=B", "ward=C", "(intercept)"]
    truth = {"age": 0.02, "ward=B": 0.5, "ward=C": -0.5, "(intercept)": 3.0}
    for name, value in truth.items():
        low, high = table.loc[name, ["low", "high"]]
        assert low - 0.02 < value < high + 0.02 and high - low < 0.1
        assert table["p_value"][name] < 0.01
    assert table["is_reference"]["ward=A"] and math.isnan(table["p_value"]["ward=A"])
    other = result.table(reference={"ward": "B", "age": 0})
    moved = dict(zip(other["name"], other["coefficient"], strict=True))
    assert moved["ward=C"] == pytest.approx(
        table["coefficient"]["ward=C"] - table["coefficient"]["ward=B"], abs=1e-6
    )
    assert moved["(intercept)"] == pytest.approx(2.5, abs=0.1)
    words = repr(result)
    assert "stay (days)" in words and "against A" in words and "reference" in words
    assert json.loads(result.to_json())["coefficients"]["name"][0] == "age"
    assert abs(result.model_.predict(rows_of_schema(frame)).mean() - frame["stay"].mean()) < 0.05
    assert result.privacy_spent_.unit == "group"
    with pytest.raises(KeyError, match="names no column"):
        result.table(reference={"sex": 1})


def test_curves_are_reported_at_values_and_as_lines(frame):
    model = schema_of().pipeline(clone(RIDGE), encoding="auto").fit(frame)
    look = PrivateInference(epsilon=3.0, error_sd=0.4)
    found = look.evaluate(model, frame)
    table = found.to_frame().set_index("name")
    assert abs(table["coefficient"]["age=56.25"] - 0.02 * 56.25) < 0.3
    rows, stay, _ = schema_of().with_encoding("auto").split(frame, groups=True)
    line = model[-1].variant(lines=["age"])
    found = look.evaluate(line, model[:-1].transform(rows), stay)
    assert found.posterior.theta.size == 4
    assert abs(found.table()["coefficient"][0] - 0.02) < 0.005


def test_a_variant_keeps_its_columns(frame):
    model = schema_of().pipeline(clone(RIDGE)).fit(frame)
    small = model[-1].variant(features=["age"])
    rows, stay, _ = schema_of().split(frame, groups=True)
    found = PrivateInference(epsilon=3.0).evaluate(small, model[:-1].transform(rows), stay)
    table = found.table()
    assert found.posterior.theta.size == 2
    left_out = np.isnan(table["coefficient"])
    assert list(table["name"][left_out]) == ["ward=A", "ward=B", "ward=C"]
    assert "Left out" in repr(table)
    assert abs(table["coefficient"][0] - 0.02) < 0.01
    for change in ({"ward=B": 1}, {"age": 10, "ward=B": 1}, {"ward": ("A", "B")}):
        with pytest.raises(ValueError, match="left out of the model"):
            found.contrast(change)
    assert np.isfinite(found.contrast({"age": (50, 80)})["low"]).all()


def unexplained(result):
    """Return names of rows with a missing number that no word, reference or reason explains."""
    found = result.table()
    numbers = ("coefficient", "std_error", "low", "high", "p_value", "prior_share")
    missing = np.isnan(np.array([found[name] for name in numbers], dtype=float))
    told = found.is_left_out | found.is_reference
    noted = np.array([bool(note) and f"{note}: " in found.reason for note in found["note"]])
    wrong = missing[:4].any(axis=0) & ~found.is_left_out
    wrong |= missing[5] & ~told | missing[4] & ~(told | noted)
    return found["name"][wrong].tolist()


@pytest.mark.parametrize(
    ("regressor", "ward"),
    [
        (RIDGE, {}),
        (RIDGE, {"drop": "A"}),
        (RIDGE, {"encoding": "one-hot", "missing": "indicator"}),
        (skdp.PrivateRidge(epsilon=3.0, alpha=0.5), {}),
        (skdp.PrivateLinearRegression(epsilon=3.0), {"encoding": "one-hot"}),
        *((kind(epsilon=3.0), {}) for kind in REGRESSORS[2:]),
    ],
)
def test_missing_numbers_have_a_reason(frame, regressor, ward):
    """A level that no row has, flags of rare and of no missing cells, penalties."""
    rows = (
        frame[:3000]
        .drop(columns="id")
        .assign(lab=np.where(frame["age"][:3000] < 3, np.nan, 1.0), sex=1)
    )
    columns = [
        NumericColumn("age", 0, 100),
        CategoricalColumn("ward", ["A", "B", "C", "never"], **ward),
        NumericColumn("lab", 0, 2, missing="indicator"),
        BooleanColumn("sex", missing="indicator"),
    ]
    model = TableSchema(columns, label=NumericLabel("stay", 0, 6)).pipeline(clone(regressor))
    result = PrivateInference(3.0, error_sd=0.4).evaluate(model.fit(rows), rows)
    assert unexplained(result) == [] and len(result.table()["name"]) >= 11


def test_no_number_is_missing_without_a_reason():
    """Few records, many columns: everything is finite, or the prior is said to decide."""
    rng = np.random.default_rng(1)
    table, y = rng.uniform(-0.3, 0.3, (60, 8)), rng.normal(3.0, 0.4, 60)
    start = PublicWeights(np.zeros(8), 3.0, classes=None)
    result = PrivateInference(0.3, **KNOWN).evaluate(start, table, y)
    found = result.table()
    for name in ("coefficient", "low", "high", "prior_share"):
        assert np.isfinite(found[name]).all()
    missing = np.isnan(found["p_value"])
    assert unexplained(result) == [] and missing[:8].all() and (found["low"] < found["high"]).all()
    assert "mostly prior: " in found.reason and "error_sd" in found.reason
    json.loads(result.to_json())


def test_large_changes_are_reported_and_a_second_look_mends_them():
    start = PublicWeights([1.0, 0.0, 0.0], 2.7, classes=None)
    look = PrivateInference(100.0, **KNOWN)
    found = look.evaluate(start, X, Y)
    assert 0.7 < found.change_of_margins < 1.8
    assert any("may not cover" in text for text in found.advice)
    assert np.isnan(found.table()["p_value"]).all()
    assert found._largest_change == pytest.approx((2.0 / math.sqrt(N)) ** (1.0 / 3.0))
    again = look.evaluate(look.evaluate(found.model_, X, Y).model_, X, Y)
    assert again.change_of_margins < 0.1 and again.advice == []
    table = again.table()
    assert abs(table["coefficient"][0] - 2.0) < 0.2 and table["p_value"][0] < 1e-6


class Rates(LinearRegression):
    """A model with other predictions than those of its coefficients."""

    def predict(self, rows):
        return np.exp(super().predict(rows))


COUNTS = skdp.DPSGDRegressor(loss="poisson", target_bounds=(0.0, 6.0), data_norm=1.0, max_iter=9)
LOGARITHMS = TransformedTargetRegressor(LinearRegression(), func=np.log1p, inverse_func=np.expm1)


@pytest.mark.parametrize(
    ("model", "terms", "words"),
    [
        (COUNTS.fit(X, Y), {}, "not coef_ times"),
        (PoissonRegressor().fit(X, np.abs(Y)), {}, "not coef_ times"),
        (Rates().fit(X, Y), {}, "not coef_ times"),
        (LOGARITHMS.fit(X, np.abs(Y)), {}, "no coef_"),
        (LinearRegression().fit(X, np.column_stack([Y, Y])), {}, "2 targets"),
        (WEIGHTS, {"target_bounds": None}, "target_bounds must be"),
        (WEIGHTS, {"target_bounds": (3.0, 1.0)}, "low < high"),
        (WEIGHTS, {"error_sd": None}, "declare error_sd"),
        (WEIGHTS, {"error_sd": 0.0}, "error_sd must be"),
        (WEIGHTS, {"error_sd": 1e-300}, "comparable to the range"),
        (WEIGHTS, {"data_norm": None}, "declare data_norm"),
        (WEIGHTS, {"covariance": "sandwich", "adjacency": "add-remove"}, "For a regressor"),
        (PublicWeights([1e120, 2.0, 0.0], classes=None), {}, "weights of .* must be finite"),
        (PublicWeights([1.0, 2.0], classes=None), {}, "X must have the 2 columns"),
    ],
)
def test_what_is_wrong_is_refused_before_the_charge(model, terms, words):
    look = PrivateInference(accountant=Untouchable(), **(KNOWN | terms))
    with pytest.raises((ValueError, TypeError), match=words):
        look.evaluate(model, X, Y)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, "three"])
def test_wrong_targets_are_refused_before_the_charge(wrong):
    y = Y.astype(object)
    y[5] = wrong
    look = PrivateInference(accountant=Untouchable(), **KNOWN)
    with pytest.raises(ValueError, match="y") as raised:
        look.evaluate(WEIGHTS, X, y)
    assert "three" not in str(raised.value)


def test_huge_targets_and_rows_are_clipped_and_tell_nothing():
    y, table = Y.copy(), X.copy()
    y[5], table[6] = 1.7e308, 1e300
    tight = PrivateInference(**KNOWN | {"target_bounds": (0.0, 1e-5), "error_sd": 1e-7})
    for look in (LOOK, tight):
        value = exact(WEIGHTS, table, y, look=look)
        assert np.isfinite(value).all()


def test_charge_statement_and_pickle():
    budget = BudgetAccountant(2.5, 1e-5)
    look = PrivateInference(epsilon=1.0, accountant=budget, **KNOWN)
    plan = look.privacy_plan(N)
    result = look.evaluate(WEIGHTS, X, Y)
    assert [entry["label"] for entry in budget.entries()] == ["PrivateInference.evaluate"]
    assert result.privacy_spent_.event == plan.event
    assert tuple(result.privacy_spent_) == tuple(plan) == (1.0, 1e-6)
    statement = " ".join(str(privacy_statement(result)).split())
    for text in (
        "data_norm=1",
        "clipped at the public 0.2 half",
        "L2 sensitivity 2.0039",
        "inference.md",
    ):
        assert text in statement
    again = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(again.table()["low"], result.table()["low"])
    assert "<table>" in result._repr_html_()


def test_units_are_means_of_their_rows():
    value = exact(WEIGHTS, X, Y, groups=IDS)
    shares = (1.0 / np.bincount(IDS))[IDS]
    inside = np.abs(Y - X @ WEIGHTS.coef_[0] - 3.0) < 0.6
    assert value[-1] / INSIDE == pytest.approx(shares @ inside, rel=1e-9)
    result = clone(LOOK).evaluate(WEIGHTS, X, Y, groups=IDS)
    count = np.unique(IDS).size
    assert result.look.slope == pytest.approx(shares @ inside / count, abs=0.3)
    assert result.privacy_spent_.unit == "group"


@pytest.mark.parametrize("groups", [None, IDS], ids=["rows", "units"])
def test_every_container_has_the_sums_of_an_array(groups, tmp_path, monkeypatch):
    monkeypatch.setattr("skdp.tables.row_sources.BLOCK_BYTES", 8 * 3 * 500)
    monkeypatch.setattr("skdp.tables.row_sources.FEWEST_ROWS", 1)
    monkeypatch.setattr("skdp.tables.row_sources.WHOLE_BYTES", 0)
    run = partial(exact, WEIGHTS, groups=groups)
    np.save(tmp_path / "table.npy", X)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    tables = [X.tolist(), pd.DataFrame(X), sparse.csr_matrix(X), sparse.csc_matrix(X), mapped]
    with suppress(ImportError):
        import dask.array as da

        tables.append(da.from_array(X, chunks=(701, 2)))
    for table in tables:
        np.testing.assert_allclose(run(table, Y), run(X, Y), rtol=1e-9, atol=1e-9)


def test_steps_before_the_regressor():
    scaler = BoundedScaler(-0.5, 0.5).fit(X)
    linear = LinearRegression().fit(scaler.transform(X), Y)
    look = PrivateInference(**KNOWN | {"data_norm": 2.0})
    piped, plain = make_pipeline(scaler, linear), look
    np.testing.assert_allclose(
        exact(piped, X, Y, look=look), exact(linear, scaler.transform(X), Y, look=plain), rtol=1e-12
    )
    table = look.set_params(epsilon=8.0).evaluate(piped, X, Y).table()
    assert abs(table["coefficient"][0] - 2.0) < 0.3  # per unit of the column


def test_a_seed_is_tied_to_the_limit():
    def noise(model=WEIGHTS, **terms):
        look = PrivateInference(random_state=3, **(KNOWN | terms))
        with record_releases() as trace:
            look.evaluate(model, X, Y)
        (release,) = trace.releases
        return (release.output - release.value) / release.sigma

    np.testing.assert_allclose(noise(), noise(), atol=1e-9)
    for terms in ({"error_sd": 0.41}, {"target_bounds": (0.0, 6.1)}):
        assert np.abs(noise() - noise(**terms)).min() > 1e-6
    models = [PublicWeights([2.0, -1.0, 0.0], 3.0, classes=None) for _ in range(2)]
    models[0].scale_, models[1].scale_ = 0.4, 0.5  # as released with the same coefficients
    first, second = (noise(model, error_sd=None) for model in models)
    assert np.abs(first - second).min() > 1e-6


class AsEstimator(PrivateInference):
    """The look as a fit, for checks of estimators."""

    def fit(self, X, y, groups=None):
        model = PublicWeights(np.linspace(-2.0, 3.0, X.shape[1]), classes=None)
        model.fit_intercept = False  # a row of zeros is as none
        self.result_ = self.evaluate(model, X, y, groups=groups)
        self.posterior_ = self.result_.table()
        self.privacy_spent_ = self.result_.privacy_spent_
        return self

    _method = ".fit"


def test_it_follows_the_rules_of_private_estimators():
    results = check_private_estimator(AsEstimator(**KNOWN))
    assert {result["status"] for result in results} <= {"passed", "skipped"}


@pytest.mark.parametrize("hostile", [np.zeros(3), np.array([1e300, -1e9, 1e-300]), -X[5]])
@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("groups", [None, IDS], ids=["rows", "units"])
def test_nothing_that_can_be_reached_tells_neighbours_apart(hostile, adjacency, groups):
    other, targets = X.copy(), Y.copy()
    other[7], targets[7] = hostile, -1e12
    beside = () if groups is None else (groups,)
    fitted = fit_both(
        AsEstimator(adjacency=adjacency, **KNOWN), (X, Y, *beside), (other, targets, *beside)
    )
    assert differences(*fitted) == []
