"""Tables of Dask, which are read by partition, where the partitions are stored.

Only creators of such tables have imported dask; no other code imports it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from skdp.exceptions import RowsChangedError, SchemaError
from skdp.running import around_runs
from skdp.tables.digests import Digester

FAILED = (
    "dask could not compute a partition of the table: a task failed, a partition does not have the "
    "rows and columns that the array declares, or workers were lost. The original message is "
    "withheld, since it may quote private values. The charge stays."
)
TRUSTED = (
    "workers of Dask, its scheduler and the network between them see rows and exact results of "
    "computations with rows, and are trusted like this process"
)
CHECKED = (
    "whether a change of the table during its use is detected depends only on its source: a "
    "detected change ends in an error without a release"
)

# What holds the sizes of partitions of a frame that were read before.
SIZES = "_skdp_sizes"


def is_of_dask(X: Any) -> bool:
    """Return whether a table or column is an array or a frame of Dask."""
    return all(hasattr(type(X), name) for name in ("__dask_graph__", "to_delayed", "ndim"))


def is_dask_array(X: Any) -> bool:
    """Return whether a table or column is an array of Dask."""
    return is_of_dask(X) and hasattr(X, "chunks")


def delayed(function: Any, **options: Any) -> Any:
    """Return the function as a maker of tasks, each computed anew."""
    import dask

    return dask.delayed(function, pure=False, **options)


def compute(tasks: Iterable[Any], **options: Any) -> tuple[Any, ...]:
    """Return the results of tasks; no error quotes the data that they saw."""
    import dask

    return _public_errors(lambda: dask.compute(*tasks, **options))


def persist(tasks: Iterable[Any]) -> list[Any]:
    """Compute tasks, and store their results in place."""
    import dask

    return _public_errors(lambda: list(dask.persist(*tasks)))


def compute_together(groups: Sequence[Any]) -> list[list[Any]]:
    """Return the results of groups of tasks in one computation; shared tasks run once."""
    ends = np.cumsum([len(group) for group in groups])
    # What is optimised for one group alone would be read anew for others.
    alone = len(groups) == 1
    found = compute([task for group in groups for task in group], optimize_graph=alone)
    return [list(found[end - len(own) : end]) for own, end in zip(groups, ends, strict=True)]


def parts_of(X: Any, alone: bool = True) -> list[Any]:
    """Return the parts of a table as tasks, shared with those of others unless alone.

    A part that is used alone may be read without its other columns.
    """
    if is_dask_array(X):
        X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
    parts = X.to_delayed(optimize_graph=alone)
    return list(parts.ravel() if isinstance(parts, np.ndarray) else parts)


def joined(parts: list[Any]) -> Any:
    """Return the parts of a column as one."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    if all(map(sparse.issparse, parts)):
        return sparse.vstack(parts, format="csr")
    from dask.dataframe.dispatch import concat

    return concat(parts)


def sized(X: Any) -> Any:
    """Return a table with a known number of rows."""
    unknown = is_dask_array(X) and math.isnan(sum(X.shape))
    return _public_errors(X.copy().compute_chunk_sizes) if unknown else X


def map_parts(X: Any, function: Callable[[Any], Any], few: Any) -> Any:
    """Return the lazy table of parts that a function converts; `few` rows show their kind."""
    if not is_dask_array(X):
        rows = X.map_partitions(function, meta=few)
        if hasattr(X, SIZES) and is_dask_array(rows):
            rows._chunks = getattr(X, SIZES), rows.chunks[1]
        return rows
    return X.rechunk({1: -1}).map_blocks(
        functools.partial(_of_rows, function, few[:0]),
        meta=few[:0],
        drop_axis=[1] if few.ndim == 1 else [],
        new_axis=list(range(2, few.ndim)) or None,
        chunks=(X.chunks[0], *((size,) for size in few.shape[1:])),
    )


def _of_rows(function: Callable[[Any], Any], nothing: Any, part: Any) -> Any:
    return function(part) if len(part) else nothing


def ask_each(asked: Sequence[tuple[Callable[[Any], Any], Any]]) -> list[list[Any]]:
    """Return the results of functions on parts of tables together, None for parts without rows."""
    tasks = []
    for function, X in asked:
        run = delayed(functools.partial(_run, function))
        tasks.append([run(part) for part in parts_of(X, alone=len(asked) == 1)])
    found = compute_together(tasks) if tasks else []
    for error in (error for answers in found for _, error in answers if error is not None):
        raise error
    return [[answer for answer, _ in answers] for answers in found]


