"""Steps of noisy gradient descent: the state, the update rules and the compiled loop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.losses.base import Loss
from skdp.solvers.gradients import (
    check_index,
    check_shape,
    check_targets,
    kernel_inputs,
    sum_gradients,
)
from skdp.solvers.rows import Rows, Vector
from skdp.tables.row_sources import RowSource

_MOMENTUM = 0.0
_ADAM = 1.0


@dataclass(frozen=True)
class UpdateRule:
    """How a noisy gradient sum changes the weights; a projection onto a ball comes last.

    The gradient is ``sum / divisor + penalty * weights``. With momentum b the velocity becomes
    ``b * velocity + gradient`` and is subtracted, times the learning rate, from the weights.

    Examples
    --------
    >>> from skdp.solvers import UpdateRule
    >>> UpdateRule(divisor=100.0, momentum=0.9).momentum, UpdateRule.adam(divisor=100.0).beta2
    (0.9, 0.999)
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
        """Return the rule of Kingma and Ba (2015), with bias correction."""
        return cls(divisor, penalty, radius, beta1, beta2, epsilon, _ADAM)

    def as_array(self) -> Vector:
        """Return the numbers in the order compiled kernels read them."""
        return np.array([*vars(self).values()])


class StepState(NamedTuple):
    """Arrays that steps change in place; `average` is the weighted sum of averaged iterates.

    Examples
    --------
    >>> from skdp.solvers import StepState
    >>> state = StepState.zeros(3)
    >>> state.weights, state.average_iterates()
    (array([0., 0., 0.]), array([0., 0., 0.]))
    """

    # Kernels take them in this order.
    weights: Vector
    first_moment: Vector
    second_moment: Vector
    average: Vector
    total_weight: Vector
    counter: NDArray[np.int64]

    @classmethod
    def zeros(cls, n_weights: int) -> StepState:
        """Return the state before the first step, with weights zero."""
        weights, first, second, average = np.zeros((4, n_weights))
        return cls(weights, first, second, average, np.zeros(1), np.zeros(1, dtype=np.int64))

    def average_iterates(self) -> Vector:
        """Return the weighted average of the iterates, or the last one if none was averaged."""
        if self.total_weight[0] > 0.0:
            return self.average / self.total_weight[0]
        return self.weights.copy()


def apply_update(
    state: StepState,
    rule: UpdateRule,
    total: Vector,
    learning_rate: float,
    averaging_weight: float = 0.0,
) -> None:
    """Take one step with a sum of clipped gradients plus noise.

    The new iterate enters the average with the given weight; 0 leaves it out.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.solvers import StepState, UpdateRule, apply_update
    >>> state, noisy_sum = StepState.zeros(2), np.array([10.0, -20.0])
    >>> apply_update(state, UpdateRule(divisor=100.0), noisy_sum, learning_rate=0.5)
    >>> state.weights
    array([-0.05,  0.1 ])
    """
    from skdp.solvers._step_kernels import update

    check_shape("total", total, state.weights.size)
    update(state[:], total, rule.as_array(), float(learning_rate), float(averaging_weight))


def run_steps(
    rows: Rows,
    loss: Loss,
    state: StepState,
    rule: UpdateRule,
    indices: NDArray[np.int64],
    offsets: NDArray[np.int64],
    noise: Vector,
    learning_rates: Vector,
    averaging_weights: Vector,
    clip: float = math.inf,
) -> None:
    """Take many noisy steps in one compiled loop, the same as one by one with the other functions.

    The batch of step t is ``indices[offsets[t]:offsets[t + 1]]`` and may be empty.
    Row t of ``noise``, already scaled, is added to its sum.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.solvers import Rows, StepState, UpdateRule, run_steps
    >>> X, signs = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, 1], dtype=np.int8)
    >>> rows = Rows.from_matrix(X, signs, data_norm=1.0)
    >>> lots = np.array([0, 1]), np.array([0, 1, 2])  # row 0, then row 1
    >>> rates, noise = np.full(2, 0.1), np.zeros((2, 2))
    >>> state = StepState.zeros(2)
    >>> run_steps(rows, LogisticLoss(), state, UpdateRule(1.0), *lots, noise, rates, np.zeros(2))
    >>> state.weights.round(4)
    array([0.05, 0.05])
    """
    from skdp.solvers import _step_kernels

    kernel: Any = _step_kernels.run_steps
    arguments = check_targets(rows, loss)
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
            f"noise must have shape ({steps}, {rows.n_weights(loss.n_outputs)}), one row per step, "
            f"got {noise.shape}."
        )
    if (np.diff(offsets) < 0).any() or offsets[0] < 0 or offsets[-1] > indices.size:
        raise ValueError("offsets must not decrease and must stay within indices.")
    if isinstance(rows.matrix, RowSource):
        _run_gathered(rows, loss, state, rule, indices, offsets, noise, rates, averaging, clip=clip)
        return
    inputs = kernel_inputs(rows, arguments, loss.n_outputs, clip)
    each_step = (indices, offsets, noise, rates, averaging)
    if not kernel(*inputs, each_step, rule.as_array(), state[:], np.empty(n_weights)):
        raise ValueError(f"{type(loss).__name__}: a sum of gradients is not finite.")


def _run_gathered(
    rows: Rows,
    loss: Loss,
    state: StepState,
    rule: UpdateRule,
    indices: NDArray[np.int64],
    offsets: NDArray[np.int64],
    *each_step: Vector,
    clip: float,
) -> None:
    """Take the steps with rows of a source; several batches are read at once if they fit."""
    first, most = 0, rows.matrix.block_rows
    if rows.matrix.is_one_block:
        most = indices.size
    while first < offsets.size - 1:
        last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        steps = slice(first, max(last, first + 1))
        noise, rates, averaging = (numbers[steps] for numbers in each_step)
        lots = indices[offsets[steps.start] : offsets[steps.stop]]
        if lots.size <= most:
            part, places = rows.gather(lots)
            begin = offsets[steps.start : steps.stop + 1] - offsets[steps.start]
            run_steps(part, loss, state, rule, places, begin, noise, rates, averaging, clip)
        else:
            total = np.zeros(state.weights.size)
            sum_gradients(rows, loss, state.weights, total, lots, clip)
            if not np.isfinite(total).all():
                raise ValueError(f"{type(loss).__name__}: a sum of gradients is not finite.")
            apply_update(state, rule, total + noise[0], rates[0], averaging[0])
        first = steps.stop
