"""Exact amounts: what was typed is taken as written, what was computed is rounded up."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

_BITS = 80  # that a rounded amount keeps
_DIGITS = 40  # decimals that an amount may have before it is rounded


def read_decimal(number: float) -> Fraction:
    """Return the exact value of a number as it is written in decimal."""
    return Fraction(repr(float(number)))


def round_up(amount: Fraction) -> Fraction:
    """Return a dyadic fraction at least as large, whose sums stay short."""
    numerator, denominator = amount.numerator, amount.denominator
    shift = _BITS - (numerator.bit_length() - denominator.bit_length())
    if numerator.bit_length() <= _BITS and denominator & (denominator - 1) == 0:
        return amount
    if shift >= 0:
        return Fraction(-(-(numerator << shift) // denominator), 1 << shift)
    return Fraction(-(-numerator // (denominator << -shift)) << -shift)


def shorten(amount: Fraction) -> Fraction:
    """Keep an amount that decimals can write, and round any other up."""
    scaled = amount * 10**_DIGITS
    return amount if scaled.denominator == 1 else round_up(amount)


def float_up(amount: Fraction) -> float:
    """Return the smallest float that is at least an amount."""
    try:
        nearest = float(amount)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= amount else math.nextafter(nearest, math.inf)


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


def decimal_up(amount: Fraction) -> float:
    """Return a float near an amount that is at least it, as written in decimal."""
    number = float_up(amount)
    while math.isfinite(number) and read_decimal(number) < amount:
        number = math.nextafter(number, math.inf)
    return number
