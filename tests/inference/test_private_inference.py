"""One paid look at fitted models: what it reads, what it refuses, what it charges and returns."""

import json
import math
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import expit
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier
from support import ESTIMATORS, Untouchable

import skdp
from skdp.accounting.numerics import gaussian_profile
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.inference import PrivateInference, PublicWeights
from skdp.inference._release import Look
from skdp.mechanisms import record_releases
from skdp.metrics import PrivateEvaluation
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    BoundedScaler,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    PrivacyUnit,
    TableSchema,
)
from skdp.reporting import privacy_statement
from skdp.testing import check_private_estimator
from skdp.testing.replay import differences, fit_both

N = 3000
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (N, 3))
X[RNG.random((N, 3)) < 0.2] = 0.0
Y = (RNG.random(N) < expit(0.4 + X @ [2.0, -1.0, 0.0])).astype(int)
IDS = RNG.integers(0, 800, N)
WEIGHTS = PublicWeights([2.0, -1.0, 0.0], 0.4)
LOOK = PrivateInference(data_norm=1.0)
EXACT = {"epsilon": 1e6, "delta": 0.5, "data_norm": 1.0}


def exact(model, *table, look=LOOK, **given):
    """Return the exact vector of a look's first stage; the noise is not used."""
    with record_releases() as trace:
        clone(look).evaluate(model, *table, **given)
    return trace.releases[0].value


def refitted(C=np.inf):
    return LogisticRegression(C=C, tol=1e-10, max_iter=1000).fit(X, Y)


@pytest.mark.parametrize("covariance", ["model", "sandwich"])
def test_without_noise_and_prior_estimates_are_those_without_privacy(covariance):
    best = refitted()
    terms = EXACT | {"prior_sd": 1e3, "covariance": covariance, "adjacency": "add-remove"}
    table = PrivateInference(**terms).evaluate(best, X, Y).table()
    wanted = np.append(best.coef_, best.intercept_)
    np.testing.assert_allclose(table["coefficient"], wanted, atol=2e-3)
    rows = np.column_stack([X, np.ones(N)])
    p = best.predict_proba(X)[:, 1]
    inverse = np.linalg.inv((rows.T * (p * (1 - p))) @ rows)
    meat = (rows.T * (Y - p) ** 2) @ rows
    variance = inverse if covariance == "model" else inverse @ meat @ inverse
    np.testing.assert_allclose(
        table["high"] - table["low"], 2 * 1.96 * np.sqrt(np.diag(variance)), rtol=0.01
    )
    np.testing.assert_allclose(np.exp(table["low"]), table["odds_low"])
    assert list(table["name"]) == ["x0", "x1", "x2", "(intercept)"]
    assert table["p_value"][0] < 1e-6 and 0.0 < table["p_value"][2] <= 1.0
    assert (table["prior_share"] < 1e-3).all()


def test_one_step_corrects_weights_that_are_off():
    table = PrivateInference(**EXACT, prior_sd=1e3).evaluate(WEIGHTS, X, Y).table()
    np.testing.assert_allclose(table["coefficient"], np.append(*map(np.ravel, (
        refitted().coef_, refitted().intercept_
    ))), atol=0.02)  # fmt: skip


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_linear_estimators(kind):
    """As they come, of the schema, frozen, and chosen in a search."""
    model = kind(epsilon=8.0, data_norm=1.0, classes=[0, 1]).fit(X, Y)
    result = PrivateInference(epsilon=8.0).evaluate(model, X, Y)
    table = result.table()
    assert table["low"][0] < 2.5 and table["high"][0] > 1.2 and 1.0 < table["coefficient"][0] < 3.0
    value = exact(model, X, Y)
    np.testing.assert_array_equal(value, exact(FrozenEstimator(model), X, Y))
    np.testing.assert_array_equal(value, exact(pickle.loads(pickle.dumps(model)), X, Y))
    published = PublicWeights(model.coef_, float(model.intercept_[0]))
    np.testing.assert_allclose(value, exact(published, X, Y), rtol=1e-12)


def test_models_of_searches_and_pipelines():
    search = PrivateGridSearchCV(
        skdp.OperaLogisticRegression(classes=[0, 1], data_norm=1.0), {"alpha": [0.1, 1.0]}
    ).fit(X, Y)
    np.testing.assert_array_equal(exact(search, X, Y), exact(search.best_estimator_, X, Y))
    scaled = make_pipeline(BoundedScaler(-0.5, 0.5), skdp.OperaSVC(data_norm=2.0, classes=[0, 1]))
    scaled.fit(X, Y)
    rows = scaled[:-1].transform(X)
    for model in (scaled, make_pipeline("passthrough", FrozenEstimator(scaled))):
        look = PrivateInference(data_norm=2.0)
        found = exact(model, X, Y, look=look)
        np.testing.assert_array_equal(found, exact(scaled[-1], rows, Y, look=look))


def test_longer_rows_count_less_and_do_not_move_the_estimates():
    """A schema's look has the norm of usual rows; estimates are those of complete rows."""
    linear = skdp.OperaLogisticRegression(data_norm=2.0, classes=[0, 1])
    model = make_pipeline(BoundedScaler(-0.5, 0.5), linear).fit(X, Y)
    bound = model[-1]._row_bound
    usual = PrivateInference(epsilon=1.0).evaluate(model, X, Y).part.data_norm
    assert usual < bound
    for epsilon, norm in ((9.0, usual), (1e3, bound)):
        found = PrivateInference(epsilon=epsilon).evaluate(model, X, Y).part.data_norm
        assert found == pytest.approx(norm)
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(40_000, 2))
    labels = (rng.random(len(rows)) < 1.0 / (1.0 + np.exp(-rows @ [1.5, -0.5]))).astype(int)
    for norm in (0.5, 8.0):  # nearly all rows are longer, and none
        look = PrivateInference(epsilon=1e6, delta=0.5, data_norm=norm, prior_sd=1e3)
        table = look.evaluate(PublicWeights([1.2, -0.3]), rows, labels).table()
        errors = (table["coefficient"] - [1.5, -0.5, 0.0]) / table["std_error"]
        assert np.abs(errors).max() < 5.0


