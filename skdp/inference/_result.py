"""Result of a look: coefficients and odds ratios with intervals, in the units of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import JsonRecord
from skdp.base.parameters import cached_property
from skdp.inference._posterior import LookPosterior, look_posterior
from skdp.inference._release import Look
from skdp.inference._scale import Scale
from skdp.reporting.estimates import CoefficientIntervals

Array = NDArray[np.float64]

# From this share of the prior's variance on, an interval says little of the data.
MOSTLY_PRIOR = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class InferenceResult(JsonRecord):
    """Coefficients of a linear classifier with intervals, computed from one look.

    All numbers follow from `looks`, which were released once: reading them is free. Each interval
    by itself contains the coefficient of the population with probability `confidence`, over the
    sampling of rows and the noise. `PrivateInference.evaluate` creates it.

    Parameters
    ----------
    looks : tuple of Look
        Released sums in scaled units, and their noise, for each comparison of classes.
    scale : Scale
        Public columns of the model, with their meaning and the bound on rows.
    pairs : tuple of pairs
        Label and the label that it is compared with (None for all others), for each look.
    prior_sd : float
        Standard deviation of the prior, in log odds per half range of a column.
    privacy_spent_ : PrivacySpent
        Guarantee, mechanism and assumptions.
    confidence : float
        Coverage probability of the intervals; change it with ``dataclasses.replace``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ObjectivePerturbationLogisticRegression
    >>> from skdp.inference import PrivateInference
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = (rng.random(20_000) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    >>> model = ObjectivePerturbationLogisticRegression(epsilon=1.0, data_norm=1.0).fit(X, y)
    >>> result = PrivateInference(epsilon=1.0).evaluate(model, X, y)
    >>> table = result.coefficients()
    >>> table["name"].tolist(), bool(1.0 < table["low"][0] < 2.0 < table["high"][0] < 3.0)
    (['x0', 'x1', '(intercept)'], True)
    """

    looks: tuple[Look, ...]
    scale: Scale
    pairs: tuple[tuple[Any, Any], ...]
    prior_sd: float
    privacy_spent_: PrivacySpent
    confidence: float = 0.95

    @cached_property
    def posteriors(self) -> tuple[LookPosterior, ...]:
        """Laws of the scaled weights of the population, in the directions in which rows vary."""
        return tuple(map(self._posterior, self.looks))

    def _posterior(self, look: Look) -> LookPosterior:
        basis, squares = self.scale.basis, look.squares
        # Directions are orthonormal, so that their noise has the same law.
        return look_posterior(
            self.scale.reduced(look.theta),
            *(basis.T @ look.score, basis.T @ look.information @ basis),
            *(look.score_noise, look.matrix_noise, self.scale.prior(self.prior_sd)),
            *(None if squares is None else basis.T @ squares @ basis, look.squares_noise),
        )

    def coefficients(self, reference: Mapping[str, Any] | None = None) -> CoefficientIntervals:
        """Return coefficients and odds ratios in the units of the columns.

        Parameters
        ----------
        reference : mapping or None, default=None
            Reference value by name of a schema's column. For categories it replaces the declared
            reference level or the first one. For numbers it moves the intercept, which is
            otherwise given at the middle of the bounds.

        Returns
        -------
        CoefficientIntervals
            Dictionary of columns that prints as a table:

            - "class": compared labels, only for more than two classes;
            - "name", "step", "is_reference": the change, such as "+1 years" or "against A";
            - "coefficient", "low", "high": log odds, with an interval;
            - "odds_ratio", "odds_low", "odds_high": their exponentials;
            - "p_value": two-sided, NaN where the prior decides;
            - "prior_share": posterior variance over prior variance.

        Raises
        ------
        KeyError
            If a reference names no column.
        """
        words, functions, at = self.scale.effects(reference or {})
        tables = [words | self._table(posterior, functions, words) for posterior in self.posteriors]
        columns = {key: np.concatenate([table[key] for table in tables]) for key in tables[0]}
        several = len(self.pairs) > 1
        if several:
            titles = np.array([self._title(pair) for pair in self.pairs], dtype=object)
            columns = {"class": np.repeat(titles, len(functions)), **columns}
        return CoefficientIntervals(
            columns,
            estimate="coefficient",
            confidence=self.confidence,
            target=f"log odds of {'each class' if several else self._title(self.pairs[0])}",
            intercept_at=at,
        )

    def to_frame(self, reference: Mapping[str, Any] | None = None) -> Any:
        """Return the table of `coefficients` as a pandas frame, one row per column or level.

        Parameters
        ----------
        reference : mapping or None, default=None
            As for `coefficients`.

        Returns
        -------
        DataFrame
            Frame with the same columns.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return self.coefficients(reference).to_frame()

    @property
    def change_of_margins(self) -> float:
        """Largest root mean square change of log odds from the weights of a look to estimates.

        Above 0.5, intervals may be too narrow: evaluate again at corrected weights. NaN without an
        intercept.
        """
        if self.scale.constant == 0.0:
            return float("nan")
        constant = float(self.scale.factors[-1])  # the value of its column
        return max(posterior.change_of_margins(constant) for posterior in self.posteriors)

    @property
    def reliable(self) -> bool:
        """Whether rows vary in every direction by more than the noise does."""
        return all(posterior.reliable for posterior in self.posteriors)

    def to_dict(self) -> dict[str, Any]:
        """Return the table and the released numbers as plain, JSON-ready values."""
        return {
            "confidence": self.confidence,
            "coefficients": _plain(self.coefficients()),
            "change_of_margins": _plain(self.change_of_margins),
            "reliable": self.reliable,
            "prior_sd": self.prior_sd,
            "looks": [_plain(vars(look)) for look in self.looks],
            "privacy_spent": self.privacy_spent_.to_dict(),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.privacy_spent_!r}\n{self.coefficients()!r}"

    def _repr_html_(self) -> str:
        return self.coefficients()._repr_html_()

    def _title(self, pair: tuple[Any, Any]) -> str:
        label, against = pair
        other = " against the rest" if against is None else f" against {against}"
        return f"{self.scale.label} = {label}{other if len(self.pairs) > 1 else ''}"

    def _table(
        self, posterior: LookPosterior, rows: Array, words: Mapping[str, Any]
    ) -> dict[str, Array]:
        """Return estimates, intervals, odds ratios, p-values and shares of the prior."""
        fixed, tail = ~rows.any(axis=1), 0.5 - 0.5 * self.confidence  # references and left out
        low, high = posterior.quantiles(rows, [tail, 1.0 - tail]).T
        found = {"coefficient": rows @ posterior.mean, "low": low, "high": high}
        found = {name: np.where(fixed, 0.0, value) for name, value in found.items()}
        share, p_value = posterior.prior_share(rows), posterior.p_values(rows)
        with np.errstate(over="ignore"):
            odds = [np.exp(value) for value in found.values()]
        return {
            **found,
            **dict(zip(("odds_ratio", "odds_low", "odds_high"), odds, strict=True)),
            "p_value": np.where(fixed | (share > MOSTLY_PRIOR), np.nan, p_value),
            "prior_share": np.where(fixed, np.nan, share),
        }


def _plain(value: Any) -> Any:
    """Return arrays as lists, and numbers that are not finite as None."""
    if isinstance(value, Mapping):
        return {key: _plain(own) for key, own in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(own) for own in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
