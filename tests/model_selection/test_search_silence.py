"""What a run says or does wrong is not heard: it tells of rows, and of the number of runs."""

import logging
import random
import sys
import threading
import warnings

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_toys import Loud, NoisyCount, Tally, speak
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_random_state
from support import rows

from skdp import OperaLogisticRegression
from skdp.exceptions import PrivacyWarning, SkdpError
from skdp.mechanisms import RandomStopping
from skdp.model_selection import PrivateGridSearchCV
from skdp.model_selection._runs import Table, _total
from skdp.model_selection._scoring import resolve_scoring
from skdp.reporting import privacy_statement
from skdp.running import around_runs, lift_silence

METHODS = ("random-stopping", "fixed", "holdout", "cv")


class Listener:
    """A callback that notes how often it is called."""

    def __init__(self):
        self.heard = 0

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context):
        self.heard += 1

    def on_fit_task_end(self, estimator, context):
        self.heard += 1


class Notes(logging.Handler):
    def __init__(self):
        super().__init__(0)
        self.notes = []

    def emit(self, record):
        self.notes.append(record.getMessage())


def emissions(search, table, capfd, backend):
    """Return everything that a fit lets be heard."""
    handler, floats, listener = Notes(), [], Listener()
    logging.getLogger().addHandler(handler)
    before = np.seterrcall(lambda *what: floats.append(what))
    parts = [search, search.estimator, *(step for _, step in search.estimator.steps)]
    for part in parts:
        if hasattr(part, "set_callbacks"):
            part.set_callbacks(listener)
    capfd.readouterr()
    generator = check_random_state(None)  # of the process, and given back as it was
    states = generator.get_state(), random.getstate()
    generator.seed(1)
    random.seed(1)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            np.errstate(all="call"),
            joblib.parallel_config(backend=backend, verbose=60),
        ):
            warnings.simplefilter("always")
            search.fit(*table)
    finally:
        logging.getLogger().removeHandler(handler)
        np.seterrcall(before)
        drawn = generator.uniform(), random.random()
        generator.set_state(states[0])
        random.setstate(states[1])
    printed = capfd.readouterr()
    messages = sorted(str(warning.message) for warning in warned)
    return printed.out, printed.err, messages, handler.notes, floats, listener.heard, drawn


def loud_search(method, **options):
    options |= {"method": method, "delta": 0.1, "cv": 2, "verbose": 1}
    model = make_pipeline(Loud(), NoisyCount(classes=[0, 1]))
    return PrivateGridSearchCV(model, {"noisycount__threshold": [0.0, 0.5]}, **options)


@pytest.mark.parametrize(
    ("backend", "n_jobs"),
    [("threading", None), ("threading", 2), pytest.param("loky", 2, marks=pytest.mark.slow)],
)
def test_the_number_of_runs_is_not_heard(backend, n_jobs, capfd, monkeypatch):
    """All that a fit emits is the same for 1 run and for 40."""
    said = []
    for number in (1, 40):
        monkeypatch.setattr(RandomStopping, "draw", lambda law, stream, number=number: number)
        search = loud_search("random-stopping", n_jobs=n_jobs, random_state=0)
        said.append(emissions(search, rows(60), capfd, backend))
    assert said[0] == said[1]
    out, err, warned, logged, floats, heard, _ = said[0]
    # What the search says itself is public: what it spends, its one task, and that delta is large.
    assert out.count("\n") == 1 and "PrivateGridSearchCV" in out and not err
    assert len(warned) == 1 and "delta" in warned[0]
    assert not logged and not floats and heard in (0, 2)


@pytest.mark.daily(1)
@pytest.mark.parametrize("method", METHODS)
def test_what_all_fits_would_warn_of_is_said_once(method):
    model, options = OperaLogisticRegression(data_norm=1.0), {"cv": 2, "delta": 0.1}
    search = PrivateGridSearchCV(model, {"alpha": [0.1, 1.0]}, method=method, **options)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        search.fit(*rows(60))
    assert [warning.category for warning in warned] == [PrivacyWarning]


