"""What other processes do with a budget; importable by workers that were spawned."""

import multiprocessing
import os

import numpy as np

from skdp.accounting import PureDPEvent
from skdp.budget import BudgetExceededError
from skdp.exceptions import BudgetRequiredError


def charge_many(budget, times, epsilon=0.01, label=None):
    """Charge a number of times; return how many charges were granted."""
    granted = 0
    for _ in range(times):
        try:
            budget.reserve(PureDPEvent(epsilon), label=label or f"process {os.getpid()}")
            granted += 1
        except BudgetExceededError:
            pass
    return granted


def charge_and_report(budget, times, queue):
    """As `charge_many`, for a process with a queue."""
    queue.put(charge_many(budget, times))


def charge_together(budget, barrier, times, queue):
    """As `charge_and_report`, all processes from one moment on."""
    barrier.wait()
    queue.put(charge_many(budget, times))


def redeem_all(plan, event, times, queue):
    """Redeem events of a plan; report how many were granted."""
    granted = 0
    for _ in range(times):
        try:
            plan.reserve(event)
            granted += 1
        except BudgetExceededError:
            pass
    queue.put(granted)


def charge_with_evidence(budget, evidence, epsilon=1e-6):
    """Charge for ever; once a charge is granted, write its index as the release would be."""
    handle = os.open(evidence, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        entry = budget.reserve(PureDPEvent(epsilon))
        os.write(handle, f"{entry.index}\n".encode())


def fit_own(*_):
    """Fit a private transformer constructed here; say in which process, and what was refused."""
    # Workers that only charge are spared the import.
    from skdp.preprocessing import DPStandardScaler

    rows = np.linspace(0.0, 1.0, 40).reshape(20, 2)
    try:
        DPStandardScaler(epsilon=1.0, delta=1e-6).fit(rows)
    except (BudgetExceededError, BudgetRequiredError) as error:
        return os.getpid(), type(error).__name__
    except RuntimeError as error:
        return os.getpid(), str(error)[:10]
    return os.getpid(), None


def fit_and_report(queue):
    """As `fit_own`, for a process with a queue."""
    queue.put(fit_own())


def run_processes(method, count, target, *arguments):
    """Run processes that report on a queue; return the reports."""
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    processes = [context.Process(target=target, args=(*arguments, queue)) for _ in range(count)]
    for process in processes:
        process.start()
    reports = [queue.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return reports


def in_child(act):
    """Run something in a forked process; return what it returns, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(act())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()
