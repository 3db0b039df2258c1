"""Sums of clipped per-example gradients of dense layers, by matrix products of blocks of rows.

One record's gradient in a layer's matrix is the product of its errors and its values. Its norm is
the product of two norms (Goodfellow 2015). Errors are therefore clipped before one product adds up
a block (Bu et al. 2023), and no gradient of a single record is stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.base.parameters import cached_property
from skdp.losses.base import Loss
from skdp.solvers.gradients import ALL_ROWS, check_index, check_shape, check_targets
from skdp.solvers.rows import Index, Rows, Vector
from skdp.tables.row_sources import RowSource
from skdp.threads import share_out

# Blocks whose sums are kept until they are added up, and numbers in them unless two have more.
_MOST_KEPT = 16
_KEPT_NUMBERS = 1 << 23
# Weights of one call when they are added up.
_RANGE = 1 << 15
# Squares of norms from which a record counts for nothing, so that no product overflows.
_LIMITS = {"f": 1e70, "d": 1e150}
# The proof bounds underflow relative to clipping norms up to this, and down to its reciprocal.
_LARGEST_CLIPS = {"f": 1e10, "d": 1e50}
# Weights from which linear softmax models gain by matrix products, and rows of a product of theirs.
_WIDE, _WIDE_BLOCK = 2000, 72
_ACTIVATIONS = {"identity": 0, "relu": 1, "tanh": 2}
_CLIPPINGS = {"flat": 0, "per-layer": 1, "normalize": 2}


@dataclass(frozen=True)
class Layers:
    """Shapes (outputs, columns) of the matrices of dense layers, and how one record is cut.

    The last column of every matrix is that of a constant `bias`. A single layer without one has the
    columns of the rows. Rows are multiplied by `gain`.

    Examples
    --------
    >>> from skdp.solvers import Layers
    >>> layers = Layers([(8, 5), (3, 9)], activation="relu", bias=1.0)
    >>> layers.n_weights
    67
    """

    shapes: list[tuple[int, int]]
    activation: str = "identity"
    clipping: str = "flat"
    bias: float = 0.0
    gain: float = 1.0
    floor: float = 0.0  # added to the norm that "normalize" divides by
    block: int = 288  # rows of one product at most

    @property
    def n_weights(self) -> int:
        """Length of the flat weight vector."""
        return sum(outputs * columns for outputs, columns in self.shapes)

    def split(self, flat: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the matrices as views of a flat vector."""
        return _split(flat, self.shapes)

    def rounding_margin(self, dtype: Any, n_rows: int) -> float:
        """Return a relative bound on the rounding error of one record's part in a sum of `n_rows`.

        A batch of n rows takes at most ``2 n / block + 1`` calls: docs/proofs/networks.md, (A3).
        """
        unit = float(np.finfo(dtype).eps) / 2.0
        # In double precision blocks may hold other rows than before, and all round anew.
        renewed = max(n_rows, self.block) if unit == 2.0**-53 else self.block + 1
        longest = max(outputs + columns for outputs, columns in self.shapes)
        stored = 3.0 * unit + (longest + 3.0 * len(self.shapes) + 8.0) * 2.0**-53
        products = 2.0 * renewed * _gamma(self.block, unit)
        depth = 5.0 * n_rows / self.block + 3.0
        totals = 2.0 * n_rows * _gamma(depth, 2.0**-53) * (1.0 + products)
        return (1.0 + stored) * (1.0 + products + totals) - 1.0