def test_the_prior_is_in_half_ranges_of_columns():
    """Known behind a schema or a scaler, and else an equal share of the bound."""
    scaled = make_pipeline(BoundedScaler(-0.5, 0.5), skdp.OperaSVC(data_norm=2.0)).fit(X, Y)
    of_scaler = PrivateInference(prior_sd=3.0).evaluate(scaled, X, Y)
    half = 1.0 / math.sqrt(3.0)  # rows have norm 1 at most
    deviations = of_scaler.part.contrasts.diagonal() * of_scaler.prior_sd
    np.testing.assert_allclose(deviations, [3.0 / half] * 3 + [3.0])
    plain = PrivateInference(prior_sd=3.0, data_norm=2.0).evaluate(scaled[-1], X, Y)
    deviations = plain.part.contrasts.diagonal() * plain.prior_sd
    np.testing.assert_allclose(deviations, [3.0 * math.sqrt(3.0) / 2.0] * 3 + [3.0])


SCHEMA = TableSchema(
    [NumericColumn("age", 0, 100, unit="years"), CategoricalColumn("ward", ["A", "B", "C"])],
    label=LabelColumn("died", ["no", "yes"]),
    unit=PrivacyUnit("patient", column="id"),
)


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame({
        "age": 50 + 100 * X[:, 0],
        "ward": np.array(["A", "B", "C"])[RNG.integers(0, 3, N)],
        "died": np.array(["no", "yes"])[Y],
        "id": IDS,
    })  # fmt: skip


@pytest.fixture(scope="module")
def of_schema(frame):
    private = skdp.ObjectivePerturbationLogisticRegression(epsilon=8.0)
    return SCHEMA.pipeline(private, encoding="auto").fit(frame)


def test_a_schema_gives_label_ids_and_names(frame, of_schema):
    result = PrivateInference(epsilon=8.0).evaluate(of_schema, frame)
    assert result.privacy_spent_.unit == "group"
    table = result.to_frame()
    assert list(table["name"])[-4:] == ["ward=A", "ward=B", "ward=C", "(intercept)"]
    columns = "coefficient low high odds_ratio odds_low odds_high p_value prior_share".split()
    assert set(columns) <= set(table.columns)
    parts = SCHEMA.split(frame, groups=True)
    given = {"groups": parts[2], "look": PrivateInference()}
    np.testing.assert_array_equal(
        exact(of_schema, *parts[:2], **given), exact(of_schema, frame, look=PrivateInference())
    )
    assert "yes" in repr(result) and "<table>" in result._repr_html_()
    json.loads(result.to_json())


def mapped(tmp_path, table):
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
    np.save(path, table)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("covariance", ["model", "sandwich"])
@pytest.mark.parametrize("groups", [None, IDS], ids=["rows", "units"])
def test_every_container_has_the_sums_of_an_array(covariance, groups, tmp_path, monkeypatch):
    monkeypatch.setattr("skdp.tables.row_sources.BLOCK_BYTES", 8 * 3 * 500)
    monkeypatch.setattr("skdp.tables.row_sources.FEWEST_ROWS", 1)
    monkeypatch.setattr("skdp.tables.row_sources.WHOLE_BYTES", 0)
    da = pytest.importorskip("dask.array", reason="needs dask")
    look = PrivateInference(data_norm=0.5, covariance=covariance, adjacency="add-remove")
    run = partial(exact, WEIGHTS, look=look, groups=groups)
    wanted = run(X, Y)
    csr = sparse.csr_matrix(X)
    stored = type(csr)(
        tuple(mapped(tmp_path, part) for part in (csr.data, csr.indices, csr.indptr)),
        shape=csr.shape,
    )
    lazy = da.from_array(X, chunks=(701, 2))
    tables = [X.tolist(), pd.DataFrame(X), csr, csr.tocsc(), mapped(tmp_path, X), stored, lazy]
    for table in tables:
        np.testing.assert_allclose(run(table, Y), wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run(X.astype(np.float32), Y), wanted, atol=1e-2)
    labels = da.from_array(Y, chunks=500)
    np.testing.assert_allclose(run(lazy, labels), wanted, rtol=1e-9, atol=1e-9)


def test_tables_of_schemas_have_the_sums_of_a_frame(frame, of_schema, tmp_path):
    dd = pytest.importorskip("dask.dataframe", reason="needs dask's frames")
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    from skdp.data import open_parquet

    frame.to_parquet(tmp_path / "table.parquet")
    wanted = exact(of_schema, frame, look=PrivateInference())
    for table in (open_parquet(tmp_path / "table.parquet"), dd.from_pandas(frame, npartitions=4)):
        found = exact(of_schema, table, look=PrivateInference())
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "steps",
    [
        StandardScaler().fit(RNG.normal(size=(50, 3))),
        PolynomialFeatures(2).fit(X[:9]),
        make_column_transformer(
            (OneHotEncoder(categories=[[0.0, 1.0]], handle_unknown="ignore"), [0]),
            ("passthrough", slice(1, 3)),
            sparse_threshold=1.0,
        ).fit(X[:9]),
    ],
    ids=["scaler", "products", "sparse"],
)
def test_steps_that_learned_from_other_rows(steps):
    encoded = steps.transform(X)
    wide = steps.transform(X[:2]).shape[1]
    model = PublicWeights(np.linspace(-1, 1, wide), 0.2)
    piped = make_pipeline(FrozenEstimator(steps), model_of(model))
    look = PrivateInference(data_norm=2.0)
    np.testing.assert_array_equal(
        exact(piped, X, Y, look=look), exact(model, encoded, Y, look=look)
    )


