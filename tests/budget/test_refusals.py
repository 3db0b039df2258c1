"""A refusal begins with the way out, and what it says fits is granted when it is asked for."""

import pickle
import re

import numpy as np
import pytest
from support import rows

from skdp import (
    DPSGDClassifier,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
)
from skdp.accounting import ApproxDPEvent, GaussianEvent, PLDAccountant
from skdp.accounting.numerics import gaussian_profile
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.reporting import PrivacySpent

X, Y = rows(60)
SHAPE = {"n_samples": 60, "n_features": 4}
COMPOSITIONS = ["mixed", "basic", "gdp", "zcdp", "rdp", "approx"]
PAIR = r"\(epsilon=([^,]+), delta=([^)]+)\)"


def release(kind, epsilon, delta, adjacency):
    """Return a release of Gaussian noise, or one of which nothing but its pair is known."""
    if kind == "gaussian":
        event = GaussianEvent(gaussian_profile.sigma(epsilon, delta))
    else:
        event = ApproxDPEvent(epsilon, delta)
    return PrivacySpent(epsilon, delta, adjacency, event, "pld", "noise", (), (), False)


def draw(random, relation, epsilons):
    adjacency = relation if relation == "add-remove" else random.choice(["add-remove", relation])
    kind = random.choice(["gaussian", "gaussian", "any"])
    return kind, float(random.choice(epsilons)), float(random.choice([1e-8, 1e-7, 1e-6])), adjacency


