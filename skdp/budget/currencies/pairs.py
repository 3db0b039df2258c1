"""The (epsilon, delta) that a charge stands for, checked against what is known of its event."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.analysis import Guarantee, analysis_of, exact_sum
from skdp.accounting.events import leaf_counts
from skdp.accounting.numerics.floats import read_decimal, round_up
from skdp.budget.currencies.base import Charge
from skdp.budget.currencies.exact import float_down
from skdp.budget.currencies.profiles import is_certified, profile_of
from skdp.choices import Adjacency

_ROUNDING = 1.01  # by how much a stated delta may be short of the proved one


def pair_of(charge: Charge, adjacency: Adjacency) -> Guarantee:
    """Return an (epsilon, delta) that a charge's event is proved to have."""
    event = charge.event
    if charge.epsilon is None and charge.delta is None:
        known = exact_sum(event, adjacency, read_decimal)
        if known is None:
            raise ValueError(
                f"This budget counts pairs (epsilon, delta), and {event!r} has a whole curve of "
                "them. Give the charge a delta, or an epsilon and a delta, to say which."
            )
        return known
    if charge.epsilon is None:
        assert charge.delta is not None
        epsilon = profile_of(event, adjacency, 1e-3).reach(float_down(read_decimal(charge.delta)))
        if math.isinf(epsilon):
            raise ValueError(f"{event!r} has no finite epsilon at delta={charge.delta!r}.")
        return Guarantee(round_up(Fraction(epsilon)), read_decimal(charge.delta))
    epsilon_typed = read_decimal(charge.epsilon)
    if charge.delta is not None and is_certified(event, adjacency, charge.epsilon, charge.delta):
        return Guarantee(epsilon_typed, read_decimal(charge.delta))
    known = exact_sum(event, adjacency, read_decimal)
    if charge.delta is None and known is not None and known[0] <= epsilon_typed:
        return Guarantee(epsilon_typed, known.delta)
    proved = profile_of(event, adjacency, 1e-3).delta(float_down(epsilon_typed))
    if charge.delta is not None and not proved <= _ROUNDING * charge.delta:
        raise ValueError(
            f"{event!r} is stated to be ({charge.epsilon!r}, {charge.delta!r})-DP, but at this "
            f"epsilon only delta={proved:.6g} is proved. State a pair that the event has, or leave "
            "epsilon out to have it derived from delta."
        )
    return Guarantee(epsilon_typed, round_up(Fraction(proved)))


def pairs_of_parts(charge: Charge, adjacency: Adjacency) -> list[tuple[Guarantee, int]]:
    """Return the pairs of a charge's parts, and how often each is there."""
    if charge.epsilon is None and charge.delta is None:
        parts = [
            (analysis_of(leaf, adjacency).stated(read_decimal), count)
            for leaf, count in leaf_counts(charge.event).items()
        ]
        if all(pair is not None for pair, _ in parts):
            return [(pair, count) for pair, count in parts if pair is not None]
    return [(pair_of(charge, adjacency), 1)]
