"""Gaussian differential privacy: exact accounting of unsampled Gaussian mechanisms."""

import math

from skdp.accounting import gaussian_profile
from skdp.accounting._base import Accountant
from skdp.accounting._leaves import gaussian_mu
from skdp.accounting.events import Event


class GDPAccountant(Accountant):
    """Account for Gaussian mechanisms exactly.

    Supports bare Gaussian releases, and sampled ones whose sample is the whole data set.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        The relation between neighbouring data sets.

    Notes
    -----
    Releases that are mu_t-GDP compose to sqrt(sum mu_t^2)-GDP, and the profile of the whole is the
    Gaussian one (Dong, Roth and Su, 2022, Corollary 3.3): nothing is lost.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, GDPAccountant
    >>> round(GDPAccountant().compose(GaussianEvent(2.0), count=4).epsilon(1e-5), 6)
    4.377178
    """

    name = "gdp"

    @property
    def mu(self) -> float:
        """The total ``mu`` of the history."""
        squares = (
            count * (gaussian_mu(leaf, self._adjacency) or 0.0) ** 2
            for leaf, count in self._counts.items()
        )
        return math.sqrt(math.fsum(squares))

    def _supports_leaf(self, leaf: Event) -> bool:
        return gaussian_mu(leaf, self._adjacency) is not None

    def _epsilon(self, delta: float) -> float:
        return gaussian_profile.epsilon(self.mu, delta)

    def _delta(self, epsilon: float) -> float:
        return gaussian_profile.delta(self.mu, epsilon)
