"""Tables of Dask, which are read partition by partition, where the partitions lie.

Whoever made such a table has imported dask; nobody else does.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.digests import Digester
from skdp.exceptions import RowsChangedError, SchemaError
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
CHECKED = (
    "whether a table is found to have changed while it was in use depends on its source alone: a "
    "change that is found ends in an error and no release"
)

# What holds the sizes of partitions of a frame that were read before.
_SIZES = "_skdp_sizes"


def trusted(*tables: Any) -> tuple[str, ...]:
    """Return what a guarantee takes for granted where a table is one of Dask."""
    return (CHECKED, TRUSTED) if any(map(is_of_dask, tables)) else ()


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


def compute(tasks: Iterable[Any], **options: Any) -> tuple[Any, ...]:
    """Return what tasks give; no error quotes what they have seen."""
    import dask

    return _public_errors(lambda: dask.compute(*tasks, **options))


def persist(tasks: Iterable[Any]) -> list[Any]:
    """Have tasks done, and their results kept where they are."""
    import dask

    return _public_errors(lambda: list(dask.persist(*tasks)))


def in_partitions(function: Callable[[Any], NDArray[Any]], X: Any) -> NDArray[Any]:
    """Return what a function gives for the rows of a table, of Dask's at each partition."""
    return in_partitions_of_all([(function, X)])[0]


def in_partitions_of_all(
    asked: Sequence[tuple[Callable[[Any], NDArray[Any]], Any]],
) -> list[NDArray[Any]]:
    """Return what functions give for the rows of tables, those of Dask in one computation."""
    lazy = [(function, X) for function, X in asked if is_of_dask(X)]
    parts = [
        [delayed(functools.partial(_run, function))(part) for part in _parts(X, len(lazy) == 1)]
        for function, X in lazy
    ]
    answers = _computed_together(parts) if parts else []
    found = []
    for function, X in asked:
        if not is_of_dask(X):
            found.append(function(X))
            continue
        pieces = [_answer_of(*answer) for answer in answers.pop(0)]
        rows = [piece for piece in pieces if piece is not None]
        found.append(np.concatenate(rows) if rows else function(_no_rows(X)))
    return found


def in_memory(column: Any) -> Any:
    """Return a column of Dask in memory, and any other as it is."""
    return compute([column])[0] if is_of_dask(column) else column


def all_in_memory(*given: Any) -> list[Any]:
    """Return tables and columns in memory, those of Dask of one computation."""
    return Columns(*given).found


class Columns:
    """Columns beside a table, such as labels and ids, which are read with it in one computation.

    Partitions whose rows come in another order each time would give rows the labels of others.
    """

    def __init__(self, *given: Any) -> None:
        self._given, self.trusts = given, trusted(*given)
        self._digester = Digester()
        self._digests: list[bytes] = []
        self._found: list[Any] | None = None

    @property
    def is_lazy(self) -> bool:
        """Whether a column is one of Dask."""
        return bool(self.trusts)

    @property
    def found(self) -> list[Any]:
        """The columns in memory."""
        if self._found is None:
            self.read()
        assert self._found is not None
        return self._found

    def read(self, tasks: Sequence[Any] = ()) -> list[Any]:
        """Read columns, and return what tasks about rows of the table give."""
        answers, columns = self._read_lazy(tasks)
        self._digests = [self._digester.digest(column) for column in columns]
        self._found = [columns.pop(0) if is_of_dask(c) else c for c in self._given]
        return answers

    def _read_lazy(self, tasks: Sequence[Any] = ()) -> tuple[list[Any], list[Any]]:
        if not self.is_lazy:
            return [], []
        lazy = [_parts(column, False) for column in self._given if is_of_dask(column)]
        answers, *columns = _computed_together([tasks, *lazy])
        return answers, [_joined(parts) for parts in columns]

    def seal(self, X: Any) -> Any:
        """Read columns, and return a table whose rows are refused unless they are read alike."""
        if not self.is_lazy or not is_of_dask(X):
            return X
        X = sized(X)
        know = delayed(functools.partial(_know, self._digester))
        try:
            known = self.read([know(part) for part in _parts(X, False)])
        except RowsChangedError:  # is said again by what will be paid for
            return X
        return _sealed(X, self._digester, known)

    def check_rows(self) -> None:
        """Refuse columns that are not what they were, read once more."""
        if [self._digester.digest(column) for column in self._read_lazy()[1]] != self._digests:
            raise RowsChangedError()


