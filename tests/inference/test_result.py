"""The result of a look in the units of the columns: tables, contrasts, advice, models."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, ndtri
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skdp
from skdp.inference import PrivateInference, PublicWeights
from skdp.inspection import shape_functions
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    BooleanColumn,
    BoundedScaler,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    TableSchema,
)
from skdp.reporting import CoefficientDisplay, CoefficientIntervals, privacy_statement

RNG = np.random.default_rng(12)
N = 4000
COLUMNS = [
    NumericColumn("age", 0, 100, unit="years"),
    CategoricalColumn("ward", ["A", "B", "<C&_>"]),
    BooleanColumn("diabetes"),
]
SCHEMA = TableSchema(COLUMNS, label=LabelColumn("died", [0, 1]))
# Without noise and with a flat prior, estimates are those without privacy.
EXACT = {"epsilon": 1e6, "delta": 1e-6, "prior_sd": 1e3}


def drawn():
    frame = pd.DataFrame({
        "age": RNG.uniform(0.0, 100.0, N).round(1),
        "ward": RNG.choice(["A", "B", "<C&_>"], N),
        "diabetes": RNG.random(N) < 0.3,
    })  # fmt: skip
    odds = 0.03 * (frame["age"] - 60) + 0.8 * (frame["ward"] == "B") + 0.5 * frame["diabetes"]
    frame["died"] = (RNG.random(N) < expit(odds)).astype(int)
    return frame


FRAME = drawn()


def private(schema=SCHEMA, frame=FRAME, **terms):
    fit = skdp.ObjectivePerturbationLogisticRegression(**{"epsilon": 50.0, **terms})
    return schema.pipeline(fit).fit(frame)


@pytest.fixture(scope="module")
def model():
    return private()


@pytest.fixture(scope="module")
def exact(model):
    return PrivateInference(**EXACT).evaluate(model, FRAME)


@pytest.fixture(scope="module")
def noisy(model):
    return PrivateInference(epsilon=1.0).evaluate(model, FRAME)


def plain(reference):
    """Return coefficients and errors of a fit without privacy, by name of the row."""
    levels = [level for level in ("A", "B", "<C&_>") if level != reference]
    columns = [FRAME["age"], *(FRAME["ward"] == level for level in levels), FRAME["diabetes"]]
    rows = np.column_stack([*columns, np.ones(N)]).astype(float)
    fit = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=5000)
    fit.fit(rows / [100, 1, 1, 1, 1], FRAME["died"])
    p = fit.predict_proba(rows / [100, 1, 1, 1, 1])[:, 1]
    errors = np.sqrt(np.diag(np.linalg.inv((rows.T * (p * (1 - p))) @ rows)))
    names = ["age", *(f"ward={level}" for level in levels), "diabetes=True", "(intercept)"]
    return dict(zip(names, zip(fit.coef_[0] / [100, 1, 1, 1, 1], errors, strict=True), strict=True))


def epsilon_and_delta(model):
    guarantee = privacy_statement(model).to_dict()["guarantee"]
    return guarantee["epsilon"], guarantee["delta"]


@pytest.mark.parametrize("reference", ["A", "B"])
def test_rows_are_per_unit_and_against_the_reference(exact, reference):
    given = {"age": 0, "ward": reference}
    table = exact.table(0.9, given)
    wanted = plain(reference)
    for place, name in enumerate(table["name"]):
        if table["is_reference"][place]:
            assert table["odds_ratio"][place] == 1.0 and np.isnan(table["p_value"][place])
            assert table["low"][place] == table["high"][place] == 0.0 and not table["note"][place]
            continue
        value, error = wanted[name]
        assert table["coefficient"][place] == pytest.approx(value, abs=0.08 * error)
        assert table["std_error"][place] == pytest.approx(error, rel=0.02)
        reach = table["high"][place] - table["low"][place]
        assert reach == pytest.approx(2 * ndtri(0.95) * error, rel=0.02)
        assert table["odds_low"][place] == pytest.approx(np.exp(table["low"][place]))
        assert table["odds_high"][place] == pytest.approx(np.exp(table["high"][place]))
    assert table.labels[0] == "age +1 years" and f"ward={reference} reference" in table.labels
    assert table.intercept_at.startswith("age 0 years") and table.target == "died = 1"
    frame = exact.to_frame(0.9, given)
    assert len(frame) == 7 and list(frame["odds_ratio"]) == table["odds_ratio"].tolist()


def test_the_declared_reference_comes_first():
    columns = [COLUMNS[0], CategoricalColumn("ward", ["A", "B", "<C&_>"], drop="B")]
    schema = TableSchema(columns, label=LabelColumn("died", [0, 1]))
    frame = FRAME.drop(columns="diabetes")
    table = PrivateInference(**EXACT).evaluate(private(schema, frame), frame).table()
    assert table["name"][table.is_reference].tolist() == ["ward=B"]


def test_contrasts_are_sums_of_rows_or_changes_of_cells(exact, noisy):
    table = noisy.table()
    place = {name: j for j, name in enumerate(table["name"])}
    ten = noisy.contrast({"age": 10})
    for key in ("coefficient", "low", "high", "std_error"):
        assert ten[key][0] == pytest.approx(10 * table[key][place["age"]], rel=1e-6)
    own = pytest.approx(table["p_value"][place["age"]], abs=1e-9, nan_ok=True)
    assert ten["p_value"][0] == own and ten["note"][0] == table["note"][place["age"]]
    by_row, by_cell = (
        noisy.contrast({"ward=B": 1, "ward=<C&_>": -1}),
        noisy.contrast({"ward": ("<C&_>", "B")}),
    )
    from_table = noisy.table(reference={"ward": "<C&_>"})
    for key in ("coefficient", "low", "high"):
        assert by_row[key][0] == pytest.approx(by_cell[key][0], abs=1e-9)
        assert by_row[key][0] == pytest.approx(
            from_table[key][list(from_table["name"]).index("ward=B")]
        )
    both = exact.contrast({"age": (50, 80), "diabetes": (False, True)}, level=0.5)
    wanted = 30 * plain("A")["age"][0] + plain("A")["diabetes=True"][0]
    assert both["coefficient"][0] == pytest.approx(wanted, abs=0.02)
    assert both["name"].tolist() == ["age from 50 to 80, diabetes from False to True"]
    for wrong in ({"sex": 1}, {"sex": (0, 1)}):
        with pytest.raises(KeyError, match="sex"):
            noisy.contrast(wrong)
    for wrong, words in (
        ({"age": (1, 2, 3)}, "pair"),
        ({"age": (50, 101)}, "at most 100, got 101"),
        ({"ward": ("A", "Z")}, "no level"),
        ({"ward=B": 1e40}, "changes"),
    ):
        with pytest.raises(ValueError, match=words):
            noisy.contrast(wrong)
    for wrong in ({"age": 101}, {"ward": "Z"}):
        with pytest.raises(ValueError, match=r"must be|no level"):
            noisy.table(reference=wrong)
    same = noisy.contrast({"age": [50, 50]})
    assert same.is_reference[0] and same["high"][0] == 0.0 and same["odds_ratio"][0] == 1.0
    with pytest.raises(ValueError, match="level"):
        noisy.contrast({"age": 1}, level=1.0)


def test_the_change_of_margins_is_that_of_the_rows(exact):
    """It is the root of the mean of squares, with weights p (1 - p) at the weights of the look."""
    *coef, intercept = exact.part.contrasts @ exact.look.theta
    before = exact.model_[:-1].transform(FRAME) @ coef + intercept
    change, chance = exact.model_.decision_function(FRAME) - before, expit(before)
    wanted = np.sqrt(np.average(change**2, weights=chance * (1.0 - chance)))
    assert exact.change_of_margins == pytest.approx(wanted, rel=0.02) and wanted > 1e-4


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_p_values_agree_with_intervals_and_are_nan_only_with_a_reason(model, epsilon):
    result = PrivateInference(epsilon=epsilon, random_state=1).evaluate(model, FRAME)
    table = result.table(reference={"ward": "B", "age": 20})
    real = ~table.is_reference
    for key in ("coefficient", "std_error", "low", "high", "odds_ratio", "prior_share"):
        assert np.isfinite(table[key][real]).all()
    assert (table["low"] < table["high"])[real].all()
    called, known = (table["low"] > 0.0) | (table["high"] < 0.0), np.isfinite(table["p_value"])
    assert np.array_equal(called[known], table["p_value"][known] < 0.05)
    tested = np.isin(table["note"], ["", "needs second look"][: 1 + (result._change <= 0.5)])
    assert np.array_equal(known, real & tested)
    for note in set(table["note"][~known & real]):
        assert f"{note}: " in table.reason and ("Use" in table.reason or "look" in table.reason)


def test_directions_in_which_rows_do_not_vary_have_no_estimate(noisy):
    functions = np.zeros((2, len(noisy.part.contrasts)))
    functions[0, 1:4] = 1.0  # all indicators of the list at once
    told = {key: np.array(["", ""]) for key in ("name", "column", "level", "step")}
    found = noisy._intervals({**told, "is_reference": np.array([False, True])}, functions, "", 0.9)
    assert found["note"].tolist() == ["left out", ""] and "do not vary" in found.reason
    for key in ("coefficient", "low", "high", "p_value", "prior_share"):
        assert np.isnan(found[key][0])
    assert found["coefficient"][1] == 0.0


def test_curves_of_waves_are_told_at_numbers_and_any_two(model):
    columns = [NumericColumn("age", 0, 100, encoding="waves"), COLUMNS[2]]
    schema = TableSchema(columns, label=SCHEMA.label)
    frame = FRAME[["age", "diabetes", "died"]]
    result = PrivateInference(epsilon=1e5, prior_sd=50.0).evaluate(private(schema, frame), frame)
    table = result.table(reference={"age": 60})
    assert table.labels[0] == "age=60 reference" and table.intercept_at.startswith("age 60")
    change = result.contrast({"age": (50, 80)})
    assert change["low"][0] < 30 * 0.03 < change["high"][0]
    assert change["high"][0] - change["low"][0] < 1.0
    back = result.contrast({"age": (80, 50)})
    assert back["low"][0] == pytest.approx(-change["high"][0])


def test_pairs_of_crossed_columns_are_refused():
    schema = TableSchema(
        COLUMNS[:2], label=LabelColumn("died", [0, 1]), interactions=[["age", "ward"]]
    )
    frame = FRAME.drop(columns="diabetes")
    result = PrivateInference().evaluate(private(schema, frame), frame)
    assert result.contrast({"age": 1})["std_error"][0] > 0.0
    with pytest.raises(ValueError, match="act together"):
        result.contrast({"age": (50, 80)})


def test_curves_are_functions_with_bands_of_all_errors():
    schema = TableSchema.from_bounds({"age": (0, 100), "died": [0, 1]}, label="died")
    model = private(schema, FRAME[["age", "died"]])
    result = PrivateInference(epsilon=3.0).evaluate(model, FRAME[["age", "died"]])
    functions = shape_functions(result.model_, level=0.9)
    age = functions["age"]
    change = result.contrast({"age": (30, 70)}, 0.9)
    values = age.evaluate([30.0, 70.0])[:, 0]
    assert change["coefficient"][0] == pytest.approx(values[1] - values[0])
    # A band is for the centred function: its root is that of the posterior covariance.
    whole = result.posterior.coefficients.covariance
    contrast = result.part.contrasts[:-1].T @ (result.model_[:-1].transform(
        pd.DataFrame({"age": age.grid})
    ) - age._centre).T  # fmt: skip
    wanted = ndtri(0.95) * np.sqrt(np.einsum("ik,ij,jk->k", contrast, whole, contrast))
    np.testing.assert_allclose(age.half_width, wanted, rtol=1e-6)
    assert functions.exact and "sampling" in functions.about_band
    assert functions.target == "log odds of died = 1"
    assert any("against" in label for label in result.table().labels)


def test_intervals_without_data_are_those_of_the_prior(model):
    result = PrivateInference(epsilon=1e-3, prior_sd=2.0).evaluate(model, FRAME)
    table = result.table()
    real = ~table["is_reference"]
    assert (table["note"][real] == "mostly prior").all() and np.isnan(table["p_value"]).all()
    assert (table["prior_share"][real] > 0.25).all() and (table["prior_share"][real] < 1.1).all()
    # Half the range of an age is 50 years, and that of an indicator is about 1/2.
    assert 0.5 < (table["high"] - table["low"])[0] / (2 * 1.96 * 2.0 / 50.0) < 1.05
    text = repr(result)
    assert "mostly prior: " in text and "noise hides" in text and "deviation 2 per" in text
    assert "mostly prior" in result.to_latex() and "mostly prior" in result._repr_html_()
    data = json.loads(result.to_json())
    assert data["coefficients"]["p_value"][0] is None and "noise hides" in data["advice"][0]
    pytest.importorskip("matplotlib").use("Agg")
    assert "age +1 years (mostly prior)" in CoefficientDisplay(table).plot().labels_


def test_advice_is_given_where_it_is_due_and_not_for_one_hot_features(noisy):
    assert noisy.advice == [] and noisy.smallest_eigenvalue > noisy.noise_edge
    assert noisy.change_of_margins < 0.5
    assert noisy.noise_edge == pytest.approx(noisy.look.matrix_noise * np.sqrt(10.0))
    assert noisy.look.theta.size == 5  # indicators of a list add up to the constant
    frame = FRAME.assign(again=FRAME["age"])
    schema = TableSchema([*COLUMNS, NumericColumn("again", 0, 100)], label=SCHEMA.label)
    twice = PrivateInference(epsilon=1.0).evaluate(private(schema, frame), frame)
    assert len(twice.advice) == 1 and "noise hides" in twice.advice[0]
    named = twice.advice[0].split("there are ")[1].split(". Use")[0]
    assert {"age", "again"} <= set(named.split(", "))
    cut = PrivateInference(epsilon=1.0, data_norm=1.0).evaluate(private(), FRAME)
    assert not any("cuts them" in each for each in cut.advice)  # longer rows only count less


def test_a_second_look_is_offered_and_is_at_the_estimates():
    X = RNG.uniform(-1.0, 1.0, (N, 2)) / np.sqrt(2.0)
    y = (RNG.random(N) < expit(2.0 * X[:, 0])).astype(int)
    look = PrivateInference(epsilon=5.0, data_norm=1.0)
    first = look.evaluate(PublicWeights([-3.0, 3.0]), X, y)
    assert first.change_of_margins > 1.0 and "second look" in first.advice[0]
    # Estimates overshoot, and the null of x1 would be called.
    table = first.table()
    assert set(table["note"]) == {"needs second look"} and np.isnan(table["p_value"]).all()
    assert not table["low"][1] < 0.0 < table["high"][1] and "too far" in table.reason
    second = look.evaluate(first.model_, X, y)
    assert second.change_of_margins < 0.5 and second.advice == []
    np.testing.assert_allclose(first.model_.coef_[0], first.table()["coefficient"][:2])
    assert first.table().labels[0] == "x0 +1"
    table = second.table()
    assert table["low"][0] < 2.0 < table["high"][0] and table["low"][1] < 0.0 < table["high"][1]


def test_a_rare_level_far_from_its_start_has_a_note_of_its_own():
    """All rows together have hardly moved, but those of the level have."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((40_000, 2)) < [0.02, 0.5], 1.0, -1.0) / np.sqrt(2.0)
    margin = np.sqrt(2.0) * X @ [2.5, 0.3] + 1.0
    y = (rng.random(len(X)) < expit(margin)).astype(int)
    result = PrivateInference(epsilon=1.0, data_norm=1.0, random_state=0).evaluate(
        PublicWeights([0.0, 0.4], intercept=-1.5), X, y
    )
    table = result.table()
    assert result.change_of_margins < 0.5 and result.advice == []
    assert table["note"][:2].tolist() == ["needs second look", ""] and table["p_value"][1] < 1e-3
    assert table["p_value"][0] < 1e-3 and result.contrast({"x0": 3})["note"][0]
    assert not result.contrast({"x1": 3})["note"][0]


