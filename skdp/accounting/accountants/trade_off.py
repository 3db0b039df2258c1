"""What an accountant's bounds say in terms of tests: f-differential privacy."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.accounting.numerics.trade_off import profile_grid, trade_off_lower


class TradeOff(ABC):
    """The trade-off function that follows from epsilon at every delta, and delta at every epsilon.

    Base of `Accountant`, which has both.
    """

    @property
    @abstractmethod
    def is_upper_bound(self) -> bool:
        """Whether results are proved to be at least the truth."""

    @property
    @abstractmethod
    def is_differential_privacy(self) -> bool:
        """Whether results are about differential privacy."""

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """Return an upper bound on epsilon."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta."""

    def trade_off(self, alphas: ArrayLike) -> NDArray[np.float64]:
        """Return a lower bound on the trade-off function of what was composed.

        Whoever tests which of two neighbours a release came from, with a false-alarm rate of at
        most alpha, misses with at least this probability: f-differential privacy.

        Parameters
        ----------
        alphas : array-like of float
            False-alarm rates, in [0, 1].

        Returns
        -------
        ndarray
            Miss rates in [0, 1], of the shape of `alphas`. The true function is nowhere below.

        Raises
        ------
        ValueError
            If a rate lies outside [0, 1], or this accountant promises no upper bound on
            differential privacy.

        Notes
        -----
        The bound is the largest of the lines that (epsilon, delta) at 101 epsilons allow, and
        touches the function wherever these bounds are exact.

        References
        ----------
        Dong, Roth & Su (2022), "Gaussian Differential Privacy", Proposition 6.

        Examples
        --------
        >>> from skdp.accounting import GaussianEvent, PLDAccountant
        >>> PLDAccountant().compose(GaussianEvent(1.0)).trade_off([0.01, 0.05, 0.5]).round(3)
        array([0.908, 0.74 , 0.159])
        """
        rates = np.asarray(alphas, dtype=np.float64)
        if not np.all((rates >= 0.0) & (rates <= 1.0)):
            raise ValueError(f"alphas must lie in [0, 1], got {alphas!r}.")
        if not (self.is_upper_bound and self.is_differential_privacy):
            raise ValueError(
                f"{type(self).__name__} promises no upper bound on differential privacy, so that "
                "no trade-off function follows from it."
            )
        epsilons = profile_grid(self.epsilon)
        deltas = np.array([float(self.delta(float(point))) for point in epsilons])
        return trade_off_lower(epsilons, deltas, rates.ravel()).reshape(rates.shape)
