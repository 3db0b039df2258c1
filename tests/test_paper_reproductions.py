"""The reproductions run on small images, and their page says what they print."""

from pathlib import Path
from types import SimpleNamespace

import abadi
import abadi_mnist
import numpy as np
import pate
import pytest
import reproductions
import scattering
import triastcyn
import triastcyn_variational
from scipy.sparse import csr_array
from scipy.special import log_softmax

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
    """Against differences of the loss of single rows, weight by weight."""
    monkeypatch.setattr(triastcyn, "CLIP", 1.5)
    rng = np.random.default_rng(1)
    X, y = rng.random((20, 7)), rng.integers(10, size=20)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    shapes = [(7, 5), (5, 4), (4, 10)]
    first = [rng.normal(size=shape) / 4.0 for shape in shapes]
    model = SimpleNamespace(coefs_=first, intercepts_=[rng.normal(size=b) for _, b in shapes])
    parts = [*model.coefs_, *model.intercepts_]

    def losses():
        values = X
        for k, (coef, intercept) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
            values = (values if k == 0 else np.maximum(0.0, values)) @ coef + intercept
        return -log_softmax(values, axis=1)[np.arange(20), y]

    columns = []
    for number, part in enumerate(parts):
        step = 1e-6 * (4.0 if number == 0 else 1.0)  # rows have norm 4 inside
        for place in np.ndindex(part.shape):
            middle = part[place]
            ends = []
            for part[place] in (middle - step, middle + step):
                ends.append(losses())
            part[place] = middle
            columns.append((ends[1] - ends[0]) / 2e-6)
    gradients = np.column_stack(columns)
    length = np.linalg.norm(gradients, axis=1, keepdims=True)
    assert length.min() < 1.5 < length.max()
    gradients *= np.minimum(1.0, 1.5 / length) / 1.5
    found = triastcyn.squared_distances(csr_array(X), y, model, np.random.default_rng(0))
    pairs = np.random.default_rng(0).integers(20, size=(2, triastcyn.PAIRS))
    expected = ((gradients[pairs[0]] - gradients[pairs[1]]) ** 2).sum(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-7)


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