def model_of(weights):
    """Return a fitted classifier of scikit-learn with given weights."""
    model = LogisticRegression()
    for name in ("coef_", "intercept_", "classes_", "n_features_in_"):
        setattr(model, name, getattr(weights, name))
    return model


def test_class_weights_are_taken_back():
    weights = {0: 0.5, 1: 4.0}
    for kind in (skdp.OperaLogisticRegression, skdp.GrpuaSVC):
        model = kind(data_norm=1.0, class_weight=weights, classes=[0, 1]).fit(X, Y)
        moved = PublicWeights(model.coef_, float(model.intercept_[0]) - math.log(8.0))
        np.testing.assert_allclose(exact(model, X, Y), exact(moved, X, Y), rtol=1e-12)
    shares = {0: 0.2, 1: 0.8}
    model = skdp.OperaLogisticRegression(
        data_norm=1.0, class_weight="balanced", prevalence=shares
    ).fit(X, Y)
    moved = PublicWeights(model.coef_, float(model.intercept_[0]) - math.log(0.25))
    np.testing.assert_allclose(exact(model, X, Y), exact(moved, X, Y), rtol=1e-12)
    public = LogisticRegression(class_weight={1: 3.0}).fit(X, Y)
    moved = PublicWeights(public.coef_, float(public.intercept_[0]) - math.log(3.0))
    np.testing.assert_allclose(exact(public, X, Y), exact(moved, X, Y), rtol=1e-12)


COUNTED = skdp.OperaSVC(data_norm=1.0, class_weight="balanced", prevalence="private").fit(X, Y)
THREE = skdp.OperaSVC(data_norm=1.0).fit(X, Y + (X[:, 2] > 0.4))
MEAN = FunctionTransformer(lambda rows: rows - np.mean(rows, axis=0))
FLAT = skdp.OperaSVC(data_norm=1.0, fit_intercept=False, class_weight={0: 1.0, 1: 2.0}).fit(X, Y)


class Mixing(TransformerMixin, BaseEstimator):
    """A step whose output for a row depends on others."""

    def fit(self, rows, y=None):
        self.fitted_ = True
        return self

    def transform(self, rows):
        return rows - np.mean(rows, axis=0)


SEARCHED = GridSearchCV(make_pipeline(Mixing(), LogisticRegression()), {}, cv=2).fit(X, Y)


class Odd(LogisticRegression):
    """A model with other scores than those of its coefficients."""

    def decision_function(self, rows):
        return super().decision_function(rows) ** 3


@pytest.mark.parametrize(
    ("model", "terms", "words"),
    [
        (THREE, {}, "declare as reference="),
        (DecisionTreeClassifier().fit(X, Y), {}, "no coef_"),
        (skdp.GrpuaMLPClassifier(data_norm=1.0, max_iter=2).fit(X, Y), {}, "no coef_"),
        (Odd().fit(X, Y), {}, "not coef_ times"),
        (COUNTED, {}, "counted in the fit"),
        (LogisticRegression(class_weight="balanced").fit(X, Y), {}, "counted in the fit"),
        (FLAT, {}, "no intercept"),
        (make_pipeline(MEAN, model_of(WEIGHTS)), {}, "depends on other rows"),
        (FrozenEstimator(make_pipeline(MEAN, model_of(WEIGHTS))), {}, "depends on other rows"),
        (SEARCHED, {}, "depends on other rows"),
        (PublicWeights([1.0, 2.0]), {}, "X must have the 2 columns"),
        (PublicWeights([1e120, 2.0, 0.0]), {}, "weights of .* must be finite"),
        (WEIGHTS, {"data_norm": None}, "declare data_norm"),
        (WEIGHTS, {"data_norm": -1.0}, "data_norm must be"),
        (WEIGHTS, {"prior_sd": 0.0}, "prior_sd must be"),
        (WEIGHTS, {"covariance": "robust"}, "covariance must be one of"),
        (THREE, {"reference": 7}, "declare as reference="),
        (WEIGHTS, {"share": 1.0}, "share must be"),
        (WEIGHTS, {"epsilon": 0.0}, "epsilon must be"),
    ],
)
def test_what_is_wrong_is_refused_before_the_charge(model, terms, words):
    look = PrivateInference(accountant=Untouchable(), **({"data_norm": 1.0} | terms))
    with pytest.raises((ValueError, TypeError), match=words):
        look.evaluate(model, X, Y)


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        (np.where(X == X[5, 0], np.nan, X), Y, "Input X contains NaN"),
        (X, Y + 1, "labels that are not in the classes of the model"),
        (X, Y[:-1], "one entry for each row"),
        (X[:0], Y[:0], "y is empty"),
        (X, None, "requires y"),
        (X.astype("M8[D]"), Y, "holds times"),
    ],
)
def test_wrong_tables_are_refused_before_the_charge(rows, labels, words):
    look = PrivateInference(accountant=Untouchable(), data_norm=1.0)
    with pytest.raises((ValueError, TypeError), match=words) as raised:
        look.evaluate(WEIGHTS, rows, labels)
    assert str(X[5, 0]) not in str(raised.value)


