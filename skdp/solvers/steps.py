"""Steps of noisy gradient descent: the state, the update rules and the compiled loop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.losses.base import Loss
from skdp.solvers.gradients import check_index, check_targets, scratch_for
from skdp.solvers.rows import Rows

_MOMENTUM = 0.0
_ADAM = 1.0


@dataclass(frozen=True)
class UpdateRule:
    """How a noisy gradient sum changes the weights.

    The gradient is ``sum / divisor + penalty * weights``. With momentum b the velocity becomes
    ``b * velocity + gradient`` and is subtracted, times the learning rate, from the weights (heavy
    ball); b = 0 is plain descent. :meth:`adam` builds the rule of Kingma and Ba (2015). After
    either, the weights are projected onto the ball of the given radius.

    Parameters
    ----------
    divisor : float
        Public number the sum is divided by, such as the expected lot size, > 0.
    penalty : float, default=0.0
        Coefficient of the L2 penalty.
    radius : float, default=inf
        Radius of the ball that weights are projected onto.
    momentum : float, default=0.0
        Coefficient of the heavy ball, in [0, 1); the decay of Adam's first moment.
    beta2 : float, default=0.0
        Decay of Adam's second moment, in [0, 1).
    epsilon : float, default=0.0
        Added to the root of Adam's second moment.
    code : float, default=0.0
        Which rule the kernels apply: 0 heavy ball, 1 Adam.
    """

    divisor: float
    penalty: float = 0.0
    radius: float = math.inf
    momentum: float = 0.0
    beta2: float = 0.0
    epsilon: float = 0.0
    code: float = _MOMENTUM

    def __post_init__(self) -> None:
        if not self.divisor > 0:
            raise ValueError(f"divisor must be positive, got {self.divisor}.")
        if not self.radius > 0:
            raise ValueError(f"radius must be positive (inf = no projection), got {self.radius}.")
        if not (0.0 <= self.momentum < 1.0 and 0.0 <= self.beta2 < 1.0):
            raise ValueError(
                f"momentum, beta1 and beta2 must be in [0, 1), got {self.momentum}, {self.beta2}."
            )

    @classmethod
    def adam(
        cls,
        divisor: float,
        penalty: float = 0.0,
        radius: float = math.inf,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> UpdateRule:
        """Return the Adam rule, with bias correction.

        Parameters
        ----------
        divisor, penalty, radius : float
            As for the class.
        beta1, beta2 : float
            Decay of the first and second moments, in [0, 1).
        epsilon : float
            Added to the root of the second moment.

        Returns
        -------
        UpdateRule
            The rule.
        """
        return cls(divisor, penalty, radius, beta1, beta2, epsilon, _ADAM)

    def as_array(self) -> NDArray[np.float64]:
        """Return the numbers in the order compiled kernels read them."""
        numbers = (self.code, self.divisor, self.penalty, self.radius)
        return np.array([*numbers, self.momentum, self.beta2, self.epsilon])


@dataclass(frozen=True)
class StepState:
    """Arrays that steps change in place.

    Parameters
    ----------
    weights, first_moment, second_moment, average : ndarray of shape (n_weights,)
        Weights; velocity or first moment; second moment; weighted sum of averaged iterates.
    total_weight : ndarray of shape (1,)
        Sum of the averaging weights so far.
    counter : ndarray of shape (1,), int64
        Number of steps so far.
    """

    weights: NDArray[np.float64]
    first_moment: NDArray[np.float64]
    second_moment: NDArray[np.float64]
    average: NDArray[np.float64]
    total_weight: NDArray[np.float64]
    counter: NDArray[np.int64]

    @classmethod
    def zeros(cls, n_weights: int) -> StepState:
        """Return the state before the first step, with weights zero."""
        return cls(
            weights=np.zeros(n_weights),
            first_moment=np.zeros(n_weights),
            second_moment=np.zeros(n_weights),
            average=np.zeros(n_weights),
            total_weight=np.zeros(1),
            counter=np.zeros(1, dtype=np.int64),
        )

    def arrays(self) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray, NDArray]:
        """Return the arrays in the order compiled kernels take them."""
        return (
            self.weights,
            self.first_moment,
            self.second_moment,
            self.average,
            self.total_weight,
            self.counter,
        )

    def average_iterates(self) -> NDArray[np.float64]:
        """Return the weighted average of the iterates, or the last one if none was averaged."""
        if self.total_weight[0] > 0.0:
            return self.average / self.total_weight[0]
        return self.weights.copy()


def apply_update(
    state: StepState,
    rule: UpdateRule,
    total: NDArray[np.float64],
    learning_rate: float,
    averaging_weight: float = 0.0,
) -> None:
    """Take one step with a noisy gradient sum.

    Parameters
    ----------
    state : StepState
        Changed in place.
    rule : UpdateRule
        The update rule.
    total : ndarray of shape (n_weights,)
        Sum of clipped gradients plus noise.
    learning_rate : float
        Learning rate of this step.
    averaging_weight : float, default=0.0
        Weight of the new iterate in the average; 0 leaves it out.
    """
    from skdp.solvers._step_kernels import update

    update(state.arrays(), total, rule.as_array(), float(learning_rate), float(averaging_weight))


def run_steps(
    rows: Rows,
    loss: Loss,
    state: StepState,
    rule: UpdateRule,
    indices: NDArray[np.int64],
    offsets: NDArray[np.int64],
    noise: NDArray[np.float64],
    learning_rates: NDArray[np.float64],
    averaging_weights: NDArray[np.float64],
    clip: float = math.inf,
) -> None:
    """Take many noisy steps in one compiled loop, the same as one by one with the other functions.

    Parameters
    ----------
    rows, loss
        As for :func:`skdp.solvers.sum_gradients`.
    state : StepState
        Changed in place.
    rule : UpdateRule
        The update rule.
    indices : ndarray of int64
        Row numbers of all lots, one after the other.
    offsets : ndarray of int64 of shape (k + 1,)
        Lot t is ``indices[offsets[t]:offsets[t + 1]]``; a lot may be empty.
    noise : ndarray of shape (k, n_weights)
        Added to the gradient sum of each step, so already scaled.
    learning_rates, averaging_weights : ndarray of shape (k,)
        As for :func:`apply_update`.
    clip : float, default=inf
        Bound on the norm of each per-example gradient.
    """
    from skdp.solvers import _step_kernels

    kernel: Any = _step_kernels.run_steps
    functions, numbers = check_targets(rows, loss)
    indices = check_index(indices, rows.n_rows)
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    rates = np.ascontiguousarray(learning_rates, dtype=np.float64)
    averaging = np.ascontiguousarray(averaging_weights, dtype=np.float64)
    noise = np.ascontiguousarray(noise, dtype=np.float64)
    steps, n_weights = rates.size, state.weights.size
    if offsets.shape != (steps + 1,) or averaging.shape != (steps,):
        raise ValueError("learning_rates, averaging_weights and offsets - 1 must be equally long.")
    if noise.shape != (steps, n_weights) or n_weights != rows.n_weights(loss.n_outputs):
        raise ValueError(
            f"noise must have shape ({steps}, {rows.n_weights(loss.n_outputs)}), one row a step, "
            f"got {noise.shape}."
        )
    if (np.diff(offsets) < 0).any() or offsets[0] < 0 or offsets[-1] > indices.size:
        raise ValueError("offsets must not decrease and must stay within indices.")
    data = (rows.matrix, rows.row_scale, rows.intercept_value, rows.targets)
    spec = (functions.tag, numbers, float(clip), indices, offsets, noise, rates, averaging)
    scratch = (scratch_for(rows, loss), np.empty(n_weights))
    kernel(*data, *spec, rule.as_array(), state.arrays(), *scratch)
