"""A privacy statement's record as text and as HTML."""

from __future__ import annotations

import html
import textwrap
from typing import Any

from skdp.accounting.records import html_row, safe_text
from skdp.reporting.steps import SHOWN_AS

_WIDTH = 110

_NO_GUARANTEE = (
    "There is NO guarantee for the whole object, because some parts leak (see Parts). The values "
    "below cover the private parts only and do not compensate for the leaks."
)
_NOTHING_PRIVATE = "There is NO guarantee: no part of it was fitted privately."
_NOTHING_LEARNED = (
    "Nothing was learned from the rows, so there is no privacy cost. Its output for private rows "
    "remains private data."
)
_TWO_RELATIONS = (
    "There is no common guarantee: the parts use different adjacency relations, or some protect "
    "one row and others all rows of an id. Use the same adjacency for all parts, and groups= for "
    "all or for none; or pass a public bound on the rows of a unit, rows_per_unit=."
)
# Verdicts as readers see them; the record keeps its words.
_SHOWN = {"taken at your word": SHOWN_AS}


def render_text(record: dict[str, Any]) -> str:
    """Return the statement as plain text."""
    lines = [title(record), ""]
    lines += [_wrap(f"{name}: {text}") for name, text in facts(record)]
    for name, items in [("Parts", map(part_line, record["parts"])), *lists(record)]:
        lines.append(f"{name}:")
        lines += [_wrap(f"- {item}", "  ", "    ") for item in items]
    lines += [
        _wrap(f"{name.capitalize()}: {record[name]}.") for name in ("arithmetic", "randomness")
    ]
    return "\n".join(lines)


def render_html(record: dict[str, Any]) -> str:
    """Return the statement as HTML tables."""
    rows = [
        *facts(record),
        *((name, "; ".join(items)) for name, items in lists(record)),
        ("Arithmetic", record["arithmetic"]),
        ("Randomness", record["randomness"]),
    ]
    parts = [
        (part["name"], part["estimator"], _verdict(part), _cost(part), _explanation(part))
        for part in record["parts"]
    ]
    head = ("part", "class", "verdict", "cost", "why")
    return (
        f"<div><p><strong>{html.escape(title(record))}</strong></p>"
        f"<table>{''.join(html_row(row, header=1) for row in rows)}</table>"
        f"<table><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>"
        f"{''.join(html_row(part) for part in parts)}</table></div>"
    )


def title(record: dict[str, Any]) -> str:
    """Return the headline."""
    library = record["library"]
    made = f"skdp {library['skdp']}, code {library['code']}, {record['date']}"
    return safe_text(f"Privacy statement of {record['subject']} ({made})")


