"""The same generator in NumPy and Python, for draws of few numbers.

Its compiled loops take a second or more to compile, too long for most fits of small tables.
"""

from types import FunctionType
from typing import Any

import numpy as np

from skdp.mechanisms import _chacha, _ziggurat
from skdp.mechanisms._chacha import LANES

_LOWER = np.array([[1], [2], [3]])
_DIAGONALS, _COLUMNS = (np.arange(4) + _LOWER) % 4, (np.arange(4) - _LOWER) % 4


def fill_words(state: np.ndarray, words: np.ndarray) -> None:
    """Fill `words` like the compiled function, all blocks side by side."""
    start = np.repeat(state[:, None], words.size // 8, axis=1)
    start[12] += np.arange(words.size // 8, dtype=np.uint32)
    # Four rows of four columns, so that one call mixes all columns, and another all diagonals.
    x = start.reshape(4, 4, -1).copy()
    for _ in range(10):
        for turned in (_DIAGONALS, _COLUMNS):
            _quarter_round(x, 0, 1, 2, 3)
            x[1:] = x[_LOWER, turned]
    start += x.reshape(16, -1)
    words[:] = start.reshape(16, -1, LANES).swapaxes(0, 1).ravel().view(np.uint64)
    state[12:13] += np.uint32(words.size // 8)


def resolve_words(
    words: np.ndarray,
    table: _ziggurat.Table,
    buffer: np.ndarray,
    place: int,
    out: np.ndarray,
    first: int,
) -> tuple[int, int]:
    """Fill `out` like the compiled function."""
    layer, signed, distance = _split(words[first : out.size])
    out[first:] = (distance.astype(np.float64) + 0.5) * table.widths[layer]
    np.negative(out[first:], out=out[first:], where=signed < 0)
    for i in first + np.flatnonzero(distance >= table.inner[layer]):
        x, after = _resolve(words[i], table, buffer, place)
        if after > buffer.size:
            return int(i), place
        out[i], place = x, after
    return out.size, place


def fill_normals(state: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` like the compiled function."""
    _ziggurat.fill_normals(state, out, fill_words, resolve_words)


def _as_python(compiled: Any) -> Any:
    """Return a compiled function and its callees as Python functions."""
    function = compiled.py_func
    known = dict(function.__globals__)
    for name in function.__code__.co_names:
        if hasattr(known.get(name), "py_func"):
            known[name] = _as_python(known[name])
    return FunctionType(function.__code__, known)


_quarter_round = _as_python(_chacha.quarter_round)
_split = _as_python(_ziggurat.split_word)
_resolve = _as_python(_ziggurat.resolve_word)
