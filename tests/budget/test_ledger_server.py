"""A ledger on a PostgreSQL server that is started here: exact, durable, and of one budget."""

import contextlib
import json
import multiprocessing
import os
import re
import signal
import threading
import time
from datetime import datetime
from pathlib import Path

import _postgres
import pytest
from ledger_workers import (
    charge_many,
    charge_with_evidence,
    in_child,
    redeem_all,
    run_processes,
)
from support import rows

from skdp import OperaLogisticRegression, cli
from skdp.accounting import GaussianEvent, PureDPEvent
from skdp.budget import (
    BudgetAccountant,
    BudgetExceededError,
    LedgerDamagedError,
    LedgerError,
    LedgerLockedError,
    LedgerMismatchError,
    LedgerMissingError,
    LedgerReadOnlyError,
    LedgerUnreachableError,
)
from skdp.budget.ledger import server as address
from skdp.budget.ledger import server as server_module
from skdp.budget.ledger import store
from skdp.budget.ledger.chain import NO_ROW_BEFORE, canonical, digest
from skdp.budget.ledger.store import salvage

EVENT = PureDPEvent(0.01)


@pytest.fixture
def budget(on_server):
    return on_server


def test_a_server_keeps_what_a_file_keeps(server, schema, tmp_path):
    """The same charges, plans and refusals; entries alike but for their times."""
    kept = []
    for ledger in (server.address(schema), tmp_path / "file.sqlite"):
        budget = BudgetAccountant(3.0, 1e-5, ledger=ledger, name="study")
        budget.reserve(GaussianEvent(10.0), label="mean", parameters={"name": "Zoë: 100 %"})
        plan = budget.plan([GaussianEvent(20.0)] * 2)
        plan.reserve(GaussianEvent(20.0), label="a")
        with pytest.raises(BudgetExceededError) as refused:
            budget.reserve(PureDPEvent(2.9), label="b")
        budget.check(PureDPEvent(0.1))  # which leaves nothing
        budget.redeem(2).reserve(GaussianEvent(20.0))
        with pytest.raises(BudgetExceededError, match="all 2 of this kind"):
            plan.reserve(GaussianEvent(20.0))
        again = BudgetAccountant.open(budget.ledger)
        entries = [{**entry, "time": ""} for entry in again.entries()]
        figures = again.spent(), again.remaining(), again.coordinates(), again.total
        kept.append((entries, figures, str(refused.value), repr(again), again.verify().entries))
        with pytest.raises(LedgerMismatchError, match="cannot be changed"):
            BudgetAccountant(4.0, 1e-5, ledger=ledger)
    assert kept[0] == kept[1]


def test_plans_are_redeemed_once_by_forked_processes(server, schema):
    budget = BudgetAccountant(3.0, 1e-5, ledger=server.address(schema))
    plan = budget.plan([GaussianEvent(20.0)] * 5)
    granted = run_processes("fork", 2, redeem_all, plan, GaussianEvent(20.0), 4)
    assert sum(granted) == 5 and plan.left() == []


@pytest.mark.parametrize(
    "with_signal", [signal.SIGKILL, pytest.param(signal.SIGQUIT, marks=pytest.mark.slow)]
)
def test_servers_that_are_killed_between_charges_lose_none(server, budget, with_signal):
    receipt = budget.verify()
    server.kill(with_signal)
    X, y = rows()
    model = OperaLogisticRegression(epsilon=0.5, delta=0.0, data_norm=1.0, accountant=budget)
    with pytest.raises(LedgerUnreachableError, match="cannot be reached"):
        model.fit(X, y)
    assert not hasattr(model, "coef_") and "LedgerUnreachableError" in repr(budget)
    server.start()
    assert budget.verify(receipt) == receipt
    budget.reserve(EVENT)
    assert BudgetAccountant.open(budget.ledger).verify(receipt).entries == 4


