"""What the transformers of numeric rows share: valid rows in, rows of a known norm out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from skdp.inputs import canonical_rows, validate_private_data, validate_rows
from skdp.parameters import DeclaredParameters, released
from skdp.row_bounds import note_bound
from skdp.row_sources import RowSource
from skdp.sklearn_bases import BaseEstimator, TransformerMixin


class RowTransformer(DeclaredParameters, TransformerMixin, BaseEstimator, ABC):
    """Base of the transformers that treat each row by itself, private ones and others."""

    data_norm_: float = released("float", "Public bound on the norm of an output row.")
    n_features_in_: int = released("int", "Number of features.")
    feature_names_in_: np.ndarray = released(
        "ndarray of shape (n_features,)", "Feature names, if `X` had any."
    )

    _accepts_sparse = False
    _bounds_rows = True  # a fit sets `data_norm_`
    _makes_rows_alone = True  # to the last bit

    def transform(self, X: Any) -> Any:
        """Transform rows, each by itself, with what was given or learned.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; sparse ones only where the class takes them.

        Returns
        -------
        {ndarray, sparse matrix}
            Rows, float32 if `X` is; sparse ones are CSR. Their norm is at most ``data_norm_``,
            where the class has one. A large table in a file becomes a source, whose rows are
            transformed as they are read, and an array of Dask a lazy one.
        """
        check_is_fitted(self)
        rows = self._validate(X, reset=False, look=False)
        if isinstance(rows, RowSource):
            make = sparse.csr_matrix if rows.is_sparse else np.zeros
            few = self._apply(make((1, rows.shape[1]), dtype=rows.dtype))
            # A later fit is not to change rows that are yet to be read.
            encode = copy.copy(self)._transform_block
            rows = rows.encoded(encode, few, self._makes_rows_alone)
        else:
            rows = self._apply(rows)
        return note_bound(rows, self.data_norm_) if self._bounds_rows else rows

    @abstractmethod
    def _apply(self, X: Any) -> Any:
        """Transform valid rows, in the same type, and to norm at most ``data_norm_`` if known."""

    def _transform_block(self, block: Any) -> Any:
        """Transform rows of a source, at which nobody has looked before."""
        block = validate_private_data(self, block, reset=False, **self._checks())
        return self._apply(canonical_rows(block))

    def _validate(self, X: Any, **options: Any) -> Any:
        return canonical_rows(validate_rows(self, X, **options, **self._checks()))

    def _checks(self) -> dict[str, Any]:
        accepted = "csr" if self._accepts_sparse else False
        return {"accept_sparse": accepted, "dtype": [np.float64, np.float32]}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
