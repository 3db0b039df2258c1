"""Parameters as Python's own numbers, and their checks, whose errors name value and remedy."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np

# Noise is drawn up to a tail of mass 1e-280: of a smaller delta not all would be left for it.
SMALLEST_DELTA = 1e-250
PURE_OFFERS = (
    "delta=0 is offered by ObjectivePerturbationLogisticRegression, ObjectivePerturbationSVC, "
    "ObjectivePerturbationHuberRegressor, OperaLogisticRegression, OperaHuberRegressor and "
    "OperaSVC, and by the counts and histograms of skdp.statistics."
)

Target = TypeVar("Target", bound=Callable[..., Any])


def plain(value: Any) -> Any:
    """Return a number as Python's own, and what lists hold as well; anything else as it is.

    numpy computes with its scalars in their own precision: half of it loses a sensitivity's digits,
    and the square of an ``int8`` is one modulo 256.
    """
    if type(value) in (list, tuple, dict):
        entries = list(value.items()) if type(value) is dict else list(value)
        changed = [plain(entry) for entry in entries]
        same = all(new is old for new, old in zip(changed, entries, strict=True))
        return value if same else type(value)(changed)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(np.float64, copy=False)
    if isinstance(value, bool) or not isinstance(value, numbers.Real | np.bool_ | np.str_):
        return value
    if isinstance(value, np.bool_ | np.str_):
        return value.item()
    try:
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    except OverflowError:
        return value


def plain_arguments(target: Target) -> Target:
    """Decorate a function, or a class and its constructor, to receive plain numbers only."""
    if isinstance(target, type):
        target.__init__ = plain_arguments(target.__init__)  # type: ignore[misc]
        return target

    @wraps(target)
    def call(*args: Any, **named: Any) -> Any:
        return target(*map(plain, args), **{name: plain(value) for name, value in named.items()})

    return call  # type: ignore[return-value]


class PlainParameters:
    """Mixin of all estimators here: parameters are kept, and read, as plain Python values.

    However a parameter is set, in the constructor, by `set_params` or by assignment, it comes here.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value if name.endswith("_") else plain(value))


def check_real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    allowed: Sequence[str | None] = (),
    remedy: str = "",
) -> Any:
    """Refuse what is neither a finite real number in range nor `allowed`; return a plain float.

    Limits `above` and `below` are exclusive; `remedy` is appended to the message.
    """
    if _is_special(value, allowed):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{name} must be a real number{_or_special(allowed)}, got {value!r}. {remedy}".rstrip()
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    limits = [
        (words, limit, holds)
        for words, limit, holds in (
            ("greater than", above, operator.gt),
            ("at least", at_least, operator.ge),
            ("at most", at_most, operator.le),
            ("less than", below, operator.lt),
        )
        if limit is not None
    ]
    if not (math.isfinite(number) and all(holds(number, limit) for _, limit, holds in limits)):
        listed = " and ".join(["finite", *(f"{words} {limit:g}" for words, limit, _ in limits)])
        raise ValueError(
            f"{name} must be {listed}{_or_special(allowed)}, got {value!r}. {remedy}".rstrip()
        )
    return number


def check_integer(
    name: str,
    value: Any,
    *,
    at_least: int = 0,
    allowed: Sequence[str | None] = (),
    remedy: str = "",
) -> Any:
    """Refuse a parameter that is not an integer of at least a given size; return a plain one.

    Parameters and errors are those of :func:`check_real`.
    """
    if _is_special(value, allowed):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{name} must be an integer{_or_special(allowed)}, got {value!r}. {remedy}".rstrip()
        )
    if value < at_least:
        raise ValueError(
            f"{name} must be at least {at_least}{_or_special(allowed)}, "
            f"got {value!r}. {remedy}".rstrip()
        )
    return int(value)


def check_bounds(name: str, bounds: Any) -> tuple[float, float]:
    """Refuse what is no pair (low, high) of public bounds; return plain floats."""
    remedy = "It is a public pair, not from the table, and what lies beyond it is clipped."
    if not (isinstance(bounds, Sequence | np.ndarray) and np.shape(bounds) == (2,)):
        raise ValueError(f"{name} must be (low, high), got {bounds!r}. {remedy}")
    low, high = (check_real(name, bound, remedy=remedy) for bound in bounds)
    if not (low < high and math.isfinite(high - low) and math.isfinite(1.0 / (high - low))):
        raise ValueError(f"{name} must have low < high, got {bounds!r}. {remedy}")
    return low, high


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a parameter that is not one of the given choices."""
    given = plain(value)
    if not any(type(given) is type(choice) and given == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}.")


def _is_special(value: Any, allowed: Sequence[str | None]) -> bool:
    return (value is None and None in allowed) or (isinstance(value, str) and value in allowed)


def _or_special(allowed: Sequence[str | None]) -> str:
    return "".join(f" or {value!r}" for value in allowed)
