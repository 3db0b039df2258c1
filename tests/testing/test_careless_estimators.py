"""A careful estimator of a third party passes; each careless relative fails for its own reason."""

import logging
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array

from skdp.accounting import GaussianEvent, LaplaceEvent
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms import (
    GaussianMechanism,
    RandomStream,
    analytic_gaussian_epsilon,
    laplace_mechanism,
    resolve_random_state,
)
from skdp.mechanisms.random_stream import is_seeded
from skdp.mechanisms.trace import note_release
from skdp.reporting import PrivacySpent
from skdp.statistics.noise import Noise, Query
from skdp.testing import check_private_estimator

DELTA = 1e-6


class NoisyMean(TransformerMixin, BaseEstimator):
    """Subtract a noisy mean of columns clipped to [-1, 1]; built on mechanisms and a budget."""

    factor = 1.0  # of the noise that is declared

    def __init__(self, noise_multiplier=5.0, accountant=None, random_state=None):
        self.noise_multiplier = noise_multiplier
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y=None):
        X = self.check(X)
        spent = self.account()
        self.charge(spent)
        self.learn(X, *X.shape)
        self.privacy_spent_ = spent
        return self

    def check(self, X):
        try:
            return check_array(X, dtype=np.float64)
        except ValueError:
            pass
        raise ValueError("X must be a table of finite numbers.")

    def account(self):
        return PrivacySpent(
            epsilon=analytic_gaussian_epsilon(self.noise_multiplier, DELTA),
            delta=DELTA,
            adjacency="replace-one",
            event=GaussianEvent(self.noise_multiplier),
            accountant="gdp",
            mechanism="noisy mean",
            assumptions=(),
            released=("mean_",),
            seeded=is_seeded(self.random_state),
        )

    def charge(self, spent):
        if self.accountant is not None:
            self.accountant.reserve(spent)

    def learn(self, X, n, d):
        rows = np.clip(X, -1.0, 1.0)
        self.release(rows, 2.0 * np.sqrt(d) / n)

    def release(self, rows, sensitivity):
        mechanism = GaussianMechanism(
            sensitivity=sensitivity,
            sigma=self.factor * self.noise_multiplier * sensitivity,
            stream=self.stream(rows),
            label="mean",
        )
        self.mean_ = mechanism.release(rows.mean(axis=0))

    def stream(self, rows):
        return resolve_random_state(self.random_state, rows.tobytes())

    def transform(self, X):
        return np.clip(X, -1.0, 1.0) - self.mean_


CARELESS = {}


def fails(words):
    """Note what is to be said of a class."""

    def note(cls):
        CARELESS[cls] = words
        return cls

    return note


@fails("charged 0 times for 1 private fits")
class ForgetsTheCharge(NoisyMean):
    def charge(self, spent):
        pass


@fails("charged 2 times")
class ChargesTwice(NoisyMean):
    def charge(self, spent):
        super().charge(spent)
        super().charge(spent)


@fails("costs less than privacy_spent_")
class ChargesLess(NoisyMean):
    def charge(self, spent):
        self.accountant.reserve(GaussianEvent(2.0 * self.noise_multiplier))


@fails("for add-remove, the record for replace-one")
class ChargesForAnotherRelation(NoisyMean):
    def charge(self, spent):
        self.accountant.reserve(spent, adjacency="add-remove")


@fails("claims epsilon=")
class ClaimsTooMuch(NoisyMean):
    def account(self):
        spent = super().account().to_dict()
        return PrivacySpent.from_dict(spent | {"epsilon": 0.9 * spent["epsilon"]})


@fails("leaves no privacy_spent_")
class KeepsNoRecord(NoisyMean):
    def fit(self, X, y=None):
        del super().fit(X).privacy_spent_
        return self


@fails("release was made before its charge")
class ChargesAfterwards(NoisyMean):
    def fit(self, X, y=None):
        X = self.check(X)
        self.learn(X, *X.shape)
        self.privacy_spent_ = self.account()
        self.charge(self.privacy_spent_)
        return self


@fails("used or copied before the charge")
class ReadsBeforeTheCharge(NoisyMean):
    def check(self, X):
        return np.minimum(super().check(X), 1.0)


@fails("went on although the budget refused")
class GoesOnWithoutBudget(NoisyMean):
    def charge(self, spent):
        try:
            super().charge(spent)
        except BudgetExceededError:
            pass


