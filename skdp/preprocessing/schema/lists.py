"""Columns with a public list of values: categories, ordered levels, booleans."""

from __future__ import annotations

import math
import reprlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from skdp.base.parameters import CategoryEncoding, Unknown
from skdp.preprocessing.schema.base import (
    MISSING,
    UNKNOWN,
    Column,
    FeatureColumn,
    centre,
    listing_problem,
    one_hot,
    positions_in,
)
from skdp.preprocessing.schema.columns import IgnoredColumn, NumericColumn
from skdp.preprocessing.schema.dates import DateColumn, DaysBetweenColumn

_UNKNOWN_POLICIES = ("refuse", "ignore", "indicator")


@dataclass(frozen=True, repr=False)
class _ListedColumn(FeatureColumn):
    """A column whose values are on a public list."""

    unknown: Unknown = field(default="ignore", kw_only=True)

    def listed(self) -> tuple[Any, ...] | None:
        """Return the public list of values."""
        values: tuple[Any, ...] | None = getattr(self, self.needed[0])
        return values

    def _check(self) -> None:
        field = self.needed[0]
        self._check_common()
        self._check_choice("unknown", _UNKNOWN_POLICIES)
        values = self.listed()
        if values is None:
            return
        values = self._plain_values(field, values)
        self._set(field, values)
        if len(values) < 2:
            raise self._fail(field, f"must contain at least two values, got {list(values)!r}.")
        if self.fill_value is not None:
            if self.fill_value not in values:
                raise self._fail("fill_value", f"must be one of {field}, got {self.fill_value!r}.")
            self._set("fill_value", values[values.index(self.fill_value)])
        if set(values) & set(self.missing_codes):
            raise self._fail("missing_codes", f"must not contain a value of {field}.")

    def about_strangers(self, found: np.ndarray) -> str:
        """Return a warning text if no cell is on the list; empty otherwise."""
        if not self.listed() or not np.any(found == UNKNOWN) or np.any(found >= 0):
            return ""
        listed = reprlib.repr(list(self.listed() or ()))
        return f"no cell is on the public list {listed}. Are the values spelled differently?"

    def check_dtype(self, dtype: Any) -> str | None:
        """Return a problem of a table's column type and its remedy, or None."""
        return listing_problem(dtype, self.listed() or (), self.missing_codes)

    def _read(self, cells: np.ndarray) -> np.ndarray:
        """Return positions on the list; MISSING and UNKNOWN remain only where they are allowed."""
        position = {value: place for place, value in enumerate(self.listed() or ())}
        found = positions_in(cells, position, self.missing_codes)
        if self.missing == "refuse" and np.any(found == MISSING):
            raise self._refuse_missing()
        if self.unknown == "refuse" and np.any(found == UNKNOWN):
            raise self._fail(
                "unknown",
                "the policy is 'refuse' and the table has a value that is not listed. List it if "
                "the code book has it, or choose 'ignore' or 'indicator'. The value is not shown, "
                "since it may be private.",
            )
        if self.missing == "fill":
            found[found == MISSING] = position[self.fill_value]
        return found

    def _features(self, found: np.ndarray) -> np.ndarray:
        """Return the features of positions; each row has norm at most the weight."""
        block = self._block(found)
        block[found < 0] = 0.0
        for code, policy in ((MISSING, self.missing), (UNKNOWN, self.unknown)):
            if policy == "ignore":
                block[found == code] = self._ignored
        flags = [found == code for code in self._flags().values()]
        return self.weight * np.column_stack([block, *flags])

    @abstractmethod
    def _block(self, found: np.ndarray) -> np.ndarray:
        """Return rows of norm at most 1 for positions on the list."""

    @property
    def _ignored(self) -> float:
        """Value of the features of an ignored cell, before the weight."""
        return 0.0

    def _flags(self) -> dict[str, int]:
        """Return the indicator features of missing and unlisted cells, with their codes."""
        policies = {"missing": (self.missing, MISSING), "unknown": (self.unknown, UNKNOWN)}
        return {word: code for word, (chosen, code) in policies.items() if chosen == "indicator"}

    def _flag_names(self) -> list[str]:
        return [f"{self.name} {word}" for word in self._flags()]


