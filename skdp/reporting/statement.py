"""A privacy statement for a data-protection officer, a registry or a paper's appendix."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from skdp.accounting.privacy_spent import REAL_NUMBERS, PrivacySpent
from skdp.accounting.records import JsonRecord, who
from skdp.base.parameters import check_integer
from skdp.base.scikit_learn import whom_it_protects
from skdp.exceptions import LedgerError
from skdp.reporting._rendering import event_text, render_html, render_text
from skdp.reporting.profile import Total, total_of

if TYPE_CHECKING:
    from skdp.reporting._examine import Finding

_ADJACENCY_TEXT = {
    "replace-one": "two tables are neighbours if one row is replaced by another (n is public)",
    "add-remove": "two tables are neighbours if one row is added or removed, the public "
    "sample rate, lot size or row count that the mechanism divides by being unchanged",
}

_ADJACENCY_OF_GROUPS = {
    "replace-one": "two tables are neighbours if all rows of one unit are replaced by others, of "
    "any number (the number of units is public, that of rows is not)",
    "add-remove": "two tables are neighbours if all rows of one unit are added or removed, the "
    "public sample rate, lot size or number of units that the mechanism divides by being unchanged",
}
_AS_MANY = "; as some parts are fitted without groups=, the number of rows is public too and stays"

_NEVER_COVERED = (
    "how long the fit took, and whether validation refused the table (missing values, labels)",
    "the table itself, access to it, and what predictions for new people reveal about them",
)
_FIGURES = (
    "performance figures of private rows (accuracy, R2, mean errors), which leak unless they are "
    "paid for: model.score(X_test, y_test), cross-validation scores, permutation importance, what "
    "scikit-learn's ScoringMonitor keeps. PrivateEvaluation of skdp.metrics releases priced ones, "
    "and PrivateRegressionEvaluation of regressors",
    "what CalibratedClassifierCV or TunedThresholdClassifierCV fit to rows, which leaks as well: "
    "PrivateCalibrator and PrivateThreshold are priced, a threshold that is public is free",
)
_NOT_COVERED_BY_A_FIT = (
    "anything else computed from the rows: preprocessing fitted elsewhere, feature selection, "
    "tuning, other models",
    *_FIGURES,
    *_NEVER_COVERED,
)
_NOT_COVERED_BY_A_LEDGER = (
    "anything computed from the rows that was not charged to this ledger",
    "copies of a record, and rows chosen by labels: a charge is for one row of the table that its "
    "fit was given. Bagging with replacement has copies (count k as rows_per_unit=k); one-vs-one, "
    "stacking, calibration and self-training divide rows by private labels",
    "with groups=, bags of some rows and folds by rows: how many rows others have decides which "
    "rows a fit was given, and of how many ids",
    *_FIGURES,
    *_NEVER_COVERED,
)

# By the type of an event: how the rows that it sees were drawn.
_SAMPLERS = {
    "PoissonSampledEvent": "independent Poisson lots",
    "UniformSampledEvent": "fixed-size lots without replacement",
    "RandomAllocationEvent": "one independent random lot in each epoch",
}
_FRESH_KEYS = "ChaCha20 stream with a fresh key from the operating system"
_SEEDED = (
    "noise came from a fixed seed. The guarantee does NOT hold against anyone who knows or guesses "
    "it; use random_state=None for a release"
)


class PrivacyStatement(str, JsonRecord):
    """A privacy statement: readable text that also has a structured form.

    It is a string and can be printed; in a notebook it shows as tables.

    Parameters
    ----------
    record : dict
        The statement as plain values, from which text and tables are made.

    Examples
    --------
    >>> from skdp.reporting import privacy_statement
    >>> from skdp.statistics import private_count
    >>> statement = privacy_statement(private_count([True, False] * 50, epsilon=0.5))
    >>> statement.to_dict()["guarantee"]["epsilon"]
    0.5
    """

    _record: dict[str, Any]

    def __new__(cls, record: dict[str, Any]) -> Self:
        """Render the text."""
        statement = super().__new__(cls, render_text(record))
        statement._record = record
        return statement

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain, JSON-ready values."""
        return json.loads(json.dumps(self._record))

    def _repr_html_(self) -> str:
        return render_html(self._record)

    def __getnewargs__(self) -> tuple[dict[str, Any]]:  # type: ignore[override]
        return (self._record,)


