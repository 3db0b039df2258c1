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
    """A public description of a table: columns, bounds, label and unit of privacy.

    All its content comes from public sources such as a code book, a device or physiology.
    Preprocessing with a schema learns nothing from the rows and needs no privacy budget. Each
    column becomes features with norm at most its weight. The norm of an output row is at most the
    root of the sum of squared weights and 1 per interaction.

    Parameters
    ----------
    columns : sequence of columns
        Descriptions of the columns: `NumericColumn`, `CategoricalColumn`, `OrdinalColumn`,
        `BooleanColumn`, `DateColumn`, and differences of dates from `days_between`.
        `IgnoredColumn` is for known columns that are not used.
    label : LabelColumn, NumericLabel or None, default=None
        The column to predict, with its public classes or bounds.
    unit : PrivacyUnit, default=PrivacyUnit()
        The unit that the guarantee protects, and its maximum number of rows.
    name, description, source : str, default=""
        Name and content of the table, and source of its description.
    clip_norm : float or None, default=None
        Public norm that most rows do not exceed. The private estimator shortens longer rows to this
        norm and adds less noise. None uses `norm_bound`, which no row exceeds.
    interactions : sequence of tuples of names, default=()
        Columns that act together, such as ``[("day", "month")]``. The products of their features
        form one more block of norm 1. Numbers become cells at their cuts, or eight intervals
        equally spaced on their scale.
    others : {"raise", "ignore"}, default="raise"
        Treatment of table columns that the schema does not mention. "raise" names them in an error.
        "ignore" neither reads nor checks them, for exports with hundreds of columns; a misspelt
        `IgnoredColumn` is then not noticed.

    See Also
    --------
    skdp.datasets.load_schema : Ready-made schemas.

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
        """Return a schema from bounds or a list of values per column.

        Bounds and lists must be public. Numeric columns become waves between their bounds
        (``encoding="waves"`` of `NumericColumn`). Lists of two values become one feature, and
        longer lists become categories. A pair of dates becomes a `DateColumn` with month, weekday
        and waves of days. It also has hours if one of the dates has a time of day.

        Parameters
        ----------
        bounds : mapping
            For each column name, a tuple ``(lower, upper)`` of numbers, dates or texts such as
            "2020-01-31", or a list of all values. A column object, such as
            ``days_between("admitted", "discharged", 0, 60)``, takes the key as its name and is
            otherwise unchanged.
        label : str or None, default=None
            Name of the column to predict. Its entry in `bounds` lists classes or gives two bounds.
        name : str, default=""
            Name of the table.
        missing : {"indicator", "ignore", "refuse"}, default="indicator"
            Treatment of missing cells in all columns; see `NumericColumn`.

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
        """Return a schema with the columns of a table and all other fields open.

        Only names and types are read. Fill in bounds and lists from public sources; `left_open`
        lists the open fields, and `preprocessor` raises until they are filled in. A column with a
        date type becomes a `DateColumn`, in the type's time zone if it has one.

        Parameters
        ----------
        table : DataFrame, mapping or sequence of str
            A frame, or a mapping from names to kinds of column, such as "numeric". A sequence of
            names needs `dtypes`.
        dtypes : sequence or None, default=None
            Type of each column, such as ``frame.dtypes``, if `table` contains names.
        label : str or None, default=None
            Name of the column to predict. Its classes stay open, or its bounds if a mapping gives
            it the kind "numeric".
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

        It has one `SchemaEncoder` per kind of column and per interaction. Its fit learns nothing
        from rows, and its output rows have norm at most `norm_bound`.

        Parameters
        ----------
        positions : bool, default=False
            Whether to accept an array with the columns `inputs`, in that order, instead of a frame.

        Raises
        ------
        ValueError
            If no column is a feature, or if bounds or categories are still open.
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
        """Return a pipeline of the preprocessor and a clone of an estimator.

        Parameters
        ----------
        estimator : estimator
            A private classifier or regressor, a search over one, or any other estimator. Parameters
            named ``data_norm`` in it, at any depth, are set to `data_norm` if they are None. So are
            ``classes``, ``prevalence`` and ``target_bounds``, to the values of the label. The
            ``data_norm`` of estimators behind other steps, which receive other rows, is not set.
        positions : bool, default=False
            See `preprocessor`.
        encoding : {"declared", "auto"}, default="declared"
            See `with_encoding`.
        interactions : sequence of tuples of names or None, default=None
            Interactions that replace those of the schema. None uses those of the schema.

        Returns
        -------
        Pipeline
            ``fit(table)`` takes labels from the label's column and ids from the unit's column.
            ``score(table)``, private searches over the pipeline and evaluations do the same.
            ``fit(X, y, groups=ids)`` passes ids to every step that learns privately, or raises.
            Without ids it warns if the unit may have several rows.

        Raises
        ------
        ValueError
            If ``data_norm`` has another value for the schema's rows, or a classifier would predict
            a number, or a regressor a class.

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
        """Compare the columns and types of a table with the description; no cell is read.

        Parameters
        ----------
        frame : DataFrame
            A pandas or polars frame.
        label : bool, default=True
            Whether the label must be in the table.

        Raises
        ------
        ValueError
            If columns are missing, if types do not fit, or if there are columns that the schema
            does not mention and `others` is "raise". The message lists all problems.
        """
        frames.check_frame(self, frame, label=label)

    def review(self, frame: Any) -> list[str]:
        """Check the cells of a table for signs of mistakes in it or in the schema.

        **The result is only for the holder of the table.** It is computed from private cells
        without noise, and no budget is charged. No guarantee covers it, not even whether it is
        empty. Any change of the schema that follows from it needs a public source.

        Parameters
        ----------
        frame : DataFrame or ParquetTable
            See `split`.

        Returns
        -------
        list of str
            The problems that `check` would report, and a sentence for each suspicious finding:

            - bounds that equal the smallest and largest cell to the last digit;
            - cells beyond the bounds, or within a small part of them; many missing cells;
            - texts that are not numbers; unlisted cells; units with too many rows.

        Raises
        ------
        ValueError
            If bounds or lists are still open.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("cost", 0, 9000)])
        >>> made_up = pd.DataFrame({"cost": ["1,200", "300", "8,000", "20"]})
        >>> print(schema.review(made_up)[-1])
        column 'cost': 2 of 4 cells are texts that are not numbers, and count as missing. ...
        """
        return review_frame(self, frame)

    def split(self, frame: Any, *, groups: bool = False) -> tuple[Any, ...]:
        """Return the feature columns of a table and its labels.

        Parameters
        ----------
        frame : DataFrame or ParquetTable
            A frame of pandas, polars or Dask, or a table on disk, see `skdp.data.open_parquet`.
        groups : bool, default=False
            Whether to return also the ids of the unit's column, for ``fit(X, y, groups=...)``.

        Returns
        -------
        X : DataFrame
            The columns `inputs`, in the same kind of table.
        y : ndarray of shape (n_samples,)
            Labels, each one of the label's classes; floats within its bounds for a numeric label.
        groups : ndarray of shape (n_samples,)
            Ids, only with ``groups=True``.

        Raises
        ------
        ValueError
            If `check` fails or the schema has no label. Also if a cell of the label is not listed
            or no number, or if requested ids have no declared column in the table.

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
        """Divide a table into rows to fit on and held-out rows; all rows of a unit stay together.

        A keyed hash of id and seed decides a unit's side, independently of other units, and the
        same in later tables. Without a column of ids, rows are divided by their numbers.

        Parameters
        ----------
        table : DataFrame or ParquetTable
            A frame of pandas, polars or Dask, or a table on disk, see `skdp.data.open_parquet`.
        share : float
            Expected share of units that are held out, in (0, 1).
        seed : int
            Public number, chosen before you look at rows. Divide a half again with another seed.

        Returns
        -------
        kept, held_out : tables of the same kind
            The two halves. For a table on disk they are views, which read blocks.

        Raises
        ------
        ValueError
            If the column of ids is not in the table, or if a unit may have several rows and no
            column contains their ids.

        Notes
        -----
        The numbers of units in each half count as public. All rows of a unit are in one half. A
        release of each half protects a unit as the release with the larger epsilon does
        (:ref:`Theorem 6 of units <units-6>`). This requires that a replaced unit keeps its id, or
        that a unit is added or removed. A unit with another id may move to the other side, and no
        guarantee hides the new numbers. A row that is assigned by its number keeps the number under
        replace-one. A row that is removed leaves its place empty.

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
        """Read a table, each cell separately and by the description of its column.

        pandas would choose a column's type from all cells: one row could change all others.

        Parameters
        ----------
        path : path-like
            The file.
        **options : dict
            Options of `pandas.read_csv` about the layout of the file, such as ``sep`` or
            ``encoding``. The schema decides the meaning of cells.

        Returns
        -------
        DataFrame
            Numeric columns are float64, with NaN for cells that are not a number. Columns with a
            list of numbers are objects: exact integers, floats for other numbers, text for other
            cells. A number is written as in JSON; 01 is none. If False or True is listed, true and
            false stand for them in upper or lower case. All other columns are text, including
            dates, which are read when they are encoded. An empty cell is missing unless it is
            listed. List other words for a missing cell, such as NA, in `missing_codes`.

        Raises
        ------
        TypeError
            If an option is not about the layout, such as ``dtype`` or ``decimal``.
        """
        return frames.read_csv(self, path, options)

    def read_parquet(self, path: Any, **options: Any) -> Any:
        """Read a table with the types that the file declares, which missing cells do not change.

        Parameters
        ----------
        path : path-like
            The file.
        **options : dict
            Options of `pandas.read_parquet`, such as ``columns``. The frame is backed by pyarrow.
        """
        return frames.read_parquet(self, path, options)

    def sample_public(
        self, n: int, *, marginals: Mapping[str, Any] | None = None, random_state: Any = None
    ) -> Any:
        """Return random rows that follow only from the description, and need no privacy budget.

        Columns are independent of each other. The rows can replace public rows, for example as
        `X_public` of `PATEClassifier`; a student learns less from rows unlike real ones.

        Parameters
        ----------
        n : int
            Number of rows, at least 1.
        marginals : mapping or None, default=None
            Public distribution per column name. For a listed column it is a probability per value.
            For numbers and dates it is a sequence of edges of equally likely intervals, such as
            published deciles; edges may be repeated. Other columns are uniform on the list or
            between the bounds. None makes all columns uniform.
        random_state : None, int or RandomState, default=None
            Source of randomness; it need not be secret.

        Returns
        -------
        DataFrame of shape (n, n_features)
            A pandas frame with the columns `inputs`, as `preprocessor` accepts it.

        Raises
        ------
        ValueError
            If bounds or lists are still open, or if a marginal does not fit its column.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema, published = TableSchema([NumericColumn("age", 0, 120)]), [18, 40, 60, 75, 100]
        >>> rows = schema.sample_public(100, marginals={"age": published}, random_state=0)
        >>> rows.shape, bool((rows["age"] >= 18).all())
        ((100, 1), True)
        """
        return drafts.sample_rows(self, n, marginals, random_state)
