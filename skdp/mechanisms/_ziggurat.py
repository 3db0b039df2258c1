"""Compiled standard normals by the ziggurat of Marsaglia and Tsang (2000), of 256 layers.

One word of 64 bits holds a layer (8), a sign (1) and a place in the layer (55). Layers, tail and
acceptance are exact up to rounding; ``docs/security.md`` has the law that is drawn, and a bound.
"""

import decimal
import itertools
import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import int64, njit, uint64

from skdp.mechanisms._chacha import GROUP, INNER, fill_words

LAYERS = 256
# Where the tail begins, and the area of each layer below exp(-x^2 / 2).
_START = "3.6541528853610087716454297203995157629749"
_AREA = "0.0049286732339746553473617754023360280691"
# Words below this are 11 leading zeros of a smaller uniform: they lengthen an exponential.
_SMALL, _LEAP = 2**53, 11.0 * math.log(2.0)
_AT_ONCE = 8 * GROUP  # words that fit into the nearest cache


class Table(NamedTuple):
    """Layers from the lowest, which has the tail, to the highest."""

    widths: np.ndarray  # of one place
    inner: np.ndarray  # places that lie below the next layer too: all are accepted
    heights: np.ndarray  # of the lower edges, and of the upper edge of the last layer
    start: float


@cache
def ziggurat(start: str = _START, area: str = _AREA) -> Table:
    """Return the layers, computed with 40 digits and rounded once."""
    with decimal.localcontext(prec=40):
        edge, size = decimal.Decimal(start), decimal.Decimal(area)
        height = (-edge * edge / 2).exp()
        edges, heights = [size / height, edge], [decimal.Decimal(0), height]
        for layer in range(1, LAYERS):
            height += size / edges[layer]
            heights.append(height)
            edges.append((-2 * height.ln()).sqrt() if layer < LAYERS - 1 else height * 0)
        inner = [int(above / edge * 2**55) for edge, above in itertools.pairwise(edges)]
    return Table(
        np.array(edges[:-1], dtype=np.float64) * 2.0**-55,
        np.array(inner, dtype=np.int64),
        np.array(heights, dtype=np.float64),
        float(edges[1]),
    )


@njit(cache=True, **INNER)
def _next(state: np.ndarray, buffer: np.ndarray, place: int) -> tuple[np.uint64, int]:
    """Return the next word and the place after it."""
    if place == buffer.size:
        fill_words(state, buffer)
        place = 0
    return buffer[place], place + 1


@njit(cache=True, **INNER)
def _exponential(state: np.ndarray, buffer: np.ndarray, place: int) -> tuple[float, int]:
    """Return a standard exponential, however long."""
    leaps = 0
    while True:
        word, place = _next(state, buffer, place)
        if word >= uint64(_SMALL):
            return leaps * _LEAP - math.log((float(word) + 0.5) * 2.0**-64), place
        leaps += 1


@njit(cache=True, **INNER)
def _tail(state: np.ndarray, buffer: np.ndarray, place: int, start: float) -> tuple[float, int]:
    """Return a normal given that it is beyond `start` (Marsaglia 1964)."""
    while True:
        x, place = _exponential(state, buffer, place)
        y, place = _exponential(state, buffer, place)
        x /= start
        if 2.0 * y > x * x:
            return start + x, place


@njit(inline="always")
def split_word(word: np.uint64) -> tuple[np.uint64, np.int64, np.int64]:
    """Return the layer, a number with the sign, and the distance from zero in places."""
    signed = int64(word) >> 8
    return word & uint64(LAYERS - 1), signed, signed ^ (signed >> 63)


@njit(cache=True, **INNER)
def resolve_word(
    word: np.uint64, table: Table, state: np.ndarray, buffer: np.ndarray, place: int
) -> tuple[float, int]:
    """Return the normal that `word` begins, which is not in the inner part of its layer."""
    while True:
        layer, signed, distance = split_word(word)
        x = (float(distance) + 0.5) * table.widths[layer]
        accepted = distance < table.inner[layer]
        if not accepted and layer == 0:
            x, place = _tail(state, buffer, place, table.start)
            accepted = True
        elif not accepted:
            more, place = _next(state, buffer, place)
            low, high = table.heights[layer], table.heights[layer + uint64(1)]
            height = low + (float(more >> uint64(11)) + 0.5) * 2.0**-53 * (high - low)
            accepted = height < math.exp(-0.5 * x * x)
        if accepted:
            return (x if signed >= 0 else -x), place
        word, place = _next(state, buffer, place)


@njit(cache=True, nogil=True)
def normals_of(
    words: np.ndarray,
    table: Table,
    state: np.ndarray,
    buffer: np.ndarray,
    place: int,
    out: np.ndarray,
) -> int:
    """Fill `out` from one word for each number, and more from the buffer for one in 80.

    `state` refills the buffer after its last place. Returns the next place.
    """
    for i in range(out.size):
        layer, signed, distance = split_word(words[i])
        if distance < table.inner[layer]:
            x = (float(distance) + 0.5) * table.widths[layer]
            out[i] = x if signed >= 0 else -x
        else:
            out[i], place = resolve_word(words[i], table, state, buffer, place)
    return place


def fill_normals(state: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with standard normals from the blocks that `state` is at."""
    # Memory from here is less to compile.
    words = np.empty(min(_AT_ONCE, -(-out.size // GROUP) * GROUP), dtype=np.uint64)
    more = state.copy()
    more[15] ^= np.uint32(1)  # another nonce
    _fill(state, more, ziggurat(), words, np.empty(GROUP, dtype=np.uint64), out)


@njit(cache=True, nogil=True)
def _fill(
    state: np.ndarray,
    more: np.ndarray,
    table: Table,
    words: np.ndarray,
    buffer: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill `out`, as many numbers at once as there are `words`."""
    place = buffer.size
    for first in range(0, out.size, _AT_ONCE):
        fill_words(state, words)
        place = normals_of(words, table, more, buffer, place, out[first : first + _AT_ONCE])
