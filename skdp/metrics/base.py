"""Base of evaluations: checks of models on made-up rows, the call and the charge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import Auto, DeclaredParameters, check_integer, parameter
from skdp.base.pipelines import first_step, take_apart
from skdp.base.scikit_learn import BaseEstimator, columns_of, responds, whom_it_protects
from skdp.budget.charging import ChargesBudget
from skdp.exceptions import RowsChangedError
from skdp.fitting import PrivateRelease, ReleaseParameters
from skdp.reporting.leaks import warn_of_leaks
from skdp.reporting.steps import ASSUMED, classify_step
from skdp.running import around_runs, warn_once
from skdp.tables.inputs import refuse_masked, refuse_times, validate_column, was_fitted_on
from skdp.tables.places import Columns, counted, read_each, taken_for_granted, without_rows
from skdp.tables.records import Records
from skdp.tables.row_scores import Probe, Way, ask_rows, probe
from skdp.tables.row_sources import in_blocks, source_of
from skdp.tables.units import units_of

_WAY_OUT = (
    "In an evaluation, each score must be a function of one row and the model. Use a step that "
    "learned its state in its fit, as StandardScaler does, or a function that treats each row by "
    "itself."
)


def numbers_of(method: Callable[..., Any], rows: Any) -> np.ndarray:
    """Return the model's output for rows as finite numbers, with at least one column.

    NaN counts as 0: no error may reveal that the score of one row overflows.
    """
    found = np.asarray(method(rows), dtype=np.float64)
    return np.nan_to_num(found.reshape(len(found), -1))


def examine_model(model: Any, method: Callable[..., Any], X: Any) -> tuple[Way, tuple[str, ...]]:
    """Return how to call a model, and assumptions about it; no row of `X` is read.

    A model is refused if its output for a row depends on other rows.
    """
    claims = claims_of(model)
    shown = without_rows(X)
    found = _probe(model, method, shown)
    if found.mixes:
        _refuse(model, _culprit(_thawed(model), shown))
    if not found.known:
        name = type(_thawed(model)).__name__
        untried = f"{ASSUMED}the output of {name} for a row depends only on that row "
        claims += (f"{untried}(made-up rows could not be used to check it)",)
    return found.way, claims


def claims_of(model: Any) -> tuple[str, ...]:
    """Return the assumptions about a model's steps, each once, or refuse the model for a step."""
    verdicts = [(name, part, classify_step(part)) for name, part in _parts(_thawed(model))]
    for name, part, verdict in verdicts:
        if type(part) is FunctionTransformer and verdict.kind == "leaking":
            _refuse(model, f"step {name!r}, {type(part).__name__},")
    words = (verdict.assumption for *_, verdict in verdicts if verdict.kind == "taken at your word")
    return tuple(dict.fromkeys(words))


def _thawed(model: Any) -> Any:
    return _thawed(model.estimator) if type(model) is FrozenEstimator else model


def is_known(model: Any) -> bool:
    """Return whether a fitted step with all its parts is of this library or of scikit-learn."""
    kinds = [type(part) for _, part in _parts(_thawed(model))]
    homes = {kind.__module__.partition(".")[0] for kind in kinds}
    return homes <= {"skdp", "sklearn"} and FunctionTransformer not in kinds


