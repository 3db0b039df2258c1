"""Plots of a privacy guarantee: epsilon against delta or steps, and f-DP trade-off functions."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.accounting import Accountant, Event, PrivacyValue
from skdp.accounting.numerics.trade_off import profile_grid, trade_off_lower, trade_off_upper
from skdp.reporting.drawing import check_accountant, pyplot, whole_numbers
from skdp.reporting.profile import spending_of

Kind = Literal["epsilon-delta", "epsilon-steps", "trade-off"]
Array = NDArray[np.float64]
Curve = dict[str, Any]

_AXES = {
    "epsilon-delta": ("delta", "epsilon (nats)"),
    "epsilon-steps": ("steps", "epsilon (nats)"),
    "trade-off": ("false-alarm rate of a test", "its miss rate is at least"),
}
_DELTAS = np.logspace(-12, -2, 61)
_ALPHAS = np.sin(np.linspace(0.0, 0.5 * math.pi, 301)) ** 2  # dense at both ends


@dataclass(kw_only=True, eq=False, repr=False)
class PrivacyCurveDisplay:
    """Privacy curve: epsilon against delta, epsilon against steps, or an f-DP trade-off function.

    Create it with :meth:`from_accountant`, :meth:`from_estimator` or :meth:`from_steps`. Attributes
    store the computed values, and :meth:`plot` draws them again. Plots need matplotlib.

    Parameters
    ----------
    x : array-like
        Deltas, numbers of steps, or false-alarm rates.
    lower, upper : array-like or None
        Bounds on epsilon, or on the miss rate, at each ``x``. The upper bound on epsilon and the
        lower bound on the miss rate are guaranteed; the other one may be None.
    kind : {"epsilon-delta", "epsilon-steps", "trade-off"}
        Kind of curve.
    name : str, optional
        Name in the legend.
    adjacency : str, optional
        Adjacency relation of neighbouring tables, shown in the legend.
    is_upper_bound : bool, default=True
        Whether the epsilons are proved upper bounds. If not, the legend shows it.
    is_differential_privacy : bool, default=True
        Whether the values describe differential privacy. If not, the legend shows it.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the last plot.
    figure_ : matplotlib Figure
        Figure of the last plot.
    line_ : matplotlib Line2D
        Guaranteed curve.
    band_ : matplotlib collection or None
        Interval that contains the true curve, if both bounds are known.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, PLDAccountant, PoissonSampledEvent
    >>> from skdp.reporting import PrivacyCurveDisplay
    >>> step = PoissonSampledEvent(0.01, GaussianEvent(4.0))
    >>> accountant = PLDAccountant().compose(step, count=10_000)
    >>> display = PrivacyCurveDisplay.from_accountant(accountant)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('delta', 'epsilon (nats)')
    """

    x: ArrayLike
    lower: ArrayLike | None
    upper: ArrayLike | None
    kind: Kind = "epsilon-delta"
    name: str | None = None
    adjacency: str | None = None
    is_upper_bound: bool = True
    is_differential_privacy: bool = True

    @classmethod
    def from_accountant(
        cls,
        accountant: Accountant,
        *,
        kind: Kind = "epsilon-delta",
        grid: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the guarantee of the events composed in an accountant.

        Parameters
        ----------
        accountant : Accountant
            Accountant with composed events. Without events the curve shows perfect privacy.
        kind : {"epsilon-delta", "trade-off"}, default="epsilon-delta"
            Epsilon against delta, or the trade-off function.
        grid : array-like, optional
            Deltas in (0, 1), by default 61 from 1e-12 to 1e-2. For a trade-off, epsilons at which
            its profile is evaluated, by default 101 from 0 on.
        name : str, optional
            Name in the legend, by default the accountant's class.
        ax : matplotlib Axes, optional
            Axes to draw on, by default of a new figure.
        **kwargs : dict
            Passed to matplotlib's ``plot``.
        """
        pyplot(f"{cls.__name__}.from_accountant")
        check_accountant(accountant)
        curve = _profile(accountant.epsilon, accountant.delta, kind, grid)
        return cls._drawn(curve, accountant, accountant.adjacency, name, ax, kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        kind: Kind = "epsilon-delta",
        grid: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the guarantee of a fitted private estimator.

        Parameters
        ----------
        estimator : estimator with ``privacy_spent_``, or a pipeline that ends in one
            Fitted estimator.
        kind, grid, name, ax, **kwargs : optional
            As for :meth:`from_accountant`; the default name is the estimator's class.
        """
        pyplot(f"{cls.__name__}.from_estimator")
        final, spent = spending_of(estimator)
        curve = _profile(spent.epsilon_at, spent.delta_at, kind, grid)
        return cls._drawn(curve, final, spent.adjacency, name, ax, kwargs)

    @classmethod
    def from_steps(
        cls,
        accountant: Accountant,
        event: Event,
        steps: Sequence[int],
        *,
        delta: float,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Plot epsilon against the number of steps.

        Parameters
        ----------
        accountant : Accountant
            Accountant that computes epsilon. The steps are added to copies of it, after its
            composed events.
        event : Event
            Event of one step.
        steps : sequence of int
            Numbers of steps, each at least 0.
        delta : float
            Failure probability, in (0, 1).
        name, ax, **kwargs : optional
            As for :meth:`from_accountant`.

        Raises
        ------
        UnsupportedEventError
            If the accountant has no bound for the step.
        """
        pyplot(f"{cls.__name__}.from_steps")
        check_accountant(accountant)
        counts = whole_numbers(steps)
        values = [
            copy.deepcopy(accountant).compose(event, count=count).epsilon(delta) for count in counts
        ]
        curve = _epsilons(counts, values, "epsilon-steps")
        return cls._drawn(curve, accountant, accountant.adjacency, name, ax, kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curve, and the interval of the true curve if both bounds are known.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on, by default of a new figure.
        name : str, optional
            Name in the legend, by default the one of the display. The adjacency is appended, and
            "no bound" or "no differential privacy" if it applies.
        **kwargs : dict
            Passed to matplotlib's ``plot``.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        if self.kind not in _AXES:
            raise ValueError(f"kind must be one of {tuple(_AXES)}, got {self.kind!r}.")
        side = "lower" if self.kind == "trade-off" else "upper"
        guaranteed = getattr(self, side)
        if guaranteed is None:
            raise ValueError(f"{side} must be given for kind={self.kind!r}: it is the curve drawn.")
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        given = kwargs.pop("label", name)
        style = {"label": self._label(given)}
        if not (self.is_upper_bound and self.is_differential_privacy):
            if not {"linestyle", "ls"} & kwargs.keys():
                style["linestyle"] = "--"
        (self.line_,) = ax.plot(self.x, guaranteed, **style, **kwargs)
        self.band_ = None
        if self.lower is not None and self.upper is not None:
            self.band_ = ax.fill_between(
                self.x, self.lower, self.upper, color=self.line_.get_color(), alpha=0.25, lw=0
            )
        across, up = _AXES[self.kind]
        ax.set(xlabel=across, ylabel=up)
        if self.kind == "epsilon-delta":
            ax.set_xscale("log")
        if style["label"]:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _label(self, name: str | None) -> str:
        """Return the text of the legend, which always shows if a value is not a guarantee."""
        remarks = [self.adjacency] if self.adjacency else []
        if not self.is_differential_privacy:
            remarks.append("no differential privacy")
        elif not self.is_upper_bound:
            remarks.append("no bound")
        title = self.name if name is None else name
        if not title:
            return ", ".join(remarks)
        return f"{title} ({', '.join(remarks)})" if remarks else title

    @classmethod
    def _drawn(
        cls, curve: Curve, owner: Any, adjacency: str, name: str | None, ax: Any, style: Curve
    ) -> Self:
        """Draw a curve, by default under the name of its owner's class."""
        name = type(owner).__name__ if name is None else name
        return cls(**curve, name=name, adjacency=adjacency).plot(ax, **style)


def _profile(
    epsilon: Callable[[float], float],
    delta: Callable[[float], float],
    kind: Kind,
    grid: ArrayLike | None,
) -> Curve:
    """Evaluate a privacy profile on a grid."""
    if kind == "epsilon-delta":
        deltas = _DELTAS if grid is None else np.atleast_1d(np.asarray(grid, dtype=np.float64))
        return _epsilons(deltas, [epsilon(float(point)) for point in deltas], kind)
    if kind != "trade-off":
        raise ValueError(
            f"kind must be 'epsilon-delta' or 'trade-off', got {kind!r}; use from_steps for "
            "epsilon against steps."
        )
    if grid is None:
        epsilons = profile_grid(epsilon)
    else:
        epsilons = np.unique(np.append(np.asarray(grid, dtype=np.float64), 0.0))
    lower, upper, promised = _read([delta(float(point)) for point in epsilons])
    most = trade_off_upper(epsilons, lower, upper, _ALPHAS) if lower.any() else None
    least = trade_off_lower(epsilons, upper, _ALPHAS)
    return {"x": _ALPHAS, "lower": least, "upper": most, "kind": kind, **promised}


def _epsilons(x: ArrayLike, values: Sequence[float], kind: Kind) -> Curve:
    """Return a curve of epsilons; lower bounds that are all zero are left out."""
    lower, upper, promised = _read(values)
    known = lower if lower.any() else None
    return {"x": np.asarray(x, np.float64), "lower": known, "upper": upper, "kind": kind} | promised


def _read(values: Sequence[float]) -> tuple[Array, Array, Curve]:
    """Return lower and upper bounds (zero and itself for a float) and the status of all values."""
    pairs = [tuple(v) if isinstance(v, PrivacyValue) else (0.0, float(v)) for v in values]
    lower, upper = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    marked = [value for value in values if isinstance(value, PrivacyValue)]
    promised = {
        "is_upper_bound": all(value.is_upper_bound for value in marked),
        "is_differential_privacy": all(value.is_differential_privacy for value in marked),
    }
    return lower, upper, promised
