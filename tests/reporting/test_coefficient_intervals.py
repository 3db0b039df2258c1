"""Coefficients in units of columns, beside reference levels: values, errors, words, pictures."""

import pickle

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import OperaHuberRegressor, PrivateRidge
from skdp.budget import BudgetAccountant
from skdp.inspection import reshape_functions
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
from skdp.reporting import CoefficientDisplay, CoefficientIntervals, coefficient_intervals

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


@pytest.mark.parametrize("ward", WARDS)
def test_without_noise_they_are_those_of_a_design_by_hand(ward):
    frame, y, _ = table()
    found = coefficient_intervals(fit(WARDS[ward], frame, y))
    design = by_hand(frame)
    coef, (left,) = np.linalg.lstsq(design, y)[:2]
    exact = np.sqrt(left / (len(y) - 12) * np.diag(np.linalg.inv(design.T @ design)))
    place = [found["name"].tolist().index(name) for name in NAMES]
    np.testing.assert_allclose(found["value"][place], coef, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["std_error"][place], exact, rtol=1e-3)
    own = found["is_reference"]
    assert set(found["name"][own]) == {"visits<1", "ward=A", "stage=I", "smoker=False"}
    assert (found["value"][own] == 0.0).all() and (found["high"][own] == 0.0).all()
    assert found.reason == "" and found.target == "stay (days)"
    assert found.intercept_at == "age 59 years, lab 8, visits <1, ward A, stage I, smoker False"


def test_another_reference_is_another_contrast():
    frame, y, _ = table()
    model = fit(WARD, frame, y)
    plain = coefficient_intervals(model)
    moved = coefficient_intervals(
        model, reference={"ward": "C", "visits": 2, "age": 40, "stage": "II"}
    )
    one, other = (dict(zip(t["name"], t["value"], strict=True)) for t in (plain, moved))
    assert other["ward=B"] == pytest.approx(one["ward=B"] - one["ward=C"])
    assert other["visits<1"] == pytest.approx(-one["visits in [1, 3)"])
    zero = one["ward=C"] + one["visits in [1, 3)"] + one["stage=II"] - 19 * one["age"]
    assert other["(intercept)"] == pytest.approx(one["(intercept)"] + zero)
    assert moved["level"][moved["name"] == "ward=C"].tolist() == ["C"]
    assert "ward C" in moved.intercept_at and "age 40 years" in moved.intercept_at
    for wrong in ({"ward": "D"}, {"sex": 1}):
        with pytest.raises((ValueError, KeyError), match=next(iter(wrong))):
            coefficient_intervals(model, reference=wrong)
    bare = PrivateRidge(**EXACT, target_bounds=(-10, 30)).fit(frame[["age"]], y)
    with pytest.raises(KeyError, match="schema"):
        coefficient_intervals(bare, reference={"ward": "C"})


def test_variants_keep_names_units_and_levels():
    frame, y, _ = table()
    with BudgetAccountant(1.0, 0.01) as budget:
        model = schema().pipeline(PrivateRidge(0.5, 1e-3)).fit(frame, y)
        spent = budget.spent()
        small = model[-1].variant(features=["age", "ward"])
        found = coefficient_intervals(small)
        assert budget.spent() == spent
    assert found["name"].tolist() == coefficient_intervals(model)["name"].tolist()
    left = found["step"] == "left out"
    assert set(found["column"][left]) == {"lab", "visits", "stage", "smoker"}
    assert found.intercept_at == "age 59 years, ward A"
    exact = fit(WARD, frame, y)
    found = coefficient_intervals(exact[-1].variant(features=["age", "ward"]))
    plain = LinearRegression().fit(by_hand(frame)[:, [0, 5, 6]], y)
    np.testing.assert_allclose(
        found["value"][found["step"] != "left out"][[0, 2, 3]], plain.coef_, 1e-4
    )
    assert np.isnan(found["low"][found["step"] == "left out"]).all()
    assert small.variant(features=["ward=B", "age"]).coef_[small._meaning.places["ward=A"]] == 0.0
    with pytest.raises(ValueError, match=r"got \['Age'\]\. Names are 'age', "):
        small.variant(features=["Age"])


