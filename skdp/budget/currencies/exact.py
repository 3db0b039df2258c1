"""Exact amounts: what was typed is taken as written, what was computed is rounded up."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from skdp.accounting.numerics.floats import read_decimal, round_up

_DIGITS = 40  # decimals that an amount may have before it is rounded


def shorten(amount: Fraction) -> Fraction:
    """Keep an amount that decimals can write, and round any other up."""
    scaled = amount * 10**_DIGITS
    return amount if scaled.denominator == 1 else round_up(amount)


def float_down(amount: Fraction) -> float:
    """Return the largest finite float that is at most an amount."""
    try:
        nearest = float(amount)
    except OverflowError:
        return sys.float_info.max
    if math.isinf(nearest):
        return sys.float_info.max
    return nearest if Fraction(nearest) <= amount else math.nextafter(nearest, 0.0)


def decimal_down(amount: Fraction) -> float:
    """Return the largest float near an amount that is at most it, as written in decimal."""
    number = float_down(amount)
    following = math.nextafter(number, math.inf)
    if math.isfinite(following) and read_decimal(following) <= amount:
        return following
    while read_decimal(number) > amount:
        number = math.nextafter(number, 0.0)
    return number
