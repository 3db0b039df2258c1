"""Label weights, and recalibration of probabilities inside the fit."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import Calibrate, check_choice, check_real, parameter, released
from skdp.estimators._base import PrivateModel
from skdp.estimators._mixins import PrivateClassifierMixin
from skdp.models import with_class_weights
from skdp.plans.defaults import PublicNumbers
from skdp.plans.protocol import leave_room
from skdp.plans.recalibration import (
    ENOUGH_SIGNAL,
    LABEL_COUNTS,
    SCORES_BY_LABEL,
    SHARE,
    label_counts,
    plan_with_table,
)


class CalibratedMixin(PrivateModel):
    """Recalibration that is folded into the weights; comes before all other bases."""

    calibrate: Calibrate | None = parameter(
        '{"auto", "private"} or None',
        """How to recalibrate predicted probabilities. ``"private"`` fits an intercept and a slope
        (multiclass: a temperature) to a noisy score histogram, using 5 % of the privacy budget in
        squared mu (1 % for several one-vs-rest problems). ``"auto"`` does so when n and epsilon
        are large enough. None disables recalibration. See ``docs/probabilities.md``.""",
        default="auto",
    )
    calibration_: tuple[float, float] = released(
        "tuple of float",
        "Intercept and slope that were applied to the scores; (0, 1) without recalibration.",
    )

    _public: ClassVar[tuple[str, ...]] = ("classes_", "calibration_")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.calibrate == "noise":
            raise ValueError(
                "calibrate='noise' is not supported: the noise is not public, or it would shrink "
                "scores that the penalty has already shrunk too far (docs/probabilities.md). Use "
                "'auto', 'private' or None."
            )
        check_choice("calibrate", self.calibrate, ("auto", "private", None))

    def _no_table(self, numbers: PublicNumbers) -> str:
        """Return why no histogram can be released; empty if one can."""
        if numbers.delta == 0.0:
            return "its noise is Gaussian, which delta=0 does not allow"
        if self.calibration == "composition":
            return "calibration='composition' calibrates noise for the steps only"
        return ""

    def _is_worth_it(self, numbers: PublicNumbers) -> bool:
        """Return whether "auto" releases a histogram; never with a given noise multiplier."""
        if numbers.epsilon is None or self.noise_multiplier is not None:
            return False
        return numbers.signal_to_noise >= ENOUGH_SIGNAL

    def _build_plan(self, model: Any, numbers: PublicNumbers) -> Any:
        build = partial(super()._build_plan, model)  # type: ignore[safe-super]
        reason = self._no_table(numbers) if self.calibrate is not None else "it is off"
        if not {"linear", "network"} & model.facts:
            reason = reason or f"{model.name} is neither linear nor a network"
        if self.calibrate == "private" and reason:
            raise ValueError(
                f"calibrate='private' is not supported here: {reason}. Use 'auto' or None."
            )
        worth = model.n_parts == 1 and self._is_worth_it(numbers)
        if reason or not (self.calibrate == "private" or worth):
            return build(numbers)
        fixed = self.noise_multiplier is not None
        target = None if fixed else numbers.target_epsilon
        try:
            counted = {"most": self._most, "with_intercept": self.fit_intercept}
            return plan_with_table(build, numbers, target, _share(model), **counted)
        except ValueError:
            if self.calibrate == "private":
                raise
            return build(numbers)  # the default never makes a fit fail

    def _record(self, plan: Any, *about: Any) -> PrivacySpent:
        spent: PrivacySpent = super()._record(plan, *about)
        release = plan.named(SCORES_BY_LABEL)
        if release is None:
            return spent
        table = (
            "a histogram of scores by label, whose line is folded into the weights "
            f"({release.words}), for {_share(plan.model):.0%} of mu^2 "
            "(docs/proofs/recalibration.md)"
        )
        return replace(spent, mechanism=f"{spent.mechanism}; then {table}")

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        super()._publish(plan, records, released, spent)
        self.calibration_ = released[1] if len(released) > 1 else (0.0, 1.0)
        self._fold(plan, *self.calibration_)

    def _fold(self, plan: Any, intercept: float, slope: float) -> None:
        """Apply the slope and the intercept to all attributes in units of scores."""
        for name, shift in zip(self._weights(plan.model), (0.0, intercept), strict=True):
            weights = getattr(self, name)
            if isinstance(weights, list):  # the last layer of a network
                weights[-1] = slope * weights[-1] + shift
            else:
                setattr(self, name, slope * weights + shift)
        self._coef_noise_ = self._coef_noise_ * slope


def _share(model: Any) -> float:
    """Return the histogram's part of mu^2, smaller for several problems at once."""
    return SHARE if model.n_parts == 1 else SHARE / 5.0


