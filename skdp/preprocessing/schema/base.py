"""What all kinds of column share: a checked, immutable public description."""

from __future__ import annotations

import dataclasses
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from skdp.choices import Missing
from skdp.exceptions import SchemaError
from skdp.preprocessing.schema.values import plain

MISSING_POLICIES = ("refuse", "ignore", "indicator", "fill")


def _is_keyword(field: dataclasses.Field[Any]) -> bool:
    return bool(field.kw_only)


class SchemaPart:
    """A part of a schema: a frozen dataclass that shows and exports what differs from defaults."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.given().items())
        return f"{type(self).__name__}({shown})"

    def given(self) -> dict[str, Any]:
        """Return the fields whose values differ from their defaults.

        Returns
        -------
        dict
            Values by the name of the field.
        """
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = [(field, getattr(self, field.name)) for field in sorted(fields, key=_is_keyword)]
        return {
            field.name: value
            for field, value in values
            if type(value) is not type(field.default) or value != field.default
        }

    def _fail(self, field: str, problem: str) -> SchemaError:
        return SchemaError(f"{self._place()}: {field}: {problem}")

    def _place(self) -> str:
        return type(self).__name__

    def _set(self, field: str, value: Any) -> None:
        object.__setattr__(self, field, value)

    def _check_text(self, *fields: str) -> None:
        for name in fields:
            value = getattr(self, name)
            if not isinstance(value, str):
                raise self._fail(name, f"must be text, got {value!r}.")

    def _check_choice(self, field: str, choices: tuple[str, ...]) -> None:
        value = getattr(self, field)
        if not isinstance(value, str) or value not in choices:
            listed = ", ".join(map(repr, choices))
            raise self._fail(field, f"must be one of {listed}; got {value!r}.")

    def _plain_number(self, field: str, value: Any, remedy: str = "") -> float:
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            if isinstance(value, str):
                remedy = "Numbers are written without quotes; in YAML write 1.0e-6, not 1e-6."
            raise self._fail(field, f"must be a number, got {value!r}. {remedy}".rstrip())
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond all floats
            number = math.inf
        if not math.isfinite(number):
            raise self._fail(field, f"must be finite, got {value!r}. {remedy}".rstrip())
        return number + 0.0  # minus zero becomes zero

    def _plain_values(self, field: str, values: Any) -> tuple[Any, ...]:
        """Return a list of distinct numbers, texts or booleans as a tuple of plain ones."""
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise self._fail(field, f"must be a list, got {values!r}.")
        found = tuple(plain(value) for value in values)
        for value in found:
            if not isinstance(value, str | bool | int | float) or value != value:
                raise self._fail(
                    field, f"must hold texts and numbers, got {value!r}. Quote dates and the like."
                )
        if len(set(found)) != len(found):
            raise self._fail(
                field, f"names a value twice: {list(found)!r} (1, 1.0 and True are one)."
            )
        return found


class CellPart(SchemaPart):
    """A part that says what the cells of one column of a table may be."""

    # Fields that a draft may leave open; of a part with a public list, the first one holds it.
    needed: ClassVar[tuple[str, ...]] = ()

    def left_open(self) -> tuple[str, ...]:
        """Return the fields that a draft leaves to be filled in.

        Returns
        -------
        tuple of str
            Names of fields.
        """
        return tuple(field for field in self.needed if getattr(self, field) is None)

    def refuse_open(self) -> None:
        """Raise a SchemaError if a field is left to be filled in."""
        if left := self.left_open():
            raise self._fail(
                " and ".join(left),
                "not given. Write down what the code book, the device or physiology says; values "
                "of the table, such as its minimum, would not be public.",
            )

    def listed(self) -> tuple[Any, ...] | None:
        """Return the values that a cell may hold.

        Returns
        -------
        tuple or None
            The public list; empty for numbers, None where the schema says nothing.
        """
        return None

    def check_dtype(self, dtype: Any) -> str | None:
        """Say what is wrong with the type of a table's column, if anything is.

        Parameters
        ----------
        dtype : dtype
            The type; no cell is looked at.

        Returns
        -------
        str or None
            The problem and its remedy.
        """
        return None


@dataclass(frozen=True, repr=False)
class Column(CellPart):
    """Base of all columns: names, checks and the shape of a column's block of features."""

    kind: ClassVar[str]
    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(
                f"{type(self).__name__}: name: must be non-empty text, got {self.name!r}."
            )
        self._check()

    def _place(self) -> str:
        return f"column {self.name!r}"

    def _check(self) -> None:
        """Check and normalise the fields."""

    @property
    def is_feature(self) -> bool:
        """Whether the column becomes features."""
        return isinstance(self, FeatureColumn)


