"""Parts of a schema: checked, immutable public descriptions, and how their cells are read.

Each cell is read by itself. No column is converted to a type that its cells decide together, and no
cell can cause an error except under "refuse". Messages name columns and never quote a cell.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np

from skdp.base.parameters import Missing
from skdp.exceptions import SchemaError
from skdp.tables.inputs import HOLDS_TIMES, nearest_float

MISSING_POLICIES = ("refuse", "ignore", "indicator", "fill")

# Position of a cell that is missing, and of one that is on no list.
MISSING, UNKNOWN = -1, -2

# What `as_numbers` reads as a number, if anything; bytes, times and complex numbers are none.
_READABLE = (float, int, str, numbers.Real, np.bool_, Decimal)

_FAMILIES = {
    "any": ("interval",),
    "number": ("int", "uint", "float", "halffloat", "double", "decimal"),
    "boolean": ("bool",),
    "text": ("str", "utf8", "large_string", "<u", ">u", "categorical", "enum"),
    # Times, bytes and the like, which are neither numbers nor texts.
    "other": ("date", "time", "period", "duration", "|s", "binary", "large_binary", "complex"),
}


class SchemaPart:
    """Part of a schema: a frozen dataclass that shows and exports non-default fields."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.given().items())
        return f"{type(self).__name__}({shown})"

    def given(self) -> dict[str, Any]:
        """Return the values of fields that differ from their defaults, by field name."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        by_place = sorted(fields, key=lambda field: bool(field.kw_only))
        values = [(field, getattr(self, field.name)) for field in by_place]
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
            if hasattr(value, "isoformat") or isinstance(value, np.datetime64):
                remedy = "Use a DateColumn for dates."
            elif isinstance(value, str):
                remedy = "Write numbers without quotes; in YAML write 1.0e-6, not 1e-6."
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
                problem = (
                    f"must contain texts and numbers, got {value!r}. Quote dates and the like."
                )
                raise self._fail(field, problem)
        if len(set(found)) != len(found):
            raise self._fail(
                field, f"contains a value twice: {list(found)!r} (1, 1.0 and True are equal)."
            )
        return found


class CellPart(SchemaPart):
    """Part that specifies the cells of one column of a table."""

    # Fields that a draft may leave open; of a part with a public list, the first one holds it.
    needed: ClassVar[tuple[str, ...]] = ()

    def left_open(self) -> tuple[str, ...]:
        """Return the names of fields that are still to be filled in."""
        return tuple(field for field in self.needed if getattr(self, field) is None)

    def refuse_open(self) -> None:
        """Raise a SchemaError if a field is still to be filled in."""
        if left := self.left_open():
            raise self._fail(
                " and ".join(left),
                "not given. Take the values from the code book, the device or physiology. Values "
                "of the table, such as its minimum, are not public.",
            )

    def listed(self) -> tuple[Any, ...] | None:
        """Return the public list of values; empty for numbers, None if there is no description."""
        return None

    def check_dtype(self, dtype: Any) -> str | None:
        """Return a problem of a table's column type and its remedy, or None."""
        return None

    def sources(self) -> tuple[Any, ...]:
        """Return a description of each table column that this part reads."""
        return (self,)

    def _admit(self, cells: np.ndarray) -> None:
        """Refuse open parts and cells of an unsuitable type, without reading a cell."""
        self.refuse_open()
        refuse_misfits([(self, cells.dtype)])

    def _check_numbers(self, *fields: str) -> None:
        for name in fields:
            if (value := getattr(self, name)) is not None:
                self._set(name, self._plain_number(name, value, "Give a public bound."))


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
    """A column that becomes a block of features with norm at most its weight."""

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
                "must be given with missing='fill', and only then. Give a public constant, not a "
                "mean or mode of the table.",
            )
        self._set("missing_codes", self._plain_values("missing_codes", self.missing_codes))
        weight = self._plain_number("weight", self.weight)
        if not 0.0 < weight <= 1e6:
            raise self._fail("weight", f"must be positive and at most 1e6, got {weight!r}.")
        self._set("weight", weight)

    @abstractmethod
    def feature_names(self) -> list[str]:
        """Return one name per feature."""

    @abstractmethod
    def _read(self, cells: np.ndarray) -> np.ndarray:
        """Return numbers, NaN for a missing one, or places on a list; each cell by itself."""

    @abstractmethod
    def _features(self, found: np.ndarray) -> np.ndarray:
        """Return the features of the result of `_read`."""

    def pieces(self) -> tuple[FeatureColumn, ...]:
        """Return columns that together give the same features, side by side."""
        return (self,)

    def about_strangers(self, found: np.ndarray) -> str:
        """Return a warning text if no cell is as expected; empty otherwise."""
        return ""

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
            If the array's type cannot hold the described values, or if there is a cell that a
            policy "refuse" does not allow. The message quotes no cell.
        """
        return self._features(self.read(cells))

    def read(self, cells: np.ndarray) -> np.ndarray:
        """Return cells as the description reads them; errors are those of `encode`.

        Each cell is read by itself.

        Parameters
        ----------
        cells : ndarray of shape (n_samples,)
            Cells of the column.

        Returns
        -------
        ndarray of shape (n_samples,)
            For numeric columns, numbers with NaN for missing cells. For columns with a list, places
            on it, negative for missing and unlisted cells. For dates, seconds since 1970 in local
            time.
        """
        self._admit(cells)
        return self._read(cells)

    def _refuse_missing(self) -> SchemaError:
        return self._fail(
            "missing",
            "the policy is 'refuse' and the table has a cell that is missing or, in a numeric "
            "column, not a number (such as a text with a thousands separator, a decimal comma or a "
            "unit). Choose 'ignore', 'indicator' or 'fill' with a public fill_value, or drop such "
            "rows by a rule that looks at one row at a time.",
        )


def refuse_misfits(pairs: Iterable[tuple[Any, Any]], problems: Iterable[str] = ()) -> None:
    """Refuse a table with (part, type) pairs that do not fit, or with other problems.

    No cell is read. Parameters of a type are left out, since they may be cells.
    """
    misfits = [
        f"column {part.name!r} has type {str(dtype).partition('(')[0]}: {problem}"
        for part, dtype in pairs
        if (problem := part.check_dtype(dtype))
    ]
    if found := list(dict.fromkeys([*problems, *misfits])):
        raise SchemaError("the table does not fit the schema:\n- " + "\n- ".join(found))


def norm_of(columns: Sequence[FeatureColumn]) -> float:
    """Return the largest norm of a row of features: the root of the summed squared weights."""
    return math.hypot(*(column.weight for column in columns))


def names_read(columns: Iterable[Any]) -> list[str]:
    """Return the names of the table columns that columns of a schema read, each once."""
    return list(dict.fromkeys(part.name for own in columns for part in own.sources()))


def one_hot(places: np.ndarray, count: int) -> np.ndarray:
    """Return one row per place, with a one there; zeros for places outside 0..count-1."""
    return (places[:, None] == np.arange(count)).astype(np.float64)


def centre(places: np.ndarray, count: int) -> np.ndarray:
    """Return one-hot rows minus the mean of their entries, scaled to norm 1.

    The squared norm before scaling is ``(1 - 1/K)**2 + (K - 1)/K**2 = 1 - 1/K``, K = `count`.
    """
    return (one_hot(places, count) - 1.0 / count) / math.sqrt(1.0 - 1.0 / count)


def dtype_family(dtype: Any) -> str:
    """Return the kind of cells that a type guarantees; "any" if it guarantees none."""
    text = _type_name(dtype)
    return next((name for name, starts in _FAMILIES.items() if text.startswith(starts)), "any")


def holds_dates(dtype: Any) -> bool:
    """Return whether a column's type is one of dates, with or without a time of day."""
    return _type_name(dtype).startswith(("date", "timestamp"))


