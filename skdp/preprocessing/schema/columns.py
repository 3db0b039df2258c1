"""Columns of numbers, columns that are left out, and the features that they become.

Every kind of column maps a cell to a block of features whose Euclidean norm is at most the
column's weight, whatever the cell holds. Nothing but the public description enters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdp.preprocessing.schema.base import Column, FeatureColumn, centre
from skdp.preprocessing.schema.values import as_numbers, dtype_family

_SCALES: dict[str, Callable[[Any], Any]] = {"linear": lambda x: x, "sqrt": np.sqrt, "log": np.log}


@dataclass(frozen=True, repr=False)
class NumericColumn(FeatureColumn):
    """A column of numbers with public bounds.

    Parameters
    ----------
    name : str
        Name in the table.
    lower, upper : float or None
        Public bounds, in the column's unit: from a code book, a measuring device or physiology,
        never the smallest and largest value of the table. Values beyond them count as the bound.
        None leaves them to be filled in; they are needed unless `cuts` are used alone.
    unit : str, default=""
        Unit of the numbers and bounds.
    scale : {"linear", "sqrt", "log"}, default="linear"
        Function of the value that is mapped from the bounds to [-1, 1].
    cuts : sequence of float, default=()
        Public thresholds, increasing, such as the stages of hypertension.
    encoding : {"auto", "scaled", "steps", "cells", "scaled+steps"}, default="auto"
        ``"scaled"`` is one feature in [-1, 1]. ``"steps"`` has one feature a cut, positive from the
        cut on and negative below, which lets a linear model follow any curve. ``"cells"`` is one
        feature an interval between cuts. ``"auto"`` takes steps if there are cuts.
    missing : {"refuse", "ignore", "indicator", "fill"}, default="refuse"
        What becomes of a missing cell, or one that is no number: an error; zeros; zeros and a
        feature that says so; or `fill_value`. Text counts as the number that Python's ``float``
        reads in it.
    fill_value : float or None, default=None
        Public constant for ``missing="fill"``.
    missing_codes : sequence, default=()
        Values that stand for a missing one, such as 999.
    weight : float, default=1.0
        Largest norm of the column's features.
    description : str, default=""
        What the column means.
    source : str, default=""
        Where the bounds come from.

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
    scale: str = "linear"
    cuts: tuple[float, ...] = ()
    encoding: str = "auto"

    def _check(self) -> None:
        self._check_text("unit")
        self._check_choice("scale", tuple(_SCALES))
        self._check_choice("encoding", ("auto", "scaled", "steps", "cells", "scaled+steps"))
        for field in ("lower", "upper", "fill_value"):
            value = getattr(self, field)
            if value is not None:
                self._set(field, self._plain_number(field, value, "Write down a public bound."))
        self._check_bounds()
        cuts = tuple(self._plain_number("cuts", c) for c in self._plain_values("cuts", self.cuts))
        if list(cuts) != sorted(cuts):
            raise self._fail("cuts", f"must be increasing, got {list(cuts)!r}.")
        self._set("cuts", cuts)
        if self.encoding in ("steps", "cells", "scaled+steps") and not cuts:
            raise self._fail("cuts", f"encoding={self.encoding!r} needs public thresholds.")
        self._check_common()

    def _check_bounds(self) -> None:
        lower, upper, function = self.lower, self.upper, _SCALES[self.scale]
        least = {"linear": -math.inf, "sqrt": 0.0, "log": 5e-324}[self.scale]
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
    def parts(self) -> tuple[str, ...]:
        """The encodings that share the column's block."""
        if self.encoding == "auto":
            return ("steps",) if self.cuts else ("scaled",)
        return tuple(self.encoding.split("+"))

    def listed(self) -> tuple[Any, ...]:
        """Return the values that a cell may hold: none are listed for numbers."""
        return ()

    def left_open(self) -> tuple[str, ...]:
        """Return the fields that a draft leaves to be filled in."""
        return super().left_open() if "scaled" in self.parts else ()

    def check_dtype(self, dtype: Any) -> str | None:
        """Say what is wrong with the type of a table's column, if anything is."""
        if dtype_family(dtype) in ("text", "other"):
            return "is numeric in the schema but its type is not; convert it row by row."
        return None

    def feature_names(self) -> list[str]:
        """Return one name a feature."""
        names = {
            "scaled": [self.name],
            "steps": [f"{self.name}>={cut:.15g}" for cut in self.cuts],
            "cells": _cell_names(self.name, self.cuts),
        }
        indicator = [f"{self.name} missing"] if self.missing == "indicator" else []
        return [name for part in self.parts for name in names[part]] + indicator

    def _read(self, cells: np.ndarray) -> np.ndarray:
        """Return cells as numbers, NaN where one is missing or no number."""
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
        encoders = {"scaled": self._scaled, "steps": self._steps, "cells": self._cells}
        block = np.hstack([encoders[part](numbers) for part in self.parts])
        block *= self.weight / math.sqrt(len(self.parts))
        block[absent] = 0.0
        if self.missing == "indicator":
            block = np.column_stack([block, self.weight * absent])
        return block

    def _scaled(self, numbers: np.ndarray) -> np.ndarray:
        function = _SCALES[self.scale]
        low, high = float(function(self.lower)), float(function(self.upper))
        share = (function(np.clip(numbers, self.lower, self.upper)) - low) / (high - low)
        return np.clip(2.0 * share - 1.0, -1.0, 1.0)[:, None]

    def _steps(self, numbers: np.ndarray) -> np.ndarray:
        reached = numbers[:, None] >= np.array(self.cuts)
        return np.where(reached, 1.0, -1.0) / math.sqrt(len(self.cuts))

    def _cells(self, numbers: np.ndarray) -> np.ndarray:
        return centre(np.digitize(numbers, self.cuts), len(self.cuts) + 1)


@dataclass(frozen=True, repr=False)
class IgnoredColumn(Column):
    """A column that is known and left out: an identifier, a survey weight, free text.

    Parameters
    ----------
    name : str
        Name in the table.
    description : str, default=""
        What it is and why it is left out.
    """

    kind: ClassVar[str] = "ignored"
    description: str = ""

    def _check(self) -> None:
        self._check_text("description")


def _cell_names(name: str, cuts: tuple[float, ...]) -> list[str]:
    edges = [f"{cut:.15g}" for cut in cuts]
    inner = [f"{name} in [{low}, {high})" for low, high in itertools.pairwise(edges)]
    return [f"{name}<{edges[0]}", *inner, f"{name}>={edges[-1]}"] if edges else []