def privacy_statement(
    fitted: Any, *, unit: Any = None, rows_per_unit: int | None = None
) -> PrivacyStatement:
    """Return the privacy statement of a fitted object, a released result or a ledger.

    The object is walked part by part. Each part is classed as private, with what it cost; as
    data-independent; as taken at your word, with the assumption; or as leaking, with the
    remedy. If a part leaks, the statement says that there is no guarantee for the whole, and a
    `PrivacyWarning` names the part.

    Parameters
    ----------
    fitted : estimator, pipeline, search, result or BudgetAccountant
        What was fitted, a result with ``privacy_spent_``, or the ledger that all was charged to.
    unit : str, PrivacyUnit or None, default=None
        Whom the guarantee is to protect, for example ``"patient"`` or ``schema.unit``. None takes
        the unit of the schema whose `pipeline` made the model, or of a ledger all charges; else a
        row.
    rows_per_unit : int or None, default=None
        Public bound on the rows that one unit has in the table; None takes that of `unit` if it
        knows one, else 1. With more than one the statement adds the guarantee for the whole unit,
        by group privacy. Fits with groups= protect all rows of a unit as they are, and need none;
        beside fits without, a bound must be given.

    Returns
    -------
    PrivacyStatement
        A string; also `to_dict`, `to_json` and tables in notebooks. Its items are those that
        Ponomareva et al. (2023) and NIST SP 800-226 ask for: what was released, the guarantee and
        its curve, neighbours and unit, mechanism, accounting, sampling, assumptions, what is and is
        not covered, randomness and arithmetic.

    Raises
    ------
    TypeError
        If the object is neither fitted nor a ledger.
    ValueError
        If `rows_per_unit` is no integer of at least 1.

    Examples
    --------
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.reporting import privacy_statement
    >>> classifier = OperaLogisticRegression(epsilon=1.0, delta=1e-6, data_norm=1.0, classes=[0, 1])
    >>> classifier = classifier.fit([[0.1], [0.9]] * 50, [0, 1] * 50)
    >>> statement = privacy_statement(classifier, unit="patient")
    >>> print(statement.splitlines()[0])
    Privacy statement of OperaLogisticRegression ...
    """
    unit = _unit_of(fitted) if unit is None else unit
    # A max_rows of 1 may be nobody's choice: only where all fits are of rows it is taken for one.
    if rows_per_unit is None and not isinstance(unit, str) and unit.max_rows > 1:
        rows_per_unit = unit.max_rows
    check_integer("rows_per_unit", rows_per_unit, at_least=1, allowed=(None,))
    unit = str(unit if isinstance(unit, str) else unit.name)
    if _is_ledger(fitted):
        return PrivacyStatement(_ledger_record(fitted, unit, rows_per_unit))
    _refuse_unfitted(fitted)
    return PrivacyStatement(_fitted_record(fitted, unit, rows_per_unit))


class _Unit(NamedTuple):
    name: str
    max_rows: int = 1


def _unit_of(fitted: Any) -> _Unit:
    """Return the unit of the schema that a model or all charges of a ledger go back to."""
    found = [whom_it_protects(fitted)]
    if _is_ledger(fitted):
        charges = [entry for entry in fitted.entries() if entry["kind"] != "plan"]
        found = [charge["parameters"].get("protects") for charge in charges]
    # A parameter of somebody else's estimator may have that name.
    known = [whom for whom in found if isinstance(whom, dict) and {"name", "max_rows"} <= {*whom}]
    names = {whom["name"] for whom in known}
    if len(known) < len(found) or len(names) != 1:
        return _Unit("row")
    return _Unit(names.pop(), max(whom["max_rows"] for whom in known))


