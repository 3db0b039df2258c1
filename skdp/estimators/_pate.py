"""A student of private teachers: noisy votes of many models label public rows."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_array, check_is_fitted

from skdp.accounting import PLDAccountant
from skdp.estimators._mixins import GivenNoiseMixin
from skdp.estimators.labels import encode_labels
from skdp.fitting import CallbackSupportMixin, FitProgress, PrivateFit, with_callbacks
from skdp.inputs import validate_private_data
from skdp.mechanisms.random_stream import RandomStream, is_seeded, resolve_random_state
from skdp.parameters import check_choice, check_integer, check_real
from skdp.plans.votes import AGGREGATIONS, UNANSWERED, Threshold, VotePlan
from skdp.reporting import PrivacySpent
from skdp.seeding import fit_context
from skdp.silence import around_runs

_TYPES = (np.float64, np.float32)
_NOISE = {
    "gaussian": "Gaussian noise of standard deviation {noise:.6g} on every count of votes",
    "laplace": "Laplace noise of scale {noise:.6g} on every count of votes (a vote moves two)",
    "confident-gaussian": "Gaussian noise of standard deviation {noise:.6g} on every count of "
    "votes of at most {answers} queries, those whose largest count, with noise of standard "
    "deviation {test:.6g}, exceeds {votes:g}",
}


@dataclass(frozen=True)
class PublicRowsAndParts:
    """Valid private rows with the teacher of each, and the public rows that are to be labelled."""

    X: Any
    codes: np.ndarray
    labels: np.ndarray
    teachers: np.ndarray
    X_public: Any
    by_groups: bool

    @property
    def n_rows(self) -> int:
        """Number of private rows."""
        return int(self.X.shape[0])

    def parts(self, n_teachers: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield rows and labels of each teacher, in the table's order."""
        order = np.argsort(self.teachers, kind="stable")
        ends = np.cumsum(np.bincount(self.teachers, minlength=n_teachers))
        for own in np.split(order, ends[:-1]):
            yield self.X[own], self.labels[self.codes[own]]


