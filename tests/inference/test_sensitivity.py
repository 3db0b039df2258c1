"""The joint sensitivity of score and information: identities, certified bounds, and a search.

Part I of docs/proofs/inference.md.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import expit

GOLDEN = (1.0 + math.sqrt(5.0)) / 2.0
RHO = math.sqrt(7.0) - 2.0
T = {"add-remove": GOLDEN**2.5, "replace-one": math.sqrt((37.0 + 14.0 * math.sqrt(7.0)) / 3.0)}
BOUND = {"add-remove": 1.0, "replace-one": 2.0}
# Bounds of sums of a dozen products of doubles, rounded up.
UP = 1.0 + 1e-12


def test_the_identities_of_both_proofs():
    """Cubics are squares times positive factors, to 40 digits in each coefficient."""
    with mpmath.workdps(50):
        golden = (1 + mpmath.sqrt(5)) / 2
        root, t2 = 1 / golden, golden**5
        # t^2 (s - root)^2 (s + b) = t^2 s^3 - t^2 s^2 + s + first, from s^3 to 1
        for r, b, square, first in (
            (root, golden**-3, t2, 1),
            (mpmath.sqrt(7) - 2, 2 * mpmath.sqrt(7) - 5, (37 + 14 * mpmath.sqrt(7)) / 3, 3),
        ):
            expanded = [
                square,
                square * (b - 2 * r),
                square * (r**2 - 2 * r * b),
                square * b * r**2,
            ]
            for found, wanted in zip(expanded, [square, -square, 1, first], strict=True):
                assert abs(found - wanted) < mpmath.mpf(10) ** -40
            assert b > 0


def h(low, high, t=T["replace-one"]):
    """Bound h on intervals [low, high]."""
    product = np.maximum(low * (1.0 - low), high * (1.0 - high))
    product = np.where((low < 0.5) & (high > 0.5), 0.25, product)
    return (high**2 + (t * UP * product) ** 2) * UP


@pytest.mark.parametrize(
    ("end", "start", "extra", "bound"),
    [
        (1.0, 0.0, lambda s: 0.0 * s, 1.82),
        (1.0, 0.9, lambda s: 0.0 * s, 1.02),
        (0.9, 0.0, lambda s: s**2 / (1.0 - s) ** 2 / (4.0 * T["replace-one"] ** 2), 1.84),
        (0.8, 0.0, lambda s: s, 2.39),
    ],
)
def test_the_bounds_on_functions_of_one_number(start, end, extra, bound):
    """Each is certified on intervals that cover the range; the extra terms rise."""
    cells = np.linspace(start, end, 20_001)
    low, high = cells[:-1], cells[1:]
    assert (h(low, high) + extra(high) * UP).max() < bound


def bound_pairs(box):
    """Bound the squared distance of two rows on boxes of residuals: opposite rows, and others."""
    a, b, c, d = box  # a <= s <= b, c <= s' <= d
    t2 = T["replace-one"] ** 2 * UP
    total_low, total_high = a + c, b + d
    apart = np.maximum(np.abs(b - c), np.abs(d - a))
    apart = np.minimum(apart, np.minimum(total_high, 2.0 - total_low))
    off = np.maximum(np.abs(1.0 - total_low), np.abs(1.0 - total_high))
    opposite = (total_high**2 + t2 * apart**2 * off**2) * UP
    with np.errstate(divide="ignore"):
        vertex_low = UP**-2 / (2.0 * t2 * (1.0 - a) * (1.0 - c))
        vertex_high = UP / (2.0 * T["replace-one"] ** 2 * (1.0 - b) * (1.0 - d))
    other = h(a, b) + h(c, d) + b * d * np.minimum(1.0, vertex_high) * UP
    return np.where(vertex_high > 1.0, opposite, 0.0), np.where(vertex_low < 1.0, other, 0.0)


@pytest.mark.parametrize(("case", "bound"), [(0, 4.002), (1, 3.75)])
def test_no_pair_of_rows_is_further_apart_by_branch_and_bound(case, bound):
    """Boxes are halved until the bound is certified on each; 4 itself is by the identity."""
    boxes = np.array([[0.0], [1.0], [0.0], [1.0]])
    for _ in range(60):
        boxes = boxes[:, bound_pairs(boxes)[case] > bound]
        if not boxes.size:
            break
        assert boxes.shape[1] < 2_000_000
        a, b, c, d = boxes
        first = b - a >= d - c
        s, r = 0.5 * (a + b), 0.5 * (c + d)
        lower = np.where(first, [a, s, c, d], [a, b, c, r])
        upper = np.where(first, [s, b, c, d], [a, b, r, d])
        boxes = np.hstack([lower, upper])
    assert not boxes.size


def test_the_bound_by_boxes_bounds_the_distance():
    """On boxes around random pairs, the better of both bounds is not below the distance."""
    rng = np.random.default_rng(0)
    s, r = rng.uniform(size=(2, 20_000))
    pair = np.maximum(*bound_pairs(np.array([s, s, r, r])))
    for cosine in np.linspace(-1.0, 1.0, 41):
        x = np.stack([np.ones_like(s), np.zeros_like(s)], axis=1)
        y = np.stack([np.full_like(s, cosine), np.full_like(s, math.sqrt(1 - cosine**2))], axis=1)
        gap = blocks(s, x, T["replace-one"]) - blocks(r, y, T["replace-one"])
        assert np.all((gap**2).sum(axis=1) <= pair * (1.0 + 1e-9))


def blocks(residual, x, t, third=0.0):
    """Return what rows contribute, as vectors in which all noise has one deviation."""
    outer = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    curvature = np.abs(residual) * (1.0 - np.abs(residual))
    score = residual[:, None] * x
    parts = [score, t * curvature[:, None] * outer]
    if third:
        parts.append(third * (score[:, :, None] * score[:, None, :]).reshape(len(x), -1))
    return np.hstack(parts)


def at_weights(theta, X, y, t):
    """Return what rows contribute to a look at weights."""
    return blocks(y - expit(X @ theta), X, t)


def distance(relation, first, second):
    return np.linalg.norm(first if relation == "add-remove" else first - second, axis=1)


def hostile_pair(angle, lean):
    """Return two nearly opposite rows of norm 1 and weights at which residuals are 1 and rho."""
    X = np.array([[math.cos(angle), math.sin(angle)], [-math.cos(angle), math.sin(angle)]])
    margins = np.array([-40.0, lean])  # labels 1 and 1: residuals 1 and expit(-lean)
    return np.linalg.solve(X, margins), X, np.ones(2)


@pytest.mark.parametrize("relation", T)
def test_the_sensitivity_is_attained_by_rows_and_weights(relation):
    if relation == "add-remove":
        theta, X, y = np.array([math.log(1.0 / 0.618034 - 1.0)]), np.ones((1, 1)), np.ones(1)
        found = np.linalg.norm(at_weights(theta, X, y, T[relation]))
    else:
        theta, X, y = hostile_pair(1e-5, math.log(1.0 / RHO - 1.0))
        first, second = at_weights(theta, X, y, T[relation])
        found = np.linalg.norm(first - second)
    assert 0.9999 * BOUND[relation] < found <= BOUND[relation] * UP


@pytest.mark.parametrize("relation", T)
def test_a_larger_factor_of_the_information_exceeds_it(relation):
    """The searches would find a sensitivity that is too small by a thousandth."""
    t = 1.02 * T[relation]
    if relation == "add-remove":
        found = np.linalg.norm(blocks(np.array([0.618034]), np.ones((1, 1)), t))
    else:
        first, second = at_weights(*hostile_pair(1e-5, math.log(1.0 / RHO - 1.0)), t)
        found = np.linalg.norm(first - second)
    assert found > 1.001 * BOUND[relation]


def random_rows(rng, n, d):
    """Draw rows of norm up to 1: long, short, along axes, and pairs that are nearly parallel."""
    X = rng.normal(size=(n, d)) * rng.choice([0.0, 0.01, 1.0], size=(n, d))
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    X = np.divide(X, norms, out=np.zeros_like(X), where=norms > 0.0)
    return X * rng.choice([1.0, 1.0, 0.9, 0.3], size=(n, 1))


@pytest.mark.parametrize("relation", T)
def test_no_rows_weights_or_units_exceed_it(relation):
    """Residuals of any size, rows shorter than 1, hostile weights, units of several rows."""
    rng = np.random.default_rng(1)
    for d in (1, 2, 3, 6):
        X, Z = random_rows(rng, 20_000, d), random_rows(rng, 20_000, d)
        Z[::2] = -X[::2] + 0.05 * Z[::2]
        Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1, keepdims=True))
        for residuals in (
            rng.uniform(-1, 1, (2, 20_000)),
            rng.choice([1, RHO, 0.618], (2, 20_000)),
        ):
            first = blocks(residuals[0], X, T[relation])
            second = blocks(residuals[1], Z, T[relation])
            assert distance(relation, first, second).max() <= BOUND[relation] * UP
            share = rng.dirichlet(np.full(4, 0.3), 5000).ravel()[:, None]
            first, second = ((share * part).reshape(5000, 4, -1).sum(1) for part in (first, second))
            assert distance(relation, first, second).max() <= BOUND[relation] * UP
        theta = rng.normal(size=d) * 10.0 ** rng.uniform(-1, 4)
        y = rng.integers(2, size=(2, 20_000))
        found = distance(
            relation,
            at_weights(theta, X, y[0], T[relation]),
            at_weights(theta, Z, y[1], T[relation]),
        )
        assert found.max() <= BOUND[relation] * UP


@pytest.mark.parametrize(("relation", "third"), [("add-remove", 1.0), ("replace-one", 2.0**0.5)])
def test_the_third_block_adds_at_most_a_ninth(relation, third):
    rng = np.random.default_rng(2)
    bound = BOUND[relation] * math.sqrt(10.0 / 9.0)
    for d in (1, 2, 4):
        X, Z = random_rows(rng, 20_000, d), random_rows(rng, 20_000, d)
        residuals = rng.choice([1.0, RHO, 0.618, -0.9, 0.2], (2, 20_000))
        first = blocks(residuals[0], X, T[relation], third / 3.0)
        second = blocks(residuals[1], Z, T[relation], third / 3.0)
        assert distance(relation, first, second).max() <= bound * UP
        share = rng.dirichlet(np.full(4, 0.3), 5000)  # products of scores of units, not of rows
        units = [
            unit_blocks(
                r.reshape(5000, 4), part.reshape(5000, 4, d), share, T[relation], third / 3.0
            )
            for r, part in zip(residuals, (X, Z), strict=True)
        ]
        assert distance(relation, *units).max() <= bound * UP
    one = blocks(np.ones(1), np.ones((1, 1)), T[relation], third / 3.0)
    if relation == "add-remove":
        assert np.linalg.norm(one) == pytest.approx(bound, rel=1e-12)


def unit_blocks(residuals, X, share, t, third):
    score = (share * residuals)[:, :, None] * X
    score = score.sum(axis=1)
    curvature = share * np.abs(residuals) * (1.0 - np.abs(residuals))
    information = np.einsum("uj,uja,ujb->uab", curvature, X, X)
    products = score[:, :, None] * score[:, None, :]
    n = len(share)
    return np.hstack([score, t * information.reshape(n, -1), third * products.reshape(n, -1)])


def test_parts_of_longer_rows_stay_within_the_bounds():
    """Lemma 1b: scores times a part in [0, 1], with the information as it is."""
    s, part = np.meshgrid(np.linspace(0.0, 1.0, 1001), np.linspace(0.0, 1.0, 101))
    for t in (3.33019, 4.96):
        information = t * s * (1.0 - s)
        squares = (s * part) ** 2 + information**2
        bound = 1.0 if t < 4.0 else 1.82 + 1e-3
        assert squares.max() <= bound
    assert 1.82 + (4.96 / 4.0) ** 2 < 4.0 and 2.0 * (4.96 / 4.0) ** 2 < 4.0
