"""Charges a second to a file and to a PostgreSQL server on the same disk, by several clients.

    python examples/benchmarks/ledger_server.py --markdown docs/ledger_server_speed.md

It starts a server of its own, which listens on a local socket only. Clients charge as fast as they
can from one moment on; threads of one process take turns, as they do in skdp.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sqlite3
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _postgres import Server

import skdp
from skdp.accounting import PureDPEvent
from skdp.budget import BudgetAccountant

PARAMETERS = {"epsilon": 1.0, "delta": 1e-6, "alpha": "auto", "data_norm": 1.0, "loss": "logistic"}
CLIENTS = ((1, 1), (2, 1), (2, 4))  # processes, threads of each


def charge(budget: BudgetAccountant, times: int) -> list[float]:
    """Return how long each charge took."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        budget.reserve(PureDPEvent(0.01), label="a fit", estimator="An", parameters=PARAMETERS)
        seconds.append(time.perf_counter() - start)
    return seconds


def client(budget: BudgetAccountant, threads: int, times: int, barrier: Any, queue: Any) -> None:
    charge(budget, 2)
    barrier.wait()
    start = time.time()
    with ThreadPoolExecutor(threads) as pool:
        took = [s for part in pool.map(charge, [budget] * threads, [times] * threads) for s in part]
    queue.put((start, time.time(), took))


def measure(budget: BudgetAccountant, processes: int, threads: int, times: int) -> dict[str, Any]:
    context = multiprocessing.get_context("fork")
    barrier, queue = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=client, args=(budget, threads, times, barrier, queue))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    starts, ends, took = zip(*(queue.get() for _ in workers), strict=True)
    for worker in workers:
        worker.join()
    charges = sorted(s for part in took for s in part)
    return {
        "rate": len(charges) / (max(ends) - min(starts)),
        "median": statistics.median(charges),
        "slowest": charges[int(0.95 * len(charges))],
    }


def report(lines: list[dict[str, Any]], version: str, charges: int) -> str:
    """Write the results as a page."""
    text = [
        "# Speed of a ledger on a server",
        "",
        f"One client makes {lines[0]['rate']:.0f} charges per second to a file, and "
        f"{lines[1]['rate']:.0f} to a local PostgreSQL server.",
        "",
        "| condition | value |",
        "|---|---|",
        f"| ledgers | a file of SQLite {sqlite3.sqlite_version} and a local PostgreSQL {version} "
        "on the same disk, both durable |",
        f"| repetitions | {charges} charges by all clients together |",
        f"| machine | {os.cpu_count()} processors for clients and server, load average "
        f"{os.getloadavg()[0]:.1f} |",
        f"| versions | Python {platform.python_version()}, skdp {skdp.__version__} |",
        "| script | `python examples/benchmarks/ledger_server.py --markdown "
        "docs/ledger_server_speed.md` |",
        "",
        "| ledger | processes | threads of each | charges per second | median of a charge "
        "| 95 % of charges below |",
        "|---|---|---|---|---|---|",
    ]
    text += [
        f"| {line['ledger']} | {line['processes']} | {line['threads']} | {line['rate']:.0f} "
        f"| {1e3 * line['median']:.1f} ms | {1e3 * line['slowest']:.1f} ms |"
        for line in lines
    ]
    text += [
        "",
        "Most of the time of a charge to a server is spent on its new connection. The server "
        "starts a process and checks the",
        "password. A remote server adds about ten round trips and, with TLS, the handshake.",
        "",
    ]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--charges", type=int, default=400)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    server = Server()
    try:
        lines = []
        for number, (processes, threads) in enumerate(CLIENTS):
            times = options.charges // (processes * threads)
            for name, ledger in (
                ("file", str(server.folder / f"{number}.sqlite")),
                ("server", server.address(f"study_{number}")),
            ):
                budget = BudgetAccountant(1e6, 0.0, ledger=ledger)
                found = measure(budget, processes, threads, times)
                lines.append({"ledger": name, "processes": processes, "threads": threads, **found})
        version = server.sql("SHOW server_version")[0][0].split()[0]
    finally:
        server.remove()
    text = report(lines, version, options.charges)
    print(text)
    if options.markdown:
        options.markdown.write_text(text)


if __name__ == "__main__":
    main()