@pytest.mark.parametrize(
    ("wrong", "given"), [([[1.0], []], {}), ([np.nan], {}), ([1.0], {"classes": [0, 1, 2]})]
)
def test_wrong_weights_are_refused(wrong, given):
    with pytest.raises((ValueError, TypeError)):
        PublicWeights(wrong, **given)


def test_too_many_columns_or_units_are_refused_before_the_charge(monkeypatch):
    look = PrivateInference(
        accountant=Untouchable(), data_norm=1.0, covariance="sandwich", adjacency="add-remove"
    )
    monkeypatch.setattr("skdp.inference._release._MOST_BYTES", 8 * 4 * 700)
    with pytest.raises(ValueError, match="units in memory"):
        look.evaluate(WEIGHTS, X, Y, groups=IDS)
    monkeypatch.setattr("skdp.inference._release.MOST_COLUMNS", 3)
    with pytest.raises(ValueError, match="at most 3 columns"):
        look.evaluate(WEIGHTS, X, Y)


PRIVATE = X


class Telling(BoundedScaler):
    """A step that fails on private rows, and quotes them."""

    def transform(self, X):
        if np.isin(X[:, 0], PRIVATE[:, 0]).any():
            raise ValueError(f"the first row is {X[0]}")
        return super().transform(X)


def test_what_a_step_says_of_rows_is_withheld_and_charged():
    step = Telling(-0.5, 0.5).fit(X)
    budget = BudgetAccountant(3.0, 1e-5)
    look = PrivateInference(data_norm=2.0, accountant=budget)
    with pytest.raises(ValueError, match="charge stays") as raised:
        look.evaluate(make_pipeline(step, model_of(WEIGHTS)), X, Y)
    assert raised.value.__context__ is None and len(budget.entries()) == 1


def test_the_charge_is_that_of_the_plan_and_stays_in_the_ledger():
    budget = BudgetAccountant(2.5, 1e-5)
    look = PrivateInference(epsilon=1.0, data_norm=1.0, accountant=budget)
    fit = skdp.OperaLogisticRegression(epsilon=1.0, data_norm=1.0, accountant=budget)
    plans = [fit.privacy_plan(N, 3), look.privacy_plan(N)]
    budget.check(plans)
    with pytest.raises(BudgetExceededError):
        budget.check(plans * 9)
    model = fit.fit(X, Y)
    result = look.evaluate(model, X, Y)
    assert [entry["label"] for entry in budget.entries()] == [
        "OperaLogisticRegression.fit",
        "PrivateInference.evaluate",
    ]
    assert result.privacy_spent_.event == plans[1].event
    assert tuple(result.privacy_spent_) == tuple(plans[1]) == (1.0, 1e-6)
    statement = str(privacy_statement(result))
    for text in ("data_norm=1", "L2 sensitivity 2", "docs/proofs/inference.md"):
        assert text in " ".join(statement.split())
    with pytest.raises(BudgetExceededError):
        for _ in range(20):
            look.evaluate(model, X, Y)


def test_units_count_as_one_row_each():
    shares = 1.0 / np.bincount(IDS)[IDS]
    with record_releases() as trace:
        result = clone(LOOK).evaluate(WEIGHTS, X, Y, groups=IDS)
    release = trace.releases[0]
    p = expit(X @ WEIGHTS.coef_[0] + 0.4)
    total = float(np.sum(shares * p * (1.0 - p)))
    # On the diagonal of the constant column.
    added = result.part.contrasts[-1, -1] ** 2 * total * 4.96
    assert release.value[-1] == pytest.approx(added, rel=1e-9)
    assert release.sensitivity == pytest.approx(2.0, rel=1e-9)
    spent = result.privacy_spent_
    assert spent.unit == "group" and spent.event == LOOK.privacy_plan(800, groups=True).event
    assert any("together as one row" in text for text in spent.assumptions)


def test_rows_of_the_fit_need_no_warning_but_leaking_steps_do(recwarn):
    model = skdp.OperaLogisticRegression(data_norm=1.0).fit(X, Y)
    recwarn.clear()
    LOOK.evaluate(model, X, Y)
    assert not [each for each in recwarn if "flatter" in str(each.message)]
    PrivateEvaluation().evaluate(model, X, Y)
    assert [each for each in recwarn if "flatter" in str(each.message)]


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e8, 1e40, 1e98])
def test_weights_of_any_size_are_looked_at(size):
    """Estimates are finite, and the second stage does not raise."""
    for sign in (-1.0, 1.0):
        far = PublicWeights(sign * size * np.array([1.0, -1.0, 0.5]), -sign * size)
        table = PrivateInference(data_norm=1.0).evaluate(far, X, Y).table()
        assert np.isfinite(table["low"]).all() and (table["low"] <= table["high"]).all()


def test_a_seed_is_tied_to_rows_and_weights_and_reported():
    look = PrivateInference(data_norm=1.0, random_state=3)

    def noise(model, table, labels, **terms):
        with record_releases() as trace:
            found = clone(look).set_params(**terms).evaluate(model, table, labels)
        assert found.privacy_spent_.seeded
        release = trace.releases[0]
        return (release.output - release.value) / release.sigma

    first = noise(WEIGHTS, X, Y)
    np.testing.assert_allclose(noise(WEIGHTS, X, Y), first, atol=1e-9)
    other = X.copy()
    other[7, 1] += 1e-9
    close = PublicWeights([2.0, -1.0, 1e-9], 0.4)
    flipped = np.where(np.arange(N) == 3, 1 - Y, Y)
    for again in (
        noise(close, X, Y),
        noise(WEIGHTS, other, Y),
        noise(WEIGHTS, X, flipped),
        noise(WEIGHTS, X, Y, data_norm=1.5),
        noise(WEIGHTS, X, Y, epsilon=1.5),
        noise(WEIGHTS, X, Y, adjacency="add-remove"),
    ):
        assert np.abs(again - first).min() > 1e-6