def listing_problem(dtype: Any, values: Sequence[Any], codes: Sequence[Any] = ()) -> str | None:
    """Return why a column of this type cannot hold listed values and codes, or None."""
    family = dtype_family(dtype)
    texts = [isinstance(value, str) for value in values]
    if family == "other":
        if holds_dates(dtype):
            return HOLDS_TIMES
        return "holds times, bytes or the like; convert them to numbers or categories row by row."
    if family == "text" and values and not any(texts):
        return "holds text but the schema lists numbers; convert the column or quote the values."
    if family in ("number", "boolean") and values and all(texts):
        return "holds numbers but the schema lists text; convert the column or unquote the values."
    if not all(_float_can_tell(dtype, value) for value in (*values, *codes)):
        return (
            "holds floats, or may hold them, which are too coarse for the listed numbers: "
            "neighbours are rounded to the same float. Read the column as integers or text, for "
            "example with TableSchema.read_csv. One missing cell makes pandas convert plain "
            "integers to floats."
        )
    return None


def number_problem(dtype: Any) -> str | None:
    """Return why a column of this type cannot hold numbers, or None."""
    if holds_dates(dtype):
        return f"is numeric in the schema but its type is not: it {HOLDS_TIMES}"
    if dtype_family(dtype) in ("text", "other"):
        return "is numeric in the schema but its type is not; convert it row by row."
    return None


