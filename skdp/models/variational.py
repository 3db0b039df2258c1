"""A Gaussian posterior with independent weights, of linear models with logistic loss.

Weights have means m and precisions ``tau + n c``: tau is the prior's, and c is the mean curvature
``E[l''] x^2`` of the rows at the optimum. Trained are m and, from a public start, a multiple of
``-c``, whose natural gradient is that of the evidence bound in the variances. Of a row they are
``E[l'] x`` and ``E[l''] x^2 / 2``, expectations over the margin, which is normal: the same as with
infinitely many draws of the weights (``docs/proofs/variational.md``, section 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.models.linear import LinearModel, LinearProblem
from skdp.models.protocol import Index, Weights
from skdp.solvers import Rows, sum_expected_gradients

# What gradients in the variances are multiplied by before both are cut and get the same noise.
CURVATURE_GAIN = 3.0


def _of_linear(name: str) -> Any:
    return property(lambda self: getattr(self.linear, name), doc=f"`{name}` of the linear model.")


@dataclass(frozen=True)
class VariationalModel:
    """Means and mean curvatures of weights, beside a linear model that knows rows and units.

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
    pace: float  # of curvatures: the share of their error that a step of size 1 removes

    facts = frozenset({"linear"})
    heaviest = 1.0
    class_weights = None
    by_unit = _of_linear("by_unit")
    rows_per_unit = _of_linear("rows_per_unit")
    units = _of_linear("units")
    n_features = _of_linear("n_features")
    n_outputs = _of_linear("n_outputs")
    n_parts = _of_linear("n_parts")
    n_weights_per_output = _of_linear("n_weights_per_output")  # means, and as many curvatures
    smoothness = _of_linear("smoothness")  # in the means at given variances

    @property
    def name(self) -> str:
        """What messages call the loss."""
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
        """Public curvature to start from: of rows of norm 1 with equal entries, at scores zero."""
        return 0.25 / self.n_weights_per_output

    @property
    def curvature_unit(self) -> float:
        """Curvature that one unit of its weight stands for."""
        return self.pace / CURVATURE_GAIN

    def public_gradient(self, weights: Weights) -> Weights:
        """Return the gradient of what is not a sum over rows and no penalty on all weights."""
        gradient = np.zeros_like(weights)
        half = self.n_weights_per_output
        # The prior's penalty on the means is on curvatures as well, and is taken off their pace.
        rest = self.pace - self.prior_precision / self.linear.n_rows
        gradient[half:] = rest * weights[half:] - CURVATURE_GAIN * self._start
        return gradient

    def split(self, weights: Weights) -> tuple[Weights, Weights]:
        """Return means and mean curvatures, one row for each part."""
        table = weights.reshape(-1, 2, self.n_weights_per_output)
        curvatures = self._start - self.curvature_unit * table[:, 1]
        # Of no table are they larger, nor below zero; noise can make them so.
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
        """Return coefficients, intercepts and deviations of both, in the user's units."""
        means, curvatures = self.split(weights)
        return self.in_user_units(means, np.sqrt(self.variances(curvatures)))

    def in_user_units(self, means: Weights, deviations: Weights) -> tuple[Weights, ...]:
        """Return coefficients, intercepts and deviations of both, in the user's units."""
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
        """Add to ``out`` the gradients of the rows ``index`` (None: all), each cut to ``clip``."""
        (means,), curvatures = self.model.split(weights)
        variances = self.model.variances(curvatures)[0]
        sum_expected_gradients(self.rows, means, variances, out, index, clip, CURVATURE_GAIN)
