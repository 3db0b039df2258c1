"""Compiled scalar functions of the losses, shared by every kernel.

Calls of the C library keep LLVM from vectorising a loop. Numba's vectorised functions need Intel's
SVML library, which pip does not install.

Numba compiles a kernel once per loss and caches it on disk, except for kernels that take functions
as arguments. Kernels therefore take a tag: an empty array whose only field is named by a digest of
the functions' code. Passing it is free, and no reference to a function is stored.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, typeof, types
from numba.extending import intrinsic

from skdp.base.parameters import cached_property

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
    """Return a compiled call that makes LLVM give its caller attributes."""

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


_LOG_2 = math.log(2.0)


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def logistic_value(numbers: tuple[()], margin: float, target: float) -> float:
    """Return the logistic loss."""
    return max(-margin, 0.0) + log_one_plus(exp_negative(abs(margin)))


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def logistic_slope(numbers: tuple[()], margin: float, target: float) -> float:
    """Return the derivative of the logistic loss."""
    tail = exp_negative(abs(margin))
    return -(tail if margin >= 0.0 else 1.0) / (1.0 + tail)


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def logistic_curvature(numbers: tuple[()], margin: float, target: float) -> float:
    """Return the second derivative of the logistic loss."""
    tail = exp_negative(abs(margin))
    return tail / ((1.0 + tail) * (1.0 + tail))


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def hinge_value(numbers: tuple[float], margin: float, target: float) -> float:
    """Return the smoothed hinge loss."""
    gap, width = 1.0 - margin, numbers[0]
    # The parabola up to its end, then the line; both are smooth there.
    inner = min(max(gap, -width), width) + width
    return 0.25 * inner * inner / width + max(gap - width, 0.0)


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def hinge_slope(numbers: tuple[float], margin: float, target: float) -> float:
    """Return the derivative of the smoothed hinge loss."""
    return -0.5 * (min(max((1.0 - margin) / numbers[0], -1.0), 1.0) + 1.0)


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def hinge_curvature(numbers: tuple[float], margin: float, target: float) -> float:
    """Return the second derivative of the smoothed hinge loss, a generalised one at its kinks."""
    return 0.5 / numbers[0] if abs(1.0 - margin) <= numbers[0] else 0.0


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def huber_value(numbers: tuple[float], score: float, target: float) -> float:
    """Return half a square near the target, and straight lines beyond."""
    gap = abs(score - target)
    near = min(gap, numbers[0])
    return near * (gap - 0.5 * near)


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def huber_slope(numbers: tuple[float], score: float, target: float) -> float:
    """Return the residual, cut at the width."""
    return min(max(score - target, -numbers[0]), numbers[0])


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def huber_curvature(numbers: tuple[float], score: float, target: float) -> float:
    """Return the second derivative, a generalised one at the kinks of the slope."""
    return 1.0 if abs(score - target) <= numbers[0] else 0.0


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def pseudo_huber_root(numbers: tuple[float], score: float, target: float) -> float:
    """Return the divisor of the residual."""
    share = (score - target) / numbers[0]
    return math.sqrt(1.0 + share * share)


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def pseudo_huber_value(numbers: tuple[float], score: float, target: float) -> float:
    """Return ``h^2 (sqrt(1 + (r/h)^2) - 1)`` without its cancellation."""
    gap = score - target
    return gap * gap / (1.0 + pseudo_huber_root(numbers, score, target))


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def pseudo_huber_slope(numbers: tuple[float], score: float, target: float) -> float:
    """Return the derivative of the pseudo-Huber loss."""
    return (score - target) / pseudo_huber_root(numbers, score, target)


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def pseudo_huber_curvature(numbers: tuple[float], score: float, target: float) -> float:
    """Return the second derivative of the pseudo-Huber loss."""
    root = pseudo_huber_root(numbers, score, target)
    return 1.0 / (root * root * root)


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def clipped_square_value(numbers: tuple[()], score: float, target: float) -> float:
    """Return half the squared residual, and tangents where the score is beyond [-1, 1]."""
    inner = min(max(score, -1.0), 1.0)
    gap = inner - target
    return gap * (0.5 * gap + (score - inner))


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def clipped_square_slope(numbers: tuple[()], score: float, target: float) -> float:
    """Return the residual of the clipped score."""
    return min(max(score, -1.0), 1.0) - target


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def clipped_square_curvature(numbers: tuple[()], score: float, target: float) -> float:
    """Return the second derivative, a generalised one at the kinks of the slope."""
    return 1.0 if abs(score) <= 1.0 else 0.0


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def quantile_value(numbers: tuple[float, float], score: float, target: float) -> float:
    """Return the pinball loss with a parabola over its kink, 0 at the least."""
    gap, width = score - target, numbers[0]
    near = min(max(gap, -0.5 * width), 0.5 * width)
    slope = quantile_slope(numbers, score, target)
    return slope * (0.5 * slope * width + (gap - near))


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def quantile_slope(numbers: tuple[float, float], score: float, target: float) -> float:
    """Return the derivative: from minus the quantile to one minus it, along a line."""
    return min(max((score - target) / numbers[0], -0.5), 0.5) + (0.5 - numbers[1])


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def quantile_curvature(numbers: tuple[float, float], score: float, target: float) -> float:
    """Return the second derivative, a generalised one at the kinks of the slope."""
    return 1.0 / numbers[0] if abs(score - target) <= 0.5 * numbers[0] else 0.0


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def poisson_rate(score: float) -> float:
    """Return the exponential of the score, 2 at the most."""
    tail = exp_negative(abs(min(score, _LOG_2)))
    return tail if score < 0.0 else 1.0 / tail


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def poisson_value(numbers: tuple[()], score: float, target: float) -> float:
    """Return half the deviance of the count ``1 + target``, and a tangent beyond the rate 2."""
    count = 1.0 + target
    least = count * math.log(count) - count if count > 0.0 else 0.0
    return poisson_rate(score) + 2.0 * max(score - _LOG_2, 0.0) - count * score + least


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def poisson_slope(numbers: tuple[()], score: float, target: float) -> float:
    """Return the rate minus the count."""
    return poisson_rate(score) - (1.0 + target)


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def poisson_curvature(numbers: tuple[()], score: float, target: float) -> float:
    """Return the rate, 0 where it is cut."""
    return poisson_rate(score) if score <= _LOG_2 else 0.0


# By digest, as losses are seen.
_SEEN: dict[str, ScalarFunctions] = {}


@dataclass(frozen=True)
class ScalarFunctions:
    """Functions of (numbers, margin or score, target) that kernels compute for a loss.

    `family` is "margin" for the product of score and label, "score" for a score and a target of any
    kind, or "softmax" for all scores, in a separate kernel.
    """

    family: str
    value: Any = None
    slope: Any = None
    curvature: Any = None

    @cached_property
    def tag(self) -> np.ndarray:
        """Identifier of these functions in compiled code."""
        digest = hashlib.sha256(repr(_code_of(self)).encode()).hexdigest()
        # Numba knows it by its address in tuples: one that was freed could become another's.
        kept = _SEEN.setdefault(digest, self)
        return np.empty(0, dtype=[(digest, np.int8)]) if kept is self else kept.tag

    @cached_property
    def orders(self) -> tuple[ScalarFunctions, ...]:
        """The value, slope and curvature, each as the slope of functions that have no other."""
        each = (self.value, self.slope, self.curvature)
        return tuple(ScalarFunctions(self.family, slope=function) for function in each)


def find_functions(tag: Any) -> ScalarFunctions:
    """Return the functions of a tag, given numba's type of it."""
    return _SEEN[next(iter(tag.dtype.fields))]