class AsEstimator(PrivateInference):
    """The look as a fit, for checks of estimators."""

    def fit(self, X, y, groups=None):
        model = PublicWeights(np.linspace(-2.0, 3.0, X.shape[1]))
        model.fit_intercept = False  # a row of zeros is as none
        self.result_ = self.evaluate(model, X, y, groups=groups)
        self.table_ = self.result_.table()
        self.privacy_spent_ = self.result_.privacy_spent_
        return self

    _method = ".fit"


def test_it_follows_the_rules_of_private_estimators():
    """Charges, replays on neighbours, noise, all that can be reached, seeds, errors."""
    results = check_private_estimator(AsEstimator(data_norm=1.0))
    assert {result["status"] for result in results} <= {"passed", "skipped"}


@pytest.mark.parametrize("hostile", [np.zeros(3), np.array([1e300, -1e9, 1e-300]), -X[5]])
@pytest.mark.parametrize("terms", [{}, {"covariance": "sandwich", "adjacency": "add-remove"}])
@pytest.mark.parametrize("groups", [None, IDS], ids=["rows", "units"])
def test_nothing_that_can_be_reached_tells_neighbours_apart(hostile, terms, groups):
    other, labels = X.copy(), Y.copy()
    other[7], labels[7] = hostile, 1 - Y[7]
    beside = () if groups is None else (groups,)
    fitted = fit_both(
        AsEstimator(data_norm=1.0, **terms), (X, Y, *beside), (other, labels, *beside)
    )
    assert differences(*fitted) == []


THREE_LABELS = np.where(X[:, 2] > 0.2, 2, Y)


def three(kind, **terms):
    return kind(epsilon=50.0, data_norm=1.0, classes=[0, 1, 2], **terms).fit(X, THREE_LABELS)


@pytest.mark.parametrize("reference", [0, 2, "rest"])
def test_classes_are_compared_as_declared(reference):
    """Each pair of classes on its rows, and each class with the others on all rows."""
    kinds = {"rest": skdp.ObjectivePerturbationLogisticRegression}
    model = three(kinds.get(reference, skdp.GrpuaLogisticRegression))
    look = PrivateInference(reference=reference, adjacency="add-remove", data_norm=1.0)
    with record_releases() as trace:
        result = clone(look).evaluate(model, X, THREE_LABELS)
    release = trace.releases[0]
    single = PrivateInference(adjacency="add-remove", data_norm=1.0)
    wanted = []
    for label in [label for label in (0, 1, 2) if label != reference]:
        coef, intercept = model.coef_[label], model.intercept_[label]
        kept = np.full(N, True)
        if reference != "rest":
            coef, intercept = coef - model.coef_[reference], intercept - model.intercept_[reference]
            kept = np.isin(THREE_LABELS, [label, reference])
        pair = PublicWeights(coef, float(intercept))
        labels = (THREE_LABELS[kept] == label).astype(int)
        wanted.append(exact(pair, X[kept], labels, look=single))
    np.testing.assert_allclose(release.value, np.concatenate(wanted), rtol=1e-9, atol=1e-9)
    assert release.sensitivity == pytest.approx(math.sqrt(len(wanted)), rel=1e-12)
    assert result.privacy_spent_.event == look.privacy_plan(N).event
    table = result.to_frame()
    assert len(table) == 4 * len(wanted) and table.columns[0] == "class"
    others = [label for label in (0, 1, 2) if label != reference]
    assert table["class"].tolist() == np.repeat(others, 4).tolist() and list(result) == others
    against = None if reference == "rest" else reference
    assert [one.part.against for one in result.values()] == [against] * len(others)
    json.loads(result.to_json())


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_several_classes_are_as_far_apart_as_declared(adjacency):
    """A row that all comparisons get wrong moves each of them by as much as a single one."""
    model = three(skdp.OperaSVC)
    model.coef_ = np.array([[-1e6, 0.0, 0.0], [1e6, 0.0, 0.0], [1e6, 0.0, 0.0]])
    model.intercept_ = np.zeros(3)
    look = PrivateInference(reference="rest", adjacency=adjacency, data_norm=1.0)
    table, labels = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.array([0, 1])
    one = exact(model, table, labels, look=look)
    other = exact(model, table[1:], labels[1:], look=look)
    with record_releases() as trace:
        clone(look).evaluate(model, table, labels)
    most = trace.releases[0].sensitivity / (1.0 if adjacency == "add-remove" else 2.0)
    assert 0.999 * most < np.linalg.norm(one - other) <= most


def test_class_weights_of_several_classes():
    weights = {0: 1.0, 1: 2.0, 2: 8.0}
    model = three(skdp.GrpuaLogisticRegression, class_weight=weights)
    look = PrivateInference(reference=0, data_norm=1.0)
    moved = three(skdp.GrpuaLogisticRegression)
    moved.coef_, moved.intercept_ = model.coef_, model.intercept_ - np.log([1.0, 2.0, 8.0])
    np.testing.assert_allclose(
        exact(model, X, THREE_LABELS, look=look), exact(moved, X, THREE_LABELS, look=look)
    )
    with pytest.raises(ValueError, match="not supported for a model with class weights"):
        PrivateInference(reference="rest", accountant=Untouchable()).evaluate(
            model, X, THREE_LABELS
        )


