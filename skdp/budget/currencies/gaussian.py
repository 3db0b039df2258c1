"""From any event to approximate Gaussian differential privacy: a square of mu and some slack."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from scipy.special import erfinv, ndtri_exp

from skdp.accounting import ApproxDPEvent, Event, GaussianEvent, OneOfEvent, PureDPEvent
from skdp.accounting.analysis import analysis_of, gaussian_mu
from skdp.accounting.events import leaf_counts
from skdp.accounting.pld.directions import mu_of_all_rows
from skdp.budget.currencies._cover import cover, required
from skdp.budget.currencies._runs import without_runs
from skdp.budget.currencies._stated import stated
from skdp.budget.currencies.exact import float_up, rounded_up
from skdp.budget.currencies.profiles import is_supported, profile_of
from skdp.exceptions import UnsupportedEventError

_SMALL = 1e-6  # epsilons below which the series of mu is used, exactly
_LARGE = 1.0  # epsilons above which the normal quantile is taken of a logarithm
_ROUND_UP = 1.0 + 1e-11
_HALF_PI = Fraction(15707963267949, 10**13)  # rounded up
_WORTHWHILE = 1.01  # of mu: how much more is paid to need no slack
_NEGLIGIBLE = 6  # mu squared over the square of a total variation, where both are small
_SMALLEST_FAILURE = 1e-250  # less is not worth a curve of its own


class ApproximateGaussian(NamedTuple):
    """A guarantee that is Gaussian but for a small probability.

    ``delta(epsilon) <= slack + (1 - slack) delta_G(epsilon; mu)`` for all ``epsilon >= 0``, in both
    orders of two neighbours.

    Parameters
    ----------
    mu_squared : Fraction
        Square of the Gaussian parameter; squares add up over releases.
    slack : Fraction
        The probability; these add up as well.
    """

    mu_squared: Fraction
    slack: Fraction


def approximate_gaussian(event: Event, adjacency: str, slack: float) -> ApproximateGaussian:
    """Convert any event with a bounded profile to approximate Gaussian differential privacy.

    Parameters
    ----------
    event : Event
        Any event; compositions count as one plan fixed in advance.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.
    slack : float
        A probability that the conversion may use, where it needs any, chosen without looking at
        the data or at the result of the event.

    Returns
    -------
    ApproximateGaussian
        A proved guarantee, rounded up. Gaussian releases are converted exactly and use no slack;
        a release of which only (epsilon, delta) is known uses delta.

    Raises
    ------
    UnsupportedEventError
        If no bound is proved for the event, or no curve covers it.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent
    >>> from skdp.budget.conversion import approximate_gaussian
    >>> square, slack = approximate_gaussian(PureDPEvent(1.0), "replace-one", 1e-8)
    >>> round(float(square) ** 0.5, 9), float(slack)
    (1.232035385, 0.0)
    """
    square = gaussian_square(event, adjacency)
    if square is not None:
        return ApproximateGaussian(rounded_up(square), Fraction(0))
    return _convert(event, adjacency, slack)


def gaussian_square(event: Event, adjacency: str) -> Fraction | None:
    """Return the exact square of mu of an event that consists of Gaussian releases.

    Parameters
    ----------
    event : Event
        Any event.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    Fraction or None
        The square; None if a Gaussian pair does not dominate all of the event.
    """
    total = Fraction(0)
    for leaf, count in leaf_counts(event).items():
        square = _square_of_leaf(leaf, adjacency)
        if square is None:
            return None
        total += count * square
    return total


def _square_of_leaf(leaf: Event, adjacency: str) -> Fraction | None:
    if isinstance(leaf, GaussianEvent):
        return 1 / Fraction(leaf.noise_multiplier) ** 2
    if isinstance(leaf, OneOfEvent):
        choices = [gaussian_square(event, adjacency) for event in leaf.events]
        known = [choice for choice in choices if choice is not None]
        return max(known) if len(known) == len(choices) else None
    mu = gaussian_mu(leaf, adjacency)
    if mu is None:
        return None
    sampled = analysis_of(leaf, adjacency).mixture()
    if sampled is None or sampled.rate < 1.0:
        return Fraction(mu) ** 2 if math.isfinite(mu) else None
    # All records in every sample; mu was computed in floating point.
    inner = Fraction(leaf.event.noise_multiplier)  # type: ignore[attr-defined]
    return (1 if sampled.kind == "poisson-add-remove" else 4) / inner**2


@lru_cache(maxsize=4096)
def _convert(event: Event, adjacency: str, slack: float) -> ApproximateGaussian:
    """Convert an event that is not Gaussian."""
    event, failing = without_runs(event, adjacency, slack)
    counts = leaf_counts(event)
    known = stated(event, adjacency)
    found = []
    if known is not None and known[1] < 1 and math.isfinite(float_up(known[0])):
        found.append(ApproximateGaussian(mu_squared_of_pure(known[0]), known[1]))
        alone = sum(counts.values()) == 1
        if known[0] == 0 or (alone and isinstance(next(iter(counts)), PureDPEvent | ApproxDPEvent)):
            return found[0]  # no slack makes it less
    # Scales that no common grid holds make the composition fail; its parts have prices.
    with suppress(ArithmeticError):
        if is_supported(event, adjacency):
            found += _covers(event, adjacency, slack)
        elif len(counts) == 1:
            profile_of(event, adjacency)  # refuses, and names the remedy
    if not found and len(counts) > 1:
        parts = [approximate_gaussian(leaf, adjacency, slack / len(counts)) for leaf in counts]
        found.append(_sum(parts, list(counts.values())))
    with suppress(ArithmeticError):  # of the infinite, too
        largest = mu_of_all_rows(counts, adjacency)
        square = rounded_up(Fraction(largest) ** 2 * Fraction(_ROUND_UP))
        found.append(ApproximateGaussian(square, Fraction(0)))
    if not found:
        raise UnsupportedEventError(
            f"No Gaussian curve covers {event!r} up to a probability of {slack:.3g}: its noise is "
            "too small, or it fails more often. Add noise, or use a budget with a larger delta."
        )
    square, used = _cheapest(found, slack)
    return ApproximateGaussian(square, used + Fraction(failing))


def _covers(event: Event, adjacency: str, slack: float) -> list[ApproximateGaussian]:
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
            found.append(ApproximateGaussian(rounded_up(Fraction(mu) ** 2), Fraction(together)))
            if mu <= _WORTHWHILE * required(0.0, profile.delta(0.0), slack):
                break  # slack would not help
    return found


def _cheapest(found: list[ApproximateGaussian], slack: float) -> ApproximateGaussian:
    """Return the least mu, or one hardly larger, or as small as the slack, that needs less."""
    bearable = max(
        min(found).mu_squared * Fraction(_WORTHWHILE**2), Fraction(slack) ** 2 * _NEGLIGIBLE
    )
    within = [one for one in found if one.mu_squared <= bearable]
    return min(within, key=lambda one: (one.slack, one.mu_squared))


def _sum(parts: list[ApproximateGaussian], counts: list[int]) -> ApproximateGaussian:
    return ApproximateGaussian(
        sum((n * part.mu_squared for part, n in zip(parts, counts, strict=True)), Fraction(0)),
        sum((n * part.slack for part, n in zip(parts, counts, strict=True)), Fraction(0)),
    )


def mu_squared_of_pure(epsilon: Fraction) -> Fraction:
    """Return the square of the mu with which every epsilon-DP release is mu-GDP.

    Parameters
    ----------
    epsilon : Fraction
        Privacy parameter in nats, ``>= 0``.

    Returns
    -------
    Fraction
        ``(2 Phi^-1(e^eps / (1 + e^eps)))^2``, rounded up.
    """
    number = float_up(epsilon)
    if number <= _SMALL:
        # mu = 2 sqrt(2) erfinv(tanh(eps / 2)) with tanh(x) <= x and, for small t,
        # erfinv(t) <= (sqrt(pi) / 2) t (1 + t^2).
        return rounded_up(_HALF_PI * epsilon**2 * Fraction(1 + 1e-11))
    if number <= _LARGE:
        mu = 2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(0.5 * number)))
    else:
        mu = -2.0 * float(ndtri_exp(-number - math.log1p(math.exp(-number))))
    return rounded_up(Fraction(mu * _ROUND_UP) ** 2)
