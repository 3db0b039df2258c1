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
        """Return the type and the parameters as a dictionary of plain values, fit for JSON."""
        parameters = {field.name: _written(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"type": type(self).__name__} | parameters

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild what `to_dict` has written down.

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


def store_number(owner: Any, name: str, wanted: str = "") -> None:
    """Check that a field is finite, and ``> 0`` or ``>= 0`` if wanted, and store it as a float."""
    kind = type(owner).__name__
    value = check_real(kind, name, getattr(owner, name))
    low = value < 0.0 if wanted.startswith(">= 0") else value <= 0.0 and wanted != ""
    if not math.isfinite(value) or low:
        number = f"a finite number {wanted}".rstrip()
        raise ValueError(f"{kind}: {name} must be {number}, got {value!r}.")
    object.__setattr__(owner, name, value)


def store_share(owner: Any, name: str) -> None:
    """Check that a field is in [0, 1] and store it as a float."""
    kind = type(owner).__name__
    value = check_real(kind, name, getattr(owner, name))
    if not 0 <= value <= 1:
        raise ValueError(f"{kind}: {name} must lie in [0, 1], got {value!r}.")
    object.__setattr__(owner, name, value)


def store_integer(owner: Any, name: str, minimum: int) -> None:
    """Check that a field is an integer that is at least a minimum, and store it as one."""
    value = check_integer(type(owner).__name__, name, getattr(owner, name), minimum)
    object.__setattr__(owner, name, value)