def _run(function: Callable[[Any], Any], part: Any) -> tuple[Any, BaseException | None]:
    """Return a function's result or its error, which Dask would log with the arguments."""
    try:
        with around_runs():
            return function(part) if len(part) else None, None
    except (Exception, SystemExit) as error:
        return None, error


def know(digester: Digester, part: Any) -> tuple[bytes | None, int]:
    """Return the digest of a part and its length; None without rows, when its type may vary."""
    return digester.digest(part) if len(part) else None, len(part)


def sealed(X: Any, digester: Digester, known: Sequence[Any], names: list[str] | None = None) -> Any:
    """Return a table of the same rows, and of some columns, which are compared when computed.

    The digest and the number of rows of each partition are known.
    """
    digests, sizes = [own[0] for own in known], tuple(own[1] for own in known)
    seal = _Seal(digester, digests, names)
    if is_dask_array(X):
        import dask.array

        pass_on = delayed(_pass_on)
        blocks = [pass_on(part, k, seal) for k, part in enumerate(parts_of(X))]
        parts = zip(blocks, X.chunks[0], strict=True)
        return dask.array.concatenate(
            [
                dask.array.from_delayed(block, (size, *X.shape[1:]), meta=X._meta)
                for block, size in parts
            ]
        )
    import dask.dataframe

    meta = X._meta if names is None else X._meta[names]
    numbers = dask.dataframe.from_map(_numbered, range(len(digests)), meta=_numbered(0))
    options = {"meta": meta, "align_dataframes": False}
    found = dask.dataframe.map_partitions(_pass_on, X, numbers, seal, **options)
    object.__setattr__(found, SIZES, sizes)
    return found


def sealed_as_it_is(X: Any) -> Any:
    """Return a frame that compares its partitions, when computed, with their present state."""
    digester = Digester()
    (found,) = ask_each([(functools.partial(know, digester), X)])
    return sealed(X, digester, [(None, 0) if part is None else part for part in found])


def divided(X: Any, read: Any, rule: Any) -> tuple[Any, Any]:
    """Return the rows of a frame that a rule does not hold out, and those that it does.

    Rows are assigned by ids that a function reads, or by the numbers of rows of a sealed frame.
    """
    import dask.dataframe

    sizes = getattr(X, SIZES, [0] * X.npartitions)
    starts = np.cumsum([0, *sizes])[:-1].tolist()
    numbers = dask.dataframe.from_map(_numbered, starts, meta=_numbered(0))
    sides = [functools.partial(_is_on, read, rule, held) for held in (False, True)]
    options = {"meta": X._meta, "align_dataframes": False}
    kept, out = (dask.dataframe.map_partitions(_side, X, numbers, own, **options) for own in sides)
    return kept, out


def _is_on(read: Any, rule: Any, held: bool, part: Any, start: int) -> Any:
    """Return which rows of a part, with a known first number, are on a side."""
    own = rule.of_numbers(start, start + len(part)) if read is None else rule.of_ids(read(part))
    return own == held


def _side(part: Any, number: Any, is_on: Any) -> Any:
    return part[is_on(part, int(number["number"].iloc[0]))] if len(part) else part


class _Seal:
    """Expected digests of parts; they do not appear in its text form."""

    def __init__(self, digester: Digester, digests: list[Any], names: list[str] | None) -> None:
        self.digester, self.digests, self.names = digester, digests, names


def _numbered(number: int) -> Any:
    import pandas

    return pandas.DataFrame({"number": [number]})


def _pass_on(part: Any, number: Any, seal: _Seal) -> Any:
    """Return a part, or some of its columns, if it has not changed."""
    number = number if isinstance(number, int) else number["number"].iloc[0]
    if know(seal.digester, part)[0] != seal.digests[number]:
        raise RowsChangedError()
    return part if seal.names is None else part[seal.names]


def _public_errors(compute: Callable[[], Any]) -> Any:
    error: Exception = RuntimeError(FAILED)
    try:
        return compute()
    except (SchemaError, RowsChangedError) as said:  # in words of its own
        error = type(said)(str(said))
    except Exception:
        pass
    raise error
