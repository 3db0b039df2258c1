"""Update rules of noisy gradient descent and the compiled loop over many steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from skdp.losses.scalar import FAST, OUTER, STRICT, find_functions
from skdp.solvers._dense_kernels import Data, Options
from skdp.solvers.gradients import accumulate_kernel

# Any other code is descent with momentum.
ADAM = 1

# Weights, first moment, second moment, average, total averaging weight, number of steps.
State = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
# Of lots row numbers and offsets; of each step noise, learning rate and weight in the average.
Steps = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@njit(cache=True, nogil=True, fastmath=FAST, **OUTER)
def update(
    state: State, total: np.ndarray, rule: np.ndarray, rate: float, averaging: float
) -> None:
    """Take one step with a noisy gradient sum, project, and add to the running average.

    Weights that overflowed start again from zero: a record's part in the next sum is bounded at
    finite weights only.

    ``rule`` holds (divisor, penalty, radius, first decay, second decay, epsilon, code).
    """
    weights, first, second, average, total_weight, counter = state
    counter[0] += 1
    divisor, penalty, radius = rule[0], rule[1], rule[2]
    beta1, beta2, epsilon = rule[3], rule[4], rule[5]
    adam = rule[6] == ADAM
    lift1 = 1.0 / (1.0 - math.pow(beta1, np.float64(counter[0]))) if adam else 1.0
    lift2 = 1.0 / (1.0 - math.pow(beta2, np.float64(counter[0]))) if adam else 1.0
    square = 0.0
    for j in range(weights.size):
        gradient = total[j] / divisor + penalty * weights[j]
        if adam:
            first[j] = beta1 * first[j] + (1.0 - beta1) * gradient
            second[j] = beta2 * second[j] + (1.0 - beta2) * gradient * gradient
            step = (first[j] * lift1) / (math.sqrt(second[j] * lift2) + epsilon)
        else:
            first[j] = beta1 * first[j] + gradient
            step = first[j]
        weights[j] -= rate * step
        square += weights[j] * weights[j]
    if not square < math.inf:
        for j in range(weights.size):
            weights[j] = first[j] = second[j] = 0.0
    elif square > radius * radius:
        shrink = radius / math.sqrt(square)
        for j in range(weights.size):
            weights[j] *= shrink
    if averaging > 0.0:
        total_weight[0] += averaging
        for j in range(weights.size):
            average[j] += averaging * weights[j]


def accumulate_rows(*args: Any) -> None:
    """Call the ``accumulate`` kernel of the matrix's layout and the loss's family.

    It exists in compiled code only; the choice is made by the types of the two.
    """
    raise NotImplementedError("accumulate_rows exists in compiled code only")


@overload(accumulate_rows)
def _accumulate_rows(*args: Any) -> Callable[..., None]:
    (matrix, *_), *_, (tag, *_), _ = args
    kernel: Any = accumulate_kernel(not isinstance(matrix, types.Array), find_functions(tag).family)

    def call(*args: Any) -> None:
        kernel(*args)

    return call


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def run_steps(
    data: Data, options: Options, steps: Steps, rule: np.ndarray, state: State, total: np.ndarray
) -> bool:
    """Take one noisy step for each batch ``index[offsets[t]:offsets[t + 1]]``.

    Return whether all sums were finite.
    """
    index, offsets, noise, rates, averaging = steps
    weights, finite = state[0], True
    for t in range(rates.size):
        total[:] = 0.0
        accumulate_rows(data, weights, index, offsets[t], offsets[t + 1], options, total)
        for j in range(total.size):
            finite &= math.isfinite(total[j])
            total[j] += noise[t, j]
        update(state, total, rule, rates[t], averaging[t])
    return finite
