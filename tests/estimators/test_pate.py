"""Students of private teachers: who teaches what, what is released, and what is refused in time."""

import pickle
import threading
import warnings
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from support import WithPublicRows, rows

from skdp import OperaLogisticRegression, PATEClassifier
from skdp.accounting import PLDAccountant
from skdp.audit import audit_epsilon
from skdp.budget import BudgetExceededError
from skdp.estimators._school import assign_rows
from skdp.mechanisms.trace import record_releases
from skdp.plans.votes import AGGREGATIONS
from skdp.preprocessing import BoundedScaler
from skdp.reporting import privacy_statement
from skdp.running import around_runs
from skdp.tables.units import units_of
from skdp.testing import FrozenStream, check_private_estimator, replay_on_neighbour

TREE = DecisionTreeClassifier(max_depth=2)


class Lock:
    """What no other process can be sent."""

    def __init__(self):
        self.held = threading.Lock()

    def __deepcopy__(self, memo):
        return self


class Locked(DecisionTreeClassifier):
    """A tree that works in its own process alone."""

    def __init__(self, lock):
        super().__init__()
        self.lock = lock


X, Y = rows(n=200)
PUBLIC = np.random.default_rng(9).normal(size=(40, 4)) / 2.0


def pate(teacher=TREE, **settings):
    return PATEClassifier(teacher, **{"n_teachers": 20, "classes": [0, 1], **settings})


def exact(**settings):
    """Return a fit without noise to speak of."""
    return pate(**{"epsilon": 1e9, "delta": 1e-3, **settings})


def counts_of(model, *table, **others):
    """Return the exact counts of votes of one fit."""
    model.set_params(random_state=FrozenStream.from_seed(3))
    with record_releases() as trace:
        model.fit(*table, **{"X_public": PUBLIC, **others})
    return trace.releases[0].value


class Refusing:
    """A budget that notes whether it was asked, and refuses."""

    def __init__(self):
        self.asked = 0

    def reserve(self, *_, **__):
        self.asked += 1
        raise BudgetExceededError("no")


class Toy(ClassifierMixin, BaseEstimator):
    """Votes for the commoner class of its part, or as a subclass says."""

    seen: ClassVar[list[float]] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.vote_ = self.choose(X, y)
        return self

    def choose(self, X, y):
        return np.bincount(y).argmax()

    def predict(self, X):
        return np.full(len(X), self.vote_)


class Remembering(Toy):
    """Reads what other teachers have left behind, which no teacher may."""

    def choose(self, X, y):
        self.seen.append(X.sum())
        return int(sum(self.seen) > 0.0)


class Gambling(Toy):
    """Draws from the generator of the process, as often as its rows say."""

    def choose(self, X, y):
        draws = np.random.rand(1 + int(X[0, 0] > 0.0))  # noqa: NPY002
        return int(draws[-1] > 0.5)


class Failing(Toy):
    """Fails on some parts, loudly, and quotes a row; warns on others."""

    def choose(self, X, y):
        print("private", X[0])
        if np.any(X > 5.0):
            raise RuntimeError(f"private {X.max()}")
        warnings.warn(f"private {X[0]}", UserWarning, stacklevel=1)
        return 1


@pytest.mark.daily(1)
@pytest.mark.parametrize("aggregation", ["gaussian", "laplace", "confident-gaussian"])
def test_a_replaced_row_moves_one_vote_of_each_query(aggregation):
    settings = {"epsilon": 4.0, "aggregation": aggregation, "threshold": 0.4}
    model = WithPublicRows(TREE, n_teachers=20, classes=[0, 1], **settings)
    moved, label = X.copy(), Y.copy()
    moved[7], label[7] = 3.0, 1 - Y[7]
    report = replay_on_neighbour(model, X, Y, moved, label)
    assert report.largest_ratio <= 1.0 and report.distances.max() > 0.0
    one, other = (counts_of(pate(**settings), *table) for table in ((X, Y), (moved, label)))
    if aggregation != "confident-gaussian":
        gaps = np.linalg.norm(one - other, axis=1)
        assert 0.0 < gaps.max() <= np.sqrt(2.0)
        assert np.all(one.sum(axis=1) == 20)


