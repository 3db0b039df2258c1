"""Checks of the parameters of events."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


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
