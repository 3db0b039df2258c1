"""The largest epsilon that a price allows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from skdp.budget.currencies.exact import float_down, read_decimal

_BISECTIONS = 200
_CLOSE = Fraction(1, 10**12)


def largest_pure(price: Callable[[Fraction], Fraction], most: Fraction) -> float:
    """Return a large epsilon whose price is at most a given amount."""
    low, high = Fraction(0), Fraction(1)
    while price(high) <= most:
        low, high = high, 2 * high
    while low == 0 and price(high / 2) > most:
        high /= 2
    for _ in range(_BISECTIONS):
        if high - low <= high * _CLOSE:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if price(middle) <= most else (low, middle)
    number = float_down(low)
    return number if read_decimal(number) <= low else float_down(low * (1 - _CLOSE))
