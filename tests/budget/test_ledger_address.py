"""Addresses of ledgers on servers: what they may say, and that no password leaves them."""

import json
import pickle
import sys
import traceback
from pathlib import Path

import pytest

from skdp import OperaLogisticRegression, cli
from skdp.accounting import PureDPEvent
from skdp.budget import BudgetAccountant, LedgerMismatchError, LedgerUnreachableError
from skdp.budget import config as notices
from skdp.budget.entries import BudgetTerms
from skdp.budget.ledger.chain import NO_ROW_BEFORE, link
from skdp.budget.ledger.files import FilePlace
from skdp.budget.ledger.server import ServerPlace
from skdp.budget.ledger.store import Ledger, known_place, place_of

SECRET = "correct horse"
AWAY = f"postgresql://ann:{SECRET.replace(' ', '%20')}@127.0.0.1:1/research?schema=study"


def budget_at(address):
    """Return a budget whose server is away, as it is after a pickle was loaded."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    terms = BudgetTerms.checked(1.0, 0.0, "replace-one", "auto", None, None).to_row()
    genesis = {**terms, "id": "x", "format": ServerPlace.kind}
    content, identity = link(genesis, index=0, previous=NO_ROW_BEFORE)
    budget = BudgetAccountant.__new__(BudgetAccountant)
    where = place_of(address).where
    budget.__setstate__({"path": where, "identity": identity, "genesis": json.loads(content)})
    return budget


@pytest.fixture
def budget():
    return budget_at(AWAY)


def test_servers_that_are_away_are_named_without_the_password(budget, capsys):
    shown = "postgresql://ann@127.0.0.1:1/research?schema=study"
    assert budget.ledger == shown == pickle.loads(pickle.dumps(budget)).ledger
    errors = []
    for act in (budget.spent, budget.verify, lambda: BudgetAccountant(1.0, 0.0, ledger=AWAY)):
        with pytest.raises(LedgerUnreachableError, match=r"127\.0\.0\.1:1/research") as caught:
            act()
        errors += traceback.format_exception(caught.value)
        assert caught.value.__context__ is None  # psycopg's knows the password
    assert (
        cli.main(["ledger", "verify", AWAY]) == 3 and cli.main(["ledger", "copy", "x", AWAY]) == 3
    )
    said = [*errors, *capsys.readouterr(), repr(budget), budget._repr_html_()]
    with budget:
        said.append(notices._file.read_text())
    assert "LedgerUnreachableError" in repr(budget) and shown in budget._repr_html_()
    assert budget.ledger in said[-1] and SECRET.encode() not in pickle.dumps(budget)
    assert not any(SECRET in text or "horse" in text for text in said)
    model = OperaLogisticRegression(accountant=budget)  # of which files hold no address at all
    assert b"127.0.0.1" not in pickle.dumps(model) and b"ann@" not in pickle.dumps(model)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:1", f"{'x' * 70}.org", "a..b"], ids=["refuses", "too long", "empty part"]
)
def test_nothing_that_hangs_on_an_error_holds_the_password(host):
    """Reports of errors show what stands in each function, and debuggers show more."""
    budget = budget_at(AWAY.replace("127.0.0.1:1", host))
    for act in (budget.spent, budget.verify, lambda: budget.reserve(PureDPEvent(0.1))):
        with pytest.raises(LedgerUnreachableError) as caught:
            act()
        told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        text = "".join(told.format())
        assert "self = " in text and "horse" not in text
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        for state in (vars(caught.value), budget.desk.state(), budget._address()):
            assert "horse" not in repr(state)


@pytest.mark.parametrize(
    "address",
    [
        "postgres://ann:horse_staple@host",
        "postgresql://ann:horse_staple@pile_battery@host/research",
        "postgresql://ann:horse_staple@host:port/research",
        "postgresql://ann@host/research?password=horse_staple",
        "postgresql://ann@host/research?sslpassword=horse_staple",
        "postgresql://ann:horse_staple@host/research?schema=Study",
        "postgresql://ann:horse_staple@host/research?schema=pg_study",
        "postgresql://ann:horse_staple@host/research?schema=a&schema=b",
        "postgresql://ann:horse_staple@host/research?options=-csynchronous_commit%3Doff",
        "mysql://ann:horse_staple@host/research",
        Path("postgresql://ann:horse_staple@host/research"),
        "postgresql:ann:horse_staple@host/research",
        Path("mysql://ann:horse_staple@host/research"),
        b"postgresql://ann:horse_staple@host/research",
    ],
)
def test_addresses_that_are_none_are_refused_without_quoting_them(address):
    pytest.importorskip("sqlalchemy")
    with pytest.raises(ValueError, match="ledger") as caught:
        BudgetAccountant(1.0, 0.0, ledger=address)
    text = "".join(traceback.format_exception(caught.value))
    assert "horse_staple" not in text and "pile_battery" not in text


def test_what_is_no_address_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("postgresql", "postgresql:x", "a:b", "C:/x", "study.sqlite"):
        assert place_of(name) == FilePlace(tmp_path / name) == known_place(tmp_path / name)


def test_files_and_servers_are_not_taken_for_each_other(tmp_path):
    terms = BudgetTerms.checked(1.0, 0.0, "replace-one", "auto", None, None).to_row()
    place = FilePlace(tmp_path / "moved.sqlite")
    place.publish(*link({**terms, "format": ServerPlace.kind}, index=0, previous=NO_ROW_BEFORE))
    for act in (Ledger.open, lambda p: BudgetAccountant(1.0, 0.0, ledger=p.where)):
        with pytest.raises(LedgerMismatchError, match="cannot be moved"):
            act(place)


def test_models_load_and_are_shown_where_no_driver_is(budget, monkeypatch):
    """Only what asks the ledger says what to install."""
    stored = pickle.dumps(budget)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    again = pickle.loads(stored)
    assert "LedgerUnreachableError" in repr(again)
    with pytest.raises(LedgerUnreachableError, match=r"skdp\[server\]"):
        again.spent()
    with pytest.raises(ImportError, match=r"skdp\[server\]"):
        BudgetAccountant.open(again.ledger)
