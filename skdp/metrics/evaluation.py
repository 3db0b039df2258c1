"""`PrivateEvaluation`: performance of a public classifier on private rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import check_integer, check_real, parameter
from skdp.base.scikit_learn import responds
from skdp.estimators.labels import encode_labels
from skdp.fitting import FitProgress
from skdp.mechanisms.random_stream import resolve_random_state
from skdp.metrics.base import EvaluatesModel, HasSubgroups, Judged, ask_model
from skdp.metrics.release import ReleasePlan, ScoreTables
from skdp.metrics.result import FIGURES, PrivateEvaluationResult
from skdp.statistics.noise import UNIT
from skdp.tables.records import fit_context


class ScoresRows(EvaluatesModel):
    """Base of estimators that release tables of a public classifier's scores by label."""

    _assumptions = (
        "the model is public: its fit was charged for the private rows that it learned from",
        "the score of a row is a function only of that row and the model",
        "the label set, subgroups, thresholds and all parameters are public",
    )

    @abstractmethod
    def _thresholds(self) -> tuple[float, ...]:
        """Return the probabilities at which counts have the least noise."""

    def _of_seed(self) -> Any:
        """Return the estimator whose parameters enter the key of seeded noise."""
        return self

    def _about(self, model: Any) -> tuple[tuple[np.ndarray, bool], Callable[..., Any]]:
        """Return the label set, whether scores are probabilities, and the method for scores."""
        probabilities = responds(model, "predict_proba")
        if not probabilities and not responds(model, "decision_function"):
            raise TypeError(
                f"{type(model).__name__} has neither predict_proba nor decision_function: pass a "
                "fitted classifier, or use PrivateRegressionEvaluation for a regressor."
            )
        one_vs_one = (
            responds(model, "decision_function_shape") and model.decision_function_shape == "ovo"
        )
        if not probabilities and one_vs_one:
            raise ValueError("decision_function_shape='ovo' has no score per class: use 'ovr'.")
        known = model.classes_ if responds(model, "classes_") else None
        declared = self._given("classes")
        given = known if declared is None else declared
        if given is None:
            raise ValueError("the model has no classes_: pass the label set as classes=.")
        classes, _ = encode_labels(np.asarray(given), given)
        if known is not None and not np.array_equal(classes, known):
            raise ValueError("classes= must be the classes that the model was fitted with.")
        return (classes, probabilities), (
            model.predict_proba if probabilities else model.decision_function
        )

    def _encode(self, truth: np.ndarray, about: Any) -> np.ndarray:
        return encode_labels(truth, about[0])[1]

    def _plan_about(self, n_rows: int, about: Any) -> ReleasePlan:
        (classes, probabilities), subgroups = about, self._given("subgroups")
        return ReleasePlan.build(
            *(self.epsilon, self.delta, self._relation, n_rows, classes),
            thresholds=self._thresholds(),
            n_bins=self.n_bins,
            score_values=self._given("score_values"),
            subgroups=None if subgroups is None else tuple(subgroups),
            probabilities=probabilities,
        )

    def _use_rows(self, plan: ReleasePlan, records: Judged, progress: FitProgress) -> ScoreTables:
        many = len(plan.classes) > 2
        raw = ask_model(records, len(plan.classes) if many or plan.probabilities else 1)
        # One column of scores for each table, and the class of the largest.
        scores, predicted = raw if plan.probabilities else expit(raw), raw.argmax(axis=1)
        scores = scores if many else scores[:, -1:]
        used, units = [records.targets, records.members, predicted], records.units
        weights = None if units is None else UNIT // units.counts[units.codes]
        used += [] if weights is None else [weights]
        inferred = plan.event, plan.adjacency
        context = fit_context(self._of_seed(), scores, *used, inferred=inferred)
        stream = resolve_random_state(self.random_state, context)
        plan = plan.locate(scores, weights, stream)
        return plan.release(plan.count(scores, *used), stream)


