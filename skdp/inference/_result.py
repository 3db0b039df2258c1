"""Result of a look: coefficients and odds ratios with intervals, in the units of the columns."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from textwrap import fill
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import JsonRecord
from skdp.base.parameters import cached_property, check_real
from skdp.base.scikit_learn import template_of
from skdp.inference._corrected import corrected_model
from skdp.inference._models import LinearPart
from skdp.inference._posterior import LookPosterior
from skdp.inference._release import Look, norm_of_rows
from skdp.inference._stages import posterior_of
from skdp.reporting.coefficients import describe_effects
from skdp.reporting.estimates import LEFT_OUT, CoefficientIntervals

Array = NDArray[np.float64]

# Above this share of the prior's variance, an interval reports little of the data.
MOSTLY_PRIOR = 0.25
# Above this change of log odds, the information at the weights of the look may be another one.
LARGEST_CHANGE = 0.5
# Below this multiple of the information's noise, the information on a contrast may be none.
LEAST_INFORMATION = 3.0
_PRIOR, _FAR, _LEFT_OUT = "mostly prior", "needs second look", "left out"
_HIDDEN = "hidden by noise"
_REMEDY = "Use fewer columns, levels with more rows, or a larger epsilon."
_SECOND = "A second look, evaluate(result.model_, ...), is at the estimates, for a new charge."
_FIT_AGAIN = "Look at a fit with a larger epsilon."
_REASONS = {
    _PRIOR: "the data reduce the variance of the prior by less than 3/4; no p-value. " + _REMEDY,
    _HIDDEN: "noise hides the information on it, which may be none; no p-value. " + _REMEDY,
    _FAR: "the estimate is too far from the weights of the look: its interval may not cover, and "
    "there is no p-value if all margins have moved far. " + _SECOND,
    _LEFT_OUT: "rows do not vary there, by their description or in this variant; no estimate.",
}
# Deviations of its noise above which a released number is known.
_KNOWN = 10.0
# Below this share of its terms, a sum is a rounding error.
_ROUNDED = 1e-12
# Features that are named for a direction without information.
_NAMED = 3


@dataclass(frozen=True, eq=False, repr=False)
class InferenceResult(JsonRecord):
    """Coefficients and odds ratios of a two-class linear model with intervals, from one look.

    All numbers follow from `look`: every table, contrast and level is free. With a schema or a
    `BoundedScaler`, rows are in the units of the columns: per year, or a level against a reference.

    Parameters
    ----------
    look : Look
        Released sums and their noise, in scaled units.
    part : LinearPart
        Public model, and the scale of its columns.
    prior_deviation, prior_sd : float and ndarray of shape (k,)
        Deviations of the prior: log odds per half the range of a column, and scaled weights.
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
    _far: ClassVar[float] = 1.0  # multiple of the largest change above which there is no p-value
    # Largest squared change per half range over the standard error, about the error of one step.
    _most_curved: ClassVar[float] = 0.15

    @cached_property
    def posterior(self) -> LookPosterior:
        """Law of the scaled weights of the population, given the look."""
        found = posterior_of(self.look, self.prior_sd)
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
            Reference value by name of a schema's column, such as ``{"ward": "B"}``. Numbers move
            the intercept, which is otherwise given at the middle of the bounds.

        Returns
        -------
        CoefficientIntervals
            Dictionary of columns that prints as a table, with `to_frame` and `to_latex`:

            - "name", "column", "level", "step", "is_reference": the change;
            - "coefficient", "std_error", "low", "high": log odds with an interval;
            - "odds_ratio", "odds_low", "odds_high": their exponentials;
            - "p_value": two-sided, NaN with a note, and "prior_share" of the variance;
            - "note": "mostly prior" if this exceeds 1/4, "hidden by noise", "needs second look",
              "left out", or empty; `reason` explains it.

        Raises
        ------
        ValueError
            If the level is out of range, or a reference is no value of its column.
        KeyError
            If a reference names no column.
        """
        return self._intervals(*self._effects(reference), level, self.advice)

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
            "ward=C": -1}`` compares B with C. Or by name of a schema's column, a pair of cells:
            ``{"age": (50, 80)}`` is the change from 50 to 80, for curves too.
        level, reference :
            As for `table`.

        Returns
        -------
        CoefficientIntervals
            The same columns as in `table`, with one row.

        Raises
        ------
        KeyError
            If a name is neither a row nor a column.
        ValueError
            For invalid numbers or cells, or a column whose effect depends on others, or that a
            variant has left out.
        """
        told, functions, _ = self._effects(reference)
        if not isinstance(changes, Mapping) or not changes:
            raise TypeError('changes must be a mapping such as {"age": 10} or {"age": (50, 80)}.')
        names, left_out = told["name"].tolist(), []
        total, words, pairs = np.zeros(functions.shape[1]), [], {}
        for name, change in changes.items():
            if isinstance(change, tuple | list):
                if self.part.meaning is None or len(change) != 2:
                    raise ValueError("a change is a pair of cells of a schema's column.")
                pairs[name] = change
                words.append(f"{name} from {change[0]} to {change[1]}")
                continue
            if name not in names:
                raise KeyError(f"{name!r} is no row of the table: {names}.")
            factor = check_real(f"changes[{name!r}]", change, at_least=-1e30, at_most=1e30)
            total += factor * functions[names.index(name)]
            words.append(f"{change:g} {name}")
            left_out += [name] if told["step"][names.index(name)] == LEFT_OUT else []
        if pairs:
            features = self.part.meaning.change(pairs)
            left_out += pairs if np.delete(features, list(self.part.kept)).any() else []
            total[: self.part.coef.size] += features
        if left_out:
            raise ValueError(
                f"{', '.join(left_out)!r} is left out of the model: evaluate a variant that "
                "includes its column."
            )
        texts = {"name": ", ".join(words), "column": "", "level": "", "step": ""}
        row: dict[str, Any] = {key: np.array([own], dtype=object) for key, own in texts.items()}
        row["is_reference"] = np.array([not total.any()])
        return self._intervals(row, total[None], "", level)

    def to_frame(self, level: float = 0.95, reference: Mapping[str, Any] | None = None) -> Any:
        """Return `table` as a pandas frame, one row per column or level; it needs pandas."""
        return self.table(level, reference).to_frame()

    def to_latex(self, level: float = 0.95, reference: Mapping[str, Any] | None = None) -> str:
        """Return `table` for LaTeX, with ``booktabs``."""
        return self.table(level, reference).to_latex()

    @cached_property
    def model_(self) -> Any:
        """Fitted model with the estimates as coefficients, behind the steps of the model.

        It predicts probabilities of two classes, or the target. Its statement adds the charge of
        the look to that of the fit. `shape_functions` draws bands of sampling and noise.
        """
        return corrected_model(self.part, self.posterior, self.privacy_spent_, **self._known)

    @property
    def _known(self) -> dict[str, Any]:
        """Further attributes of the model."""
        return {}

    @property
    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue of the released information, in scaled units.

        Below `noise_edge`, noise alone may have caused it, and some contrast is mostly prior.
        """
        return float(self.posterior.eigenvalues[0])

    @property
    def noise_edge(self) -> float:
        """Edge of the spectrum of the information's noise."""
        return float(self.look.matrix_noise * np.sqrt(2.0 * self.look.theta.size))

    @property
    def change_of_margins(self) -> float:
        """Root mean square change of log odds from the weights of the look to the estimates.

        For a regression, it is that of predictions over `look.size`. If `advice` reports it,
        evaluate `model_` again. NaN without an intercept.
        """
        if self.part.constant == 0.0:
            return float("nan")
        law, look = self.posterior, self.look
        squares = (law.basis.T @ (law.coefficients.mean - law.theta)) ** 2
        constant = self.part.constant / norm_of_rows(self.part.constant)
        weight = max(look.information[-1, -1], look.matrix_noise) / constant**2  # of all rows
        found = float(np.sqrt(np.maximum(law.eigenvalues, 0.0) @ squares / weight))
        return found / getattr(look, "size", 1.0)

    @property
    def _largest_change(self) -> float:
        """Change at which the remainder of one step is small; a third of a standard error."""
        n_records = getattr(self.look, "n_records", 1)  # of a regression
        return min(LARGEST_CHANGE, (2.0 / math.sqrt(n_records)) ** (1.0 / 3.0))

    @property
    def _change(self) -> float:
        """Change of margins, or 0 if noise hides the information of the intercept's column."""
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
                f"The features with most weight there are {names}. {_REMEDY}"
            )
        if self._change > self._largest_change:
            found.append(
                f"{self._moved} by {self._change:.2g} from the weights of the look to the "
                f"estimates (root mean square). Above {self._largest_change:.2g}, intervals may "
                "not cover. " + (_SECOND if len(part.classes) <= 2 else _FIT_AGAIN)
            )
        parts = () if part.meaning is None else part.meaning.parts
        if crossed := sorted({own.name for each in parts if len(each) > 1 for own in each}):
            found.append(
                f"The columns {', '.join(crossed)} act together: their rows leave out the products "
                "of columns. Compare patients by contrast(...), with a pair for each of these."
            )
        return found

    @property
    def limits(self) -> str:
        """Statement on the estimates, the prior and cases that intervals do not cover."""
        part, about = self.part, ""
        if part.meaning is None:
            steps = ", ".join(type(template_of(step)).__name__ for step in part.steps)
            about = f"Columns are those behind {steps}, in their units. " if steps else ""
            about += f"Rows longer than {part.data_norm:g} count less. "
        return (
            f"Each interval by itself covers sampling and privacy noise for the {self._estimated} "
            "in the population. It does not cover a choice of columns by private scores. "
            f"{about}Prior: "
            f"normal around 0, with deviation {self.prior_deviation:g} {self._range}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the table and the released numbers as plain, JSON-ready values."""
        table = self.table()
        names = "smallest_eigenvalue", "noise_edge", "change_of_margins", "advice", "limits"
        found = {
            "target": table.target,
            "level": table.confidence,
            "coefficients": table,
            "intercept_at": table.intercept_at,
            **{name: getattr(self, name) for name in (*names, "prior_sd")},
            "look": vars(self.look),
            "contrasts": self.part.contrasts,
            "privacy_spent": self.privacy_spent_.to_dict(),
        }
        text = json.dumps(found, default=lambda array: array.tolist())
        plain: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)  # NaN, infinity
        return plain

    def __repr__(self) -> str:
        cost = f"Cost of the look: {self.privacy_spent_!r}"
        return "\n".join([repr(self.table()), fill(self.limits, 100), cost])

    def _repr_html_(self) -> str:
        limits = f"<p>{escape(self.limits)}</p>"
        return self.table()._repr_html_() + limits + self.privacy_spent_._repr_html_()

    def _effects(self, reference: Any) -> tuple[dict[str, NDArray[Any]], Array, str]:
        part = self.part
        return describe_effects(part.names, part.meaning, reference, part.kept, part.constant > 0.0)

    def _is_hidden(self, rows: Array) -> NDArray[np.bool_]:
        """Return where the information on contrasts is within its noise."""
        noise, squares = self.look.matrix_noise, (rows @ self.posterior.basis) ** 2
        parts = squares * (noise / np.maximum(self.posterior.eigenvalues, noise))
        return np.asarray(squares.sum(axis=1) < LEAST_INFORMATION * parts.sum(axis=1))

    def _intervals(
        self, told: Any, functions: Array, at: str, level: float, advice: Sequence[str] = ()
    ) -> CoefficientIntervals:
        """Return a table of linear functions of the coefficients."""
        tail = 0.5 - 0.5 * check_real("level", level, above=0.0, below=1.0)
        told, rows = dict(told), functions @ self.part.contrasts
        size = np.abs(functions) @ np.abs(self.part.contrasts)
        is_reference, estimated = told.pop("is_reference"), (np.abs(rows) > _ROUNDED * size).any(1)
        law = self.posterior.laws(rows)
        low, high = law.quantiles([tail, 1.0 - tail]).T
        note = np.where(law.prior_share > MOSTLY_PRIOR, _PRIOR, "").astype(object)
        note[(note == "") & self._is_hidden(rows)] = _HIDDEN
        # The change beyond its own error; the prior gives the scale of half ranges.
        changed = (law.mean - rows @ self.posterior.theta) ** 2 - law.deviation**2
        far = changed / self._most_curved > law.deviation * law.prior / self.prior_deviation
        all_far = self._change > self._far * self._largest_change
        note[(note == "") & (far | all_far)] = _FAR
        note[~estimated] = _LEFT_OUT
        note[is_reference] = ""
        tested = (note == "") | ((note == _FAR) & (not all_far))
        p_value = np.where(tested, law.p_value, np.nan)
        columns = {"coefficient": law.mean, "std_error": law.deviation, "low": low, "high": high,
                   "p_value": p_value, "prior_share": law.prior_share}  # fmt: skip
        for name, values in columns.items():
            known = np.nan if name in ("p_value", "prior_share") else 0.0
            columns[name] = np.where(is_reference, known, np.where(estimated, values, np.nan))
        reasons = [f"{word}: {why}" for word, why in _REASONS.items() if word in note]
        return CoefficientIntervals(
            {**told, **columns, "note": note, "is_reference": is_reference},
            estimate="coefficient",
            confidence=level,
            target=self.part.target,
            intercept_at=at,
            reason=" ".join([*reasons, *advice]),
            ratio=self._ratio,
            extra=("p_value", "note") if reasons else ("p_value",),
        )
