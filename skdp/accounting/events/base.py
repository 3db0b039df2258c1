"""Base class of events, and compositions of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from skdp.accounting.checks import Described, store_integer


@dataclass(frozen=True)
class Event(Described):
    """Base class of all events.

    Examples
    --------
    >>> from skdp.accounting import Event, GaussianEvent
    >>> event = GaussianEvent(noise_multiplier=2.0)
    >>> isinstance(event, Event), event.to_dict()
    (True, {'type': 'GaussianEvent', 'noise_multiplier': 2.0})
    >>> Event.from_dict(event.to_dict()) == event
    True
    """

    # From dp-accounting and back; `skdp.accounting.interchange`, which knows all events, enters it.
    _translate: ClassVar[tuple[Callable[[Any, str], Event], Callable[[Event, str], Any]]]

    @classmethod
    def from_dp_event(cls, dp_event: Any, adjacency: str) -> Event:
        """Return the event with the same meaning as one of dp-accounting.

        Parameters
        ----------
        dp_event : dp_accounting.DpEvent
            One of these events, or a composition of them:

            - Gaussian, Laplace or discrete Laplace noise, or no operation.
            - zCDP with ``xi=0``, or (epsilon, delta) if the installed dp-accounting has it.
            - Repeat-and-select, Poisson samples, or samples without replacement.
        adjacency : {"add-remove", "replace-one"}
            Adjacency relation of both events: ``ADD_OR_REMOVE_ONE`` or ``REPLACE_ONE`` in
            dp-accounting. There, noise multipliers are relative to the norm of one record's value.
            Here, outside samples, they are relative to the sensitivity, which is twice the norm
            under replace-one.

        Returns
        -------
        Event
            Event with the same outcomes. Numbers that no float represents are rounded towards a
            larger cost.

        Raises
        ------
        UnsupportedEventError
            If the event or a part of it has no exact counterpart; the message names it.
        ImportError
            If dp-accounting is missing: ``pip install 'skdp[dp-accounting]'``.

        Notes
        -----
        ``REPLACE_SPECIAL``, where a record is replaced by a zero, is not supported.

        Examples
        --------
        >>> import dp_accounting
        >>> from skdp.accounting import Event
        >>> theirs = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(4.0))
        >>> Event.from_dp_event(theirs, "add-remove")
        PoissonSampledEvent(sample_rate=0.01, event=GaussianEvent(noise_multiplier=4.0))
        >>> Event.from_dp_event(dp_accounting.GaussianDpEvent(4.0), "replace-one")
        GaussianEvent(noise_multiplier=2.0)
        """
        return cls._translate[0](dp_event, adjacency)

    def to_dp_event(self, adjacency: str) -> Any:
        """Return the event of dp-accounting with the same meaning.

        Rounding and errors are those of `from_dp_event`.

        Parameters
        ----------
        adjacency : {"add-remove", "replace-one"}
            Adjacency relation of both events, as in `from_dp_event`.

        Warns
        -----
        PrivacyWarning
            Under replace-one, for noise whose cost dp-accounting's ``RdpAccountant`` understates.
            Its ``PLDAccountant`` is right for unsampled noise. No accountant there is right for
            samples of fixed size.

        Examples
        --------
        >>> from skdp.accounting import GaussianEvent
        >>> GaussianEvent(2.0).to_dp_event("add-remove")
        GaussianDpEvent(noise_multiplier=2.0)
        """
        return self._translate[1](self, adjacency)


def check_event(owner: str, name: str, value: object) -> None:
    """Check that a parameter is an event."""
    if not isinstance(value, Event):
        raise TypeError(f"{owner}: {name} must be an Event, got {value!r}.")


@dataclass(frozen=True)
class RepeatedEvent(Event):
    """The same event, repeated a number of times that is fixed in advance.

    Parameters
    ----------
    event : Event
        Repeated event; later runs may depend on the results of earlier ones.
    count : int
        Number of repetitions, at least 0.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, PLDAccountant, RepeatedEvent
    >>> fit = RepeatedEvent(GaussianEvent(10.0), count=25)
    >>> one_by_one = PLDAccountant().compose(GaussianEvent(10.0), count=25)
    >>> PLDAccountant().compose(fit).epsilon(1e-5) == one_by_one.epsilon(1e-5)
    True
    """

    event: Event
    count: int

    def __post_init__(self) -> None:
        check_event("RepeatedEvent", "event", self.event)
        store_integer(self, "count", 0)


@dataclass(frozen=True)
class ComposedEvent(Event):
    """A list of events, fixed in advance, on the same records.

    Parameters
    ----------
    events : iterable of Event
        Composed events; empty if nothing was released.

    Examples
    --------
    >>> from skdp.accounting import ComposedEvent, GaussianEvent, LaplaceEvent, PLDAccountant
    >>> plan = ComposedEvent((GaussianEvent(4.0), LaplaceEvent(10.0)))
    >>> round(PLDAccountant().compose(plan).epsilon(1e-5), 2)
    0.99
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        _check_events(self)


