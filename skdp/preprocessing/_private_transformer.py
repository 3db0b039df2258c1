"""Base of all private transformers: validation, charging, the order of a fit."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import check_integer, released
from skdp.fitting import FRAMES_ABOVE, FitProgress, PrivateFit
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.plans.protocol import OnAllRows
from skdp.plans.second_moments import bound_rows
from skdp.preprocessing.bounded_scaler import RowTransformer
from skdp.tables.inputs import warn_of_unbounded_rows
from skdp.tables.records import Records
from skdp.tables.units import about_units


@dataclass(frozen=True)
class Plan(OnAllRows):
    """The releases of a fit, all of one kind, and whether a record is all rows of an id."""

    release: Release
    by_unit: bool


class PrivateTransformer(PrivateFit, RowTransformer):
    """Base of the transformers that learn from rows under differential privacy.

    They transform row by row, and map neighbouring tables to neighbouring tables.
    """

    if TYPE_CHECKING:
        verbose: int = released()  # no parameter
    else:
        verbose = 0

    _added_texts: ClassVar[dict[str, str]] = {
        "adjacency": "A removed record contributes zero, and n stays public.",
    }
    _listed: ClassVar[tuple[str, ...]] = (
        *("n_components", "epsilon", "delta", "data_norm", "center", "whiten", "quantiles"),
        *("lower", "upper", "smallest", "resolution", "with_mean", "with_std", "adjacency"),
        *("row_norm", "input_norm", "n_groups", "accountant", "random_state", "lower_", "upper_"),
        *("quantiles_", "components_", "explained_variance_", "noise_edge_", "mean_", "var_"),
        *("scale_", "data_norm_", "privacy_spent_", "n_features_in_", "feature_names_in_"),
    )
    _fit_takes = "X and groups"
    _beside_rows = ("groups",)
    _remedy_for_epsilon = (
        "Smaller means more private; it adds to the privacy cost of the estimator."
    )
    _released: ClassVar[tuple[str, ...]]

    def fit(self, X: Any, y: Any = None, groups: Any = None, **fit_params: Any) -> Self:
        """Learn from the rows under differential privacy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            Ids, whole numbers or texts. All rows of one id are then one record, and the guarantee
            protects them together. The record contributes the mean of its rows' contributions. n is
            the public number of ids, and the number of rows is private. None treats each row as a
            record.
        **fit_params : dict
            Must be empty. `sample_weight` is refused, because a weight multiplies one record's
            influence, and the sensitivity, without bound.

        Returns
        -------
        self : transformer
            The fitted transformer. Every attribute with a trailing underscore is private and may be
            published.

        Raises
        ------
        ValueError, TypeError
            For bad parameters or input, before anything is charged.
        BudgetExceededError
            If the charge exceeds the remaining budget; no row is used then.
        """
        return self._fit(X, None, fit_params | ({} if groups is None else {"groups": groups}))

    def privacy_plan(self, n_samples: int, n_features: int, groups: bool = False) -> PrivacySpent:
        """Return the privacy cost of a fit on a table with the given public shape.

        Nothing is charged and no data are needed. The noise of a fit depends only on the parameters
        and on public numbers.

        Parameters
        ----------
        n_samples : int
            Number of rows, or of ids with `groups`.
        n_features : int
            Number of columns.
        groups : bool, default=False
            Whether `fit` will receive ``groups=``.

        Returns
        -------
        PrivacySpent
            The record that `privacy_spent_` would be.

        Examples
        --------
        >>> from skdp.preprocessing import DPStandardScaler
        >>> scaler = DPStandardScaler(lower=0.0, upper=200.0, epsilon=0.5)
        >>> round(scaler.privacy_plan(n_samples=1000, n_features=5).epsilon, 6)
        0.5
        """
        self._check_parameters()
        n_samples = check_integer("n_samples", n_samples, at_least=1)
        n_features = check_integer("n_features", n_features, at_least=1)
        return self._account(Plan(self._build_plan(n_samples, n_features), groups))

    # What each transformer fills in.

    @abstractmethod
    def _build_plan(self, n_samples: int, n_features: int) -> Release:
        """Return the releases that the parameters and the public shape determine."""

    @abstractmethod
    def _learn(self, records: Records, release: Release, stream: RandomStream) -> None:
        """Make the releases and set the attributes that follow from them."""

    @abstractmethod
    def _map(self, X: Any) -> np.ndarray:
        """Transform valid rows, before they are shortened to ``data_norm_``."""

    @abstractmethod
    def _theorem(self) -> str:
        """Return the name of the released quantity, for the statement."""

    def _apply(self, X: Any) -> np.ndarray:
        return bound_rows(self._map(X).astype(X.dtype, copy=False), self.data_norm_)

    # The order of a fit.

    def _read(self, X: Any, y: Any, params: dict[str, Any]) -> Records:
        records = Records.read(self, X, groups=params.get("groups"), **self._checks())
        warn_of_unbounded_rows(self, (records.X, X), 4 + FRAMES_ABOVE)
        return records

    def _plan(self, records: Records) -> Plan:
        return Plan(self._build_plan(records.n_rows, records.n_features), records.by_unit)

    def _use_rows(self, plan: Plan, records: Records, progress: FitProgress) -> None:
        self._learn(records, plan.release, self._stream(records))

    def _publish(self, plan: Plan, records: Records, released: None, spent: PrivacySpent) -> None:
        """Do nothing: all learned attributes are released and already set."""

    def _account(self, plan: Plan) -> PrivacySpent:
        release = plan.release
        times = "one Gaussian vector" if release.times == 1 else f"{release.times} Gaussian vectors"
        mechanism = (
            f"{self._theorem()}: L2 sensitivity {release.l2:.6g} (scaled units), {times} of "
            f"standard deviation {release.scale:.6g} by the analytic Gaussian mechanism (Balle & "
            "Wang 2018, Theorem 8)"
        )
        assumptions = (
            release.reason,
            f"the number of {'units' if plan.by_unit else 'rows'}, the columns and all parameters "
            "are public",
            *((about_units("its sums are means over them"),) if plan.by_unit else ()),
        )
        return self._record_of(
            *(release.event, self._relation, mechanism, assumptions, self._released),
            accountant="gdp",
            by_unit=plan.by_unit,
        )