def test_a_variant_says_which_levels_it_takes_for_one():
    """Beside a level that no row has, the way to intervals is to leave out it and the reference."""
    frame, y, _ = table()
    rare = CategoricalColumn("ward", ["A", "B", "C", "never"])
    described = schema(rare, [COLUMNS[0], WARD])
    model = described.pipeline(PrivateRidge(20.0, 1e-3, random_state=0)).fit(frame, y)
    assert np.isnan(coefficient_intervals(model)["low"].astype(float)).all()
    steps = {}
    for name, kept in {"reference": ["B", "C"], "other": ["A", "B"]}.items():
        last = model[-1].variant(features=["age", *(f"ward={level}" for level in kept)])
        found = coefficient_intervals(last)
        steps[name] = dict(zip(found["level"], found["step"], strict=True))
        shown = dict(zip(found["level"], np.isfinite(found["low"]), strict=True))
        assert shown["B"] and shown["C"] and shown["never"] == (name == "other")
    against = {"B": "against A", "C": "against A"}
    alike = {"A": "reference, in one with never", "never": "in one with A"}
    assert steps["reference"] == {"": "", **alike, **against}
    alike = {"C": "against A, in one with never", "never": "against A, in one with C"}
    assert steps["other"] == {"": "", "A": "reference", "B": "against A", **alike}
    assert "in one with" not in "".join(coefficient_intervals(model)["step"])


def test_models_that_no_schema_told_are_told_afterwards():
    """In searches and plain pipelines; what predicts is then another estimate of the same."""
    frame, y, _ = table()
    told = fit(WARD, frame, y)
    ridge = PrivateRidge(**EXACT, target_bounds=(-10.0, 30.0), data_norm=schema().data_norm)
    plain = make_pipeline(schema().preprocessor(), ridge).fit(frame, y)
    one, other = coefficient_intervals(told), coefficient_intervals(plain)
    np.testing.assert_allclose(one["value"], other["value"], rtol=1e-6, atol=1e-6)
    search = PrivateGridSearchCV(PrivateRidge(), {"alpha": [0.0]}, epsilon=50.0, method="holdout")
    within = schema().pipeline(search).fit(frame, y)
    assert coefficient_intervals(within)["name"].tolist() == one["name"].tolist()
    within = schema().pipeline(search.set_params(epsilon=0.5)).fit(frame[:300], y[:300])
    assert "epsilon=" in coefficient_intervals(within).reason
    # What is behind an unknown step has names alone, a scaler there included.
    ridge = PrivateRidge(**EXACT, target_bounds=(-10.0, 30.0))
    lost = make_pipeline(StandardScaler(), BoundedScaler(-9.0, 9.0), ridge).fit(frame[["age"]], y)
    assert coefficient_intervals(lost)["step"].tolist() == ["+1", ""]
    assert coefficient_intervals(lost)["value"][0] == lost[-1].coef_[0]
    assert not hasattr(within[-1].best_estimator_, "_coef_noise_")


def test_fits_of_earlier_versions_have_intervals():
    frame, y, _ = table()
    model = fit(WARD, frame, y)
    wanted = coefficient_intervals(model)
    for name in ("_back", "_meaning", "_coef_noise_"):  # which they lack
        del vars(model[-1])[name]
    again = pickle.loads(pickle.dumps(model))
    found = coefficient_intervals(again)
    np.testing.assert_allclose(found["low"], wanted["low"], rtol=1e-6, atol=1e-6)
    bare = coefficient_intervals(again[-1])
    assert len(bare["name"]) == again[-1].n_features_in_ + 1


