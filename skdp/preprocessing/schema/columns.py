"""Numeric and ignored columns, interactions of columns, and their features.

Each kind of column maps a cell to a block of features. The Euclidean norm of the block is at most
the column's weight for every cell. Only the public description is used.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from skdp.base.parameters import Auto, NumberEncoding, Scale, check_real
from skdp.preprocessing.schema.base import (
    UNKNOWN,
    Column,
    FeatureColumn,
    SchemaPart,
    as_numbers,
    centre,
    is_missing,
    number_problem,
)
from skdp.running import warn_once


def _root(x: Any) -> Any:
    return np.sign(x) * np.sqrt(np.abs(x))


# Functions of the value, and their inverses.
SCALES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "linear": (lambda x: x, lambda x: x),
    "sqrt": (_root, lambda x: x * abs(x)),
    "log": (np.log, np.exp),
}
# Numbers of half waves between the bounds, and their amplitudes: sum of squares one for each point.
_WAVES = np.arange(1, 16, 2)
_AMPLITUDES = 1.0 / (_WAVES * math.sqrt(np.sum(1.0 / _WAVES**2)))

_ENCODINGS = ("scaled", "steps", "cells", "waves", "scaled+steps")
# Cells of a column without cuts of its own that acts together with others.
_CELLS = 8


@dataclass(frozen=True, repr=False)
class NumericColumn(FeatureColumn):
    """A numeric column with public bounds.

    Parameters
    ----------
    name : str
        Name in the table.
    lower, upper : float or None
        Public bounds in the column's unit, from a code book, a device or physiology. Never use the
        smallest and largest value of the table. Values beyond the bounds count as the bound. None
        leaves the bounds open; they may stay open if only `cuts` are used.
    unit : str, default=""
        Unit of the numbers and bounds.
    scale : {"auto", "linear", "sqrt", "log"}, default="auto"
        Function applied to values before they are mapped from the bounds to [-1, 1]. ``"auto"`` is
        linear for scaled features; otherwise it is the square root of the absolute value, with the
        sign.
    cuts : sequence of float, int, "auto" or None, default=()
        Increasing public thresholds, such as the stages of hypertension. An integer is a number of
        thresholds, equally spaced between the bounds on the scale. ``"auto"`` and None mean no
        cuts.
    encoding : {"auto", "scaled", "steps", "cells", "waves", "scaled+steps"}, default="auto"
        Features of the column:

        - ``"scaled"``: one feature in [-1, 1];
        - ``"steps"``: one feature per cut, positive from the cut on and negative below it, with
          which a linear model follows any curve;
        - ``"cells"``: one feature per interval between cuts;
        - ``"waves"``: 16 features with which a linear model follows any smooth curve between the
          bounds, without cuts;
        - ``"auto"``: steps if there are cuts, waves if there are only spikes, else scaled.
          ``TableSchema.pipeline(..., encoding="auto")`` uses waves.
    missing : {"refuse", "ignore", "indicator", "fill"}, default="refuse"
        Treatment of a cell that is missing or not a number: an error; zeros; zeros and an indicator
        feature; or `fill_value`. Text counts as the number that Python's ``float`` reads in it.
    fill_value : float or None, default=None
        Public constant for ``missing="fill"``.
    missing_codes : sequence, default=()
        Values that mean "missing", such as 999.
    weight : float, default=1.0
        Largest norm of the column's features.
    description : str, default=""
        Meaning of the column.
    source : str, default=""
        Source of the bounds.
    spikes : sequence of float or None, default=None
        Increasing public amounts at which values accumulate or change their meaning, such as the
        steps of a tariff. Waves then give half of their squared norm to cells between consecutive
        amounts.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import NumericColumn
    >>> age = NumericColumn("age", 0, 100, unit="years", source="code book")
    >>> age.encode(np.array([0.0, 50.0, 130.0])).ravel()
    array([-1.,  0.,  1.])
    """

    kind: ClassVar[str] = "numeric"
    needed: ClassVar[tuple[str, ...]] = ("lower", "upper")
    lower: float | None = None
    upper: float | None = None
    unit: str = ""
    scale: Scale = "auto"
    cuts: Sequence[float] | int | Auto | None = ()
    encoding: NumberEncoding = "auto"
    spikes: Sequence[float] | None = field(default=None, kw_only=True)

    def _check(self) -> None:
        self._check_text("unit")
        self._check_choice("scale", ("auto", *SCALES))
        self._check_choice("encoding", ("auto", *_ENCODINGS))
        self._check_numbers("lower", "upper", "fill_value")
        self._check_bounds()
        self._set("cuts", self._check_cuts())
        if self.spikes is not None:
            self._set("spikes", self._increasing("spikes", self.spikes))
            if not self.spikes or self.encoding not in ("auto", "waves"):
                raise self._fail(
                    "spikes", "must contain amounts, and needs encoding='waves' or 'auto'."
                )
        if {"steps", "cells"} & set(self.encoding.split("+")) and not self.cuts:
            raise self._fail("cuts", f"encoding={self.encoding!r} needs public thresholds.")
        self._check_common()

    def _check_cuts(self) -> tuple[float, ...]:
        cuts: Any = self.cuts
        if cuts is None or (isinstance(cuts, str) and cuts == "auto"):
            return ()
        if not isinstance(cuts, int | np.integer) or isinstance(cuts, bool):
            return self._increasing("cuts", cuts)
        if not 1 <= cuts <= 1000 or self.lower is None or self.upper is None:
            raise self._fail(
                "cuts", f"a number of cuts must be 1 to 1000 and needs bounds, got {cuts}."
            )
        return tuple(self.spaced(int(cuts) + 2)[1:-1])

    def warn_of_cuts(self) -> None:
        """Warn of cuts and spikes outside the bounds."""
        low = -math.inf if self.lower is None else self.lower
        high = math.inf if self.upper is None else self.upper
        found = [cut for cut in (*self.thresholds, *(self.spikes or ())) if not low <= cut <= high]
        if found:
            warn_once(
                f"column {self.name!r}: cuts or spikes {found} lie outside the bounds [{low:g}, "
                f"{high:g}]. If the bounds are right, every cell is on one side of them, and they "
                "use a part of the norm without any effect. Check the unit of both."
            )

    def spaced(self, count: int) -> list[float]:
        """Return numbers between the bounds, equally spaced on the scale."""
        function, inverse = SCALES[self._scale]
        spaced = inverse(np.linspace(function(self.lower), function(self.upper), count))
        return [float(number) for number in np.clip(spaced, self.lower, self.upper)]

    def _increasing(self, name: str, values: Any) -> tuple[float, ...]:
        found = tuple(self._plain_number(name, v) for v in self._plain_values(name, values))
        if list(found) != sorted(found):
            raise self._fail(name, f"must be increasing, got {list(found)!r}.")
        return found

    def _check_bounds(self) -> None:
        lower, upper, function = self.lower, self.upper, SCALES[self._scale][0]
        least = {"sqrt": 0.0, "log": 5e-324}.get(self.scale, -math.inf)
        if lower is not None and lower < least:
            positive = "positive" if self.scale == "log" else "at least 0"
            raise self._fail(
                "lower", f"must be {positive} for scale={self.scale!r}, got {lower:g}."
            )
        if lower is None or upper is None:
            return
        if lower >= upper:
            raise self._fail("upper", f"must exceed lower={lower:g}, got {upper:g}.")
        span = float(function(upper)) - float(function(lower))
        if not 0.0 < span < math.inf:
            raise self._fail("upper", "the bounds are too close or too far apart for doubles.")

    @property
    def _scale(self) -> str:
        if self.scale != "auto":
            return self.scale
        return "linear" if "scaled" in self.parts else "sqrt"

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The cuts, given or spaced; empty for an encoding without cuts."""
        return cast(tuple[float, ...], self.cuts)

    @property
    def parts(self) -> tuple[str, ...]:
        """The encodings that make up the column's block."""
        declared = "steps" if self.cuts else "waves" if self.spikes else "scaled"
        encoding = declared if self.encoding == "auto" else self.encoding
        if encoding == "waves" and self.spikes:
            return ("waves", "spikes")
        return tuple(encoding.split("+"))

    def listed(self) -> tuple[Any, ...]:
        """Return an empty tuple: numbers have no list of values."""
        return ()

    def left_open(self) -> tuple[str, ...]:
        """Return the names of fields that are still to be filled in."""
        return super().left_open() if {"scaled", "waves"} & set(self.parts) else ()

    def check_dtype(self, dtype: Any) -> str | None:
        """Return a problem of a table's column type and its remedy, or None."""
        return number_problem(dtype)

    def feature_names(self) -> list[str]:
        """Return one name per feature."""
        names = {
            "scaled": [self.name],
            "steps": [f"{self.name}>={cut:.15g}" for cut in self.thresholds],
            "cells": cell_names(self.name, self.thresholds),
            "waves": [f"{self.name} {wave}{k}" for wave in ("cos", "sin") for k in _WAVES],
            "spikes": cell_names(f"{self.name} amount", self.spikes or ()),
        }
        indicator = [f"{self.name} missing"] if self.missing == "indicator" else []
        return [name for part in self.parts for name in names[part]] + indicator

    def _read(self, cells: np.ndarray) -> np.ndarray:
        """Return cells as numbers, with NaN for missing cells and cells that are not a number."""
        numbers = as_numbers(cells, self.missing_codes)
        absent = np.isnan(numbers)
        if self.missing == "refuse" and absent.any():
            raise self._refuse_missing()
        if self.missing == "fill":
            numbers[absent] = self.fill_value
        return numbers

    def _features(self, found: np.ndarray) -> np.ndarray:
        """Return the features of numbers; each row has norm at most the weight."""
        absent = np.isnan(found)
        numbers = np.where(absent, 0.0, found)
        encoders = {
            "scaled": lambda: 2.0 * self._share(numbers)[:, None] - 1.0,
            "steps": lambda: self._steps(numbers),
            "cells": lambda: _cells(numbers, self.thresholds),
            "waves": lambda: _waves(self._share(numbers)),
            "spikes": lambda: _cells(numbers, self.spikes or ()),
        }
        block = np.hstack([encoders[part]() for part in self.parts])
        block *= self.weight / math.sqrt(len(self.parts))
        block[absent] = 0.0
        if self.missing == "indicator":
            block = np.column_stack([block, self.weight * absent])
        return block

    def _share(self, numbers: np.ndarray) -> np.ndarray:
        """Return the position between the bounds on the scale, from 0 to 1."""
        function = SCALES[self._scale][0]
        low, high = float(function(self.lower)), float(function(self.upper))
        share = (function(np.clip(numbers, self.lower, self.upper)) - low) / (high - low)
        return np.clip(share, 0.0, 1.0)

    def _steps(self, numbers: np.ndarray) -> np.ndarray:
        reached = numbers[:, None] >= np.array(self.thresholds)
        return np.where(reached, 1.0, -1.0) / math.sqrt(len(self.thresholds))


