"""Linear regression with noisy second moments, and with clipped gradient steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import check_real, parameter, released
from skdp.base.scikit_learn import responds
from skdp.estimators._base import InterceptMixin, PrivateModel
from skdp.estimators._regressors import PrivateRegressorMixin, scale_of
from skdp.fitting import FitProgress
from skdp.mechanisms.random_stream import RandomStream
from skdp.models import ScaledUnits
from skdp.plans.coefficient_noise import CoefficientNoise, JointNoise, coefficient_noise
from skdp.plans.defaults import PublicNumbers
from skdp.plans.linear_regression import RegressionPlan
from skdp.plans.moment_regression import MomentPlan, Solution
from skdp.tables.records import Records


class PrivateLinearRegression(PrivateRegressorMixin, PrivateModel):
    r"""Linear least squares with noisy gradient steps; the default regressor.

    A fit uses one budget for three releases and needs no tuning:

    - noisy counts of the target in 32 bins, to estimate the size of errors;
    - noisy second moments of the rows, to rescale badly scaled columns;
    - 32 noisy sums of gradients (10 for very large tables). Each record's gradient is clipped to a
      norm that follows from the first two releases.

    See Also
    --------
    PrivateRidge : Many models from one charge.

    Notes
    -----
    Adaptive Gaussian mechanisms with parameters mu are together ``sqrt(sum of mu^2)``-GDP. Counts
    use 13 % of the squared mu, second moments a fifth of the rest, and steps the remainder.
    Statements and proofs: ``docs/proofs/linear_regression.md``.

    The steps start at zero and have full size. The result is a weighted mean of the iterates, with
    the largest weights on the last ones. All eigenvalues of the second moments are increased by
    half of the value that noise alone would give. The small number of steps replaces a penalty.
    Clipping gradients gives a Huber loss with a different width for each row.

    References
    ----------
    Dong, Roth & Su (2022), "Gaussian differential privacy", Theorem 3.2 and Corollary 3.3; Balle &
    Wang (2018), Theorem 8; Abadi et al. (2016), for clipped gradients; Dwork, Talwar, Thakurta &
    Zhang (2014), "Analyze Gauss", Algorithm 1, for the moments.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0] + rng.normal(0.0, 0.3, 20_000)
    >>> model = PrivateLinearRegression(target_bounds=(0.0, 6.0), data_norm=1.0).fit(X, y)
    >>> bool(abs(model.coef_[0] - 2.0) < 0.2)
    True
    """

    _added_texts: ClassVar[dict[str, str]] = {
        "target_bounds": "The noise depends on the spread of the targets: wide bounds cost little, "
        "unless they are many times as wide.",
        "fit_intercept": "Without an intercept, targets are still centred at `center_`.",
        "adjacency": "A removed row contributes zero; sums are still divided by the public n.",
    }

    center_: float = released("float", "Median of the targets, from their noisy counts.")
    scale_: float = released(
        "float",
        "Approximate standard deviation of the targets, from two quantiles of their noisy counts.",
    )

    # A record contributes the mean over its unit's rows to each sum; no row is sampled.
    unit_weighting = "mean"
    alpha = 0.0  # few steps replace a penalty
    intercept_scaling = "auto"  # preconditioning removes its effect
    _public = ("center_", "scale_")

    def _make_model(self, numbers: PublicNumbers) -> ScaledUnits:
        return ScaledUnits(self._row_bound)  # squares need no loss object

    def _build_plan(self, model: ScaledUnits, numbers: PublicNumbers) -> RegressionPlan:
        return RegressionPlan.build(numbers, model, self.fit_intercept)

    def _account(self, plan: RegressionPlan) -> PrivacySpent:
        return self._record(
            plan,
            float(self.epsilon),
            "gdp",
            f"Gaussian noise on counts of targets in {plan.tuning.bins} bins, on second moments of "
            f"rows and on {plan.steps.times} sums of clipped gradients, with standard deviations "
            f"{plan.counts.scale:.6g}, {plan.moments.scale:.6g} and, in units of the clipping "
            f"norm, {plan.steps.scale:.6g} (scaled units); together {plan.mu:.6g}-GDP (Dong, Roth "
            "& Su 2022, Corollary 3.3)",
            "the clipping norm follows from noisy counts and moments; every iterate is paid for",
        )

    def _public_steps(self, plan: RegressionPlan) -> int:
        return plan.steps.times

    def _carry_out(
        self, plan: Any, records: Records, stream: RandomStream, progress: FitProgress
    ) -> np.ndarray:
        return plan.carry_out(records.bind(plan), stream, progress.steps_done)

    def _publish(
        self, plan: RegressionPlan, records: Records, released: Any, spent: PrivacySpent
    ) -> None:
        super()._publish(plan, records, released, spent)
        self._coef_noise_ = coefficient_noise(plan)
        middle, half = scale_of(self._fitted_bounds)
        *_, center, scale = released[0]
        weights = half * released[0][:-2]
        self.coef_ = weights[: plan.n_features] / plan.units.data_norm
        self.center_, self.scale_ = float(middle + half * center), float(half * scale)
        self.intercept_ = self.center_ + float(weights[plan.n_features :].sum()) * plan.constant

    def _score_rows(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_)[:, np.newaxis] + self.intercept_


# Value of the constant column. Compared with 0.2: a sixth more noise in the rest, half in means.
_INTERCEPT_VALUE = 0.5


class PrivateRidge(PrivateRegressorMixin, InterceptMixin, PrivateModel):
    r"""Linear least squares from one noisy release of second moments.

    The sums of products of columns, target included, are released once with Gaussian noise.
    Everything computed from them is free: solutions for any penalty and subset of features, the
    coefficient of determination, and the noise of coefficients.

    See Also
    --------
    skdp.inference.PrivateInference : Intervals and p-values, for a second charge.

    Notes
    -----
    In scaled units a record is ``z = (x, s, k y)`` with ``k^2 = 1/2``. It contributes ``z z^T``
    without the public entry ``s^2``. The Frobenius sensitivity is ``sqrt(2) (s^2 + 3/2)`` under
    replace-one (attained) and ``sqrt(9/4 + 3 s^2)`` under add-remove, also for units of several
    rows. The bias due to the known noise is removed to second order. Statements and proofs:
    ``docs/proofs/moment_regression.md``.

    References
    ----------
    Vu & Slavkovic (2009), "Differential privacy for clinical trial data"; Wang (2018), "Revisiting
    differentially private linear regression", for regression from noisy sums. Dwork, Talwar,
    Thakurta & Zhang (2014), "Analyze Gauss", Algorithm 1; Balle & Wang (2018), Theorem 8.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0] + rng.normal(0.0, 0.3, 20_000)
    >>> model = PrivateRidge(epsilon=1.0, target_bounds=(0.0, 6.0), data_norm=1.0).fit(X, y)
    >>> bool(abs(model.coef_[0] - 2.0) < 0.2)
    True
    """

    _added_texts: ClassVar[dict[str, str]] = {
        "intercept_scaling": "At most 1.2 times `data_norm`.",
        "adjacency": "A removed row contributes zero; sums are still divided by the public n.",
    }

    alpha: float = parameter(
        "float",
        """L2 penalty on the coefficients, added to half the mean squared error. The intercept is
        not penalised.""",
        default=0.0,
    )
    second_moments_: Any = released(
        "SecondMoments",
        "The release: noisy sums of products of scaled columns, and the size of their noise.",
    )
    residual_std_: float = released(
        "float",
        "Standard deviation of the residuals, corrected for the noise; NaN if noise hides it.",
    )
    r2_: float = released(
        "float",
        "Coefficient of determination on the training rows, from the released sums, or NaN.",
    )
    cp_: float = released(
        "float",
        """Mallows' statistic, or NaN. It is about the number of coefficients if a subset of the
        features leaves no more error than all of them.""",
    )

    # A record contributes the mean of the products of its unit's rows; no row is sampled.
    unit_weighting = "mean"
    _public = ("second_moments_", "residual_std_", "r2_", "cp_")
    # Public meaning of the features, from a schema's pipeline; missing in earlier versions.
    _meaning: Any = None
    _back: Any = None

    def variant(
        self, *, alpha: float | None = None, features: Any = None, lines: Any = None
    ) -> Self:
        """Return a fitted model with another penalty or other features, from the same release.

        No row is read and nothing is charged. Choosing among variants with `cp_`, by eye or with
        any other function of released numbers is free too.

        Parameters
        ----------
        alpha : float or None, default=None
            L2 penalty; None keeps the current one.
        features : sequence of int or of str, or None, default=None
            Positions or names of the features to keep; after a schema, also names of columns. Other
            features have coefficient 0. None keeps the features of this model. Features that this
            model omits can be included again.
        lines : sequence of str or None, default=None
            Columns of a schema with ``encoding="waves"`` to fit as lines, with one coefficient
            instead of 16. None keeps the lines of this model; an empty list fits curves.

        Returns
        -------
        PrivateRidge
            A model of the same release, with the same `privacy_spent_`.

        Raises
        ------
        ValueError
            If a feature does not exist, a column has no waves, or the penalty is invalid.
        """
        check_is_fitted(self)
        meaning = self._meaning
        if lines is not None:
            if meaning is None:
                raise ValueError(
                    "lines= requires a model that was fitted behind a schema of columns."
                )
            meaning = meaning.with_lines(lines)
        return self._remade(alpha, self._positions(features), meaning)

    def _remade(self, alpha: float | None, features: list[int], meaning: Any) -> Self:
        """Return a fitted model of the same release."""
        model = clone(self)
        if alpha is not None:
            model.alpha = check_real("alpha", alpha, at_least=0.0, at_most=1e50)
        kept = vars(self).items()
        vars(model).update({name: value for name, value in kept if name.endswith("_")})
        model._units, model._fitted_bounds = self._units, self._fitted_bounds
        model._meaning = meaning
        penalty = self._solution.penalty
        if alpha is not None:
            penalty = model._units.penalty(model.alpha) * self.second_moments_.n_rows
        model._set_solution(penalty, features, responds(self, "_coef_noise_"))
        return model

    def _positions(self, features: Any) -> list[int]:
        count = self.n_features_in_
        if features is None:
            return self._kept
        known_as = self._meaning.places if self._meaning is not None else {}
        names = [*getattr(self, "feature_names_in_", [])]
        known_as = {**known_as, **{name: [place] for place, name in enumerate(names)}}
        features = list(features) if np.ndim(features) == 1 else [features]
        found = [
            place
            for given in features
            for place in (known_as.get(given, [given]) if isinstance(given, str) else [given])
        ]
        whole = all(isinstance(j, int | np.integer) and not isinstance(j, bool) for j in found)
        known = whole and all(0 <= j < count for j in found)
        if not known or len(set(found)) < len(found) or not found:
            some = ", ".join(map(repr, list(known_as)[:20]))
            raise ValueError(
                "features must be distinct feature names, or positions from 0 to "
                f"{count - 1}, got {features!r}." + (f" Names are {some}." if some else "")
            )
        return [int(j) for j in found]

    def _make_model(self, numbers: PublicNumbers) -> ScaledUnits:
        return ScaledUnits(self._row_bound)  # moments need no loss object

    def _build_plan(self, model: ScaledUnits, numbers: PublicNumbers) -> MomentPlan:
        constant = self._choose("intercept_scaling", model.feature) or _INTERCEPT_VALUE
        return MomentPlan.build(numbers, model, constant if self.fit_intercept else 0.0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("alpha", self.alpha, at_least=0.0, at_most=1e50)
        if self.intercept_scaling != "auto":
            share = self.intercept_scaling / self._row_bound
            remedy = "The sensitivity is not proved for larger values."
            check_real("intercept_scaling / data_norm", share, at_most=1.2, remedy=remedy)

    def _account(self, plan: MomentPlan) -> PrivacySpent:
        return self._record(
            plan,
            float(self.epsilon),
            "gdp",
            f"Gaussian noise of standard deviation {plan.sums.scale:.6g} on sums of second "
            f"moments of rows with their target, L2 sensitivity {plan.sums.sensitivity:.6g} "
            "(scaled units; analytic Gaussian mechanism, Balle & Wang 2018, Theorem 8)",
        )

    def _carry_out(
        self, plan: Any, records: Records, stream: RandomStream, progress: FitProgress
    ) -> np.ndarray:
        return plan.carry_out(records.bind(plan), stream)

    def _publish(
        self, plan: MomentPlan, records: Records, released: Any, spent: PrivacySpent
    ) -> None:
        super()._publish(plan, records, released, spent)
        self.second_moments_, self._units = plan.read(released[0]), plan.units
        self._meaning = None
        penalty = plan.units.penalty(float(self.alpha)) * plan.n_rows
        self._set_solution(penalty, list(range(plan.n_features)))

    def _hear(self, meaning: Any) -> None:
        """Store the meaning of the features and solve again from the same release."""
        known, self._meaning = responds(self, "_coef_noise_"), meaning
        self._set_solution(self._solution.penalty, self._kept, known)

    def _set_solution(self, penalty: float, kept: list[int], noise_known: bool = True) -> None:
        """Set the attributes that follow from the released moments.

        The noise is unknown in a model that was selected by a score.
        """
        full, intercept = self.second_moments_, self.second_moments_.constant > 0.0
        # For all features, with curves instead of lines.
        basis = self._basis(list(range(self.n_features_in_)), intercept, lines=())
        least = Solution(full.keep(basis), 0.0).residual_variance
        basis = self._basis(kept, intercept)
        solution = Solution(full.keep(basis), penalty)
        middle, half = scale_of(self._fitted_bounds)
        # From the solved weights to coefficients, with the intercept last.
        last = sparse.csr_array([[half * full.constant]])
        back = sparse.block_diag([half / self._units.data_norm * basis, last], format="csr")
        back = back[:, : solution.weights.size]
        weights = back @ solution.weights
        self._kept, self._solution, self._back = kept, solution, back
        vars(self).pop("_coef_noise_", None)
        if noise_known:
            self._coef_noise_ = self._noise()
        self.coef_ = weights[:-1]
        self.intercept_ = float(middle + weights[-1])
        self.residual_std_ = half * float(np.sqrt(solution.residual_variance))
        self.r2_ = solution.explained
        count = solution.weights.size
        self.cp_ = float(solution.residual_sum / least - full.n_rows + 2 * count)

    def _noise(self) -> CoefficientNoise:
        """Return the description of the noise in the coefficients."""
        if not self._solution.estimable:
            return CoefficientNoise("second moments with noise that hides coefficients")
        return self._joint_noise()

    def _joint_noise(self) -> JointNoise:
        """Return the noise in the coefficients to first order, however large."""
        if self._back is None:  # fitted by an earlier version
            self._set_solution(self._solution.penalty, self._kept)
        about = "second moments: the noise that was added to them, to first order"
        return JointNoise(about, 1.0, solution=self._solution, back=self._back)

    def _basis(self, kept: list[int], intercept: bool, lines: Any = None) -> Any:
        """Return orthonormal directions in which the kept features may vary."""
        if self._meaning is None:
            return sparse.eye_array(self.n_features_in_, format="csc")[:, kept]
        meaning = self._meaning
        if lines is not None and meaning.lines:
            meaning = replace(meaning, lines=lines)
        return meaning.basis(kept, intercept)
