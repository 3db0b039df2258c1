"""The column to predict, a class or a number, and the unit of privacy."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from skdp.exceptions import PrivacyWarning
from skdp.preprocessing.schema.base import (
    CellPart,
    SchemaPart,
    as_numbers,
    listing_problem,
    number_problem,
    positions_in,
)


class _Label(CellPart, ABC):
    """The column to predict."""

    name: str

    def _place(self) -> str:
        return f"label {self.name!r}"

    def encode(self, cells: np.ndarray) -> np.ndarray:
        """Return the class of each cell, or its number within the bounds.

        Parameters
        ----------
        cells : ndarray of shape (n_samples,)
            Cells of the column.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes or numbers.

        Raises
        ------
        ValueError
            If the array's type cannot hold classes or numbers, or if a cell is missing, not listed
            or no number. The message does not quote the cell.
        """
        self._admit(cells)
        return self._read(cells)

    @abstractmethod
    def _read(self, cells: np.ndarray) -> np.ndarray:
        """Return the labels of cells with a suitable type."""


@dataclass(frozen=True, repr=False)
class LabelColumn(_Label):
    """The column to predict, with its public classes.

    Cells are read like those of a `CategoricalColumn`.

    Parameters
    ----------
    name : str
        Name in the table.
    classes : sequence of str, number or bool, or None, default=None
        All classes, including those that do not occur in the table. None leaves them open.
    values : sequence of sequences or None, default=None
        Cells that belong to each class, if they differ from the class. For example, ``classes=[0,
        1], values=[[0], [1, 2, 3, 4]]`` merges all degrees of an illness. None means that cells
        hold the classes.
    description, source : str, default=""
        Meaning of the label, and source of its classes.
    prevalence : dict or None, default=None
        Public share of each class, as ``{label: share}``. `TableSchema.pipeline` passes it to
        ``prevalence=`` of private classifiers, for ``class_weight="balanced"``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import LabelColumn
    >>> LabelColumn("degree", [0, 1], values=[[0], [1, 2]]).encode(np.array([2, 0, 1]))
    array([1, 0, 1])
    """

    needed: ClassVar[tuple[str, ...]] = ("classes",)
    name: str
    classes: Sequence[Any] | None = None
    values: Sequence[Sequence[Any]] | None = None
    description: str = ""
    source: str = ""
    prevalence: Mapping[Any, float] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        self._check_text("name", "description", "source")
        if self.classes is None:
            for name in ("values", "prevalence"):
                if getattr(self, name) is not None:
                    raise self._fail(name, "needs classes; give them as well.")
            return
        self._set("classes", self._plain_values("classes", self.classes))
        kinds = {isinstance(label, str) for label in self.classes}
        if len(self.classes) < 2 or len(kinds) > 1:
            raise self._fail(
                "classes",
                f"must be at least two labels of one kind, got {list(self.classes)!r}. Quote 'yes' "
                "and 'no', which YAML reads as booleans.",
            )
        if self.values is not None:
            self._set("values", tuple(self._plain_values("values", v) for v in self.values))
            if len(self.values) != len(self.classes):
                raise self._fail("values", "must contain one list for each class.")
            self._plain_values("values", [cell for cells in self.values for cell in cells])
        if self.prevalence is not None:
            self._set("prevalence", self._shares(self.classes, self.prevalence))

    def _shares(self, classes: Sequence[Any], given: Any) -> dict[Any, float]:
        """Return the share of each class; JSON stores their names as texts."""
        named = {str(label): label for label in classes} | {label: label for label in classes}
        shares = {}
        if isinstance(given, Mapping):
            shares = {named.get(key): share for key, share in given.items()}
        if set(shares) != set(classes) or len(shares) != len(given):
            raise self._fail(
                "prevalence", f"must give a share for each of {list(classes)!r}, got {given!r}."
            )
        found = {label: self._plain_number("prevalence", shares[label]) for label in classes}
        if min(found.values()) <= 0.0 or abs(math.fsum(found.values()) - 1.0) > 1e-6:
            raise self._fail("prevalence", f"must be positive and add up to 1, got {given!r}.")
        return found

    def listed(self) -> tuple[Any, ...]:
        """Return the values that a cell may hold."""
        return tuple(cell for cells in self._cells() for cell in cells)

    def check_dtype(self, dtype: Any) -> str | None:
        """Return a problem of a table's column type and its remedy, or None."""
        return listing_problem(dtype, self.listed())

    def _read(self, cells: np.ndarray) -> np.ndarray:
        position = {cell: place for place, group in enumerate(self._cells()) for cell in group}
        found = positions_in(cells, position, ())
        if np.any(found < 0):
            raise self._fail(
                "classes",
                "the table has a label that is missing or not listed. List every class that can "
                "occur, in the type of the table. The value is not shown, since it may be private.",
            )
        return np.array(self.classes)[found]

    def _cells(self) -> Sequence[Sequence[Any]]:
        if self.values is not None:
            return self.values
        return tuple((label,) for label in self.classes or ())


