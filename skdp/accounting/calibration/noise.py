"""The noise that a plan needs for a privacy target: by accountants and by closed forms.

Closed forms need two to nine times the noise of numerical composition, but can be checked by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from skdp.accounting.accountants.base import Accountant
from skdp.accounting.accountants.composition import check_split, mean_loss
from skdp.accounting.calibration.search import (
    Axis,
    Target,
    check_count,
    check_positive,
    check_rate,
    check_real,
    dearest_affordable,
    guess,
)
from skdp.accounting.dpsgd import dpsgd_event
from skdp.accounting.events import Event
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import golden_section, narrow_bracket
from skdp.base.parameters import Adjacency, PrintedMeanTerm, Sampling, plain_arguments
from skdp.exceptions import CalibrationError

NOISE_RANGE = (1e-3, 1e12)  # of noise multipliers


class Training(NamedTuple):
    """Noisy gradient descent on sampled batches, as for `dpsgd_event`."""

    noise_multiplier: float
    sample_rate: float
    steps: int
    sampling: str

    def event(self) -> Event:
        """Return the event of the entire plan."""
        return dpsgd_event(*self[:3], sampling=self.sampling)

    def vary(self, name: str) -> Callable[[float], Event]:
        """Return the function from one number to the event."""
        return lambda value: self._replace(**{name: value}).event()  # type: ignore[arg-type]


def calibrate_noise_multiplier(
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    *,
    adjacency: Adjacency = "add-remove",
    accountant: str | type[Accountant] = "pld",
    sampling: Sampling = "poisson",
) -> float:
    """Return the noise multiplier with which noisy gradient descent meets a privacy target.

    Parameters
    ----------
    epsilon : float
        Target in nats, positive.
    delta : float
        Target failure probability, in (0, 1).
    sample_rate : float
        Probability that a record enters a batch, in (0, 1]. For uniform sampling: batch size
        divided by data set size.
    steps : int
        Number of steps, fixed in advance, at least 1.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Adjacency relation between neighbouring data sets.
    accountant : str or Accountant class, default="pld"
        Accountant whose bound must meet the target: ``"pld"``, ``"rdp"``, ``"gdp"``, ``"generic"``,
        ``"moments"``, ``"optimal"``, ``"advanced"``, ``"basic"``, ``"hidden-state"`` or a class.
    sampling : {"poisson", "uniform"}, default="poisson"
        Independent inclusion of each record, or a uniform subset of fixed size (replace-one only).

    Returns
    -------
    float
        Standard deviation of the noise on the summed gradient, divided by the clipping norm. The
        accountant's epsilon is at most the target and within a relative 1e-4 of it, unless the
        least noise considered, 1e-3, already meets the target. If bounds are wide, they may rise
        with noise. Epsilon may then end below the target by as much as they have been seen to rise
        (seldom more than a few percent).

    Raises
    ------
    ValueError
        If the accountant's results are not guarantees (`PrivacyValue.is_guarantee`).
    UnsupportedEventError
        If the accountant has no proved bound for this plan.
    CalibrationError
        If no noise multiplier up to 1e12 meets the target. The message names the nearest targets
        that can be met.

    Examples
    --------
    >>> from skdp.accounting import calibrate_noise_multiplier
    >>> round(calibrate_noise_multiplier(1.0, 1e-5, 0.01, 10_000), 2)
    3.81
    """
    rate = check_rate("sample_rate", sample_rate)
    steps = check_count("steps", steps)
    target = Target.above_zero(epsilon, delta, adjacency, accountant)
    return least_noise(target, Training(1.0, rate, steps, sampling).vary("noise_multiplier"))


def calibrate_event(
    make_event: Callable[[float], Event],
    epsilon: float,
    delta: float,
    *,
    adjacency: Adjacency = "add-remove",
    accountant: str | type[Accountant] = "pld",
    bracket: tuple[float, float] = NOISE_RANGE,
    initial: float | None = None,
) -> float:
    """Return the smallest noise parameter with which a plan meets a privacy target.

    Parameters
    ----------
    make_event : callable
        Function from the noise parameter, a positive float, to the event of the entire plan. More
        noise must not cost more.
    epsilon : float
        Target in nats, positive.
    delta : float
        Target failure probability, in [0, 1). Gaussian noise requires a positive one.
    adjacency, accountant
        As for `calibrate_noise_multiplier`.
    bracket : tuple of two floats, default=(1e-3, 1e12)
        Smallest and largest noise parameter considered. The smallest is returned if it already
        meets the target.
    initial : float or None, default=None
        Start of the search; a good guess saves evaluations. None uses the central limit of the
        plan's Gaussian parts.

    Returns
    -------
    float
        Noise parameter whose computed cost is at most ``epsilon`` and within a relative 1e-4 of it.
        The cost may be lower if it jumps there or the bracket ends. It may also be lower by as much
        as the accountant's bound has been seen to rise with more noise.

    Raises
    ------
    ValueError, UnsupportedEventError
        As for `calibrate_noise_multiplier`.
    CalibrationError
        If the largest noise parameter does not meet the target. The message names the nearest
        targets that it meets.

    Notes
    -----
    The search interpolates between evaluated points in logarithmic coordinates; three or four
    evaluations are mostly enough. It uses only evaluated costs, so a bound that is not exactly
    monotone needs more evaluations but never violates the target.

    Examples
    --------
    >>> from skdp.accounting import ComposedEvent, GaussianEvent, PureDPEvent, calibrate_event
    >>> plan = lambda z: ComposedEvent((PureDPEvent(0.2), GaussianEvent(z)))
    >>> round(calibrate_event(plan, 1.0, 1e-6), 2)
    5.04
    """
    if not callable(make_event):
        raise TypeError(
            f"make_event must be a function from a noise parameter to an event, got {make_event!r}."
        )
    if not (isinstance(bracket, Sequence) and len(bracket) == 2):
        raise TypeError(f"bracket must hold two numbers, (smallest, largest), got {bracket!r}.")
    smallest, largest = (check_positive("each end of bracket", end) for end in bracket)
    if not smallest < largest:
        raise ValueError(f"bracket must hold 0 < smallest < largest, both finite, got {bracket!r}.")
    target = Target(epsilon, delta, adjacency, accountant)
    first = None if initial is None else check_positive("initial", initial)
    return least_noise(target, make_event, (smallest, largest), first)


def least_noise(
    target: Target,
    make_event: Callable[[float], Event],
    bracket: tuple[float, float] = NOISE_RANGE,
    initial: float | None = None,
) -> float:
    """Return the smallest noise parameter that meets a target.

    The search starts at ``initial`` or at the central limit's guess.
    """
    smallest, largest = bracket
    somewhere = min(max(initial or 1.0, smallest), largest)
    axis = Axis(cheapest=largest, dearest=smallest)
    found = dearest_plan(target, make_event, axis, somewhere, there=initial is not None)
    if found is None:
        raise CalibrationError(
            f"no noise up to {largest!r} meets {target}: "
            f"{target.name_nearest(make_event(largest))}. Raise epsilon or delta, take fewer "
            f"steps, or spend less on the noise-free part of the plan."
        )
    return found


def dearest_plan(
    target: Target,
    make_event: Callable[[float], Event],
    axis: Axis,
    somewhere: float,
    *,
    there: bool = False,
) -> float | None:
    """Return the parameter of the most expensive plan within a target, or None.

    The search starts at ``somewhere`` if ``there``, else at the central limit's guess.
    """
    start = somewhere if there else guess(make_event, target, axis, somewhere)
    return dearest_affordable(
        lambda parameter: target.spent(make_event(parameter)), target.epsilon, axis, start
    )


_LARGEST_STEP_DELTA = 0.99  # larger failure probabilities of a step gain nothing


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
    """Return the noise multiplier that closed-form composition requires under replace-one.

    Parameters
    ----------
    epsilon : float
        Target in nats, positive.
    delta : float
        Target failure probability, in (0, 1).
    sample_rate : float
        Batch size divided by data set size, in (0, 1]; batches are uniform subsets of fixed size.
    steps : int
        Number of steps, fixed in advance, at least 1.
    mean_term : {"tanh", "printed"}, default="tanh"
        Bound on the expected privacy loss of an eps-DP step: ``eps tanh(eps / 2)``, or the looser
        ``eps (e^eps - 1)`` of the original theorem.
    split : float or "best", default="best"
        Share of ``delta`` for the composition, in (0, 1); the steps share the rest. ``"best"``
        chooses the share that needs the least noise.

    Returns
    -------
    float
        ``sigma / C``, where ``C`` bounds the norm of one record's contribution to the query.
        Replacing a record moves the query by up to ``2 C``.

    Raises
    ------
    CalibrationError
        If no float represents the noise.

    Notes
    -----
    Each step is an analytic Gaussian mechanism (Balle and Wang, 2018), (eps_0, delta_0)-DP on its
    batch. On the data it is (log(1 + p (e^eps_0 - 1)), p delta_0)-DP (Balle, Barthe and Gaboardi,
    2018, Theorem 9). The steps compose to ``eps_s sqrt(2 T ln(1/delta')) + T m(eps_s)`` at ``T p
    delta_0 + delta'`` (Dwork, Rothblum and Vadhan, 2010, Theorem III.3). ``mean_term`` chooses the
    bound ``m``.

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
    """Return epsilon of ``steps`` pure-DP steps at ``delta_prime``."""
    spread = step_epsilon * math.sqrt(-2.0 * steps * math.log(delta_prime))
    return spread + steps * mean_loss(step_epsilon, mean_term)


def _step_epsilon(epsilon: float, steps: int, delta_prime: float, mean_term: str) -> float:
    """Return the largest epsilon per step within ``epsilon``, rounded down."""
    # Composition is convex in the step's epsilon and at least linear, which brackets the root.
    high = epsilon / math.sqrt(-2.0 * steps * math.log(delta_prime))
    low, _ = narrow_bracket(
        lambda x: epsilon - _composed(x, steps, delta_prime, mean_term), 0.0, high
    )
    return low * (1.0 - 1e-14)


def _step_mu(
    epsilon: float, delta: float, rate: float, steps: int, mean_term: str, split: float
) -> float:
    """Return sensitivity over noise scale of a step, for a share of delta."""
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
    """Maximise `_step_mu` over the share of delta."""

    def value(log_odds: float) -> float:
        share = 1.0 / (1.0 + math.exp(-log_odds))
        return _step_mu(epsilon, delta, rate, steps, mean_term, share)

    return -golden_section(lambda log_odds: -value(log_odds), -18.0, 18.0, 60)[1]
