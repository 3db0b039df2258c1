"""Rows that a schema's public description allows, drawn at random without a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skdp.parameters import check_integer
from skdp.preprocessing.schema.base import FeatureColumn, SchemaPart
from skdp.preprocessing.schema.columns import NumericColumn
from skdp.preprocessing.schema.frames import import_pandas
from skdp.preprocessing.schema.io import refuse_unknown


class SchemaSampling(SchemaPart):
    """The part of a schema that draws rows from it."""

    def sample_public(
        self, n: int, *, marginals: Mapping[str, Any] | None = None, random_state: Any = None
    ) -> Any:
        """Return rows drawn from the description alone, which cost no privacy.

        Columns are independent of each other. They can stand in for public rows, for example as
        `X_public` of `PATEClassifier`; the less they look like real rows, the less a student learns
        from them.

        Parameters
        ----------
        n : int
            Number of rows, at least 1.
        marginals : mapping or None, default=None
            By the name of a column: of a listed one a probability for each value; of numbers the
            edges of intervals that are equally likely, such as published deciles, where an edge may
            be repeated. They must be public. Other columns are uniform: on the list, or between the
            bounds.
        random_state : None, int or RandomState, default=None
            Source of the rows, which need no secret randomness.

        Returns
        -------
        DataFrame of shape (n, n_features)
            A pandas frame of the columns `features`, as `preprocessor` takes it.

        Raises
        ------
        ValueError
            If bounds or lists are left open, or a marginal does not fit its column.
        ImportError
            Without pandas.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema, published = TableSchema([NumericColumn("age", 0, 120)]), [18, 40, 60, 75, 100]
        >>> rows = schema.sample_public(100, marginals={"age": published}, random_state=0)
        >>> rows.shape, bool((rows["age"] >= 18).all())
        ((100, 1), True)
        """
        n = check_integer("n", n, at_least=1)
        given = dict(marginals or {})
        columns = self._features  # type: ignore[attr-defined]
        refuse_unknown("marginals", given, [column.name for column in columns])
        rng = check_random_state(random_state)
        cells = {column.name: _draw(column, given.get(column.name), n, rng) for column in columns}
        return import_pandas().DataFrame(cells)


def _draw(column: FeatureColumn, marginal: Any, n: int, rng: Any) -> Any:
    """Draw cells of one column; None for a marginal is uniform."""
    column.refuse_open()
    try:
        if not isinstance(column, NumericColumn):
            # Not an array of the list, which would give all its values one type.
            listed = list(column.listed() or ())
            return [listed[place] for place in rng.choice(len(listed), n, p=marginal)]
        edges = np.asarray([column.lower, column.upper] if marginal is None else marginal, float)
        inside = edges.ndim == 1 and edges.size > 1 and np.all(np.diff(edges) >= 0.0)
        if not (inside and column.lower <= edges[0] and edges[-1] <= column.upper):
            raise ValueError(
                "edges must be two or more numbers within the bounds that do not fall."
            )
        place = rng.randint(edges.size - 1, size=n)
        return edges[place] + rng.uniform(size=n) * np.diff(edges)[place]
    except (TypeError, ValueError) as error:
        raise column._fail("marginals", f"give what fits the column. {error}") from error
