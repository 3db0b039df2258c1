"""Predictions and losses of private models, and their scikit-learn twins.

A twin makes the same predictions and contains only released values.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_expit, log_softmax
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer, MinMaxScaler

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import HingeLoss, check_integer, check_real, parameter, released
from skdp.base.scikit_learn import ClassifierMixin, responds
from skdp.estimators._base import PrivateModel
from skdp.estimators.labels import encode_labels
from skdp.fitting import PrivateFit
from skdp.losses import LogisticLoss, OneVsRestLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.losses.base import Loss, MarginLoss
from skdp.reporting.leaks import WarnsOfScores
from skdp.tables.places import row_by_row


class PrivateClassifierMixin(WarnsOfScores, ClassifierMixin, PrivateModel):
    """Labels and predictions of classifiers; comes before their base."""

    classes: Any = parameter(
        "array-like or None",
        "Public label set. None reads it from `y`; the privacy statement then reports this.",
        default=None,
    )
    classes_: np.ndarray = released("ndarray of shape (n_classes,)", "Labels.")
    coef_: np.ndarray = released(
        "ndarray of shape (1, n_features) or (n_classes, n_features)", "Private coefficients."
    )
    intercept_: np.ndarray = released(
        "ndarray of shape (1,) or (n_classes,)", "Private intercepts."
    )

    _public: ClassVar[tuple[str, ...]] = ("classes_",)

    def privacy_plan(
        self, n_samples: int, n_features: int, n_classes: int = 2, groups: bool = False
    ) -> PrivacySpent:
        """Return the privacy cost of `fit` on a table of a given public shape.

        Nothing is charged and no data are needed: the noise of a fit depends only on the
        parameters and on public numbers.

        Parameters
        ----------
        n_samples : int
            Number of rows, or of ids with `groups`.
        n_features : int
            Number of columns.
        n_classes : int, default=2
            Number of labels; ignored if `classes` is given.
        groups : bool, default=False
            Whether `fit` will receive ``groups=``.

        Returns
        -------
        PrivacySpent
            The record that the fit would store in `privacy_spent_`.

        Examples
        --------
        >>> from skdp import DPSGDClassifier
        >>> classifier = DPSGDClassifier(epsilon=1.0, data_norm=1.0)
        >>> plan = classifier.privacy_plan(n_samples=5000, n_features=20)
        >>> plan.adjacency, bool(plan.epsilon <= 1.0)
        ('replace-one', True)
        """
        self._check_parameters()
        n_samples = check_integer("n_samples", n_samples, at_least=1)
        n_features = check_integer("n_features", n_features, at_least=1)
        if self.classes is not None:
            n_classes = np.unique(np.asarray(self.classes)).size
        n_classes = check_integer("n_classes", n_classes, at_least=2)
        return self._account(self._plan_shape((n_samples, n_features), n_classes, groups))

    @row_by_row
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes, those of ``classes_[1]``.
        """
        return self._scores(X)

    @row_by_row
    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the largest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _as_sklearn(self) -> Any:

        return linear_twin(self)

    def _loss(self, n_classes: int) -> Loss:
        loss: Loss = self._part_loss()
        return loss if n_classes == 2 else OneVsRestLoss(loss, n_classes)

    def _encode_targets(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels, codes = encode_labels(y, self.classes)
        return codes, labels

    def _about_targets(self) -> str:
        if self.classes is None:
            return "the label set was read from y and is assumed to be public"
        return "the label set classes= is public"

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        super()._publish(plan, records, released, spent)
        self.classes_ = records.labels


class LogisticMixin(PrivateClassifierMixin):
    """Classifiers with a log-likelihood as loss, and their probabilities."""

    @row_by_row
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    @row_by_row
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the class probabilities, accurate if these underflow.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities in the order of ``classes_``.
        """
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return self._log_shares(scores)
        return np.column_stack([log_expit(-scores), log_expit(scores)])

    def _log_shares(self, scores: np.ndarray) -> np.ndarray:
        return log_softmax(scores, axis=1)

    def _part_loss(self) -> LogisticLoss:
        return LogisticLoss()

    def _loss(self, n_classes: int) -> Loss:
        return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)


class SmoothedHingeMixin(PrivateClassifierMixin):
    """Private support vector classifiers with the smoothed hinge loss, or a custom one."""

    loss: HingeLoss | MarginLoss = parameter(
        '"hinge" or object',
        """Loss of the margin. ``"hinge"`` is smoothed over `half_width`. Or an object of a class
        of `skdp.losses`, such as ``LogisticLoss()``, or of a custom class that satisfies the
        conditions of the theorem; see ``docs/developing.md``.""",
        default="hinge",
    )
    half_width: float = parameter(
        "float",
        "Half-width h of the smoothed kink; the loss is ``1/(2h)``-smooth in the margin.",
        default=0.5,
    )

    def _part_loss(self) -> Loss:
        return self._given_loss or SmoothedHingeLoss(half_width=float(self.half_width))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_loss(MarginLoss, "hinge")
        check_real("half_width", self.half_width, at_least=1e-3, at_most=1e3)


class GivenNoiseMixin(PrivateFit):
    """Noise that is calibrated to (epsilon, delta), or given, with epsilon as an upper limit."""

    epsilon: float | None = parameter(  # type: ignore[assignment]
        "float or None",
        """Privacy parameter of one fit, positive. With `noise_multiplier` it is an upper limit: a
        fit that would exceed it is refused before any row is used. None sets no limit.""",
        default=1.0,
        kw_only=False,
    )
    noise_multiplier: float | None = parameter(
        "float or None",
        """Standard deviation of the noise, divided by `max_grad_norm`. None calibrates it to
        (epsilon, delta).""",
        default=None,
    )

    _special_epsilons: ClassVar[tuple[str | None, ...]] = (None,)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real(
            "noise_multiplier",
            self.noise_multiplier,
            at_least=1e-6,
            at_most=1e50,
            allowed=(None,),
            remedy="None calibrates it to (epsilon, delta).",
        )
        if self.epsilon is None and self.noise_multiplier is None:
            raise ValueError(
                "epsilon=None requires noise_multiplier: one of the two must be given."
            )

    def _claim(self, epsilon: float) -> float:
        """Return the epsilon to report: of the given noise, or the target of the calibration."""
        if self.noise_multiplier is None:
            return epsilon if self.epsilon is None else float(self.epsilon)
        if math.isinf(epsilon):
            raise ValueError(
                f"noise_multiplier={self.noise_multiplier:g} gives no finite epsilon at "
                f"delta={self.delta:g}. Use a larger one."
            )
        if self.epsilon is not None and epsilon > self.epsilon:
            raise ValueError(
                f"noise_multiplier={self.noise_multiplier:g} would spend epsilon={epsilon:.6g} at "
                f"delta={self.delta:g}, which exceeds epsilon={self.epsilon:g}. Use a larger "
                "noise_multiplier or epsilon, or set epsilon=None for no limit."
            )
        return epsilon


def linear_twin(model: Any) -> Any:
    """Return a logistic regression with softmax, or a support vector classifier."""
    # Converters support SGDClassifier best among the support vector classifiers.
    empty = LogisticRegression() if responds(model, "predict_proba") else SGDClassifier("hinge")
    twin = _with_weights(empty, model, model.coef_, model.intercept_)
    twin.classes_ = model.classes_
    return twin


def regressor_twin(model: Any) -> Pipeline:
    """Return a linear regression with clipped predictions; its steps suit only converters."""
    line = _with_weights(LinearRegression(), model, model.coef_, model.intercept_)
    clipper = MinMaxScaler(feature_range=model._fitted_bounds, clip=True)
    clipper.scale_, clipper.min_, clipper.n_features_in_ = np.ones(1), np.zeros(1), 1
    return Pipeline([("line", line), ("clip", clipper)])


def one_vs_rest_twin(model: Any) -> OneVsRestClassifier:
    """Return one logistic regression per class, with normalised probabilities."""
    twin = OneVsRestClassifier(LogisticRegression())
    twin.classes_ = model.classes_
    twin.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(model.classes_)
    twin.n_features_in_ = model.n_features_in_
    twin.estimators_ = []
    for coef, intercept in zip(model.coef_, np.atleast_1d(model.intercept_), strict=True):
        part = _with_weights(LogisticRegression(), model, coef[None], np.array([intercept]))
        part.classes_ = np.array([0, 1])
        twin.estimators_.append(part)
    return twin


def network_twin(model: Any) -> MLPClassifier:
    """Return a network of dense layers."""
    twin = MLPClassifier(activation=model.activation_)
    names = ("coefs_", "intercepts_", "n_layers_", "n_outputs_", "out_activation_")
    for name in (*names, "classes_", "n_features_in_"):
        setattr(twin, name, getattr(model, name))
    twin._label_binarizer = LabelBinarizer().fit(model.classes_)
    return twin


def _with_weights(twin: Any, model: Any, coef: np.ndarray, intercept: Any) -> Any:
    twin.coef_ = np.atleast_2d(coef)
    twin.intercept_ = np.broadcast_to(np.asarray(intercept, dtype=np.float64), len(twin.coef_))
    twin.n_features_in_ = model.n_features_in_
    return twin