def _float_can_tell(dtype: Any, value: Any) -> bool:
    """Return whether a float type holds a number and no neighbour rounds to it."""
    text = _type_name(dtype)
    # pandas makes floats of integer categories as soon as one cell is a float: any may be some.
    if isinstance(value, str) or not text.startswith(("float", "double", "halffloat", "category")):
        return True
    half, single = text.startswith(("float16", "half")), text.startswith(("float32", "float["))
    kind = np.float16 if half else np.float32 if single else np.float64
    return abs(value) < 2 ** (np.finfo(kind).nmant + 1) and float(kind(value)) == value


def _type_name(dtype: Any) -> str:
    """Return a type's name in lower case."""
    return str(dtype).lower().removeprefix("sparse[")


def as_numbers(cells: np.ndarray, codes: Sequence[Any]) -> np.ndarray:
    """Return cells as float64; NaN for missing cells, codes and cells that are not a number.

    Infinity stays. Text is the number that Python's ``float`` reads in it.
    """
    if cells.dtype.kind in "biuf" and cells.dtype.itemsize <= 8:
        found = cells.astype(np.float64)
    else:
        found = np.array([_number(cell) for cell in cells.tolist()], dtype=np.float64)
    for code in codes:
        found[found == _number(code)] = np.nan
    return found


def positions_in(
    cells: np.ndarray, position: Mapping[Any, int], codes: Sequence[Any]
) -> np.ndarray:
    """Return each cell's position on a public list; `MISSING` or `UNKNOWN` otherwise.

    A cell is the listed value that it equals in Python, or else the one with the same text. Cells
    among `codes` are missing.
    """
    # 1 equals 1.0, True and "1". The texts "1.0", " 1" and "01" are not 1, and bytes are no text.
    listed = {**position, **dict.fromkeys(codes, MISSING)}
    known = {**{str(value): place for value, place in listed.items()}, **listed}
    found = cells.tolist()
    try:
        places = list(map(known.get, found))
    except Exception:  # some cell is no key: each is asked for by itself
        places = [_get(known, cell) for cell in found]
    if None in places:
        pairs = zip(places, found, strict=True)
        places = [_position_of_text(c, known) if place is None else place for place, c in pairs]
    return np.array(places, dtype=np.int64)


def plain(value: Any) -> Any:
    """Return a numpy scalar as a Python scalar, and a whole float as the equal integer."""
    value = value.item() if isinstance(value, np.generic) else value
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def is_missing(cell: Any) -> bool:
    """Return whether a cell is None, NaN, NaT or pandas' NA."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except Exception:  # a cell decides about no error
        return type(cell).__name__ == "NAType"


def _get(known: Mapping[Any, int], cell: Any) -> int | None:
    try:
        return known.get(cell)
    except Exception:  # what cannot be hashed or compared is on no list
        return UNKNOWN


def _position_of_text(cell: Any, known: Mapping[Any, int]) -> int:
    if isinstance(cell, str):  # it was looked up as it is
        return UNKNOWN
    if is_missing(cell):
        return MISSING
    value = plain(cell)
    try:
        return known.get(str(value), UNKNOWN) if isinstance(value, bool | int | float) else UNKNOWN
    except ValueError:  # Python writes no integer of more than 4300 digits
        return UNKNOWN


def _number(cell: Any) -> float:
    try:
        return nearest_float(cell) if isinstance(cell, _READABLE) else math.nan
    except Exception:  # a cell decides about no error
        return math.nan
