"""From any event to approximate Gaussian differential privacy: a square of mu and some slack."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from scipy.special import erfinv, ndtri_exp

from skdp.accounting import Event
from skdp.accounting.analysis import analysis_of, exact_sum, square_of
from skdp.accounting.events import leaf_counts
from skdp.accounting.numerics.floats import float_up, read_decimal, round_up
from skdp.accounting.pld.directions import mu_of_all_rows
from skdp.budget.currencies._cover import cover, require_mu
from skdp.budget.currencies._runs import replace_runs
from skdp.budget.currencies.profiles import is_supported, profile_of
from skdp.choices import Adjacency
from skdp.exceptions import UnsupportedEventError

_SMALL = 1e-6  # epsilons below which the series of mu is used, exactly
_LARGE = 1.0  # epsilons above which the normal quantile is taken of a logarithm
_ROUND_UP = 1.0 + 1e-11
_HALF_PI = Fraction(15707963267949, 10**13)  # rounded up
_WORTHWHILE = 1.01  # of mu: how much more is paid to need no slack
_NEGLIGIBLE = 6  # mu squared over the square of a total variation, where both are small
_SMALLEST_FAILURE = 1e-250  # less is not worth a curve of its own


class ApproximateGaussian(NamedTuple):
    """A guarantee that is Gaussian but for a small probability."""

    # ``delta(epsilon) <= slack + (1 - slack) delta_G(epsilon; mu)`` for all ``epsilon >= 0``, in
    # both orders of two neighbours.

    mu_squared: Fraction
    slack: Fraction


def approximate_gaussian(event: Event, adjacency: Adjacency, slack: float) -> ApproximateGaussian:
    """Convert any event with a bounded profile to approximate Gaussian differential privacy."""
    square = square_of(event, adjacency)
    if square is not None:
        return ApproximateGaussian(round_up(square), Fraction(0))
    return _convert(event, adjacency, slack)


@lru_cache(maxsize=4096)
def _convert(event: Event, adjacency: Adjacency, slack: float) -> ApproximateGaussian:
    """Convert an event that is not Gaussian."""
    event, failing = replace_runs(event, adjacency, slack)
    counts = leaf_counts(event)
    known = exact_sum(event, adjacency, read_decimal)
    found = []
    if known is not None and known[1] < 1 and math.isfinite(float_up(known[0])):
        found.append(ApproximateGaussian(mu_squared_of_pure(known[0]), known[1]))
        alone = sum(counts.values()) == 1
        if known[0] == 0 or (alone and analysis_of(next(iter(counts)), adjacency).only_stated):
            return found[0]  # no slack makes it less
    # Scales that no common grid holds make the composition fail; its parts have prices.
    with suppress(ArithmeticError):
        if is_supported(event, adjacency):
            found += _covers(event, adjacency, slack)
        elif len(counts) == 1:
            profile_of(event, adjacency)  # refuses, and names the remedy
    if not found and len(counts) > 1:
        share, zero = slack / len(counts), Fraction(0)
        parts = [(approximate_gaussian(leaf, adjacency, share), n) for leaf, n in counts.items()]
        sums = (sum((n * part[unit] for part, n in parts), zero) for unit in range(2))
        found.append(ApproximateGaussian(*sums))
    with suppress(ArithmeticError):  # of the infinite, too
        largest = mu_of_all_rows(counts, adjacency)
        square = round_up(Fraction(largest) ** 2 * Fraction(_ROUND_UP))
        found.append(ApproximateGaussian(square, Fraction(0)))
    if not found:
        raise UnsupportedEventError(
            f"No Gaussian curve covers {event!r} up to a probability of {slack:.3g}: its noise is "
            "too small, or it fails more often. Add noise, or use a budget with a larger delta."
        )
    square, used = _cheapest(found, slack)
    return ApproximateGaussian(square, used + Fraction(failing))


def _covers(event: Event, adjacency: Adjacency, slack: float) -> list[ApproximateGaussian]:
    """Cover the profile up to what it fails by, and up to some slack more."""
    profile = profile_of(event, adjacency)
    failure = profile.delta(math.inf)
    found: list[ApproximateGaussian] = []
    for share in (0.0, slack):
        together = math.nextafter(failure + share, 1.0) if failure > _SMALLEST_FAILURE else share
        if together >= 1.0:
            continue
        if profile.delta(0.0) <= together:
            together = profile.delta(0.0)
        mu = cover(profile, together)
        if mu == together == 0.0:
            together = math.ulp(0.0)  # not nothing: it was too small for a float
        if math.isfinite(mu):
            found.append(ApproximateGaussian(round_up(Fraction(mu) ** 2), Fraction(together)))
            if mu <= _WORTHWHILE * require_mu(0.0, profile.delta(0.0), slack):
                break  # slack would not help
    return found


def _cheapest(found: list[ApproximateGaussian], slack: float) -> ApproximateGaussian:
    """Return the least mu, or one hardly larger, or as small as the slack, that needs less."""
    bearable = max(
        min(found).mu_squared * Fraction(_WORTHWHILE**2), Fraction(slack) ** 2 * _NEGLIGIBLE
    )
    within = [one for one in found if one.mu_squared <= bearable]
    return min(within, key=lambda one: (one.slack, one.mu_squared))


def mu_squared_of_pure(epsilon: Fraction) -> Fraction:
    """Return the square of the mu with which every epsilon-DP release is mu-GDP."""
    number = float_up(epsilon)
    if number <= _SMALL:
        # mu = 2 sqrt(2) erfinv(tanh(eps / 2)) with tanh(x) <= x and, for small t,
        # erfinv(t) <= (sqrt(pi) / 2) t (1 + t^2).
        return round_up(_HALF_PI * epsilon**2 * Fraction(1 + 1e-11))
    if number <= _LARGE:
        mu = 2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(0.5 * number)))
    else:
        mu = -2.0 * float(ndtri_exp(-number - math.log1p(math.exp(-number))))
    return round_up(Fraction(mu * _ROUND_UP) ** 2)
