"""Parameters of events and distributions: how they are checked, written down and read again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, ClassVar, Self


class Described:
    """A family of frozen dataclasses, whose parameters are numbers, texts, or of a family."""

    _types: ClassVar[dict[str, type[Any]]]
    _parts: ClassVar[type[Described]]  # the family of parameters that are none of these

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if Described in cls.__bases__:
            cls._types, cls._parts = {}, cls
        else:
            cls._types[cls.__name__] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values, fit for JSON.

        Returns
        -------
        dict
            ``"type"`` names the class; the other keys are its parameters.
        """
        parameters = {field.name: _written(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"type": type(self).__name__} | parameters

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild what `to_dict` has written down.

        Parameters
        ----------
        data : mapping
            What `to_dict` returned.

        Returns
        -------
        Event or Distribution
            An equal of the original.

        Raises
        ------
        TypeError, ValueError
            If the data are no mapping, ``data["type"]`` names no known class, or the other keys are
            not its parameters.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"{cls.__name__}.from_dict reads what to_dict returned, got {data!r}.")
        parameters = dict(data)
        name = parameters.pop("type", None)
        if name not in cls._types:
            family = cls.__name__.lower()
            raise ValueError(f"unknown {family} type {name!r}; known: {sorted(cls._types)}.")
        kind = cls._types[name]
        expected = [field.name for field in fields(kind)]
        if not parameters.keys() <= set(expected):
            raise ValueError(f"{name} has the parameters {expected}, got {sorted(parameters)}.")
        read: Self = kind(**{key: kind._read(value) for key, value in parameters.items()})
        return read

    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return cls._parts.from_dict(value)
        return tuple(map(cls._read, value)) if isinstance(value, list | tuple) else value


def _written(value: Any) -> Any:
    if isinstance(value, Described):
        return value.to_dict()
    return [_written(item) for item in value] if isinstance(value, tuple) else value


def check_real(owner: str, name: str, value: object) -> float:
    """Return a real parameter as a float, or say whose it is and what is wrong."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{owner}: {name} must be a real number, got {value!r}.")
    return float(value)


def check_integer(owner: str, name: str, value: object, minimum: int) -> int:
    """Return an integer parameter that is at least a minimum."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{owner}: {name} must be an integer >= {minimum}, got {value!r}.")
    return int(value)


def check_noise_multiplier(event: Any) -> None:
    """Check the noise multiplier of an event."""
    owner = type(event).__name__
    z = check_real(owner, "noise_multiplier", event.noise_multiplier)
    if not (math.isfinite(z) and z > 0):
        raise ValueError(f"{owner}: noise_multiplier must be a finite number > 0, got {z!r}.")
    object.__setattr__(event, "noise_multiplier", z)


def check_epsilon(event: Any) -> None:
    """Check the epsilon of an event."""
    owner = type(event).__name__
    epsilon = check_real(owner, "epsilon", event.epsilon)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"{owner}: epsilon must be a finite number >= 0, got {epsilon!r}.")
    object.__setattr__(event, "epsilon", epsilon)


def check_sensitivity(event: Any) -> None:
    """Check the noise multiplier and the integer sensitivity of an event."""
    check_noise_multiplier(event)
    size = check_integer(type(event).__name__, "sensitivity", event.sensitivity, 1)
    object.__setattr__(event, "sensitivity", size)
