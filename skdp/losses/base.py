"""Base classes of losses: the constants that determine sensitivities."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, lambertw

# Relative excess allowed in a certified supremum; it costs as much extra noise, no more.
_EXCESS = 1e-8
# Cells have the width of a rounding by then; whatever their number, they bound the supremum.
_HALVINGS = 100
# Margins at which slopes are looked for.
_FARTHEST = 1e9
# Covers the rounding of exp, sin and cos in the evaluation of a bound.
ROUND_UP = 1.0 + 1e-14


def logistic_gradient_gap(weight_norm: float) -> float:
    """Return an upper bound on the difference of two logistic gradients in the unit ball."""
    # For weights of norm at most W it is the largest of 2 cos(t) sigma(W sin t), 0 <= t <= pi/2. On
    # a cell [a, b] that is at most 2 cos(a) sigma(W sin b); cells are halved until the largest of
    # these bounds exceeds a value that is attained by at most a relative 1e-8.
    if not math.isfinite(weight_norm):
        return 2.0
    # Geometric edges: the maximiser lies near log(W)/W when W is large.
    edges = np.concatenate([[0.0], np.geomspace(1e-12, math.pi / 2, 400)])
    left, right = edges[:-1], edges[1:]
    for _ in range(_HALVINGS):
        upper = 2.0 * np.cos(left) * expit(weight_norm * np.sin(right))
        attained = 2.0 * np.cos(left) * expit(weight_norm * np.sin(left))
        best = float(attained.max())
        if upper.max() <= best * (1.0 + _EXCESS):
            break
        alive = upper > best * (1.0 + 0.5 * _EXCESS)
        left, right = left[alive], right[alive]
        middle = 0.5 * (left + right)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return min(2.0, float(upper.max()) * ROUND_UP)


def lambert_over_e(count: float) -> float:
    """Return W_0(count / e) rounded up: the maximum of ``count*d*e^-d / (1 + count*e^-d)``."""
    return float(lambertw(count / math.e).real) * ROUND_UP


# Labels -1 and +1, positions in the label set, or numbers within public bounds.
TargetKind = Literal["signs", "codes", "real"]


class Loss(ABC):
    """Base of all losses; facts that a theorem may use have no default to inherit.

    Constants are functions of a public bound on the norm of every (augmented) row. They never
    change and exclude the regulariser, which does not depend on the data.
    """

    n_outputs: int = 1
    target_kind: ClassVar[TargetKind]
    # -1 for a loss that never rises with its margin, 1 for one that never falls, 0 for any other.
    slope_sign: Any = 0
    # Of losses of one score: slopes to the less steep side are at most this share of the largest,
    # in the sense of `opposite` of `ObjectivePerturbationEvent`.
    opposite: Any = 1.0
    # Targets of real losses are clipped to this size before constants are asked for.
    largest_target: float = math.inf

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__}.{name} cannot be set: sensitivities depend on it."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # in records: of those without parameters

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Whether the second derivative is non-negative everywhere."""

    @abstractmethod
    def lipschitz(self, row_norm: float) -> float:
        """Return a bound on the norm of one record's gradient."""

    @abstractmethod
    def smoothness(self, row_norm: float) -> float:
        """Return the Lipschitz constant of one record's gradient."""

    @abstractmethod
    def minimiser_norm_bound(self, row_norm: float, penalty: float) -> float:
        """Return a bound on the norm of the minimiser that no data set exceeds, penalty > 0."""

    @property
    def slope_law(self) -> str:
        """Facts about the slope of one score that the theorem of objective perturbation may use."""
        return "known-sign" if self.slope_sign else "any-sign"

    def zero_out_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return a bound on the norm of one record's gradient at weights up to a public norm."""
        return self.lipschitz(row_norm)

    def gradient_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return a bound on the distance of two records' gradients at the same such weights."""
        return 2.0 * self.zero_out_gap(row_norm, weight_norm_bound)

    def smoother_losses(self) -> tuple[Any, ...]:
        """Return easier losses; their minimisers, in order, are starting points for this loss."""
        return ()

    # Kernels compute a loss by what its method `scalar_functions` returns: `ScalarFunctions` of
    # `losses/scalar.py`, and its numbers. Where `clip` is finite they cut gradients to that norm.

    clip: float = math.inf
    # Largest weight of a record. Constants contain it, and kernels are given weights beside rows.
    heaviest: Any = 1.0

    @property
    def unweighted(self) -> Loss:
        """The same loss where all weights are 1."""
        return self

    @property
    def part(self) -> Loss:
        """Loss of one problem, where several are solved side by side."""
        return self

    @property
    def kernel_loss(self) -> Loss:
        """The loss whose scalar functions kernels are given."""
        return self


