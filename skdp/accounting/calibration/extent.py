"""How far a given noise reaches: the most steps, and the largest sample rate, within a target."""

from __future__ import annotations

from skdp.accounting.accountants.base import Accountant
from skdp.accounting.calibration.noise import Training, dearest_plan, least_noise
from skdp.accounting.calibration.search import (
    Axis,
    Target,
    check_count,
    check_positive,
    check_rate,
    check_real,
)
from skdp.accounting.events import Event
from skdp.base.parameters import Adjacency, Sampling
from skdp.exceptions import CalibrationError

_MOST_STEPS = 10**15  # a number of no practical meaning
_LEAST_RATE = 1e-30  # below which no sample rate is considered


def calibrate_steps(
    epsilon: float,
    delta: float,
    noise_multiplier: float,
    sample_rate: float,
    *,
    adjacency: Adjacency = "add-remove",
    accountant: str | type[Accountant] = "pld",
    sampling: Sampling = "poisson",
) -> int:
    """Return how many steps of noisy gradient descent a privacy target affords.

    Parameters
    ----------
    epsilon, delta
        The target, as for `calibrate_noise_multiplier`.
    noise_multiplier : float
        Standard deviation of the noise on the summed gradient over the clipping norm, positive.
    sample_rate : float
        Probability that a record enters a batch, in (0, 1]; for uniform sampling batch size over
        data set size.
    adjacency, accountant, sampling
        As for `calibrate_noise_multiplier`.

    Returns
    -------
    int
        At least 1. The accountant's epsilon of that many steps was evaluated and is at most the
        target. One more step exceeds it, unless epsilon is already within 1e-4 of the target,
        relatively (which only numbers of steps in the thousands are), or as close to it as the
        bound has been seen to fall with more steps, where bounds are wide.

    Raises
    ------
    ValueError, UnsupportedEventError
        As for `calibrate_noise_multiplier`.
    CalibrationError
        If not even one step meets the target: the message names the nearest targets that it meets,
        and the noise multiplier and the sample rate with which it would meet this one. Also if
        10^15 steps meet the target.

    Notes
    -----
    The number of steps must be fixed before training. Stopping after fewer costs no more than what
    was paid for; training on until the budget is spent needs no more than this number.

    Examples
    --------
    >>> from skdp.accounting import calibrate_steps, dpsgd_epsilon
    >>> steps = calibrate_steps(1.0, 1e-5, noise_multiplier=4.0, sample_rate=0.01)
    >>> dpsgd_epsilon(4.0, 0.01, steps, 1e-5) <= 1.0
    True
    """
    z = check_positive("noise_multiplier", noise_multiplier)
    if check_real("sample_rate", sample_rate) == 0:
        raise ValueError(
            "sample_rate must lie in (0, 1]: at 0 nothing is released and any number of steps fits."
        )
    rate = check_rate("sample_rate", sample_rate)
    target = Target.above_zero(epsilon, delta, adjacency, accountant)

    training = Training(z, rate, 1, sampling)
    every = Axis(1, _MOST_STEPS, integer=True)
    found = dearest_plan(target, lambda n: training._replace(steps=int(n)).event(), every, 1)
    if found is None:
        raise CalibrationError(_describe_one_step(target, training))
    if found == _MOST_STEPS:
        raise CalibrationError(
            f"more than 10^15 steps meet {target} with noise_multiplier={z!r} and "
            f"sample_rate={rate!r}: privacy sets no limit of practical meaning. Lower "
            f"noise_multiplier or raise sample_rate."
        )
    return int(found)


