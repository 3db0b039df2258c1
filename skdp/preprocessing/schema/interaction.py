"""Columns that act together: products of their features, coarse for numbers."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.preprocessing.schema.base import FeatureColumn, SchemaPart
from skdp.preprocessing.schema.columns import NumericColumn

# Cells of a column of numbers without cuts of its own.
_CELLS = 8


@dataclass(frozen=True, repr=False)
class Interaction(SchemaPart):
    """The block of columns that act together: the products of their features.

    Numbers count as cells, at their cuts or eight spaced equally on their scale, and weights as 1,
    so that a row of the block has norm at most 1. Schemas make it of ``interactions=``.

    Parameters
    ----------
    columns : sequence of columns
        Two or more columns that become features.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import BooleanColumn, Interaction
    >>> both = Interaction((BooleanColumn("smoker"), BooleanColumn("diabetes")))
    >>> both.feature_names()
    ['smoker=True * diabetes=True']
    >>> both.encode(np.array([1, 1]), np.array([0, 1])).ravel()
    array([-1.,  1.])
    """

    columns: Sequence[FeatureColumn]

    def feature_names(self) -> list[str]:
        """Return one name a feature.

        Returns
        -------
        list of str
            Names of the features that are multiplied.
        """
        names = [coarsen(column).feature_names() for column in self.columns]
        return [" * ".join(parts) for parts in itertools.product(*names)]

    def encode(self, *cells: np.ndarray) -> np.ndarray:
        """Return the features of rows.

        Parameters
        ----------
        *cells : ndarray of shape (n_samples,)
            Cells of each column.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Products of features, each row of norm at most 1.

        Raises
        ------
        ValueError
            As for the columns.
        """
        pairs = zip(self.columns, cells, strict=True)
        return multiply([coarsen(column).encode(values) for column, values in pairs])


def coarsen(column: FeatureColumn) -> Any:
    """Return a column of weight 1, and one of numbers as cells at its cuts or spaced equally."""
    if not isinstance(column, NumericColumn):
        return dataclasses.replace(column, weight=1.0)
    cells: dict[str, Any] = {"encoding": "cells", "cuts": column.cuts or _CELLS - 1, "spikes": None}
    cells["scale"] = "linear" if column._scale == "linear" else column.scale
    return dataclasses.replace(column, weight=1.0, **cells)


def multiply(blocks: list[np.ndarray]) -> np.ndarray:
    """Return the products of features of different blocks; the norms of rows multiply."""
    return functools.reduce(
        lambda one, other: (one[:, :, None] * other[:, None, :]).reshape(
            len(one), one.shape[1] * other.shape[1]
        ),
        blocks,
    )