@dataclass(frozen=True, repr=False)
class FeatureColumn(Column, ABC):
    """A column that becomes a block of features of norm at most its weight."""

    missing: Missing = field(default="refuse", kw_only=True)
    fill_value: Any = field(default=None, kw_only=True)
    missing_codes: Sequence[Any] = field(default=(), kw_only=True)
    weight: float = field(default=1.0, kw_only=True)
    description: str = field(default="", kw_only=True)
    source: str = field(default="", kw_only=True)

    def _check_common(self) -> None:
        self._check_text("description", "source")
        self._check_choice("missing", MISSING_POLICIES)
        if (self.missing == "fill") != (self.fill_value is not None):
            raise self._fail(
                "fill_value",
                "goes with missing='fill', and missing='fill' needs one: a public constant, not a "
                "mean or mode of the table.",
            )
        self._set("missing_codes", self._plain_values("missing_codes", self.missing_codes))
        weight = self._plain_number("weight", self.weight)
        if not 0.0 < weight <= 1e6:
            raise self._fail("weight", f"must be positive and at most 1e6, got {weight!r}.")
        self._set("weight", weight)

    @abstractmethod
    def feature_names(self) -> list[str]:
        """Return one name a feature."""

    @abstractmethod
    def _read(self, cells: np.ndarray) -> np.ndarray:
        """Return numbers, NaN for a missing one, or places on a list; each cell by itself."""

    @abstractmethod
    def _features(self, found: np.ndarray) -> np.ndarray:
        """Return the features of what `_read` returned."""

    def encode(self, cells: np.ndarray) -> np.ndarray:
        """Return the features of cells; each row has norm at most the column's weight.

        Parameters
        ----------
        cells : ndarray of shape (n_samples,)
            Cells of the column.

        Returns
        -------
        ndarray of shape (n_samples, n_features_of_the_column)
            Features.

        Raises
        ------
        ValueError
            If the array's type cannot hold what the schema says, or a policy is "refuse" and
            there is such a cell; the message quotes none.
        """
        return self._features(self.read(cells))

    def read(self, cells: np.ndarray) -> np.ndarray:
        """Return what the description makes of cells, each by itself.

        Parameters
        ----------
        cells : ndarray of shape (n_samples,)
            Cells of the column.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers, NaN where one is missing; or places on the public list, negative for a cell
            that is missing or not listed.

        Raises
        ------
        ValueError
            As for `encode`.
        """
        self.refuse_open()
        refuse_misfits([(self, cells.dtype)])
        return self._read(cells)

    def _refuse_missing(self) -> SchemaError:
        return self._fail(
            "missing",
            "the policy is 'refuse' and the table has a cell that is missing or, in a numeric "
            "column, no number. Choose 'ignore', 'indicator' or 'fill' with a public fill_value, "
            "or drop such rows, each by itself.",
        )


def refuse_misfits(pairs: Iterable[tuple[Any, Any]], problems: Iterable[str] = ()) -> None:
    """Refuse a table of (part, type) pairs that do not fit, or with other problems, at once.

    No cell is looked at; a type's own parameters, which may be cells, are left out.
    """
    misfits = [
        f"column {part.name!r} has type {str(dtype).partition('(')[0]}: {problem}"
        for part, dtype in pairs
        if (problem := part.check_dtype(dtype))
    ]
    if found := [*problems, *misfits]:
        raise SchemaError("the table does not fit the schema:\n- " + "\n- ".join(found))


def one_hot(places: np.ndarray, count: int) -> np.ndarray:
    """Return one row for each place, with a one there; zeros for places outside 0..count-1."""
    return (places[:, None] == np.arange(count)).astype(np.float64)


def centre(places: np.ndarray, count: int) -> np.ndarray:
    """Return one-hot rows less the mean of their entries, scaled to norm 1.

    Before that the squared norm is ``(1 - 1/K)**2 + (K - 1)/K**2 = 1 - 1/K``, with K = `count`.
    """
    return (one_hot(places, count) - 1.0 / count) / math.sqrt(1.0 - 1.0 / count)
