"""Recipes of the page for developers, followed to the letter: what its own code builds passes."""

import importlib.util
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from support import rows

import skdp.accounting.analysis as analysis
from skdp import GrpuaSVC, ObjectivePerturbationSVC, OperaSVC
from skdp.accounting import GaussianEvent, PLDAccountant, PureDPEvent
from skdp.accounting.accountants import accountants
from skdp.budget.currencies import COMPOSITIONS, Charge, make_filter
from skdp.budget.currencies.base import add
from skdp.budget.planning import plan_fits
from skdp.exceptions import RowsChangedError
from skdp.mechanisms import RandomStream
from skdp.model_selection import PrivateGridSearchCV
from skdp.testing import check_private_estimator

TESTS = Path(__file__).resolve().parent
ADJACENCIES = ("replace-one", "add-remove")


def module_of(path):
    """Return a module of tests, to run what "speaks" on something new."""
    spec = importlib.util.spec_from_file_location(f"recipe_{Path(path).stem}", TESTS / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page():
    """The page's code, run from top to bottom as one module; cards are forgotten afterwards."""
    module, cards = types.ModuleType("recipes"), dict(analysis._CARDS)
    sys.modules["recipes"] = module
    text = (TESTS.parent / "docs" / "developing.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "developing.md", "exec"), vars(module))
    yield module
    analysis._CARDS.clear()
    analysis._CARDS.update(cards)
    analysis.analysis_of.cache_clear()
    del sys.modules["recipes"]


def test_each_recipe_has_code():
    text = (TESTS.parent / "docs" / "developing.md").read_text()
    for recipe in ("loss", "event", "model", "release", "composition rule", "source of rows"):
        body = text.split(f"## Add a{'n' * (recipe == 'event')} {recipe}\n")[1].split("\n## ")[0]
        assert "```python" in body, recipe
    assert "def privacy_plan" in text.split("## Check a custom estimator\n")[1]


def test_a_loss_passes_what_speaks(page):
    import mpmath as mp

    def exact(margin):
        gap = 1 - mp.mpf(margin)
        return mp.mpf(0) if gap < 0 else gap - mp.mpf(1) / 2 if gap > 1 else gap**2 / 2

    loss = page.SquaredHinge()
    margins, constants = (
        module_of(f"losses/test_{name}.py") for name in ("margin_losses", "loss_constants")
    )
    margins.test_values_match_multiprecision(loss, exact)
    margins.test_derivatives_match_multiprecision_differentiation(loss, exact)
    margins.test_facts_hold_in_high_precision(loss, exact)
    constants.test_norm_bound_of_margin_losses_uses_the_exact_supremum(loss)
    for cls in (OperaSVC, GrpuaSVC, ObjectivePerturbationSVC):
        for adjacency in ADJACENCIES:
            plan = cls(loss=loss, adjacency=adjacency).privacy_plan(500, 4)
            assert "SquaredHinge()" in plan.mechanism


@pytest.mark.slow
@pytest.mark.parametrize("cls", [OperaSVC, GrpuaSVC, ObjectivePerturbationSVC])
def test_estimators_with_the_loss_pass(cls, page):
    X, y = rows(400)
    model = cls(8.0, 1e-5, data_norm=1.0, loss=page.SquaredHinge())
    assert model.fit(X, y).score(X, y) > 0.7
    check_private_estimator(clone(model))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_an_event_is_taken_by_accountants_and_budgets(adjacency, page):
    event = page.RandomisedAnswerEvent(0.2)
    cards = module_of("accounting/test_cards.py")
    cards.test_answers_agree(event, adjacency)
    cards.test_what_dominates_costs_no_less(event, adjacency)
    # One answer: (1 + t) / 2 against (1 - t) / 2.
    found = PLDAccountant(adjacency).compose(event)
    for epsilon in (0.0, 0.1, 0.3):
        truth = 0.6 - np.exp(epsilon) * 0.4
        assert truth <= found.delta(epsilon).upper <= truth + 1e-9
    for name, cls in accountants().items():
        same = cls(adjacency).supports(page.PureDPEvent(0.5)) == cls(adjacency).supports(event)
        assert same, name
    for composition in sorted({*COMPOSITIONS} - {"auto"}):
        budget = make_filter(composition, 3.0, 1e-4, adjacency)
        assert budget.price(Charge(event, 0.5, 0.0), budget.nothing) != budget.nothing


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_model_is_trained_by_its_plan(adjacency, page):
    X = np.random.default_rng(0).normal(0.4, 0.5, (300, 2))
    model = page.CentreModel(n_rows=300, n_weights=2)
    (problem,), weights = model.bind(X, None), np.array([0.3, -0.4])
    whole = np.zeros(2)
    problem.sum_clipped(weights, None, 0.5, whole)
    each = np.zeros((300, 2))
    for i in range(300):
        problem.sum_clipped(weights, [i], 0.5, each[i])
    np.testing.assert_allclose(each.sum(axis=0), whole)
    assert np.linalg.norm(each, axis=1).max() <= 0.5 * (1 + 1e-12)
    public = page.PublicNumbers(300, 2, 1, epsilon=50.0, delta=1e-5, adjacency=adjacency)
    plan = page.build_dpsgd(model, public, page.replace(page.steps, batch_size=300))
    found = page.carry_out(plan, model.bind(X, None), RandomStream.from_seed(0))
    np.testing.assert_allclose(found, problem.X.mean(axis=0), atol=0.1)
    price = PLDAccountant(adjacency).compose(plan.event).epsilon(1e-5)
    assert price.lower <= 50.0 * (1 + 1e-6)


def test_a_release_pays_for_its_relation(page):
    kinds = {a: page.Release.shares("answers", a).laplace(people=2.0) for a in ADJACENCIES}
    assert kinds["replace-one"] == page.answers
    assert {a: release.l1 for a, release in kinds.items()} == {
        "replace-one": 2.0,
        "add-remove": 1.0,
    }
    for adjacency, release in kinds.items():
        price = PLDAccountant(adjacency).compose(release.event).epsilon(0.0)
        assert price == pytest.approx(release.l1 / float(release.scale), rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_currency_is_never_exceeded_by_who_chooses_on_the_way(seed, page):
    budget, rng = page.PureFilter(3.0, 0.0, "replace-one"), np.random.default_rng(seed)
    spent, paid = budget.nothing, 0.0
    for _ in range(60):
        epsilon = float(rng.choice([0.01, 0.3, budget.remaining(spent)[0] or 1.0]))
        cost = budget.price(Charge(PureDPEvent(epsilon), epsilon, 0.0), spent)
        if budget.fits(spent, cost):
            spent, paid = add(spent, cost), paid + epsilon
            assert budget.guarantee(spent)[0] >= paid * (1 - 1e-12)
    assert 2.9 < paid <= 3.0 * (1 + 1e-12)
    first = budget.nothing
    assert not budget.fits(first, budget.price(Charge(GaussianEvent(9.0), 1.0, 1e-6), first))


def test_an_estimator_with_a_plan_is_searched_over_and_one_without_is_told_so(page):
    model = make_pipeline(page.NoisyCentre(), OperaSVC(data_norm=2.0))
    grid = {"operasvc__alpha": [0.1, 1.0]}
    assert plan_fits(model, n_samples=400, n_features=4)
    search = PrivateGridSearchCV(model, grid, epsilon=8.0, delta=1e-5)
    assert search.privacy_plan(400, 4).epsilon <= 8.0
    Unplanned = type("Unplanned", (page.NoisyCentre,), {"privacy_plan": None})
    told = r"Unplanned.*privacy_plan"
    with pytest.raises(ValueError, match=told) as caught:
        clone(search).set_params(estimator=make_pipeline(Unplanned(), OperaSVC())).privacy_plan(
            9, 2
        )
    assert "not private" not in str(caught.value) and "_learns_from_rows" not in str(caught.value)
    with pytest.raises(ValueError, match=told):
        plan_fits(Unplanned(), n_samples=400, n_features=4)


def test_a_source_fits_as_from_memory_and_refuses_changed_rows(page, tmp_path):
    X, y = rows(3000)
    paths = [tmp_path / "one.npy", tmp_path / "two.npy"]
    for path, part in zip(paths, np.split(X, [1000]), strict=True):
        np.save(path, part)
    model = OperaSVC(1.0, 1e-5, data_norm=1.0, random_state=0)
    found = clone(model).fit(page.PartsInFiles(*paths), y)
    np.testing.assert_allclose(found.coef_, clone(model).fit(X, y).coef_, rtol=1e-9)
    source = page.PartsInFiles(*paths)
    np.testing.assert_array_equal(source.read(900, 1100), X[900:1100])
    source.note_rows()
    source.check_rows()
    np.load(paths[1], mmap_mode="r+")[7, 0] += 1.0
    with pytest.raises(RowsChangedError):
        source.check_rows()
