"""The write-ahead log: one sync a charge, one file at rest, and nothing lost on the way."""

import ctypes
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ledger_workers import charge_and_report, charge_many

from skdp import cli
from skdp.accounting import PureDPEvent
from skdp.budget import (
    BudgetAccountant,
    LedgerDamagedError,
    LedgerMismatchError,
    LedgerMissingError,
    _connection,
    _held,
)

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
EVENT = PureDPEvent(0.01)


@pytest.fixture
def budget(tmp_path):
    budget = BudgetAccountant(100.0, 0.0, ledger=tmp_path / "ledger.sqlite", name="study")
    charge_many(budget, 3)
    return budget


def beside(budget):
    """Return what lies in the ledger's folder."""
    return sorted(path.name for path in budget.ledger.parent.glob("ledger*"))


SERVER = """
import os, sys
from skdp.accounting import PureDPEvent
from skdp.budget import BudgetAccountant
event = PureDPEvent(0.01)
for line in sys.stdin:
    action, _, path = line.rstrip("\\n").partition(" ")
    child = os.fork() if action == "kill" else None
    if not child:
        budget = BudgetAccountant.open(path)
        for _ in range({"charge": 1, "kill": 5, "verify": 0}[action]):
            budget.reserve(event)
        if child == 0:
            os.kill(os.getpid(), 9)
        print(budget.verify().entries, flush=True)
        del budget
    else:
        os.waitpid(child, 0)
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def elsewhere():
    """Do something with a ledger in another process, not forked from this one."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def act(path, action="charge"):
        server.stdin.write(f"{action} {path}\n")
        server.stdin.flush()
        answer = [line.rstrip() for line in iter(server.stdout.readline, "done\n") if line]
        return int(answer[0]) if answer else None

    yield act
    server.stdin.close()
    server.wait()
    server.stdout.close()


def copied(path, target):
    """Copy a file as other libraries do, which takes all locks on it from this process."""
    return shutil.copyfile(path, target)


def test_a_ledger_is_one_file_when_nobody_uses_it(elsewhere, tmp_path):
    path = tmp_path / "ledger.sqlite"
    budget = BudgetAccountant(100.0, 0.0, ledger=path)
    assert beside(budget) == ["ledger.sqlite"]
    budget.reserve(EVENT)
    assert beside(budget) == ["ledger.sqlite", "ledger.sqlite-shm", "ledger.sqlite-wal"]
    budget.close()
    assert beside(budget) == ["ledger.sqlite"]
    budget.close()
    budget.reserve(EVENT)
    del budget
    assert list(tmp_path.iterdir()) == [path]
    assert elsewhere(path) == 3
    assert list(tmp_path.iterdir()) == [path]
    assert BudgetAccountant.open(path).verify().entries == 3
    assert list(tmp_path.iterdir()) == [path]


def test_a_process_that_ends_leaves_one_file(budget):
    budget.close()
    code = (
        "import sys\nfrom skdp.accounting import PureDPEvent\n"
        "from skdp.budget import BudgetAccountant\nbudget = BudgetAccountant.open(sys.argv[1])\n"
        "budget.reserve(PureDPEvent(0.01))"
    )
    subprocess.run([sys.executable, "-c", code, budget.ledger], check=True)
    assert beside(budget) == ["ledger.sqlite"] and budget.verify().entries == 4


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_leave_one_file(budget, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"needs {method}")
    budget.close()
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    processes = [
        context.Process(target=charge_and_report, args=(budget, 3, queue)) for _ in range(2)
    ]
    for process in processes:
        process.start()
    assert [queue.get(timeout=120) for _ in processes] == [3, 3]
    for process in processes:
        process.join()
    assert beside(budget) == ["ledger.sqlite"]
    assert budget.verify().entries == 9


def test_other_processes_do_not_remove_a_log_in_use(budget, elsewhere):
    assert elsewhere(budget.ledger)
    assert "ledger.sqlite-wal" in beside(budget)
    charge_many(budget, 2)
    assert BudgetAccountant.open(budget.ledger).verify().entries == 6


@needs_fork
def test_forked_children_inherit_no_connection(budget):
    assert list(_held._holding) == [budget.ledger]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            inherited = len(_held._holding)
            os.write(writing, f"{inherited} {charge_many(budget, 20)}".encode())
        finally:
            os._exit(0)
    assert charge_many(budget, 20) == 20
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"0 20"
    for handle in (reading, writing):
        os.close(handle)
    assert budget.verify().entries == 43
    budget.close()
    assert beside(budget) == ["ledger.sqlite"]


