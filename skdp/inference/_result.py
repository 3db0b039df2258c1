"""Result of a look: coefficients and odds ratios with intervals, by column of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import JsonRecord
from skdp.base.parameters import cached_property
from skdp.inference._posterior import LookPosterior, look_posterior
from skdp.inference._release import Look
from skdp.reporting.estimates import CoefficientIntervals

Array = NDArray[np.float64]

# From this share of the prior's variance on, an interval says little of the data.
MOSTLY_PRIOR = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class InferenceResult(JsonRecord):
    """Coefficients of a two-class linear model with intervals, computed from one look.

    All numbers follow from `look`, which was released once: reading them is free. Each interval
    by itself contains the coefficient of the population with probability `confidence`, over the
    sampling of rows and the noise.

    Parameters
    ----------
    look : Look
        Released sums in scaled units, and their noise.
    prior_sd : ndarray of shape (d,)
        Standard deviations of the prior of the scaled weights.
    contrasts : ndarray of shape (d, d)
        Coefficients, then the intercept, as linear functions of the scaled weights.
    names : ndarray of shape (d,)
        Names of the columns of the linear model, and "intercept" last, if there is one.
    constant : float
        Value of the scaled constant column; 0 without an intercept.
    target : str
        Label with these log odds.
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
    >>> low, high = result.coefficients["low"][0], result.coefficients["high"][0]
    >>> bool(1.0 < low < 2.0 < high < 3.0)
    True
    """

    look: Look
    prior_sd: Array
    contrasts: Array
    names: NDArray[Any]
    constant: float
    target: str
    privacy_spent_: PrivacySpent
    confidence: float = 0.95

    @cached_property
    def posterior(self) -> LookPosterior:
        """Law of the scaled weights of the population, given the look."""
        look = self.look
        return look_posterior(
            *(look.theta, look.score, look.information, look.score_noise, look.matrix_noise),
            *(self.prior_sd, look.squares, look.squares_noise),
        )

    @cached_property
    def coefficients(self) -> CoefficientIntervals:
        """Table of the columns of the model, as `to_frame` returns it."""
        columns = {"name": self.names, **self._table(self.contrasts)}
        return CoefficientIntervals(
            columns,
            estimate="coefficient",
            confidence=self.confidence,
            target=f"log odds of {self.target}",
        )

    def to_frame(self) -> Any:
        """Return the table as a pandas frame, one row per column of the model.

        Returns
        -------
        DataFrame
            Columns "name", "coefficient", "low", "high", "odds_ratio", "odds_low", "odds_high",
            "p_value" (NaN where the prior decides) and "prior_share", the posterior variance over
            the prior variance, in [0, 1] or slightly above.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return self.coefficients.to_frame()

    @property
    def change_of_margins(self) -> float:
        """Root mean square change of log odds from the weights of the look to the estimates.

        Above 0.5, intervals may be too narrow: evaluate again at corrected weights.
        """
        return self.posterior.change_of_margins(self.constant) if self.constant else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return the table and the released numbers as plain, JSON-ready values."""
        table = {name: np.asarray(column).tolist() for name, column in self.coefficients.items()}
        look = {name: np.asarray(value).tolist() for name, value in vars(self.look).items()}
        finite = {
            name: [None if value != value else value for value in column]
            for name, column in table.items()
        }
        return {
            "target": self.target,
            "confidence": self.confidence,
            "coefficients": finite,
            "change_of_margins": self.change_of_margins if self.constant else None,
            "reliable": bool(self.posterior.reliable),
            "look": look,
            "prior_sd": self.prior_sd.tolist(),
            "privacy_spent": self.privacy_spent_.to_dict(),
        }

    def __repr__(self) -> str:
        return f"InferenceResult: {self.privacy_spent_!r}\n{self.coefficients!r}"

    def _repr_html_(self) -> str:
        return self.coefficients._repr_html_()

    def _table(self, contrasts: ArrayLike) -> dict[str, Array]:
        """Return estimates, intervals, odds ratios, p-values and shares of the prior."""
        rows, tail = np.asarray(contrasts), 0.5 - 0.5 * self.confidence
        low, high = self.posterior.quantiles(rows, [tail, 1.0 - tail]).T
        mean, share = rows @ self.posterior.mean, self.posterior.prior_share(rows)
        with np.errstate(over="ignore"):
            odds = {name: np.exp(of) for name, of in zip(_ODDS, (mean, low, high), strict=True)}
        p_values = np.where(share > MOSTLY_PRIOR, np.nan, self.posterior.p_values(rows))
        return {
            **{"coefficient": mean, "low": low, "high": high, **odds},
            **{"p_value": p_values, "prior_share": share},
        }


_ODDS = ("odds_ratio", "odds_low", "odds_high")
