"""A clipping norm that follows noisy counts: one noise vector pays for the sum and the count."""

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from skdp.audit.runs import KeptLots
from skdp.losses import LogisticLoss, OneVsRestLoss, SoftmaxLoss
from skdp.mechanisms import RandomStream, analytic_gaussian_sigma, record_releases
from skdp.models import LinearModel, NetworkModel, ScaledUnits
from skdp.plans import carry_out, noisy_gradient
from skdp.plans.carry_out import carry_out_noisy_gradient
from skdp.plans.defaults import PublicNumbers
from skdp.plans.dpsgd import build_dpsgd
from skdp.plans.noisy_gradient import DPSGDChoices, Execution, adaptive_contribution, pack_sum
from skdp.testing.replay import compare_releases

CHOICES = DPSGDChoices(
    *(0.0, 1.0, 0.5, 20, 40, "sgd", 0.0, 0.9, 0.99, "constant", 0.5, 0.1, 0.5, False),
    adaptive=True,
)
NUMBERS = PublicNumbers(60, 3, 2, 1.0, 1e-5, "add-remove")


@dataclass(frozen=True)
class Vectors:
    """A model whose gradients are its rows, at all weights."""

    n_weights: int = 3
    count: object = None  # what it returns instead of the right count
    name = "Vectors"
    n_parts: int = 1
    heaviest: float = 1.0
    by_unit, rows_per_unit, n_outputs = False, 1, 1
    class_weights = public_gradient = None
    lipschitz = smoothness = math.inf
    facts = frozenset({"counts cut gradients"})
    units = ScaledUnits()

    def bind(self, rows):
        seen = []

        def sum_clipped(weights, index, clip, out):
            part = rows if index is None else rows[index]
            norms = np.linalg.norm(part, axis=1)
            out += np.minimum(1.0, clip / np.maximum(norms, 1e-300)) @ part
            seen.append(clip)
            return int((norms <= clip).sum()) if self.count is None else self.count

        return [SimpleNamespace(rows=None, sum_clipped=sum_clipped, run_steps=refuse, clips=seen)]


def refuse(*arguments, **options):
    raise AssertionError("the compiled loop knows no norm that changes")


def adaptive_plan(model=None, numbers=NUMBERS, **choices):
    return build_dpsgd(model or Vectors(), numbers, replace(CHOICES, **choices))


def run(plan, problems, replayed=None, seed=0):
    with record_releases(replayed) as trace:
        carry_out_noisy_gradient(plan, problems, RandomStream.from_seed(seed))
    return trace


