"""Meaning of features: lines per unit, levels relative to a reference, constant directions.

All of it follows from public descriptions and from invented cells.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from skdp.preprocessing.schema.base import FeatureColumn
from skdp.preprocessing.schema.columns import (
    SCALES,
    Interaction,
    NumericColumn,
    cell_names,
    cells_of,
    checked_cells,
    coarsen,
    intervals_of,
    is_code,
)
from skdp.preprocessing.schema.lists import CategoricalColumn

Array = np.ndarray
# Numbers at which a curve is told, and tried for directions in which it does not vary.
_TOLD, _TRIED = 5, 101
# Below this share of the largest a sum of squares is a rounding error.
_SMALLEST = 1e-10
# Features of a part, such as products of two long lists, of which all cells are tried.
_WIDEST = 1024


class Effect(NamedTuple):
    """A linear function of a column's coefficients, in words."""

    name: str
    level: str
    step: str  # what changes, such as "+1 years" or "against A"
    weights: Array
    is_reference: bool = False
    flag: int | None = None  # the feature without which it says nothing


@dataclass(frozen=True)
class Meaning:
    """Meaning of a table's features; each part is one column, or several that are multiplied.

    Features are those of the parts, minus `centre`, times `scale`. Curves of the columns in `lines`
    are replaced by the nearest line.
    """

    parts: tuple[tuple[FeatureColumn, ...], ...]
    target: str = ""
    centre: Any = 0.0
    scale: Any = 1.0
    lines: tuple[str, ...] = ()

    @functools.cached_property
    def _widths(self) -> list[int]:
        return [len(_names(part)) for part in self.parts]

    @property
    def _slices(self) -> list[slice]:
        ends = list(itertools.accumulate(self._widths, initial=0))
        return list(itertools.starmap(slice, itertools.pairwise(ends)))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return sum(self._widths)

    @property
    def places(self) -> dict[str, list[int]]:
        """Features by their names, and by those of columns."""
        found: dict[str, list[int]] = {}
        for part, where in zip(self.parts, self._slices, strict=True):
            places = list(range(self.n_features))[where]
            found |= {name: [place] for name, place in zip(_names(part), places, strict=True)}
            found[_title(part)] = places
        return found

    @property
    def flags(self) -> list[int]:
        """Features that only indicate that a cell has no value."""
        places = self.places
        names = [
            f"{column.name} {word}"
            for part in self.parts
            if len(part) == 1
            for column in part
            for word in _flagged(column)
        ]
        names += [part[0].name for part in self.parts if _is_flag(part)]
        return [place for name in names for place in places[name]]

    def basis(self, kept: Sequence[int], intercept: bool) -> Any:
        """Return sparse orthonormal directions in which the selected features may vary.

        With an intercept, a constant is no variation. Ignored cells do not count.
        """
        found = []
        parts = zip(self.parts, self._slices, self._squares, strict=True)
        for part, where, squares in parts:
            chosen = np.isin(np.arange(where.start, where.stop), kept)
            own = np.eye(chosen.size)[:, chosen]
            if _title(part) in self.lines and chosen.any():
                line = self._slope(part[0], where) * chosen
                flags = np.isin(np.arange(where.start, where.stop), self.flags) & chosen
                line /= max(np.linalg.norm(line), 1e-300)  # 0 where flags alone are kept
                own = np.column_stack(
                    [line[:, None][:, : int(line.any())], np.eye(line.size)[:, flags]]
                )
            elif squares is not None and chosen.sum() > 1:
                values, vectors = np.linalg.eigh(squares[intercept][np.ix_(chosen, chosen)])
                own = own @ vectors[:, values > _SMALLEST * values[-1]]
            found.append(own)
        return sparse.block_diag(found, format="csc")

    @functools.cached_property
    def _squares(self) -> list[tuple[Array, Array] | None]:
        """Sums of squares of each part's features over all cells, about zero and about one cell."""
        found: list[tuple[Array, Array] | None] = []
        for part, where in zip(self.parts, self._slices, strict=True):
            rows = self._rows(part, where) if 1 < where.stop - where.start <= _WIDEST else None
            if rows is None or not len(rows):
                found.append(None)
                continue
            moved = rows - rows[0]
            found.append((rows.T @ rows, moved.T @ moved))
        return found

    @functools.cached_property
    def norms(self) -> tuple[float, float]:
        """Lower bound on the norm of the longest row, and norm of cells spread over their range."""
        parts = zip(self.parts, self._slices, strict=True)
        rows = [self._rows(*pair) for pair in parts if len(_names(pair[0])) <= _WIDEST]
        squares = [np.sum(row**2, axis=1) for row in rows if row is not None and len(row)]
        return float(np.sqrt(sum(map(np.max, squares)))), float(np.sqrt(sum(map(np.mean, squares))))

    @property
    def half_ranges(self) -> Array:
        """Half the largest range over all cells of a feature of its column; NaN if unknown."""
        found = np.full(self.n_features, np.nan)
        for part, where in zip(self.parts, self._slices, strict=True):
            rows = self._rows(part, where) if where.stop - where.start <= _WIDEST else None
            if rows is not None and len(rows):
                found[where] = np.ptp(rows, axis=0).max() / 2.0
        return found

    def with_lines(self, names: Any) -> Meaning:
        """Return the meaning with lines in place of the curves of some numeric columns."""
        names = tuple(names) if np.ndim(names) == 1 else (names,)
        curves = [part[0].name for part in self.parts if len(part) == 1 and _is_curve(part[0])]
        if wrong := [name for name in names if name not in curves]:
            raise ValueError(f"lines must be columns of waves, {curves}, got {wrong}.")
        return replace(self, lines=names)

    def _slope(self, column: Any, where: slice) -> Array:
        """Return weights of the nearest line that rises by 1 per unit of the column's scale.

        Their product with the coefficients is the rise of the line.
        """
        numbers = np.array([cell for cell in column.spaced(_TRIED) if not is_code(column, cell)])
        rows = column.encode(numbers)
        rows = (rows - _of(self.centre, where)) * _of(self.scale, where)
        aim = SCALES[_scale_of_line(column)][0](numbers)
        line = np.linalg.lstsq(np.column_stack([rows, np.ones(numbers.size)]), aim)[0][:-1]
        return line / np.sum(line**2)

    def _rows(self, part: Any, where: slice) -> Array | None:
        """Return features of all cells, or None if these are unknown."""
        rows = _encode(part, _possible(part))
        return None if rows is None else (rows - _of(self.centre, where)) * _of(self.scale, where)

    def effects(
        self, reference: Mapping[str, Any], kept: Sequence[int]
    ) -> tuple[list[tuple[str, Effect]], Array, str]:
        """Return effects by column, the features at which all are zero, and a description of these.

        Effects of columns without a selected feature have no weights.
        """
        if unknown := set(reference) - {_title(part) for part in self.parts if len(part) == 1}:
            raise KeyError(f"reference names no column of the model: {sorted(unknown)}.")
        found, where_zero, words, cells = [], np.zeros(self.n_features), [], {}
        for part, where in zip(self.parts, self._slices, strict=True):
            name, scale = _title(part), _of(self.scale, where)
            slope = self._slope(part[0], where) / scale if name in self.lines else None
            own, at, word, cells[name] = _describe(part, reference.get(name), slope)
            if len(part) > 1 and all(cells.get(column.name) is not None for column in part):
                at = Interaction(part).encode(*(cells_of(c, [cells[c.name]]) for c in part))[0]
            chosen = np.isin(np.arange(where.start, where.stop), kept)
            for effect in _in_one(own, chosen) if chosen.any() else own:
                weights = np.zeros(self.n_features)
                weights[where] = effect.weights * scale * chosen
                told = bool(chosen.any() if effect.flag is None else chosen[effect.flag])
                found.append((name, effect._replace(
                    weights=weights * told,
                    step=effect.step if told else "left out",
                    is_reference=effect.is_reference and told,
                )))  # fmt: skip
            where_zero[where] = (at - _of(self.centre, where)) * scale
            words += [f"{name} {word}"] if word and chosen.any() else []
        return found, where_zero, ", ".join(words)

    def change(self, pairs: Mapping[str, Sequence[Any]]) -> Array:
        """Return the change of all features from the first cells of columns to the second ones.

        Columns that are multiplied by others need these too.
        """
        titles = [_title(part) for part in self.parts if len(part) == 1]
        if unknown := sorted(set(pairs) - set(titles)):
            raise KeyError(f"{unknown} are no columns of the model: {titles}.")
        found = np.zeros(self.n_features)
        for part, where in zip(self.parts, self._slices, strict=True):
            absent = [column.name for column in part if column.name not in pairs]
            if 0 < len(absent) < len(part):
                raise ValueError(
                    f"the columns of {_title(part)!r} act together: give a pair for {absent} too, "
                    "with the same value twice if it does not change."
                )
            if not absent:
                cells = [checked_cells(column, pairs[column.name]) for column in part]
                own: Any = Interaction(part) if len(part) > 1 else part[0]
                first, second = own.encode(*cells)
                found[where] = (second - first) * _of(self.scale, where)
        return found

    def through(self, centre: Array, scale: Array, limit: float) -> Meaning | None:
        """Return the meaning of features behind a scaler; None if it may clip some of them."""
        for part, where in zip(self.parts, self._slices, strict=True):
            rows = self._rows(part, where)
            if rows is None:
                return None
            if np.any(np.abs((rows - centre[where]) * scale[where]) > limit * (1.0 + 1e-12)):
                return None
        moved = self.centre + centre / self.scale
        return replace(self, centre=moved, scale=self.scale * scale)


