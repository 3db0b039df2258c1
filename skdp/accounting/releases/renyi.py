"""A release described by the two distributions that are hardest to tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skdp.accounting.distributions import Distribution
from skdp.accounting.events import Event
from skdp.accounting.numerics.renyi_divergences import check_comparable, log_moment


@dataclass(frozen=True)
class RenyiEvent(Event):
    """One release whose outcomes on neighbouring data sets are known distributions.

    Parameters
    ----------
    left, right : Distribution
        Two distributions of one class of `skdp.accounting.distributions`, such that at
        every order and for every pair of neighbouring data sets under the adjacency in force,
        in either order, the Renyi divergence of the outcomes is at most the larger of those of
        `left` from `right` and of `right` from `left`. That is for the caller to prove: the
        distributions must be a public worst case, not those of the data at hand.

    Raises
    ------
    TypeError
        If there is no closed form for these classes.
    ValueError
        If the dimensions differ.

    Notes
    -----
    Neighbours may stand in either order, and in a composition not always in the same: what a later
    release is asked may depend on earlier results. So the larger of both divergences is taken
    release by release and then added up; the larger of the two sums would understate the cost.

    Examples
    --------
    >>> from skdp.accounting import GenericAccountant, RenyiEvent
    >>> from skdp.accounting.distributions import Gamma
    >>> step = RenyiEvent(Gamma(2.5, 0.8), Gamma(2.5, 1.0))
    >>> round(GenericAccountant().compose(step, count=3).epsilon(1e-5), 4)
    5.6289
    """

    left: Distribution
    right: Distribution

    def __post_init__(self) -> None:
        check_comparable(self.left, self.right)

    def log_moment(self, order: float) -> float:
        """Return ``order - 1`` times the larger Renyi divergence of the two.

        Parameters
        ----------
        order : float
            Order of the divergence, above 1.

        Returns
        -------
        float
            The larger log moment in nats, rounded up; infinite where a divergence is.
        """
        return max(
            log_moment(self.left, self.right, order), log_moment(self.right, self.left, order)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values, fit for JSON.

        Returns
        -------
        dict
            ``"type"`` names the class; the other keys are its distributions.
        """
        return {
            "type": type(self).__name__,
            "left": self.left.to_dict(),
            "right": self.right.to_dict(),
        }

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any]) -> RenyiEvent:
        return cls(**{key: Distribution.from_dict(value) for key, value in parameters.items()})