def test_a_removed_group_moves_one_vote_and_no_other_row():
    groups = np.arange(200) // 3 + 1000
    settings = {"adjacency": "add-remove", "n_teachers": 12, "teacher": KNeighborsClassifier(1)}
    for gone in (1000, 1033, 1066):
        kept = groups != gone
        one = counts_of(pate(**settings), X, Y, groups=groups)
        other = counts_of(pate(**settings), X[kept], Y[kept], groups=groups[kept])
        assert np.linalg.norm(one - other, axis=1).max() <= np.sqrt(2.0)
    texts = [f"patient {each}" for each in groups]
    model = pate(**settings).fit(X, Y, X_public=PUBLIC, groups=texts)
    assert model.privacy_spent_.adjacency == "add-remove"
    # All rows of one go to one teacher, whichever others there are.
    whole = assign_rows(200, units_of(texts), 12, "add-remove")
    assert len({(t, g) for t, g in zip(texts, whole, strict=True)}) == len(set(texts))
    part = assign_rows(100, units_of(texts[50:150]), 12, "add-remove")
    np.testing.assert_array_equal(part, whole[50:150])
    with pytest.raises(ValueError, match="requires ids as groups="):
        pate(adjacency="add-remove").fit(X, Y, X_public=PUBLIC)


def test_a_teacher_that_looks_beyond_its_part_is_found_out():
    Toy.seen.clear()
    model = WithPublicRows(Remembering(), n_teachers=20, classes=[0, 1])
    moved = X.copy()
    moved[3] = 50.0
    with pytest.raises(AssertionError, match="more than its declared sensitivity"):
        replay_on_neighbour(model, X, Y, moved, Y)
    Toy.seen.clear()


def test_draws_from_the_generator_of_the_process_reach_no_other_teacher():
    moved = X.copy()
    moved[3, 0] = -10.0 if X[3, 0] > 0.0 else 10.0
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, other = (counts_of(pate(Gambling()), table, Y) for table in (X, moved))
    assert np.linalg.norm(one - other, axis=1).max() <= np.sqrt(2.0)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_draws_of_teachers_do_not_depend_on_who_drew_before(jobs):
    """Wherever they are trained, and also within another silence, as in searches."""
    gambling = GridSearchCV(TREE, {"max_depth": [1, 3]}, cv=KFold(2, shuffle=True))
    with around_runs():
        np.random.random(3)  # noqa: NPY002
        found = counts_of(pate(gambling, n_jobs=jobs), X, Y)
    assert (found == counts_of(pate(gambling), X, Y)).all()


@pytest.mark.slow
def test_teachers_keep_no_callbacks_caches_workers_or_words(tmp_path, capfd):
    steps = [("scale", BoundedScaler(-9.0, 9.0)), ("tree", SVC(verbose=True))]
    teacher = Pipeline(steps, memory=str(tmp_path))
    counts_of(pate(teacher), X, Y)
    counts_of(pate(GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=2, n_jobs=2, verbose=3)), X, Y)
    assert capfd.readouterr() == ("", "") and not any(tmp_path.iterdir())
    if hasattr(LogisticRegression, "set_callbacks"):
        heard = Hearing()
        counts_of(pate(LogisticRegression().set_callbacks(heard)), X, Y)
        assert not heard.fits


def test_teachers_that_leave_are_taken_for_failed():
    assert (counts_of(pate(Leaving()), X, Y)[:, 0] > 0).all()


def test_sparse_and_dense_rows_are_brought_together():
    dense = counts_of(pate(), X, Y)
    for table, public in ((csr_array(X), PUBLIC), (X, csr_array(PUBLIC))):
        assert (counts_of(pate(), table, Y, X_public=public) == dense).all()


