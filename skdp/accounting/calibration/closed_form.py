"""Noise from closed-form theorems alone: amplification by subsampling and advanced composition.

This is the classical route to the noise of stochastic gradient methods. It needs two to nine times
the noise of numerical composition, and is kept because it can be checked by hand.
"""

from __future__ import annotations

import math

from skdp.accounting.accountants.advanced_composition import check_split, mean_loss
from skdp.accounting.calibration.target import check_count, check_positive, check_rate, check_real
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.bracket import golden_section, narrow_bracket
from skdp.choices import PrintedMeanTerm
from skdp.exceptions import CalibrationError
from skdp.parameters import plain_arguments

_LARGEST_STEP_DELTA = 0.99  # a step may fail with a larger probability, but gains nothing by it


@plain_arguments
def composition_noise_multiplier(
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    *,
    mean_term: PrintedMeanTerm = "tanh",
    split: float | str = "best",
) -> float:
    """Return the noise multiplier that closed-form composition prescribes under replace-one.

    Parameters
    ----------
    epsilon : float
        Target in nats, positive.
    delta : float
        Target failure probability, in (0, 1).
    sample_rate : float
        Batch size over data set size, in (0, 1]; batches are uniform subsets of fixed size.
    steps : int
        Number of steps, fixed in advance, at least 1.
    mean_term : {"tanh", "printed"}, default="tanh"
        Bound on the expected privacy loss of an eps-DP step: ``eps tanh(eps / 2)``, or the looser
        ``eps (e^eps - 1)`` of the original theorem.
    split : float or "best", default="best"
        Share of ``delta`` spent on composition, in (0, 1); the steps share the rest. ``"best"``
        takes the share that needs the least noise.

    Returns
    -------
    float
        ``sigma / C``, where ``C`` bounds the norm of one record's contribution to the query.
        Replacing a record moves the query by up to ``2 C``.

    Raises
    ------
    CalibrationError
        If the noise would not be representable.

    Notes
    -----
    Each step is an analytic Gaussian mechanism (Balle and Wang, 2018), (eps_0, delta_0)-DP on its
    batch, hence (log(1 + p (e^eps_0 - 1)), p delta_0)-DP on the data
    (Balle, Barthe and Gaboardi, 2018, Theorem 9). The steps compose to
    ``eps_s sqrt(2 T ln(1/delta')) + T m(eps_s)`` at ``T p delta_0 + delta'`` (Dwork, Rothblum and
    Vadhan, 2010, Theorem III.3), with ``m`` the bound chosen by ``mean_term``.

    Examples
    --------
    >>> from skdp.accounting import composition_noise_multiplier
    >>> round(composition_noise_multiplier(1.0, 1e-5, sample_rate=0.01, steps=1000), 2)
    17.03
    """
    _check(epsilon, delta, sample_rate, steps, mean_term)
    check_split(split)
    if split == "best":
        mu = _best_mu(epsilon, delta, sample_rate, steps, mean_term)
    else:
        mu = _step_mu(epsilon, delta, sample_rate, steps, mean_term, float(split))
    if not mu > 0.0 or not math.isfinite(2.0 / mu):
        raise CalibrationError(
            f"no representable noise meets epsilon={epsilon!r}, delta={delta!r} over {steps} "
            f"steps by closed-form composition; raise the target or take fewer steps."
        )
    return 2.0 / mu


def _check(epsilon: float, delta: float, sample_rate: float, steps: int, mean_term: str) -> None:
    check_positive("epsilon", epsilon)
    if not 0 < check_real("delta", delta) < 1:
        raise ValueError(f"delta must lie in (0, 1), got {delta!r}.")
    check_rate("sample_rate", sample_rate)
    check_count("steps", steps)
    if mean_term not in ("tanh", "printed"):
        raise ValueError(f"mean_term must be 'tanh' or 'printed', got {mean_term!r}.")


def _composed(step_epsilon: float, steps: int, delta_prime: float, mean_term: str) -> float:
    """Epsilon of the composition of ``steps`` pure-DP steps at ``delta_prime``."""
    spread = step_epsilon * math.sqrt(-2.0 * steps * math.log(delta_prime))
    return spread + steps * mean_loss(step_epsilon, mean_term)


def _step_epsilon(epsilon: float, steps: int, delta_prime: float, mean_term: str) -> float:
    """Largest epsilon per step, rounded down, whose composition stays within ``epsilon``."""
    # Composition is convex in the step's epsilon and at least linear, which brackets the root.
    high = epsilon / math.sqrt(-2.0 * steps * math.log(delta_prime))
    low, _ = narrow_bracket(
        lambda x: epsilon - _composed(x, steps, delta_prime, mean_term), 0.0, high
    )
    return low * (1.0 - 1e-14)


def _step_mu(
    epsilon: float, delta: float, rate: float, steps: int, mean_term: str, split: float
) -> float:
    """Sensitivity over noise scale of one step, for a given share of delta."""
    step_epsilon = _step_epsilon(epsilon, steps, split * delta, mean_term)
    step_delta = min((1.0 - split) * delta / (steps * rate), _LARGEST_STEP_DELTA)
    if step_epsilon <= 0.0 or step_delta <= 0.0:
        return 0.0
    # log(1 + (e^x - 1)/p), written so that it does not overflow.
    if step_epsilon > 30.0:
        unamplified = step_epsilon - math.log(rate)
        unamplified += math.log1p(-(1.0 - rate) * math.exp(-step_epsilon))
    else:
        unamplified = math.log1p(math.expm1(step_epsilon) / rate)
    return gaussian_profile.mu(unamplified * (1.0 - 1e-14), step_delta * (1.0 - 1e-14))


def _best_mu(epsilon: float, delta: float, rate: float, steps: int, mean_term: str) -> float:
    """Maximise `_step_mu` over the share of delta, by golden section on its log-odds."""

    def value(log_odds: float) -> float:
        share = 1.0 / (1.0 + math.exp(-log_odds))
        return _step_mu(epsilon, delta, rate, steps, mean_term, share)

    return -golden_section(lambda log_odds: -value(log_odds), -18.0, 18.0, 60)[1]
