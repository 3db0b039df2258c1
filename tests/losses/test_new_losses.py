"""A loss that nobody thought through gets no sensitivity, no plan and no kernel."""

import math
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace

import mpmath as mp
import numpy as np
import pytest
from numba import njit, typeof
from scipy import sparse
from sklearn.base import clone
from support import Untouchable, rows

from skdp import (
    DPSGDRegressor,
    GrpuaHuberRegressor,
    GrpuaSVC,
    ObjectivePerturbationHuberRegressor,
    ObjectivePerturbationSVC,
    OperaHuberRegressor,
    OperaSVC,
)
from skdp.budget import BudgetAccountant
from skdp.losses import (
    ClippedLoss,
    LogisticLoss,
    OneVsRestLoss,
    PoissonLoss,
    PseudoHuberLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SoftmaxLoss,
    scalar,
)
from skdp.losses.base import Loss, MarginLoss, check_loss, kernel_arguments
from skdp.mechanisms.random_stream import RandomStream
from skdp.models import LinearModel
from skdp.plans.carry_out import carry_out_noisy_gradient, carry_out_output_perturbation
from skdp.plans.defaults import PublicNumbers
from skdp.plans.dpsgd import build_dpsgd
from skdp.plans.gradient_perturbation import build_gradient_perturbation
from skdp.plans.noisy_gradient import DPSGDChoices, GradientPerturbationChoices
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan, pure_objective_plan
from skdp.plans.output_perturbation import OutputPerturbationPlan
from skdp.reporting import privacy_statement
from skdp.solvers import RegularisedObjective, Rows, sum_gradients

FACTS = {"convex", "largest_slope", "slope_sign", "curvature"}


class Careless(MarginLoss):
    """What the old base asked for, with slopes to 3 of either sign."""

    def smoothness(self, row_norm):
        return 3.0 * row_norm * row_norm


class Steep(Careless):
    """The same, and it says so: 3 log cosh(m)."""

    convex, largest_slope, slope_sign, curvature = True, 3.0, 0, 3.0
    smoothness = MarginLoss.smoothness


@pytest.fixture
def compiled(monkeypatch):
    """Pretend that kernels compute the loss, to reach what stands behind that check."""
    monkeypatch.setattr(Steep, "scalar_functions", LogisticLoss.scalar_functions, raising=False)


def test_a_loss_that_states_no_facts_cannot_be_made():
    with pytest.raises(TypeError, match="abstract") as caught:
        Careless()
    assert all(fact in str(caught.value) for fact in FACTS)
    for fact in FACTS:
        kept = {name: getattr(Steep, name) for name in FACTS - {fact}}
        with pytest.raises(TypeError, match=rf"abstract.*{fact}"):
            type("Forgetful", (Careless,), kept)()


def test_sensitivities_follow_from_the_facts():
    loss = Steep()
    assert (loss.lipschitz(2.0), loss.smoothness(2.0)) == (6.0, 12.0)
    assert (loss.gradient_gap(2.0), loss.zero_out_gap(2.0)) == (12.0, 6.0)
    assert loss.minimiser_norm_bound(1.0, 1e6) == pytest.approx(3e-6)
    assert loss.largest_curvature(0.1) == 3.0


def test_no_plan_is_made_for_a_loss_without_a_kernel():
    class Subclass(LogisticLoss):
        """Kernels would compute its base."""

    for loss in (Steep(), Subclass(), OneVsRestLoss(Steep(), 3), ClippedLoss(Subclass(), 0.1)):
        with pytest.raises(TypeError, match="has no compiled kernel"):
            LinearModel(loss, 100, 3, loss.n_outputs, 0.0)


def test_solvers_refuse_a_loss_without_a_kernel():
    rows = Rows.from_matrix(np.eye(3), np.ones(3, dtype=np.int8), 1.0)
    with pytest.raises(TypeError, match="Steep has no compiled kernel"):
        RegularisedObjective(rows, Steep(), 0.1)
    with pytest.raises(TypeError, match="Steep has no compiled kernel"):
        sum_gradients(rows, Steep(), np.zeros(3), np.zeros(3))
    with pytest.raises(TypeError, match="Steep has no compiled kernel"):
        Steep().value([0.0])


