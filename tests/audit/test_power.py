"""Seeded faults of the kinds that are found in libraries; an audit flags each.

Confidence and numbers of runs are such that a sound classifier would be flagged with probability
below 1e-6, and that each of these is missed with probability below 1e-6.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdp import DPSGDClassifier, GrpuaSVC, OperaSVC
from skdp.accounting import ApproxDPEvent, RepeatedEvent
from skdp.audit import audit_epsilon

SURE = 1.0 - 1e-6
X, Y = np.zeros((10, 1)), np.arange(10) % 2
OUTPUT = {
    **{"epsilon": 8.0, "delta": 1e-5, "data_norm": 1.0},
    **{"alpha": 10.0, "solver": "gd", "max_iter": 3},
}
DESCENT = {
    **{"epsilon": 8.0, "delta": 1e-5, "data_norm": 1.0, "fit_intercept": False},
    **{"batch_size": 11, "max_iter": 2, "max_grad_norm": 0.1, "average": False, "momentum": 0.0},
    "adjacency": "add-remove",
}


def flagged(model, n_trials, tables=(X, Y), **settings):
    settings |= {"n_trials": n_trials, "confidence": SURE, "random_state": 0}
    return audit_epsilon(model, *tables, **settings).violated


class HalfTheNoise(OperaSVC):
    def _carry_out(self, plan, *rest):
        return super()._carry_out(replace(plan, sigma=plan.sigma / 2), *rest)


class HalfTheNoiseOfSteps(DPSGDClassifier):
    def _carry_out(self, plan, *rest):
        return super()._carry_out(replace(plan, sigma=plan.sigma / 2), *rest)


class LipschitzForTwice(OperaSVC):
    """Takes the norm of one gradient for the distance of two."""

    def _build_plan(self, *public):
        plan = super()._build_plan(*public)
        return replace(plan, sensitivity=plan.sensitivity / 2, sigma=plan.sigma / 2)


class SharedByClasses(OperaSVC):
    """Draws the noise of one class and adds it to all."""

    def _carry_out(self, plan, records, stream, progress):
        quiet = super()._carry_out(replace(plan, sigma=1e-9), records, stream, progress)
        noise = plan.sigma * stream.standard_normal(quiet.size // plan.model.n_parts)
        return quiet + np.tile(noise, plan.model.n_parts)


class SharedByFits(OperaSVC):
    """Fits with another penalty from the same stream, and pays for both."""

    def _account(self, plan):
        spent = super()._account(plan)
        twice = RepeatedEvent(spent.event, 2)
        return replace(spent, event=twice, epsilon=2 * spent.epsilon, accountant="pld")

    def _carry_out(self, plan, *rest):
        stronger = replace(plan, penalty=2.0 * plan.penalty)
        self.second_ = super()._carry_out(stronger, *rest)
        return super()._carry_out(plan, *rest)


class NoClipping(DPSGDClassifier):
    def _carry_out(self, plan, *rest):
        return super()._carry_out(replace(plan, clip=math.inf), *rest)


class Wrapped:
    """Records whose problems are others."""

    def __init__(self, records, wrap):
        self.records, self.wrap = records, wrap
        self.by_unit, self.units = records.by_unit, records.units

    def bind(self, model):
        return [self.wrap(problem) for problem in self.records.bind(model)]


class ClippedSum:
    """A problem whose sum is cut, instead of each gradient in it."""

    run_steps = rows = None

    def __init__(self, problem):
        self._problem = problem

    def sum_clipped(self, weights, index, clip, out):
        total = np.zeros_like(out)
        self._problem.sum_clipped(weights, index, math.inf, total)
        out += total * min(1.0, clip / max(np.linalg.norm(total), 1e-300))


class ClipsAfterTheSum(DPSGDClassifier):
    def _carry_out(self, plan, records, *rest):
        return super()._carry_out(plan, Wrapped(records, ClippedSum), *rest)


class SumOverSize:
    """A problem whose sums are divided by the size that lots have, not by the public one."""

    run_steps = rows = None

    def __init__(self, problem, size):
        self._problem, self._size = problem, size

    def sum_clipped(self, weights, index, clip, out):
        total = np.zeros_like(out)
        self._problem.sum_clipped(weights, index, clip, total)
        out += total * self._size / max(len(index), 1)


class DividesByTheLot(DPSGDClassifier):
    def _carry_out(self, plan, records, *rest):
        wrapped = Wrapped(records, lambda problem: SumOverSize(problem, plan.lots.size))
        return super()._carry_out(plan, wrapped, *rest)


class PrintedNoise(GrpuaSVC):
    """The algorithm as printed: noise of one gradient's norm on n times the sampled gradient."""

    def _build_plan(self, *public):
        # The step of the printed query is that of the mean, and so is its noise.
        self._sound = super()._build_plan(*public)
        return replace(self._sound, sigma=17.404396 / self._sound.lots.n_rows)

    def _account(self, plan):
        claim = ApproxDPEvent(0.970447, 0.05)
        return replace(super()._account(self._sound), epsilon=0.970447, delta=0.05, event=claim)


