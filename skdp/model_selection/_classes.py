"""The two private searches: over a grid, and over a random sample of a space."""

from __future__ import annotations

from typing import Any

from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdp.base.parameters import check_integer, parameter
from skdp.mechanisms.random_stream import RandomStream
from skdp.model_selection._search import PrivateSearch


class PrivateGridSearchCV(PrivateSearch):
    """Choose parameters from a grid and train a model, all within one privacy budget.

    Takes the place of scikit-learn's `GridSearchCV` around private estimators. `epsilon` and
    `delta` are those of the whole search, the final model included: what each inner fit may spend
    is solved for by exact composition, and the budget is charged once.

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

    param_grid: Any = parameter(
        "dict or list of dict",
        "Parameters and their values, as for `GridSearchCV`. A public choice.",
        kw_only=False,
    )

    def _points(self, stream: RandomStream) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


class PrivateRandomizedSearchCV(PrivateSearch):
    """Choose parameters from random candidates and train a model, within one privacy budget.

    Takes the place of scikit-learn's `RandomizedSearchCV`: `n_iter` candidates are drawn before
    rows are looked at, and compared as `PrivateGridSearchCV` compares those of a grid.

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

    param_distributions: Any = parameter(
        "dict or list of dict",
        """Parameters and their values or distributions, as for `RandomizedSearchCV`. A public
        choice.""",
        kw_only=False,
    )
    n_iter: int = parameter("int", "Number of candidates.", default=10)

    def _points(self, stream: RandomStream) -> list[dict[str, Any]]:
        check_integer("n_iter", self.n_iter, at_least=1)
        # The sampler is a public choice: 32 bits of the stream tell nothing of the noise.
        seed = int(stream.words(1)[0]) >> 32
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=seed))
