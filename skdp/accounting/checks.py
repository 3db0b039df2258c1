"""Parameters of events and distributions: checks, and conversion to plain values and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, ClassVar, Self


class Described:
    """Base class of frozen dataclasses with numbers, texts or such dataclasses as parameters."""

    _types: ClassVar[dict[str, type[Any]]]
    _parts: ClassVar[type[Described]]  # the family of parameters that are none of these

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if Described in cls.__bases__:
            cls._types, cls._parts = {}, cls
        else:
            cls._types[cls.__name__] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return type and parameters as plain values, ready for JSON."""
        parameters = {field.name: _written(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"type": type(self).__name__} | parameters

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild an object from the output of `to_dict`.

        Raises
        ------
        TypeError, ValueError
            If the data are not a mapping, ``data["type"]`` names no known class, or the other keys
            are not its parameters.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"{cls.__name__}.from_dict needs the output of to_dict, got {data!r}.")
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
    """Return a real parameter as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{owner}: {name} must be a real number, got {value!r}.")
    return float(value)


def check_integer(owner: str, name: str, value: object, minimum: int) -> int:
    """Return an integer parameter that is at least a minimum."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{owner}: {name} must be an integer >= {minimum}, got {value!r}.")
    return int(value)


def store_number(owner: Any, name: str, wanted: str = "") -> None:
    """Store a finite field as a float, ``> 0`` or ``>= 0`` if wanted."""
    kind = type(owner).__name__
    value = check_real(kind, name, getattr(owner, name))
    low = value < 0.0 if wanted.startswith(">= 0") else value <= 0.0 and wanted != ""
    if not math.isfinite(value) or low:
        number = f"a finite number {wanted}".rstrip()
        raise ValueError(f"{kind}: {name} must be {number}, got {value!r}.")
    object.__setattr__(owner, name, value)


def store_share(owner: Any, name: str) -> None:
    """Store a field in [0, 1] as a float."""
    kind = type(owner).__name__
    value = check_real(kind, name, getattr(owner, name))
    if not 0 <= value <= 1:
        raise ValueError(f"{kind}: {name} must lie in [0, 1], got {value!r}.")
    object.__setattr__(owner, name, value)


def store_integer(owner: Any, name: str, minimum: int) -> None:
    """Store an integer field that is at least a minimum."""
    value = check_integer(type(owner).__name__, name, getattr(owner, name), minimum)
    object.__setattr__(owner, name, value)
