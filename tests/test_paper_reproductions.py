"""The reproductions run on small images, and their page says what they print."""

from pathlib import Path

import abadi
import abadi_mnist
import numpy as np
import pytest
import reproductions
import scattering
import triastcyn
import triastcyn_variational
from scipy.sparse import csr_array
from scipy.special import softmax

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


def test_distances_are_those_of_clipped_gradients(monkeypatch):
    monkeypatch.setattr(triastcyn, "CLIP", 0.9)
    rng = np.random.default_rng(1)
    X, y, weights = rng.random((20, 7)), rng.integers(10, size=20), rng.normal(size=(10, 7))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    gradients = np.einsum("ic,ij->icj", softmax(X @ weights.T, axis=1) - np.eye(10)[y], X)
    gradients = gradients.reshape(20, -1)
    length = np.linalg.norm(gradients, axis=1, keepdims=True)
    assert length.min() < 0.9 < length.max()
    gradients *= np.minimum(1.0, 0.9 / length) / 0.9
    found = triastcyn.squared_distances(csr_array(X), y, weights, np.random.default_rng(0))
    pairs = np.random.default_rng(0).integers(20, size=(2, triastcyn.PAIRS))
    expected = ((gradients[pairs[0]] - gradients[pairs[1]]) ** 2).sum(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_components_are_paid_for():
    """Steps fill what is left of the budget, and one more would exceed it."""
    spent, step = GaussianEvent(7.0), PoissonSampledEvent(abadi.RATE, GaussianEvent(4.0))
    steps = abadi.affordable_steps(2.0, 4.0, (spent,))
    assert abadi.together(spent, RepeatedEvent(step, steps)) <= 2.0
    assert abadi.together(spent, RepeatedEvent(step, steps + 1)) > 2.0
    assert steps < abadi.affordable_steps(2.0, 4.0, ())


@pytest.mark.parametrize("module", [triastcyn, abadi, abadi_mnist, scattering])
def test_fast_mode_prints_and_writes_nothing(module, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.json")
    module.main(fast=True)
    assert "accuracy" in capsys.readouterr().out and not list(tmp_path.iterdir())
