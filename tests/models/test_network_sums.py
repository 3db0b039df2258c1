"""Sums of cut gradients of a network: equal to a plain loop, and bounded in floating point too."""

import math
import os
import platform
import subprocess
import sys
from fractions import Fraction
from itertools import product

import numpy as np
import plain_networks
import pytest
from covering import pairs
from scipy import sparse
from threadpoolctl import threadpool_limits

from skdp.losses import LogisticLoss, SoftmaxLoss
from skdp.models import NetworkModel
from skdp.solvers import Layers, layer_sums

DEPTHS = [(), (6,), (6, 5), (4, 6, 5)]
ACTIVATIONS = ["relu", "tanh", "identity"]
CLIPPINGS = ["flat", "per-layer", "normalize"]


def network(n, d, n_outputs=3, hidden=(6, 5), **options):
    loss = LogisticLoss() if n_outputs == 1 else SoftmaxLoss(n_outputs)
    options = {"data_norm": 2.0, **options}
    return NetworkModel(loss, n, d, n_outputs, hidden, **options)


def table(n, d, n_outputs=3, seed=0, dtype=np.float64):
    """Return rows within the norm 2 of the models here, and positions in the label set."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True) / 2.0)
    return X.astype(dtype), rng.integers(0, max(n_outputs, 2), n)


def weights_of(model, seed=0, scale=0.3):
    return scale * np.random.default_rng(seed).standard_normal(model.n_weights)


def summed(problem, weights, clip, index=None):
    out = np.zeros(weights.size)
    return out, problem.sum_clipped(weights, index, clip, out)


@pytest.mark.parametrize(
    ("activation", "clipping", "n_outputs"), pairs(ACTIVATIONS, CLIPPINGS, [1, 3])
)
def test_sums_equal_a_plain_loop_over_records(activation, clipping, n_outputs):
    X, y = table(25, 4, n_outputs)
    X[3] = 0.0
    targets = 2 * y - 1 if n_outputs == 1 else y
    for hidden, bias_value in product(DEPTHS, [1.0, 0.0]):
        model = network(
            *X.shape, n_outputs, hidden, activation=activation, clipping=clipping,
            bias_value=bias_value,
        )  # fmt: skip
        weights = weights_of(model)
        for clip in (0.05, 1.0):
            wanted = plain_networks.sum_clipped(model, weights, X / 2.0, targets, clip)
            for matrix in (X, sparse.csr_array(X)):
                out, within = summed(model.bind(matrix, y)[0], weights, clip)
                np.testing.assert_allclose(out, wanted[0], rtol=0, atol=1e-10)
                assert within == wanted[1]


def test_lots_of_all_sizes_add_up(monkeypatch):
    """Blocks, few of which are kept at once, and pieces change no more than a sum's rounding."""
    monkeypatch.setattr(layer_sums, "_MOST_KEPT", 4)
    n = 2500
    X, y = table(n, 4)
    model = network(n, 4)
    problem, weights = model.bind(X, y)[0], weights_of(model)
    ones = [(X[i : i + 1] / 2.0, y[i : i + 1]) for i in range(n)]
    parts = np.array([plain_networks.sum_clipped(model, weights, *one, 2.0)[0] for one in ones])
    rng = np.random.default_rng(3)
    for size in (0, 1, 2, 279, 280, 281, 560, 561, 777, 2500):
        lot = np.sort(rng.permutation(n)[:size])
        out, _ = summed(problem, weights, 2.0, lot)
        np.testing.assert_allclose(out, parts[lot].sum(axis=0), rtol=0, atol=1e-7)
        pieces, within = np.zeros(model.n_weights), 0
        for k in range(0, size, 200):
            within += problem.sum_clipped(weights, lot[k : k + 200], 2.0, pieces)
        np.testing.assert_allclose(pieces, out, rtol=0, atol=1e-7)
        assert within == summed(problem, weights, 2.0, lot)[1]
    everything, within = summed(problem, weights, 2.0)
    np.testing.assert_allclose(everything, parts.sum(axis=0), rtol=0, atol=1e-7)
    assert 0 < within < n