def split_partitions(
    frame: Any, names: list[str], read: Sequence[Callable[[Any], NDArray[Any]]]
) -> tuple[Any, list[NDArray[Any]]]:
    """Return the named columns of a frame, and what functions give for its rows.

    Each partition is read once for all of it, and its rows are refused later if they, or what the
    functions have seen beside them, are no longer what they were.
    """
    digester = Digester()
    run = delayed(functools.partial(_run, functools.partial(_read_all, digester, read)))
    found = [_answer_of(*answer) for answer in compute(map(run, _parts(frame)))]
    columns = [
        np.concatenate([own[1 + k] for own in found if own is not None] or [function(frame._meta)])
        for k, function in enumerate(read)
    ]
    known = [(None, 0) if own is None else own[0] for own in found]
    return _sealed(frame, digester, known, names), columns


def _read_all(digester: Digester, read: Any, part: Any) -> Any:
    return _know(digester, part), *(function(part) for function in read)


def _know(digester: Digester, part: Any) -> tuple[bytes | None, int]:
    """Return the digest of a part, None without rows, which may be of any type, and its length."""
    return digester.digest(part) if len(part) else None, len(part)


def _sealed(X: Any, digester: Digester, known: list[Any], names: list[str] | None = None) -> Any:
    """Return a table of the same rows, and of some columns, which are compared when computed.

    Of each partition the digest and the number of rows are known.
    """
    digests, sizes = [own[0] for own in known], tuple(own[1] for own in known)
    seal = _Seal(digester, digests, names)
    if is_dask_array(X):
        import dask.array

        pass_on = delayed(_pass_on)
        blocks = [pass_on(part, k, seal) for k, part in enumerate(_parts(X))]
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
    object.__setattr__(found, _SIZES, sizes)
    return found


class _Seal:
    """What parts are to be; no part of it is in the text that stands for it."""

    def __init__(self, digester: Digester, digests: list[Any], names: list[str] | None) -> None:
        self.digester, self.digests, self.names = digester, digests, names


def _numbered(number: int) -> Any:
    import pandas

    return pandas.DataFrame({"number": [number]})


def _pass_on(part: Any, number: Any, seal: _Seal) -> Any:
    """Return a part, or the columns of it that are meant, if it is what it was."""
    number = number if isinstance(number, int) else number["number"].iloc[0]
    if _know(seal.digester, part)[0] != seal.digests[number]:
        raise RowsChangedError()
    return part if seal.names is None else part[seal.names]


def _computed_together(groups: Sequence[Any]) -> list[list[Any]]:
    """Return what groups of tasks give, in one computation; what they share is done once."""
    ends = np.cumsum([len(group) for group in groups])
    # What is optimised for one group alone would be read anew for others.
    alone = len(groups) == 1
    found = compute([task for group in groups for task in group], optimize_graph=alone)
    return [list(found[end - len(own) : end]) for own, end in zip(groups, ends, strict=True)]


def _joined(parts: list[Any]) -> Any:
    """Return the parts of a column as one."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    if all(map(sparse.issparse, parts)):
        return sparse.vstack(parts, format="csr")
    from dask.dataframe.dispatch import concat

    return concat(parts)


def _answer_of(found: Any, error: BaseException | None) -> Any:
    if error is not None:
        raise error
    return found


def sized(X: Any) -> Any:
    """Return a table that knows how many rows it has."""
    unknown = is_dask_array(X) and math.isnan(sum(X.shape))
    return _public_errors(X.copy().compute_chunk_sizes) if unknown else X


def counted(X: Any) -> Any:
    """Return a table that knows how many rows it has, or a column of as many."""
    if hasattr(X, _SIZES):
        return np.broadcast_to(0, (sum(getattr(X, _SIZES)),))
    return sized(X)


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
        if is_dask_array(X):
            return as_encoded(X, encode, few)
        rows = X.map_partitions(encode, meta=few)
        if hasattr(X, _SIZES) and is_dask_array(rows):
            rows._chunks = getattr(X, _SIZES), rows.chunks[1]
        return rows

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


def _parts(X: Any, alone: bool = True) -> list[Any]:
    """Return the parts of a table as tasks, which share theirs with those of others unless alone.

    What is known to be wanted alone may be read without the columns beside it.
    """
    if is_dask_array(X):
        X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
    parts = X.to_delayed(optimize_graph=alone)
    return list(parts.ravel() if isinstance(parts, np.ndarray) else parts)


def _public_errors(compute: Callable[[], Any]) -> Any:
    error: Exception = RuntimeError(FAILED)
    try:
        return compute()
    except (SchemaError, RowsChangedError) as said:  # in words of its own
        error = type(said)(str(said))
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
