"""Objective perturbation: logistic regression and SVC."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import log_expit, log_softmax

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import (
    Auto,
    Numerics,
    SmoothSolver,
    check_choice,
    check_integer,
    parameter,
)
from skdp.estimators._base import PenalizedModel, UnitWeightingMixin
from skdp.estimators._calibrated import CalibratedMixin, ClassWeightMixin
from skdp.estimators._mixins import LogisticMixin, SmoothedHingeMixin
from skdp.losses import ClippedLoss, OneVsRestLoss
from skdp.models import LinearModel
from skdp.plans.defaults import PublicNumbers, default_objective_clip, default_objective_penalty
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan, pure_objective_plan


class ObjectiveModel(UnitWeightingMixin, PenalizedModel):
    """Objective perturbation with approximate minimisers."""

    _added_texts: ClassVar[dict[str, str]] = {
        "delta": "0 uses norm-exponential instead of Gaussian noise, which is larger in many "
        "dimensions: see ``docs/pure.md``.",
        "adjacency": "A removed row contributes zero; sums are still divided by the public n.",
        "alpha": '``"auto"`` derives it from n, epsilon, delta, adjacency and `data_norm`. It '
        "has a lower limit, which depends on epsilon; the error reports it.",
    }

    solver: SmoothSolver = parameter(
        '{"newton", "lbfgs"}',
        "Fast phase of the minimiser. Both end at a fixed gradient tolerance on every data set.",
        default="newton",
    )
    max_iter: int = parameter(
        "int",
        "Limit on the fast phase; a slower method with guaranteed convergence then continues.",
        default=100,
    )
    numerics: Numerics = parameter(
        '{"float", "discrete"}',
        """Arithmetic of the noise. ``"discrete"`` rounds the weights to a grid and adds discrete
        Gaussian noise, drawn exactly; the guarantee then does not treat doubles as real numbers.
        See ``docs/security.md``. Not supported with ``delta=0``.""",
        default="float",
    )

    _offers_pure = True

    max_grad_norm = cast(Any, None)  # the loss limits its gradients

    def _check_parameters(self) -> None:
        super()._check_parameters()
        remedy = "No gradient is longer than a row; a fraction of data_norm is usual."
        self._check_length("max_grad_norm", 1e-6, 1e50, remedy, allowed=(None,))
        check_choice("solver", self.solver, ("newton", "lbfgs"))
        check_choice("numerics", self.numerics, ("float", "discrete"))
        check_integer("max_iter", self.max_iter, at_least=1)

    def _make_model(self, numbers: PublicNumbers) -> LinearModel:
        """Return the model with clipped losses, one problem per class for several classes."""
        model = super()._make_model(numbers)
        loss = self._part_loss()
        model = replace(model, loss=_one_vs_rest(loss, model.n_outputs))
        clip = self._clip(model, numbers)
        if clip is not None and clip < loss.lipschitz(model.row_norm):
            model = replace(model, loss=_one_vs_rest(ClippedLoss(loss, clip), model.n_outputs))
        return model

    def _clip(self, model: LinearModel, numbers: PublicNumbers) -> float | None:
        """Return the largest gradient of a record in scaled units, or None for no clipping."""
        if self.max_grad_norm == "auto":
            part = model.part_loss.unweighted
            if not (part.convex and part.slope_sign == -1):  # such slopes are not clipped
                return None
            return default_objective_clip(model, numbers)
        return self._choose("max_grad_norm", model.units.feature)

    def _build_plan(self, model: LinearModel, numbers: PublicNumbers) -> ObjectivePerturbationPlan:
        if self.numerics == "discrete":
            self._refuse_any_number(numbers, "numerics='discrete'")
        penalty = self._choose("alpha", model.units.penalty)
        rows = self._rows_per_unit(numbers)
        build = partial(ObjectivePerturbationPlan.build, delta=float(self.delta))
        if penalty is None:
            penalty = default_objective_penalty(model, numbers, rows)
            if self.delta > 0.0:
                build = partial(build, priced_penalty=penalty)
                penalty = default_objective_penalty(model, numbers, rows, numbers.n_features)
        return (build if self.delta > 0.0 else pure_objective_plan)(
            model,
            penalty=penalty,
            adjacency=numbers.adjacency,
            epsilon=float(numbers.target_epsilon),
            solver=self.solver,
            max_iter=self.max_iter,
            numerics=self.numerics,
            rows_per_unit=rows,
        )

    def _account(self, plan: ObjectivePerturbationPlan) -> PrivacySpent:
        parts = plan.model.n_parts
        joint = "" if parts == 1 else f" of each of {parts} one-vs-rest problems"
        law, measure, page = "Gaussian", "standard deviation", "objective_perturbation"
        if plan.delta == 0.0:
            law, measure, page = "norm-exponential", "scale", "pure"
        elif plan.model.by_unit and self._drawn != 1:
            page = "objective_perturbation_units"
        return self._record(
            plan,
            float(self.epsilon),
            "pld",
            f"objective perturbation{joint}: a secret {law} linear term of {measure} "
            f"{plan.tilt_sigma:.6g} on the sum of losses, whose gradients have norm "
            f"at most {plan.model.part_loss.lipschitz(plan.model.row_norm):.6g}, penalty "
            f"{plan.model.n_rows * plan.penalty:.6g} on it; minimiser to a fixed gradient "
            f"tolerance, released with {law} noise of {measure} {plan.sigma:.6g} "
            f"(scaled units{self._about_grid(plan)}; theorem and proof in "
            f"docs/proofs/{page}.md)",
        )


def _one_vs_rest(loss: Any, n_outputs: int) -> Any:
    return loss if n_outputs == 1 else OneVsRestLoss(loss, n_outputs)


class ObjectivePerturbationLogisticRegression(
    CalibratedMixin, ClassWeightMixin, LogisticMixin, ObjectiveModel
):
    r"""Logistic regression with objective perturbation.

    Minimises ``mean(log-loss) + alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` plus a
    random linear function of the coefficients. Releases the minimiser with a little more noise. The
    noise is large only in directions in which the rows carry little information. The defaults
    need no tuning; ``docs/choosing.md`` compares the private classifiers.

    See Also
    --------
    OperaLogisticRegression : Output perturbation.
    DPSGDClassifier : Clipped noisy gradients.

    Notes
    -----
    More than two classes are fitted one-vs-rest with independent noise, and the charge covers all
    of them: the theorem does not cover the softmax loss. Their probabilities are the normalised
    probabilities of the binary problems. Clipped gradients bias probabilities towards one half
    unless `calibrate` corrects this.

    References
    ----------
    Chaudhuri, Monteleoni & Sarwate (2011), "Differentially Private Empirical Risk Minimization".
    Kifer, Smith & Thakurta (2012). Iyengar et al. (2019), for approximate minima. Redberg, Koskela
    & Wang (2023), for the privacy profile, which is smaller here. Proofs: :ref:`Theorems 2 to 6 of
    objective perturbation <objective-perturbation-2>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import ObjectivePerturbationLogisticRegression
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> clf = ObjectivePerturbationLogisticRegression(1.0, 1e-5, data_norm=10.0).fit(X, y)
    >>> epsilon, delta = clf.privacy_spent_
    >>> epsilon <= 1.0
    True
    """

    max_grad_norm: float | Auto | None = parameter(
        'float, "auto" or None',
        """Clipping norm C of each record's gradient, in units of the loss per weight. The log-loss
        of a row x continues as a straight line where its slope exceeds ``C/|x|``. This bounds the
        influence of one record, and so the noise. ``"auto"`` uses a share of `data_norm` that grows
        with the number of rows and epsilon; None does not clip the log-loss.""",
        default="auto",
    )

    def _as_sklearn(self) -> Any:
        from skdp.estimators._mixins import one_vs_rest_twin

        return super()._as_sklearn() if len(self.classes_) == 2 else one_vs_rest_twin(self)

    def _log_shares(self, scores: np.ndarray) -> np.ndarray:
        return log_softmax(log_expit(scores), axis=1)


class ObjectivePerturbationSVC(ClassWeightMixin, SmoothedHingeMixin, ObjectiveModel):
    r"""Linear support vector classifier with objective perturbation.

    Minimises ``mean(H(margin)) + alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` plus
    a random linear function of the coefficients. Releases the minimiser with a little more noise. H
    is the hinge loss with its kink smoothed over ``1 +- half_width``. More than two
    classes are fitted one-vs-rest, and the fit is charged for all of them.

    References
    ----------
    Chaudhuri, Monteleoni & Sarwate (2011). Proofs: :ref:`Theorems 2, 3, 5 and 6 of objective
    perturbation <objective-perturbation-2>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import ObjectivePerturbationSVC
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> ObjectivePerturbationSVC(epsilon=2.0, delta=1e-5, data_norm=10.0).fit(X, y).classes_
    array([0, 1])
    """

    _added_texts: ClassVar[dict[str, str]] = {
        "half_width": "A wider kink needs a smaller penalty.",
    }

    max_grad_norm: float | Auto | None = parameter(
        'float, "auto" or None',
        """Clipping norm C of each record's gradient, in units of the loss per weight. The loss of a
        row x continues as a straight line where its slope exceeds ``C/|x|``. This bounds the
        influence of one record, and so the noise. ``"auto"`` does not clip, since the hinge loss
        is clipped already; None does not clip either.""",
        default="auto",
    )