def test_slopes_are_cut_of_falling_convex_losses_only(compiled):
    for loss in (Steep(), SoftmaxLoss(3), OneVsRestLoss(LogisticLoss(), 3)):
        with pytest.raises(ValueError, match="can be clipped, got"):
            ClippedLoss(loss, 0.5)


def model_of(loss):
    return LinearModel(loss, 500, 3, loss.n_outputs, 0.0)


NUMBERS = PublicNumbers(500, 3, 2, 1.0, 1e-5, "replace-one")
TARGET = {"adjacency": "replace-one", "epsilon": 1.0, "delta": 1e-5}
OUTPUT = {"penalty": 0.1, "solver": "newton", "max_iter": 9, **TARGET}
DPSGD = (0.1, 5.0, 0.5, 100, 20, "sgd", None, 0.9, 0.99, "constant", None, 0.1, 0.5, False)


PURE = {"adjacency": "replace-one", "epsilon": 1.0}


def output(model, solver):
    return OutputPerturbationPlan.build(model, **{**OUTPUT, "solver": solver})


def objective(model):
    return ObjectivePerturbationPlan.build(model, penalty=0.5, **TARGET)


def gradient(model, calibration):
    choices = GradientPerturbationChoices(
        *(0.1, 500, 20, "constant", None, None, False, "poisson", calibration)
    )
    return build_gradient_perturbation(model, NUMBERS, choices)


def clipped(model):
    return build_dpsgd(model, NUMBERS, DPSGDChoices(*DPSGD))


PLANS = {
    "newton": (lambda model: output(model, "newton"), {"convex", "Lipschitz", "smooth"}),
    "gd": (lambda model: output(model, "gd"), {"convex", "Lipschitz", "smooth"}),
    "objective": (objective, {"convex", "Lipschitz", "smooth"}),
    "gradient": (lambda model: gradient(model, "composition"), {"Lipschitz"}),
    "hidden": (lambda model: gradient(model, "hidden-state"), {"convex", "Lipschitz", "smooth"}),
    "dpsgd": (clipped, set()),
}
WITHOUT = {
    "convex": ("convex", False),
    "Lipschitz": ("largest_slope", math.inf),
    "smooth": ("curvature", math.inf),
}


@pytest.mark.parametrize("missing", WITHOUT)
@pytest.mark.parametrize("plan", PLANS)
def test_plans_refuse_losses_without_what_their_theorem_needs(plan, missing, monkeypatch):
    build, needed = PLANS[plan]
    build(model_of(LogisticLoss()))
    monkeypatch.setattr(LogisticLoss, *WITHOUT[missing])
    if missing in needed:
        with pytest.raises(ValueError, match=f"LogisticLoss is not {missing}"):
            build(model_of(LogisticLoss()))
    elif plan != "dpsgd":  # which takes its defaults, and nothing else, from the constants
        build(model_of(LogisticLoss()))


def test_slopes_of_either_sign_are_paid_for(compiled, monkeypatch):
    model = model_of(Steep())
    paid = objective(model).event
    assert (paid.slope, paid.opposite) == ("any-sign", 1.0)
    monkeypatch.setattr(Steep, "slope_sign", -1)
    assert paid.noise_multiplier > 1.02 * objective(model_of(Steep())).event.noise_multiplier
    monkeypatch.undo()
    several = OneVsRestLoss(SmoothedHingeLoss(), 3)
    monkeypatch.setattr(SmoothedHingeLoss, "slope_sign", 0)
    with pytest.raises(ValueError, match="outputs=3 requires a slope of known sign"):
        objective(model_of(several))
    monkeypatch.undo()
    monkeypatch.setattr(Steep, "scalar_functions", LogisticLoss.scalar_functions, raising=False)
    assert gradient(model, "composition").bound.norm == pytest.approx(3.0)
    steep, plain = output(model, "gd"), output(model_of(SmoothedHingeLoss(1 / 6)), "gd")
    assert steep.sensitivity == pytest.approx(3.0 * plain.sensitivity)