@dataclass(frozen=True, repr=False)
class IgnoredColumn(Column):
    """A column that is documented but not used: an identifier, a survey weight, free text.

    Parameters
    ----------
    name : str
        Name in the table.
    description : str, default=""
        Content of the column, and the reason why it is not used.

    Examples
    --------
    >>> from skdp.preprocessing import IgnoredColumn, NumericColumn, TableSchema
    >>> schema = TableSchema([IgnoredColumn("id", "a number"), NumericColumn("age", 0, 120)])
    >>> schema.features
    ['age']
    """

    kind: ClassVar[str] = "ignored"
    description: str = ""

    def _check(self) -> None:
        self._check_text("description")


@dataclass(frozen=True, repr=False)
class Interaction(SchemaPart):
    """Features of columns that act together: the products of the columns' features.

    Numbers become cells, at their cuts or at eight intervals equally spaced on their scale. Weights
    count as 1, and each row of the block has norm at most 1. ``TableSchema(interactions=...)``
    creates these objects.

    Parameters
    ----------
    columns : sequence of columns
        Two or more feature columns.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import BooleanColumn, Interaction
    >>> both = Interaction((BooleanColumn("smoker"), BooleanColumn("diabetes")))
    >>> both.feature_names()
    ['smoker=True * diabetes=True']
    >>> both.encode(np.array([1, 1]), np.array([0, 1])).ravel()
    array([-1.,  1.])
    """

    columns: Sequence[FeatureColumn]

    def feature_names(self) -> list[str]:
        """Return one name per feature, made of the names of its factors."""
        names = [coarsen(column).feature_names() for column in self.columns]
        return [" * ".join(parts) for parts in itertools.product(*names)]

    def encode(self, *cells: np.ndarray) -> np.ndarray:
        """Return the features of rows; errors are those of the columns.

        Parameters
        ----------
        *cells : ndarray of shape (n_samples,)
            Cells of each column.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Products of features; each row has norm at most 1.
        """
        pairs = zip(self.columns, cells, strict=True)
        return multiply([coarsen(column).encode(values) for column, values in pairs])