def test_failures_are_silent_and_vote_for_the_first_class(capfd):
    hot = X.copy()
    hot[[0, 21, 42]] = 10.0
    both = np.tile([0, 1], 100)
    both[3::20] = np.tile([0, 1], 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = counts_of(exact(teacher=Failing()), hot, np.repeat([0, 1], 100))
    np.testing.assert_array_equal(counts, np.tile([3.0, 17.0], (40, 1)))
    assert capfd.readouterr() == ("", "")


def test_parts_of_one_class_vote_for_it_and_empty_ones_for_the_first():
    counts = counts_of(exact(classes=[0, 1, 2]), X, np.where(np.arange(200) % 20 < 5, 2, 1))
    np.testing.assert_array_equal(counts, np.tile([0.0, 15.0, 5.0], (40, 1)))
    groups = np.zeros(200, dtype=int)
    counts = counts_of(exact(), X, np.ones(200, dtype=int), groups=groups)
    np.testing.assert_array_equal(counts, np.tile([19.0, 1.0], (40, 1)))


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("settings", "others", "message"),
    [
        ({}, {"X_public": None}, "requires X_public="),
        ({}, {"X_public": PUBLIC[:, :2]}, "X_public must have the same format as X"),
        ({}, {"X_public": np.full((3, 4), np.nan)}, "X_public must have the same format as X"),
        ({"n_queries": 41}, {}, "at most the number of rows of X_public, 40, got 41"),
        ({"n_teachers": 201}, {}, "n_teachers=201 is larger than the number of rows, 200"),
        ({"aggregation": "confident-gaussian", "max_answers": 41}, {}, "exceeds the 40 queries"),
        ({"aggregation": "max"}, {}, "aggregation must be one of"),
        ({"threshold": 0.0}, {}, "threshold must be"),
        ({"threshold_share": 1.0}, {}, "threshold_share must be"),
        ({"teacher": LogisticRegression(C=-1.0)}, {}, "Nothing was charged"),
        ({"teacher": LogisticRegression}, {}, "must be a scikit-learn classifier"),
        ({"student": "tree"}, {}, "must be a scikit-learn classifier"),
        ({"n_jobs": 0}, {}, "n_jobs must be"),
        ({"teacher": Locked(Lock()), "n_jobs": 2}, {}, "Nothing was charged"),
        ({"teacher": DecisionTreeClassifier().fit(X, Y)}, {}, "is fitted already"),
        ({"teacher": OperaLogisticRegression()}, {}, "must not be a private estimator"),
        ({}, {"groups": [float("nan")] * 200}, "groups has missing ids"),
        ({"epsilon": None}, {}, "requires noise_multiplier"),
        ({"noise_multiplier": 1.0}, {}, "which exceeds epsilon=1"),
        ({}, {"groups": [1, 2]}, "groups must hold"),
        ({}, {"groups": np.arange(200) / 3.0}, "groups must hold"),
        ({}, {"groups": np.ones((200, 2), dtype=int)}, "groups must hold"),
        ({}, {"sample_weight": np.ones(200)}, "does not support sample_weight"),
        ({}, {"colour": 1}, "accepts X, y, X_public and groups"),
    ],
)
def test_what_is_wrong_is_said_before_the_charge(settings, others, message):
    budget = Refusing()
    with pytest.raises((ValueError, TypeError), match=message):
        pate(accountant=budget, **settings).fit(X, Y, **{"X_public": PUBLIC, **others})
    assert budget.asked == 0


def test_a_refused_charge_trains_no_teacher():
    Toy.seen.clear()
    with pytest.raises(BudgetExceededError):
        pate(Remembering(), accountant=Refusing()).fit(X, Y, X_public=PUBLIC)
    assert len(Toy.seen) == 1  # of the rehearsal on public rows


def test_the_record_is_known_beforehand_and_numbers_may_be_of_any_type():
    model = pate(epsilon=2.0, n_queries=10).fit(X, Y, X_public=PUBLIC)
    assert model.privacy_spent_ == model.privacy_plan()
    assert model.privacy_spent_.epsilon <= 2.0 and model.answered_.tolist() == list(range(10))
    typed = pate(epsilon=np.float32(2.0), n_queries=np.int8(10), n_teachers=np.int16(20))
    assert typed.privacy_plan() == model.privacy_spent_
    given = pate(epsilon=None, noise_multiplier=30.0, n_queries=10).privacy_plan()
    event = PLDAccountant("replace-one").compose(given.event)
    assert given.epsilon == float(event.epsilon(1e-6))
    for name in model.privacy_spent_.released:
        assert hasattr(model, name)
    with pytest.raises(TypeError, match="n_queries"):
        pate().privacy_plan()


def test_students_learn_from_labels_of_any_kind():
    names = np.array(["no", "yes"])
    model = exact(classes=names, n_queries=30).fit(X, names[Y], X_public=PUBLIC)
    assert set(model.noisy_labels_) == {"no", "yes"} and model.n_answered_ == 30
    assert model.score(X, names[Y]) > 0.7
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert not hasattr(exact(student=RidgeClassifier()).fit(X, Y, X_public=PUBLIC), "predict_proba")
    # A class called -1 is not taken for a missing label.
    signs = 2 * Y - 1
    student = LabelSpreading(kernel="knn", n_neighbors=5)
    for settings in ({}, {"student": student}):
        model = exact(classes=[-1, 1], n_queries=20, semi_supervised=True, **settings)
        assert model.fit(X, signs, X_public=PUBLIC).score(X, signs) > 0.65


def test_a_student_that_fails_leaves_the_labels_that_were_paid_for():
    model = exact(student=LogisticRegression(C=-1.0))
    with pytest.raises(ValueError, match="'C' parameter"):
        model.fit(X, Y, X_public=PUBLIC)
    assert model.n_answered_ == 40 and model.privacy_spent_ == exact(n_queries=40).privacy_plan()


