"""Networks of dense layers, and a bound on the gradient of one record.

Proof: Theorem 4 of ``docs/proofs/networks.md``.

A row ``x`` enters as ``gain * x`` in scaled units. Layer l maps ``a`` to ``W a + s b``, and an
activation follows every layer except the last. The weights of a layer are a matrix (outputs, inputs
+ 1) with b as its last column. A plan trains the difference from a public start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.base.parameters import Activation, Clipping, cached_property
from skdp.losses.base import Loss, kernel_arguments
from skdp.models.protocol import Index, ScaledUnits, Weights, weigh_rows
from skdp.solvers import Layers, LayerSums, Rows
from skdp.tables.row_sources import RowSource
from skdp.threads import one_blas_thread

Array = NDArray[np.float64]

# Relative margin, far above the rounding errors of singular values, rows and the bound.
_ROUNDING = 1.0 + 1e-9
_MOST_SPLITS = 2**12
_LARGEST = 1e10  # larger bounds are useless, also as clipping norms


@dataclass(frozen=True)
class NearStart:
    """A network close to its start.

    Rows have norm at most `gain`, and biases are multiplied by `bias`. Activations do not increase
    distances and map 0 to 0; `saturates` means that they are in [-1, 1].
    """

    start: list[Array]
    loss: Loss
    gain: float
    bias: float
    saturates: bool

    @cached_property
    @one_blas_thread()
    def _norms(self) -> list[tuple[float, float]]:
        """Spectral norm of each layer's matrix without biases, and norm of its biases."""
        parts = [(matrix[:, :-1], matrix[:, -1]) for matrix in self.start]
        return [
            (float(np.linalg.norm(matrix, 2)) * _ROUNDING, float(np.linalg.norm(biases)))
            for matrix, biases in parts
        ]

    def largest_gradient(self, radius: float) -> float:
        """Bound one record's gradient at weights within a distance from the start."""
        # One column per distribution of the distance over the layers.
        radii = split_radius(len(self.start), radius)
        with np.errstate(over="ignore", invalid="ignore"):
            inputs = [np.full(radii.shape[1], self.gain * _ROUNDING)]
            for (norm, biases), matrix, moved in zip(self._norms, self.start, radii, strict=True):
                scores = norm * inputs[-1] + biases * self.bias
                scores += moved * np.hypot(inputs[-1], self.bias)
                widest = math.sqrt(matrix.shape[0]) if self.saturates else math.inf
                inputs.append(np.minimum(scores, widest))
            # Slopes of the loss at scores of that norm, as on a row of norm 1 at such weights.
            errors = np.array([self.loss.zero_out_gap(1.0, score) for score in scores])
            square = np.zeros_like(errors)
            for (norm, _), moved, values in zip(
                self._norms[::-1], radii[::-1], inputs[-2::-1], strict=True
            ):
                square += (errors * np.hypot(values, self.bias)) ** 2
                errors = errors * (norm + moved)
        bound = math.sqrt(square.max()) * _ROUNDING
        return bound if bound <= _LARGEST else math.inf


def split_radius(n_layers: int, radius: float) -> Array:
    """Return radii of layers as columns; for any split of the radius, one column is above it.

    The squares of a split add up to that of the radius, and are rounded up to a grid.
    """
    steps = _MOST_SPLITS
    while steps and math.comb(steps + 2 * n_layers - 2, n_layers - 1) > _MOST_SPLITS:
        steps //= 2
    if not steps:
        return np.full((n_layers, 1), radius)
    # All distributions of at most steps + n_layers - 1 fractions ("stars and bars").
    places = steps + 2 * n_layers - 2
    bars = np.array([*combinations(range(places), n_layers - 1)], dtype=np.int64)
    fractions = np.diff(bars, axis=1, prepend=-1, append=places) - 1
    return radius * np.sqrt(np.minimum(fractions, steps) / steps).T


# Added to the norm by which a gradient is divided, in scaled units (Bu et al. 2023): much longer
# gradients have the clipping norm, much shorter ones keep their order of length.
NORMALIZE_FLOOR = 0.01


