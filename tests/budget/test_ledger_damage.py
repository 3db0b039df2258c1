"""Whatever happens to the file, charges refuse with a reason and nothing recorded is lost."""

import json
import os
import resource
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from ledger_workers import in_child

from skdp.accounting import PureDPEvent
from skdp.budget import (
    BudgetAccountant,
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerMismatchError,
    LedgerMissingError,
    LedgerReceipt,
)
from skdp.budget.ledger import files
from skdp.budget.ledger.chain import canonical, digest
from skdp.budget.ledger.store import Appender, salvage

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@pytest.fixture
def budget(tmp_path):
    budget = BudgetAccountant(2.0, 0.0, ledger=tmp_path / "ledger.sqlite", name="study")
    for place in range(5):
        budget.reserve(PureDPEvent(0.125 * (1 + place % 2)), label=f"release {place}")
    return budget


def ask(budget, query, *values):
    """Return the first row that answers a query of the file."""
    with closing(sqlite3.connect(budget.ledger)) as files:
        return files.execute(query, values).fetchone()


def edit(budget, *statements):
    with closing(sqlite3.connect(budget.ledger)) as files, files:
        for statement in statements:
            files.execute(*statement if isinstance(statement, tuple) else (statement,))


def rewritten(budget, index, **changes):
    """Return an UPDATE that changes an entry's content, with the hash to match if asked."""
    content, hash_ = ask(budget, "SELECT content, hash FROM entries WHERE id = ?", index)
    rehash = changes.pop("rehash", False)
    content = canonical({**json.loads(content), **changes})
    hash_ = digest(content) if rehash else hash_
    return "UPDATE entries SET content = ?, hash = ? WHERE id = ?", (content, hash_, index)


def assert_found(budget, match=None):
    """The ledger does not verify: not for those who have it open, not for those who open it."""
    with pytest.raises(LedgerDamagedError, match=match):
        budget.verify()
    for look in (
        budget.entries,
        lambda: BudgetAccountant.open(budget.ledger),
        lambda: BudgetAccountant(2.0, 0.0, ledger=budget.ledger),
    ):
        with pytest.raises(LedgerDamagedError):
            look()


@pytest.mark.parametrize("index", [1, 3, 5])
@pytest.mark.parametrize("rehash", [False, True])
def test_edited_entries_are_found(budget, index, rehash):
    edit(budget, rewritten(budget, index, label="nothing happened", rehash=rehash))
    assert_found(budget)


@pytest.mark.parametrize("index", [0, 2, 5])
def test_the_hash_of_a_row_covers_all_of_it(budget, index):
    """Of the terms as of entries: each field changed, dropped, or added to."""
    table = "entries" if index else "genesis"
    text, hash_ = ask(budget, f"SELECT content, hash FROM {table} WHERE id = ?", index)
    row = json.loads(text)
    others = [canonical({**row, field: "another"}) for field in row]
    others += [canonical({k: v for k, v in row.items() if k != field}) for field in row]
    others += [canonical({**row, "more": None}), f" {text}", text[:-1] + "\n}"]
    assert len(set(others)) == len(others) and len(row) > 10
    assert len(set(hash_[:32])) > 4 and len(set(hash_[32:])) > 4  # all 256 bits of it
    for other in others:
        assert digest(other) != hash_, other
    for other in others[: len(row)]:
        edit(budget, (f"UPDATE {table} SET content = ? WHERE id = ?", (other, index)))
        with pytest.raises(LedgerError):
            budget.verify()
        with pytest.raises(LedgerError):
            BudgetAccountant.open(budget.ledger)
    edit(budget, (f"UPDATE {table} SET content = ? WHERE id = ?", (text, index)))
    assert budget.verify().entries == 5


