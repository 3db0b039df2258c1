"""What two bounds on one number prove together."""

import math
import pickle

import pytest

from skdp.accounting import (
    GaussianEvent,
    GDPAccountant,
    LaplaceEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RDPAccountant,
    RepeatedEvent,
)
from skdp.accounting.value import is_narrow, meet, named
from skdp.exceptions import ContradictionWarning


def test_bounds_sharpen_each_other():
    assert meet((0.0, math.inf), (1.0, 2.0)) == (1.0, 2.0)
    assert meet((1.0, 2.0), (1.5, 3.0)) == (1.5, 2.0)


def test_contradictions_are_told_and_resolved_against_us():
    # If two methods exclude each other, the larger upper bound is the one to trust.
    one, other = named((1.0, 2.0), "grid"), named((2.5, 3.0), "inversion")
    for known, found in ((one, other), (other, one)):
        with pytest.warns(ContradictionWarning, match=r"2\.5 by inversion, at most 2\.0 by grid"):
            assert meet(known, found) == (1.0, 3.0)


class Contradicting(GDPAccountant):
    """Its lower bound exceeds its upper one."""

    def _epsilon_interval(self, delta):
        return 2.0, 1.0


def test_an_accountant_that_contradicts_itself_reports_the_larger_bound():
    accountant = Contradicting().compose(GaussianEvent(1.0))
    with pytest.warns(ContradictionWarning):
        assert tuple(accountant.epsilon(1e-5)) == (2.0, 2.0)


def test_bounds_know_what_proved_them():
    both = meet(named((0.0, 5.0), "grid"), named((1.0, 9.0), "inversion"))
    assert both == (1.0, 5.0) and both.by == ("inversion", "grid")
    step = PoissonSampledEvent(0.01, GaussianEvent(2.0))
    for event, expected in (
        (GaussianEvent(2.0), ("closed form", "closed form")),
        (RepeatedEvent(step, 1000), ("inversion", "inversion")),
        (RepeatedEvent(LaplaceEvent(2.0), 3), ("grid", "grid")),
    ):
        value = PLDAccountant().compose(event).epsilon(1e-5)
        assert value.proved_by == expected == pickle.loads(pickle.dumps(value)).proved_by
    assert PLDAccountant().compose(PureDPEvent(0.5)).epsilon(0.0).proved_by == ("", "pld")
    assert RDPAccountant().compose(step).epsilon(1e-5).proved_by == ("", "rdp")


def test_nothing_is_close_to_infinity():
    assert not is_narrow((0.0, math.inf), 0.5)
    assert not is_narrow((math.inf, math.inf), 0.5)
    assert is_narrow((0.999, 1.0), 1e-2)
    assert not is_narrow((0.98, 1.0), 1e-2)
    assert is_narrow((0.0, 1e-12), 1e-3, smallest=1e-9)


@pytest.mark.parametrize(
    ("event", "count", "names"),
    [
        (GaussianEvent(2.0), 5, ("closed form",)),
        (LaplaceEvent(2.0), 1, ("closed form",)),
        (LaplaceEvent(2.0), 3, ("grid", "inversion")),
        (PoissonSampledEvent(0.01, GaussianEvent(1.0)), 30, ("inversion", "grid")),
    ],
)
def test_engines_are_named_before_and_after(event, count, names):
    plan = PLDAccountant().compose(event, count)
    assert plan.engines() == names
    assert set(plan.epsilon(1e-5).proved_by) | set(plan.delta(0.1).proved_by) <= set(names)
