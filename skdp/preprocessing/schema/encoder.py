"""The transformer behind a schema: public descriptions of columns in, bounded features out."""

from __future__ import annotations

import copy
import math
import reprlib
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.exceptions import SchemaError
from skdp.parameters import PlainParameters
from skdp.preprocessing.schema.base import FeatureColumn, refuse_misfits
from skdp.preprocessing.schema.interaction import Interaction, coarsen, multiply
from skdp.preprocessing.schema.values import (
    UNKNOWN,
    column_arrays,
    column_dtypes,
    refuse_container,
)
from skdp.row_bounds import note_bound
from skdp.row_sources import BlockTable, source_of
from skdp.tables.places import as_rows_are_read


class SchemaEncoder(PlainParameters, TransformerMixin, BaseEstimator):
    """Encode columns by their public descriptions; nothing is learned from rows.

    `TableSchema.preprocessor` makes these. A row's features have norm at most
    ``sqrt(sum of the squared weights)``, whatever the cells hold: missing, infinite or unknown.

    Parameters
    ----------
    columns : sequence of NumericColumn, CategoricalColumn, OrdinalColumn or BooleanColumn
        One description for each column of the table, in its order.
    product : bool, default=False
        Make one block of the columns: the products of their features, in which numbers are coarse
        cells. Its rows have norm at most 1.

    Attributes
    ----------
    data_norm_ : float
        Public bound on the norm of an output row.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if the table had any.

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
        """Check that the table has the described columns; no cell is used.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Table.
        y : None
            Ignored.

        Returns
        -------
        self : SchemaEncoder
            The encoder.

        Raises
        ------
        ValueError
            If columns or their types do not match their descriptions, or a description is
            incomplete.
        TypeError
            If the table is sparse, masked, lazy or an array of records.
        """
        refuse_container(X)
        if isinstance(X, BlockTable):
            X = X.read(0, 0)
        validate_data(self, X, skip_check_array=True)
        columns = tuple(self.columns)
        names = [column.name for column in columns]
        if self.n_features_in_ != len(names):
            raise SchemaError(
                f"columns describes {len(names)} columns, X has {self.n_features_in_}: give one "
                "description for each, in their order."
            )
        found = getattr(self, "feature_names_in_", names)
        if list(found) != names:
            raise SchemaError(
                f"columns describes {names}, X has {list(found)}: give them in the same order."
            )
        if self.product and len(columns) < 2:
            raise SchemaError("product=True needs two or more columns.")
        for column in columns:
            column.refuse_open()
        refuse_misfits(zip(columns, column_dtypes(X), strict=True))
        self._product = bool(self.product)
        self._columns = tuple(map(coarsen, columns)) if self._product else columns
        self.data_norm_ = 1.0 if self._product else norm_of(columns)
        return self

    @as_rows_are_read
    def transform(self, X: Any) -> np.ndarray:
        """Encode rows, each by itself.

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
            If a column's type does not fit its description, or its policy refuses a cell; the
            message names the column only.

        Warns
        -----
        UserWarning
            If no cell of a column is on its public list. `fit_transform` is silent about it.
        """
        check_is_fitted(self)
        refuse_container(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        refuse_misfits(zip(self._columns, column_dtypes(X), strict=True))
        return self._encode(X, predicting=self._tells)

    @as_rows_are_read
    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and encode the same rows without a warning that would tell about them.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Table.
        y : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Rows of norm at most ``data_norm_``.
        """
        return self.fit(X)._encode(X, predicting=False)

    def _encode(self, X: Any, *, predicting: bool) -> Any:
        if (source := source_of(X, converted=False)) is not None:
            encode = copy.copy(self)._encode_block
            rows = source.encoded(encode, encode(source.read(0, 0)))
        else:
            rows = self._encode_block(X, predicting)
        return note_bound(rows, self.data_norm_)

    def _encode_block(self, X: Any, predicting: bool = False) -> np.ndarray:
        """Encode rows in memory, which have been compared with the columns."""
        blocks = []
        for column, cells in zip(self._columns, column_arrays(X), strict=True):
            found = column._read(cells)
            if predicting and column.listed():
                _warn_of_strangers(column, found)
            blocks.append(column._features(found))
        if self._product:
            return multiply(blocks)
        return np.hstack(blocks) if blocks else np.zeros((len(X), 0))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output features.

        Parameters
        ----------
        input_features : None
            Ignored; names come from the descriptions.

        Returns
        -------
        ndarray of str
            Names.
        """
        columns = getattr(self, "_columns", self.columns)
        if getattr(self, "_product", self.product):
            return np.array(Interaction(tuple(columns)).feature_names(), dtype=object)
        names = [name for column in columns for name in column.feature_names()]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.requires_fit = True
        return tags


def _warn_of_strangers(column: FeatureColumn, found: np.ndarray) -> None:
    if np.any(found == UNKNOWN) and not np.any(found >= 0):
        warnings.warn(
            f"column {column.name!r}: none of the cells is on the public list, "
            f"{reprlib.repr(list(column.listed() or ()))}: are they written differently?",
            UserWarning,
            stacklevel=3,
        )


def norm_of(columns: Sequence[FeatureColumn]) -> float:
    """Return the largest norm of a row of features: the root of the summed squared weights."""
    return math.hypot(*(column.weight for column in columns))
