"""The rows of a fit as one thing, made once from what the fit was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skdp.inputs import canonical_rows, validate_rows
from skdp.seeding import fit_context
from skdp.tables.places import Columns, taken_for_granted
from skdp.units import Units, units_of

# In the place of labels, where a fit takes none.
NO_LABELS = "no_validation"


@dataclass(frozen=True, eq=False)
class Records:
    """Valid rows, their targets, whose they are and how often each counts.

    Rows are in memory, or a source of them. Plans see the public numbers alone, until their charge
    is paid; then models are bound to the records.
    """

    X: Any
    targets: Any = None  # as the model takes them
    labels: Any = None  # the label set of a classifier
    units: Units | None = None  # of a fit with groups=
    row_weight: NDArray[np.float64] | None = None  # None counts all rows once
    assumptions: tuple[str, ...] = ()  # what is taken for granted of where they lie
    beside: Columns | None = None  # labels and ids as they were given

    @classmethod
    def read(
        cls,
        estimator: Any,
        X: Any,
        y: Any = NO_LABELS,
        groups: Any = None,
        encode: Callable[[Any], tuple[Any, Any]] | None = None,
        most: float = 1.0,
        **checks: Any,
    ) -> Self:
        """Check what a fit was given, by scikit-learn's checks, and return its records.

        Rows of one id count together as much as `most` at most.
        """
        beside, assumptions = Columns(y, groups), taken_for_granted(X, y, groups)
        rows, targets, labels = validate_rows(estimator, X, beside, **checks), None, None
        if encode is not None:
            rows, y = rows
            targets, labels = encode(y)
        units = None if groups is None else units_of(beside.found[1], rows.shape[0])
        weights = None if units is None else units.weights(most)
        return cls(canonical_rows(rows), targets, labels, units, weights, assumptions, beside)

    @property
    def n_rows(self) -> int:
        """Number of records, which is public: of rows, or of units, whose rows are not counted."""
        return int(self.X.shape[0]) if self.units is None else self.units.n_units

    @property
    def n_features(self) -> int:
        """Number of columns, which is public."""
        return int(self.X.shape[1])

    @property
    def by_unit(self) -> bool:
        """Whether a record is all rows of an id."""
        return self.units is not None

    def check_rows(self) -> None:
        """Refuse rows and columns that are not what they were when they were checked."""
        parts: tuple[Any, ...] = self.X, self.beside
        for part in parts:
            if hasattr(part, "check_rows"):
                part.check_rows()

    def context(self, estimator: Any, *others: np.ndarray) -> bytes:
        """Return what ties a seeded stream to one fit; it never leaves that."""
        codes = None if self.units is None else self.units.codes
        own = [part for part in (self.targets, codes, *others) if part is not None]
        return fit_context(estimator, self.X, *own)

    def draw(self, stream: Any, most: int, padded: bool) -> Self:
        """Return up to `most` rows of each unit, drawn at random; see `Units.draw`."""
        assert self.units is not None
        rows, units, shares = self.units.draw(stream, most, padded)
        chosen = {"X": self.X[rows], "targets": self.targets[rows]}
        return replace(self, **chosen, units=units, row_weight=shares)

    def weigh(self, weights: NDArray[np.float64]) -> Self:
        """Return records of which each row counts as many times more."""
        weights = weights if self.row_weight is None else weights * self.row_weight
        return replace(self, row_weight=weights)

    def bind(self, model: Any) -> list[Any]:
        """Return the problems of a model on these rows."""
        given: dict[str, Any] = {}
        if self.row_weight is not None:
            given["row_weight"] = self.row_weight
        if self.units is not None:
            given["n_units"] = self.units.n_units
        problems: list[Any] = model.bind(self.X, self.targets, **given)
        return problems
