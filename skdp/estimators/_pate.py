"""PATE: noisy votes of private teachers label public rows for a student."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.accounting import PLDAccountant
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import (
    Aggregation,
    check_choice,
    check_integer,
    check_real,
    parameter,
    released,
)
from skdp.base.scikit_learn import BaseEstimator, ClassifierMixin, responds
from skdp.estimators._mixins import GivenNoiseMixin
from skdp.estimators._school import (
    ASSUMPTIONS,
    School,
    assign_rows,
    check_jobs,
    check_model,
    draw_seeds,
    stored_like,
    train_student,
)
from skdp.estimators.labels import encode_labels
from skdp.fitting import FitProgress, PrivateFit
from skdp.mechanisms.random_stream import is_seeded, resolve_random_state
from skdp.plans.votes import AGGREGATIONS, UNANSWERED, Threshold, VotePlan
from skdp.reporting.leaks import WarnsOfScores
from skdp.tables.inputs import validate_private_data
from skdp.tables.places import in_memory, taken_for_granted
from skdp.tables.records import fit_context
from skdp.tables.units import units_of

_TYPES = (np.float64, np.float32)


def _student_has_shares(model: Any) -> bool:
    return not responds(model, "student_") or responds(model.student_, "predict_proba")


class PATEClassifier(WarnsOfScores, GivenNoiseMixin, PrivateFit, ClassifierMixin, BaseEstimator):
    r"""Classifier trained on public rows that private teachers label by noisy votes (PATE).

    Copies of `teacher` are trained on `n_teachers` disjoint parts of the private rows and vote on
    rows of `X_public`. The class with the largest noisy count becomes the row's label, and the
    student is trained on these labels. The labels and the student are released; teachers and votes
    are discarded.

    Notes
    -----
    Row i is assigned to teacher ``i % n_teachers``. Replacing it changes one teacher, and so one
    vote per query: two counts by 1 each, norm :math:`\sqrt 2`. Q queries with noise :math:`\sigma`
    are :math:`\sqrt{2 Q} / \sigma`-GDP. Removing a row would move all later rows to other teachers.
    Add-remove therefore requires `groups`: a digest of its id then assigns a row to a teacher.

    With metadata routing, ``set_fit_request(X_public=True)`` makes a pipeline pass `X_public` to
    `fit`, and ``Pipeline(..., transform_input=["X_public"])`` transforms it with the earlier steps.

    A teacher that cannot be trained on its part votes for the first class without an error, since
    an error would reveal information about rows. To detect mistakes, the fit first tries the
    teacher on public rows with made-up labels, before anything is charged.

    See Also
    --------
    skdp.preprocessing.TableSchema.sample_public : Synthetic public rows.

    References
    ----------
    Papernot et al. (2017), "Semi-supervised Knowledge Transfer for Deep Learning from Private
    Training Data"; Papernot et al. (2018), "Scalable Private Learning with PATE", Algorithm 1; both
    without their data-dependent epsilons, which are not guarantees. Proofs:
    :ref:`Theorems 1 to 3 of PATE <pate-1>`.

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

    _added_texts: ClassVar[dict[str, str]] = {
        "adjacency": "Add-remove requires `groups` in `fit`; a record is then all rows of one id. "
        "The noise is the same.",
    }

    teacher: Any = parameter(
        "scikit-learn classifier",
        """Classifier that is cloned and trained on each part. It must depend only on its part and
        its ``random_state`` parameters, which the fit sets.""",
        kw_only=False,
    )
    epsilon: float | None = parameter(  # type: ignore[assignment]
        "float or None",
        """Privacy parameter of one fit, positive. With `noise_multiplier` it is an upper limit: a
        fit that would exceed it is refused before any row is used. None sets no limit.""",
        default=1.0,
    )
    delta: float = parameter(
        "float", "Privacy parameter of one fit, in (0, 1); keep it well below 1/n.", default=1e-6
    )
    n_teachers: int = parameter(
        "int",
        "Number of teachers. With more teachers, noise matters less, but each has fewer rows.",
        default=250,
    )
    n_queries: int | None = parameter(
        "int or None",
        """Number of public rows that the teachers vote on: the first rows of `X_public`. Each query
        adds to the privacy cost. None uses all rows.""",
        default=None,
    )
    aggregation: Aggregation = parameter(
        '{"gaussian", "laplace", "confident-gaussian"}',
        """Noise on the votes. ``"confident-gaussian"`` answers only queries with a largest noisy
        count above `threshold`. ``"laplace"`` needs more budget.""",
        default="gaussian",
    )
    threshold: float = parameter(
        "float",
        'Share of `n_teachers` that a count must exceed with ``"confident-gaussian"``, in (0, 1].',
        default=0.8,
    )
    threshold_share: float = parameter(
        "float",
        """Share of the budget, in squared mu, for the tests of ``"confident-gaussian"``, in (0,
        1).""",
        default=0.1,
    )
    max_answers: int | None = parameter(
        "int or None",
        """Maximum number of queries answered with ``"confident-gaussian"``. The privacy cost is
        that of this number, even if fewer are answered. None uses `n_queries`.""",
        default=None,
    )
    noise_multiplier: float | None = parameter(
        "float or None",
        """Noise on a count, in votes: its standard deviation, or its scale with ``"laplace"``.
        None calibrates it to (epsilon, delta).""",
        default=None,
    )
    student: Any = parameter(
        "scikit-learn classifier or None",
        """Classifier that is trained on public rows and noisy labels. It receives labels as
        positions in `classes_`. None uses a logistic regression on standardised features.""",
        default=None,
    )
    semi_supervised: bool = parameter(
        "bool",
        """Whether the student receives all rows of `X_public`, with -1 for rows without a label.
        The default student is then `sklearn.semi_supervised.SelfTrainingClassifier`.""",
        default=False,
    )
    classes: Any = parameter(
        "array-like or None",
        "Public label set. None reads it from `y`; the privacy statement then reports this.",
        default=None,
    )
    n_jobs: int | None = parameter(
        "int or None", "Number of processes that train teachers.", default=None
    )
    classes_: np.ndarray = released("ndarray of shape (n_classes,)", "Label set.")
    student_: Any = released(
        "classifier",
        """The student, which predicts positions in `classes_`. It is constant if all labels are
        equal.""",
    )
    answered_: np.ndarray = released(
        "ndarray of shape (n_answered,)", "Positions of the labelled rows in `X_public`."
    )
    noisy_labels_: np.ndarray = released(
        "ndarray of shape (n_answered,)", "Labels of the rows in `answered_`."
    )
    n_answered_: int = released("int", "Number of labelled rows.")
    noise_multiplier_: float = released("float", "Noise on a count, in votes.")
    n_features_in_: int = released("int", "Number of features.")
    feature_names_in_: np.ndarray = released(
        "ndarray of shape (n_features,)", "Feature names, if `X` had any."
    )

    _public = (
        *("classes_", "answered_", "n_answered_", "noisy_labels_", "student_", "noise_multiplier_"),
    )
    _fit_takes = "X, y, X_public and groups"
    _beside_rows = ("X_public", "groups")

    def fit(
        self, X: Any, y: Any, X_public: Any = None, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Train teachers, label public rows by noisy votes, and train the student.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. Their order must not depend on their values.
        y : array-like of shape (n_samples,)
            Labels.
        X_public : {array-like, sparse matrix} of shape (n_public, n_features)
            Public rows; required. They must not depend on any private row.
        groups : array-like of shape (n_samples,), default=None
            Id of each row, integers or strings. None assigns rows by position.
        **fit_params : dict
            Must be empty; `sample_weight` is refused.

        Returns
        -------
        self : PATEClassifier
            The fitted estimator. Every attribute with a trailing underscore may be published.

        Raises
        ------
        ValueError, TypeError
            If parameters or input are invalid. Nothing is charged then. If the student raises,
            the charge remains and the noisy labels are stored.
        BudgetExceededError
            If the charge exceeds the remaining budget. No row is used then.
        """
        return self._fit(X, y, {"X_public": X_public, "groups": groups, **fit_params})

    def privacy_plan(self) -> PrivacySpent:
        """Return the privacy cost of `fit`; requires `n_queries` and charges nothing.

        Returns
        -------
        PrivacySpent
            The record that the fit would store in `privacy_spent_`.
        """
        self._check_parameters()
        return self._account(self._plan_queries(check_integer("n_queries", self.n_queries)))

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

    @available_if(_student_has_shares)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the student's class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``; 0 for classes without a noisy label.
        """
        known = self._student_on(X, "predict_proba")
        shares = np.zeros((len(known), self.classes_.size))
        shares[:, self.student_.classes_] = known
        return shares

    def _student_on(self, X: Any, method: str) -> Any:
        check_is_fitted(self, "student_")
        return getattr(self.student_, method)(self._validate(X))

    def _validate(self, X: Any) -> Any:
        return validate_private_data(self, X, accept_sparse="csr", dtype=_TYPES, reset=False)

    # The order of a fit.

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_model("teacher", self.teacher)
        if self.student is not None:
            check_model("student", self.student)
        check_integer("n_teachers", self.n_teachers, at_least=1)
        for name in ("n_queries", "max_answers"):
            check_integer(name, getattr(self, name), at_least=1, allowed=(None,))
        check_choice("aggregation", self.aggregation, AGGREGATIONS)
        check_real("threshold", self.threshold, above=0.0, at_most=1.0)
        check_real("threshold_share", self.threshold_share, above=0.0, below=1.0)
        check_jobs(self.n_jobs)
        check_choice("semi_supervised", self.semi_supervised, (True, False))

    def _read(self, X: Any, y: Any, params: dict[str, Any]) -> School:
        X_public = params.get("X_public")
        if X_public is None:
            raise ValueError(
                f"{type(self).__name__}.fit requires X_public=, public rows for the teachers. "
                "In a pipeline, enable metadata routing and call set_fit_request(X_public=True). "
                "TableSchema.sample_public makes public rows from a schema."
            )
        assumptions = taken_for_granted(X, y, *params.values())
        X, y, groups = in_memory(X, y, params.get("groups"))
        X, y = validate_private_data(self, X, y, accept_sparse="csr", dtype=_TYPES)
        try:
            X_public = self._validate(X_public)
        except ValueError as error:
            raise ValueError(f"X_public must have the same format as X. {error}") from None
        if self.n_queries is not None and self.n_queries > X_public.shape[0]:
            raise ValueError(
                f"n_queries must be at most the number of rows of X_public, {X_public.shape[0]}, "
                f"got {self.n_queries}. Pass more rows, or n_queries=None to use all of them."
            )
        labels, codes = encode_labels(y, self.classes)
        units = None if groups is None else units_of(groups, X.shape[0])
        teachers = assign_rows(X.shape[0], units, self.n_teachers, self._relation)
        school = School(
            *(X, codes, labels, units),
            assumptions=assumptions,
            teachers=teachers,
            X_public=stored_like(X, X_public),
        )
        school.rehearse(self.teacher, self.n_teachers, self.n_jobs)
        return school

    def _plan(self, school: School) -> VotePlan:
        return self._plan_queries(self.n_queries or school.X_public.shape[0])

    def _plan_queries(self, n_queries: int) -> VotePlan:
        threshold = None
        if self.aggregation == "confident-gaussian":
            votes = self.threshold * self.n_teachers
            most = n_queries if self.max_answers is None else self.max_answers
            threshold = Threshold.with_share(self.threshold_share, votes, n_queries, most)
        noise = 1.0 if self.noise_multiplier is None else float(self.noise_multiplier)
        kinds = self.aggregation, self._relation
        plan = VotePlan(self.n_teachers, n_queries, *kinds, noise, threshold)
        given = self.noise_multiplier is not None
        if given or self.epsilon is None:
            return plan
        return plan.calibrated(self.epsilon, self.delta)

    def _account(self, plan: VotePlan) -> PrivacySpent:
        accountant = PLDAccountant(adjacency=plan.adjacency).compose(plan.event)
        labels = "read from y" if self.classes is None else "classes="
        return self._record_of(
            plan.event,
            plan.adjacency,
            f"PATE: {plan.describe()} (Papernot et al. 2017, 2018, without data-dependent bounds; "
            "docs/proofs/pate.md)",
            (f"the label set {labels} is public", *ASSUMPTIONS),
            self._public,
            epsilon=self._claim(accountant.epsilon(self.delta)),
        )

    def _use_rows(self, plan: VotePlan, school: School, progress: FitProgress) -> Any:
        context = b""
        if is_seeded(self.random_state):
            own = fit_context(self, school.X, school.targets, school.teachers)
            context = own + fit_context(self, school.X_public)
        stream = resolve_random_state(self.random_state, context)
        seeds = draw_seeds(stream.spawn("teachers"), plan.n_teachers)
        done = progress.steps_done
        counts = school.count_votes(self.teacher, seeds, plan.n_queries, self.n_jobs, done)
        return plan.label(counts, stream), draw_seeds(stream.spawn("student"), 1)[0]

    def _public_steps(self, plan: VotePlan) -> int:
        return plan.n_teachers

    def _publish(self, plan: VotePlan, school: School, released: Any, spent: PrivacySpent) -> None:
        codes, seed = released
        self.classes_, self.noise_multiplier_ = school.labels, plan.noise
        self.answered_ = np.flatnonzero(codes != UNANSWERED)
        self.n_answered_ = self.answered_.size
        self.noisy_labels_, self.privacy_spent_ = school.labels[codes[self.answered_]], spent
        self.__dict__.pop("student_", None)  # from an earlier fit
        kind = self.student, self.semi_supervised
        self.student_ = train_student(*kind, school.X_public, codes, seed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
