"""The compiled part of digests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


_TYPES = "void(Array(uint64, 2, 'C', readonly=True), uint64[::1], uint64[::1])"


@njit(_TYPES, cache=True, nogil=True)
def sum_blocks(blocks: Any, key: Any, out: Any) -> None:
    """Write the sum of products of the halves of each word of a block, with the key added."""
    for b in range(blocks.shape[0]):
        total = np.uint64(0)
        for j in range(key.size):
            word = blocks[b, j] + key[j]
            total += (word & _LOW) * (word >> _HALF)
        out[b] = total
