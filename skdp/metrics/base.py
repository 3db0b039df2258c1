"""What evaluations share: checks of the call, the record and the charge, predictions unheard."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from skdp.budget.charging import ChargesBudget, charge, check_accountant, find_relation
from skdp.exceptions import PrivacyWarning, RowsChangedError
from skdp.inputs import refuse_masked, refuse_times
from skdp.mechanisms.contribution import ADJACENCIES, Adjacency
from skdp.mechanisms.random_stream import is_seeded
from skdp.metrics.examination import numbers_of
from skdp.parameters import SMALLEST_DELTA, check_choice, check_integer, check_real
from skdp.pipelines import first_step
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.row_scores import Way, ask_rows
from skdp.row_sources import in_blocks, source_of
from skdp.silence import around_runs
from skdp.tables.places import counted, read_each, without_rows

_ARITHMETIC = (
    "counts are integers, and their noise is drawn on the integers with exact probabilities "
    "(docs/proofs/evaluation.md)"
)


class EvaluatesModel(ChargesBudget, BaseEstimator):
    """Base of what evaluates a public model on private rows by one charged release."""

    epsilon: Any
    delta: Any
    adjacency: Any
    accountant: Any
    n_bins: Any
    subgroups: Any = None  # of evaluations that have any
    random_state: Any
    verbose: Any

    # What was called, and its method, where the evaluation is a part of it.
    _caller: tuple[Any, str] | None = None

    def _check_shared(self) -> None:
        check_real("epsilon", self.epsilon, at_least=1e-9, at_most=1e6)
        check_real("delta", self.delta, at_least=SMALLEST_DELTA, below=1.0)
        if self.adjacency is not None:
            check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_accountant(self.accountant)
        is_seeded(self.random_state)
        if self.n_bins != "auto":
            check_integer("n_bins", self.n_bins, at_least=10)
        # A label that is not equal to itself, as NaN, is no label; pandas' NA does not say.
        if any(
            at is None or not isinstance(at == at, bool | np.bool_) or at != at
            for at in (() if self.subgroups is None else self.subgroups)
        ):
            raise ValueError("subgroups must be labels other than None and NaN.")
        if self.subgroups is not None and len(set(self.subgroups)) < max(1, len(self.subgroups)):
            raise ValueError(f"subgroups must be distinct labels, got {self.subgroups!r}.")

    def _find_relation(self) -> Adjacency:
        found: Adjacency = self.adjacency or find_relation(self.accountant, self._bound_accountant)
        return found

    def _check_model(self, model: Any, X: Any) -> None:
        shown = without_rows(X)
        refuse_masked(shown)
        first = first_step(model)
        if first is model or isinstance(first, ChargesBudget):  # others may make numbers of times
            refuse_times(shown)
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)
        columns, wanted = getattr(X, "shape", (0, None))[1:], getattr(model, "n_features_in_", None)
        if wanted is not None and columns not in ((None,), (wanted,)):
            raise ValueError(f"X must have the {wanted} columns of the model, got {columns}.")

    def _check_lengths(self, X: Any, y: np.ndarray, names: str, *others: Any) -> None:
        if y.size == 0:
            raise ValueError("y is empty: give at least one row.")
        try:
            check_consistent_length(
                counted(X), y, *(column for column in others if column is not None)
            )
        except ValueError:
            raise ValueError(f"{names} must have one entry for each row.") from None

    def _members(self, given: Any, n_rows: int) -> np.ndarray:
        """Return the place of each row's subgroup on the declared list."""
        if (given is None) != (self.subgroups is None):
            raise ValueError(
                f"declare the list of subgroups in {type(self).__name__}(subgroups=[...]), and "
                "give each row's in evaluate(..., subgroups=...): both or neither."
            )
        if given is None:
            return np.zeros(n_rows, dtype=np.int64)
        refuse_masked(given, "subgroups")
        places = {label: place for place, label in enumerate(self.subgroups)}
        try:
            if getattr(given, "ndim", 1) != 1:
                raise TypeError
            members = np.array([places.get(label, -1) for label in list(given)])
        except TypeError:
            members = None
        if members is None:
            raise ValueError("subgroups must be a column with one label for each row.")
        if (members < 0).any():
            raise ValueError(
                "some rows have a subgroup that is not declared: subgroups= must list all that "
                "can occur, in the type that rows have."
            )
        return members

    def _warn_of_delta(self, n: int, stacklevel: int = 3) -> None:
        if self.delta >= 1.0 / n:
            warnings.warn(
                f"delta={self.delta:g} is not below 1/n={1.0 / n:.3g}: such a delta permits "
                "publishing whole rows at random. Choose delta well below 1/n.",
                PrivacyWarning,
                stacklevel=stacklevel,
            )

    def _spent(
        self,
        plan: Any,
        assumptions: tuple[str, ...],
        released: tuple[str, ...],
        by_person: bool,
    ) -> PrivacySpent:
        who = "persons, of whom each id in groups= is one," if by_person else "rows"
        return PrivacySpent(
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            adjacency=plan.adjacency,
            event=plan.event,
            accountant="pld",
            mechanism=f"evaluation of a public model: {plan.describe()}",
            assumptions=(*assumptions, f"the number of {who} is public"),
            released=released,
            seeded=is_seeded(self.random_state),
            arithmetic=_ARITHMETIC,
            unit="group" if by_person else "row",
        )

    def _charge(self, spent: PrivacySpent) -> None:
        """Charge the budget of whoever was called."""
        caller, method = self._caller or (self, ".evaluate")
        name, parameters = type(caller).__name__, caller.get_params(deep=False)
        charge(self.accountant, spent, name, method, parameters, caller._bound_accountant)
        if self.verbose:
            print(f"[{name}] {spent!r}: {spent.mechanism}")

    def _ask(
        self, method: Callable[..., Any], X: Any, shape: tuple[int, int], way: Way
    ) -> np.ndarray:
        """Return what a model says of rows, as finite numbers of a shape; nobody hears it."""
        ask = partial(ask_rows, partial(numbers_of, method), way=way)

        def read(rows: Any) -> np.ndarray:
            source = source_of(rows, converted=False)
            return in_blocks(ask, rows if source is None else source)

        try:
            with around_runs():
                (raw,) = read_each([(read, X)])
            sound = raw.shape == shape
        except RowsChangedError:
            raise
        except (Exception, SystemExit):
            sound = False
        if not sound:
            raise ValueError(
                "the model failed on the rows, or returned scores that are not one for each row "
                "and class. What it said is withheld, since it may quote private values, and the "
                "charge stays: try it on made-up rows first."
            )
        return raw
