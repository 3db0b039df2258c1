"""Columns of dates, and differences of two dates, as bounded features."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from skdp.base.parameters import DateEncoding, DatePart, Unknown
from skdp.exceptions import SchemaError
from skdp.preprocessing.schema.base import MISSING, FeatureColumn, positions_in
from skdp.preprocessing.schema.calendars import (
    DAY,
    NO_DATE,
    UNKNOWN_DATE,
    calendar_part,
    date_problem,
    find_zone,
    read_dates,
    seconds_of,
)
from skdp.preprocessing.schema.columns import NumericColumn

PARTS: tuple[DatePart, ...] = ("year", "month", "weekday", "hour", "days")
# Of dates without a time of day.
PARTS_OF_DAYS: tuple[DatePart, ...] = ("year", "month", "weekday", "days")
# Parts that begin again, with the values that they take, and the most waves of one.
_CYCLES: dict[str, tuple[Any, ...]] = {
    "month": tuple(range(1, 13)),
    "weekday": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "hour": tuple(range(24)),
}
_MOST_WAVES = 6


def _check_zone(column: Any) -> None:
    name = column.timezone
    try:
        if not isinstance(name, str):
            raise ValueError
        find_zone(name)
    except Exception:  # of many kinds, by what the name looks like as a path
        raise column._fail(
            "timezone",
            f"must be a zone such as 'Europe/Berlin' or 'UTC', or '' for none, got {name!r}. If "
            "this computer has no time zones: pip install tzdata.",
        ) from None


def _check_codes(column: Any) -> None:
    """Convert dates among the codes to texts, and refuse anything else."""
    codes = column.missing_codes
    if isinstance(codes, str) or not hasattr(codes, "__iter__"):
        return  # is refused for all columns
    dated = (datetime.date, np.datetime64)
    texts = [_plain_date(column, "missing_codes", c) if isinstance(c, dated) else c for c in codes]
    for code in texts:
        if not isinstance(code, str):
            raise column._fail("missing_codes", f"must contain dates or texts, got {code!r}.")
    column._set("missing_codes", tuple(texts))


def _plain_date(column: Any, field: str, value: Any) -> str:
    """Return a public date as text, without the time of day at midnight."""
    cells = np.fromiter([value], dtype=object)
    seconds = int(read_dates(cells, column.timezone)[0])
    if seconds <= UNKNOWN_DATE:
        zoned = int(read_dates(cells, "UTC")[0]) > UNKNOWN_DATE
        remedy = " It has a time zone: give timezone= as well." if zoned else ""
        raise column._fail(field, f"must be a date such as '2020-01-31', got {value!r}.{remedy}")
    text = np.datetime_as_string(np.array(seconds, "M8[s]"), unit="s")
    return str(text).removesuffix("T00:00:00")


@dataclass(frozen=True, repr=False)
class _Cycle(FeatureColumn):
    """A cyclic part of a date, encoded as waves around its cycle."""

    kind: ClassVar[str] = "cyclic"
    values: tuple[Any, ...] = field(kw_only=True)

    def listed(self) -> tuple[Any, ...]:
        """Return the values in their order."""
        return self.values

    def _read(self, cells: np.ndarray) -> np.ndarray:
        return positions_in(cells, {value: j for j, value in enumerate(self.values)}, ())

    @property
    def _waves(self) -> np.ndarray:
        return np.arange(1, min(len(self.values) // 2, _MOST_WAVES) + 1)

    @property
    def _kept(self) -> np.ndarray:
        """Mask of features; the sine of a wave that is two values long is always 0 and left out."""
        return np.append(self._waves > 0, 2 * self._waves < len(self.values))

    def feature_names(self) -> list[str]:
        """Return one name per feature."""
        names = [f"{self.name} {wave}{k}" for wave in ("cos", "sin") for k in self._waves]
        return [name for name, kept in zip(names, self._kept, strict=True) if kept]

    def _features(self, found: np.ndarray) -> np.ndarray:
        count, amplitudes = len(self.values), 1.0 / self._waves
        turns = np.arange(count)[:, None] * self._waves % count * (2.0 * np.pi / count)
        table = np.hstack([amplitudes * np.cos(turns), amplitudes * np.sin(turns)])[:, self._kept]
        table *= self.weight / math.sqrt(np.sum(amplitudes**2))
        # The last row is that of cells without a value, whose place is negative.
        return np.vstack([table, np.zeros(table.shape[1])])[np.maximum(found, -1)]


class _Flag(_Cycle):
    """Whether a cell has no date, as one feature: 0 or the weight."""

    kind: ClassVar[str] = "boolean"

    def feature_names(self) -> list[str]:
        """Return the name."""
        return [self.name]

    def _features(self, found: np.ndarray) -> np.ndarray:
        return self.weight * (found == 1.0)[:, None]


@dataclass(frozen=True, repr=False)
class DateColumn(FeatureColumn):
    """A column of dates, with or without a time of day, between public bounds.

    A cell is a date of any supported table, or a text such as 2020-01-31, 2020-01-31T08:30 or
    2020-01-31 08:30:00+01:00. Fractions of seconds are ignored.

    Parameters
    ----------
    name : str
        Name in the table.
    first, last : str, date, datetime or None, default=None
        Public bounds, such as the first and last day of the study. Never use the first and last
        date of the table. Dates beyond the bounds count as the bound in the parts "year" and
        "days". None leaves the bounds open.
    parts : sequence of str, default=("year", "month", "weekday", "hour", "days")
        Parts of a date that become features, each with an equal share of the squared norm. "year"
        and "days" (since the first date) are numbers, mapped from the bounds to [-1, 1]. "year" is
        left out if both bounds are in the same year. "month", "weekday" and "hour" are waves around
        their cycle, with which a linear model follows any curve. Leave out "hour" if cells have no
        time of day.
    timezone : str, default=""
        Time zone that defines when a day begins, such as "Europe/Berlin". Cells with a zone or an
        offset are converted to it; other cells are assumed to be in it. Without a time zone, a
        column with a zone in its type is refused, and a single cell with an offset is unknown.
    encoding : {"auto", "scaled", "waves"}, default="auto"
        Features of the part "days": one feature, or the 16 waves of a `NumericColumn`. With waves a
        linear model follows any smooth curve over the years. ``"auto"`` is one feature, and waves
        in ``TableSchema.pipeline(..., encoding="auto")``.
    missing : {"refuse", "ignore", "indicator", "fill"}, default="refuse"
        Treatment of a missing cell or an empty text: an error; zeros; zeros and an indicator
        feature; or `fill_value`.
    fill_value : str, date, datetime or None, default=None
        Public date for ``missing="fill"``.
    missing_codes : sequence, default=()
        Dates and texts that mean "missing", such as "9999-12-31".
    weight : float, default=1.0
        Largest norm of the column's features.
    description, source : str, default=""
        Meaning of the column, and source of its bounds.
    unknown : {"refuse", "ignore", "indicator"}, default="refuse"
        Treatment of a cell that is no date: an error that does not quote it; zeros; or zeros and an
        indicator feature.

    See Also
    --------
    days_between : The difference of two columns of dates.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DateColumn
    >>> admitted = DateColumn("admitted", "2015-01-01", "2024-12-31", ["year", "weekday"])
    >>> block = admitted.encode(np.array(["2015-06-30", "2031-01-01"], dtype=object))
    >>> admitted.feature_names()[:2], (block[:, 0] * np.sqrt(2)).round(3)
    (['admitted year', 'admitted weekday cos1'], array([-1.,  1.]))
    """

    kind: ClassVar[str] = "date"
    needed: ClassVar[tuple[str, ...]] = ("first", "last")
    first: Any = None
    last: Any = None
    parts: Sequence[DatePart] = PARTS
    timezone: str = ""
    encoding: DateEncoding = "auto"
    unknown: Unknown = field(default="refuse", kw_only=True)

    def _check(self) -> None:
        _check_zone(self)
        self._check_choice("encoding", ("auto", "scaled", "waves"))
        self._check_choice("unknown", ("refuse", "ignore", "indicator"))
        parts = self._plain_values("parts", self.parts)
        if not parts or not set(parts) <= set(PARTS):
            raise self._fail("parts", f"must be among {', '.join(PARTS)}; got {list(parts)!r}.")
        self._set("parts", parts)
        for name in ("first", "last", "fill_value"):
            if (value := getattr(self, name)) is not None:
                self._set(name, _plain_date(self, name, value))
        if self._is_bounded and self.ends[0] >= self.ends[1]:
            raise self._fail("last", f"must be after first={self.first}, got {self.last}.")
        if not self._used:
            raise self._fail("parts", "both bounds are in one year: choose another part.")
        _check_codes(self)
        self._check_common()

    @property
    def _is_bounded(self) -> bool:
        return None not in (self.first, self.last)

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in seconds since 1970."""
        return seconds_of(self.first), seconds_of(self.last)

    def spaced(self, count: int) -> list[str]:
        """Return equally spaced dates between the bounds, as texts."""
        seconds = np.linspace(*self.ends, count).astype(np.int64).astype("M8[s]")
        return [str(text) for text in np.datetime_as_string(seconds)]

    @property
    def _used(self) -> tuple[DatePart, ...]:
        """The parts, without a year that is the same for all dates between the bounds."""
        one_year = self._is_bounded and self.first[:4] == self.last[:4]
        return tuple(part for part in self.parts if not (one_year and part == "year"))

    def check_dtype(self, dtype: Any) -> str | None:
        """Return a problem of a table's column type and its remedy, or None."""
        return date_problem(dtype, self.timezone)

    def listed(self) -> tuple[Any, ...]:
        """Return an empty tuple: dates have no list of values."""
        return ()

    def about_strangers(self, found: np.ndarray) -> str:
        """Return a warning text if no cell is a date; empty otherwise."""
        if not np.any(found == UNKNOWN_DATE) or np.any(found > UNKNOWN_DATE):
            return ""
        return "no cell is a date such as 2020-01-31. Are the dates written differently?"

    def feature_names(self) -> list[str]:
        """Return one name per feature."""
        return [name for piece in self.pieces() for name in piece.feature_names()]

    def pieces(self) -> tuple[FeatureColumn, ...]:
        """Return a column for each part in use, and for each indicator."""
        share = self.weight / math.sqrt(len(self._used))
        parts = [self._piece(part, share) for part in self._used]
        flags = [
            _Flag(f"{self.name} {word}", values=(False, True), weight=self.weight)
            for word in self._flags()
        ]
        return (*parts, *flags)

    def _piece(self, part: DatePart, share: float) -> FeatureColumn:
        absent = {self.missing, self.unknown} & {"ignore", "indicator"}
        about: dict[str, Any] = {"missing": "ignore" if absent else "refuse", "weight": share}
        name = f"{self.name} {part}"
        if part in _CYCLES:
            return _Cycle(name, values=_CYCLES[part], **about)
        about |= {"scale": "linear", "encoding": "scaled"}
        if part == "days":
            waves = self.encoding == "waves"
            about |= {"unit": "days", "encoding": "waves" if waves else "scaled"}
        if self._is_bounded:
            first, last = self.ends
            years, days = (self.first[:4], self.last[:4]), (0.0, (last - first) / DAY)
            about["lower"], about["upper"] = days if part == "days" else map(int, years)
        return NumericColumn(name, **about)

    def _flags(self) -> dict[str, int]:
        """Return indicator features of missing cells and cells that are no date, with codes."""
        policies = {"missing": (self.missing, NO_DATE), "unknown": (self.unknown, UNKNOWN_DATE)}
        return {word: code for word, (chosen, code) in policies.items() if chosen == "indicator"}

    def _read(self, cells: np.ndarray) -> np.ndarray:
        """Return seconds; codes of other cells remain only where they are allowed."""
        found = read_dates(cells, self.timezone, self.missing_codes)
        if self.missing == "refuse" and np.any(found == NO_DATE):
            raise self._refuse_missing()
        if self.unknown == "refuse" and np.any(found == UNKNOWN_DATE):
            raise self._fail(
                "unknown",
                "the policy is 'refuse' and the table has a cell that is no date, or has a time "
                "zone while the schema names none. Texts are dates if they look like 2020-01-31 or "
                "2020-01-31 08:30. Choose 'ignore' or 'indicator', convert other texts to dates "
                "row by row, or give timezone=. The cell is not shown, since it may be private.",
            )
        if self.missing == "fill":
            found[found == NO_DATE] = seconds_of(self.fill_value)
        return found

    def _features(self, found: np.ndarray) -> np.ndarray:
        """Return the features of seconds; each row has norm at most the weight."""
        given = found > UNKNOWN_DATE
        seconds = np.where(given, found, 0)
        places = [self._place_in(part, seconds, given) for part in self._used]
        places += [(found == code).astype(np.int64) for code in self._flags().values()]
        pairs = zip(self.pieces(), places, strict=True)
        return np.hstack([piece._features(cells) for piece, cells in pairs])

    def _place_in(self, part: str, seconds: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Return the number of a part of each date, or its place in its cycle."""
        if part in _CYCLES:
            return np.where(given, calendar_part(seconds, part), MISSING)
        numbers = (seconds - self.ends[0]) / DAY if part == "days" else calendar_part(seconds, part)
        return np.where(given, numbers, np.nan)


@dataclass(frozen=True, repr=False)
class DaysBetweenColumn(NumericColumn):
    """The number of days between two dates, with public bounds; see `days_between`.

    Parameters
    ----------
    name : str
        Name of the number. It is not a column of the table.
    lower, upper : float or None
        Public bounds in days. Differences beyond them, including negative ones, count as the bound.
    unit, scale, cuts, encoding : object
        See `NumericColumn`.
    missing : {"refuse", "ignore", "indicator", "fill"}, default="refuse"
        Treatment of a row in which either cell is missing or no date.
    fill_value : float or None, default=None
        Public number of days for ``missing="fill"``.
    missing_codes : sequence, default=()
        Dates and texts that mean "missing", such as "9999-12-31". A schema adds those of the two
        columns of dates.
    weight : float, default=1.0
        Largest norm of the column's features.
    description, source : str, default=""
        Meaning of the number, and source of its bounds.
    spikes : sequence of float or None, default=None
        See `NumericColumn`.
    start, end : str
        Names of the two columns in the table. They need no description in the schema, but may have
        one, as columns of dates or as ignored columns.
    timezone : str, default=""
        Time zone that defines when a day begins; see `DateColumn`. If empty, a schema uses that of
        the two columns of dates if it describes them. A day on which clocks change is one day.

    Examples
    --------
    >>> from skdp.preprocessing import DaysBetweenColumn
    >>> stay = DaysBetweenColumn("stay", 0, 60, start="admitted", end="discharged", cuts=[1, 7])
    >>> stay.feature_names(), stay.unit
    (['stay>=1', 'stay>=7'], 'days')
    """

    kind: ClassVar[str] = "days_between"
    unit: str = "days"
    start: str = field(kw_only=True)
    end: str = field(kw_only=True)
    timezone: str = field(default="", kw_only=True)

    def _check(self) -> None:
        self._check_text("start", "end")
        if not self.start or not self.end or self.start == self.end:
            raise self._fail("end", f"needs two columns, got {self.start!r} and {self.end!r}.")
        _check_zone(self)
        _check_codes(self)
        super()._check()

    def sources(self) -> tuple[Any, ...]:
        """Return a column of dates for each of the two columns of the table."""
        return tuple(DateColumn(name, timezone=self.timezone) for name in (self.start, self.end))

    def beside(self, columns: Iterable[Any]) -> DaysBetweenColumn:
        """Return the column with the time zone and codes that other columns give its dates."""
        dates = [
            c for c in columns if isinstance(c, DateColumn) and c.name in (self.start, self.end)
        ]
        zones = {column.timezone for column in dates if column.timezone}
        if not self.timezone and len(zones) > 1:
            raise self._fail(
                "timezone", f"must be given: {self.start!r} and {self.end!r} have two zones."
            )
        zone = self.timezone or next(iter(zones), "")
        codes = dict.fromkeys(
            [*self.missing_codes, *(c for own in dates for c in own.missing_codes)]
        )
        return dataclasses.replace(self, timezone=zone, missing_codes=tuple(codes))

    def _refuse_missing(self) -> SchemaError:
        return self._fail(
            "missing",
            f"the policy is 'refuse' and the table has a row in which {self.start!r} or "
            f"{self.end!r} is missing or no date. Choose 'ignore', 'indicator' or 'fill' with a "
            "public fill_value, or drop such rows by a rule that looks at one row at a time.",
        )

    def _read(self, cells: np.ndarray, ends: np.ndarray | None = None) -> np.ndarray:
        """Return days between two columns of dates, or those that are given as numbers."""
        return super()._read(cells if ends is None else self.days(cells, ends))

    def days(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the unclipped days between dates, NaN if either cell is missing or no date."""
        both = [read_dates(own, self.timezone, self.missing_codes) for own in (starts, ends)]
        given = np.minimum(*both) > UNKNOWN_DATE
        return np.where(given, (both[1] - both[0]) / DAY, np.nan)


def days_between(
    start: str, end: str, lower: Any, upper: Any, *, name: str | None = None, **options: Any
) -> DaysBetweenColumn:
    """Return a schema column for the number of days between two columns of dates.

    Examples are the length of a stay and the age at admission. Each row is computed by itself.
    Times of day count as fractions of a day.

    Parameters
    ----------
    start, end : str
        Names of the two columns in the table. They need no description in the schema.
    lower, upper : float or None
        Public bounds in days. Differences beyond them count as the bound.
    name : str or None, default=None
        Name of the number. None means "days from <start> to <end>".
    **options : dict
        Other parameters of `DaysBetweenColumn`, such as ``missing``, ``cuts`` or ``timezone``.

    Returns
    -------
    DaysBetweenColumn
        The column.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.preprocessing import TableSchema, days_between
    >>> schema = TableSchema([days_between("admitted", "discharged", 0, 10, name="stay")])
    >>> frame = pd.DataFrame({"admitted": ["2024-02-28"], "discharged": ["2024-03-04"]})
    >>> schema.features, schema.inputs, schema.preprocessor().fit_transform(frame).tolist()
    (['stay'], ['admitted', 'discharged'], [[0.0]])
    """
    own = f"days from {start} to {end}" if name is None else name
    return DaysBetweenColumn(own, lower, upper, start=start, end=end, **options)
