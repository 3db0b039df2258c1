"""What both private searches take and release."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skdp.choices import Auto, SearchMethod
from skdp.fitting import PrivateFit
from skdp.parameters import parameter, released


class SearchParameters(PrivateFit):
    """Parameters and released attributes of private searches."""

    _added_texts: ClassVar[dict[str, str]] = {
        "epsilon": "That fit is the whole search, the final model included.",
        "delta": "That fit is the whole search.",
        "adjacency": "It is that of the search and of all its fits.",
        "accountant": "The search is charged once.",
        "verbose": "Runs are not reported, but for a bar in a terminal or a notebook where their"
        " number is public and rich is installed; the environment variable "
        "``SKDP_PROGRESS=0`` turns it off.",
        "privacy_spent_": "It is that of the whole search.",
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
        """A private estimator, or a pipeline of private steps and steps that learn nothing from
        rows. Its `epsilon`, `delta`, `adjacency`, `accountant` and `random_state` are set by the
        search. Steps that learn from rows without noise are refused with a remedy.""",
        kw_only=False,
    )
    epsilon: float = parameter("float", "Privacy parameter of one fit, positive.", default=1.0)
    delta: float = parameter(
        "float", "Privacy parameter of one fit, in (0, 1); keep it well below 1/n.", default=1e-6
    )
    method: SearchMethod = parameter(
        '{"random-stopping", "fixed", "holdout", "cv"}',
        """How candidates are compared. ``"random-stopping"``: a random number of runs, each of a
        candidate drawn at random; the model of the run with the best noisy score is released.
        Its price hardly grows with the number of candidates. ``"fixed"``: a public number of
        runs of the candidates in turn; the scores of all are released, and callbacks show how
        many are done. Its price grows with the root of that number. ``"holdout"``: all
        candidates are trained on one part of the rows, compared on the other. ``"cv"``: by
        cross-validation, whose price grows with candidates times folds.""",
        default="random-stopping",
    )
    scoring: Any = parameter(
        "str or RowScorer",
        """A score that is a sum over rows of bounded values: "accuracy" or "neg_brier_score", or
        of regressors "neg_mean_absolute_error" or "neg_mean_squared_error", whose bounds are
        those of errors within `target_bounds`; see `make_row_scorer` for others. ``"auto"`` is
        the first of either.""",
        default="auto",
    )
    cv: Any = parameter(
        "int or KFold",
        """Number of folds of ``method="cv"``. Folds are drawn at random without looking at the
        rows.""",
        default=5,
    )
    holdout_fraction: float = parameter(
        "float", 'Share of the rows that are scored on, not by ``"cv"``.', default=0.2
    )
    expected_candidates: float | Auto = parameter(
        'float or "auto"',
        """Expected number of runs of ``"random-stopping"``, at least 1; ``"auto"`` is three
        times the number of candidates. For ``"fixed"`` the number of runs itself, at least and
        by default that of the candidates: run r is one of candidate r modulo their number.""",
        default="auto",
    )
    stopping_shape: float = parameter(
        "float",
        """Shape of the random number of runs, above -1: 0 is the logarithmic law, 1 the
        geometric one, ``inf`` the Poisson one. Smaller shapes cost less and vary more.""",
        default=2.0,
    )
    selection_share: float | Auto = parameter(
        'float or "auto"',
        """Share of `epsilon` for choosing by scores, not for ``"random-stopping"``. ``"auto"``
        is 0.1 for ``"cv"``, and else 1 without a refit (a record is trained on or scored on,
        never both), 0.25 with one.""",
        default="auto",
    )
    noisy_scores: bool = parameter(
        "bool",
        """Whether ``"holdout"`` and ``"cv"`` release noisy scores of all candidates and choose
        by these. ``"random-stopping"`` always releases that of the chosen run, at no extra
        price, and ``"fixed"`` those of all runs.""",
        default=False,
    )
    refit: bool | Auto = parameter(
        'bool or "auto"',
        """Whether the chosen candidate is trained again on all rows, at a price. ``"auto"`` is
        True for ``"cv"`` and False for the others, whose `best_estimator_` is the model that
        won, trained on the training part.""",
        default="auto",
    )
    refit_share: float = parameter(
        "float", "The refit's part of what is spent, in squares of epsilon, about.", default=0.5
    )
    step_weights: Any = parameter(
        "dict or None",
        """Relative epsilon of the private steps of a pipeline by name. By default a final step
        has 1 and every private transformer 0.25; delta is divided evenly.""",
        default=None,
    )
    n_jobs: int | None = parameter(
        "int or None", "Number of runs at a time, by joblib.", default=None
    )
    best_estimator_: Any = released(
        "estimator",
        """The released model. Its `privacy_spent_` is that of the whole search. Missing after
        ``method="cv"`` with ``refit=False``.""",
    )
    best_params_: dict[str, Any] = released("dict", "Parameters of the chosen candidate.")
    best_index_: int = released("int", "Its row in `candidates_`.")
    best_score_: float = released(
        "float",
        """Noisy mean score of the chosen candidate, where one was paid for. It is the largest of
        several, and so too good on average.""",
    )
    noisy_scores_: np.ndarray = released(
        "ndarray of shape (n_candidates,) or (n_runs,)",
        """Noisy mean scores: with ``noisy_scores=True`` of the candidates, by ``"fixed"`` of the
        runs.""",
    )
    candidates_: dict[str, Any] = released(
        "dict",
        """Table of the candidates' parameters. There is no ``cv_results_``: scores and times of
        runs are private.""",
    )
    inner_epsilon_: float = released("float", "Epsilon of one training inside the search.")
    classes_: np.ndarray = released("ndarray of shape (n_classes,)", "Labels, of classifiers.")
    n_features_in_: int = released("int", "Number of columns.")
    feature_names_in_: np.ndarray = released(
        "ndarray of shape (n_features,)", "Names of columns, if the model knows any."
    )