def coarsen(column: FeatureColumn) -> Any:
    """Return a column with weight 1; numbers become cells at their cuts or at equal spacing."""
    if not isinstance(column, NumericColumn):
        return dataclasses.replace(column, weight=1.0)
    cells: dict[str, Any] = {"encoding": "cells", "cuts": column.cuts or _CELLS - 1, "spikes": None}
    cells["scale"] = "linear" if column._scale == "linear" else column.scale
    return dataclasses.replace(column, weight=1.0, **cells)


def multiply(blocks: list[np.ndarray]) -> np.ndarray:
    """Return the products of features of different blocks; norms of rows multiply."""
    return functools.reduce(
        lambda one, other: (one[:, :, None] * other[:, None, :]).reshape(
            len(one), one.shape[1] * other.shape[1]
        ),
        blocks,
    )


def _waves(share: np.ndarray) -> np.ndarray:
    """Return cosines and sines of odd numbers of half waves; the squared norm is 1."""
    turns = np.pi * share[:, None] * _WAVES
    return np.hstack([_AMPLITUDES * np.cos(turns), _AMPLITUDES * np.sin(turns)])


def _cells(numbers: np.ndarray, edges: Sequence[float]) -> np.ndarray:
    return centre(np.digitize(numbers, edges), len(edges) + 1)


