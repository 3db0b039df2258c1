"""Statistical tests of noise and of samplers that bound their false alarms at every sample size.

Nothing here is asymptotic: draws become independent standard normals by the distribution function
of the law, whose sums, squares and products have exact laws; the Dvoretzky-Kiefer-Wolfowitz bound
with Massart's constant holds for any number of draws; counts of rows and pairs are binomial.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

# Draws expected in the part of each tail that is counted by itself, and that part's largest share.
_IN_TAIL, _TAIL = 50, 0.05


def check_noise(
    draw: Callable[[int], Any] | Any, law: Any, *, n_draws: int = 10_000, false_alarm: float = 1e-9
) -> dict[str, float]:
    """Check that noise is independent and follows a law.

    Parameters
    ----------
    draw : callable or array-like of shape (n,) or (n, d)
        The draws, or a function that returns as many as it is asked for. Columns, and draws of one
        column, are to be independent.
    law : frozen distribution of scipy.stats
        What each number should follow; or an object with ``cdf``, ``sf`` and, of integers, ``pmf``.
    n_draws : int, default=10_000
        How many draws to ask a function for.
    false_alarm : float, default=1e-9
        Bound on the probability to reject noise that is right.

    Returns
    -------
    dict
        The p-value of each test: ``"location"``, ``"scale"``, ``"shape"``, ``"tails"`` and
        ``"dependence"`` (of neighbouring draws, of the two halves, of columns).

    Raises
    ------
    AssertionError
        If one of the tests rejects at its fifth of `false_alarm`.

    Notes
    -----
    All but once in a million, at the default false alarm, a deviation that is off by a relative `r`
    of at most 0.2 is found with ``75 / r**2`` numbers, half or twice the deviation with 150; a
    shift by `r` deviations, or a correlation `r` of one of the pairings, with ``130 / r**2``; a
    distribution function at a distance `r` with ``35 / r**2``. Of integers, p-values vary from call
    to call: each is spread at random over its step of the distribution function.

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
    """Check that a sampler draws the lots that are accounted for.

    Parameters
    ----------
    draw : callable
        Returns, for a number of lots, the row numbers in all of them and the offsets at which lots
        begin and end, as ``PoissonSampler.draw`` does.
    n_rows : int
        Number of rows; some dozens are enough. Memory and time grow with its square.
    sample_rate : float, optional
        Poisson: each row is in each lot with this probability, independently.
    batch_size : int, optional
        Lots are independent uniform subsets of this size, without replacement.
    allocation : (int, int), optional
        ``(k, t)``: each row is in k of each t consecutive lots, uniformly and independently of
        other rows. Give one of the three.
    n_lots : int, default=20_000
        How many lots to draw, a multiple of t.
    false_alarm : float, default=1e-9
        Bound on the probability to reject a right sampler.

    Returns
    -------
    dict
        The p-value of each test: how often rows and pairs of rows come, in the same, in
        neighbouring and in far lots; and, for Poisson, what :func:`check_noise` says of the sizes.

    Raises
    ------
    AssertionError
        If a row comes twice, a size is not as stated, or one of the tests rejects.
    ValueError
        If not exactly one law is given.

    Notes
    -----
    A rate that is off by a relative `r` is found, but for one case in a million, with about
    ``130 / r**2`` rows in all lots together at the default false alarm.

    Examples
    --------
    >>> from skdp.mechanisms import PoissonSampler, RandomStream
    >>> from skdp.testing import check_sampler
    >>> sampler = PoissonSampler(20, 0.1, RandomStream.from_seed(0))
    >>> p_values = check_sampler(sampler.draw, 20, sample_rate=0.1)
    """
    if sum(part is not None for part in (sample_rate, batch_size, allocation)) != 1:
        raise ValueError("Give one of sample_rate, batch_size and allocation.")
    lots = _inclusions(*draw(n_lots), n_rows)
    found = {}
    if sample_rate is not None:
        share, pair = sample_rate, sample_rate**2
        law = stats.binom(n_rows, sample_rate)
        sizes = _test_normals(_as_normals(lots.sum(axis=1)[:, None], law))
        found = {f"{name} of lot sizes": p_value for name, p_value in sizes.items()}
    else:
        size, among = allocation or (batch_size or 0, n_rows)
        if allocation:  # each row draws a subset of the lots
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
    _decide("The lots are not those of the stated sampler", found, false_alarm)
    return found


def _as_normals(values: np.ndarray, law: Any) -> np.ndarray:
    """Return what is standard normal if the values follow the law, exactly in both tails."""
    below, above, possible = law.cdf(values), law.sf(values), np.isfinite(values)
    if hasattr(law, "pmf"):  # anywhere on the step of the distribution function
        mass = law.pmf(values)
        part = mass * np.random.default_rng().random(values.shape)
        below, above, possible = below - part, above + part, possible & (mass > 0.0)
    normals = np.where(below < 0.5, ndtri(below), -ndtri(above))
    if not np.all(possible & np.isfinite(normals)):
        raise AssertionError("The draws do not follow the law: there are values it cannot take.")
    return normals


def _test_normals(normals: np.ndarray) -> dict[str, float]:
    """Return p-values of independent standard normals, each at most uniform below."""
    flat = np.sort(normals, axis=None)
    n, half = flat.size, len(normals) // 2
    tail = min(_TAIL, _IN_TAIL / n)
    beyond = np.array([np.sum(flat < ndtri(tail)), np.sum(flat > -ndtri(tail))])
    gap = stats.ks_1samp(flat, ndtr, method="asymp").statistic
    # Of independent normals a and b, a + b and a - b are independent and of one variance.
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
    """Return the two-sided p-value of the least likely one of some numbers of one law."""
    found = np.atleast_1d(found)
    least = found - 1 if hasattr(law, "pmf") else found
    tails = np.minimum(law.cdf(found, *parameters), law.sf(least, *parameters))
    return min(1.0, 2.0 * max(found.size, 1) * float(np.min(tails, initial=1.0)))


def _inclusions(indices: Any, offsets: Any, n_rows: int) -> np.ndarray:
    """Return which rows are in which lots, as zeros and ones."""
    lots = np.zeros((len(offsets) - 1, n_rows))
    np.add.at(lots, (np.repeat(np.arange(len(lots)), np.diff(offsets)), np.asarray(indices)), 1.0)
    if lots.max(initial=0.0) > 1.0:
        raise AssertionError("A row comes twice in a lot.")
    return lots


def _decide(what: str, found: dict[str, float], false_alarm: float) -> None:
    wrong = [name for name, p_value in found.items() if p_value <= false_alarm / len(found)]
    if wrong:
        named = ", ".join(f"{name} (p = {found[name]:.2g})" for name in wrong)
        raise AssertionError(f"{what}: {named}.")