def _code_of(value: Any) -> Any:
    """Return everything that determines the result of compiled functions."""
    if isinstance(value, ScalarFunctions):
        return [value.family, *map(_code_of, (value.value, value.slope, value.curvature))]
    if hasattr(value, "py_func"):
        code, known = value.py_func.__code__, inspect.getclosurevars(value.py_func)
        used = {**known.nonlocals, **known.globals}
        parts = sorted((name, repr(_code_of(found))) for name, found in used.items())
        defaults = [_code_of(default) for default in value.py_func.__defaults__ or ()]
        plain = map(_same_everywhere, (code.co_consts, value.targetoptions))
        return [code.co_code, code.co_names, *plain, defaults, parts]
    if value is math or value is np or type(value).__module__.startswith("numba."):
        return value.__name__
    if isinstance(value, tuple):
        return list(map(_code_of, value))
    if value is None or isinstance(value, float | int | BuiltinFunctionType | np.ufunc):
        return repr(value)
    raise TypeError(
        "Scalar functions of a loss may use numbers, math, numpy and compiled functions, got "
        f"{type(value).__name__}. Compiled code cached on disk would keep its old value."
    )


def _same_everywhere(value: Any) -> Any:
    """Return a constant with the same text in all processes; the order of sets varies."""
    if isinstance(value, dict):
        return [[key, _same_everywhere(value[key])] for key in sorted(value)]
    if isinstance(value, set | frozenset):
        return [type(value).__name__, *sorted(map(_same_everywhere, value), key=repr)]
    if isinstance(value, tuple):
        return list(map(_same_everywhere, value))
    if isinstance(value, CodeType):
        raise TypeError("scalar functions of a loss must not define nested functions.")
    return repr(value)


