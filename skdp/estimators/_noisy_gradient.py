"""What the estimators that train by noisy gradients share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skdp.accounting import Accountant
from skdp.accounting.accountants.registry import resolve_accountant
from skdp.estimators._base import PrivateModel
from skdp.models import Model
from skdp.parameters import check_choice, check_integer, check_real
from skdp.plans.choices import GradientPerturbationChoices
from skdp.plans.defaults import PublicNumbers
from skdp.plans.gradient_perturbation import build_gradient_perturbation
from skdp.plans.noisy_gradient import Execution, NoisyGradientPlan
from skdp.reporting import PrivacySpent

_SAMPLING_TEXT = {
    "full": "every step reads all rows",
    "poisson": "each step draws each {record} independently (Poisson sampling)",
    "allocation": "in each epoch each {record} is independently put into one random lot",
    "uniform": "each step draws a uniform subset of fixed size without replacement",
}

_THEOREM = {
    ("full", "add-remove"): "Gaussian composition (Dong, Roth & Su 2022)",
    ("full", "replace-one"): "Gaussian composition (Dong, Roth & Su 2022)",
    ("poisson", "add-remove"): "Poisson-subsampled Gaussian (Zhu, Dong & Wang 2022)",
    ("poisson", "replace-one"): "Poisson-subsampled Gaussian, antiparallel pair (docs/proofs)",
    ("allocation", "add-remove"): "random allocation, mean of Gaussians (docs/proofs)",
    ("allocation", "replace-one"): "random allocation, antiparallel pair (docs/proofs)",
    ("uniform", "replace-one"): "uniformly subsampled Gaussian, symmetric pair (docs/proofs)",
}
_LAST_ITERATE_THEOREM = (
    "last iterate of convex noisy gradient descent, by shifted interpolation (Bok, Su & Altschuler "
    "2024; docs/proofs)"
)


class NoisyGradientModel(PrivateModel):
    """A private model trained by noisy gradient steps."""

    batch_size: Any
    max_iter: Any
    learning_rate_init: float | None
    average: Any
    physical_batch_size: int | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("batch_size", self.batch_size, at_least=1, allowed=("auto",))
        check_integer(
            "max_iter", self.max_iter, at_least=1, allowed=("auto",), remedy="It counts steps."
        )
        check_real(
            "learning_rate_init", self.learning_rate_init, above=0.0, at_most=1e50, allowed=(None,)
        )
        check_integer("physical_batch_size", self.physical_batch_size, at_least=1, allowed=(None,))
        if not isinstance(self.average, bool):
            check_real(
                "average",
                self.average,
                above=0.0,
                at_most=1.0,
                allowed=("ema",),
                remedy="True averages a default share of the last iterates, False none.",
            )

    def _check_batch_size(self, n_rows: int) -> None:
        if self.batch_size != "auto" and self.batch_size > n_rows:
            raise ValueError(
                f"batch_size={self.batch_size} is larger than the number of rows, or of ids in "
                f"groups=, {n_rows}. Take a smaller one, or batch_size='auto'."
            )

    def _set_execution(self, plan: NoisyGradientPlan) -> NoisyGradientPlan:
        """Return the plan to be run as the user wants, which changes nothing else."""
        return replace(plan, execution=Execution(self.physical_batch_size))

    def _account(self, plan: NoisyGradientPlan) -> PrivacySpent:
        accountant: Accountant = resolve_accountant(plan.accountant)(adjacency=plan.adjacency)
        epsilon = accountant.compose(plan.event).epsilon(self.delta)
        theorem = _THEOREM[plan.lots.sampling, plan.adjacency]
        return self._record(
            plan,
            self._claim(epsilon),
            plan.accountant,
            f"noisy gradients: {plan.steps} steps, expected lot {plan.lots.size:g}, noise "
            f"multiplier {plan.noise_multiplier:.6g} on sums whose records contribute norm "
            f"at most {plan.bound.norm:.6g}; "
            f"{_LAST_ITERATE_THEOREM if plan.last_iterate_only else theorem}",
            _SAMPLING_TEXT[plan.lots.sampling].format(
                record="unit" if getattr(plan.model, "by_unit", False) else "row"
            ),
            "sums are divided by the public expected lot size",
            *self._what_is_paid_for(plan),
            plan.bound.reason,
        )

    def _what_is_paid_for(self, plan: NoisyGradientPlan) -> tuple[str, ...]:
        public = "n_iter_ and noise_multiplier_ are public numbers"
        if not plan.last_iterate_only:
            return (f"{public}; every iterate is paid for",)
        radius = f"the ball of radius {plan.rule.radius:.6g} (scaled units)"
        return (
            public,
            "only the last iterate leaves the fit, as coef_ and intercept_: no earlier iterate, no "
            "average of iterates, no loss and no time of stopping that depends on rows",
            "the objective is convex and smooth, steps start at zero and are all of size "
            f"{plan.schedule.initial:.6g}, and each, noise included, ends with a projection onto "
            f"{radius}",
        )

    def _claim(self, epsilon: float) -> float:
        """Return the epsilon to report: the accountant's, or the target it was calibrated to."""
        return epsilon if self.epsilon is None else min(epsilon, float(self.epsilon))

    def _public_steps(self, plan: NoisyGradientPlan) -> int:
        return plan.steps

    def _publish(self, plan: Any, table: Any, released: np.ndarray, spent: PrivacySpent) -> None:
        super()._publish(plan, table, released, spent)
        self.n_iter_ = plan.steps


class GrpuaModel(NoisyGradientModel):
    """Gradient perturbation with public gradient bounds."""

    learning_rate: Any
    radius: float | None
    sampling: Any
    calibration: Any
    max_grad_norm: Any = None  # nothing is clipped that the loss bounds

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("learning_rate", self.learning_rate, ("constant", "strongly-convex", "convex"))
        check_choice("sampling", self.sampling, ("poisson", "uniform"))
        check_choice("calibration", self.calibration, ("pld", "composition", "hidden-state"))
        check_real("radius", self.radius, above=0.0, allowed=(None,))
        if self.sampling == "uniform" and self.adjacency != "replace-one":
            raise ValueError(
                "sampling='uniform' draws lots of fixed size, which add-remove neighbours cannot "
                "both do: use adjacency='replace-one' or sampling='poisson'."
            )

    def _clipping_norm(self, model: Model, numbers: PublicNumbers) -> float | None:
        return self.max_grad_norm

    def _build_plan(self, model: Model, numbers: PublicNumbers) -> NoisyGradientPlan:
        self._check_batch_size(numbers.n_rows)
        choices = GradientPerturbationChoices(
            penalty=self._choose("alpha", model.units.penalty),
            batch_size=self._choose("batch_size"),
            max_iter=self._choose("max_iter"),
            step_sizes=self.learning_rate,
            initial_step=self._choose("learning_rate_init", model.units.step),
            radius=self._choose("radius", model.units.weight),
            average=self.average,
            sampling=self.sampling,
            calibration=self.calibration,
            max_grad_norm=self._clipping_norm(model, numbers),
        )
        return self._set_execution(build_gradient_perturbation(model, numbers, choices))
