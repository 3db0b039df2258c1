"""Pictures of the functions of columns, with the bands of the privacy noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from skdp.inspection.functions import ShapeFunction, ShapeFunctions, shape_functions
from skdp.reporting.drawing import pyplot

# Where cells without a value stand beside a numeric range, in parts of it; pictures in a row.
_BESIDE, _ACROSS = 0.06, 3


class ShapeFunctionDisplay:
    """Functions of columns, one picture each; make it with `from_estimator`.

    Parameters
    ----------
    functions : ShapeFunctions
        What is shown.
    columns : sequence of str or None, default=None
        Names of columns; None takes the (at most) nine of largest importance, but no
        interaction of more than two.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Of the last plot, one a column.
    figure_ : matplotlib Figure
        Of the last plot.
    lines_ : dict
        By column, the lines: one a class, or one for two classes.

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
        """Draw a fitted pipeline; for `model` and `level` see `shape_functions`, else `plot`."""
        return cls(shape_functions(model, level=level), columns).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the pictures.

        Parameters
        ----------
        ax : matplotlib Axes, sequence of Axes, or None, default=None
            Where to draw, one for each column. None makes a figure.
        **kwargs : dict
            Passed on to matplotlib's ``plot`` for the lines.

        Returns
        -------
        ShapeFunctionDisplay
            This display.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        ValueError
            If there are not as many axes as columns.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        count = len(self.columns)
        if ax is None:
            across, down = min(_ACROSS, count), -(-count // _ACROSS)
            figure = plt.figure(figsize=(3.4 * across, 2.8 * down), layout="constrained")
            ax = [figure.add_subplot(down, across, place + 1) for place in range(count)]
        self.axes_ = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if self.axes_.size != count:
            raise ValueError(f"{count} columns need as many axes, got {self.axes_.size}.")
        self.figure_ = self.axes_[0].figure
        self.lines_ = {
            name: self._draw(axes, self.functions[name], kwargs)
            for axes, name in zip(self.axes_, self.columns, strict=True)
        }
        if self.functions.intercept.size > 1:
            self.axes_[0].legend(title="class")
        return self

    def _draw(self, ax: Any, function: ShapeFunction, style: dict[str, Any]) -> list[Any]:
        if function.kind == "interaction":
            return [self._draw_table(ax, function)]
        numeric = function.kind == "numeric"
        across = function.grid if numeric else np.arange(function.grid.size)
        step = _BESIDE * float(np.ptp(across)) if numeric else 1.0
        beside = across[-1] + step * np.arange(1, len(function.others) + 1)
        lines = []
        for output, up in enumerate(function.values.T):
            look = {} if numeric else {"marker": "o", "linestyle": "none"}
            label = str(self.functions.classes[output - len(function.values.T)])
            (line,) = ax.plot(across, up, **{"label": label, **look, **style})
            bar = {"fmt": "none", "color": line.get_color()}
            if function.half_width is not None and numeric:
                ends = up - function.half_width, up + function.half_width
                ax.fill_between(across, *ends, color=line.get_color(), alpha=0.2, lw=0)
            elif function.half_width is not None:
                ax.errorbar(across, up, function.half_width, **bar)
            for place, (value, width) in zip(beside, function.others.values(), strict=True):
                ax.errorbar([place], [value[output]], width, **{**bar, "fmt": "s"})
            lines.append(line)
        ax.axhline(0.0, color="grey", linestyle=":", lw=0.8, zorder=0)
        unit = f" ({function.unit})" if function.unit else ""
        ax.set(xlabel=f"{function.name}{unit}", ylabel="added to the score")
        if numeric:
            for place, name in zip(beside, function.others, strict=True):
                ax.annotate(name, (place, 0.02), xycoords=("data", "axes fraction"), rotation=90)
        else:
            names = [*map(str, function.grid), *function.others]
            ax.set_xticks([*across, *beside], names, rotation=45 if len(names) > 3 else 0)
        return lines

    def _draw_table(self, ax: Any, function: ShapeFunction) -> Any:
        """Draw an interaction of two columns, for the first of the scores."""
        if len(function.axes) != 2:
            raise ValueError(f"{function.name!r} is of more than two columns: read its values.")
        shape = [cells.size for cells in function.axes]
        table = function.values[:, 0].reshape(shape)
        picture = ax.imshow(table.T, origin="lower", aspect="auto", cmap="coolwarm")
        label = f"added to the score of {self.functions.classes[-len(function.values.T)]}"
        ax.figure.colorbar(picture, ax=ax, label=label)
        for name, cells, axis in zip(
            function.name.split(" * "), function.axes, (ax.xaxis, ax.yaxis), strict=True
        ):
            places = np.linspace(0, cells.size - 1, min(5, cells.size)).astype(int)
            axis.set_ticks(places, [str(cells[place])[:8] for place in places])
            axis.set_label_text(name)
        return picture
