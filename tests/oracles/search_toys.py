"""Tiny private estimators for tests of searches: quick, and able to misbehave on demand."""

import logging
import random
import sys
import threading
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state

from skdp.accounting import GaussianEvent
from skdp.budget.charging import ChargesBudget, charge_fit
from skdp.mechanisms import (
    GaussianMechanism,
    analytic_gaussian_epsilon,
    analytic_gaussian_sigma,
    resolve_random_state,
)
from skdp.reporting import PrivacySpent


class NoisyCount(ChargesBudget, ClassifierMixin, BaseEstimator):
    """Release the number of positive labels with Gaussian noise; predict by a threshold on X.

    `charged` makes fit charge that many times the noise that its plan named, and `charges` how
    often; `fails` makes it raise an error that quotes a row.
    """

    fits = 0

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-6,
        *,
        adjacency="replace-one",
        classes=None,
        threshold=0.0,
        charged=1.0,
        charges=1,
        fails=False,
        accountant=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.classes = classes
        self.threshold = threshold
        self.charged = charged
        self.charges = charges
        self.fails = fails
        self.accountant = accountant
        self.random_state = random_state

    def privacy_plan(self, n_samples, n_features, n_classes=2):
        return self._spent(1.0)

    def _spent(self, charged):
        sigma = analytic_gaussian_sigma(self.epsilon, self.delta)
        own = analytic_gaussian_epsilon(charged * sigma, self.delta)  # a record is never false
        return PrivacySpent(
            epsilon=max(self.epsilon, own),
            delta=self.delta,
            adjacency=self.adjacency,
            event=GaussianEvent(charged * sigma),
            accountant="gdp",
            mechanism="noisy count",
            assumptions=(),
            released=("count_",),
            seeded=False,
        )

    def fit(self, X, y):
        for _ in range(self.charges):
            charge_fit(self, self._spent(self.charged))
        NoisyCount.fits += 1
        if self.fails:
            raise ValueError(f"cannot bear the row {X[0]}")
        self.classes_ = np.unique(y) if self.classes is None else np.asarray(self.classes)
        self.n_features_in_ = X.shape[1]
        self.privacy_spent_ = self._spent(1.0)
        stream = resolve_random_state(self.random_state)
        sigma = self.privacy_spent_.event.noise_multiplier
        mechanism = GaussianMechanism(sensitivity=1.0, sigma=sigma, stream=stream, label="count")
        positives = np.array([np.sum(np.asarray(y) == self.classes_[1])], dtype=float)
        self.count_ = float(mechanism.release(positives)[0])
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X)[:, 0] > self.threshold).astype(int)]


class NoisyCentre(ChargesBudget, TransformerMixin, BaseEstimator):
    """Subtract a noisy mean of columns that are clipped to [-1, 1]."""

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-6,
        *,
        adjacency="replace-one",
        accountant=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.accountant = accountant
        self.random_state = random_state

    def privacy_plan(self, n_samples, n_features):
        return PrivacySpent(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            event=GaussianEvent(analytic_gaussian_sigma(self.epsilon, self.delta)),
            accountant="gdp",
            mechanism="noisy mean",
            assumptions=(),
            released=("mean_",),
            seeded=False,
        )

    def fit(self, X, y=None):
        X = np.clip(np.asarray(X, dtype=float), -1.0, 1.0)
        spent = self.privacy_plan(*X.shape)
        charge_fit(self, spent)
        stream = resolve_random_state(self.random_state)
        reach = (2.0 if self.adjacency == "replace-one" else 1.0) * np.sqrt(X.shape[1])
        mechanism = GaussianMechanism(
            sensitivity=reach,
            sigma=reach * spent.event.noise_multiplier,
            stream=stream,
            label="sum of columns",
        )
        self.mean_ = mechanism.release(X.sum(axis=0)) / len(X)
        self.n_features_in_ = X.shape[1]
        self.privacy_spent_ = spent
        return self

    def transform(self, X):
        return np.clip(np.asarray(X, dtype=float), -1.0, 1.0) - self.mean_

    def get_feature_names_out(self, input_features=None):
        return np.array([f"x{i}" for i in range(self.n_features_in_)])


class Tally:
    """A budget that remembers what it was asked for, and may refuse."""

    def __init__(self, refuses=None):
        self.charges = []
        self.refuses = refuses

    def reserve(self, event, **details):
        if self.refuses is not None:
            raise self.refuses
        self.charges.append((event, details))

    def __deepcopy__(self, memo):
        return self


def fit_once(model, X, y):
    """Fit in a worker, which must be able to import this function."""
    return model.fit(X, y).coef_


def speak():
    print("a run printed")
    print("a run complained", file=sys.stderr)
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(b"raw")
    sys.stdout.writelines(["several", "lines"])
    warnings.warn("a run warned", UserWarning, stacklevel=1)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("a run warned again", FutureWarning, stacklevel=1)
    logging.getLogger("somebody").critical("a run logged")
    np.array([1.0]) / np.array([0.0])


class Loud(TransformerMixin, BaseEstimator):
    """Says all it can, from its own thread and from another."""

    _learns_from_rows = False

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        check_random_state(None).uniform()
        random.random()
        speak()
        other = threading.Thread(target=speak)
        other.start()
        other.join()
        return X