def kernel_arguments(loss: Loss) -> tuple[Any, tuple[float, ...]]:
    """Return a loss as kernels take it; refuse one that names no scalar functions itself.

    Subclasses of a loss with a kernel are different losses that inherit constants of the base.
    """
    known = loss.kernel_loss
    culprit = known if _who_defines(known, "scalar_functions") != [type(known)] else None
    if known is not loss and (
        _who_defines(loss, "kernel_loss") != [type(loss)] or _who_defines(loss, "scalar_functions")
    ):
        culprit = loss
    if culprit is not None:
        raise TypeError(
            f"{type(culprit).__name__} has no compiled kernel: its class must define the method "
            "`scalar_functions`, and must not be a subclass of a loss that defines it."
        )
    functions, *numbers = known.scalar_functions()  # type: ignore[attr-defined]
    # Kernels take the number of scores from here, and the length of weights from the loss.
    if tuple(numbers if functions.family == "softmax" else (1,)) != (loss.n_outputs,):
        raise ValueError(
            f"{type(loss).__name__} has n_outputs={loss.n_outputs}, which is not what its "
            f"{functions.family} functions compute."
        )
    return functions, tuple(map(float, numbers))


def functions_named(name: str, *numbers: str) -> Callable[[Any], tuple[Any, ...]]:
    """Return a loss's method `scalar_functions`, from names and its constants."""

    def scalar_functions(loss: Any) -> tuple[Any, ...]:
        """Return the functions that kernels compute, and their numbers."""
        from skdp.losses import scalar  # whose import takes a second

        return getattr(scalar, name), *(getattr(loss, number) for number in numbers)

    return scalar_functions


def norm_of_minimiser(product: float, lipschitz: float, penalty: float) -> float:
    """Bound ||w|| where ``penalty ||w||^2 <= product`` and ``penalty ||w|| <= lipschitz``."""
    if not penalty > 0:
        raise ValueError(f"penalty must be positive for a minimiser to exist, got {penalty}.")
    return min(math.sqrt(product / penalty), lipschitz / penalty) * ROUND_UP


def check_n_classes(n_classes: int) -> None:
    """Refuse values that are not a number of classes."""
    if not isinstance(n_classes, Integral) or n_classes < 2:
        raise ValueError(f"n_classes must be an integer of at least 2, got {n_classes}.")


def _who_defines(loss: Loss, name: str) -> list[type]:
    return [cls for cls in type(loss).__mro__ if name in vars(cls) and cls is not Loss]


def evaluate(
    loss: Loss, order: int, scores: ArrayLike, targets: ArrayLike = 1.0
) -> NDArray[np.float64]:
    """Return the loss of each score, or its derivative in the score of the given ``order``."""
    functions, numbers = kernel_arguments(loss)
    from skdp.losses.scalar import evaluate_slopes

    at = np.asarray(scores, dtype=np.float64)
    labels = np.array(np.broadcast_to(np.asarray(targets, dtype=np.float64), at.shape), order="C")
    signed, out = functions.family == "margin", np.empty(at.shape)
    entries = np.array(at * labels if signed else at, order="C")
    tag = functions.orders[order].tag
    evaluate_slopes(tag, numbers, entries.reshape(-1), labels.reshape(-1), out.reshape(-1))
    return out * labels if signed and order == 1 else out


