"""What is shown of an evaluation: records, tables by group, pictures, the statement."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdp.budget import BudgetAccountant
from skdp.mechanisms import additive
from skdp.metrics import (
    PrivateCalibrationDisplay,
    PrivateEvaluation,
    PrivateMetricFrame,
    PrivateRocCurveDisplay,
)
from skdp.reporting import PrivacySpent, privacy_statement

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 2))
SEX = RNG.choice(["f", "m"], 3000)
Y = (X[:, 0] + np.where(SEX == "f", 1.0, 3.0) * RNG.normal(size=3000) > 0.0).astype(int)
THREE = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0.0)
MODEL = LogisticRegression().fit(X[:300], Y[:300])
OF_THREE = LogisticRegression().fit(X[:300], THREE[:300])
SETTINGS = {"subgroups": ["f", "m"], "thresholds": (0.5, 0.3), "random_state": 0}
RESULT = PrivateEvaluation(1.0, **SETTINGS).evaluate(MODEL, X, Y, subgroups=SEX)
MANY = PrivateEvaluation(1.0, random_state=0).evaluate(OF_THREE, X, THREE)


def test_the_record_has_every_part_and_is_json():
    record = json.loads(RESULT.to_json())
    parts = {(part["subgroup"], part["threshold"]) for part in record["figures"]}
    assert parts == {(sex, at) for sex in (None, "f", "m") for at in (0.5, 0.3)}
    of_men = next(p for p in record["figures"] if (p["subgroup"], p["threshold"]) == ("m", 0.3))
    figure = RESULT.of("m").at(0.3).ppv
    assert of_men["ppv"] == {"value": float(figure), "interval": list(figure.interval)}
    assert PrivacySpent.from_dict(record["privacy_spent"]) == RESULT.privacy_spent_
    np.testing.assert_array_equal(record["counts"], RESULT.tables.counts)
    labels = {part["label"] for part in json.loads(MANY.to_json())["figures"]}
    assert labels == {None, 0, 1, 2}


def test_text_and_tables_name_part_threshold_and_price():
    for shown in (repr(RESULT.of("f").at(0.3)), RESULT.of("f").at(0.3)._repr_html_()):
        for words in ("subgroup", "threshold 0.3", "95 % intervals", "epsilon=1", "roc_auc"):
            assert words in shown
    assert "roc_auc" not in repr(MANY) and "roc_auc" in repr(MANY.of(label=1))
    assert set(MANY.figures()) == {"accuracy", "balanced_accuracy"}


def test_figures_without_rows_are_null_in_json():
    tables = replace(RESULT.tables, counts=-np.abs(RESULT.tables.counts))
    result = replace(RESULT, tables=tables)
    assert {part["sensitivity"]["value"] for part in result.to_dict()["figures"]} == {None}
    assert "NaN" not in result.to_json() and "nan [0, 1]" in repr(result)
    assert math.isnan(PrivateMetricFrame(result).difference()["ppv"])


def test_tables_by_group_and_their_gaps():
    frame = PrivateMetricFrame(RESULT)
    assert frame.overall["accuracy"] == RESULT.accuracy
    assert frame.by_group["f"]["ppv"] == RESULT.of("f").ppv
    one, other = frame.by_group["f"]["accuracy"], frame.by_group["m"]["accuracy"]
    gap, share = frame.difference()["accuracy"], frame.ratio()["accuracy"]
    assert gap == pytest.approx(one - other) and share == pytest.approx(other / one)
    # At once: wider than each by itself.
    assert gap.interval[0] < one.interval[0] - other.interval[1]
    assert gap.interval[1] > one.interval[1] - other.interval[0]
    assert 0.0 < share.interval[0] < other.interval[0] / one.interval[1]
    assert other.interval[1] / one.interval[0] < share.interval[1] <= 1.0
    assert frame.difference()["prevalence"].interval[0] == 0.0
    for text in (repr(frame), frame._repr_html_()):
        for words in ("roc_auc", repr(one), "overall", "largest difference", repr(gap)):
            assert words in text
    table = frame.to_frame()
    assert list(table.index) == ["f", "m", "overall", "largest difference", "smallest ratio"]
    assert tuple(table.loc["f", "accuracy"]) == (float(one), *one.interval)
    named = replace(RESULT, tables=replace(RESULT.tables, subgroups=("f", "overall")))
    assert list(PrivateMetricFrame(named).to_frame().index)[1:3] == ["overall", "overall"]


def test_the_gap_without_noise_is_that_of_the_rows(monkeypatch):
    monkeypatch.setattr(additive, "discrete_gaussians", lambda stream, scale, count: [0] * count)
    result = PrivateEvaluation(1.0, **SETTINGS).evaluate(MODEL, X, Y, subgroups=SEX)
    right = MODEL.predict(X) == Y
    exact = right[SEX == "f"].mean() - right[SEX == "m"].mean()
    # Tables of subgroups share the public total, and nothing else.
    assert PrivateMetricFrame(result).difference()["accuracy"] == pytest.approx(exact, abs=1e-9)


def test_gaps_hold_whichever_groups_are_best_and_worst():
    """Eight equal groups: a naive interval for best less worst would miss 0 most of the time."""
    groups = np.arange(4000) % 8
    scores = np.random.default_rng(1).normal(size=(4000, 1))
    missed = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        labels = (rng.random(4000) < 1.0 / (1.0 + np.exp(-scores[:, 0]))).astype(int)
        model = LogisticRegression(C=np.inf).fit(scores, labels)
        evaluation = PrivateEvaluation(3.0, subgroups=range(8), random_state=seed)
        result = evaluation.evaluate(model, scores, labels, subgroups=groups)
        missed += PrivateMetricFrame(result, ["accuracy"]).difference()["accuracy"].interval[0] > 0
    assert missed <= 5  # each with probability .05 at most: 6 of 8 below 1e-6


def test_of_classes_the_overall_figure_is_the_mean():
    frame = PrivateMetricFrame(MANY, ["sensitivity", "roc_auc"], by="label")
    recalls = [MANY.of(label=label).sensitivity for label in range(3)]
    assert frame.overall["sensitivity"] == pytest.approx(np.mean(recalls))
    low, high = frame.overall["sensitivity"].interval
    assert low < frame.overall["sensitivity"] < high
    assert set(frame.by_group) == {0, 1, 2}


@pytest.mark.parametrize(
    ("result", "by"), [(MANY, "subgroup"), (RESULT, "label"), (RESULT, "column")]
)
def test_groups_that_there_are_not(result, by):
    with pytest.raises(ValueError, match="by"):
        PrivateMetricFrame(result, by=by)


@pytest.mark.parametrize("name", ["calibration_slope", "calibration_in_the_large", "colour"])
def test_gaps_are_of_shares(name):
    with pytest.raises(ValueError, match="metrics must be one of"):
        PrivateMetricFrame(RESULT, [name], by="subgroup")


def test_a_result_and_its_ledger_have_statements():
    budget = BudgetAccountant(2.0, 1e-5, adjacency="add-remove")
    result = PrivateEvaluation(0.5, accountant=budget).evaluate(MODEL, X, Y)
    record = privacy_statement(result, unit="patient").to_dict()
    assert record["kind"] == "result" and record["holds_for_the_whole"]
    assert record["parts"][0]["epsilon"] == 0.5
    assert record["guarantee"]["events"] == [result.privacy_spent_.event.to_dict()]
    (part,) = privacy_statement(budget).to_dict()["parts"]
    assert part["estimator"] == "PrivateEvaluation" and part["epsilon"] == 0.5


def test_pictures_show_the_curve_and_its_pointwise_band():
    matplotlib = pytest.importorskip("matplotlib", reason="needs the plot extra")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    displays = [
        PrivateRocCurveDisplay.from_result(RESULT, color="black"),
        PrivateRocCurveDisplay(RESULT).plot(plt.subplots()[1], scale="log"),
        PrivateRocCurveDisplay.from_result(MANY.of(label=2)),
        PrivateCalibrationDisplay.from_result(RESULT.of("m")),
    ]
    for display in displays:
        across, up = display.line_.get_data()
        assert np.all(np.diff(across) >= 0.0) and np.isfinite(up).all()
        said = " ".join(text.get_text() for text in display.ax_.get_legend().get_texts())
        assert "95 % intervals, of each point by itself" in said
        assert display.ax_.figure is display.figure_ and display.band_ in display.ax_.collections
        (band,) = display.band_.get_paths()
        points = sorted(display.result.roc_curve(), key=lambda point: point.x)
        if isinstance(display, PrivateRocCurveDisplay):
            low, high = zip(*(p.y.interval for p in points if math.isfinite(p.y)), strict=True)
            assert band.vertices[:, 1].min() == min(low) and band.vertices[:, 1].max() == max(high)
    plt.close("all")
    margins = PrivateEvaluation(1.0).evaluate(_Margins(), X, Y)
    with pytest.raises(ValueError, match="predict_proba"):
        PrivateCalibrationDisplay.from_result(margins)
    plt.close("all")


class _Margins:
    classes_ = np.array([0, 1])

    def decision_function(self, X):
        return X[:, 0]


def test_pictures_show_rare_outcomes_and_keep_texts_inside():
    pytest.importorskip("matplotlib")
    rare = (Y * (RNG.random(3000) < 0.03)).astype(int)
    model = LogisticRegression().fit(X[:1500], rare[:1500])
    result = PrivateEvaluation(20.0, thresholds=(0.02,), random_state=0).evaluate(model, X, rare)
    for shown, end in ((RESULT, 1.0), (result, 0.2)):
        for scale in ("linear", "log"):
            ax = PrivateCalibrationDisplay.from_result(shown, scale=scale).ax_
            ends = [point.y.interval[1] for point in shown.calibration_curve()]
            assert ax.get_xlim()[1] == ax.get_ylim()[1] <= end and max(ends) <= ax.get_ylim()[1]
    few = PrivateEvaluation(1.0, random_state=0).evaluate(
        LogisticRegression().fit(X > 0, Y), X > 0, Y
    )
    for kind in (PrivateCalibrationDisplay, PrivateRocCurveDisplay):
        figure = kind.from_result(few).figure_
        figure.canvas.draw()
        legend = figure.axes[0].get_legend().get_window_extent()
        assert 0.0 <= legend.x0 and legend.x1 <= figure.bbox.x1
    assert "nan" not in PrivateCalibrationDisplay.from_result(few).line_.get_label()


def test_skewed_scores_are_no_few_values():
    """One steep side and a long tail, as of severity in a ward: no two scores are equal."""
    rng = np.random.default_rng(0)
    odds = -2.6 + rng.gamma(2.0, 0.5, 4000)
    labels = (rng.random(4000) < 1.0 / (1.0 + np.exp(-odds))).astype(int)
    model = LogisticRegression(C=np.inf).fit(odds[:, None], labels)
    for adjacency in ("add-remove", "replace-one"):
        evaluation = PrivateEvaluation(1.0, adjacency=adjacency, random_state=0)
        result = evaluation.evaluate(model, odds[:, None], labels)
        assert result.roc_auc.reason == "" and result.roc_auc.width < 0.15
        assert math.isfinite(result.calibration_slope)


@pytest.mark.parametrize("given", [SEX[:-1], "sex"])
def test_a_column_of_another_length_is_named(given):
    with pytest.raises(ValueError, match="subgroups has not"):
        PrivateEvaluation(1.0, **SETTINGS).evaluate(MODEL, X, Y, subgroups=given)
