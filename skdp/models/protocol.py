"""What plans ask of a model, in scaled units and with weights of classes.

A row ``x`` is multiplied by ``min(1 / R, 1 / |x|)`` where ``R`` is the public bound `data_norm`, so
that it has norm at most 1. Weights ``u`` of the scaled problem are ``u / R`` in the user's units;
the scores, and hence the losses, are the same in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class ScaledUnits:
    """Conversion of the user's numbers, in units of the features, to scaled units.

    Examples
    --------
    >>> from skdp.models import ScaledUnits
    >>> units = ScaledUnits(data_norm=10.0)
    >>> units.weight(0.3), units.feature(5.0), units.learning_rate(units.step(0.5))
    (3.0, 0.5, 0.5)
    """

    data_norm: float = 1.0  # the bound R on the norm of a row

    def penalty(self, alpha: float) -> float:
        """Return the penalty on scaled weights that equals `alpha` on the user's."""
        return alpha / self.data_norm**2

    def step(self, learning_rate: float) -> float:
        """Return the step size on scaled weights that equals one on the user's."""
        return learning_rate * self.data_norm**2

    def learning_rate(self, step: float) -> float:
        """Return the user's step size that equals one on scaled weights."""
        return step / self.data_norm**2

    def weight(self, length: float) -> float:
        """Return the length of scaled weights that equals one of the user's."""
        return length * self.data_norm

    def gradient(self, norm: float) -> float:
        """Return the norm of a scaled gradient that equals one of the user's."""
        return norm / self.data_norm

    def feature(self, value: float) -> float:
        """Return the value of a scaled feature that equals one of the user's."""
        return value / self.data_norm


Weights = NDArray[np.float64]
Index = NDArray[np.int64] | None  # numbers of rows; None for all


class Problem(Protocol):
    """A model, or one of its parts, bound to rows; nothing it returns may leave without noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.models import LinearModel
    >>> loss = LogisticLoss()
    >>> model = LinearModel(loss, n_rows=2, n_features=2, n_outputs=1, intercept_value=0.0)
    >>> (problem,) = model.bind(np.array([[0.6, 0.8], [0.6, 0.8]]), np.array([1, 1]))
    >>> total = np.zeros(2)
    >>> problem.sum_clipped(np.zeros(2), None, clip=0.1, out=total)
    >>> total.round(6)  # two gradients of norm 0.5, each cut to 0.1
    array([-0.12, -0.16])
    """

    @property
    def rows(self) -> Any:
        """What it is bound to, of which `row_weight` is checked; None where nothing has weights."""

    @property
    def run_steps(self) -> Callable[..., None] | None:
        """Take many noisy steps in one call; None where they have to be taken one by one."""

    def sum_clipped(self, weights: Weights, index: Index, clip: float, out: Weights) -> int | None:
        """Add to ``out`` the gradients of the rows ``index`` (None: all), each cut to ``clip``.

        Returned is how many were no longer than that before, if the model counts them.
        """

    def sum_losses(self, weights: Weights) -> float:
        """Return the sum of the losses of all rows."""


