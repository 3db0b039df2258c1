"""Parameters, released attributes, delegation and display of the private searches."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.accounting.records import html_table
from skdp.base.parameters import Auto, SearchMethod, parameter, plain, released
from skdp.base.scikit_learn import BaseEstimator, MetaEstimatorMixin
from skdp.budget.charging import ChargesBudget
from skdp.fitting import PrivateFit
from skdp.model_selection._scoring import RowScorer, resolve_scoring
from skdp.reporting.leaks import warn_of_score
from skdp.tables.places import in_memory


def _private_parts(value: Any) -> Iterator[ChargesBudget]:
    """Yield private estimators in a parameter: in pipelines, grids and lists too."""
    if isinstance(value, ChargesBudget):
        yield value
    inside: Any = ()
    if hasattr(value, "get_params") and not isinstance(value, type):
        inside = value.get_params(deep=False).values()
    elif isinstance(value, Mapping):
        inside = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    for each in inside:
        yield from _private_parts(each)


class SearchParameters(PrivateFit):
    """Parameters and released attributes of private searches."""

    _added_texts: ClassVar[dict[str, str]] = {
        "epsilon": "A search counts as one fit, including the final model.",
        "delta": "A search counts as one fit.",
        "adjacency": "It applies to the search and all its fits.",
        "accountant": "The search is charged once.",
        "verbose": "Runs are not reported. If their number is public and rich is installed, a"
        " terminal or notebook shows a progress bar; the environment variable "
        "``SKDP_PROGRESS=0`` disables it.",
        "privacy_spent_": "It covers the entire search.",
    }
    _listed: ClassVar[tuple[str, ...]] = (
        *("estimator", "param_grid", "param_distributions", "n_iter", "epsilon", "delta", "method"),
        *("adjacency", "scoring", "cv", "holdout_fraction", "expected_candidates"),
        *("stopping_shape", "selection_share", "noisy_scores", "refit", "refit_share"),
        *("step_weights", "accountant", "n_jobs", "random_state", "verbose", "best_estimator_"),
        *("best_params_", "best_index_", "best_score_", "noisy_scores_", "candidates_"),
        *("inner_epsilon_", "privacy_spent_", "classes_", "n_features_in_", "feature_names_in_"),
    )

    estimator: Any = parameter(
        "estimator",
        """Private estimator, or pipeline of private steps and steps that learn nothing from rows.
        The search sets its `epsilon`, `delta`, `adjacency`, `accountant` and `random_state`. Steps
        that learn from rows without noise are refused, with a remedy.""",
        kw_only=False,
    )
    epsilon: float = parameter("float", "Privacy parameter of one fit, positive.", default=1.0)
    delta: float = parameter(
        "float", "Privacy parameter of one fit, in (0, 1); keep it well below 1/n.", default=1e-6
    )
    method: SearchMethod = parameter(
        '{"auto", "random-stopping", "fixed", "holdout", "cv"}',
        """Method to compare candidates. ``"random-stopping"``: a random number of runs, each of a
        random candidate; the model of the run with the best noisy score is released. The privacy
        cost barely grows with the number of candidates. ``"fixed"``: a public number of runs of the
        candidates in turn; all noisy scores are released, and callbacks show progress. The cost
        grows with the root of that number. ``"holdout"``: all candidates are trained on one part of
        the rows and compared on the other. ``"cv"``: cross-validation; the cost grows with
        candidates times folds. ``"auto"`` is ``"fixed"`` for up to three candidates, and
        ``"random-stopping"`` for more, or if `expected_candidates` is set.""",
        default="auto",
    )
    scoring: Any = parameter(
        "str or RowScorer",
        """Score that is a sum over rows of bounded values. Classifiers: "accuracy" or
        "neg_brier_score". Regressors: "neg_mean_absolute_error" or "neg_mean_squared_error", with
        the bounds of errors within `target_bounds`. Use `make_row_scorer` for others. ``"auto"``
        is the first one.""",
        default="auto",
    )
    cv: Any = parameter(
        "int or KFold",
        """Number of folds for ``method="cv"``. Folds are drawn at random, without looking at the
        rows.""",
        default=5,
    )
    holdout_fraction: float = parameter(
        "float", 'Share of the rows used for scores; not used by ``"cv"``.', default=0.2
    )
    expected_candidates: float | Auto = parameter(
        'float or "auto"',
        """Expected number of runs for ``"random-stopping"``, at least 1; ``"auto"`` is three times
        the number of candidates. For ``"fixed"``, the number of runs, at least that of the
        candidates (``"auto"``): run r uses candidate r modulo their number.""",
        default="auto",
    )
    stopping_shape: float = parameter(
        "float",
        """Shape of the distribution of the number of runs, above -1: 0 is logarithmic, 1 geometric,
        ``inf`` Poisson. Smaller shapes cost less and vary more.""",
        default=2.0,
    )
    selection_share: float | Auto = parameter(
        'float or "auto"',
        """Share of `epsilon` for the choice by scores; not used by ``"random-stopping"``.
        ``"auto"`` is 0.1 for ``"cv"``. For other methods it is 0.25 with a refit, and 1 without,
        since a record is then used for training or for scores, never both.""",
        default="auto",
    )
    noisy_scores: bool = parameter(
        "bool",
        """Whether ``"holdout"`` and ``"cv"`` release noisy scores of all candidates and choose by
        them. ``"random-stopping"`` always releases the score of the chosen run without a further
        cost, and ``"fixed"`` those of all runs.""",
        default=False,
    )
    refit: bool | Auto = parameter(
        'bool or "auto"',
        """Whether to train the chosen candidate again on all rows, which costs budget. ``"auto"``
        is True for ``"cv"`` and False for other methods. Their `best_estimator_` is the winning
        model, trained on the training part.""",
        default="auto",
    )
    refit_share: float = parameter(
        "float", "Approximate share of the refit in the cost, in squares of epsilon.", default=0.5
    )
    step_weights: Any = parameter(
        "dict or None",
        """Relative epsilon of the private steps of a pipeline, by name. None gives the final step
        1 and every private transformer 0.25. Delta is divided evenly.""",
        default=None,
    )
    n_jobs: int | None = parameter(
        "int or None",
        "Number of parallel runs. None means 1, or the setting of a joblib context.",
        default=None,
    )
    best_estimator_: Any = released(
        "estimator",
        """Released model. Its `privacy_spent_` is that of the entire search. Not available with
        ``method="cv"`` and ``refit=False``.""",
    )
    best_params_: dict[str, Any] = released("dict", "Parameters of the chosen candidate.")
    best_index_: int = released("int", "Row of the chosen candidate in `candidates_`.")
    best_score_: float = released(
        "float",
        """Noisy mean score of the chosen candidate, if released. As the largest of several, it is
        too good on average.""",
    )
    noisy_scores_: np.ndarray = released(
        "ndarray of shape (n_candidates,) or (n_runs,)",
        """Noisy mean scores of the candidates (``noisy_scores=True``) or of the runs
        (``"fixed"``).""",
    )
    candidates_: dict[str, Any] = released(
        "dict",
        """Table of the candidates' parameters. There is no ``cv_results_``, since scores and times
        of runs are private.""",
    )
    inner_epsilon_: float = released("float", "Epsilon of one training in the search.")
    classes_: np.ndarray = released("ndarray of shape (n_classes,)", "Labels of a classifier.")
    n_features_in_: int = released("int", "Number of columns.")
    feature_names_in_: np.ndarray = released(
        "ndarray of shape (n_features,)", "Names of columns, if the model has any."
    )


class ShowsResults(BaseEstimator):
    """Displays of the results of a search."""

    candidates_: dict[str, Any]
    best_index_: int
    privacy_spent_: Any

    def __str__(self) -> str:
        if not hasattr(self, "privacy_spent_"):
            return repr(self)
        facts = "; ".join(f"{name}: {value}" for name, value in self._facts())
        return f"{type(self).__name__}: {facts}"

    def _html_repr(self) -> str:
        picture = str(estimator_html_repr(self))
        if not hasattr(self, "privacy_spent_"):
            return picture
        facts = html_table(f"Results of {type(self).__name__}", self._facts())
        candidates = html_table("Candidates", self._candidate_rows())
        scroll = '<div style="max-height: 30em; overflow: auto">'
        return f"<div>{facts}{scroll}{candidates}</div></div>{picture}"

    def _facts(self) -> list[tuple[str, str]]:
        points = self.candidates_["params"]
        found = [("best parameters", _said(points[self.best_index_]))]
        if hasattr(self, "best_score_"):
            found.append(("noisy score", f"{self.best_score_:.4g}"))
        found.append(("candidates", str(len(points))))
        return [*found, ("privacy", repr(self.privacy_spent_))]

    def _candidate_rows(self) -> list[tuple[str, ...]]:
        """Return the candidates with their released scores, if any."""
        points = self.candidates_["params"]
        scores = np.asarray(getattr(self, "noisy_scores_", ()))
        found: list[tuple[str, ...]] = [
            ("", "parameters", "noisy scores" if scores.size else "", "")
        ]
        for number, point in enumerate(points):
            own = ", ".join(f"{score:.4g}" for score in scores[number :: len(points)])
            chosen = "chosen" if number == self.best_index_ else ""
            found.append((str(number), _said(point), own, chosen))
        return found


def _said(point: dict[str, Any]) -> str:
    text = ", ".join(f"{name}={plain(value)!r}" for name, value in point.items())
    return textwrap.shorten(text, 300, placeholder=" ...") or "the estimator's own"


def _has(name: str) -> Callable[[Any], bool]:
    """Return a check that the best estimator, or the template, has a method."""

    def check(search: Any) -> bool:
        if not search._has_model():
            raise AttributeError(
                f"This {type(search).__name__} trains no final model (method={search.method!r}, "
                f"refit={search.refit!r}) and has no {name}: use best_params_."
            )
        # Raises the AttributeError that the estimator itself would.
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


def _delegate(name: str, what: str) -> Any:
    """Return a method that calls the best estimator's method of the same name."""

    def method(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X)

    method.__name__, method.__qualname__ = name, f"DelegatesToBest.{name}"
    method.__doc__ = f"Return the {what} of the best estimator, for rows that its `{name}` accepts."
    return available_if(_has(name))(method)


