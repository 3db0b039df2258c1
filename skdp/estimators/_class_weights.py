"""Public weights of labels: given by the user, or from a prevalence that is declared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdp.models import with_class_weights
from skdp.parameters import check_real
from skdp.plans.defaults import PublicNumbers

_ASK = (
    "class_weight='balanced' needs the share of each label, and counting labels costs privacy: "
    "declare prevalence={label: share}, or pay for skdp.statistics.private_histogram and give "
    "its shares (docs/rare_outcomes.md)."
)


class ClassWeightMixin:
    """Classifiers with weights of labels; comes before all that make the model."""

    class_weight: Any
    prevalence: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        self._label_weights()

    def _label_weights(self) -> dict[Any, float] | None:
        """Return the public weight of each label; None if all are 1."""
        shares = _checked("prevalence", self.prevalence, 1e-9)
        if shares is not None and abs(math.fsum(shares.values()) - 1.0) > 1e-6:
            raise ValueError(f"prevalence must add up to 1, got {self.prevalence!r}.")
        if not (isinstance(self.class_weight, str) and self.class_weight == "balanced"):
            return _checked("class_weight", self.class_weight, 1e-10)
        if shares is None:
            raise ValueError(_ASK)
        return {label: 1.0 / (len(shares) * share) for label, share in shares.items()}

    def _encode_targets(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        codes, labels = super()._encode_targets(y)  # type: ignore[misc]
        for name in ("class_weight", "prevalence"):
            given = getattr(self, name)
            if isinstance(given, dict) and set(given) != set(labels.tolist()):
                raise ValueError(
                    f"{name} must name every label of the label set and no other, in the type in "
                    "which y holds it."
                )
        return codes, labels

    def _make_model(self, numbers: PublicNumbers) -> Any:
        model = super()._make_model(numbers)  # type: ignore[misc]
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
        about: str = super()._about_targets()  # type: ignore[misc]
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