LOGISTIC = ScalarFunctions("margin", logistic_value, logistic_slope, logistic_curvature)
SMOOTHED_HINGE = ScalarFunctions("margin", hinge_value, hinge_slope, hinge_curvature)
SOFTMAX = ScalarFunctions("softmax")
HUBER = ScalarFunctions("score", huber_value, huber_slope, huber_curvature)
PSEUDO_HUBER = ScalarFunctions(
    "score", pseudo_huber_value, pseudo_huber_slope, pseudo_huber_curvature
)
CLIPPED_SQUARE = ScalarFunctions(
    "score", clipped_square_value, clipped_square_slope, clipped_square_curvature
)
QUANTILE = ScalarFunctions("score", quantile_value, quantile_slope, quantile_curvature)
POISSON = ScalarFunctions("score", poisson_value, poisson_slope, poisson_curvature)


def _choose(choice: Callable[[ScalarFunctions], Any]) -> Any:
    """Return a compiled call of the function that a tag chooses.

    It is not a compiled function itself, because each of those takes time to compile.
    """

    @intrinsic
    def choose(context: Any, tag: Any, numbers: Any, entry: Any, target: Any) -> Any:
        function = typeof(choice(find_functions(tag)))
        inner = context.resolve_function_type(function, (numbers, entry, target), {})

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.get_function(function, inner)(builder, args[1:])

        return inner.return_type(tag, *inner.args), generate

    return choose


@intrinsic
def _in_terms_of(context: Any, tag: Any, entry: Any, target: Any) -> Any:
    """Return a score as a margin, or a derivative in the margin as one in the score."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        signed = find_functions(tag).family == "margin"
        return builder.fmul(args[1], args[2]) if signed else args[1]

    return types.float64(tag, types.float64, types.float64), generate


in_terms_of: Any = _in_terms_of
loss_value = _choose(lambda loss: loss.value)
loss_slope = _choose(lambda loss: loss.slope)


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def evaluate_slopes(
    tag: np.ndarray, numbers: Any, entries: np.ndarray, targets: np.ndarray, out: np.ndarray
) -> None:
    """Write the slopes at margins, or scores, into ``out``."""
    for i in range(entries.size):
        out[i] = loss_slope(tag, numbers, entries[i], targets[i])


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def softmax_in_place(scores: np.ndarray, code: int, want_value: bool) -> float:
    """Turn ``scores`` into ``softmax(scores) - e_code``; return the cross-entropy loss if wanted.

    The entry of the true class is minus the sum of the others. This keeps its relative accuracy
    when the probability of the true class is close to one.
    """
    top = scores[0]
    for k in range(1, scores.size):
        top = max(top, scores[k])
    lead = top - scores[code]
    others = 0.0
    for k in range(scores.size):
        if k != code:
            scores[k] = exp_negative(top - scores[k])
            others += scores[k]
    own = exp_negative(lead)
    total = own + others
    for k in range(scores.size):
        scores[k] /= total
    scores[code] = -others / total
    if not want_value:
        return 0.0
    if lead == 0.0:
        return math.log1p(others)
    return lead + math.log(total)


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def evaluate_softmax(
    scores: np.ndarray, codes: np.ndarray, gradient: np.ndarray, value: np.ndarray
) -> None:
    """Write cross-entropy losses and their gradients with respect to the scores, row by row."""
    for i in range(scores.shape[0]):
        gradient[i] = scores[i]
        value[i] = softmax_in_place(gradient[i], codes[i], True)
