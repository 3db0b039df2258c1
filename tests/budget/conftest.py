"""A PostgreSQL server that the tests of ledgers share; who kills it starts it again."""

import contextlib
import itertools

import _postgres
import pytest
from ledger_workers import charge_many

from skdp.budget import BudgetAccountant
from skdp.budget.ledger.store import Appender

_schemas = (f"study_{number}" for number in itertools.count())


@pytest.fixture(scope="session")
def server():
    if _postgres.programs() is None:
        pytest.skip("needs the programs of PostgreSQL")
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    server = _postgres.Server()
    yield server
    server.remove()


@pytest.fixture
def interrupted(monkeypatch):
    """Interrupt charges that have been written and not yet committed."""
    append = Appender.append

    def interrupt(self, row, cost):
        append(self, row, cost)
        raise KeyboardInterrupt

    @contextlib.contextmanager
    def interrupting():
        with monkeypatch.context() as patch:
            patch.setattr(Appender, "append", interrupt)
            yield

    return interrupting


@pytest.fixture
def schema():
    return next(_schemas)


@pytest.fixture
def on_server(server, schema):
    """A budget of three charges whose ledger is on the server."""
    budget = BudgetAccountant(5.0, 0.0, ledger=server.address(schema), name="study")
    charge_many(budget, 3)
    return budget
