"""Baselines of Ding et al. as scikit-learn classifiers: two sound ones, and two as they print them.

All are linear and binary, have no intercept, and minimise the mean loss plus ``penalty / 2`` times
the squared norm of the weights. Rows longer than 1 are scaled to norm 1, so that gradients of both
losses have norm at most 1. The label set and n are public. Neighbouring tables: one row replaced.
Noise comes from numpy's ordinary generator: they are for comparisons, not for releases.
"""

import math

import numpy as np
from _lazy_noise import descend
from scipy.sparse import csr_array, diags_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.accounting import GaussianEvent, PLDAccountant, UniformSampledEvent
from skdp.losses import LogisticLoss, SmoothedHingeLoss
from skdp.losses.base import evaluate, kernel_arguments
from skdp.mechanisms import analytic_gaussian_delta, analytic_gaussian_sigma


def make_loss(name, half_width=0.5):
    """Return skdp's loss of that name, "logistic" or "hinge"."""
    losses = {"logistic": LogisticLoss(), "hinge": SmoothedHingeLoss(half_width)}
    if name not in losses:
        raise ValueError(f"loss must be 'logistic' or 'hinge', got {name!r}.")
    return losses[name]


def shorten_rows(X):
    """Return rows in CSR form, those longer than 1 scaled to norm 1."""
    X = csr_array(X, dtype=np.float64)
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    return csr_array(diags_array(1.0 / np.maximum(norms, 1.0)) @ X)


def gradient_descent(X, signs, loss, penalty, max_iter):
    """Take `max_iter` steps ``1 / (m + beta)`` from zero on the penalised mean loss."""
    step = 1.0 / (2.0 * penalty + loss.smoothness(1.0))
    transposed = csr_array(X.T)
    weights = np.zeros(X.shape[1])
    for _ in range(max_iter):
        slopes = evaluate(loss, 1, signs * (X @ weights)) * signs
        weights -= step * (transposed @ slopes / len(signs) + penalty * weights)
    return weights


class Baseline(ClassifierMixin, BaseEstimator):
    """What the baselines share: parameters and how a release becomes a classifier.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter of one release, positive.
    delta : float, default=1e-6
        Privacy parameter of one release, in (0, 1).
    loss : {"logistic", "hinge"}, default="logistic"
        Loss of the margin; the hinge is smoothed.
    half_width : float, default=0.5
        Half-width of the smoothed kink.
    penalty : float, default=1e-3
        L2 penalty m, positive.
    max_iter : int or None, default=None
        Number of steps; None takes 1000 of gradient descent, ``n^2 - 1`` of stochastic descent.
    random_state : None, int or numpy Generator, default=None
        Source of rows and noise.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Released weights; ``intercept_`` is zero and ``classes_`` has the two labels.
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-6,
        *,
        loss="logistic",
        half_width=0.5,
        penalty=1e-3,
        max_iter=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.half_width = half_width
        self.penalty = penalty
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X, y):
        """Release weights once; ValueError if y has not two classes or the claim does not hold."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(f"{type(self).__name__} needs two classes in y.")
        self.coef_ = self.release(shorten_rows(X), 2.0 * codes - 1.0, 1)
        self.intercept_ = np.zeros(1)
        return self

    def decision_function(self, X):
        """Return the score of each row, positive for ``classes_[1]``."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return X @ self.coef_[0]

    def predict(self, X):
        """Return the label of each row."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class OutPert(Baseline):
    """Output perturbation by the classical Gaussian mechanism (OutPert of Ding et al.).

    Gradient descent from zero, then normal noise of standard deviation
    ``sqrt(2 log(1.25 / delta)) D / epsilon`` with ``D = 5 (m + beta) / (n m beta)``, where beta is
    the smoothness with the penalty. Parameters are those of `Baseline`.

    Notes
    -----
    Sound under replace-one: ``2 / (n m)`` bounds the sensitivity after any number of steps, and D
    is larger by ``2.5 (1 + m / beta)`` (``docs/proofs/output_perturbation.md``, Theorem 6). The
    classical calibration is proved for epsilon below 1; where the exact profile says that noise
    does not suffice, a release is refused.

    References
    ----------
    Zhang, Zheng, Mou & Wang (2017), "Efficient Private ERM for Smooth Objectives"; Dwork & Roth
    (2014), Theorem A.1. Ding et al., Lemma 1 and section V-A.
    """

    def sensitivity(self, n):
        """Return the printed bound D for n rows."""
        beta = make_loss(self.loss, self.half_width).smoothness(1.0) + self.penalty
        return 5.0 * (self.penalty + beta) / (n * self.penalty * beta)

    def noise_scale(self, n):
        """Return the standard deviation of the noise in each weight for n rows."""
        bound = self.sensitivity(n)
        sigma = math.sqrt(2.0 * math.log(1.25 / self.delta)) * bound / self.epsilon
        if analytic_gaussian_delta(sigma, self.epsilon, bound) > self.delta:
            raise ValueError(
                f"the classical calibration is not ({self.epsilon:g}, {self.delta:g})-private: "
                "take a smaller epsilon, or PrintedOpera."
            )
        return sigma

    def release(self, X, signs, times):
        """Return independent releases, of shape (times, n_features), each at the full price.

        `X` has rows of norm at most 1 in CSR form, `signs` labels -1 and 1.
        """
        sigma = self.noise_scale(len(signs))
        loss = make_loss(self.loss, self.half_width)
        steps = 1000 if self.max_iter is None else self.max_iter
        weights = gradient_descent(X, signs, loss, self.penalty, steps)
        rng = np.random.default_rng(self.random_state)
        return weights + sigma * rng.standard_normal((times, len(weights)))


