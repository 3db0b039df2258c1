"""Weights of labels, and probabilities set right inside the fit."""

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
from skdp.mechanisms.random_stream import RandomStream
from skdp.models import network_scores, with_class_weights
from skdp.plans.defaults import PublicNumbers
from skdp.plans.protocol import leave_room
from skdp.plans.recalibration import (
    ENOUGH_SIGNAL,
    LABEL_COUNTS,
    SCORES_BY_LABEL,
    SHARE,
    count_labels,
    count_scores,
    label_counts,
    label_weights,
    plan_with_table,
    release_line,
    score_rows,
)
from skdp.tables.records import Records
from skdp.tables.row_scores import ask_rows, probe
from skdp.tables.row_sources import map_rows


class CalibratedMixin(PrivateModel):
    """An intercept and a slope of log odds, folded into the weights; comes before all else."""

    calibrate: Calibrate | None = parameter(
        '{"auto", "private"} or None',
        """Whether probabilities are set right by an intercept and a slope of log odds, of
        several classes by the slope alone. ``"private"`` reads them off a noisy histogram of
        scores by label that takes a twentieth of the budget; ``"auto"`` does where n is large
        enough for epsilon; None never does. See ``docs/probabilities.md``.""",
        default="auto",
    )
    calibration_: tuple[float, float] = released(
        "tuple of float",
        "Intercept and slope that were applied to the scores; (0, 1) where none were.",
    )

    _public: ClassVar[tuple[str, ...]] = ("classes_", "calibration_")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.calibrate == "noise":
            raise ValueError(
                "calibrate='noise' is not offered: by the noise that is public, scores would be "
                "shrunk where the penalty has shrunk them too far already, or the noise is not "
                "public (docs/probabilities.md). Take 'auto', 'private' or None."
            )
        check_choice("calibrate", self.calibrate, ("auto", "private", None))

    def _no_table(self, numbers: PublicNumbers) -> str:
        """Say why no table can be released, if so."""
        if numbers.delta == 0.0:
            return "its noise is Gaussian, and delta=0 allows none"
        if self.calibration == "composition":
            return "calibration='composition' finds noise for the steps alone"
        return ""

    def _is_worth_it(self, numbers: PublicNumbers) -> bool:
        """Tell whether the default releases a table: never beside noise that the user has fixed."""
        if numbers.epsilon is None or self.noise_multiplier is not None:
            return False
        return numbers.signal_to_noise >= ENOUGH_SIGNAL

    def _build_plan(self, model: Any, numbers: PublicNumbers) -> Any:
        build = partial(super()._build_plan, model)  # type: ignore[safe-super]
        reason = self._no_table(numbers) if self.calibrate is not None else "it is off"
        if not {"linear", "network"} & model.facts:
            reason = reason or f"{model.name} is neither linear nor a network"
        if self.calibrate == "private" and reason:
            raise ValueError(f"calibrate='private' is not offered here: {reason}.")
        worth = model.n_parts == 1 and self._is_worth_it(numbers)
        if reason or not (self.calibrate == "private" or worth):
            return build(numbers)
        fixed = self.noise_multiplier is not None
        target = None if fixed else numbers.target_epsilon
        try:
            return plan_with_table(build, numbers, target, _share(model))
        except ValueError:
            if self.calibrate == "private":
                raise
            return build(numbers)  # a default refuses nothing that is possible without it

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

    def _finish(self, plan: Any, released: np.ndarray, records: Records, stream: Any) -> Any:
        """Return the weights, and the intercept and slope that a noisy table tells."""
        scores = plan.named(SCORES_BY_LABEL)
        if scores is None:
            return released, (0.0, 1.0)
        X, weights = records.X, records.row_weight
        model, unpacked = plan.model, plan.model.unpack(released)
        if "network" in model.facts:
            coefs, intercepts = unpacked
            rest = {"coefs": coefs, "intercepts": intercepts, "activation": model.activation}
            score: Any = _alone(partial(network_scores, **rest), X)
        else:
            coef, intercept = unpacked
            score = partial(score_rows, coef=coef, intercept=intercept)
        if weights is not None and model.by_unit:
            weights = weights / self._most  # what a unit counts is at most 1 in the table
        if model.class_weights is not None:  # probabilities are to be of the weighted table
            share = np.array(model.class_weights) / max(model.class_weights)
            weights = share[records.targets] * (1.0 if weights is None else weights)
        with np.errstate(all="ignore"):  # a warning of a huge row would tell of it, un-noised
            tables = map_rows(partial(_count, score), X, records.targets, weights)
        table = np.sum(tables, axis=0)  # of exact counts
        with_intercept = self.fit_intercept and model.n_outputs == 1
        return released, release_line(table, scores, stream.spawn("scores"), with_intercept)

    def _publish(self, plan: Any, records: Records, released: Any, spent: PrivacySpent) -> None:
        weights, self.calibration_ = released
        super()._publish(plan, records, weights, spent)
        self._fold(plan, *self.calibration_)

    def _fold(self, plan: Any, intercept: float, slope: float) -> None:
        """Multiply scores by the slope and move them; all that has their scale is changed here."""
        for name, shift in zip(self._weights(plan.model), (0.0, intercept), strict=True):
            weights = getattr(self, name)
            if isinstance(weights, list):  # of a network the last layer
                weights[-1] = slope * weights[-1] + shift
            else:
                setattr(self, name, slope * weights + shift)
        self._coef_noise_ = self._coef_noise_ * slope


