"""Compiled ChaCha20 of RFC 8439: a key, a part and a block number give 64 bytes.

Sixteen blocks are computed side by side. Number i (of 32 bits) of block b is at place ``16 i + b``.
"""

from typing import Any

import numpy as np
from numba import njit, uint32

LANES = 16
# Words of 64 bits that are computed together.
GROUP = 8 * LANES
# No function is used by its address, and Python calls few; wrappers take time to compile.
OUTER: dict[str, Any] = {"no_cfunc_wrapper": True, "error_model": "numpy"}
INNER: dict[str, Any] = {"no_cpython_wrapper": True, **OUTER}


def first_block(key: bytes, part: int) -> np.ndarray:
    """Return the 16 numbers of block 0; the nonce has the part, below 2**32."""
    text = b"expand 32-byte k" + key + bytes(4) + part.to_bytes(12, "little")
    return np.frombuffer(text, dtype="<u4").astype(np.uint32)


@njit(cache=True, **INNER)
def _rotate(number: int, places: int) -> np.uint32:
    # Results have 64 bits in numba unless they are cut, and no vector instructions.
    return uint32((number << places) | (number >> uint32(32 - places)))


@njit(cache=True, **INNER)
def quarter_round(x: np.ndarray, i: int, j: int, k: int, m: int) -> None:
    # A plain 16 would be a type of its own to numba, and `_rotate` be compiled for each.
    a, b, c, d = x[i], x[j], x[k], x[m]
    a = uint32(a + b)
    d = _rotate(uint32(d ^ a), uint32(16))
    c = uint32(c + d)
    b = _rotate(uint32(b ^ c), uint32(12))
    a = uint32(a + b)
    d = _rotate(uint32(d ^ a), uint32(8))
    c = uint32(c + d)
    b = _rotate(uint32(b ^ c), uint32(7))
    x[i], x[j], x[k], x[m] = a, b, c, d


def fill_words(state: np.ndarray, words: np.ndarray) -> None:
    """Fill `words`, a multiple of GROUP, from `state`, and advance it."""
    _fill(state, words.view(np.uint32))


@njit(cache=True, nogil=True, **OUTER)
def _fill(state: np.ndarray, numbers: np.ndarray) -> None:
    n = LANES
    for first in range(0, numbers.size, 16 * n):
        x = numbers[first : first + 16 * n]
        for row in range(16):
            number = state[row]
            for lane in range(n):
                x[row * n + lane] = number
        for lane in range(n):
            x[12 * n + lane] += uint32(lane)
        for _ in range(10):
            for lane in range(n):
                for i in range(4):
                    j, k, m = i + 4, i + 8, i + 12
                    quarter_round(x, i * n + lane, j * n + lane, k * n + lane, m * n + lane)
                for i in range(4):
                    j, k, m = (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12
                    quarter_round(x, i * n + lane, j * n + lane, k * n + lane, m * n + lane)
        for row in range(16):
            number = state[row]
            for lane in range(n):
                x[row * n + lane] += number
        for lane in range(n):
            x[12 * n + lane] += uint32(lane)
        state[12] += uint32(n)
