"""Base of `PrivateCalibrator` and `PrivateThreshold`: a fitted model and one charged table."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import DeclaredParameters, check_integer, parameter, released
from skdp.base.scikit_learn import ClassifierMixin, MetaEstimatorMixin
from skdp.metrics.base import claims_of
from skdp.metrics.evaluation import PrivateEvaluation, ScoresRows
from skdp.metrics.release import ReleasePlan, ScoreTables
from skdp.plans.scores import log_odds
from skdp.reporting.leaks import WarnsOfScores


def _has_probabilities(adjusted: Any) -> bool:
    # Raises the AttributeError that the model itself would.
    model = getattr(adjusted, "estimator_", adjusted.estimator)
    return adjusted._calibrates or bool(model.predict_proba)


class _HasModel(MetaEstimatorMixin, DeclaredParameters):
    """Mixin with the fitted model that is adjusted."""

    estimator: Any = parameter(
        "fitted classifier",
        """Fitted model, preferably as ``sklearn.frozen.FrozenEstimator(model)``, which clones do
        not reset. For a model without ``predict_proba``, margins count as log odds.""",
        kw_only=False,
    )
    estimator_: Any = released("classifier", "Fitted model that is adjusted.")

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the model's training rows."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns of the model's training rows, if they had names."""
        return self.estimator_.feature_names_in_


class AdjustsModel(WarnsOfScores, ClassifierMixin, ScoresRows, _HasModel):
    """Base of estimators that adjust a fitted model by post-processing one table of its scores."""

    _listed: ClassVar[tuple[str, ...]] = (
        *("estimator", "epsilon", "delta", "method", "metric", "costs", "adjacency", "n_bins"),
        *("accountant", "random_state", "verbose", "threshold_", "intercept_", "slope_"),
        *("estimator_", "classes_", "n_features_in_", "feature_names_in_", "privacy_spent_"),
    )
    _added_texts: ClassVar[dict[str, str]] = {"epsilon": "It covers this fit only."}

    classes_: np.ndarray = released("ndarray of shape (n_classes,)", "Labels of the model.")
    n_features_in_: int = released("int", "Number of columns of the model.")
    feature_names_in_: np.ndarray = released(
        "ndarray of shape (n_features,)", "Column names of the model."
    )
    privacy_spent_: PrivacySpent = released(
        "PrivacySpent",
        """Guarantee of this fit. The model has a separate record; `privacy_statement` adds both,
        which is valid whether or not they used the same rows.""",
    )

    # The statement includes the cost of the model inside.
    _stands_on = "estimator_"
    _method = ".fit"
    _calibrates = False

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Learn the adjustment from rows, under differential privacy.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Private rows, in the format of the model. Use rows that the model has not seen.
        y : array of shape (n_samples,) or None, default=None
            Labels, all among the model's classes. None uses the label column of the table, for a
            pipeline of a schema.
        groups : array of shape (n_samples,) or None, default=None
            Patient id of each row. Each patient is then protected with all rows. None uses the id
            column of the table if it has one, for a pipeline of a schema.

        Returns
        -------
        self : estimator
            Fitted estimator. All attributes with a trailing underscore may be published.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError, TypeError
            For invalid parameters or input, before the charge; if the model fails on the rows,
            after the charge.
        BudgetExceededError
            If the charge exceeds the remaining budget; the rows are not used.
        """
        beside = {"model": self.estimator, "subgroups": None, "groups": groups}
        found: Self = self._release(X, y, beside)
        return found

    def privacy_plan(
        self, n_samples: int, n_features: int | None = None, groups: bool = False
    ) -> PrivacySpent:
        """Return the privacy record that `fit` would have; nothing is charged.

        Parameters
        ----------
        n_samples : int
            Number of rows, or of patients.
        n_features : int or None, default=None
            Not used, because the model is fitted.
        groups : bool, default=False
            Whether `fit` will have ``groups=``.

        Returns
        -------
        PrivacySpent
            Future value of `privacy_spent_`.
        """
        self._check_parameters()
        n_samples = check_integer("n_samples", n_samples, at_least=1)
        plan = self._plan_about(n_samples, self._about(self.estimator)[0])
        return self._spent(plan, groups, claims_of(self.estimator))

    def predict(self, X: Any) -> np.ndarray:
        """Return predicted labels.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows, in the format of the model.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self.decision_function(X)
        codes = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return adjusted log odds.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows, in the format of the model.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Log odds. With two classes, values of at least 0 predict ``classes_[1]``.
        """
        check_is_fitted(self)
        found = self._adjust(self._log_odds(X))
        return found[:, 0] if found.shape[1] == 1 else found

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities; a calibrator adjusts them, a threshold leaves them unchanged.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows, in the format of the model.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        check_is_fitted(self)
        return self._probabilities(X)

    @abstractmethod
    def _adjust(self, found: np.ndarray) -> np.ndarray:
        """Adjust log odds, one column for each table."""

    def _probabilities(self, X: Any) -> np.ndarray:
        return self.estimator_.predict_proba(X)

    @abstractmethod
    def _learn(self, tables: ScoreTables) -> None:
        """Set the attributes computed from the released tables."""

    def _check_parameters(self) -> None:
        try:
            check_is_fitted(self.estimator)
        except NotFittedError:
            raise NotFittedError(
                f"{type(self).__name__} adjusts a fitted model: fit it first, on other rows, and "
                "pass sklearn.frozen.FrozenEstimator(model), which stays fitted when cloned."
            ) from None
        if not hasattr(self.estimator, "classes_"):
            raise TypeError(f"{type(self.estimator).__name__} has no classes_: pass a classifier.")
        super()._check_parameters()

    def _thresholds(self) -> tuple[float, ...]:
        return (0.5,)

    def _of_seed(self) -> PrivateEvaluation:
        return PrivateEvaluation(
            self.epsilon,
            self.delta,
            thresholds=self._thresholds(),
            n_bins=self.n_bins,
            adjacency=self._relation,
        )

    def _result(
        self, plan: ReleasePlan, records: Any, released: ScoreTables, spent: PrivacySpent
    ) -> Self:
        self.estimator_, self.classes_ = self.estimator, released.classes
        self._learn(released)
        self.privacy_spent_ = spent
        return self

    def _log_odds(self, X: Any) -> np.ndarray:
        """Return the model's log odds, or its margins; one column for each table."""
        if not hasattr(self.estimator_, "predict_proba"):
            margins = np.asarray(self.estimator_.decision_function(X), dtype=np.float64)
            return margins.reshape(len(margins), -1)
        found = log_odds(np.asarray(self.estimator_.predict_proba(X), dtype=np.float64))
        return found if found.shape[1] > 2 else found[:, 1:]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