def _refuse_unfitted(fitted: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if isinstance(getattr(fitted, "privacy_spent_", None), PrivacySpent):
        return
    told = "; its method privacy_plan says what a fit would spend"
    plan = told if hasattr(fitted, "privacy_plan") else ""
    if not hasattr(fitted, "fit"):
        raise TypeError(
            f"{type(fitted).__name__} has no privacy_spent_: give a fitted estimator, pipeline or "
            "search, a private result, or a BudgetAccountant."
        )
    try:
        check_is_fitted(fitted)
    except NotFittedError:
        raise TypeError(
            f"this {type(fitted).__name__} has no privacy_spent_, since it is not fitted{plan}."
        ) from None
    if plan:
        raise TypeError(f"this {type(fitted).__name__} has no privacy_spent_: fit it{plan}.")


def _header(subject: Any, kind: str) -> dict[str, Any]:
    return {
        "subject": type(subject).__name__,
        "kind": kind,
        "library": {
            **who(),
            "scikit-learn": metadata.version("scikit-learn"),
            "python": platform.python_version(),
        },
        "date": datetime.now(UTC).date().isoformat(),
        "model": "central: whoever runs the fit is trusted with the table",
    }


def _fitted_record(fitted: Any, unit: str, rows_per_unit: int | None) -> dict[str, Any]:
    # Loads the whole of scikit-learn's preprocessing, which few programs need.
    from skdp.reporting._examine import distinct_records, examine, is_search
    from skdp.reporting.leaks import warn_of_leaks

    parameters = fitted.get_params(deep=True) if hasattr(fitted, "get_params") else {}
    ledger = _find_ledger(parameters)
    search = is_search(fitted)
    kind = "search" if search else "fit" if hasattr(fitted, "fit") else "result"
    findings = examine(fitted, "result" if kind == "result" else "estimator")
    spent = distinct_records(findings)
    leaks = any(finding.kind == "leaking" for finding in findings)
    if leaks:
        warn_of_leaks(fitted)
    total = total_of(spent, rows_per_unit) if spent else None
    taken = [finding.assumption for finding in findings if finding.assumption]
    return {
        **_header(fitted, kind),
        "holds_for_the_whole": bool(spent) and not leaks and total is not None,
        "guarantee": None if total is None else _guarantee(total, unit, rows_per_unit),
        "parts": [_part(finding) for finding in findings],
        "ledger": ledger,
        "made_by": _merge([_maker(vars(record))] for record in spent),
        "released": _merge(record.released for record in spent),
        "assumptions": _merge([*(record.assumptions for record in spent), taken]),
        "not_covered": [
            *(_uncovered_fits(fitted, ledger) if search else ()),
            *_uncovered_cache(parameters),
            *_NOT_COVERED_BY_A_FIT,
        ],
        **_randomness(any(record.seeded for record in spent)),
        "arithmetic": "; ".join(_merge([record.arithmetic] for record in spent)) or REAL_NUMBERS,
    }


def _ledger_record(ledger: Any, unit: str, rows_per_unit: int | None) -> dict[str, Any]:
    entries = ledger.entries()
    alike = ledger.total.unit != "mixed"  # a plan has the unit of what it has paid for
    total = total_of([ledger.total], rows_per_unit) if alike else None
    accountant = f"{ledger.composition} filter, valid for adaptively chosen fits"
    return {
        **_header(ledger, "ledger"),
        "holds_for_the_whole": alike,
        "guarantee": total and {**_guarantee(total, unit, rows_per_unit), "accountant": accountant},
        "parts": [_charge(number, entry) for number, entry in enumerate(entries, start=1)],
        "ledger": _ledger_summary(ledger),
        "made_by": _merge([_maker(entry)] for entry in entries),
        "released": ["what the charged fits released"],
        "assumptions": list(ledger.total.assumptions),
        "not_covered": list(_NOT_COVERED_BY_A_LEDGER),
        **_randomness(any(entry["seeded"] for entry in entries), "of at least one charge, "),
        "arithmetic": REAL_NUMBERS,
    }


def _charge(number: int, entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": f"charge {number}: {entry['label']}",
        "estimator": entry["estimator"] or "",
        "kind": "private",
        "reason": event_text(entry["event"]),
        "remedy": "",
        **{name: entry[name] for name in ("epsilon", "delta", "unit")},
    }


def _randomness(seeded: bool, whose: str = "") -> dict[str, Any]:
    return {"seeded": seeded, "randomness": whose + _SEEDED if seeded else _FRESH_KEYS}


def _guarantee(total: Total, unit: str, rows_per_unit: int | None) -> dict[str, Any]:
    events = [event.to_dict() for event in total.events]
    by_group, both = total.unit == "group", total.unit == "both"
    neighbours = (_ADJACENCY_OF_GROUPS if by_group or both else _ADJACENCY_TEXT)[total.adjacency]
    rows = rows_per_unit or 1
    guarantee: dict[str, Any] = {
        "epsilon": float(total.epsilon),
        "delta": float(total.delta),
        "adjacency": total.adjacency,
        "neighbours": neighbours + both * _AS_MANY,
        "of": total.unit,
        "unit": "group of rows" if total.unit != "row" and unit == "row" else unit,
        "rows_per_unit": None if by_group else rows,
        "accountant": total.accountant,
        "events": events,
        "sampling": _sampling(events),
        "curve": [{"delta": delta, "epsilon": epsilon} for delta, epsilon in total.curve],
        "proved_epsilon": total.proved,
    }
    if rows > 1 and not by_group:
        epsilon, delta = total.of_a_group
        guarantee["of_the_unit"] = {"epsilon": epsilon, "delta": delta}
    return guarantee


def _sampling(events: list[dict[str, Any]]) -> str:
    kinds = set(_kinds(events))
    drawn = [words for kind, words in _SAMPLERS.items() if kind in kinds]
    if not drawn:
        return "none: every release sees all rows, or the bound needs no sampling"
    return f"{' and '.join(drawn)}; the sampling that ran is the sampling accounted for"


def _kinds(record: Any) -> Iterator[str]:
    """Yield the types of the events in a record, however deep inside each other they are."""
    for part in record.values() if isinstance(record, dict) else record:
        if isinstance(part, dict | list):
            yield from _kinds(part)
    if isinstance(record, dict) and "type" in record:
        yield record["type"]


def _part(finding: Finding) -> dict[str, Any]:
    told = ("name", "estimator", "kind", "reason", "remedy")
    part = {name: getattr(finding, name) for name in told}
    if (spent := finding.spent) is None:
        return part
    pair = {"epsilon": float(spent.epsilon), "delta": float(spent.delta)}
    return {**part, **pair, "adjacency": spent.adjacency, "unit": spent.unit}


def _maker(record: dict[str, Any]) -> str:
    return f"skdp {record['skdp']}, code {record['code']}"


def _merge(lists: Any) -> list[str]:
    """Join lists, each item once, in order of first appearance."""
    return list(dict.fromkeys(item for items in lists for item in items))


def _find_ledger(parameters: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the ledgers say that the object's fits were charged to, if it is one."""
    ledger: Any = next(filter(_is_ledger, parameters.values()), None)
    try:
        return None if ledger is None else _ledger_summary(ledger)
    except LedgerError as error:  # gone or damaged: the figures of the fit hold without it
        return {"name": ledger.name or "", "unreadable": type(error).__name__}


def _is_ledger(value: Any) -> bool:
    # Looked up on the class: the total of a ledger reads its file, which may be gone.
    return callable(getattr(value, "entries", None)) and hasattr(type(value), "total")


def _ledger_summary(ledger: Any) -> dict[str, Any]:
    epsilon, delta = ledger.spent()
    return {
        "name": ledger.name or "",
        "charges": len(ledger.entries()),
        "spent": {"epsilon": float(epsilon), "delta": float(delta)},
        "budget": {"epsilon": float(ledger.epsilon), "delta": float(ledger.delta)},
        "composition": ledger.composition,
        "adjacency": ledger.adjacency,
    }


def _uncovered_cache(parameters: dict[str, Any]) -> list[str]:
    """Name the cache of a pipeline, which is no part of the fitted object but holds rows."""
    own = parameters.items()
    if all(value is None or key.rpartition("__")[2] != "memory" for key, value in own):
        return []
    return ["the cache that memory= keeps on the disk: it holds private rows and un-noised tables"]


def _uncovered_fits(fitted: Any, ledger: dict[str, Any] | None) -> list[str]:
    """Say of an ordinary search which fits the figures leave out."""
    candidates = len(fitted.cv_results_["params"])
    folds = fitted.n_splits_
    fits = f"{candidates * folds} fits of {candidates} candidates on {folds} folds"
    if ledger is None:
        return [
            f"the search's {fits}: no ledger is attached to it as accountant=. If a with block set "
            "one, the statement of that budget has the total of all fits"
        ]
    if "unreadable" in ledger:
        return [f"the search's {fits}: their total is in the ledger, which cannot be read"]
    return [f"in these figures, the search's {fits}: they are in the ledger's total"]