def effects_of(result, reference=None):
    """Return estimates and intervals of effects in the units of columns, by name."""
    part, law = result.part, result.posterior
    found, row, _ = part.meaning.effects(reference or {}, range(part.coef.size))
    functions = np.array([np.append(effect.weights, 0.0) for _, effect in found])
    rows = np.vstack([functions, np.append(row, 1.0)]) @ part.contrasts
    low, high = law.quantiles(rows, [0.025, 0.975]).T
    names = [*(effect.name for _, effect in found), "(intercept)"]
    return dict(zip(names, np.column_stack([rows @ law.coefficients.mean, low, high]), strict=True))


def test_levels_are_compared_with_their_reference(frame):
    """Directions in which rows do not vary are left out, and cost nothing."""
    private = skdp.ObjectivePerturbationLogisticRegression(epsilon=100.0)
    look = PrivateInference(epsilon=1e6, delta=0.5, prior_sd=1e3)
    result = look.evaluate(SCHEMA.pipeline(private).fit(frame), frame)
    assert result.part.basis.shape == (5, 4) and result.look.theta.shape == (4,)
    assert result.smallest_eigenvalue > result.noise_edge
    value = {name: each[0] for name, each in effects_of(result).items()}
    # As without privacy, by units: each patient's rows weigh 1 together.
    shares = 1.0 / np.bincount(IDS)[IDS]
    levels = [(frame["ward"] == level).to_numpy(float) for level in "BC"]
    design = np.column_stack([frame["age"] - 50.0, *levels])
    best = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(design, Y, shares)
    names = ("age", "ward=B", "ward=C")
    np.testing.assert_allclose([value[k] for k in names], best.coef_[0], atol=0.01)
    assert value["(intercept)"] == pytest.approx(best.intercept_[0], abs=0.01)


def test_weights_along_constant_directions_move_to_the_intercept(frame):
    """Noise of the fit may give all levels of a category the same weight."""
    model = SCHEMA.pipeline(skdp.ObjectivePerturbationLogisticRegression(epsilon=8.0)).fit(frame)
    look = PrivateInference(epsilon=1e6, delta=0.5, prior_sd=1e3)
    before = effects_of(look.evaluate(model, frame))
    names = list(model[:-1].get_feature_names_out())
    places = [place for place, name in enumerate(names) if name.startswith("ward")]
    model[-1].coef_ = model[-1].coef_.copy()
    model[-1].coef_[0, places] += 0.7
    after = effects_of(look.evaluate(model, frame))
    for name, wanted in before.items():
        np.testing.assert_allclose(after[name], wanted, atol=1e-3)


class TwoLevels:
    """Meaning of the indicators of two levels, which add up to 1."""

    n_features, half_ranges = 2, np.full(2, 0.5)

    def basis(self, kept, intercept):
        return sparse.csc_matrix(np.array([[1.0], [-1.0]]) / math.sqrt(2.0))

    def effects(self, reference, kept):
        return [], np.array([1.0, 0.0]), ""


def test_scores_of_rows_stay_in_the_basis():
    part = replace(
        PrivateInference(data_norm=1.0)._about(PublicWeights([0.3, 1.7], 0.2))[0],
        meaning=TwoLevels(),
    )
    size = part.theta.size
    look = Look(part.theta, np.zeros(size), 1.0, np.eye(size), 1.0)
    coef = part.contrasts @ part.reduced(look).theta
    levels = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    np.testing.assert_allclose(levels @ coef, [0.5, 1.9], rtol=1e-9)


def test_all_stages_are_combined_and_cost_one_look():
    """A fit that is far off is corrected by the first stage, and nothing of it is lost."""
    off = PublicWeights([0.3, -0.1, 0.0], 0.0)
    with record_releases() as trace:
        result = PrivateInference(**EXACT, prior_sd=1e3, adjacency="add-remove").evaluate(off, X, Y)
    mu = [release.sensitivity / release.sigma for release in trace.releases]
    total = 1.0 / result.privacy_spent_.event.noise_multiplier
    assert math.hypot(*mu) <= total and math.hypot(*mu) == pytest.approx(total, rel=1e-9)
    np.testing.assert_allclose(np.square(mu) / total**2, [0.1, 0.2, 0.7], rtol=1e-9)
    noise = 1.0 / math.hypot(*(1.0 / release.sigma for release in trace.releases))
    assert result.look.score_noise >= noise * (1.0 - 1e-9)
    best = np.append(*map(np.ravel, (refitted().coef_, refitted().intercept_)))
    np.testing.assert_allclose(result.table()["coefficient"], best, atol=0.02)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_widths_are_expected_from_public_numbers(adjacency):
    """Twelve tables: each effect within 15 % in the median, of the declared prevalence."""
    schema = TableSchema(
        [NumericColumn("age", 0, 100), CategoricalColumn("ward", ["A", "B", "C"])],
        label=LabelColumn("died", [0, 1]),
    )
    private = skdp.ObjectivePerturbationLogisticRegression(epsilon=0.6, adjacency=adjacency)
    model, look = schema.pipeline(private), PrivateInference(epsilon=0.8, adjacency=adjacency)
    rng, found, n = np.random.default_rng(0), [], 6000
    for seed in range(12):
        rows = schema.sample_public(n, random_state=seed + 1)
        odds = -1.0 + 0.02 * (rows["age"] - 50) + 0.5 * (rows["ward"] == "C")
        rows["died"] = (rng.random(n) < expit(odds.to_numpy(float))).astype(int)
        effects = effects_of(look.evaluate(clone(model).fit(rows), rows))
        found.append([np.ptp(effects[name][1:]) for name in ("age", "ward=B", "ward=C")])
    expected = look.expected_widths(model, n, prevalence=0.32, auc=0.66)
    assert expected["name"].tolist() == ["age", "ward=B", "ward=C"]
    assert expected["step"].tolist() == ["+1", "against A", "against A"]
    np.testing.assert_allclose(np.median(found, axis=0), expected["width"], rtol=0.15)
    assert (expected["width_ratio"] > 1.0).all() and (expected["prior_share"] < 0.1).all()
    half = look.expected_widths(model, 4 * n, prevalence=0.32, auc=0.66)
    assert (half["width"] < 0.5 * expected["width"]).all()


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (LogisticRegression(), {}, "expected for schema.pipeline"),
        (skdp.OperaSVC(), {}, "expected for schema.pipeline"),
        (SCHEMA.pipeline(LogisticRegression()), {}, "expected for schema.pipeline"),
        (SCHEMA.pipeline(skdp.OperaSVC()), {"prevalence": 0.0}, "prevalence must be"),
        (SCHEMA.pipeline(skdp.OperaSVC()), {"auc": 1.0}, "auc must be"),
        (SCHEMA.pipeline(make_pipeline(skdp.preprocessing.DPPCA(2), skdp.OperaSVC())), {}, "sche"),
    ],
)
def test_what_no_widths_are_expected_for(model, given, words):
    with pytest.raises((TypeError, ValueError), match=words):
        LOOK.expected_widths(model, n=1000, **given)


