"""Shape functions of private linear models, with bands of their noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """Contribution of a column, or a declared interaction, to the scores on a public grid.

    Made by `shape_functions`. An interaction contributes in addition to its columns.

    Parameters
    ----------
    name, kind, unit : str
        Declared column. Names in an interaction are joined by stars. A `DateColumn` has one
        function per part of a date, such as "admitted month" with months as cells.
    grid : ndarray of shape (n_grid,) or (n_grid, n_columns)
        Numbers in the declared range, or the declared list; all combinations for an interaction.
    axes : tuple of ndarray
        Values of each column of the grid.
    weights : ndarray of shape (n_grid,)
        Uniform law on ranges and lists, with sum 1.
    values : ndarray of shape (n_grid, n_outputs)
        Function, with mean 0 under that law: one column for two classes, else one per class.
    half_width : ndarray of shape (n_grid,) or None
        Half-width of the band ``values +- half_width``, valid for each cell separately.
    others : dict
        Value of shape (n_outputs,) and half-width of its band or None, for "missing" and "unknown"
        cells if the column allows them.
    importance : ndarray of shape (n_outputs,)
        Standard deviation of the function under the uniform law.
    importance_half_width : float or None
        Half-width of the band of `importance`.
    _model, _centre : object
        Internal, for `evaluate`.

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
        """Return the contribution of the column to the scores of rows.

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
    """Shape functions by column name; with `intercept` they add up to the decision function.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
        Remaining term of the scores.
    intercept_half_width : float or None
        Half-width of the band of `intercept`.
    classes : ndarray
        Labels of the model; empty for a regressor.
    target : str
        Sum of the functions, such as "stay (days)" or "log odds of died = 1".
    exact : bool
        Whether the bands cover the functions without noise; if not, their medians over the noise.
    about_band : str
        Origin of the bands, or the reason why there is none.

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
    """Return the shape functions of a private linear model, one per column.

    They follow from released coefficients and the public schema: no row is read, and no budget is
    spent. The bands describe only the *known privacy noise*; see Notes.

    Parameters
    ----------
    model : Pipeline
        Fitted ``schema.pipeline(linear private classifier or regressor)``, or one of a search. It
        may contain `BoundedScaler`, and `RowNormClipper` with a norm that no row exceeds.
    level : float, default=0.95
        Probability of each band, in (0, 1).

    Returns
    -------
    ShapeFunctions
        Dictionary from column names to functions.

    Raises
    ------
    TypeError
        If the scores are not a sum of functions of one column. Examples are networks, steps that
        normalise rows or mix features such as `DPPCA`, and columns that no schema declares.
    ValueError
        If `level` is out of range.

    Notes
    -----
    Output perturbation: with probability `level` over the noise, and for each cell separately,
    ``values +- half_width`` covers the function without privacy noise. Objective perturbation, and
    gradient perturbation without momentum on batches of a public size: it covers the function's
    median over the noise. The width is an upper bound, often a generous one. Other fits have no
    proved band: half-widths are None, and `about_band` gives the reason. No band covers the error
    on another sample of rows. Proofs: ``docs/inspection.md``.

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
