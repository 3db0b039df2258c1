"""Closed-form Renyi divergences against reference values, quadrature and their own symmetries."""

import json
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import Event, RenyiEvent, renyi_divergence
from skdp.accounting.distributions import (
    Beta,
    DiagonalNormal,
    Distribution,
    Exponential,
    Gamma,
    Laplace,
    MultivariateNormal,
    Normal,
    Uniform,
)

INF = math.inf
# Order 0.5, 2 and 3.5, to 15 digits.
REFERENCE = [
    (Normal(0.3, 1), Normal(0, 1.4), 0.0707725538575135, 0.16797458291055, 0.212690573008519),
    (Normal(0.5, 1.5), Normal(0, 1.6), 0.0280686921913506, 0.0944941494348241, 0.14282984475845),
    (Laplace(0.7, 1), Laplace(0, 1), 0.0997908150993238, 0.353961821821825, 0.488663067125797),
    (Laplace(0.7, 1), Laplace(0, 1.3), 0.0955498263107272, 0.321642043772844, 0.448380835689869),
    (Laplace(0, 1.1), Laplace(2, 2), 0.400367604436951, 0.98598926158169, 1.1638076510603),
    (Exponential(2), Exponential(1), 0.117783035656383, 0.287682072451781, 0.368775094073414),
    (Exponential(1), Exponential(1.2), 0.00829880281469509, 0.0408219945202551, 0.0949373154300235),
    (Gamma(3, 1), Gamma(2, 1.2), 0.0533676682538674, 0.15350550238704, 0.211087920461398),
    (Gamma(2.5, 0.8), Gamma(2.5, 1), 0.0310562999963929, 0.102054986300638, 0.15239377017736),
    (Beta(2, 3), Beta(2.2, 2.5), 0.0283216675428028, 0.105292150890008, 0.174877961928328),
    (Beta(5, 5), Beta(4, 6), 0.112257795783675, 0.44628710262842, 0.808319329928514),
    (Uniform(0.2, 0.9), Uniform(0, 1), 0.356674943938732, 0.356674943938732, 0.356674943938732),
    (Uniform(0, 1), Uniform(0.2, 1.2), 0.44628710262842, INF, INF),
]


@pytest.mark.parametrize(("left", "right", "half", "two", "more"), REFERENCE)
def test_reference_values(left, right, half, two, more):
    for order, wanted in ((0.5, half), (2.0, two), (3.5, more)):
        assert renyi_divergence(left, right, order) == pytest.approx(wanted, rel=1e-12)


def density(distribution):
    d = distribution
    if isinstance(d, Normal):
        return lambda x: mp.npdf(x, d.mean, d.scale), [-mp.inf, 0, mp.inf]
    if isinstance(d, Laplace):
        return lambda x: mp.exp(-abs(x - d.mean) / d.scale) / (2 * d.scale), None
    if isinstance(d, Exponential):
        return lambda x: d.rate * mp.exp(-d.rate * x), [0, 1, mp.inf]
    if isinstance(d, Gamma):
        k, t = mp.mpf(d.shape), mp.mpf(d.scale)
        return lambda x: x ** (k - 1) * mp.exp(-x / t) / (mp.gamma(k) * t**k), [0, 1, 5, mp.inf]
    a, b = mp.mpf(d.a), mp.mpf(d.b)
    return lambda x: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b), [0, 0.5, 1]


QUADRATURE = [
    *[(left, right) for left, right, *_ in REFERENCE if not isinstance(left, Uniform)],
    (Normal(1, 1.0), Normal(0, 1.0)),
    (Laplace(0.01, 1), Laplace(0, 1)),
    (Laplace(3, 0.5), Laplace(0, 0.5)),
    (Gamma(0.7, 1.1), Gamma(0.6, 1.3)),
    (Beta(1.5, 1.6), Beta(1.52, 1.6)),
]


