"""What a schema makes for scikit-learn: a column transformer and a pipeline that know tables."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from skdp.dask_tables import as_rows_are_read
from skdp.preprocessing.schema.encoder import SchemaEncoder
from skdp.preprocessing.schema.values import refuse_container, rows_as_array
from skdp.row_sources import BlockTable, encode_rows, source_of


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
        X = self._checked(X)
        if (source := source_of(X, converted=False)) is None:
            return super().fit_transform(X, y, **params)
        super().fit_transform(source.read(0, 0), **params)
        return self._as_read(source)

    @as_rows_are_read
    def transform(self, X: Any, **params: Any) -> Any:
        """Check the kind of the table, and do as the base class does."""
        X = self._checked(X)
        if (source := source_of(X, converted=False)) is None:
            return super().transform(X, **params)
        return self._as_read(source)

    def _as_read(self, source: BlockTable) -> Any:
        """Return rows that are encoded as they are read, by what this fit has left."""
        steps = copy.deepcopy(self)
        for _, encoder, _ in steps.transformers_:
            if isinstance(encoder, SchemaEncoder):  # and no word such as "drop"
                encoder._tells = False
        return encode_rows(source, steps.encode_block, steps.encode_block(source.read(0, 0)))

    def encode_block(self, block: Any) -> Any:
        """Encode rows in memory, or mapped there, of a table that has been looked at."""
        return np.asarray(super().transform(block))

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


class SchemaPipeline(Pipeline):
    """A `Pipeline` that takes labels and ids from the schema's columns if it is given none."""

    # As above: what it is beside its base decides about labels and ids alone.
    _learns_from_rows = False
    _only_checks_tables = True

    def __init__(
        self,
        steps: Any,
        *,
        schema: Any = None,
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.schema = schema

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit on a table, split as `TableSchema.split` does unless labels are given."""
        label = getattr(self.schema, "label", None)
        if y is None and label is not None and label.name in list(getattr(X, "columns", ())):
            unit = self.schema.unit.column
            by_unit = unit is not None and unit in list(X.columns)
            X, y, *ids = self.schema.split(X, groups=by_unit)
            routed = get_config()["enable_metadata_routing"]
            key = "groups" if routed else f"{self.steps[-1][0]}__groups"
            params |= dict(zip([key], ids, strict=False))
        return super().fit(X, y, **params)
