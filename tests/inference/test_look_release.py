"""The look's release: how far neighbours are apart, the noise of each block, and equal sums."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import optimize, sparse, stats
from scipy.special import expit

from skdp.accounting import GaussianEvent
from skdp.inference._release import BOUNDS, LARGEST_WEIGHT, LookPlan, constant_value, norm_of_rows
from skdp.mechanisms import RandomStream
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.plans.second_moments import unpack_matrix
from skdp.solvers import Rows

KINDS = list(BOUNDS)
# Of the last the bound is proved, but no pair is that far apart.
ATTAINED = [kind for kind in KINDS if kind != ("replace-one", "sandwich")]
# Sizes of the weights, in both directions; the middle ones decide.
SIZES = [0.0, 1e-300, 1e-6, 0.3, 1.0, 3.0, 30.0, 1e6, 1e30, LARGEST_WEIGHT / 10]


def plan_of(adjacency, covariance):
    return LookPlan.build(1.0, 1e-6, adjacency, covariance)


def rows_of(X, signs, constant=0.0, shares=None, n_units=None, data_norm=1.0):
    X = np.ascontiguousarray(X, dtype=float)
    given = X, np.asarray(signs, dtype=np.int8), data_norm, constant, "signs"
    return Rows.from_matrix(*given, shares, n_units)


def vector(plan, X, signs, theta, constant=0.0, **units):
    """Return what the code sums for a table, up to its division by the norm of rows."""
    return plan.sum(rows_of(X, signs, constant, **units), np.asarray(theta, dtype=float))


def distances(plan, rows, theta, constant=0.0):
    """Return the largest distances that one row of a list adds, and that a replacement makes."""
    found = np.array([vector(plan, [x], [s], theta, constant) for x, s in rows])
    gaps = np.linalg.norm(found[:, None] - found[None], axis=2)
    return np.linalg.norm(found, axis=1).max(), gaps.max()


def hostile_rows(rng, width, count=12):
    """Return rows on the sphere, inside it and beyond it, and pairs that lie close together."""
    rows = rng.standard_normal((count, width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[::4] *= rng.uniform(0.0, 1.0, (len(rows[::4]), 1))
    rows[1::4] *= 1e200
    rows[2::4] = rows[2] + 10.0 ** rng.uniform(-9, 0) * rng.standard_normal(rows[2::4].shape)
    return [(row, sign) for row in rows for sign in (-1, 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_pair_of_rows_is_further_apart_than_declared(kind):
    plan, rng = plan_of(*kind), np.random.default_rng(0)
    largest = 0.0
    for trial in range(40):
        width = 1 + trial % 3
        constant = constant_value(width, trial % 2 == 0)
        theta = rng.standard_normal(width + (constant > 0)) * SIZES[trial % len(SIZES)]
        added, replaced = distances(plan, hostile_rows(rng, width), theta, constant)
        largest = max(largest, added if kind[0] == "add-remove" else replaced)
    assert 0.8 * plan.sums.l2 < largest <= plan.sums.l2


def attaining(adjacency):
    """Return two rows and weights that are as far apart as any: close together, at huge weights."""
    least = 0.618034 if adjacency == "add-remove" else math.sqrt(7.0) - 2.0
    size, margins = 1e7, (-30.0, math.log(least / (1.0 - least)))
    rows = [[math.sqrt(1.0 - (m / size) ** 2), m / size] for m in margins]
    return np.array(rows), np.array([1, -1], dtype=np.int8), np.array([0.0, size])


@pytest.mark.parametrize("kind", ATTAINED)
def test_the_declared_distance_is_attained(kind):
    plan = plan_of(*kind)
    X, signs, theta = attaining(kind[0])
    both, first, second = (vector(plan, X[k], signs[k], theta) for k in ([0, 1], [0], [1]))
    gap = np.linalg.norm(first - second) if kind[0] == "replace-one" else np.linalg.norm(first)
    assert 0.999 * plan.sums.l2 < gap <= plan.sums.l2
    if kind == ("add-remove", "model"):  # at both residuals, 1 and 0.618
        assert 0.999 * plan.sums.l2 < np.linalg.norm(second) <= plan.sums.l2
    np.testing.assert_allclose(both, first + second, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_units_are_no_further_apart_than_declared(kind):
    """Means of rows, and sums of up to three, whatever their number."""
    plan, rng = plan_of(*kind), np.random.default_rng(1)
    X, signs, theta = attaining(kind[0])
    attained = [np.tile(X[0], (4, 1)), np.tile(X[1], (7, 1))]

    def unit(rows, own):
        shares = np.full(len(rows), 1.0 / len(rows))
        codes = np.zeros(len(rows), dtype=np.int64)
        table = rows_of(rows, own, shares=shares, n_units=1)
        return plan.sum(table, theta, codes)

    first, second = (unit(rows, np.repeat(signs[k], len(rows))) for k, rows in enumerate(attained))
    gap = np.linalg.norm(first - second) if kind[0] == "replace-one" else np.linalg.norm(first)
    assert gap <= plan.sums.l2 and (gap > 0.999 * plan.sums.l2 or kind not in ATTAINED)
    for _ in range(60):
        pair = []
        for count in rng.integers(1, 7, 2):
            rows = hostile_rows(rng, 2)[:count]
            pair.append(unit(*map(np.array, zip(*rows, strict=True))))
        gap = (
            np.linalg.norm(pair[0] - pair[1])
            if kind[0] == "replace-one"
            else max(map(np.linalg.norm, pair))
        )
        assert gap <= plan.sums.l2


def bound(t, k, adjacency, s, r, cosine, length=1.0):
    """Return the squared distance of residuals s and r, of rows of norm 1 and `length`."""

    def own(residual, norm):
        terms = (residual * norm) ** 2, (t * residual * (1 - residual) * norm**2) ** 2
        return sum(terms) + (k * (residual * norm) ** 2) ** 2

    if adjacency == "add-remove":
        return own(s, 1.0)
    both = s * r * length * cosine, t**2 * s * (1 - s) * r * (1 - r) * (length * cosine) ** 2
    return own(s, 1.0) + own(r, length) - 2.0 * sum(both)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_factors_are_the_largest_that_cost_nothing(adjacency):
    """A search of residuals, angles and lengths; with 1 % more the bound is exceeded."""
    t, _, norm = BOUNDS[adjacency, "model"]
    grid = np.linspace(0.0, 1.0, 61)
    s, r, cosine, length = np.meshgrid(grid, grid, np.linspace(-1, 1, 61), grid[::6])
    for factor, exceeded in ((t, False), (1.01 * t, True)):
        found = bound(factor, 0.0, adjacency, s, r, cosine, length)
        at = np.unravel_index(found.argmax(), found.shape)
        best = optimize.minimize(
            lambda p, factor=factor: -bound(factor, 0.0, adjacency, *p),
            [part[at] for part in (s, r, cosine, length)],
            bounds=[(0, 1), (0, 1), (-1, 1), (0, 1)],
        )
        top = max(float(found.max()), -float(best.fun))
        assert (top > norm**2 * (1.0 + 1e-9)) == exceeded
    assert norm**2 * 0.998 < bound(t, 0.0, adjacency, s, r, cosine, length).max()


@pytest.mark.parametrize("kind", KINDS)
def test_one_release_has_the_noise_of_the_target(kind):
    plan = plan_of(*kind)
    sigma = analytic_gaussian_sigma(1.0, 1e-6)
    assert type(plan.event) is GaussianEvent
    # The event of all looks is one; rounding up of the sensitivity covers the last bit.
    assert plan.event.noise_multiplier == pytest.approx(plan.sums.multiplier, rel=1e-15)
    assert plan.event.noise_multiplier == pytest.approx(sigma, rel=1e-12)
    assert plan.sums.sigma == pytest.approx(sigma * BOUNDS[kind].l2, rel=1e-12)


DRAWS = 4000


@pytest.mark.parametrize("kind", KINDS)
def test_each_block_has_its_noise(kind):
    """False alarms: below 1e-7 each, by the law of a sum of squares; 1 % more or less is seen."""
    plan, theta = plan_of(*kind), np.zeros(3)
    stream = RandomStream.from_seed(1)
    size = 3 + 6 + (6 if kind[1] == "sandwich" else 0)
    looks = [plan.release([np.zeros(size)], [theta], stream)[0] for _ in range(DRAWS)]
    mu = plan.sums.l2 / plan.sums.sigma
    s1 = BOUNDS[kind].l2 / mu
    off = np.triu_indices(3, 1)
    blocks = [(np.array([look.score for look in looks]), s1, "score_noise")]
    matrices = [("information", s1 / BOUNDS[kind].information, "matrix_noise")]
    if kind[1] == "sandwich":
        matrices += [("squares", s1 / BOUNDS[kind].squares, "squares_noise")]
    for name, noise, own in matrices:
        found = np.array([getattr(look, name) for look in looks])
        assert np.array_equal(found, found.transpose(0, 2, 1))
        blocks.append((np.diagonal(found, axis1=1, axis2=2), noise, own))
        blocks.append((found[:, off[0], off[1]] * math.sqrt(2.0), noise, own))
    for values, noise, own in blocks:
        assert getattr(looks[0], own) == pytest.approx(noise, rel=1e-9)
        total, count = float(np.sum((values / noise) ** 2)), values.size
        low, high = stats.chi2.ppf([1e-8, 1.0 - 1e-8], count)
        assert low < total < high
        assert not low < total * 1.1**2 < high and not low < total / 1.1**2 < high
    # Blocks have independent noise.
    one = np.column_stack([block[0][:, 0] for block in blocks])
    correlation = np.corrcoef(one.T) - np.eye(one.shape[1])
    assert np.abs(correlation).max() < 6.0 / math.sqrt(DRAWS)


def table(n=700, width=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, width)) * (rng.random((n, width)) < 0.6)
    return X, np.where(rng.random(n) < expit(X[:, 0]), 1, -1).astype(np.int8)


def by_hand(X, signs, theta, constant, shares=None, codes=None, data_norm=2.0):
    """Return score, information and squares, row by row."""
    scores, information = [], np.zeros((theta.size, theta.size))
    for k, x in enumerate(X):
        row = x / data_norm
        weight = min(1.0, 1.0 / max(row @ row, 1e-300))  # of rows beyond the bound
        row = np.append(row, constant) if constant else row
        row = row / norm_of_rows(constant)
        p, share = expit(row @ theta), weight * (1.0 if shares is None else shares[k])
        scores.append(share * ((signs[k] > 0) - p) * row)
        information += share * p * (1.0 - p) * np.outer(row, row)
    scores = np.array(scores)
    codes = np.arange(len(X)) if codes is None else codes
    of_units = np.array([scores[codes == code].sum(axis=0) for code in np.unique(codes)])
    return scores.sum(axis=0), information, of_units.T @ of_units


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constant", [0.0, 0.5])
@pytest.mark.parametrize("by_unit", [False, True])
def test_sums_are_those_of_the_formulas(kind, constant, by_unit, monkeypatch):
    monkeypatch.setattr("skdp.plans.moment_regression._BLOCK_ENTRIES", 333)
    X, signs = table()
    theta = np.array([1.0, -2.0, 0.5, 3.0, -1.0])[: 4 + (constant > 0.0)]
    codes = np.random.default_rng(3).integers(0, 90, len(X)) if by_unit else None
    codes = None if codes is None else np.unique(codes, return_inverse=True)[1]
    shares = None if codes is None else (1.0 / np.bincount(codes))[codes]
    plan = plan_of(*kind)
    n_units = None if codes is None else codes.max() + 1
    given = partial(
        rows_of, signs=signs, constant=constant, shares=shares, n_units=n_units, data_norm=2.0
    )
    found = plan.sum(given(X), theta, codes)
    score, information, squares = by_hand(X, signs, theta, constant, shares, codes)
    width, factors = theta.size, plan.factors
    size = width * (width + 1) // 2
    np.testing.assert_allclose(found[:width], score, rtol=1e-9, atol=1e-9)
    parts = [(information, factors[0])] + ([(squares, factors[1])] if factors[1] else [])
    for k, (wanted, factor) in enumerate(parts):
        packed = found[width + k * size : width + (k + 1) * size]
        np.testing.assert_allclose(unpack_matrix(packed, width) / factor, wanted, atol=1e-9)
    assert found.size == width + len(parts) * size
    # The order of rows moves sums by less than the margin of sensitivities.
    order = np.random.default_rng(4).permutation(len(X))
    other = partial(given, signs=signs[order], shares=None if shares is None else shares[order])
    moved = plan.sum(other(X[order]), theta, None if codes is None else codes[order])
    assert np.linalg.norm(moved - found) < 1e-12 * plan.sums.l2 * len(X)
    csr = sparse.csr_matrix(X)
    kept = Rows.from_matrix(csr, signs, 2.0, constant, "signs", shares, n_units)
    np.testing.assert_allclose(plan.sum(kept, theta, codes), found, rtol=1e-9, atol=1e-9)


def test_a_table_without_rows_has_sums_of_zero():
    for adjacency, covariance in KINDS:
        plan = plan_of(adjacency, covariance)
        empty = rows_of(np.empty((0, 2)), [], 0.5)
        assert not plan.sum(empty, np.ones(3)).any()