class PrivateEvaluation(HasSubgroups, ScoresRows):
    """Performance of a public classifier on private rows, with intervals and one charge.

    Scores are counted in bins, by label, and noise is added to the counts once. Accuracy,
    sensitivity, specificity, predictive values, ROC and precision-recall curves with their areas,
    Brier score and calibration follow from the counts without further cost.

    See Also
    --------
    PrivateRegressionEvaluation : The same for regressors.

    Notes
    -----
    Fourteen noisy counts find the quantiles 1/6 and 5/6 of the scores, and bins are placed around
    them. Each row is then in one cell of the table of each class (of one table, for
    two classes). The counts of bins, the counts between thresholds, and two sums of the distances
    of scores from the middles of their bins have discrete Gaussian noise, all in one event. The L2
    sensitivity of each table is 1, or the square root of 2 under replace-one: :ref:`Theorem 1 of
    evaluation <evaluation-1>`; for the rest see :ref:`Theorem 6 <evaluation-6>` and :ref:`Theorem 7
    <evaluation-7>`. Intervals cover sampling and noise.

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

    _added_texts: ClassVar[dict[str, str]] = {
        "n_bins": "Bins are densest where scores are, and thresholds are among their edges.",
    }

    thresholds: Any = parameter(
        "sequence of floats",
        """Probabilities in (0, 1). A row is predicted positive if its score reaches a threshold.
        Declare every threshold that you will report: counts are most precise there.""",
        default=(0.5,),
    )
    score_values: Any = parameter(
        "array of shape (n_values,) or None",
        """Possible score values, for models with few distinct scores such as trees. Each value has
        a separate bin, and placing bins needs no budget. Derive them from the model or its
        rounding, never from scores of private rows. With None, noisy counts find the range of the
        scores.""",
        default=None,
    )
    classes: Any = parameter(
        "sequence or None",
        """Public label set. With two classes, the last in sorted order is positive; with more, each
        class has a table against the others. None uses ``classes_`` of the model.""",
        default=None,
    )

    _released = ("noisy counts of scores by label", "all metrics computed from them")

    def evaluate(
        self, model: Any, X: Any, y: Any = None, *, subgroups: Any = None, groups: Any = None
    ) -> PrivateEvaluationResult:
        """Charge the budget, score the rows, and release all metrics.

        Parameters
        ----------
        model : fitted classifier
            Public model: fitted privately, or on other rows. It has ``predict_proba``, or else
            ``decision_function``; a margin m counts as the score 1 / (1 + e^-m).
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Private rows, in the format of the model. For a pipeline of a schema, also the complete
            table.
        y : array of shape (n_samples,) or None, default=None
            Labels, all from the label set. None uses the label column of the table, for a pipeline
            of a schema.
        subgroups : array of shape (n_samples,) or None, default=None
            Subgroup of each row; required if the evaluation declares subgroups.
        groups : array of shape (n_samples,) or None, default=None
            Patient id of each row. Each patient is then protected with all rows, metrics are means
            over patients, and n is the number of patients. None uses the id column of the table
            if it has one, for a pipeline of a schema.

        Returns
        -------
        PrivateEvaluationResult
            All metrics with intervals.

        Raises
        ------
        ValueError, TypeError
            For invalid parameters or input, before the charge. Also after the charge, if the model
            fails on the rows or does not return one score for each row and class. NaN scores count
            as 0.
        BudgetExceededError
            If the charge exceeds the remaining budget; the rows are not used.
        """
        found: PrivateEvaluationResult = self._release(
            X, y, {"model": model, "subgroups": subgroups, "groups": groups}
        )
        return found

    def expected_widths(
        self, n: int, prevalence: float = 0.5, *, auc: float = 0.8
    ) -> dict[str, float]:
        """Return the expected widths of intervals, from public numbers and without a charge.

        Parameters
        ----------
        n : int
            Number of rows, or of patients if `evaluate` will have ``groups=``.
        prevalence : float, default=0.5
            Assumed share of positive rows, in (0, 1).
        auc : float, default=0.8
            Assumed area under the ROC curve of the model, in (0.5, 1).

        Returns
        -------
        dict
            Widths of 95 % intervals by name of the metric, at the first threshold. They are for a
            calibrated model with normal log odds in each class. The expected calibration error is
            left out, because its interval depends on the drawn noise.

        Examples
        --------
        >>> from skdp.metrics import PrivateEvaluation
        >>> widths = PrivateEvaluation(epsilon=1.0).expected_widths(n=3000, prevalence=0.2)
        >>> bool(widths["roc_auc"] < 0.1)
        True
        """
        self._check_parameters()
        n = check_integer("n", n, at_least=1)
        check_real("prevalence", prevalence, above=0.0, below=1.0)
        check_real("auc", auc, above=0.5, below=1.0)
        classes = np.arange(2 if self.classes is None else len(self.classes))
        plan = self._plan_about(n, (classes, True))
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
        result = self._result(plan, None, tables, self._account(plan))
        expected = result.of(label=None if confusions is None else 1)
        return {name: getattr(expected, name).width for name in FIGURES[:-1]}

    def _check_parameters(self) -> None:
        super()._check_parameters()
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

    def _thresholds(self) -> tuple[float, ...]:
        return tuple(float(at) for at in self.thresholds)

    def _result(
        self, plan: ReleasePlan, records: Any, released: ScoreTables, spent: PrivacySpent
    ) -> PrivateEvaluationResult:
        return PrivateEvaluationResult(released, spent, 0.95, released.thresholds[0])
