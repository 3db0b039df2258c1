"""Base class of the private searches: checks, plan, charge and fit."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from inspect import signature
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.parallel import Parallel

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import check_choice, check_integer, check_real
from skdp.base.pipelines import containers, is_routed, take_apart
from skdp.base.scikit_learn import responds
from skdp.estimators.labels import encode_labels, read_numbers
from skdp.fitting import FRAMES_ABOVE, FitProgress
from skdp.mechanisms.random_stream import RandomStream, resolve_random_state
from skdp.model_selection import _plan
from skdp.model_selection._methods import Candidate, Choice, Search
from skdp.model_selection._parameters import DelegatesToBest, SearchParameters
from skdp.model_selection._plan import Design, PricedSearch, plan_search
from skdp.model_selection._runs import (
    Table,
    assign_folds,
    assign_holdout,
    check_parts,
    check_table,
    digest,
    n_rows,
    parameter_table,
    resolve_cv,
    restore_parameters,
)
from skdp.model_selection._scoring import refuse_other_score
from skdp.model_selection._steps import (
    assumptions_of,
    bounds_of_rows,
    check_first_steps,
    check_no_ids,
    check_units,
    private_steps,
    refuse_searched,
)
from skdp.tables.inputs import known_bound, warn_of_unbounded_rows
from skdp.tables.places import in_memory, taken_for_granted, whole
from skdp.tables.records import describe
from skdp.tables.units import units_of

METHODS = ("random-stopping", "fixed", "holdout", "cv")

# Up to this number of candidates, one run each costs less than random stopping (search_gains.md).
_FEW_CANDIDATES = 3

# Share of epsilon for the choice by scores, if it adds to that of training.
_SELECTION_SHARE = {"cv": 0.1, "holdout": 0.25, "fixed": 0.25}
_MET = 0.99  # a search that uses this share of the target reports the target


class Prepared(NamedTuple):
    """Objects derived from public numbers before a search is planned."""

    candidates: list[Candidate]
    parts: list[np.ndarray]
    public: RandomStream


class PrivateSearch(SearchParameters, DelegatesToBest):
    """Base of the private searches, with one plan and one charge for the entire search."""

    _fit_takes = None
    _remedy_for_epsilon = "It is for the entire search."

    @abstractmethod
    def _points(self, stream: RandomStream) -> list[dict[str, Any]]:
        """Return the parameters of all candidates, which must not depend on the rows."""

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Self:
        """Choose a candidate privately and train the released model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. For a pipeline of a schema: a table, including its columns of labels and ids.
        y : array-like of shape (n_samples,)
            Labels.
        groups : array-like of shape (n_samples,), default=None
            Ids, integers or texts. The guarantee then protects all rows of one id as one record.
            They are in one part, and their score is the mean over the rows. Every private step
            receives the ids, and the number of rows is private. None treats each row as a record.
            Steps in a `ColumnTransformer` or `FeatureUnion` require metadata routing.
        **params : dict
            Metadata for the estimator's `fit`. Entries with one value per row are divided like the
            rows. `sample_weight` is refused.

        Returns
        -------
        self : estimator
            The search. All attributes with a trailing underscore may be published.

        Raises
        ------
        ValueError, TypeError
            For invalid parameters or input, before anything is charged. If the chosen run failed,
            after the charge; the original message is omitted if it may quote rows.
        BudgetExceededError
            If the charge exceeds the accountant's remaining budget. The rows are not used then.
        """
        return self._fit(X, y, params | ({} if groups is None else {"groups": groups}))

    def privacy_plan(
        self, n_samples: int, n_features: int, n_classes: int = 2, groups: bool = False
    ) -> PrivacySpent:
        """Return the privacy cost of `fit` for a public table shape, without data or a charge.

        Parameters
        ----------
        n_samples : int
            Number of rows, or of ids if `groups` is True.
        n_features : int
            Number of columns.
        n_classes : int, default=2
            Number of labels of a classifier.
        groups : bool, default=False
            Whether `fit` will receive ``groups=``.

        Returns
        -------
        PrivacySpent
            Record that `privacy_spent_` would contain. Under add-remove, parts are drawn row by
            row, so their sizes and the record's details vary slightly.

        Raises
        ------
        ValueError, TypeError
            For invalid parameters, as in `fit`.
        CalibrationError
            If there are too many candidates for the budget.
        """
        self._check_parameters()
        n_samples = check_integer("n_samples", n_samples, at_least=1)
        n_features = check_integer("n_features", n_features, at_least=1)
        n_classes = check_integer("n_classes", n_classes, at_least=2)
        n_classes = 1 if is_regressor(self.estimator) else n_classes
        seed = self.random_state if isinstance(self.random_state, int | np.integer) else 0
        stream = RandomStream.from_seed(int(seed), self._context(n_samples))
        candidates = self._candidates(stream.spawn("candidates"))
        parts = self._parts(n_samples, stream.spawn("parts"))
        return self._account(
            plan_search(self._design(candidates, parts, (n_samples, n_features, n_classes), groups))
        )

    # The order of a fit.

    def _read(self, X: Any, y: Any, params: dict[str, Any]) -> Table:
        X, y, groups = take_apart(self.estimator, X, y, params.get("groups"))
        params = params if groups is None else {**params, "groups": groups}
        if any(hasattr(part, "_take_apart") for part in containers(self.estimator).values()):
            X = whole(X)
        assumptions = taken_for_granted(X, y, *params.values())
        X, y, *columns = in_memory(X, y, *params.values())  # each run copies its rows
        params = dict(zip(params, columns, strict=True))
        fit_params, groups = self._route(params), params.get("groups")
        X, y, labels = self._check_table(X, y)
        units = None if groups is None else units_of(groups, n_rows(X))
        weights = None if units is None else units.weights()
        own = X, y, labels, units, weights, assumptions
        records = Table(*own, fit_params=fit_params, groups=groups)
        public = resolve_random_state(self.random_state, self._context(records.n_rows))
        candidates = self._candidates(public.spawn("candidates"))
        for candidate in candidates:
            if groups is not None:
                check_units(candidate.estimator, candidate.steps)
            else:
                check_no_ids(candidate.estimator, X, fit_params, candidate.steps)
        check_first_steps((candidate.estimator for candidate in candidates), X)
        parts = self._parts(records.n_rows, public.spawn("parts"))
        self._warn_of_norm(X, candidates)
        return replace(records, prepared=Prepared(candidates, parts, public))

    def _plan(self, records: Table) -> PricedSearch:
        n_labels = 1 if records.labels is None else records.labels.size
        shape = (records.n_rows, records.n_features, n_labels)
        candidates, parts, _ = records.prepared
        return plan_search(self._design(candidates, parts, shape, records.by_unit))

    def _public_steps(self, plan: PricedSearch) -> int:
        return plan.design.public_runs

    def _use_rows(self, plan: PricedSearch, records: Table, progress: FitProgress) -> Any:
        (candidates, parts, public), context = records.prepared, b""
        if public.seeded:
            # One seed on two tables must not give the same noise.
            others: Any = records.fit_params
            if records.units is not None:
                others = others, records.units.codes
            context = digest(records.X, records.targets, others)
        stream = public.bound_to(context)
        search = Search(
            plan=plan,
            candidates=candidates,
            table=replace(records, prepared=None),
            parts=parts,
            labels=records.labels,
            scorer=self._scorer(),
            stream=stream.spawn("runs"),
            n_jobs=self.n_jobs,
            announce=progress.steps_done if plan.design.public_runs else None,
            bar=not hasattr(self, "_skl_callbacks"),  # they may have one
        )
        choice = search.choose()
        return choice, search.refit_choice(choice.number) if plan.design.refit else choice.model

    # Checks.

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("method", self.method, ("auto", *METHODS))
        self._scorer()
        resolve_cv(self.cv)
        check_real("holdout_fraction", self.holdout_fraction, above=0.0, below=1.0)
        check_real("expected_candidates", self.expected_candidates, at_least=1.0, allowed=("auto",))
        if self.stopping_shape != float("inf"):
            check_real("stopping_shape", self.stopping_shape, above=-1.0)
        check_real("selection_share", self.selection_share, above=0.0, below=1.0, allowed=("auto",))
        check_choice("noisy_scores", self.noisy_scores, (True, False))
        check_choice("refit", self.refit, (True, False, "auto"))
        check_real("refit_share", self.refit_share, above=0.0, below=1.0)
        for name, weight in dict(self.step_weights or {}).items():
            check_real(f"step_weights[{name!r}]", weight, above=0.0)
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise ValueError(f"n_jobs must be None or a non-zero integer, got {self.n_jobs!r}.")
        # Not all of joblib's backends can do it, and runs begin after the charge.
        Parallel(n_jobs=self.n_jobs, return_as="generator")

    def _route(self, params: dict[str, Any]) -> dict[str, Any]:
        if is_routed():
            return dict(process_routing(self, "fit", **params)["estimator"]["fit"])
        params = {name: value for name, value in params.items() if name != "groups"}
        for name in params:
            step, _, parameter = name.rpartition("__")
            steps: dict[str, Any] = dict(getattr(self.estimator, "steps", ()))
            part = steps.get(step, object()) if step else self.estimator
            if not hasattr(part, "fit") or parameter not in signature(part.fit).parameters:
                raise TypeError(
                    f"{type(self).__name__}.fit got {name!r}, which is not a parameter of the "
                    "estimator's fit."
                )
        return params

    def _check_table(self, X: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return the table, its labels as an array, and the label set (None for numbers)."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        template = clone(self.estimator)
        given = template.get_params(deep=True).items()
        classes = next((v for k, v in given if k.rpartition("__")[2] == "classes"), None)
        X, y = check_table(template, X, y)
        if is_regressor(template):
            return X, read_numbers(y), None
        labels, _ = encode_labels(y, classes)
        return X, y, labels

    def _warn_of_norm(self, X: Any, candidates: list[Candidate]) -> None:
        for candidate in candidates:
            if all(getattr(step.estimator, "data_norm", 1.0) for step in candidate.steps):
                continue
            for step, bound in bounds_of_rows(candidate.estimator, known_bound(X)):
                if warn_of_unbounded_rows(step, (), 5 + FRAMES_ABOVE, bound):
                    return

    # From parameters to the plan.

    def _context(self, rows: int) -> bytes:
        """Return a context that differs between searches of other public shape or parameters."""
        own = self.get_params(deep=True)
        # As given or not, it is the same search.
        own |= {name: self._relation for name in own if name.rpartition("__")[2] == "adjacency"}
        hidden = ("random_state", "accountant", "verbose", "n_jobs")
        texts = [
            f"{name}={describe(own[name])}"
            for name in sorted(own)
            if name.rpartition("__")[2] not in hidden
        ]
        return f"{type(self).__name__} {rows} {texts}".encode()

    def _candidates(self, stream: RandomStream) -> list[Candidate]:
        candidates = []
        for point in self._points(stream):
            estimator = clone(self.estimator).set_params(**clone(point, safe=False))
            steps = private_steps(estimator, self.step_weights)
            refuse_searched(steps, point)
            refuse_other_score(self.scoring, self.estimator, estimator)
            candidates.append(Candidate(point, estimator, steps))
        if not candidates:
            raise ValueError("The grid must contain at least one candidate, got none.")
        return candidates

    def _parts(self, rows: int, stream: RandomStream) -> list[np.ndarray]:
        if self.method == "cv":
            n_folds = resolve_cv(self.cv)
            if n_folds > rows:
                raise ValueError(
                    f"cv={n_folds} must be at most the number of rows or units, got {rows}."
                )
            parts = assign_folds(rows, n_folds, self._relation, stream)
            check_parts([rows - len(part) for part in parts], rows, f"cv={n_folds}")
            return parts
        parts = assign_holdout(rows, self.holdout_fraction, self._relation, stream)
        check_parts([len(parts[0])], rows, f"holdout_fraction={self.holdout_fraction:g}")
        return parts

    def _design(
        self,
        candidates: list[Candidate],
        parts: list[np.ndarray],
        shape: tuple[int, int, int],
        by_unit: bool,
    ) -> Design:
        sizes = tuple(shape[0] - len(part) for part in parts)
        refit = self.method == "cv" if self.refit == "auto" else bool(self.refit)
        method, share = self._method_for(len(candidates)), 1.0
        if method == "cv" or refit:
            share = _SELECTION_SHARE.get(method, 0.0)
        if self.selection_share != "auto":
            share = self.selection_share
        return Design(
            method=method,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            adjacency=self._relation,
            candidates=tuple(candidate.steps for candidate in candidates),
            train_sizes=sizes if self.method == "cv" else (len(parts[0]),),
            n_rows=shape[0],
            n_columns=shape[1],
            n_classes=shape[2],
            mean=self._runs(len(candidates)),
            shape=float(self.stopping_shape),
            refit=refit,
            refit_share=float(self.refit_share),
            selection_epsilon=share * float(self.epsilon),
            noisy_scores=bool(self.noisy_scores) or method == "fixed",
            assumptions=assumptions_of(candidate.estimator for candidate in candidates),
            by_unit=by_unit,
        )

    def _account(self, plan: PricedSearch) -> PrivacySpent:
        design = plan.design
        bound = plan.accountant().epsilon(design.delta)
        # Candidates of given noise may cost much less than they are allowed.
        met = bound >= _MET * design.epsilon
        return self._record_of(
            plan.event,
            design.adjacency,
            _plan.mechanism(plan),
            _plan.assumptions(plan, self._scorer()),
            _plan.list_releases(plan),
            epsilon=design.epsilon if met else bound,
            arithmetic=_plan.arithmetic(plan),
            by_unit=design.by_unit,
        )

    def _method_for(self, n_candidates: int) -> str:
        """Return the method for a number of candidates."""
        if self.method != "auto":
            return str(self.method)
        few = n_candidates <= _FEW_CANDIDATES and self.expected_candidates == "auto"
        return "fixed" if few else "random-stopping"

    def _runs(self, n_candidates: int) -> float:
        """Return the average or exact number of runs."""
        exactly = self._method_for(n_candidates) == "fixed"
        if exactly:
            check_integer(
                "expected_candidates",
                self.expected_candidates,
                at_least=n_candidates,
                allowed=("auto",),
                remedy="Each candidate is run once at least.",
            )
        if self.expected_candidates != "auto":
            return float(self.expected_candidates)
        return float(n_candidates if exactly else 3 * n_candidates)

    def _publish(
        self, plan: PricedSearch, records: Table, released: tuple[Choice, Any], spent: PrivacySpent
    ) -> None:
        """Set only the released attributes."""
        choice, model = released
        candidates = records.prepared.candidates
        scorer = self._scorer()
        for name in ("best_estimator_", "best_score_", "noisy_scores_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.candidates_ = parameter_table([candidate.parameters for candidate in candidates])
        self.best_index_ = choice.number
        self.best_params_ = candidates[choice.number].parameters
        self.inner_epsilon_ = plan.fit_epsilon
        if choice.scores is not None:
            scores = scorer.undo_scale(choice.scores)
            self.best_score_ = float(scores.max())
            if plan.design.method != "random-stopping":
                self.noisy_scores_ = scores
        if model is not None:
            template = candidates[choice.number].estimator
            self.best_estimator_ = restore_parameters(
                model, template, spent, refitted=plan.design.refit
            )
            if responds(model, "feature_names_in_"):
                self.feature_names_in_ = model.feature_names_in_
