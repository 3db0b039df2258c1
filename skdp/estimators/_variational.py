"""Private variational inference for logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, logsumexp, ndtri
from sklearn.utils.validation import check_is_fitted

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import (
    Auto,
    VariationalPrivacy,
    check_choice,
    check_real,
    parameter,
    released,
)
from skdp.estimators._base import InterceptMixin
from skdp.estimators._mixins import LogisticMixin, PrivateClassifierMixin
from skdp.estimators._noisy_gradient import NoisyGradientModel
from skdp.losses.base import Loss
from skdp.models import Model
from skdp.plans.defaults import PublicNumbers
from skdp.plans.noisy_gradient import DPSGDChoices, NoisyGradientPlan
from skdp.plans.variational import account_for_noise, build_variational
from skdp.tables.inputs import validate_rows
from skdp.tables.places import row_by_row
from skdp.tables.row_sources import in_blocks


class VariationalLogisticRegression(LogisticMixin, InterceptMixin, NoisyGradientModel):
    r"""Bayesian logistic regression by differentially private variational inference.

    Independent Gaussians approximate the posterior of the weights. DP-SGD on Poisson batches fits
    their means and widths to the evidence bound; each record's gradient is clipped to
    `max_grad_norm`. Probabilities are averages over the posterior. Its widths include the privacy
    noise unless `noise_aware` is False. More than two classes are fitted one-vs-rest.

    Notes
    -----
    A fit releases two numbers per weight: a mean, and the mean curvature of the loss. Everything
    else is post-processing. The noise-aware posterior treats weights one at a time and is exact
    for linear steps with the released curvatures. Its intervals are too short in these cases, which
    ``docs/variational.md`` measures:

    - columns are strongly correlated;
    - a label is rare;
    - `data_norm` is far above the norms of the rows;
    - most gradients are clipped.

    See Also
    --------
    DPSGDClassifier : Clipped noisy gradients of a point estimate.
    ObjectivePerturbationLogisticRegression : Objective perturbation.

    References
    ----------
    Jalko, Dikmen & Honkela (2017), "Differentially Private Variational Inference for Non-conjugate
    Models". Khan & Lin (2017), for natural gradients. Zhu, Dong & Wang (2022), for the dominating
    pairs. Proof: :ref:`Theorem 1 of variational inference <variational-1>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import VariationalLogisticRegression
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> clf = VariationalLogisticRegression(epsilon=1.0, delta=1e-5, data_norm=10.0).fit(X, y)
    >>> clf.privacy_spent_.epsilon <= 1.0
    True
    >>> clf.predict_interval(X, confidence=0.9).shape
    (500, 2)
    """

    privacy: VariationalPrivacy = parameter(
        '{"dp-sgd"}',
        """Mechanism of the guarantee. ``"sampling"``, the release of samples from a posterior that
        was fitted without noise, has no guarantee and is refused.""",
        default="dp-sgd",
    )
    prior_precision: float | Auto = parameter(
        'float or "auto"',
        """Inverse of the prior variance of each coefficient, in the units of the features;
        positive. The intercept's prior standard deviation is `intercept_scaling` times theirs.
        ``"auto"`` trains with ``0.1 * data_norm**2``; a noise-aware posterior then averages over
        prior variances, weighted by the released means.""",
        default="auto",
    )
    noise_aware: bool = parameter(
        "bool",
        """Whether the posterior is conditional on the noisy release. False gives the posterior of
        variational inference that ignores the noise. Neither uses additional budget.""",
        default=True,
    )
    max_grad_norm: float | Auto = parameter(
        'float or "auto"',
        """Clipping norm of each record's gradient, in units of the loss per weight. ``"auto"``
        derives it from the noise level.""",
        default="auto",
    )
    coef_: np.ndarray = released(
        "ndarray of shape (1, n_features) or (n_classes, n_features)",
        "Private means of the coefficients.",
    )
    intercept_: np.ndarray = released(
        "ndarray of shape (1,) or (n_classes,)", "Private means of the intercepts."
    )
    coef_std_: np.ndarray = released(
        "ndarray of shape (1, n_features) or (n_classes, n_features)",
        "Private standard deviations of the coefficients.",
    )
    intercept_std_: np.ndarray = released(
        "ndarray of shape (1,) or (n_classes,)", "Private standard deviations of the intercepts."
    )
    noise_multiplier_: float = released(
        "float", "Standard deviation of the noise over the clipping norm; a public number."
    )

    def _check_parameters(self) -> None:
        if self.privacy == "sampling":
            raise ValueError(
                "privacy='sampling' releases samples from a posterior that was fitted without "
                "noise, which has no guarantee (docs/proofs/variational.md). Use privacy='dp-sgd'."
            )
        super()._check_parameters()
        check_choice("privacy", self.privacy, ("dp-sgd",))
        check_choice("noise_aware", self.noise_aware, (True, False))
        check_real("prior_precision", self.prior_precision, above=0.0, allowed=("auto",))
        remedy = "A record's gradient has norm up to about data_norm."
        self._check_length("max_grad_norm", 1e-6, 1e50, remedy)
        scaled = (
            1.0 if self.prior_precision == "auto" else self.prior_precision / self._row_bound**2
        )
        check_real("prior_precision / data_norm**2", scaled, at_least=1e-10, at_most=1e50)

    def _build_plan(self, model: Any, numbers: PublicNumbers) -> NoisyGradientPlan:
        self._check_batch_size(numbers.n_rows)
        units = model.units
        choices = DPSGDChoices(
            penalty=None,
            noise_multiplier=None,
            max_grad_norm=self._choose("max_grad_norm", units.gradient),
            batch_size=self._choose("batch_size"),
            max_iter=self._choose("max_iter"),
            solver="sgd",
            momentum=None,
            beta_1=0.0,
            beta_2=0.0,
            learning_rate="constant",
            initial_step=self._choose("learning_rate_init", units.step),
            final_share=1.0,
            decay_share=1.0,
            average=True,
        )
        # Precisions convert like penalties: by the square of a weight.
        prior = self._choose("prior_precision", units.penalty)
        return build_variational(model, numbers, choices, prior)

    def _loss(self, n_classes: int) -> Loss:
        return PrivateClassifierMixin._loss(self, n_classes)

    def _weights(self, model: Model) -> tuple[str, ...]:
        return "coef_", "intercept_", "coef_std_", "intercept_std_"

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        super()._publish(plan, records, released, spent)
        self.noise_multiplier_ = plan.noise_multiplier
        if self.noise_aware:
            means, curvatures = plan.model.split(released[0])
            learns_prior = self.prior_precision == "auto"
            posterior = account_for_noise(plan, means, curvatures, learns_prior)
            values = plan.model.in_user_units(*posterior)
            for name, value in zip(self._weights(plan.model), values, strict=True):
                setattr(self, name, value)

    def _scores(self, X: Any) -> np.ndarray:
        """Return log-odds of averaged probabilities; for several labels, their logarithms."""
        means, deviations = self._score_moments(X)
        logs = log_expected_share(means, deviations)
        if means.shape[1] > 1:
            return logs
        return (logs - log_expected_share(-means, deviations)).ravel()

    def _as_sklearn(self) -> Any:
        raise TypeError(
            "VariationalLogisticRegression has no counterpart in ONNX, since its probabilities are "
            "averages over a posterior."
        )

    @row_by_row
    def predict_interval(self, X: Any, confidence: float = 0.95) -> np.ndarray:
        """Return credible intervals of the predicted probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        confidence : float, default=0.95
            Posterior probability of each interval, in (0, 1); both tails are equal.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_classes, 2)
            Ends of the interval of the probability of ``classes_[1]``. With more than two
            classes, those of each class against the rest.

        Raises
        ------
        ValueError
            If `confidence` is not in (0, 1).
        """
        check_real("confidence", confidence, above=0.0, below=1.0)
        means, deviations = self._score_moments(X)
        reach = -ndtri(0.5 - 0.5 * confidence) * deviations
        ends = expit(np.stack([means - reach, means + reach], axis=-1))
        return ends[:, 0] if means.shape[1] == 1 else ends

    def _score_moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return means and standard deviations of scores, one column per output."""
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False, dtype=np.float64)
        moments = in_blocks(self._block_moments, X)
        return moments[:, : len(self.coef_)], moments[:, len(self.coef_) :]

    def _block_moments(self, X: Any) -> np.ndarray:
        """Return means, then standard deviations, of scores for rows in memory."""
        X = X.astype(np.float64, copy=False)
        squares = X.multiply(X).tocsr() if hasattr(X, "multiply") else X * X
        variances = np.asarray(squares @ (self.coef_std_**2).T) + self.intercept_std_**2
        return np.hstack([self._score_rows(X), np.sqrt(variances)])


def log_expected_share(means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Return the logarithm of the expected logistic function of normal scores.

    The trapezoidal rule integrates over the score if that is narrow, else over a logistic variable.
    Errors are about 1e-8 (``docs/proofs/variational.md``, section 4).
    """
    # sigma(z) = e^z sigma(-z): a shifted normal gives tiny values.
    squares = deviations**2
    far = means < -0.5 * squares
    shift = np.where(far, means + 0.5 * squares, 0.0)
    means = np.where(far, -means - squares, means)
    narrow = deviations < 1.75
    total = np.full(means.shape, -np.inf)
    safe = np.where(narrow, 1.0, deviations)
    for k in range(-50, 51):
        normal, logistic = 0.5 * k, 0.8 * k
        of_score = log_expit(means + deviations * normal) - 0.5 * normal**2
        of_noise = log_ndtr((means - logistic) / safe) + log_expit(logistic) + log_expit(-logistic)
        total = np.logaddexp(total, np.where(narrow, of_score, of_noise))
    steps = np.arange(-50, 51)
    normaliser = np.where(
        narrow,
        logsumexp(-0.125 * steps**2),
        logsumexp(log_expit(0.8 * steps) + log_expit(-0.8 * steps)),
    )
    return shift + total - normaliser
