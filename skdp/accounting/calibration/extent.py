"""The largest number of steps and the largest sample rate within a privacy target."""

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

_MOST_STEPS = 10**15  # without practical meaning
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
    """Return the number of steps of noisy gradient descent that a privacy target allows.

    Parameters
    ----------
    epsilon, delta
        Target, as for `calibrate_noise_multiplier`.
    noise_multiplier : float
        Standard deviation of the noise on the summed gradient, divided by the clipping norm;
        positive.
    sample_rate : float
        Probability that a record enters a batch, in (0, 1]. For uniform sampling: batch size
        divided by data set size.
    adjacency, accountant, sampling
        As for `calibrate_noise_multiplier`.

    Returns
    -------
    int
        Number of steps, at least 1, whose computed epsilon is at most the target. One more step
        exceeds the target, with two exceptions:

        - epsilon is already within a relative 1e-4 of the target, which only happens with thousands
          of steps.
        - Bounds are wide, and epsilon is as close to the target as the bound has been seen to fall
          with more steps.

    Raises
    ------
    ValueError, UnsupportedEventError
        As for `calibrate_noise_multiplier`.
    CalibrationError
        If a single step exceeds the target, or if 10^15 steps meet it. In the first case the
        message names the nearest targets that one step meets, and the noise multiplier and the
        sample rate for this target.

    Notes
    -----
    Fix the number of steps before training. Stopping earlier costs at most as much as all steps.

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
            f"sample_rate={rate!r}: the target sets no practical limit. Lower noise_multiplier or "
            "raise sample_rate."
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
        Public number of records. Required for uniform sampling, where batches have a whole number
        of records; must be None for Poisson sampling.

    Returns
    -------
    float
        Rate in (0, 1] whose computed cost is at most the target; 1.0 if full batches meet it.
        Otherwise the cost is within a relative 1e-4 of the target. If bounds are wide, it is as
        close to the target as the bound has been seen to fall with larger rates.

        For uniform sampling it is ``batch_size / dataset_size``, and ``round(rate * dataset_size)``
        returns the batch size. One more record in a batch exceeds the target unless the cost is
        within 1e-4 of it.

    Raises
    ------
    ValueError, UnsupportedEventError
        As for `calibrate_noise_multiplier`.
    CalibrationError
        If no rate, or no batch of a single record, meets the target. The message names the nearest
        targets that one meets, and the noise multiplier for this target.

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
    """Return the largest number of records in a batch of fixed size."""

    def make_event(batch: float) -> Event:
        return least._replace(sample_rate=int(batch) / size).event()

    found = dearest_plan(target, make_event, Axis(1, size, integer=True), 1)
    if found is None:
        raise CalibrationError(_describe_least_rate(target, least))
    return int(found)


def _largest_rate(target: Target, least: Training) -> float:
    """Return the largest rate, any real number in (0, 1]."""
    make_event = least.vary("sample_rate")
    # Some accountants support only full batches.
    whole, sampled = make_event(1.0), make_event(0.5)
    if not target.supports(sampled) and target.supports(whole) and target.affords(whole):
        return 1.0
    found = dearest_plan(target, make_event, Axis(_LEAST_RATE, 1.0), 0.01)
    if found is None:
        raise CalibrationError(_describe_least_rate(target, least))
    return found


def _describe_one_step(target: Target, step: Training) -> str:
    """Describe the cost of one step, and remedies."""
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
    """Describe the cost of the least sampling, and a remedy."""
    return (
        f"no sample_rate down to {least.sample_rate!r} meets {target} with noise_multiplier="
        f"{least.noise_multiplier!r} and steps={least.steps!r}: "
        f"{target.name_nearest(least.event())}." + _name_remedies(_find_noise(target, least))
    )


def _find_noise(target: Target, training: Training) -> list[str]:
    """Name a noise multiplier that meets the target, if any."""
    make_event = training.vary("noise_multiplier")
    try:
        noise = target.shorten(make_event, least_noise(target, make_event), up=True)
    except CalibrationError:
        return []
    return [f"noise_multiplier={noise!r}"]


def _name_remedies(remedies: list[str]) -> str:
    return f" This target would be met with {' or with '.join(remedies)}." if remedies else ""
