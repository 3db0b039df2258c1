"""The functions whose sum a private linear model computes: bands of their noise, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skdp.base.parameters import check_real
from skdp.inspection.additive import (
    AdditiveModel,
    Part,
    cross,
    other_cells,
    public_grids,
    read_additive,
)
from skdp.reporting.drawing import pyplot

Array = NDArray[np.float64]

# Where cells without a value stand beside a numeric range, in parts of it; pictures in a row.
_BESIDE, _ACROSS = 0.06, 3


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """What a column adds to the scores, read on a public grid; `shape_functions` makes them.

    So do columns of a declared interaction together, beside what each adds alone.

    Parameters
    ----------
    name, kind, unit : str
        The declared column; the names of an interaction have stars between. A `DateColumn` has one
        function for each part of a date, such as "admitted month", whose cells are months.
    grid : ndarray of shape (n_grid,) or (n_grid, n_columns)
        Numbers from the declared range, or the declared list; of an interaction all combinations.
    axes : tuple of ndarray
        What each column of the grid is combined from.
    weights : ndarray of shape (n_grid,)
        The uniform law on ranges and lists; their sum is 1.
    values : ndarray of shape (n_grid, n_outputs)
        The function, of mean 0 under that law: one column for two classes, else one a class.
    half_width : ndarray of shape (n_grid,) or None
        The band is ``values +- half_width``, for each cell by itself.
    others : dict
        By "missing" and "unknown", where cells may be so: the value, of shape (n_outputs,), and the
        half-width of its band, or None.
    importance : ndarray of shape (n_outputs,)
        Standard deviation of the function under the uniform law.
    importance_half_width : float or None
        The same of its band.
    _model, _centre : object
        For `evaluate`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.inspection import shape_functions
    >>> from skdp.preprocessing import LabelColumn, NumericColumn, TableSchema
    >>> schema = TableSchema(
    ...     [NumericColumn("age", 0, 100, cuts=[40, 60])], label=LabelColumn("ill", [0, 1])
    ... )
    >>> ages = np.random.default_rng(0).uniform(0, 100, (4000, 1))
    >>> model = schema.pipeline(OperaLogisticRegression(epsilon=1.0), positions=True)
    >>> age = shape_functions(model.fit(ages, (ages[:, 0] > 60).astype(int)))["age"]
    >>> age.kind, age.values.shape == (age.grid.size, 1), age.half_width.shape == age.grid.shape
    ('numeric', True, True)
    """

    name: str
    kind: str
    unit: str
    grid: NDArray[Any] = field(repr=False)
    axes: tuple[NDArray[Any], ...] = field(repr=False)
    weights: Array = field(repr=False)
    values: Array = field(repr=False)
    half_width: Array | None = field(repr=False)
    others: dict[str, tuple[Array, float | None]] = field(repr=False)
    importance: Array
    importance_half_width: float | None
    _model: AdditiveModel = field(repr=False)
    _centre: Array = field(repr=False)

    def evaluate(self, cells: Any) -> Array:
        """Return what the column adds to the scores of rows.

        Parameters
        ----------
        cells : array-like of shape (n_samples,) or (n_samples, n_columns)
            Cells of the column, or of the interaction's columns.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Values of the centred function.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp import OperaLogisticRegression
        >>> from skdp.inspection import shape_functions
        >>> from skdp.preprocessing import LabelColumn, NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 100)], label=LabelColumn("ill", [0, 1]))
        >>> ages = np.random.default_rng(0).uniform(0, 100, (4000, 1))
        >>> model = schema.pipeline(OperaLogisticRegression(epsilon=1.0), positions=True)
        >>> age = shape_functions(model.fit(ages, (ages[:, 0] > 60).astype(int)))["age"]
        >>> age.evaluate([20.0, 80.0]).shape
        (2, 1)
        """
        part = self._model[self.name]
        rows = self._model.features(part, cells) - self._centre
        return rows @ self._model.coef[:, part.places].T


class ShapeFunctions(dict[str, ShapeFunction]):
    """Functions by the name of the column; with `intercept` they add up to the decision function.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
        What the scores are beside the functions.
    intercept_half_width : float or None
        Half the width of its band.
    classes : ndarray
        The labels, as the model has them; none of a regressor.
    target : str
        What the functions of a regressor add up to, such as "stay (days)"; empty for a classifier.
    exact : bool
        Whether the bands hold the functions without the noise; if not, their medians over it.
    about_band : str
        Where the bands come from, or why there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.inspection import shape_functions
    >>> from skdp.preprocessing import LabelColumn, NumericColumn, TableSchema
    >>> schema = TableSchema(
    ...     [NumericColumn("age", 0, 100, cuts=[40, 60])], label=LabelColumn("ill", [0, 1])
    ... )
    >>> ages = np.random.default_rng(0).uniform(0, 100, (4000, 1))
    >>> model = schema.pipeline(OperaLogisticRegression(epsilon=1.0), positions=True)
    >>> functions = shape_functions(model.fit(ages, (ages[:, 0] > 60).astype(int)))
    >>> scores = functions.intercept + functions["age"].evaluate([20.0, 80.0]).ravel()
    >>> bool(np.allclose(scores, model.decision_function([[20.0], [80.0]])))
    True
    """

    intercept: Array
    intercept_half_width: float | None
    classes: NDArray[Any]
    target: str = ""
    exact: bool
    about_band: str


def shape_functions(model: Any, *, level: float = 0.95) -> ShapeFunctions:
    """Return the functions of single columns whose sum a private linear model computes.

    They follow from released coefficients and the public schema alone: no row is read, and nothing
    is spent. The bands are about the *known privacy noise* alone; see Notes.

    Parameters
    ----------
    model : Pipeline
        A fitted ``schema.pipeline(linear private classifier or regressor)``, or one of a search.
        `BoundedScaler` may stand between, and `RowNormClipper` with a norm that no row exceeds.
    level : float, default=0.95
        Probability of each band, in (0, 1).

    Returns
    -------
    ShapeFunctions
        A dictionary from names of columns to functions.

    Raises
    ------
    TypeError
        If the scores are no sum of functions of one column: a network, a step that normalises
        rows or mixes features, such as `DPPCA`, or columns that no schema declares.
    ValueError
        If `level` is out of range.

    Notes
    -----
    Output perturbation: with probability `level` over the noise, and for each cell by itself,
    ``values +- half_width`` holds the function without privacy noise. Objective perturbation, and
    gradient perturbation without momentum on lots of a public size: it holds the function's median
    over the noise; the width is an upper bound, often a generous one. Of other fits nothing is
    proved, half-widths are None and `about_band` says why. No band says how far the function would
    be off on another sample of rows. Proofs: ``docs/inspection.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.inspection import shape_functions
    >>> from skdp.preprocessing import LabelColumn, NumericColumn, TableSchema
    >>> schema = TableSchema(
    ...     [NumericColumn("age", 0, 100, cuts=[40, 60])], label=LabelColumn("ill", [0, 1])
    ... )
    >>> ages = np.random.default_rng(0).uniform(0, 100, (4000, 1))
    >>> model = schema.pipeline(OperaLogisticRegression(epsilon=1.0), positions=True)
    >>> functions = shape_functions(model.fit(ages, (ages[:, 0] > 60).astype(int)))
    >>> young, old = functions["age"].evaluate([20.0, 80.0]).ravel()
    >>> bool(young < old)
    True
    """
    check_real("level", level, above=0.0, below=1.0)
    found = read_additive(model)
    functions = ShapeFunctions({part.name: _shape(found, part, level) for part in found.parts})
    centre = np.concatenate([function._centre for function in functions.values()])
    functions.intercept = found.intercept + found.coef @ centre
    noise = found.noise
    length = float(np.linalg.norm(noise.shape(centre[None], slice(None), 1.0)))
    functions.intercept_half_width = noise.half_width(length, level)
    functions.classes = getattr(found.linear, "classes_", np.array([]))
    functions.target = found.target
    functions.exact, functions.about_band = noise.exact, noise.about
    return functions


def _shape(model: AdditiveModel, part: Part, level: float) -> ShapeFunction:
    noise, coef = model.noise, model.coef[:, part.places]
    grids = public_grids(part.columns)
    grid, weights = cross(grids)
    rows = model.features(part, grid)
    centre = weights @ rows
    rows = rows - centre
    others = {name: model.features(part, c)[0] for name, c in other_cells(part.columns).items()}
    values = rows @ coef.T

    def length(rows: Array) -> Any:
        return np.linalg.norm(noise.shape(rows, part.places), axis=-1)

    shaped = noise.shape(rows, part.places)
    return ShapeFunction(
        name=part.name,
        kind=part.kind,
        unit=getattr(part.columns[0], "unit", "") if len(part.columns) == 1 else "",
        grid=grid,
        axes=tuple(cells for cells, _ in grids),
        weights=weights,
        values=values,
        half_width=noise.half_width(length(rows), level),
        others={
            name: (coef @ (row - centre), noise.half_width(length(row[None] - centre)[0], level))
            for name, row in others.items()
        },
        importance=np.sqrt(weights @ values**2),
        importance_half_width=noise.half_width_of_root_mean_square(
            np.linalg.eigvalsh((shaped.T * weights) @ shaped).clip(0.0), level
        ),
        _model=model,
        _centre=centre,
    )


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
            label = self._label(output - len(function.values.T))
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
        added = self.functions.target or "the score"
        ax.set(xlabel=f"{function.name}{unit}", ylabel=f"added to {added}")
        if numeric:
            for place, name in zip(beside, function.others, strict=True):
                ax.annotate(name, (place, 0.02), xycoords=("data", "axes fraction"), rotation=90)
        else:
            names = [*map(str, function.grid), *function.others]
            ax.set_xticks([*across, *beside], names, rotation=45 if len(names) > 3 else 0)
        return lines

    def _label(self, output: int) -> str:
        classes = self.functions.classes
        return str(classes[output]) if len(classes) else self.functions.target

    def _draw_table(self, ax: Any, function: ShapeFunction) -> Any:
        """Draw an interaction of two columns, for the first of the scores."""
        if len(function.axes) != 2:
            raise ValueError(f"{function.name!r} is of more than two columns: read its values.")
        shape = [cells.size for cells in function.axes]
        table = function.values[:, 0].reshape(shape)
        picture = ax.imshow(table.T, origin="lower", aspect="auto", cmap="coolwarm")
        of_class = f"the score of {self._label(-len(function.values.T))}"
        label = f"added to {self.functions.target or of_class}"
        ax.figure.colorbar(picture, ax=ax, label=label)
        for name, cells, axis in zip(
            function.name.split(" * "), function.axes, (ax.xaxis, ax.yaxis), strict=True
        ):
            places = np.linspace(0, cells.size - 1, min(5, cells.size)).astype(int)
            axis.set_ticks(places, [str(cells[place])[:10] for place in places])
            axis.set_label_text(name)
        return picture
