"""What floating-point arithmetic allows: facts of the machine, not choices."""

import math
from fractions import Fraction

UNIT_ROUNDOFF = 2.0**-53  # relative error of one rounded operation, at most
LARGEST_EXPONENT = 700.0  # nats of which the exponential is still a float
SMALLEST_TAIL = 1e-300  # a probability that is a normal number still, with room below


def round_up(exact: Fraction) -> float:
    """Return the least float that is at least a fraction that is not negative."""
    try:
        found = float(exact)
    except OverflowError:
        return math.inf
    return found if found >= exact else math.nextafter(found, math.inf)
