"""Linear models, and Gaussian posteriors over their weights.

Rows are in scaled units, and an intercept adds a column of constant value ``s``. Weights ``u`` of
the scaled problem give ``coef = u / R`` and ``intercept = s * u_last``.

In the variational model, weights have means m and precisions ``tau + n c``. tau is the prior's
precision, and c the mean curvature ``E[l''] x^2`` of the rows at the optimum. Training covers m
and, from a public start, a multiple of ``-c``; its natural gradient is that of the evidence bound
in the variances. The gradients of a row are ``E[l'] x`` and ``E[l''] x^2 / 2``. These are
expectations over the normal margin, as with infinitely many samples of the weights
(``docs/proofs/variational.md``, section 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.base.parameters import cached_property
from skdp.losses.base import Loss, kernel_arguments
from skdp.losses.wrapped import with_weights
from skdp.models.protocol import Index, ScaledUnits, Weights, weigh_rows
from skdp.solvers import (
    LayerSums,
    RegularisedObjective,
    Rows,
    run_steps,
    sum_expected_gradients,
    sum_gradients,
    wide_sums,
)

# Row norms are at most 1 up to a few rounding errors; every bound below includes this margin.
_ROUNDING = 1.0 + 1e-12


@dataclass(frozen=True)
class LinearProblem:
    """A loss of linear scores on the rows of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.models import LinearModel
    >>> loss = LogisticLoss()
    >>> model = LinearModel(loss, n_rows=2, n_features=2, n_outputs=1, intercept_value=0.0)
    >>> (problem,) = model.bind(np.array([[0.6, 0.8], [3.0, 4.0]]), np.array([0, 1]))
    >>> round(problem.sum_losses(np.zeros(2)), 4)  # 2 log 2
    1.3863
    """

    rows: Rows
    loss: Loss

    @cached_property
    def _wide(self) -> LayerSums | None:
        return wide_sums(self.rows, self.loss)

    def sum_clipped(self, weights: Weights, index: Index, clip: float, out: Weights) -> None:
        """Add to ``out`` the gradients of rows ``index`` (None: all), each clipped to ``clip``."""
        if self._wide is not None:
            self._wide.add(weights, out, index, clip)
        else:
            sum_gradients(self.rows, self.loss, weights, out, index, clip)

    def sum_losses(self, weights: Weights) -> float:
        """Return the sum of the losses of all rows."""
        if self._wide is not None:
            return self._wide.add(weights, None, values=True)[1]
        unused = np.zeros_like(weights)
        return sum_gradients(self.rows, self.loss, weights, unused, values=True)

    @property
    def run_steps(self) -> Callable[..., None] | None:
        """Take many noisy steps in one compiled loop; see :func:`skdp.solvers.run_steps`."""
        return None if self._wide is not None else partial(run_steps, self.rows, self.loss)

    def objective(self, penalty: float, tilt: Weights | None = None) -> RegularisedObjective:
        """Return the mean loss plus a quadratic penalty and an optional linear term."""
        return RegularisedObjective(self.rows, self.loss, penalty, tilt)


@dataclass(frozen=True)
class LinearModel:
    """Loss and public shape of a linear model in scaled units.

    `n_outputs` is the number of scores per row: 1 for two classes, else their number.
    `intercept_value` is the value ``s`` of the constant column, 0 without intercept. `n_rows` is
    the public divisor of the mean: the number of units. `heaviest` is a public bound on the total
    weight of a unit's rows; the loss and all constants include it.

    Examples
    --------
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.models import LinearModel
    >>> loss = LogisticLoss()
    >>> model = LinearModel(loss, n_rows=100, n_features=4, n_outputs=1, intercept_value=1.0)
    >>> model.n_weights, sorted(model.facts)
    (5, ['Lipschitz', 'convex', 'linear', 'of one score', 'smooth'])
    >>> round(model.lipschitz, 6)
    1.414214
    """

    loss: Loss
    n_rows: int
    n_features: int
    n_outputs: int
    intercept_value: float
    units: ScaledUnits = field(default_factory=ScaledUnits)
    heaviest: float = 1.0
    by_unit: bool = False  # whether a record is all rows of an id
    rows_per_unit: int = 1  # public bound, for proofs of rounding errors
    class_weights: tuple[float, ...] | None = None  # included in `heaviest`

    public_gradient = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", with_weights(self.loss, self.heaviest))
        # Before any charge; solvers would refuse it only afterwards.
        kernel_arguments(self.part_loss)
        outputs = self.n_parts * self.part_loss.n_outputs
        if not self.n_outputs == self.loss.n_outputs == outputs:
            raise ValueError(
                "The number of outputs must be the same for the model, the loss and its parts, got "
                f"{self.n_outputs}, {self.loss.n_outputs} and {outputs}."
            )

    @property
    def facts(self) -> frozenset[str]:
        """Properties that theorems may use."""
        known = {
            "linear": True,
            "convex": self.loss.convex,
            "Lipschitz": math.isfinite(self.lipschitz),
            "smooth": math.isfinite(self.smoothness),
            "of one score": self.part_loss.n_outputs == 1,
            "of numbers": self.part_loss.target_kind == "real",
        }
        return frozenset(name for name, holds in known.items() if holds)

    @property
    def name(self) -> str:
        """Name of the loss in messages."""
        return type(self.part_loss.unweighted).__name__

    @property
    def part_loss(self) -> Any:
        """Loss of one problem: the binary loss if several are solved together."""
        return self.loss.part

    @property
    def n_parts(self) -> int:
        """Number of binary problems solved together; 1 except for one-vs-rest."""
        return self.n_outputs if self.part_loss is not self.loss else 1

    @property
    def row_norm(self) -> float:
        """Upper bound on the norm of a scaled row with its constant column."""
        return math.sqrt(1.0 + self.intercept_value**2) * _ROUNDING

    @property
    def n_weights_per_output(self) -> int:
        """Number of features, plus one for the intercept."""
        return self.n_features + (self.intercept_value > 0.0)

    @property
    def n_weights(self) -> int:
        """Length of the complete weight vector."""
        return self.n_outputs * self.n_weights_per_output

    @property
    def most_rows(self) -> int:
        """Public number of rows, for bounds on rounding errors."""
        return self.n_rows * self.rows_per_unit

    @property
    def lipschitz(self) -> float:
        """Bound on the norm of one record's gradient."""
        return self.loss.lipschitz(self.row_norm)

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of one record's gradient."""
        return self.loss.smoothness(self.row_norm)

    def gradient_gap(self, weight_norm: float | None = None) -> float:
        """Bound the distance between two records' gradients, at weights up to that norm."""
        return self.loss.gradient_gap(self.row_norm, weight_norm)

    def zero_out_gap(self, weight_norm: float | None = None) -> float:
        """Bound the norm of one record's gradient, at weights up to that norm."""
        return self.loss.zero_out_gap(self.row_norm, weight_norm)

    def minimiser_norm(self, penalty: float) -> float:
        """Bound the norm of the minimising weights of each part."""
        return self.part_loss.minimiser_norm_bound(self.row_norm, penalty)

    def bind(
        self,
        X: Any,
        targets: NDArray[Any],
        row_weight: ArrayLike | None = None,
        n_units: int | None = None,
    ) -> list[LinearProblem]:
        """Return the problems of a table, with targets as label positions or real numbers.

        Row weights are the same in all parts; see :class:`skdp.solvers.Rows`.
        """
        row_weight = weigh_rows(self.class_weights, targets, row_weight)
        kind = self.part_loss.target_kind
        each = [targets]
        if kind == "real":
            most = self.part_loss.largest_target
            each = [np.clip(targets, -most, most)]
        elif kind == "signs":
            labels = range(self.n_parts) if self.n_parts > 1 else [1]
            each = [np.where(targets == label, np.int8(1), np.int8(-1)) for label in labels]
        shape = (self.units.data_norm, self.intercept_value, kind, row_weight, n_units)
        rows = Rows.from_matrix(X, each[0], *shape)
        parts = [rows, *(rows.with_targets(other, kind) for other in each[1:])]
        return [LinearProblem(part, self.part_loss) for part in parts]

    def unpack(self, weights: Weights) -> tuple[Weights, Weights]:
        """Return coefficients (n_outputs, n_features) and intercepts in the user's units."""
        table = weights.reshape(self.n_outputs, self.n_weights_per_output)
        coef = table[:, : self.n_features] / self.units.data_norm
        if self.intercept_value > 0.0:
            return coef, table[:, -1] * self.intercept_value
        return coef, np.zeros(self.n_outputs)

    @staticmethod
    def scores(X: Any, *unpacked: Weights) -> Weights:
        """Return the scores of rows, one column per output."""
        coef, intercept = unpacked
        return np.asarray(X @ coef.T) + intercept


