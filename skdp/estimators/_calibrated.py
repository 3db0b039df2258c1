"""Classifiers that set their probabilities right inside the fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skdp.choices import Calibrate
from skdp.estimators._base import PrivateModel
from skdp.models import network_scores
from skdp.parameters import check_choice, parameter, released
from skdp.plans.defaults import PublicNumbers
from skdp.plans.recalibration import (
    ENOUGH_SIGNAL,
    SHARE,
    count_scores,
    plan_with_table,
    release_line,
    score_rows,
)
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.row_scores import ask_rows, probe
from skdp.row_sources import map_rows
from skdp.tables.records import Records


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
        if not plan.after:
            return spent
        (release,) = plan.after
        table = (
            "a histogram of scores by label, whose line is folded into the weights "
            f"({release.words}), for {_share(plan.model):.0%} of mu^2 "
            "(docs/proofs/recalibration.md)"
        )
        return replace(spent, mechanism=f"{spent.mechanism}; then {table}")

    def _finish(self, plan: Any, released: np.ndarray, records: Records, stream: Any) -> Any:
        """Return the weights, and the intercept and slope that a noisy table tells."""
        if not plan.after:
            return released, (0.0, 1.0)
        (scores,) = plan.after
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
