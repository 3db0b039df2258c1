"""Frozen noise stays inside of the fits under check, and all is put back behind them."""

import logging
import threading
import warnings

import numpy as np
import pytest

from skdp.mechanisms import RandomStream
from skdp.testing.replay import fit_frozen, listen


class Keys:
    """Its fit draws keys, in its own thread and in another."""

    def fit(self, X):
        self.own_ = [RandomStream.from_entropy().words(4).tolist() for _ in range(2)]
        thread = threading.Thread(target=self.draw_elsewhere)
        thread.start()
        thread.join()
        if X is None:
            raise ValueError("nothing to fit")

    def draw_elsewhere(self):
        self.other_ = RandomStream.from_entropy().words(4).tolist()


def test_only_the_recorded_fit_is_frozen():
    one, same, other = (fit_frozen(Keys(), 0, seed=seed).fitted for seed in (0, 0, 1))
    assert one.own_ == same.own_ != other.own_
    assert one.own_[0] != one.own_[1]
    assert one.other_ != same.other_, "another thread may be making a release"


def test_all_is_put_back():
    entropy, handle = RandomStream.__dict__["from_entropy"], logging.Logger.handle
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    with pytest.raises(ValueError, match="nothing"), listen():
        fit_frozen(Keys(), None)
    assert isinstance(fit_frozen(Keys(), None, expected=(ValueError,)).error, ValueError)
    assert RandomStream.__dict__["from_entropy"] is entropy
    assert logging.Logger.handle is handle
    assert logging.getLogger().level != 1
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_all_that_is_said_is_heard(capsys):
    quiet = logging.getLogger("tests.quiet")
    with listen() as said:
        print("out")
        warnings.warn("twice", UserWarning, stacklevel=1)
        warnings.warn("twice", UserWarning, stacklevel=1)
        quiet.debug("of %d rows", 7)
    assert said == [
        ("log record", "tests.quiet", "DEBUG", "of 7 rows"),
        *[("warning", "UserWarning", "twice")] * 2,
        ("printed", "out\n"),
    ]
    assert capsys.readouterr().out == ""
