"""The transformers of a schema, from public descriptions to bounded features."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.base.parameters import PlainParameters
from skdp.exceptions import SchemaError
from skdp.preprocessing.schema.base import (
    FeatureColumn,
    names_read,
    norm_of,
    refuse_misfits,
)
from skdp.preprocessing.schema.columns import Interaction, coarsen, multiply
from skdp.preprocessing.schema.frames import (
    column_arrays,
    column_dtypes,
    refuse_container,
)
from skdp.preprocessing.schema.meanings import Meaning
from skdp.tables.inputs import note_bound
from skdp.tables.places import as_rows_are_read
from skdp.tables.row_sources import BlockTable, source_of


class SchemaEncoder(PlainParameters, TransformerMixin, BaseEstimator):
    """Encode columns by their public descriptions.

    Nothing is learned from rows. `TableSchema.preprocessor` creates these transformers. The
    features of a row have norm at most ``sqrt(sum of the squared weights)`` for any cells,
    including missing, infinite and unknown ones.

    Parameters
    ----------
    columns : sequence of columns
        Descriptions of the columns of the table, in its order; a `DaysBetweenColumn` describes two
        columns. A column that several descriptions read has the place of the first of them.
    product : bool, default=False
        Whether to return one block with the products of the columns' features. Numbers then become
        coarse cells, and rows have norm at most 1.

    Attributes
    ----------
    data_norm_ : float
        Public bound on the norm of an output row.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if the table has names.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import NumericColumn, SchemaEncoder
    >>> encoder = SchemaEncoder([NumericColumn("pressure", 80, 200, unit="mmHg")])
    >>> encoder.fit_transform(np.array([[80.0], [140.0], [260.0]])).ravel()
    array([-1.,  0.,  1.])
    """

    # The fitted state follows from the parameters; a privacy statement may rely on it.
    _learns_from_rows = False
    # Whether `transform` warns of columns none of whose cells is listed; blocks may have none.
    _tells = True

    def __init__(self, columns: Sequence[FeatureColumn] = (), product: bool = False) -> None:
        self.columns = columns
        self.product = product

    @as_rows_are_read
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that a frame or array-like has the described columns; no cell is used.

        Raises
        ------
        ValueError
            If columns or their types do not match their descriptions, or if a description is
            incomplete.
        TypeError
            If the table is sparse, masked, lazy or a record array.
        """
        refuse_container(X)
        if isinstance(X, BlockTable):
            X = X.read(0, 0)
        validate_data(self, X, skip_check_array=True)
        columns = tuple(self.columns)
        names = names_read(columns)
        if self.n_features_in_ != len(names):
            raise SchemaError(
                f"columns describes {len(names)} columns, but X has {self.n_features_in_}. Give "
                "one description for each, in their order."
            )
        found = getattr(self, "feature_names_in_", names)
        if list(found) != names:
            raise SchemaError(
                f"columns describes {names}, but X has {list(found)}. Use the same order."
            )
        if self.product and len(columns) < 2:
            raise SchemaError("product=True needs two or more columns.")
        for column in columns:
            column.refuse_open()
        refuse_misfits(_with_types(columns, X))
        self._product = bool(self.product)
        self._columns = tuple(map(coarsen, columns)) if self._product else columns
        self.data_norm_ = 1.0 if self._product else norm_of(columns)
        return self

    @as_rows_are_read
    def transform(self, X: Any) -> np.ndarray:
        """Encode each row by itself.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Table.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Rows of norm at most ``data_norm_``.

        Raises
        ------
        ValueError
            If a column's type does not fit its description, or if its policy refuses a cell. The
            message names only the column.

        Warns
        -----
        UserWarning
            If no cell of a column is on its public list, or a date. `fit_transform` does not warn
            of this.
        """
        check_is_fitted(self)
        refuse_container(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        refuse_misfits(_with_types(self._columns, X))
        return self._encode(X, predicting=self._tells)

    @as_rows_are_read
    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit and encode the same rows, without warnings that would reveal something about them."""
        return self.fit(X)._encode(X, predicting=False)

    def _encode(self, X: Any, *, predicting: bool) -> Any:
        if (source := source_of(X, converted=False)) is not None:
            encode = copy.copy(self)._encode_block
            rows = source.encoded(encode, encode(source.read(0, 0)))
        else:
            rows = self._encode_block(X, predicting)
        return note_bound(rows, self.data_norm_)

    def _encode_block(self, X: Any, predicting: bool = False) -> np.ndarray:
        """Encode rows in memory that have been compared with the columns."""
        blocks = []
        cells = dict(zip(names_read(self._columns), column_arrays(X), strict=True))
        for column in self._columns:
            found = column._read(*(cells[part.name] for part in column.sources()))
            if predicting and (said := column.about_strangers(found)):
                warnings.warn(f"column {column.name!r}: {said}", UserWarning, stacklevel=2)
            blocks.append(column._features(found))
        if self._product:
            return multiply(blocks)
        return np.hstack(blocks) if blocks else np.zeros((len(X), 0))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output features, which depend only on the descriptions."""
        columns = getattr(self, "_columns", self.columns)
        if getattr(self, "_product", self.product):
            return np.array(Interaction(tuple(columns)).feature_names(), dtype=object)
        names = [name for column in columns for name in column.feature_names()]
        return np.array(names, dtype=object)

    def _meaning_after(self, before: Any) -> Meaning | None:
        """Return the meaning of its features, which are not computed from other features."""
        columns = tuple(self.columns)
        pieces = tuple((piece,) for column in columns for piece in column.pieces())
        return Meaning((columns,) if self.product else pieces) if before is None else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.requires_fit = True
        return tags


def _with_types(columns: Sequence[FeatureColumn], X: Any) -> list[tuple[Any, Any]]:
    """Return pairs of a column's description and its type, for each description that reads it."""
    types = dict(zip(names_read(columns), column_dtypes(X), strict=True))
    return [(part, types[part.name]) for column in columns for part in column.sources()]
