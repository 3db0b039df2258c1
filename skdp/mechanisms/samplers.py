"""Samplers of batches, and random numbers of runs.

Each sampler draws the batches of many steps at once: an array of row numbers, and the offset of
each step's batch. Poisson batches may be empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skdp.accounting.numerics.counts import check_stopping, gamma_of_mean, mean_of_gamma
from skdp.base.parameters import plain_arguments
from skdp.mechanisms.random_stream import RandomStream


@plain_arguments
class PoissonSampler:
    """Sampler that includes each row in each batch independently with the same probability.

    The work is proportional to the size of the batches, not to the number of rows, as distances
    between chosen rows are geometric.

    Parameters
    ----------
    n_rows : int
        Number of rows to sample from.
    sample_rate : float
        Probability in (0, 1) that a row enters a batch.
    stream : RandomStream
        Source of randomness.

    Examples
    --------
    >>> from skdp.mechanisms import PoissonSampler, RandomStream
    >>> sampler = PoissonSampler(1000, 0.02, RandomStream.from_entropy())
    >>> indices, offsets = sampler.draw(steps=5)
    >>> sampler.expected_lot_size, offsets.shape, bool(indices.size == offsets[-1])
    (20.0, (6,), True)
    """

    def __init__(self, n_rows: int, sample_rate: float, stream: RandomStream) -> None:
        if n_rows < 1 or not 0.0 < sample_rate < 1.0:
            raise ValueError(
                f"n_rows must be positive and sample_rate in (0, 1), got {n_rows}, {sample_rate}."
            )
        self.n_rows = n_rows
        self.sample_rate = sample_rate
        self._stream = stream

    @property
    def expected_lot_size(self) -> float:
        """Mean number of rows in a batch."""
        return self.n_rows * self.sample_rate

    def draw(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw the batches of `steps` steps.

        Parameters
        ----------
        steps : int
            Number of batches.

        Returns
        -------
        indices : ndarray of int64, shape (total,)
            Row numbers, ascending within each batch.
        offsets : ndarray of int64, shape (steps + 1,)
            Batch ``t`` is ``indices[offsets[t]:offsets[t + 1]]``.
        """
        n_trials = steps * self.n_rows
        positions = self._successes(n_trials)
        edges = np.arange(steps + 1, dtype=np.int64) * self.n_rows
        offsets = np.searchsorted(positions, edges).astype(np.int64)
        positions -= np.repeat(edges[:-1], np.diff(offsets))
        return positions, offsets

    def _successes(self, n_trials: int) -> np.ndarray:
        """Return the positions of successes among `n_trials` Bernoulli trials."""
        log_failure = math.log1p(-self.sample_rate)
        pieces: list[np.ndarray] = []
        last = -1
        while last < n_trials:
            expected = (n_trials - 1 - last) * self.sample_rate
            count = int(expected + 4.0 * math.sqrt(expected)) + 16
            gaps = np.log(self._stream.uniform(count))
            gaps /= log_failure
            # All gaps that lead beyond the end are alike; the bound keeps the sum in range.
            np.minimum(gaps, float(n_trials), out=gaps)
            piece = gaps.astype(np.int64)
            piece += 1
            np.cumsum(piece, out=piece)
            piece += last
            pieces.append(piece)
            last = int(piece[-1])
        positions = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return positions[: int(np.searchsorted(positions, n_trials))]


