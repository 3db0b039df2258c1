"""Coefficients by name in units of columns, beside reference levels: values, words, pictures."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import PrivateRidge
from skdp.base.scikit_learn import last_and_meaning
from skdp.inference import PrivateInference
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    BooleanColumn,
    BoundedScaler,
    CategoricalColumn,
    NumericColumn,
    NumericLabel,
    OrdinalColumn,
    TableSchema,
)
from skdp.reporting import CoefficientDisplay, CoefficientIntervals, coefficient_table
from skdp.reporting.coefficients import describe_effects

pd = pytest.importorskip("pandas")

EXACT = {"epsilon": 1e13, "delta": 1e-3, "random_state": 0}  # without noise, in all but name
WARD = CategoricalColumn("ward", ["A", "B", "C"])
COLUMNS = [
    NumericColumn("age", 18, 100, unit="years"),
    NumericColumn("lab", 1, 64, scale="log", encoding="scaled", missing="indicator"),
    NumericColumn("visits", 0, 10, cuts=[1, 3]),
    WARD,
    OrdinalColumn("stage", ["I", "II", "III"]),
    BooleanColumn("smoker", missing="indicator"),
]


def schema(ward=WARD, columns=COLUMNS):
    label = NumericLabel("stay", -10, 30, unit="days")
    return TableSchema([ward if c.name == "ward" else c for c in columns], label=label)


def table(n=1500, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(18, 100, n),
            "lab": np.where(rng.random(n) < 0.1, np.nan, 2.0 ** rng.uniform(0, 6, n)),
            "visits": rng.integers(0, 6, n).astype(float),
            "ward": rng.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2]),
            "stage": rng.choice(["I", "II", "III"], n),
            "smoker": rng.choice(np.array([0, 1, None], dtype=object), n),
        }
    )
    design = by_hand(frame)
    truth = np.array([0.05, 0.5, -1.0, 0.3, 1.0, 2.0, -1.0, 0.5, 0.7, 1.5, -0.5, 2.0])
    return frame, design @ truth + spread * rng.standard_normal(n), truth


def by_hand(frame):
    """Return the design that a statistician would write down, intercept last."""
    lab, smoker = frame["lab"], frame["smoker"]
    columns = [
        frame["age"] - 59.0,
        np.where(lab.isna(), 0.0, np.log2(lab.fillna(8.0) / 8.0)),
        lab.isna(),
        frame["visits"].between(1, 2.99),
        frame["visits"] >= 3,
        frame["ward"] == "B",
        frame["ward"] == "C",
        frame["stage"] == "II",
        frame["stage"] == "III",
        smoker == 1,
        smoker.isna(),
        np.ones(len(frame)),
    ]
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])


NAMES = [
    *("age", "lab", "lab missing", "visits in [1, 3)", "visits>=3", "ward=B", "ward=C"),
    *("stage=II", "stage=III", "smoker=True", "smoker missing", "(intercept)"),
]
WARDS = {
    "centred": WARD,
    "one-hot": CategoricalColumn("ward", ["A", "B", "C"], encoding="one-hot"),
    "first": CategoricalColumn("ward", ["A", "B", "C"], drop="first"),
    "another": CategoricalColumn("ward", ["B", "A", "C"], drop="A", weight=3.0),
}


def fit(ward=WARD, frame=None, y=None, **params):
    described = schema(ward)
    return described.pipeline(PrivateRidge(**{**EXACT, **params})).fit(frame, y)


def effects(model, reference=None):
    """Return columns that name effects, with the values that the coefficients of a model give."""
    last, meaning = last_and_meaning(model)
    meaning = last._meaning or meaning
    names = getattr(last, "feature_names_in_", [f"x{k}" for k in range(last.coef_.size)])
    found, weights, at = describe_effects(names, meaning, reference or {}, last._kept)
    return found | {"value": weights @ np.append(last.coef_, last.intercept_)}, at


@pytest.mark.parametrize("ward", WARDS)
def test_without_noise_they_are_those_of_a_design_by_hand(ward):
    frame, y, _ = table()
    found, at = effects(fit(WARDS[ward], frame, y))
    coef = np.linalg.lstsq(by_hand(frame), y)[0]
    place = [found["name"].tolist().index(name) for name in NAMES]
    np.testing.assert_allclose(found["value"][place], coef, rtol=1e-4, atol=1e-4)
    own = found["is_reference"]
    assert set(found["name"][own]) == {"visits<1", "ward=A", "stage=I", "smoker=False"}
    assert (found["value"][own] == 0.0).all()
    assert at == "age 59 years, lab 8, visits <1, ward A, stage I, smoker False"


def test_another_reference_is_another_contrast():
    frame, y, _ = table()
    model = fit(WARD, frame, y)
    plain, _ = effects(model)
    moved, at = effects(model, {"ward": "C", "visits": 2, "age": 40, "stage": "II"})
    one, other = (dict(zip(t["name"], t["value"], strict=True)) for t in (plain, moved))
    assert other["ward=B"] == pytest.approx(one["ward=B"] - one["ward=C"])
    assert other["visits<1"] == pytest.approx(-one["visits in [1, 3)"])
    zero = one["ward=C"] + one["visits in [1, 3)"] + one["stage=II"] - 19 * one["age"]
    assert other["(intercept)"] == pytest.approx(one["(intercept)"] + zero)
    assert moved["level"][moved["name"] == "ward=C"].tolist() == ["C"]
    assert "ward C" in at and "age 40 years" in at
    for wrong in ({"ward": "D"}, {"sex": 1}):
        with pytest.raises((ValueError, KeyError), match=next(iter(wrong))):
            effects(model, wrong)
    bare = PrivateRidge(**EXACT, target_bounds=(-10, 30)).fit(frame[["age"]], y)
    with pytest.raises(KeyError, match="schema"):
        effects(bare, {"ward": "C"})


def test_variants_keep_names_units_and_levels():
    frame, y, _ = table()
    exact = fit(WARD, frame, y)
    small = exact[-1].variant(features=["age", "ward"])
    found, at = effects(small)
    assert found["name"].tolist() == effects(exact)[0]["name"].tolist()
    left = found["step"] == "left out"
    assert set(found["column"][left]) == {"lab", "visits", "stage", "smoker"}
    assert at == "age 59 years, ward A"
    plain = LinearRegression().fit(by_hand(frame)[:, [0, 5, 6]], y)
    np.testing.assert_allclose(found["value"][~left][[0, 2, 3]], plain.coef_, 1e-4)
    assert small.variant(features=["ward=B", "age"]).coef_[small._meaning.places["ward=A"]] == 0.0
    with pytest.raises(ValueError, match=r"got \['Age'\]\. Names are 'age', "):
        small.variant(features=["Age"])
    # "lab" is the column with its flag, "smoker=True" a feature without.
    found, _ = effects(exact[-1].variant(features=["age", "lab", "smoker=True"]))
    own = found["name"][found["step"] != "left out"].tolist()
    assert own == ["age", "lab", "lab missing", "smoker=False", "smoker=True", "(intercept)"]


def test_a_variant_says_which_levels_it_takes_for_one():
    frame, y, _ = table()
    rare = CategoricalColumn("ward", ["A", "B", "C", "never"])
    described = schema(rare, [COLUMNS[0], WARD])
    model = described.pipeline(PrivateRidge(20.0, 1e-3, random_state=0)).fit(frame, y)
    steps = {}
    for name, kept in {"reference": ["B", "C"], "other": ["A", "B"]}.items():
        last = model[-1].variant(features=["age", *(f"ward={level}" for level in kept)])
        found, _ = effects(last)
        steps[name] = dict(zip(found["level"], found["step"], strict=True))
    against = {"B": "against A", "C": "against A"}
    alike = {"A": "reference, in one with never", "never": "in one with A"}
    assert steps["reference"] == {"": "", **alike, **against}
    alike = {"C": "against A, in one with never", "never": "against A, in one with C"}
    assert steps["other"] == {"": "", "A": "reference", "B": "against A", **alike}
    assert "in one with" not in "".join(effects(model)[0]["step"])


def test_models_that_no_schema_told_are_told_afterwards():
    """In searches and plain pipelines; what predicts is then another estimate of the same."""
    frame, y, _ = table()
    told = fit(WARD, frame, y)
    ridge = PrivateRidge(**EXACT, target_bounds=(-10.0, 30.0), data_norm=schema().data_norm)
    plain = make_pipeline(schema().preprocessor(), ridge).fit(frame, y)
    one, other = effects(told)[0], effects(plain)[0]
    np.testing.assert_allclose(one["value"], other["value"], rtol=1e-6, atol=1e-6)
    search = PrivateGridSearchCV(PrivateRidge(), {"alpha": [0.0]}, epsilon=50.0, method="holdout")
    within = schema().pipeline(search).fit(frame, y)
    looked = PrivateInference(5.0, 1e-6, error_sd=1.0).evaluate(within, frame, y).table()
    assert looked["name"].tolist() == one["name"].tolist()
    assert not hasattr(within[-1].best_estimator_, "_coef_noise_")
    # What is behind an unknown step has names alone, a scaler there included.
    ridge = PrivateRidge(**EXACT, target_bounds=(-10.0, 30.0))
    lost = make_pipeline(StandardScaler(), BoundedScaler(-9.0, 9.0), ridge).fit(frame[["age"]], y)
    assert effects(lost)[0]["step"].tolist() == ["+1", ""]


def test_fits_of_earlier_versions_have_a_table_and_variants():
    frame, y, _ = table()
    model = fit(WARD, frame, y)
    wanted = coefficient_table(model)
    for name in ("_back", "_meaning", "_coef_noise_"):  # which they lack
        vars(model[-1]).pop(name, None)
    again = pickle.loads(pickle.dumps(model))
    found = coefficient_table(again)
    np.testing.assert_allclose(found["value"], wanted["value"])
    assert np.isfinite(found["noise_std"]).all() and (found["noise_is"] == "about").all()
    assert again[-1].variant(alpha=1.0).coef_.shape == model[-1].coef_.shape


def test_bounds_of_a_scaler_give_the_units_of_its_columns():
    frame, y, _ = table()
    X = frame[["age", "visits"]]
    plain = LinearRegression().fit(X, y)
    at = plain.predict(pd.DataFrame({"age": [59.0], "visits": [5.0]}))
    for norm in ({}, {"row_norm": 0.5}):
        scaler = BoundedScaler([18, 0], [100, 10], **norm)
        for steps in ([scaler], [scaler, BoundedScaler(-2.0, 2.0)]):
            model = make_pipeline(*steps, PrivateRidge(**EXACT, target_bounds=(-10.0, 30.0)))
            found, _ = effects(model.fit(X, y))
            np.testing.assert_allclose(found["value"], [*plain.coef_, *at], rtol=2e-3)
            assert found["step"].tolist() == ["+1", "+1", ""] and found["name"][0] == "age"


@pytest.mark.parametrize("scale", ["auto", "log"])
def test_curves_become_lines_for_nothing(scale):
    """The nearest of waves to a line is off by some hundredths of its range."""
    frame, y, _ = table()
    columns = [
        NumericColumn("age", 18, 100, unit="years", encoding="waves", scale=scale),
        NumericColumn("lab", 1, 64, encoding="waves", missing="indicator"),
        WARD,
    ]
    described = schema(columns=columns)
    model = described.pipeline(PrivateRidge(**EXACT)).fit(frame, y)
    last = model[-1].variant(lines=["age"])
    found, at = effects(last, {"age": 40})
    np.testing.assert_allclose(last.variant(lines=[]).coef_, model[-1].coef_)
    lab = model[:-1].transform(frame)[:, 16:33]
    age = np.log2(frame["age"]) if scale == "log" else frame["age"]
    dummies = np.column_stack([frame["ward"] == level for level in "BC"])
    plain = LinearRegression().fit(np.column_stack([age, dummies, lab]), y)
    own = [found["value"][found["name"] == name][0] for name in ("age", "ward=B", "ward=C")]
    np.testing.assert_allclose(own, plain.coef_[:3], rtol=0.03, atol=0.01)
    assert found["step"][0] == ("doubled" if scale == "log" else "+1 years")
    assert "age 40 years" in at
    assert "left out" in effects(last.variant(features=["lab missing"]))[0]["step"]
    ridge = PrivateRidge(**EXACT, data_norm=described.data_norm)
    scaled = described.pipeline(make_pipeline(BoundedScaler(-2.0, 2.0, row_norm=None), ridge))
    last = scaled.fit(frame, y)[-1][-1].variant(lines=["age"])
    again, _ = effects(last, {"age": 40})
    np.testing.assert_allclose(again["value"], found["value"], rtol=1e-3, atol=1e-3)
    for wrong in (["ward"], ["lab missing"], "sex"):
        with pytest.raises(ValueError, match="waves"):
            last.variant(lines=wrong)
    bare = PrivateRidge(**EXACT, target_bounds=(-10, 30), data_norm=100.0).fit(frame[["age"]], y)
    with pytest.raises(ValueError, match="schema"):
        bare.variant(lines=["age"])


def intervals_of(**more):
    """Return a table of intervals as results give them."""
    columns = {
        "name": ["age", "ward=A", "ward=B", "<rare>"],
        "step": ["+1 years", "reference", "against A", "against A"],
        "coefficient": [0.5, 0.0, 1.0, 2.0],
        "low": [0.4, 0.0, 0.5, np.nan],
        "high": [0.6, 0.0, 1.5, np.nan],
        "is_reference": [False, True, False, False],
    }
    return CoefficientIntervals(
        columns, estimate="coefficient", target="stay (days)", reason="<no> interval.", **more
    )


def test_tables_print_and_become_frames():
    found = intervals_of(confidence=0.9, intercept_at="age 59 years")
    text = repr(found)
    assert text.startswith(
        "Coefficients of stay (days), with 90% intervals; the intercept is at age"
    )
    assert "ward=A reference" in text and "age +1 years" in text and "nan" not in text
    shown = found._repr_html_()
    assert "ward=B against A" in shown and "<rare>" not in shown and "<no>" not in shown
    assert len(found.to_frame()) == 4 and repr(pickle.loads(pickle.dumps(found))) == text


def test_forest_plots_leave_out_what_is_not_known():
    pytest.importorskip("matplotlib").use("Agg")
    shown = CoefficientDisplay(intervals_of()).plot()
    assert shown.labels_ == [
        "age +1 years",
        "ward=A reference",
        "ward=B against A",
        "<rare> against A",
    ]
    assert shown.ax_.lines[0].get_xdata().tolist() == [0.5, 1.0]
    assert shown.ax_.get_xlabel() == "change of stay (days)"
    title = shown.figure_._suptitle
    assert "interval" in title.get_text()
    shown.figure_.canvas.draw()
    assert title.get_window_extent().x1 <= shown.figure_.bbox.x1  # is not cut off
    shown = shown.plot(names=["ward=B"], ratio=True)
    assert shown.labels_ == ["ward=B against A"] and shown.ax_.get_xscale() == "log"
    assert shown.ax_.lines[0].get_xdata() == pytest.approx(np.exp(1.0))
