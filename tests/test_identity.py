"""Records say which code made them."""

import json
import pickle
from dataclasses import replace

import pytest

from skdp import OperaLogisticRegression
from skdp.accounting import GaussianEvent
from skdp.accounting import records as identity
from skdp.budget import BudgetAccountant
from skdp.metrics import PrivateEvaluation
from skdp.reporting import PrivacySpent, privacy_statement

X, Y = [[0.1], [0.9], [0.2], [0.8]], [0, 1, 0, 1]


@pytest.fixture
def model():
    return OperaLogisticRegression(data_norm=1.0, classes=[0, 1]).fit(X, Y)


def test_the_digest_follows_names_and_bytes_of_modules(tmp_path):
    assert identity.digest_of(tmp_path) == "unknown"
    (tmp_path / "a.py").write_text("x = 1\n")
    one = identity.digest_of(tmp_path)
    assert len(one) == 16 and identity.digest_of(tmp_path) == one
    (tmp_path / "data.txt").write_text("anything")
    assert identity.digest_of(tmp_path) == one
    (tmp_path / "part").mkdir()
    seen = {one}
    for name, text in [("a.py", "x = 2\n"), ("b.py", ""), ("part/b.py", ""), ("b.py", "x = 2\n")]:
        (tmp_path / name).write_text(text)
        seen.add(identity.digest_of(tmp_path))
    assert len(seen) == 5
    assert identity.digest_of(tmp_path / "not there") == "unknown"


def test_records_carry_version_and_digest(model, tmp_path):
    mine = identity.who()
    assert mine["code"] == identity.digest_of(tmp_path.parent) or len(mine["code"]) == 16
    spent = model.privacy_spent_
    written = json.loads(spent.to_json())
    assert mine.items() <= written.items()
    budget = BudgetAccountant(1.0, 1e-6)
    entry = budget.reserve(GaussianEvent(9.0))
    assert mine.items() <= entry.to_dict().items() and mine.items() <= budget.entries()[0].items()
    assert mine.items() <= budget.desk.file.genesis.items()
    told = f"skdp {mine['skdp']}, code {mine['code']}"
    for subject in (model, budget):
        statement = privacy_statement(subject)
        assert told in statement and mine["code"] in statement._repr_html_()
        assert mine.items() <= statement.to_dict()["library"].items()
        assert statement.to_dict()["made_by"] == [told]
    result = PrivateEvaluation(1.0, 1e-6, n_bins=10).evaluate(model, X * 50, Y * 50)
    assert mine["code"] in json.dumps(result.to_dict())


def test_records_keep_the_code_that_made_them(model):
    spent = replace(model.privacy_spent_, skdp="0.1.0", code="0123456789abcdef")
    again = PrivacySpent.from_dict(json.loads(spent.to_json()))
    for other in (again, pickle.loads(pickle.dumps(spent)), replace(spent, seeded=True)):
        assert (other.skdp, other.code) == ("0.1.0", "0123456789abcdef")
    assert again == model.privacy_spent_  # what was spent is the same
    old = {k: v for k, v in spent.to_dict().items() if k not in ("skdp", "code")}
    assert (PrivacySpent.from_dict(old).skdp, PrivacySpent.from_dict(old).code) == ("unknown",) * 2
    model.privacy_spent_ = spent
    assert "skdp 0.1.0, code 0123456789abcdef" in privacy_statement(model)
