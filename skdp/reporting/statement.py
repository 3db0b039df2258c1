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
    "add-remove": "two tables are neighbours if one row is added or removed; the public sample "
    "rate, batch size or row count that the mechanism divides by does not change",
}

_ADJACENCY_OF_GROUPS = {
    "replace-one": "two tables are neighbours if all rows of one unit are replaced by any number "
    "of other rows (the number of units is public, the number of rows is not)",
    "add-remove": "two tables are neighbours if all rows of one unit are added or removed; the "
    "public sample rate, batch size or number of units that the mechanism divides by does not "
    "change",
}
_AS_MANY = (
    "; the number of rows is public too and does not change, as some parts are fitted without "
    "groups="
)

_NEVER_COVERED = (
    "the running time of the fit, and whether validation refused the table (missing values, "
    "labels)",
    "the table itself and access to it",
    "predictions for new people: they reveal information about the rows they are made for",
)
_FIGURES = (
    "exact performance results on private rows (accuracy, R2, mean errors), for example "
    "model.score(X_test, y_test), cross-validation scores, permutation importance and the scores "
    "of scikit-learn's ScoringMonitor: they leak. Use PrivateEvaluation of skdp.metrics, or "
    "PrivateRegressionEvaluation for regressors, which charge the budget",
    "curves and thresholds that CalibratedClassifierCV or TunedThresholdClassifierCV fit to "
    "private rows: they leak. Use PrivateCalibrator or PrivateThreshold, which charge the budget, "
    "or a public threshold, which is free",
)
_NOT_COVERED_BY_A_FIT = (
    "anything else computed from the rows: preprocessing fitted elsewhere, feature selection, "
    "tuning, other models",
    *_FIGURES,
    *_NEVER_COVERED,
)
_NOT_COVERED_BY_A_LEDGER = (
    "anything computed from the rows that was not charged to this ledger",
    "duplicate rows, for example in bagging with replacement: set rows_per_unit=k if a record may "
    "appear k times in the table given to one fit",
    "meta-estimators that split rows by private labels: one-vs-one, stacking, calibration and "
    "self-training",
    "with groups=, bags and folds that select single rows: the rows and the number of ids given "
    "to a fit depend on the rows of other ids",
    *_FIGURES,
    *_NEVER_COVERED,
)

# By the type of an event: how the rows that it sees were drawn.
_SAMPLERS = {
    "PoissonSampledEvent": "independent Poisson batches",
    "UniformSampledEvent": "fixed-size batches without replacement",
    "RandomAllocationEvent": "one independent random batch in each epoch",
}
_FRESH_KEYS = "ChaCha20 stream with a fresh key from the operating system"
_SEEDED = (
    "the noise came from a fixed seed. The guarantee does NOT hold against anyone who knows or "
    "guesses the seed; use random_state=None for a release"
)