def test_bounds_of_a_scaler_give_the_units_of_its_columns():
    frame, y, _ = table()
    X = frame[["age", "visits"]]
    for scaler in (
        BoundedScaler([18, 0], [100, 10]),
        BoundedScaler([18, 0], [100, 10], row_norm=0.5),
    ):
        model = make_pipeline(scaler, PrivateRidge(**EXACT, target_bounds=(-10.0, 30.0)))
        found = coefficient_intervals(model.fit(X, y))
        plain = LinearRegression().fit(X, y)
        at = plain.predict(pd.DataFrame({"age": [59.0], "visits": [5.0]}))
        np.testing.assert_allclose(found["value"], [*plain.coef_, *at], rtol=1e-4)
        assert found["step"].tolist() == ["+1", "+1", ""] and found["name"][0] == "age"
        ridge = PrivateRidge(**EXACT, target_bounds=(-10.0, 30.0))
        model = make_pipeline(scaler, BoundedScaler(-2.0, 2.0), ridge)
        again = coefficient_intervals(model.fit(X, y))
        np.testing.assert_allclose(again["value"], found["value"], rtol=1e-3)


@pytest.mark.parametrize(
    ("ward", "adjacency", "runs"),
    [
        ("centred", "replace-one", 40),
        *(
            pytest.param(ward, adjacency, 400, marks=pytest.mark.slow)
            for ward in ("centred", "first", "one-hot")
            for adjacency in ("add-remove", "replace-one")
        ),
    ],
)
def test_intervals_beside_a_reference_cover(ward, adjacency, runs):
    """Each coefficient's in many tables; false alarm 1e-6 where coverage lies in [.93, .97]."""
    described = schema(WARDS[ward], [COLUMNS[0], WARD, COLUMNS[5]])
    places = [NAMES.index(name) for name in ("age", "ward=B", "ward=C", "smoker=True")]
    places += [NAMES.index(name) for name in ("smoker missing", "(intercept)")]
    frame, _, truth = table(2500)
    design, truth = by_hand(frame)[:, places], truth[places]
    known = {NAMES[place]: value for place, value in zip(places, truth, strict=True)}
    model = described.pipeline(PrivateRidge(4.0, 1e-3, adjacency=adjacency))
    last = model.fit(frame[described.features], design @ truth)[-1]
    X, meaning = model[0].transform(frame[described.features]), last._meaning
    rng, covered = np.random.default_rng(5), np.zeros(len(places), dtype=int)
    for seed in range(runs):
        y = design @ truth + 1.5 * rng.standard_normal(len(frame))
        last.set_params(random_state=seed).fit(X, y)._hear(meaning)
        found = coefficient_intervals(last)
        assert found.reason == ""
        shown = ~found["is_reference"]
        wanted = np.array([known[name] for name in found["name"][shown]])
        covered += (found["low"][shown] <= wanted) & (wanted <= found["high"][shown])
    least, most = binom.ppf([5e-7, 1.0 - 5e-7], runs, [0.93, 0.97])
    assert (least <= covered).all() and (covered <= most).all()


def test_what_noise_hides_has_a_reason_and_a_remedy():
    frame, y, _ = table(1000)
    model = schema().pipeline(PrivateRidge(0.3, 1e-3, random_state=0)).fit(frame, y)
    found = coefficient_intervals(model)
    assert np.isnan(found["low"][~found["is_reference"]]).all()
    words = found.reason.split()
    assert "records" in words and any(word.startswith("epsilon=") for word in words)
    assert any(name in found.reason for name in frame.columns)
    assert found.reason in repr(found).replace("\n", " ") and "NaN" not in repr(found)
    # Dummies beside an intercept, by hand, are named.
    X = np.column_stack([frame["ward"] == level for level in "ABC"]).astype(float)
    rows = pd.DataFrame(X, columns=["in A", "in B", "in C"])
    bare = PrivateRidge(5.0, 1e-3, random_state=0, data_norm=1.0, target_bounds=(-10, 30)).fit(
        rows, y
    )
    assert "in A and in B and in C" in coefficient_intervals(bare).reason


