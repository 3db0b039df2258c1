"""The protocol of models for plans, in scaled units, and class weights.

A row ``x`` is multiplied by ``min(1 / R, 1 / |x|)`` and then has norm at most 1. ``R`` is the
public bound `data_norm`. Weights ``u`` of the scaled problem are ``u / R`` in the user's units;
scores and losses are the same in both.
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
        """Convert a penalty `alpha` to scaled weights."""
        return alpha / self.data_norm**2

    def step(self, learning_rate: float) -> float:
        """Convert a step size to scaled weights."""
        return learning_rate * self.data_norm**2

    def learning_rate(self, step: float) -> float:
        """Convert a step size on scaled weights to the user's units."""
        return step / self.data_norm**2

    def weight(self, length: float) -> float:
        """Convert a length of weights to scaled units."""
        return length * self.data_norm

    def gradient(self, norm: float) -> float:
        """Convert the norm of a gradient to scaled units."""
        return norm / self.data_norm

    def feature(self, value: float) -> float:
        """Convert the value of a feature to scaled units."""
        return value / self.data_norm


Weights = NDArray[np.float64]
Index = NDArray[np.int64] | None  # row numbers; None for all


class Problem(Protocol):
    """A model, or one of its parts, bound to rows; its results must not be released without noise.

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
    >>> total.round(6)  # two gradients of norm 0.5, each clipped to 0.1
    array([-0.12, -0.16])
    """

    @property
    def rows(self) -> Any:
        """The bound rows, to check `row_weight`; None without weights."""

    @property
    def run_steps(self) -> Callable[..., None] | None:
        """Take many noisy steps in one call; None if they must be taken one by one."""

    def sum_clipped(self, weights: Weights, index: Index, clip: float, out: Weights) -> int | None:
        """Add to ``out`` the gradients of the rows ``index`` (None: all), each clipped to ``clip``.

        Return the number of gradients that were no longer than that before, if counted.
        """

    def sum_losses(self, weights: Weights) -> float:
        """Return the sum of the losses of all rows."""


class Model(Protocol):
    """The public side of a model that a plan trains, in scaled units.

    Weights are those of `n_parts` problems, one after the other, and start at zero; a model may add
    a public start. Constants are for one record's gradient in all weights, and infinite if nothing
    is proved. `facts` name proved properties:

    - "linear", "convex", "Lipschitz", "smooth";
    - "Lipschitz in a ball" of weights, by `zero_out_gap`;
    - "counts cut gradients", for its problems;
    - "network" with hidden layers, of the sizes `hidden`.

    There are no defaults: plans refuse a model without one of these attributes.

    Examples
    --------
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.models import LinearModel, Model
    >>> def largest_gap(model: Model) -> float:  # a plan needs no more
    ...     return model.gradient_gap(weight_norm=0.0) / model.n_parts
    >>> loss = LogisticLoss()
    >>> model = LinearModel(loss, n_rows=100, n_features=4, n_outputs=1, intercept_value=0.0)
    >>> round(largest_gap(model), 6)
    1.0
    """

    @property
    def units(self) -> ScaledUnits:
        """Conversion between scaled units and the user's units."""

    @property
    def facts(self) -> frozenset[str]:
        """Properties that theorems may use."""

    @property
    def name(self) -> str:
        """Name of the loss in messages."""

    @property
    def n_parts(self) -> int:
        """Number of problems solved together."""

    @property
    def heaviest(self) -> float:
        """Upper bound on the total weight of one unit's rows; included in constants."""

    @property
    def by_unit(self) -> bool:
        """Whether a record is all rows of an id, not one row."""

    @property
    def rows_per_unit(self) -> int:
        """Maximum number of rows used per unit, for proofs that depend on it."""

    @property
    def class_weights(self) -> tuple[float, ...] | None:
        """Public weights of the labels, included in `heaviest`; None without weights."""

    @property
    def n_outputs(self) -> int:
        """Number of scores per row: 1 for two classes and for regression."""

    @property
    def n_weights(self) -> int:
        """Length of the complete weight vector."""

    @property
    def public_gradient(self) -> Callable[[Weights], Weights] | None:
        """Function of a part's weights that is added to noisy mean gradients, or None."""

    @property
    def lipschitz(self) -> float:
        """Bound on the norm of one record's gradient."""

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of one record's gradient."""

    def gradient_gap(self, weight_norm: float | None = None) -> float:
        """Bound the distance between two records' gradients, at weights up to that norm."""

    def zero_out_gap(self, weight_norm: float | None = None) -> float:
        """Bound the norm of one record's gradient, at weights up to that norm."""

    def minimiser_norm(self, penalty: float) -> float:
        """Bound the norm of the minimising weights of each part."""

    # A model with row weights also binds `row_weight` and `n_units`.
    def bind(self, X: Any, targets: NDArray[Any]) -> Sequence[Problem]:
        """Return the problems of a table, one per part."""

    def unpack(self, weights: Weights) -> tuple[Weights, ...]:
        """Return the weights in the user's units, as estimators publish them."""

    def scores(self, X: Any, *unpacked: Weights) -> Weights:
        """Return the scores of rows: one column for two classes or regression."""


_ASKED = ("by_unit", "rows_per_unit", "class_weights", "n_outputs", "public_gradient")


def refuse_unstated(thing: Any, *facts: str) -> None:
    """Refuse a model or a plan without one of the facts."""
    unstated = [fact for fact in facts if not hasattr(thing, fact)]
    if unstated:
        raise TypeError(
            f"{type(thing).__name__} must define {', '.join(unstated)}; there are no defaults."
        )


def require(model: Model, method: str, *wanted: str) -> None:
    """Refuse a model without the facts that a method's theorem needs, or with an invalid shape.

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
            f"{model.name}: n_weights={model.n_weights} must be a multiple of "
            f"n_parts={model.n_parts}."
        )


def with_class_weights(model: Any, class_weights: Sequence[float]) -> Any:
    """Return a model with label weights in the order of the label set.

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
    """Return row weights, each multiplied by the weight of its class."""
    if class_weights is None:
        return row_weight
    of_class = np.array(class_weights)[codes]
    return of_class if row_weight is None else of_class * np.asarray(row_weight)
