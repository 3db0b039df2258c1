"""`PrivateEvaluation`: a public model's performance on private rows, from one charged release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from skdp.choices import Auto
from skdp.estimators.labels import encode_labels
from skdp.inputs import validate_column
from skdp.mechanisms.contribution import Adjacency
from skdp.mechanisms.random_stream import resolve_random_state
from skdp.metrics.base import EvaluatesModel
from skdp.metrics.examination import examine_model
from skdp.metrics.record import FIGURES
from skdp.metrics.release import ReleasePlan
from skdp.metrics.result import PrivateEvaluationResult
from skdp.parameters import check_integer, check_real
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.row_scores import Way
from skdp.seeding import fit_context
from skdp.statistics.noise import UNIT
from skdp.tables.places import Columns, taken_for_granted
from skdp.units import units_of

_ASSUMPTIONS = (
    "the model is public: what it learned of private rows was paid for by its own fit",
    "a row's score is a function of that row and the model alone",
    "the label set, subgroups, thresholds and all parameters are public",
)


class _Rows(NamedTuple):
    """What was checked before the charge: labels, subgroups, and what each row weighs."""

    codes: np.ndarray
    members: np.ndarray
    weights: np.ndarray | None
    n: int


class PrivateEvaluation(EvaluatesModel):
    """Performance of a public model on private rows: every figure with an interval, one charge.

    The scores of the rows are counted in public bins, by label; noise is added to the counts, once.
    Accuracy, sensitivity, specificity, predictive values, ROC and precision-recall curves and their
    areas, Brier score and calibration follow from them and cost nothing more.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter in nats, positive.
    delta : float, default=1e-6
        Failure probability, in (0, 1), well below 1/n.
    thresholds : sequence of floats, default=(0.5,)
        Probabilities in (0, 1). A row is predicted to be positive if its score reaches a threshold;
        figures are sharpest at those that are declared here.
    n_bins : int or "auto", default="auto"
        Number of bins, at least 10, densest where scores are; ``"auto"`` takes 10 to 44 by n and
        the noise. Thresholds are among their edges.
    score_values : array of shape (n_values,) or None, default=None
        The values that scores can take, if they are few, as those of the leaves of a tree: each is
        a bin of its own. They are to be read off the model or its rounding, never off scores. No
        budget is spent on where bins lie then.
    adjacency : {"add-remove", "replace-one"} or None, default=None
        Which tables are neighbours: one has a row more, the number n that figures are divided by
        being public and unchanged, or one row is another. None takes the relation that the budget
        counts in, and add-remove where nothing is charged.
    accountant : BudgetAccountant or None, default=None
        Budget to charge; None takes that of the ``with`` block around the call.
    classes : sequence or None, default=None
        The public label set; None takes ``classes_`` of the model. Of two classes the last in
        sorted order is positive; of more each has a table against the others.
    subgroups : sequence or None, default=None
        The public list of subgroups that figures are wanted for, of which each row has one;
        None and NaN are no subgroups.
    random_state : int, RandomState, RandomStream or None, default=None
        None draws noise from the operating system. A seed is for tests: the guarantee does not hold
        against whoever knows it.
    verbose : int, default=0
        Whether to print what is spent.

    Notes
    -----
    Bins lie where scores do: fourteen noisy counts find a sixth and five sixths of them first. A
    row then lies in one cell of the table of each class (of one table, for two classes). Counts of
    bins, of cells between thresholds, and two sums of how far scores lie from the middles of bins
    have discrete Gaussian noise. All is one event that the accountant prices. The L2 sensitivity of
    each table is 1, or the root of 2 under replace-one: :ref:`Theorem 1 of evaluation
    <evaluation-1>`, and of the rest :ref:`Theorem 6 <evaluation-6>` and :ref:`Theorem 7
    <evaluation-7>`. Intervals count sampling and noise.

    References
    ----------
    Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy".
    Fieller (1954), "Some problems in interval estimation".
    Wilson (1927), "Probable inference, the law of succession, and statistical inference".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp.metrics import PrivateEvaluation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> y = (X[:, 0] + rng.normal(size=4000) > 0).astype(int)
    >>> public_model = LogisticRegression().fit(X[:500], y[:500])  # stands for a private fit
    >>> result = PrivateEvaluation(epsilon=1.0).evaluate(public_model, X[500:], y[500:])
    >>> low, high = result.roc_auc.interval
    >>> bool(0.7 < low < result.roc_auc < high < 0.95)
    True
    >>> result.privacy_spent_.epsilon
    1.0
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        thresholds: Any = (0.5,),
        n_bins: int | Auto = "auto",
        score_values: Any = None,
        adjacency: Adjacency | None = None,
        accountant: Any = None,
        classes: Any = None,
        subgroups: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.thresholds = thresholds
        self.n_bins = n_bins
        self.score_values = score_values
        self.adjacency = adjacency
        self.accountant = accountant
        self.classes = classes
        self.subgroups = subgroups
        self.random_state = random_state
        self.verbose = verbose

    def evaluate(
        self, model: Any, X: Any, y: Any, *, subgroups: Any = None, groups: Any = None
    ) -> PrivateEvaluationResult:
        """Charge the budget, score the rows, and release.

        Parameters
        ----------
        model : fitted classifier
            With ``predict_proba``, or else ``decision_function``, whose margins m count as scores
            1 / (1 + e^-m). It is public: fitted privately, or on other rows.
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            The private rows, as the model takes them.
        y : array of shape (n_samples,)
            Their labels, all of the label set.
        subgroups : array of shape (n_samples,) or None, default=None
            The subgroup of each row, where the evaluation declares subgroups.
        groups : array of shape (n_samples,) or None, default=None
            The id of the person that each row belongs to. Then persons are protected, with all
            their rows, figures are means over persons, and n is the number of persons.

        Returns
        -------
        PrivateEvaluationResult
            All figures.

        Raises
        ------
        ValueError, TypeError
            For bad parameters or input, before anything is charged; and if the model fails on the
            rows or returns other than one score for each row and class, after the charge. Scores
            that are NaN count as 0.
        BudgetExceededError
            If the budget cannot take the charge; the rows are not used then.
        """
        self._check_parameters()
        probabilities, classes = self._about(model, X)
        columns = Columns(y, subgroups, groups)
        where = taken_for_granted(X, y, subgroups, groups)
        X = columns.seal(X)
        y, subgroups, groups = columns.found
        rows = self._read(X, y, classes, subgroups, groups)
        plan = self._plan(rows.n, classes, probabilities)
        method = model.predict_proba if probabilities else model.decision_function
        way, assumed = examine_model(model, method, X)
        spent = self._account(plan, groups is not None)
        assumed = (*spent.assumptions, *assumed, *where)
        spent = replace(spent, assumptions=assumed)
        self._charge(spent)
        scores, predicted = self._score(method, X, rows.codes.size, plan, way)
        columns.check_rows()
        used = [rows.codes, rows.members, predicted]
        used += [] if rows.weights is None else [rows.weights]
        stream = resolve_random_state(self.random_state, fit_context(self, scores, *used))
        plan = plan.locate(scores, rows.weights, stream)
        exact = plan.count(scores, rows.codes, rows.members, predicted, rows.weights)
        tables = plan.release(exact, stream)
        return PrivateEvaluationResult(tables, spent, 0.95, tables.thresholds[0])

    def expected_widths(
        self, n: int, prevalence: float = 0.5, *, auc: float = 0.8
    ) -> dict[str, float]:
        """Return how wide intervals will be, from public numbers, before anything is spent.

        Parameters
        ----------
        n : int
            Number of rows (of persons, where `evaluate` will be given groups).
        prevalence : float, default=0.5
            A guess of the share of positive rows, in (0, 1).
        auc : float, default=0.8
            A guess of the model's area under the ROC curve, in (0.5, 1).

        Returns
        -------
        dict
            The widths of 95 % intervals by the names of figures, at the first threshold, for a
            calibrated model whose log odds are normal in each class; without the expected
            calibration error, whose interval depends on the noise that is drawn.

        Examples
        --------
        >>> from skdp.metrics import PrivateEvaluation
        >>> widths = PrivateEvaluation(epsilon=1.0).expected_widths(n=2000, prevalence=0.2)
        >>> bool(widths["roc_auc"] < 0.1)
        True
        """
        self._check_parameters()
        n = check_integer("n", n, at_least=1)
        check_real("prevalence", prevalence, above=0.0, below=1.0)
        check_real("auc", auc, above=0.5, below=1.0)
        plan = self._plan(n, np.arange(2 if self.classes is None else len(self.classes)))
        distance = np.sqrt(2.0) * float(ndtri(auc))
        sides = ((-0.5, 1.0 - prevalence), (0.5, prevalence))
        centres = [logit(prevalence) + side * distance**2 for side, _ in sides]
        if plan.search is not None:
            middle = float(np.dot([1.0 - prevalence, prevalence], centres))
            apart = prevalence * (1.0 - prevalence) * distance**4
            plan = plan.placed([(middle, float(np.hypot(distance, apart**0.5)))] * plan.shape()[1])
        edges = logit(plan.bins[0].edges)
        shares = [
            weight * np.diff(ndtr((edges - centre) / distance), prepend=0.0, append=1.0)
            for centre, (_, weight) in zip(centres, sides, strict=True)
        ]
        fine = np.tile(n * np.stack(shares), (*plan.shape()[:2], 1, 1)) / plan.shape()[0]
        confusions = None if plan.shape()[1] == 1 else np.zeros((1, *plan.shape()[1:2] * 2))
        offsets = None if plan.search is None else np.zeros((*plan.shape()[:2], 2))
        tables = plan.assemble(fine, plan.coarsen(fine), confusions, offsets)
        spent = self._account(plan, False)
        result = PrivateEvaluationResult(tables, spent, 0.95, tables.thresholds[0])
        expected = result.of(label=None if confusions is None else 1)
        return {name: getattr(expected, name).width for name in FIGURES[:-1]}

    def _check_parameters(self) -> None:
        self._check_shared()
        for name, values in (("thresholds", self.thresholds), ("score_values", self.score_values)):
            if name == "score_values" and values is None:
                continue
            given = np.asarray(values)
            if given.ndim != 1 or given.dtype.kind not in "iuf" or given.size < 1:
                raise ValueError(f"{name} must be a list of numbers, got {values!r}.")
            ends = (given == 0.0) | (given == 1.0) if name == "score_values" else False
            if not (((given > 0.0) & (given < 1.0)) | ends).all():
                raise ValueError(f"{name} must lie between 0 and 1, got {values!r}.")
            if np.unique(given).size < given.size:
                raise ValueError(f"{name} must be distinct, got {values!r}.")

    def _about(self, model: Any, X: Any) -> tuple[bool, np.ndarray]:
        """Return whether scores are probabilities, and the label set."""
        probabilities = hasattr(model, "predict_proba")
        if not probabilities and not hasattr(model, "decision_function"):
            raise TypeError(
                f"{type(model).__name__} has neither predict_proba nor decision_function: give a "
                "fitted classifier, or a regressor to PrivateRegressionEvaluation."
            )
        if not probabilities and getattr(model, "decision_function_shape", "ovr") == "ovo":
            raise ValueError("decision_function_shape='ovo' has no score a class: take 'ovr'.")
        self._check_model(model, X)
        known = getattr(model, "classes_", None)
        given = known if self.classes is None else self.classes
        if given is None:
            raise ValueError("the model has no classes_: name the label set with classes=.")
        classes, _ = encode_labels(np.asarray(given), given)
        if known is not None and not np.array_equal(classes, known):
            raise ValueError("classes= must be the classes that the model was fitted with.")
        return probabilities, classes

    def _read(self, X: Any, y: Any, classes: Any, subgroups: Any, groups: Any) -> _Rows:
        """Check shapes, labels and subgroups."""
        labels = validate_column(y)
        names = "X, y, subgroups and groups"
        self._check_lengths(X, labels, names, subgroups, groups)
        _, codes = encode_labels(labels, classes)
        members = self._members(subgroups, codes.size)
        n, weights = codes.size, None
        if groups is not None:
            units = units_of(groups)
            n, weights = units.n_units, UNIT // units.counts[units.codes]
        self._warn_of_delta(n, 4)
        return _Rows(codes, members, weights, n)

    def _plan(self, n: int, classes: Any, probabilities: bool = True) -> ReleasePlan:
        return ReleasePlan.build(
            *(self.epsilon, self.delta, self._find_relation(), n, classes),
            thresholds=tuple(float(at) for at in self.thresholds),
            n_bins=self.n_bins,
            score_values=self.score_values,
            subgroups=None if self.subgroups is None else tuple(self.subgroups),
            probabilities=probabilities,
        )

    def _account(self, plan: ReleasePlan, by_person: bool) -> PrivacySpent:
        released = ("noisy counts of scores by label", "all figures that follow from them")
        return self._spent(plan, _ASSUMPTIONS, released, by_person)

    def _score(
        self, method: Callable[..., Any], X: Any, n_rows: int, plan: ReleasePlan, way: Way
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's scores, one a table, and the class of its largest."""
        many = len(plan.classes) > 2
        width = len(plan.classes) if many or plan.probabilities else 1
        raw = self._ask(method, X, (n_rows, width), way)
        scores = raw if plan.probabilities else expit(raw)
        kept = scores if many else scores[:, -1:]
        return kept, raw.argmax(axis=1)