@pytest.mark.parametrize(
    "changes", [{"spent": ["3/4", "0"]}, {"cost": ["-1/8", "0"], "spent": ["5/8", "0"]}]
)
def test_forged_entries_at_the_end_must_add_up(budget, changes):
    """Also where all hashes are made to match, and nobody has seen the chain before."""
    edit(
        budget,
        rewritten(budget, 5, **changes, rehash=True),
        "UPDATE head SET hash = (SELECT hash FROM entries WHERE id = 5)",
    )
    with pytest.raises(LedgerDamagedError, match="does not add up"):
        BudgetAccountant.open(budget.ledger.rename(budget.ledger.with_name("forged.sqlite")))


EDITS = [
    *([f"DELETE FROM entries WHERE id = {index}"] for index in (1, 3, 5)),
    *(
        [
            f"DELETE FROM entries WHERE id = {first}",
            f"UPDATE entries SET id = id - 1 WHERE id > {first}",
            "UPDATE head SET entries = 4",
        ]
        for first in (1, 3)
    ),
    [  # swapped
        "UPDATE entries SET id = 99 WHERE id = 2",
        "UPDATE entries SET id = 2 WHERE id = 3",
        "UPDATE entries SET id = 3 WHERE id = 99",
    ],
    [
        "INSERT INTO entries SELECT id + 1, content, hash, plan, place FROM entries WHERE id = 5",
        "UPDATE head SET entries = 6",
    ],
    *(
        [f"UPDATE entries SET {column} WHERE id = {index}"]
        for column in ("hash = 'x'", "content = 'x'", "content = x'00ff'", "plan = 1")
        for index in (2, 5)
    ),
]


@pytest.mark.parametrize("statements", EDITS)
def test_dropped_moved_and_changed_rows_are_found(budget, statements):
    edit(budget, *statements)
    assert_found(budget, "out of place" if "99" in statements[0] else None)


def cut(budget, entries):
    """Drop the last entries as whoever knows the format would."""
    last = f"SELECT hash FROM entries WHERE id = {entries}"
    head = f"UPDATE head SET entries = {entries}, hash = ({last})"
    edit(budget, f"DELETE FROM entries WHERE id > {entries}", head)


def test_entries_dropped_at_the_end_are_found(budget):
    receipt = budget.verify()
    edit(budget, "DELETE FROM entries WHERE id = 5")
    assert_found(budget, "does not end at its recorded end")
    cut(budget, 4)
    # A chain cut short by whoever knows its format is whole in itself: the process that saw more
    # knows, and so does whoever kept a receipt.
    with pytest.raises(LedgerDamagedError, match="fewer than the 5 entries"):
        budget.reserve(PureDPEvent(0.125))
    again = BudgetAccountant.open(budget.ledger.rename(budget.ledger.with_name("cut.sqlite")))
    assert again.verify().entries == 4
    for known in (receipt, str(receipt)):
        with pytest.raises(LedgerDamagedError, match="fewer than the 5 entries"):
            again.verify(known)


def test_rewritten_chains_are_found_by_receipts(budget):
    early, receipt = LedgerReceipt.parse(str(budget.verify())), budget.verify()
    budget.reserve(PureDPEvent(0.125), label="later")
    assert budget.verify(early).entries == 6
    cut(budget, 4)
    other = BudgetAccountant.open(budget.ledger.rename(budget.ledger.with_name("other.sqlite")))
    for _ in range(3):
        other.reserve(PureDPEvent(0.001))
    assert other.verify().entries == 7
    with pytest.raises(LedgerDamagedError, match="entry 5 differs from before"):
        other.verify(receipt)


@pytest.mark.parametrize("text", ["", "5", "5:abc", "x:" + "0" * 64])
def test_receipts_that_are_none(budget, text):
    with pytest.raises(ValueError, match="receipt"):
        budget.verify(text)


def test_an_older_copy_is_noticed_by_those_who_saw_more(budget, tmp_path):
    shutil.copy(budget.ledger, tmp_path / "backup")
    budget.reserve(PureDPEvent(0.25))
    os.replace(tmp_path / "backup", budget.ledger)
    with pytest.raises(LedgerDamagedError, match="older copy"):
        budget.reserve(PureDPEvent(0.25))