@pytest.mark.parametrize("prior_sd", [10.0, 100.0])
def test_a_level_without_any_row_has_no_p_value(model, prior_sd):
    """However wide the prior is, data without information are not taken for evidence."""
    frame = FRAME[FRAME["ward"] != "<C&_>"]
    look = PrivateInference(epsilon=3.0, prior_sd=prior_sd, random_state=0)
    table = look.evaluate(private(frame=frame), frame).table()
    notes = dict(zip(table["name"], table["note"], strict=True))
    assert notes["ward=<C&_>"] and np.isnan(table["p_value"][table["name"] == "ward=<C&_>"])
    if prior_sd == 10.0:
        assert notes["ward=<C&_>"] == "hidden by noise" and "may be none" in table.reason
        assert notes["age"] == notes["ward=B"] == ""


def test_the_model_predicts_behind_its_steps(model, exact, noisy):
    corrected = exact.model_
    table = exact.table(reference={"age": 50.0})
    value = dict(zip(table["name"], table["coefficient"], strict=True))
    row = pd.DataFrame({"age": [80.0], "ward": ["B"], "diabetes": [True]})
    wanted = value["(intercept)"] + 30 * value["age"] + value["ward=B"] + value["diabetes=True"]
    assert corrected.decision_function(row)[0] == pytest.approx(wanted, abs=1e-9)
    p = corrected.predict_proba(row)[0, 1]
    assert p == pytest.approx(expit(wanted)) and corrected.predict(row)[0] == int(p > 0.5)
    assert type(corrected) is type(model) and corrected[0] is model[0]
    assert model[-1].coef_ is not corrected[-1].coef_ and model[-1] is noisy.part.linear
    again = pickle.loads(pickle.dumps(corrected))
    np.testing.assert_array_equal(again.predict_proba(row), corrected.predict_proba(row))
    with pytest.raises(TypeError, match="Fit a private model"):
        corrected.fit(FRAME)
    assert noisy.model_ is noisy.model_
    second = PrivateInference(**EXACT).evaluate(noisy.model_, FRAME)  # with the same bound on rows
    np.testing.assert_allclose(
        second.table()["coefficient"], exact.table()["coefficient"], atol=0.01
    )
    statement = " ".join(str(privacy_statement(noisy.model_)).split())
    assert "evaluation of a public model" in statement and "objective perturbation" in statement
    (before, delta), (after, both) = map(epsilon_and_delta, (private(epsilon=1.0), noisy.model_))
    assert both == pytest.approx(2 * delta) and after > before