class PrintedAccountant(DPSGDClassifier):
    """Takes q^2 times the divergence of the Gaussian for that of the sampled one."""

    def _account(self, plan):
        rate = plan.steps * (plan.lots.sample_rate / plan.noise_multiplier) ** 2 / 2.0
        epsilon = rate + 2.0 * math.sqrt(rate * math.log(1.0 / self.delta))
        claim = ApproxDPEvent(epsilon, self.delta)
        return replace(super()._account(plan), epsilon=epsilon, event=claim)


class ShuffledLots:
    """Lots that are cut from a shuffled table, and say that they are Poisson."""

    def __init__(self, lots):
        self._lots = lots

    def __getattr__(self, name):
        return getattr(self._lots, name)

    def sampler(self, stream):
        self._order = np.argsort(stream.uniform(self.n_rows))
        return self

    def draw(self, steps):
        taken, self._order = np.split(self._order, [steps])
        return taken, np.arange(steps + 1)


class Shuffles(DPSGDClassifier):
    def _plan(self, table):
        plan = super()._plan(table)
        return replace(plan, lots=ShuffledLots(plan.lots))


class NamesCategories(OperaSVC):
    def _publish(self, plan, table, released, spent):
        super()._publish(plan, table, released, spent)
        self.categories_ = np.unique(table.X[:, -1]).astype(str)


class CountsRows(DPSGDClassifier):
    def _publish(self, plan, table, released, spent):
        super()._publish(plan, table, released, spent)
        self.n_samples_ = int(np.any(table.X, axis=1).sum())


class ScalesByTheRows(OperaSVC):
    def _read(self, X, y, params):
        return super()._read(X / np.abs(X).max(), y, params)


class ScalesInFit(OperaSVC):
    def fit(self, X, y):
        return super().fit(X / np.abs(X).max(), y)


class StopsEarly(OperaSVC):
    def _use_rows(self, plan, table, progress):
        problems = plan.model.bind(table.X, table.targets)
        losses = sum(problem.sum_losses(np.full(3, 0.2)) for problem in problems)
        self.n_iter_ = round(1000.0 * losses)
        return super()._use_rows(plan, table, progress)


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("model", "n_trials"),
    [
        (HalfTheNoise(**OUTPUT), 1000),
        (HalfTheNoiseOfSteps(**DESCENT), 1000),
        (LipschitzForTwice(**OUTPUT), 1000),
        (SharedByClasses(**OUTPUT, classes=[0, 1, 2]), 200),
        (SharedByFits(**OUTPUT), 600),
        (NoClipping(**DESCENT), 200),
        pytest.param(NoClipping(**DESCENT, hidden_layer_sizes=(4,)), 200, marks=pytest.mark.slow),
        pytest.param(
            HalfTheNoiseOfSteps(**DESCENT, hidden_layer_sizes=(4,)), 1000, marks=pytest.mark.slow
        ),
        (NamesCategories(**OUTPUT, adjacency="add-remove", fit_intercept=False), 200),
        (CountsRows(**DESCENT), 200),
        (StopsEarly(**OUTPUT), 200),
    ],
    ids=lambda value: type(value).__name__,
)
def test_faults_are_flagged_at_the_worst_pair(model, n_trials):
    assert flagged(model, n_trials)


