"""A public description of a table, from which data-independent preprocessing follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from skdp.base.parameters import ListedMissing, SchemaEncoding
from skdp.preprocessing.schema import drafts, frames
from skdp.preprocessing.schema.description import TableDescription, show_table, show_text
from skdp.preprocessing.schema.preprocessor import make_preprocessor, make_schema_pipeline
from skdp.preprocessing.schema.review import review_frame


@dataclass(frozen=True, repr=False)
class TableSchema(TableDescription):
    """A public description of a table: its columns, their bounds, its label, its unit of privacy.

    Everything in it comes from a code book, a device or physiology; nothing is read off the rows.
    So the preprocessing that follows from it costs no privacy, and the norm of its output rows is
    known in advance: each column becomes features of norm at most its weight, so that a row has
    norm at most the root of the sum of the squared weights.

    Parameters
    ----------
    columns : sequence of columns
        `NumericColumn`, `CategoricalColumn`, `OrdinalColumn`, `BooleanColumn`, `DateColumn`, the
        difference of two dates by `days_between`, and `IgnoredColumn` for what is known and left
        out.
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
    others : {"raise", "ignore"}, default="raise"
        What becomes of columns of a table that the schema does not mention: an error that names
        them, or nothing: they are neither read nor checked, which suits exports of hundreds of
        columns. A misspelt `IgnoredColumn` is then not noticed.

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

    def __repr__(self) -> str:
        return show_text(self)

    def _repr_html_(self) -> str:
        return show_table(self)

    # Schemas from bounds, lists, names and types.

    @classmethod
    def from_bounds(
        cls,
        bounds: Mapping[str, Any],
        *,
        label: str | None = None,
        name: str = "",
        missing: ListedMissing = "indicator",
    ) -> Self:
        """Return a schema from a pair of bounds or a list of values for each column.

        Bounds and lists must be public. Columns of numbers become waves between their bounds
        (``encoding="waves"`` of `NumericColumn`), lists of two values one feature, longer ones
        categories. A pair of dates makes a `DateColumn` of month, weekday and waves of days, and of
        hours if one of them has a time of day.

        Parameters
        ----------
        bounds : mapping
            By the name of a column a tuple ``(lower, upper)``, of numbers, dates or texts such as
            "2020-01-31"; or a list of all its values. A column itself, such as
            ``days_between("admitted", "discharged", 0, 60)``, takes the name before it and stays
            as it is otherwise.
        label : str or None, default=None
            The column to predict, whose list in `bounds` holds its classes, or its bounds.
        name : str, default=""
            Name of the table.
        missing : {"indicator", "ignore", "refuse"}, default="indicator"
            What becomes of missing cells in all columns; see `NumericColumn`.

        Raises
        ------
        ValueError
            If a column has neither bounds nor values; the message names it.

        Examples
        --------
        >>> from skdp.preprocessing import TableSchema
        >>> schema = TableSchema.from_bounds(
        ...     {"age": (18, 100), "ward": ["A", "B", "C"], "ill": [0, 1]}, label="ill"
        ... )
        >>> schema.features, schema.label.classes
        (['age', 'ward'], (0, 1))
        """
        return cls(name=name, **drafts.fields_from_bounds(bounds, label, missing))

    @classmethod
    def draft(
        cls, table: Any, dtypes: Any = None, *, label: str | None = None, name: str = ""
    ) -> Self:
        """Return a schema with the columns of a table and everything else left open.

        Only names and types are read: bounds and lists are for you to fill in from public
        sources, and `preprocessor` refuses until they are. `left_open` names them. A column whose
        type is one of dates becomes a `DateColumn`, in the type's time zone if it has one.

        Parameters
        ----------
        table : DataFrame, mapping or sequence of str
            A frame, or a kind of column (such as "numeric") for each name; or names alone, with
            `dtypes`.
        dtypes : sequence or None, default=None
            The type of each column, such as ``frame.dtypes``, where `table` holds names.
        label : str or None, default=None
            Name of the column to predict: its classes are left open, or its bounds if a mapping
            gives it the kind "numeric".
        name : str, default=""
            Name of the table.

        Examples
        --------
        >>> from skdp.preprocessing import TableSchema
        >>> TableSchema.draft(["age", "ward"], ["float64", "object"]).left_open()
        {'age': ('lower', 'upper'), 'ward': ('categories',)}
        """
        return cls(name=name, **drafts.fields_of_draft(table, dtypes, label))

    # Preprocessing.

    def preprocessor(self, *, positions: bool = False) -> ColumnTransformer:
        """Return the scikit-learn transformer that the description determines.

        It has one `SchemaEncoder` for each kind of column and each interaction. Its fit learns
        nothing from rows, and its output rows have norm at most `norm_bound`.

        Parameters
        ----------
        positions : bool, default=False
            Take an array whose columns are `inputs`, in that order, instead of a frame.

        Raises
        ------
        ValueError
            If no column is a feature, or bounds or categories are left open.
        """
        return make_preprocessor(self, positions)

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
            ``fit(table)`` takes labels from the label's column, and ids from the unit's; so do
            ``score(table)``, private searches over it, and evaluations. ``fit(X, y, groups=ids)``
            hands ids to every step that learns privately, or is refused. Without ids it warns if
            the unit may have several rows.

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
        schema = self.with_encoding(encoding)
        if interactions is not None:
            schema = schema.replace(interactions=interactions)
        return make_schema_pipeline(schema, estimator, positions)

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
            mention unless `others` is "ignore", types that do not fit.
        """
        frames.check_frame(self, frame, label=label)

    def review(self, frame: Any) -> list[str]:
        """Look at the cells of a table for signs of a mistake in it or in the schema.

        **The list is for the eyes of whoever holds the table.** It is read off private cells
        without noise, no budget is charged, and no guarantee covers it, not even whether it is
        empty. What it makes you change in the schema must have a public source.

        Parameters
        ----------
        frame : DataFrame or ParquetTable
            See `split`.

        Returns
        -------
        list of str
            What `check` would refuse, and a sentence for each doubt: bounds that are the smallest
            and largest cell to the last digit, cells beyond bounds or within a small part of them,
            texts that are no numbers, cells not listed, many missing ones, units of too many rows.

        Raises
        ------
        ValueError
            If bounds or lists are left open.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("cost", 0, 9000)])
        >>> made_up = pd.DataFrame({"cost": ["1,200", "300", "8,000", "20"]})
        >>> print(schema.review(made_up)[-1])
        column 'cost': 2 of 4 cells are texts that are no numbers, and count as missing. ...
        """
        return review_frame(self, frame)

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
            The columns `inputs`, of the same kind of table.
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
        return frames.split_frame(self, frame, groups=groups)

    def split_holdout(self, table: Any, share: float, seed: int) -> tuple[Any, Any]:
        """Return a table's rows to fit on, and those that are held out, all of a unit together.

        A unit goes to its side by a keyed hash of its id and the seed, whoever else is there, and
        stays there in any later table. Without a column of ids each row goes by its number.

        Parameters
        ----------
        table : DataFrame or ParquetTable
            A pandas or polars frame, one of Dask, or a table on disk, see `skdp.data.open_parquet`.
        share : float
            Share of units that are held out, on average, in (0, 1).
        seed : int
            Public number, chosen before rows are looked at. Divide a half again by another one.

        Returns
        -------
        kept, held_out : tables of the same kind
            The two halves; of a table on disk views, which read blocks.

        Raises
        ------
        ValueError
            If the column of ids is not in the table, or a unit may have several rows and no column
            names their ids.

        Notes
        -----
        Numbers of units in each half count as public. One unit's rows are in one half: a release
        of each protects it as the one with the larger epsilon does, if a replaced unit keeps its
        id, or a unit is added or removed (:ref:`Theorem 6 of units <units-6>`). A unit of another
        id may move to the other side, and no guarantee hides the new numbers. A row that goes by
        its number keeps it under replace-one; a row that is removed leaves its place empty.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdp.preprocessing import NumericColumn, PrivacyUnit, TableSchema
        >>> unit = PrivacyUnit("patient", column="patient")
        >>> schema = TableSchema([NumericColumn("age", 0, 120)], unit=unit)
        >>> stays = pd.DataFrame({"patient": [1, 2, 3, 4] * 2, "age": range(8)})
        >>> fit, look = schema.split_holdout(stays, 0.5, seed=0)
        >>> set(fit["patient"]) & set(look["patient"])
        set()
        """
        return frames.split_holdout(self, table, share, seed)

    def read_csv(self, path: Any, **options: Any) -> Any:
        """Read a table, each cell by the description of its column and by itself.

        pandas alone decides a column's type by all of its cells, so that one row can change what
        the others mean.

        Parameters
        ----------
        path : path-like
            The file.
        **options : dict
            Given to `pandas.read_csv`, if they are about the layout of the file, such as ``sep``
            or ``encoding``; what cells mean is the schema's to say.

        Returns
        -------
        DataFrame
            Numeric columns as float64, NaN where a cell is no number. Where only numbers are
            listed, objects: integers exactly, other numbers as floats, other cells as text; a
            number is what JSON writes as one, so that 01 is none. Where False or True is listed,
            true and false in small or large letters are these. All else is text, dates included,
            which are read when they are encoded. An empty cell is
            missing unless it is listed; other words that stand for a missing one, such as NA,
            belong into `missing_codes`.

        Raises
        ------
        TypeError
            If an option is not about the layout, such as ``dtype`` or ``decimal``.
        """
        return frames.read_csv(self, path, options)

    def read_parquet(self, path: Any, **options: Any) -> Any:
        """Read a table in the types that the file declares, which a missing cell does not change.

        Parameters
        ----------
        path : path-like
            The file.
        **options : dict
            Given to `pandas.read_parquet`, such as ``columns``; the frame is backed by pyarrow.
        """
        return frames.read_parquet(self, path, options)

    def sample_public(
        self, n: int, *, marginals: Mapping[str, Any] | None = None, random_state: Any = None
    ) -> Any:
        """Return rows drawn from the description alone, which cost no privacy.

        Columns are independent of each other. They can stand in for public rows, for example as
        `X_public` of `PATEClassifier`; the less they look like real rows, the less a student learns
        from them.

        Parameters
        ----------
        n : int
            Number of rows, at least 1.
        marginals : mapping or None, default=None
            By the name of a column: of a listed one a probability for each value; of numbers the
            edges of intervals that are equally likely, such as published deciles, where an edge may
            be repeated; of dates likewise. They must be public. Other columns are uniform: on the
            list, or between the bounds.
        random_state : None, int or RandomState, default=None
            Source of the rows, which need no secret randomness.

        Returns
        -------
        DataFrame of shape (n, n_features)
            A pandas frame of the columns `inputs`, as `preprocessor` takes it.

        Raises
        ------
        ValueError
            If bounds or lists are left open, or a marginal does not fit its column.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema, published = TableSchema([NumericColumn("age", 0, 120)]), [18, 40, 60, 75, 100]
        >>> rows = schema.sample_public(100, marginals={"age": published}, random_state=0)
        >>> rows.shape, bool((rows["age"] >= 18).all())
        ((100, 1), True)
        """
        return drafts.sample_rows(self, n, marginals, random_state)