def test_models_of_searches_scalers_and_public_weights():
    X = RNG.uniform(-1.0, 1.0, (800, 2)) / np.sqrt(2.0)
    y = (RNG.random(800) < expit(2.0 * X[:, 0])).astype(int)
    opera = skdp.OperaSVC(classes=[0, 1], data_norm=1.0)
    look = PrivateInference(epsilon=8.0)
    search = PrivateGridSearchCV(opera, {"alpha": [0.1, 1.0]}).fit(X, y)
    found = look.evaluate(search, X, y).model_
    assert found.predict_proba(X).shape == (800, 2)
    # The charge of the search is in the statement too.
    assert epsilon_and_delta(found)[1] == pytest.approx(2e-6) and epsilon_and_delta(found)[0] > 7
    scaled = make_pipeline(BoundedScaler(-1.0, 1.0), opera).fit(X, y)
    result = look.evaluate(make_pipeline("passthrough", FrozenEstimator(scaled)), X, y)
    table = result.table()
    assert "+1" in table.labels[0]
    scores = result.model_.decision_function(np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert np.diff(scores) == pytest.approx(table["coefficient"][0])
    weights = PublicWeights([1.0, 0.0], classes=["no", "yes"], feature_names=["a", "b"])
    weights.fit_intercept = False
    bare = PrivateInference(epsilon=8.0, data_norm=1.0).evaluate(
        weights, pd.DataFrame(X, columns=["a", "b"]), np.array(["no", "yes"])[y]
    )
    assert bare.table()["name"].tolist() == ["a", "b"] and np.isnan(bare.change_of_margins)
    assert bare.model_.intercept_[0] == 0.0 and set(bare.model_.predict(X[:9])) <= {"no", "yes"}
    json.loads(bare.to_json(), parse_constant=lambda name: pytest.fail(name))


def test_class_weights_of_the_fit_do_not_enter_the_model():
    weighted = private(class_weight={0: 1.0, 1: 9.0})
    found = PrivateInference(**EXACT).evaluate(weighted, FRAME).model_
    rate = found.predict_proba(FRAME)[:, 1].mean()
    assert rate == pytest.approx(FRAME["died"].mean(), abs=0.01)
    assert weighted.predict_proba(FRAME)[:, 1].mean() > rate + 0.15


def test_tables_of_ratios_print_for_all_readers(noisy):
    text, html, latex = repr(noisy), noisy._repr_html_(), noisy.to_latex()
    assert text.startswith(
        "Odds ratios of died = 1, with 95% intervals; the intercept is at age 50"
    )
    assert "odds ratio" in text and "p value" in text and "<0.001" in text
    assert "does not cover a choice of columns" in " ".join(text.split())
    assert "choice of columns" in html
    assert "<C&_>" not in html and "&lt;C&amp;_&gt;" in html and "&lt;0.001" in html
    assert r"ward=\textless{}C\&\_\textgreater{} against A & " in latex and r"95\%" in latex
    assert latex.count(r"\\") == 8 and "\\textbackslash" not in latex
    data = json.loads(noisy.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert data["coefficients"]["name"][0] == "age" and data["level"] == 0.95
    assert len(data["look"]["score"]) == noisy.look.theta.size
    assert data["privacy_spent"] == noisy.privacy_spent_.to_dict()
    again = pickle.loads(pickle.dumps(noisy))
    assert repr(again.table()) == repr(noisy.table())


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(0.0, 0.01, "1.0000"), (-3.0, 5.0, "0.0498"), (-900.0, 900.0, "inf"), (0.0, 0.0, "1")],
)
def test_ratios_are_shown_to_their_own_precision(low, high, words):
    columns = {"name": ["a"], "value": [(low + high) / 2], "low": [low], "high": [high]}
    table = CoefficientIntervals(columns, ratio="odds")
    assert table["odds_high"][0] == np.exp(min(high, 709.0)) or high > 709
    shown = repr(table).splitlines()[-1].split()[1:]
    assert len(shown) == 3 and (words in shown or (words == "inf" and "-" in shown))