@pytest.mark.slow
def test_servers_that_are_killed_during_charges_lose_and_double_none(server, budget):
    """What was granted is what is recorded, entry by entry, also where no answer came."""
    granted, refused, done = [], [], threading.Event()

    def work():
        while not done.is_set():
            try:
                granted.append(budget.reserve(PureDPEvent(1e-6)).index)
            except LedgerUnreachableError as error:
                refused.append(str(error))
                time.sleep(0.05)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(4):
            before = len(granted)
            while len(granted) < before + 5 + turn:
                time.sleep(0.001)
            server.kill((signal.SIGKILL, signal.SIGQUIT)[turn % 2])
            server.start()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert sorted(granted) == list(range(4, budget.verify().entries + 1))
    assert refused and not any("may have been recorded" in text for text in refused)


@pytest.mark.slow
def test_clients_that_are_killed_lose_no_charge(budget, tmp_path):
    evidence = tmp_path / "evidence"
    evidence.touch()
    for turn in range(4):
        size, child = evidence.stat().st_size, os.fork()
        if child == 0:
            try:
                charge_with_evidence(budget, evidence)
            finally:
                os._exit(1)
        while evidence.stat().st_size < size + 4 * (turn + 1):
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        budget.reserve(EVENT)  # what it held is free
    released = {int(line) for line in evidence.read_text().split()}
    found = {entry["index"] for entry in budget.entries() if entry["epsilon"] == 1e-6}
    # At most the one charge of each was recorded and not released.
    assert released <= found and len(found - released) <= 4 and len(released) >= 4


def test_charges_that_are_interrupted_are_not_recorded(budget, interrupted):
    with interrupted(), pytest.raises(KeyboardInterrupt):
        budget.reserve(EVENT)
    assert budget.verify().entries == 3 and budget.reserve(EVENT).index == 4


def test_workers_without_a_password_of_their_own_are_told(budget, monkeypatch):
    monkeypatch.setattr(server_module, "passwords", {})
    with pytest.raises(LedgerUnreachableError, match="PGPASSWORD"):
        budget.reserve(EVENT)
    monkeypatch.setenv("PGPASSWORD", _postgres.PASSWORD)
    assert budget.reserve(EVENT).index == 4


@contextlib.contextmanager
def commits(monkeypatch, act):
    """Do something else for the next COMMIT."""
    from sqlalchemy.engine import Connection

    execute, left = Connection.exec_driver_sql, [act]

    def instead(self, statement, *arguments, **options):
        if statement == "COMMIT" and left:
            return left.pop()(lambda: execute(self, statement), self)
        return execute(self, statement, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "exec_driver_sql", instead)
        yield
    assert not left


def cut(connection):
    """Cut the connection and say so as the driver does."""
    import psycopg
    from sqlalchemy.exc import OperationalError

    connection.connection.dbapi_connection.close()
    raise OperationalError("COMMIT", None, psycopg.OperationalError("server closed"))


@pytest.mark.parametrize("committed", [True, False])
def test_commits_without_an_answer_are_looked_up(budget, monkeypatch, committed):
    def act(commit, connection):
        if committed:
            commit()
        cut(connection)

    with commits(monkeypatch, act):
        if committed:
            assert budget.reserve(EVENT).index == 4
        else:
            with pytest.raises(LedgerUnreachableError, match=r"lost before entry 4 .* try again"):
                budget.reserve(EVENT)
    assert budget.verify().entries == 3 + committed
    assert budget.reserve(EVENT).index == 4 + committed


def test_commits_that_the_server_is_slow_to_end_are_waited_for(budget, monkeypatch):
    """The client is cut off while the server still holds the transaction."""

    def act(commit, connection):
        session = connection.connection.dbapi_connection
        hang_up, session.close = session.close, lambda: None
        threading.Timer(0.3, lambda: (session.execute("COMMIT"), hang_up())).start()
        cut(connection)

    with commits(monkeypatch, act):
        assert budget.reserve(EVENT).index == 4
    assert budget.verify().entries == 4


