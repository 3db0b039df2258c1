"""Public weights of classes, by which models multiply those of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def with_class_weights(model: Any, class_weights: Sequence[float]) -> Any:
    """Return a model with weights in the order of the label set; the largest enters its bounds.

    Examples
    --------
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.models import LinearModel, with_class_weights
    >>> loss = LogisticLoss()
    >>> model = LinearModel(loss, n_rows=100, n_features=4, n_outputs=1, intercept_value=0.0)
    >>> round(with_class_weights(model, (1.0, 3.0)).lipschitz / model.lipschitz, 6)
    3.0
    """
    heaviest = model.heaviest * max(class_weights)
    return replace(model, class_weights=tuple(class_weights), heaviest=heaviest)


def weigh_rows(
    class_weights: tuple[float, ...] | None, codes: NDArray[Any], row_weight: ArrayLike | None
) -> ArrayLike | None:
    """Return the weights of rows, each times that of its own class."""
    if class_weights is None:
        return row_weight
    of_class = np.array(class_weights)[codes]
    return of_class if row_weight is None else of_class * np.asarray(row_weight)