@pytest.mark.daily(15)
@pytest.mark.parametrize(("left", "right"), QUADRATURE)
@pytest.mark.parametrize(
    "order",
    [0.500001, 1.001, 2.7, *(pytest.param(order, marks=pytest.mark.slow) for order in (0.3, 1.5))],
)
def test_quadrature(left, right, order):
    value = renyi_divergence(left, right, order)
    if math.isinf(value):
        # Exponential tails or powers at zero do not integrate there.
        assert isinstance(left, Exponential) and order * left.rate <= (order - 1) * right.rate
        return
    with mp.workdps(25):
        (p, points), (q, _) = density(left), density(right)
        if points is None:
            points = [-mp.inf, *sorted((left.mean, right.mean)), mp.inf]
        a = mp.mpf(order)
        integral = mp.quad(lambda x: p(x) ** a * q(x) ** (1 - a), points)
        exact = mp.log(integral) / (a - 1)
        # The log moment is good to 1e-14, so the divergence less so as the order nears 1.
        assert value == pytest.approx(float(exact), rel=1e-9, abs=3e-14 / abs(order - 1.0))
        assert value >= float(exact) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("left", "right", "limit"),
    [
        (Normal(0, 2), Normal(0, 1), 4 / 3),
        (Laplace(0, 2), Laplace(1, 1), 2.0),
        (Exponential(1), Exponential(1.5), 3.0),
        (Gamma(2, 2), Gamma(2, 1), 2.0),
        (Gamma(1, 1), Gamma(3, 1), 1.5),
        (Beta(1, 1), Beta(2, 1), 2.0),
    ],
)
def test_infinite_from_some_order_on(left, right, limit):
    assert math.isfinite(renyi_divergence(left, right, limit * (1 - 1e-6)))
    for order in (limit, limit * (1 + 1e-9), 2 * limit, 1e6):
        assert renyi_divergence(left, right, order) == INF
    assert math.isfinite(renyi_divergence(right, left, 2 * limit))


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12])
def test_nearly_equal_distributions_lose_few_digits(gap):
    pairs = [
        (Normal(0, 1 + gap), Normal(0, 1)),
        (Exponential(1 + gap), Exponential(1)),
        (Laplace(gap, 1), Laplace(0, 1)),
    ]
    with mp.workdps(60):
        for left, right in pairs:
            if isinstance(left, Normal):
                r = mp.mpf(left.scale) ** 2 - 1
                exact = -mp.log(1 + r) / 2 - mp.log(1 - r) / 2
            elif isinstance(left, Exponential):
                b = mp.mpf(left.rate)
                exact = mp.log(b**2 / (2 * b - 1))
            else:
                t = mp.mpf(gap)
                exact = mp.log(mp.mpf(2) / 3 * mp.exp(t) + mp.exp(-2 * t) / 3)
            value = renyi_divergence(left, right, 2.0)
            assert value >= exact
            assert value <= float(exact) * (1 + 1e-9) + 1e-13 * gap


@pytest.mark.parametrize("order", [0.4, 1.01, 2.0, 3.3])
def test_multivariate_normal_agrees_with_its_coordinates_and_with_determinants(order):
    rng = np.random.default_rng(7)
    means, scales = rng.normal(size=(2, 3)), rng.uniform(0.8, 1.2, size=(2, 3))
    diagonal = [DiagonalNormal(m, s) for m, s in zip(means, scales, strict=True)]
    single = sum(
        renyi_divergence(Normal(m, s), Normal(n, t), order)
        for m, s, n, t in zip(means[0], scales[0], means[1], scales[1], strict=True)
    )
    assert renyi_divergence(*diagonal, order) == pytest.approx(single, rel=1e-12)
    full = [MultivariateNormal(m, np.diag(s**2)) for m, s in zip(means, scales, strict=True)]
    assert renyi_divergence(*full, order) == pytest.approx(single, rel=1e-11)

    root = rng.normal(size=(3, 3))
    first = np.eye(3) + 0.1 * (root + root.T)
    second = np.eye(3) + 0.05 * (root @ root.T)
    mixed = (1 - order) * first + order * second
    assert np.linalg.eigvalsh(mixed)[0] > 0
    shift = means[0] - means[1]
    logdet = [np.linalg.slogdet(m)[1] for m in (mixed, first, second)]
    wanted = 0.5 * order * shift @ np.linalg.solve(mixed, shift) - (
        logdet[0] - (1 - order) * logdet[1] - order * logdet[2]
    ) / (2 * (order - 1))
    value = renyi_divergence(
        MultivariateNormal(means[0], first), MultivariateNormal(means[1], second), order
    )
    assert value == pytest.approx(wanted, rel=1e-10)


def test_multivariate_normal_can_be_infinite():
    wide, narrow = (MultivariateNormal((0, 0), np.diag([s, 1.0])) for s in (4.0, 1.0))
    assert renyi_divergence(wide, narrow, 2.0) == INF
    assert math.isfinite(renyi_divergence(narrow, wide, 2.0))


@pytest.mark.parametrize(("left", "right"), [pair[:2] for pair in REFERENCE])
def test_laws(left, right):
    assert renyi_divergence(left, left, 3.0) == 0.0
    values = [renyi_divergence(left, right, order) for order in (0.2, 0.5, 0.9, 1.1, 2, 3, 5)]
    assert values == sorted(values) and values[0] >= 0.0
    # Skew symmetry: (1 - a) D_a(P || Q) = a D_(1-a)(Q || P).
    assert 0.7 * renyi_divergence(left, right, 0.3) == pytest.approx(
        0.3 * renyi_divergence(right, left, 0.7), rel=1e-10
    )


