"""What the sessions of a ledger on a server promise, asked of the connections that charges use."""

import pytest
from ledger_workers import charge_and_report, run_processes

from skdp.accounting import PureDPEvent
from skdp.budget import (
    BudgetAccountant,
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerMissingError,
    LedgerReadOnlyError,
    LedgerUnreachableError,
)
from skdp.budget.ledger import server as address
from skdp.budget.ledger import server as server_module

EVENT = PureDPEvent(0.01)


def show(connection, name):
    return connection.execute(f"SHOW {name}").fetchone()[0]


def test_a_charge_excludes_every_other_change_from_its_start(server, on_server, schema):
    import psycopg

    place = on_server.desk.file.place
    with place.transaction(writing=True) as connection:
        assert show(connection, "transaction_isolation") == "repeatable read"
        assert show(connection, "lock_timeout") == "1min"  # a charge waits, but not for ever
        assert show(connection, "idle_in_transaction_session_timeout") == "1min"
        changes = (
            f"UPDATE {schema}.head SET entries = entries",
            f"BEGIN; LOCK TABLE {schema}.head IN EXCLUSIVE MODE",
        )
        for change in changes:
            with pytest.raises(psycopg.errors.LockNotAvailable):
                server.sql("SET lock_timeout = '50ms'", change)
        assert server.sql(f"SELECT count(*) FROM {schema}.entries") == [(3,)]  # readers go on


def test_forked_clients_are_granted_exactly_what_fits(server, schema):
    budget = BudgetAccountant(0.3, 0.0, ledger=server.address(schema))
    granted = run_processes("fork", 2, charge_and_report, budget, 20)
    assert sum(granted) == 30 == budget.verify().entries
    assert budget.spent() == (0.3, 0.0)


def test_a_look_sees_one_moment_and_changes_nothing(server, on_server, schema):
    with pytest.raises(LedgerReadOnlyError):
        with on_server.desk.file.place.transaction(writing=False) as connection:
            count = f"SELECT count(*) FROM {schema}.entries"
            before = connection.execute(count).fetchone()
            server.sql(f"INSERT INTO {schema}.entries VALUES (99, '', '')")
            assert server.sql(count) == [(4,)]
            assert connection.execute(count).fetchone() == before == (3,)
            connection.execute("UPDATE head SET entries = entries")


@pytest.mark.parametrize("where", ["pg_temp", "public"])
def test_tables_of_the_same_names_elsewhere_are_never_used(server, on_server, schema, where):
    """Also temporary ones of the session, which PostgreSQL looks up first if told nothing."""
    import sqlalchemy

    tables = ("genesis", "entries", "head")
    empty = [
        *(
            f"CREATE TABLE {where}.{table} AS SELECT * FROM {schema}.{table}"
            + " WHERE id < 0" * (table == "entries")
            for table in tables
        ),
        f"UPDATE {where}.head SET entries = 0, hash = (SELECT hash FROM {schema}.genesis)",
    ]

    def prepare(connection, _):
        for statement in empty:
            connection.execute(statement)
        connection.commit()

    if where == "public":
        server.sql(*empty)
    else:
        engine = server_module._engine(on_server.ledger, address.passwords[on_server.ledger])
        sqlalchemy.event.listen(engine, "connect", prepare)
    try:
        again = BudgetAccountant.open(on_server.ledger)
        assert again.spent()[0] >= 0.03 and again.reserve(EVENT).index == 4
    finally:
        server_module._engine.cache_clear()
        server.sql(*(f"DROP TABLE IF EXISTS public.{table}" for table in tables))
    assert server.sql(f"SELECT count(*) FROM {schema}.entries") == [(4,)]


def test_rows_that_a_policy_hides_are_reported_and_not_overlooked(server, schema):
    budget = BudgetAccountant(1.0, 0.0, ledger=server.address(schema))
    plan = budget.plan([EVENT])
    plan.reserve(EVENT)
    budget.reserve(EVENT)
    server.sql(
        f"CREATE ROLE dan_{schema} LOGIN PASSWORD 'own'",
        f"GRANT USAGE ON SCHEMA {schema} TO dan_{schema}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO dan_{schema}",
    )
    there = BudgetAccountant.open(server.address(schema, f"dan_{schema}", "own"))
    theirs = there.redeem(plan.index)
    assert theirs.left() == []
    server.sql(
        f"CREATE POLICY hidden ON {schema}.entries USING (plan IS NULL)",
        f"ALTER TABLE {schema}.entries ENABLE ROW LEVEL SECURITY",
    )
    with pytest.raises(LedgerReadOnlyError, match="row-level security"):
        theirs.left()


REPORTS = {
    "53100": LedgerFullError,
    "53300": LedgerUnreachableError,
    "57P01": LedgerUnreachableError,
    "08006": LedgerUnreachableError,
    "55P03": LedgerLockedError,
    "40001": LedgerLockedError,
    "40P01": LedgerLockedError,
    "42501": LedgerReadOnlyError,
    "25006": LedgerReadOnlyError,
    "42P01": LedgerMissingError,
    "3F000": LedgerMissingError,
    "XX001": LedgerDamagedError,
    "23505": LedgerDamagedError,
    "53200": LedgerError,
    "22012": LedgerError,
}


def test_what_the_server_reports_is_an_error_of_its_kind_and_no_charge(on_server):
    """Whoever is told that the disk is full need not look for a network that is down."""
    nothing = on_server.desk.currency.nothing
    for code, kind in REPORTS.items():
        raised = f"DO 'BEGIN RAISE EXCEPTION $$no luck$$ USING ERRCODE = $${code}$$; END'"
        with pytest.raises(LedgerError, match=r"no luck|locked|does not exist") as caught:
            with on_server.desk.file.opened(writing=True) as end:
                end.append({"plan": None, "place": None}, nothing)
                end._connection.execute(raised)
        assert type(caught.value) is kind, code
        assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert on_server.verify().entries == 3
    assert on_server.reserve(EVENT).index == 4


def test_rehearsals_leave_nothing_on_a_server(on_server):
    on_server.check(EVENT)
    assert on_server.verify().entries == 3