def _parts(model: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a model and all estimators among its parameters, frozen ones too."""
    yield name, model
    inside = model.get_params(deep=True) if responds(model, "get_params") else {}
    for key, part in inside.items():
        if type(part) is FrozenEstimator:
            yield from _parts(_thawed(part), f"{name}__{key}" if name else key)
        elif responds(part, "get_params") and not isinstance(part, type):
            yield f"{name}__{key}" if name else key, part


def _probe(model: Any, method: Callable[..., Any], shown: Any) -> Probe:
    return probe(partial(numbers_of, method), shown, columns_of(model))


def _culprit(model: Any, shown: Any) -> str:
    """Return the name of the first step with an output for a row that depends on other rows."""
    steps = model.steps[:-1] if isinstance(model, Pipeline) else []
    for end, (name, step) in enumerate(steps, start=1):

        def transform(rows: Any, end: int = end) -> Any:
            found = model[:end].transform(rows)
            return found.toarray() if hasattr(found, "toarray") else found

        if _probe(model, transform, shown).mixes:
            return f"step {name!r}, {type(step).__name__},"
    return type(model).__name__


def _refuse(model: Any, part: str) -> NoReturn:
    name = type(_thawed(model)).__name__
    whose = "" if part == name else f" of {name}"
    raise ValueError(
        f"{part}{whose} has an output for a row that depends on other rows or changes from call to "
        f"call, as made-up rows show. {_WAY_OUT}"
    )


_ARITHMETIC = (
    "counts are integers, and their noise is drawn on the integers with exact probabilities "
    "(docs/proofs/evaluation.md)"
)


@dataclass(frozen=True, eq=False)
class Judged(Records):
    """Records with the subgroup of each row and the public model's method."""

    members: Any = None  # positions in the declared list
    about: Any = None  # public facts about the model or the targets
    ask: Any = None
    way: Any = None

    def check_rows(self) -> None:
        """Refuse columns that have changed; rows are read once."""
        if self.beside is not None:
            self.beside.check_rows()


class HasSubgroups(DeclaredParameters):
    """Mixin with the list of subgroups."""

    subgroups: Any = parameter(
        "sequence or None",
        """Public list of subgroups, not None or NaN. Each row belongs to one of them, and each has
        its metrics. None evaluates all rows together.""",
        default=None,
    )


class EvaluatesModel(ReleaseParameters, PrivateRelease, BaseEstimator):
    """Base of evaluations of a public model on private rows, by one charged release."""

    _listed: ClassVar[tuple[str, ...]] = (
        *("epsilon", "delta", "thresholds", "target_bounds", "largest_error", "n_bins"),
        *("score_values", "covariance", "prior_sd", "data_norm", "error_sd", "reference", "share"),
        *("adjacency", "accountant", "classes", "subgroups", "random_state", "verbose"),
    )

    _added_texts: ClassVar[dict[str, str]] = {
        "adjacency": "The number of records is public under both adjacency relations.",
    }

    epsilon: float = parameter(
        "float", "Privacy parameter in nats, positive.", default=1.0, kw_only=False
    )
    delta: float = parameter(
        "float", "Failure probability, in (0, 1), well below 1/n.", default=1e-6, kw_only=False
    )
    n_bins: int | Auto = parameter(
        'int or "auto"',
        'Number of bins, at least 10. ``"auto"`` uses 10 to 44, depending on n and the noise.',
        default="auto",
    )

    _method = ".evaluate"
    _arithmetic: ClassVar[str] = _ARITHMETIC
    _needs_new_rows: ClassVar[bool] = True  # results on the rows of a fit flatter the model
    # Assumptions other than those about the rows, and released values.
    _assumptions: ClassVar[tuple[str, ...]]
    _released: ClassVar[tuple[str, ...]]

    @abstractmethod
    def _about(self, model: Any) -> tuple[Any, Callable[..., Any]]:
        """Return public facts about the model or targets, and the method to call, or refuse it."""

    @abstractmethod
    def _plan_about(self, n_rows: int, about: Any) -> Any:
        """Return the plan for a public number of records."""

    @abstractmethod
    def _encode(self, truth: np.ndarray, about: Any) -> np.ndarray:
        """Return labels or targets in the form that metrics use."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_bins != "auto":
            check_integer("n_bins", self.n_bins, at_least=10)
        listed = self._given("subgroups")
        # Labels must equal themselves, which NaN does not; comparing pandas' NA gives NA.
        if any(
            at is None or not isinstance(at == at, bool | np.bool_) or at != at
            for at in (() if listed is None else listed)
        ):
            raise ValueError("subgroups must be labels other than None and NaN.")
        if listed is not None and len(set(listed)) < max(1, len(listed)):
            raise ValueError(f"subgroups must be distinct labels, got {listed!r}.")

    def _given(self, name: str) -> Any:
        """Return a parameter, or None for evaluations without it."""
        return self.get_params(deep=False).get(name)

    def _read(self, X: Any, y: Any, params: dict[str, Any]) -> Judged:
        """Check model, shapes, labels and subgroups; try the model on made-up rows."""
        model, table = params["model"], X
        if isinstance(model, type | str) or responds(model, "__array__"):
            raise TypeError(
                "model must be a fitted model and comes before X and y, got "
                f"{'the class ' + model.__name__ if isinstance(model, type) else type(model)}."
            )
        X, y, groups = take_apart(model, X, y, params["groups"])
        _check_model(model, X)
        self._protects = whom_it_protects(model)
        about, ask = self._about(model)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: pass "
                "labels, or a table with the label's column and a pipeline of its schema."
            )
        warn_of_leaks(model)
        if self._needs_new_rows:
            _warn_of_rows(model, table)
        beside = y, params["subgroups"], groups
        where, columns = taken_for_granted(X, *beside), Columns(*beside)
        X = columns.seal(X)
        y, subgroups, groups = columns.found
        truth = validate_column(y)
        _check_lengths(X, {"y": truth, "subgroups": subgroups, "groups": groups})
        targets = self._encode(truth, about)
        members = self._members(subgroups, truth.size)
        units = None if groups is None else units_of(groups)
        way, claims = examine_model(model, ask, X)
        return Judged(
            *(X, targets),
            units=units,
            assumptions=(*claims, *where),
            beside=columns,
            members=members,
            about=about,
            ask=ask,
            way=way,
        )

    def _plan(self, records: Judged) -> Any:
        return self._plan_about(records.n_rows, records.about)

    def _spent(self, plan: Any, by_unit: bool, assumptions: tuple[str, ...]) -> PrivacySpent:
        who = "units, the ids in groups=," if by_unit else "rows"
        return super()._spent(plan, by_unit, (f"the number of {who} is public", *assumptions))

    def _members(self, given: Any, n_rows: int) -> np.ndarray:
        """Return the position of each row's subgroup in the declared list."""
        listed = self._given("subgroups")
        if (given is None) != (listed is None):
            raise ValueError(
                f"declare the list of subgroups in {type(self).__name__}(subgroups=[...]), and "
                "pass the subgroup of each row to evaluate(..., subgroups=...): both or neither."
            )
        if given is None:
            return np.zeros(n_rows, dtype=np.int64)
        refuse_masked(given, "subgroups")
        places = {label: place for place, label in enumerate(listed)}
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
                "some rows have a subgroup that is not declared: subgroups= must list all "
                "subgroups that can occur, with the same type as in the rows."
            )
        return members

    def _account(self, plan: Any) -> PrivacySpent:
        mechanism = f"evaluation of a public model: {plan.describe()}"
        return self._record_of(
            *(plan.event, plan.adjacency, mechanism, self._assumptions, self._released),
            arithmetic=self._arithmetic,
        )


