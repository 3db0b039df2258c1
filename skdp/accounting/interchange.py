"""Exchange of events with dp-accounting, where both libraries mean the same.

There, noise is relative to the largest norm of one record's value. Here, outside samples, it is
relative to the sensitivity, which is twice as large under replace-one. Inside samples both are
relative to one record's value.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from skdp.accounting.analysis import ADJACENCIES
from skdp.accounting.distributions import Normal
from skdp.accounting.events import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PureDPEvent,
    RenyiEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.exceptions import PrivacyWarning, UnsupportedEventError

_OURS = {
    *(ApproxDPEvent, ComposedEvent, DiscreteLaplaceEvent, GaussianEvent, LaplaceEvent),
    *(PoissonSampledEvent, PureDPEvent, RenyiEvent, RepeatAndSelectEvent, RepeatedEvent),
    UniformSampledEvent,
}


@dataclass(frozen=True)
class _Place:
    """Adjacency relation of an event, and whether it is inside a sample."""

    adjacency: str
    sampled: bool = False

    def __post_init__(self) -> None:
        if self.adjacency not in ADJACENCIES:
            raise ValueError(f"adjacency must be one of {ADJACENCIES}, got {self.adjacency!r}.")

    @property
    def records(self) -> int:
        """Number of differing record values: 2 outside samples under replace-one."""
        return 2 if self.adjacency == "replace-one" and not self.sampled else 1

    def inside(self) -> _Place:
        return _Place(self.adjacency, sampled=True)

    def need(self, holds: bool, event: Any, why: str) -> None:
        if not holds:
            raise UnsupportedEventError(
                f"{type(event).__name__} has no exact counterpart under {self.adjacency!r} "
                f"adjacency: {why}."
            )

    def need_one_meaning(self, event: Any) -> None:
        why = "inside a sample the two libraries use different adjacency relations"
        self.need(not self.sampled or self.adjacency == "add-remove", event, why)

    def need_replacement(self, event: Any) -> None:
        why = "samples of fixed size are defined under 'replace-one'"
        self.need(self.adjacency == "replace-one", event, why)

    def need_no_sample(self, event: Any) -> None:
        self.need(not self.sampled, event, "no bound is proved inside a sample")


def read(theirs: Any, adjacency: str) -> Event:
    """Return skdp's event with the same meaning."""
    return _read(theirs, _Place(adjacency))


def write(event: Event, adjacency: str) -> Any:
    """Return dp-accounting's event; warn where its costs are too small."""
    theirs = _write(event, _Place(adjacency), _their_events())
    kinds = _misread(event) if adjacency == "replace-one" else set()
    if kinds:
        fixed = UniformSampledEvent in kinds
        warnings.warn(
            "Under REPLACE_ONE the RdpAccountant of dp-accounting assumes noise relative to the "
            "change by a replaced record; this event has it relative to one record's value. The "
            "epsilon of that accountant is too small: that of twice the noise. "
            + ("No other accountant there supports samples of fixed size. " if fixed else "")
            + f"Use skdp's accountants{'' if fixed else ' or their PLDAccountant'} for this event.",
            PrivacyWarning,
            stacklevel=3,
        )
    return theirs


def _misread(event: Any) -> set[type]:
    """Return the kinds of releases that their Renyi accountant understates."""
    if isinstance(event, ComposedEvent):
        return {kind for part in event.events for kind in _misread(part)}
    if isinstance(event, RepeatedEvent | RepeatAndSelectEvent):
        return _misread(event.event)
    # It refuses Poisson samples under this adjacency relation.
    return {type(event)} & {GaussianEvent, LaplaceEvent, UniformSampledEvent}