def test_raised_limits_are_found(budget):
    (content,) = ask(budget, "SELECT content FROM genesis")
    content = canonical({**json.loads(content), "epsilon": 100.0, "limits": ["100", "0"]})
    edit(budget, ("UPDATE genesis SET content = ?", (content,)))
    with pytest.raises(LedgerDamagedError, match="other terms"):
        budget.reserve(PureDPEvent(0.125))
    assert_found(budget, "other terms")
    edit(budget, ("UPDATE genesis SET hash = ?", (digest(content),)))
    with pytest.raises(LedgerMismatchError):
        budget.reserve(PureDPEvent(0.125))
    with pytest.raises(LedgerDamagedError):  # the chain hangs on the terms
        BudgetAccountant.open(budget.ledger)


def test_triggers_and_other_tables_are_found(budget):
    edit(
        budget,
        "CREATE TRIGGER cheap AFTER INSERT ON entries BEGIN "
        "DELETE FROM entries WHERE id = new.id; END",
    )
    with pytest.raises(LedgerDamagedError, match="other tables"):
        budget.reserve(PureDPEvent(0.125))


def test_what_is_damaged_can_be_salvaged(budget):
    edit(budget, "UPDATE entries SET content = 'gone' WHERE id = 3")
    terms, entries = salvage(budget.ledger)
    assert terms["name"] == "study"
    assert [e.get("label", e.get("text")) for e in entries] == [
        *("release 0", "release 1", "gone", "release 3", "release 4")
    ]


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + bytes(4080)])
def test_files_that_are_no_ledgers(tmp_path, content):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(content)
    for make in (BudgetAccountant.open, lambda path: BudgetAccountant(1.0, 0.0, ledger=path)):
        with pytest.raises(LedgerDamagedError, match="not a ledger" if content else "was emptied"):
            make(path)
    assert path.read_bytes() == content


def test_other_databases_and_formats_are_refused(budget, tmp_path):
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as files, files:
        files.execute("CREATE TABLE notes (text)")
    with pytest.raises(LedgerDamagedError, match="format 0"):
        BudgetAccountant.open(other)
    edit(budget, "PRAGMA user_version = 2")
    with pytest.raises(LedgerDamagedError, match="format 2"):
        budget.reserve(PureDPEvent(0.125))


def test_a_file_that_disappears_is_missed_and_not_made_anew(budget):
    budget.ledger.unlink()
    for act in (budget.spent, budget.verify, lambda: budget.reserve(PureDPEvent(0.125))):
        with pytest.raises(LedgerMissingError, match="does not exist"):
            act()
    with pytest.raises(LedgerMissingError):
        BudgetAccountant.open(budget.ledger)
    assert not budget.ledger.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 3.0}, "epsilon=2.0 and not 3.0"),
        ({"delta": 1e-6}, "delta=0.0 and not 1e-06"),
        ({"adjacency": "add-remove"}, "adjacency"),
        ({"composition": "gdp", "delta": 1e-6}, "composition='basic'"),
        ({"name": "another"}, "name='study'"),
    ],
)
def test_ledgers_keep_their_terms(budget, changes, message):
    terms = {"epsilon": 2.0, "delta": 0.0, "ledger": budget.ledger, **changes}
    with pytest.raises(LedgerMismatchError, match=message):
        BudgetAccountant(**terms)
    assert BudgetAccountant(2.0, 0.0, ledger=budget.ledger).spent() == budget.spent()
    assert len(budget.entries()) == 5


def test_locked_ledgers_refuse_after_a_while(budget, monkeypatch):
    monkeypatch.setattr(files, "BUSY_SECONDS", 0.2)
    with closing(sqlite3.connect(budget.ledger, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerLockedError, match="locked"):
            budget.reserve(PureDPEvent(0.125))
        assert len(budget.entries()) == 5  # reading goes on
        holder.execute("ROLLBACK")
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerLockedError):
            budget.spent()
    budget.reserve(PureDPEvent(0.125))


def as_nobody(act):
    """Run something without the rights of root, who may write everything."""

    def drop():
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        return act()

    return in_child(drop)