def _alone(score: Any, X: Any) -> Any:
    """Return a function of rows that scores each by itself, to the last bit."""
    return partial(ask_rows, score, way=probe(score, X).way)


def _count(score: Any, X: Any, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    return count_scores(score(X), targets, weights)


def _share(model: Any) -> float:
    """Return the table's part of mu^2; beside several problems at once it costs more epsilon."""
    return SHARE if model.n_parts == 1 else SHARE / 5.0


_ASK = (
    "class_weight='balanced' needs the share of each label, and counting labels costs privacy: "
    "declare prevalence={label: share}, or give prevalence='private' for a noisy count inside the "
    "fit, at a small share of its budget (docs/rare_outcomes.md)."
)


class ClassWeightMixin(PrivateClassifierMixin):
    """Classifiers with weights of labels; comes before all that make the model."""

    class_weight: Any = parameter(
        'dict, "balanced" or None',
        """Public weight of each label, as ``{label: weight}``. The largest multiplies every
        bound on one record, and so the noise. ``"balanced"`` takes ``1 / (n_classes *
        prevalence)``.""",
        default=None,
    )
    prevalence: Any = parameter(
        'dict, "private" or None',
        """Share of each label for ``"balanced"``: declared, as ``{label: share}``, or
        ``"private"`` for a noisy count inside the fit, which takes 2 % of its squared mu (5 % of
        epsilon without a delta). The largest weight is 1 then. See ``docs/rare_outcomes.md``.""",
        default=None,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._label_weights()

    def _label_weights(self) -> dict[Any, float] | None:
        """Return the public weight of each label; None if all are 1, or counts decide."""
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
            raise ValueError("prevalence='private' pays for class_weight='balanced' only.")
        if self.noise_multiplier is not None:
            raise ValueError(
                "prevalence='private' takes its share of epsilon: leave noise_multiplier out."
            )

    def _plan_numbers(self, numbers: PublicNumbers) -> Any:
        build = super()._plan_numbers
        if not isinstance(self.prevalence, str):
            return build(numbers)
        target = float(self.epsilon), float(self.delta)
        counts = label_counts(*target, numbers.adjacency, numbers.n_classes)
        return leave_room(build, numbers, before=(counts,))

    def _record(
        self, plan: Any, epsilon: float, accountant: str, mechanism: str, *about: str
    ) -> Any:
        count = plan.named(LABEL_COUNTS)
        if count is not None:
            epsilon, accountant = float(self.epsilon), plan.accountant
            mechanism = f"a noisy count of labels ({count.words}); then {mechanism}"
        return super()._record(plan, epsilon, accountant, mechanism, *about)

    def _weigh_rows(self, plan: Any, records: Records, stream: RandomStream) -> Records:
        records = super()._weigh_rows(plan, records, stream)
        release = plan.named(LABEL_COUNTS)
        if release is None:
            return records
        shares, targets = records.row_weight, records.targets
        parts = None if shares is None else shares / self._most
        counts = count_labels(targets, max(2, plan.model.n_outputs), parts)
        noisy = release.make(counts, stream.spawn(LABEL_COUNTS).spawn("noise"))
        return records.weigh(label_weights(noisy, release.sigma)[targets])

    def _encode_targets(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        codes, labels = super()._encode_targets(y)
        for name in ("class_weight", "prevalence"):
            given = getattr(self, name)
            if isinstance(given, dict) and set(given) != set(labels.tolist()):
                raise ValueError(
                    f"{name} must name every label of the label set and no other, in the type in "
                    "which y holds it."
                )
        return codes, labels

    def _make_model(self, numbers: PublicNumbers) -> Any:
        model = super()._make_model(numbers)
        weights = self._label_weights()
        if weights is None:
            return model
        if len(weights) != numbers.n_classes:
            raise ValueError(
                f"class_weight or prevalence names {len(weights)} labels, and there are "
                f"{numbers.n_classes}."
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
    """Return a public number for each label."""
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
