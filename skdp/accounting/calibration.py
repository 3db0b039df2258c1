"""How much noise: the smallest noise multiplier that keeps a plan within its privacy target."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from skdp.accounting import gaussian_profile
from skdp.accounting._base import Accountant
from skdp.accounting.events import (
    Event,
    GaussianEvent,
    PoissonSampledEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.exceptions import CalibrationError

_RELATIVE_TOLERANCE = 1e-4
_MAX_EVALUATIONS = 100


def resolve_accountant(accountant: str | type[Accountant]) -> type[Accountant]:
    """Return the accountant class that a name stands for.

    Parameters
    ----------
    accountant : {"pld", "rdp", "gdp"} or Accountant class
        A name, or a class, which is returned as it is.

    Returns
    -------
    type
        A subclass of `Accountant`.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if isinstance(accountant, type) and issubclass(accountant, Accountant):
        return accountant
    from skdp.accounting.gdp import GDPAccountant
    from skdp.accounting.pld import PLDAccountant
    from skdp.accounting.rdp import RDPAccountant

    known: dict[object, type[Accountant]] = {
        cls.name: cls for cls in (PLDAccountant, RDPAccountant, GDPAccountant)
    }
    if accountant not in known:
        raise ValueError(
            f"accountant must be one of {tuple(known)} or an Accountant class, got {accountant!r}."
        )
    return known[accountant]


