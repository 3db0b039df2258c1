"""What every event can do: be compared, and be written down and read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True)
class Event:
    """Base class of all events."""

    _types: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Event._types[cls.__name__] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values, fit for JSON.

        Returns
        -------
        dict
            ``"type"`` names the class; the other keys are its parameters.
        """
        out: dict[str, Any] = {"type": type(self).__name__}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Event):
                value = value.to_dict()
            elif isinstance(value, tuple):
                value = [event.to_dict() for event in value]
            out[field.name] = value
        return out

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Event:
        """Rebuild an event from the output of `to_dict`.

        Parameters
        ----------
        data : mapping
            What `to_dict` returned.

        Returns
        -------
        Event
            An event equal to the original.

        Raises
        ------
        TypeError, ValueError
            If the data are no mapping, ``data["type"]`` names no known event, or the other keys are
            not its parameters.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"Event.from_dict reads what to_dict returned, got {data!r}.")
        parameters = dict(data)
        name = parameters.pop("type", None)
        if name not in Event._types:
            raise ValueError(f"unknown event type {name!r}; known: {sorted(Event._types)}.")
        expected = [field.name for field in fields(Event._types[name])]
        if not parameters.keys() <= set(expected):
            raise ValueError(f"{name} has the parameters {expected}, got {sorted(parameters)}.")
        return Event._types[name]._from_parameters(parameters)

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any]) -> Event:
        """Rebuild an event of this class from what `to_dict` says of its parameters."""
        for key, value in parameters.items():
            if isinstance(value, Mapping):
                parameters[key] = Event.from_dict(value)
            elif isinstance(value, list | tuple):
                parameters[key] = tuple(Event.from_dict(item) for item in value)
        return cls(**parameters)


def check_event(owner: str, name: str, value: object) -> None:
    """Check that a parameter is an event."""
    if not isinstance(value, Event):
        raise TypeError(f"{owner}: {name} must be an Event, got {value!r}.")