@pytest.mark.parametrize("trials", [6, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_what_fits_is_granted_and_more_is_refused(composition, relation, trials):
    random = np.random.default_rng(len(composition) + len(relation))
    refused = 0
    for _ in range(trials):
        total = float(random.choice([0.5, 1.0, 3.0]))
        budget = BudgetAccountant(total, 1e-5, composition=composition, adjacency=relation)
        for _ in range(random.integers(5)):
            try:
                budget.reserve(release(*draw(random, relation, [0.05, 0.1, 0.3, 0.7])))
            except BudgetExceededError:
                break
        kind, asked, delta, adjacency = draw(random, relation, [1.0, 5.0])
        try:
            budget.check(release(kind, asked, delta, adjacency))
        except BudgetExceededError as error:
            refusal = error
        else:
            continue
        refused += 1
        assert refusal.requested == (asked, delta)
        if refusal.fits is None:
            with pytest.raises(BudgetExceededError):
                budget.check(release(kind, 1e-6 * total, 1e-12, adjacency))
            continue
        epsilon, kept = refusal.fits
        assert 0.0 < epsilon <= asked and kept <= delta
        if 1.01 * epsilon < asked:
            with pytest.raises(BudgetExceededError):
                budget.check(release(kind, 1.01 * epsilon, kept, adjacency))
        # As it is written, which is no more.
        assert tuple(map(float, re.search(PAIR, str(refusal)).groups())) == (asked, delta)
        written = tuple(map(float, re.search(f"still fits is {PAIR}", str(refusal)).groups()))
        assert written[0] <= epsilon and written[0] == pytest.approx(epsilon, rel=1e-3)
        budget.reserve(release(kind, *written, adjacency))
    assert refused > 1


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "cls", [OperaLogisticRegression, DPSGDClassifier, ObjectivePerturbationLogisticRegression]
)
def test_a_fit_with_the_epsilon_that_a_refusal_names_is_granted(cls, adjacency):
    budget = BudgetAccountant(1.0, 1e-5)
    budget.reserve(GaussianEvent(8.0), label="another")
    model = cls(1.0, 1e-6, data_norm=1.0, adjacency=adjacency, accountant=budget)
    with pytest.raises(BudgetExceededError) as caught:
        model.fit(X, Y)
    text = str(caught.value)
    named = re.search(r": set epsilon=([0-9.e-]+)( and delta=([0-9.e-]+[0-9]))?\.", text)
    asked = f"{cls.__name__}.fit requests (epsilon=1, delta=1e-06), which exceeds the remaining"
    assert text.startswith(asked)
    assert text.index("composition 'mixed'") < named.start()
    assert text.endswith("Nothing was charged and no row was read.")
    assert ("counts under add-remove" in text) == (adjacency == "add-remove")
    delta = float(named[3]) if named[3] else model.delta
    model.set_params(epsilon=float(named[1].rstrip(".")), delta=delta).fit(X, Y)
    assert len(budget.entries()) == 2


@pytest.mark.parametrize("composition", ["gdp", "zcdp", "rdp", "approx"])
def test_a_fit_that_is_not_gaussian_does_not_take_all_with_a_smaller_delta(composition):
    budget = BudgetAccountant(1.0, 1e-5, composition=composition)
    model = ObjectivePerturbationLogisticRegression(2.0, 1e-6, data_norm=1.0, accountant=budget)
    with pytest.raises(BudgetExceededError) as caught:
        model.fit(X, Y)
    named = re.search(f"still fits is {PAIR}: set epsilon=", str(caught.value))
    model.set_params(epsilon=float(named[1]), delta=float(named[2])).fit(X, Y)
    assert len(budget.entries()) == 1


def test_a_refusal_says_who_can_do_without_a_delta():
    budget = BudgetAccountant(1.0, 1e-5, composition="basic")
    budget.reserve(ApproxDPEvent(0.5, 1e-5))
    with pytest.raises(BudgetExceededError, match="delta=0 is offered by"):
        DPSGDClassifier(1.0, 1e-6, data_norm=1.0, accountant=budget).fit(X, Y)


def test_a_gaussian_release_is_told_its_noise():
    budget = BudgetAccountant(1.0, 1e-5)
    with pytest.raises(BudgetExceededError, match="set noise_multiplier=") as caught:
        budget.reserve(GaussianEvent(0.5), label="a mean")
    noise = float(re.search(r"noise_multiplier=([0-9.]+[0-9])", str(caught.value))[1])
    with pytest.raises(BudgetExceededError):
        budget.check(GaussianEvent(0.99 * noise))
    budget.reserve(GaussianEvent(noise))


def test_given_noise_is_to_be_raised():
    budget = BudgetAccountant(1.0, 1e-5)
    model = DPSGDClassifier(None, 1e-6, noise_multiplier=0.7, data_norm=1.0, accountant=budget)
    with pytest.raises(BudgetExceededError, match="increase noise_multiplier until"):
        model.fit(X, Y)


def test_what_is_spent_leaves_nothing():
    budget = BudgetAccountant(1.0, 1e-5, composition="basic")
    budget.reserve(ApproxDPEvent(1.0, 1e-5))
    with pytest.raises(BudgetExceededError, match="No release of this kind fits") as caught:
        OperaLogisticRegression(1.0, 1e-6, accountant=budget, data_norm=1.0).fit(X, Y)
    assert caught.value.fits is None


@pytest.mark.parametrize("composition", ["mixed", "gdp", "basic"])
def test_a_forecast_says_with_which_shares_all_would_fit(composition):
    budget = BudgetAccountant(1.0, 1e-5, composition=composition)
    budget.reserve(GaussianEvent(20.0), delta=1e-7)
    for fits in (4, 12):  # a fourth of the delta that is left has four digits
        model = OperaLogisticRegression(0.9, 1e-6, data_norm=1.0)
        with pytest.raises(BudgetExceededError, match=f"needs {fits} charges, and") as caught:
            budget.check(model, fits=fits, **SHAPE)
        share = re.search(f"All would fit with {PAIR} each", str(caught.value)).groups()
        epsilon, delta = map(float, share)
        budget.check(model.set_params(epsilon=epsilon, delta=delta), fits=fits, **SHAPE)
        with pytest.raises(BudgetExceededError):
            budget.check(model.set_params(epsilon=1.01 * epsilon), fits=fits, **SHAPE)


def test_what_remains_says_why_it_is_no_difference():
    plain, curved = (BudgetAccountant(1.0, 1e-5, composition=c) for c in ("basic", "gdp"))
    for budget in (plain, curved):
        budget.reserve(GaussianEvent(20.0), delta=1e-7)
        epsilon, delta = left = budget.remaining()
        assert left == (epsilon, delta) == pickle.loads(pickle.dumps(left))
        assert "\n" not in repr(left) and isinstance(left, tuple)
    assert re.fullmatch(r"\([0-9.e-]+, [0-9.e-]+\)", repr(plain.remaining()))
    assert "do not add up to the total" in repr(curved.remaining())


def test_a_budget_shows_what_still_fits():
    budget = BudgetAccountant(1.0, 1e-5)
    budget.reserve(GaussianEvent(20.0))
    epsilon, delta = budget.remaining()
    assert f"; epsilon={epsilon:.6g}, delta={delta:.3g} still fits; 1 charges)" in repr(budget)
    shown = budget._repr_html_()
    assert f"largest release that fits</th><td>(epsilon={epsilon:.6g}, delta=" in shown
    assert "at most" not in shown
    kind = re.search(f"largest of any kind</th><td>{PAIR}", shown)
    any_kind = ApproxDPEvent(0.999 * float(kind[1]), 0.999 * float(kind[2]))
    budget.reserve(any_kind)
    assert PLDAccountant("replace-one").compose(any_kind).epsilon(1e-5) < 1.0
