"""The reproductions run on small images, and their page says what they print."""

from pathlib import Path

import abadi
import abadi_mnist
import numpy as np
import pate
import pytest
import reproductions
import scattering
import triastcyn
import triastcyn_variational

from skdp.accounting import GaussianEvent, PoissonSampledEvent, RepeatedEvent

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reproductions.md"


def test_page_is_what_the_script_prints():
    assert PAGE.read_text() == reproductions.page() + "\n"


def test_printed_figures_of_table_one():
    """Both are printed to two decimals, and the second lies below a certified lower bound."""
    end = triastcyn.account(triastcyn.EPOCHS)
    epsilon = {name: end[name].epsilon(1e-5) for name in (triastcyn.MA, triastcyn.GA)}
    assert epsilon[triastcyn.MA] == pytest.approx(2.18, abs=0.005)
    assert epsilon[triastcyn.GA] == pytest.approx(1.62, abs=0.005)
    assert epsilon[triastcyn.GA] < end[triastcyn.PLD].epsilon(1e-5).lower
    assert not any(end[name].epsilon(1e-5).is_guarantee for name in triastcyn.NO_BOUND)


def test_a_record_that_no_pair_holds_is_no_loss_to_the_diagnostic():
    diagnostic, truth = triastcyn_variational.unseen_record()
    assert diagnostic < 0.1 and truth > 30.0


def test_components_are_paid_for():
    """Steps fill what is left of the budget, and one more would exceed it."""
    spent, step = GaussianEvent(7.0), PoissonSampledEvent(abadi.RATE, GaussianEvent(4.0))
    steps = abadi.affordable_steps(2.0, 4.0, (spent,))
    assert abadi.together(spent, RepeatedEvent(step, steps)) <= 2.0
    assert abadi.together(spent, RepeatedEvent(step, steps + 1)) > 2.0
    assert steps < abadi.affordable_steps(2.0, 4.0, ())


@pytest.mark.parametrize(
    "module", [triastcyn, abadi, abadi_mnist, pytest.param(scattering, marks=pytest.mark.slow)]
)
def test_fast_mode_prints_and_writes_nothing(module, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.json")
    module.main(fast=True)
    assert "accuracy" in capsys.readouterr().out and not list(tmp_path.iterdir())


def test_epsilon_of_votes_falls_with_agreement_and_is_no_more_than_that_of_every_table():
    free = pate.moments_of_gaussians(40.0, 100)
    found = [
        pate.data_dependent(np.tile([250.0 - rest, rest, 0.0], (100, 1)), 40.0, 1e-5)
        for rest in (125.0, 60.0, 20.0, 0.0)
    ]
    assert found[0] == pytest.approx(free, rel=1e-2)  # orders are on a grid
    assert found == sorted(found, reverse=True) and found[-1] < 0.3 * free


def test_public_rows_are_asked_about_by_cluster_and_label_their_neighbours():
    rng = np.random.default_rng(0)
    names = rng.integers(3, size=90)
    X = np.eye(5)[names] + 0.01 * rng.normal(size=(90, 5))
    order = pate.ask_first(X, 3, 0)
    assert sorted(order) == list(range(90)) and set(names[order[:3]]) == {0, 1, 2}
    y = np.full(90, -1)
    y[:3] = names[order[:3]]
    student = pate.NearestThenRidge(n_components=3).fit(X[order], y)
    assert student.score(X, names) == 1.0
