"""Base of all statistics: terms, columns, and the order of check, charge and use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skdp.accounting import Event
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import check_choice, check_real
from skdp.budget.charging import charge, find_relation
from skdp.fitting import FitProgress, PrivateRelease
from skdp.mechanisms import RandomStream, resolve_random_state
from skdp.mechanisms.random_stream import is_seeded
from skdp.mechanisms.release import Release
from skdp.preprocessing import BooleanColumn, CategoricalColumn, NumericColumn, TableSchema
from skdp.preprocessing.schema.base import FeatureColumn
from skdp.preprocessing.schema.frames import import_pandas, refuse_container, series_cells
from skdp.statistics.noise import Plan, plan_noise
from skdp.tables.records import Records


def cells_of(column: Any) -> np.ndarray:
    """Return the cells of a pandas or polars series, an array or a list."""
    refuse_container(column, column=True)
    if hasattr(column, "dtypes") and hasattr(column, "columns"):
        raise TypeError("column must be one column, got a frame: pass frame['name'].")
    if hasattr(getattr(column, "dtype", None), "construct_array_type"):  # of pandas, no series
        column = import_pandas().Series(column)
    if hasattr(column, "iloc") or hasattr(getattr(column, "dtype", None), "is_float"):
        return series_cells(column)  # of pandas, of polars
    if isinstance(column, str | bytes | dict) or not hasattr(column, "__iter__"):
        raise TypeError(
            f"column must be a series, an array or a list of cells, got {type(column).__name__}."
        )
    # A list becomes objects: otherwise one cell would determine the type of the others.
    cells = column if hasattr(column, "dtype") else np.fromiter(column, dtype=object)
    cells = np.asarray(cells)
    if cells.ndim != 1:
        raise ValueError(f"column must have one dimension, got shape {cells.shape}.")
    return cells


def listed_column(column: Any, categories: Any, schema: Any) -> FeatureColumn:
    """Return the description of a column with a public list."""
    if (categories is None) == (schema is None):
        raise ValueError("pass categories=[...] from a code book, or a schema that has them.")
    if schema is not None:
        found = described(column, schema)
        if not found.listed():
            raise ValueError(
                f"column {found.name!r} has no list of values in the schema: describe it as a "
                "CategoricalColumn, or pass categories=[...]."
            )
        return found
    name = str(getattr(column, "name", None) or "column")
    categories = categories if isinstance(categories, str) else list(categories)
    if len(categories) == 2 and all(isinstance(value, bool | np.bool_) for value in categories):
        return BooleanColumn(name, categories, missing="ignore")
    return CategoricalColumn(name, categories, missing="ignore")


def bounded_column(column: Any, lower: Any, upper: Any, schema: Any) -> NumericColumn:
    """Return the description of a numeric column with public bounds."""
    if schema is None:
        if lower is None or upper is None:
            raise ValueError(
                "pass lower= and upper= from a code book, a device or physiology, never from the "
                "column; or a schema that has them."
            )
        name = str(getattr(column, "name", None) or "column")
        return NumericColumn(name, lower, upper, missing="ignore")
    if lower is not None or upper is not None:
        raise ValueError("pass lower= and upper=, or a schema that has them, not both.")
    found = described(column, schema)
    if not isinstance(found, NumericColumn):
        kind = type(found).__name__
        raise ValueError(f"column {found.name!r} must be a NumericColumn, the schema has a {kind}.")
    bounds_of(found)
    return found


def described(column: Any, schema: Any) -> FeatureColumn:
    """Return the schema's description of a named column."""
    if isinstance(schema, FeatureColumn):
        return schema
    if not isinstance(schema, TableSchema):
        raise TypeError(
            f"schema must be a TableSchema or one of its columns, got {type(schema).__name__}."
        )
    schema.unit.warn_of_rows(stacklevel=5)
    name = getattr(column, "name", None)
    if name is None:
        raise ValueError("the column has no name to find it by: pass schema=schema['name'].")
    found = schema[str(name)]
    if not isinstance(found, FeatureColumn):
        raise ValueError(f"column {found.name!r} is ignored in the schema: describe it.")
    return found


def numbers_of(cells: np.ndarray, column: NumericColumn) -> np.ndarray:
    """Return cells as numbers, clipped to the bounds; NaN for missing cells."""
    numbers = column.read(cells)
    if np.isinf(numbers).any():
        raise ValueError(
            f"column {column.name!r} has infinite values: replace each by a public bound or by a "
            "missing value, row by row."
        )
    return np.clip(numbers, *bounds_of(column))


def positions(cells: np.ndarray, column: NumericColumn) -> np.ndarray:
    """Return relative positions of cells between the bounds, in [0, 1]; NaN for missing cells."""
    lower, upper = bounds_of(column)
    return np.clip((numbers_of(cells, column) - lower) / (upper - lower), 0.0, 1.0)


def bounds_of(column: NumericColumn) -> tuple[float, float]:
    """Return the public bounds of a column."""
    if column.lower is None or column.upper is None:
        raise ValueError(f"column {column.name!r} has no bounds in the schema.")
    return column.lower, column.upper