@dataclass(frozen=True)
class OneOfEvent(Event):
    """Several releases, exactly one of which concerns any given record.

    Examples are releases on disjoint parts of the data, or one release chosen by a public random
    draw. The cost is at most that of the most revealing release, not of all together.

    Parameters
    ----------
    events : iterable of Event
        Releases, at least one. For a part with several releases, use a `ComposedEvent`.

    Notes
    -----
    The assignment of records to parts, or the draw, must be independent of the records and of the
    values that the parts release. Assign parts by position or at random in advance; never stratify
    by a private column. Under add-remove, adding a record must not move the others.

    In a composition, parts may also be assigned after the other releases were seen. The cost is
    then that of a release with the largest of the parts' profiles. If one assignment, made in
    advance, decides about several releases, put all releases on a part into its event.
    ``OneOfEvent((ComposedEvent((a, c)), ComposedEvent((b, c))))`` costs less than
    ``ComposedEvent((OneOfEvent((a, b)), c))``.

    Examples
    --------
    >>> from skdp.accounting import OneOfEvent, PLDAccountant, PureDPEvent
    >>> wards = OneOfEvent((PureDPEvent(0.5), PureDPEvent(0.2)))  # disjoint rows
    >>> round(PLDAccountant().compose(wards).epsilon(0.0), 6)
    0.5
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        _check_events(self)
        if not self.events:
            raise ValueError("OneOfEvent: events must hold at least one event, got none.")


def _check_events(event: ComposedEvent | OneOfEvent) -> None:
    owner, events = type(event).__name__, event.events
    if isinstance(events, Event) or not isinstance(events, Iterable):
        raise TypeError(f"{owner}: events must be a sequence, got {events!r}.")
    object.__setattr__(event, "events", tuple(events))
    for part in event.events:
        check_event(owner, "each of events", part)


def leaf_counts(event: Event, count: int = 1) -> dict[Event, int]:
    """Return the leaves of an event (no compositions, no repetitions), with counts.

    Equal leaves are merged, as order does not affect the cost.
    """
    counts: dict[Event, int] = {}
    stack = [(event, count)]
    while stack:
        current, times = stack.pop()
        if times == 0:
            continue
        # Exact types only, as a subclass may have another meaning.
        if type(current) is RepeatedEvent:
            stack.append((current.event, times * current.count))
        elif type(current) is ComposedEvent:
            stack.extend((part, times) for part in reversed(current.events))
        else:
            counts[current] = counts.get(current, 0) + times
    return counts


def change_leaves(event: Event, change: Callable[[Event], Event | None]) -> Event | None:
    """Replace all leaves; None if a replacement is None."""
    if type(event) is RepeatedEvent:
        inner = change_leaves(event.event, change)
        return None if inner is None else RepeatedEvent(inner, event.count)
    if type(event) is ComposedEvent:
        parts = [change_leaves(part, change) for part in event.events]
        known = [part for part in parts if part is not None]
        return ComposedEvent(tuple(known)) if len(known) == len(parts) else None
    return change(event)