def test_commits_are_looked_up_once_the_server_is_back(server, budget, monkeypatch):
    restart = threading.Timer(0.2, server.start)

    def act(commit, connection):
        commit()
        server.kill()
        restart.start()
        cut(connection)

    with commits(monkeypatch, act):
        assert budget.reserve(EVENT).index == 4
    restart.join()
    assert budget.verify().entries == 4


def test_the_same_charge_of_another_client_is_not_taken_for_ones_own(budget, monkeypatch):
    """Not even one of the same moment, recorded where one's own was lost."""

    class Clock:
        now = staticmethod(lambda zone: datetime(2026, 1, 1, tzinfo=zone))

    def act(commit, connection):
        connection.connection.dbapi_connection.rollback()
        assert in_child(lambda: budget.reserve(EVENT).index) == "4"
        cut(connection)

    monkeypatch.setattr(store, "datetime", Clock)
    with commits(monkeypatch, act), pytest.raises(LedgerUnreachableError, match="try again"):
        budget.reserve(EVENT)
    assert budget.verify().entries == 4


def test_charges_that_nobody_can_look_up_are_refused(server, budget, monkeypatch):
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.1)

    def act(commit, connection):
        commit()
        server.kill()
        cut(connection)

    with commits(monkeypatch, act), pytest.raises(LedgerUnreachableError, match="may have been"):
        budget.reserve(EVENT)
    server.start()
    assert budget.verify().entries == 4


def test_charges_wait_for_the_disk_whatever_the_database_says(server, budget):
    server.sql("ALTER DATABASE research SET synchronous_commit = off")
    try:
        with budget.desk.file.place.transaction(writing=True) as connection:
            (answer,) = connection.execute("SHOW synchronous_commit").fetchone()
        assert answer == "on" and server.sql("SHOW synchronous_commit") == [("off",)]
    finally:
        server.sql("ALTER DATABASE research RESET synchronous_commit")
    server.kill(signal.SIGQUIT)
    server.start("-c", "fsync=off")
    with pytest.raises(LedgerError, match="fsync = off"):
        budget.reserve(EVENT)
    server.kill(signal.SIGINT)
    (server.data / "standby.signal").touch()
    server.start()
    with pytest.raises(LedgerError, match="is a standby"):
        budget.spent()
    with pytest.raises(LedgerReadOnlyError):
        budget.reserve(EVENT)
    server.kill(signal.SIGINT)
    (server.data / "standby.signal").unlink()
    server.start()
    assert budget.verify().entries == 3
    budget.reserve(EVENT)


def test_two_ledgers_of_one_database_do_not_mix(server, budget, schema):
    other = BudgetAccountant(5.0, 0.0, ledger=server.address(f"{schema}_b"), name="study")
    charge_many(other, 2)
    assert len(budget.entries()) == 3 and other.verify().entries == 2
    server.sql(
        f"ALTER SCHEMA {schema} RENAME TO aside", f"ALTER SCHEMA {schema}_b RENAME TO {schema}"
    )
    with pytest.raises(LedgerMismatchError, match="replaced"):
        budget.reserve(EVENT)
    with pytest.raises(LedgerMissingError, match="does not exist"):
        other.reserve(EVENT)
    with pytest.raises(LedgerMissingError):
        other.spent()
    server.sql(
        f"ALTER SCHEMA {schema} RENAME TO {schema}_b", f"ALTER SCHEMA aside RENAME TO {schema}"
    )
    budget.reserve(EVENT)
    other.reserve(EVENT)


def test_rows_of_a_file_make_no_ledger_on_a_server(server, schema, tmp_path):
    file = BudgetAccountant(5.0, 0.0, ledger=tmp_path / "file.sqlite")
    BudgetAccountant(5.0, 0.0, ledger=server.address(schema))
    content = canonical({**file.desk.file.genesis, "index": 0, "previous": NO_ROW_BEFORE})
    identity = digest(content)
    assert identity == file.desk.file.identity
    server.sql(
        f"UPDATE {schema}.genesis SET content = '{content}', hash = '{identity}'",
        f"UPDATE {schema}.head SET hash = '{identity}'",
    )
    with pytest.raises(LedgerMismatchError, match="not created there"):
        BudgetAccountant.open(server.address(schema))


