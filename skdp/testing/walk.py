"""Compare all that can be reached from two fitted objects, types and shapes included."""

from __future__ import annotations

import threading
import types
import weakref
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from scipy import sparse

_BY_IDENTITY = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc)
_UNCOMPARED = (type(threading.Lock()), type(threading.RLock()), weakref.ref)

Seen = dict[tuple[int, int], tuple[Any, Any]]


def differences(one: Any, other: Any, path: str = "", seen: Seen | None = None) -> list[str]:
    """Name everything reachable that is not the same in both."""
    seen = {} if seen is None else seen
    if one is other or (id(one), id(other)) in seen or isinstance(one, _UNCOMPARED):
        return []
    if type(one) is not type(other):
        return [f"{path}: {type(one).__name__}, {type(other).__name__}"]
    # What was compared must live on, or its id could be given to something else.
    seen[id(one), id(other)] = one, other
    if isinstance(one, _BY_IDENTITY):
        return [f"{path}: {one}, {other}"]
    if isinstance(one, types.MethodType):
        return differences(one.__self__, other.__self__, f"{path}.__self__", seen)
    if isinstance(one, np.ndarray):
        return _of_arrays(one, other, path, seen)
    if type(one).__module__.startswith("pandas.") and hasattr(one, "equals"):
        return [] if one.equals(other) else [f"{path}: frames"]
    if isinstance(one, Mapping):
        found = differences(list(one), list(other), f"{path}.keys", seen)
        return found or _of_items(one.values(), other.values(), one, path, seen)
    if isinstance(one, Set):
        return [] if one == other else [f"{path}: {one}, {other}"]
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return [f"{path}: lengths {len(one)}, {len(other)}"]
        return _of_items(one, other, range(len(one)), path, seen)
    states = [_state(value) for value in (one, other)]
    if states[0] is None:
        return [] if repr(one) == repr(other) else [f"{path}: {one!r}, {other!r}"]
    return differences(states[0], states[1], path, seen)


def _of_items(
    ones: Iterable[Any], others: Iterable[Any], names: Iterable[Any], path: str, seen: Seen
) -> list[str]:
    pairs = zip(names, ones, others, strict=True)
    return [text for name, a, b in pairs for text in differences(a, b, f"{path}.{name}", seen)]


def _of_arrays(one: np.ndarray, other: np.ndarray, path: str, seen: Seen) -> list[str]:
    if one.dtype != other.dtype or one.shape != other.shape:
        return [f"{path}: {one.dtype} {one.shape}, {other.dtype} {other.shape}"]
    if one.dtype == object:
        return _of_items(one.ravel().tolist(), other.ravel().tolist(), range(one.size), path, seen)
    return [] if one.tobytes() == other.tobytes() else [f"{path}: values"]


def _state(value: Any) -> Any:
    """Return what an object holds, or None if it is a plain value."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return None
    if isinstance(value, np.random.RandomState):
        return value.get_state(legacy=True)
    held = dict(vars(value)) if hasattr(value, "__dict__") else {}
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                held[name] = getattr(value, name)
    if held or sparse.issparse(value):
        return held
    try:  # objects of compiled classes
        return value.__reduce_ex__(4)[1:3]
    except TypeError:
        return None