def _split(flat: NDArray[Any], shapes: list[tuple[int, int]]) -> list[NDArray[Any]]:
    """Return matrices that lie one after the other, as views."""
    ends = np.cumsum([rows * columns for rows, columns in shapes])
    parts = np.split(flat, ends[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _gamma(terms: float, unit: float) -> float:
    """Return the bound on the relative error of a sum of `terms` products in any order."""
    return terms * unit / (1.0 - terms * unit)


class _Memory(NamedTuple):
    """A block of rows as compiled code sees it: values of all layers, then errors of all."""

    numbers: NDArray[Any]
    shapes: NDArray[np.int64]
    squares: Vector
    factors: Vector
    shares: Vector
    scores: Vector  # of one row


class _Block:
    """Memory of one thread: values and errors of a block of rows."""

    def __init__(self, layers: Layers, dtype: Any) -> None:
        size, n_layers = layers.block, len(layers.shapes)
        shapes = [(size, columns) for _, columns in layers.shapes]
        shapes += [(size, outputs) for outputs, _ in layers.shapes]
        numbers = np.zeros(size * sum(columns for _, columns in shapes), dtype)
        views = _split(numbers, shapes)
        self.values, self.errors = views[:n_layers], views[n_layers:]
        self.squares = np.empty((2, n_layers, size))
        of_rows = (np.empty((n_layers, size)), np.empty(size), np.empty(layers.shapes[-1][0]))
        self.memory = _Memory(numbers, np.array(shapes), self.squares, *of_rows)


class LayerSums:
    """Adds up gradients of a loss of dense layers on rows, in the precision that is asked for.

    Weights are differences from a public `start` (None: from zero).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import SoftmaxLoss
    >>> from skdp.solvers import Layers, LayerSums, Rows
    >>> rows = Rows.from_matrix(np.eye(2, 4), np.array([0, 2], dtype=np.int32), data_norm=1.0)
    >>> sums = LayerSums(rows, SoftmaxLoss(3), Layers([(3, 4)]), np.float64)
    >>> total = np.zeros(12)
    >>> sums.add(np.zeros(12), total, clip=0.5)[0]  # how many were within it
    0
    >>> bool(np.linalg.norm(total) <= 2 * 0.5)
    True
    """

    def __init__(
        self,
        rows: Rows,
        loss: Loss,
        layers: Layers,
        dtype: Any,
        start: Vector | None = None,
        most_rows: int = 0,
    ) -> None:
        self.rows, self.layers = rows, layers
        self._most_rows = most_rows or rows.n_units
        self.dtype = np.dtype(dtype)
        self._given, self._loss = loss, check_targets(rows, loss)
        self._limits = (_LIMITS[self.dtype.char], float(np.finfo(self.dtype).tiny))
        # Libraries round by the shape. In double precision, what a row gives does not depend on how
        # many others there are; in single precision it depends on its place, whatever is done.
        self._whole_blocks = self.dtype == np.float64
        self._activation = _ACTIVATIONS[layers.activation]
        self._blocks: list[_Block] = []
        self._start = np.zeros(layers.n_weights) if start is None else start
        self._weights = np.empty(layers.n_weights, self.dtype)
        self._shapes = np.array(layers.shapes)
        self._kept = np.empty((0, layers.n_weights), self.dtype)

    @cached_property
    def _kernels(self) -> Any:
        from skdp.solvers import _block_kernels

        return _block_kernels

    def add(
        self,
        weights: Vector,
        out: Vector | None,
        index: Index = None,
        clip: float = math.inf,
        values: bool = False,
    ) -> tuple[int, float]:
        """Add to ``out`` the gradients of the rows ``index`` (None: all), each clipped to ``clip``.

        Gradients and losses are multiplied by the rows' weights. Return the number of gradients
        within ``clip`` before clipping, and the sum of the losses if ``values``. Without ``out``
        only losses are summed. Calls share memory: one at a time.
        """
        n_weights = self.layers.n_weights
        check_shape("weights", weights, n_weights)
        if out is not None:
            check_shape("out", out, n_weights)
        largest = _LARGEST_CLIPS[self.dtype.char]
        if not (1.0 / largest <= clip <= largest or clip == math.inf):
            raise ValueError(
                f"clip must be in [{1.0 / largest}, {largest}] (inf = no clipping), got {clip}."
            )
        self._kernels.add_start(self._start, weights, self._weights)
        index = None if index is None else check_index(index, self.rows.n_rows)
        if isinstance(self.rows.matrix, RowSource):
            return self._add_parts(weights, out, index, clip, values)
        return self._add_in_memory(self.rows, index, out, clip, values)

    def _add_parts(
        self, weights: Vector, out: Vector | None, index: Index, *options: Any
    ) -> tuple[int, float]:
        """Do what `add` does part by part."""
        recipe = (self._given, self.layers, self.dtype, self._start, self._most_rows)
        add_part = partial(_add_part, recipe, weights, out is not None, options)
        total, values = 0, []
        for within, value, own in self.rows.map_parts(add_part, index):
            total += within
            values.append(value)
            if out is not None:
                out += own
        return total, math.fsum(values)

    def _add_in_memory(
        self, rows: Rows, index: Index, out: Vector | None, clip: float, values: bool
    ) -> tuple[int, float]:
        count = rows.n_rows if index is None else index.size
        if count == 0:
            return 0, 0.0
        index = ALL_ROWS if index is None else index
        margin = self.layers.rounding_margin(self.dtype, self._most_rows)
        clips = (clip, clip / (1.0 + margin))
        n_blocks = math.ceil(count / self.layers.block)
        if not self._whole_blocks and n_blocks > 1:
            n_blocks += n_blocks % 2  # to keep two threads busy
        at_once = n_blocks if out is None else self._keep(n_blocks)
        found: list[Any] = [None] * n_blocks

        def add_block(first: int, part: int) -> None:
            begin, end = (self._begin(count, first + part + k, n_blocks) for k in (0, 1))
            total = None if out is None else self._kept[part]
            options = (end - begin, clips, values, total)
            found[first + part] = self._add_rows(rows, index, begin, *options)

        for first in range(0, n_blocks, at_once):
            some = min(at_once, n_blocks - first)
            share_out(partial(add_block, first), some)
            if out is not None:
                self._add_kept(some, out)
        return sum(within for within, _ in found), math.fsum(value for _, value in found)

    def _begin(self, count: int, k: int, n_blocks: int) -> int:
        """Return the first row of a block, which depends only on the number of rows."""
        return min(count, k * self.layers.block) if self._whole_blocks else count * k // n_blocks

    def _keep(self, n_blocks: int) -> int:
        """Return the sums of the blocks that are kept at once, and make room for them."""
        pairs = max(1, _KEPT_NUMBERS // (2 * self.layers.n_weights))
        at_once = min(n_blocks, _MOST_KEPT, 2 * pairs)
        if len(self._kept) < at_once:
            self._kept = np.empty((at_once, self.layers.n_weights), self.dtype)
        return at_once

    def _add_kept(self, n_blocks: int, out: Vector) -> None:
        add, kept = self._kernels.add_blocks, self._kept[:n_blocks]

        def add_range(k: int) -> None:
            add(kept, k * _RANGE, min((k + 1) * _RANGE, out.size), out)

        share_out(add_range, math.ceil(out.size / _RANGE))

    def _add_rows(
        self,
        rows: Rows,
        index: NDArray[np.int64],
        first: int,
        count: int,
        clips: tuple[float, float],
        want_values: bool,
        total: NDArray[Any] | None,
    ) -> tuple[int, float]:
        """Write into ``total`` the sum of the gradients of a block of rows; return like `add`.

        It makes few calls of compiled code, because threads wait for each other between them.
        """
        try:
            block = self._blocks.pop()
        except IndexError:
            block = _Block(self.layers, self.dtype)
        layers, kernels = self.layers, self._kernels
        gather = kernels.gather_sparse if rows.is_sparse else kernels.gather_dense
        given = (rows.matrix, rows.row_scale, layers.gain, layers.bias)
        gather(given, (index, first), block.values[0][:count], block.squares[0, 0])
        # Leftovers of earlier blocks included, or just the rows.
        filled = layers.block if self._whole_blocks else count
        network = (self._weights, self._shapes, self._activation, layers.bias)
        shared = (network, block.memory, filled, count)
        kernels.forward(*shared)
        functions, numbers = self._loss
        softmax = functions.family == "softmax"
        slopes = kernels.softmax_slopes if softmax else kernels.score_slopes
        labels = (rows.targets, rows.kernel_weight, index, first)
        scores = block.errors[-1][:count]
        losses = slopes((functions.tag, numbers), block.memory, scores, labels, want_values)
        within = 0
        if total is not None:
            clipping = (_CLIPPINGS[layers.clipping], *clips, layers.floor, self._limits[0])
            within = kernels.backward(*shared, clipping, self._limits[1], total)
        self._blocks.append(block)
        return within, losses


def _add_part(
    recipe: Any, weights: Vector, wanted: bool, options: Any, part: Rows, chosen: Any
) -> tuple[int, float, Vector | None]:
    own = np.zeros_like(weights) if wanted else None
    return (*LayerSums(part, *recipe).add(weights, own, chosen, *options), own)


def wide_sums(rows: Rows, loss: Loss) -> LayerSums | None:
    """Return what adds up gradients of a linear softmax model; None where kernels are as fast.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import SoftmaxLoss
    >>> from skdp.solvers import Rows, wide_sums
    >>> codes = np.array([0, 2], dtype=np.int32)
    >>> narrow, wide = (Rows.from_matrix(np.eye(2, n), codes, data_norm=1.0) for n in (4, 1000))
    >>> wide_sums(narrow, SoftmaxLoss(3)) is None, wide_sums(wide, SoftmaxLoss(3)) is None
    (True, False)
    """
    softmax = check_targets(rows, loss)[0].family == "softmax"
    if rows.is_sparse or not softmax or rows.n_weights(loss.n_outputs) < _WIDE:
        return None
    shape = (loss.n_outputs, rows.n_columns)
    layers = Layers([shape], bias=rows.intercept_value, block=_WIDE_BLOCK)
    # In double precision, whatever the rows are: minimisers promise tolerances.
    return LayerSums(rows, loss, layers, np.float64)
