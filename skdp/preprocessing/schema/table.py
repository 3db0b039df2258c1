"""A public description of a table, from which data-independent preprocessing follows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline

from skdp.choices import SchemaEncoding
from skdp.pipelines import behind_others
from skdp.preprocessing.schema.base import Column
from skdp.preprocessing.schema.changes import SchemaChanges
from skdp.preprocessing.schema.display import SchemaDisplay
from skdp.preprocessing.schema.drafts import SchemaDrafts
from skdp.preprocessing.schema.encoder import SchemaEncoder, norm_of
from skdp.preprocessing.schema.files import SchemaFiles
from skdp.preprocessing.schema.frames import check_frame
from skdp.preprocessing.schema.io import KINDS
from skdp.preprocessing.schema.label import LabelColumn, NumericLabel, PrivacyUnit
from skdp.preprocessing.schema.preprocessor import SchemaPipeline, SchemaPreprocessor
from skdp.preprocessing.schema.sampling import SchemaSampling
from skdp.preprocessing.schema.values import series_cells
from skdp.tables.places import split_columns


@dataclass(frozen=True, repr=False)
class TableSchema(SchemaDisplay, SchemaFiles, SchemaSampling, SchemaDrafts, SchemaChanges):
    """A public description of a table: its columns, their bounds, its label, its unit of privacy.

    Everything in it comes from a code book, a device or physiology; nothing is read off the rows.
    So the preprocessing that follows from it costs no privacy, and the norm of its output rows is
    known in advance: each column becomes features of norm at most its weight, so that a row has
    norm at most the root of the sum of the squared weights.

    Parameters
    ----------
    columns : sequence of columns
        `NumericColumn`, `CategoricalColumn`, `OrdinalColumn`, `BooleanColumn`, and `IgnoredColumn`
        for what is known and left out.
    label : LabelColumn, NumericLabel or None, default=None
        The column to predict, with its public classes, or with public bounds.
    unit : PrivacyUnit, default=PrivacyUnit()
        Whom the guarantee protects, and how many rows one may have.
    name, description, source : str, default=""
        What the table is and where its description comes from.
    clip_norm : float or None, default=None
        Public norm that most rows keep to. The private estimator shortens longer rows to it, and
        adds the less noise. None takes `norm_bound`, which no row exceeds.
    interactions : sequence of tuples of names, default=()
        Columns that act together, such as ``[("day", "month")]``: the products of their features
        are one more block of norm 1, in which numbers are cells at their cuts, or eight spaced
        equally on their scale.

    See Also
    --------
    skdp.datasets.load_schema : Ready schemas.

    Examples
    --------
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.preprocessing import BooleanColumn, LabelColumn, NumericColumn, TableSchema
    >>> schema = TableSchema(
    ...     [
    ...         NumericColumn("pressure", 80, 200, unit="mmHg", source="range of the monitor"),
    ...         BooleanColumn("smoker", source="question 7 of the form"),
    ...     ],
    ...     label=LabelColumn("ill", [0, 1]),
    ... )
    >>> round(schema.data_norm, 4)
    1.4142
    >>> model = schema.pipeline(OperaLogisticRegression(epsilon=1.0))
    >>> model[-1].data_norm == schema.data_norm
    True
    """

    columns: Sequence[Column]
    label: LabelColumn | NumericLabel | None = None
    unit: PrivacyUnit = PrivacyUnit()  # noqa: RUF009 - it is immutable
    name: str = ""
    description: str = ""
    source: str = ""
    clip_norm: float | None = None
    interactions: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        self._check_text("name", "description", "source")
        columns = self.columns
        if isinstance(columns, str | Mapping) or not isinstance(columns, Iterable):
            raise self._fail("columns", f"must be a list of columns, got {columns!r}.")
        columns = tuple(columns)
        for column in columns:
            if not isinstance(column, Column):
                raise self._fail("columns", f"must hold columns such as NumericColumn: {column!r}.")
        self._set("columns", columns)
        if not isinstance(self.label, LabelColumn | NumericLabel | None):
            raise self._fail(
                "label", f"must be a LabelColumn, a NumericLabel or None, got {self.label!r}."
            )
        if not isinstance(self.unit, PrivacyUnit):
            raise self._fail("unit", f"must be a PrivacyUnit, got {self.unit!r}.")
        if self.clip_norm is not None:
            norm = self._plain_number("clip_norm", self.clip_norm)
            if norm <= 0.0:
                raise self._fail("clip_norm", f"must be positive or None, got {norm:g}.")
            self._set("clip_norm", norm)
        self._check_interactions()
        self._check_names()

    def _check_interactions(self) -> None:
        groups = self.interactions
        if isinstance(groups, str) or not isinstance(groups, Iterable):
            raise self._fail("interactions", f"must be a list of tuples of names, got {groups!r}.")
        found = tuple(self._plain_values("interactions", names) for names in groups)
        for names in found:
            if len(names) < 2 or not set(names) <= set(self.features):
                raise self._fail(
                    "interactions", f"needs two or more features in each, got {list(names)!r}."
                )
        if len({frozenset(names) for names in found}) < len(found):
            raise self._fail("interactions", "names the same columns twice.")
        self._set("interactions", found)

    def _check_names(self) -> None:
        names = [column.name for column in self.columns]
        if self.label is not None:
            names.append(self.label.name)
        names += [" * ".join(group) for group in self.interactions]
        if twice := _repeated(names):
            raise self._fail("columns", f"these names occur twice: {twice}.")
        if self.unit.column in {column.name for column in self._features}:
            raise self._fail(
                "unit", f"its column {self.unit.column!r} is a feature; make it an IgnoredColumn."
            )
        outputs = [name for column in self._features for name in column.feature_names()]
        if twice := _repeated(outputs):
            raise self._fail(
                "columns", f"two columns give features of one name: {twice}; rename one."
            )

    # What the description says.

    @property
    def norm_bound(self) -> float:
        """Largest norm of a row: the root of the sum of squared weights, 1 an interaction."""
        return math.hypot(norm_of(self._features), math.sqrt(len(self.interactions)))

    @property
    def data_norm(self) -> float:
        """What to give to a private estimator: `clip_norm`, or `norm_bound` if that is smaller."""
        return self.norm_bound if self.clip_norm is None else min(self.clip_norm, self.norm_bound)

    def left_open(self) -> dict[str, tuple[str, ...]]:
        """Return what a draft leaves to be filled in.

        Returns
        -------
        dict
            Names of fields by the name of the column; empty for a complete schema.
        """
        parts: list[Any] = [*self._features, *([] if self.label is None else [self.label])]
        return {part.name: part.left_open() for part in parts if part.left_open()}

    # Preprocessing.

    def preprocessor(self, *, positions: bool = False) -> ColumnTransformer:
        """Return the scikit-learn transformer that the description determines.

        Its fit learns nothing from rows, and its output rows have norm at most `norm_bound`.

        Parameters
        ----------
        positions : bool, default=False
            Take an array whose columns are `features`, in that order, instead of a frame.

        Returns
        -------
        ColumnTransformer
            One `SchemaEncoder` for each kind of column and each interaction.

        Raises
        ------
        ValueError
            If no column is a feature, or bounds or categories are left open.
        """
        features = self._features
        if not features:
            raise self._fail("columns", "no column is a feature.")
        for column in features:
            column.refuse_open()
        groups: list[tuple[str, SchemaEncoder, list[Any]]] = []
        for kind in KINDS:
            chosen = [(j, column) for j, column in enumerate(features) if column.kind == kind]
            if chosen:
                keys = [j if positions else column.name for j, column in chosen]
                groups.append((kind, SchemaEncoder(tuple(c for _, c in chosen)), keys))
        for number, names in enumerate(self.interactions, 1):
            places = [self.features.index(name) for name in names]
            encoder = SchemaEncoder(tuple(features[j] for j in places), product=True)
            groups.append((f"interaction {number}", encoder, places if positions else list(names)))
        return SchemaPreprocessor(groups, remainder="drop", verbose_feature_names_out=False)

    def pipeline(
        self,
        estimator: Any,
        *,
        positions: bool = False,
        encoding: SchemaEncoding = "declared",
        interactions: Iterable[Any] | None = None,
    ) -> Pipeline:
        """Return a pipeline of the preprocessor and a clone of an estimator that knows its norm.

        Parameters
        ----------
        estimator : estimator
            A private classifier or regressor, a search over one, or any other estimator. Every
            parameter ``data_norm`` in it that is None is set to `data_norm`, but not those of steps
            behind others, which see other rows; every such ``classes`` and ``prevalence`` to the
            label's, and ``target_bounds`` to the bounds of a number.
        positions : bool, default=False
            See `preprocessor`.
        encoding : {"declared", "auto"}, default="declared"
            See `with_encoding`.
        interactions : sequence of tuples of names or None, default=None
            Takes the place of the schema's own.

        Returns
        -------
        Pipeline
            Ready to be fitted on ``schema.split(frame)``, or on a table on disk or one of Dask
            alone: ``fit(table)`` takes labels from the label's column, and ids from the unit's.

        Raises
        ------
        ValueError
            If a ``data_norm`` was given for the schema's rows and is another, or a classifier is
            to predict a number, or a regressor a class.

        Examples
        --------
        >>> from skdp import OperaLogisticRegression
        >>> from skdp.preprocessing import LabelColumn, NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120)], label=LabelColumn("ill", [0, 1]))
        >>> model = schema.pipeline(OperaLogisticRegression(epsilon=1.0))
        >>> model[-1].data_norm, model[-1].classes
        (1.0, [0, 1])
        """
        self.unit.warn_of_rows(stacklevel=3)
        schema = self.with_encoding(encoding)
        if interactions is not None:
            schema = schema.replace(interactions=interactions)
        estimator = clone(estimator)
        found = estimator.get_params(deep=True)
        of_label = {} if schema.label is None else _label_parameters(schema.label, estimator)
        elsewhere = behind_others(estimator)
        for key, value in found.items():
            last = key.rpartition("__")[2]
            if last == "data_norm" and key.startswith(elsewhere):
                continue
            if last == "data_norm" and value is None:
                estimator.set_params(**{key: schema.data_norm})
            elif last == "data_norm" and value != schema.data_norm:
                raise ValueError(
                    f"{key}={value!r} was given, while the schema's rows are bounded by data_norm="
                    f"{schema.data_norm!r}. Leave it out; for shorter rows, give the schema a "
                    "clip_norm: schema.replace(clip_norm=...)."
                )
            elif last in of_label and value is None:
                estimator.set_params(**{key: of_label[last]})
        steps = make_pipeline(schema.preprocessor(positions=positions), estimator).steps
        return SchemaPipeline(steps, schema=schema)

    # Tables.

    def check(self, frame: Any, *, label: bool = True) -> None:
        """Compare a table's columns and their types with the description; no cell is looked at.

        Parameters
        ----------
        frame : DataFrame
            A pandas or polars frame.
        label : bool, default=True
            Whether the label must be there.

        Raises
        ------
        ValueError
            With everything that is amiss: missing columns, columns that the schema does not
            mention, types that do not fit.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120), NumericColumn("height", 50, 250)])
        >>> schema.check(pd.DataFrame({"age": [61, 47]}))
        Traceback (most recent call last):
            ...
        skdp.exceptions.SchemaError: the table does not fit the schema:
        - column 'height' is missing.
        """
        check_frame(self, frame, label=label)

    def split(self, frame: Any, *, groups: bool = False) -> tuple[Any, ...]:
        """Return the feature columns of a table and its labels.

        Parameters
        ----------
        frame : DataFrame or ParquetTable
            A pandas or polars frame, one of Dask, or a table on disk, see `skdp.data.open_parquet`.
        groups : bool, default=False
            Whether to return the ids of the unit's column as well, for ``fit(X, y, groups=...)``.

        Returns
        -------
        X : DataFrame
            The columns `features`, of the same kind of table.
        y : ndarray of shape (n_samples,)
            Labels, each one of the label's classes; of a number floats within its bounds.
        groups : ndarray of shape (n_samples,)
            Ids, only with ``groups=True``.

        Raises
        ------
        ValueError
            If `check` fails, the schema has no label, a cell of the label is not listed or no
            number, or the unit's column is wanted and not declared or not there.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdp.preprocessing import LabelColumn, NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120)], label=LabelColumn("ill", [0, 1]))
        >>> X, y = schema.split(pd.DataFrame({"age": [61, 47], "ill": [1, 0]}))
        >>> list(X.columns), list(y) == [1, 0]
        (['age'], True)
        """
        if self.label is None:
            raise self._fail("label", "is not described, so that there is nothing to split off.")
        self.check(frame)
        if groups and self.unit.column not in list(frame.columns):
            raise self._fail("unit", "its column is not declared or not in the table.")

        read: list[tuple[str, Any]] = [(self.label.name, self.label.encode)]
        if groups:
            read.append((str(self.unit.column), np.asarray))
        columns = [(name, partial(_read_cells, name, each)) for name, each in read]
        X, cells = split_columns(frame, self.features, columns)
        return X, *cells


def _read_cells(name: str, read: Callable[[np.ndarray], np.ndarray], rows: Any) -> np.ndarray:
    return read(series_cells(rows[name]))


def _label_parameters(label: LabelColumn | NumericLabel, estimator: Any) -> dict[str, Any]:
    """Return what an estimator is told of the label; one that predicts something else is refused.

    A search or pipeline is what it holds. What is neither classifier nor regressor is told all.
    """
    numeric, known = isinstance(label, NumericLabel), hasattr(estimator, "__sklearn_tags__")
    if known and (is_classifier if numeric else is_regressor)(estimator):
        holds, wanted = ("a number", "regressor") if numeric else ("one of classes", "classifier")
        name = type(estimator).__name__
        raise label._fail("kind", f"it is {holds}, which {name} does not predict: take a {wanted}.")
    if isinstance(label, NumericLabel):
        label.refuse_open()
        return {"target_bounds": (label.lower, label.upper)}
    if label.classes is None:
        return {}
    return {"classes": list(label.classes), "prevalence": label.prevalence}


def _repeated(names: list[str]) -> str:
    return ", ".join(sorted(name for name, count in Counter(names).items() if count > 1))
