"""The base of the estimators that train by noisy gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, cast

from skdp.accounting import Accountant
from skdp.accounting.accountants import resolve_accountant
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import (
    Auto,
    NoiseCalibration,
    Sampling,
    StepRule,
    check_choice,
    check_integer,
    check_real,
    parameter,
    released,
)
from skdp.estimators._base import PenalizedModel, PrivateModel, UnitWeightingMixin
from skdp.models import Model
from skdp.plans.defaults import PublicNumbers
from skdp.plans.gradient_perturbation import build_gradient_perturbation
from skdp.plans.noisy_gradient import Execution, GradientPerturbationChoices, NoisyGradientPlan

_SAMPLING_TEXT = {
    "full": "every step reads all rows",
    "poisson": "each step includes each {record} independently (Poisson sampling)",
    "allocation": "each epoch assigns each {record} independently to one random batch",
    "uniform": "each step uses a uniform random subset of fixed size, without replacement",
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

    batch_size: int | Auto = parameter(
        'int or "auto"',
        """Expected number of records per step, at most n; the sampling rate is ``batch_size /
        n``. With n, every step reads all rows.""",
        default="auto",
    )
    max_iter: int | Auto = parameter('int or "auto"', "Number of steps (batches).", default="auto")
    learning_rate_init: float | None = parameter(
        "float or None",
        "Step size on the mean loss; None derives it from the noise level.",
        default=None,
    )
    n_iter_: int = released("int", "Number of steps, from public numbers.")

    average, physical_batch_size = cast(Any, True), cast(Any, None)

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
                f"batch_size must be at most the number of rows, or of ids in groups=, which is "
                f"{n_rows}; got {self.batch_size}. Use a smaller one, or batch_size='auto'."
            )

    def _set_execution(self, plan: NoisyGradientPlan) -> NoisyGradientPlan:
        """Return the plan with the user's limit on memory, and no other change."""
        return replace(plan, execution=Execution(self.physical_batch_size))

    def _account(self, plan: NoisyGradientPlan) -> PrivacySpent:
        accountant: Accountant = resolve_accountant(plan.accountant)(adjacency=plan.adjacency)
        epsilon = accountant.compose(plan.event).epsilon(self.delta)
        theorem = _THEOREM[plan.lots.sampling, plan.adjacency]
        return self._record(
            plan,
            self._claim(epsilon),
            plan.accountant,
            f"noisy gradients: {plan.steps} steps, expected batch size {plan.lots.size:g}, noise "
            f"multiplier {plan.noise_multiplier:.6g} on sums whose records contribute norm "
            f"at most {plan.bound.norm:.6g}; "
            f"{_LAST_ITERATE_THEOREM if plan.last_iterate_only else theorem}",
            _SAMPLING_TEXT[plan.lots.sampling].format(
                record="unit" if plan.model.by_unit else "row"
            ),
            "sums are divided by the public expected batch size",
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
        """Return the epsilon to report: the target of the calibration, if there is one."""
        return epsilon if self.epsilon is None else float(self.epsilon)

    def _public_steps(self, plan: NoisyGradientPlan) -> int:
        return plan.steps

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        super()._publish(plan, records, released, spent)
        self.n_iter_ = plan.steps


class DescentModel(PenalizedModel, NoisyGradientModel):
    """A model with optional averaging of iterates."""

    average: bool | float | Literal["ema"] = parameter(
        'bool, float or "ema"',
        """Share of the last iterates that are averaged. True uses a default share, and False
        releases the last iterate. ``"ema"`` averages all iterates with exponentially decaying
        weights, which decay at a rate that corresponds to the default share. Averaging is free,
        since the privacy cost covers all iterates.""",
        default=True,
    )
    physical_batch_size: int | None = parameter(
        "int or None",
        """Maximum number of rows processed at once (at least 288). Limits memory; changes neither
        the sampling nor the privacy cost. None sets no limit.""",
        default=None,
    )


class GrpuaModel(DescentModel):
    """Gradient perturbation with public bounds on gradients."""

    batch_size: int | Auto = parameter(
        'int or "auto"',
        """Expected number of records per step, at most n. The paper uses 1. ``"auto"`` uses all
        rows unless there are very many, since the noise per step matters more than the number of
        steps.""",
        default="auto",
    )
    max_iter: int | Auto = parameter(
        'int or "auto"', "Number of steps; the paper uses n squared.", default="auto"
    )
    radius: float | None = parameter(
        "float or None",
        """Radius of the ball onto which weights are projected after each step. None projects only
        with ``learning_rate="convex"``, onto a ball as large as weights can become under the
        noise.""",
        default=None,
    )
    sampling: Sampling = parameter(
        '{"poisson", "uniform"}',
        """Sampling of batches smaller than n: each record independently (``"poisson"``), or a
        uniform random subset of fixed size without replacement (``"uniform"``, as in the paper;
        requires ``adjacency="replace-one"``).""",
        default="poisson",
    )
    calibration: NoiseCalibration = parameter(
        '{"pld", "composition", "hidden-state"}',
        """Calibration of the noise. ``"pld"`` composes privacy-loss distributions numerically and
        covers every iterate. ``"composition"`` follows the paper: the analytic Gaussian mechanism
        in each step, amplification by subsampling, and advanced composition. It needs several
        times the noise; `privacy_spent_` reports the smaller epsilon that this noise gives.
        ``"hidden-state"`` covers only the last iterate, and its noise stops growing with the
        number of steps; see Notes.""",
        default="pld",
    )

    learning_rate = cast(Any, "constant")
    max_grad_norm = cast(Any, None)  # the loss bounds its gradients

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("learning_rate", self.learning_rate, ("constant", "strongly-convex", "convex"))
        check_choice("sampling", self.sampling, ("poisson", "uniform"))
        check_choice("calibration", self.calibration, ("pld", "composition", "hidden-state"))
        check_real("radius", self.radius, above=0.0, allowed=(None,))
        if self.sampling == "uniform" and self._relation != "replace-one":
            raise ValueError(
                "sampling='uniform' uses batches of fixed size, which is not supported under "
                "adjacency='add-remove'. Use adjacency='replace-one' or sampling='poisson'."
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


class GrpuaLinearModel(UnitWeightingMixin, GrpuaModel):
    """Gradient perturbation of linear models."""

    learning_rate: StepRule = parameter(
        '{"constant", "strongly-convex", "convex"}',
        """Step sizes. ``"constant"``: `learning_rate_init`, with heavy-ball momentum 0.9.
        ``"strongly-convex"``: ``1 / (alpha t)``, at most the inverse smoothness. ``"convex"``:
        ``R / sqrt(t G^2)`` with projection onto the ball of radius R, where G^2 bounds the second
        moment of a noisy gradient.""",
        default="constant",
    )
    learning_rate_init: float | None = parameter(
        "float or None",
        "Constant step size on the mean loss; None derives it from the noise level.",
        default=None,
    )
    average: bool | float = parameter(
        "bool or float",
        """Share of the last iterates that are averaged. True uses a default share, and False
        releases the last iterate.""",
        default=True,
    )