# Factor of gradients in the variances before joint clipping and equal noise.
CURVATURE_GAIN = 3.0


def _of_linear(name: str) -> Any:
    return property(lambda self: getattr(self.linear, name), doc=f"`{name}` of the linear model.")


@dataclass(frozen=True)
class VariationalModel:
    """Means and mean curvatures of weights, based on a linear model with rows and units.

    Examples
    --------
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.models import LinearModel, VariationalModel
    >>> loss = LogisticLoss()
    >>> linear = LinearModel(loss, n_rows=100, n_features=4, n_outputs=1, intercept_value=1.0)
    >>> model = VariationalModel(linear, prior_precision=1.0, pace=0.1)
    >>> model.n_weights  # a mean and a curvature of each
    10
    """

    linear: LinearModel
    prior_precision: float  # of scaled weights
    pace: float  # the share of the curvatures' error that a step of size 1 removes

    facts = frozenset({"linear"})
    heaviest = 1.0
    class_weights = None
    by_unit = _of_linear("by_unit")
    rows_per_unit = _of_linear("rows_per_unit")
    units = _of_linear("units")
    n_features = _of_linear("n_features")
    n_outputs = _of_linear("n_outputs")
    n_parts = _of_linear("n_parts")
    n_weights_per_output = _of_linear("n_weights_per_output")  # also of curvatures
    smoothness = _of_linear("smoothness")  # in the means at given variances

    @property
    def name(self) -> str:
        """Name of the loss in messages."""
        return f"a Gaussian posterior with {self.linear.name}"

    @property
    def n_weights(self) -> int:
        """Length of the vector of all means and curvatures."""
        return 2 * self.linear.n_weights

    @property
    def lipschitz(self) -> float:
        """Bound on the norm of one record's gradient."""
        norm = self.linear.row_norm
        return self.linear.lipschitz * math.hypot(1.0, 0.25 * CURVATURE_GAIN * norm)

    @property
    def _start(self) -> float:
        """Public initial curvature: rows of norm 1 with equal entries, at scores zero."""
        return 0.25 / self.n_weights_per_output

    @property
    def curvature_unit(self) -> float:
        """Curvature per unit of its weight."""
        return self.pace / CURVATURE_GAIN

    def public_gradient(self, weights: Weights) -> Weights:
        """Return the public gradient, other than the penalty on all weights."""
        gradient = np.zeros_like(weights)
        half = self.n_weights_per_output
        # The prior's penalty also acts on curvatures, and is subtracted from their pace.
        rest = self.pace - self.prior_precision / self.linear.n_rows
        gradient[half:] = rest * weights[half:] - CURVATURE_GAIN * self._start
        return gradient

    def split(self, weights: Weights) -> tuple[Weights, Weights]:
        """Return means and mean curvatures, one row per part."""
        table = weights.reshape(-1, 2, self.n_weights_per_output)
        curvatures = self._start - self.curvature_unit * table[:, 1]
        # The range for exact values; noise can leave it.
        largest = 0.25 * max(1.0, self.linear.intercept_value**2)
        return table[:, 0], np.clip(curvatures, 0.0, largest)

    def variances(self, curvatures: Weights) -> Weights:
        """Return the variances of the posterior."""
        return 1.0 / (self.prior_precision + self.linear.n_rows * curvatures)

    def bind(self, X: Any, targets: NDArray[Any]) -> list[VariationalProblem]:
        """Return the problems of a table; targets are positions in the label set."""
        parts: list[LinearProblem] = self.linear.bind(X, targets)
        return [VariationalProblem(self, part.rows) for part in parts]

    def unpack(self, weights: Weights) -> tuple[Weights, ...]:
        """Return coefficients, intercepts and standard deviations of both, in the user's units."""
        means, curvatures = self.split(weights)
        return self.in_user_units(means, np.sqrt(self.variances(curvatures)))

    def in_user_units(self, means: Weights, deviations: Weights) -> tuple[Weights, ...]:
        """Return coefficients, intercepts and standard deviations of both, in the user's units."""
        return *self.linear.unpack(means.ravel()), *self.linear.unpack(deviations.ravel())


@dataclass(frozen=True)
class VariationalProblem:
    """The expected loss of the rows of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.models import LinearModel, VariationalModel
    >>> loss = LogisticLoss()
    >>> linear = LinearModel(loss, n_rows=2, n_features=2, n_outputs=1, intercept_value=0.0)
    >>> model = VariationalModel(linear, prior_precision=1.0, pace=0.1)
    >>> (problem,) = model.bind(np.eye(2), np.array([0, 1]))
    >>> total = np.zeros(model.n_weights)
    >>> problem.sum_clipped(np.zeros(model.n_weights), None, clip=0.1, out=total)
    >>> bool(0.0 < np.linalg.norm(total) <= 2 * 0.1 * (1.0 + 1e-9))
    True
    """

    model: VariationalModel
    rows: Rows

    run_steps = None

    def sum_clipped(self, weights: Weights, index: Index, clip: float, out: Weights) -> None:
        """Add to ``out`` the gradients of rows ``index`` (None: all), each clipped to ``clip``."""
        (means,), curvatures = self.model.split(weights)
        variances = self.model.variances(curvatures)[0]
        sum_expected_gradients(self.rows, means, variances, out, index, clip, CURVATURE_GAIN)
