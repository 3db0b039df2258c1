"""Renyi divergences of single releases, and their conversion to (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from skdp.accounting import ComposedEvent, Event, RepeatedEvent
from skdp.accounting.analysis import Divergence, analysis_of
from skdp.accounting.events import leaf_counts
from skdp.accounting.numerics.arithmetic import golden_section, read_decimal, round_up
from skdp.accounting.numerics.renyi_divergences import conversion as log_conversion
from skdp.accounting.numerics.renyi_divergences import pure_at_order, sum_up
from skdp.base.parameters import Adjacency
from skdp.budget.currencies.gaussian import approximate_gaussian

_ITERATIONS = 60
_SCAN = 160
_REACH = 12.0  # of the scan on either side of the guess, in logarithms
_MARGIN = 1e-12
_LARGEST = 600.0  # logarithm of the largest order


def conversion(order: float, delta: float) -> float:
    """Return the term to add to a divergence of some order to bound epsilon at delta."""
    scale = order - 1.0
    return sum_up(log_conversion(scale), -math.log(delta)) / scale


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon that rho-zero-concentrated differential privacy implies at delta."""
    if not math.isfinite(rho):
        return math.inf

    def bound(x: float) -> float:
        order = 1.0 + math.exp(x)
        return order * rho * (1.0 + _MARGIN) + conversion(order, delta)

    guess = 0.5 * math.log(max(-math.log(delta), 1.0) / rho)
    return max(0.0, bound(_minimiser(bound, guess)))


def best_order(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the best order for Gaussian releases, and the divergence it allows."""

    def negative(x: float) -> float:
        order = 1.0 + math.exp(x)
        return -allow_divergence(epsilon, delta, order) / order

    guess = math.log(max(-math.log(delta), 1.0)) - math.log(epsilon)
    order = 1.0 + math.exp(_minimiser(negative, guess))
    return order, max(0.0, allow_divergence(epsilon, delta, order))


def allow_divergence(epsilon: float, delta: float, order: float) -> float:
    """Return the divergence of an order that implies (epsilon, delta), rounded down."""
    value = epsilon - conversion(order, delta)
    return value - _MARGIN * (epsilon + abs(value))


def _minimiser(function: Callable[[float], float], guess: float) -> float:
    """Return a point near a guess where a function is small; any point gives a valid bound."""
    points = [guess + _REACH * (k / _SCAN - 0.5) for k in range(_SCAN + 1)]
    middle = min((min(max(point, -30.0), _LARGEST) for point in points), key=function)
    width = _REACH / _SCAN
    best, value = golden_section(function, middle - width, middle + width, _ITERATIONS)
    return middle if function(middle) < value else best


_ROUND_UP = Fraction(10**11 + 1, 10**11)
_LARGEST_ORDER = 1e5  # beyond which sampled moments are out of reach


Rule = Callable[[Event, Adjacency], Divergence | None]


def total(
    event: Event, adjacency: Adjacency, slack: float, rule: Rule, per_square: Fraction
) -> Divergence:
    """Add up the divergences of leaves; those without a rule are converted together."""
    (divergence, failure), others = _sum(event, adjacency, rule)
    if others:
        square, more = approximate_gaussian(ComposedEvent(tuple(others)), adjacency, slack)
        divergence += square * per_square
        failure += more
    return Divergence(round_up(divergence), failure)


def _sum(event: Event, adjacency: Adjacency, rule: Rule) -> tuple[Divergence, list[Event]]:
    """Add up the divergences of leaves; also return the leaves without a rule."""
    divergence, failure = Fraction(0), Fraction(0)
    others: list[Event] = []
    for leaf, count in leaf_counts(event).items():
        one = _of_leaf(leaf, adjacency, rule)
        if one is None:
            others.append(RepeatedEvent(leaf, count))
        else:
            divergence += count * one.divergence
            failure += count * one.slack
    return Divergence(divergence, failure), others


def _of_leaf(leaf: Event, adjacency: Adjacency, rule: Rule) -> Divergence | None:
    """Apply a rule to a leaf; for alternative events, take the largest."""
    events = analysis_of(leaf, adjacency).parts()
    if events == (leaf,):
        return rule(leaf, adjacency)
    sums = [_sum(event, adjacency, rule) for event in events]
    if any(others for _, others in sums):
        return None
    return Divergence(max(one.divergence for one, _ in sums), max(one.slack for one, _ in sums))


def zero_concentrated(leaf: Event, adjacency: Adjacency) -> Divergence | None:
    """Return the rho of a leaf."""
    return analysis_of(leaf, adjacency).rho(read_decimal)


def at_order(order: float) -> Rule:
    """Return the rule of one order."""

    def rule(leaf: Event, adjacency: Adjacency) -> Divergence | None:
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
                # A moment of 0 may be underflow: events that reveal nothing state so elsewhere.
                value = max(value, math.ulp(0.0))
                found.append(Divergence(round_up(Fraction(value) * _ROUND_UP), Fraction(0)))
        return min(found, default=None)

    return rule
