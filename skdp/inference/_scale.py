"""Coefficients of columns and weights on rows of norm 1: conversions by public numbers only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.base.parameters import cached_property
from skdp.inference._release import norm_of_rows

Array = NDArray[np.float64]

# A column that hardly varies by its description has at least this share of the bound as its range.
_LEAST_RANGE = 1e-6


@dataclass(frozen=True, eq=False)
class Scale:
    """Columns of a linear model, their public meaning and the bound on rows.

    Coefficients are those of the columns, and then the intercept if there is one.
    """

    names: NDArray[Any]  # (n_features,)
    data_norm: float
    constant: float  # value of the constant column over `data_norm`; 0 without an intercept
    known_as: Any  # meaning of the columns behind a schema or a scaler, if known
    label: str

    @property
    def meaning(self) -> Any:
        """Meaning of the columns; None if it is unknown."""
        known = self.known_as
        return known if known is not None and known.n_features == self.names.size else None

    @property
    def norm(self) -> float:
        """Bound on rows with their constant column."""
        return self.data_norm * norm_of_rows(self.constant)

    @property
    def factors(self) -> Array:
        """Coefficients over weights on rows of norm 1."""
        factors = np.full(self.names.size, 1.0 / self.norm)
        if self.constant == 0.0:
            return factors
        return np.append(factors, self.constant / norm_of_rows(self.constant))

    def theta(self, coef: Array, intercept: float) -> Array:
        """Return weights on rows of norm 1."""
        whole = np.append(coef, intercept) if self.constant > 0.0 else coef
        with np.errstate(over="ignore"):
            return whole / self.factors

    @cached_property
    def basis(self) -> Array:
        """Orthonormal directions in which rows may vary, and the constant column, (d, k).

        The levels of a category add up to a constant, which rows do not tell from the intercept.
        """
        count, has_intercept = self.names.size, self.constant > 0.0
        if self.meaning is None:
            return np.eye(count + has_intercept)
        own = self.meaning.basis(range(count), has_intercept).toarray()
        if not has_intercept:
            return own
        whole = np.zeros((count + 1, own.shape[1] + 1))
        whole[:count, :-1], whole[-1, -1] = own, 1.0
        return whole

    def reduced(self, theta: Array) -> Array:
        """Return weights in the basis; constants of all rows move to the intercept."""
        found = self.basis.T @ theta
        if self.meaning is not None and self.constant > 0.0:
            lost = (theta - self.basis @ found) * self.factors
            _, row, _ = self.meaning.effects({}, range(self.names.size))
            found[-1] += lost[:-1] @ row / self.factors[-1]
        return found

    def prior(self, deviation: float) -> Array:
        """Return deviations of weights in the basis, from log odds per half range of a column."""
        equal = self.data_norm / np.sqrt(self.names.size)  # of columns that share the bound
        half = np.full(self.names.size, np.nan if self.meaning is None else self.meaning.half_ranges)
        half = np.clip(np.where(half > 0.0, half, equal), _LEAST_RANGE * self.data_norm, None)
        whole = half if self.constant == 0.0 else np.append(half, 1.0)
        found: Array = np.sqrt((self.basis**2).T @ (deviation / whole / self.factors) ** 2)
        return found

    def effects(self, reference: Mapping[str, Any]) -> tuple[dict[str, Any], Array, str]:
        """Return effects in words, their linear functions of coefficients, and the intercept's row.

        Functions are for weights in the basis.
        """
        count, at = self.names.size, ""
        if self.meaning is None:
            if reference:
                raise KeyError("reference names columns of a schema, but the model has no schema.")
            told = [(str(name), "+1", False) for name in self.names]
            functions, row = np.eye(count), np.zeros(count)
        else:
            found, row, at = self.meaning.effects(reference, range(count))
            told = [(each.name, each.step, each.is_reference) for _, each in found]
            functions = np.array([each.weights for _, each in found])
        if self.constant > 0.0:
            told.append(("(intercept)", "", False))
            functions = np.vstack([functions, row])
            functions = np.column_stack([functions, np.arange(len(told)) == len(told) - 1])
        keys = ("name", "step", "is_reference")
        words = {
            key: np.array(own, dtype=bool if key == "is_reference" else object)
            for key, own in zip(keys, zip(*told, strict=True), strict=True)
        }
        return words, (functions * self.factors) @ self.basis, at
