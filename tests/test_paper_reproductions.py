"""The reproductions run on small images, and their page says what they print."""

from pathlib import Path

import abadi
import abadi_mnist
import ding
import plot_ding_figure2
import plot_ding_figure6
import pytest
import reproductions
import scattering
import triastcyn
import triastcyn_variational

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reproductions.md"


def test_page_is_what_the_script_prints():
    assert PAGE.read_text() == reproductions.page() + "\n"
    assert reproductions.CSV.read_text() == reproductions.all_rows()


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


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    "module", [triastcyn, abadi, abadi_mnist, pytest.param(scattering, marks=pytest.mark.slow)]
)
def test_fast_mode_prints_and_writes_nothing(module, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.json")
    module.main(fast=True)
    printed = capsys.readouterr().out
    assert "accuracy" in printed and not list(tmp_path.iterdir())
    assert not hasattr(module, "REMARKS") or module.REMARKS not in printed


def test_quick_runs_draw_conclusions_from_their_own_numbers():
    fits = {"pca": (0.5, 1.0), "random": (0.25, 1.0), "pixels": (0.75, 4.0)}
    private = [
        {"features": kind, "accuracy": accuracy, "seconds": [seconds]}
        for kind, (accuracy, seconds) in fits.items()
    ]
    said = abadi.remarks_on(private)
    assert "-25.0 points beside all pixels and 4.0 times as fast" in said
    assert "random directions -50.0 points" in said
    for script in (plot_ding_figure2, plot_ding_figure6):
        text = ding.told(script.__doc__, fast=True)
        assert text.startswith(script.__doc__.splitlines()[0]) and len(text.splitlines()) == 3
        assert ding.told(script.__doc__, fast=False) == script.__doc__
