"""A block of rows: gathering, matrix products, slopes, norms and factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import get_cython_function_address, intrinsic

from skdp.losses.scalar import (
    FAST,
    INNER,
    OUTER,
    STRICT,
    exp_negative,
    in_terms_of,
    loss_slope,
    loss_value,
    softmax_in_place,
)
from skdp.solvers._dense_kernels import AHEAD, prefetch_rows

Array = np.ndarray
# Weights of all layers, shapes of their matrices, code of the activation, and value of the biases.
Network = tuple[Array, Array, int, float]
# Targets, weights of rows or none, row numbers or none, and the first place in these.
Labels = tuple[Array, Array, Array, int]

RELU, TANH = 1, 2  # any other code: identity
PER_LAYER, NORMALIZE = 1, 2  # any other code: flat


for _name in ("sgemm", "dgemm"):
    # Compiled code finds it by its name, wherever it lies in this process.
    _address = get_cython_function_address("scipy.linalg.cython_blas", _name)
    binding.add_symbol(f"skdp_{_name}", _address)


@intrinsic
def _multiply(typing_context: Any, a: Any, at: Any, b: Any, bt: Any, out: Any, shape: Any) -> Any:
    """Write the product of two matrices, transposed if ``at`` and ``bt``, with scipy's BLAS.

    The first entries of C-contiguous matrices are read and written. ``shape`` holds the numbers of
    rows, of columns and of products in each sum.
    """
    signature = types.void(a, types.boolean, b, types.boolean, out, types.UniTuple(types.intp, 3))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, pointer = ir.IntType(8), ir.IntType(8).as_pointer()
        number = context.get_value_type(out.dtype)
        function_type = ir.FunctionType(ir.VoidType(), [pointer] * 13)
        name = "skdp_sgemm" if out.dtype == types.float32 else "skdp_dgemm"
        gemm = builder.module.globals.get(name) or ir.Function(builder.module, function_type, name)

        def point_to(value: Any) -> Any:
            slot = builder.alloca(value.type)
            builder.store(value, slot)
            return builder.bitcast(slot, pointer)

        def letter(turned: Any) -> Any:
            return point_to(builder.select(turned, byte(ord("T")), byte(ord("N"))))

        def describe(kind: Any, value: Any) -> list[Any]:
            array = context.make_array(kind)(context, builder, value)
            width = builder.extract_value(array.shape, 1)
            return [builder.bitcast(array.data, pointer), point_to(width)]

        rows, columns, inner = (point_to(builder.extract_value(args[5], k)) for k in range(3))
        # The library has columns one after the other, so that it sees every matrix transposed.
        factors = (letter(args[3]), letter(args[1]), columns, rows, inner, point_to(number(1.0)))
        matrices = [*describe(b, args[2]), *describe(a, args[0]), point_to(number(0.0))]
        builder.call(gemm, [*factors, *matrices, *describe(out, args[4])])
        return context.get_dummy_value()

    return signature, generate


multiply: Any = _multiply


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def matrix_of(memory: np.ndarray, shapes: np.ndarray, layer: int) -> np.ndarray:
    """Return one of the matrices that are stored one after the other."""
    first = 0
    for k in range(layer):
        first += shapes[k, 0] * shapes[k, 1]
    rows, columns = shapes[layer]
    return memory[first : first + rows * columns].reshape(rows, columns)


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def add_start(start: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Write the sum of two vectors, rounded to the precision of ``out``."""
    for j in range(out.size):
        out[j] = start[j] + weights[j]


@njit(cache=True, nogil=True, fastmath=FAST, **OUTER)
def gather_dense(rows: Any, place: tuple[Array, int], values: Array, squares: Array) -> None:
    """Write scaled rows with their constant column, and their squared norms.

    Rows are positions in ``index`` from ``first`` on, or row numbers themselves when it is empty.
    """
    (matrix, scale, gain, bias), (index, first) = rows, place
    d, end = matrix.shape[1], first + values.shape[0]
    for k in range(values.shape[0]):
        i = first + k
        if index.size > 0:
            i = index[first + k]
            ahead = first + k + (AHEAD if k > 0 else 0)
            prefetch_rows(matrix, scale, scale, index, ahead, min(first + k + AHEAD + 1, end))
        factor = gain * scale[i]
        for j in range(d):
            values[k, j] = factor * matrix[i, j]
        finish_row(values, k, d, bias, squares)


