"""Numbers that a model or a loss states of itself are held against what it really returns."""

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit
from scipy import sparse

from skdp import OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.losses import LogisticLoss, OneVsRestLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.losses.base import Loss
from skdp.losses.scalar import SOFTMAX, ScalarFunctions
from skdp.mechanisms import RandomStream, record_releases
from skdp.models import LinearModel, require
from skdp.plans.carry_out import (
    carry_out_noisy_gradient,
    carry_out_objective_perturbation,
    carry_out_output_perturbation,
)
from skdp.plans.defaults import PublicNumbers
from skdp.plans.dpsgd import build_dpsgd
from skdp.plans.noisy_gradient import DPSGDChoices, Execution, contribution_in_ball
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan
from skdp.plans.output_perturbation import OutputPerturbationPlan
from skdp.solvers import (
    RegularisedObjective,
    Rows,
    StepState,
    UpdateRule,
    apply_update,
    minimise,
    sum_gradients,
)

CHOICES = DPSGDChoices(
    *(0.1, 5.0, 0.5, 20, 30, "sgd", None, 0.9, 0.99, "constant", None, 0.1, 0.5, True)
)
NUMBERS = PublicNumbers(60, 3, 2, None, 1e-5, "replace-one")
TARGET = {"penalty": 0.5, "adjacency": "replace-one", "epsilon": 1.0, "delta": 1e-5}


def output(model):
    return OutputPerturbationPlan.build(model, solver="newton", max_iter=9, **TARGET)


def objective(model):
    return ObjectivePerturbationPlan.build(model, **TARGET)


def noisy(model):
    return build_dpsgd(model, NUMBERS, CHOICES)


METHODS = [
    (output, carry_out_output_perturbation),
    (objective, carry_out_objective_perturbation),
    (noisy, carry_out_noisy_gradient),
]


def table(n=60):
    rng = np.random.default_rng(0)
    return rng.uniform(-0.5, 0.5, (n, 3)), rng.integers(0, 2, n)


def model_of(loss):
    return LinearModel(loss, 60, 3, loss.n_outputs, 0.5)


@pytest.mark.parametrize(("build", "carry_out"), METHODS)
@pytest.mark.parametrize("count", [0, 2])
def test_noise_is_for_as_many_problems_as_were_declared(build, carry_out, count):
    model = model_of(LogisticLoss())
    problems = model.bind(*table()) * count
    with (
        record_releases() as trace,
        pytest.raises(ValueError, match=f"{count} problems, and has n_parts=1"),
    ):
        carry_out(build(model), problems, RandomStream.from_seed(0))
    assert trace.releases == []


@dataclass(frozen=True)
class Odd:
    """A model whose sums are what a test wants them to be."""

    value: float = 0.0
    n_weights: int = 3
    n_parts: int = 1
    heaviest: float = 1.0
    lipschitz: float = 1.0
    smoothness: float = 1.0
    by_unit: bool = False
    rows_per_unit: int = 1
    class_weights: tuple | None = None
    n_outputs: int = 1
    public_gradient = None
    name = "Odd"
    facts = frozenset({"Lipschitz", "smooth"})
    units = SimpleNamespace(learning_rate=float)

    def bind(self):
        def sum_clipped(weights, index, clip, out):
            out += self.value

        return [SimpleNamespace(rows=None, sum_clipped=sum_clipped, run_steps=None)]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_sums_that_are_not_finite_get_no_noise(value):
    with record_releases() as trace, pytest.raises(ValueError, match="n_weights=3 finite"):
        carry_out_noisy_gradient(noisy(Odd(value)), Odd(value).bind(), RandomStream.from_seed(0))
    assert trace.releases == []


@pytest.mark.parametrize(
    "claim", [{"n_weights": 5, "n_parts": 2}, {"n_weights": 0}, {"n_parts": 0}, {"n_parts": -1}]
)
def test_weights_are_shared_out_evenly(claim):
    with pytest.raises(ValueError, match="must be a multiple of n_parts"):
        noisy(Odd(**claim))