@needs_fork
def test_children_that_were_forked_behind_our_back_are_refused(budget, elsewhere):
    reading, writing = os.pipe()
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        try:
            text = "charged"
            try:
                budget.reserve(EVENT)
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
            budget.close()
            os.write(writing, text.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    answer = os.read(reading, 1000).decode()
    for handle in (reading, writing):
        os.close(handle)
    assert answer.startswith("LedgerError") and "fork" in answer
    assert "ledger.sqlite-wal" in beside(budget)
    budget.reserve(EVENT)
    assert elsewhere(budget.ledger)
    assert budget.verify().entries == 5


@needs_fork
def test_logs_of_killed_processes_are_recovered(budget, elsewhere, tmp_path, capsys):
    budget.close()
    assert elsewhere(budget.ledger, "kill") is None
    assert "ledger.sqlite-wal" in beside(budget)
    assert cli.main(["ledger", "verify", str(budget.ledger)]) == 0
    assert "8 entries" in capsys.readouterr().out
    receipt = budget.verify()
    assert receipt.entries == 8
    # A copy of the file alone lacks what is in the log; a receipt shows that.
    alone = BudgetAccountant.open(copied(budget.ledger, tmp_path / "copy.sqlite"))
    assert alone.verify().entries == 3
    with pytest.raises(LedgerDamagedError, match="fewer than the 8 entries"):
        alone.verify(receipt)
    budget.reserve(EVENT)
    budget.close()
    assert beside(budget) == ["ledger.sqlite"]
    assert BudgetAccountant.open(budget.ledger).verify(receipt).entries == 9


@needs_fork
@pytest.mark.parametrize("seed", range(6))
def test_damaged_logs_never_lead_to_a_wrong_ledger(budget, elsewhere, tmp_path, seed):
    """SQLite reads a log as far as it is whole: what is missing then is the end."""
    budget.close()
    elsewhere(budget.ledger, "kill")
    before, receipt = budget.entries(), budget.verify()
    noise = random.Random(seed)
    log = budget.ledger.with_name(f"{budget.ledger.name}-wal")
    data = bytearray(log.read_bytes())
    data[noise.randrange(len(data))] ^= 1 << noise.randrange(8)
    if seed % 2:
        del data[noise.randrange(len(data)) :]
    # In a folder of its own, since this process knows how long the ledger was; and without its
    # index, as after a power failure.
    (tmp_path / "restarted").mkdir()
    found = shutil.copy(budget.ledger, tmp_path / "restarted")
    Path(f"{found}-wal").write_bytes(data)
    found = BudgetAccountant.open(found)
    entries = found.entries()
    assert 3 <= len(entries) < 8 and entries == before[: len(entries)]
    with pytest.raises(LedgerDamagedError, match="fewer than the 8 entries"):
        found.verify(receipt)
    found.reserve(EVENT)
    assert found.verify().entries == len(entries) + 1


def test_files_replaced_between_charges_are_refused(budget, tmp_path):
    other = BudgetAccountant(100.0, 0.0, ledger=tmp_path / "other.sqlite")
    charge_many(other, 2)
    other.close()
    aside = tmp_path / "aside"
    os.rename(budget.ledger, aside)
    os.rename(other.ledger, budget.ledger)
    for _ in range(2):
        with pytest.raises(LedgerMismatchError, match="replaced"):
            budget.reserve(EVENT)
    os.replace(aside, budget.ledger)
    budget.reserve(EVENT)
    assert budget.verify().entries == 4
    # Of two files at rest one sees that they are two ledgers.
    budget.close()
    shutil.copy(budget.ledger, aside)
    third = BudgetAccountant(100.0, 0.0, ledger=tmp_path / "third.sqlite")
    os.replace(third.ledger, budget.ledger)
    with pytest.raises(LedgerMismatchError, match="another budget"):
        budget.reserve(EVENT)


def test_names_that_lead_elsewhere_are_followed(budget, tmp_path):
    other = BudgetAccountant(100.0, 0.0, ledger=tmp_path / "other.sqlite")
    name = tmp_path / "link"
    name.symlink_to(budget.ledger)
    linked = BudgetAccountant.open(name)
    assert charge_many(linked, 2) == 2 == charge_many(budget, 2)
    assert linked.verify().entries == 7
    name.unlink()
    with pytest.raises(LedgerMissingError):
        linked.reserve(EVENT)
    name.symlink_to(other.ledger)
    with pytest.raises(LedgerMismatchError, match="another budget"):
        linked.reserve(EVENT)
    name.unlink()
    name.symlink_to(budget.ledger)
    linked.reserve(EVENT)
    budget.reserve(EVENT)
    assert budget.verify().entries == 9 and other.verify().entries == 0


def test_files_deleted_between_charges_are_missed(budget, tmp_path):
    aside = tmp_path / "aside"
    os.rename(budget.ledger, aside)
    for _ in range(2):
        with pytest.raises(LedgerMissingError):
            budget.reserve(EVENT)
    # The log of the lost file would be taken for that of a new one.
    with pytest.raises(LedgerMissingError, match="write-ahead log"):
        BudgetAccountant(100.0, 0.0, ledger=budget.ledger)
    os.rename(aside, budget.ledger)
    budget.reserve(EVENT)
    assert budget.verify().entries == 4


@needs_fork
@pytest.mark.parametrize("files", [("",), ("", "-wal", "-shm")])
@pytest.mark.parametrize("killed", [False, True])
def test_nothing_is_lost_with_the_locks(budget, elsewhere, tmp_path, files, killed):
    """Who copies the file in this process drops its locks: others may remove the log in use."""
    for suffix in files:
        copied(f"{budget.ledger}{suffix}", tmp_path / f"copy{suffix}")
    assert elsewhere(budget.ledger)  # it believes to be the last, and removes the log
    assert "ledger.sqlite-wal" not in beside(budget)
    entries = 4
    if killed:
        # A log of somebody else lies there, and holds charges.
        assert elsewhere(budget.ledger, "kill") is None
        entries += 5
    assert charge_many(budget, 2) == 2
    assert elsewhere(budget.ledger)
    assert BudgetAccountant.open(budget.ledger).verify().entries == entries + 3
    assert budget.verify().entries == entries + 3
    budget.close()
    assert BudgetAccountant.open(budget.ledger).verify().entries == entries + 3


@needs_fork
def test_closing_without_locks_removes_no_charges(budget, elsewhere, tmp_path):
    copied(budget.ledger, tmp_path / "copy")
    assert elsewhere(budget.ledger)
    assert elsewhere(budget.ledger, "kill") is None
    budget.close()
    assert BudgetAccountant.open(budget.ledger).verify().entries == 9


@needs_fork
def test_locks_are_renewed_at_every_charge(budget, elsewhere, tmp_path):
    copied(budget.ledger, tmp_path / "copy")
    budget.reserve(EVENT)
    assert elsewhere(budget.ledger)
    assert "ledger.sqlite-wal" in beside(budget)
    assert budget.verify().entries == 5


def test_network_file_systems_have_a_rollback_journal(elsewhere, tmp_path, monkeypatch):
    monkeypatch.setattr(_held, "is_remote", lambda path: True)
    budget = BudgetAccountant(100.0, 0.0, ledger=tmp_path / "ledger.sqlite")
    assert charge_many(budget, 5) == 5
    assert beside(budget) == ["ledger.sqlite"]
    monkeypatch.undo()
    assert elsewhere(budget.ledger, "verify") == 5
    charge_many(budget, 5)
    assert beside(budget) == ["ledger.sqlite"]
    budget.close()
    budget.reserve(EVENT)  # on a local disk again
    assert "ledger.sqlite-wal" in beside(budget)
    assert budget.verify().entries == 11
    # Elsewhere it can only be charged when nobody uses the log here.
    monkeypatch.setattr(_held, "is_remote", lambda path: True)
    monkeypatch.setattr(_held, "BUSY_SECONDS", 0.1)
    budget.close()
    budget.reserve(EVENT)
    assert beside(budget) == ["ledger.sqlite"]


def test_file_systems_are_recognised(tmp_path):
    assert _held.is_remote(tmp_path) is False
    assert _held.is_remote(tmp_path / "nowhere") is False


def test_file_systems_without_shared_memory_have_a_rollback_journal(tmp_path, monkeypatch):
    """SQLite's own word for it: the journal stays what it was."""
    connect = _held.connect

    def dotted(path, mode, pragmas):
        return connect(path, f"{mode}&vfs=unix-dotfile", pragmas)

    monkeypatch.setattr(_held, "connect", dotted)
    budget = BudgetAccountant(100.0, 0.0, ledger=tmp_path / "ledger.sqlite")
    assert charge_many(budget, 5) == 5
    assert beside(budget) == ["ledger.sqlite"] and budget.verify().entries == 5


def test_logs_do_not_grow_for_ever(budget, monkeypatch):
    monkeypatch.setattr(_connection, "_CHECKPOINT", 8)
    charge_many(budget, 20)
    size = os.stat(f"{budget.ledger}-wal").st_size
    charge_many(budget, 100)
    assert os.stat(f"{budget.ledger}-wal").st_size <= 1.2 * size
    assert budget.verify().entries == 123


@needs_fork
def test_checkpoints_meet_charges_of_other_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(_connection, "_CHECKPOINT", 3)
    budget = BudgetAccountant(100.0, 0.0, ledger=tmp_path / "ledger.sqlite")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    processes = [
        context.Process(target=charge_and_report, args=(budget, 40, queue)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    assert [queue.get(timeout=300) for _ in processes] == [40] * 4
    for process in processes:
        process.join()
    assert budget.verify().entries == 160
    assert beside(budget) == ["ledger.sqlite"]


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_charge_waits_for_the_disk_once(budget, tmp_path):
    code = (
        "import os, sys\nfrom skdp.accounting import PureDPEvent\n"
        "from skdp.budget import BudgetAccountant\nbudget = BudgetAccountant.open(sys.argv[1])\n"
        "for _ in range(50):\n    budget.reserve(PureDPEvent(0.01))\nos._exit(0)"
    )
    calls = tmp_path / "calls"
    trace = ["strace", "-f", "-o", calls, "-e", "trace=fsync,fdatasync"]
    budget.close()
    done = subprocess.run([*trace, sys.executable, "-c", code, budget.ledger], check=False)
    lines = calls.read_text().splitlines() if calls.exists() else []
    if done.returncode or not lines:
        pytest.skip("strace may not trace here")
    syncs = sum("sync(" in line for line in lines)
    assert 50 <= syncs <= 53  # the first also syncs the folder and the head of the log
    assert budget.verify().entries == 53
