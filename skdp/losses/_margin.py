"""What losses of the margin have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.losses._bounds import ROUND_UP


class MarginLoss(ABC):
    """Base of losses that depend on the margin m = t * score, with labels t in {-1, +1}.

    Subclasses state the facts below, which all sensitivities follow from; none has a default that
    a loss could inherit without having it. ``width`` is a parameter that kernels read.
    """

    width: float = 1.0
    n_outputs: int = 1

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Whether the second derivative is nowhere negative."""

    @property
    @abstractmethod
    def largest_slope(self) -> float:
        """Supremum of the size of the derivative; infinite if there is none."""

    @property
    @abstractmethod
    def slope_sign(self) -> int:
        """-1 for a loss that never rises, 1 for one that never falls, 0 for any other."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """Lipschitz constant of the derivative; infinite if there is none."""

    def value(self, margins: ArrayLike) -> NDArray[np.float64]:
        """Return the loss at each margin.

        Parameters
        ----------
        margins : array-like
            Margins, of any shape.

        Returns
        -------
        ndarray
            Losses, float64, same shape.
        """
        return self._evaluate(margins, 0)

    def derivative(self, margins: ArrayLike) -> NDArray[np.float64]:
        """Return the derivative with respect to the margin; see :meth:`value`."""
        return self._evaluate(margins, 1)

    def second_derivative(self, margins: ArrayLike) -> NDArray[np.float64]:
        """Return the (generalised) second derivative; see :meth:`value`."""
        return self._evaluate(margins, 2)

    def _evaluate(self, margins: ArrayLike, order: int) -> NDArray[np.float64]:
        from skdp.losses.kinds import kernel_kind
        from skdp.losses.scalar import evaluate_margins

        array = np.asarray(margins, dtype=np.float64)
        flat = np.array(array, dtype=np.float64, order="C").reshape(-1)
        out = np.empty_like(flat)
        evaluate_margins(kernel_kind(self), self.width, order, flat, out)
        return out.reshape(array.shape)

    def lipschitz(self, row_norm: float) -> float:
        """Return a bound on the norm of one record's gradient, for rows of norm <= ``row_norm``.

        The regulariser is left out: it does not depend on the data.
        """
        return self.largest_slope * row_norm

    def smoothness(self, row_norm: float) -> float:
        """Return the Lipschitz constant of one record's gradient."""
        return self.curvature * row_norm * row_norm

    def gradient_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return a bound on the difference of two records' gradients at the same weights.

        Parameters
        ----------
        row_norm : float
            Public bound on the norm of every (augmented) row.
        weight_norm_bound : float, optional
            Public bound on the norm of the weights at which gradients are compared. Some losses
            have a smaller gap there; the others ignore it.

        Returns
        -------
        float
            The bound, at most twice :meth:`lipschitz`.
        """
        return 2.0 * self.lipschitz(row_norm)

    def zero_out_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return a bound on the norm of one record's gradient, as :meth:`gradient_gap`."""
        return self.lipschitz(row_norm)

    def minimiser_norm_bound(self, row_norm: float, penalty: float) -> float:
        r"""Return a bound on the norm of the regularised minimiser that no data set exceeds.

        At the minimiser w of mean loss + (penalty/2) ||w||^2, taking the inner product of the
        gradient with w gives penalty ||w||^2 = mean(-m l'(m)) <= kappa, where kappa is the largest
        value of -m l'(m). Also penalty ||w|| <= L. The smaller of the two is returned.

        Parameters
        ----------
        row_norm : float
            Public bound on the norm of every row.
        penalty : float
            Coefficient of the penalty, > 0.

        Returns
        -------
        float
            The bound.
        """
        if not penalty > 0:
            raise ValueError(f"penalty must be positive for a minimiser to exist, got {penalty}.")
        by_product = math.sqrt(self._product_bound() / penalty)
        return min(by_product, self.lipschitz(row_norm) / penalty) * ROUND_UP

    def smoother_losses(self) -> tuple[MarginLoss, ...]:
        """Return easier losses whose minimisers, in this order, are starting points for this."""
        return ()

    def largest_curvature(self, cap: float) -> float:
        """Return the largest second derivative among margins with a slope of size at most ``cap``.

        Parameters
        ----------
        cap : float
            In (0, `largest_slope`].

        Returns
        -------
        float
            The supremum, or a larger number.
        """
        return self.curvature

    @abstractmethod
    def margin_of_slope(self, slopes: ArrayLike) -> NDArray[np.float64]:
        """Return the margin at which the derivative is minus each of the positive ``slopes``."""

    @abstractmethod
    def _product_bound(self) -> float:
        """Return the supremum of ``-m * derivative(m)`` over all margins."""