@pytest.mark.parametrize(
    "fact", ["by_unit", "rows_per_unit", "class_weights", "n_outputs", "public_gradient"]
)
def test_what_a_model_does_not_state_is_not_guessed(fact):
    said = {name: getattr(Odd(), name) for name in dir(Odd()) if not name.startswith("_")}
    noisy(SimpleNamespace(**said))
    del said[fact]
    with pytest.raises(TypeError, match=f"must define {fact}; there are no defaults"):
        noisy(SimpleNamespace(**said))


@pytest.mark.parametrize("fact", ["lots", "last_iterate_only"])
def test_what_a_plan_does_not_state_is_not_guessed(fact):
    class Careless(OperaLogisticRegression):
        def _build_plan(self, model, numbers):
            plan = super()._build_plan(model, numbers)
            said = {name: getattr(plan, name) for name in dir(plan) if not name.startswith("_")}
            del said[fact]
            return SimpleNamespace(**said)

    X, codes = table()
    with BudgetAccountant(epsilon=3.0, delta=1e-3, adjacency="replace-one") as budget:
        with pytest.raises(TypeError, match=f"must define {fact}; there are no defaults"):
            Careless(1.0, 1e-5, data_norm=1.0).fit(X, codes)
    assert budget.entries() == []


@pytest.mark.parametrize("bound", [math.inf, math.nan, -1.0])
def test_constants_are_sizes(bound):
    require(Odd(), "It", "Lipschitz", "smooth")
    with pytest.raises(ValueError, match="Odd is not Lipschitz"):
        require(Odd(lipschitz=bound), "It", "Lipschitz")
    with pytest.raises(ValueError, match="Odd is not smooth"):
        require(Odd(smoothness=bound), "It", "smooth")


@pytest.mark.parametrize("bound", [math.nan, -1.0])
def test_bounds_on_minimisers_are_sizes(bound, monkeypatch):
    monkeypatch.setattr(LogisticLoss, "minimiser_norm_bound", lambda *args: bound)
    with pytest.raises(ValueError, match="the bound on the norm of weights"):
        output(model_of(LogisticLoss()))
    monkeypatch.setattr(LogisticLoss, "gradient_gap", lambda *args: bound)
    with pytest.raises(ValueError, match="gap must lie in"):
        contribution_in_ball(model_of(LogisticLoss()), 1.0)
    monkeypatch.setattr(LogisticLoss, "zero_out_gap", lambda *args: bound)
    with pytest.raises(ValueError, match="norm must be positive"):
        contribution_in_ball(model_of(LogisticLoss()), 1.0)


@njit(cache=True, nogil=True, fastmath={"contract"})
def broken(numbers, score, target):
    return np.nan if target > 5.0 else 0.0


class Unbroken(Loss):
    """What is right of the losses below."""

    target_kind = "real"
    convex = True

    def lipschitz(self, row_norm):
        return row_norm

    def smoothness(self, row_norm):
        return row_norm * row_norm

    def minimiser_norm_bound(self, row_norm, penalty):
        return row_norm / penalty


@dataclass(frozen=True)
class BrokenLoss(Unbroken):
    """Its slope is no number for some targets."""

    def scalar_functions(self):
        return (ScalarFunctions("score", broken, broken, broken),)


@pytest.mark.parametrize("physical", [None, 7])
def test_slopes_that_are_no_numbers_are_noticed(physical):
    X, targets = sparse.csr_array(table()[0]), np.zeros(60)
    model = model_of(BrokenLoss())
    plan = replace(noisy(model), execution=Execution(physical))
    carry_out_noisy_gradient(plan, model.bind(X, targets), RandomStream.from_seed(0))
    targets[::2] = 9.0
    (problem,) = model.bind(X, targets)
    with pytest.raises(ValueError, match="finite"):
        carry_out_noisy_gradient(plan, [problem], RandomStream.from_seed(0))
    with pytest.raises(ValueError, match="a gradient is not finite"):
        minimise(problem.objective(0.1), 1e-3)


@dataclass(frozen=True)
class MoreScores(Unbroken):
    """Its functions are for another number of scores than it says."""

    n_outputs: int = 3

    def scalar_functions(self):
        return SOFTMAX, 7


