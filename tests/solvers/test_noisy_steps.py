"""Update rules against plain numpy, and the compiled loop against single steps."""

import numpy as np
import pytest
from covering import pairs
from scipy import sparse

from skdp.losses import LogisticLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.solvers import Rows, StepState, UpdateRule, apply_update, run_steps, sum_gradients

RULES = {
    "plain": UpdateRule(10.0),
    "momentum-penalty-ball": UpdateRule(10.0, penalty=0.05, radius=0.7, momentum=0.8),
    "adam": UpdateRule.adam(10.0, penalty=0.01),
    "adam-ball": UpdateRule.adam(10.0, radius=0.2, beta1=0.5, beta2=0.9, epsilon=1e-3),
}


class NumpyRule:
    """Momentum and Adam as their papers print them."""

    def __init__(self, name, rule, size):
        self.adam, self.rule = name.startswith("adam"), rule
        self.weights, self.first, self.second = np.zeros(size), np.zeros(size), np.zeros(size)
        self.average, self.total_weight, self.count = np.zeros(size), 0.0, 0

    def step(self, total, rate, averaging):
        rule = self.rule
        gradient = total / rule.divisor + rule.penalty * self.weights
        self.count += 1
        if self.adam:
            self.first = rule.momentum * self.first + (1 - rule.momentum) * gradient
            self.second = rule.beta2 * self.second + (1 - rule.beta2) * gradient**2
            first = self.first / (1 - rule.momentum**self.count)
            second = self.second / (1 - rule.beta2**self.count)
            self.weights = self.weights - rate * first / (np.sqrt(second) + rule.epsilon)
        else:
            self.first = rule.momentum * self.first + gradient
            self.weights = self.weights - rate * self.first
        norm = np.linalg.norm(self.weights)
        if norm > rule.radius:
            self.weights = self.weights * rule.radius / norm
        self.average = self.average + averaging * self.weights
        self.total_weight += averaging


@pytest.mark.parametrize("name", RULES)
def test_updates_match_numpy(name):
    rng = np.random.default_rng(0)
    state, expected = StepState.zeros(6), NumpyRule(name, RULES[name], 6)
    for t in range(50):
        total, rate = rng.normal(size=6) * 10, rng.random()
        averaging = float(t >= 20) * rng.random()
        apply_update(state, RULES[name], total, rate, averaging)
        expected.step(total, rate, averaging)
        np.testing.assert_allclose(state.weights, expected.weights, rtol=1e-11, atol=1e-13)
        assert np.linalg.norm(state.weights) <= RULES[name].radius * (1 + 1e-14)
        if t == 10:
            np.testing.assert_array_equal(state.average_iterates(), state.weights)
    np.testing.assert_allclose(
        state.average_iterates(), expected.average / expected.total_weight, rtol=1e-11
    )
    assert state.counter[0] == 50


@pytest.mark.parametrize(
    ("name", "loss", "sparse_rows", "weighted"),
    pairs(list(RULES), [LogisticLoss(), SmoothedHingeLoss(), SoftmaxLoss(3)], *[[False, True]] * 2),
)
def test_the_compiled_loop_equals_single_steps(name, loss, sparse_rows, weighted, make_targets):
    rng = np.random.default_rng(1)
    n, steps = 200, 40
    X = rng.normal(size=(n, 5))
    X, targets = sparse.csr_matrix(X) if sparse_rows else X, make_targets(loss, n, rng)
    shares = rng.uniform(0.0, 3.0, n) * (rng.random(n) < 0.9) if weighted else None
    rows = Rows.from_matrix(X, targets, 2.0, 0.5, row_weight=shares)
    size = rows.n_weights(loss.n_outputs)
    lots = [rng.integers(0, n, rng.integers(0, 90) * (t != 3)) for t in range(steps)]
    offsets = np.concatenate([[0], np.cumsum([lot.size for lot in lots])])
    noise = rng.normal(size=(steps, size))
    rates, averaging = rng.random(steps), rng.random(steps) * (np.arange(steps) > 9)
    fused, single = StepState.zeros(size), StepState.zeros(size)
    rule = RULES[name]
    # Two calls, to see that the state carries over.
    for part in (slice(0, 15), slice(15, steps)):
        first, last = offsets[part.start], offsets[part.stop]
        some = np.concatenate(lots)[first:last], offsets[part.start : part.stop + 1] - first
        each = (noise[part], rates[part], averaging[part])
        run_steps(rows, loss, fused, rule, *some, *each, clip=0.6)
    for t in range(steps):
        total = np.zeros(size)
        half = lots[t].size // 2
        # Two physical batches of one lot.
        sum_gradients(rows, loss, single.weights, total, lots[t][:half], 0.6)
        sum_gradients(rows, loss, single.weights, total, lots[t][half:], 0.6)
        apply_update(single, rule, total + noise[t], rates[t], averaging[t])
    for a, b in zip(fused, single, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_all_lots_may_be_empty():
    rows = Rows.from_matrix(np.ones((4, 2)), np.ones(4, np.int8), 1.0)
    state = StepState.zeros(2)
    noise = np.array([[1.0, 2.0], [3.0, 4.0]])
    lots, each = (np.empty(0, np.int64), np.zeros(3, np.int64)), (np.full(2, 0.5), np.zeros(2))
    run_steps(rows, LogisticLoss(), state, UpdateRule(1.0), *lots, noise, *each)
    np.testing.assert_array_equal(state.weights, [-2.0, -3.0])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"offsets": [0, 1]}, "equally long"),
        ({"offsets": [0, 2, 1]}, "offsets"),
        ({"offsets": [0, 1, 5]}, "offsets"),
        ({"noise": np.zeros((2, 3))}, "noise"),
        ({"indices": [0, 9]}, "index"),
    ],
)
def test_mismatched_arrays_are_refused(change, message):
    arguments = {
        "indices": [0, 1],
        "offsets": [0, 1, 2],
        "noise": np.zeros((2, 2)),
        "learning_rates": np.ones(2),
        "averaging_weights": np.ones(2),
    } | change
    rows = Rows.from_matrix(np.ones((4, 2)), np.ones(4, np.int8), 1.0)
    with pytest.raises(ValueError, match=message):
        run_steps(rows, LogisticLoss(), StepState.zeros(2), UpdateRule(1.0), **arguments)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"divisor": 0.0}, "divisor"),
        ({"divisor": 1.0, "radius": 0.0}, "radius"),
        ({"divisor": 1.0, "momentum": 1.0}, "momentum"),
    ],
)
def test_rules_check_their_numbers(arguments, message):
    with pytest.raises(ValueError, match=message):
        UpdateRule(**arguments)