@pytest.mark.daily(1)
@pytest.mark.parametrize("model", [HalfTheNoise(**OUTPUT), HalfTheNoiseOfSteps(**DESCENT)])
def test_transcripts_show_faults(model):
    assert flagged(model, 1000, release="all")


@pytest.mark.slow
def test_shuffled_lots_are_flagged():
    """With little noise, Poisson lots hide a row by leaving it out; one pass never does."""
    settings = DESCENT | {"epsilon": None, "batch_size": 1, "max_iter": 6}
    tables = X[:5], Y[:5]
    assert flagged(Shuffles(noise_multiplier=0.15, **settings), 300, tables, release="all")
    sound = DPSGDClassifier(noise_multiplier=0.15, **settings)
    assert not flagged(sound, 60, tables, release="all")


@pytest.mark.slow
def test_a_clipped_sum_is_flagged():
    """One row turns the sum of the others round, which one clipped gradient cannot."""
    others = np.array([[0.5]] + [[0.0]] * 9)
    tables = np.vstack([others, [[1.0]]]), np.array([0] * 10 + [1])
    neighbour = np.vstack([others, [[0.0]]]), tables[1]
    assert flagged(ClipsAfterTheSum(**DESCENT), 1000, tables, neighbour=neighbour)
    assert not flagged(DPSGDClassifier(**DESCENT), 200, tables, neighbour=neighbour)


@pytest.mark.slow
def test_the_realised_size_of_a_lot_is_flagged():
    """Over its size, a sum of equal gradients is the same for all lots, but for one opposite row.

    That moves it by twice the bound on a gradient, of which the claim is that it may be removed.
    """
    tables = np.vstack([np.ones((10, 1)), [[-1.0]]]), np.ones(11, dtype=int)
    neighbour = np.ones((10, 1)), np.ones(10, dtype=int)
    settings = DESCENT | {"batch_size": 10, "classes": [0, 1]}
    assert flagged(DividesByTheLot(**settings), 800, tables, neighbour=neighbour)
    assert not flagged(DPSGDClassifier(**settings), 60, tables, neighbour=neighbour)


@pytest.mark.daily(1)
@pytest.mark.parametrize("cls", [ScalesByTheRows, ScalesInFit])
def test_scaling_by_the_rows_is_flagged(cls):
    tables = np.vstack([np.full((10, 1), 0.01), [[1.0]]]), np.ones(11, dtype=int)
    neighbour = np.vstack([np.full((10, 1), 0.01), [[0.01]]]), tables[1]
    settings = OUTPUT | {"classes": [0, 1]}
    assert flagged(cls(**settings), 200, tables, neighbour=neighbour)
    assert not flagged(OperaSVC(**settings), 200, tables, neighbour=neighbour)


def printed(cls, **settings):
    return cls(
        **{"epsilon": 8.0, "delta": 0.05, "data_norm": 1.0, "fit_intercept": False},
        **{"classes": [0, 1], "alpha": 0.0, "sampling": "uniform", "batch_size": 1},
        **{"max_iter": 2499, "learning_rate_init": 1e-5, "average": False},
        **settings,
    )


@pytest.mark.slow
def test_printed_gradient_perturbation_is_flagged():
    """Fifty equal records on the straight part of the hinge; one is turned round."""
    tables = np.ones((50, 1)), np.ones(50, dtype=int)
    neighbour = np.vstack([np.ones((49, 1)), [[-1.0]]]), tables[1]
    assert flagged(printed(PrintedNoise), 400, tables, neighbour=neighbour)
    assert not flagged(printed(GrpuaSVC), 100, tables, neighbour=neighbour)


@pytest.mark.slow
def test_printed_accountant_is_flagged():
    settings = DESCENT | {"epsilon": None, "delta": 0.01, "batch_size": 2, "max_iter": 1}
    model = PrintedAccountant(noise_multiplier=0.4, **settings)
    assert flagged(model, 20_000, method="clopper-pearson")