@fails("refused fit has told of the rows")
class KeepsRowsOfRefusedFits(NoisyMean):
    def charge(self, spent):
        if getattr(self.accountant, "_refuses", False):
            self.first_ = self.seen.ravel()[0]
        super().charge(spent)

    def check(self, X):
        self.seen = super().check(X)
        return self.seen


@fails("an extreme row, replace-one: Release 0 (mean) moved by")
class ClipsNothing(NoisyMean):
    def learn(self, X, n, d):
        self.release(X, 2.0 * np.sqrt(d) / n)


@fails("more than its declared sensitivity")
class DeclaresHalfTheSensitivity(NoisyMean):
    def release(self, rows, sensitivity):
        super().release(rows, 0.5 * sensitivity)


@fails("declared differently on the neighbour")
class DeclaresByRows(NoisyMean):
    def release(self, rows, sensitivity):
        super().release(rows, np.ptp(rows, axis=0).max() * sensitivity)


@fails("control flow")
class ReleasesLess(NoisyMean):
    def release(self, rows, sensitivity):
        for _ in range(1 if np.any(rows == -1.0) else 2):
            super().release(rows, sensitivity)


@fails("more releases than the recorded one")
class ReleasesMore(NoisyMean):
    def release(self, rows, sensitivity):
        for _ in range(2 if np.any(rows == -1.0) else 1):
            super().release(rows, sensitivity)


@fails("No release was seen")
class HidesItsNoise(NoisyMean):
    def release(self, rows, sensitivity):
        sigma = self.noise_multiplier * sensitivity
        noise = sigma * self.stream(rows).standard_normal(rows.shape[1])
        self.mean_ = rows.mean(axis=0) + noise


@fails("The noise of 'mean' is about 0.")
class DrawsHalfTheNoise(NoisyMean):
    def release(self, rows, sensitivity):
        value, sigma = rows.mean(axis=0), self.noise_multiplier * sensitivity
        noise = 0.5 * sigma * self.stream(rows).standard_normal(value.shape)
        self.mean_ = note_release("mean", value, value + noise, sensitivity, sigma)


@fails("the charge as GaussianEvent is 0.2")
class DrawsLessThanIsCharged(NoisyMean):
    factor = 0.5


@fails("the charge as LaplaceEvent is 0.1")
class ChargesLaplaceNoiseThatItHasNot(NoisyMean):
    def account(self):
        spent = super().account().to_dict() | {"accountant": "pld", "epsilon": 0.2}
        return PrivacySpent.from_dict(spent | {"event": LaplaceEvent(10.0).to_dict()})

    def release(self, rows, sensitivity):
        total, stream = rows[:, :1].sum(axis=0), self.stream(rows)
        self.mean_ = laplace_mechanism(total, 2.0, 1.0, random_state=stream)


@fails("differ under frozen noise")
class DrawsElsewhere(NoisyMean):
    def release(self, rows, sensitivity):
        super().release(rows, sensitivity)
        self.mean_ = self.mean_ + np.random.default_rng().normal(scale=1e-3)


@fails(".n_iter_: 1, 0")
class CountsItsIterations(NoisyMean):
    def learn(self, X, n, d):
        super().learn(X, n, d)
        self.n_iter_ = int(np.linalg.norm(X[0]) < 1e6)


@fails(".norm_")
class KeepsANorm(NoisyMean):
    def learn(self, X, n, d):
        super().learn(X, n, d)
        self.norm_ = np.linalg.norm(X)


@fails(".mean_: float32 (4,), float64 (4,)")
class TypeDependsOnRows(NoisyMean):
    def release(self, rows, sensitivity):
        super().release(rows, sensitivity)
        if not np.any(rows == -1.0):
            self.mean_ = self.mean_.astype(np.float32)


@fails("says other things")
class Warns(NoisyMean):
    def learn(self, X, n, d):
        super().learn(X, n, d)
        if np.any(np.abs(X) > 1.0):
            warnings.warn("some rows are clipped", stacklevel=2)


@fails("'DEBUG', 'clipped")
class Logs(NoisyMean):
    def learn(self, X, n, d):
        super().learn(X, n, d)
        logging.getLogger("careless").debug("clipped %d numbers", np.sum(np.abs(X) > 1.0))


@fails("('printed', '60 rows, the first is")
class Prints(NoisyMean):
    def learn(self, X, n, d):
        super().learn(X, n, d)
        print(f"{n} rows, the first is {X[0].sum():.3f}")


