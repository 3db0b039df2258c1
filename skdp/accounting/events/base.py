"""What every event can do, and compositions of events."""

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
        """Return the event that means what one of dp-accounting's does.

        Parameters
        ----------
        dp_event : dp_accounting.DpEvent
            Gaussian, Laplace or discrete Laplace noise, zCDP with ``xi=0``, (epsilon, delta) where
            the installed dp-accounting has it, repeat-and-select, Poisson samples, samples
            without replacement, compositions of these, or nothing at all.
        adjacency : {"add-remove", "replace-one"}
            The relation that both are accounted under, ``ADD_OR_REMOVE_ONE`` or ``REPLACE_ONE``
            there. It matters: their noise multipliers are over the norm of one record's value,
            ours stand, outside samples, over the sensitivity, which is twice that under
            replace-one.

        Returns
        -------
        Event
            An event with the same outcomes; numbers that no float holds are rounded so that the
            cost can only grow.

        Raises
        ------
        UnsupportedEventError
            If there is no exact counterpart, also not of a part; the message names it.
        ImportError
            If dp-accounting is missing: ``pip install 'skdp[dp-accounting]'``.

        Notes
        -----
        ``REPLACE_SPECIAL``, a record replaced by a zero, is no relation of skdp's.

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
        """Return dp-accounting's event with the same meaning.

        Numbers are rounded, and errors are raised, as by `from_dp_event`.

        Parameters
        ----------
        adjacency : {"add-remove", "replace-one"}
            The relation that both are accounted under, as in `from_dp_event`.

        Warns
        -----
        PrivacyWarning
            Under replace-one, of noise that dp-accounting's ``RdpAccountant`` would price too low:
            bare noise, for which its ``PLDAccountant`` is right, and samples of fixed size, for
            which none of its accountants is.

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
    """The same event, a number of times fixed in advance.

    Parameters
    ----------
    event : Event
        The event that is repeated; later runs may look at the results of earlier ones.
    count : int
        How often, at least 0.

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
        The events; none at all stands for "nothing was released".

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
    """Several releases of which exactly one concerns any one record.

    Such are releases on disjoint parts of the data, or one release drawn by a public coin. The cost
    is at most that of the most revealing one, not of all together.

    Parameters
    ----------
    events : iterable of Event
        The releases, at least one. A part with several of them is a `ComposedEvent`.

    Notes
    -----
    Which records are in which part, or how the coin falls, must be independent of the records and
    of what the parts release: parts by position, or drawn at random beforehand; never
    stratified by a private column. Under add-remove, adding a record must not move the others.

    Beside other releases in a composition, the parts may also be assigned after these were seen:
    the cost is that of a release with the largest of the parts' profiles. Where one assignment,
    made beforehand, decides about several releases, let each part hold all that concerns its
    records: ``OneOfEvent((ComposedEvent((a, c)), ComposedEvent((b, c))))`` costs less than
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
    """Flatten compositions and repetitions into leaves with their counts, equal ones merged.

    The order of a composition does not matter to its cost.
    """
    counts: dict[Event, int] = {}
    stack = [(event, count)]
    while stack:
        current, times = stack.pop()
        if times == 0:
            continue
        # Of these types exactly: what a subclass means is not known here.
        if type(current) is RepeatedEvent:
            stack.append((current.event, times * current.count))
        elif type(current) is ComposedEvent:
            stack.extend((part, times) for part in reversed(current.events))
        else:
            counts[current] = counts.get(current, 0) + times
    return counts


def change_leaves(event: Event, change: Callable[[Event], Event | None]) -> Event | None:
    """Put others in the place of all leaves of a composition; None if one of them is None."""
    if type(event) is RepeatedEvent:
        inner = change_leaves(event.event, change)
        return None if inner is None else RepeatedEvent(inner, event.count)
    if type(event) is ComposedEvent:
        parts = [change_leaves(part, change) for part in event.events]
        known = [part for part in parts if part is not None]
        return ComposedEvent(tuple(known)) if len(known) == len(parts) else None
    return change(event)
