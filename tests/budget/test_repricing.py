"""Whoever writes a whole ledger anew has to pay for its events, or needs no receipt to be found."""

import json
import shutil
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp import cli
from skdp.accounting import (
    ApproxDPEvent,
    GaussianEvent,
    PoissonSampledEvent,
    PureDPEvent,
    RepeatedEvent,
)
from skdp.budget import BudgetAccountant
from skdp.budget.ledger.chain import RunningSum, link, read_amounts, write_amounts
from skdp.budget.ledger.files import transaction
from skdp.budget.ledger.store import LedgerState
from skdp.exceptions import LedgerDamagedError, PrivacyWarning

COMPOSITIONS = ["mixed", "gdp", "zcdp", "rdp", "basic", "approx"]


def fill(path, composition):
    budget = BudgetAccountant(40.0, 1e-5, ledger=path, composition=composition)
    lots = RepeatedEvent(PoissonSampledEvent(0.01, GaussianEvent(2.0)), 50)
    mixed = [] if composition == "gdp" else [lots]
    pairs = [] if composition in ("gdp", "zcdp", "rdp") else [ApproxDPEvent(0.25, 1e-9)]
    for event in [GaussianEvent(5.0), PureDPEvent(0.5), *mixed, *pairs, GaussianEvent(5.0)]:
        budget.reserve(event, label="a fit", delta=1e-8)
    budget.reserve(GaussianEvent(9.0), adjacency="add-remove", delta=1e-8)
    plan = budget.plan([GaussianEvent(20.0), PureDPEvent(0.1), GaussianEvent(20.0)], delta=1e-8)
    plan.reserve(GaussianEvent(20.0))
    plan.reserve(PureDPEvent(0.1))
    return budget


def write_anew(budget, change):
    """Compute the chain of a ledger anew after a change of its rows; nothing in it disagrees."""
    path, file = budget.ledger, budget.desk.file
    nothing = (Fraction(0),) * len(file.genesis["limits"])
    file.seen = LedgerState(0, file.identity, nothing)  # as in another process
    with transaction(path, writing=True) as file:
        rows = [json.loads(text) for (text,) in file.execute("SELECT content FROM entries")]
        head, spent = budget.desk.file.identity, nothing
        file.execute("DELETE FROM entries")
        for index, row in enumerate(rows, start=1):
            change(row)
            spent = tuple(map(sum, zip(spent, read_amounts(row["cost"]), strict=True)))
            row["spent"] = write_amounts(spent)
            content, head = link(row, index=index, previous=head)
            values = (index, content, head, row["plan"], row["place"])
            file.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", values)
        file.execute("UPDATE head SET hash = ?", (head,))


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_what_was_charged_is_priced_alike(tmp_path, composition):
    budget = fill(tmp_path / "ledger", composition)
    assert budget.verify().entries == len(budget.entries())
    write_anew(budget, lambda row: None)
    assert budget.verify().entries == len(budget.entries())


def cheaper(row, share):
    row["cost"] = write_amounts(tuple(share * cost for cost in read_amounts(row["cost"])))


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_a_chain_written_anew_with_less_cost_is_found(tmp_path, composition):
    entries = fill(tmp_path / "whole", composition).entries()
    for victim, entry in enumerate(entries, start=1):
        if entry["kind"] == "planned":  # costs nothing
            continue
        path = shutil.copy(tmp_path / "whole", tmp_path / str(victim))
        budget = BudgetAccountant.open(path)

        def change(row, victim=victim):
            if row["index"] == victim:
                cheaper(row, Fraction(999, 1000))

        write_anew(budget, change)
        with pytest.raises(LedgerDamagedError, match=f"entry {victim}, charged by skdp"):
            BudgetAccountant.open(budget.ledger).verify()


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_a_chain_of_nothing_is_found(tmp_path, composition):
    budget = fill(tmp_path / "ledger", composition)
    write_anew(budget, lambda row: cheaper(row, Fraction(0)))
    assert budget.spent() == (0.0, 0.0)
    with pytest.raises(LedgerDamagedError, match="entry 1, charged by skdp"):
        budget.verify()
    assert cli.main(["ledger", "verify", str(budget.ledger)]) == cli.DAMAGED


def dearer(row):
    row["events"][1]["epsilon"] = 5.0
    row["pairs"][1] = [5.0, 0.0]


PURE = {"type": "PureDPEvent", "epsilon": 1}
FORGERIES = {  # by which rows: of a plan, of its first release, of the first charge
    "an event of no plan": ("mixed", "place", 0, lambda row: row.update(event=PURE)),
    "no plan": ("mixed", "place", 0, lambda row: row.update(plan=1)),
    "no place": ("mixed", "place", 0, lambda row: row.update(place=99)),
    "a plan of dearer events": ("basic", "kind", "plan", dearer),
    "a disproved pair": ("basic", "index", 1, lambda row: row.update(epsilon=0.001)),
    "another disproved pair": ("approx", "index", 1, lambda row: row.update(epsilon=0.001)),
}


@pytest.mark.parametrize(("currency", "name", "value", "change"), FORGERIES.values(), ids=FORGERIES)
def test_forged_events_and_pairs_are_found(tmp_path, currency, name, value, change):
    budget = fill(tmp_path / "ledger", currency)
    write_anew(budget, lambda row: change(row) if row[name] == value else None)
    who = "entry 1, charged by" if name == "index" else "cost less"
    with pytest.raises(LedgerDamagedError, match=who):
        budget.verify()


def test_ledgers_of_before_are_read_and_say_what_is_not_known(tmp_path):
    budget = fill(tmp_path / "ledger", "mixed")

    def change(row):
        for name in ("skdp", "code", "pairs", "unit"):
            row.pop(name, None)

    now = budget.entries()
    write_anew(budget, change)
    old = BudgetAccountant.open(budget.ledger)
    with pytest.warns(PrivacyWarning, match="cost of 1 entries could not be recomputed"):
        old.verify()
    assert {entry["code"] for entry in old.entries()} == {"unknown"}
    assert all(len(entry["code"]) == 16 for entry in now)
    assert old.reserve(GaussianEvent(9.0)).index == len(now) + 1


def test_an_event_of_a_newer_version_is_named(tmp_path):
    budget = fill(tmp_path / "ledger", "mixed")
    write_anew(
        budget, lambda row: row.update(event={"type": "NewEvent"}) if row["index"] == 2 else None
    )
    with pytest.warns(PrivacyWarning, match=r"cost of 1 entries could not be recomputed \(2\)"):
        budget.verify()


AMOUNTS = st.fractions(0, 10, max_denominator=10**6)


@given(st.lists(st.tuples(AMOUNTS, st.sampled_from(["right", "text", "more", "less"]))))
def test_running_sums_agree_with_fractions(steps):
    total, running = Fraction(0), RunningSum()
    for amount, fault in steps:
        total += amount
        top, bottom = total.numerator, total.denominator
        written = {
            "right": str(total),
            "text": f"{2 * top}/{2 * bottom}",
            "more": str(total + Fraction(1, 10**9)),
            "less": str(total - Fraction(1, 10**9)),
        }[fault]
        assert running.moves_to(written, by=str(amount)) == (fault == "right")
        if fault != "right":
            return
    assert not running.moves_to(str(total - 1), by="-1")
