"""Defaults from public numbers only: table size, target and adjacency, never a value of a row.

All of them follow from one number, the signal-to-noise ratio ``n mu``. Here n is the number of
records and ``mu`` the Gaussian-DP parameter (sensitivity over noise) of the entire fit. For T steps
with noise multiplier z and batches of size b, the ratio is ``b sqrt(T) / z``. Lengths and step
sizes are in scaled units, in which rows have norm at most 1. ``docs/defaults.md`` lists the tables
on which the constants were chosen, and results on other tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from skdp.accounting.numerics import gaussian_profile
from skdp.mechanisms.contribution import Adjacency
from skdp.models import LinearModel, Model
from skdp.plans.objective_perturbation import smallest_penalty


@dataclass(frozen=True)
class PublicNumbers:
    """Public inputs of the defaults; epsilon is None if only a noise multiplier is given."""

    n_rows: int
    n_features: int
    n_classes: int
    epsilon: float | None
    delta: float
    adjacency: Adjacency
    by_unit: bool = False  # whether records are all rows of an id, and `n_rows` counts these

    @property
    def target_epsilon(self) -> float:
        """The target; only plans that calibrate to a target may read it."""
        if self.epsilon is None:
            raise ValueError("epsilon=None sets no target to calibrate the noise to.")
        return self.epsilon

    @property
    def signal_to_noise(self) -> float:
        """Number of records times the Gaussian-DP parameter of the fit; half under replace-one."""
        if self.delta > 0.0:
            mu = gaussian_profile.mu(self.target_epsilon, self.delta)
        else:
            # That of Gaussian noise with as large coordinates as norm-exponential noise.
            outputs = 1 if self.n_classes <= 2 else self.n_classes
            mu = self.target_epsilon / math.sqrt(outputs * (self.n_features + 1.0) + 1.0)
        ratio = self.n_rows * mu
        return ratio / 2.0 if self.adjacency == "replace-one" else ratio


@dataclass(frozen=True)
class DescentDefaults:
    """Defaults of a noisy descent, in scaled units."""

    initial_step: float
    momentum: float
    penalty: float
    average_share: float


# Value of the constant column: a larger one costs row norm, a smaller one slows the intercept.
INTERCEPT_VALUE = 0.2
# Share of epsilon that the curvature of one record may cost, and a penalty that is never too small.
_SHARE_OF_CURVATURE = 0.2
_SMALLEST_DEFAULT_PENALTY = 1e-8
_FEWEST_STEPS, _MOST_STEPS = 150, 400
_MOMENTUM = 0.9
_AVERAGE_SHARE = 0.25
# Adam's steps are lengths of weights, whatever the size of the noisy gradient; a network has many.
_ADAM_STEP, _ADAM_STEP_OF_NETWORKS = 0.2, 0.03
# Gradients of single rows that a whole fit may take before lots get smaller than the table: so many
# of models of up to so many weights, and fewer of larger ones, whose sums are matrix products.
_ROW_GRADIENTS = 2e7
_WEIGHTS_OF_ROW = 5000
_SMALLEST_DEFAULT_LOT = 1024
# The same for a fit that pays for its last iterate alone, and its length in relaxation times.
_ROW_GRADIENTS_TO_THE_LIMIT = 5e7
_RELAXATIONS = 3.0
# Standard deviation that the noise of all steps together may give to the margin of a row, and the
# signal-to-noise ratio from which it grows: weights get larger where there is much to learn.
_MARGIN_NOISE = 2.0
_MARGIN_NOISE_OF_BOUNDED = 1.0  # where the loss bounds gradients, and few are cut
_MUCH_SIGNAL = 1000.0
# Ratio for each column below which objective perturbation keeps weights smaller, down to a third:
# yet smaller ones rank no worse, but the intercept is then far from a rare class's share.
_LITTLE_SIGNAL_PER_COLUMN = 10.0
# At weights of zero no gradient of the log-loss is longer than half of the bound on all of them.
_CLIP_AT_START = 0.5
# Standard deviation that the noise of all steps together may give to each weight of a network with
# one hidden layer. It reaches a margin through all units: much signal is no reason for more.
_NETWORK_NOISE = 0.2
# The longest gradient of a network at its start: of a slope of 1, with the last layer's inputs, of
# norm up to 4 sqrt(2), and a bias of 1. Under clipping norms that are far below, most gradients
# are cut, surprising ones by most, and probabilities get much too close to 0 and 1.
_NETWORK_GRADIENT = 5.7
# Of numbers in [-1, 1] few residuals are longer, in scaled units, whatever the loss allows.
_GRADIENT_OF_NUMBERS = 0.5
# Radius of the ball of weights where that alone bounds the gradients of single records.
DEFAULT_RADIUS = 1.0
# Share of the longest step at which heavy-ball descent is stable on every table.
_STABLE_SHARE = 0.925


def default_output_penalty(model: Model, numbers: PublicNumbers) -> float:
    """Return the L2 penalty of output perturbation, in scaled units."""
    # The noise of each released weight is to be 0.3 for small tables, 0.07 of numbers, whose scores
    # are smaller, and less in proportion to the cube root of the signal-to-noise ratio for large
    # ones, the rate that balances the penalty's bias against the variance of the noise.
    ratio = numbers.signal_to_noise
    most = 0.07 if "of numbers" in model.facts else 0.3
    noise = most * min(1.0, (5e3 / ratio) ** (1.0 / 3.0))
    return model.lipschitz / (noise * ratio)


def default_objective_clip(model: LinearModel, numbers: PublicNumbers) -> float | None:
    """Return the clipping norm of objective perturbation, or None for no clipping.

    Weights are applied after clipping. A loss that stays in its own family when clipped, only
    wider, is not clipped.
    """
    if model.part_loss.piecewise_quadratic:
        return None
    share = 0.2 * _ratio_of_part(model, numbers) ** 0.12
    loss = model.part_loss.unweighted
    return share * loss.lipschitz(model.row_norm) if share < 1.0 else None


def default_objective_penalty(
    model: LinearModel,
    numbers: PublicNumbers,
    rows_per_unit: int | None = 1,
    columns: int | None = None,
) -> float:
    """Return the L2 penalty of objective perturbation, in scaled units.

    The number of columns, where given, raises it. The cost of the fit is computed without it,
    because private searches do not know the number of columns behind other steps.
    """
    # Without any rows the noise in a weight would be that of the linear term over the penalty; it
    # is fixed at a value that grows with the signal-to-noise ratio, as it is large only in
    # directions about which the rows say nothing; there are more of these the more columns there
    # are. And the curvature of one record may cost a fifth of epsilon.
    ratio = _ratio_of_part(model, numbers)
    straight = model.part_loss.piecewise_quadratic
    noise = max(0.5, 0.3 * ratio**0.3 if straight else 0.2 * ratio**0.4)
    if columns is not None:
        enough = _LITTLE_SIGNAL_PER_COLUMN * columns
        noise *= min(1.0, max(1.0 / 3.0, math.sqrt(ratio / enough)))
    wanted = model.part_loss.lipschitz(model.row_norm) / (noise * ratio)
    target = numbers.target_epsilon
    floor = smallest_penalty(model, target, _SHARE_OF_CURVATURE, rows_per_unit)
    return max(wanted, floor, _SMALLEST_DEFAULT_PENALTY)


def _ratio_of_part(model: Model, numbers: PublicNumbers) -> float:
    """Return the signal-to-noise ratio of each of several problems that share one target."""
    return numbers.signal_to_noise / math.sqrt(model.n_parts)


def default_lot_size(model: Model, numbers: PublicNumbers, max_iter: int | None) -> int:
    """Return the expected batch size: all rows, or the largest that keeps the fit affordable."""
    steps = _rule_steps(model, numbers) if max_iter is None else max_iter
    gradients = _ROW_GRADIENTS * min(1.0, _WEIGHTS_OF_ROW / model.n_weights)
    affordable = max(math.ceil(gradients / steps), _SMALLEST_DEFAULT_LOT)
    return min(numbers.n_rows, affordable)


def default_clip(model: Model, ratio: float) -> float:
    """Return the clipping norm before weights: below the largest gradient while noise is high."""
    bounded = math.isfinite(model.lipschitz)
    longest = model.lipschitz / model.heaviest if bounded else _NETWORK_GRADIENT
    if "of numbers" in model.facts:
        longest = min(longest, _GRADIENT_OF_NUMBERS)
    return longest * min(1.0, 0.09 * ratio**0.2)


def default_bounded_clip(model: Model, ratio: float) -> float | None:
    """Return the clipping norm where the loss bounds gradients, or None for no clipping."""
    longest = model.lipschitz / model.heaviest
    clip = max(default_clip(model, ratio), _CLIP_AT_START * longest)
    return clip if clip < longest else None


def default_steps(model: Model, numbers: PublicNumbers, batch_size: int | None) -> int:
    """Return the number of steps; batches of the user's size read the table five times."""
    steps = _rule_steps(model, numbers)
    if batch_size is None:
        return steps
    return max(steps, math.ceil(5.0 * numbers.n_rows / batch_size))


