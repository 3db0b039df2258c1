"""Checks of constructor parameters; each error names the parameter, the value and the remedy."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

# Noise is drawn up to a tail of mass 1e-280: of a smaller delta not all would be left for it.
SMALLEST_DELTA = 1e-250


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
) -> None:
    """Refuse a parameter that is not a finite real number in range.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        What the user gave.
    above, at_least, at_most, below : float or None
        Exclusive and inclusive lower, inclusive and exclusive upper limit.
    allowed : sequence of str or None
        Special values that are accepted as well.
    remedy : str
        What to do instead, appended to the message.

    Raises
    ------
    TypeError
        If the value is no number.
    ValueError
        If it is out of range.
    """
    if _is_special(value, allowed):
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{name} must be a real number{_or_special(allowed)}, got {value!r}. {remedy}".rstrip()
        )
    number = float(value)
    in_range = (
        math.isfinite(number)
        and (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (at_most is None or number <= at_most)
        and (below is None or number < below)
    )
    if not in_range:
        limits = [
            text
            for limit, text in (
                (above, f"greater than {above:g}" if above is not None else ""),
                (at_least, f"at least {at_least:g}" if at_least is not None else ""),
                (at_most, f"at most {at_most:g}" if at_most is not None else ""),
                (below, f"less than {below:g}" if below is not None else ""),
            )
            if limit is not None
        ]
        raise ValueError(
            f"{name} must be finite and {' and '.join(limits)}{_or_special(allowed)}, "
            f"got {value!r}. {remedy}".rstrip()
        )


def check_integer(
    name: str,
    value: Any,
    *,
    at_least: int = 0,
    allowed: Sequence[str | None] = (),
    remedy: str = "",
) -> None:
    """Refuse a parameter that is not an integer of at least a given size.

    Parameters and errors are those of :func:`check_real`.
    """
    if _is_special(value, allowed):
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{name} must be an integer{_or_special(allowed)}, got {value!r}. {remedy}".rstrip()
        )
    if value < at_least:
        raise ValueError(
            f"{name} must be at least {at_least}{_or_special(allowed)}, "
            f"got {value!r}. {remedy}".rstrip()
        )


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a parameter that is not one of the given choices.

    Raises
    ------
    ValueError
        If it is not.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if not any(type(plain) is type(choice) and plain == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}.")


def _is_special(value: Any, allowed: Sequence[str | None]) -> bool:
    return (value is None and None in allowed) or (isinstance(value, str) and value in allowed)


def _or_special(allowed: Sequence[str | None]) -> str:
    return "".join(f" or {value!r}" for value in allowed)
