"""Compiled part of the sampler of fixed-size subsets."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def floyd_subsets(
    uniforms: np.ndarray,
    n_rows: int,
    batch_size: int,
    last_step_seen: np.ndarray,
    first_step: int,
    indices: np.ndarray,
) -> None:
    """Fill `indices` with consecutive uniform subsets of ``range(n_rows)`` (Floyd 1987).

    `last_step_seen` marks each row with the number (from 1) of the last step that chose it, so
    that membership costs one look-up and nothing has to be cleared between steps.
    """
    n_steps = indices.size // batch_size
    for step in range(n_steps):
        mark = first_step + step + 1
        start = step * batch_size
        for k in range(batch_size):
            top = n_rows - batch_size + k
            candidate = np.int64(uniforms[start + k] * (top + 1))
            if last_step_seen[candidate] == mark:
                candidate = np.int64(top)
            last_step_seen[candidate] = mark
            indices[start + k] = candidate
