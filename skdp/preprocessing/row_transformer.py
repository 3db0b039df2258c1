"""What the transformers of numeric rows share: valid rows in, rows of a known norm out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp.inputs import canonical_rows, validate_private_data
from skdp.parameters import PlainParameters
from skdp.row_bounds import note_bound


class RowTransformer(PlainParameters, TransformerMixin, BaseEstimator, ABC):
    """Base of the transformers that treat each row by itself, private ones and others."""

    data_norm_: float  # a class that knows no bound on its rows has none

    _accepts_sparse: bool = False

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
            where the class has one.
        """
        check_is_fitted(self)
        rows = self._apply(self._validate(X, reset=False))
        return note_bound(rows, self.data_norm_) if hasattr(self, "data_norm_") else rows

    @abstractmethod
    def _apply(self, X: Any) -> Any:
        """Transform valid rows, in the same type, and to norm at most ``data_norm_`` if known."""

    def _validate(self, X: Any, *, reset: bool) -> Any:
        accepted = "csr" if self._accepts_sparse else False
        X = validate_private_data(
            self, X, accept_sparse=accepted, dtype=[np.float64, np.float32], reset=reset
        )
        return canonical_rows(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