class PATEClassifier(
    GivenNoiseMixin, PrivateFit, CallbackSupportMixin, ClassifierMixin, BaseEstimator
):
    r"""A student trained on public rows that private teachers have labelled by noisy votes (PATE).

    The private rows are cut into `n_teachers` disjoint parts, and a copy of `teacher` is trained on
    each. The teachers vote on rows of `X_public`; noise is added to the counts, and the class with
    the largest noisy count becomes the row's label. The student is trained on these labels. Only
    labels and student leave the fit: teachers and votes are dropped.

    Parameters
    ----------
    teacher : scikit-learn classifier
        Cloned for each part. It must be a function of its part and of its parameters
        ``random_state``, which the fit sets.
    epsilon : float or None, default=1.0
        Privacy parameter of one fit, positive. With `noise_multiplier` given it is a ceiling: a fit
        that would spend more is refused before rows are used; None sets no ceiling.
    delta : float, default=1e-6
        Privacy parameter of one fit, in (0, 1); keep it well below 1/n.
    n_teachers : int, default=250
        Number of teachers, which is public. More teachers hide more noise, and have fewer rows.
    n_queries : int or None, default=None
        Number of public rows that the teachers vote on: the first ones of `X_public`. Each is paid
        for. None takes all rows.
    aggregation : {"gaussian", "laplace", "confident-gaussian"}, default="gaussian"
        Noise on the votes. ``"confident-gaussian"`` answers only queries whose largest noisy count
        exceeds `threshold`. ``"laplace"`` is dearer.
    threshold : float, default=0.8
        Of ``"confident-gaussian"``: share of `n_teachers` to exceed, in (0, 1].
    threshold_share : float, default=0.1
        Of ``"confident-gaussian"``: share of the budget, in squared mu, for the tests; in (0, 1).
    max_answers : int or None, default=None
        Of ``"confident-gaussian"``: how many queries are answered at most; these are paid for,
        whether there are as many or not. None takes `n_queries`.
    noise_multiplier : float or None, default=None
        Noise on a count over one vote: a standard deviation, of ``"laplace"`` the scale. None
        calibrates it to (epsilon, delta).
    student : scikit-learn classifier or None, default=None
        Trained on public rows and noisy labels, which are given to it as positions in `classes_`.
        None takes a logistic regression on standardised features.
    semi_supervised : bool, default=False
        Whether the student is given all rows of `X_public`, those without a label as -1, for
        example `sklearn.semi_supervised.SelfTrainingClassifier`, which is then the default.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring tables: one row replaced, or one added or removed, which needs `groups` in
        `fit`. The noise is the same. With `groups` it is all rows of one group.
    classes : array-like or None, default=None
        Public label set. None reads it from `y`, which the statement then says.
    accountant : BudgetAccountant or None, default=None
        Budget that the fit charges.
    n_jobs : int or None, default=None
        Number of processes that train teachers.
    random_state : None, int, RandomState or RandomStream, default=None
        Source of noise; None draws from the operating system. A seed makes fits repeatable and
        voids the guarantee against whoever knows it.
    verbose : int, default=0
        Print what is spent.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Label set.
    answered_ : ndarray of shape (n_answered_,)
        Which rows of `X_public` were labelled.
    noisy_labels_ : ndarray of shape (n_answered_,)
        Their labels.
    n_answered_ : int
        Number of labelled rows.
    student_ : classifier
        The student, which predicts positions in `classes_`. Where all labels are the same, or none
        was given, it is a constant.
    noise_multiplier_ : float
        Noise on a count.
    privacy_spent_ : PrivacySpent
        What the fit spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names, if `X` had any.

    Notes
    -----
    *Sensitivity.* A row belongs to the teacher of its position, ``i % n_teachers``. Replacing it
    changes one teacher, so one vote in every query: two counts by 1 each, norm :math:`\sqrt 2`. Q
    queries with noise :math:`\sigma` are :math:`\sqrt{2 Q} / \sigma`-GDP. A removed row would shift
    all later positions to other teachers: under add-remove adjacency parts are made by `groups`,
    by a digest of each row's own id. Ids may name persons: the guarantee is for all rows of one.

    *Pipelines.* With scikit-learn's metadata routing, ``set_fit_request(X_public=True)`` lets a
    pipeline pass `X_public` on; ``Pipeline(..., transform_input=["X_public"])`` also transforms it
    by the steps before.

    *Failures.* A teacher that cannot be trained on its part votes for the first class, silently: an
    error would tell of private rows. So that mistakes are heard, the fit first tries the teacher on
    public rows with made-up labels, before anything is charged.

    See Also
    --------
    skdp.preprocessing.TableSchema.sample_public : Public rows where there are none.

    References
    ----------
    Papernot, Abadi, Erlingsson, Goodfellow & Talwar (2017), "Semi-supervised Knowledge Transfer for
    Deep Learning from Private Training Data". Papernot et al. (2018), "Scalable Private Learning
    with PATE", Algorithm 1. Their data-dependent epsilons are private values and no guarantees;
    none are used here. Proof: ``docs/proofs/pate.md``.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp import PATEClassifier
    >>> X, y = make_blobs(1100, centers=2, random_state=0)
    >>> clf = PATEClassifier(DecisionTreeClassifier(), n_teachers=50, n_queries=20, classes=[0, 1])
    >>> clf = clf.fit(X[:1000], y[:1000], X_public=X[1000:])
    >>> clf.noisy_labels_.shape, clf.privacy_spent_.epsilon <= 1.0
    ((20,), True)
    """

    _public = (
        *("classes_", "answered_", "noisy_labels_", "n_answered_", "student_"),
        "noise_multiplier_",
    )
    _fit_takes = "X, y, X_public and groups"

    def __init__(
        self,
        teacher: Any,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        n_teachers: int = 250,
        n_queries: int | None = None,
        aggregation: str = "gaussian",
        threshold: float = 0.8,
        threshold_share: float = 0.1,
        max_answers: int | None = None,
        noise_multiplier: float | None = None,
        student: Any = None,
        semi_supervised: bool = False,
        adjacency: str = "replace-one",
        classes: Any = None,
        accountant: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.teacher = teacher
        self.epsilon = epsilon
        self.delta = delta
        self.n_teachers = n_teachers
        self.n_queries = n_queries
        self.aggregation = aggregation
        self.threshold = threshold
        self.threshold_share = threshold_share
        self.max_answers = max_answers
        self.noise_multiplier = noise_multiplier
        self.student = student
        self.semi_supervised = semi_supervised
        self.adjacency = adjacency
        self.classes = classes
        self.accountant = accountant
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self, X: Any, y: Any, X_public: Any = None, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Train teachers, label public rows by their noisy votes, and train the student.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. The place of a row must not depend on what rows hold.
        y : array-like of shape (n_samples,)
            Labels.
        X_public : {array-like, sparse matrix} of shape (n_public, n_features)
            Public rows, needed. No private row may have shaped or chosen them.
        groups : array-like of shape (n_samples,), default=None
            Whole numbers or texts that say whom a row is about. All rows of one go to one teacher.
            None goes by position.
        **fit_params : dict
            Must be empty. `sample_weight` is refused.

        Returns
        -------
        self : PATEClassifier
            The fitted classifier; every attribute with a trailing underscore is private and may be
            published.

        Raises
        ------
        ValueError, TypeError
            For bad parameters or input, before anything is charged. Errors of the student, which
            comes last, leave the noisy labels behind.
        BudgetExceededError
            If the accountant cannot take the charge; the rows are not used then.
        """
        self._refuse_fit_params(fit_params)
        return self._fit(X, y, {"X_public": X_public, "groups": groups})

    def privacy_plan(self, n_queries: int | None = None) -> PrivacySpent:
        """Return what `fit` would spend; nothing is charged and no data are needed.

        Parameters
        ----------
        n_queries : int or None, default=None
            Number of public rows to vote on, where the parameter `n_queries` does not say.

        Returns
        -------
        PrivacySpent
            The record that `privacy_spent_` would be.

        Raises
        ------
        ValueError, TypeError
            For bad parameters, as `fit` does.
        """
        self._check_parameters()
        if self.n_queries is None:
            n_queries = check_integer("n_queries", n_queries, at_least=1)
        return self._account(self._plan_queries(n_queries or 0))

    def predict(self, X: Any) -> np.ndarray:
        """Return the student's labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        codes = self._student_on(X, "predict")
        return self.classes_[np.asarray(codes, dtype=int)]

    @available_if(lambda self: hasattr(getattr(self, "student_", LogisticRegression), "predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the student's class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``; 0 for classes that no noisy label names.
        """
        known = self._student_on(X, "predict_proba")
        shares = np.zeros((len(known), self.classes_.size))
        shares[:, self.student_.classes_] = known
        return shares

    def _student_on(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        X = validate_private_data(self, X, accept_sparse="csr", dtype=_TYPES, reset=False)
        return getattr(self.student_, method)(X)

    # The order of a fit.

    def _refuse_fit_params(self, params: dict[str, Any]) -> None:
        own = {"X_public", "groups"}
        super()._refuse_fit_params({k: v for k, v in params.items() if k not in own})

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("teacher", "student"):
            given = getattr(self, name)
            if name == "student" and given is None:
                continue
            if isinstance(given, type) or not all(hasattr(given, m) for m in ("fit", "predict")):
                raise TypeError(f"{name} must be a scikit-learn classifier, got {given!r}.")
            clone(given)
        check_integer("n_teachers", self.n_teachers, at_least=1)
        check_integer("n_queries", self.n_queries, at_least=1, allowed=(None,))
        check_integer("max_answers", self.max_answers, at_least=1, allowed=(None,))
        check_choice("aggregation", self.aggregation, AGGREGATIONS)
        check_real("threshold", self.threshold, above=0.0, at_most=1.0)
        check_real("threshold_share", self.threshold_share, above=0.0, below=1.0)
        check_choice("semi_supervised", self.semi_supervised, (True, False))

    def _read(self, X: Any, y: Any, params: dict[str, Any]) -> PublicRowsAndParts:
        X_public, groups = params["X_public"], params["groups"]
        if X_public is None:
            raise ValueError(
                f"{type(self).__name__}.fit needs X_public=, public rows for the teachers to vote "
                "on. In a pipeline, enable metadata routing and request it by "
                "set_fit_request(X_public=True). Without public rows, see TableSchema.sample_public."
            )
        X, y = validate_private_data(self, X, y, accept_sparse="csr", dtype=_TYPES)
        X_public = check_array(
            X_public, accept_sparse="csr", dtype=_TYPES, input_name="X_public"
        )
        if X_public.shape[1] != X.shape[1]:
            raise ValueError(f"X_public has {X_public.shape[1]} features, X has {X.shape[1]}.")
        n_queries = self._n_queries(X_public.shape[0])
        if n_queries > X_public.shape[0]:
            raise ValueError(
                f"n_queries={n_queries}, but X_public has {X_public.shape[0]} rows: give more rows, "
                "or n_queries=None to ask about all of them."
            )
        labels, codes = encode_labels(y, self.classes)
        teachers = self._assign(X.shape[0], groups)
        table = PublicRowsAndParts(X, codes, labels, teachers, X_public, groups is not None)
        self._rehearse(table)
        return table

    def _n_queries(self, n_public: int) -> int:
        return n_public if self.n_queries is None else self.n_queries

    def _assign(self, n_rows: int, groups: Any) -> np.ndarray:
        """Return the teacher of each row, by its place or by the id of its group alone."""
        if groups is not None:
            return _assign_groups(groups, n_rows, self.n_teachers)
        if self.adjacency == "add-remove":
            raise ValueError(
                "adjacency='add-remove' needs groups= in fit, an id for each row: without a row, "
                "all later ones would move to other teachers. Or use adjacency='replace-one'."
            )
        if self.n_teachers > n_rows:
            raise ValueError(
                f"n_teachers={self.n_teachers} is larger than the number of rows, {n_rows}: every "
                "teacher needs rows, some hundreds if possible."
            )
        return np.arange(n_rows) % self.n_teachers

    def _rehearse(self, table: PublicRowsAndParts) -> None:
        """Try the teacher on public rows with made-up labels, as many as a part has rows."""
        count = -(-table.n_rows // self.n_teachers)
        n_public = table.X_public.shape[0]
        if count < 2:
            return
        rows, y = table.X_public[np.arange(count) % n_public], np.resize(table.labels, count)
        try:
            with around_runs():
                train_and_vote(self.teacher, 0, rows, y, table.X_public[:1], table.labels)
        except Exception as error:
            raise ValueError(
                f"the teacher fails on {count} public rows with made-up labels, as many as a part "
                f"has rows: {error}. Nothing was charged. Mend its parameters, or take fewer "
                "teachers, which have more rows each."
            ) from error

    def _plan(self, table: PublicRowsAndParts) -> VotePlan:
        return self._plan_queries(table.X_public.shape[0])

    def _plan_queries(self, n_public: int) -> VotePlan:
        n_queries = self._n_queries(n_public)
        max_answers = n_queries if self.max_answers is None else self.max_answers
        threshold = None
        if self.aggregation == "confident-gaussian":
            if max_answers > n_queries:
                raise ValueError(f"max_answers={max_answers} exceeds the {n_queries} queries.")
            votes = self.threshold * self.n_teachers
            share = self.threshold_share
            threshold = Threshold.with_share(votes, share, n_queries, max_answers)
        settings = {
            "n_teachers": self.n_teachers,
            "n_queries": n_queries,
            "aggregation": self.aggregation,
            "threshold": threshold,
        }
        if self.noise_multiplier is None:
            return VotePlan.calibrated(self.epsilon, self.delta, self.adjacency, **settings)
        noise = float(self.noise_multiplier)
        return VotePlan(adjacency=self.adjacency, noise=noise, **settings)

    def _account(self, plan: VotePlan) -> PrivacySpent:
        accountant = PLDAccountant(adjacency=plan.adjacency).compose(plan.event)
        bar = plan.threshold
        noise = _NOISE[plan.aggregation].format(
            noise=plan.noise,
            answers=bar and bar.max_answers,
            test=bar and bar.ratio * plan.noise,
            votes=bar and bar.votes,
        )
        return PrivacySpent(
            epsilon=self._claim(accountant.epsilon(self.delta)),
            delta=float(self.delta),
            adjacency=plan.adjacency,
            event=plan.event,
            accountant="pld",
            mechanism=(
                f"PATE: {plan.n_teachers} teachers on disjoint parts vote on {plan.n_queries} "
                f"public rows; {noise} (Papernot et al. 2017, 2018, without data-dependent bounds; "
                "docs/proofs/pate.md)"
            ),
            assumptions=(
                "the number of rows, the columns and all parameters are public; so are the rows of "
                "X_public, which no private row has shaped or chosen",
                "the label set was read from y and is taken to be public"
                if self.classes is None
                else "the label set classes= is public",
                "a record reaches one teacher, that of its place in the table or of its id in "
                "groups=: no place and no id depends on what rows hold or on which others there "
                "are, and with groups= a record is all rows of one id",
                "a teacher is a function of its part and its random_state: it reads nothing else "
                "that rows have shaped, and writes no file",
                "teachers and exact votes are dropped when the fit ends",
            ),
            released=self._public,
            seeded=is_seeded(self.random_state),
        )

    def _use_rows(
        self, plan: VotePlan, table: PublicRowsAndParts, progress: FitProgress
    ) -> tuple[np.ndarray, int]:
        context = b""
        if is_seeded(self.random_state):
            own = fit_context(self, table.X, table.codes, table.teachers)
            context = own + fit_context(self, table.X_public)
        stream = resolve_random_state(self.random_state, context)
        queries = table.X_public[: plan.n_queries]
        seeds = _draw_seeds(stream.spawn("teachers"), plan.n_teachers)
        # Nothing is put on the disk for the processes to share: parts are private.
        ballots = Parallel(
            n_jobs=self.n_jobs, backend="loky", max_nbytes=None, return_as="generator"
        )(
            delayed(vote)(self.teacher, seed, *part, queries, table.labels)
            for seed, part in zip(seeds, table.parts(plan.n_teachers), strict=True)
        )
        counts = np.zeros((plan.n_queries, table.labels.size))
        for done, codes in enumerate(ballots, start=1):
            counts[np.arange(plan.n_queries), codes] += 1.0
            progress.steps_done(done)
        return plan.label(counts, stream), _draw_seeds(stream.spawn("student"), 1)[0]

    def _public_steps(self, plan: VotePlan) -> int:
        return plan.n_teachers

    def _publish(
        self,
        plan: VotePlan,
        table: PublicRowsAndParts,
        released: tuple[np.ndarray, int],
        spent: PrivacySpent,
    ) -> None:
        codes, seed = released
        self.classes_ = table.labels
        self.noise_multiplier_ = plan.noise
        self.answered_ = np.flatnonzero(codes != UNANSWERED)
        self.n_answered_ = self.answered_.size
        self.noisy_labels_ = table.labels[codes[self.answered_]]
        self.student_ = self._train_student(table.X_public, codes, seed)

    def _train_student(self, X_public: Any, codes: np.ndarray, seed: int) -> Any:
        answered = np.flatnonzero(codes != UNANSWERED)
        known = np.unique(codes[answered])
        if known.size < 2:
            constant = known[0] if known.size else 0
            student = DummyClassifier(strategy="constant", constant=constant)
            return student.fit(X_public[:1], [constant])
        student = self.student
        if student is None:
            student = make_pipeline(
                StandardScaler(with_mean=False), LogisticRegression(max_iter=1000)
            )
            student = SelfTrainingClassifier(student) if self.semi_supervised else student
        student = seeded_clone(student, seed)
        if not self.semi_supervised:
            return student.fit(X_public[answered], codes[answered])
        unlabelled = np.full(X_public.shape[0] - codes.size, UNANSWERED)
        return student.fit(X_public, np.concatenate([codes, unlabelled]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _assign_groups(groups: Any, n_rows: int, n_teachers: int) -> np.ndarray:
    ids = np.asarray(groups).tolist()
    if len(ids) != n_rows or not all(
        isinstance(each, str | numbers.Integral) and not isinstance(each, bool) for each in ids
    ):
        raise ValueError(
            f"groups must hold a whole number or a text for each of the {n_rows} rows."
        )
    digests = (hashlib.blake2b(str(each).encode(), digest_size=8).digest() for each in ids)
    return np.array([int.from_bytes(digest, "little") % n_teachers for digest in digests])


def _draw_seeds(stream: RandomStream, count: int) -> list[int]:
    return [int(word) for word in stream.words(count) >> np.uint64(33)]


def seeded_clone(estimator: Any, seed: int) -> Any:
    """Return a clone with one seed in all parameters called random_state, also of its parts."""
    names = (name for name in estimator.get_params() if name.split("__")[-1] == "random_state")
    return clone(estimator).set_params(**dict.fromkeys(names, seed))


def vote(teacher: Any, seed: int, X: Any, y: np.ndarray, queries: Any, labels: Any) -> np.ndarray:
    """Return the classes that a teacher votes for, one a query; without a word, whatever happens.

    A part of one class votes for it, an empty one for the first class, as one that fails does.
    """
    present = np.unique(y)
    if present.size < 2:
        code = np.searchsorted(labels, present[0]) if present.size else 0
        return np.full(queries.shape[0], code)
    try:
        with around_runs():
            return train_and_vote(teacher, seed, X, y, queries, labels)
    except Exception:
        return np.zeros(queries.shape[0], dtype=int)


def train_and_vote(
    teacher: Any, seed: int, X: Any, y: np.ndarray, queries: Any, labels: np.ndarray
) -> np.ndarray:
    """Train a teacher on its part and return the positions of its answers among the labels."""
    answers = np.asarray(seeded_clone(teacher, seed).fit(X, y).predict(queries))
    if answers.shape != (queries.shape[0],):
        raise ValueError(f"its predictions have shape {answers.shape}, not one label a row")
    codes = np.minimum(np.searchsorted(labels, answers), labels.size - 1)
    if np.any(labels[codes] != answers):
        raise ValueError("its predictions are not all among the labels")
    return codes