def calibrate_sample_rate(
    epsilon: float,
    delta: float,
    noise_multiplier: float,
    steps: int,
    *,
    adjacency: Adjacency = "add-remove",
    accountant: str | type[Accountant] = "pld",
    sampling: Sampling = "poisson",
    dataset_size: int | None = None,
) -> float:
    """Return the largest sample rate with which noisy gradient descent meets a privacy target.

    Parameters
    ----------
    epsilon, delta, noise_multiplier
        As for `calibrate_steps`.
    steps : int
        Number of steps, fixed in advance, at least 1.
    adjacency, accountant, sampling
        As for `calibrate_noise_multiplier`.
    dataset_size : int or None, default=None
        Public number of records, needed for uniform sampling, whose batches hold whole records;
        must be None for Poisson sampling.

    Returns
    -------
    float
        A rate in (0, 1] whose cost by this accountant was evaluated and is at most the target. It
        is 1.0 if full batches meet the target, and else within 1e-4 of it, relatively, or as close
        as the bound has been seen to fall with larger rates, where bounds are wide. For uniform
        sampling it is ``batch_size / dataset_size``, and one more record in a batch exceeds the
        target unless the cost is within 1e-4 of it; ``round(rate * dataset_size)`` gives the batch
        size back.

    Raises
    ------
    ValueError, UnsupportedEventError
        As for `calibrate_noise_multiplier`.
    CalibrationError
        If no rate, or no batch of a single record, meets the target; the message names the nearest
        targets that one does meet, and the noise multiplier with which this one can be met.

    Examples
    --------
    >>> from skdp.accounting import calibrate_sample_rate
    >>> round(calibrate_sample_rate(1.0, 1e-5, noise_multiplier=4.0, steps=10_000), 3)
    0.011
    >>> rate = calibrate_sample_rate(
    ...     1.0, 1e-5, 4.0, 10_000, adjacency="replace-one", sampling="uniform", dataset_size=60_000
    ... )
    >>> round(rate * 60_000)
    256
    """
    z = check_positive("noise_multiplier", noise_multiplier)
    steps = check_count("steps", steps)
    target = Target.above_zero(epsilon, delta, adjacency, accountant)
    if sampling == "uniform":
        if dataset_size is None:
            raise ValueError("dataset_size must be given for uniform sampling, got None.")
        size = check_count("dataset_size", dataset_size)
        return _largest_batch(target, Training(z, 1 / size, steps, sampling), size) / size
    if dataset_size is not None:
        raise ValueError(
            f"dataset_size must be None unless sampling='uniform', got {dataset_size!r}."
        )
    return _largest_rate(target, Training(z, _LEAST_RATE, steps, sampling))


def _largest_batch(target: Target, least: Training, size: int) -> int:
    """Return the most records that a batch of fixed size may hold."""

    def make_event(batch: float) -> Event:
        return least._replace(sample_rate=int(batch) / size).event()

    found = dearest_plan(target, make_event, Axis(1, size, integer=True), 1)
    if found is None:
        raise CalibrationError(_describe_least_rate(target, least))
    return int(found)


def _largest_rate(target: Target, least: Training) -> float:
    """Return the largest rate, any real number in (0, 1]."""
    make_event = least.vary("sample_rate")
    # Some accountants know full batches only.
    whole, sampled = make_event(1.0), make_event(0.5)
    if not target.supports(sampled) and target.supports(whole) and target.affords(whole):
        return 1.0
    found = dearest_plan(target, make_event, Axis(_LEAST_RATE, 1.0), 0.01)
    if found is None:
        raise CalibrationError(_describe_least_rate(target, least))
    return found


def _describe_one_step(target: Target, step: Training) -> str:
    """Say what one step costs, and with which noise or rate it would be within the target."""
    remedies, rate = _find_noise(target, step), step.sample_rate
    make_event, smaller = step.vary("sample_rate"), None
    if target.supports(make_event(0.5 * rate)):
        smaller = dearest_plan(target, make_event, Axis(_LEAST_RATE, rate), rate)
    if smaller is not None:
        remedies.append(f"sample_rate={target.shorten(make_event, smaller, up=False)!r}")
    return (
        f"not even one step meets {target} with noise_multiplier={step.noise_multiplier!r} and "
        f"sample_rate={rate!r}: {target.name_nearest(step.event())}." + _name_remedies(remedies)
    )


def _describe_least_rate(target: Target, least: Training) -> str:
    """Say what the least sampling costs, and with which noise it would be within the target."""
    return (
        f"no sample_rate down to {least.sample_rate!r} meets {target} with noise_multiplier="
        f"{least.noise_multiplier!r} and steps={least.steps!r}: "
        f"{target.name_nearest(least.event())}." + _name_remedies(_find_noise(target, least))
    )


def _find_noise(target: Target, training: Training) -> list[str]:
    """Name a noise multiplier that meets the target, if there is one."""
    make_event = training.vary("noise_multiplier")
    try:
        noise = target.shorten(make_event, least_noise(target, make_event), up=True)
    except CalibrationError:
        return []
    return [f"noise_multiplier={noise!r}"]


def _name_remedies(remedies: list[str]) -> str:
    return f" This target would be met with {' or with '.join(remedies)}." if remedies else ""
