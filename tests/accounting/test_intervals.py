"""What two bounds on one number prove together."""

import math

from skdp.accounting.pld.intervals import is_narrow, meet


def test_bounds_sharpen_each_other():
    assert meet((0.0, math.inf), (1.0, 2.0)) == (1.0, 2.0)
    assert meet((1.0, 2.0), (1.5, 3.0)) == (1.5, 2.0)


def test_contradiction_is_resolved_against_us():
    # If two methods exclude each other, the larger upper bound is the one to trust.
    assert meet((1.0, 2.0), (2.5, 3.0)) == meet((2.5, 3.0), (1.0, 2.0)) == (1.0, 3.0)


def test_nothing_is_close_to_infinity():
    assert not is_narrow((0.0, math.inf), 0.5)
    assert not is_narrow((math.inf, math.inf), 0.5)
    assert is_narrow((0.999, 1.0), 1e-2)
    assert not is_narrow((0.98, 1.0), 1e-2)
    assert is_narrow((0.0, 1e-12), 1e-3, smallest=1e-9)
