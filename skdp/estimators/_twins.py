"""scikit-learn's own estimators with released weights, for tools that know those alone.

A twin predicts what the private model predicts, and holds nothing but what it has released.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer, MinMaxScaler

from skdp.sklearn_bases import responds


def linear_twin(model: Any) -> Any:
    """Return a logistic regression with softmax, or a support vector classifier."""
    # Of the support vector classifiers this is the one that converters know well.
    empty = LogisticRegression() if responds(model, "predict_proba") else SGDClassifier("hinge")
    twin = _with_weights(empty, model, model.coef_, model.intercept_)
    twin.classes_ = model.classes_
    return twin


def regressor_twin(model: Any) -> Pipeline:
    """Return a linear regression whose numbers are clipped; such steps suit converters alone."""
    line = _with_weights(LinearRegression(), model, model.coef_, model.intercept_)
    clipper = MinMaxScaler(feature_range=model._fitted_bounds, clip=True)
    clipper.scale_, clipper.min_, clipper.n_features_in_ = np.ones(1), np.zeros(1), 1
    return Pipeline([("line", line), ("clip", clipper)])


def one_vs_rest_twin(model: Any) -> OneVsRestClassifier:
    """Return logistic regressions for each class, whose probabilities are made to sum to one."""
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