class PrivacyStatement(str, JsonRecord):
    """Privacy statement: a string that also has a structured form.

    It prints as text, and a notebook shows it as tables.

    Parameters
    ----------
    record : dict
        The statement as plain values. Text and tables are rendered from it.

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

    The verdict of every part is private (with its privacy cost), data-independent, assumed and not
    checked (with the assumption), or leaking (with the remedy). If a part leaks, the statement
    reports that there is no guarantee for the whole object, and a `PrivacyWarning` names the part.

    Parameters
    ----------
    fitted : estimator, pipeline, search, result or BudgetAccountant
        Fitted object, result with ``privacy_spent_``, or the ledger of all charges.
    unit : str, PrivacyUnit or None, default=None
        Unit that the guarantee protects, for example ``"patient"`` or ``schema.unit``. None uses
        the unit of the schema whose `pipeline` made the model (for a ledger: the unit that all
        charges share), or else a row.
    rows_per_unit : int or None, default=None
        Public bound on the number of rows of one unit. If it exceeds 1, the statement adds the
        guarantee for all rows of a unit, by group privacy. None uses the bound of `unit` if it has
        one, or else 1. Fits with ``groups=`` need no bound, as they protect all rows of a unit. If
        other fits had no ``groups=``, a bound is required for a common guarantee.

    Returns
    -------
    PrivacyStatement
        A string with `to_dict`, `to_json` and, in notebooks, tables. Its items follow Ponomareva et
        al. (2023) and NIST SP 800-226: released values, guarantee and privacy curve, neighbouring
        tables and unit, mechanism, accounting, sampling, assumptions, limits of the guarantee,
        randomness and arithmetic.

    Raises
    ------
    TypeError
        If the object is neither fitted nor a ledger.
    ValueError
        If `rows_per_unit` is not an integer of at least 1.

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
    # A max_rows of 1 may be a default: it counts as a bound only if all fits protect rows.
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
    """Return the unit of the schema behind a model or behind all charges of a ledger."""
    found = [whom_it_protects(fitted)]
    if _is_ledger(fitted):
        charges = [entry for entry in fitted.entries() if entry["kind"] != "plan"]
        found = [charge["parameters"].get("protects") for charge in charges]
    # A parameter of a third-party estimator may have that name.
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
    told = "; its method privacy_plan returns the privacy cost of a fit"
    plan = told if hasattr(fitted, "privacy_plan") else ""
    if not hasattr(fitted, "fit"):
        raise TypeError(
            f"{type(fitted).__name__} has no privacy_spent_: pass a fitted estimator, pipeline or "
            "search, a private result, or a BudgetAccountant."
        )
    try:
        check_is_fitted(fitted)
    except NotFittedError:
        raise TypeError(
            f"This {type(fitted).__name__} has no privacy_spent_ because it is not fitted{plan}."
        ) from None
    if plan:
        raise TypeError(f"This {type(fitted).__name__} has no privacy_spent_: fit it{plan}.")


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
        "model": "central: the data analyst is trusted with the table",
    }


def _fitted_record(fitted: Any, unit: str, rows_per_unit: int | None) -> dict[str, Any]:
    # Loads all of scikit-learn's preprocessing, which few programs need.
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
    alike = ledger.total.unit != "mixed"  # a plan has the unit of its charges
    total = total_of([ledger.total], rows_per_unit) if alike else None
    accountant = f"{ledger.composition} filter, valid for adaptively chosen fits"
    return {
        **_header(ledger, "ledger"),
        "holds_for_the_whole": alike,
        "guarantee": total and {**_guarantee(total, unit, rows_per_unit), "accountant": accountant},
        "parts": [_charge(number, entry) for number, entry in enumerate(entries, start=1)],
        "ledger": _ledger_summary(ledger),
        "made_by": _merge([_maker(entry)] for entry in entries),
        "released": ["the released values of the charged fits"],
        "assumptions": list(ledger.total.assumptions),
        "not_covered": list(_NOT_COVERED_BY_A_LEDGER),
        **_randomness(any(entry["seeded"] for entry in entries), "in at least one charge, "),
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
        return "none: each release uses all rows, or the bound does not rely on sampling"
    return f"{' and '.join(drawn)}; the fit sampled as the accountant assumes"


def _kinds(record: Any) -> Iterator[str]:
    """Yield the types of all events in a record, nested ones too."""
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
    """Return a summary of the ledger among the parameters, if there is one."""
    ledger: Any = next(filter(_is_ledger, parameters.values()), None)
    try:
        return None if ledger is None else _ledger_summary(ledger)
    except LedgerError as error:  # missing or damaged: the record of the fit is valid without it
        return {"name": ledger.name or "", "unreadable": type(error).__name__}


def _is_ledger(value: Any) -> bool:
    # Looked up on the class: the total of a ledger reads its file, which may be missing.
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
    """Return a line on the cache of a pipeline, which holds private rows outside the object."""
    own = parameters.items()
    if all(value is None or key.rpartition("__")[2] != "memory" for key, value in own):
        return []
    return ["the cache that memory= writes to disk: it contains private rows and exact tables"]


def _uncovered_fits(fitted: Any, ledger: dict[str, Any] | None) -> list[str]:
    """Return a line on the fits of an ordinary search that the guarantee leaves out."""
    candidates = len(fitted.cv_results_["params"])
    folds = fitted.n_splits_
    fits = f"{candidates * folds} fits of {candidates} candidates on {folds} folds"
    if ledger is None:
        return [
            f"the search's {fits}: no ledger is attached to it as accountant=. If it ran in a with "
            "block, the statement of that budget has the total of all fits"
        ]
    if "unreadable" in ledger:
        return [f"the search's {fits}: their total is in the ledger, which cannot be read"]
    return [f"the search's {fits}: only the ledger's total includes them"]