def unclipped(**terms):
    terms = {"max_grad_norm": None, "calibrate": None, "epsilon": 2.0, "data_norm": 1.0} | terms
    fit = skdp.ObjectivePerturbationLogisticRegression(**terms)
    return Pipeline([("scale", BoundedScaler(-0.5, 0.5)), ("fit", fit)])


@pytest.mark.parametrize("terms", [{}, {"alpha": 10.0, "intercept_scaling": 0.5}])
def test_the_score_that_a_fit_has_released_is_a_reading_of_the_same_law(terms):
    """Its noise has the stated deviation; false alarms of the sum of squares are below 1e-7."""
    found = []
    for seed in range(30):
        rows = X[100 * seed : 100 * seed + 900] if seed < 20 else X[: 900 + seed].copy()
        labels = Y[100 * seed : 100 * seed + 900] if seed < 20 else Y[: 900 + seed]
        if terms:  # a score far from 0, in which a wrong scale shows
            labels = np.ones_like(labels)
        model = unclipped(classes=[0, 1], **terms).fit(rows, labels)
        with record_releases() as trace:
            result = PrivateInference(adjacency="add-remove").evaluate(model, rows, labels)
        reading = result.part.of_fit
        gap = reading.score - trace.releases[0].value[: reading.score.size]
        found.append(gap / reading.score_noise)
        precisions = [1.0 / release.sigma**2 for release in trace.releases]
        total = sum(precisions) + reading.score_noise**-2
        # Remainders add to the noise.
        assert total**-0.5 * (1.0 - 1e-9) <= result.look.score_noise < 3.0 * total**-0.5
    low, high = stats.chi2.ppf([1e-8, 1.0 - 1e-8], np.size(found))
    assert low < np.sum(np.square(found)) < high


def test_the_score_of_a_fit_is_used_only_where_it_is_one():
    def used(model, *table, groups=None, **terms):
        found = PrivateInference(**terms).evaluate(model, *table, groups=groups)
        return found.part.of_fit is not None

    model = unclipped().fit(X, Y)
    assert used(model, X, Y) and used(FrozenEstimator(model), X, Y)
    assert not used(model, X.copy(), Y) and not used(model, X, Y, groups=IDS)
    assert not used(model, X, Y, data_norm=1.5) and not used(model, X[:-1], Y[:-1])
    by_unit = unclipped().fit(X, Y, fit__groups=IDS)
    assert used(by_unit, X, Y, groups=IDS)
    wide = np.tile(X, 9)[:, :25]  # whose constant column is that of a fit
    assert not used(unclipped().fit(wide, Y), wide, Y, data_norm=1.5)
    for terms in (
        {"max_grad_norm": 0.5},
        {"calibrate": "private"},
        {"class_weight": {0: 1.0, 1: 2.0}},
        {"delta": 0.0},
        {"fit_intercept": False},
        {"unit_weighting": "random-row"},
        {"numerics": "discrete"},
    ):
        assert not used(unclipped(**terms).fit(X, Y), X, Y)
    for changed in ({"alpha": 0.5}, {"alpha": 1e-9}, {"epsilon": 1.9}, {"adjacency": "add-remove"}):
        model = unclipped().fit(X, Y)
        model[-1].set_params(**changed)
        assert not used(model, X, Y)
    bare = unclipped()[-1].fit(X, Y)  # which may have shortened rows
    assert not used(bare, X, Y)


JOINT = {
    "objective": skdp.ObjectivePerturbationLogisticRegression(data_norm=1.0),
    "opera": skdp.OperaSVC(data_norm=1.0),
    "full pass": skdp.DPSGDClassifier(data_norm=1.0, batch_size=N),
}


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", JOINT)
def test_fit_and_look_share_one_target(kind, adjacency):
    """Their composition meets it, and each has less noise than with half of the epsilon."""
    budget, estimator = BudgetAccountant(3.0, 1e-5, adjacency=adjacency), JOINT[kind]
    look = PrivateInference(1.0, adjacency=adjacency, accountant=budget)
    with record_releases() as trace:
        result = look.fit_evaluate(estimator, X, Y)
    model, spent = result.part.model, result.privacy_spent_
    fit, own = spent.event.events
    assert fit == model.privacy_spent_.event and tuple(spent) == (1.0, 1e-6)
    assert 0.999 < spent.epsilon_at(1e-6) <= 1.0 and spent.adjacency == adjacency
    assert [entry["label"] for entry in budget.entries()] == ["PrivateInference.fit_evaluate"]
    assert budget.entries()[0]["epsilon"] == 1.0
    mu = [each.sensitivity / each.sigma for each in trace.releases[-3:]]
    assert math.hypot(*mu) <= 1.0 / own.noise_multiplier
    assert math.hypot(*mu) == pytest.approx(1.0 / own.noise_multiplier, rel=1e-9)
    half = PrivateInference(0.5, adjacency=adjacency)
    assert own.noise_multiplier < 0.85 * half.privacy_plan(N).event.noise_multiplier
    share = 0.4 if kind == "objective" else 0.3
    wanted = gaussian_profile.mu(1.0, 1e-6) * math.sqrt(share)
    assert gaussian_profile.mu(model.privacy_spent_.epsilon, 1e-6) == pytest.approx(wanted)
    assert model.privacy_spent_.epsilon > 0.5
    assert model.accountant is None and estimator.epsilon == 1.0 and not hasattr(estimator, "coef_")
    text = str(privacy_statement(result.model_))
    assert "public weights" in " ".join(text.split()) and "model inside" not in text