@dataclass(frozen=True, repr=False)
class CategoricalColumn(_ListedColumn):
    """A column of unordered categories from a public list.

    A cell becomes a centred one-hot block: one feature per category, with their mean subtracted.
    The intercept supplies the constant part, which then takes no share of the norm. A cell is the
    category that it equals (1 equals 1.0), or else the category with the same spelling ("1" is 1).

    Parameters
    ----------
    name : str
        Name in the table.
    categories : sequence of str or number, or None
        All categories of the code book, including those that do not occur in the table. None leaves
        them open.
    encoding : {"centred", "one-hot"}, default="centred"
        Whether the mean of the features is subtracted. It has no effect with `drop`.
    missing : {"refuse", "ignore", "indicator", "fill"}, default="refuse"
        Treatment of a missing cell: an error; zeros; zeros and an indicator feature; or
        `fill_value`. With `drop`, zeros would be the reference level; an ignored cell counts as the
        mean of all levels instead.
    fill_value : str or number, default=None
        A listed category for ``missing="fill"``.
    missing_codes : sequence, default=()
        Values that mean "missing", such as "?".
    weight : float, default=1.0
        Largest norm of the column's features.
    description, source : str, default=""
        Meaning of the column, and source of its list.
    unknown : {"ignore", "indicator", "refuse"}, default="ignore"
        Treatment of a value that is not listed: like an ignored missing cell; an indicator feature;
        or an error.
    drop : {"first"}, a category or None, default=None
        Reference level, which has no feature. The coefficient of every other level is then its
        difference from the reference. ``"first"`` is the first of `categories`, unless a category
        has this name. None gives each category a feature.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import CategoricalColumn
    >>> column = CategoricalColumn("ward", ["A", "B", "C"], encoding="one-hot")
    >>> column.encode(np.array(["C", "elsewhere"], dtype=object))
    array([[0., 0., 1.],
           [0., 0., 0.]])
    """

    kind: ClassVar[str] = "categorical"
    needed: ClassVar[tuple[str, ...]] = ("categories",)
    categories: Sequence[Any] | None = None
    encoding: CategoryEncoding = "centred"
    drop: Any = field(default=None, kw_only=True)

    def _check(self) -> None:
        self._check_choice("encoding", ("centred", "one-hot"))
        super()._check()
        self._check_drop()
        if any(isinstance(value, bool) for value in self.categories or ()):
            raise self._fail(
                "categories",
                "contains True or False. Use a BooleanColumn, or quote 'yes', 'no', 'on' and "
                "'off', which YAML reads as booleans.",
            )

    def _check_drop(self) -> None:
        if self.drop is None:
            return
        (level,) = self._plain_values("drop", [self.drop])
        values = tuple(self.categories or (level,))  # a draft has none yet
        if level not in values and level != "first":
            raise self._fail("drop", f"must be 'first' or one of categories, got {level!r}.")
        self._set("drop", values[values.index(level)] if level in values else level)

    @property
    def reference(self) -> Any:
        """Level without a feature; None if each level has one."""
        if self.drop is None or not self.categories or self.drop in self.categories:
            return self.drop
        return self.categories[0]

    def feature_names(self) -> list[str]:
        """Return one name per feature."""
        values = [f"{self.name}={value}" for value in self.categories or ()]
        if self.drop is not None and values:
            del values[self._dropped]
        return values + self._flag_names()

    @property
    def _dropped(self) -> int:
        return tuple(self.categories or ()).index(self.reference)

    def _block(self, found: np.ndarray) -> np.ndarray:
        count = len(self.categories or ())
        if self.drop is not None:
            return np.delete(one_hot(found, count), self._dropped, axis=1)
        return centre(found, count) if self.encoding == "centred" else one_hot(found, count)

    @property
    def _ignored(self) -> float:
        # The mean of all levels, as in a centred block; its norm is below 1.
        return 0.0 if self.drop is None else 1.0 / len(self.categories or ())