def test_losses_have_as_many_scores_as_their_functions(monkeypatch):
    with pytest.raises(ValueError, match="MoreScores has n_outputs=3"):
        model_of(MoreScores())
    monkeypatch.setattr(MoreScores, "scalar_functions", BrokenLoss.scalar_functions)
    with pytest.raises(ValueError, match="MoreScores has n_outputs=3"):
        model_of(MoreScores())


def test_one_loss_for_each_class_is_one_of_a_single_score():
    for base in (SoftmaxLoss(3), OneVsRestLoss(LogisticLoss(), 3)):
        with pytest.raises(ValueError, match="a base loss with a single score"):
            OneVsRestLoss(base, 3)
    for make in (SoftmaxLoss, lambda n: OneVsRestLoss(SmoothedHingeLoss(), n)):
        for number in (1, 0, -3, 2.5, 3.0, math.nan):
            with pytest.raises(ValueError, match="n_classes must be an integer"):
                make(number)
        assert make(np.int64(4)).n_outputs == 4


def test_a_model_has_the_outputs_of_all_its_parts():
    @dataclass(frozen=True)
    class Pair(Unbroken):
        part = SoftmaxLoss(3)
        n_outputs = 3

    with pytest.raises(ValueError, match="loss and its parts, got 3, 3 and 9"):
        model_of(Pair())


def rows(kind=None, targets=None):
    X, codes = table()
    return Rows.from_matrix(X, codes if targets is None else targets, 1.0, 0.5, kind)


def test_kernels_get_arrays_of_the_right_length():
    loss, good, short = SoftmaxLoss(2), np.zeros(8), np.zeros(7)
    for weights, out in ((short, good), (good, short), (good.reshape(2, 4), good)):
        with pytest.raises(ValueError, match=r"must have shape \(8,\)"):
            sum_gradients(rows("codes"), loss, weights, out)
    with pytest.raises(ValueError, match=r"must have shape \(8,\)"):
        RegularisedObjective(rows("codes"), loss, 0.1).gradient(short)
    with pytest.raises(ValueError, match=r"total must have shape \(8,\)"):
        apply_update(StepState.zeros(8), UpdateRule(1.0), short, 0.1)
    for clip in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="clip must be positive"):
            sum_gradients(rows("codes"), loss, good, good, clip=clip)


def test_kernels_get_codes_and_columns_within_range():
    with pytest.raises(ValueError, match="3 class codes but the loss has 2"):
        RegularisedObjective(rows("codes", np.arange(60) % 3), SoftmaxLoss(2), 0.1)
    loss = SoftmaxLoss(3)
    for scores, codes in ((np.zeros((2, 4)), [0, 1]), (np.zeros((2, 3)), [0]), ([0.0] * 3, [0])):
        with pytest.raises(ValueError, match=r"scores must have shape \(n, 3\)"):
            loss.value(scores, codes)
    for code in (3, -1, 2**40):
        with pytest.raises(ValueError, match=r"codes must lie in 0, \.\.\., 2"):
            loss.gradient(np.zeros((1, 3)), [code])
    damaged = sparse.csr_matrix(table()[0])
    damaged.indices[4] = 99
    with pytest.raises(ValueError, match="indices"):
        Rows.from_matrix(damaged, np.ones(60), 1.0)


@pytest.mark.parametrize(("build", "carry_out"), METHODS[:2])
def test_noise_is_for_as_many_rows_as_were_declared(build, carry_out):
    model, (X, codes) = model_of(LogisticLoss()), table()
    with record_releases() as trace, pytest.raises(ValueError, match="n_rows=60"):
        carry_out(build(model), model.bind(X[:9], codes[:9]), RandomStream.from_seed(0))
    assert trace.releases == []


class ChangesWeights(Odd):
    """Adds something of its rows, the value, to the weights that it is shown."""

    facts = frozenset()

    def problems(self):
        def sum_clipped(weights, index, clip, out):
            weights += self.value

        return [SimpleNamespace(rows=None, sum_clipped=sum_clipped, run_steps=None)]


def test_weights_change_by_noisy_sums_alone():
    plan = noisy(ChangesWeights(0.0))
    one, other = (
        carry_out_noisy_gradient(plan, ChangesWeights(secret).problems(), RandomStream.from_seed(0))
        for secret in (0.0, 100.0)
    )
    np.testing.assert_array_equal(one, other)
