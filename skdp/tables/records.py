"""The rows of a fit as one object, and the digest that binds a seeded stream to them."""

from __future__ import annotations

import copyreg
import hashlib
import itertools
import os
import pickle
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from skdp.tables.inputs import canonical_rows, validate_rows
from skdp.tables.places import Columns, Read, read_each, taken_for_granted
from skdp.tables.row_sources import RowSource
from skdp.tables.units import Units, units_of

_MOST_PARTS = 100_000
_PLAIN = {type(None), bool, int, float, complex, str, bytes, type(...)}


def fit_context(estimator: Any, X: Any, *others: np.ndarray, inferred: Any = None) -> bytes:
    """Digest everything that defines a fit, some of it `inferred`; the digest stays in the fit.

    Two fits with one seed that differ in a single value or parameter get independent noise. With
    shared noise, their difference would cancel it and show private values.
    """
    digest = hashlib.blake2b(digest_size=32)
    own = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in {"accountant", "random_state", "verbose"}
    }
    if inferred is None and "adjacency" in own:  # as given or not, it is the same fit
        own["adjacency"] = estimator._relation
    about = describe(own) if inferred is None else describe((own, inferred))
    digest.update(f"{type(estimator).__name__}{about}{X.shape}".encode())
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    for part in (*parts, *others):
        digest.update(f"{part.shape}{part.dtype}".encode())
        for memory in _memory_of(part):
            digest.update(np.ascontiguousarray(memory).data)
    return digest.digest()


def _memory_of(part: Any) -> Iterator[np.ndarray]:
    """Yield all numbers of an array, or of a table that is read in blocks."""
    if not isinstance(part, RowSource):
        yield part
    elif not part.is_sparse:
        yield from (block for _, _, block in part.blocks())
    else:
        yield from (block.data for _, _, block in part.blocks())
        yield from (block.indices for _, _, block in part.blocks())
        yield from (np.diff(block.indptr) for _, _, block in part.blocks())


def describe(value: Any) -> str:
    """Return a text shared by equal values only, also across processes.

    Classes, and the globals that functions read, count only by name. Values that cannot be taken
    apart get a new text each time, and never share noise.
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
    # Where a class of this library lies inside it is no part of its meaning.
    home = "skdp" if kind.__module__.startswith("skdp.") else kind.__module__
    return f"{home}.{kind.__qualname__}:{content}"


def _take_apart(value: Any) -> list[Any]:
    """Return the components of a value, without its type."""
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


# In the place of labels, where a fit takes none.
NO_LABELS = "no_validation"


@dataclass(frozen=True, eq=False)
class Records:
    """Valid rows, their targets, units and weights.

    Rows are in memory, or a source of them, or a list of columns. Plans see only the public numbers
    until their charge is paid. Then models are bound to the records.
    """

    X: Any
    targets: Any = None  # as the model takes them
    labels: Any = None  # the label set of a classifier
    units: Units | None = None  # of a fit with groups=
    row_weight: NDArray[np.float64] | None = None  # None counts all rows once
    assumptions: tuple[str, ...] = ()  # on the place of the rows
    beside: Columns | None = None  # labels and ids as they were given

    @classmethod
    def read(
        cls,
        estimator: Any,
        X: Any,
        y: Any = NO_LABELS,
        groups: Any = None,
        encode: Callable[[Any], tuple[Any, Any]] | None = None,
        most: float = 1.0,
        **checks: Any,
    ) -> Self:
        """Check the input of a fit with scikit-learn's checks, and return its records.

        Rows of one id together have weight at most `most`.
        """
        beside, assumptions = Columns(y, groups), taken_for_granted(X, y, groups)
        rows, targets, labels = validate_rows(estimator, X, beside, **checks), None, None
        if encode is not None:
            rows, y = rows
            targets, labels = encode(y)
        units = None if groups is None else units_of(beside.found[1], rows.shape[0])
        weights = None if units is None else units.weights(most)
        return cls(canonical_rows(rows), targets, labels, units, weights, assumptions, beside)

    @classmethod
    def read_columns(cls, asked: Sequence[tuple[Read, Any]]) -> Self:
        """Return the results of functions on columns; each row is read once for all of them."""
        found = read_each(asked)
        if len(set(map(len, found))) > 1:
            raise ValueError("columns must have one cell for each record, all of one length.")
        return cls(found, assumptions=taken_for_granted(*(column for _, column in asked)))

    @property
    def n_rows(self) -> int:
        """Number of records, which is public: rows, or units without their numbers of rows."""
        if self.units is not None:
            return self.units.n_units
        rows = self.X if self.targets is None else self.targets
        return len(rows[0]) if isinstance(rows, list) else int(rows.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns, which is public."""
        return int(self.X.shape[1])

    @property
    def by_unit(self) -> bool:
        """Whether a record is all rows of an id."""
        return self.units is not None

    def check_rows(self) -> None:
        """Refuse rows and columns that have changed since they were checked."""
        parts: tuple[Any, ...] = self.X, self.beside
        for part in parts:
            if hasattr(part, "check_rows"):
                part.check_rows()

    def context(self, estimator: Any, *others: np.ndarray) -> bytes:
        """Return the digest that binds a seeded stream to one fit; it stays in the fit."""
        codes = None if self.units is None else self.units.codes
        own = [part for part in (self.targets, codes, *others) if part is not None]
        return fit_context(estimator, self.X, *own)

    def draw(self, stream: Any, most: int, padded: bool) -> Self:
        """Return up to `most` rows per unit, drawn at random; see `Units.draw`."""
        assert self.units is not None
        rows, units, shares = self.units.draw(stream, most, padded)
        chosen = {"X": self.X[rows], "targets": self.targets[rows]}
        return replace(self, **chosen, units=units, row_weight=shares)

    def weigh(self, weights: NDArray[np.float64]) -> Self:
        """Return records with the weight of each row multiplied."""
        weights = weights if self.row_weight is None else weights * self.row_weight
        return replace(self, row_weight=weights)

    def bind(self, model: Any) -> list[Any]:
        """Return the problems of a model on these rows."""
        given: dict[str, Any] = {}
        if self.row_weight is not None:
            given["row_weight"] = self.row_weight
        if self.units is not None:
            given["n_units"] = self.units.n_units
        problems: list[Any] = model.bind(self.X, self.targets, **given)
        return problems
