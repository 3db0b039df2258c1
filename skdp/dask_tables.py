"""Tables of Dask, which are read partition by partition, where the partitions lie.

Whoever made such a table has imported dask; nobody else does.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import SchemaError
from skdp.silence import around_runs

FAILED = (
    "dask could not compute a partition of the table: a task failed, a partition has not the rows "
    "and columns that the array declares, or workers were lost. What was said is withheld, since "
    "it may quote private values, and what was charged stays."
)
TRUSTED = (
    "workers of Dask, its scheduler and the wires between them see rows and what is computed of "
    "them without noise, and are trusted as this process is"
)


def trusted(*tables: Any) -> tuple[str, ...]:
    """Return what a guarantee takes for granted where a table is one of Dask."""
    return (TRUSTED,) if any(map(is_of_dask, tables)) else ()


def is_of_dask(X: Any) -> bool:
    """Tell whether a table or column is an array or a frame of Dask."""
    return all(hasattr(type(X), name) for name in ("__dask_graph__", "to_delayed", "ndim"))


def is_dask_array(X: Any) -> bool:
    """Tell whether a table or column is an array of Dask."""
    return is_of_dask(X) and hasattr(X, "chunks")


def delayed(function: Any, **options: Any) -> Any:
    """Return the function whose calls are tasks, each done anew."""
    import dask

    return dask.delayed(function, pure=False, **options)


def compute(tasks: Iterable[Any]) -> tuple[Any, ...]:
    """Return what tasks give; no error quotes what they have seen."""
    import dask

    return _public_errors(lambda: dask.compute(*tasks))


def persist(tasks: Iterable[Any]) -> list[Any]:
    """Have tasks done, and their results kept where they are."""
    import dask

    return _public_errors(lambda: list(dask.persist(*tasks)))


def in_partitions(function: Callable[[Any], NDArray[Any]], X: Any) -> NDArray[Any]:
    """Return what a function gives for the rows of a table, of Dask's at each partition."""
    if not is_of_dask(X):
        return function(X)
    run = delayed(functools.partial(_run, function))
    answers = compute(map(run, _parts(X)))
    for _, error in answers:
        if error is not None:
            raise error
    found = [rows for rows, _ in answers if rows is not None]
    return np.concatenate(found) if found else function(_no_rows(X))


def in_memory(column: Any) -> Any:
    """Return a column of Dask in memory, and any other as it is."""
    return compute([column])[0] if is_of_dask(column) else column


def sized(X: Any) -> Any:
    """Return a table that knows how many rows it has."""
    unknown = is_dask_array(X) and math.isnan(sum(X.shape))
    return _public_errors(X.copy().compute_chunk_sizes) if unknown else X


def as_rows_are_read(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have a method that looks at columns, or encodes each row by itself, take tables of Dask."""

    @functools.wraps(method)
    def call(transformer: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        if not is_of_dask(X):
            return method(transformer, X, *arguments, **options)
        few = method(transformer, _no_rows(X), *arguments, **options)
        if few is transformer:
            return few
        # A later fit is not to change rows that are yet to be encoded.
        encode = functools.partial(_transform, copy.deepcopy(transformer))
        return (
            as_encoded(X, encode, few) if is_dask_array(X) else X.map_partitions(encode, meta=few)
        )

    return call


def as_encoded(X: Any, encode: Callable[[Any], Any], few: Any) -> Any:
    """Return the lazy array of rows that a function makes of an array's; `few` shows their kind."""
    chunks = X.chunks[0], (few.shape[1],)
    return X.rechunk({1: -1}).map_blocks(encode, chunks=chunks, meta=few[:0])


def _transform(transformer: Any, part: Any) -> Any:
    for step in (transformer, *(step for _, step, _ in getattr(transformer, "transformers_", ()))):
        if hasattr(step, "_tells"):  # it is no word such as "drop"
            step._tells = False  # a part may have none of what is listed
    return transformer.transform(part)


def _no_rows(X: Any) -> Any:
    """Return an empty table or column in memory, with the types of those of Dask."""
    return np.empty((0, *X.shape[1:]), X.dtype) if is_dask_array(X) else X._meta


def _parts(X: Any) -> Any:
    if not is_dask_array(X):
        return X.to_delayed()
    return X.rechunk(dict.fromkeys(range(1, X.ndim), -1)).to_delayed().ravel()


def _public_errors(compute: Callable[[], Any]) -> Any:
    error: Exception = RuntimeError(FAILED)
    try:
        return compute()
    except SchemaError as said:  # in words of its own
        error = SchemaError(str(said))
    except Exception:
        pass
    raise error


def _run(function: Callable[[Any], Any], part: Any) -> tuple[Any, BaseException | None]:
    """Return what a function gives, or its error, which Dask would log with what it was given."""
    try:
        with around_runs():
            return function(part) if len(part) else None, None
    except (Exception, SystemExit) as error:
        return None, error
