"""Result of an evaluation of a regressor: released tables and metrics computed from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import html_table
from skdp.base.parameters import check_real
from skdp.metrics import error_figures
from skdp.metrics.errors import ErrorPart, ErrorTables
from skdp.metrics.figures import Figure, quantile
from skdp.metrics.result import FiguresRecord, Point, figure_to_dict, plain_label

# Metrics that are sizes, in the unit of the target: at least 0.
SIZES_OF_ERRORS = ("mean_absolute_error", "median_absolute_error", "root_mean_squared_error")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateRegressionResult(FiguresRecord):
    """Metrics of a regressor on private rows, each a float with an `interval`.

    All metrics are computed from `tables`, which were released once: reading them is free. Each
    interval by itself contains the value of the population with probability `confidence`, over the
    sampling of rows and the noise. Errors are those of targets and predictions clipped to the
    bounds; errors above `largest_error` are not cut.

    Parameters
    ----------
    tables : ErrorTables
        Released noisy sums and counts, and public numbers.
    privacy_spent_ : PrivacySpent
        Guarantee, mechanism and assumptions.
    confidence : float
        Coverage probability of the intervals; change it with ``dataclasses.replace``.
    subgroup : object or None
        Subgroup of the metrics; see `of`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> from skdp.metrics import PrivateRegressionEvaluation
    >>> X, y = np.zeros((5000, 1)), np.random.default_rng(0).uniform(0, 1, 5000)
    >>> model = DummyRegressor().fit(X[:500], y[:500])  # stands for a private fit
    >>> result = PrivateRegressionEvaluation(target_bounds=(0, 1)).evaluate(model, X, y)
    >>> bool(abs(result.mean_absolute_error - 0.25) < 0.02)
    True
    >>> sorted(result.figures())
    ['mean_absolute_error', 'mean_error', 'median_absolute_error', 'r2', 'root_mean_squared_error']
    """

    tables: ErrorTables
    privacy_spent_: PrivacySpent
    confidence: float
    subgroup: Any = None

    def of(self, subgroup: Any = None) -> Self:
        """Return the metrics of a subgroup.

        Parameters
        ----------
        subgroup : object or None, default=None
            Declared subgroup; None means all rows.

        Returns
        -------
        PrivateRegressionResult
            Result with the metrics of that subgroup.
        """
        self.tables.part(subgroup)  # raises for an unknown subgroup
        return replace(self, subgroup=subgroup)

    @property
    def part(self) -> ErrorPart:
        """Released values of the rows that the metrics are for."""
        return self.tables.part(self.subgroup)

    @property
    def r2(self) -> Figure:
        """Coefficient of determination: explained share of the variance of the targets."""
        return error_figures.r2(self.part, self._z)

    @property
    def mean_absolute_error(self) -> Figure:
        """Mean absolute error, in the unit of the target."""
        return error_figures.mean_absolute_error(self.part, self._z)

    @property
    def median_absolute_error(self) -> Figure:
        """Median absolute error; its interval is wide, as it is valid for any law of errors.

        The value assumes a piecewise linear density between tabulated errors.
        """
        return error_figures.median_absolute_error(self.part, self._z)

    @property
    def root_mean_squared_error(self) -> Figure:
        """Root of the mean squared error, in the target's unit."""
        return error_figures.root_mean_squared_error(self.part, self._z)

    @property
    def mean_error(self) -> Figure:
        """Mean of target minus prediction (calibration in the large); 0 is best."""
        return error_figures.mean_error(self.part, self._z)

    def calibration_curve(self, *, largest_width: float = 0.2) -> list[Point]:
        """Return mean prediction and mean target in cells of predictions, a tenth of rows each.

        Cells consist of complete bins and follow from the released counts. The interval covers the
        distance of y from x; x itself is accurate to half a bin. `threshold` is the least
        prediction of the cell.

        Parameters
        ----------
        largest_width : float, default=0.2
            Largest width of an interval, as a share of the target's range. Neighbouring cells are
            merged until all intervals are narrower, based only on the released counts.

        Returns
        -------
        list of Point
            Points from left to right; empty if the interval of all rows together is too wide.
        """
        check_real("largest_width", largest_width, above=0.0)
        points = error_figures.calibration_curve(self.part, self._z, largest_width)
        return [Point(*point) for point in points]

    def error_histogram(self) -> list[Point]:
        """Return the share of rows near each tabulated error, target minus prediction.

        A row between two tabulated errors counts for both, more for the nearer one.
        """
        return [Point(*point) for point in error_figures.error_histogram(self.part, self._z)]

    def figures(self) -> dict[str, Figure]:
        """Return all metrics that are single numbers.

        Returns
        -------
        dict
            Metrics by name.
        """
        return {name: getattr(self, name) for name in ("r2", *SIZES_OF_ERRORS, "mean_error")}

    def to_dict(self) -> dict[str, Any]:
        """Return sums, counts and metrics of all parts as plain, JSON-ready values."""
        tables = self.tables
        parts = {subgroup: self.of(subgroup) for subgroup in (None, *(tables.subgroups or ()))}
        return {
            "n": tables.n,
            "target_bounds": list(tables.bounds),
            "largest_error": tables.largest_error,
            "confidence": self.confidence,
            "sums": tables.sums.tolist(),
            "counts": tables.counts.tolist(),
            "figures": [
                {
                    "subgroup": plain_label(subgroup),
                    **{name: figure_to_dict(own) for name, own in part.figures().items()},
                    "calibration_curve": [
                        {"x": point.x, "y": figure_to_dict(point.y), "threshold": point.threshold}
                        for point in part.calibration_curve()
                    ],
                }
                for subgroup, part in parts.items()
            ],
            "privacy_spent": self.privacy_spent_.to_dict(),
        }

    @property
    def _z(self) -> float:
        return quantile(self.confidence)

    def _heading(self) -> str:
        tables = self.tables
        part = "" if self.subgroup is None else f"subgroup {self.subgroup!r}, "
        return (
            f"{part}n = {tables.n}, targets within {np.array(tables.bounds).tolist()}, few errors "
            f"above {tables.largest_error:g}, {100.0 * self.confidence:g} % intervals, "
            f"{self.privacy_spent_!r}"
        )

    def _repr_html_(self) -> str:
        points = [(f"{point.x:.4g}", repr(point.y)) for point in self.calibration_curve()]
        return super()._repr_html_() + html_table("observed by mean prediction", points)