def default_adam_step(model: Model, mean_rate: float = 1.0) -> float:
    """Return the length of Adam's first step; `mean_rate` is the mean step over the first."""
    linear = "linear" in model.facts
    step = _ADAM_STEP if linear else _ADAM_STEP_OF_NETWORKS / _hidden_layers(model)
    return step / mean_rate


def default_last_iterate_penalty(model: Model, numbers: PublicNumbers) -> float:
    """Return the L2 penalty of a descent that pays for its last iterate only, in scaled units.

    At its limit, such a descent has the noise of output perturbation where the table has no
    curvature, and less elsewhere. The accepted noise grows with the signal-to-noise ratio.
    """
    ratio = numbers.signal_to_noise
    noise = 0.3 * max(1.0, ratio / 100.0) ** (1.0 / 3.0)
    return model.lipschitz / (noise * ratio)


def default_last_iterate_steps(
    model: Model, numbers: PublicNumbers, batch_size: int | None, relaxation: float
) -> int:
    """Return the number of steps of a run that pays for its last iterate only.

    `relaxation` is the number of steps after which early ones are forgotten, or the noise stops
    growing. If that is not affordable, the number for a run that pays for all iterates is used.
    """
    rule = default_steps(model, numbers, batch_size)
    lot = numbers.n_rows if batch_size is None else batch_size
    wanted = max(_RELAXATIONS * relaxation, _FEWEST_STEPS)
    if batch_size is not None:
        wanted = max(wanted, 5.0 * numbers.n_rows / batch_size)
    affordable = max(float(rule), _ROW_GRADIENTS_TO_THE_LIMIT / lot)
    return math.ceil(min(wanted, affordable)) if affordable >= relaxation else rule


