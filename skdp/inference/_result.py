"""Result of a look: coefficients and odds ratios with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import JsonRecord
from skdp.base.parameters import cached_property
from skdp.inference._models import LinearPart
from skdp.inference._posterior import LookPosterior, look_posterior
from skdp.inference._release import Look
from skdp.reporting.estimates import CoefficientIntervals

Array = NDArray[np.float64]

# Above this share of the prior's variance, an interval reports little of the data.
MOSTLY_PRIOR = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class InferenceResult(JsonRecord):
    """Coefficients and odds ratios of a linear classifier with intervals, from one look.

    All numbers follow from `look`, which was released once: reading them is free.

    Parameters
    ----------
    look : Look
        Released sums in scaled units, and their noise.
    part : LinearPart
        Public model, and the scale of its columns.
    prior_deviation : float
        Standard deviation of the prior, in log odds per half the range of a column.
    prior_sd : ndarray of shape (k,)
        The same, for the scaled weights.
    privacy_spent_ : PrivacySpent
        Guarantee, mechanism and assumptions of the look.

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
    >>> table = result.table(level=0.999)
    >>> bool(1.0 < table["low"][0] < 2.0 < table["high"][0] < 3.0)
    True
    """

    look: Look
    part: LinearPart
    prior_deviation: float
    prior_sd: Array
    privacy_spent_: PrivacySpent

    @cached_property
    def posterior(self) -> LookPosterior:
        """Law of the scaled weights of the population, given the look."""
        look = self.look
        return look_posterior(
            *(look.theta, look.score, look.information, look.score_noise, look.matrix_noise),
            *(self.prior_sd, look.squares, look.squares_noise),
        )

    def table(self, level: float = 0.95) -> CoefficientIntervals:
        """Return the table of the columns of the model, the intercept last.

        Parameters
        ----------
        level : float, default=0.95
            Coverage of each interval, in (0, 1).

        Returns
        -------
        CoefficientIntervals
            Dictionary of columns.
        """
        rows, tail = self.part.contrasts, 0.5 - 0.5 * level
        low, high = self.posterior.quantiles(rows, [tail, 1.0 - tail]).T
        found = {"coefficient": rows @ self.posterior.mean, "low": low, "high": high}
        with np.errstate(over="ignore"):
            odds = [np.exp(value) for value in found.values()]
        share = self.posterior.prior_share(rows)
        names = [*self.part.names, *(["(intercept)"] if self.part.constant else [])]
        columns = {
            "name": np.array(names, dtype=object),
            **found,
            **dict(zip(("odds_ratio", "odds_low", "odds_high"), odds, strict=True)),
            "p_value": np.where(share > MOSTLY_PRIOR, np.nan, self.posterior.p_values(rows)),
            "prior_share": share,
        }
        target = f"log odds of class = {self.part.classes.tolist()[self.part.code]}"
        return CoefficientIntervals(
            columns, estimate="coefficient", confidence=level, target=target
        )

    def to_frame(self) -> Any:
        """Return the table as a pandas frame."""
        return self.table().to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return the table and the cost as plain, JSON-ready values."""
        table = {name: column.tolist() for name, column in self.table().items()}
        return {"coefficients": table, "privacy_spent": self.privacy_spent_.to_dict()}

    def __repr__(self) -> str:
        return f"{self.table()!r}\nCost of the look: {self.privacy_spent_!r}"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