def lengths(n=60, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return scale * rng.lognormal(size=(n, 1)) * np.array([[0.6, 0.0, -0.8]])


@pytest.fixture
def large_marks(monkeypatch):
    """Make the count a large part of a release."""
    monkeypatch.setattr(noisy_gradient, "SHARE", 0.4)


def test_the_noise_is_that_of_a_fixed_norm():
    for adjacency in ("add-remove", "replace-one"):
        numbers = replace(NUMBERS, adjacency=adjacency)
        fixed = adaptive_plan(numbers=numbers, adaptive=False)
        plan = adaptive_plan(numbers=numbers)
        assert plan.event == fixed.event and plan.noise_multiplier == fixed.noise_multiplier == 1.0
        assert plan.sigma == 1.0 and fixed.sigma == 0.5
        gap = math.sqrt(4.0 - 3.0 * noisy_gradient.SHARE)
        assert plan.sensitivity == pytest.approx(gap if adjacency == "replace-one" else 1.0)
        whole = adaptive_plan(numbers=numbers, noise_multiplier=None, batch_size=60)
        exact = analytic_gaussian_sigma(1.0, 1e-5, whole.sensitivity * math.sqrt(40))
        assert exact * (1 - 1e-9) <= whole.sigma <= exact * (1 + 2e-4)


def test_no_two_records_are_farther_apart_than_declared(monkeypatch):
    """Norm and distance of what records add, over a fine grid, with any count a model may claim."""
    for share in (0.01, 0.3, 0.9):
        monkeypatch.setattr(noisy_gradient, "SHARE", share)
        bound = adaptive_contribution(0.5)
        angles = np.linspace(0.0, 2.0 * np.pi, 25)
        vectors = np.array(
            [
                pack_sum(0.5 * r * np.array([np.cos(a), np.sin(a)]), cut, 0.5)
                for a in angles
                for r in (0.0, 0.7, 1.0)
                for cut in (0, 1)
            ]
        )
        norms = np.linalg.norm(vectors, axis=1)
        gaps = np.linalg.norm(vectors[:, None] - vectors, axis=-1)
        assert norms.max() < bound.norm
        assert norms.max() == pytest.approx(bound.norm, rel=3e-8)
        assert gaps.max() == pytest.approx(bound.gap, rel=3e-8) and gaps.max() < bound.gap
        assert not pack_sum(np.zeros(2), 0, 0.5).any()  # a record that adds nothing


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
def test_the_norm_follows_the_quantile(quantile, monkeypatch):
    rows = lengths(2000, scale=30.0)
    monkeypatch.setattr(noisy_gradient, "QUANTILE", quantile)
    numbers = replace(NUMBERS, n_rows=2000)
    plan = adaptive_plan(numbers=numbers, max_iter=100, batch_size=1000, max_grad_norm=1.0)
    (problem,) = plan.model.bind(rows)
    run(plan, [problem])
    share = np.mean(np.linalg.norm(rows, axis=1) <= problem.clips[-1])
    # The noise of the share is 0.005 in a step, and a step moves the norm by a fifth of it.
    assert abs(share - quantile) < 0.05
    assert problem.clips[0] == 1.0


def test_steps_shrink_as_the_norm_grows():
    """Without noise the weights move by the sum of clipped rows over the norm: what noise there
    is moves them alike in every step."""
    rows = lengths()
    plan = replace(adaptive_plan(batch_size=60, max_iter=15), sigma=1e-9)
    (problem,) = plan.model.bind(rows)
    weights = carry_out_noisy_gradient(plan, [problem], RandomStream.from_seed(0))
    norms = np.linalg.norm(rows, axis=1)
    sums = [np.minimum(0.5 / clip, 0.5 / norms) @ rows for clip in problem.clips]
    assert len(set(problem.clips)) == 15 and problem.clips[0] == 0.5
    np.testing.assert_allclose(weights, -0.5 * np.sum(sums, axis=0) / 60, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("multiplier", [1e-6, 1e50])
def test_the_norm_stays_within_its_range(multiplier, monkeypatch):
    monkeypatch.setattr(noisy_gradient, "RATE", 1e10)
    for rows in (lengths(scale=1e100), lengths(scale=1e-100), np.zeros((60, 3))):
        plan = adaptive_plan(noise_multiplier=multiplier)
        (problem,) = plan.model.bind(rows)
        run(plan, [problem])
        clips = np.array(problem.clips)
        assert clips.min() >= 0.5e-4 * (1 - 1e-9) and clips.max() <= 0.5e4 * (1 + 1e-9)


def network(activation="relu", **options):
    model = NetworkModel(SoftmaxLoss(3), 60, 4, 3, (5,), activation, **options)
    rng = np.random.default_rng(1)
    # A start at which gradients flow through all layers.
    start = [rng.standard_normal((5, 5)), rng.standard_normal((3, 6))]
    return replace(model, given_start=start)


def table(seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((60, 4)) / 2.0, rng.integers(0, 3, 60)


def neighbours():
    """A table beside those that differ in its last row: another, one much longer, of zeros."""
    X, y = table()
    for row, label in ((-X[-1], (y[-1] + 1) % 3), (1e3 * X[-1], y[-1]), (0.0, y[-1])):
        other, labels = X.copy(), y.copy()
        other[-1], labels[-1] = row, label
        yield (X, y), (other, labels)


@pytest.mark.parametrize(
    ("clipping", "batch_size"), [("flat", 60), ("per-layer", 30), ("normalize", 30)]
)
@pytest.mark.usefixtures("large_marks")
def test_replays_on_neighbours_hold_the_joint_sensitivity(clipping, batch_size):
    numbers = replace(NUMBERS, adjacency="replace-one")
    largest = 0.0
    for one, other in neighbours():
        model = network(clipping=clipping)
        plan = adaptive_plan(model, numbers, batch_size=batch_size, max_iter=10)
        recorded = run(plan, model.bind(*one))
        replayed = run(plan, model.bind(*other), recorded)
        assert recorded.releases[0].value.shape == (model.n_weights + 1,)
        report = compare_releases(recorded.releases, replayed.releases)
        largest = max(largest, report.largest_ratio)
    assert largest > 0.5  # the bound is of use


@pytest.mark.parametrize("clipping", ["flat", "normalize"])
@pytest.mark.usefixtures("large_marks")
def test_replays_without_a_record_hold_the_joint_sensitivity(clipping):
    """The record leaves the lots it was in; with all rows, and no biases, zeros stand for it."""
    model = network(clipping=clipping, bias_value=0.0)
    plan = adaptive_plan(model, max_iter=10)
    lots = KeptLots(plan.lots, 59)
    recorded = run(replace(plan, lots=lots), model.bind(*table()))
    inside, outside = (
        run(replace(plan, lots=lots.replay(version)), model.bind(*table()), recorded)
        for version in ("inside", "outside")
    )
    assert compare_releases(inside.releases, outside.releases).largest_ratio > 0.5
    plan = adaptive_plan(model, batch_size=60, max_iter=10)
    *_, (one, other) = neighbours()
    recorded = run(plan, model.bind(*one))
    compare_releases(recorded.releases, run(plan, model.bind(*other), recorded).releases)


@pytest.mark.usefixtures("large_marks")
def test_a_replay_sees_a_count_that_moves_too_far():
    """The power of the replays: a model whose count is of all rows, by one of them."""
    plan = adaptive_plan(batch_size=60)
    recorded = run(plan, Vectors(count=60).bind(lengths()))
    replayed = run(plan, Vectors(count=0).bind(lengths()), recorded)
    with pytest.raises(AssertionError, match="moved by"):
        compare_releases(recorded.releases, replayed.releases)


def test_physical_batches_change_nothing(monkeypatch):
    monkeypatch.setattr(carry_out, "_SMALLEST_PIECE", 1)
    plan = adaptive_plan(network())
    pieces = replace(plan, execution=Execution(physical_batch_size=7))
    assert pieces == plan
    releases = [run(each, plan.model.bind(*table())).releases for each in (plan, pieces)]
    for one, other in zip(*releases, strict=True):
        np.testing.assert_allclose(one.value, other.value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("count", [math.nan, -1, 61, 2.0, "3", [1], None])
def test_counts_are_numbers_of_rows(count):
    plan = adaptive_plan(batch_size=60)
    (problem,) = plan.model.bind(lengths())

    def sum_clipped(*arguments):
        problem.sum_clipped(*arguments)
        return count

    careless = SimpleNamespace(rows=None, sum_clipped=sum_clipped, run_steps=None)
    with (
        record_releases() as trace,
        pytest.raises(ValueError, match="the number of rows that it did not"),
    ):
        carry_out_noisy_gradient(plan, [careless], RandomStream.from_seed(0))
    assert trace.releases == []


@pytest.mark.parametrize(
    "model",
    [
        LinearModel(LogisticLoss(), 60, 3, 1, 0.5),
        LinearModel(OneVsRestLoss(LogisticLoss(), 3), 60, 3, 3, 0.5),
        Vectors(n_weights=4, n_parts=2),
    ],
)
def test_models_that_do_not_count_are_refused_at_once(model):
    with pytest.raises(ValueError, match=r"counts clipped gradients.*Give a fixed max_grad_norm"):
        adaptive_plan(model)


def test_a_plan_states_the_bound_of_its_norm():
    plan = adaptive_plan()
    fixed = adaptive_plan(adaptive=False)
    assert "a mark if it was clipped" in plan.bound.reason and "0.5" in plan.bound.reason
    for wrong in ({"bound": fixed.bound}, {"clip": 0.4}):
        with pytest.raises(ValueError, match="bound is not that of"):
            replace(plan, **wrong)
    for start in (1e-7, 1e7, math.inf, math.nan):
        with pytest.raises(ValueError, match="max_grad_norm must be in"):
            adaptive_plan(max_grad_norm=start)
