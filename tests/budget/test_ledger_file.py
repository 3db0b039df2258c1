"""One file at all times: synced at every charge, and nothing lost to copies, forks and kills."""

import ctypes
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from ledger_workers import charge_many

from skdp import cli
from skdp.accounting import PureDPEvent
from skdp.budget import (
    BudgetAccountant,
    LedgerMismatchError,
    LedgerMissingError,
    LedgerReadOnlyError,
)
from skdp.budget.ledger import files

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
        for _ in range({"charge": 1, "kill": 5}[action]):
            budget.reserve(event)
        if child == 0:
            os.kill(os.getpid(), 9)
        print(budget.verify().entries, flush=True)
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


def test_a_ledger_is_one_file_in_use_and_at_rest(elsewhere, budget):
    assert beside(budget) == ["ledger.sqlite"]
    budget.reserve(EVENT)
    assert beside(budget) == ["ledger.sqlite"]
    assert elsewhere(budget.ledger) == 5
    assert beside(budget) == ["ledger.sqlite"] and budget.verify().entries == 5
    budget.close()
    budget.reserve(EVENT)  # closing takes nothing away


@needs_fork
@pytest.mark.parametrize("fork", [os.fork, ctypes.PyDLL(None).fork], ids=["python", "library"])
def test_forked_children_charge_the_same_file(budget, fork):
    """Those of a library that forks without Python's hooks as well: no connection is inherited."""
    child = fork()
    if child == 0:
        status = 1
        try:
            status = 0 if charge_many(budget, 20) == 20 else 1
        finally:
            os._exit(status)
    assert charge_many(budget, 20) == 20
    assert os.waitpid(child, 0)[1] == 0
    assert budget.verify().entries == 43 and beside(budget) == ["ledger.sqlite"]


@needs_fork
def test_killed_processes_leave_one_file_with_all_their_charges(budget, elsewhere, capsys):
    assert elsewhere(budget.ledger, "kill") is None
    assert beside(budget) == ["ledger.sqlite"]
    assert cli.main(["ledger", "verify", str(budget.ledger)]) == 0
    assert "8 entries" in capsys.readouterr().out
    receipt = budget.verify()
    budget.reserve(EVENT)
    assert BudgetAccountant.open(budget.ledger).verify(receipt).entries == 9


def test_bare_copies_of_a_ledger_in_use_are_complete(budget, tmp_path):
    """Also those by other means than SQLite's, which take all locks on the file from a process."""
    receipt = budget.verify()
    copy = BudgetAccountant.open(shutil.copyfile(budget.ledger, tmp_path / "copy.sqlite"))
    assert copy.verify(receipt) == receipt
    budget.reserve(EVENT)
    assert budget.verify(receipt).entries == 4


def test_files_replaced_between_charges_are_refused(budget, tmp_path):
    other = BudgetAccountant(100.0, 0.0, ledger=tmp_path / "other.sqlite")
    charge_many(other, 2)
    aside = tmp_path / "aside"
    os.rename(budget.ledger, aside)
    os.rename(other.ledger, budget.ledger)
    for _ in range(2):
        with pytest.raises(LedgerMismatchError, match="replaced"):
            budget.reserve(EVENT)
    os.replace(aside, budget.ledger)
    budget.reserve(EVENT)
    assert budget.verify().entries == 4


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


def ask(connection, name):
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_charges_are_written_as_safely_as_sqlite_can(budget):
    """What is in force is asked of the connection that a charge uses."""
    with budget.desk.file.place.transaction(writing=True) as connection:
        assert ask(connection, "synchronous") == 3  # EXTRA: the folder is synced as well
        assert ask(connection, "fullfsync") == 1 and ask(connection, "journal_mode") == "delete"
        assert ask(connection, "trusted_schema") == 0 and ask(connection, "cell_size_check") == 1
        with closing(sqlite3.connect(budget.ledger, timeout=0.0)) as other:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")  # also before the first change


def test_a_look_changes_nothing(budget):
    with pytest.raises(LedgerReadOnlyError):
        with budget.desk.file.place.transaction(writing=False) as connection:
            assert ask(connection, "trusted_schema") == 0
            assert ask(connection, "cell_size_check") == 1
            connection.execute("UPDATE head SET entries = entries")
    assert budget.verify().entries == 3


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="folders cannot be synced here")
def test_the_name_of_a_new_ledger_is_on_the_disk(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def watched(handle):
        if os.path.samestat(os.fstat(handle), os.stat(tmp_path)):
            synced.append(sorted(path.name for path in tmp_path.glob("[!.]*")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    budget = BudgetAccountant(1.0, 0.0, ledger=tmp_path / "new")
    assert cli.main(["ledger", "copy", str(budget.ledger), str(tmp_path / "twin")]) == 0
    assert synced == [["new"], ["new", "twin"]]


def test_makers_of_one_ledger_at_once_share_it(tmp_path, monkeypatch):
    """The one that finds no file, and then another's when it has made its own."""
    path, fill, made = tmp_path / "ledger", files.fill_file, []

    def slow(*given):
        fill(*given)
        if not made:
            made.append(None)
            made.append(BudgetAccountant(1.0, 0.0, ledger=path))
            made[1].reserve(EVENT)

    monkeypatch.setattr(files, "fill_file", slow)
    budget = BudgetAccountant(1.0, 0.0, ledger=path)
    assert budget.desk.file is made[1].desk.file and budget.spent() == (0.01, 0.0)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_charge_is_on_the_disk_before_it_returns(budget, tmp_path):
    code = (
        "import os, sys\nfrom skdp.accounting import PureDPEvent\n"
        "from skdp.budget import BudgetAccountant\nbudget = BudgetAccountant.open(sys.argv[1])\n"
        "for _ in range(10):\n    budget.reserve(PureDPEvent(0.01))\n    os.getppid()\nos._exit(0)"
    )
    calls = tmp_path / "calls"
    # Only these calls stop the process, which makes it several times as fast.
    trace = ["strace", "-f", "--seccomp-bpf", "-o", calls]
    trace += ["-e", "trace=fsync,fdatasync,unlink,getppid"]
    done = subprocess.run([*trace, sys.executable, "-c", code, budget.ledger], check=False)
    lines = calls.read_text().splitlines() if calls.exists() else []
    if done.returncode or not lines:
        pytest.skip("strace may not trace here")
    marks = "".join(
        "s" if "sync(" in line else "u" if "-journal" in line else "|" if "getppid" in line else ""
        for line in lines
    )
    # Journal, ledger, the journal's end, and the folder without it.
    charges = marks.split("|")[:10]
    assert all(charge.count("s") >= 4 and charge.endswith("us") for charge in charges), marks
    assert budget.verify().entries == 13
