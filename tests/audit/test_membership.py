"""Attacks on membership: leaks are caught, intervals cover, bounds are those of closed forms."""

import json

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from scipy.stats import binom, hypergeom, norm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skdp import OperaLogisticRegression
from skdp.accounting import GaussianEvent, GDPAccountant
from skdp.audit import MembershipResult, membership_inference
from skdp.audit.bounds import rate_upper
from skdp.audit.membership import advantage, level, tpr_at
from skdp.budget import BudgetAccountant
from skdp.preprocessing import DPStandardScaler, RowNormClipper
from skdp.reporting.profile import Profile, profile_of

X, Y = make_classification(700, 20, flip_y=0.3, random_state=0)
X /= np.linalg.norm(X, axis=1).max()
PARTS = (X[:200], Y[:200], X[200:], Y[200:])
SURE = 1 - 1e-7


def private(**given):
    shared = {"epsilon": 1.0, "delta": 1e-4, "data_norm": 1.0, "alpha": 0.1, "random_state": 0}
    return OperaLogisticRegression(**shared | given)


def infer(model, parts=PARTS, **given):
    return membership_inference(model, *parts, **{"random_state": 0} | given)


def result_with(claim):
    empty = np.zeros(0)
    figures = (0.5, 0.0, (0.0, 0.0), {}, {})
    return MembershipResult("None", "loss", 0, 0, 0.9, empty, empty, *figures, claim)


# ---------------------------------------------------------------------------- what leaks


@pytest.mark.parametrize("attack", ["loss", "likelihood-ratio"])
@pytest.mark.parametrize(
    "model", [DecisionTreeClassifier(random_state=0), KNeighborsClassifier(1)], ids=["tree", "1-NN"]
)
def test_models_that_memorise_are_caught(model, attack):
    confidence = SURE if attack == "loss" else 0.95  # half of the others serve the shadow models
    result = infer(model.fit(*PARTS[:2]), attack=attack, confidence=confidence, n_shadow_models=4)
    assert result.auc > 0.6 and result.advantage_interval[0] > 0.0
    assert result.claim is result.auc_bound is result.tpr_bound(0.1) is None


@pytest.mark.parametrize("attack", ["loss", "likelihood-ratio"])
def test_a_model_that_learns_nothing_shows_nothing(attack):
    model = DummyClassifier(strategy="prior").fit(*PARTS[:2])
    result = infer(model, attack=attack, n_shadow_models=2)
    assert result.advantage_interval[0] <= 0.0 <= result.advantage_interval[1]
    assert all(low == 0.0 for low, _ in result.tpr_intervals.values())


def test_shadow_models_know_which_rows_are_hard():
    """The loss of one row says little beside that of another; beside other models' it does."""
    shared = {"n_informative": 10, "flip_y": 0.2, "class_sep": 2.0, "random_state": 1}
    table, labels = make_classification(1400, 60, **shared)
    model = RandomForestClassifier(20, random_state=0).fit(table[:200], labels[:200])
    parts = (table[:200], labels[:200], table[200:], labels[200:])
    plain, shadowed = (
        infer(model, parts, attack=name, n_shadow_models=8) for name in ("loss", "likelihood-ratio")
    )
    assert shadowed.tpr_at_fpr[0.01] > plain.tpr_at_fpr[0.01] + 0.15
    assert (shadowed.n_members, shadowed.n_nonmembers) == (200, 600)


def test_a_private_model_is_below_its_bounds():
    """Each interval fails with probability 1e-7, and this one model is no exception (seeded)."""
    result = infer(private().fit(*PARTS[:2]), confidence=SURE, fpr=(0.01, 0.1))
    assert result.advantage_interval[0] < result.advantage_bound < 0.5
    assert result.auc < result.auc_bound == 0.5 + 0.5 * result.advantage_bound
    for rate, (low, _) in result.tpr_intervals.items():
        assert low < float(result.tpr_bound(rate)) < 1.0


# ---------------------------------------------------------------------------- intervals