@one_blas_thread()
def public_start(sizes: tuple[int, ...], activation: Activation) -> list[Weights]:
    """Return the default initial matrices: orthogonal, the last one zero, biases zero.

    They are the same for every table, every seed and any number of threads.
    """
    generator = np.random.default_rng(0)
    gain = math.sqrt(2.0) if activation == "relu" else 1.0
    matrices: list[Weights] = []
    for inputs, outputs in pairwise(sizes):
        matrix = np.zeros((outputs, inputs + 1))
        if len(matrices) < len(sizes) - 2:
            tall = generator.standard_normal((max(inputs, outputs), min(inputs, outputs)))
            q = np.linalg.qr(tall)[0]
            matrix[:, :-1] = gain * (q if outputs >= inputs else q.T)
        matrices.append(matrix)
    return matrices


@dataclass(frozen=True)
class NetworkModel:
    """Loss and public shape of a network, and clipping of one record's gradient.

    Examples
    --------
    >>> from skdp.losses import SoftmaxLoss
    >>> from skdp.models import NetworkModel
    >>> model = NetworkModel(SoftmaxLoss(3), n_rows=100, n_features=4, n_outputs=3, hidden=(8,))
    >>> model.sizes, model.n_weights
    ((4, 8, 3), 67)
    """

    loss: Loss
    n_rows: int
    n_features: int
    n_outputs: int
    hidden: tuple[int, ...]
    activation: Activation = "relu"
    clipping: Clipping = "flat"
    bias_value: float = 1.0  # s, 0 for no biases
    data_norm: float = 1.0  # rows are divided by it, to norm at most 1
    gain: float = 4.0  # and multiplied by the gain
    # Public initial matrices; None uses those of `public_start`.
    given_start: list[Weights] | None = field(default=None, compare=False, repr=False)
    heaviest: float = 1.0  # bound on the total weight of a unit's rows
    by_unit: bool = False  # whether a record is all rows of an id
    rows_per_unit: int = 1  # public number of slots for rows of a unit
    class_weights: tuple[float, ...] | None = None  # included in `heaviest`

    # Steps and norms are used as given, on rows of norm `gain`.
    units = ScaledUnits()
    facts = frozenset({"network", "Lipschitz in a ball", "counts cut gradients"})
    public_gradient = None
    n_parts = 1
    lipschitz = math.inf
    smoothness = math.inf

    def __post_init__(self) -> None:
        kernel_arguments(self.loss)

    @property
    def name(self) -> str:
        """Name of the loss in messages."""
        return f"a network with {type(self.loss).__name__}"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of units of each layer, from the columns to the scores."""
        return (self.n_features, *self.hidden, self.n_outputs)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Shape of the matrix of each layer."""
        return [(outputs, inputs + 1) for inputs, outputs in pairwise(self.sizes)]

    @property
    def n_weights(self) -> int:
        """Length of the complete weight vector."""
        return self.layers.n_weights

    @cached_property
    def start(self) -> Weights:
        """Public initial weights; training learns the difference from them."""
        matrices = self.given_start or public_start(self.sizes, self.activation)
        return np.concatenate([matrix.ravel() for matrix in matrices])

    @cached_property
    def _near_start(self) -> NearStart:
        matrices, saturates = self.layers.split(self.start), self.activation == "tanh"
        return NearStart(matrices, self.loss, self.gain, self.bias_value, saturates)

    @cached_property
    def layers(self) -> Layers:
        """Description of the layers for sums of gradients."""
        options = (self.activation, self.clipping, self.bias_value, self.gain, NORMALIZE_FLOOR)
        return Layers(self.shapes, *options)

    def gradient_gap(self, weight_norm: float | None = None) -> float:
        """Bound the distance between two records' gradients, at weights up to that norm."""
        return 2.0 * self.zero_out_gap(weight_norm)

    def zero_out_gap(self, weight_norm: float | None = None) -> float:
        """Bound the norm of one record's gradient, at weights up to that norm."""
        if weight_norm is None:
            return math.inf
        return self.heaviest * self._near_start.largest_gradient(weight_norm)

    def minimiser_norm(self, penalty: float) -> float:
        """Return infinity: no bound on the norm of the minimising weights is proved."""
        return math.inf

    def bind(
        self,
        X: Any,
        targets: NDArray[Any],
        row_weight: ArrayLike | None = None,
        n_units: int | None = None,
    ) -> list[NetworkProblem]:
        """Return the problem of a table; targets are positions in the label set."""
        row_weight = weigh_rows(self.class_weights, targets, row_weight)
        kind = self.loss.target_kind
        if kind == "signs":
            targets = np.where(targets == 1, np.int8(1), np.int8(-1))
        rows = Rows.from_matrix(X, targets, self.data_norm, 0.0, kind, row_weight, n_units)
        return [NetworkProblem(self, rows)]

    def unpack(self, weights: Weights) -> tuple[list[Weights], list[Weights]]:
        """Return matrices (inputs, outputs) and biases of each layer in the user's units."""
        matrices = self.layers.split(self.start + weights)
        coefs = [matrix[:, :-1].T.copy() for matrix in matrices]
        coefs[0] *= self.gain / self.data_norm
        return coefs, [matrix[:, -1] * self.bias_value for matrix in matrices]