def test_a_loss_that_says_nothing_of_itself_counts_as_one_without():
    with pytest.raises(ValueError, match="SoftmaxLoss is not of one score"):
        objective(model_of(SoftmaxLoss(3)))
    with pytest.raises(ValueError, match="SoftmaxLoss is not of one score"):
        pure_objective_plan(model_of(SoftmaxLoss(3)), penalty=0.5, **PURE)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 7, 10, 11, 1000])
def test_joint_constants_are_rounded_up(n_classes):
    joint = OneVsRestLoss(SmoothedHingeLoss(0.5), n_classes)
    with mp.workdps(40):
        root = mp.sqrt(n_classes)
        assert joint.lipschitz(1.0) >= root
        assert joint.gradient_gap(1.0) >= 2 * root
        assert SoftmaxLoss(n_classes).lipschitz(1.0) >= mp.sqrt(2)
    assert joint.convex and SoftmaxLoss(n_classes).convex


def test_every_kernel_belongs_to_a_shipped_loss():
    assert kernel_arguments(LogisticLoss()) == (scalar.LOGISTIC, ())
    assert kernel_arguments(SoftmaxLoss(3)) == (scalar.SOFTMAX, (3.0,))
    assert kernel_arguments(ClippedLoss(SmoothedHingeLoss(0.3), 0.1)) == (
        *(scalar.SMOOTHED_HINGE, (0.3,)),
    )


