"""Tests draw the same in every run: their noise follows from their names.

Property tests try the same examples and have no clock, however slow the machine.
``pytest --hypothesis-profile=search --fresh-noise`` tries new examples under new noise.
"""

import gc
import itertools
import os
import pathlib
from collections import defaultdict
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from skdp.mechanisms import random_stream

settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("same"), derandomize=False)
settings.load_profile("same")


def pytest_addoption(parser):
    parser.addoption("--fresh-noise", action="store_true", help="let no test repeat its noise")
    parser.addoption("--cpu-table", metavar="FILE", help="write each test's processor seconds")


def pytest_configure(config):
    table = config.getoption("--cpu-table")
    if table and not hasattr(config, "workerinput"):  # to which workers of xdist append
        pathlib.Path(table).write_text("")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave to the slow tests all but a few of a test's cases, evenly spread, where it says so."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("daily") and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for each in cases.values():
        (kept,) = each[0].get_closest_marker("daily").args
        daily = {(2 * i + 1) * len(each) // (2 * kept) for i in range(kept)}
        for i, item in enumerate(each):
            if i not in daily:
                item.add_marker("slow")


@contextmanager
def noise_of(name, config):
    """Take keys and entropy from a name instead of the operating system; forks still part."""
    if config.getoption("--fresh-noise"):
        yield
        return
    stream = random_stream.RandomStream
    calls = itertools.count()

    def from_entropy(cls):
        key = stream.from_seed(next(calls), name.encode()).words(4).tobytes()
        return cls(key, seeded=False)

    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(sum(name.encode()))  # noqa: NPY002
    with (
        mock.patch.object(stream, "from_entropy", classmethod(from_entropy)),
        mock.patch.object(random_stream, "_entropy", b"of no process"),
        mock.patch.object(random_stream, "_process", random_stream.os.getpid()),
    ):
        yield
    np.random.set_state(before)  # noqa: NPY002


def pytest_collection_finish():
    """Take what collection has made out of the garbage collector's sight, which it slows."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    before = sum(os.times()[:4])  # with that of child processes
    with noise_of(item.nodeid, item.config):
        found = yield
    if table := item.config.getoption("--cpu-table"):
        with open(table, "a") as file:
            file.write(f"{sum(os.times()[:4]) - before:.2f}\t{item.nodeid}\n")
    return found


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Draw for what several tests share by its own name, whichever of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    with noise_of(f"{fixturedef.baseid} {fixturedef.argname}", request.config):
        return (yield)