def test_one_class_or_no_answer_makes_a_constant():
    model = exact(classes=[4, 5, 6]).fit(X, np.full(200, 5), X_public=PUBLIC)
    assert set(model.predict(X)) == {5} and model.predict_proba(X)[0].tolist() == [0.0, 1.0, 0.0]
    hard = pate(aggregation="confident-gaussian", epsilon=None, noise_multiplier=1e-2, threshold=1)
    model = hard.fit(X, np.arange(200) // 20 % 2, X_public=PUBLIC)
    assert model.n_answered_ == 0 and model.noisy_labels_.size == 0
    assert set(model.predict(X)) == {0}


def test_seeds_repeat_a_fit_and_share_nothing_with_others():
    one, again, other = (
        pate(random_state=seed, epsilon=0.5).fit(X, Y, X_public=PUBLIC) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.noisy_labels_, again.noisy_labels_)
    assert one.privacy_spent_.seeded and not pate(n_queries=1).privacy_plan().seeded
    assert np.any(one.noisy_labels_ != other.noisy_labels_)
    releases = []
    for public in (PUBLIC, PUBLIC + 1e-9):
        with record_releases() as trace:
            pate(random_state=1).fit(X, Y, X_public=public)
        releases.append(trace.releases[0])
    noise = [each.output - each.value for each in releases]
    assert np.all(noise[0] != noise[1])


@pytest.mark.slow
def test_teachers_of_one_name_share_no_noise():
    """As where a cell of a notebook is edited and run again."""

    def noise(vote):
        class Stubborn(Toy):
            def choose(self, X, y):
                return vote

        model = pate(Stubborn(), random_state=5)
        with record_releases() as trace:
            model.fit(X, Y, X_public=PUBLIC)
        return np.round(trace.releases[0].output - trace.releases[0].value, 6)

    assert np.array_equal(noise(1), noise(1)) and not np.isin(noise(0), noise(1)).any()


def test_public_rows_go_through_a_pipeline():
    steps = [("scale", BoundedScaler(lower=-1.0, upper=1.0)), ("pate", exact())]
    with sklearn.config_context(enable_metadata_routing=True):
        steps[1][1].set_fit_request(X_public=True)
        model = Pipeline(steps, transform_input=["X_public"]).fit(X, Y, X_public=PUBLIC)
    assert model.score(X, Y) > 0.7
    statement = privacy_statement(model)
    assert statement.to_dict()["holds_for_the_whole"]
    assert "teachers and exact votes are dropped" in str(statement.to_dict())


def test_nothing_of_teachers_is_left():
    model = pate().fit(X, Y, X_public=PUBLIC)
    held = pickle.dumps(SimpleNamespace(**vars(model)))
    assert X[17].tobytes() not in held and PUBLIC[0].tobytes() not in held
    assert set(model.privacy_spent_.released) | {"n_features_in_", "privacy_spent_"} == {
        name for name in vars(model) if name.endswith("_")
    }


@pytest.mark.parametrize(
    "aggregation",
    ["gaussian", *(pytest.param(a, marks=pytest.mark.slow) for a in AGGREGATIONS[1:])],
)
def test_it_passes_the_checks_for_private_estimators(aggregation):
    model = WithPublicRows(
        TREE, n_teachers=6, classes=[0, 1], aggregation=aggregation, threshold=0.5
    )
    model.n_public = 20
    results = check_private_estimator(model, n_draws=2000)
    # The price follows from the number of public rows, which a plan does not know.
    skipped = [each["check_name"] for each in results if each["status"] != "passed"]
    assert skipped == ["check_the_plan_is_what_the_fit_charges"]


class Hearing:
    """A callback of scikit-learn that counts fits."""

    fits = 0

    def setup(self, estimator, context):
        self.fits += 1

    def teardown(self, estimator, context):
        self.fits += 1

    def on_fit_task_begin(self, estimator, context, **_):
        self.fits += 1

    def on_fit_task_end(self, estimator, context, **_):
        self.fits += 1


class Leaving(Toy):
    """Leaves the process on some parts."""

    def choose(self, X, y):
        if np.any(X > 0.0) and len(X) == 10 and X[0, 0] > 0.0:
            raise SystemExit("private")
        return 1


class Copying(Toy):
    """Votes by the last row's sign: the worst that one row can do."""

    def choose(self, X, y):
        return int(X[-1, 0] > 0.0)


@pytest.mark.slow
def test_an_audit_comes_close_to_the_claim_and_never_above():
    others, labels = np.tile([0.5, -0.5], 4)[:, None], np.repeat([0, 1], 4)
    changed = others.copy()
    changed[-1] = 0.5
    settings = {"n_teachers": 4, "n_queries": 3, "epsilon": 12.0, "delta": 1e-5}
    result = audit_epsilon(
        WithPublicRows(Copying(), classes=[0, 1], **settings),
        others,
        labels,
        neighbour=(changed, labels),
        n_trials=100,
        release="all",
        random_state=0,
    )
    assert not result.violated and 0.4 < result.tightness <= 1.0