@pytest.mark.parametrize("rows", [None, 40, 135])
@pytest.mark.parametrize("failure", [0.2, 0.02])
def test_binomial_bounds_hold_without_replacement(rows, failure):
    """For all populations of some sizes, exactly; with replacement (None) as well."""
    drawn, counts = 30, np.arange(31)
    bound = rate_upper(counts, drawn, level(failure))
    population = rows or 1000
    for marked in range(population + 1):
        rate = marked / population
        law = (
            binom.pmf(counts, drawn, rate)
            if rows is None
            else hypergeom.pmf(counts, population, marked, drawn)
        )
        assert law[bound < rate].sum() <= failure


@pytest.mark.parametrize(("rate", "sizes"), [(0.05, (60, 300)), (0.2, (200, 100))])
def test_intervals_cover_the_curve_of_gaussian_scores(rate, sizes):
    """The truth is norm.sf(norm.isf(rate) - 1); 400 tables, false alarm below 1e-6."""
    rng = np.random.default_rng(0)
    truth, failure, runs = norm.sf(norm.isf(rate) - 1.0), 0.1, 400
    missed, width = 0, 0.0
    for _ in range(runs):
        members, others = rng.standard_normal(sizes[0]) + 1.0, rng.standard_normal(sizes[1])
        estimate, (low, high) = tpr_at(rate, members, others, failure)
        assert low <= estimate <= high
        missed += not low <= truth <= high
        width += (high - low) / runs
    assert binom.sf(missed - 1, runs, failure) > 1e-6
    assert width < 0.75


def test_advantage_intervals_cover_the_threshold_that_was_chosen():
    """They are below the best, 2 Phi(1/2) - 1, as often as stated, and near it with many rows."""
    rng, best = np.random.default_rng(0), 2 * norm.cdf(0.5) - 1
    state, failure, runs = np.random.RandomState(0), 0.1, 500
    found = [
        advantage(rng.standard_normal(80) + 1, rng.standard_normal(120), failure, state)
        for _ in range(runs)
    ]
    assert binom.sf(sum(low > best for _, (low, _) in found) - 1, runs, failure) > 1e-6
    assert all(low <= estimate <= high for estimate, (low, high) in found)
    members, others = rng.standard_normal(20_000) + 1, rng.standard_normal(20_000)
    estimate, (low, high) = advantage(members, others, 1e-6, state)
    assert low < best < high and high - low < 0.12 and abs(estimate - best) < 0.05


def test_few_rows_prove_nothing_at_low_rates():
    members, others = np.ones(1000), np.zeros(1000)
    assert tpr_at(0.001, members, others, 0.05) == (1.0, (0.0, 1.0))
    found = tpr_at(0.001, members, np.zeros(4400), 0.05)
    assert found[0] == 1.0 and found[1][0] > 0.99


def test_ties_count_for_no_threshold():
    members, others = np.array([0.0] * 50 + [1.0] * 50), np.array([0.0] * 990 + [1.0] * 10)
    assert tpr_at(0.005, members, others, 0.05)[0] == 0.0
    estimate, (low, high) = tpr_at(0.5, members, others, 0.05)
    assert estimate == 0.5 and 0.3 < low < 0.5 and high == 1.0


# ---------------------------------------------------------------------------- bounds


def gaussian_claim(mu, adjacency):
    spent = GDPAccountant(adjacency=adjacency).compose(GaussianEvent(1.0 / mu))
    epsilons = np.linspace(0.0, mu * (mu / 2 + 6), 400)
    return Profile(epsilons, np.array([float(spent.delta(e)) for e in epsilons]), adjacency)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("adjacency", "steps"), [("replace-one", 1), ("add-remove", 2)])
def test_bounds_of_a_gaussian_claim(mu, adjacency, steps):
    """Exchanging a member is one step under replace-one; under add-remove two: mu counts twice."""
    result = result_with(gaussian_claim(mu, adjacency))
    rates = np.array([[1e-4, 0.001], [0.2, 0.9]])
    exact = norm.cdf(steps * mu - norm.isf(rates))
    bound = result.tpr_bound(rates)
    assert bound.shape == rates.shape
    assert (bound >= exact - 1e-12).all() and np.allclose(bound, exact, rtol=0.02, atol=1e-5)
    total_variation = 2 * norm.cdf(steps * mu / 2) - 1
    assert total_variation - 1e-12 <= result.advantage_bound <= total_variation + 1e-4
    assert result.auc_bound == pytest.approx(norm.cdf(steps * mu / 2), abs=1e-4)
    # No advantage is larger than what the rates allow.
    grid = np.linspace(0, 1, 2001)
    assert (result.tpr_bound(grid) - grid).max() <= result.advantage_bound + 1e-12