class PrintedOpera(OutPert):
    """OPERA as printed: `OutPert` with the analytic Gaussian mechanism. Sound, with too much noise.

    Ding et al., Algorithm 1; Balle & Wang (2018), Theorem 8. `skdp.OperaLogisticRegression` and
    `skdp.OperaSVC` have the smaller sensitivity.
    """

    def noise_scale(self, n):
        """Return the standard deviation of the noise in each weight for n rows."""
        return analytic_gaussian_sigma(self.epsilon, self.delta, self.sensitivity(n))


class SgdPert(Baseline):
    """Stochastic gradient descent with noise in each of n^2 steps of one row (Bassily et al.).

    Step t moves by ``1 / (m n t)`` along n times a uniformly drawn row's gradient plus normal noise
    of standard deviation ``n sqrt(32 log(n / delta) log(1 / delta)) / epsilon``, whatever
    `max_iter`. A step costs the stored entries of its row (``_lazy_noise.py``). Parameters are
    those of `Baseline`.

    Notes
    -----
    Under replace-one a step's query moves by at most 2n. The printed proof amplifies by subsampling
    and uses strong composition for ``n^2`` steps. `certified_epsilon` composes the privacy-loss
    distributions of these very steps instead, and a release that it does not certify is refused.
    Weights are not projected: privacy does not need it, the theorem on accuracy does.

    References
    ----------
    Bassily, Smith & Thakurta (2014), "Private Empirical Risk Minimization: Efficient Algorithms and
    Tight Error Bounds", Algorithm 1, Theorems 2.1 and 2.4. Ding et al., section V-A.
    """

    def steps(self, n):
        """Return the number of steps for n rows."""
        return n * n - 1 if self.max_iter is None else self.max_iter

    def noise_scale(self, n):
        """Return the standard deviation of the noise in each step and coordinate for n rows."""
        logarithms = math.log(n / self.delta) * math.log(1.0 / self.delta)
        return n * math.sqrt(32.0 * logarithms) / self.epsilon

    def certified_epsilon(self, n):
        """Return an upper bound on the epsilon that the noise costs at delta, for n rows."""
        step = UniformSampledEvent(1, n, GaussianEvent(self.noise_scale(n) / (2.0 * n)))
        accountant = PLDAccountant("replace-one").compose(step, self.steps(n))
        return float(accountant.epsilon(self.delta))

    def release(self, X, signs, times):
        """Return independent releases; as `OutPert.release`."""
        n = len(signs)
        if not self.certified_epsilon(n) <= self.epsilon:
            raise ValueError(f"{type(self).__name__}: the noise does not give this epsilon.")
        return self.simulate(X, signs, times, self.steps(n), self.noise_scale(n))

    def simulate(self, X, signs, times, steps, sigma):
        """Return last iterates, of shape (times, n_features), for any steps and noise; no claim."""
        functions, numbers = kernel_arguments(make_loss(self.loss, self.half_width))
        rows = (X.data, X.indices, X.indptr)
        problem = (rows, signs, functions.tag, numbers, self.penalty)
        rng = np.random.default_rng(self.random_state)
        weights = np.zeros((times, X.shape[1]))
        for own in weights:
            descend(*problem, sigma, steps, rng, own, np.zeros(len(own), dtype=np.int64))
        return weights


class PrintedGrpua(SgdPert):
    """GRPUA as printed, **not private**: the noise is too small by a factor of 2n.

    `SgdPert` with noise calibrated to a sensitivity of 1 by the analytic Gaussian mechanism, while
    a step's query moves by up to 2n; epsilon and delta are those of one step. `release` refuses
    wherever that costs more; `simulate` is there for comparisons. Ding et al., Algorithm 2;
    ``docs/errata.md`` has the attacks.
    """

    def noise_scale(self, n):
        """Return the printed standard deviation of the noise, which does not depend on n."""
        return analytic_gaussian_sigma(self.epsilon, self.delta, 1.0)
