"""Result of a look: coefficients and odds ratios with intervals, in the units of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from textwrap import fill
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import JsonRecord
from skdp.base.parameters import cached_property, check_real
from skdp.inference._corrected import corrected_model
from skdp.inference._models import LinearPart
from skdp.inference._posterior import LookPosterior, look_posterior
from skdp.inference._release import Look, norm_of_rows
from skdp.reporting.coefficients import describe_effects
from skdp.reporting.estimates import CoefficientIntervals

Array = NDArray[np.float64]

# Above this share of the prior's variance, an interval reports little of the data.
MOSTLY_PRIOR = 0.25
# Above this change of log odds, the information at the weights of the look may be another one.
# Above this number of times it, estimates may be on the wrong side.
LARGEST_CHANGE, _FAR_CHANGE = 0.5, 2.0
_WORD, _FAR = "mostly prior", "far from model"
_NO_P_VALUE = {
    _WORD: "the data reduce the variance of the prior by less than 3/4; no p-value.",
    _FAR: "estimates are too far from the weights of the look; no p-value.",
}
# Deviations of its noise above which a released number is known.
_KNOWN = 10.0
# Features that are named for a direction without information.
_NAMED = 3


@dataclass(frozen=True, eq=False, repr=False)
class InferenceResult(JsonRecord):
    """Coefficients and odds ratios of a two-class linear model with intervals, from one look.

    All numbers follow from `look`, which was released once: every table, contrast and level is
    free. With a schema or a `BoundedScaler`, rows are in the units of the columns: per year, or a
    level against a reference.

    Parameters
    ----------
    look : Look
        Released sums in scaled units, in the directions in which rows may vary, and their noise.
    part : LinearPart
        Public model, and the scale of its columns.
    prior_deviation : float
        Standard deviation of the prior, in log odds per half the range of a column.
    prior_sd : ndarray of shape (k,)
        The same, for the scaled weights.
    privacy_spent_ : PrivacySpent
        Guarantee, mechanism and assumptions of the look.

    Notes
    -----
    Each interval by itself covers the sampling of rows, all privacy noise and one step from the
    weights of the model to the estimates. ``docs/odds_ratios.md`` explains columns and limits,
    ``docs/proofs/inference.md`` the derivation.

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
    >>> result.contrast({"x0": 0.5, "x1": -1.0})["name"].tolist()
    ['0.5 x0, -1 x1']
    """

    look: Look
    part: LinearPart
    prior_deviation: float
    prior_sd: Array
    privacy_spent_: PrivacySpent

    _ratio: ClassVar[str] = "odds"
    _moved: ClassVar[str] = "Log odds change"
    _estimated: ClassVar[str] = "log odds that fit best"
    _range: ClassVar[str] = "per half the range of a column"

    @cached_property
    def posterior(self) -> LookPosterior:
        """Law of the scaled weights of the population, given the look."""
        look = self.look
        found = look_posterior(
            *(look.theta, look.score, look.information, look.score_noise, look.matrix_noise),
            *(self.prior_sd, look.squares, look.squares_noise),
        )
        return replace(found, theta=found.theta + self.part.shift)

    def table(
        self, level: float = 0.95, reference: Mapping[str, Any] | None = None
    ) -> CoefficientIntervals:
        """Return the table of all columns, the intercept last.

        Parameters
        ----------
        level : float, default=0.95
            Coverage of each interval, in (0, 1).
        reference : mapping or None, default=None
            Reference value by name of a schema's column, such as ``{"ward": "B"}``. For categories
            it replaces the declared reference level or the first one. For numbers it moves the
            intercept, which is otherwise given at the middle of the bounds.

        Returns
        -------
        CoefficientIntervals
            Dictionary of columns that prints as a table, with `to_frame` and `to_latex`:

            - "name", "column", "level", "step": the change;
            - "coefficient", "std_error", "low", "high": log odds with an interval;
            - "odds_ratio", "odds_low", "odds_high": their exponentials;
            - "p_value": two-sided, NaN with a note;
            - "prior_share": posterior variance over prior variance;
            - "note": "mostly prior" if this exceeds 1/4, "far from model", or empty;
            - "is_reference": whether a row is a reference level.

            `reason` explains the notes, and adds advice.

        Raises
        ------
        ValueError
            If the level is out of range, or a reference is no value of its column.
        KeyError
            If a reference names no column.
        """
        told, functions, at = self._effects(reference)
        found = self._intervals(told, functions, level, at)
        found.reason = " ".join(filter(None, [found.reason, *self.advice]))
        return found

    def contrast(
        self,
        changes: Mapping[str, Any],
        level: float = 0.95,
        reference: Mapping[str, Any] | None = None,
    ) -> CoefficientIntervals:
        """Return the interval of any sum of effects; it is free.

        Parameters
        ----------
        changes : mapping
            By name of a row of the table, the factor of its coefficient: ``{"ward=B": 1,
            "ward=C": -1}`` compares B with C, and ``{"age": 10}`` is for ten years. Or by name of a
            schema's column, a pair of cells: ``{"age": (50, 80)}`` is the change from 50 to 80,
            for curves too.
        level, reference :
            As for `table`.

        Returns
        -------
        CoefficientIntervals
            The same columns, with one row.

        Raises
        ------
        KeyError
            If a name is neither a row nor a column.
        ValueError
            For invalid numbers, or a column whose effect depends on others.
        """
        told, functions, _ = self._effects(reference)
        total, words = np.zeros(functions.shape[1]), []
        for name, change in changes.items():
            if isinstance(change, tuple):
                if self.part.meaning is None or len(change) != 2:
                    raise ValueError("a change is a pair of cells of a schema's column.")
                total[: self.part.coef.size] += self.part.meaning.change(name, change)
                words.append(f"{name} from {change[0]} to {change[1]}")
                continue
            (places,) = np.nonzero(told["name"] == name)
            if places.size == 0:
                raise KeyError(f"{name!r} is no row of the table: {told['name'].tolist()}.")
            total += check_real(f"changes[{name!r}]", change) * functions[places[0]]
            words.append(f"{change:g} {name}")
        text = {key: np.array([""], dtype=object) for key in ("column", "level", "step")}
        row = {"name": np.array([", ".join(words)], dtype=object), **text}
        return self._intervals({**row, "is_reference": np.array([False])}, total[None], level)

    def to_frame(self, level: float = 0.95, reference: Mapping[str, Any] | None = None) -> Any:
        """Return `table` as a pandas frame, one row per column or level; it needs pandas."""
        return self.table(level, reference).to_frame()

    def to_latex(self, level: float = 0.95, reference: Mapping[str, Any] | None = None) -> str:
        """Return `table` for LaTeX, with ``booktabs``."""
        return self.table(level, reference).to_latex()

    @cached_property
    def model_(self) -> Any:
        """Fitted model with the estimates as coefficients, behind the steps of the model.

        It predicts probabilities, and its statement adds the charge of the look to that of the fit.
        `shape_functions` draws its functions with bands of sampling and noise.
        """
        return corrected_model(self.part, self.posterior, self.privacy_spent_)

    @property
    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue of the released information, in scaled units.

        Below `noise_edge`, noise alone may have caused it, and some contrast is mostly prior.
        """
        return self.posterior.smallest_eigenvalue

    @property
    def noise_edge(self) -> float:
        """Edge of the spectrum of the information's noise."""
        return float(self.look.matrix_noise * np.sqrt(2.0 * self.look.theta.size))

    @property
    def change_of_margins(self) -> float:
        """Root mean square change of log odds from the model to the estimates.

        Above 0.5, evaluate `model_` again. NaN without an intercept.
        """
        constant = self.part.constant / norm_of_rows(self.part.constant)
        return self.posterior.change_of_margins(constant) if constant else float("nan")

    @property
    def _largest_change(self) -> float:
        """Largest change at which one step suffices."""
        return LARGEST_CHANGE

    @property
    def _change(self) -> float:
        """The same, or 0 if noise hides the information of the intercept's column."""
        known = self.look.information[-1, -1] > _KNOWN * self.look.matrix_noise
        return self.change_of_margins if self.part.constant and known else 0.0

    @property
    def advice(self) -> list[str]:
        """Sentences on what limits the intervals, and remedies; empty if nothing does."""
        found, part = [], self.part
        if self.smallest_eigenvalue < self.noise_edge:
            weights = np.abs(part.basis @ self.posterior.basis[:, 0])[: part.coef.size]
            names = ", ".join(str(part.names[place]) for place in np.argsort(-weights)[:_NAMED])
            found.append(
                "In some direction the noise hides the information: its smallest eigenvalue is "
                f"{self.smallest_eigenvalue:.3g}, and noise alone may have {self.noise_edge:.3g}. "
                f"The features with most weight there are {names}. Use fewer columns, levels with "
                "more rows, or a larger epsilon."
            )
        if self._change > self._largest_change:
            found.append(
                f"{self._moved} by {self._change:.2g} from the model to the estimates "
                f"(root mean square). Above {self._largest_change:.2g}, intervals may not cover. A "
                "second look, evaluate(result.model_, ...), is at the estimates, for a new charge."
            )
        longest = 0.0 if part.meaning is None else part.meaning.norms[0]
        if longest > part.data_norm * (1.0 + 1e-9) and part.longer == "are shortened":
            found.append(
                f"Rows of norms up to {longest:.4g} are possible, and the look cuts them to "
                f"{part.data_norm:.4g}: coefficients are then those of shortened rows."
            )
        return found

    @property
    def limits(self) -> str:
        """Statement on the estimates, the prior and cases that intervals do not cover."""
        return (
            "Each interval by itself covers sampling and privacy noise for the "
            f"{self._estimated} in the population. It does not cover a choice of columns by "
            "private scores. Prior: "
            f"normal around 0, with deviation {self.prior_deviation:g} {self._range}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the table and the released numbers as plain, JSON-ready values."""
        table = self.table()
        return _plain({
            "target": table.target,
            "level": table.confidence,
            "coefficients": table,
            "intercept_at": table.intercept_at,
            "smallest_eigenvalue": self.smallest_eigenvalue,
            "noise_edge": self.noise_edge,
            "change_of_margins": self.change_of_margins,
            "advice": self.advice,
            "limits": self.limits,
            "look": vars(self.look),
            "contrasts": self.part.contrasts,
            "prior_sd": self.prior_sd,
            "privacy_spent": self.privacy_spent_.to_dict(),
        })  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"{self.table()!r}\n{fill(self.limits, 100)}\nCost of the look: {self.privacy_spent_!r}"
        )

    def _repr_html_(self) -> str:
        limits = f"<p>{escape(self.limits)}</p>"
        return self.table()._repr_html_() + limits + self.privacy_spent_._repr_html_()

    def _effects(self, reference: Any) -> tuple[dict[str, NDArray[Any]], Array, str]:
        """Return columns that name effects, and their weights on coefficients and intercept."""
        meaning, kept = self.part.meaning, self.part.kept
        found = describe_effects(self.part.names, meaning, reference or {}, kept)
        if self.part.constant > 0.0:
            return found
        told, functions, _ = found
        return {key: column[:-1] for key, column in told.items()}, functions[:-1, :-1], ""

    def _intervals(
        self, told: dict[str, Any], functions: Array, level: float, at: str = ""
    ) -> CoefficientIntervals:
        """Return a table of linear functions of the coefficients."""
        tail = 0.5 - 0.5 * check_real("level", level, above=0.0, below=1.0)
        rows, law = functions @ self.part.contrasts, self.posterior
        told, is_reference = dict(told), told["is_reference"]
        of_rows = ~is_reference & rows.any(axis=1)
        low, high = np.where(of_rows, law.quantiles(rows, [tail, 1.0 - tail]).T, 0.0)
        share = np.where(of_rows, law.prior_share(rows), np.nan)
        note = np.where(share > MOSTLY_PRIOR, _WORD, "").astype(object)
        if self._change > _FAR_CHANGE * self._largest_change:
            note[of_rows & (note == "")] = _FAR
        del told["is_reference"]
        columns = {
            **told,
            "coefficient": rows @ law.mean,
            "std_error": np.where(of_rows, law.deviations(rows), 0.0),
            **{"low": low, "high": high},
            "p_value": np.where(of_rows & (note == ""), law.p_values(rows), np.nan),
            **{"prior_share": share, "note": note, "is_reference": is_reference},
        }
        unclear = [f"{word}: {why}" for word, why in _NO_P_VALUE.items() if word in note]
        return CoefficientIntervals(
            columns,
            estimate="coefficient",
            confidence=level,
            target=self.part.target,
            intercept_at=at,
            reason=" ".join(unclear),
            ratio=self._ratio,
            extra=("p_value", "note") if unclear else ("p_value",),
        )


def _plain(value: Any) -> Any:
    """Return lists, numbers and texts, with None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {name: _plain(own) for name, own in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(own) for own in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
