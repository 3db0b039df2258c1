"""Mistakes and uses that the guide does not show: answers are right, or a clear refusal."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp.inference import PrivateInference, PublicWeights
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    TableSchema,
)
from skdp.reporting.coefficients import _ticks_of_ratios

RNG = np.random.default_rng(7)
N = 6000
WARDS = ["surgery", "medicine", "geriatrics"]
EXACT = {"epsilon": 1e6, "delta": 1e-6, "prior_sd": 1e3}


def drawn():
    table = pd.DataFrame({
        "age": RNG.integers(18, 95, N),
        "diabetes": RNG.random(N) < 0.4,
        "ward": RNG.choice(WARDS, N),
    })  # fmt: skip
    old = table["ward"] == "geriatrics"
    odds = 0.04 * (table["age"] - 60) + table["diabetes"] * (0.5 + 1.0 * old) + 0.6 * old - 0.5
    table["died"] = (RNG.random(N) < expit(odds)).astype(int)
    return table


TABLE = drawn()


def looked(**terms):
    columns = [
        NumericColumn("age", 18, 100, unit="years"),
        BooleanColumn("diabetes"),
        CategoricalColumn("ward", WARDS),
    ]
    schema = TableSchema(columns, label=LabelColumn("died", [0, 1]), **terms)
    fit = skdp.ObjectivePerturbationLogisticRegression(epsilon=50.0)
    return PrivateInference(**EXACT).evaluate(schema.pipeline(fit).fit(TABLE), TABLE)


@pytest.fixture(scope="module")
def result():
    return looked()


@pytest.fixture(scope="module")
def crossed():
    return looked(interactions=[("ward", "diabetes")])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ward": ("surgery", "icu")}, "'ward' has no level 'icu'"),
        ({"diabetes": ("no", "yes")}, "'diabetes' has no level 'no'"),
        ({"age": (10, 200)}, "the value of 'age' must be .* at least 18"),
        ({"age": ("x", 50)}, "the value of 'age'"),
        ({"agee": (20, 50)}, "no columns of the model"),
        ({"agee": 1}, "no row of the table"),
        ({}, "must be a mapping"),
        ("age", "must be a mapping"),
    ],
)
def test_changes_to_what_a_column_cannot_be_are_refused(result, changes, words):
    with pytest.raises((KeyError, TypeError, ValueError), match=words):
        result.contrast(changes)


@pytest.mark.parametrize(
    "reference", [{"age": 200}, {"age": "x"}, {"ward": "icu"}, {"agee": 1}], ids=str
)
def test_references_that_a_column_cannot_have_are_refused(result, reference):
    with pytest.raises((KeyError, TypeError, ValueError), match=r"'(age|ward|agee)'"):
        result.table(reference=reference)


def test_changes_of_columns_that_act_together_are_those_of_patients(crossed):
    def log_odds(ward):
        changes = {"diabetes": (False, True), "ward": (ward, ward)}
        return crossed.contrast(changes)["coefficient"][0]

    rows = TABLE[:6].assign(age=60, diabetes=[False, True] * 3, ward=np.repeat(WARDS, 2))
    chances = crossed.model_.predict_proba(rows.drop(columns="died"))[:, 1]
    odds = np.log(chances / (1.0 - chances))
    assert np.allclose([log_odds(ward) for ward in WARDS], odds[1::2] - odds[::2], atol=1e-9)
    assert log_odds("geriatrics") > log_odds("surgery") + 0.5
    with pytest.raises(ValueError, match=r"act together: give a pair for \['ward'\] too"):
        crossed.contrast({"diabetes": (False, True)})


def test_rows_of_columns_that_act_together_say_so(result, crossed):
    assert not any("act together" in text for text in result.advice)
    assert any("diabetes, ward act together" in text for text in crossed.advice)


@pytest.mark.parametrize("encoding", ["centred", "one-hot"])
def test_constants_of_products_are_in_the_intercept(encoding):
    """Products of levels add up to 1, which the look does not tell from the intercept."""
    rare = TABLE.assign(ward=np.where(TABLE["diabetes"], TABLE["ward"], "surgery"), sex="f")
    rare.loc[::2, "sex"] = "m"
    both = [
        CategoricalColumn("ward", WARDS, encoding),
        CategoricalColumn("sex", ["f", "m"], encoding),
    ]
    schema = TableSchema(
        both, LabelColumn("died", [0, 1]), interactions=[("ward", "sex")], others="ignore"
    )
    fit = skdp.ObjectivePerturbationLogisticRegression(epsilon=1.0, random_state=3)
    found = PrivateInference(**EXACT).evaluate(schema.pipeline(fit).fit(rare), rare)
    share = rare.groupby(["ward", "sex"])["died"].mean().loc[("geriatrics", "f")]
    table = found.table(reference={"ward": "geriatrics"})
    assert "ward geriatrics, sex f" in table.intercept_at
    assert table["coefficient"][-1] == pytest.approx(np.log(share / (1.0 - share)), abs=0.02)


@pytest.mark.parametrize(
    ("coef", "terms", "words"),
    [
        (["a"], {}, "coef must be"),
        ([1.0], {"classes": [1, 0]}, "in their order"),
        ([1.0], {"classes": ["yes", "no"]}, "in their order"),
        ([1.0], {"classes": [1, 1]}, "in their order"),
        ([1.0], {"classes": ["no", 1]}, "of one type"),
        ([1.0, 2.0], {"feature_names": ["age"]}, "feature_names must be 2"),
    ],
)
def test_published_coefficients_are_read_as_they_are_meant_or_refused(coef, terms, words):
    with pytest.raises(ValueError, match=words):
        PublicWeights(coef, **terms)


ROWS = RNG.uniform(-0.5, 0.5, (N, 2))
LABELS = (RNG.random(N) < expit(3.0 * ROWS[:, 0])).astype(int)
WEIGHTS = PublicWeights([3.0, 0.0])
LOOK = PrivateInference(**EXACT, data_norm=1.0)


@pytest.mark.parametrize("reference", [1, "0", "no"])
def test_two_classes_have_one_reference(reference):
    look = PrivateInference(**EXACT, data_norm=1.0, reference=reference)
    with pytest.raises(ValueError, match="reference must be None or 0"):
        look.evaluate(WEIGHTS, ROWS, LABELS)


@pytest.mark.parametrize(
    ("model", "words"),
    [(ROWS, "comes before X and y"), ("model.pkl", "fitted model"), (PublicWeights, "the class")],
    ids=["table", "path", "class"],
)
def test_what_is_no_model_is_refused(model, words):
    with pytest.raises(TypeError, match=words):
        LOOK.evaluate(model, ROWS, LABELS)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_missing_labels_are_refused_without_warnings():
    with pytest.raises(ValueError, match="NaN"):
        LOOK.evaluate(WEIGHTS, ROWS, np.where(LABELS, np.nan, 0.0))


def test_longer_rows_and_units_behind_steps_are_stated(result):
    def words(found):
        return " ".join(repr(found).split())

    look = PrivateInference(**EXACT, data_norm=0.1)
    assert "Rows longer than 0.1 count less" in words(look.evaluate(WEIGHTS, ROWS, LABELS))
    model = make_pipeline(FrozenEstimator(StandardScaler().fit(ROWS[:9])), LogisticRegression())
    found = LOOK.evaluate(model.fit(ROWS[:99], LABELS[:99]), ROWS, LABELS)
    assert "Columns are those behind StandardScaler, in their units" in words(found)
    assert "longer" not in words(result)


def test_long_labels_keep_the_width_and_brackets_are_no_options_of_latex():
    wards = [
        f"[{letter}] a ward with a very long name, {'third floor, ' * 9}{letter}" for letter in "AB"
    ]
    table = TABLE.assign(ward=np.where(TABLE["age"] > 50, *wards))
    schema = TableSchema(
        [CategoricalColumn("ward", wards)], LabelColumn("died", [0, 1]), others="ignore"
    )
    fit = skdp.ObjectivePerturbationLogisticRegression(epsilon=50.0)
    found = PrivateInference(**EXACT).evaluate(schema.pipeline(fit).fit(table), table).table()
    assert max(map(len, repr(found).splitlines())) <= 100
    assert "ward=[B] a ward" in repr(found)  # both ends of a label stay
    assert "third floor, A" in repr(found)
    assert "[" not in found.to_latex().replace("{[}", "")


@pytest.mark.parametrize(("low", "high"), [(0.05, 1e18), (1e10, 1e12), (1e-12, 1e-10)])
def test_axes_of_extreme_ratios_have_ticks_over_their_length(low, high):
    ticks = _ticks_of_ratios(low, high)
    assert 3 <= len(ticks) <= 8
    assert np.log10(high / ticks[-1]) < 0.3 * np.log10(high / low)
