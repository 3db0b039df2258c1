"""What a charge costs, with an empty ledger and with a long one.

    python examples/benchmarks/ledger.py --markdown docs/ledger_speed.md

A charge is durable when it returns, so that it cannot be faster than the disk. The time of one
fsync of a page, measured in turns with the charges, says how much of a charge is the disk's.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import skdp
from skdp.accounting import Event, GaussianEvent, PureDPEvent
from skdp.budget import BudgetAccountant
from skdp.budget.ledger import files

LENGTHS = (0, 1_000, 10_000)
PARAMETERS = {"epsilon": 1.0, "delta": 1e-6, "alpha": "auto", "data_norm": 1.0, "loss": "logistic"}
BUDGETS: tuple[tuple[str, Event], ...] = (("basic", PureDPEvent(0.01)), ("gdp", GaussianEvent(50)))


def charge(budget: BudgetAccountant, event: Event) -> None:
    budget.reserve(event, label="a fit", estimator="An", parameters=PARAMETERS)


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def fill(budget: BudgetAccountant, event: Event, length: int) -> None:
    """Make a ledger longer without waiting for the disk after each entry."""
    durable = files._DURABLE
    files._DURABLE = ("PRAGMA synchronous = OFF",)
    try:
        for _ in range(length - budget.verify().entries):
            charge(budget, event)
    finally:
        files._DURABLE = durable


def page_sync(folder: Path) -> Callable[[], None]:
    """Return a function that writes one page of a file and waits for the disk."""
    handle = os.open(folder / "page", os.O_RDWR | os.O_CREAT)
    page = os.urandom(4096)

    def write() -> None:
        os.pwrite(handle, page, 0)
        os.fsync(handle)

    return write


def measure(name: str, event: Event, repeats: int, folder: Path) -> list[dict[str, float | str]]:
    """Time charges to ledgers of several lengths in turns, so that a disturbance meets them all."""
    sync = page_sync(folder)
    budgets = {
        length: BudgetAccountant(
            1e6, 1e-5, composition=name, ledger=folder / f"{name}-{length}.sqlite"
        )
        for length in LENGTHS
    }
    times: dict[int, list[tuple[float, float, float]]] = {length: [] for length in LENGTHS}
    for length, budget in budgets.items():
        fill(budget, event, length)
    for _ in range(repeats):
        for length, budget in budgets.items():
            before = time.process_time()
            elapsed = seconds(lambda budget=budget: charge(budget, event))
            times[length].append((elapsed, time.process_time() - before, seconds(sync)))
    lines: list[dict[str, float | str]] = []
    for length, budget in budgets.items():
        charges, processor, syncs = (sorted(column) for column in zip(*times[length], strict=True))
        lines.append(
            {
                "composition": name,
                "entries": length,
                "charge": statistics.median(charges),
                "slowest": charges[int(0.95 * repeats)],
                "processor": statistics.median(processor),
                "sync": statistics.median(syncs),
                "spent": statistics.median(seconds(budget.spent) for _ in range(9)),
                "verify": statistics.median(seconds(budget.verify) for _ in range(3)),
            }
        )
    return lines


def report(lines: list[dict[str, float | str]], repeats: int) -> str:
    """Write the results as a page."""
    charges = [1e3 * float(line["charge"]) for line in lines]
    fastest, slowest = min(charges), max(charges)
    text = [
        "# Speed of a ledger",
        "",
        f"A charge takes {fastest:.2f} to {slowest:.2f} ms in the median. It does not become "
        "slower as the ledger grows.",
        "",
        "| condition | value |",
        "|---|---|",
        f"| repetitions | medians of {repeats} durable charges, one process, one thread |",
        f"| machine | {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} |",
        f"| versions | Python {platform.python_version()}, skdp {skdp.__version__}, "
        f"SQLite {sqlite3.sqlite_version} |",
        "| ratio | of a charge to an fsync of one page, measured alternately |",
        "| script | `python examples/benchmarks/ledger.py --markdown docs/ledger_speed.md` |",
        "",
        "Measure on an idle machine. Other processes that sync to the same disk can slow an fsync, "
        "and so a charge, by a",
        "factor of ten or more.",
        "",
        "| composition | entries | charge | 95 % of charges below | processor time "
        "| fsync of a page | ratio | `spent()` | `verify()` |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        ms = {k: f"{1e3 * v:.2f} ms" for k, v in line.items() if isinstance(v, float)}
        ratio = float(line["charge"]) / float(line["sync"])
        text.append(
            f"| {line['composition']} | {line['entries']} | {ms['charge']} | {ms['slowest']} "
            f"| {ms['processor']} | {ms['sync']} | {ratio:.1f} | {ms['spent']} | {ms['verify']} |"
        )
    text += [
        "",
        "A charge reads the first and the last row, which contains the sums. It opens the file, "
        "writes a rollback journal and",
        "closes the file. The disk syncs the journal twice, the file once, and the folder twice. "
        "`spent()` also opens the file.",
        "`verify()` reads all entries.",
        "",
    ]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            line
            for name, event in BUDGETS
            for line in measure(name, event, options.repeats, Path(folder))
        ]
    text = report(lines, options.repeats)
    print(text)
    if options.markdown:
        options.markdown.write_text(text)


if __name__ == "__main__":
    main()