@dataclass(frozen=True, repr=False)
class OrdinalColumn(_ListedColumn):
    """A column of ordered levels from a public list.

    A cell becomes one feature per level except the lowest, positive from that level on and negative
    below it.

    Parameters
    ----------
    name : str
        Name in the table.
    levels : sequence of str or number, or None
        All levels, from the lowest to the highest. None leaves them open.
    missing : {"refuse", "ignore", "indicator", "fill"}, default="refuse"
        Treatment of a missing cell; see `CategoricalColumn`.
    fill_value : str or number, default=None
        A listed level for ``missing="fill"``.
    missing_codes : sequence, default=()
        Values that mean "missing".
    weight : float, default=1.0
        Largest norm of the column's features.
    description, source : str, default=""
        Meaning of the column, and source of its list.
    unknown : {"ignore", "indicator", "refuse"}, default="ignore"
        Treatment of a value that is not listed; see `CategoricalColumn`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import OrdinalColumn
    >>> column = OrdinalColumn("stage", ["I", "II", "III"])
    >>> column.encode(np.array(["I", "III"], dtype=object)).round(3)
    array([[-0.707, -0.707],
           [ 0.707,  0.707]])
    >>> column.feature_names()
    ['stage>=II', 'stage>=III']
    """

    kind: ClassVar[str] = "ordinal"
    needed: ClassVar[tuple[str, ...]] = ("levels",)
    levels: Sequence[Any] | None = None

    def feature_names(self) -> list[str]:
        """Return one name per feature."""
        return [f"{self.name}>={level}" for level in (self.levels or ())[1:]] + self._flag_names()

    def _block(self, found: np.ndarray) -> np.ndarray:
        above = np.arange(1, len(self.levels or ()))
        return np.where(found[:, None] >= above, 1.0, -1.0) / math.sqrt(above.size)


@dataclass(frozen=True, repr=False)
class BooleanColumn(_ListedColumn):
    """A column with two values, encoded as one feature: -weight or weight.

    Parameters
    ----------
    name : str
        Name in the table.
    values : pair of values, default=(False, True)
        The value for no and the value for yes; 0 and 1 equal False and True.
    missing : {"refuse", "ignore", "indicator", "fill"}, default="refuse"
        Treatment of a missing cell; see `CategoricalColumn`.
    fill_value : object, default=None
        One of the values for ``missing="fill"``.
    missing_codes : sequence, default=()
        Values that mean "missing".
    weight : float, default=1.0
        Norm of the column's feature.
    description, source : str, default=""
        Meaning of the column, and source of its values.
    unknown : {"ignore", "indicator", "refuse"}, default="ignore"
        Treatment of a third value; see `CategoricalColumn`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import BooleanColumn
    >>> column = BooleanColumn("smoker", values=["no", "yes"])
    >>> column.encode(np.array(["yes", "no", "perhaps"], dtype=object))
    array([[ 1.],
           [-1.],
           [ 0.]])
    """

    kind: ClassVar[str] = "boolean"
    needed: ClassVar[tuple[str, ...]] = ("values",)
    values: Sequence[Any] = (False, True)

    def _check(self) -> None:
        super()._check()
        if len(self.values or ()) != 2:
            raise self._fail("values", f"must be a pair (no, yes), got {self.values!r}.")

    def feature_names(self) -> list[str]:
        """Return one name per feature."""
        return [f"{self.name}={self.values[1]}", *self._flag_names()]

    def _block(self, found: np.ndarray) -> np.ndarray:
        return np.where(found == 1, 1.0, -1.0)[:, None]


KINDS: dict[str, type[Column]] = {
    cls.kind: cls
    for cls in (
        *(NumericColumn, CategoricalColumn, OrdinalColumn, BooleanColumn),
        *(DateColumn, DaysBetweenColumn, IgnoredColumn),
    )
}
