"""Attributes computed once: no lock is held while they are, which a fork could copy."""

import threading

import pytest

from skdp.base.parameters import cached_property


class Counting:
    def __init__(self):
        self.calls = 0

    @cached_property
    def number(self):
        """A number."""
        self.calls += 1
        return self.calls


def test_it_is_computed_once_and_documented():
    one = Counting()
    assert (one.number, one.number, one.calls) == (1, 1, 1)
    assert Counting.number.__doc__ == "A number."
    del one.number
    assert one.number == 2


def test_an_error_is_not_kept():
    class Failing:
        @cached_property
        def number(self):
            raise KeyError

    one = Failing()
    for _ in range(2):
        with pytest.raises(KeyError):
            one.number  # noqa: B018


def test_two_objects_are_computed_at_the_same_time():
    barrier = threading.Barrier(2, timeout=30)

    class Meeting:
        @cached_property
        def number(self):
            return barrier.wait()

    objects = [Meeting(), Meeting()]
    threads = [threading.Thread(target=lambda o=o: o.number) for o in objects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one.number for one in objects} == {0, 1}