def test_what_may_have_been_cut_is_said():
    """Public bounds say so; here all rows are cut, and no interval would hold."""
    frame, y, _ = table()
    columns = [COLUMNS[0], WARD]
    described = schema(columns=columns)
    ridge = PrivateRidge(20.0, 1e-3, random_state=0)
    whole = coefficient_intervals(described.pipeline(ridge).fit(frame, y))
    assert whole.reason == "" and np.isfinite(whole["low"].astype(float)).all()
    short = described.replace(clip_norm=0.8).pipeline(ridge).fit(frame, y)
    ridge = PrivateRidge(20.0, 1e-3, target_bounds=(-10.0, 30.0), data_norm=0.8)
    for model in (short, make_pipeline(described.preprocessor(), ridge).fit(frame, y)):
        reason = coefficient_intervals(model).reason
        assert reason.startswith(f"Rows of norms up to {described.data_norm:.4g} are possible")
        assert "cuts them to 0.8" in reason


def test_flags_that_no_cell_has_take_no_interval_away():
    """A flag of missing cells, of which there are none, is a column of zeros."""
    frame, y, _ = table(3000)
    known = frame["lab"].notna() & frame["smoker"].notna()
    whole, own = frame[known].reset_index(drop=True), y[known]
    model = schema().pipeline(PrivateRidge(8.0, 1e-3, random_state=0)).fit(whole, own)
    found = coefficient_intervals(model)
    left = found.is_left_out
    assert found["name"][left].tolist() == ["lab missing", "smoker missing"]
    assert np.isnan(found["low"][left]).all() and np.isfinite(found["low"][~left]).all()
    assert "lab missing, smoker missing" in found.reason and "Left out: lab missing" in repr(found)
    # Where cells are so, or an interval can be given, nothing is left out.
    model = schema().pipeline(PrivateRidge(20.0, 1e-3, random_state=0)).fit(frame, y)
    found = coefficient_intervals(model)
    assert found.reason == "" and not found.is_left_out.any()
    # "lab" is the column with its flag, "smoker=True" a feature without.
    small = coefficient_intervals(model[-1].variant(features=["age", "lab", "smoker=True"]))
    own = small["name"][~small.is_left_out].tolist()
    assert own == ["age", "lab", "lab missing", "smoker=False", "smoker=True", "(intercept)"]


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
    found = coefficient_intervals(last, reference={"age": 40})
    np.testing.assert_allclose(last.variant(lines=[]).coef_, model[-1].coef_)
    lab = model[:-1].transform(frame)[:, 16:33]
    age = np.log2(frame["age"]) if scale == "log" else frame["age"]
    dummies = np.column_stack([frame["ward"] == level for level in "BC"])
    plain = LinearRegression().fit(np.column_stack([age, dummies, lab]), y)
    own = [found["value"][found["name"] == name][0] for name in ("age", "ward=B", "ward=C")]
    np.testing.assert_allclose(own, plain.coef_[:3], rtol=0.03, atol=0.01)
    assert found["step"][0] == ("doubled" if scale == "log" else "+1 years")
    assert np.isfinite(found["low"]).all() and "age 40 years" in found.intercept_at
    assert coefficient_intervals(last.variant(features=["lab missing"])).is_left_out.any()
    ridge = PrivateRidge(**EXACT, data_norm=described.data_norm)
    scaled = described.pipeline(make_pipeline(BoundedScaler(-2.0, 2.0, row_norm=None), ridge))
    last = scaled.fit(frame, y)[-1][-1].variant(lines=["age"])
    again = coefficient_intervals(last, reference={"age": 40})
    np.testing.assert_allclose(again["value"], found["value"], rtol=1e-3, atol=1e-3)
    for wrong in (["ward"], ["lab missing"], "sex"):
        with pytest.raises(ValueError, match="waves"):
            last.variant(lines=wrong)
    bare = PrivateRidge(**EXACT, target_bounds=(-10, 30), data_norm=100.0).fit(frame[["age"]], y)
    with pytest.raises(ValueError, match="schema"):
        bare.variant(lines=["age"])


