"""What a fitted search does as its best estimator would."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.model_selection._display import ShowsResults
from skdp.model_selection._scoring import RowScorer, resolve_scoring
from skdp.sklearn_bases import BaseEstimator, MetaEstimatorMixin
from skdp.tables.places import in_memory


def _has(name: str) -> Callable[[Any], bool]:
    """Return the condition that the best estimator, or the template, has a method."""

    def check(search: Any) -> bool:
        if not search._has_model():
            raise AttributeError(
                f"This {type(search).__name__} trains no final model (method={search.method!r}, "
                f"refit={search.refit!r}), so that it has no {name}: use best_params_."
            )
        # Raises the AttributeError that the estimator itself would.
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


def _delegate(name: str, what: str) -> Any:
    """Return a method that does as the best estimator's of the same name."""

    def method(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X)

    method.__name__, method.__qualname__ = name, f"DelegatesToBest.{name}"
    method.__doc__ = f"Return the {what} of the best estimator, of rows as its `{name}` takes."
    return available_if(_has(name))(method)


class DelegatesToBest(ShowsResults, MetaEstimatorMixin, BaseEstimator):
    """Prediction, tags and metadata routing of a search."""

    estimator: Any
    method: Any
    refit: Any
    scoring: Any
    best_estimator_: Any

    def _scorer(self) -> RowScorer:
        return resolve_scoring(self.scoring, self.estimator)

    def _has_model(self) -> bool:
        if hasattr(self, "best_params_"):
            return hasattr(self, "best_estimator_")
        return bool(self.refit) if self.method == "cv" else True

    predict = _delegate("predict", "predictions")
    predict_proba = _delegate("predict_proba", "class probabilities")
    predict_log_proba = _delegate("predict_log_proba", "logarithms of the class probabilities")
    decision_function = _delegate("decision_function", "scores")
    transform = _delegate("transform", "transformed rows")
    inverse_transform = _delegate("inverse_transform", "rows, transformed back,")

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean score of the best estimator on the given rows, without noise.

        Parameters
        ----------
        X : array-like
            Rows; if they are private, so is the result.
        y : array-like
            Labels.
        """
        _has("score")(self)
        check_is_fitted(self)
        X, y = in_memory(X, y)
        return float(np.mean(self._scorer().values(self.best_estimator_, X, y)))

    @property
    def classes_(self) -> Any:
        """Labels that the best estimator knows."""
        _has("classes_")(self)
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in `fit`."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"{type(self).__name__} has no n_features_in_ before a model is fitted."
            )
        return int(self.best_estimator_.n_features_in_)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata of `fit` reach the estimator."""
        fits = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=fits)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        for kind in ("classifier", "regressor", "transformer", "input", "target"):
            setattr(tags, f"{kind}_tags", deepcopy(getattr(inner, f"{kind}_tags")))
        return tags
