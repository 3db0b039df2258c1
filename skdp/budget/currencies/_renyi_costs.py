"""Divergences of single leaves: at all orders at once, or at one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from skdp.accounting import (
    ComposedEvent,
    DiscreteGaussianEvent,
    Event,
    RDPAccountant,
    RenyiEvent,
    RepeatedEvent,
)
from skdp.accounting.analysis import analysis_of
from skdp.accounting.events import OneOfEvent, leaf_counts
from skdp.accounting.releases.laplace import LaplaceNoise
from skdp.accounting.releases.samples import GeneralSample
from skdp.budget.currencies._stated import stated_of_leaf
from skdp.budget.currencies.exact import float_up, rounded_up
from skdp.budget.currencies.gaussian import approximate_gaussian, gaussian_square

_SMALL = 1e-4
_ROUND_UP = Fraction(10**11 + 1, 10**11)
_LARGEST_ORDER = 1e5  # beyond which sampled moments are out of reach


class Divergence(NamedTuple):
    """A bound on Renyi divergences that holds but for a small probability.

    Parameters
    ----------
    divergence : Fraction
        The bound, in the unit of the filter.
    slack : Fraction
        The probability.
    """

    divergence: Fraction
    slack: Fraction


Rule = Callable[[Event, str], Divergence | None]


def total(
    event: Event, adjacency: str, slack: float, rule: Rule, per_square: Fraction
) -> Divergence:
    """Add up the divergences of leaves; those without a rule are converted together.

    Parameters
    ----------
    event : Event
        Any event.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.
    slack : float
        What the conversion may use.
    rule : callable
        Returns the divergence of a leaf, or None.
    per_square : Fraction
        What a unit of mu squared costs.

    Returns
    -------
    Divergence
        The sum, rounded up.

    Raises
    ------
    UnsupportedEventError
        If some leaf has neither a rule nor a conversion.
    """
    divergence, failure = Fraction(0), Fraction(0)
    others: list[Event] = []
    for leaf, count in leaf_counts(event).items():
        one = _of_leaf(leaf, adjacency, rule)
        if one is None:
            others.append(RepeatedEvent(leaf, count))
        else:
            divergence += count * one.divergence
            failure += count * one.slack
    if others:
        square, more = approximate_gaussian(ComposedEvent(tuple(others)), adjacency, slack)
        divergence += square * per_square
        failure += more
    return Divergence(rounded_up(divergence), failure)


def _of_leaf(leaf: Event, adjacency: str, rule: Rule) -> Divergence | None:
    """Apply a rule; of events of which one happens, the largest counts."""
    if not isinstance(leaf, OneOfEvent):
        return rule(leaf, adjacency)
    divergence, failure = Fraction(0), Fraction(0)
    for event in leaf.events:
        sums = Divergence(Fraction(0), Fraction(0))
        for part, count in leaf_counts(event).items():
            one = _of_leaf(part, adjacency, rule)
            if one is None:
                return None
            sums = Divergence(sums[0] + count * one[0], sums[1] + count * one[1])
        divergence, failure = max(divergence, sums[0]), max(failure, sums[1])
    return Divergence(divergence, failure)


def zero_concentrated(leaf: Event, adjacency: str) -> Divergence | None:
    """Return the rho with which all divergences of order a are at most ``a rho``.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    Divergence or None
        Half of mu squared for Gaussian releases, discrete ones included; what one order has as it
        tends to 1 for Laplace noise and pure differential privacy; None for others.
    """
    square = gaussian_square(leaf, adjacency)
    if square is not None:
        return Divergence(square / 2, Fraction(0))
    if isinstance(leaf, DiscreteGaussianEvent):
        return Divergence(1 / (2 * Fraction(leaf.noise_multiplier) ** 2), Fraction(0))
    known = stated_of_leaf(leaf, adjacency)
    card = analysis_of(leaf, adjacency)
    mixture = card.laplace() if isinstance(card, LaplaceNoise) else None
    sampled = isinstance(card, GeneralSample) or (mixture and mixture.kind != "laplace")
    if known is None or sampled:
        return None  # sampling makes it far cheaper than its largest loss
    if mixture is not None:
        return Divergence(_laplace_rho(known[0]), Fraction(0))
    return Divergence(pure_rho(known[0]), known[1])


def at_order(order: float) -> Rule:
    """Return the rule of one order.

    Parameters
    ----------
    order : float
        The order, above 1.

    Returns
    -------
    callable
        It maps a leaf and an adjacency to a bound on the divergence in both orders of the
        neighbours, or to None.
    """

    def rule(leaf: Event, adjacency: str) -> Divergence | None:
        square = gaussian_square(leaf, adjacency)
        if square is not None:
            return Divergence(square * Fraction(order) / 2, Fraction(0))
        known = stated_of_leaf(leaf, adjacency)
        found = []
        if isinstance(leaf, RenyiEvent):
            found.append((leaf.log_moment(order) / (order - 1.0), Fraction(0)))
        elif known is not None and not isinstance(analysis_of(leaf, adjacency), LaplaceNoise):
            return Divergence(pure_at_order(known[0], order), known[1])
        elif order <= _LARGEST_ORDER and RDPAccountant(adjacency).supports(leaf):
            moment = RDPAccountant(adjacency).compose(leaf).log_moment(order)
            found.append((moment / (order - 1.0), Fraction(0)))
        finite = [
            # What reveals nothing states so by itself; any other moment may only have vanished.
            Divergence(rounded_up(Fraction(max(value, math.ulp(0.0))) * _ROUND_UP), slack)
            for value, slack in found
            if math.isfinite(value)
        ]
        if known is not None:
            finite.append(Divergence(pure_at_order(known[0], order), known[1]))
        return min(finite) if finite else None

    return rule


def pure_rho(epsilon: Fraction) -> Fraction:
    """Return ``eps tanh(eps / 2)``, the rho of every epsilon-DP release, rounded up."""
    number = float_up(epsilon)
    if number <= _SMALL:
        return rounded_up(epsilon**2 / 2)
    return rounded_up(epsilon * Fraction(math.tanh(0.5 * number)) * _ROUND_UP)


def _laplace_rho(shift: Fraction) -> Fraction:
    """Return ``t + e^-t - 1`` for Laplace noise shifted by t scales, rounded up."""
    number = float_up(shift)
    if number <= _SMALL:
        return rounded_up(shift**2 / 2)
    return rounded_up(Fraction(_exponential_rest(number)) * _ROUND_UP)


def _exponential_rest(shift: float) -> float:
    """Return ``e^-t - 1 + t`` without cancellation."""
    if shift > 0.5:
        return shift + math.expm1(-shift)
    term, value, k = 0.5 * shift * shift, 0.0, 2
    while abs(term) > 1e-18 * value:
        value += term
        k += 1
        term *= -shift / k
    return value


def pure_at_order(epsilon: Fraction, order: float) -> Fraction:
    """Return the divergence of randomised response, which no epsilon-DP release exceeds."""
    bound = Fraction(order) * pure_rho(epsilon)
    number = float_up(epsilon)
    if number < math.inf:
        less = math.log1p(math.exp(-(2.0 * order - 1.0) * number)) - math.log1p(math.exp(-number))
        value = number + less / (order - 1.0)
        rounding = 1e-14 * (number + 1.0 / (order - 1.0))
        bound = min(bound, Fraction(max(value + rounding, 0.0)))
    return rounded_up(bound)