_ASK = (
    "class_weight='balanced' needs the share of each label, and counting labels costs privacy. "
    "Declare prevalence={label: share}, or set prevalence='private' for a noisy count inside the "
    "fit, which uses a small share of its budget (docs/rare_outcomes.md)."
)


class ClassWeightMixin(PrivateClassifierMixin):
    """Classifiers with label weights; comes before the other bases."""

    class_weight: Any = parameter(
        'dict, "balanced" or None',
        """Public weight of each label, as ``{label: weight}``. The largest weight multiplies every
        bound on one record, and so the noise. ``"balanced"`` uses ``1 / (n_classes *
        prevalence)``. None gives all labels weight 1.""",
        default=None,
    )
    prevalence: Any = parameter(
        'dict, "private" or None',
        """Share of each label, for ``class_weight="balanced"``. A dict declares public shares, as
        ``{label: share}``. ``"private"`` uses a noisy count inside the fit, which takes 2 % of its
        squared mu (5 % of epsilon with ``delta=0``); the largest weight is then 1. See
        ``docs/rare_outcomes.md``.""",
        default=None,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._label_weights()

    def _label_weights(self) -> dict[Any, float] | None:
        """Return the public weight of each label; None if all are 1 or counted privately."""
        if isinstance(self.prevalence, str):
            self._check_count()
            return None
        shares = _checked("prevalence", self.prevalence, 1e-9)
        if shares is not None and abs(math.fsum(shares.values()) - 1.0) > 1e-6:
            raise ValueError(f"prevalence must add up to 1, got {self.prevalence!r}.")
        if not (isinstance(self.class_weight, str) and self.class_weight == "balanced"):
            return _checked("class_weight", self.class_weight, 1e-10)
        if shares is None:
            raise ValueError(_ASK)
        return {label: 1.0 / (len(shares) * share) for label, share in shares.items()}

    def _check_count(self) -> None:
        check_choice("prevalence", self.prevalence, ("private",))
        if not (isinstance(self.class_weight, str) and self.class_weight == "balanced"):
            raise ValueError(
                "prevalence='private' requires class_weight='balanced', got "
                f"class_weight={self.class_weight!r}."
            )
        if self.noise_multiplier is not None:
            raise ValueError(
                "prevalence='private' uses a share of epsilon, so noise_multiplier cannot be given."
            )

    def _plan_numbers(self, numbers: PublicNumbers) -> Any:
        build = super()._plan_numbers
        if not isinstance(self.prevalence, str):
            return build(numbers)
        target = float(self.epsilon), float(self.delta)
        counts = label_counts(*target, numbers.adjacency, numbers.n_classes, self._most)
        return leave_room(build, numbers, before=(counts,))

    def _record(
        self, plan: Any, epsilon: float, accountant: str, mechanism: str, *about: str
    ) -> Any:
        count = plan.named(LABEL_COUNTS)
        if count is not None:
            epsilon, accountant = float(self.epsilon), plan.accountant
            mechanism = f"a noisy count of labels ({count.words}); then {mechanism}"
        return super()._record(plan, epsilon, accountant, mechanism, *about)

    def _encode_targets(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        codes, labels = super()._encode_targets(y)
        for name in ("class_weight", "prevalence"):
            given = getattr(self, name)
            if isinstance(given, dict) and set(given) != set(labels.tolist()):
                raise ValueError(
                    f"{name} must name exactly the labels of the label set, with the type that "
                    "they have in y."
                )
        return codes, labels

    def _make_model(self, numbers: PublicNumbers) -> Any:
        model = super()._make_model(numbers)
        weights = self._label_weights()
        if weights is None:
            return model
        if len(weights) != numbers.n_classes:
            raise ValueError(
                f"class_weight or prevalence names {len(weights)} labels, but there are "
                f"{numbers.n_classes} classes."
            )
        return with_class_weights(model, [weights[label] for label in sorted(weights)])

    def _about_targets(self) -> str:
        about: str = super()._about_targets()
        if isinstance(self.prevalence, str):
            return (
                f"{about}; weights of labels are at most 1 and follow from a noisy count of labels,"
                " one more release of the fit, whose price is included"
            )
        weights = self._label_weights()
        if weights is None:
            return about
        return (
            f"{about}; weights of labels are public, and the heaviest, {max(weights.values()):.6g},"
            " enters every bound on a record"
        )


def _checked(name: str, given: Any, least: float) -> dict[Any, float] | None:
    """Return a public number per label."""
    if given is None:
        return None
    if not isinstance(given, dict) or len(given) < 2:
        raise TypeError(
            f"{name} must be a dict with a public number for each label"
            f"{', or balanced' if name == 'class_weight' else ''}, got {given!r}."
        )
    return {
        label: check_real(f"{name}[{label!r}]", value, at_least=least, at_most=1e10)
        for label, value in given.items()
    }
