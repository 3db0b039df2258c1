"""Base classes of scikit-learn, typed: bases of unknown type would hide wrong arguments."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Self

    class BaseEstimator:
        """Parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set parameters by name."""

        def get_metadata_routing(self) -> Any:
            """Return which metadata are asked for."""

        def __sklearn_tags__(self) -> Any: ...

        def __sklearn_clone__(self) -> Any: ...

    class MetaEstimatorMixin:
        """What holds an estimator."""

    class ClassifierMixin:
        """What predicts labels."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return the accuracy."""

        def __sklearn_tags__(self) -> Any: ...

    class RegressorMixin:
        """What predicts numbers."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return the coefficient of determination."""

        def __sklearn_tags__(self) -> Any: ...
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "MetaEstimatorMixin", "RegressorMixin"]
