"""Checks that the holder of a table may run before a fit: cells that contradict the schema.

All results come from private cells without noise. They are returned, and neither warned of nor
raised, because a warning that depends on cells would reveal them in logs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from skdp.exceptions import SchemaError
from skdp.preprocessing.schema.base import (
    MISSING,
    UNKNOWN,
    as_numbers,
    names_read,
    positions_in,
)
from skdp.preprocessing.schema.calendars import DAY, NO_DATE, UNKNOWN_DATE, read_dates
from skdp.preprocessing.schema.columns import NumericColumn
from skdp.preprocessing.schema.dates import DateColumn, DaysBetweenColumn
from skdp.preprocessing.schema.frames import check_frame, series_cells
from skdp.preprocessing.schema.label import NumericLabel
from skdp.tables.places import split_columns

# Shares of cells above which a finding is reported.
_MANY_BEYOND, _MANY_ABSENT = 0.02, 0.2


def review_frame(schema: Any, frame: Any) -> list[str]:
    """Return a sentence for each possible mistake; it is as private as the cells."""
    found = []
    try:
        check_frame(schema, frame, label=False)
    except SchemaError as error:
        found = [line.removeprefix("- ") for line in str(error).splitlines()[1:]]
    there = Counter(frame.columns)
    parts = [schema[name] for name in schema.features] + [schema.label] * bool(schema.label)
    for part in parts:
        part.refuse_open()
    known = [part for part in parts if all(there[name] == 1 for name in names_read([part]))]
    names, unit = names_read(known), schema.unit
    names += [unit.column] * (there[unit.column] == 1)
    columns = split_columns(frame, names, [(name, partial(_read, name)) for name in names])[1]
    cells = dict(zip(names, columns, strict=True))
    for part in known:
        own = [cells[name] for name in names_read([part])]
        texts = _doubts(part, part.days(*own) if isinstance(part, DaysBetweenColumn) else own[0])
        found += [f"{part._place()}: {text}" for text in texts]
    return [*found, *(_doubts_of_unit(unit, cells[unit.column]) if unit.column in cells else ())]


def _read(name: str, rows: Any) -> np.ndarray:
    return series_cells(rows[name])


def _doubts(part: Any, cells: np.ndarray) -> Iterator[str]:
    codes, texts = getattr(part, "missing_codes", ()), []
    if isinstance(part, NumericColumn | NumericLabel):
        numbers = as_numbers(cells, codes)
        absent, known = np.isnan(numbers), numbers[~np.isnan(numbers)]
        texts = [cell for cell in cells[absent].tolist() if isinstance(cell, str) and cell.strip()]
        if texts:
            yield (
                f"{len(texts)} of {cells.size} cells are texts that are not numbers, and count as "
                "missing. Check for thousands separators, decimal commas and units."
            )
        if known.size and part.lower is not None and part.upper is not None:
            yield from _doubts_of_bounds(part.lower, part.upper, known)
    elif isinstance(part, DateColumn):
        dates = read_dates(cells, part.timezone, codes)
        absent, unknown = dates == NO_DATE, int(np.sum(dates == UNKNOWN_DATE))
        if unknown:
            yield (
                f"{unknown} of {cells.size} cells are no dates, or have a time zone while the "
                "schema names none. Dates look like 2020-01-31 or 2020-01-31 08:30."
            )
        days = dates[dates > UNKNOWN_DATE] // DAY
        ends = part.ends[0] // DAY, part.ends[1] // DAY
        if days.size and ends[0] < ends[1] and {"year", "days"} & set(part.parts):
            yield from _doubts_of_bounds(*ends, days, f"[{part.first}, {part.last}]")
    else:
        places = positions_in(
            cells, {value: place for place, value in enumerate(part.listed() or ())}, codes
        )
        absent, unknown = places == MISSING, int(np.sum(places == UNKNOWN))
        if unknown:
            yield (
                f"{unknown} of {cells.size} cells are not on the list. Compare their spelling "
                "with it: capital letters, blanks, numbers as texts."
            )
    share = (absent.sum() - len(texts)) / max(1, cells.size)
    if share > _MANY_ABSENT:
        yield f"{share:.0%} of the cells are missing."


def _doubts_of_bounds(
    lower: float, upper: float, known: np.ndarray, bounds: str = ""
) -> Iterator[str]:
    scale = "" if bounds else ", or scale='log'"
    bounds = bounds or f"[{lower:g}, {upper:g}]"
    if lower == known.min() and upper == known.max():
        yield (
            f"the bounds {bounds} are the smallest and the largest cell to the last "
            "digit. Bounds taken from the table publish these two cells. Take bounds from a code "
            "book, a device or physiology. The ends of a scale may stay."
        )
    beyond = float(np.mean((known < lower) | (known > upper)))
    if beyond > _MANY_BEYOND:
        yield (
            f"{beyond:.0%} of the cells are beyond the bounds {bounds}, and count as the bound. "
            "Check the unit of both."
        )
    inside = np.clip(known, lower, upper)  # cells may be infinite
    middle = float(np.ptp(np.quantile(inside, [0.01, 0.99]))) / (upper - lower)
    if middle < _MANY_BEYOND and beyond <= _MANY_BEYOND:
        yield (
            f"98 of 100 cells are within {middle:.1%} of the bounds {bounds}: all rows look "
            f"alike. Use narrower public bounds{scale}."
        )


def _doubts_of_unit(unit: Any, ids: np.ndarray) -> Iterator[str]:
    most = int(np.unique(ids.astype(str), return_counts=True)[1].max(initial=0))
    if most > unit.max_rows:
        yield (
            f"unit {unit.name!r}: one has {most} rows, but max_rows={unit.max_rows}. Fits with "
            "groups= protect all of them; otherwise correct the public bound."
        )
