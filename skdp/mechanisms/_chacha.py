"""Compiled ChaCha20 of RFC 8439: a key, a part and a block number give 64 bytes.

Sixteen blocks are computed side by side. Their 256 numbers of 32 bits stand in the order of the
lanes: number i of block b at place ``16 i + b``.
"""

import numpy as np
from numba import njit, uint32

LANES = 16
# Words of 64 bits that are computed together.
GROUP = 8 * LANES


def first_block(key: bytes, part: int) -> np.ndarray:
    """Return the input of block 0, 16 numbers; the nonce holds the part, below 2**32."""
    text = b"expand 32-byte k" + key + bytes(4) + part.to_bytes(12, "little")
    return np.frombuffer(text, dtype="<u4").astype(np.uint32)


@njit(cache=True)
def _rotate(number: int, places: int) -> np.uint32:
    # Results have 64 bits in numba unless they are cut, and no vector instructions.
    return uint32((number << uint32(places)) | (number >> uint32(32 - places)))


@njit(cache=True)
def _quarter_round(x: np.ndarray, i: int, j: int, k: int, m: int) -> None:
    a, b, c, d = x[i], x[j], x[k], x[m]
    a = uint32(a + b)
    d = _rotate(uint32(d ^ a), 16)
    c = uint32(c + d)
    b = _rotate(uint32(b ^ c), 12)
    a = uint32(a + b)
    d = _rotate(uint32(d ^ a), 8)
    c = uint32(c + d)
    b = _rotate(uint32(b ^ c), 7)
    x[i], x[j], x[k], x[m] = a, b, c, d


@njit(cache=True, nogil=True)
def fill_words(state: np.ndarray, words: np.ndarray) -> None:
    """Fill `words`, a multiple of GROUP, from the blocks that `state` is at, and move it on."""
    n = LANES
    start = np.empty(16 * n, dtype=np.uint32)
    for place in range(16 * n):
        start[place] = state[place // n] + (place % n if place // n == 12 else 0)
    for first in range(0, words.size, GROUP):
        x = words[first : first + GROUP].view(np.uint32)
        for place in range(16 * n):
            x[place] = start[place]
        for _ in range(10):
            for lane in range(n):
                for i in range(4):
                    j, k, m = i + 4, i + 8, i + 12
                    _quarter_round(x, i * n + lane, j * n + lane, k * n + lane, m * n + lane)
                for i in range(4):
                    j, k, m = (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12
                    _quarter_round(x, i * n + lane, j * n + lane, k * n + lane, m * n + lane)
        for place in range(16 * n):
            x[place] += start[place]
        for lane in range(n):
            start[12 * n + lane] += uint32(n)
    state[12] += uint32(words.size // 8)