def test_bounds_of_randomised_response_are_attained():
    """One row is published, or the other one with probability 1/(1 + e^epsilon)."""
    claim = Profile(np.array([0.0, 1.2]), np.array([np.tanh(0.6), 0.0]), "replace-one")
    result, truth = result_with(claim), 1 / (1 + np.exp(-1.2))
    assert result.auc_bound == pytest.approx(truth, rel=1e-12)
    assert result.advantage_bound == pytest.approx(2 * truth - 1, rel=1e-12)
    assert float(result.tpr_bound(1 - truth)) == pytest.approx(truth, rel=1e-12)


def test_claims_are_of_the_whole():
    clipped = make_pipeline(RowNormClipper(1.0), private()).fit(*PARTS[:2])
    alone = profile_of(private().fit(*PARTS[:2]))
    assert profile_of(clipped).deltas == pytest.approx(alone.deltas, rel=1e-9)
    scaler = DPStandardScaler(epsilon=0.5, delta=1e-4, random_state=0)
    both = profile_of(make_pipeline(scaler, private()).fit(*PARTS[:2]))
    assert both.deltas[0] > alone.deltas[0] and both.adjacency == "replace-one"
    leaking = make_pipeline(MinMaxScaler(), private()).fit(*PARTS[:2])
    assert profile_of(leaking) is None and profile_of(LinearSVC().fit(*PARTS[:2])) is None


def test_huge_claims_allow_everything():
    result = infer(private(epsilon=2000.0).fit(*PARTS[:2]))
    assert float(result.tpr_bound(0.5)) == pytest.approx(1.0) and result.auc_bound <= 1.0


# ---------------------------------------------------------------------------- manners


@pytest.mark.parametrize("attack", ["loss", "likelihood-ratio"])
def test_no_budget_is_charged_and_nothing_is_changed(attack):
    budget = BudgetAccountant(10.0, 1e-2)
    model = make_pipeline(RowNormClipper(1.0), private(accountant=budget)).fit(*PARTS[:2])
    before, weights = len(budget.entries()), model[-1].coef_.copy()
    with budget:
        infer(model, attack=attack, n_shadow_models=2)
    assert len(budget.entries()) == before and np.array_equal(model[-1].coef_, weights)


@pytest.mark.parametrize("attack", ["loss", "likelihood-ratio"])
def test_containers_agree(attack):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    model = LinearSVC(C=100.0, random_state=0)
    shown = {}
    wraps = {"dense": np.asarray, "sparse": sparse.csr_matrix, "frame": pd.DataFrame}
    for name, wrap in wraps.items():
        parts = (wrap(PARTS[0]), list(PARTS[1]), wrap(PARTS[2]), pd.Series(PARTS[3]))
        fitted = model.fit(*parts[:2])
        shown[name] = infer(fitted, parts, attack=attack, n_shadow_models=2).auc
    assert shown["sparse"] == pytest.approx(shown["dense"], abs=1e-3)
    assert shown["frame"] == pytest.approx(shown["dense"], abs=1e-12)


def test_labels_and_several_classes():
    names = np.array(["a", "b", "c"])
    labels = names[(np.arange(700) * 7 + Y) % 3]
    for model in (DecisionTreeClassifier(random_state=0), LogisticRegression(C=1e4)):
        parts = (X[:200], labels[:200], X[200:], labels[200:])
        result = infer(model.fit(*parts[:2]), parts, attack="likelihood-ratio", n_shadow_models=2)
        assert result.auc > 0.55
    # A label that shadow models may never see.
    rare = np.append(labels[:-1], "d")
    parts = (X[500:], rare[500:], X[:500], rare[:500])
    model = DecisionTreeClassifier(random_state=0).fit(*parts[:2])
    assert infer(model, parts, attack="likelihood-ratio", n_shadow_models=2).auc > 0.55