@njit(cache=True, nogil=True, fastmath=FAST, **OUTER)
def gather_sparse(rows: Any, place: tuple[Array, int], values: Array, squares: Array) -> None:
    """Write scaled rows of a CSR matrix, as for dense ones."""
    ((data, indices, indptr), scale, gain, bias), (index, first) = rows, place
    d = values.shape[1] - 1
    for k in range(values.shape[0]):
        i = index[first + k] if index.size > 0 else first + k
        factor = gain * scale[i]
        values[k] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            values[k, indices[e]] = factor * data[e]
        finish_row(values, k, d, bias, squares)


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def finish_row(values: np.ndarray, k: int, d: int, bias: float, squares: np.ndarray) -> None:
    """Write the constant column of a row, if there is one, and the square of the row's norm."""
    for j in range(d, values.shape[1]):
        values[k, j] = bias
    square = 0.0
    for j in range(values.shape[1]):
        value = np.float64(values[k, j])
        square += value * value
    squares[k] = square


@njit(cache=True, nogil=True, fastmath=FAST, **OUTER)
def activate(values: np.ndarray, bias: float, code: int, squares: np.ndarray) -> None:
    """Apply an activation in place; as of gathered rows otherwise."""
    d = values.shape[1] - 1
    for k in range(values.shape[0]):
        if code == RELU:
            for j in range(d):
                # What is no number stays so.
                values[k, j] = values[k, j] if not values[k, j] <= 0.0 else 0.0
        elif code == TANH:
            for j in range(d):
                values[k, j] = tanh(np.float64(values[k, j]))
        finish_row(values, k, d, bias, squares)


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def tanh(x: float) -> float:
    """Return the hyperbolic tangent, within 2e-16; NaN stays NaN."""
    power = exp_negative(2.0 * abs(x))
    size = (1.0 - power) / (1.0 + power)
    return math.copysign(size, x) if x == x else x


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def forward(network: Network, block: Any, filled: int, count: int) -> None:
    """Compute values of all layers and scores from gathered rows.

    ``filled`` rows of the block are multiplied, and the first ``count`` are used.
    """
    weights, shapes, code, bias = network
    last = len(shapes) - 1
    for layer in range(last + 1):
        values = matrix_of(block.numbers, block.shapes, layer)
        after = matrix_of(block.numbers, block.shapes, layer + 1 + (last if layer == last else 0))
        matrix = matrix_of(weights, shapes, layer)
        outputs, columns = matrix.shape
        multiply(values, False, matrix, True, after, (filled, outputs, columns))
        if layer < last:
            activate(after[:count], bias, code, block.squares[0, layer + 1])


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def backward(
    network: Network, block: Any, filled: int, count: int, clipping: Any, tiny: float, total: Array
) -> int:
    """Compute errors of all layers from slopes, clip them and write the sum of the gradients.

    Return the number that needed no clipping; `find_factors` documents ``clipping``.
    """
    weights, shapes, code, _ = network
    n_layers = len(shapes)
    for layer in range(n_layers - 1, 0, -1):
        errors = matrix_of(block.numbers, block.shapes, n_layers + layer)
        before = matrix_of(block.numbers, block.shapes, n_layers + layer - 1)
        values = matrix_of(block.numbers, block.shapes, layer)
        matrix = matrix_of(weights, shapes, layer)
        outputs, columns = matrix.shape
        multiply(errors, False, matrix, False, before, (filled, columns - 1, outputs))
        derive(before[:count], values[:count], code, block.squares[1, layer - 1])
    within = find_factors(block, count, clipping)
    for layer in range(n_layers):
        errors = matrix_of(block.numbers, block.shapes, n_layers + layer)
        values = matrix_of(block.numbers, block.shapes, layer)
        cut(values[:count], errors[:count], block.factors[layer], tiny)
        gradient = matrix_of(total, shapes, layer)
        outputs, columns = gradient.shape
        multiply(errors, True, values, False, gradient, (outputs, columns, count))
    return within


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def softmax_slopes(
    loss: Any, block: Any, scores: Array, labels: Labels, want_values: bool
) -> float:
    """Turn scores into slopes, with their squared norms; return the weighted sum of the losses.

    The weights are copied to the block's shares.
    """
    targets, row_weight, index, first = labels
    scratch, shares, squares, total = block.scores, block.shares, block.squares[1, -1], 0.0
    for k in range(scores.shape[0]):
        i = index[first + k] if index.size > 0 else first + k
        shares[k] = row_weight[i] if row_weight.size > 0 else 1.0
        finite = True
        for j in range(scratch.size):
            scratch[j] = scores[k, j]
            finite &= math.isfinite(scratch[j])
        if finite:
            total += shares[k] * softmax_in_place(scratch, targets[i], want_values)
        else:
            scratch[:] = math.nan
            total += math.nan
        square = 0.0
        for j in range(scratch.size):
            scores[k, j] = scratch[j]
            square += np.float64(scores[k, j]) * np.float64(scores[k, j])
        squares[k] = square
    return total


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def score_slopes(loss: Any, block: Any, scores: Array, labels: Labels, want_values: bool) -> float:
    """Do the same for losses of one score."""
    (tag, numbers), (targets, row_weight, index, first) = loss, labels
    shares, squares, total = block.shares, block.squares[1, -1], 0.0
    for k in range(scores.shape[0]):
        i = index[first + k] if index.size > 0 else first + k
        shares[k] = row_weight[i] if row_weight.size > 0 else 1.0
        score, slope = np.float64(scores[k, 0]), math.nan
        if math.isfinite(score):
            entry = in_terms_of(tag, score, targets[i])
            slope = in_terms_of(tag, loss_slope(tag, numbers, entry, targets[i]), targets[i])
            if want_values:
                total += shares[k] * loss_value(tag, numbers, entry, targets[i])
        else:
            total += math.nan
        scores[k, 0] = slope
        squares[k] = np.float64(scores[k, 0]) * np.float64(scores[k, 0])
    return total


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def derive(errors: np.ndarray, values: np.ndarray, code: int, squares: np.ndarray) -> None:
    """Multiply errors by the slopes of the activation; write the squares of their norms."""
    for k in range(errors.shape[0]):
        square = 0.0
        for j in range(errors.shape[1]):
            error, value = errors[k, j], values[k, j]
            if code == RELU:
                error = error if value > 0.0 else errors.dtype.type(0.0)
            elif code == TANH:
                error *= errors.dtype.type(1.0) - value * value
            errors[k, j] = error
            square += np.float64(error) * np.float64(error)
        squares[k] = square


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def find_factors(block: Any, count: int, clipping: tuple[int, float, float, float, float]) -> int:
    """Write factors that shrink each record's layer gradients to ``target``; -1 drops a record.

    Weights are applied afterwards. Return the number no longer than ``clip``. Squared norms of
    ``limit`` or more drop a record.
    """
    code, clip, target, floor, limit = clipping
    squares, shares, factors = block.squares, block.shares, block.factors
    layers, within = factors.shape[0], 0
    for k in range(count):
        square = 0.0
        for layer in range(layers):
            square += squares[0, layer, k] * squares[1, layer, k]
        norm, kept = math.sqrt(square), True
        for layer in range(layers):
            a, e = squares[0, layer, k], squares[1, layer, k]
            bound, factor = target, 1.0
            if code == PER_LAYER:
                norm, bound = math.sqrt(a * e), target / math.sqrt(layers)
            if code == NORMALIZE and clip < math.inf:
                factor = target / (norm + floor)
            elif norm > bound:
                factor = bound / norm
            factor *= shares[k]
            cut = factor * factor * e
            kept &= a < limit and e < limit and cut < limit and a * cut < limit
            factors[layer, k] = factor
        if not kept:
            factors[:, k] = -1.0
        elif square <= clip * clip:
            within += 1
    return within


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def cut(values: np.ndarray, errors: np.ndarray, factors: np.ndarray, tiny: float) -> None:
    """Multiply errors by factors; erase dropped records, including their values.

    Products smaller than ``tiny`` become zero: rounding them could lengthen a gradient.
    """
    for k in range(errors.shape[0]):
        if factors[k] < 0.0:
            values[k] = 0.0
            errors[k] = 0.0
        elif factors[k] != 1.0:
            for j in range(errors.shape[1]):
                error = factors[k] * errors[k, j]
                errors[k, j] = error if abs(error) >= tiny else 0.0


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def add_blocks(kept: np.ndarray, begin: int, end: int, out: np.ndarray) -> None:
    """Add the sums of blocks, in their order, to a range of ``out``."""
    total = out[begin:end]  # loops that begin at 0 vectorise
    for k in range(kept.shape[0]):
        block = kept[k, begin:end]
        for j in range(total.size):
            total[j] += block[j]
