"""The guide on budgets: its examples run, and its tables name what there is."""

import re
from pathlib import Path

from skdp import budget as budgets
from skdp.budget import BudgetAccountant
from skdp.budget.currencies import COMPOSITIONS

GUIDE = (Path(__file__).parents[2] / "docs" / "budget.md").read_text()


def test_tables_name_what_there_is():
    assert set(re.findall(r'\| `"(\w+)"', GUIDE)) == set(COMPOSITIONS) - {"auto"}
    listed = re.search(r"composition : \{(.*?)\}", BudgetAccountant.__doc__)[1]
    assert set(re.findall(r"\w+", listed)) == set(COMPOSITIONS)
    errors = set(re.findall(r"`(Ledger\w*Error)`", GUIDE))
    assert errors == {n for n in budgets.__all__ if n.startswith("Ledger")} - {"LedgerReceipt"}
    for method in re.findall(r"^\| `(\w+)(?:\(.*?\))?` \|", GUIDE, re.MULTILINE):
        assert hasattr(BudgetAccountant, method) or method.startswith("Ledger")
