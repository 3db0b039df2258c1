"""Exponential and logarithm in plain arithmetic, so that loops over them vectorise.

Calls of the C library keep LLVM from vectorising a loop, and numba's own vectorised functions need
Intel's SVML library, which pip does not install.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

# Functions without flags of their own take those of whichever caller compiles them first, so every
# kernel names its flags. FAST lets reductions vectorise; flags that assume away NaN or infinity are
# left out, as they would break the overflow checks. STRICT fuses multiply-adds only.
FAST = {"reassoc", "contract", "nsz", "arcp"}
STRICT = {"contract"}
# Of functions that Python calls: nothing takes them by their address. Loops with divisions that may
# raise an error do not vectorise.
OUTER: dict[str, Any] = {"no_cfunc_wrapper": True, "error_model": "numpy"}
# Of those that compiled code alone calls: what Python would call takes a third of the time that
# they take to compile.
INNER: dict[str, Any] = {"no_cpython_wrapper": True, **OUTER}

# ln 2 in two parts: multiples of the first by integers below 2**11 are exact.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_LOG2_E = 1.4426950408889634
# e**-708 is the smallest power that is a normal number.
_LARGEST = 708.0
_EXP = tuple(1.0 / math.factorial(k) for k in range(14))
_ATANH = tuple(2.0 / (2 * k + 1) for k in range(17))


@intrinsic
def _power_of_two(typing_context: Any, exponent: Any) -> Any:
    """Return 2**exponent by writing the exponent's bits; it must lie in -1022, ..., 1023."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = builder.sext(args[0], ir.IntType(64))
        bits = builder.shl(builder.add(wide, wide.type(1023)), wide.type(52))
        return builder.bitcast(bits, ir.DoubleType())

    return types.float64(types.int32), generate


power_of_two: Any = _power_of_two


def _attribute(*names: str) -> Any:
    """Return what compiled code calls for LLVM to give the function that calls it attributes."""

    @intrinsic
    def attribute(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            for name in names:
                builder.function.attributes.add(name)
            return context.get_dummy_value()

        return types.void(), generate

    return attribute


# Loops that are not worth unrolling, and functions that stay calls, take less time to compile.
keep_short, stay_apart = _attribute("optsize"), _attribute("noinline")


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def exp_negative(x: float) -> float:
    """Return ``exp(-x)`` for x >= 0, within 3 units in the last place; at least 3e-308."""
    x = x if x < _LARGEST else _LARGEST
    count = np.floor(x * _LOG2_E + 0.5)
    # Taylor's polynomial of degree 13 is exact to the last digit for |r| <= ln(2) / 2.
    r = (count * _LN2_HIGH - x) + count * _LN2_LOW
    p = _EXP[13]
    for k in range(12, -1, -1):
        p = p * r + _EXP[k]
    return p * power_of_two(np.int32(-count))


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def log_one_plus(t: float) -> float:
    """Return ``log(1 + t)`` for t in [0, 1], within 3 units in the last place."""
    # log(1 + t) = 2 artanh(s) with s = t / (2 + t) <= 1/3; the series' tail is below 1e-17.
    s = t / (2.0 + t)
    z = s * s
    p = _ATANH[16]
    for k in range(15, -1, -1):
        p = p * z + _ATANH[k]
    return p * s
