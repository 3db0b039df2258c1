"""The moments accountant, as its authors published it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from skdp.accounting.accountants.rdp import RDPAccountant
from skdp.accounting.analysis import analysis_of
from skdp.accounting.events import Event

LARGEST_MOMENT = 32
_TAIL = 12.0  # standard deviations beyond which a truncated integral is negligible: 1e-32


@lru_cache(maxsize=4096)
def reverse_log_moment(rate: float, mu: float, moment: float) -> float:
    """Return the log moment of ``N(0)`` against ``(1-q) N(0) + q N(mu)``, to about 1e-13."""
    # The integrand is log-concave with at least the curvature of a normal density, and its mode
    # lies between ``-moment mu`` and 0. Off the real line the mixture shrinks by ``cos(mu y)`` at
    # most, so the integrand is bounded in a strip whose width falls with the square root of the
    # moment, and the trapezoidal rule converges geometrically (Trefethen and Weideman, 2014,
    # Theorem 5.1).
    strip = min(1.0, 1.0 / math.sqrt(moment + 1.0)) / mu
    step = min(0.25, 2.0 * math.pi * strip / 44.0)
    x = np.arange(-moment * mu - _TAIL, _TAIL + step, step)
    mixture = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - 0.5 * mu * mu)
    log_terms = -0.5 * x * x - 0.5 * math.log(2.0 * math.pi) - moment * mixture
    top = float(np.max(log_terms))
    return top + math.log(step * float(np.sum(np.exp(log_terms - top))))


class MomentsAccountant(RDPAccountant):
    """Account with 32 integer moments of the privacy loss and Chernoff's bound.

    Kept because it is what many published numbers were computed with. `PLDAccountant` is tighter
    by a fifth or more.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        The relation between neighbouring data sets. The published accountant is for add-remove;
        under replace-one the moments are those of the pairs of `PLDAccountant`.

    Notes
    -----
    For Poisson-sampled Gaussians the moment lambda is the larger of the two directions,
    ``E[(N(0)/mix)^lambda]`` under ``N(0)`` and ``E[(mix/N(0))^lambda]`` under ``mix`` (Abadi et
    al., 2016, equations 3 and 4), by quadrature and as an exact binomial sum. Moments add up and
    ``epsilon = min over lambda <= 32 of (sum of log moments + log(1/delta)) / lambda`` (Theorem 2).

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang (2016), Deep Learning with
    Differential Privacy.

    Examples
    --------
    The paper prints 1.26 here:

    >>> from skdp.accounting import GaussianEvent, MomentsAccountant, PoissonSampledEvent
    >>> step = PoissonSampledEvent(0.01, GaussianEvent(4.0))
    >>> round(MomentsAccountant().compose(step, count=10_000).epsilon(1e-5), 6)
    1.258575
    """

    name = "moments"

    def _leaf_log_moment(self, leaf: Event, order: float) -> float:
        value = super()._leaf_log_moment(leaf, order)
        pair = analysis_of(leaf, self._adjacency).mixture()
        directed = pair is not None and pair.kind == "poisson-add-remove" and 0.0 < pair.rate < 1.0
        if pair is None or not directed or math.isinf(value):
            return value
        return max(value, reverse_log_moment(pair.rate, pair.mu, order - 1.0))

    def _conversion(self, moment: float) -> float:
        return 0.0

    def _best(self, bound: Callable[[float], float]) -> float:
        return min(bound(float(moment)) for moment in range(1, LARGEST_MOMENT + 1))