def test_seeds_repeat_a_result():
    model = DecisionTreeClassifier(random_state=0).fit(*PARTS[:2])
    given = {"attack": "likelihood-ratio", "n_shadow_models": 2}
    first, again, other = (infer(model, **given, random_state=seed) for seed in (0, 0, 1))
    assert first.to_json() == again.to_json() != other.to_json()
    with parallel_config("threading"):
        assert infer(model, **given, n_jobs=2).to_json() == first.to_json()


def test_result_as_text_json_and_html():
    result = infer(private().fit(*PARTS[:2]))
    record = json.loads(result.to_json())
    assert record["auc"] == result.auc and record["auc_bound"] == result.auc_bound
    assert record["tpr_bounds"]["0.01"] == float(result.tpr_bound(0.01))
    assert np.array_equal(record["fpr"], result.fpr) and record["adjacency"] == "replace-one"
    assert "claim allows" in repr(result) and "of means" in result._repr_html_()
    plain = infer(LinearSVC().fit(*PARTS[:2]))
    assert json.loads(plain.to_json())["claim"] is None and "claim allows" not in repr(plain)
    assert "there is no claim" in plain._repr_html_()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"attack": "guess"}, ValueError, "attack must be"),
        ({"confidence": 1.0}, ValueError, "confidence"),
        ({"fpr": (0.0,)}, ValueError, "fpr"),
        ({"n_shadow_models": 0}, ValueError, "n_shadow_models"),
        ({"parts": (X[:5], Y[:5], X, Y)}, ValueError, "At least 10"),
        ({"parts": (X, Y[:50], X, Y)}, ValueError, "inconsistent"),
        ({"model": LinearRegression()}, TypeError, "must be a classifier"),
        ({"model": DecisionTreeClassifier()}, NotFittedError, "not fitted"),
    ],
)
def test_what_is_refused(given, error, words):
    model = given.pop("model", None) or LinearSVC().fit(*PARTS[:2])
    with pytest.raises(error, match=words):
        infer(model, **given)


def test_shadow_models_are_no_searches():
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2).fit(*PARTS[:2])
    assert infer(search).auc > 0.4
    for model in (search, make_pipeline(RowNormClipper(1.0), search)):
        with pytest.raises(TypeError, match="best_estimator_"):
            infer(model, attack="likelihood-ratio")


@pytest.mark.parametrize(
    "around",
    [
        OneVsRestClassifier,
        lambda inner: BaggingClassifier(inner, n_estimators=2, bootstrap=False),
        lambda inner: CalibratedClassifierCV(inner, cv=2),
        lambda inner: VotingClassifier([("one", inner), ("other", clone(inner))], voting="soft"),
    ],
)
def test_shadow_models_charge_nothing_wherever_the_private_part_is(around):
    budget = BudgetAccountant(1000.0, 1e-2)
    model = around(private(accountant=budget)).fit(*PARTS[:2])
    before = len(budget.entries())
    assert before > 0
    infer(model, attack="likelihood-ratio", n_shadow_models=2)
    assert len(budget.entries()) == before


def test_frozen_parts_keep_their_budget():
    """Clones share them with the model that was given."""
    budget = BudgetAccountant(100.0, 1e-2)
    scaler = DPStandardScaler(delta=1e-4, lower=-1.0, upper=1.0, accountant=budget).fit(X[:200])
    model = make_pipeline(FrozenEstimator(scaler), private(accountant=budget)).fit(*PARTS[:2])
    infer(model, attack="likelihood-ratio", n_shadow_models=2)
    assert scaler.accountant is budget and len(budget.entries()) == 2


@pytest.mark.daily(1)
@pytest.mark.parametrize(("size", "rate"), [(40, 0.001), (100, 0.01), (1000, 0.001)])
def test_guessing_has_a_rate_of_true_positives_of_at_most_the_false_ones(size, rate):
    """So it must be, as the bound that stands beside it says; seeded, three deviations apart."""
    scores = np.random.default_rng(0).normal(size=(1000, 200 + size))
    found = [tpr_at(rate, row[:200], row[200:], 0.05)[0] for row in scores]
    assert np.mean(found) <= rate + 3.0 * np.std(found) / np.sqrt(1000)
