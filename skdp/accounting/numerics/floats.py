"""What floating-point arithmetic allows, and exact amounts that are rounded up."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

UNIT_ROUNDOFF = 2.0**-53  # relative error of one rounded operation, at most
LARGEST_EXPONENT = 700.0  # nats of which the exponential is still a float
SMALLEST_TAIL = 1e-300  # a probability that is a normal number still, with room below
_BITS = 80  # that a rounded amount keeps


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


def float_up(amount: Fraction) -> float:
    """Return the least float that is at least an amount, itself not negative."""
    try:
        nearest = float(amount)
    except OverflowError:
        return math.inf
    return nearest if nearest >= amount else math.nextafter(nearest, math.inf)


def decimal_up(amount: Fraction) -> float:
    """Return a float near an amount that is at least it, as written in decimal."""
    number = float_up(amount)
    while math.isfinite(number) and read_decimal(number) < amount:
        number = math.nextafter(number, math.inf)
    return number


def log_mixture(rate: float, log_ratio: float | Array) -> Array:
    """Return ``log(1 - rate + rate e^log_ratio)``, to a few units of rounding wherever it is.

    Rates above 1, and log ratios of at least 0, give the inverse function.
    """
    ratio = np.asarray(log_ratio, dtype=np.float64)
    if rate == 1.0:
        return ratio
    with np.errstate(all="ignore"):
        added = rate * np.expm1(ratio)
        # Next to -1 the sum cancels; 1 - rate is exact there.
        near = np.where(added < -0.5, np.log((1.0 - rate) + rate * np.exp(ratio)), np.log1p(added))
        shifted = ratio + math.log(rate)
        far = np.where(shifted < LARGEST_EXPONENT, np.log1p(np.exp(shifted) - rate), shifted)
    return np.where(ratio <= 300.0, near, far)


def log_rest(probability: float) -> float:
    """Return the logarithm of what a probability leaves."""
    return math.log1p(-probability) if probability < 1.0 else -math.inf