@needs_fork
def test_read_only_files_are_read_and_refuse_charges(budget):
    for parent in budget.ledger.parents:  # pytest's own folders are closed to others
        if Path(tempfile.gettempdir()) in parent.parents and parent.stat().st_uid == os.getuid():
            parent.chmod(0o755)
    budget.ledger.chmod(0o444)
    assert as_nobody(lambda: len(BudgetAccountant.open(budget.ledger).entries())) == "5"
    assert as_nobody(lambda: budget.verify().entries) == "5"
    answer = as_nobody(lambda: budget.reserve(PureDPEvent(0.125)))
    assert answer.startswith("LedgerReadOnlyError") and "write access" in answer
    answer = as_nobody(lambda: budget.check(PureDPEvent(0.125)))
    assert answer.startswith("LedgerReadOnlyError")
    budget.ledger.chmod(0o666)
    budget.ledger.parent.chmod(0o555)  # the folder still forbids the journal
    answer = as_nobody(lambda: budget.reserve(PureDPEvent(0.125)))
    assert answer.startswith("LedgerReadOnlyError")
    answer = as_nobody(lambda: BudgetAccountant(1.0, 0.0, ledger=budget.ledger.with_name("new")))
    assert answer.startswith("LedgerReadOnlyError")
    budget.ledger.parent.chmod(0o755)
    assert len(budget.entries()) == 5
    budget.reserve(PureDPEvent(0.125))


@needs_fork
def test_full_disks_refuse_and_lose_nothing(budget):
    """A limit on the size of files: what is written beyond it fails as on a full disk."""

    def fill():
        budget = BudgetAccountant.open(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
        for granted in range(10_000):
            try:
                budget.reserve(PureDPEvent(1e-6), label="x" * 500)
            except LedgerError as error:
                return f"{granted} {type(error).__name__} {error}"

    path = budget.ledger
    granted, kind, *text = in_child(fill).split()
    assert int(granted) > 5 and kind in ("LedgerError", "LedgerFullError")
    assert "disk" in " ".join(text) and "no entry was lost" in " ".join(text)
    assert budget.verify().entries == 5 + int(granted)
    budget.reserve(PureDPEvent(0.125))


def test_databases_without_room_refuse(budget, monkeypatch):
    full = (*files._DURABLE, "PRAGMA max_page_count = 1")
    monkeypatch.setattr(files, "_DURABLE", full)
    granted = 0
    with pytest.raises(LedgerFullError, match="no entry was lost"):
        for granted in range(100):  # noqa: B007
            budget.reserve(PureDPEvent(1e-6), label="x" * 2000)
    monkeypatch.undo()
    assert budget.verify().entries == 5 + granted
    budget.reserve(PureDPEvent(1e-6))


def test_interrupted_charges_are_rolled_back(budget, interrupted):
    with interrupted(), pytest.raises(KeyboardInterrupt):
        budget.reserve(PureDPEvent(0.125))
    assert budget.verify().entries == 5
    budget.reserve(PureDPEvent(0.125))


def test_charges_within_charges_are_refused(budget, monkeypatch):
    """As a signal handler would, that interrupts one charge to make another."""
    append, refused = Appender.append, []

    def interrupted(self, row, cost):
        with pytest.raises(LedgerLockedError, match="interrupted") as caught:
            budget.reserve(PureDPEvent(0.125))
        refused.append(caught.value)
        assert budget.spent() == (0.875, 0.0)
        return append(self, row, cost)

    monkeypatch.setattr(Appender, "append", interrupted)
    budget.reserve(PureDPEvent(0.125))
    monkeypatch.undo()
    assert len(refused) == 1 and budget.verify().entries == 6
    budget.reserve(PureDPEvent(0.125))


def test_ledgers_in_folders_that_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    budget = BudgetAccountant(1.0, 0.0, ledger="a file #1?.sqlite")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    budget.reserve(PureDPEvent(0.5))
    assert budget.ledger == tmp_path / "a file #1?.sqlite" and budget.ledger.exists()