def label_words(label: Any) -> str:
    """Return the name of the predicted label, with its unit; empty without a label."""
    unit = getattr(label, "unit", "")
    return "" if label is None else f"{label.name} ({unit})" if unit else str(label.name)


def _of(value: Any, where: slice) -> Any:
    return value[where] if np.ndim(value) else value


def _title(part: Sequence[FeatureColumn]) -> str:
    return " * ".join(column.name for column in part)


def _names(part: Sequence[FeatureColumn]) -> list[str]:
    return part[0].feature_names() if len(part) == 1 else Interaction(part).feature_names()


def _encode(part: Sequence[FeatureColumn], cells: list[list[Any]] | None) -> Array | None:
    """Return features of all combinations of cells."""
    if cells is None:
        return None
    if len(part) == 1:
        return part[0].encode(cells_of(part[0], cells[0]))
    crossed = zip(*itertools.product(*cells), strict=True)
    pairs = zip(part, crossed, strict=True)
    return Interaction(tuple(part)).encode(*(cells_of(column, own) for column, own in pairs))


def _possible(part: Sequence[FeatureColumn]) -> list[list[Any]] | None:
    """Return cells of each column that represent all possible features; None if unknown."""
    columns = part if len(part) == 1 else [coarsen(column) for column in part]
    found = [_cells(column) for column in columns]
    return None if any(cells is None for cells in found) else found  # type: ignore[return-value]


