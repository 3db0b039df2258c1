"""Results of several comparisons of classes, from one look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import JsonRecord
from skdp.inference._result import InferenceResult


class ClassResults(dict[Any, InferenceResult], JsonRecord):
    """Results of a look at a model of several classes, by class.

    One release and one charge, `privacy_spent_`, cover all of them.

    Parameters
    ----------
    results : iterable of InferenceResult
        Result of each comparison.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import GrpuaLogisticRegression
    >>> from skdp.inference import PrivateInference
    >>> X, y = np.random.default_rng(0).uniform(-0.7, 0.7, size=(9_000, 2)), np.arange(9_000) % 3
    >>> model = GrpuaLogisticRegression(data_norm=1.0).fit(X, y)
    >>> list(PrivateInference(epsilon=1.0, reference=0).evaluate(model, X, y))
    [1, 2]
    """

    def __init__(self, results: Iterable[InferenceResult]) -> None:
        found = list(results)
        super().__init__({one.part.classes.tolist()[one.part.code]: one for one in found})
        self.privacy_spent_: PrivacySpent = found[0].privacy_spent_

    def to_frame(self) -> Any:
        """Return the tables as one pandas frame, with the class first; it needs pandas."""
        from pandas import concat

        frames = {label: one.to_frame() for label, one in self.items()}
        return concat(frames, names=["class"]).reset_index("class").reset_index(drop=True)

    def to_dict(self) -> dict[str, Any]:
        """Return all tables as plain, JSON-ready values."""
        return {str(label): one.to_dict() for label, one in self.items()}

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.values()))

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self.values())