class Model(Protocol):
    """The public side of what a plan trains, in scaled units.

    Weights are those of `n_parts` problems, one after the other, and start at zero: a model adds a
    public start of its own. Constants hold for one record's gradient with respect to all, infinite
    where nothing is proved; `facts` name what is: "linear", "convex", "Lipschitz", "smooth";
    "Lipschitz in a ball" of weights, by `zero_out_gap`; "counts cut gradients" of its problems;
    "network" if there are hidden layers, of the sizes `hidden`. Nothing has a default: plans refuse
    a model that leaves something out.

    Examples
    --------
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.models import LinearModel, Model
    >>> def largest_gap(model: Model) -> float:  # all that a plan needs to know
    ...     return model.gradient_gap(weight_norm=0.0) / model.n_parts
    >>> loss = LogisticLoss()
    >>> model = LinearModel(loss, n_rows=100, n_features=4, n_outputs=1, intercept_value=0.0)
    >>> round(largest_gap(model), 6)
    1.0
    """

    @property
    def units(self) -> ScaledUnits:
        """What a unit of the scaled problem is in the user's."""

    @property
    def facts(self) -> frozenset[str]:
        """What theorems may rest on."""

    @property
    def name(self) -> str:
        """What messages call the loss."""

    @property
    def n_parts(self) -> int:
        """Number of problems solved side by side."""

    @property
    def heaviest(self) -> float:
        """Bound on the total weight of one unit's rows; constants contain it."""

    @property
    def by_unit(self) -> bool:
        """Whether a record is all rows of an id, and not one row."""

    @property
    def rows_per_unit(self) -> int:
        """Public number of rows that are used of each unit at most, where proofs rest on it."""

    @property
    def class_weights(self) -> tuple[float, ...] | None:
        """Public weights of the labels, which `heaviest` contains; None for none."""

    @property
    def n_outputs(self) -> int:
        """Number of scores that a row gets: 1 for two classes and for numbers."""

    @property
    def n_weights(self) -> int:
        """Length of the whole weight vector."""

    @property
    def public_gradient(self) -> Callable[[Weights], Weights] | None:
        """What is added to noisy mean gradients, by the weights of a part; None if nothing is."""

    @property
    def lipschitz(self) -> float:
        """Bound on the norm of one record's gradient."""

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of one record's gradient."""

    def gradient_gap(self, weight_norm: float | None = None) -> float:
        """Return a bound on the distance of two records' gradients at weights up to that norm."""

    def zero_out_gap(self, weight_norm: float | None = None) -> float:
        """Return a bound on the norm of one record's gradient at weights up to that norm."""

    def minimiser_norm(self, penalty: float) -> float:
        """Return a bound on the norm of the weights of each part that minimise its objective."""

    # A model that takes weights of rows binds `row_weight` and `n_units` as well.
    def bind(self, X: Any, targets: NDArray[Any]) -> Sequence[Problem]:
        """Return the problems of a table, one for each part."""

    def unpack(self, weights: Weights) -> tuple[Weights, ...]:
        """Return the weights in the user's units, as estimators publish them."""

    def scores(self, X: Any, *unpacked: Weights) -> Weights:
        """Return the scores of rows by such weights: one column for two classes, or for numbers."""


_ASKED = ("by_unit", "rows_per_unit", "class_weights", "n_outputs", "public_gradient")


def refuse_unstated(thing: Any, *facts: str) -> None:
    """Refuse a model or a plan that leaves facts out: none of them has a default."""
    unstated = [fact for fact in facts if not hasattr(thing, fact)]
    if unstated:
        raise TypeError(
            f"{type(thing).__name__} does not state {', '.join(unstated)}, and nothing is guessed."
        )


def require(model: Model, method: str, *wanted: str) -> None:
    """Refuse a model without the facts that a method's theorem rests on, or of no sound shape.

    Examples
    --------
    >>> from skdp.losses import SoftmaxLoss
    >>> from skdp.models import NetworkModel, require
    >>> model = NetworkModel(SoftmaxLoss(3), n_rows=100, n_features=4, n_outputs=3, hidden=(8,))
    >>> require(model, "output perturbation", "convex", "Lipschitz")
    Traceback (most recent call last):
        ...
    ValueError: output perturbation is proved for losses that are convex, Lipschitz, ...
    """
    refuse_unstated(model, *_ASKED)
    bounds = {"Lipschitz": model.lipschitz, "smooth": model.smoothness}
    missing = [
        fact
        for fact in wanted
        if fact not in model.facts or not 0.0 <= bounds.get(fact, 0.0) < math.inf
    ]
    if missing:
        asked = ", ".join(fact for fact in wanted if fact != "linear")
        raise ValueError(
            f"{method} is proved for {'linear models with ' if 'linear' in wanted else ''}losses "
            f"that are {asked}, with public constants; {model.name} is not {', '.join(missing)}."
        )
    if model.n_parts < 1 or model.n_weights < 1 or model.n_weights % model.n_parts:
        raise ValueError(
            f"{model.name}: n_weights={model.n_weights} cannot be shared out evenly among "
            f"n_parts={model.n_parts}."
        )


def with_class_weights(model: Any, class_weights: Sequence[float]) -> Any:
    """Return a model with weights in the order of the label set; the largest enters its bounds.

    Examples
    --------
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.models import LinearModel, with_class_weights
    >>> loss = LogisticLoss()
    >>> model = LinearModel(loss, n_rows=100, n_features=4, n_outputs=1, intercept_value=0.0)
    >>> round(with_class_weights(model, (1.0, 3.0)).lipschitz / model.lipschitz, 6)
    3.0
    """
    heaviest = model.heaviest * max(class_weights)
    return replace(model, class_weights=tuple(class_weights), heaviest=heaviest)


def weigh_rows(
    class_weights: tuple[float, ...] | None, codes: NDArray[Any], row_weight: ArrayLike | None
) -> ArrayLike | None:
    """Return the weights of rows, each times that of its own class."""
    if class_weights is None:
        return row_weight
    of_class = np.array(class_weights)[codes]
    return of_class if row_weight is None else of_class * np.asarray(row_weight)