@pytest.mark.parametrize("order", [0.0, -1.0, 1.0, INF, math.nan])
def test_order_is_validated(order):
    with pytest.raises(ValueError, match="order must be"):
        renyi_divergence(Normal(0, 1), Normal(1, 1), order)


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (Normal, (0.0, 0.0), "scale must be a finite number > 0"),
        (Normal, (math.nan, 1.0), "mean must be a finite number"),
        (Laplace, (0.0, -1.0), "scale"),
        (Exponential, (0.0,), "rate"),
        (Gamma, (1.0, INF), "scale"),
        (Beta, (0.0, 1.0), "a must be"),
        (Uniform, (1.0, 1.0), "high must exceed low"),
        (DiagonalNormal, ((0.0, 1.0), (1.0,)), "scales must hold 2"),
        (DiagonalNormal, ((), ()), "at least one"),
        (MultivariateNormal, ((0.0,), ((1.0, 0.0), (0.0, 1.0))), "shape"),
        (MultivariateNormal, ((0.0, 0.0), ((1.0, 2.0), (2.0, 1.0))), "positive definite"),
        (MultivariateNormal, ((0.0, 0.0), ((1.0, 0.5), (0.0, 1.0))), "symmetric"),
    ],
)
def test_parameters_are_validated(cls, arguments, message):
    with pytest.raises(ValueError, match=message):
        cls(*arguments)


def test_wrong_types_are_named():
    with pytest.raises(TypeError, match="Normal: mean must be a real number"):
        Normal("0", 1.0)
    with pytest.raises(TypeError, match="means must be a sequence"):
        DiagonalNormal("12", (1.0,))


def test_event_takes_the_larger_direction_and_round_trips():
    pairs = [
        (Normal(0, 1), Normal(1, 2)),
        (DiagonalNormal((0, 1), (1, 2)), DiagonalNormal((1, 1), (1, 2))),
        (MultivariateNormal((0, 1), ((1, 0.5), (0.5, 2))), MultivariateNormal((1, 1), np.eye(2))),
        (Uniform(0, 1), Uniform(0, 2)),
    ]
    for left, right in pairs:
        event = RenyiEvent(left, right)
        both = [renyi_divergence(*pair, 1.2) for pair in ((left, right), (right, left))]
        assert event.log_moment(1.2) == pytest.approx(0.2 * max(both), rel=1e-12)
        assert RenyiEvent(right, left).log_moment(1.2) == event.log_moment(1.2)
        again = Event.from_dict(json.loads(json.dumps(event.to_dict())))
        assert again == event and hash(again) == hash(event)
        assert Distribution.from_dict(left.to_dict()) == left


def test_event_needs_one_family_and_dimension():
    with pytest.raises(TypeError, match="same class"):
        RenyiEvent(Normal(0, 1), Laplace(0, 1))
    with pytest.raises(TypeError, match="same class"):
        RenyiEvent(Distribution(), Distribution())
    with pytest.raises(ValueError, match="same dimension"):
        RenyiEvent(DiagonalNormal((0,), (1,)), DiagonalNormal((0, 0), (1, 1)))
    with pytest.raises(ValueError, match="unknown distribution type 'Cauchy'"):
        Distribution.from_dict({"type": "Cauchy"})


FAMILIES = [
    lambda x, y: Normal(x, y),
    lambda x, y: Laplace(x, y),
    lambda x, y: Exponential(y),
    lambda x, y: Gamma(abs(x) + 1e-3, y),
    lambda x, y: Beta(abs(x) + 1e-3, y),
    lambda x, y: Uniform(x, x + y),
    lambda x, y: DiagonalNormal((x, 0.0), (y, 1.0)),
    lambda x, y: MultivariateNormal((x, 0.0), ((y, 0.0), (0.0, 1.0))),
]
SIZES = st.floats(-6, 6).map(lambda x: 10.0**x)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    family=st.sampled_from(FAMILIES),
    parameters=st.tuples(SIZES, SIZES, SIZES, SIZES),
    order=st.floats(-8, 8).map(lambda x: 1.0 + 10.0**x),
)
def test_no_surprises(family, parameters, order):
    """Neither exceptions nor NaN nor negative values, over twelve decades of each parameter."""
    a, b, c, d = parameters
    for value in (
        renyi_divergence(family(a, b), family(c, d), order),
        renyi_divergence(family(a, b), family(c, d), 1.0 / order),
        RenyiEvent(family(a, b), family(-c, d)).log_moment(order),
    ):
        assert value >= 0.0