def _cells(column: FeatureColumn) -> list[Any] | None:
    if isinstance(column, NumericColumn):
        cells = intervals_of(column)
        if {"scaled", "waves"} & set(column.parts):
            cells = [*cells, *column.spaced(_TRIED)]
        cells = [cell for cell in cells if not is_code(column, cell)]
        return [*cells, *_flagged(column).values()]
    if values := column.listed():
        return [*values, *_flagged(column).values()]
    return None


def _flagged(column: Any) -> dict[str, Any]:
    """Return a cell for each indicator feature of cells without a value."""
    if isinstance(column, NumericColumn):
        return {"missing": np.nan} if column.missing == "indicator" else {}
    others = {"missing": None, "unknown": object()}
    flags = column._flags() if hasattr(column, "_flags") else {}
    return {word: others[word] for word in flags}


def _is_curve(column: FeatureColumn) -> bool:
    return isinstance(column, NumericColumn) and "waves" in column.parts


def _scale_of_line(column: NumericColumn) -> str:
    """Return the declared scale, not the one chosen for curves."""
    return "linear" if column.scale == "auto" else column.scale


def _is_flag(part: Sequence[FeatureColumn]) -> bool:
    """Return whether a column is itself an indicator, as some pieces of columns are."""
    column = part[0]
    is_two = len(part) == 1 and column.listed() == (False, True)
    return is_two and column.feature_names() == [column.name]


def _describe(
    part: Sequence[FeatureColumn], reference: Any, slope: Array | None = None
) -> tuple[list[Effect], Array, str, Any]:
    """Return the effects of a column, and the reference: its features, in words, its cell."""
    column: Any = part[0]
    if reference is not None:
        checked_cells(column, [reference])
    if slope is not None or (
        len(part) == 1 and isinstance(column, NumericColumn) and "scaled" in column.parts
    ):
        return _lines(column, reference, slope)
    if len(part) == 1 and (levels := _levels(column)):
        if _is_curve(column) and reference is not None:
            levels = {f"{column.name}={float(reference):.4g}": float(reference), **levels}
        return _contrasts(column, levels, reference)
    names = _names(part)
    step = "product of features" if len(part) > 1 else "+1"
    pairs = zip(names, np.eye(len(names)), strict=True)
    return [Effect(name, "", step, row) for name, row in pairs], np.zeros(len(names)), "", None


