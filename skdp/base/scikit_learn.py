"""Typed base classes of scikit-learn, and facts about fitted models of users.

Bases of unknown type would hide wrong arguments from type checkers.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    class BaseEstimator:
        """Parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set parameters by name."""

        def get_metadata_routing(self) -> Any:
            """Return the requested metadata."""

        def __sklearn_tags__(self) -> Any: ...

        def __sklearn_clone__(self) -> Any: ...

    class MetaEstimatorMixin:
        """Estimators that hold another one."""

    class ClassifierMixin:
        """Predictors of labels."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return the accuracy."""

        def __sklearn_tags__(self) -> Any: ...

    class RegressorMixin:
        """Predictors of numbers."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return the coefficient of determination."""

        def __sklearn_tags__(self) -> Any: ...

    class TransformerMixin:
        """Transformers of rows."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
            """Fit, and return the transformed rows."""

        def set_output(self, *, transform: str | None = None) -> Self:
            """Choose the container of rows."""

        def __sklearn_tags__(self) -> Any: ...

    class OneToOneFeatureMixin:
        """Transformers that keep the names of columns."""

        def get_feature_names_out(self, input_features: Any = None) -> Any:
            """Return the names of columns."""

    class ClassNamePrefixFeaturesOutMixin(OneToOneFeatureMixin):
        """Transformers that number their columns behind the name of the class."""
else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        MetaEstimatorMixin,
        OneToOneFeatureMixin,
        RegressorMixin,
        TransformerMixin,
    )

__all__ = [
    "ADD_A_PLAN",
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "MetaEstimatorMixin",
    "OneToOneFeatureMixin",
    "RegressorMixin",
    "TransformerMixin",
    "columns_of",
    "fitted_model",
    "is_private",
    "lacks_a_plan",
    "last_and_meaning",
    "last_step",
    "responds",
    "template_of",
]


# Remedy of estimators that charge a budget and have no plan.
ADD_A_PLAN = (
    "give its class privacy_plan(n_samples, n_features), which returns the PrivacySpent that its "
    "fit charges, as docs/developing.md shows"
)


def responds(model: Any, name: str) -> bool:
    """Return whether a model has a method, or an attribute that its fit sets."""
    return hasattr(model, name)


def fitted_model(model: Any) -> Any:
    """Return the fitted model chosen by a search; any other model unchanged."""
    return model.best_estimator_ if responds(model, "best_estimator_") else model


def template_of(model: Any) -> Any:
    """Return the model that a search or a wrapper fits; any other model unchanged."""
    return model.estimator if responds(model, "estimator") else model


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline; any other model unchanged."""
    while responds(model, "steps"):
        model = model.steps[-1][1]
    return model


def whom_it_protects(model: Any) -> dict[str, Any] | None:
    """Return name and rows of the unit in the schema that made a model, if one did."""
    last = last_step(fitted_model(last_step(model)))
    found: dict[str, Any] | None = getattr(last, "_protects", None)
    return found


def last_and_meaning(model: Any) -> tuple[Any, Any]:
    """Return the last step of a fitted pipeline, and the meaning of its input features.

    Steps that support this derive it from the meaning of their input; None is unknown.
    """
    meaning, known = None, True
    model = fitted_model(model)
    while responds(model, "steps"):
        for _, step in model.steps[:-1]:
            if step not in (None, "passthrough"):
                known = known and responds(step, "_meaning_after")
                meaning = step._meaning_after(meaning) if known else None
                known = meaning is not None
        model = fitted_model(model.steps[-1][1])
    return model, meaning


def columns_of(model: Any) -> int | None:
    """Return the number of columns that a model was fitted on; None if it is unknown."""
    return model.n_features_in_ if responds(model, "n_features_in_") else None


def is_private(step: Any) -> bool:
    """Return whether a step's fit is a private release, as `classify_step` reports."""
    return callable(getattr(step, "privacy_plan", None))


def lacks_a_plan(step: Any) -> bool:
    """Return whether a step charges a budget without stating its cost in advance."""
    if is_private(step) or isinstance(step, type) or not hasattr(step, "get_params"):
        return False
    return "accountant" in step.get_params(deep=False)
