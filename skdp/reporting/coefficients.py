"""Coefficients with names, the standard deviation of their privacy noise, and intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from skdp.base.parameters import check_real
from skdp.base.scikit_learn import fitted_model, last_and_meaning, responds
from skdp.reporting.drawing import pyplot
from skdp.reporting.estimates import CoefficientIntervals


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
    multiplied noise, given the factor.

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
    if responds(linear, "_standard_errors") and not getattr(noise, "afterwards", ""):
        deviations, words = linear._standard_errors(of_noise=True), "about"
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


def coefficient_intervals(
    model: Any, level: float = 0.95, reference: Mapping[str, Any] | None = None
) -> CoefficientIntervals:
    """Return confidence intervals of coefficients that cover sampling and privacy noise.

    Intervals follow from released numbers: no row is read and no budget is spent. With a schema or
    a `BoundedScaler`, coefficients are in the units of the columns: per year, or for a level
    compared with a reference level.

    Parameters
    ----------
    model : PrivateRidge or Pipeline
        Fitted `PrivateRidge` without penalty, or a pipeline or search that ends in one.
    level : float, default=0.95
        Coverage of each interval, in (0, 1).
    reference : mapping or None, default=None
        Reference value by name of a schema's column. For categories it replaces the declared
        reference level (``drop=`` of `CategoricalColumn`) or the first level. For numbers it moves
        the intercept, which is otherwise given at the middle of the bounds.

    Returns
    -------
    CoefficientIntervals
        Dictionary of columns that prints as a table. "name", "column", "level" and "step" describe
        the change; then follow "value", "std_error", "low", "high" and "is_reference". The
        numbers after "value" are NaN if coefficients are not estimable, because the least
        eigenvalue of the noisy second moments is below the level of pure noise. `reason` gives the
        cause and a remedy, and reports if the fit may have cut rows, which biases coefficients.
        Flags of missing and unknown cells that are too rare are left out, and these cells then
        count as ignored.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If the model has a penalty, which biases coefficients, or for an invalid level or reference.
    KeyError
        If a reference names no column.

    Notes
    -----
    Intervals assume errors of one variance, rows of norm at most `data_norm`, and targets within
    their bounds: clipping biases coefficients. Directions without variation by the public
    description, such as the sum of all categories in addition to an intercept, are left out.
    Derivation and limits are in ``docs/proofs/moment_regression.md``, coverage in
    ``docs/regression.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateRidge
    >>> from skdp.reporting import coefficient_intervals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 2.0 * X[:, 0] + rng.normal(0.0, 0.3, 20_000)
    >>> model = PrivateRidge(target_bounds=(-3.0, 3.0), data_norm=1.0).fit(X, y)
    >>> found = coefficient_intervals(model, level=0.999)
    >>> found["name"].tolist(), bool(found["low"][0] < 2.0 < found["high"][0])
    (['x0', 'x1', '(intercept)'], True)
    """
    level = check_real("level", level, above=0.0, below=1.0)
    linear, names = _linear_end(model)
    if not responds(linear, "_errors_of"):
        raise TypeError(
            f"{type(linear).__name__} has released no second moments: use PrivateRidge for "
            "intervals, or coefficient_table for the privacy noise of other models."
        )
    if linear._penalised:
        raise ValueError(
            "A penalty biases coefficients, and intervals around them would not cover: use "
            "model.variant(alpha=0.0), which is free."
        )
    if getattr(getattr(linear, "_coef_noise_", None), "afterwards", ""):
        raise TypeError("functions were changed afterwards: pass the model before the change.")
    meaning = _meaning_of(model)
    rare: list[int] = []
    if meaning is not None:
        told = linear if linear._meaning is not None else linear._told(meaning)
        linear, rare = told._without_rare_flags()
    found, functions, at = describe_effects(names, meaning, reference or {}, linear._kept)
    value = functions @ np.append(linear.coef_, linear.intercept_)
    errors, is_reference = linear._errors_of(functions), found.pop("is_reference")
    # Coefficients that a variant has left out have no errors.
    errors[~(functions @ linear._back).any(axis=1) & ~is_reference] = np.nan
    reach = float(ndtri(0.5 + level / 2.0)) * errors
    found |= {"value": value, "std_error": errors, "low": value - reach, "high": value + reach}
    return CoefficientIntervals(
        {**found, "is_reference": is_reference},
        confidence=level,
        target="" if meaning is None else meaning.target,
        intercept_at=at,
        reason=" ".join(filter(None, _reasons(linear, meaning, rare))),
    )


def _reasons(linear: Any, meaning: Any, rare: list[int]) -> list[str]:
    """Return limits of the intervals, and reasons why there are none."""
    return [_about_rare(meaning, rare), _about_cut(linear, meaning), linear._why_not_estimable()]


def _about_cut(linear: Any, meaning: Any) -> str:
    """Return a note if the schema allows rows that the fit cuts, for any table."""
    norm, longest = linear._units.data_norm, 0.0 if meaning is None else meaning.norms[0]
    if longest <= norm * (1.0 + 1e-9):
        return ""
    return (
        f"Rows of norms up to {longest:.4g} are possible, and the fit cuts them to {norm:.4g}: cut "
        "rows bias coefficients, and intervals then do not cover. For valid intervals, fit "
        "without clip_norm or data_norm."
    )


def _about_rare(meaning: Any, rare: list[int]) -> str:
    """Return a note on flags that were left out."""
    if not rare:
        return ""
    names = ", ".join(name for name, places in meaning.places.items() if places[0] in rare)
    return f"The noise hides the number of such cells, which count as ignored: {names}."


def describe_effects(
    names: Any, meaning: Any, reference: Mapping[str, Any], kept: Sequence[int]
) -> tuple[dict[str, np.ndarray], np.ndarray, str]:
    """Return columns that name the rows of a table, their weights, and the intercept's point.

    Weights are for the coefficients and the intercept, to which the last row belongs.
    """
    at = ""
    if meaning is None:
        if reference:
            raise KeyError("reference names columns of a schema, but the model has no schema.")
        told = [(str(name), str(name), "", "+1", False) for name in names]
        functions, where = np.eye(len(told)), np.zeros(len(told))
    else:
        rows, where, at = meaning.effects(reference, kept)
        told = [(e.name, column, e.level, e.step, e.is_reference) for column, e in rows]
        functions = np.array([effect.weights for _, effect in rows])
    whole = np.vstack([np.column_stack([functions, np.zeros(len(told))]), np.append(where, 1.0)])
    told.append(("(intercept)", "(intercept)", "", "", False))
    keys = ("name", "column", "level", "step", "is_reference")
    columns = zip(keys, zip(*told, strict=True), strict=True)
    found = {key: np.array(own, dtype=object) for key, own in columns}
    return found | {"is_reference": found["is_reference"].astype(bool)}, whole, at


def _meaning_of(model: Any) -> Any:
    """Return the meaning of the features of a model's last step, or None if unknown."""
    last, meaning = last_and_meaning(model)
    told = getattr(last, "_meaning", None)
    return meaning if told is None else told


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
    """Forest plot of coefficients with intervals; create it with `from_estimator`.

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
    >>> import numpy as np
    >>> from skdp import PrivateRidge
    >>> from skdp.reporting import CoefficientDisplay
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> model = PrivateRidge(target_bounds=(-3.0, 3.0), data_norm=1.0).fit(X, 2.0 * X[:, 0])
    >>> CoefficientDisplay.from_estimator(model).labels_
    ['x0 +1', 'x1 +1']
    """

    def __init__(self, intervals: CoefficientIntervals) -> None:
        self.intervals = intervals

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        level: float = 0.95,
        reference: Mapping[str, Any] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Plot a fitted model; parameters are those of `coefficient_intervals` and `plot`."""
        return cls(coefficient_intervals(model, level, reference)).plot(ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        names: Sequence[str] | None = None,
        ratio: bool | None = None,
        **kwargs: Any,
    ) -> Self:
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
        ax.set_yticks(up, self.labels_)
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
    for digits in ([1], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], fine, np.arange(100, 1000) / 100):
        every = [float(f"{digit:g}e{power}") for power in range(-9, 10) for digit in digits]
        inside = [tick for tick in every if low <= tick <= high]
        if len(found) < min(3, len(inside)):
            found = inside[:: -(-len(inside) // 8)]
    return found