@plain_arguments
class UniformSubsetSampler:
    """Sampler of batches that are uniformly random subsets of fixed size, without replacement.

    Batches of different steps are independent. Floyd's algorithm draws a subset with work
    proportional to its size.

    Parameters
    ----------
    n_rows : int
        Number of rows to sample from.
    batch_size : int
        Size of every batch, from 1 to `n_rows`.
    stream : RandomStream
        Source of randomness.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms import RandomStream, UniformSubsetSampler
    >>> sampler = UniformSubsetSampler(1000, 20, RandomStream.from_entropy())
    >>> indices, offsets = sampler.draw(steps=3)
    >>> offsets.tolist(), np.unique(indices[:20]).size
    ([0, 20, 40, 60], 20)
    """

    def __init__(self, n_rows: int, batch_size: int, stream: RandomStream) -> None:
        if not 1 <= batch_size <= n_rows:
            raise ValueError(f"batch_size must lie in 1, ..., {n_rows}, got {batch_size}.")
        self.n_rows = n_rows
        self.batch_size = batch_size
        self._stream = stream
        self._last_step_seen = np.zeros(n_rows if batch_size > 1 else 0, dtype=np.int64)
        self._step = 0

    @property
    def expected_lot_size(self) -> float:
        """Number of rows in a batch."""
        return float(self.batch_size)

    def draw(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw the batches of `steps` steps; see :meth:`PoissonSampler.draw`."""
        uniforms = self._stream.uniform(steps * self.batch_size)
        offsets = np.arange(steps + 1, dtype=np.int64) * self.batch_size
        if self.batch_size == 1:
            return (uniforms * self.n_rows).astype(np.int64), offsets
        from skdp.mechanisms._ziggurat import floyd_subsets

        indices = np.empty(steps * self.batch_size, dtype=np.int64)
        floyd_subsets(
            uniforms, self.n_rows, self.batch_size, self._last_step_seen, self._step, indices
        )
        self._step += steps
        return indices, offsets


@plain_arguments
class AllocationSampler:
    """Sampler that puts each row into one batch per epoch.

    Rows are allocated independently and uniformly, anew in every epoch, so batches may be empty.
    Batches are drawn in order, any number at once.

    Parameters
    ----------
    n_rows : int
        Number of rows to sample from.
    lots : int
        Number of batches in an epoch, at least 1.
    stream : RandomStream
        Source of randomness; each epoch uses a separate child.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms import AllocationSampler, RandomStream
    >>> sampler = AllocationSampler(100, 10, RandomStream.from_entropy())
    >>> epoch, offsets = sampler.draw(steps=10)
    >>> np.array_equal(np.sort(epoch), np.arange(100))  # every row once
    True
    """

    def __init__(self, n_rows: int, lots: int, stream: RandomStream) -> None:
        if n_rows < 1 or lots < 1:
            raise ValueError(f"`n_rows` and `lots` must be positive, got {n_rows}, {lots}.")
        self.n_rows = n_rows
        self.lots = lots
        self._stream = stream
        self._step = 0

    @property
    def expected_lot_size(self) -> float:
        """Mean number of rows in a batch."""
        return self.n_rows / self.lots

    def draw(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw the batches of the next `steps` steps; see :meth:`PoissonSampler.draw`."""
        drawn = [np.empty(0, dtype=np.int64)]
        for step in range(self._step, self._step + steps):
            epoch, lot = divmod(step, self.lots)
            if lot == 0:
                self._allocate(self._stream.spawn(f"epoch {epoch}"))
            drawn.append(self._order[self._ends[lot] : self._ends[lot + 1]])
        self._step += steps
        return np.concatenate(drawn), np.cumsum([lot.size for lot in drawn], dtype=np.int64)

    def _allocate(self, stream: RandomStream) -> None:
        """Allocate all rows; batch t is ``order[ends[t]:ends[t + 1]]``, ascending."""
        numbers = (stream.uniform(self.n_rows) * self.lots).astype(np.int64)
        numbers = np.minimum(numbers, self.lots - 1)  # a product may be rounded up
        self._order = np.argsort(numbers, kind="stable")
        self._ends = np.searchsorted(numbers[self._order], np.arange(self.lots + 1))


_FIRST_BLOCK, _LARGEST_BLOCK = 2**9, 2**18
_NEGLIGIBLE = 2.0**-60


@dataclass(frozen=True)
class RandomStopping:
    """A random number of runs: truncated negative binomial, or Poisson.

    Use `RepeatAndSelectEvent` with the same parameters for the privacy cost of releasing the best
    of these runs. The drawn number must stay secret.

    Parameters
    ----------
    mean : float
        Expected number of runs, at least 1; for a Poisson number, positive.
    shape : float
        Shape ``eta > -1``: 0 is the logarithmic distribution, 1 the geometric one. Infinite for a
        Poisson number, the only one that may be 0.

    Notes
    -----
    For ``k >= 1`` runs the probability is proportional to ``(1 - gamma)^k Gamma(k + eta) / k!``,
    with ``gamma`` in (0, 1] (Papernot and Steinke, 2022, Definition 1).

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
        """Return the probability of exactly `k` runs."""
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
        """Yield probabilities of consecutive numbers, until the rest is negligible."""
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
        """Return the least number, its log probability, and the constant part of log ratios."""
        if math.isinf(self.shape):
            return 0, -self.mean, math.log(self.mean)
        gamma = gamma_of_mean(self.mean, self.shape)
        if gamma == 1.0:
            return 1, 0.0, -math.inf
        # One run: the derivative of the generating function at 0.
        mean = mean_of_gamma(gamma, self.shape)
        return 1, math.log(mean) + (1.0 + self.shape) * math.log(gamma), math.log1p(-gamma)
