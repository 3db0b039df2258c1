"""Output perturbation estimators: OPERA logistic regression and smoothed-hinge SVC."""

from __future__ import annotations

from typing import ClassVar

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import (
    Numerics,
    Solver,
    check_choice,
    check_integer,
    check_real,
    parameter,
)
from skdp.estimators._base import PenalizedModel, UnitWeightingMixin
from skdp.estimators._calibrated import CalibratedMixin, ClassWeightMixin
from skdp.estimators._mixins import LogisticMixin, SmoothedHingeMixin
from skdp.models import LinearModel
from skdp.plans.defaults import PublicNumbers, default_output_penalty
from skdp.plans.output_perturbation import OutputPerturbationPlan


class OperaModel(UnitWeightingMixin, PenalizedModel):
    """Output perturbation with Gaussian noise, or with norm-exponential noise for delta=0."""

    _added_texts: ClassVar[dict[str, str]] = {
        "delta": "0 uses norm-exponential instead of Gaussian noise, which is larger in many "
        "dimensions: see ``docs/pure.md``.",
        "adjacency": "A removed row contributes zero; sums are still divided by the public n.",
        "alpha": '``"auto"`` derives it from n, epsilon, delta, adjacency and `data_norm`. 0 '
        'requires ``solver="gd"``.',
    }

    solver: Solver = parameter(
        '{"newton", "lbfgs", "gd"}',
        """Minimiser. ``"newton"`` and ``"lbfgs"`` solve to the same fixed gradient tolerance on
        every data set; ``"gd"`` runs `max_iter` steps of gradient descent from zero, as in the
        paper.""",
        default="newton",
    )
    max_iter: int = parameter(
        "int",
        """Number of steps of ``"gd"``. For the other solvers, a limit on the fast phase; a slower
        method with guaranteed convergence then continues.""",
        default=100,
    )
    learning_rate_init: float | None = parameter(
        "float or None",
        'Step size of ``"gd"`` on the mean loss; None uses the inverse smoothness.',
        default=None,
    )
    numerics: Numerics = parameter(
        '{"float", "discrete"}',
        """Arithmetic of the noise. ``"discrete"`` rounds the weights to a grid and adds discrete
        Gaussian noise (discrete Laplace noise for ``delta=0``), drawn exactly; the guarantee then
        does not treat doubles as real numbers. See ``docs/security.md``.""",
        default="float",
    )

    _offers_pure = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("solver", self.solver, ("newton", "lbfgs", "gd"))
        check_choice("numerics", self.numerics, ("float", "discrete"))
        check_integer("max_iter", self.max_iter, at_least=1)
        check_real(
            "learning_rate_init", self.learning_rate_init, above=0.0, at_most=1e50, allowed=(None,)
        )

    def _build_plan(self, model: LinearModel, numbers: PublicNumbers) -> OutputPerturbationPlan:
        if self.numerics == "discrete":  # rounding errors grow with the number of rows
            self._refuse_any_number(numbers, "numerics='discrete'")
        penalty = self._choose("alpha", model.units.penalty)
        return OutputPerturbationPlan.build(
            model,
            penalty=default_output_penalty(model, numbers) if penalty is None else penalty,
            adjacency=numbers.adjacency,
            epsilon=float(numbers.target_epsilon),
            delta=float(self.delta),
            solver=self.solver,
            max_iter=self.max_iter,
            step_size=self._choose("learning_rate_init", model.units.step),
            numerics=self.numerics,
        )

    def _account(self, plan: OutputPerturbationPlan) -> PrivacySpent:
        accountant, proof = "pld", "docs/proofs/pure.md"
        if plan.delta == 0.0:
            law = "independent Laplace" if plan.grid > 0.0 else "one norm-exponential"
            law = f"{law} vector of scale {plan.sigma:.6g}"
        else:
            accountant, law = "gdp", f"one Gaussian vector of standard deviation {plan.sigma:.6g}"
            proof = "analytic Gaussian mechanism, Balle & Wang 2018, Theorem 8"
        if plan.solver == "gd":
            theorem = f"{plan.max_iter} steps of gradient descent (contraction bound)"
        else:
            theorem = "minimiser to a fixed gradient tolerance (strong convexity bound)"
        norm = "L1" if plan.delta == 0.0 < plan.grid else "L2"
        return self._record(
            plan,
            float(self.epsilon),
            accountant,
            f"output perturbation: {theorem}, {norm} sensitivity {plan.sensitivity:.6g}, {law} "
            f"(scaled units{self._about_grid(plan)}; {proof})",
        )


class OperaLogisticRegression(CalibratedMixin, ClassWeightMixin, LogisticMixin, OperaModel):
    r"""Logistic regression with output perturbation (OPERA).

    Minimises ``mean(log-loss) + alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` and
    adds one vector of Gaussian noise to all coefficients and intercepts together. With more than
    two classes, the model is a softmax regression, released as one vector.

    See Also
    --------
    GrpuaLogisticRegression : Gradient perturbation.
    DPSGDClassifier : Clipped noisy gradients.

    Notes
    -----
    Under replace-one the sensitivity is ``(G + 2 n tau) / (n alpha)``. G is the largest distance
    between the gradients of two records, and tau the solver's fixed tolerance. Proofs:
    :ref:`Theorem 1 of output perturbation <output-perturbation-1>`, and for the entire fit
    :ref:`Theorem 8 <output-perturbation-8>`.

    References
    ----------
    Ding et al., "Private Empirical Risk Minimization with Analytic Gaussian Mechanism for
    Healthcare System", Algorithm 1 (with a smaller, newly proved sensitivity). Balle & Wang
    (2018), "Improving the Gaussian Mechanism for Differential Privacy", Theorem 8.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import OperaLogisticRegression
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> clf = OperaLogisticRegression(epsilon=1.0, delta=1e-5, data_norm=10.0).fit(X, y)
    >>> epsilon, delta = clf.privacy_spent_
    >>> epsilon <= 1.0
    True
    """


class OperaSVC(ClassWeightMixin, SmoothedHingeMixin, OperaModel):
    r"""Linear support vector classifier with output perturbation (OPERA).

    Minimises ``mean(H(margin)) + alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` and
    adds one vector of Gaussian noise. H is the hinge loss with its kink smoothed over
    ``1 +- half_width``. K > 2 classes are fitted one-vs-rest and released as one vector; its joint
    sensitivity is ``sqrt(K)`` times that of a binary problem.

    References
    ----------
    Ding et al., "Private Empirical Risk Minimization with Analytic Gaussian Mechanism for
    Healthcare System", Algorithm 1 and section V-C. Balle & Wang (2018), Theorem 8. Proof:
    :ref:`Theorem 8 of output perturbation <output-perturbation-8>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import OperaSVC
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> OperaSVC(epsilon=2.0, delta=1e-5, data_norm=10.0).fit(X, y).classes_
    array([0, 1])
    """