# Of edits of rows, which are found as in files, one is tried daily.
EDITS = [
    "UPDATE {}.entries SET hash = 'x' WHERE id = 3",
    "UPDATE {}.entries SET plan = 1 WHERE id = 1",
    "DELETE FROM {}.entries WHERE id = 1",
    "DELETE FROM {}.entries WHERE id = 3",
    "UPDATE {}.head SET entries = 2",
    "DELETE FROM {}.genesis",
    "UPDATE {}.genesis SET content = replace(content, '5.0', '9.0')",
    "DROP TABLE {}.genesis",
    "DROP TABLE {}.genesis, {}.head, {}.entries",
]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {}.entries SET content = replace(content, '0.01', '0.00') WHERE id = 2",
        "ALTER TABLE {}.entries SET UNLOGGED",
        "ALTER TABLE {}.entries ALTER COLUMN id TYPE bigint",
        "CREATE TRIGGER none BEFORE UPDATE ON {}.head FOR EACH ROW "
        "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE RULE none AS ON INSERT TO {}.entries DO INSTEAD NOTHING",
        "DROP INDEX {}.redeemed",
        "COMMENT ON TABLE {}.head IS 'skdp ledger, format 2'",
        *(pytest.param(edit, marks=pytest.mark.slow) for edit in EDITS),
    ],
)
def test_tampering_is_found(server, budget, schema, statement):
    server.sql(statement.replace("{}", schema))
    for look in (
        budget.verify,
        lambda: BudgetAccountant.open(budget.ledger),
        lambda: BudgetAccountant(5.0, 0.0, ledger=budget.ledger),
    ):
        with pytest.raises(LedgerDamagedError):
            look()


def test_chains_that_were_cut_short_are_found_by_receipts(server, budget, schema):
    receipt = budget.verify()
    server.sql(
        f"DELETE FROM {schema}.entries WHERE id = 3",
        f"UPDATE {schema}.head SET entries = 2, "
        f"hash = (SELECT hash FROM {schema}.entries WHERE id = 2)",
    )
    with pytest.raises(LedgerDamagedError, match="fewer than the 3 entries"):
        budget.reserve(EVENT)
    server.sql(f"ALTER SCHEMA {schema} RENAME TO {schema}_b")
    again = BudgetAccountant.open(server.address(f"{schema}_b"))
    assert again.verify().entries == 2
    with pytest.raises(LedgerDamagedError, match="fewer than the 3 entries"):
        again.verify(receipt)


def test_roles_may_charge_without_the_right_to_change(server, budget, schema):
    """The rights of the guide: an analyst charges and an auditor reads; neither can edit."""
    server.sql(
        *(f"CREATE ROLE {name}_{schema} LOGIN PASSWORD 'own'" for name in ("ann", "bob", "eve")),
        f"GRANT USAGE ON SCHEMA {schema} TO ann_{schema}, bob_{schema}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO ann_{schema}, bob_{schema}",
        f"GRANT INSERT ON {schema}.entries TO ann_{schema}",
        f"GRANT UPDATE ON {schema}.head TO ann_{schema}",
    )
    ann = BudgetAccountant.open(server.address(schema, f"ann_{schema}", "own"))
    ann.reserve(EVENT)
    for change in (f"UPDATE {schema}.entries SET content = ''", f"DELETE FROM {schema}.entries"):
        with pytest.raises(Exception, match="permission denied"):
            server.sql(f"SET ROLE ann_{schema}", change)
    bob = BudgetAccountant.open(server.address(schema, f"bob_{schema}", "own"))
    assert bob.verify().entries == 4
    with pytest.raises(LedgerReadOnlyError, match="permission denied"):
        bob.reserve(EVENT)
    with pytest.raises(LedgerMissingError, match="may not see it"):
        BudgetAccountant.open(server.address(schema, f"eve_{schema}", "own"))
    with pytest.raises(LedgerReadOnlyError):  # a new ledger is for those who may make schemas
        BudgetAccountant(1.0, 0.0, ledger=server.address(f"{schema}_c", f"ann_{schema}", "own"))
    with pytest.raises(LedgerUnreachableError, match="password authentication failed"):
        BudgetAccountant.open(server.address(schema, password="wrong"))
    again = BudgetAccountant.open(server.address(schema))  # the last password given counts
    assert (
        address.passwords[ann.ledger] == "own" and again.verify() == budget.verify() == ann.verify()
    )