@fails("no value of a row may decide")
class RefusesRows(NoisyMean):
    def learn(self, X, n, d):
        if np.any(np.abs(X) > 1e6):
            raise ValueError("A row is too long.")
        super().learn(X, n, d)


@fails("same noise twice in fits without a seed")
class SharesAStream(NoisyMean):
    def stream(self, rows):
        return RandomStream.from_seed(0) if self.random_state is None else super().stream(rows)


class CountsCells(NoisyMean):
    """Releases integers, of which two fits share many by chance."""

    def release(self, rows, sensitivity):
        counts = np.histogram(rows[:, 0], 24, range=(-1.0, 1.0))[0]
        noise = Noise.gaussian(Query("cells", 1, 2, 2), 1.5 * self.noise_multiplier)
        noisy = noise.release(counts, self.stream(rows))
        return np.full(rows.shape[1], noisy @ np.linspace(-1.0, 1.0, 24) / len(rows))


@fails("All releases of integers had the same noise twice in fits without a seed")
class SharesAStreamOfIntegers(CountsCells):
    def stream(self, rows):
        return RandomStream.from_seed(0) if self.random_state is None else super().stream(rows)


@fails("'mean' had the same noise on two tables, with one seed")
class BindsNoSeedToItsTable(NoisyMean):
    def stream(self, rows):
        return resolve_random_state(self.random_state)


@fails("A seed is not reported")
class HidesItsSeed(NoisyMean):
    def account(self):
        return PrivacySpent.from_dict(super().account().to_dict() | {"seeded": False})


@fails("A seed does not repeat its fit")
class IgnoresItsSeed(NoisyMean):
    def stream(self, rows):
        return RandomStream.from_entropy()


@fails("What is cloned has lost its budget")
class LosesItsBudget(NoisyMean):
    def __sklearn_clone__(self):
        return type(self)(self.noise_multiplier, random_state=self.random_state)


@fails("What is pickled has lost its budget")
class PicklesNoBudget(NoisyMean):
    def __getstate__(self):
        return super().__getstate__() | {"accountant": None}


@fails("error quotes a value")
class QuotesAValue(NoisyMean):
    def check(self, X):
        X = np.asarray(X)
        if X.dtype.kind != "f":
            raise ValueError(f"Not a number: {X.flat[0]}")
        return super().check(X)


@fails("error quotes a value")
class QuotesAValueInTheChain(NoisyMean):
    def check(self, X):
        try:
            return np.asarray(check_array(X, dtype=np.float64))
        except ValueError as error:
            raise ValueError("X must be a table of finite numbers.") from error


@fails("ValueError came after the charge")
class ChecksAfterTheCharge(NoisyMean):
    def check(self, X):
        return np.asarray(X)

    def learn(self, X, n, d=0):
        super().learn(super().check(X), n, d)


@pytest.mark.parametrize("cls", [NoisyMean, CountsCells])
def test_a_careful_estimator_passes(cls):
    results = check_private_estimator(cls())
    assert [result["status"] for result in results] == ["passed"] * len(results)


@pytest.mark.parametrize("cls", CARELESS, ids=lambda cls: cls.__name__)
def test_a_careless_one_fails_with_the_reason(cls):
    with pytest.raises(AssertionError) as caught:
        check_private_estimator(cls())
    assert CARELESS[cls] in str(caught.value)


class WithoutSeeds(CountsItsIterations):
    def __init__(self, noise_multiplier=5.0, accountant=None):
        super().__init__(noise_multiplier, accountant)


@pytest.mark.parametrize("cls", [ForgetsTheCharge, KeepsNoRecord, RefusesRows, HidesItsNoise])
def test_what_fails_once_is_checked_to_the_end(cls):
    results = check_private_estimator(cls(), on_fail=None)
    failed = [str(r["exception"]) for r in results if r["status"] == "failed"]
    assert any(CARELESS[cls] in text for text in failed)
    assert len(results) == 9


def test_results_are_collected():
    results = check_private_estimator(WithoutSeeds(), on_fail=None)
    status = {result["check_name"]: result["status"] for result in results}
    assert status.pop("check_nothing_tells_neighbours_apart") == "failed"
    assert status.pop("check_seeds_are_reported_and_bound_to_the_table") == "skipped"
    assert set(status.values()) == {"passed"}
