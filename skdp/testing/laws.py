"""Statistical tests of noise and samplers, with bounded false alarms at every sample size.

The tests are exact. The law's distribution function turns draws into independent standard normals;
their sums, squares and products have exact laws. The Dvoretzky-Kiefer-Wolfowitz bound with
Massart's constant is valid for any number of draws; counts of rows and pairs are binomial.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

# Expected draws in each separately counted tail, and the largest share of this tail.
_IN_TAIL, _TAIL = 50, 0.05


def check_noise(
    draw: Callable[[int], Any] | Any, law: Any, *, n_draws: int = 10_000, false_alarm: float = 1e-9
) -> dict[str, float]:
    """Check that noise is independent and follows a law.

    Parameters
    ----------
    draw : callable or array-like of shape (n,) or (n, d)
        Draws, or a function of their number that returns them. Columns, and draws of one column,
        must be independent.
    law : frozen distribution of scipy.stats
        Law of each number, or an object with ``cdf``, ``sf`` and, for integers, ``pmf``.
    n_draws : int, default=10_000
        Number of draws requested from a function.
    false_alarm : float, default=1e-9
        Upper bound on the probability of rejecting correct noise.

    Returns
    -------
    dict
        The p-value of each test: ``"location"``, ``"scale"``, ``"shape"``, ``"tails"`` and
        ``"dependence"`` (between neighbouring draws, the two halves, columns).

    Raises
    ------
    AssertionError
        If one of the tests rejects at its fifth of `false_alarm`.

    Notes
    -----
    With the default `false_alarm`, these faults are missed at most once in a million times:

    - a standard deviation with relative error `r` of at most 0.2, from ``75 / r**2`` numbers;
    - half or twice the standard deviation, from 150;
    - a shift by `r` standard deviations, or a correlation `r` of a pairing, from ``130 / r**2``;
    - a distribution function at distance `r`, from ``35 / r**2``.

    For integers, p-values vary between calls, since each integer is placed at random on its step
    of the distribution function.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality.

    Examples
    --------
    >>> from scipy import stats
    >>> from skdp.mechanisms import RandomStream
    >>> from skdp.testing import check_noise
    >>> p_values = check_noise(RandomStream.from_seed(0).laplace, stats.laplace())
    >>> check_noise(RandomStream.from_seed(0).laplace, stats.laplace(scale=2.0))
    Traceback (most recent call last):
    AssertionError: The draws do not follow the law: scale (...), ...
    """
    values = np.asarray(draw(n_draws) if callable(draw) else draw, dtype=np.float64)
    found = _test_normals(_as_normals(values.reshape(len(values), -1), law))
    _decide("The draws do not follow the law", found, false_alarm)
    return found


def check_sampler(
    draw: Callable[[int], tuple[Any, Any]],
    n_rows: int,
    *,
    sample_rate: float | None = None,
    batch_size: int | None = None,
    allocation: tuple[int, int] | None = None,
    n_lots: int = 20_000,
    false_alarm: float = 1e-9,
) -> dict[str, float]:
    """Check that a sampler draws batches of a given law.

    Parameters
    ----------
    draw : callable
        Function of a number of batches, like ``PoissonSampler.draw``. It returns the row numbers in
        all batches, and the offsets at which batches begin and end.
    n_rows : int
        Number of rows; several dozen are enough. Memory and time grow with its square.
    sample_rate : float, optional
        Poisson: each batch includes each row independently with this probability.
    batch_size : int, optional
        Batches are independent uniform subsets of this size, without replacement.
    allocation : (int, int), optional
        ``(k, t)``: each row is in k of each t consecutive batches, uniformly and independently of
        other rows. Give exactly one of the three.
    n_lots : int, default=20_000
        Number of batches to draw, a multiple of t.
    false_alarm : float, default=1e-9
        Upper bound on the probability of rejecting a correct sampler.

    Returns
    -------
    dict
        The p-value of each test: frequencies of rows and of pairs of rows, in the same, in
        neighbouring and in distant batches. For Poisson, also :func:`check_noise` of the sizes.

    Raises
    ------
    AssertionError
        If a batch has a row twice, a size is wrong, or one of the tests rejects.
    ValueError
        If not exactly one law is given.

    Notes
    -----
    With the default `false_alarm`, a relative error `r` of a rate is missed at most once in a
    million times. This requires about ``130 / r**2`` rows in all batches together.

    Examples
    --------
    >>> from skdp.mechanisms import PoissonSampler, RandomStream
    >>> from skdp.testing import check_sampler
    >>> sampler = PoissonSampler(20, 0.1, RandomStream.from_seed(0))
    >>> p_values = check_sampler(sampler.draw, 20, sample_rate=0.1)
    """
    if sum(part is not None for part in (sample_rate, batch_size, allocation)) != 1:
        raise ValueError("Exactly one of sample_rate, batch_size and allocation must be given.")
    lots = _inclusions(*draw(n_lots), n_rows)
    found = {}
    if sample_rate is not None:
        share, pair = sample_rate, sample_rate**2
        law = stats.binom(n_rows, sample_rate)
        sizes = _test_normals(_as_normals(lots.sum(axis=1)[:, None], law))
        found = {f"{name} of lot sizes": p_value for name, p_value in sizes.items()}
    else:
        size, among = allocation or (batch_size or 0, n_rows)
        if allocation:  # each row has a random subset of the batches
            lots = lots.reshape(-1, among, n_rows).transpose(0, 2, 1).reshape(-1, among)
        if not np.all(lots.sum(axis=1) == size):
            raise AssertionError(f"Not every choice is of {size} out of {among}.")
        share, pair = size / among, size * (size - 1) / max(among * (among - 1), 1)
    half, width = len(lots) // 2, lots.shape[1]
    apart = ~np.eye(width, dtype=bool)
    for name, count, trials, chance in (
        ("all rows", lots.sum(), lots.size, share),
        ("single rows", lots.sum(axis=0), len(lots), share),
        ("pairs of rows", (lots.T @ lots)[apart], len(lots), pair),
        ("neighbouring lots", lots[: 2 * half : 2].T @ lots[1 : 2 * half : 2], half, share**2),
        ("far lots", lots[:half].T @ lots[half : 2 * half], half, share**2),
    ):
        found[name] = _two_sided(count, stats.binom, trials, chance)
    _decide("The batches are not those of the stated sampler", found, false_alarm)
    return found


def _as_normals(values: np.ndarray, law: Any) -> np.ndarray:
    """Return standard normals if the values follow the law, exact in both tails."""
    below, above, possible = law.cdf(values), law.sf(values), np.isfinite(values)
    if hasattr(law, "pmf"):  # anywhere on the step of the distribution function
        mass = law.pmf(values)
        part = mass * np.random.default_rng().random(values.shape)
        below, above, possible = below - part, above + part, possible & (mass > 0.0)
    normals = np.where(below < 0.5, ndtri(below), -ndtri(above))
    if not np.all(possible & np.isfinite(normals)):
        raise AssertionError(
            "The draws do not follow the law: they include values that it cannot take."
        )
    return normals


def _test_normals(normals: np.ndarray) -> dict[str, float]:
    """Return p-values for independent standard normals, none smaller than a uniform one."""
    flat = np.sort(normals, axis=None)
    n, half = flat.size, len(normals) // 2
    tail = min(_TAIL, _IN_TAIL / n)
    beyond = np.array([np.sum(flat < ndtri(tail)), np.sum(flat > -ndtri(tail))])
    gap = stats.ks_1samp(flat, ndtr, method="asymp").statistic
    # For independent normals a and b, a + b and a - b are independent with equal variance.
    gram, columns = normals.T @ normals, np.triu_indices(normals.shape[1], 1)
    squares = np.add.outer(np.diag(gram), np.diag(gram))[columns]
    sums, differences = squares + 2.0 * gram[columns], squares - 2.0 * gram[columns]
    pairs = np.full(sums.size, len(normals))
    for one, other in (
        (normals[: 2 * half : 2], normals[1 : 2 * half : 2]),
        (normals[:half], normals[half : 2 * half]),
    ):
        if half > 0:
            sums = np.append(sums, np.sum((one + other) ** 2))
            differences = np.append(differences, np.sum((one - other) ** 2))
            pairs = np.append(pairs, one.size)
    with np.errstate(divide="ignore"):
        ratios = sums / np.maximum(differences, 0.0)
    return {
        "location": _two_sided(np.sum(flat) / np.sqrt(n), stats.norm),
        "scale": _two_sided(np.sum(flat**2), stats.chi2, n),
        "shape": min(1.0, 2.0 * float(np.exp(-2.0 * n * gap**2))),
        "tails": _two_sided(beyond, stats.binom, n, tail),
        "dependence": _two_sided(ratios, stats.f, pairs, pairs),
    }


def _two_sided(found: Any, law: Any, *parameters: Any) -> float:
    """Return the two-sided p-value of the least likely of several numbers with one law."""
    found = np.atleast_1d(found)
    least = found - 1 if hasattr(law, "pmf") else found
    tails = np.minimum(law.cdf(found, *parameters), law.sf(least, *parameters))
    return min(1.0, 2.0 * max(found.size, 1) * float(np.min(tails, initial=1.0)))


def _inclusions(indices: Any, offsets: Any, n_rows: int) -> np.ndarray:
    """Return the matrix of rows in batches, as zeros and ones."""
    lots = np.zeros((len(offsets) - 1, n_rows))
    np.add.at(lots, (np.repeat(np.arange(len(lots)), np.diff(offsets)), np.asarray(indices)), 1.0)
    if lots.max(initial=0.0) > 1.0:
        raise AssertionError("A batch includes a row twice.")
    return lots


def _decide(what: str, found: dict[str, float], false_alarm: float) -> None:
    wrong = [name for name, p_value in found.items() if p_value <= false_alarm / len(found)]
    if wrong:
        named = ", ".join(f"{name} (p = {found[name]:.2g})" for name in wrong)
        raise AssertionError(f"{what}: {named}.")