@pytest.mark.parametrize(("method", "n_jobs"), [("fixed", 2), ("holdout", None), ("cv", 2)])
def test_runs_are_silent_where_their_number_is_public(method, n_jobs, capfd):
    """Their warnings and messages still depend on rows."""
    search = loud_search(method, n_jobs=n_jobs)
    out, err, warned, logged, floats, heard, _ = emissions(search, rows(60), capfd, "threading")
    assert out.count("\n") == 1 and not err and len(warned) == 1 and not logged and not floats
    assert heard in (0, 2 + 2 * (4 if method == "cv" else 2))


def test_everything_is_given_back(capsys):
    def state():
        return (
            *(sys.stdout, sys.stderr, warnings.filters, warnings.showwarning),
            *(logging.root.manager.disable, np.geterr()),
        )

    before = state()
    with pytest.raises(KeyboardInterrupt), around_runs(), around_runs():
        speak()
        raise KeyboardInterrupt
    assert state() == before
    assert capsys.readouterr() == ("", "")
    speak_again = threading.Thread(target=print, args=("heard",))
    speak_again.start()
    speak_again.join()
    assert capsys.readouterr().out == "heard\n"


def test_threads_outside_of_runs_and_announcements_are_heard(capsys):
    go, done = threading.Event(), threading.Event()

    def display():
        go.wait(300)
        print("display")
        done.set()

    threading.Thread(target=display).start()
    with around_runs():
        print("run")
        go.set()
        done.wait(300)
        with lift_silence():
            print("one run done")
        print("run")
    assert capsys.readouterr().out == "display\none run done\n"


def test_searches_in_several_threads_share_one_silence(capsys):
    """The first one to end must not wake the others' runs."""
    inside, first_is_done = threading.Barrier(2), threading.Event()

    def first():
        with around_runs():
            inside.wait(300)
        first_is_done.set()

    def second():
        with around_runs():
            inside.wait(300)
            first_is_done.wait(300)
            speak()

    threads = [threading.Thread(target=target) for target in (first, second)]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert capsys.readouterr() == ("", "") and not warned


class Fragile(NoisyCount):
    """Cannot be trained with some thresholds, nor score rows whose first value is large."""

    def fit(self, X, y):
        super().fit(X, y)
        if self.threshold > 1.0:
            raise (SystemExit if self.threshold > 5.0 else ValueError)(f"a bad row: {X[0]}")
        return self

    def predict(self, X):
        if np.any(np.asarray(X)[:, 0] > 50.0):
            raise ValueError("too large")
        return super().predict(X)


def fragile_search(method, thresholds, **options):
    return PrivateGridSearchCV(
        Fragile(classes=[0, 1]), {"threshold": thresholds}, method=method, cv=2, **options
    )


@pytest.mark.daily(1)
@pytest.mark.parametrize("method", METHODS)
def test_a_losing_run_may_fail(method):
    """Scores of 300 rows are far from the worst one, at epsilon 50."""
    X, y = rows(1500)
    y = (X[:, 0] > 0).astype(int)
    for seed in range(3):
        search = fragile_search(
            method, [2.0, 0.0, 9.0], epsilon=50.0, expected_candidates=40, random_state=seed
        ).fit(X, y)
        assert search.best_params_ == {"threshold": 0.0}


@pytest.mark.parametrize("method", METHODS)
def test_a_chosen_run_that_failed_says_the_same_whatever_else_ran(method, monkeypatch):
    texts = set()
    for number in (1, 30):
        monkeypatch.setattr(RandomStopping, "draw", lambda law, stream, number=number: number)
        tally = Tally()
        with pytest.raises(ValueError, match="The chosen fit of the search failed") as caught:
            fragile_search(method, [2.0, 3.0], accountant=tally).fit(*rows(60))
        texts.add(str(caught.value))
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert len(tally.charges) == 1
    assert len(texts) == 1 and "bad row" not in texts.pop()


def test_a_run_that_wants_more_than_planned_is_not_seen_if_it_loses(monkeypatch):
    X, y = rows(1500)
    y = (X[:, 0] > 0).astype(int)
    options = {"method": "holdout", "epsilon": 20.0}
    search = PrivateGridSearchCV(NoisyCount(), {"charged": [0.1, 1.0]}, **options).fit(X, y)
    assert search.best_params_ == {"charged": 1.0}
    with pytest.raises(SkdpError):
        search.set_params(param_grid={"charged": [0.1]}).fit(X, y)


class Needs(NoisyCount):
    """Can be trained only where one certain row is."""

    def fit(self, X, y):
        if not np.any(X[:, 1] == 7.0):
            raise ValueError("missing")
        return super().fit(X, y)


