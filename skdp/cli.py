"""The command ``skdp``: look at ledgers, check and copy them, take their entries elsewhere."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skdp.accounting.records import package_version, safe_cell, safe_text
from skdp.budget.desk import not_priced, price_again
from skdp.budget.entries import make_json_ready
from skdp.budget.ledger.chain import LedgerReceipt
from skdp.budget.ledger.files import FilePlace, duplicate
from skdp.budget.ledger.server import is_address
from skdp.budget.ledger.store import Ledger, Place, place_of, salvage
from skdp.budget.request import no_limit, still_fits
from skdp.budget.view import LedgerView
from skdp.exceptions import LedgerDamagedError, LedgerError

# Exit codes; argparse ends with 2 when it is called wrongly.
SOUND, DAMAGED, UNREADABLE = 0, 1, 3

_WIDEST = 40


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    try:
        text = options.run(options)
    except LedgerError as error:
        damaged = isinstance(error, LedgerDamagedError)
        if options.json:
            print(_json({"sound": False, "error": type(error).__name__, "message": str(error)}))
        print(f"skdp: {_encodable(safe_text(error), sys.stderr)}", file=sys.stderr)
        return DAMAGED if damaged else UNREADABLE
    except BrokenPipeError:
        return UNREADABLE
    return _write(text, getattr(options, "output", None))


def _write(text: str, output: str | None) -> int:
    try:
        if output is None:
            sys.stdout.write(_encodable(text, sys.stdout))
            sys.stdout.flush()
        else:
            Path(output).write_text(text, encoding="utf-8")
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"skdp: {output} cannot be written: {error.strerror}.", file=sys.stderr)
        return UNREADABLE
    return SOUND


def _encodable(text: str, stream: Any) -> str:
    """Return a text as a stream can carry it: other letters become escapes."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="skdp", description="Differential privacy with skdp.")
    parser.add_argument("--version", action="version", version=f"skdp {package_version()}")
    topics = parser.add_subparsers(required=True, metavar="TOPIC")
    ledger = topics.add_parser("ledger", help="ledgers of privacy budgets")
    commands = ledger.add_subparsers(required=True, metavar="COMMAND")
    show = _command(commands, "show", _show, "total, spending and entries of a ledger")
    show.add_argument("--last", type=int, metavar="N", help="show the last N entries only")
    verify = _command(commands, "verify", _verify, "check that nobody changed a ledger")
    verify.add_argument(
        "--receipt",
        type=LedgerReceipt.parse,
        metavar="ENTRIES:HASH",
        help="what an earlier run printed: those entries must be there still",
    )
    export = _command(commands, "export", _export, "write all entries as CSV or JSON")
    export.add_argument("--format", choices=("csv", "json"), default="csv", help="default: csv")
    export.add_argument("--output", metavar="FILE", help="default: standard output")
    export.add_argument(
        "--unverified", action="store_true", help="save what can be read of a damaged ledger"
    )
    copy = _command(commands, "copy", _copy, "copy a ledger, also while it is in use")
    copy.add_argument("target", metavar="TARGET", help="the copy")
    return parser


def _command(commands: Any, name: str, run: Any, purpose: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=purpose, description=purpose)
    command.add_argument("file", metavar="FILE", help="the ledger, or its address on a server")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)
    return command


def _place(options: argparse.Namespace) -> Place:
    try:
        return place_of(options.file)
    except (ImportError, ValueError) as error:
        raise LedgerError(str(error)) from None


def _show(options: argparse.Namespace) -> str:
    view = LedgerView(Ledger.read(_place(options)))
    entries = view.entries()
    if options.last is not None:
        entries = entries[max(len(entries) - options.last, 0) :]
    summary = _summary(view)
    if options.json:
        return _json({"budget": summary, "entries": entries})
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


def _verify(options: argparse.Namespace) -> str:
    place = _place(options)
    desk = LedgerView(Ledger.read(place)).desk
    receipt = desk.file.verify(options.receipt)
    unknown = price_again(desk, desk.file.rows())
    if options.json:
        found = {"entries": receipt.entries, "not priced again": unknown, "receipt": str(receipt)}
        return _json({"sound": True, **found})
    kept = (
        "Whoever wrote the whole ledger anew, with other events or fewer, is found out by a "
        "receipt of before alone: give --receipt."
        if options.receipt is None
        else f"The first {options.receipt.entries} are those of the receipt."
    )
    name = options.file if isinstance(place, FilePlace) else place.where
    return (
        f"{safe_text(name)}: {receipt.entries} entries. Hashes and sums agree, and no entry cost "
        f"less than its event, priced again.\n{kept}\n"
        + (f"But {not_priced(unknown)}\n" if unknown else "")
        + f"Receipt, to keep elsewhere: {receipt}\n"
    )


def _export(options: argparse.Namespace) -> str:
    place = _place(options)
    if options.unverified:
        terms, rows = salvage(place.where)
    else:
        file = Ledger.read(place)
        terms, rows = file.genesis, file.rows()
    if options.json or options.format == "json":
        return _json({"terms": terms, "entries": rows})
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_cell, names))
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return out.getvalue()


def _copy(options: argparse.Namespace) -> str:
    place = _place(options)
    if is_address(options.target) or not isinstance(place, FilePlace):
        raise LedgerError(
            "Only files are copied, to files: back up a ledger on a server with pg_dump, or export "
            "its entries."
        )
    target = Path(os.path.abspath(options.target))
    duplicate(place.where, target)
    receipt = Ledger.read(FilePlace(target)).verify()
    if options.json:
        return _json({"copy": str(target), "entries": receipt.entries, "receipt": str(receipt)})
    told = f"a copy of {receipt.entries} entries. Charge one of the two only."
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


def _json(value: Any) -> str:
    return json.dumps(make_json_ready(value), indent=2, allow_nan=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