def cell_names(name: str, cuts: Sequence[float]) -> list[str]:
    """Return names of the intervals between cuts."""
    edges = [f"{cut:.15g}" for cut in cuts]
    inner = [f"{name} in [{low}, {high})" for low, high in itertools.pairwise(edges)]
    return [f"{name}<{edges[0]}", *inner, f"{name}>={edges[-1]}"] if edges else []


def cells_of(column: FeatureColumn, cells: Sequence[Any]) -> np.ndarray:
    """Return values as a column of cells."""
    if isinstance(column, NumericColumn):
        return np.asarray(cells, dtype=np.float64)
    return np.fromiter(cells, dtype=object, count=len(cells))


def checked_cells(column: Any, cells: Sequence[Any]) -> np.ndarray:
    """Return the same, or refuse values that would be clipped or are on no list."""
    if isinstance(column, NumericColumn):
        bounds: dict[str, Any] = {"at_least": column.lower, "at_most": column.upper}
        for cell in cells:
            if not (is_missing(cell) or cell in column.missing_codes):
                check_real(f"the value of {column.name!r}", cell, **bounds)
    elif values := column.listed():
        places = column.read(cells_of(column, cells))
        for cell in itertools.compress(cells, places == UNKNOWN):
            raise ValueError(f"{column.name!r} has no level {cell!r}, but {list(values)}.")
    return cells_of(column, cells)


def is_code(column: NumericColumn, number: float) -> bool:
    """Return whether a number stands for a missing one."""
    return bool(np.isnan(as_numbers(np.array([number]), column.missing_codes)[0]))


def intervals_of(column: NumericColumn) -> list[float]:
    """Return a number in each interval between cuts or amounts; empty without them."""
    cuts = sorted({*column.thresholds, *(column.spikes or ())})
    return [float(np.nextafter(cuts[0], -np.inf)), *map(float, cuts)] if cuts else []
