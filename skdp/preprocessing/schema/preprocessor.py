"""The column transformer behind a schema, which says what to do with a table that is no frame."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer

from skdp.dask_tables import as_rows_are_read
from skdp.preprocessing.schema.values import refuse_container, rows_as_array


class SchemaPreprocessor(ColumnTransformer):
    """A `ColumnTransformer` that looks at the kind of a table first.

    The errors of its base would name no remedy, and quote cells of a mapping.
    """

    # The fitted state follows from the parameters, as that of its parts.
    _learns_from_rows = False
    # Beside that it is its base, which walks over steps go into.
    _only_checks_tables = True

    @as_rows_are_read
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Check the kind of the table, and do as the base class does."""
        return super().fit_transform(self._checked(X), y, **params)

    @as_rows_are_read
    def transform(self, X: Any, **params: Any) -> Any:
        """Check the kind of the table, and do as the base class does."""
        return super().transform(self._checked(X), **params)

    def _checked(self, X: Any) -> Any:
        refuse_container(X)
        keys = {key for _, _, chosen in self.transformers for key in chosen}
        if any(isinstance(key, str) for key in keys):
            if hasattr(X, "columns"):
                return X
            raise ValueError(
                "the schema's columns are chosen by name, which needs a pandas or polars frame; an "
                "array or list whose columns are the schema's features, in their order, needs "
                "positions=True in preprocessor or pipeline."
            )
        if isinstance(X, list | tuple):
            X = rows_as_array(X)
        if X.shape[1] != len(keys) or not self._has_names_of(X):
            raise ValueError(
                "the schema's columns are chosen by place, so that the table needs the schema's "
                "features in their order, and nothing else."
            )
        return X

    def _has_names_of(self, X: Any) -> bool:
        """Tell whether a frame names the features in their order, or gives no names."""
        names = list(getattr(X, "columns", ()))
        parts = [(keys, getattr(step, "columns", ())) for _, step, keys in self.transformers]
        return not all(isinstance(name, str) for name in names[:1]) or all(
            names[key] == column.name
            for keys, columns in parts
            for key, column in zip(keys, columns, strict=False)
            if names
        )