class ScoreLoss(Loss):
    """Base of losses of one score, whose constants follow from those of a scalar function."""

    @property
    @abstractmethod
    def largest_slope(self) -> float:
        """Supremum of the size of the derivative; infinite if there is none."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """Lipschitz constant of the derivative; infinite if there is none."""

    def product_bound(self) -> float:
        """Return a bound kappa on ``-s * derivative(s)`` over all scores and targets.

        A finite one makes bounds on minimisers smaller.
        """
        return math.inf

    def lipschitz(self, row_norm: float) -> float:
        """Return a bound on the norm of one record's gradient, for rows of norm <= ``row_norm``."""
        return self.largest_slope * row_norm

    def smoothness(self, row_norm: float) -> float:
        """Return the Lipschitz constant of one record's gradient."""
        return self.curvature * row_norm * row_norm

    def minimiser_norm_bound(self, row_norm: float, penalty: float) -> float:
        """Return a bound on the norm of the regularised minimiser that no data set exceeds.

        There penalty ||w||^2 = mean(-s l'(s)) <= kappa, and penalty ||w|| <= L.
        """
        return norm_of_minimiser(self.product_bound(), self.lipschitz(row_norm), penalty)


class MarginLoss(ScoreLoss):
    """Base of losses that depend on the margin m = t * score, with labels t in {-1, +1}.

    Subclasses state the facts below, from which all constants follow.
    """

    target_kind: ClassVar[TargetKind] = "signs"
    # Whether the derivative is a line between two constants, as that of the clipped loss then is.
    piecewise_quadratic: bool = False

    @property
    @abstractmethod
    def slope_sign(self) -> int:
        """-1 for a loss that never rises, 1 for one that never falls, 0 for any other."""

    def margin_of_slope(self, slopes: ArrayLike) -> NDArray[np.float64]:
        """Return the margin at which the derivative is minus each of the positive ``slopes``.

        This halves an interval, for losses that never rise; a formula is faster.
        """
        wanted = np.asarray(slopes, dtype=np.float64)
        low, high = np.full(wanted.shape, -_FARTHEST), np.full(wanted.shape, _FARTHEST)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            steep = -self.derivative(middle) > wanted
            low, high = np.where(steep, middle, low), np.where(steep, high, middle)
        return 0.5 * (low + high)

    def value(self, margins: ArrayLike) -> NDArray[np.float64]:
        """Return the loss at each margin, in float64."""
        return evaluate(self, 0, margins)

    def derivative(self, margins: ArrayLike) -> NDArray[np.float64]:
        """Return the derivative with respect to the margin."""
        return evaluate(self, 1, margins)

    def second_derivative(self, margins: ArrayLike) -> NDArray[np.float64]:
        """Return the (generalised) second derivative."""
        return evaluate(self, 2, margins)

    def largest_curvature(self, cap: float) -> float:
        """Bound the second derivative where the slope is at most ``cap``, in (0, largest_slope]."""
        return self.curvature


# Public scores and targets at which the facts of a loss are tried.
_SCORES = np.concatenate([np.linspace(-12.0, 12.0, 4801), [-1e4, -300.0, -40.0, 40.0, 300.0, 1e4]])
_TARGETS = np.linspace(-1.0, 1.0, 5)
_TOLERANCE = 1e-7


def check_loss(loss: Any, kind: Any) -> None:
    """Refuse a loss of another kind, without kernel, or exceeding its constants."""
    name = type(loss).__name__
    if not isinstance(loss, kind):
        raise TypeError(f"loss must be an object of a class of {kind.__name__}, got {name}.")
    functions, _ = kernel_arguments(loss)
    itself = loss.part is loss and loss.unweighted is loss and loss.kernel_loss is loss
    if not (itself and loss.clip == math.inf and loss.heaviest == 1.0):
        raise TypeError(f"{name} clips or weights records, or wraps another loss. Give that loss.")
    margins = loss.target_kind == "signs"
    if margins != issubclass(kind, MarginLoss) or margins != (functions.family == "margin"):
        raise TypeError(
            f"{name} is no loss of {'margins' if issubclass(kind, MarginLoss) else 'numbers'}: "
            f"target_kind={loss.target_kind!r}, its functions are of a {functions.family}."
        )
    if not margins and loss.largest_target < 1.0:
        raise ValueError(f"{name} takes targets up to {loss.largest_target:g}; 1 is needed.")
    if type(loss).__module__.startswith("skdp."):
        return
    slopes, curvatures = (
        np.stack([evaluate(loss, order, _SCORES, t) for t in ((1.0,) if margins else _TARGETS)])
        for order in (1, 2)
    )
    for fact, wrong in _exceeded(loss, slopes, curvatures):
        if np.any(wrong):
            at = _SCORES[np.argwhere(np.atleast_2d(wrong))[0][-1]]
            where = f", for example at {at:g}" if np.ndim(wrong) else ""
            raise ValueError(f"{name} states {fact}, which its functions exceed{where}.")


