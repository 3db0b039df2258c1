"""Coefficients with names, the standard deviation of their privacy noise, and a forest plot."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from skdp.base.scikit_learn import fitted_model, responds
from skdp.reporting.drawing import pyplot
from skdp.reporting.estimates import CoefficientIntervals, shortened

# Longer labels of a plot leave no room for it.
_LONGEST = 50


def coefficient_table(model: Any) -> dict[str, np.ndarray]:
    """Return the coefficients of a fitted linear model by name, with their privacy noise.

    Coefficients are released numbers: no row is read and no budget is spent.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted linear classifier or regressor, or a pipeline or search that ends in one.

    Returns
    -------
    dict of ndarray
        Columns of equal length, for ``pandas.DataFrame``:

        - "name": name of the feature, or "(intercept)";
        - "class": class of the score, for classifiers only;
        - "value": coefficient;
        - "noise_std": standard deviation of its privacy noise, NaN if not public;
        - "noise_is": "exact", "at most", "about" (to first order) or "unknown".

    Raises
    ------
    TypeError
        If the model has no coefficients.

    Notes
    -----
    ``docs/inspection.md`` explains the source of the noise and the use of an upper bound on it. If
    a recalibration has multiplied coefficients by a released factor, "noise_std" is for the
    multiplied noise, given the factor. For the `model_` of a look, "noise_std" includes the
    sampling of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.reporting import coefficient_table
    >>> X = np.tile([[0.6, 0.8], [-0.6, 0.8]], (500, 1))
    >>> table = coefficient_table(OperaLogisticRegression(data_norm=1.0).fit(X, X[:, 0] > 0))
    >>> table["name"].tolist(), table["noise_is"].tolist()
    (['x0', 'x1', '(intercept)'], ['exact', 'exact', 'exact'])
    """
    linear, names = _linear_end(model)
    values = np.column_stack([np.atleast_2d(linear.coef_), np.atleast_1d(linear.intercept_)])
    outputs, count = values.shape[0], values.shape[1] - 1
    noise: Any = linear._coef_noise_ if responds(linear, "_coef_noise_") else None
    deviations, words = np.full(count + 1, np.nan), "unknown"
    joint = linear._joint_noise() if responds(linear, "_joint_noise") else noise
    if hasattr(joint, "deviations") and not getattr(noise, "afterwards", ""):
        deviations, words = joint.deviations, "about"
    elif noise is not None and noise.known:
        deviations, words = np.full(count + 1, noise.deviation), ("at most", "exact")[noise.exact]
        deviations[-1] *= noise.constant
    table = {"name": np.array([*names, "(intercept)"] * outputs, dtype=object)}
    if responds(linear, "classes_"):
        labels = linear.classes_[1:] if outputs == 1 else linear.classes_
        table["class"] = np.repeat(labels, count + 1)
    return table | {
        "value": values.ravel(),
        "noise_std": np.tile(deviations, outputs),
        "noise_is": np.full(values.size, words, dtype=object),
    }


def describe_effects(
    names: Any, meaning: Any, reference: Any, kept: Sequence[int], intercept: bool = True
) -> tuple[dict[str, np.ndarray], np.ndarray, str]:
    """Return columns that name effects, their weights on coefficients, and the intercept's point.

    The last row and the last weights are those of the intercept, if there is one.
    """
    at, reference = "", reference or {}
    if meaning is None:
        if reference:
            raise KeyError("reference names columns of a schema, but the model has no schema.")
        told = [(str(name), str(name), "", "+1", False) for name in names]
        functions, where = np.eye(len(told)), np.zeros(len(told))
    else:
        rows, where, at = meaning.effects(reference, kept)
        told = [(e.name, column, e.level, e.step, e.is_reference) for column, e in rows]
        functions = np.array([effect.weights for _, effect in rows])
    if intercept:
        functions = np.pad(functions, ((0, 1), (0, 1)))
        functions[-1] = np.append(where, 1.0)
        told.append(("(intercept)", "(intercept)", "", "", False))
    keys = ("name", "column", "level", "step", "is_reference")
    columns = zip(keys, zip(*told, strict=True), strict=True)
    found = {key: np.array(own, dtype=object) for key, own in columns}
    found["is_reference"] = found["is_reference"].astype(bool)
    return found, functions, at if intercept else ""


def _linear_end(model: Any) -> tuple[Any, Any]:
    """Return the linear model at the end of a fitted model, and names of its features."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    linear, names = _last_of(model, None)
    if not responds(linear, "coef_"):
        raise TypeError(f"{type(linear).__name__} is not a fitted linear model: it has no coef_.")
    if names is None:
        count = np.atleast_2d(linear.coef_).shape[1]
        names = getattr(linear, "feature_names_in_", [f"x{j}" for j in range(count)])
    return linear, names


