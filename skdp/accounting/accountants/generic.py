"""The generic and the Bayesian accountant: moments of any outcome distribution."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from skdp.accounting.accountants.rdp import RDPAccountant
from skdp.accounting.analysis import GaussianMixture, analysis_of
from skdp.accounting.events import ComposedEvent, Event, RepeatedEvent
from skdp.accounting.numerics.arithmetic import Array, minimise
from skdp.accounting.releases.sampled_gaussian import binomial_terms
from skdp.base.parameters import Adjacency, Conversion, Subsampling
from skdp.exceptions import UnsupportedEventError

# Logarithms of the moments of the first scan, for closed forms.
_CLOSED_FORM: list[float] = np.log(np.geomspace(1e-7, 1e10, 52)).tolist()


class GenericAccountant(RDPAccountant):
    """Accountant with the Renyi divergences of known outcome distributions.

    Supports everything that `RDPAccountant` does. Also supports, as a `RenyiEvent`, any release
    with normal, Laplace, exponential, gamma, beta or uniform outcomes on neighbouring data sets.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Adjacency relation between neighbouring data sets.
    subsampling : {"exact", "printed"}, default="exact"
        Treatment of a Gaussian release on a sample. ``"exact"`` uses the divergence of the mixture
        of outcomes that sampling produces. ``"printed"`` uses the paper's formula, ``q^2`` times
        the divergence of the unsampled release. The formula gives *no bound*: results are marked
        accordingly, and budgets and calibration refuse them.
    conversion : {"chernoff", "improved"}, default="chernoff"
        Conversion of divergences to (epsilon, delta): the paper's Theorem 2, or the tighter one of
        `RDPAccountant`.

    Notes
    -----
    Let ``K(l) = sum over releases of l D_(l+1)``, with D the larger divergence of the two
    directions. Then ``log delta <= K(l) - l epsilon`` for every real ``l > 0`` (Triastcyn and
    Faltings, 2019, Theorem 2). ``K`` is convex, so a scalar search finds the best ``l`` among the
    orders with finite divergences.

    The printed formula treats the mixture ``(1-q) N(0) + q N(1)`` as ``N(q)``. At order 2 the true
    divergence is ``log(1 + q^2 (e^(1/sigma^2) - 1))``, which exceeds the printed ``q^2 / sigma^2``
    for all parameters. With little noise the printed epsilon is far below the true one. For one
    step at q = 0.01, sigma = 0.5 and delta = 1e-5 it is 0.096 instead of 3.025.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, GenericAccountant, PoissonSampledEvent
    >>> step = PoissonSampledEvent(0.01, GaussianEvent(4.0))
    >>> round(GenericAccountant().compose(step, count=10_000).epsilon(1e-5), 4)
    1.2584
    >>> GenericAccountant(subsampling="printed").compose(step).epsilon(1e-5).is_guarantee
    False
    """

    name = "generic"
    _takes_infinite = True
    _parameters: ClassVar[tuple[str, ...]] = ("subsampling", "conversion")

    def __init__(
        self,
        adjacency: Adjacency = "add-remove",
        *,
        subsampling: Subsampling = "exact",
        conversion: Conversion = "chernoff",
    ) -> None:
        super().__init__(adjacency)
        if subsampling not in ("exact", "printed"):
            raise ValueError(f"subsampling must be 'exact' or 'printed', got {subsampling!r}.")
        if conversion not in ("chernoff", "improved"):
            raise ValueError(f"conversion must be 'chernoff' or 'improved', got {conversion!r}.")
        self.subsampling = subsampling
        self.conversion = conversion

    @property
    def is_upper_bound(self) -> bool:
        """Whether results are proved upper bounds; False with ``subsampling="printed"``."""
        return self.subsampling == "exact"

    def _leaf_log_moment(self, leaf: Event, order: float) -> float:
        mixture = self._sampled(leaf)
        if self.subsampling == "printed" and mixture is not None:
            # Triastcyn and Faltings (2019), equation 7, which is no bound.
            return 0.5 * order * (order - 1.0) * (mixture.rate / mixture.noise_multiplier) ** 2
        return super()._leaf_log_moment(leaf, order)

    def _sampled(self, leaf: Event) -> GaussianMixture | None:
        mixture = analysis_of(leaf, self._adjacency).mixture()
        return None if mixture is None or mixture.kind == "gaussian" else mixture

    def _conversion(self, moment: float) -> float:
        return 0.0 if self.conversion == "chernoff" else super()._conversion(moment)

    def _best(self, bound: Callable[[float], float]) -> float:
        if all(self._has_closed_form(leaf) for leaf in self._counts):
            return minimise(lambda x: bound((1.0 + math.exp(x)) - 1.0), _CLOSED_FORM)
        return super()._best(bound)

    def _has_closed_form(self, leaf: Event) -> bool:
        moments = self._moments(leaf)
        printed = self.subsampling == "printed" and self._sampled(leaf) is not None
        return printed or (moments is not None and moments.closed_form)


def gaussian_of(leaf: Event, adjacency: Adjacency) -> GaussianMixture:
    """Return the mixture of a Gaussian, sampled or not; refuse anything else."""
    mixture = analysis_of(leaf, adjacency).mixture()
    if mixture is None:
        raise UnsupportedEventError(
            f"event must be a Gaussian release, without sampling or on a sample supported under "
            f"{adjacency!r} adjacency, got {leaf!r}."
        )
    return mixture


_LARGEST_DISTANCE = 1e280  # squared, in units of the noise: certain to be distinguished
_SMALLEST_MEAN = 1e-300  # a quantile below the median, at a gamma near 1, may be negative


class _Observation(NamedTuple):
    """Steps of one release, observed distances and statistics.

    Mean and deviation, per moment, are of ``exp(cost)`` over ``exp(log_scale)``.
    """

    event: Event
    steps: int
    distances: Array
    log_scale: Array
    mean: Array
    deviation: Array


class BayesianAccountant(GenericAccountant):
    """Estimator of a data-dependent cost from private gradients; not differential privacy.

    Releases added by `observe` cost as much as the observed pairs of records suggest. Releases
    added by `compose` count with their worst case.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Adjacency relation between neighbouring data sets, for releases added by `compose`.
    subsampling : {"printed", "exact"}, default="printed"
        Effect of sampling with rate q. ``"printed"`` multiplies the divergence by ``q^2`` as the
        paper does, which understates it. ``"exact"`` uses the divergence of the mixture and
        requires integer moments.
    moments : sequence of float, default=(1, 2, ..., 32)
        Positive lambdas over which the bound is minimised.
    gamma : float, default=1e-6
        Part of delta for the uncertainty of the averages, absolute, in (0, 1). Estimates at a delta
        of at most ``gamma`` are infinite.

    Notes
    -----
    At a step with noise of standard deviation s, ``D`` is the distance between the gradients of a
    pair (i, j) of records. Let ``y = exp(q^2 l (l+1) D^2 / (2 s^2))`` have mean ``a`` and deviation
    ``S`` over m pairs. The step is charged ``log max(1, a + S t / sqrt(m - 1))``. Here t is the
    quantile of Student's distribution with m - 1 degrees of freedom at ``1 - gamma / T``. Then
    ``epsilon = min over l of (sum of charges + log(1/(delta - gamma))) / l``. See Triastcyn and
    Faltings (2019), Theorem 4 and section 5.2, and Oliphant (2006); the union over T steps is ours.

    Every result is marked as neither differential privacy nor an upper bound. Budgets, records and
    calibration refuse it, for these reasons:

    1. The average is over random pairs of the given data. An outlying record, which needs privacy
       most, gets no protection.
    2. It requires independent records and steps, but steps reuse the same data. It requires a
       nearly normal ``y``, but ``y`` has heavy tails, and the quantile covers too little.
    3. The printed ``q^2`` understates the effect of sampling even in the worst case.
    4. The number is a function of the private data and must not be published. Only those who may
       see the data may see it.
    5. The best lambda is chosen after looking at the data.
    6. Charges of single steps multiply only if the pairs are independent of the trajectory, and
       they are not.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.accounting import BayesianAccountant, GaussianEvent, PoissonSampledEvent
    >>> step = PoissonSampledEvent(0.01, GaussianEvent(1.0))
    >>> accountant = BayesianAccountant()
    >>> distances = np.random.default_rng(0).uniform(0.0, 0.1, size=50)
    >>> estimate = accountant.observe(step, distances, count=100).epsilon(1e-5)
    >>> estimate.is_guarantee
    False
    """

    name = "bayesian"
    _parameters: ClassVar[tuple[str, ...]] = ("subsampling", "moments", "gamma")

    def __init__(
        self,
        adjacency: Adjacency = "add-remove",
        *,
        subsampling: Subsampling = "printed",
        moments: Iterable[float] = range(1, 33),
        gamma: float = 1e-6,
    ) -> None:
        super().__init__(adjacency, subsampling=subsampling)
        if not isinstance(moments, Iterable):
            raise TypeError(f"moments must be a sequence of numbers, got {moments!r}.")
        self.moments = tuple(float(moment) for moment in moments)
        if not self.moments or not all(0.0 < m < math.inf for m in self.moments):
            raise ValueError(f"moments must be finite numbers > 0, got {self.moments!r}.")
        if subsampling == "exact" and not all(m.is_integer() for m in self.moments):
            raise ValueError(f"subsampling='exact' needs integer moments, got {self.moments!r}.")
        if not 0.0 < gamma < 1.0:
            raise ValueError(f"gamma must lie in (0, 1), got {gamma!r}.")
        self.gamma = float(gamma)
        self._observations: list[_Observation] = []

    @property
    def is_upper_bound(self) -> bool:
        """Always False: nothing is proved about the result."""
        return False

    @property
    def is_differential_privacy(self) -> bool:
        """Always False: the result is about the given data, not about all data sets."""
        return False

    @property
    def event(self) -> ComposedEvent:
        """All events composed or observed so far, without the observations."""
        observed = tuple(RepeatedEvent(seen.event, seen.steps) for seen in self._observations)
        return ComposedEvent(super().event.events + observed)

    def observe(self, event: Event, squared_distances: ArrayLike, count: int = 1) -> Self:
        """Add a release with observations of its gradients, and return this accountant.

        Parameters
        ----------
        event : GaussianEvent, PoissonSampledEvent or UniformSampledEvent
            Release of one step: a Gaussian, sampled or not.
        squared_distances : array-like of shape (n_pairs,)
            ``||g_i - g_j||^2 / C^2`` for at least 2 pairs of records drawn independently and
            uniformly. Here g are the (clipped) gradients of single records at this step, and C is
            the bound that the noise multiplier refers to. These numbers are private.
        count : int, default=1
            Number of steps that the observations represent, at least 1.

        Raises
        ------
        UnsupportedEventError
            If the release is not a Gaussian, sampled or not.
        ValueError
            If the distances are not finite numbers >= 0, or too few. The message does not repeat
            them.
        """
        mixture = gaussian_of(event, self._adjacency)
        repeated = RepeatedEvent(event, count)
        try:
            distances = np.array(squared_distances, dtype=np.float64)
        except (TypeError, ValueError):
            # NumPy's message would quote the private input.
            raise ValueError("squared_distances must be a list of real numbers.") from None
        if distances.ndim != 1 or len(distances) < 2 or count < 1:
            raise ValueError(
                f"squared_distances must have at least 2 numbers and count must be >= 1, got "
                f"shape {distances.shape} and count={count!r}."
            )
        if not bool(np.all(np.isfinite(distances) & (distances >= 0.0))):
            raise ValueError("squared_distances must be finite numbers >= 0.")
        costs = self._costs(mixture, distances)
        log_scale = costs.max(axis=1)
        scaled = np.exp(costs - log_scale[:, None])
        self._observations.append(
            _Observation(
                event,
                repeated.count,
                distances,
                log_scale,
                scaled.mean(axis=1),
                scaled.std(axis=1, ddof=1),
            )
        )
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the accountant's state as plain values, including private observations.

        Store it only where the data may be stored.
        """
        base = super().to_dict()
        observed = [
            {"event": s.event.to_dict(), "count": s.steps, "distances": s.distances.tolist()}
            for s in self._observations
        ]
        base["moments"] = list(self.moments)
        return base | {"event": super().event.to_dict(), "observations": observed}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild an accountant from the output of `to_dict`."""
        accountant = super().from_dict(data)
        for seen in data.get("observations", ()):
            accountant.observe(Event.from_dict(seen["event"]), seen["distances"], seen["count"])
        return accountant

    def _costs(self, mixture: GaussianMixture, distances: Array) -> Array:
        """Return the log moment of each pair, shape (n_moments, n_pairs)."""
        rate, multiplier = mixture.rate, mixture.noise_multiplier
        with np.errstate(over="ignore"):
            moved = np.minimum(distances / multiplier / multiplier, _LARGEST_DISTANCE)
        orders = np.array(self.moments) + 1.0
        if self.subsampling == "printed" or rate in (0.0, 1.0):
            return np.outer(0.5 * orders * (orders - 1.0) * rate**2, moved)
        terms = (binomial_terms(rate, moved, int(order)) for order in orders)
        return np.array([np.logaddexp.reduce(each, axis=-1) for each in terms])

    def _basic_epsilon(self, delta: float) -> float:
        return math.inf if self._observations else super()._basic_epsilon(delta)

    def _charges(self) -> Array:
        """Return the total charge at each moment."""
        steps = sum(seen.steps for seen in self._observations)
        total = np.array([self.log_moment(moment + 1.0) for moment in self.moments])
        for seen in self._observations:
            freedom = len(seen.distances) - 1
            quantile = -float(stdtrit(freedom, self.gamma / steps))
            upper = seen.mean + seen.deviation * (quantile / math.sqrt(freedom))
            total += seen.steps * np.maximum(
                0.0, seen.log_scale + np.log(np.maximum(upper, _SMALLEST_MEAN))
            )
        return total

    def _missing(self) -> float:
        """Return the delta for uncertainty and failures."""
        return self._failure() + (self.gamma if self._observations else 0.0)

    def _epsilon(self, delta: float) -> float:
        missing = self._missing()
        if missing >= delta:
            return math.inf
        moments = np.array(self.moments)
        return float(np.min((self._charges() - math.log(delta - missing)) / moments))

    def _delta(self, epsilon: float) -> float:
        if math.isinf(epsilon):
            return self._missing()
        log_delta = float(np.min(self._charges() - np.array(self.moments) * epsilon))
        return self._missing() + max(math.exp(min(0.0, log_delta)), sys.float_info.min)