def network_scores(
    X: Any, coefs: list[Weights], intercepts: list[Weights], activation: Activation
) -> Weights:
    """Return the scores of rows, one column per output.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.models import network_scores
    >>> coefs = [np.array([[1.0, -1.0]]), np.array([[2.0], [3.0]])]
    >>> intercepts = [np.zeros(2), np.array([0.5])]
    >>> network_scores(np.array([[1.0], [-1.0]]), coefs, intercepts, "relu")
    array([[2.5],
           [3.5]])
    """
    values = X
    for layer, (coef, intercept) in enumerate(zip(coefs, intercepts, strict=True)):
        values = np.asarray(values @ coef) + intercept
        if layer < len(coefs) - 1:
            values = activate(values, activation)
    return values


def activate(values: Weights, activation: Activation) -> Weights:
    """Return the activations of a hidden layer."""
    if activation == "relu":
        return np.maximum(values, 0.0)
    return np.tanh(values) if activation == "tanh" else values


@dataclass(frozen=True)
class NetworkProblem:
    """The loss of a network on the rows of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import SoftmaxLoss
    >>> from skdp.models import NetworkModel
    >>> model = NetworkModel(SoftmaxLoss(3), n_rows=2, n_features=4, n_outputs=3, hidden=(8,))
    >>> (problem,) = model.bind(np.eye(2, 4), np.array([0, 2]))
    >>> total = np.zeros(model.n_weights)
    >>> problem.sum_clipped(np.zeros(model.n_weights), None, clip=0.1, out=total)  # both were cut
    0
    >>> bool(np.linalg.norm(total) <= 2 * 0.1)
    True
    """

    model: NetworkModel
    rows: Rows

    run_steps = None

    @cached_property
    def _sums(self) -> LayerSums:
        model = self.model
        most_rows = self.rows.n_units * model.rows_per_unit
        # The lengths of blocks of sparse rows from files depend on private entries: in single
        # precision, rounding of all rows would depend on them.
        by_entries = self.rows.is_sparse and isinstance(self.rows.matrix, RowSource)
        dtype = np.float64 if by_entries else self.rows.dtype
        return LayerSums(self.rows, model.loss, model.layers, dtype, model.start, most_rows)

    def sum_clipped(self, weights: Weights, index: Index, clip: float, out: Weights) -> int:
        """Add to ``out`` the gradients of the rows ``index`` (None: all), each clipped to ``clip``.

        Return the number of gradients that were no longer than that before.
        """
        return self._sums.add(weights, out, index, clip)[0]

    def sum_losses(self, weights: Weights) -> float:
        """Return the sum of the losses of all rows."""
        return self._sums.add(weights, None, values=True)[1]