def facts(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the guarantee, item by item."""
    guarantee = record["guarantee"]
    found = []
    private = any(part["kind"] == "private" for part in record["parts"])
    if not private and record["kind"] != "ledger":
        leaks = any(part["kind"] == "leaking" for part in record["parts"])
        found.append(("Guarantee", _NOTHING_PRIVATE if leaks else _NOTHING_LEARNED))
    elif guarantee is None:
        found.append(("Guarantee", _TWO_RELATIONS))
    elif not record["holds_for_the_whole"]:
        found.append(("Guarantee", _NO_GUARANTEE))
    if guarantee is not None:
        found += _guarantee_facts(record, guarantee)
    if record["made_by"]:
        by = "Charged by" if record["kind"] == "ledger" else "Made by"
        found.append((by, "; ".join(record["made_by"]) + "."))
    if record["ledger"] is not None and record["kind"] != "ledger":
        found.append(("Ledger", _ledger_line(record["ledger"])))
    return found


def _guarantee_facts(record: dict[str, Any], guarantee: dict[str, Any]) -> list[tuple[str, str]]:
    name = "Guarantee" if record["holds_for_the_whole"] else "Private parts"
    pair = f"({guarantee['epsilon']:.6g}, {guarantee['delta']:.3g})"
    unit, rows = guarantee["unit"], guarantee["rows_per_unit"]
    if guarantee["of"] == "both":
        protects = (
            f"one {unit} with up to {rows} rows. Parts fitted with groups= protect all rows that "
            "share an id; the other parts protect one row and are converted by group privacy"
        )
    elif rows is None:
        protects = f"one {unit}, with all rows that share its id in groups=, of any number"
    elif rows == 1:
        protects = (
            "one row. For a patient or other unit with k rows, group privacy applies"
            if unit == "row"
            else f"one {unit} with one row"
        )
    else:
        whole = guarantee["of_the_unit"]
        protects = (
            f"one {unit} with up to {rows} rows: ({whole['epsilon']:.6g}, {whole['delta']:.3g}) by "
            "group privacy; all other values are for one row"
        )
    curve = ", ".join(
        f"{point['epsilon']:.4g} at {point['delta']:.3g}" for point in guarantee["curve"]
    )
    events = "; ".join(event_text(event) for event in guarantee["events"])
    proved = guarantee["proved_epsilon"]
    sharper = []
    if proved is not None and f"{proved:.6g}" != f"{guarantee['epsilon']:.6g}":
        told = f"epsilon {proved:.6g} at the same delta, proved by the accountant for this noise."
        sharper = [("Sharper bound", told)]
    by = "" if record["kind"] == "ledger" else " accountant"
    return [
        (name, f"{pair}-differential privacy, {record['model']}."),
        ("Neighbours", f"{guarantee['adjacency']}: {guarantee['neighbours']}."),
        ("Unit of privacy", f"{protects}."),
        ("Epsilon at other deltas", f"{curve}."),
        *sharper,
        ("Accounting", f"{guarantee['accountant']}{by}, upper bound, for {events}."),
        ("Sampling", f"{guarantee['sampling']}."),
    ]


def lists(record: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the statement's lists with their names."""
    return [
        ("Released", record["released"]),
        ("Assumptions", record["assumptions"]),
        ("Not covered", record["not_covered"]),
    ]


def part_line(part: dict[str, Any]) -> str:
    """Return one line about one part."""
    what = f" ({part['estimator']})" if part["estimator"] else ""
    return f"{part['name']}{what}: {_verdict(part)}{_cost(part)}: {_explanation(part)}"


def _verdict(part: dict[str, Any]) -> str:
    return _SHOWN.get(part["kind"], part["kind"])


def _cost(part: dict[str, Any]) -> str:
    if part.get("epsilon") is None:
        return ""
    whom = " for all rows of an id" if part.get("unit") == "group" else ""
    return f" ({part['epsilon']:.6g}, {part['delta']:.3g}){whom}"


def _explanation(part: dict[str, Any]) -> str:
    return f"{part['reason']}. Remedy: {part['remedy']}" if part["remedy"] else part["reason"]


def _ledger_line(ledger: dict[str, Any]) -> str:
    if "unreadable" in ledger:
        return (
            f"the budget that the fit was charged to cannot be read ({ledger['unreadable']}): its "
            "other charges are unknown."
        )
    spent, budget = ledger["spent"], ledger["budget"]
    return (
        f"{ledger['charges']} charges on the same budget cost ({spent['epsilon']:.6g}, "
        f"{spent['delta']:.3g}) of ({budget['epsilon']:.6g}, {budget['delta']:.3g}) in total, "
        f"under {ledger['adjacency']}, with the {ledger['composition']} filter."
    )


def event_text(event: dict[str, Any]) -> str:
    """Return an event's record in the form of a constructor call."""
    arguments = [f"{key}={_event_value(item)}" for key, item in event.items() if key != "type"]
    return f"{event.get('type', 'event')}({', '.join(arguments)})"


def _event_value(value: Any) -> str:
    if isinstance(value, dict):
        return event_text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_event_value(item) for item in value)}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _wrap(text: str, first: str = "", rest: str = "  ") -> str:
    return textwrap.fill(
        safe_text(text),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
