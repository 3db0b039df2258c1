"""Bars count runs whose number is public, and only where somebody watches."""

import io
import re
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import skdp.tables.row_sources as row_sources
from skdp import DPSGDClassifier, OperaLogisticRegression, OperaSVC
from skdp.audit import audit_epsilon, audit_in_one_run, membership_inference
from skdp.model_selection import PrivateGridSearchCV
from skdp.running import around_runs, shown

pytest.importorskip("rich", reason="needs rich")

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-0.5, 0.5, (200, 2)), np.arange(200) % 2


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def watch(monkeypatch):
    """Put a terminal in the place of standard error; of tests, as fixtures are captured."""
    for name in ("SKDP_PROGRESS", "TTY_INTERACTIVE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Screen())
    return sys.stderr


def search(method):
    return PrivateGridSearchCV(
        OperaLogisticRegression(data_norm=1.0),
        {"alpha": [0.1, 1.0]},
        epsilon=4.0,
        delta=1e-5,
        method=method,
    )


def test_searches_show_public_numbers_of_runs(monkeypatch):
    screen = watch(monkeypatch)
    for method in ("fixed", "auto"):
        screen.truncate(0)
        search(method).fit(X, Y)
        assert "runs of the search" in screen.getvalue() and "2/2" in screen.getvalue()
    screen.truncate(0)
    search("random-stopping").fit(X, Y)
    search("auto").set_params(expected_candidates=2).fit(X, Y)
    search("auto").set_params(param_grid={"alpha": [0.1, 0.2, 0.5, 1.0]}).fit(X, Y)
    assert not screen.getvalue()


def test_audits_show_their_runs(monkeypatch):
    screen = watch(monkeypatch)
    audit_epsilon(OperaSVC(8.0, 1e-5, data_norm=1.0), X[:20], Y[:20], n_trials=20)
    assert "40/40" in screen.getvalue()
    screen.truncate(0)
    model = LogisticRegression().fit(X[:100], Y[:100])
    tables = X[:100], Y[:100], X[100:], Y[100:]
    membership_inference(model, *tables, attack="likelihood-ratio", n_shadow_models=3)
    assert "3/3" in screen.getvalue()
    screen.truncate(0)
    model = DPSGDClassifier(8.0, 1e-5, data_norm=1.0, fit_intercept=False, batch_size=110)
    audit_in_one_run(
        model.set_params(max_iter=7), X[:10, :1], Y[:10], n_canaries=100, release="all"
    )
    assert "21/21" in screen.getvalue()


def count_three():
    with shown("runs", 3) as done:
        done(3)


def test_nothing_is_shown_where_nobody_watches(monkeypatch):
    screen = watch(monkeypatch)
    count_three()
    assert "3/3" in screen.getvalue()
    for name, value in (("SKDP_PROGRESS", "0"), ("TERM", "dumb")):
        with monkeypatch.context() as change:
            change.setenv(name, value)
            screen.truncate(0)
            count_three()
            assert not screen.getvalue(), name
    with around_runs():
        count_three()
    assert not screen.getvalue()
    monkeypatch.setattr("skdp.running.current_process", lambda: type("Worker", (), {"name": "w"}))
    count_three()
    assert not screen.getvalue()
    monkeypatch.undo()
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setenv("FORCE_COLOR", "1")  # by which rich takes anything for a terminal
    count_three()
    assert not pipe.getvalue()
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "stderr", Screen())
    count_three()
    assert not sys.stderr.getvalue()


def test_bars_come_one_at_a_time_also_after_an_error(monkeypatch):
    screen = watch(monkeypatch)
    with shown("outer", 2):
        search("fixed").fit(X, Y)
    assert "outer" in screen.getvalue() and "search" not in screen.getvalue()
    with pytest.raises(InterruptedError), shown("first", 2):
        raise InterruptedError
    count_three()
    assert "3/3" in screen.getvalue()


def fit_from_files(tmp_path, screen, model):
    """Fit on rows of a large table in a file, some at a time, and return what is on the screen."""
    rows = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (999, 2))
    rows[:] = np.resize(X, (999, 2))
    screen.truncate(0)
    model.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), np.resize(Y, 999))
    return screen.getvalue()


def test_fits_on_tables_in_files_show_that_they_go_on(monkeypatch, tmp_path):
    screen = watch(monkeypatch)
    monkeypatch.setattr(row_sources, "WHOLE_BYTES", 0)
    monkeypatch.setattr(row_sources, "FEWEST_ROWS", 100)
    monkeypatch.setattr(row_sources, "BLOCK_BYTES", 1)
    given = {"epsilon": 4.0, "delta": 1e-5, "data_norm": 1.0}
    seen = fit_from_files(tmp_path, screen, DPSGDClassifier(**given, max_iter=7, batch_size=40))
    assert "checking rows, percent" in seen and "100/100" in seen
    assert "DPSGDClassifier" in seen and "7/7" in seen
    # How many passes over rows a minimisation takes is private, and so may be the number of rows.
    seen = fit_from_files(tmp_path, screen, OperaLogisticRegression(**given))
    assert "OperaLogisticRegression" in seen and "100/100" in seen
    assert set(re.findall(r"\d+/(\d+)", seen)) == {"100"} and "999" not in seen
    monkeypatch.setenv("SKDP_PROGRESS", "0")
    assert not fit_from_files(tmp_path, screen, OperaLogisticRegression(**given))
    monkeypatch.delenv("SKDP_PROGRESS")
    with around_runs():
        assert not fit_from_files(tmp_path, screen, OperaLogisticRegression(**given))
    DPSGDClassifier(**given).fit(X, Y)  # in memory
    assert not screen.getvalue()