def test_widths_of_a_shared_target_are_no_larger_than_of_halves():
    """In the mean of twelve tables; the deviation of a mean ratio is below 0.02."""
    found, estimator = [], skdp.ObjectivePerturbationLogisticRegression(data_norm=1.0)
    for start in range(0, N, 250):
        rows, labels = np.roll(X, start, axis=0)[:1000], np.roll(Y, start)[:1000]
        half = clone(estimator).set_params(epsilon=0.5).fit(rows, labels)
        tables = [
            PrivateInference(1.0).fit_evaluate(estimator, rows, labels).table(),
            PrivateInference(0.5).evaluate(half, rows, labels).table(),
        ]
        found.append([np.mean(table["high"] - table["low"]) for table in tables])
    joint, apart = np.mean(found, axis=0)
    assert joint < 0.95 * apart


def test_a_larger_share_is_for_the_fit():
    look = PrivateInference(1.0, share=0.9)
    result = look.fit_evaluate(skdp.OperaSVC(data_norm=1.0), X, Y)
    assert result.part.model.privacy_spent_.epsilon > 0.9
    assert result.privacy_spent_.event.events[1].noise_multiplier > 12.0


def test_what_is_fitted_and_looked_at(frame):
    """Pipelines of schemas and of steps, ids, several classes, regressors."""
    look = PrivateInference(8.0)
    spent = look.fit_evaluate(SCHEMA.pipeline(skdp.OperaSVC()), frame).privacy_spent_
    assert spent.unit == "group" and spent.mechanism.count("docs/proofs/inference.md") == 1
    piped = make_pipeline(BoundedScaler(-0.5, 0.5), skdp.OperaSVC())
    assert look.fit_evaluate(piped, X, Y, groups=IDS).privacy_spent_.unit == "group"
    three = PrivateInference(8.0, reference=0)
    result = three.fit_evaluate(JOINT["opera"], X, THREE_LABELS)
    assert list(result) == [1, 2]
    assert result.privacy_spent_.epsilon_at(1e-6) <= 8.0
    ridge = skdp.PrivateRidge(target_bounds=(-2.0, 2.0), data_norm=1.0)
    look = PrivateInference(8.0, error_sd=0.5, accountant=BudgetAccountant(9.0, 1e-5))
    assert look.fit_evaluate(ridge, X, X[:, 0] + Y).privacy_spent_.epsilon_at(1e-6) <= 8.0


@pytest.mark.parametrize(
    ("estimator", "labels", "words"),
    [
        (LogisticRegression(), Y, "no private step"),
        (GridSearchCV(skdp.OperaSVC(), {"alpha": [0.1, 1.0]}), Y, "Fit other models"),
        (PrivateGridSearchCV(skdp.OperaSVC(), {"alpha": [0.1, 1.0]}), Y, "Fit other models"),
        (skdp.DPSGDClassifier(noise_multiplier=1.0), Y, "Fit other models"),
        (skdp.GrpuaMLPClassifier(), Y, "Fit other models"),
        (make_pipeline(skdp.preprocessing.DPPCA(2), skdp.OperaSVC()), Y, "Fit other models"),
        (skdp.OperaSVC(), THREE_LABELS, "declare as reference="),
        (clone(COUNTED), Y, "prevalence={label: share}"),
        (skdp.PrivateRidge(target_bounds=(0.0, 1.0)), Y, "declare error_sd"),
        (skdp.OperaSVC(data_norm=-1.0), Y, "data_norm must be"),
        (skdp.OperaSVC(), None, "y"),
    ],
)
def test_what_cannot_be_planned_together_is_refused_before_the_charge(estimator, labels, words):
    with pytest.raises((ValueError, TypeError), match=words):
        PrivateInference(accountant=Untouchable()).fit_evaluate(estimator, X, labels)


def test_no_fit_runs_if_the_look_cannot_be_paid(monkeypatch):
    budget = BudgetAccountant(0.5, 1e-5)
    monkeypatch.setattr(skdp.OperaSVC, "_use_rows", None)
    with pytest.raises(BudgetExceededError):
        PrivateInference(1.0, accountant=budget).fit_evaluate(JOINT["opera"], X, Y)
    assert not budget.entries()


def test_several_classes_are_not_offered_a_second_look_at_a_model():
    far = three(skdp.OperaSVC)
    far.coef_ = far.coef_ + np.array([[9.0], [-9.0], [3.0]])
    result = PrivateInference(8.0, reference=0).evaluate(far, X, THREE_LABELS)
    advice = " ".join(text for one in result.values() for text in one.advice)
    assert "larger epsilon" in advice and "model_" not in advice