def test_forest_plots_are_of_odds_ratios(noisy):
    pytest.importorskip("matplotlib").use("Agg")
    table = noisy.table()
    shown = CoefficientDisplay(table).plot()
    assert shown.ax_.get_xscale() == "log" and shown.ax_.get_xlabel() == "odds ratio of died = 1"
    drawn = shown.ax_.lines[0].get_xdata()
    np.testing.assert_allclose(drawn, table["odds_ratio"][:-1][~table["is_reference"][:-1]])
    shown = CoefficientDisplay(table).plot(ratio=False, names=["age"])
    assert shown.ax_.get_xlabel() == "change of log odds of died = 1"


def test_other_tables_of_the_same_look_are_free(noisy):
    def exploding(*args, **kwargs):
        raise AssertionError("rows were read")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(noisy.part), "transform", exploding)
        patch.setattr(type(noisy.part), "checked", exploding)
        wide, narrow = noisy.table(0.99), noisy.table(0.5)
    real = ~wide["is_reference"]
    assert (wide["low"][real] < narrow["low"][real]).all()
    with pytest.raises(KeyError, match="no column"):
        noisy.table(reference={"sex": "f"})


def test_several_classes_have_a_table_each():
    X = RNG.uniform(-1.0, 1.0, (3000, 2)) / np.sqrt(2.0)
    y = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=3000), [-0.3, 0.3])
    model = skdp.GrpuaLogisticRegression(epsilon=9.0, data_norm=1.0).fit(X, y)
    results = PrivateInference(epsilon=9.0, reference=0).evaluate(model, X, y)
    assert [results[code].table().target for code in (1, 2)] == [
        "class = 1 against 0",
        "class = 2 against 0",
    ]
    frame = results.to_frame()
    assert frame["class"].tolist() == [1, 1, 1, 2, 2, 2]
    assert repr(results).count("Odds ratios of class") == 2
    with pytest.raises(TypeError, match="two classes"):
        str(results[1].model_)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.92, 2.1, [1.0, 1.5, 2.0]),
        (0.03, 40.0, [0.1, 1.0, 10.0]),
        (1.031, 1.052, [1.04]),
        (0.9, 1.31, [0.9, 1.0, 1.1, 1.2, 1.3]),
        (1e-8, 1e8, None),
    ],
)
def test_axes_of_ratios_have_round_ticks(low, high, ticks):
    pytest.importorskip("matplotlib").use("Agg")
    ends = np.log([low, high])
    columns = {"name": ["a"], "value": [ends.mean()], "low": ends[:1], "high": ends[1:]}
    shown = CoefficientDisplay(CoefficientIntervals(columns, ratio="odds")).plot()
    labels = [label.get_text() for label in shown.ax_.get_xticklabels()]
    found = [float(label) for label in labels]
    assert 1 <= len(found) <= 10 and labels == [f"{tick:g}" for tick in found]
    assert ticks is None or set(ticks) <= set(found)