@pytest.mark.parametrize(
    "loss",
    [
        LogisticLoss(),
        SmoothedHingeLoss(),
        SoftmaxLoss(3),
        ClippedLoss(LogisticLoss(), 0.1),
        Steep(),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_constants_cannot_be_set(loss):
    for name in ("convex", "largest_slope", "curvature", "clip", "half_width", "anything"):
        with pytest.raises(AttributeError):
            setattr(loss, name, 9.0)


@njit(cache=True, nogil=True, fastmath={"contract"})
def huber_value(numbers, score, target):
    """Half a square near the target, straight lines beyond."""
    gap = abs(score - target)
    near = min(gap, numbers[0])
    return near * (gap - 0.5 * near)


@njit(cache=True, nogil=True, fastmath={"contract"})
def huber_slope(numbers, score, target):
    return min(max(score - target, -numbers[0]), numbers[0])


@njit(cache=True, nogil=True, fastmath={"contract"})
def huber_curvature(numbers, score, target):
    return 1.0 if abs(score - target) <= numbers[0] else 0.0


HUBER = scalar.ScalarFunctions("score", huber_value, huber_slope, huber_curvature)


@dataclass(frozen=True)
class HuberLoss(Loss):
    """All that a new loss takes, here one of a real target."""

    width: float
    target_kind = "real"
    convex = True

    def scalar_functions(self):
        return HUBER, self.width

    def lipschitz(self, row_norm):
        return self.width * row_norm

    def smoothness(self, row_norm):
        return row_norm * row_norm

    def minimiser_norm_bound(self, row_norm, penalty):
        return self.lipschitz(row_norm) / penalty


@pytest.mark.parametrize(
    "convert",
    # Kernels are compiled for it.
    [np.asarray, pytest.param(sparse.csr_array, marks=pytest.mark.slow)],
    ids=["dense", "csr"],
)
def test_a_new_loss_is_a_class_and_its_scalar_functions(convert):
    rng = np.random.default_rng(0)
    X, loss = rng.uniform(-1, 1, (500, 3)) / 2.0, HuberLoss(0.7)
    y = X @ [1.0, -2.0, 0.5] + rng.standard_normal(500)
    model = LinearModel(loss, 500, 3, 1, 0.0)
    weights, total = rng.standard_normal(3), np.zeros(3)
    (problem,) = model.bind(convert(X), y)
    for clip in (np.inf, 0.2):
        total[:] = 0.0
        problem.sum_clipped(weights, None, clip, total)
        slopes = np.clip(X @ weights - y, -0.7, 0.7)
        caps = clip / np.linalg.norm(X, axis=1)
        np.testing.assert_allclose(total, np.clip(slopes, -caps, caps) @ X, rtol=1e-12)
    plan = build_dpsgd(model, NUMBERS, DPSGDChoices(*DPSGD))
    assert np.all(np.isfinite(carry_out_noisy_gradient(plan, [problem], RandomStream.from_seed(0))))
    quiet = OutputPerturbationPlan.build(model, **{**OUTPUT, "epsilon": 1e9})
    found = carry_out_output_perturbation(quiet, [problem], RandomStream.from_seed(0))
    assert np.linalg.norm(problem.objective(0.1).gradient(found)) < 1e-4
    with pytest.raises(ValueError, match="HuberLoss takes real numbers"):
        RegularisedObjective(problem.rows.with_targets(np.sign(y)), loss, 0.1)


def test_a_loss_is_known_on_disk_by_the_code_of_its_functions():
    """A reference to it could not be followed where its module is missing, or has changed."""

    @njit
    def other_slope(numbers, score, target):
        return 2.0 * min(max(score - target, -numbers[0]), numbers[0])

    changed = replace(HUBER, slope=other_slope)
    kinds = [typeof(functions.tag) for functions in (HUBER, changed, scalar.LOGISTIC)]
    assert len(set(kinds)) == 3
    for kind in kinds:
        assert pickle.loads(pickle.dumps(kind)) == kind
        assert b"test_new_losses" not in pickle.dumps(kind)


class Tripled(LogisticLoss):
    """Names another kernel, and inherits the constants of its base."""

    def scalar_functions(self):
        return SmoothedHingeLoss().scalar_functions()


class Bolder(ClippedLoss):
    """Claims less than its base."""

    def lipschitz(self, row_norm):
        return 0.01


@pytest.mark.parametrize("loss", [Tripled(), Bolder(LogisticLoss(), 0.5)])
def test_subclasses_of_losses_with_a_kernel_are_refused(loss):
    with pytest.raises(TypeError, match=f"{type(loss).__name__} has no compiled kernel"):
        LinearModel(loss, 10, 2, 1, 1.0)


def test_a_model_has_as_many_outputs_as_its_loss():
    with pytest.raises(ValueError, match="number of outputs must be the same"):
        LinearModel(OneVsRestLoss(LogisticLoss(), 2), 10, 2, 50, 1.0)


def test_short_floats_are_no_arithmetic_of_constants():
    loss = SmoothedHingeLoss(np.float16(0.3))
    assert loss == SmoothedHingeLoss(float(np.float16(0.3)))
    assert loss.smoothness(1.0) == SmoothedHingeLoss(float(np.float16(0.3))).smoothness(1.0)
    assert type(ClippedLoss(LogisticLoss(), np.float16(0.1)).clip) is float


def slope_of(kind, number):
    """Return a compiled constant that reaches its number in one of several ways."""
    if kind == "closure":
        return njit(lambda numbers, margin, target: number)
    if kind == "default":
        return njit(eval(f"lambda numbers, margin, target, c={number}: c"))
    names = {"inner": njit(eval(f"lambda: {number}")), "table": (number, 2.0), "plain": number}
    text = {"inner": "inner()", "table": "table[0]", "plain": "plain"}[kind]
    return njit(eval(f"lambda numbers, margin, target: {text}", names))


@pytest.mark.parametrize("kind", ["closure", "default", "inner", "table", "plain"])
def test_kernels_tell_functions_apart_by_all_that_they_compute(kind):
    one, other, again = (
        scalar.ScalarFunctions("margin", slope_of(kind, c)).tag.dtype for c in (1.0, 1000.0, 1.0)
    )
    assert one == again != other


@pytest.mark.parametrize("thing", [np.array([1.0, 2.0]), pickle], ids=["array", "module"])
def test_kernels_refuse_functions_that_they_cannot_tell_apart(thing):
    used = njit(eval("lambda numbers, margin, target: thing.x", {"thing": thing}))
    with pytest.raises(TypeError, match="would keep its old value"):
        _ = scalar.ScalarFunctions("margin", used).tag


@pytest.mark.slow
def test_kernels_know_functions_by_the_same_name_in_all_processes():
    """Sets of texts have an order of their own in each; so would compiled code on disk."""
    program = (
        "from numba import njit; from skdp.losses import scalar\n"
        "@njit(fastmath=scalar.FAST)\n"
        "def slope(numbers, score, target):\n"
        "    return 1.0 if 'a' in {'a', 'b', 'c', 'd'} else 2.0\n"
        "print(scalar.ScalarFunctions('margin', slope).tag.dtype.names)"
    )
    names = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in (0, 1)
    }
    assert len(names) == 1


def test_kernels_refuse_functions_with_functions_inside():
    @njit
    def slope(numbers, score, target):
        return (lambda x: x)(score)

    with pytest.raises(TypeError, match="must not define nested functions"):
        _ = scalar.ScalarFunctions("margin", slope).tag


@njit(cache=True, nogil=True, fastmath={"contract"})
def square_value(numbers, margin, target):
    """Half a square behind the margin 1, a straight line beyond the margin 0."""
    gap = max(1.0 - margin, 0.0)
    near = min(gap, 1.0)
    return near * (gap - 0.5 * near)


@njit(cache=True, nogil=True, fastmath={"contract"})
def square_slope(numbers, margin, target):
    return -min(max(1.0 - margin, 0.0), 1.0)


@njit(cache=True, nogil=True, fastmath={"contract"})
def square_curvature(numbers, margin, target):
    return 1.0 if 0.0 <= margin <= 1.0 else 0.0


SQUARE = scalar.ScalarFunctions("margin", square_value, square_slope, square_curvature)


class Huberised(MarginLoss):
    """A loss of one's own, with no more than the facts that have no default."""

    convex, largest_slope, slope_sign, curvature = True, 1.0, -1, 1.0

    def scalar_functions(self):
        return (SQUARE,)

    def __repr__(self):
        return "Huberised()"

    def __eq__(self, other):
        return type(other) is type(self)

    __hash__ = object.__hash__


SVCS = [OperaSVC, GrpuaSVC, ObjectivePerturbationSVC]
REGRESSORS = [
    *(OperaHuberRegressor, GrpuaHuberRegressor),
    *(ObjectivePerturbationHuberRegressor, DPSGDRegressor),
]
NUMBER = {"target_bounds": (-1.0, 1.0)}


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", [Huberised(), LogisticLoss()], ids=repr)
@pytest.mark.parametrize("cls", SVCS)
def test_estimators_take_a_loss_as_an_object(cls, loss, n_classes, adjacency):
    X, y = rows(400, n_classes=n_classes)
    budget = BudgetAccountant(9.0, 1e-4, adjacency=adjacency)
    model = cls(8.0, 1e-5, data_norm=1.0, loss=loss, accountant=budget, adjacency=adjacency)
    copy = clone(model)
    assert copy.get_params()["loss"] == loss and repr(loss) in repr(copy)
    planned = copy.privacy_plan(400, 4, n_classes)
    fitted = pickle.loads(pickle.dumps(copy.fit(X, y)))
    assert fitted.score(X, y) > 0.7
    assert planned.event == fitted.privacy_spent_.event
    words = " ".join(str(privacy_statement(fitted)).split())
    assert f"the loss is {loss!r}" in words
    assert ("assumed, not checked" in words) == isinstance(loss, Huberised)
    assert budget.entries()[0]["parameters"]["loss"] == type(loss).__name__
    assert cls().set_params(loss=loss).privacy_plan(400, 4).event is not None


@pytest.mark.parametrize("loss", [PseudoHuberLoss(0.3), QuantileLoss(0.2, 0.6)], ids=repr)
@pytest.mark.parametrize("cls", REGRESSORS)
def test_regressors_take_one_too(cls, loss):
    X, _ = rows(2000)
    model = cls(8.0, 1e-5, data_norm=1.0, loss=loss, **NUMBER).fit(X, X[:, 0])
    assert model.score(X, X[:, 0]) > 0.5
    assert f"loss {loss!r}" in model.privacy_spent_.mechanism


def test_the_loss_that_is_given_is_the_one_that_is_fitted():
    X, y = rows(3000)
    quiet = {"epsilon": 100.0, "delta": 1e-5, "data_norm": 1.0, "alpha": 0.1}
    found = [
        model.fit(X, y).coef_
        for model in (
            OperaSVC(**quiet, loss=SmoothedHingeLoss(0.3)),
            OperaSVC(**quiet, half_width=0.3),
            OperaSVC(**quiet, loss=Huberised()),
        )
    ]
    assert np.linalg.norm(found[0] - found[1]) < 0.05 < np.linalg.norm(found[0] - found[2])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (OperaSVC(loss="logistic"), "loss must be one of 'hinge', or an object"),
        (OperaSVC(loss=LogisticLoss), "loss must be one of 'hinge', or an object"),
        (OperaSVC(loss=HuberLoss(0.3)), "must be an object of a class of MarginLoss"),
        (OperaSVC(loss=ClippedLoss(LogisticLoss(), 0.1)), "of a class of MarginLoss"),
        (OperaSVC(loss=Tripled()), "Tripled has no compiled kernel"),
        (OperaHuberRegressor(loss=LogisticLoss(), **NUMBER), "of a class of RealLoss"),
        (OperaHuberRegressor(loss=PoissonLoss(), **NUMBER), "are logarithms"),
        (DPSGDRegressor(loss="hinge", **NUMBER), "loss must be one of 'squared_error'"),
    ],
)
def test_what_no_theorem_covers_is_refused_by_name(model, words):
    X, y = rows(60)
    with pytest.raises((TypeError, ValueError), match=words):
        model.set_params(accountant=Untouchable()).fit(X, y)


