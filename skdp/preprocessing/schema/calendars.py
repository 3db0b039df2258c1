"""Dates of any kind of table, read cell by cell as seconds in a public time zone.

Only the date of a cell is used. Equal dates give equal features in every kind of table.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from skdp.preprocessing.schema.base import dtype_family, holds_dates, is_missing

DAY = 86_400
# What stands for a cell that is missing, which is numpy's own NaT, and for one that is no date.
NO_DATE = np.iinfo(np.int64).min
UNKNOWN_DATE = NO_DATE + 1
# Dates before the year 1 and after 9999 count as the first and the last that Python knows.
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_FIRST = (1 - _EPOCH) * DAY
_LAST = (datetime.date.max.toordinal() + 1 - _EPOCH) * DAY - 1
# Marks numpy's dates that are instants, in UTC, of a column whose type has a time zone.
_INSTANTS = {"skdp": "instants"}

_ISO = re.compile(
    r"\d{4}-\d\d-\d\d"
    r"(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?"
    r"(?:Z|[+-]\d\d(?::?\d\d(?::\d\d)?)?)?)?",
    re.ASCII,
)


def read_dates(cells: np.ndarray, timezone: str = "", codes: Sequence[str] = ()) -> np.ndarray:
    """Return seconds since 1970 in a zone's local time, as int64; each cell is read by itself.

    Cells with a zone are converted; other cells are in the zone. Codes, as text or date, are
    missing.
    """
    zone = find_zone(timezone)
    if cells.dtype.kind == "M":
        found = _whole_seconds(cells)
        aware = np.full(found.shape, cells.dtype.metadata == _INSTANTS)
    else:
        read = functools.lru_cache(1 << 16)(_moment)
        pairs = [_recalled(read, cell, codes) for cell in cells.tolist()]
        found = np.array([moment for moment, _ in pairs], dtype=np.int64)
        aware = np.array([has_zone for _, has_zone in pairs], dtype=bool)
    aware &= found > UNKNOWN_DATE
    found[aware] = UNKNOWN_DATE if zone is None else _local(found[aware], zone)
    if codes:
        coded = read_dates(np.fromiter(codes, dtype=object), timezone)
        found[np.isin(found, coded[coded > UNKNOWN_DATE])] = NO_DATE
    return found


def is_date(value: Any) -> bool:
    """Return whether a public value is a date or a text of one."""
    cells = np.fromiter([value], dtype=object)
    return int(read_dates(cells, "UTC")[0]) > UNKNOWN_DATE


def seconds_of(date: str) -> int:
    """Return the seconds since 1970 of a public text, in its own calendar."""
    return int(read_dates(np.array([date], dtype=object))[0])


def mark_instants(cells: np.ndarray) -> np.ndarray:
    """Return numpy's dates in UTC with a mark that their column's type has a time zone."""
    kind: Any = np.dtype(cells.dtype.str, metadata=_INSTANTS)
    return cells.astype(kind)


def zone_of(dtype: Any) -> str:
    """Return the time zone of a column's type; empty if it has none."""
    arrow = getattr(dtype, "pyarrow_dtype", None)
    zones = (
        getattr(dtype, "tz", None),
        getattr(dtype, "time_zone", None),
        getattr(arrow, "tz", None),
    )
    return next((str(zone) for zone in zones if zone is not None), "")


def date_problem(dtype: Any, timezone: str) -> str | None:
    """Return why a column of this type cannot hold dates, or None."""
    family = dtype_family(dtype)
    if family in ("number", "boolean") or (family == "other" and not holds_dates(dtype)):
        return (
            "is a date in the schema but its type is not: convert it to dates, or to texts such "
            "as 2020-01-31, row by row."
        )
    if zone_of(dtype) and not timezone:
        return (
            "has a time zone: give the column of the schema a timezone= such as 'Europe/Berlin', "
            "the place that defines when a day begins."
        )
    return None


