"""Base of plots of results; matplotlib is imported on first use."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from skdp.accounting import Accountant
from skdp.base.parameters import AxisScale, check_choice

_LOWEST = 1e-4  # of logarithmic axes
_LEGEND_WIDTH = 66  # characters per line in the default figure


def pyplot(caller: str) -> Any:
    """Import matplotlib, or raise with the way to install it."""
    try:
        from matplotlib import pyplot as found
    except ImportError as missing:
        raise ImportError(
            f"{caller} needs matplotlib, which is not installed: pip install 'skdp[plot]'."
        ) from missing
    return found


class ResultDisplay(ABC):
    """Base of plots of a result, by default on the unit square."""

    _axes: tuple[str, str]
    _on_unit_square = True
    _reach = 1.0  # upper end of both axes

    def __init__(self, result: Any) -> None:
        self.result = result

    @classmethod
    def from_result(
        cls, result: Any, *, ax: Any = None, scale: AxisScale = "linear", **kwargs: Any
    ) -> Self:
        """Plot a result; the other parameters are those of `plot`."""
        return cls(result).plot(ax, scale=scale, **kwargs)

    def plot(self, ax: Any = None, *, scale: AxisScale = "linear", **kwargs: Any) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on, by default of a new figure.
        scale : {"linear", "log"}, default="linear"
            Scale of both axes. "log" begins at 1e-4 and shows low false-positive rates. Axes in the
            unit of a target are always linear.
        **kwargs : dict
            Passed to matplotlib's ``plot`` for the main line.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        check_choice("scale", scale, ("linear", "log"))
        place: dict[str, Any] = {}
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
            place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "frameon": False}
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax, kwargs)
        across, up = self._axes
        ax.set(xlabel=across, ylabel=up)
        if self._on_unit_square:
            limits = (_LOWEST if scale == "log" else 0.0, self._reach)
            ax.set(xscale=scale, yscale=scale, xlim=limits, ylim=limits)
        shown, labels = ax.get_legend_handles_labels()
        # Below the plot, to hide no line.
        ax.legend(shown, [textwrap.fill(label, _LEGEND_WIDTH) for label in labels], **place)
        return self

    @abstractmethod
    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        """Draw everything except axes and legend."""


def check_accountant(accountant: Accountant) -> None:
    """Refuse objects other than accountants."""
    if not isinstance(accountant, Accountant):
        raise TypeError(
            f"accountant must be an Accountant, got {type(accountant).__name__}; use "
            "from_estimator for fitted models."
        )


def whole_numbers(steps: Sequence[int]) -> list[int]:
    """Return numbers of steps as integers; refuse fractions."""
    found = np.asarray(steps)
    if found.ndim != 1 or found.dtype.kind not in "iuf" or bool((found % 1 != 0).any()):
        raise ValueError(f"steps must be a sequence of whole numbers, got {steps!r}.")
    return [int(count) for count in found]