@pytest.mark.slow
def test_locked_ledgers_refuse_after_a_while(server, budget, schema, monkeypatch):
    import psycopg

    monkeypatch.setattr(server_module, "BUSY_SECONDS", 1)
    holder = psycopg.connect(
        host=str(server.folder), user="keeper", password=_postgres.PASSWORD, dbname="research"
    )
    with holder:
        holder.execute(f"LOCK TABLE {schema}.head IN EXCLUSIVE MODE")
        with pytest.raises(LedgerLockedError, match="locked"):
            budget.reserve(EVENT)
        assert len(budget.entries()) == 3  # reading goes on
    with pytest.raises(LedgerUnreachableError, match="Nothing was charged"):
        with budget.desk.file.opened(writing=True) as end:
            end.append({"plan": None, "place": None}, budget.desk.currency.nothing)
            time.sleep(1.5)  # a client that has vanished loses its lock, and its charge
    assert budget.verify().entries == 3
    budget.reserve(EVENT)


def test_makers_of_one_ledger_at_once_share_it(server, schema):
    where = server.address(schema)
    gate = multiprocessing.get_context("fork").Barrier(3)

    def make_elsewhere(queue):
        gate.wait()
        queue.put(BudgetAccountant(1.0, 0.0, ledger=where).desk.file.identity)

    identities = set(run_processes("fork", 3, make_elsewhere))
    assert identities == {BudgetAccountant.open(where).desk.file.identity}


def test_the_command_line_takes_addresses(server, budget, schema, capsys, tmp_path):
    where = server.address(schema)
    assert cli.main(["ledger", "verify", where]) == 0
    said = capsys.readouterr().out
    assert f"schema={schema}: 3 entries" in said and "keeper@" in said
    assert cli.main(["ledger", "show", where, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["budget"]["ledger"] == budget.ledger
    server.sql(f"UPDATE {schema}.entries SET content = 'gone' WHERE id = 2")
    assert cli.main(["ledger", "verify", where]) == 1
    assert cli.main(["ledger", "export", where, "--unverified", "--format", "json"]) == 0
    out, said = capsys.readouterr()
    assert [entry.get("text") for entry in json.loads(out)["entries"]] == [None, "gone", None]
    server.sql(f"DROP TABLE {schema}.genesis")
    terms, entries = salvage(budget.ledger)
    assert terms is None and len(entries) == 3
    assert cli.main(["ledger", "copy", where, str(tmp_path / "copy")]) == 3
    assert "pg_dump" in capsys.readouterr().err
    assert "ss:word" not in said + out and "ss%3Aword" not in said + out


def test_the_guide_runs(server, monkeypatch, tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "ledger_server.md").read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGPASSWORD", _postgres.PASSWORD)
    keeper, names = server.address("", password=None).partition("&")[0] + "&", {}
    for code in re.findall(r"```py\n(.*?)```", page, re.DOTALL):
        exec(code.replace("postgresql://ann@db.example.org/research?", keeper), names)
    assert capsys.readouterr().out.startswith("True postgresql://keeper@")
    server.sql("CREATE ROLE ann", "CREATE ROLE auditor")
    server.sql(*re.findall(r"^GRANT .*;", page, re.MULTILINE))
