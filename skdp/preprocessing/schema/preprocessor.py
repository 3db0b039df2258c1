"""What a schema makes for scikit-learn: a column transformer and a pipeline that know tables."""

from __future__ import annotations

import copy
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from skdp.preprocessing.schema.encoder import SchemaEncoder
from skdp.preprocessing.schema.values import refuse_container, rows_as_array
from skdp.row_sources import BlockTable, source_of
from skdp.tables.places import as_rows_are_read, is_read_later


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
        return source.encoded(steps.encode_block, steps.encode_block(source.read(0, 0)))

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
    """A `Pipeline` that takes labels and ids of a table on disk from the schema's columns."""

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
        """Fit on rows, or on a table on disk that is split as `TableSchema.split` does.

        Frames are to be split before: whatever scores what it fits needs their labels as well.
        """
        if y is None and is_read_later(X) and self._has_label(X):
            by_unit = self.schema.unit.column is not None
            if params or (by_unit and not self._hands_on_ids()):
                raise ValueError(
                    "fit(table) takes labels and ids from the schema's columns, and hands them to "
                    "one estimator behind the schema. Else say to whom they go: X, y, groups = "
                    "schema.split(table, groups=True), and fit(X, y, <step>__groups=groups)."
                )
            X, y, *ids = self.schema.split(X, groups=by_unit)
            routed = get_config()["enable_metadata_routing"]
            key = "groups" if routed else f"{self.steps[-1][0]}__groups"
            params = dict(zip([key], ids, strict=False))
        return super().fit(X, y, **params)

    def _has_label(self, X: Any) -> bool:
        label = getattr(self.schema, "label", None)
        return label is not None and label.name in list(getattr(X, "columns", ()))

    def _hands_on_ids(self) -> bool:
        """Tell whether all that learns from rows is one step, whose fit takes ids."""
        last = self.steps[-1][1]
        return len(self.steps) == 2 and "groups" in signature(last.fit).parameters