MECHANISMS = ("auto", "laplace", "gaussian")
_ARITHMETIC = (
    "counts and grids are integers, and their noise is drawn on the integers with exact "
    "probabilities (docs/proofs/statistics.md)"
)


class Noisy(NamedTuple):
    """Released values, their plan and their record."""

    values: Any
    plan: Any
    spent: PrivacySpent


@dataclass
class Terms(PrivateRelease):
    """Common parameters of statistics, and the release of one."""

    owner: str
    epsilon: float
    delta: float
    adjacency: Any
    mechanism: str
    confidence: float
    accountant: Any
    random_state: Any

    verbose = 0
    _offers_pure = True
    _remedy_for_delta = "Or take 0."

    def __post_init__(self) -> None:
        self.adjacency = find_relation(self)
        self._check_parameters()

    def release(
        self,
        columns: Sequence[tuple[Any, Callable[[np.ndarray], np.ndarray] | OfFrame]],
        plan: Callable[[], Any],
        words: Callable[[Any], tuple[str, tuple[str, ...], tuple[str, ...]]],
        use: Callable[..., Any],
        arithmetic: str = _ARITHMETIC,
    ) -> Noisy:
        """Read the columns, charge, and release the values that `use` returns.

        `words` returns the mechanism, the assumptions and the names of released values.
        """
        self._build, self._words, self._use, self._arithmetic = plan, words, use, arithmetic
        given = {str(place): column for place, (column, _) in enumerate(columns)}
        found: Noisy = self._release([read for _, read in columns], None, given)
        return found

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("mechanism", self.mechanism, MECHANISMS)
        if self.mechanism == "gaussian" and self.delta == 0.0:
            raise ValueError(
                "mechanism='gaussian' needs a positive delta, such as 1e-6; with delta=0 use "
                "'laplace' or 'auto'."
            )
        check_real("confidence", self.confidence, at_least=1e-12, at_most=1.0 - 1e-12)

    def _read(self, X: Any, y: Any, params: dict[str, Any]) -> Records:
        """Read columns by the functions `X`."""
        asked = zip(X, params.values(), strict=True)
        return Records.read_columns([(partial(_read, read), column) for read, column in asked])

    def _public_rows(self, records: Records) -> int | None:
        return records.n_rows if self.adjacency == "replace-one" else None

    def _plan(self, records: Records) -> Any:
        return self._build()

    def _account(self, plan: Any) -> PrivacySpent:
        mechanism, assumptions, released = self._words(plan)
        assumptions = (*assumptions, "all parameters are public")
        return self._record_of(
            *(plan.event, self.adjacency, mechanism, assumptions, released),
            arithmetic=self._arithmetic,
        )

    def _charge(self, spent: PrivacySpent, progress: FitProgress) -> None:
        names = ("epsilon", "delta", "adjacency", "mechanism", "confidence")
        parameters = {name: getattr(self, name) for name in names}
        bound = self._bound_accountant
        charge(self.accountant, spent, self.owner, parameters=parameters, bound=bound)

    def _use_rows(self, plan: Any, records: Records, progress: FitProgress) -> Any:
        return self._use(plan, *records.X)

    def _result(self, plan: Any, records: Records, released: Any, spent: PrivacySpent) -> Noisy:
        return Noisy(released, plan, spent)

    # Helpers of statistics for plans and releases.

    @property
    def failure(self) -> float:
        """Error probability of an interval."""
        return 1.0 - float(self.confidence)

    def noise_of(self, *releases: Release) -> Plan:
        """Return releases with noise under these terms."""
        return plan_noise(
            releases, self.epsilon, self.delta, self.adjacency, self.mechanism, self.failure
        )

    def add_noise(
        self, plan: Plan, exact: Sequence[np.ndarray], *columns: np.ndarray
    ) -> list[np.ndarray]:
        """Return sums with the noise of a plan."""
        stream = self.stream(plan.event, *exact, *columns)
        return [noise.make(own, stream) for noise, own in zip(plan.releases, exact, strict=True)]

    def stream(self, event: Event, *exact: np.ndarray) -> RandomStream:
        """Return the stream of one call; with one seed, different calls share no noise."""
        if not is_seeded(self.random_state):
            return resolve_random_state(self.random_state)
        digest = hashlib.blake2b(
            f"{self.owner}{event!r}{self.confidence!r}{self.adjacency}".encode()
        )
        for array in exact:
            digest.update(f"{array.shape}{array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return resolve_random_state(self.random_state, digest.digest())


class OfFrame(NamedTuple):
    """Function that reads several columns, given as a frame."""

    read: Callable[[Any], np.ndarray]


def _read(read: Any, part: Any) -> np.ndarray:
    found: np.ndarray = read.read(part) if isinstance(read, OfFrame) else read(cells_of(part))
    return found


def describe_noise(plan: Plan) -> str:
    """Return the noise and its theorem, for the statement."""
    times = "" if len(plan.releases) == 1 else f", {len(plan.releases)} times"
    source = "Canonne, Kamath & Steinke 2020; docs/proofs/statistics.md"
    return f"{plan.releases[0].words}{times} ({source})"