def _last_of(model: Any, names: Any) -> tuple[Any, Any]:
    """Return the last estimator of pipelines and searches, and the names of its features."""
    model = fitted_model(model)
    if not responds(model, "steps"):
        return model, names
    before = model[:-1]
    if len(model.steps) > 1 and responds(before, "get_feature_names_out"):
        names = before.get_feature_names_out(names)
    return _last_of(model.steps[-1][1], names)


class CoefficientDisplay:
    """Forest plot of coefficients with intervals.

    Parameters
    ----------
    intervals : CoefficientIntervals
        Coefficients to plot.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the last plot.
    figure_ : matplotlib Figure
        Figure of the last plot.
    labels_ : list of str
        Rows of the last plot, from top to bottom.

    Examples
    --------
    >>> from skdp.reporting import CoefficientDisplay, CoefficientIntervals
    >>> columns = {"name": ["age"], "value": [0.5], "low": [0.4], "high": [0.6], "step": ["+1"]}
    >>> CoefficientDisplay(CoefficientIntervals(columns)).plot().labels_
    ['age +1']
    """

    def __init__(self, intervals: CoefficientIntervals) -> None:
        self.intervals = intervals

    def plot(
        self,
        ax: Any = None,
        *,
        names: Sequence[str] | None = None,
        ratio: bool | None = None,
        **kwargs: Any,
    ) -> CoefficientDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. None creates a new figure.
        names : sequence of str or None, default=None
            Values of "name" of the rows to draw. None draws all rows that are not left out, except
            the intercept.
        ratio : bool or None, default=None
            Whether to draw exponentials on a logarithmic axis, such as odds ratios. None draws them
            for tables of ratios.
        **kwargs : dict
            Passed to matplotlib's ``errorbar``.

        Returns
        -------
        CoefficientDisplay
            This display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        found = self.intervals
        ratio = bool(found.ratio) if ratio is None else ratio
        every = [name for name in found["name"][~found.is_left_out] if name != "(intercept)"]
        (chosen,) = np.nonzero(np.isin(found["name"], every if names is None else list(names)))
        own = ax is None
        if own:
            size = 5.5, 1.2 + 0.28 * max(chosen.size, 2)
            ax = plt.figure(figsize=size, layout="constrained").add_subplot()
        self.ax_, self.figure_ = ax, ax.figure
        notes = [note and f" ({note})" for note in found.get("note", [""] * len(found["name"]))]
        self.labels_ = [found.labels[place] + notes[place] for place in chosen]
        change = np.exp if ratio else np.asarray
        value, low, high = (
            change(np.asarray(found[key], dtype=np.float64)[chosen])
            for key in (found.estimate, "low", "high")
        )
        up = np.arange(chosen.size)
        # Rows without an interval have neither marker nor line.
        shown = np.isfinite(low) & ~found.is_reference[chosen]
        style = {"fmt": "o", "capsize": 3.0, **kwargs}
        reach = np.maximum(np.vstack([value - low, high - value])[:, shown], 0.0)
        ax.errorbar(value[shown], up[shown], xerr=reach, **style)
        at = up[found.is_reference[chosen]]
        ax.plot(np.full(at.size, change(0.0)), at, "D", color="grey", mfc="none")
        ax.axvline(change(0.0), color="grey", linestyle=":", lw=0.8, zorder=0)
        ax.set_yticks(up, [shortened(label, _LONGEST) for label in self.labels_])
        ax.set_ylim(max(chosen.size, 1) - 0.5, -0.5)
        kind = f"log {found.ratio} of " if found.ratio else ""
        what = f"change of {kind}{found.target or 'the prediction'}"
        ratios = f"{found.ratio} ratio of" if found.ratio else "ratio of"
        ax.set(xlabel=f"{ratios} {found.target or 'odds'}" if ratio else what)
        if ratio:
            ax.set_xscale("log")
            ticks = _ticks_of_ratios(*ax.get_xlim())
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.set_xticks([], minor=True)
        if found.reason:
            # Over the full width of a new figure, including labels of rows.
            text = textwrap.fill(found.reason, 80 if own else 50)
            if own:
                self.figure_.suptitle(text, fontsize="small", x=0.02, ha="left")
            else:
                ax.set_title(text, fontsize="small", loc="left")
        return self


def _ticks_of_ratios(low: float, high: float) -> list[float]:
    """Return about three to eight round numbers between the ends of a logarithmic axis."""
    fine = [*np.arange(10, 20) / 10, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9, 9.5]
    found: list[float] = []
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for digits in ([1], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], fine, np.arange(100, 1000) / 100):
        every = [float(f"{digit:g}e{power}") for power in powers for digit in digits]
        inside = [tick for tick in every if low <= tick <= high]
        if len(found) < min(3, len(inside)):
            found = inside[:: -(-len(inside) // 8)]
    return found
