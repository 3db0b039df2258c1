"""Weights of labels: given by the user, from a declared prevalence, or from a noisy count."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdp.estimators._mixins import PrivateClassifierMixin
from skdp.mechanisms.random_stream import RandomStream
from skdp.models import with_class_weights
from skdp.parameters import check_choice, check_real, parameter
from skdp.plans.beside import leave_room
from skdp.plans.defaults import PublicNumbers
from skdp.plans.label_counts import count_labels, label_counts, label_weights
from skdp.tables.records import Records

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
        counts = label_counts(*target, self.adjacency, numbers.n_classes)
        return leave_room(build, numbers, before=(counts,))

    def _record(
        self, plan: Any, epsilon: float, accountant: str, mechanism: str, *about: str
    ) -> Any:
        if plan.before:
            (count,) = plan.before
            epsilon, accountant = float(self.epsilon), plan.accountant
            mechanism = f"a noisy count of labels ({count.words}); then {mechanism}"
        return super()._record(plan, epsilon, accountant, mechanism, *about)

    def _weigh_rows(self, plan: Any, records: Records, stream: RandomStream) -> Records:
        records = super()._weigh_rows(plan, records, stream)
        if not plan.before:
            return records
        (release,) = plan.before
        shares, targets = records.row_weight, records.targets
        parts = None if shares is None else shares / self._most
        counts = count_labels(targets, max(2, plan.model.n_outputs), parts)
        noisy = release.make(counts, stream.spawn("label counts").spawn("noise"))
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
