"""Event and privacy cost of noisy gradient descent on sampled batches."""

from __future__ import annotations

from fractions import Fraction

from skdp.accounting.accountants import resolve_accountant
from skdp.accounting.accountants.base import Accountant
from skdp.accounting.checks import check_real
from skdp.accounting.events import (
    Event,
    GaussianEvent,
    PoissonSampledEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.value import PrivacyValue
from skdp.base.parameters import Adjacency, Sampling


def dpsgd_event(
    noise_multiplier: float, sample_rate: float, steps: int, *, sampling: str = "poisson"
) -> Event:
    """Return the event of noisy gradient descent on sampled batches."""
    inner = GaussianEvent(noise_multiplier)
    if sampling == "poisson":
        return RepeatedEvent(PoissonSampledEvent(sample_rate, inner), steps)
    if sampling != "uniform":
        raise ValueError(f"sampling must be 'poisson' or 'uniform', got {sampling!r}.")
    sample_rate = check_real("dpsgd_event", "sample_rate", sample_rate)
    if not 0 < sample_rate <= 1:
        raise ValueError(f"sample_rate must lie in (0, 1], got {sample_rate!r}.")
    ratio = Fraction(sample_rate).limit_denominator(10**8)
    if ratio.numerator / ratio.denominator < sample_rate:
        # No small fraction is that float: round the rate up, which never understates the cost.
        ratio = Fraction(sample_rate)
    return RepeatedEvent(UniformSampledEvent(ratio.numerator, ratio.denominator, inner), steps)


def dpsgd_epsilon(
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    delta: float,
    *,
    adjacency: Adjacency = "add-remove",
    accountant: str | type[Accountant] = "pld",
    sampling: Sampling = "poisson",
) -> PrivacyValue:
    """Return the epsilon of noisy gradient descent on sampled batches.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the summed gradient, divided by the clipping norm;
        positive.
    sample_rate : float
        Probability that a record enters a batch, in [0, 1]. For uniform sampling: batch size
        divided by data set size, in (0, 1].
    steps : int
        Number of steps, fixed in advance.
    delta : float
        Failure probability, in [0, 1).
    adjacency, accountant, sampling
        As for `calibrate_noise_multiplier`.

    Returns
    -------
    PrivacyValue
        Upper bound on epsilon in nats; it carries a lower bound.

    Raises
    ------
    UnsupportedEventError
        If the accountant has no proved bound for this sampling under this adjacency.

    Examples
    --------
    >>> from skdp.accounting import dpsgd_epsilon
    >>> round(dpsgd_epsilon(4.0, 0.01, 10_000, 1e-5), 3)
    0.947
    """
    event = dpsgd_event(noise_multiplier, sample_rate, steps, sampling=sampling)
    return resolve_accountant(accountant)(adjacency).compose(event).epsilon(delta)
