"""Random allocation from the sampler to the fit: one law runs, and is accounted for."""

import numpy as np
import pytest

from skdp import DPSGDClassifier
from skdp.accounting import GaussianEvent, RandomAllocationEvent, RepeatedEvent
from skdp.audit import audit_epsilon
from skdp.mechanisms import AllocationSampler, RandomStream
from skdp.plans.noisy_gradient import Lots
from skdp.tables.units import LotsOfUnits, units_of
from skdp.testing import check_private_estimator, check_sampler

GIVEN = {
    **{"epsilon": None, "delta": 1e-4, "noise_multiplier": 1.0, "data_norm": 1.0},
    **{"classes": (0, 1), "sampling": "allocation"},
}


def table(n_rows):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n_rows, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True), (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(("n_rows", "lots"), [(12, 4), (3, 5), (7, 1)])
def test_each_row_is_in_one_lot_of_each_epoch(n_rows, lots):
    """A right sampler fails with a probability below 1e-9."""
    sampler = AllocationSampler(n_rows, lots, RandomStream.from_entropy())
    check_sampler(sampler.draw, n_rows, allocation=(1, lots), n_lots=1000 * lots)


def test_epochs_may_be_drawn_in_pieces():
    whole = AllocationSampler(9, 20, RandomStream.from_seed(1)).draw(50)
    sampler = AllocationSampler(9, 20, RandomStream.from_seed(1))
    pieces = [sampler.draw(steps) for steps in (7, 1, 0, 25, 17)]
    assert np.array_equal(np.concatenate([indices for indices, _ in pieces]), whole[0])
    lots = np.split(whole[0], whole[1][1:-1])
    assert len(lots) == 50
    assert any(lot.size == 0 for lot in lots)
    assert all(np.all(np.diff(lot) > 0) for lot in lots)
    assert sorted(np.concatenate(lots[:20])) == list(range(9))


def test_all_rows_of_a_unit_share_a_lot():
    units = units_of([1, 1, 2, 3, 3, 3, 4])
    sampler = LotsOfUnits(AllocationSampler(4, 3, RandomStream.from_seed(0)), units)
    for _ in range(20):
        rows, ends = sampler.draw(3)
        assert sorted(rows) == list(range(7))
        for lot in np.split(rows, ends[1:-1]):
            assert all(
                np.isin(np.flatnonzero(units.codes == u), lot).all() for u in units.codes[lot]
            )


@pytest.mark.parametrize("wrong", [(0, 3), (3, 0)])
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(ValueError, match="must be positive"):
        AllocationSampler(*wrong, RandomStream.from_seed(0))


def test_lots_have_no_event_but_by_epochs():
    lots = Lots("allocation", 100, 100 / 7)
    assert lots.run_event(2.0, 1.0, 21) == RepeatedEvent(
        RandomAllocationEvent(7, GaussianEvent(2.0)), 3
    )
    assert lots.sampler(RandomStream.from_seed(0)).lots == lots.epoch == 7
    with pytest.raises(ValueError, match="one epoch; got"):
        lots.run_event(2.0, 1.0, 20)
    with pytest.raises(ValueError, match="Only an epoch"):
        lots.event(2.0, 1.0)


def test_a_fit_runs_whole_epochs_and_says_so():
    X, y = table(100)
    model = DPSGDClassifier(batch_size=30, max_iter=4, random_state=0, **GIVEN).fit(X, y)
    event = RepeatedEvent(RandomAllocationEvent(3, GaussianEvent(model.noise_multiplier_)), 2)
    assert model.privacy_spent_.event == event
    assert model.n_iter_ == 6
    assert any("one random batch" in each for each in model.privacy_spent_.assumptions)


def test_other_samplings_are_refused():
    with pytest.raises(ValueError, match="sampling must be one of"):
        DPSGDClassifier(**{**GIVEN, "sampling": "shuffle"}).fit(*table(20))


@pytest.mark.slow
def test_fits_do_what_they_say():
    check_private_estimator(DPSGDClassifier(batch_size=10, max_iter=6, **GIVEN))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adjacency", "release"), [("add-remove", "all"), ("replace-one", "model")]
)
def test_an_audit_stays_below_the_claim(adjacency, release):
    """A sound fit is flagged with a probability below 1e-6."""
    model = DPSGDClassifier(
        **{**GIVEN, "noise_multiplier": 0.6},
        adjacency=adjacency,
        batch_size=5,
        max_iter=2,
        max_grad_norm=0.1,
        fit_intercept=False,
        momentum=0.0,
        average=False,
    )
    found = audit_epsilon(
        model,
        np.zeros((10, 1)),
        np.arange(10) % 2,
        n_trials=600,
        confidence=1.0 - 1e-6,
        random_state=0,
        release=release,
    )
    assert not found.violated
    assert found.epsilon_lower > 0.1