class DelegatesToBest(ShowsResults, MetaEstimatorMixin, BaseEstimator):
    """Prediction, tags and metadata routing of a search."""

    estimator: Any
    method: Any
    refit: Any
    scoring: Any
    best_estimator_: Any

    def _scorer(self) -> RowScorer:
        return resolve_scoring(self.scoring, self.estimator)

    def _has_model(self) -> bool:
        if hasattr(self, "best_params_"):
            return hasattr(self, "best_estimator_")
        return bool(self.refit) if self.method == "cv" else True

    predict = _delegate("predict", "predictions")
    predict_proba = _delegate("predict_proba", "class probabilities")
    predict_log_proba = _delegate("predict_log_proba", "logarithms of the class probabilities")
    decision_function = _delegate("decision_function", "scores")
    transform = _delegate("transform", "transformed rows")
    inverse_transform = _delegate("inverse_transform", "rows, transformed back,")

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean score of the best estimator on the given rows, without noise.

        Parameters
        ----------
        X : array-like
            Rows. If they are private, so is the result.
        y : array-like
            Labels.
        """
        _has("score")(self)
        check_is_fitted(self)
        warn_of_score(self, X)
        X, y = in_memory(X, y)
        return float(np.mean(self._scorer().values(self.best_estimator_, X, y)))

    @property
    def classes_(self) -> Any:
        """Labels of the best estimator."""
        _has("classes_")(self)
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in `fit`."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"{type(self).__name__} has no n_features_in_ before a model is fitted."
            )
        return int(self.best_estimator_.n_features_in_)

    def _searched(self) -> Iterator[ChargesBudget]:
        """Yield the parts of all candidates that may be bound to a budget."""
        for value in self.get_params(deep=False).values():
            yield from _private_parts(value)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of metadata from `fit` to the estimator."""
        fits = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=fits)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        for kind in ("classifier", "regressor", "transformer", "input", "target"):
            setattr(tags, f"{kind}_tags", deepcopy(getattr(inner, f"{kind}_tags")))
        return tags