@pytest.mark.parametrize("activation", ["relu", "tanh", "identity"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_gradients_are_those_of_the_sum_of_losses(activation, n_outputs):
    X, y = table(40, 4, n_outputs)
    model = network(*X.shape, n_outputs, activation=activation)
    problem, weights = model.bind(X, y)[0], weights_of(model)
    gradient, within = summed(problem, weights, math.inf)
    matrices = model.layers.split(model.start + weights)
    direction, step = weights_of(model, 1, 1.0), 1e-5
    rise = problem.sum_losses(weights + step * direction)
    rise -= problem.sum_losses(weights - step * direction)
    assert rise / (2.0 * step) == pytest.approx(gradient @ direction, rel=1e-6)
    losses = [
        plain_networks.loss_and_slopes(
            plain_networks.forward(model, matrices, row)[1],
            2 * label - 1 if n_outputs == 1 else label,
            n_outputs == 1,
        )[0]
        for row, label in zip(X / 2.0, y, strict=True)
    ]
    assert problem.sum_losses(weights) == pytest.approx(math.fsum(losses), rel=1e-12)
    assert within == len(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_changes_no_bit(dtype):
    X, y = table(2500, 4, dtype=dtype)
    model = network(*X.shape)
    problem, weights = model.bind(X, y)[0], weights_of(model)
    lot = np.random.default_rng(1).permutation(2500)[:2100]
    sums = []
    for threads in (1, 2, 3, 2):
        with threadpool_limits(threads, user_api="blas"):
            sums.append(summed(problem, weights, 0.1, lot)[0])
    assert all((other == sums[0]).all() for other in sums)


def test_rows_of_single_precision_stay_near_those_of_double():
    X, y = table(600, 4)
    model = network(*X.shape, clipping="per-layer")
    weights = weights_of(model)
    single = summed(model.bind(X.astype(np.float32), y)[0], weights, 0.1)[0]
    double = summed(model.bind(X, y)[0], weights, 0.1)[0]
    margin = model.layers.rounding_margin(np.float32, 600)
    assert margin < 0.01
    assert np.linalg.norm(single - double) < 600 * 0.1 * (margin + 1e-4)


def overflowing(dtype, clipping, activation="identity"):
    """Return a table and weights that overflow where the first feature is not zero."""
    X, y = table(300, 4, dtype=dtype)
    X[:, 0] = 0.0
    bad = np.array([0, 7, 250])
    X[bad, 0] = 1.0
    X[11] = 0.0
    model = network(*X.shape, activation=activation, clipping=clipping)
    weights = weights_of(model)
    model.layers.split(weights)[0][0, 0] = 0.9 * float(np.finfo(dtype).max)
    return model, X, y, weights, bad


@pytest.mark.parametrize(
    ("clipping", "dtype", "activation"),
    pairs(CLIPPINGS, [np.float32, np.float64], ["relu", "identity"]),
)
def test_records_that_overflow_count_for_nothing_and_spoil_no_others(dtype, clipping, activation):
    model, X, y, weights, bad = overflowing(dtype, clipping, activation)
    problem, others = model.bind(X, y)[0], np.setdiff1d(np.arange(len(X)), bad)
    for index in bad:
        out, within = summed(problem, weights, 0.1, np.array([index]))
        assert within == 0 and (out == 0.0).all()
    everything, within = summed(problem, weights, 0.1)
    rest, kept = summed(problem, weights, 0.1, others)
    assert np.isfinite(everything).all() and within == kept and everything.any()
    parts = [summed(problem, weights, 0.1, np.array([index]))[0] for index in others]
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(everything, np.sum(parts, axis=0), rtol=0, atol=tolerance)
    np.testing.assert_allclose(everything, rest, rtol=0, atol=tolerance)


@pytest.mark.parametrize("large", [1e10, 1e30])
@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_huge_gradients_of_single_precision_are_cut(large, clipping):
    X, y = table(20, 4, dtype=np.float32)
    model = network(*X.shape, clipping=clipping, hidden=(6,), activation="identity")
    weights = weights_of(model)
    model.layers.split(weights)[1][:] *= large
    problem = model.bind(X, y)[0]
    for index in range(20):
        out, within = summed(problem, weights, 0.1, np.array([index]))
        # Rows on whose class the scores agree have no slope.
        norm = np.linalg.norm(out)
        assert 0.099 < norm <= 0.1 or norm == 0.0
        assert within == (norm == 0.0)


def stored_vectors(problem, weights):
    """Return copies of what a sum of one block leaves in memory, values before errors."""
    summed(problem, weights, 0.1)
    block = problem._sums._blocks[0]
    return [array[: problem.rows.n_rows].copy() for array in (*block.values, *block.errors)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("hidden", [(6,), (70, 33)])
def test_no_record_moves_what_a_block_holds_of_others(dtype, activation, hidden):
    """A record changes its own rows of the stored values and errors alone, bit for bit."""
    X, y = table(150, 50, dtype=dtype)
    model = network(150, 50, hidden=hidden, activation=activation)
    weights = weights_of(model)
    before = stored_vectors(model.bind(X, y)[0], weights)
    for record, row in ((0, 1.0), (77, -0.2), (149, 0.0)):
        changed, labels = X.copy(), y.copy()
        changed[record], labels[record] = row, (y[record] + 1) % 3
        after = stored_vectors(model.bind(changed, labels)[0], weights)
        others = np.arange(150) != record
        assert all((a[others] == b[others]).all() for a, b in zip(before, after, strict=True))
        assert (before[0][record] != after[0][record]).any()


@pytest.mark.parametrize("hidden", [(), (1,), (20,), (70, 33)])
@pytest.mark.parametrize("n_outputs", [1, 3, 10])
def test_rows_of_doubles_are_stored_alike_wherever_they_stand(hidden, n_outputs):
    n = Layers([]).block
    for d in (1, 7, 50):
        X, _ = table(1, d, n_outputs)
        model = network(n, d, n_outputs, hidden)
        problem = model.bind(np.tile(X, (n, 1)), np.zeros(n, dtype=int))[0]
        for array in stored_vectors(problem, weights_of(model)):
            assert (array == array[0]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_nothing_is_left_of_what_memory_held_before(dtype, n_outputs):
    X, y = table(150, 4, n_outputs, dtype=dtype)
    model = network(150, 4, n_outputs)
    problem, weights = model.bind(X, y)[0], weights_of(model)
    before, _ = summed(problem, weights, 0.1)
    for memory in (problem._sums._blocks[0].memory.numbers, problem._sums._kept):
        memory[:] = np.nan
    assert (summed(problem, weights, 0.1)[0] == before).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dropped_records_leave_nothing_in_a_block(dtype):
    """Not even a constant; and other records are stored as ever."""
    model, X, y, weights, bad = overflowing(dtype, "flat")
    others = np.setdiff1d(np.arange(150), bad)
    dropped = stored_vectors(model.bind(X[:150], y[:150])[0], weights)
    assert all((array[bad[:2]] == 0.0).all() for array in dropped)
    X[bad] = 0.0
    kept = stored_vectors(model.bind(X[:150], y[:150])[0], weights)
    assert all((a[others] == b[others]).all() for a, b in zip(dropped, kept, strict=True))
    assert all((array[bad[:2]] != 0.0).any() for array in kept)


def exact_norm(block, k):
    """Return the norm of what a block holds of a record's gradient, rounded once."""
    square = Fraction(0)
    for values, errors in zip(block.values, block.errors, strict=True):
        sizes = [sum(Fraction(float(v)) ** 2 for v in array[k]) for array in (values, errors)]
        square += sizes[0] * sizes[1]
    return math.sqrt(square)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("clipping", ["flat", "per-layer", "normalize"])
def test_what_is_stored_of_a_record_is_within_the_bound(dtype, clipping):
    """In exact arithmetic, with norms of many magnitudes and nearly all of them at the bound."""
    rng = np.random.default_rng(5)
    X, y = table(60, 4, dtype=dtype)
    X *= (10.0 ** rng.uniform(-6, 0, 60))[:, None].astype(dtype)
    model = network(60, 4, clipping=clipping)
    weights = 10.0 ** rng.uniform(-3, 3, model.n_weights) * rng.choice([-1, 1], model.n_weights)
    problem, clip = model.bind(X, y)[0], 0.1
    summed(problem, weights, clip)
    block = problem._sums._blocks[0]
    unit = float(np.finfo(dtype).eps) / 2.0
    target = clip / (1.0 + model.layers.rounding_margin(dtype, 60))
    norms = [exact_norm(block, k) for k in range(60)]
    assert target * 0.9 < max(norms) <= target * (1.0 + 3.0 * unit + 1e-14) < clip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("clipping", ["flat", "per-layer", "normalize"])
def test_one_record_moves_the_computed_sum_by_no_more_than_the_clipping_norm(dtype, clipping):
    """Full blocks at the bound whose entries round the same way, and mixed magnitudes."""
    rng = np.random.default_rng(2)
    n, d, clip = Layers([]).block, 7, 0.1
    row = rng.uniform(0.1, 1.0, d)
    for spread in (0.0, 1e-7, 6.0):
        X = row * 10.0 ** -rng.uniform(0.0, spread, (n, 1)) if spread > 1.0 else (
            row * (1.0 + spread * rng.standard_normal((n, d)))
        )  # fmt: skip
        X, y = np.vstack([X, row]).astype(dtype)[:n], np.zeros(n, dtype=int)
        model = network(n, d, hidden=(6,), clipping=clipping, data_norm=4.0)
        weights = weights_of(model, 1, 2.0)
        sums = []
        for factor in (1.0, 0.0, -1.0):
            changed, labels = X.copy(), y.copy()
            changed[100] *= dtype(factor)
            labels[100] = int(factor > 0.0)
            problem = model.bind(changed, labels)[0]
            sums.append(summed(problem, weights, clip)[0])
        # A row of which nothing is kept stands for the null record.
        problem.rows.row_scale[100] = math.inf
        null = summed(problem, weights, clip)[0]
        moves = [np.linalg.norm(total - null) for total in sums]
        assert max(moves) <= clip
        assert max(np.linalg.norm(a - b) for a, b in product(sums, sums)) <= 2.0 * clip


def test_blocks_are_summed_with_no_more_than_the_proved_error():
    """The product of a full block of single precision, against exact sums of its rows."""
    rng = np.random.default_rng(8)
    n, d = Layers([]).block, 5
    X = np.abs(rng.standard_normal((n, d))) * 10.0 ** rng.uniform(-3, 0, (n, 1))
    model = network(n, d, 2, hidden=())
    problem = model.bind(X.astype(np.float32), np.zeros(n, dtype=int))[0]
    out, _ = summed(problem, weights_of(model), 0.02)
    block = problem._sums._blocks[0]
    values, errors = block.values[0].astype(float), block.errors[0].astype(float)
    # Products of two numbers of single precision are exact in double.
    parts = errors[:, :, None] * values[:, None, :]
    exact = np.array([math.fsum(column) for column in parts.reshape(n, -1).T])
    unit = 2.0**-24
    allowed = n * unit / (1.0 - n * unit) * np.linalg.norm(parts.reshape(n, -1), axis=1).sum()
    assert 0.0 < np.linalg.norm(out - exact) <= allowed


def test_norms_of_records_do_not_depend_on_how_many_come_with_them():
    """Else a row less would move all others of its call."""
    X, y = table(1, 7)
    model = network(3000, 7)
    problem = model.bind(np.tile(X, (3000, 1)), np.tile(y, 3000))[0]
    norms = []
    for size in (1, 2, 288, 1024):
        summed(problem, weights_of(model), 0.1, np.arange(size))
        norms.append(exact_norm(problem._sums._blocks[0], 0))
    assert len(set(norms)) == 1


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="Kernels of x86.")
@pytest.mark.parametrize("core", ["Nehalem", "Haswell"])
def test_rows_of_doubles_are_stored_alike_by_other_kernels(core):
    command = [sys.executable, "-m", "pytest", "-q", "-n0", __file__, "-k", "stored_alike_wherever"]
    environment = os.environ | {"OPENBLAS_CORETYPE": core}
    subprocess.run(command, check=True, env=environment, capture_output=True)


def test_margins_are_small_and_grow_with_the_table():
    layers = network(10, 4).layers
    assert layers.rounding_margin(np.float32, 10**6) < 0.01
    assert layers.rounding_margin(np.float64, 10**4) < 2e-9
    sizes = [layers.rounding_margin(np.float64, n) for n in (10**3, 10**5, 10**7)]
    assert sizes == sorted(sizes) and sizes[-1] < 0.01


@pytest.mark.parametrize("clip", [0.0, -1.0, 1e-30, 1e30, math.nan])
def test_clipping_norms_beyond_the_proof_are_refused(clip):
    X, y = table(10, 4, dtype=np.float32)
    model = network(*X.shape)
    with pytest.raises(ValueError, match="clip must be in"):
        summed(model.bind(X, y)[0], weights_of(model), clip)


@pytest.mark.parametrize("hidden", [1, 20])
def test_a_table_of_doubles_may_be_a_row_shorter(hidden):
    """Scores of all rows lie at a kink: rounded by place, hundreds of gradients would flip."""
    rng, n, d = np.random.default_rng(9), 2 * Layers([]).block + 5, 40
    y = np.zeros(n, dtype=int)
    model = network(n, d, 1, (hidden,), data_norm=1.0)
    for _ in range(20):
        first = rng.standard_normal(d)
        row = rng.standard_normal(d)
        row -= first * (first @ row) / (first @ first)
        X = np.tile(row / (1.001 * np.linalg.norm(row)), (n, 1))
        layers = np.zeros((hidden, d + 1)), np.ones((1, hidden + 1))
        layers[0][:, :-1] = first
        weights = np.concatenate([matrix.ravel() for matrix in layers]) - model.start
        problem = model.bind(X, y)[0]
        whole = summed(problem, weights, 0.01)
        less = summed(problem, weights, 0.01, np.arange(1, n))
        assert np.linalg.norm(whole[0] - less[0]) <= 0.01
        assert whole[1] - less[1] in (0, 1)
