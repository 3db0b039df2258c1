"""Private searches over a grid or over random candidates."""

from __future__ import annotations

from typing import Any

from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdp.base.parameters import check_integer, parameter
from skdp.mechanisms.random_stream import RandomStream
from skdp.model_selection._search import PrivateSearch


class PrivateGridSearchCV(PrivateSearch):
    """Private grid search with one privacy budget for choice and final model.

    Replaces scikit-learn's `GridSearchCV` for private estimators. `epsilon` and `delta` cover the
    entire search, including the final model. The epsilon of each inner fit follows from exact
    composition, and the budget is charged once.

    See Also
    --------
    PrivateRandomizedSearchCV : Candidates drawn from distributions.

    Notes
    -----
    The run time of a search is a side channel: with ``"random-stopping"`` it reveals the number of
    runs, which the theorem assumes to be secret. Publish neither. Runs are silent: during runs,
    warnings and logging are off in the entire process, and printed output is dropped. A run that
    fails gets the worst score. If it is chosen, the search raises after the charge.

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

    param_grid: Any = parameter(
        "dict or list of dict",
        "Parameters and their values, as for `GridSearchCV`. Must be public.",
        kw_only=False,
    )

    def _points(self, stream: RandomStream) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


class PrivateRandomizedSearchCV(PrivateSearch):
    """Private search over random candidates with one privacy budget for choice and final model.

    Replaces scikit-learn's `RandomizedSearchCV`: `n_iter` candidates are drawn before rows are
    used, and compared as in `PrivateGridSearchCV`.

    See Also
    --------
    PrivateGridSearchCV : All candidates of a grid, with more details.

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

    param_distributions: Any = parameter(
        "dict or list of dict",
        """Parameters and their values or distributions, as for `RandomizedSearchCV`. Must be
        public.""",
        kw_only=False,
    )
    n_iter: int = parameter("int", "Number of candidates.", default=10)

    def _points(self, stream: RandomStream) -> list[dict[str, Any]]:
        check_integer("n_iter", self.n_iter, at_least=1)
        # The sampler is public: 32 bits of the stream reveal nothing about the noise.
        seed = int(stream.words(1)[0]) >> 32
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=seed))
