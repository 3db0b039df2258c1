"""Defaults from public numbers alone: table size, target, adjacency; never a value of a row.

All of them follow from one number, the signal-to-noise ratio ``n mu``: n records are summed, and
``mu`` is the Gaussian-DP parameter (sensitivity over noise) that the whole fit may spend. Lengths
and step sizes are in scaled units, in which rows have norm at most 1. The constants were chosen
once on five public tables and synthetic blobs; see ``docs/defaults.md`` for how they fare.
"""

from __future__ import annotations

from dataclasses import dataclass

from skdp.accounting import gaussian_profile
from skdp.mechanisms.contribution import Adjacency
from skdp.plans.linear_model import LinearModel


@dataclass(frozen=True)
class PublicNumbers:
    """What the defaults may depend on.

    Parameters
    ----------
    n_rows, n_features, n_classes : int
        Size of the table.
    epsilon : float or None
        Target of the fit; None if only a noise multiplier is given.
    delta : float
        Target of the fit.
    adjacency : {"replace-one", "add-remove"}
        The neighbour relation.
    """

    n_rows: int
    n_features: int
    n_classes: int
    epsilon: float | None
    delta: float
    adjacency: Adjacency

    @property
    def signal_to_noise(self) -> float:
        """The number ``n mu`` of records times the Gaussian-DP parameter of the whole fit."""
        assert self.epsilon is not None
        return self.n_rows * gaussian_profile.mu(self.epsilon, self.delta)


@dataclass(frozen=True)
class DescentDefaults:
    """Defaults of a noisy descent, in scaled units.

    Parameters
    ----------
    steps : int
        Number of steps.
    initial_step : float
        Step size on the noisy mean gradient.
    momentum : float
        Heavy-ball coefficient.
    penalty : float
        L2 penalty.
    average_share : float
        Share of the last iterates that are averaged.
    clip : float
        Norm to which a record's gradient is clipped, where it is.
    """

    steps: int
    initial_step: float
    momentum: float
    penalty: float
    average_share: float
    clip: float


# Value of the constant column: a larger one costs row norm, a smaller one slows the intercept.
_INTERCEPT_VALUE = 0.2
_STEPS = 150
_MOMENTUM = 0.9
_AVERAGE_SHARE = 0.5
# Rows read in a whole fit before lots get smaller than the table.
_ROWS_READ = 2e7


def default_intercept_value(numbers: PublicNumbers) -> float:
    """Return the value of the intercept's constant column, in scaled units."""
    return _INTERCEPT_VALUE


def default_output_penalty(model: LinearModel, numbers: PublicNumbers) -> float:
    """Return the L2 penalty of output perturbation, in scaled units.

    It is set by the noise that each released weight shall get: 0.3 for small tables, less in
    proportion to the cube root of the signal-to-noise ratio for large ones.
    """
    ratio = numbers.signal_to_noise
    noise = 0.3 * min(1.0, (1e4 / ratio) ** (1.0 / 3.0))
    largest_move = model.loss.lipschitz(model.row_norm)
    if numbers.adjacency == "replace-one":
        largest_move *= 2.0
    return largest_move / (noise * ratio)


def default_lot_size(numbers: PublicNumbers) -> int:
    """Return the expected lot size: all rows, or what keeps the whole fit affordable."""
    return min(numbers.n_rows, int(_ROWS_READ / _STEPS))


def default_steps(numbers: PublicNumbers, lot_size: float) -> int:
    """Return the number of steps: the same number of rows read in all, whatever the lot size."""
    return int(min(_STEPS * max(1.0, default_lot_size(numbers) / lot_size), 1e6))


def default_gradient_descent(
    model: LinearModel, numbers: PublicNumbers, lot_size: float, max_iter: int | None
) -> DescentDefaults:
    """Return the defaults of gradient perturbation, whose gradients are not clipped.

    Parameters
    ----------
    model : LinearModel
        Loss and public shape.
    numbers : PublicNumbers
        Table size and target.
    lot_size : float
        Expected lot size.
    max_iter : int or None
        The user's number of steps.

    Returns
    -------
    DescentDefaults
        Steps of a length that lets the noise of all of them together stay near that of the
        released weights' scale, but short enough for stability.
    """
    steps = default_steps(numbers, lot_size) if max_iter is None else max_iter
    ratio = numbers.signal_to_noise
    if numbers.adjacency == "replace-one":
        ratio /= 2.0
    lipschitz = model.loss.lipschitz(model.row_norm)
    stable = 2.0 / model.loss.smoothness(model.row_norm)
    return DescentDefaults(
        steps=steps,
        initial_step=min(0.1 * ratio / (steps * lipschitz), stable),
        momentum=_MOMENTUM,
        penalty=0.0,
        average_share=_AVERAGE_SHARE,
        clip=lipschitz,
    )


def default_clipped_descent(
    model: LinearModel,
    numbers: PublicNumbers,
    lot_size: float,
    max_iter: int | None,
    noise_multiplier: float | None,
) -> DescentDefaults:
    """Return the defaults of DP-SGD.

    Parameters
    ----------
    model, numbers, lot_size, max_iter
        As for :func:`default_gradient_descent`.
    noise_multiplier : float or None
        The user's noise; None if it is calibrated to the target.

    Returns
    -------
    DescentDefaults
        A clipping norm below the largest gradient's when noise is high, and steps in
        proportion to what the noise allows.
    """
    steps = default_steps(numbers, lot_size) if max_iter is None else max_iter
    if noise_multiplier is None:
        ratio = numbers.signal_to_noise
    else:
        # Central limit: T steps at rate q and noise z amount to mu = q sqrt(T) / z.
        ratio = lot_size * steps**0.5 / noise_multiplier
    lipschitz = model.loss.lipschitz(model.row_norm)
    clip = lipschitz * min(1.0, 0.12 * ratio**0.18)
    stable = 2.0 / model.loss.smoothness(model.row_norm)
    return DescentDefaults(
        steps=steps,
        initial_step=min(0.2 * ratio / (steps * clip), stable),
        momentum=_MOMENTUM,
        penalty=0.0,
        average_share=_AVERAGE_SHARE,
        clip=clip,
    )
