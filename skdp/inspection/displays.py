"""Plots of shape functions: lines for numbers, one text line per category."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any, Self

import numpy as np

from skdp.inspection.functions import ShapeFunction, ShapeFunctions, shape_functions
from skdp.reporting.drawing import pyplot

# Distance of cells without a value from a numeric range, in parts of it; plots per row.
_BESIDE, _ACROSS = 0.06, 3
# Inches of a plot, and of a line of text in it; characters of a label.
_LEAST_HEIGHT, _LINE, _LEGEND, _WIDEST = 2.8, 0.18, 0.7, 28


def _wrap(text: str) -> str:
    """Return a label in short lines, without a break in "died = 1"."""
    return fill(text.replace(" = ", "\xa0=\xa0"), _WIDEST).replace("\xa0", " ")


class ShapeFunctionDisplay:
    """Plot of shape functions, one per column; create it with `from_estimator`.

    Parameters
    ----------
    functions : ShapeFunctions
        Functions to plot.
    columns : sequence of str or None, default=None
        Names of columns. None selects up to nine of largest importance, without interactions of
        more than two columns.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Axes of the last plot, one per column.
    figure_ : matplotlib Figure
        Figure of the last plot.
    lines_ : dict
        Lines by column: one per class, or one for two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.inspection import ShapeFunctionDisplay
    >>> from skdp.preprocessing import LabelColumn, NumericColumn, TableSchema
    >>> schema = TableSchema(
    ...     [NumericColumn("age", 0, 100, cuts=[40, 60])], label=LabelColumn("ill", [0, 1])
    ... )
    >>> ages = np.random.default_rng(0).uniform(0, 100, (4000, 1))
    >>> model = schema.pipeline(OperaLogisticRegression(epsilon=1.0), positions=True)
    >>> model = model.fit(ages, (ages[:, 0] > 60).astype(int))
    >>> display = ShapeFunctionDisplay.from_estimator(model)
    >>> display.columns, display.axes_[0].get_xlabel()
    (['age'], 'age')
    """

    def __init__(self, functions: ShapeFunctions, columns: Sequence[str] | None = None) -> None:
        drawn = [name for name in functions if len(functions[name].axes) <= 2]
        ranked = sorted(drawn, key=lambda name: -float(functions[name].importance.max()))
        self.functions = functions
        self.columns = ranked[:9] if columns is None else list(columns)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        columns: Sequence[str] | None = None,
        *,
        level: float = 0.95,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Plot a fitted pipeline; see `shape_functions` and `plot` for the parameters."""
        return cls(shape_functions(model, level=level), columns).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the plots.

        Parameters
        ----------
        ax : matplotlib Axes, sequence of Axes, or None, default=None
            Axes to draw on, one per column. None creates a figure.
        **kwargs : dict
            Arguments of matplotlib's ``plot`` for the lines.

        Returns
        -------
        ShapeFunctionDisplay
            This display.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        ValueError
            If the numbers of axes and columns differ.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        own = ax is None
        if ax is None:
            ax = self._make_axes(plt)
        self.axes_ = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        count = len(self.columns)
        if self.axes_.size != count:
            raise ValueError(
                f"ax must contain {count} axes, one per column, got {self.axes_.size}."
            )
        self.figure_ = self.axes_[0].figure
        self.lines_ = {
            name: self._draw(axes, self.functions[name], kwargs)
            for axes, name in zip(self.axes_, self.columns, strict=True)
        }
        if self.functions.intercept.size > 1:
            legend: dict[str, Any] = {"title": "class", "ncols": 4}
            if own:  # below all plots
                handles, labels = self.axes_[0].get_legend_handles_labels()
                self.figure_.legend(handles, labels, loc="outside lower center", **legend)
            else:
                self.axes_[0].legend(title="class")
        return self

    def _make_axes(self, plt: Any) -> list[Any]:
        """Return axes in a new figure, with enough height for one text line per category."""
        count = len(self.columns)
        across, down = min(_ACROSS, count), -(-count // _ACROSS)
        heights = [
            max(_LEAST_HEIGHT, *(self._height(name) for name in self.columns[k : k + across]))
            for k in range(0, count, across)
        ]
        legend = _LEGEND * (self.functions.intercept.size > 1)
        size = 3.6 * across, sum(heights) + legend
        figure = plt.figure(figsize=size, layout="constrained")
        grid = figure.add_gridspec(down, across, height_ratios=heights)
        return [figure.add_subplot(grid[divmod(place, across)]) for place in range(count)]

    def _height(self, name: str) -> float:
        function = self.functions[name]
        listed = function.kind not in ("numeric", "interaction")
        return 1.0 + _LINE * (function.grid.size + len(function.others)) if listed else 0.0

    def _draw(self, ax: Any, function: ShapeFunction, style: dict[str, Any]) -> list[Any]:
        if function.kind == "interaction":
            return [self._draw_table(ax, function)]
        unit = f" ({function.unit})" if function.unit else ""
        name, added = f"{function.name}{unit}", f"added to {self.functions.target}"
        if function.kind == "numeric":
            ax.set(xlabel=name, ylabel=_wrap(added))
            return self._draw_line(ax, function, style)
        ax.set(xlabel=_wrap(added), ylabel=name)
        return self._draw_list(ax, function, style)

    def _draw_line(self, ax: Any, function: ShapeFunction, style: dict[str, Any]) -> list[Any]:
        """Draw the function of a number, with cells without one to the right of its range."""
        across, width = function.grid, function.half_width
        step = _BESIDE * float(np.ptp(across))
        beside = across[-1] + step * np.arange(1, len(function.others) + 1)
        lines = []
        for output, up in enumerate(function.values.T):
            label = self._label(output - len(function.values.T))
            (line,) = ax.plot(across, up, **{"label": label, **style})
            if width is not None:
                ax.fill_between(
                    across, up - width, up + width, color=line.get_color(), alpha=0.2, lw=0
                )
            for place, (value, reach) in zip(beside, function.others.values(), strict=True):
                ax.errorbar([place], [value[output]], reach, fmt="s", color=line.get_color())
            lines.append(line)
        ax.axhline(0.0, color="grey", linestyle=":", lw=0.8, zorder=0)
        for place, name in zip(beside, function.others, strict=True):
            ax.annotate(name, (place, 0.02), xycoords=("data", "axes fraction"), rotation=90)
        return lines

    def _draw_list(self, ax: Any, function: ShapeFunction, style: dict[str, Any]) -> list[Any]:
        """Draw the function of a list, one text line per category, the first at the top."""
        places, outputs = np.arange(function.grid.size), function.values.shape[1]
        beside = np.arange(function.grid.size, function.grid.size + len(function.others))
        lines = []
        for output, across in enumerate(function.values.T):
            # Classes are below each other.
            shift = 0.5 * (output + 0.5) / outputs - 0.25
            look = {"label": self._label(output - outputs), "marker": "o", "linestyle": "none"}
            (line,) = ax.plot(across, places + shift, **{**look, **style})
            bar = {"fmt": "none", "color": line.get_color()}
            if function.half_width is not None:
                ax.errorbar(across, places + shift, xerr=function.half_width, **bar)
            for place, (value, reach) in zip(beside, function.others.values(), strict=True):
                ax.errorbar([value[output]], [place + shift], xerr=reach, **{**bar, "fmt": "s"})
            lines.append(line)
        ax.axvline(0.0, color="grey", linestyle=":", lw=0.8, zorder=0)
        names = [*map(str, function.grid), *function.others]
        room = 72.0 * ax.get_window_extent().height / ax.figure.dpi / len(names)  # in points
        ax.set_yticks([*places, *beside], names, fontsize=float(np.clip(0.75 * room, 1.0, 9.0)))
        ax.set_ylim(len(names) - 0.5, -0.5)
        return lines

    def _label(self, output: int) -> str:
        classes = self.functions.classes
        return str(classes[output]) if len(classes) else self.functions.target

    def _draw_table(self, ax: Any, function: ShapeFunction) -> Any:
        """Draw an interaction of two columns, for the first of the scores."""
        if len(function.axes) != 2:
            raise ValueError(
                f"{function.name!r} must have at most two columns to be plotted: use its values."
            )
        shape = [cells.size for cells in function.axes]
        table = function.values[:, 0].reshape(shape)
        picture = ax.imshow(
            table.T, origin="lower", aspect="auto", cmap="coolwarm", interpolation="nearest"
        )
        several = len(function.values.T) > 1
        target = (
            f"score of {self._label(-len(function.values.T))}" if several else self.functions.target
        )
        ax.figure.colorbar(picture, ax=ax, label=_wrap(f"added to {target}"))
        for name, cells, axis in zip(
            function.name.split(" * "), function.axes, (ax.xaxis, ax.yaxis), strict=True
        ):
            places = np.linspace(0, cells.size - 1, min(5, cells.size)).astype(int)
            numbers = cells.dtype.kind == "f"
            names = [f"{cells[k]:.4g}" if numbers else str(cells[k])[:10] for k in places]
            turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
            axis.set_ticks(places, names, **(turned if axis is ax.xaxis else {}))
            axis.set_label_text(name)
        return picture
