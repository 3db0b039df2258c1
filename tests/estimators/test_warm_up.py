"""Loops compiled before there are rows."""

import pytest
from support import ESTIMATORS

import skdp
from skdp.budget import BudgetAccountant


def test_warming_up_charges_nothing_and_fits_what_it_is_given(capsys):
    chosen = [cls(classes=["no", "yes"]) for cls in ESTIMATORS]
    regressors = skdp.PrivateRidge, skdp.PrivateLinearRegression
    chosen += [cls(target_bounds=(0.0, 1.0)) for cls in regressors]
    with BudgetAccountant(1e-9, 1e-12) as budget, skdp.config_context(require_budget=True):
        skdp.warm_up(*chosen, verbose=1)
    assert budget.spent()[0] == 0.0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(chosen)
    assert not any(hasattr(estimator, "privacy_spent_") for estimator in chosen)
    with pytest.raises(TypeError):
        skdp.warm_up("a name")
