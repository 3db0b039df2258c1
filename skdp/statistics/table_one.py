"""Descriptive table of a study, "Table 1": counts, shares, means and deviations by arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import html_table
from skdp.base.parameters import Adjacency
from skdp.mechanisms.release import Release
from skdp.preprocessing import DateColumn, DaysBetweenColumn, NumericColumn, TableSchema
from skdp.preprocessing.schema.base import FeatureColumn, names_read, refuse_misfits
from skdp.preprocessing.schema.frames import column_types, import_pandas, series_cells
from skdp.statistics._terms import OfFrame, Terms, bounds_of, describe_noise, positions
from skdp.statistics.counts import table_of
from skdp.statistics.moments import moment
from skdp.statistics.noise import UNIT, Plan, shares


class TableRow(NamedTuple):
    """Statistic of one column in one arm, with bounds."""

    arm: Any
    column: str
    level: Any
    statistic: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class PrivateTableOne:
    """Descriptive table of a study under one guarantee.

    Parameters
    ----------
    rows : tuple of TableRow
        Named tuples ``(arm, column, level, statistic, value, low, high)``: "n" of every arm,
        "count" and "share" of every level, "mean" and "sd" of numeric columns. Bounds are for the
        table; each is valid with probability `confidence` by itself.
    arms : tuple
        Arms, or ``("all",)``.
    confidence : float
        Coverage probability of the bounds.
    scale : float
        Scale of the noise on every sum, in records.
    privacy_spent_ : PrivacySpent
        Guarantee of the complete table, mechanism and assumptions.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.preprocessing import NumericColumn, TableSchema
    >>> from skdp.statistics import private_table_one
    >>> schema = TableSchema([NumericColumn("age", 0, 120)])
    >>> table = private_table_one(pd.DataFrame({"age": [61, 47] * 500}), schema, epsilon=1.0)
    >>> [row.statistic for row in table.rows], table.arms
    (['n', 'mean', 'sd'], ('all',))
    """

    rows: tuple[TableRow, ...]
    arms: tuple[Any, ...]
    confidence: float
    scale: float
    privacy_spent_: PrivacySpent

    def to_frame(self) -> Any:
        """Return the rows as a pandas frame.

        Returns
        -------
        DataFrame
            One row per statistic.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> from skdp.statistics import private_table_one
        >>> schema = TableSchema([NumericColumn("age", 0, 120)])
        >>> table = private_table_one(pd.DataFrame({"age": [61, 47] * 500}), schema, epsilon=1.0)
        >>> list(table.to_frame().columns)
        ['arm', 'column', 'level', 'statistic', 'value', 'low', 'high']
        """
        return import_pandas().DataFrame(list(self.rows), columns=list(TableRow._fields))

    def _lines(self) -> list[tuple[str, ...]]:
        """Return the printed table: one line per column or level, one text per arm."""
        found: dict[tuple[Any, ...], dict[Any, dict[str, TableRow]]] = {}
        for row in self.rows:
            # A column may have the name of the line of sizes.
            line = found.setdefault((row.column, row.level, row.statistic == "n"), {})
            line.setdefault(row.arm, {})[row.statistic] = row
        return [("", *map(str, self.arms))] + [
            (
                column if level is None else f"{column}: {level}",
                *(_text(line[arm]) for arm in self.arms),
            )
            for (column, level, _), line in found.items()
        ]

    def __str__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        rows = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return "\n".join([*rows, f"{self.confidence:.6g} intervals; {self.privacy_spent_!r}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(f"Table 1. {self.privacy_spent_!r}", self._lines())


def private_table_one(
    frame: Any,
    schema: TableSchema,
    *,
    by: str | None = None,
    columns: Sequence[str] | None = None,
    epsilon: float,
    delta: float = 0.0,
    adjacency: Adjacency | None = None,
    mechanism: str = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateTableOne:
    """Release the descriptive table of a study ("Table 1") with one charge.

    Parameters
    ----------
    frame : DataFrame
        Pandas or polars frame, one row per record.
    schema : TableSchema
        Description with bounds, lists of values, and policies for missing cells. A cell that is
        left out counts in no statistic of its column.
    by : str or None, default=None
        Column with a list of values, which are the arms. None describes all rows together.
    columns : sequence of str or None, default=None
        Columns to describe; fewer columns have less noise. None uses all features of the schema
        except dates. Days between two dates are numbers.
    epsilon, delta, adjacency, mechanism, confidence, accountant, random_state
        As for `private_count`, with the same errors. Epsilon and delta are for the complete table.

    Returns
    -------
    PrivateTableOne
        Table that prints as text, displays in notebooks, and has ``rows`` and ``to_frame()``.

    Notes
    -----
    With c columns there are c + 1 releases of one scale: the sizes of the arms, and for each column
    one table of arms by levels, or of arms by the three cells of `private_variance`. A record is in
    at most one arm, so each table has the sensitivity of one histogram: arms compose in parallel.
    Under replace-one, a record may move between arms, which changes two: sensitivity 2. Shares,
    means and deviations follow from the released sums at no cost. Proof: :ref:`Theorem 6 of
    statistics <statistics-6>`, with :ref:`Theorem 1 <statistics-1>` on noise and :ref:`Theorem 3
    <statistics-3>` on intervals.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.preprocessing import CategoricalColumn, NumericColumn, TableSchema
    >>> from skdp.statistics import private_table_one
    >>> schema = TableSchema(
    ...     [NumericColumn("age", 0, 120), CategoricalColumn("arm", ["drug", "placebo"])]
    ... )
    >>> frame = pd.DataFrame({"age": [61, 47] * 500, "arm": ["drug", "placebo"] * 500})
    >>> table = private_table_one(frame, schema, by="arm", epsilon=1.0)
    >>> [(row.arm, row.statistic) for row in table.rows[2:]]
    [('drug', 'mean'), ('drug', 'sd'), ('placebo', 'mean'), ('placebo', 'sd')]
    """
    terms = Terms(
        "private_table_one",
        *(epsilon, delta, adjacency, mechanism, confidence, accountant, random_state),
    )
    if not isinstance(schema, TableSchema):
        raise TypeError(f"schema must be a TableSchema, got {type(schema).__name__}.")
    usual = [name for name in schema.features if not isinstance(schema[name], DateColumn)]
    names = [name for name in usual if name != by] if columns is None else list(columns)
    parts = [_part(schema, name) for name in names]
    schema.unit.warn_of_rows(stacklevel=3)
    known = [name for name, _ in column_types(frame)]
    needed = [*names_read(parts), *([] if by is None else [by])]
    if absent := [name for name in needed if name not in known]:
        raise ValueError(f"the frame has no columns {absent}.")
    arms: tuple[Any, ...] = ("all",)
    # Without arms, any described column gives the number of rows.
    arm: tuple[Any, Any] = (frame[needed[0]] if needed else np.zeros(len(frame)), _all_alike)
    if by is not None:
        part = _part(schema, by)
        arms = part.listed() or ()
        if not arms:
            raise ValueError(f"by={by!r}: the schema has no list of values for this column.")
        arm = (frame[by], part.read)

    def use(plan: Plan, places: np.ndarray, *read: np.ndarray) -> list[np.ndarray]:
        found = zip(parts, read, strict=True)
        exact = [_sums(part, places, cells, len(arms)) for part, cells in found]
        sizes = table_of([places], [len(arms)])
        return terms.add_noise(plan, [sizes, *exact], places, *read)

    noisy, plan, spent = terms.release(
        [arm, *(_asked(frame, part) for part in parts)],
        lambda: terms.noise_of(*_releases(parts, terms.adjacency)),
        lambda plan: (
            f"Table 1, {len(parts) + 1} releases: {describe_noise(plan)}",
            ("bounds, levels and arms are public", "one record is one row, in one arm at most"),
            ("Table 1",),
        ),
        use,
    )
    rows = _describe(arms, parts, plan, noisy, terms.failure)
    return PrivateTableOne(rows, tuple(arms), terms.confidence, plan.releases[0].people, spent)


def _all_alike(cells: np.ndarray) -> np.ndarray:
    return np.zeros(len(cells), dtype=np.int64)


def _part(schema: TableSchema, name: str) -> FeatureColumn:
    column = schema[name]
    if not isinstance(column, FeatureColumn):
        raise ValueError(f"column {name!r} is ignored in the schema: describe it.")
    if isinstance(column, DateColumn):
        raise ValueError(
            f"column {name!r} is a DateColumn, which Table 1 does not describe: use days_between "
            "two dates, or convert it to categories, row by row."
        )
    if isinstance(column, NumericColumn):
        bounds_of(column)
    return column


def _releases(parts: Sequence[FeatureColumn], adjacency: Adjacency) -> list[Release]:
    units = [UNIT if isinstance(part, NumericColumn) else 1 for part in parts]
    return [Release.shares("Table 1", adjacency, unit) for unit in (1, *units)]


def _asked(frame: Any, part: FeatureColumn) -> tuple[Any, Any]:
    """Return the columns of the frame for a description, and the function to read them."""
    if isinstance(part, DaysBetweenColumn):
        return frame[names_read([part])], OfFrame(partial(_read_days, part))
    return frame[part.name], partial(_read, part)


def _read_days(part: DaysBetweenColumn, frame: Any) -> np.ndarray:
    columns = [frame[name] for name in names_read([part])]
    refuse_misfits(zip(part.sources(), [column.dtype for column in columns], strict=True))
    return positions(part.days(*map(series_cells, columns)), part)


def _read(part: FeatureColumn, cells: np.ndarray) -> np.ndarray:
    return positions(cells, part) if isinstance(part, NumericColumn) else part.read(cells)


def _sums(part: FeatureColumn, arm: np.ndarray, found: np.ndarray, arms: int) -> np.ndarray:
    """Return a table of arms by levels, or by cells among which records are split."""
    if not isinstance(part, NumericColumn):
        return table_of([arm, found], [arms, len(part.listed() or ())])
    parts = shares(found, 2)
    return np.column_stack([table_of([arm], [arms], weights=part) for part in parts.T])


def _describe(
    arms: Sequence[Any],
    parts: Sequence[FeatureColumn],
    plan: Plan,
    noisy: Sequence[np.ndarray],
    failure: float,
) -> tuple[TableRow, ...]:
    """Return the rows of the table, computed from the noisy sums."""
    sizes, width = noisy[0], plan.releases[0].half_width(failure)
    rows = [
        TableRow(arm, "n", None, "n", float(size), size - width, size + width)
        for arm, size in zip(arms, sizes.tolist(), strict=True)
    ]
    for part, noise, sums in zip(parts, plan.releases[1:], noisy[1:], strict=True):
        for arm, cells in zip(arms, sums, strict=True):
            if not isinstance(part, NumericColumn):
                rows += _levels(arm, part, noise, cells, failure)
                continue
            for name in ("mean", "sd"):
                value, (low, high) = moment(name, cells, noise, part, failure)
                rows.append(TableRow(arm, part.name, None, name, float(value), low, high))
    return tuple(rows)


def _levels(
    arm: Any, part: FeatureColumn, noise: Release, cells: np.ndarray, failure: float
) -> list[TableRow]:
    """Return counts and shares of the levels of one column in one arm."""
    width, wide = noise.half_width(failure), noise.half_width(failure, cells.size)
    least, most = np.maximum(cells - wide, 0.0), np.maximum(cells + wide, 0.0)
    rows = []
    for place, level in enumerate(part.listed() or ()):
        count = float(cells[place])
        rows.append(TableRow(arm, part.name, level, "count", count, count - width, count + width))
        # A share increases with its count and decreases with all others.
        low = least[place] / max(least[place] + most.sum() - most[place], 1.0)
        high = most[place] / max(most[place] + least.sum() - least[place], 1.0)
        share = count / max(float(cells.sum()), 1.0)
        rows.append(TableRow(arm, part.name, level, "share", share, float(low), float(high)))
    return rows


def _text(found: dict[str, TableRow]) -> str:
    """Return the statistics of one line and arm as text."""
    if "mean" in found:
        mean, sd = found["mean"], found["sd"]
        return f"{mean.value:.4g} ({sd.value:.4g}) [{mean.low:.4g}, {mean.high:.4g}]"
    if "n" in found:
        size = found["n"]
        return f"{size.value:.0f} [{size.low:.0f}, {size.high:.0f}]"
    count, share = found["count"], found["share"]
    return f"{count.value:.0f} ({share.value:.1%}) [{share.low:.1%}, {share.high:.1%}]"