def _check_model(model: Any, X: Any) -> None:
    shown = without_rows(X)
    refuse_masked(shown)
    first = first_step(model)
    if first is model or isinstance(first, ChargesBudget):  # others may make numbers of times
        refuse_times(shown)
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    columns, wanted = getattr(X, "shape", (0, None))[1:], columns_of(model)
    if wanted is not None and columns not in ((None,), (wanted,)):
        raise ValueError(f"X must have the {wanted} columns of the model, got {columns}.")


def is_of_fit(model: Any, X: Any) -> bool:
    """Return whether a part of a model was fitted on the same table in memory."""
    return any(was_fitted_on(part, X) for _, part in _parts(_thawed(model)))


def _warn_of_rows(model: Any, X: Any) -> None:
    """Warn if a model was fitted on the same table."""
    if is_of_fit(model, X):
        warn_once(
            f"{type(_thawed(model)).__name__} was fitted on these rows, the same table in memory: "
            "results on them flatter the model. Split rows before the fit, and pass those that "
            "the model has not seen."
        )


def _check_lengths(X: Any, columns: dict[str, Any]) -> None:
    if columns["y"].size == 0:
        raise ValueError("y is empty: give at least one row.")
    rows = counted(X)
    for name, column in columns.items():
        try:
            if column is not None:
                check_consistent_length(rows, column)
        except (TypeError, ValueError):
            raise ValueError(
                f"X, y, subgroups and groups must have one entry for each row, and {name} has not: "
                f"pass the cells of the same table as X, such as table[{name!r}], not the name of "
                "a column."
            ) from None


def ask_each_row(method: Callable[..., Any], records: Judged) -> np.ndarray:
    """Return a method's output for rows wherever they are, called as on made-up rows."""
    ask = partial(ask_rows, method, way=records.way)

    def read(rows: Any) -> np.ndarray:
        source = source_of(rows, converted=False)
        return in_blocks(ask, rows if source is None else source)

    (found,) = read_each([(read, records.X)])
    return found


def ask_model(records: Judged, width: int) -> np.ndarray:
    """Return the model's output for rows, `width` finite numbers per row, and silence the model."""
    try:
        with around_runs():
            raw = ask_each_row(partial(numbers_of, records.ask), records)
        sound = raw.shape == (len(records.targets), width)
    except RowsChangedError:
        raise
    except (Exception, SystemExit):
        sound = False
    if not sound:
        raise ValueError(
            "the model failed on the rows, or did not return one score for each row and class. Its "
            "message is withheld, because it may quote private values, and the charge stays: try "
            "the model on made-up rows first."
        )
    return raw