def _read(event: Any, place: _Place) -> Event:
    kind = type(event)
    # Exact types only, as a subclass may have another meaning.
    name = kind.__name__ if kind is getattr(_their_events(), kind.__name__, None) else ""
    match name:
        case "NoOpDpEvent":
            return ComposedEvent(())
        case "GaussianDpEvent":
            return GaussianEvent(event.noise_multiplier / place.records)
        case "LaplaceDpEvent":
            return LaplaceEvent(event.noise_multiplier / place.records)
        case "DiscreteLaplaceDpEvent":
            sensitivity = place.records * event.sensitivity
            place.need(event.noise_parameter > 0, event, "its scale must be finite")
            scale = 1 / (Fraction(event.noise_parameter) * sensitivity)
            return DiscreteLaplaceEvent(_at_most(scale), sensitivity)
        case "EpsilonDeltaDpEvent":
            place.need_one_meaning(event)
            pure = event.delta == 0
            epsilon = event.epsilon
            return PureDPEvent(epsilon) if pure else ApproxDPEvent(epsilon, event.delta)
        case "ZCDpEvent":
            place.need_no_sample(event)
            place.need(event.xi == 0, event, "only xi=0 has one")
            return RenyiEvent(Normal(0.0, 1.0), Normal(_root(2 * Fraction(event.rho)), 1.0))
        case "SelfComposedDpEvent":
            return RepeatedEvent(_read(event.event, place), event.count)
        case "ComposedDpEvent":
            return ComposedEvent(tuple(_read(part, place) for part in event.events))
        case "RepeatAndSelectDpEvent":
            return RepeatAndSelectEvent(_read(event.event, place), event.mean, event.shape)
        case "PoissonSampledDpEvent":
            inner = _read(event.event, place.inside())
            return PoissonSampledEvent(event.sampling_probability, inner)
        case "SampledWithoutReplacementDpEvent":
            place.need_replacement(event)
            inner = _read(event.event, place.inside())
            return UniformSampledEvent(event.sample_size, event.source_dataset_size, inner)
    raise UnsupportedEventError(
        f"{kind.__name__} has no exact counterpart among skdp's events. If the release is known "
        "to be (epsilon, delta)-DP, compose an ApproxDPEvent instead."
    )


def _write(event: Any, place: _Place, kinds: Any) -> Any:
    name = type(event).__name__ if type(event) in _OURS else ""
    match name:
        case "GaussianEvent":
            return kinds.GaussianDpEvent(event.noise_multiplier * place.records)
        case "LaplaceEvent":
            return kinds.LaplaceDpEvent(event.noise_multiplier * place.records)
        case "DiscreteLaplaceEvent":
            single, odd = divmod(event.sensitivity, place.records)
            place.need(not odd, event, "its sensitivity is odd, so no integer bounds one value")
            parameter = 1 / (Fraction(event.noise_multiplier) * event.sensitivity)
            return kinds.DiscreteLaplaceDpEvent(_at_least(parameter), single)
        case "PureDPEvent" | "ApproxDPEvent":
            place.need_one_meaning(event)
            there = hasattr(kinds, "EpsilonDeltaDpEvent")
            place.need(there, event, "the installed dp-accounting has no EpsilonDeltaDpEvent")
            return kinds.EpsilonDeltaDpEvent(event.epsilon, getattr(event, "delta", 0.0))
        case "RenyiEvent":
            place.need_no_sample(event)
            return kinds.ZCDpEvent(_at_least(_rho(event, place)))
        case "RepeatedEvent":
            return kinds.SelfComposedDpEvent(_write(event.event, place, kinds), event.count)
        case "ComposedEvent":
            return kinds.ComposedDpEvent([_write(part, place, kinds) for part in event.events])
        case "RepeatAndSelectEvent":
            place.need(event.shape >= 0, event, "dp-accounting requires shape >= 0")
            inner = _write(event.event, place, kinds)
            return kinds.RepeatAndSelectDpEvent(inner, event.mean, event.shape)
        case "PoissonSampledEvent":
            inner = _write(event.event, place.inside(), kinds)
            return kinds.PoissonSampledDpEvent(event.sample_rate, inner)
        case "UniformSampledEvent":
            place.need_replacement(event)
            inner, size = _write(event.event, place.inside(), kinds), event.batch_size
            return kinds.SampledWithoutReplacementDpEvent(event.dataset_size, size, inner)
    raise UnsupportedEventError(
        f"{type(event).__name__} has no exact counterpart in dp-accounting."
    )


def _rho(event: RenyiEvent, place: _Place) -> Fraction:
    """Return rho if all divergences are those of rho-zCDP."""
    left, right = event.left, event.right
    if type(left) is Normal and type(right) is Normal and left.scale == right.scale:
        gap = (Fraction(left.mean) - Fraction(right.mean)) / Fraction(left.scale)
        return gap**2 / 2
    place.need(False, event, "only normal distributions of equal scale have one")
    raise AssertionError


def _their_events() -> Any:
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError(
            "events of dp-accounting require this package: pip install 'skdp[dp-accounting]'."
        ) from error
    return dp_event


def _at_most(exact: Fraction) -> float:
    """Return the largest float that is at most a number."""
    value = float(exact)
    return value if Fraction(value) <= exact else math.nextafter(value, -math.inf)


def _at_least(exact: Fraction) -> float:
    return -_at_most(-exact)


def _root(square: Fraction) -> float:
    """Return the root of a number, rounded up to a float."""
    value = math.sqrt(square)
    while Fraction(value) ** 2 < square:
        value = math.nextafter(value, math.inf)
    return value


Event._translate = (read, write)
