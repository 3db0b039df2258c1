"""The column transformer behind a schema, which says what to do with a table that is no frame."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer

from skdp.preprocessing.schema.values import refuse_container


class SchemaPreprocessor(ColumnTransformer):
    """A `ColumnTransformer` that looks at the kind of a table first.

    The errors of its base would name no remedy, and quote cells of a mapping.
    """

    # The fitted state follows from the parameters, as that of its parts.
    _learns_from_rows = False
    # Beside that it is its base, which walks over steps go into.
    _only_checks_tables = True

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Check the kind of the table, and do as the base class does."""
        self._check_table(X)
        return super().fit_transform(X, y, **params)

    def transform(self, X: Any, **params: Any) -> Any:
        """Check the kind of the table, and do as the base class does."""
        self._check_table(X)
        return super().transform(X, **params)

    def _check_table(self, X: Any) -> None:
        refuse_container(X)
        by_name = any(isinstance(key, str) for _, _, keys in self.transformers for key in keys)
        if by_name and not hasattr(X, "columns"):
            raise ValueError(
                "the schema's columns are chosen by name, which needs a pandas or polars frame; an "
                "array or list whose columns are the schema's features, in their order, needs "
                "positions=True in preprocessor or pipeline."
            )
