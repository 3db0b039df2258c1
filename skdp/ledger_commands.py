"""Commands of ``skdp ledger``: each takes its options and returns the text to write."""

from __future__ import annotations

import csv
import io
import json
import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from skdp.accounting.records import safe_cell, safe_text
from skdp.budget.desk import not_priced, price_again
from skdp.budget.entries import make_json_ready
from skdp.budget.ledger.files import FilePlace, duplicate
from skdp.budget.ledger.server import is_address
from skdp.budget.ledger.store import Ledger, Place, place_of, salvage
from skdp.budget.request import no_limit, still_fits
from skdp.budget.view import LedgerView
from skdp.exceptions import LedgerError

_WIDEST = 40


def _place(options: Namespace) -> Place:
    try:
        return place_of(options.file)
    except (ImportError, ValueError) as error:
        raise LedgerError(str(error)) from None


def show(options: Namespace) -> str:
    """Return total, spending and entries."""
    view = LedgerView(Ledger.read(_place(options)))
    entries = view.entries()
    if options.last is not None:
        entries = entries[max(len(entries) - options.last, 0) :]
    summary = _summary(view)
    if options.json:
        return as_json({"budget": summary, "entries": entries})
    width = max(map(len, summary))
    head = "".join(f"{name:<{width}}  {_text(value)}\n" for name, value in summary.items())
    return f"{head}\n{_table([_line(entry) for entry in entries])}" if entries else head


def _summary(view: LedgerView) -> dict[str, Any]:
    receipt = view.desk.file.verify()
    fits = still_fits(view.desk.currency, view.desk.file.state().spent)
    return {
        "ledger": str(view.ledger),
        "name": view.name,
        "created": view.created,
        "adjacency": view.adjacency,
        "composition": view.composition,
        "total": _pair(view.epsilon, view.delta),
        **({"note": mark} if (mark := no_limit(view.desk.terms)) else {}),
        "spent": _pair(*view.spent()),
        **{name: _pair(*pair) for name, pair in fits.items()},
        "entries": receipt.entries,
        "receipt": str(receipt),
        **{
            f"sum of {unit}": {"spent": used, "at most": most}
            for unit, (used, most) in view.coordinates().items()
        },
    }


def verify(options: Namespace) -> str:
    """Return a report that hashes, sums and costs are valid, or raise a LedgerError."""
    place = _place(options)
    desk = LedgerView(Ledger.read(place)).desk
    receipt = desk.file.verify(options.receipt)
    unknown = price_again(desk, desk.file.rows())
    if options.json:
        found = {"entries": receipt.entries, "not priced again": unknown, "receipt": str(receipt)}
        return as_json({"sound": True, **found})
    kept = (
        "Only an earlier receipt reveals a ledger that was written again with other or fewer "
        "events: use --receipt."
        if options.receipt is None
        else f"The first {options.receipt.entries} are those of the receipt."
    )
    name = options.file if isinstance(place, FilePlace) else place.where
    return (
        f"{safe_text(name)}: {receipt.entries} entries. Hashes and sums agree, and no entry cost "
        f"less than the recomputed cost of its event.\n{kept}\n"
        + (f"But: {not_priced(unknown)}\n" if unknown else "")
        + f"Receipt, to store elsewhere: {receipt}\n"
    )


def export(options: Namespace) -> str:
    """Return all entries."""
    place = _place(options)
    if options.unverified:
        terms, rows = salvage(place.where)
    else:
        file = Ledger.read(place)
        terms, rows = file.genesis, file.rows()
    if options.json or options.format == "json":
        return as_json({"terms": terms, "entries": rows})
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_cell, names))
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return out.getvalue()


def copy(options: Namespace) -> str:
    """Copy a ledger and return a confirmation."""
    place = _place(options)
    if is_address(options.target) or not isinstance(place, FilePlace):
        raise LedgerError(
            "FILE and TARGET must both be files. Back up a ledger on a server with pg_dump, or "
            "export its entries."
        )
    target = Path(os.path.abspath(options.target))
    duplicate(place.where, target)
    receipt = Ledger.read(FilePlace(target)).verify()
    if options.json:
        return as_json({"copy": str(target), "entries": receipt.entries, "receipt": str(receipt)})
    told = f"copy with {receipt.entries} entries. Charge only one of the two ledgers."
    return f"{safe_text(options.target)}: {told}\n"


def _line(entry: dict[str, Any]) -> dict[str, str]:
    cost = {f"cost: {unit}": _text(amount) for unit, amount in entry["cost"].items()}
    plan = "" if entry["plan"] is None else f" of {entry['plan']}"
    return {
        "entry": str(entry["index"]),
        "time": entry["time"],
        "kind": f"{entry['kind']}{plan}",
        "label": entry["label"],
        "event": entry["event"]["type"],
        "epsilon": _text(entry["epsilon"]),
        "delta": _text(entry["delta"]),
        **cost,
        "seeded": "yes" if entry["seeded"] else "",
    }


def _table(lines: list[dict[str, str]]) -> str:
    cut = [
        {name: " ".join(safe_text(text).split())[:_WIDEST] for name, text in line.items()}
        for line in lines
    ]
    widths = {name: max(len(name), *(len(line[name]) for line in cut)) for name in cut[0]}
    rows = [dict(zip(widths, widths, strict=True)), {n: "-" * w for n, w in widths.items()}, *cut]
    return "".join(
        "  ".join(row[name].ljust(width) for name, width in widths.items()).rstrip() + "\n"
        for row in rows
    )


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items())
    if isinstance(value, float):
        return f"{value:.6g}"
    return safe_text(value)


def _pair(epsilon: float, delta: float) -> dict[str, float]:
    return {"epsilon": epsilon, "delta": delta}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value)
    return safe_cell(value) if isinstance(value, str) else str(value)


def as_json(value: Any) -> str:
    """Return a value as strict JSON."""
    return json.dumps(make_json_ready(value), indent=2, allow_nan=False) + "\n"
