"""matplotlib, imported when it is needed, and what pictures of results share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from skdp.choices import AxisScale
from skdp.parameters import check_choice

_LOWEST = 1e-4  # of logarithmic axes


def pyplot(caller: str) -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        from matplotlib import pyplot as found
    except ImportError as missing:
        raise ImportError(
            f"{caller} needs matplotlib, which is missing: pip install 'skdp[plot]'."
        ) from missing
    return found


class ResultDisplay(ABC):
    """Base of the pictures of a result, on the unit square if nothing else is said."""

    _axes: tuple[str, str]
    _on_unit_square = True

    def __init__(self, result: Any) -> None:
        self.result = result

    @classmethod
    def from_result(
        cls, result: Any, *, ax: Any = None, scale: AxisScale = "linear", **kwargs: Any
    ) -> Self:
        """Draw a result; the other parameters are those of `plot`."""
        return cls(result).plot(ax, scale=scale, **kwargs)

    def plot(self, ax: Any = None, *, scale: AxisScale = "linear", **kwargs: Any) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw, by default a new figure.
        scale : {"linear", "log"}, default="linear"
            Scale of both axes; "log" begins at 1e-4 and shows the low false-positive rates. Axes in
            the unit of a target are linear.
        **kwargs : dict
            Passed on to matplotlib's ``plot`` for the main line.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        check_choice("scale", scale, ("linear", "log"))
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax, kwargs)
        across, up = self._axes
        ax.set(xlabel=across, ylabel=up)
        if self._on_unit_square:
            limits = (_LOWEST if scale == "log" else 0.0, 1.0)
            ax.set(xscale=scale, yscale=scale, xlim=limits, ylim=limits)
        ax.legend()
        return self

    @abstractmethod
    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        """Draw everything but axes and legend."""
