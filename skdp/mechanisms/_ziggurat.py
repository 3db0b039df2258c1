"""Compiled standard normals by the ziggurat of Marsaglia and Tsang (2000), and subsets.

One word of 64 bits contains a layer (8), a sign (1) and a place in the layer (55). Layers, tail and
acceptance are exact up to rounding; see ``docs/security.md`` for the exact law and a bound.
"""

import decimal
import itertools
import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint64

from skdp.mechanisms._chacha import GROUP, INNER, OUTER, fill_words

LAYERS = 256
# Where the tail begins, and the area of each layer below exp(-x^2 / 2).
_START = "3.6541528853610087716454297203995157629749"
_AREA = "0.0049286732339746553473617754023360280691"
# Words below this are 11 leading zeros of a smaller uniform: they lengthen an exponential.
_SMALL, _LEAP = 2**53, 11.0 * math.log(2.0)
_SELDOM = 40  # fewer than one in this many numbers needs more words
# Beyond the end of a buffer: no leading zeros, the outermost place, a sure acceptance in the tail.
_END = 2**63


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
def _exponential(buffer: np.ndarray, place: int) -> tuple[float, int]:
    """Return a standard exponential, however long."""
    leaps = 0
    while True:
        word, place = _next(buffer, place)
        if word >= uint64(_SMALL):
            return leaps * _LEAP - math.log((float(word) + 0.5) * 2.0**-64), place
        leaps += 1


@njit(inline="always")
def _next(buffer: np.ndarray, place: int) -> tuple[np.uint64, int]:
    """Return the next word and place; a last one ends all loops."""
    return buffer[place] if place < buffer.size else uint64(_END), place + 1


@njit(inline="always")
def split_word(word: np.uint64) -> tuple[np.uint64, np.int64, np.int64]:
    """Return layer, signed number, and distance from zero in places."""
    signed = int64(word) >> 8
    return word & uint64(LAYERS - 1), signed, signed ^ (signed >> 63)


@njit(cache=True, **INNER)
def resolve_word(
    word: np.uint64, table: Table, buffer: np.ndarray, place: int
) -> tuple[float, int]:
    """Return the normal that `word` begins, outside the inner part of its layer.

    If the place is beyond the end of the buffer, the number is meaningless.
    """
    while True:
        layer, signed, distance = split_word(word)
        x = (float(distance) + 0.5) * table.widths[layer]
        accepted = distance < table.inner[layer]
        if not accepted and layer == 0:
            # The tail (Marsaglia 1964).
            height = x = 0.0
            while not 2.0 * height > x * x:
                x, place = _exponential(buffer, place)
                height, place = _exponential(buffer, place)
                x /= table.start
            x += table.start
            accepted = True
        elif not accepted:
            more, place = _next(buffer, place)
            low, high = table.heights[layer], table.heights[layer + uint64(1)]
            height = low + (float(more >> uint64(11)) + 0.5) * 2.0**-53 * (high - low)
            accepted = height < math.exp(-0.5 * x * x)
        if accepted:
            return (x if signed >= 0 else -x), place
        word, place = _next(buffer, place)


@njit(cache=True, nogil=True, **OUTER)
def resolve_words(
    words: np.ndarray, table: Table, buffer: np.ndarray, place: int, out: np.ndarray, first: int
) -> tuple[int, int]:
    """Fill `out` from place `first` on, one word per number and more for one in 80.

    Return the places of the first number and of the first word of the buffer that are left. The
    buffer may have too few words for that number.
    """
    for i in range(first, out.size):
        layer, signed, distance = split_word(words[i])
        if distance < table.inner[layer]:
            x = (float(distance) + 0.5) * table.widths[layer]
            out[i] = x if signed >= 0 else -x
        else:
            x, after = resolve_word(words[i], table, buffer, place)
            if after > buffer.size:
                return i, place
            out[i], place = x, after
    return out.size, place


def normals_of(
    words: np.ndarray,
    table: Table,
    state: np.ndarray,
    buffer: np.ndarray,
    place: int,
    out: np.ndarray,
    fill: Any = fill_words,
    resolve: Any = resolve_words,
) -> int:
    """Fill `out` from one word per number, and more from the buffer for one in 80.

    `state` fills words after the last place of the buffer. Returns the next place.
    """
    done, place = resolve(words, table, buffer, place, out, 0)
    while done < out.size:
        more = np.empty(GROUP * (1 + (out.size - done) // (_SELDOM * GROUP)), dtype=np.uint64)
        fill(state, more)
        buffer = np.concatenate([buffer[place:], more])
        done, place = resolve(words, table, buffer, 0, out, done)
    return place


def fill_normals(
    state: np.ndarray, out: np.ndarray, fill: Any = fill_words, resolve: Any = resolve_words
) -> None:
    """Fill `out` with standard normals from the blocks that `state` is at."""
    words = np.empty(-(-out.size // GROUP) * GROUP, dtype=np.uint64)
    more = state.copy()
    more[15] ^= np.uint32(1)  # another nonce
    fill(state, words)
    none = np.empty(0, dtype=np.uint64)
    normals_of(words, ziggurat(), more, none, 0, out, fill, resolve)


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

    `last_step_seen` has, per row, the last step (from 1) that chose it; nothing must be cleared.
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