def dpsgd_event(
    noise_multiplier: float, sample_rate: float, steps: int, *, sampling: str = "poisson"
) -> Event:
    """Describe noisy gradient descent on sampled batches.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the summed gradient over the clipping norm, positive.
    sample_rate : float
        Probability that a record enters a batch; for uniform sampling batch size over data set
        size.
    steps : int
        Number of steps, at least 1.
    sampling : {"poisson", "uniform"}, default="poisson"
        Independent inclusion of each record, or a uniform subset of fixed size.

    Returns
    -------
    Event
        The repeated step.
    """
    inner = GaussianEvent(noise_multiplier)
    if sampling == "poisson":
        return RepeatedEvent(PoissonSampledEvent(sample_rate, inner), steps)
    if sampling != "uniform":
        raise ValueError(f"sampling must be 'poisson' or 'uniform', got {sampling!r}.")
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
    adjacency: str = "add-remove",
    accountant: str | type[Accountant] = "pld",
    sampling: str = "poisson",
) -> float:
    """Return the epsilon that noisy gradient descent on sampled batches costs.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the summed gradient over the clipping norm, positive.
    sample_rate : float
        Probability that a record enters a batch, in [0, 1]; for uniform sampling batch size over
        data set size, in (0, 1].
    steps : int
        Number of steps, fixed in advance.
    delta : float
        Failure probability, in [0, 1).
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        The relation between neighbouring data sets.
    accountant : {"pld", "rdp", "gdp"} or Accountant class, default="pld"
        Who computes the bound.
    sampling : {"poisson", "uniform"}, default="poisson"
        Independent inclusion of each record, or a uniform subset of fixed size (replace-one only).

    Returns
    -------
    float
        An upper bound on epsilon, in nats.

    Raises
    ------
    ValueError
        If a parameter lies outside its range.
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


def calibrate_noise_multiplier(
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    *,
    adjacency: str = "add-remove",
    accountant: str | type[Accountant] = "pld",
    sampling: str = "poisson",
) -> float:
    """Return the noise multiplier with which noisy gradient descent meets a privacy target.

    Parameters
    ----------
    epsilon : float
        Target in nats, positive.
    delta : float
        Target failure probability, in (0, 1).
    sample_rate : float
        Probability that a record enters a batch, in (0, 1]; for uniform sampling batch size over
        data set size.
    steps : int
        Number of steps, fixed in advance, at least 1.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        The relation between neighbouring data sets.
    accountant : {"pld", "rdp", "gdp"} or Accountant class, default="pld"
        Whose bound must meet the target.
    sampling : {"poisson", "uniform"}, default="poisson"
        Independent inclusion of each record, or a uniform subset of fixed size (replace-one only).

    Returns
    -------
    float
        Standard deviation of the noise on the summed gradient over the clipping norm. The
        accountant's epsilon there is at most the target and within 1e-4 of it, relatively.

    Raises
    ------
    ValueError
        If a parameter lies outside its range.
    UnsupportedEventError
        If the accountant has no proved bound for this plan.
    CalibrationError
        If no noise multiplier in the searched range meets the target.

    Examples
    --------
    >>> from skdp.accounting import calibrate_noise_multiplier
    >>> round(calibrate_noise_multiplier(1.0, 1e-5, 0.01, 10_000), 2)
    3.81
    """
    if not 0 < sample_rate <= 1:
        raise ValueError(f"sample_rate must lie in (0, 1], got {sample_rate!r}.")
    _check_target(epsilon, delta)

    def make_event(z: float) -> Event:
        return dpsgd_event(z, sample_rate, steps, sampling=sampling)

    initial = _initial_guess(gaussian_profile.mu(epsilon, delta), sample_rate, steps, adjacency)
    return calibrate_event(
        make_event, epsilon, delta, adjacency=adjacency, accountant=accountant, initial=initial
    )


def _initial_guess(mu: float, rate: float, steps: int, adjacency: str) -> float:
    """Invert the central limit of many sampled steps, which tends to a Gaussian of shift ``mu``."""
    moved = 2.0 if adjacency == "replace-one" else 1.0
    if rate == 1.0:
        return moved * math.sqrt(steps) / mu
    return moved / math.sqrt(math.log1p((mu / rate) ** 2 / steps))


def calibrate_event(
    make_event: Callable[[float], Event],
    epsilon: float,
    delta: float,
    *,
    adjacency: str = "add-remove",
    accountant: str | type[Accountant] = "pld",
    bracket: tuple[float, float] = (1e-3, 1e12),
    initial: float = 1.0,
) -> float:
    """Return the smallest noise parameter with which a plan meets a privacy target.

    Parameters
    ----------
    make_event : callable
        Maps the noise parameter, a positive float, to the event of the whole plan. More noise must
        not cost more.
    epsilon : float
        Target in nats, positive.
    delta : float
        Target failure probability, in (0, 1).
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        The relation between neighbouring data sets.
    accountant : {"pld", "rdp", "gdp"} or Accountant class, default="pld"
        Whose bound must meet the target.
    bracket : tuple of two floats, default=(1e-3, 1e12)
        Smallest and largest noise parameter considered. The smallest is returned when it meets the
        target already.
    initial : float, default=1.0
        Where to start; a good guess saves evaluations.

    Returns
    -------
    float
        A noise parameter whose cost was evaluated, does not exceed ``epsilon``, and lies within
        1e-4 of it, relatively (unless the cost jumps there or the bracket ends).

    Raises
    ------
    ValueError
        If a parameter lies outside its range.
    UnsupportedEventError
        If the accountant has no proved bound for the plan.
    CalibrationError
        If even the largest noise parameter does not meet the target.
    """
    _check_target(epsilon, delta)
    smallest, largest = bracket
    if not 0 < smallest < largest < math.inf:
        raise ValueError(f"bracket must hold 0 < smallest < largest, both finite, got {bracket!r}.")
    cls = resolve_accountant(accountant)

    def cost(z: float) -> float:
        return cls(adjacency).compose(make_event(z)).epsilon(delta)

    return _search(cost, epsilon, delta, smallest, largest, min(max(initial, smallest), largest))


def _search(
    cost: Callable[[float], float],
    epsilon: float,
    delta: float,
    smallest: float,
    largest: float,
    z: float,
) -> float:
    """Find where a decreasing cost falls to ``epsilon``, from the side that keeps the target."""
    # Aim a little inside, so that the point which ends the search is itself within the target.
    aim = math.log(epsilon) + math.log1p(-0.5 * _RELATIVE_TOLERANCE)
    low: tuple[float, float] | None = None  # (log z, log cost): too little noise
    high: tuple[float, float] | None = None  # enough noise
    for _ in range(_MAX_EVALUATIONS):
        value = cost(z)
        point = (math.log(z), math.log(value) if value > 0.0 else -math.inf)
        if value <= epsilon:
            if value >= epsilon * (1.0 - _RELATIVE_TOLERANCE) or z <= smallest:
                return z
            high = point
        else:
            if z >= largest:
                raise CalibrationError(
                    f"no noise up to {largest!r} meets epsilon={epsilon!r} at delta={delta!r}: "
                    f"the accountant reports {value!r} there. Raise epsilon or delta, take fewer "
                    f"steps, or spend less on the noise-free part of the plan."
                )
            low = point
        if low is not None and high is not None and high[0] - low[0] <= 1e-9:
            break
        z = min(max(math.exp(_next_point(low, high, aim)), smallest), largest)
    if high is None:
        raise CalibrationError(
            f"no noise multiplier was found that meets epsilon={epsilon!r} at delta={delta!r}; "
            f"give a better bracket or a better initial value."
        )
    return math.exp(high[0])


def _next_point(
    low: tuple[float, float] | None, high: tuple[float, float] | None, aim: float
) -> float:
    """Choose the next log noise: between two sides by interpolation, outside them by a leap."""
    if low is None or high is None:
        x, y = low or high or (0.0, aim)
        # The cost falls like 1/noise or faster, so this step lands near or beyond the target.
        leap = y - aim if math.isfinite(y) else math.copysign(1.0, y)
        return x + 1.02 * min(max(leap, -2.0), 2.0)
    width = high[0] - low[0]
    if width > 2.5 or not (math.isfinite(low[1]) and math.isfinite(high[1])):
        return low[0] + 0.5 * width
    share = (low[1] - aim) / (low[1] - high[1])
    return low[0] + min(max(share, 0.02), 0.98) * width


def _check_target(epsilon: float, delta: float) -> None:
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon must be a finite number > 0, got {epsilon!r}.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in the open interval (0, 1), got {delta!r}.")
