"""The command ``skdp``: options, output and exit codes.

Commands and their packages are imported only when needed, not for help and version.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from skdp.exceptions import LedgerDamagedError, LedgerError

# Exit codes; argparse exits with 2 for wrong arguments.
SOUND, DAMAGED, UNREADABLE = 0, 1, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    from skdp import ledger_commands as ledger

    try:
        text = getattr(ledger, options.command)(options)
    except LedgerError as error:
        damaged = isinstance(error, LedgerDamagedError)
        if options.json:
            found = {"sound": False, "error": type(error).__name__, "message": str(error)}
            print(ledger.as_json(found))
        print(f"skdp: {_encodable(ledger.safe_text(error), sys.stderr)}", file=sys.stderr)
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
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"skdp: {output} cannot be written: {error.strerror}.", file=sys.stderr)
        return UNREADABLE
    return SOUND


def _encodable(text: str, stream: Any) -> str:
    """Return a text in the encoding of a stream; other letters become escapes."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="skdp", description="Differential privacy with skdp.")
    parser.add_argument("--version", action="version", version=f"skdp {version('skdp')}")
    topics = parser.add_subparsers(required=True, metavar="TOPIC")
    ledger = topics.add_parser("ledger", help="read ledgers of privacy budgets")
    commands = ledger.add_subparsers(required=True, metavar="COMMAND")
    show = _command(commands, "show", "show total, spending and entries of a ledger")
    show.add_argument("--last", type=int, metavar="N", help="show only the last N entries")
    verify = _command(commands, "verify", "check a ledger for changes")
    verify.add_argument(
        "--receipt",
        type=_receipt,
        metavar="ENTRIES:HASH",
        help="receipt of an earlier run; its entries must still be present",
    )
    export = _command(commands, "export", "write all entries as CSV or JSON")
    export.add_argument("--format", choices=("csv", "json"), default="csv", help="default: csv")
    export.add_argument("--output", metavar="FILE", help="default: standard output")
    export.add_argument(
        "--unverified", action="store_true", help="save the readable entries of a damaged ledger"
    )
    copy = _command(commands, "copy", "copy a ledger, also while it is in use")
    copy.add_argument("target", metavar="TARGET", help="name of the copy")
    return parser


def _command(commands: Any, name: str, purpose: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=purpose, description=purpose)
    command.add_argument(
        "file", metavar="FILE", help="file of the ledger, or its address on a server"
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(command=name)
    return command


def _receipt(text: str) -> Any:
    from skdp.budget.ledger.chain import LedgerReceipt

    try:
        return LedgerReceipt.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