def _rule_steps(model: Model, numbers: PublicNumbers) -> int:
    """Return the steps that a clipped descent needs to travel at its longest stable step."""
    if numbers.epsilon is None:
        return _FEWEST_STEPS
    ratio = numbers.signal_to_noise
    bound = model.heaviest * default_clip(model, ratio)
    travel = _weight_noise(model, ratio) * ratio / bound
    steps = math.ceil((1.0 - _MOMENTUM) * travel / _longest_step(model, 0.0, _MOMENTUM))
    return min(_MOST_STEPS, max(_FEWEST_STEPS, steps))


def _weight_noise(model: Model, ratio: float, bounded: bool = False) -> float:
    """Return the acceptable noise of a weight over all steps, and of a margin of norm-1 rows."""
    if "linear" not in model.facts:
        return _NETWORK_NOISE / _hidden_layers(model)
    base = _MARGIN_NOISE_OF_BOUNDED if bounded else _MARGIN_NOISE
    return base * math.sqrt(max(1.0, ratio / _MUCH_SIGNAL))


def _hidden_layers(model: Model) -> int:
    """Return the number of hidden layers, at least 1: noise reaches a margin through each."""
    network: Any = model
    return max(1, len(network.hidden)) if "network" in model.facts else 1


def _longest_step(model: Model, penalty: float, momentum: float) -> float:
    """Return a step at which heavy-ball descent is stable on every table; a guess for networks."""
    smoothness = model.smoothness if math.isfinite(model.smoothness) else 1.0
    return _STABLE_SHARE * 2.0 * (1.0 + momentum) / (smoothness + penalty)


def noisy_descent_defaults(
    model: Model,
    *,
    steps: int,
    signal_to_noise: float,
    bound: float,
    bounded: bool = False,
    momentum: float | None = None,
    penalty: float | None = None,
    mean_rate: float = 1.0,
) -> DescentDefaults:
    """Return step size, momentum, penalty and averaging of a noisy descent.

    `bound` limits the contribution of one record. `bounded` is True if the loss or a ball bounds
    gradients too. Momentum and penalty are the user's, or None. `mean_rate` is the mean step over
    the first, so that schedules differ only in their shape.
    """
    # After T steps of size eta with momentum m the iterates have travelled for T eta / (1 - m), and
    # the noise in each weight is about that times the bound over the signal-to-noise ratio, however
    # many steps there are and whatever their lots.
    noise = _weight_noise(model, signal_to_noise, bounded)
    momentum = _MOMENTUM if momentum is None else momentum
    penalty = 0.15 * bound / signal_to_noise if penalty is None else penalty
    step = (1.0 - momentum) * noise * signal_to_noise / (bound * steps * mean_rate)
    return DescentDefaults(
        initial_step=min(step, _longest_step(model, penalty, momentum)),
        momentum=momentum,
        penalty=penalty,
        average_share=_AVERAGE_SHARE,
    )