@dataclass(frozen=True, repr=False)
class NumericLabel(_Label):
    """The column to predict if it is a number, with public bounds.

    Parameters
    ----------
    name : str
        Name in the table.
    lower, upper : float or None, default=None
        Public bounds in the label's unit, from a protocol or a law. Never use the smallest and
        largest value of the table. Values beyond the bounds count as the bound. None leaves them
        open.
    unit : str, default=""
        Unit of the numbers and bounds.
    description, source : str, default=""
        Meaning of the label, and source of its bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import NumericLabel
    >>> NumericLabel("stay", 0, 30, unit="days").encode(np.array([2, 41, 7]))
    array([ 2., 30.,  7.])
    """

    kind: ClassVar[str] = "numeric"
    needed: ClassVar[tuple[str, ...]] = ("lower", "upper")
    name: str
    lower: float | None = None
    upper: float | None = None
    unit: str = ""
    description: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        self._check_text("name", "unit", "description", "source")
        self._check_numbers(*self.needed)
        if self.lower is not None and self.upper is not None:
            if not math.isfinite(self.upper - self.lower):
                raise self._fail(
                    "upper", "is too far from lower: the difference exceeds all floats."
                )
            if not self.lower < self.upper:
                raise self._fail("upper", f"must exceed lower={self.lower:g}, got {self.upper:g}.")

    def listed(self) -> tuple[Any, ...]:
        """Return an empty tuple: numbers have no list of values."""
        return ()

    def check_dtype(self, dtype: Any) -> str | None:
        """Return a problem of a table's column type and its remedy, or None."""
        return number_problem(dtype)

    def _read(self, cells: np.ndarray) -> np.ndarray:
        found = as_numbers(cells, ())
        if np.isnan(found).any():
            raise self._fail(
                "cells",
                "the table has a label that is missing or not a number. Drop such rows by a rule "
                "that looks at one row at a time. The value is not shown, since it may be private.",
            )
        return np.clip(found, self.lower, self.upper)


@dataclass(frozen=True, repr=False)
class PrivacyUnit(SchemaPart):
    """The unit that the guarantee protects.

    Parameters
    ----------
    name : str, default="row"
        Name of one unit, such as "patient", "visit" or "household".
    max_rows : int, default=1
        Public bound on the number of rows of one unit. It is used for guarantees of steps that
        protect one row. Fits that receive ids as ``groups=`` protect all rows of a unit and need no
        bound.
    column : str or None, default=None
        Column that identifies the unit, such as a patient's number. It is never a feature. Fits and
        evaluations of entire tables then protect all rows of each id, and
        ``TableSchema.split(frame, groups=True)`` returns the ids as its last value. None means that
        the table has no such column.
    description : str, default=""
        Reason for the bound.

    Examples
    --------
    >>> from skdp.preprocessing import LabelColumn, NumericColumn, PrivacyUnit, TableSchema
    >>> schema = TableSchema(
    ...     [NumericColumn("age", 0, 120)],
    ...     label=LabelColumn("ill", [0, 1]),
    ...     unit=PrivacyUnit("patient", column="patient_id", max_rows=3),
    ... )
    >>> schema.unit.name, schema.unit.max_rows
    ('patient', 3)
    """

    name: str = "row"
    max_rows: int = 1
    column: str | None = None
    description: str = ""

    def __post_init__(self) -> None:
        self._check_text("name", "description", *([] if self.column is None else ["column"]))
        rows = self.max_rows
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
            raise self._fail("max_rows", f"must be a positive integer, got {rows!r}.")
        self._set("max_rows", int(rows))

    def _place(self) -> str:
        return "unit"

    def warn_of_rows(self, stacklevel: int = 2, without_ids: bool = False) -> None:
        """Warn if a unit may have several rows but only one row may be protected.

        A schema that names a column of ids need not give a bound.
        """
        said = f"one {self.name} may have {self.max_rows} rows" if self.max_rows > 1 else ""
        if without_ids and self.column is not None:
            said = said or f"the ids of column {self.column!r}, which the schema names, are missing"
        if said:
            warnings.warn(
                f"{said}, while statistics, and fits and "
                "evaluations without ids, protect one row. Give ids: name their column in "
                "PrivacyUnit(column=...) and fit on the whole table, or X, y, groups = "
                "schema.split(frame, groups=True) and fit(X, y, groups=groups). Otherwise merge "
                "the rows of each, or use the guarantee for groups (skdp.accounting."
                "group_epsilon).",
                PrivacyWarning,
                stacklevel=stacklevel,
            )
