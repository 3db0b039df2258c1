"""scikit-learn's own classifiers with released weights, for tools that know those alone.

A twin predicts what the private model predicts, and holds nothing but what it has released.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import LabelBinarizer


def linear_twin(model: Any) -> LogisticRegression:
    """Return a logistic regression with softmax; of support vector classifiers, for its scores."""
    return _with_weights(LogisticRegression(), model, model.coef_, model.intercept_)


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
    twin.coef_, twin.classes_ = np.atleast_2d(coef), model.classes_
    twin.intercept_ = np.broadcast_to(np.asarray(intercept, dtype=np.float64), len(twin.coef_))
    twin.n_features_in_ = model.n_features_in_
    return twin