def test_the_remedy_is_about_right():
    """With the rows, or the epsilon, that are named most tables are told."""
    rng = np.random.default_rng(0)
    model = PrivateRidge(1.0, 1e-3, target_bounds=(-5, 5), data_norm=2**0.5)

    def share(n, runs=30):
        told, needed = 0, []
        for seed in range(runs):
            X = np.column_stack([rng.uniform(-1, 1, n), rng.normal(0, 0.24, n).clip(-1, 1)])
            solution = model.set_params(random_state=seed).fit(X, X[:, 0])._solution
            told += solution.estimable
            needed.append(solution.shortfall)
        return told / runs, needed

    before, needed = share(450)
    times = np.median([factor for factor, _ in needed])
    assert before < 0.5 and 1.1 < times < 2.5
    assert share(int(450 * times))[0] > 0.6


def test_tables_print_and_become_frames():
    frame, y, _ = table()
    found = coefficient_intervals(fit(WARD, frame, y), level=0.9)
    text = repr(found)
    assert text.startswith(
        "Coefficients of stay (days), with 90% intervals; the intercept is at age"
    )
    assert "ward=A reference" in text and "age +1 years" in text and "lab doubled" in text
    assert "ward=B against A" in found._repr_html_() and "&lt;1" in found._repr_html_()
    shown = found.to_frame()
    assert list(shown.columns) == [
        *("name", "column", "level", "step", "value", "std_error", "low", "high", "is_reference")
    ]
    assert len(shown) == len(found["name"]) and repr(pickle.loads(pickle.dumps(found))) == text
    other = CoefficientIntervals(
        {"name": ["<a>"], "coefficient": [1.0], "low": [np.nan], "high": [2.0]},
        estimate="coefficient",
        reason="<no>",
    )
    assert "<a>" not in other._repr_html_() and "<no>" not in other._repr_html_()


def test_forest_plots_leave_out_what_is_not_known():
    pytest.importorskip("matplotlib").use("Agg")
    frame, y, _ = table()
    model = fit(WARD, frame, y)
    shown = CoefficientDisplay.from_estimator(model, reference={"ward": "B"})
    assert "ward=B reference" in shown.labels_ and "(intercept)" not in shown.labels_
    assert len(shown.ax_.lines[0].get_xdata()) == len(NAMES) - 1
    assert shown.ax_.get_xlabel() == "change of stay (days)"
    shown = shown.plot(names=["ward=A"], ratio=True)
    assert shown.labels_ == ["ward=A against B"] and shown.ax_.get_xscale() == "log"
    found = coefficient_intervals(model)
    assert shown.ax_.lines[0].get_xdata() == pytest.approx(
        np.exp(-found["value"][found["name"] == "ward=B"])
    )
    hidden = CoefficientDisplay.from_estimator(
        schema().pipeline(PrivateRidge(0.1, 1e-3)).fit(frame[:500], y[:500])
    )
    figure, title = hidden.figure_, hidden.figure_._suptitle
    assert hidden.ax_.lines[0].get_xdata().size == 0 and "noise" in title.get_text()
    figure.canvas.draw()
    assert title.get_window_extent().x1 <= figure.bbox.x1  # is not cut off


def test_changed_and_other_models_have_none():
    frame, y, _ = table()
    model = fit(WARD, frame, y)
    with pytest.raises(TypeError, match="afterwards"):
        coefficient_intervals(reshape_functions(model, {"age": "decreasing"}))
    huber = schema().pipeline(OperaHuberRegressor()).fit(frame, y)
    with pytest.raises(TypeError, match="PrivateRidge"):
        coefficient_intervals(huber)
