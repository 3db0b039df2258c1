"""Divergences of single leaves: at all orders at once, or at one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from skdp.accounting import ComposedEvent, Event, RepeatedEvent
from skdp.accounting.analysis import analysis_of
from skdp.accounting.events import leaf_counts
from skdp.accounting.releases.discrete import DiscreteGaussian
from skdp.accounting.releases.laplace import LaplaceNoise
from skdp.accounting.releases.samples import GeneralSample
from skdp.budget.currencies.exact import float_up, read_decimal, round_up
from skdp.budget.currencies.gaussian import approximate_gaussian

_SMALL = 1e-4
_ROUND_UP = Fraction(10**11 + 1, 10**11)
_LARGEST_ORDER = 1e5  # beyond which sampled moments are out of reach


class Divergence(NamedTuple):
    """A bound on Renyi divergences that holds but for a small probability."""

    divergence: Fraction
    slack: Fraction


Rule = Callable[[Event, str], Divergence | None]


def total(
    event: Event, adjacency: str, slack: float, rule: Rule, per_square: Fraction
) -> Divergence:
    """Add up the divergences of leaves; those without a rule are converted together."""
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
    return Divergence(round_up(divergence), failure)


def _of_leaf(leaf: Event, adjacency: str, rule: Rule) -> Divergence | None:
    """Apply a rule; of events of which one happens, the largest counts."""
    events = analysis_of(leaf, adjacency).parts()
    if events == (leaf,):
        return rule(leaf, adjacency)
    divergence, failure = Fraction(0), Fraction(0)
    for event in events:
        sums = Divergence(Fraction(0), Fraction(0))
        for part, count in leaf_counts(event).items():
            one = _of_leaf(part, adjacency, rule)
            if one is None:
                return None
            sums = Divergence(sums[0] + count * one[0], sums[1] + count * one[1])
        divergence, failure = max(divergence, sums[0]), max(failure, sums[1])
    return Divergence(divergence, failure)


def zero_concentrated(leaf: Event, adjacency: str) -> Divergence | None:
    """Return the rho with which all divergences of order a are at most ``a rho``."""
    card = analysis_of(leaf, adjacency)
    square = card.mu_squared()
    if square is not None:
        return Divergence(square / 2, Fraction(0))
    if isinstance(card, DiscreteGaussian):
        return Divergence(1 / (2 * Fraction(card.event.noise_multiplier) ** 2), Fraction(0))
    known = card.stated(read_decimal)
    mixture = card.laplace() if isinstance(card, LaplaceNoise) else None
    sampled = isinstance(card, GeneralSample) or (mixture and mixture.kind != "laplace")
    if known is None or sampled:
        return None  # sampling makes it far cheaper than its largest loss
    if mixture is not None:
        return Divergence(_laplace_rho(known[0]), Fraction(0))
    return Divergence(pure_rho(known[0]), known[1])


def at_order(order: float) -> Rule:
    """Return the rule of one order."""

    def rule(leaf: Event, adjacency: str) -> Divergence | None:
        card = analysis_of(leaf, adjacency)
        square = card.mu_squared()
        if square is not None:
            return Divergence(square * Fraction(order) / 2, Fraction(0))
        known, moments = card.stated(read_decimal), card.log_moments()
        found = []
        if known is not None:
            found.append(Divergence(pure_at_order(known.epsilon, order), known.delta))
        in_reach = moments is not None and (moments.closed_form or order <= _LARGEST_ORDER)
        if moments is not None and in_reach and moments.log_kept == 0.0 and not card.only_stated:
            value = moments.of(order) / (order - 1.0)
            if math.isfinite(value):
                # What reveals nothing states so by itself; any other moment may only have vanished.
                value = max(value, math.ulp(0.0))
                found.append(Divergence(round_up(Fraction(value) * _ROUND_UP), Fraction(0)))
        return min(found, default=None)

    return rule


def pure_rho(epsilon: Fraction) -> Fraction:
    """Return ``eps tanh(eps / 2)``, the rho of every epsilon-DP release, rounded up."""
    number = float_up(epsilon)
    if number <= _SMALL:
        return round_up(epsilon**2 / 2)
    return round_up(epsilon * Fraction(math.tanh(0.5 * number)) * _ROUND_UP)


def _laplace_rho(shift: Fraction) -> Fraction:
    """Return ``t + e^-t - 1`` for Laplace noise shifted by t scales, rounded up."""
    number = float_up(shift)
    if number <= _SMALL:
        return round_up(shift**2 / 2)
    return round_up(Fraction(_exponential_rest(number)) * _ROUND_UP)


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
    return round_up(bound)
