"""Calibration of the Gaussian mechanism: the exact (analytic) rule and the classical one."""

import math

from skdp.accounting.numerics import gaussian_profile
from skdp.base.parameters import plain_arguments


@plain_arguments
def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest noise scale that makes a Gaussian mechanism (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats, ``epsilon > 0``.
    delta : float
        Failure probability, in the open interval (0, 1).
    sensitivity : float, default=1.0
        L2 sensitivity of the query under the adjacency relation, positive.

    Returns
    -------
    float
        Standard deviation of the noise on each coordinate. It meets the target and exceeds the
        exact minimum by less than a relative 1e-9.

    See Also
    --------
    analytic_gaussian_epsilon : Privacy cost of a noise scale, as epsilon.
    analytic_gaussian_delta : Privacy cost of a noise scale, as delta.

    Notes
    -----
    The condition is necessary and sufficient (Balle and Wang, 2018, Theorem 8). Their Algorithm 1
    finds the same number. Here the profile is inverted in log space, which is accurate for epsilon
    from 1e-9 to 1e3 and delta from 1e-300 to 0.99.

    Examples
    --------
    >>> from skdp.mechanisms import analytic_gaussian_sigma
    >>> round(analytic_gaussian_sigma(1.0, 1e-5), 6)
    3.730632
    """
    check_positive("epsilon", epsilon)
    _check_delta(delta)
    check_positive("sensitivity", sensitivity)
    return check_representable(sensitivity / gaussian_profile.mu(float(epsilon), float(delta)))


@plain_arguments
def analytic_gaussian_epsilon(sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest epsilon for which a Gaussian mechanism is (epsilon, delta)-DP.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each coordinate, positive.
    delta, sensitivity
        As for `analytic_gaussian_sigma`.

    Returns
    -------
    float
        Epsilon in nats: an upper bound, tight to 1e-9 relative (1e-12 absolute near zero). Zero if
        delta covers the total variation distance.

    Notes
    -----
    Inverts the exact profile of Balle and Wang (2018), Theorem 8.

    Examples
    --------
    >>> from skdp.mechanisms import analytic_gaussian_epsilon
    >>> round(analytic_gaussian_epsilon(4.0, 1e-5), 6)
    0.926342
    """
    check_positive("sigma", sigma)
    _check_delta(delta)
    check_positive("sensitivity", sensitivity)
    return gaussian_profile.epsilon(float(sensitivity) / float(sigma), float(delta))


@plain_arguments
def analytic_gaussian_delta(sigma: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """Return the smallest delta for which a Gaussian mechanism is (epsilon, delta)-DP.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each coordinate, positive.
    epsilon : float
        Privacy parameter in nats, ``epsilon >= 0``.
    sensitivity : float, default=1.0
        L2 sensitivity of the query under the adjacency relation, positive.

    Returns
    -------
    float
        Delta in (0, 1]: an upper bound, tight to 1e-9 relative, and at least the smallest normal
        float.

    Notes
    -----
    The exact profile of Balle and Wang (2018), Theorem 8.

    Examples
    --------
    >>> from skdp.mechanisms import analytic_gaussian_delta
    >>> f"{analytic_gaussian_delta(4.0, 1.0):.3e}"
    '2.924e-06'
    """
    check_positive("sigma", sigma)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon must be a finite number >= 0, got {epsilon!r}.")
    check_positive("sensitivity", sensitivity)
    return gaussian_profile.delta(float(sensitivity) / float(sigma), float(epsilon))


@plain_arguments
def classical_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the noise scale of the classical Gaussian mechanism, for comparison.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats, in the open interval (0, 1), where the theorem applies.
    delta, sensitivity
        As for `analytic_gaussian_sigma`.

    Returns
    -------
    float
        ``sensitivity * sqrt(2 ln(1.25 / delta)) / epsilon``.

    See Also
    --------
    analytic_gaussian_sigma : The exact rule: never more noise, and valid for every epsilon.

    Notes
    -----
    Dwork and Roth (2014), Theorem A.1, whose proof needs epsilon < 1. For large epsilon the formula
    gives too little noise.

    Examples
    --------
    >>> from skdp.mechanisms import analytic_gaussian_sigma, classical_gaussian_sigma
    >>> round(classical_gaussian_sigma(0.5, 1e-5), 2), round(analytic_gaussian_sigma(0.5, 1e-5), 2)
    (9.69, 7.03)
    """
    check_positive("epsilon", epsilon)
    if epsilon >= 1:
        raise ValueError(
            f"classical_gaussian_sigma is proved for epsilon < 1 only (Dwork and Roth, 2014, "
            f"Theorem A.1) and gives too little noise beyond, got epsilon={epsilon!r}; "
            f"use analytic_gaussian_sigma."
        )
    _check_delta(delta)
    check_positive("sensitivity", sensitivity)
    return check_representable(sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon)


def check_positive(name: str, value: float) -> None:
    """Refuse a number that is not positive and finite."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}.")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(
            f"delta must lie in the open interval (0, 1), got {delta!r}; a Gaussian mechanism "
            f"is never (epsilon, 0)-DP."
        )


def check_representable(sigma: float) -> float:
    """Return a noise scale that is finite."""
    if not math.isfinite(sigma):
        raise ValueError(
            "the required noise scale exceeds the largest float; use a larger epsilon or a "
            "smaller sensitivity."
        )
    return float(sigma)
