"""The two private searches: over a grid, and over a random sample of a space."""

from __future__ import annotations

from typing import Any

from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdp.choices import Adjacency, Auto, SearchMethod
from skdp.mechanisms.random_stream import RandomStream
from skdp.model_selection._search import PrivateSearch
from skdp.parameters import check_integer


class PrivateGridSearchCV(PrivateSearch):
    """Choose parameters from a grid and train a model, all within one privacy budget.

    Takes the place of scikit-learn's `GridSearchCV` around private estimators. `epsilon` and
    `delta` are those of the whole search, the final model included: what each inner fit may spend
    is solved for by exact composition, and the budget is charged once.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline of private steps and steps that learn nothing from
        rows. Its `epsilon`, `delta`, `adjacency`, `accountant` and `random_state` are set by the
        search. Steps that learn from rows without noise are refused with a remedy.
    param_grid : dict or list of dict
        Parameters and their values, as for `GridSearchCV`. A public choice.
    epsilon : float, default=1.0
        Privacy parameter of one fit, positive. That fit is the whole search, the final model
        included.
    delta : float, default=1e-6
        Privacy parameter of one fit, in (0, 1); keep it well below 1/n. That fit is the whole
        search.
    method : {"random-stopping", "fixed", "holdout", "cv"}, default="random-stopping"
        How candidates are compared. ``"random-stopping"``: a random number of runs, each of
        a candidate drawn at random; the model of the run with the best noisy score is released.
        Its price hardly grows with the number of candidates. ``"fixed"``: a public number of runs
        of the candidates in turn; the scores of all are released, and callbacks show how many are
        done. Its price grows with the root of that number. ``"holdout"``: all candidates are
        trained on one part of the rows, compared on the other. ``"cv"``: by cross-validation,
        whose price grows with candidates times folds.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring tables: one row replaced, or one added or removed. It is that of the search and
        of all its fits.
    scoring : str or RowScorer, default="auto"
        A score that is a sum over rows of bounded values: "accuracy" or "neg_brier_score", or of
        regressors "neg_mean_absolute_error" or "neg_mean_squared_error", whose bounds are those of
        errors within `target_bounds`; see `make_row_scorer` for others. ``"auto"`` is the first of
        either.
    cv : int or KFold, default=5
        Number of folds of ``method="cv"``. Folds are drawn at random without looking at the rows.
    holdout_fraction : float, default=0.2
        Share of the rows that are scored on, not by ``"cv"``.
    expected_candidates : float or "auto", default="auto"
        Expected number of runs of ``"random-stopping"``, at least 1; ``"auto"`` is three times the
        number of candidates. For ``"fixed"`` the number of runs itself, at least and by default
        that of the candidates: run r is one of candidate r modulo their number.
    stopping_shape : float, default=2.0
        Shape of the random number of runs, above -1: 0 is the logarithmic law, 1 the geometric one,
        ``inf`` the Poisson one. Smaller shapes cost less and vary more.
    selection_share : float or "auto", default="auto"
        Share of `epsilon` for choosing by scores, not for ``"random-stopping"``. ``"auto"`` is 0.1
        for ``"cv"``, and else 1 without a refit (a record is trained on or scored on, never both),
        0.25 with one.
    noisy_scores : bool, default=False
        Whether ``"holdout"`` and ``"cv"`` release noisy scores of all candidates and choose by
        these. ``"random-stopping"`` always releases that of the chosen run, at no extra price, and
        ``"fixed"`` those of all runs.
    refit : bool or "auto", default="auto"
        Whether the chosen candidate is trained again on all rows, at a price. ``"auto"`` is True
        for ``"cv"`` and False for the others, whose `best_estimator_` is the model that won,
        trained on the training part.
    refit_share : float, default=0.5
        The refit's part of what is spent, in squares of epsilon, about.
    step_weights : dict or None, default=None
        Relative epsilon of the private steps of a pipeline by name. By default a final step has 1
        and every private transformer 0.25; delta is divided evenly.
    accountant : BudgetAccountant or None, default=None
        Budget to charge before rows are used. None charges that of the ``with`` block in which it
        is made or fitted; without one the fit is not counted, or refused where `set_config`
        requires a budget. The search is charged once.
    n_jobs : int or None, default=None
        Number of runs at a time, by joblib.
    random_state : int, RandomState or None, default=None
        None draws all randomness from a cryptographic stream keyed by the operating system. A seed
        is for tests: the guarantee does not hold against whoever knows it.
    verbose : int, default=0
        If positive, print what the fit will spend. Runs are not reported, but for a bar in a
        terminal or a notebook where their number is public and rich is installed; the environment
        variable ``SKDP_PROGRESS=0`` turns it off.

    Attributes
    ----------
    best_estimator_ : estimator
        The released model. Its `privacy_spent_` is that of the whole search. Missing after
        ``method="cv"`` with ``refit=False``.
    best_params_ : dict
        Parameters of the chosen candidate.
    best_index_ : int
        Its row in `candidates_`.
    best_score_ : float
        Noisy mean score of the chosen candidate, where one was paid for. It is the largest of
        several, and so too good on average.
    noisy_scores_ : ndarray of shape (n_candidates,) or (n_runs,)
        Noisy mean scores: with ``noisy_scores=True`` of the candidates, by ``"fixed"`` of the runs.
    candidates_ : dict
        Table of the candidates' parameters. There is no ``cv_results_``: scores and times of runs
        are private.
    inner_epsilon_ : float
        Epsilon of one training inside the search.
    privacy_spent_ : PrivacySpent
        The guarantee of the whole search, its mechanism and its assumptions.
    classes_ : ndarray of shape (n_classes,)
        Labels, of classifiers.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of columns, if the model knows any.

    See Also
    --------
    PrivateRandomizedSearchCV : Candidates drawn from distributions.

    Notes
    -----
    How long a search takes is a side channel: with ``"random-stopping"`` it tells about the number
    of runs, which the theorem needs to stay unknown. Publish neither. Runs are silent: while they
    go on, warnings and logging are off in the whole process, and what runs print is dropped. A run
    that fails has the worst score; only if it is chosen an error ends the search, after the charge.

    References
    ----------
    Papernot & Steinke (2022), "Hyperparameter Tuning with Renyi Differential Privacy". Koskela,
    Redberg & Wang (2024), "Privacy Profiles for Private Selection". McKenna & Sheldon (2020),
    "Permute-and-Flip". Proofs: :ref:`Theorems 1, 4, 10 and 11 of private selection
    <private-selection-1>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.model_selection import PrivateGridSearchCV
    >>> X, y = make_blobs(2000, centers=2, random_state=0)
    >>> search = PrivateGridSearchCV(
    ...     OperaLogisticRegression(data_norm=10.0),
    ...     {"alpha": [0.1, 1.0, 10.0]},
    ...     epsilon=2.0,
    ...     delta=1e-5,
    ... ).fit(X, y)
    >>> search.privacy_spent_.epsilon <= 2.0
    True
    >>> sorted(search.best_params_)
    ['alpha']
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        method: SearchMethod = "random-stopping",
        adjacency: Adjacency = "replace-one",
        scoring: Any = "auto",
        cv: Any = 5,
        holdout_fraction: float = 0.2,
        expected_candidates: float | Auto = "auto",
        stopping_shape: float = 2.0,
        selection_share: float | Auto = "auto",
        noisy_scores: bool = False,
        refit: bool | Auto = "auto",
        refit_share: float = 0.5,
        step_weights: Any = None,
        accountant: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.adjacency = adjacency
        self.scoring = scoring
        self.cv = cv
        self.holdout_fraction = holdout_fraction
        self.expected_candidates = expected_candidates
        self.stopping_shape = stopping_shape
        self.selection_share = selection_share
        self.noisy_scores = noisy_scores
        self.refit = refit
        self.refit_share = refit_share
        self.step_weights = step_weights
        self.accountant = accountant
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _points(self, stream: RandomStream) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


class PrivateRandomizedSearchCV(PrivateSearch):
    """Choose parameters from random candidates and train a model, within one privacy budget.

    Takes the place of scikit-learn's `RandomizedSearchCV`: `n_iter` candidates are drawn before
    rows are looked at, and compared as `PrivateGridSearchCV` compares those of a grid.

    Parameters
    ----------
    estimator : estimator
        See `PrivateGridSearchCV`.
    param_distributions : dict or list of dict
        Parameters and their values or distributions, as for `RandomizedSearchCV`. A public choice.
    n_iter : int, default=10
        Number of candidates.
    epsilon : float, default=1.0
        Privacy parameter of one fit, positive. That fit is the whole search, the final model
        included.
    delta : float, default=1e-6
        Privacy parameter of one fit, in (0, 1); keep it well below 1/n. That fit is the whole
        search.
    method : {"random-stopping", "fixed", "holdout", "cv"}, default="random-stopping"
        How candidates are compared; see `PrivateGridSearchCV`.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring tables: one row replaced, or one added or removed. It is that of the search and
        of all its fits.
    scoring : str or RowScorer, default="auto"
        A score that is a sum over rows of bounded values: "accuracy" or "neg_brier_score", or of
        regressors "neg_mean_absolute_error" or "neg_mean_squared_error", whose bounds are those of
        errors within `target_bounds`; see `make_row_scorer` for others. ``"auto"`` is the first of
        either.
    cv : int or KFold, default=5
        Number of folds of ``method="cv"``.
    holdout_fraction : float, default=0.2
        Share of the rows that are scored on, not by ``"cv"``.
    expected_candidates : float or "auto", default="auto"
        Expected number of runs of ``"random-stopping"``, by default three times `n_iter`; that of
        ``"fixed"``, by default `n_iter`.
    stopping_shape : float, default=2.0
        Shape of the random number of runs; see `PrivateGridSearchCV`.
    selection_share : float or "auto", default="auto"
        Share of `epsilon` for choosing by scores; see `PrivateGridSearchCV`.
    noisy_scores : bool, default=False
        Whether to release noisy scores of all candidates.
    refit : bool or "auto", default="auto"
        Whether the chosen candidate is trained again on all rows; see `PrivateGridSearchCV`.
    refit_share : float, default=0.5
        The refit's part of what is spent.
    step_weights : dict or None, default=None
        Relative epsilon of the private steps of a pipeline by name.
    accountant : BudgetAccountant or None, default=None
        Budget to charge before rows are used. None charges that of the ``with`` block in which it
        is made or fitted; without one the fit is not counted, or refused where `set_config`
        requires a budget. The search is charged once.
    n_jobs : int or None, default=None
        Number of runs at a time, by joblib.
    random_state : int, RandomState or None, default=None
        None draws all randomness from a cryptographic stream keyed by the operating system. A seed
        is for tests: the guarantee does not hold against whoever knows it.
    verbose : int, default=0
        If positive, print what the fit will spend. A bar of runs: see `PrivateGridSearchCV`.

    Attributes
    ----------
    best_estimator_ : estimator
        The released model.
    best_params_ : dict
        Parameters of the chosen candidate.
    best_index_ : int
        Its row in `candidates_`.
    best_score_ : float
        Noisy mean score of the chosen candidate, where one was paid for.
    noisy_scores_ : ndarray of shape (n_iter,) or (n_runs,)
        Noisy mean scores; see `PrivateGridSearchCV`.
    candidates_ : dict
        Table of the candidates' parameters.
    inner_epsilon_ : float
        Epsilon of one training inside the search.
    privacy_spent_ : PrivacySpent
        The guarantee of the whole search.
    classes_ : ndarray of shape (n_classes,)
        Labels, of classifiers.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of columns, if the model knows any.

    See Also
    --------
    PrivateGridSearchCV : All candidates of a grid; more on every parameter.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.model_selection import PrivateRandomizedSearchCV
    >>> X, y = make_blobs(2000, centers=2, random_state=0)
    >>> search = PrivateRandomizedSearchCV(
    ...     OperaLogisticRegression(data_norm=10.0),
    ...     {"alpha": loguniform(0.01, 10.0)},
    ...     n_iter=5,
    ...     epsilon=2.0,
    ...     delta=1e-5,
    ... ).fit(X, y)
    >>> search.privacy_spent_.epsilon <= 2.0
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        method: SearchMethod = "random-stopping",
        adjacency: Adjacency = "replace-one",
        scoring: Any = "auto",
        cv: Any = 5,
        holdout_fraction: float = 0.2,
        expected_candidates: float | Auto = "auto",
        stopping_shape: float = 2.0,
        selection_share: float | Auto = "auto",
        noisy_scores: bool = False,
        refit: bool | Auto = "auto",
        refit_share: float = 0.5,
        step_weights: Any = None,
        accountant: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.adjacency = adjacency
        self.scoring = scoring
        self.cv = cv
        self.holdout_fraction = holdout_fraction
        self.expected_candidates = expected_candidates
        self.stopping_shape = stopping_shape
        self.selection_share = selection_share
        self.noisy_scores = noisy_scores
        self.refit = refit
        self.refit_share = refit_share
        self.step_weights = step_weights
        self.accountant = accountant
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _points(self, stream: RandomStream) -> list[dict[str, Any]]:
        check_integer("n_iter", self.n_iter, at_least=1)
        # The sampler is a public choice: 32 bits of the stream tell nothing of the noise.
        seed = int(stream.words(1)[0]) >> 32
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=seed))