def _exceeded(
    loss: Any, slopes: NDArray[np.float64], curvatures: NDArray[np.float64]
) -> Iterator[tuple[str, Any]]:
    """Yield each stated constant, and whether one of the scores exceeds it."""
    most, bend, sign = loss.largest_slope, loss.curvature, loss.slope_sign
    sizes, slack = np.abs(slopes), 1.0 + _TOLERANCE
    steps = np.diff(slopes, axis=1, prepend=slopes[:, :1])
    # Scores are in order up to the last, which lie beyond both ends.
    steps[:, -6:] = 0.0
    runs = np.diff(_SCORES, prepend=_SCORES[0] - 1.0)
    yield f"largest_slope={most:g}", ~(sizes <= most * slack)
    yield f"slope_sign={sign}", (slopes * sign < -_TOLERANCE) if sign else False
    yield f"curvature={bend:g}", ~(np.maximum(curvatures, steps / runs) <= bend * slack)
    if loss.convex:
        yield "convex=True", np.minimum(curvatures, steps) < -_TOLERANCE
    else:
        yield f"curvature={bend:g}", ~(np.maximum(-curvatures, -steps / runs) <= bend * slack)
    products = -_SCORES * slopes
    yield "product_bound", ~(products <= loss.product_bound() * slack + _TOLERANCE)
    spans = slopes.max(axis=1) - slopes.min(axis=1)
    yield f"opposite={loss.opposite:g}", np.max(spans) > (1.0 + loss.opposite) * most * slack
    if loss.slope_law == "logistic":
        yield "slope_law='logistic'", ~(curvatures <= sizes * (1.0 - sizes) + _TOLERANCE)
    elif loss.slope_law == "known-sign":
        yield "slope_law='known-sign'", sign == 0
    for norm in (0.5, 2.0):
        yield "lipschitz", ~(norm * sizes <= loss.lipschitz(norm) * slack)
        yield "smoothness", ~(norm * norm * curvatures <= loss.smoothness(norm) * slack)
        for penalty in (0.01, 1.0) if loss.convex else ():
            # The minimiser of one record's loss lies beyond scores that the loss still pulls on.
            pulled = np.abs(_SCORES) * penalty / norm**2 <= -np.sign(_SCORES) * slopes
            far = np.abs(_SCORES) / norm * pulled
            yield "minimiser_norm_bound", ~(far <= loss.minimiser_norm_bound(norm, penalty) * slack)
        # One record at the end of a ball, and another: slopes at the scores that these reach.
        for ball in (0.5, 5.0):
            near = np.abs(_SCORES) <= ball * norm
            reached = norm * sizes[:, near]
            yield "zero_out_gap", ~(reached.max() <= loss.zero_out_gap(norm, ball) * slack)
            moved = _SCORES[near] / ball * slopes[:, near]  # by rows along the weights
            yield "gradient_gap", ~(np.ptp(moved) <= loss.gradient_gap(norm, ball) * slack)
    for cap in (0.1 * most, 0.5 * most) if isinstance(loss, MarginLoss) else ():
        bent = np.where(sizes <= cap, curvatures, 0.0)
        yield "largest_curvature", ~(bent <= loss.largest_curvature(cap) * slack)
