"""Several processes charge one ledger: each decides by what all of them have spent."""

import pytest

from skdp.accounting import ApproxDPEvent, GaussianEvent, PureDPEvent
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.budget.ledger.store import Ledger

CURRENCIES = ("mixed", "gdp", "zcdp", "rdp", "basic", "approx")


def elsewhere(budget):
    """Return a budget as another process has it, which saw no more of the ledger than its start."""
    file, other = budget.desk.file, BudgetAccountant.__new__(BudgetAccountant)
    super(BudgetAccountant, other).__init__(Ledger(file.place, file.identity, file.genesis))
    return other


def outcomes(clients, events):
    """Charge events in turn; say of each if it was granted, and what is spent then."""
    found = []
    for place, (event, delta) in enumerate(events):
        client = clients[place % len(clients)]
        try:
            client.reserve(event, delta=delta)
            granted = True
        except BudgetExceededError:
            granted = False
        found.append((granted, clients[-1 - place % len(clients)].spent()))
    return found


@pytest.mark.parametrize("currency", CURRENCIES)
def test_clients_that_take_turns_are_granted_what_one_would_be(currency):
    events = [
        (GaussianEvent(5.0), 1e-7),
        (PureDPEvent(0.1), None),
        (ApproxDPEvent(0.2, 1e-7), None),
    ]
    alone, shared = (BudgetAccountant(1.0, 1e-5, composition=currency) for _ in range(2))
    expected = outcomes([alone], 8 * events)
    assert {granted for granted, _ in expected} == {True, False}
    assert outcomes([shared, elsewhere(shared)], 8 * events) == expected
    assert shared.verify().entries == sum(granted for granted, _ in expected)


def test_a_price_of_before_is_asked_again_before_a_charge_is_refused():
    budget = BudgetAccountant(1.0, 1e-5)
    other, event = elsewhere(budget), PureDPEvent(0.05)
    assert other.desk.currency.price(other.desk.prepare(event).charge, (0, 0, 0))[1] > 0
    budget.reserve(GaussianEvent(4.5))  # leaves room for what is booked as Gaussian alone
    entry = other.reserve(event)
    assert entry.cost["epsilon"] == 0 < entry.cost["mu squared"]
