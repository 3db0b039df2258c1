"""How often to repeat a private run before the best result is released."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skdp.accounting.numerics.stopping_numbers import check_stopping, gamma_of_mean, mean_of_gamma
from skdp.mechanisms.random_stream import RandomStream

_FIRST_BLOCK, _LARGEST_BLOCK = 2**9, 2**18
_NEGLIGIBLE = 2.0**-60


@dataclass(frozen=True)
class RandomStopping:
    """A random number of runs: truncated negative binomial, or Poisson.

    The privacy of repeating a run that often and releasing the best is that of
    `RepeatAndSelectEvent` with the same parameters. The number drawn must stay secret.

    Parameters
    ----------
    mean : float
        Expected number of runs, at least 1; for a Poisson number, positive.
    shape : float
        Shape ``eta > -1``: 0 is the logarithmic distribution, 1 the geometric one. Infinite for a
        Poisson number, the only one that may be 0.

    Notes
    -----
    With ``gamma`` in (0, 1], the chance of k runs is proportional to
    ``(1 - gamma)^k Gamma(k + eta) / k!`` for ``k >= 1`` (Papernot and Steinke, 2022, Definition 1).

    Examples
    --------
    >>> from skdp.mechanisms import RandomStopping, RandomStream
    >>> runs = RandomStopping(mean=10, shape=1)
    >>> round(runs.gamma, 12), round(runs.probability(2), 12)
    (0.1, 0.09)
    >>> runs.draw(RandomStream.from_seed(1)) >= 1
    True
    """

    mean: float
    shape: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", float(self.mean))
        object.__setattr__(self, "shape", float(self.shape))
        check_stopping(type(self).__name__, self.mean, self.shape)

    @property
    def gamma(self) -> float | None:
        """Parameter of the negative binomial distribution, in (0, 1]; None for Poisson."""
        return None if math.isinf(self.shape) else gamma_of_mean(self.mean, self.shape)

    def probability(self, k: int) -> float:
        """Return the chance of exactly `k` runs."""
        for first, chances in self._blocks():
            if k < first:
                return 0.0
            if k < first + len(chances):
                return float(chances[k - first])
        return 0.0

    def draw(self, stream: RandomStream) -> int:
        """Draw a number of runs, by inversion of the distribution function."""
        rest = float(stream.uniform(1)[0])
        number = 0
        for first, chances in self._blocks():
            reached = np.cumsum(chances)
            at = int(np.searchsorted(reached, rest))
            if at < len(chances):
                return first + at
            rest -= float(reached[-1])
            number = first + len(chances) - 1
        return number

    def _blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield consecutive numbers' chances, until the rest is negligible."""
        first, log_chance, log_share = self._start()
        previous = log_chance
        yield first, np.array([math.exp(log_chance)])
        size = _FIRST_BLOCK
        while log_share > -math.inf:
            following = first + 1.0 + np.arange(size)
            if math.isinf(self.shape):
                log_ratios = log_share - np.log(following)
            else:
                log_ratios = log_share + np.log1p((self.shape - 1.0) / following)
            log_chances = previous + np.cumsum(log_ratios)
            yield first + 1, np.exp(log_chances)
            first, previous = first + size, float(log_chances[-1])
            size = min(2 * size, _LARGEST_BLOCK)
            # Beyond, ratios fall, or rise to that of a geometric series.
            ratio = math.exp(max(log_ratios[-1], log_share if math.isfinite(self.shape) else -1e9))
            if ratio < 1.0 and math.exp(previous) * ratio / (1.0 - ratio) < _NEGLIGIBLE:
                return

    def _start(self) -> tuple[int, float, float]:
        """Return the least number, its log chance, and the constant part of the log ratios."""
        if math.isinf(self.shape):
            return 0, -self.mean, math.log(self.mean)
        gamma = gamma_of_mean(self.mean, self.shape)
        if gamma == 1.0:
            return 1, 0.0, -math.inf
        # One run: the derivative of the generating function at 0.
        mean = mean_of_gamma(gamma, self.shape)
        return 1, math.log(mean) + (1.0 + self.shape) * math.log(gamma), math.log1p(-gamma)
