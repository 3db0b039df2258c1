"""Schemas from a schema: columns replaced, left out, weighted, encoded otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Self

from skdp.choices import SchemaEncoding
from skdp.preprocessing.schema.base import Column, FeatureColumn, SchemaPart
from skdp.preprocessing.schema.columns import IgnoredColumn, NumericColumn
from skdp.preprocessing.schema.io import KINDS, refuse_unknown


class SchemaChanges(SchemaPart):
    """The part of a schema that makes others of it."""

    # Fields of the schema.
    columns: Sequence[Column]
    interactions: Sequence[Sequence[str]]

    @property
    def _features(self) -> tuple[FeatureColumn, ...]:
        return tuple(column for column in self.columns if isinstance(column, FeatureColumn))

    @property
    def features(self) -> list[str]:
        """Names of the columns that become features."""
        return [column.name for column in self._features]

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{name!r} is no column of the schema: {[c.name for c in self.columns]}.")

    def replace(self, *columns: Column, **fields: Any) -> Self:
        """Return a schema with some columns replaced by name, or other fields changed.

        Parameters
        ----------
        *columns : Column
            Columns to put in the place of those of the same name.
        **fields : dict
            Other fields, such as ``label`` or ``clip_norm``.

        Returns
        -------
        TableSchema
            The changed schema.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120), NumericColumn("height", 50, 250)])
        >>> schema.replace(NumericColumn("age", 18, 100), clip_norm=1.0)["age"].lower
        18.0
        """
        new = {column.name: column for column in columns}
        for name in new:
            self[name]
        changed = tuple(new.get(column.name, column) for column in self.columns)
        changes = {"columns": changed, **fields}
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def select(self, names: Iterable[str]) -> Self:
        """Return a schema that uses only some columns as features and ignores the others.

        Choose by public knowledge: a choice that looks at the rows is a release.

        Parameters
        ----------
        names : iterable of str
            Columns to keep.

        Returns
        -------
        TableSchema
            The smaller schema.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120), NumericColumn("height", 50, 250)])
        >>> smaller = schema.select(["age"])
        >>> smaller.features, smaller.data_norm
        (['age'], 1.0)
        """
        kept = {self[name].name for name in names}
        dropped = [
            IgnoredColumn(column.name)
            for column in self.columns
            if column.is_feature and column.name not in kept
        ]
        interactions = tuple(names for names in self.interactions if kept.issuperset(names))
        return self.replace(*dropped, interactions=interactions)

    def with_weights(self, **weights: float) -> Self:
        """Return a schema with other weights, by the name of a column or by kind.

        A column's weight is the share of the row norm that it may take: ``numeric=2.0`` doubles
        the features of all numeric columns beside the others.

        Parameters
        ----------
        **weights : float
            Weights by column name or by kind: numeric, categorical, ordinal, boolean. A column's
            own name comes first.

        Returns
        -------
        TableSchema
            The changed schema, with its new `data_norm`.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120), NumericColumn("height", 50, 250)])
        >>> round(schema.with_weights(age=2.0).data_norm, 4)
        2.2361
        """
        kinds = [kind for kind in KINDS if kind != IgnoredColumn.kind]
        refuse_unknown("weights", weights, [*self.features, *kinds])
        return self.replace(
            *(
                dataclasses.replace(column, weight=weights[key])
                for column in self._features
                for key in [column.name if column.name in weights else column.kind]
                if key in weights
            )
        )

    def with_encoding(self, encoding: SchemaEncoding = "auto") -> Self:
        """Return a schema whose numbers are encoded by a rule where they declare nothing else.

        Parameters
        ----------
        encoding : {"auto", "declared"}, default="auto"
            ``"auto"`` gives waves to columns of numbers with bounds and ``encoding="auto"``;
            ``"declared"`` changes nothing.

        Returns
        -------
        TableSchema
            The schema, of the same `data_norm`.
        """
        if encoding not in ("auto", "declared"):
            raise ValueError(f"encoding must be 'auto' or 'declared', got {encoding!r}.")
        return self.replace(
            *(
                dataclasses.replace(column, encoding="waves")
                for column in self._features
                if encoding == "auto"
                and isinstance(column, NumericColumn)
                and column.encoding == "auto"
                and None not in (column.lower, column.upper)
            )
        )
