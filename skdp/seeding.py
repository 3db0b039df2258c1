"""The context that ties a seeded stream to one fit: its data and its parameters."""

from __future__ import annotations

import copyreg
import hashlib
import itertools
import os
import pickle
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse, stats

from skdp.row_sources import RowSource

_MOST_PARTS = 100_000
_PLAIN = {type(None), bool, int, float, complex, str, bytes, type(...)}


def fit_context(estimator: Any, X: Any, *others: np.ndarray) -> bytes:
    """Digest everything that makes a fit this fit; the digest never leaves it.

    Two fits with one seed that differ in a single value or parameter get independent noise;
    with shared noise their difference would cancel it and show the private values.
    """
    digest = hashlib.blake2b(digest_size=32)
    own = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in {"accountant", "random_state", "verbose"}
    }
    digest.update(f"{type(estimator).__name__}{describe(own)}{X.shape}".encode())
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    for part in (*parts, *others):
        digest.update(f"{part.shape}{part.dtype}".encode())
        for memory in _memory_of(part):
            digest.update(np.ascontiguousarray(memory).data)
    return digest.digest()


def _memory_of(part: Any) -> Iterator[np.ndarray]:
    """Yield all numbers of an array, or of a table that is read in blocks, whatever their size."""
    if not isinstance(part, RowSource):
        yield part
    elif not part.is_sparse:
        yield from (block for _, _, block in part.blocks())
    else:
        yield from (block.data for _, _, block in part.blocks())
        yield from (block.indices for _, _, block in part.blocks())
        yield from (np.diff(block.indptr) for _, _, block in part.blocks())


def describe(value: Any) -> str:
    """Return a text that equal values share, also in other processes, and no others do.

    Classes, and the globals that functions read, count by their names alone.
    What cannot be taken apart gets a new text each time, so that it never shares noise.
    """
    return _describe(value, (), itertools.count())


def _describe(value: Any, inside: tuple[int, ...], calls: Iterator[int]) -> str:
    kind = type(value)
    if kind in _PLAIN or isinstance(value, type | types.ModuleType):
        return repr(value)
    if id(value) in inside:  # by number of containers that lie between
        return f"<{inside[::-1].index(id(value))}>"
    try:
        if next(calls) > _MOST_PARTS:  # objects that know each other have many paths
            raise RecursionError
        path = (*inside, id(value))
        texts = [_describe(part, path, calls) for part in _take_apart(value)]
    except Exception:  # of code that may be anyone's, or too deep
        texts = [os.urandom(32).hex()]
    if kind in (set, frozenset):
        texts.sort()
    content = hashlib.blake2b(repr(texts).encode(), digest_size=32).hexdigest()
    return f"{kind.__module__}.{kind.__qualname__}:{content}"


def _take_apart(value: Any) -> list[Any]:
    """Return what a value consists of, but for its type."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return list(value)
    if kind in (dict, types.MappingProxyType):
        return list(value.items())
    if kind is np.ndarray or isinstance(value, np.generic):
        array = np.asarray(value)
        whole = array.dtype.hasobject or array.dtype.names
        return [array.shape, str(array.dtype), array.tolist() if whole else array.tobytes()]
    if sparse.issparse(value):
        return [value.shape, *sparse.find(value)]
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        given = (value.__defaults__, value.__kwdefaults__, vars(value))
        return [value.__module__, value.__qualname__, value.__code__, *given, cells]
    if isinstance(value, types.CodeType):
        counts = value.co_flags, value.co_argcount, value.co_kwonlyargcount, value.co_exceptiontable
        names = counts, value.co_names, value.co_varnames, value.co_freevars
        return [value.co_code, value.co_consts, *names]
    if hasattr(value, "get_params"):  # not what is charged, which changes with each fit
        own = {**vars(value), **value.get_params(deep=False)}
        return [(name, own[name]) for name in sorted(own) if not name.endswith("accountant")]
    if isinstance(value, stats.rv_continuous | stats.rv_discrete):  # not the numbers drawn before
        own = value.__getstate__()
        return [(name, own[name]) for name in sorted(own) if name != "_random_state"]
    reduce = copyreg.dispatch_table.get(kind)
    reduced = reduce(value) if reduce else value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return [pickle.dumps(value)]  # module and name
    return [list(part) if isinstance(part, Iterator) else part for part in reduced]