def calendar_part(seconds: np.ndarray, part: str) -> np.ndarray:
    """Return the calendar year of seconds since 1970, or the place of another part in its cycle."""
    if part == "year":
        return seconds.astype("M8[s]").astype("M8[Y]").astype(np.int64) + 1970
    if part == "month":
        return seconds.astype("M8[s]").astype("M8[M]").astype(np.int64) % 12
    return (seconds // DAY + 3) % 7 if part == "weekday" else seconds // 3600 % 24


@functools.lru_cache
def find_zone(timezone: str) -> ZoneInfo | None:
    """Return the zone of a name, or None for an empty name; errors are those of Python."""
    return ZoneInfo(timezone) if timezone else None


def _recalled(
    read: Callable[[Any], tuple[int, bool]], cell: Any, codes: Sequence[str]
) -> tuple[int, bool]:
    """Return the date of a cell; only texts are cached, since other objects may compare equal."""
    try:
        if not isinstance(cell, str):
            return _moment(cell)
        return (NO_DATE, False) if cell in codes else read(cell)
    except Exception:  # a cell decides about no error
        return UNKNOWN_DATE, False


def _moment(cell: Any) -> tuple[int, bool]:
    """Return seconds since 1970 of a cell, and whether they are UTC instead of local time."""
    if isinstance(cell, str):
        text = cell.strip()
        if not text:
            return NO_DATE, False
        found = None
        if _ISO.fullmatch(text):
            with suppress(ValueError):
                found = datetime.datetime.fromisoformat(text)
        cell = found
        if cell is None:
            return UNKNOWN_DATE, False
    if is_missing(cell):
        return NO_DATE, False
    if isinstance(cell, np.datetime64):
        return int(_whole_seconds(np.array([cell]))[0]), False
    if not isinstance(cell, datetime.date):
        return UNKNOWN_DATE, False
    seconds = (cell.toordinal() - _EPOCH) * DAY
    if not isinstance(cell, datetime.datetime):
        return seconds, False
    seconds += cell.hour * 3600 + cell.minute * 60 + cell.second
    offset = cell.utcoffset()
    if offset is None:
        return seconds, False
    fraction = datetime.timedelta(microseconds=cell.microsecond) - offset
    return seconds + fraction // datetime.timedelta(seconds=1), True


def _whole_seconds(cells: np.ndarray) -> np.ndarray:
    """Return numpy's dates of any unit as whole seconds since 1970, rounded down."""
    if np.datetime_data(cells.dtype)[0] in ("Y", "M", "W", "D", "h", "m"):  # more than seconds hold
        ends = np.array([_FIRST, _LAST], "M8[s]").astype(cells.dtype)
        cells = np.where(np.isnat(cells), cells, np.clip(cells, *ends))
    found = cells.astype("M8[s]").astype(np.int64)
    return np.where(found == NO_DATE, found, np.clip(found, _FIRST, _LAST))


def _local(instants: np.ndarray, zone: ZoneInfo) -> np.ndarray:
    """Return the local time of a zone at instants, as seconds since 1970."""
    days, place = np.unique(instants // DAY, return_inverse=True)
    starts = np.array([_offset(day * DAY, zone) for day in days.tolist()], dtype=np.int64)
    ends = np.array([_offset((day + 1) * DAY, zone) for day in days.tolist()], dtype=np.int64)
    offsets = starts[place]
    # No zone puts its clocks forward and back within 24 hours.
    for j in np.flatnonzero((starts != ends)[place]):
        offsets[j] = _offset(int(instants[j]), zone)
    return np.asarray(np.clip(instants + offsets, _FIRST, _LAST))


def _offset(instant: int, zone: ZoneInfo) -> int:
    inside = min(max(instant, _FIRST + 2 * DAY), _LAST - 2 * DAY)
    utc = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=inside)
    offset = utc.astimezone(zone).utcoffset() or datetime.timedelta()
    return offset // datetime.timedelta(seconds=1)
