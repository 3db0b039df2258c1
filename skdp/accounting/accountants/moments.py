"""The moments accountant, as its authors published it."""

from __future__ import annotations

from collections.abc import Callable

from skdp.accounting.accountants.rdp import RDPAccountant

LARGEST_MOMENT = 32


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
    al., 2016, equations 3 and 4): always the second (Mironov, Talwar and Zhang, 2019, Theorem 5),
    which is a binomial sum. Moments add up and
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

    def _conversion(self, moment: float) -> float:
        return 0.0

    def _best(self, bound: Callable[[float], float]) -> float:
        return min(bound(float(moment)) for moment in range(1, LARGEST_MOMENT + 1))