def _lines(
    column: NumericColumn, reference: Any, slope: Array | None
) -> tuple[list[Effect], Array, str, float]:
    """Return effects per unit of the scale, of jumps at cuts, and of missing cells."""
    scale = _scale_of_line(column)
    function, inverse = SCALES[scale]
    low, high = float(function(column.lower)), float(function(column.upper))
    middle = float(inverse((low + high) / 2.0)) if reference is None else float(reference)
    if is_code(column, middle):
        middle = float(np.nextafter(middle, np.inf))
    at = column.encode(np.array([middle]))[0]
    if slope is None:
        slope = np.zeros(at.size)
        slope[0] = column.weight / np.sqrt(len(column.parts)) * 2.0 / (high - low)
    steps = {
        "linear": (f"+1 {column.unit}".rstrip(), 1.0),
        "log": ("doubled", np.log(2.0)),
        "sqrt": (f"+1 of the root of {column.unit or 'it'}", 1.0),
    }
    step, size = steps[scale]
    found = [Effect(column.name, "", step, size * slope)]
    for place, cut in enumerate(column.thresholds if "scaled+steps" in column.encoding else ()):
        jump = np.zeros(at.size)
        jump[1 + place] = column.weight * np.sqrt(2.0 / len(column.thresholds))
        found.append(Effect(f"{column.name}>={cut:.15g}", f">={cut:.15g}", "jump there", jump))
    word = f"{middle:.4g} {column.unit}".rstrip()
    return found + _missing(column, at, word), at, word, middle


def _missing(column: Any, at: Array, word: str) -> list[Effect]:
    """Return the effects of missing or unknown cells that have a feature."""
    found = []
    for name, cell in _flagged(column).items():
        title, row = f"{column.name} {name}", column.encode(cells_of(column, [cell]))[0]
        flag = column.feature_names().index(title)
        found.append(Effect(title, name, f"against {word}", row - at, flag=flag))
    return found


def _in_one(effects: list[Effect], chosen: Array) -> list[Effect]:
    """Report levels that a variant cannot distinguish, because it lacks their features."""
    levels: dict[bytes, list[str]] = {}
    keys = [(effect.weights * chosen + 0.0).tobytes() for effect in effects]
    for effect, key in zip(effects, keys, strict=True):
        if effect.level and effect.flag is None:
            levels.setdefault(key, []).append(effect.level)
    found = []
    for effect, key in zip(effects, keys, strict=True):
        alike = [level for level in levels.get(key, []) if level != effect.level]
        if effect.level and effect.flag is None and alike:
            told = effect.is_reference or (effect.weights * chosen).any()
            words = [effect.step] * bool(told) + [f"in one with {' and '.join(alike)}"]
            effect = effect._replace(step=", ".join(words))
        found.append(effect)
    return found


def _levels(column: FeatureColumn) -> dict[str, Any]:
    """Return a cell of each level by the name of its feature."""
    if values := column.listed():
        return {f"{column.name}={value}": value for value in values}
    if not isinstance(column, NumericColumn):
        return {}
    if "waves" in column.parts:
        cells = [cell for cell in column.spaced(_TOLD) if not is_code(column, cell)]
        return {f"{column.name}={cell:.4g}": cell for cell in cells}
    names = cell_names(column.name, sorted({*column.thresholds, *(column.spikes or ())}))
    pairs = zip(names, intervals_of(column), strict=True)
    return {name: cell for name, cell in pairs if not is_code(column, cell)}


def _contrasts(
    column: Any, levels: dict[str, Any], reference: Any
) -> tuple[list[Effect], Array, str, Any]:
    """Return the effect of each level relative to the reference."""
    names, cells = list(levels), cells_of(column, list(levels.values()))
    chosen = _chosen(column, names, cells, reference)
    rows = column.encode(cells)
    short = [
        name.removeprefix(column.name).removeprefix("=").removeprefix(" in ") for name in names
    ]
    at, word = rows[chosen], short[chosen]
    found = [
        Effect(name, level, "reference" if j == chosen else f"against {word}", rows[j] - at,
               j == chosen)
        for j, (name, level) in enumerate(zip(names, short, strict=True))
    ]  # fmt: skip
    found.insert(0, found.pop(chosen))
    return found + _missing(column, at, word), at, word, cells[chosen]


def _chosen(column: Any, names: list[str], cells: Array, reference: Any) -> int:
    """Return the place of the reference among levels."""
    if reference is None:
        dropped = column.reference if isinstance(column, CategoricalColumn) else None
        return 0 if dropped is None else list(cells).index(dropped)
    if not isinstance(column, NumericColumn):
        place = int(column.read(cells_of(column, [reference]))[0])
        if place < 0:
            raise ValueError(f"reference of {column.name!r} is on no list: {reference!r}.")
        return place
    if "waves" in column.parts:
        return names.index(f"{column.name}={float(reference):.4g}")
    return int(np.digitize(float(reference), cells[1:]))
