"""A changed byte anywhere in a ledger's file is found, or changes nothing that a ledger says."""

import random
import sqlite3
from contextlib import closing

import pytest

from skdp.accounting import PureDPEvent
from skdp.budget import BudgetAccountant, LedgerError
from skdp.budget.ledger.files import FilePlace
from skdp.budget.ledger.store import Ledger

HEADER = 100  # bytes, of the file


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A ledger with charges, a plan that is half redeemed, and free pages."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    budget = BudgetAccountant(2.0, 0.0, ledger=path, name="study")
    for _ in range(3):
        budget.reserve(PureDPEvent(0.125))
    budget.plan([PureDPEvent(0.125)] * 2).reserve(PureDPEvent(0.125))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (text)")
        connection.execute("INSERT INTO other VALUES (zeroblob(9000))")
        connection.commit()
        connection.execute("DROP TABLE other")
        assert connection.execute("PRAGMA freelist_count").fetchone()[0] >= 3
    return path.read_bytes()


def told(path):
    """Return all that is ever read from a ledger's file, after verifying it."""
    file = Ledger.open(FilePlace(path))
    return file.identity, file.genesis, file.rows(), file.state(), file.row(4)


def assert_charged_as_ever(path, before):
    """Charges to it are refused, or change nothing but add an entry; the file stays whole."""
    try:
        BudgetAccountant.open(path).reserve(PureDPEvent(0.125))
    except LedgerError:
        return
    assert told(path)[2][:-1] == before[2]


def try_changes(data, path, changes, *, charge_every):
    path.write_bytes(data)
    before, harmless = told(path), 0
    for number, (place, mask) in enumerate(changes):
        changed = bytearray(data)
        changed[place] ^= mask
        path.write_bytes(changed)
        try:
            found = told(path)
        except LedgerError:
            continue
        assert found == before, f"byte {place}, changed by {mask:#x}"
        harmless += 1
        if place < HEADER or number % charge_every == 0:
            assert_charged_as_ever(path, before)
    return harmless


def test_changed_bytes_are_found_or_harmless(data, tmp_path):
    noise = random.Random(0)
    places = [*range(17, HEADER, 7), *(noise.randrange(HEADER, len(data)) for _ in range(40))]
    changes = [(place, noise.choice([0xFF, 1 << place % 8])) for place in places]
    harmless = try_changes(data, tmp_path / "ledger.sqlite", changes, charge_every=40)
    assert 0 < harmless < len(changes)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_bytes_of_all_pages_are_found_or_harmless(data, tmp_path, part):
    """All bits of the header, and bytes 13 places apart, which meet every kind of field."""
    places = [*range(part, HEADER, 2), *range(HEADER + 7 * part, len(data), 13)]
    changes = [
        (place, mask)
        for place in places
        for mask in ([1 << bit for bit in range(8)] if place < HEADER else [0xFF, 1 << place % 8])
    ]
    assert try_changes(data, tmp_path / "ledger.sqlite", changes, charge_every=100) > 0