def test_a_fold_that_fails_counts_as_the_worst_and_is_not_seen():
    X, y = rows(60)
    X[5, 1] = 7.0
    search = PrivateGridSearchCV(Needs(classes=[0, 1]), {"threshold": [0.0]}, method="cv", cv=2)
    assert search.fit(X, y).best_params_ == {"threshold": 0.0}
    X[5, 1] = 0.0
    with pytest.raises(ValueError, match="failed"):
        search.fit(X, y)


ROWS = 40


class Leaving(Fragile):
    """Ends the process where others fail."""

    def predict(self, X):
        try:
            return super().predict(X)
        except ValueError:
            raise SystemExit from None


@pytest.mark.parametrize("kind", [Fragile, Leaving])
@settings(max_examples=25)
@given(spoiled=st.sets(st.integers(0, ROWS - 1), max_size=ROWS - 1))
def test_a_row_that_cannot_be_scored_counts_as_the_worst(kind, spoiled):
    """So it moves the sum by 1 at most, and moves no other row's value."""
    X, y = rows(ROWS)
    model = kind(classes=[0, 1], delta=1e-3, random_state=0).fit(X, y)
    scorer = resolve_scoring("accuracy")
    right = scorer.values(model, X, y)
    bad = X.copy()
    bad[list(spoiled), 0] = 99.0
    kept = np.setdiff1d(np.arange(ROWS), list(spoiled))
    assert _total(model, Table(bad, y), scorer) == right[kept].sum()


def test_a_score_that_no_row_has_is_a_failure():
    X, y = rows(ROWS)
    model, scorer = Fragile(classes=[0, 1]).fit(X, y), resolve_scoring("accuracy")
    assert _total(model, Table(X[:0], y[:0]), scorer) == 0.0
    with pytest.raises(ValueError, match="too large"):
        _total(model, Table(X + 99.0, y), scorer)


@pytest.mark.daily(1)
@pytest.mark.parametrize("method", METHODS)
def test_the_statement_says_what_is_assumed_of_failures(method):
    search = PrivateGridSearchCV(OperaLogisticRegression(), {"alpha": [0.1]}, method=method, cv=2)
    assert "rows do not decide whether" in str(privacy_statement(search.fit(*rows(60))))


@pytest.mark.slow
def test_the_chosen_model_does_not_tell_which_run_it_was():
    """Steps without a random state draw from the generator of the process, run after run."""
    X, y = rows(60)
    model = make_pipeline(
        RBFSampler(gamma=1.0, n_components=2), OperaLogisticRegression(1.0, 1e-4, data_norm=1.0)
    )
    chosen = []
    for _ in range(3):
        search = PrivateGridSearchCV(model, {"operalogisticregression__alpha": [0.1]}, delta=1e-3)
        chosen.append(search.fit(X, y).best_estimator_[0].random_weights_)
        assert search.best_estimator_[0].random_state is None
    drawn = [RBFSampler(gamma=1.0, n_components=2).fit(X).random_weights_ for _ in range(60)]
    assert not any(np.array_equal(one, other) for one in chosen for other in drawn)
    assert not np.array_equal(*chosen[:2])


class OwnError(SkdpError):
    def __init__(self, row, text):
        super().__init__(row, text)

    def __str__(self):
        raise RuntimeError("a secret row")


class Stubborn(NoisyCount):
    def fit(self, X, y):
        super().fit(X, y)
        if self.threshold > 1.0:
            raise OwnError(X[0], "text")
        return self


def test_errors_of_other_classes_are_not_asked_for_their_words():
    X, y = rows(1500)
    y = (X[:, 0] > 0).astype(int)
    model, options = Stubborn(classes=[0, 1]), {"method": "holdout", "epsilon": 50.0}
    search = PrivateGridSearchCV(model, {"threshold": [2.0, 0.0]}, **options)
    assert search.fit(X, y).best_params_ == {"threshold": 0.0}


def test_a_backend_that_cannot_do_it_is_refused_before_the_charge():
    tally = Tally()
    search = PrivateGridSearchCV(NoisyCount(), {"threshold": [0.0]}, accountant=tally)
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2), pytest.raises(ValueError):
        search.fit(*rows(60))
    assert not tally.charges
