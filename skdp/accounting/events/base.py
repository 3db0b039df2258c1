"""What every event can do: be compared, and be written down and read again."""

from __future__ import annotations

from dataclasses import dataclass

from skdp.accounting.checks import Described


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


def check_event(owner: str, name: str, value: object) -> None:
    """Check that a parameter is an event."""
    if not isinstance(value, Event):
        raise TypeError(f"{owner}: {name} must be an Event, got {value!r}.")