LIES = {
    "largest_slope": 0.5,
    "curvature": 0.5,
    "slope_sign": 1,
    "opposite": -0.5,
    "slope_law": "logistic",
    "product_bound": lambda self: 0.01,
    "lipschitz": lambda self, norm: 0.1,
    "smoothness": lambda self, norm: 0.1,
    "minimiser_norm_bound": lambda self, norm, penalty: 0.1,
    "zero_out_gap": lambda self, norm, weights=None: 0.1,
    "gradient_gap": lambda self, norm, weights=None: 0.1,
    "largest_curvature": lambda self, cap: 0.1,
}


@pytest.mark.parametrize("fact", LIES)
def test_facts_that_the_functions_exceed_are_found(fact):
    given = {name: vars(Huberised)[name] for name in (*FACTS, "scalar_functions")}
    lie = type("Lie", (MarginLoss,), {**given, fact: LIES[fact]})()
    X, y = rows(60)
    with pytest.raises(ValueError, match=f"Lie states {fact}.*which its functions exceed"):
        ObjectivePerturbationSVC(loss=lie, accountant=Untouchable()).fit(X, y)


@pytest.mark.parametrize(
    "changed",
    [
        {"clip": 0.1},
        {"heaviest": 0.5},
        {"target_kind": "real"},
        {"part": LogisticLoss()},
        {"scalar_functions": lambda self: (HUBER, 0.3)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_loss_stands_for_itself_alone(changed):
    given = {name: vars(Huberised)[name] for name in (*FACTS, "scalar_functions")}
    other = type("Other", (MarginLoss,), {**given, **changed})()
    with pytest.raises(TypeError, match=r"Other (clips or weights|is no loss of margins)"):
        OperaSVC(loss=other).privacy_plan(60, 4)


def test_facts_of_shipped_losses_pass_the_same_check(monkeypatch):
    shipped = (LogisticLoss(), SmoothedHingeLoss(0.01), PseudoHuberLoss(0.2), PoissonLoss())
    for loss in (*shipped, QuantileLoss(0.1, 0.7)):
        monkeypatch.setattr(type(loss), "__module__", "elsewhere")
        check_loss(loss, type(loss))


def test_a_slope_that_is_not_convex_is_found():
    bent = replace(SQUARE, slope=njit(lambda numbers, margin, target: -1.0 / (1.0 + margin**2)))
    given = {name: vars(Huberised)[name] for name in FACTS}
    lie = type("Lie", (MarginLoss,), {**given, "scalar_functions": lambda self: (bent,)})()
    with pytest.raises(ValueError, match="Lie states convex=True"):
        OperaSVC(loss=lie).privacy_plan(60, 4)


def test_margins_of_slopes_are_found_without_a_formula():
    slopes = np.array([0.01, 0.5, 0.99])
    for loss in (LogisticLoss(), SmoothedHingeLoss(0.3)):
        found = MarginLoss.margin_of_slope(loss, slopes)
        np.testing.assert_allclose(found, loss.margin_of_slope(slopes), atol=1e-7)
