"""Answers of a release about its privacy cost; accountants query them and need no event types.

Each kind of event has a card: an `Analysis`, with the proved bounds, in `skdp.accounting.releases`.
Cards are found by exact type: a subclass may have another meaning, and is refused without a card.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from skdp.accounting.events import (
    ComposedEvent,
    Event,
    ProfileEvent,
    RepeatedEvent,
    change_leaves,
    leaf_counts,
)
from skdp.accounting.numerics.arithmetic import float_up
from skdp.accounting.numerics.renyi_divergences import pure_rho
from skdp.accounting.pld.pairs.base import Pair
from skdp.base.parameters import Adjacency

Reading = Callable[[float], Fraction]
ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace-one")
SMALLEST = math.ulp(0.0)  # zero means that nothing is revealed, not that a float underflows


class DominatingPairs(NamedTuple):
    """Pairs that dominate a release in both directions."""

    of: Callable[[str], Pair | None]  # by "remove" or "add"; None if nothing is revealed
    directed: bool = False  # the two differ
    attained: bool = False  # the largest possible divergence at every order


class LogMoments(NamedTuple):
    """Bounds on ``(order - 1)`` times Renyi divergences of a release that may fail."""

    of: Callable[[float], float]  # by order, above 1
    log_kept: float = 0.0  # the logarithm of the probability that it does not fail
    finite: bool = True  # at every order
    closed_form: bool = False
    quick: bool = True  # enough to supplement other bounds


class GaussianMixture(NamedTuple):
    """A Gaussian release, sampled or not, in units of the noise."""

    kind: str  # gaussian, poisson-add-remove, poisson-replace-one or uniform-replace-one
    rate: float
    mu: float  # the shift between the components
    noise_multiplier: float

    @property
    def contributions(self) -> int:
        """Number of norm bounds by which a record moves its sum."""
        return 1 if self.kind in ("gaussian", "poisson-add-remove") else 2

    @property
    def mu_of_all_rows(self) -> float:
        """The Gaussian-DP parameter if every sample contained all rows."""
        return self.contributions / self.noise_multiplier


class Guarantee(NamedTuple):
    """An (epsilon, delta), exact or rounded up."""

    epsilon: Fraction
    delta: Fraction


class Divergence(NamedTuple):
    """A bound on Renyi divergences, except with probability ``slack``."""

    divergence: Fraction
    slack: Fraction


class Windows(Protocol):
    """Events that each dominate a release, except with probability ``failure``."""

    @property
    def failure(self) -> float:
        """The probability."""

    def candidates(self, *, delta: float | None = None, epsilon: float | None = None) -> list[Any]:
        """Return promising windows."""

    def neighbours(self, window: Any, factor: float) -> list[Any]:
        """Return windows that differ from one by a factor."""

    def event(self, window: Any) -> Event:
        """Return the event that dominates the release, failures excepted."""


class Domination(NamedTuple):
    """A dominating event, and perhaps cheaper ones."""

    event: Event
    windows: Windows | None = None


@dataclass(frozen=True)
class Analysis:
    """Proved bounds for an event under an adjacency relation; None for no bound.

    Leaves have cards; compositions are folded.
    """

    event: Any
    adjacency: Adjacency
    # Whether only the stated guarantee is known, so some such release attains it.
    only_stated: ClassVar[bool] = False

    def pairs(self) -> DominatingPairs | None:
        """Return the dominating pairs; Gaussian releases have `mu` instead."""
        other = self._dominating_card()
        pairs = None if other is None else other.pairs()
        return None if pairs is None else pairs._replace(attained=False)

    def log_moments(self) -> LogMoments | None:
        """Return bounds on Renyi divergences in both directions."""
        mu = self.mu()
        if mu is None:
            other = self._dominating_card()
            return None if other is None else other.log_moments()
        return LogMoments(lambda order: 0.5 * order * (order - 1.0) * mu * mu, closed_form=True)

    def mu(self) -> float | None:
        """Return the dominating Gaussian shift; 0 only without a release."""
        other = self._dominating_card()
        return None if other is None else other.mu()

    def stated(self, read: Reading = Fraction) -> Guarantee | None:
        """Return the only (epsilon, delta) of the release, if any.

        ``read`` converts floats: by binary value, or as typed in decimal.
        """
        if self.mu() == 0.0:
            return Guarantee(Fraction(0), Fraction(0))
        other = self._dominating_card()
        return None if other is None else other.stated(read)

    def of_two(self) -> Event | None:
        """Return the replace-one event for this add-remove event."""
        return None

    def dominated_by(self) -> Domination | None:
        """Return dominating events.

        A single release gives all other answers; its parts do not.
        """
        return None

    def _dominating_card(self) -> Analysis | None:
        """Return the card of the dominating release."""
        known = self.dominated_by()
        if known is None or known.windows is not None:
            return None
        return analysis_of(known.event, self.adjacency)

    def mixture(self) -> GaussianMixture | None:
        """Return the mixture of a Gaussian release."""
        other = self._dominating_card()
        return None if other is None else other.mixture()

    def mu_squared(self) -> Fraction | None:
        """Return the square of mu, exact if the noise is."""
        mu, other = self.mu(), self._dominating_card()
        if mu is not None and other is not None and mu == other.mu():
            return other.mu_squared()
        return None if mu is None or math.isinf(mu) else Fraction(mu) ** 2

    def rho(self, read: Reading = Fraction) -> Divergence | None:
        """Return rho: divergences of order a are at most ``a rho``."""
        square, known = self.mu_squared(), self.stated(read)
        if square is not None:
            return Divergence(square / 2, Fraction(0))
        return None if known is None else Divergence(pure_rho(known.epsilon), known.delta)

    def parts(self) -> tuple[Event, ...]:
        """Return events, exactly one of which concerns any given record."""
        return (self.event,)

    def covers(self, event: Any) -> bool:
        """Return whether an event of this type is the same, or a more cautious run."""
        return bool(event == self.event)

    def with_noise(self, factor: float) -> Event:
        """Return the release with a multiple of its noise, if any."""
        event: Event = self.event
        return event


Card = Callable[[Any, Adjacency], Analysis]
AnyCard = TypeVar("AnyCard", bound=Card)
_CARDS: dict[type[Event], Card] = {}


def card_of(*types: type[Event]) -> Callable[[AnyCard], AnyCard]:
    """Register a card (class or function) for event types."""

    def enter(card: AnyCard) -> AnyCard:
        _CARDS.update(dict.fromkeys(types, card))
        return card

    return enter


@lru_cache(maxsize=512)
def analysis_of(event: Event, adjacency: Adjacency) -> Analysis:
    """Return the card of an event; without bounds if none is registered."""
    kind = type(event)
    # Equal events are merged, so the class must be a dataclass that compares all fields.
    own = {"profile_bound", "__eq__", "__dataclass_fields__"} <= vars(kind).keys()
    own = own and all(field.compare for field in fields(kind))
    if kind not in _CARDS and isinstance(event, ProfileEvent) and own:
        kind = ProfileEvent  # which contains its theorem
    return _CARDS.get(kind, Analysis)(event, adjacency)


def costs_no_more(event: Event, planned: Event) -> bool:
    """Return whether an event is the planned one, or a more cautious run."""
    if event == planned:
        return True
    if type(event) is RepeatedEvent and type(planned) is RepeatedEvent:
        return event.count <= planned.count and costs_no_more(event.event, planned.event)
    if type(event) is ComposedEvent and type(planned) is ComposedEvent:
        same_length = len(event.events) == len(planned.events)
        return same_length and all(map(costs_no_more, event.events, planned.events))
    # More noise or rarer samples are dominated under either adjacency relation.
    return type(event) is type(planned) and analysis_of(planned, ADJACENCIES[0]).covers(event)


def with_noise(event: Event, factor: float) -> Event:
    """Return releases with a multiple of the noise, where it matters."""
    changed = change_leaves(
        event, lambda leaf: analysis_of(leaf, ADJACENCIES[0]).with_noise(factor)
    )
    assert changed is not None
    return changed


def of_two(event: Event) -> Event | None:
    """Return the replace-one event for an add-remove event, by leaves."""
    return change_leaves(event, lambda leaf: analysis_of(leaf, "add-remove").of_two())


def square_of(event: Event, adjacency: Adjacency) -> Fraction | None:
    """Sum the squares of mu; None if a leaf has none."""
    total = Fraction(0)
    for leaf, count in leaf_counts(event).items():
        square = analysis_of(leaf, adjacency).mu_squared()
        if square is None:
            return None
        total += count * square
    return total


def exact_sum(
    history: Event | Mapping[Event, int], adjacency: Adjacency, read: Reading = Fraction
) -> Guarantee | None:
    """Sum stated guarantees (basic composition), or return None."""
    epsilon, delta = Fraction(0), Fraction(0)
    counts = leaf_counts(history) if isinstance(history, Event) else history
    for leaf, count in counts.items():
        stated = analysis_of(leaf, adjacency).stated(read)
        if stated is None:
            return None
        epsilon += count * stated.epsilon
        delta += count * stated.delta
    return Guarantee(epsilon, delta)


def sum_of_stated(
    history: Event | Mapping[Event, int], adjacency: Adjacency
) -> tuple[float, float] | None:
    """Return basic composition as floats, rounded up, or None."""
    total = exact_sum(history, adjacency)
    return None if total is None else (float_up(total.epsilon), min(1.0, float_up(total.delta)))


def sum_of_moments(event: Event, adjacency: Adjacency) -> LogMoments | None:
    """Sum log moments; None if a leaf has none."""
    parts: list[tuple[LogMoments, int]] = []
    for leaf, count in leaf_counts(event).items():
        moments = analysis_of(leaf, adjacency).log_moments()
        if moments is None:
            return None
        parts.append((moments, count))
    return LogMoments(
        lambda order: math.fsum(count * moments.of(order) for moments, count in parts),
        log_kept=sum(count * moments.log_kept for moments, count in parts),
        finite=all(moments.finite for moments, _ in parts),
    )
