"""What all private transformers share: charging, plans, seeds, inputs, pipelines."""

import json
import pickle
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from skdp import OperaLogisticRegression
from skdp.accounting import GDPAccountant
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.exceptions import PrivacyWarning
from skdp.preprocessing import (
    DPPCA,
    BoundedScaler,
    DPQuantileClipper,
    DPStandardScaler,
    RowNormClipper,
)
from skdp.reporting import PrivacySpent, privacy_statement

PRIVATE = {
    "scaler": DPStandardScaler(0.5, lower=-5.0, upper=5.0),
    "scaler of rows": DPStandardScaler(0.5, input_norm=3.0, n_groups=1),
    "quantiles": DPQuantileClipper(2.0, lower=-100.0, upper=100.0),
    "pca": DPPCA(2, 0.5, data_norm=3.0),
    "centred pca": DPPCA(2, 0.5, data_norm=3.0, center=True, whiten=True),
}


@pytest.fixture(params=PRIVATE, ids=lambda name: name.replace(" ", "-"))
def transformer(request):
    return clone(PRIVATE[request.param])


def table(n=2000, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


class Recorder:
    """A budget that notes charges, and can refuse them."""

    def __init__(self, refuses=False):
        self.charges = []
        self.refuses = refuses

    def reserve(self, event, **details):
        if self.refuses:
            raise BudgetExceededError("no")
        self.charges.append((event, details))

    def __deepcopy__(self, memo):
        return self


def learned(fitted):
    return {
        name: value
        for name, value in vars(fitted).items()
        if name.endswith("_") and isinstance(value, np.ndarray)
    }


def test_a_fit_is_one_charge(transformer):
    recorder = Recorder()
    fitted = transformer.set_params(accountant=recorder).fit(table())
    ((event, details),) = recorder.charges
    assert event == fitted.privacy_spent_.event
    assert (details["epsilon"], details["delta"]) == tuple(fitted.privacy_spent_)
    fitted.transform(table())
    assert len(recorder.charges) == 1


def test_a_refused_charge_releases_nothing(transformer):
    transformer.set_params(accountant=Recorder(refuses=True))
    with pytest.raises(BudgetExceededError):
        transformer.fit(table())
    assert not learned(transformer) and not hasattr(transformer, "privacy_spent_")


@pytest.mark.parametrize(
    "X", [np.array([[1.0, np.nan, 0.0]] * 9), np.array([[1.0, np.inf, 0.0]] * 9), np.zeros(9)]
)
def test_bad_rows_are_refused_before_any_charge(transformer, X):
    recorder = Recorder()
    with pytest.raises(ValueError, match=r"Input X|2D array"):
        transformer.set_params(accountant=recorder).fit(X)
    assert recorder.charges == []


BAD = [
    *({"epsilon": value} for value in (0.0, "1")),
    *({"delta": value} for value in (0.0, 1e-260, 1.0)),
    {"adjacency": "swap"},
    {"accountant": 3},
]
# With the words of the refusal, for tables of three features.
BAD_OF_ONE = [
    (DPPCA(n_components=4), "exceeds the number of features"),
    *((DPPCA(n_components=count), "n_components") for count in (0, 0.5)),
    (DPPCA(data_norm=0.0), "data_norm"),
    (DPPCA(center="yes"), "center"),
    (DPPCA(whiten=1), "whiten"),
    (DPStandardScaler(lower=[0, 0]), "one number for each"),
    (DPStandardScaler(lower=1.0), "lower < upper"),
    *((DPStandardScaler(row_norm=norm), "row_norm") for norm in (0.0, "none")),
    (DPStandardScaler(with_mean=2), "with_mean"),
    (DPStandardScaler(with_mean=False, with_std=False), "nothing to learn"),
    (DPStandardScaler(input_norm=0.0), "input_norm"),
    (DPStandardScaler(input_norm=1.0, n_groups=0), "n_groups"),
    (DPStandardScaler(input_norm=1.0, n_groups=2), "does not divide the 3 features"),
    (DPStandardScaler(n_groups=3), "n_groups needs input_norm"),
    (DPStandardScaler(input_norm=1.0, upper=2.0), "either input_norm= or lower= and upper="),
    *((DPQuantileClipper(quantiles=q), "two levels") for q in (0.5, (0.1, 0.5, 0.9))),
    (DPQuantileClipper(quantiles=(0.9, 0.1)), "increase"),
    (DPQuantileClipper(quantiles=(-0.1, 0.9)), "at least 0"),
    (DPQuantileClipper(smallest=0.0), "smallest"),
    (DPQuantileClipper(resolution=2.0), "resolution"),
    (DPQuantileClipper(lower=-1e200), "within"),
    (DPQuantileClipper(lower=np.nan), "finite"),
    (DPQuantileClipper(row_norm=-1.0), "row_norm"),
]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_parameters(transformer, bad):
    assert_refused(transformer.set_params(**bad), next(iter(bad)))


@pytest.mark.parametrize(("transformer", "message"), BAD_OF_ONE)
def test_bad_parameters_of_one(transformer, message):
    assert_refused(transformer, message)


def assert_refused(transformer, message):
    with pytest.raises((ValueError, TypeError), match=message):
        clone(transformer).fit(table())
    with pytest.raises((ValueError, TypeError), match=message):
        clone(transformer).privacy_plan(2000, 3)


def test_bad_random_state_is_refused_before_any_charge(transformer):
    recorder = Recorder()
    with pytest.raises(ValueError, match="random_state"):
        transformer.set_params(accountant=recorder, random_state="x").fit(table())
    assert recorder.charges == []


def test_weights_are_refused(transformer):
    with pytest.raises(TypeError, match="sample_weight"):
        transformer.fit(table(), sample_weight=np.ones(2000))
    with pytest.raises(TypeError, match="X and groups"):
        transformer.fit(table(), site=np.ones(2000))


def test_labels_are_ignored(transformer):
    one = clone(transformer).set_params(random_state=0).fit(table())
    other = clone(transformer).set_params(random_state=0).fit(table(), np.arange(2000))
    for name, value in learned(one).items():
        np.testing.assert_array_equal(value, learned(other)[name])


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_plan_is_what_a_fit_spends(transformer, adjacency):
    transformer.set_params(adjacency=adjacency)
    plan = transformer.privacy_plan(2000, 3)
    assert plan == transformer.fit(table()).privacy_spent_
    assert plan.adjacency == adjacency
    assert plan.epsilon <= transformer.epsilon
    assert plan.epsilon == pytest.approx(transformer.epsilon, rel=1e-8)
    assert plan.delta == transformer.delta
    # An accountant of its own reads the same from the event.
    recomputed = GDPAccountant(adjacency).compose(plan.event).epsilon(plan.delta)
    assert recomputed == pytest.approx(plan.epsilon, rel=1e-8)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2.5, 3)])
def test_bad_shapes_of_a_plan(transformer, shape):
    with pytest.raises((ValueError, TypeError), match=r"n_samples|n_features"):
        transformer.privacy_plan(*shape)


def test_the_record_survives_json(transformer):
    spent = transformer.fit(table()).privacy_spent_
    again = PrivacySpent.from_dict(json.loads(spent.to_json()))
    assert again == spent
    assert {"lower_", "mean_", "components_"} & set(spent.released)
    for name in spent.released:
        assert hasattr(transformer, name)


def test_everything_with_an_underscore_is_declared_as_released(transformer):
    fitted = transformer.fit(table())
    public = {"privacy_spent_", "n_features_in_", "feature_names_in_"}
    attributes = {name for name in vars(fitted) if name.endswith("_") and name[0] != "_"}
    assert attributes - public == set(fitted.privacy_spent_.released)


def test_seeds_repeat_a_fit_and_share_no_noise_between_fits(transformer):
    X = table()
    seeded = clone(transformer).set_params(random_state=7)
    one, again = clone(seeded).fit(X), clone(seeded).fit(X)
    assert one.privacy_spent_.seeded and not clone(transformer).fit(X).privacy_spent_.seeded
    for name, value in learned(one).items():
        np.testing.assert_array_equal(value, learned(again)[name])
    assert not np.array_equal(
        *(next(iter(learned(clone(transformer).fit(X)).values())) for _ in range(2))
    )


def test_a_seed_with_other_bounds_draws_other_noise():
    """Bounds as arrays: one differs in a digit that the text of an array does not show."""
    from skdp.mechanisms import record_releases

    noises = []
    for lower in (np.full(3, -5.0), np.array([-5.0, -5.0 - 1e-12, -5.0])):
        with record_releases() as trace:
            DPStandardScaler(lower=lower, upper=5.0, random_state=1).fit(table())
        noises.append(trace.releases[0].output - trace.releases[0].value)
    assert np.abs(noises[0] - noises[1]).max() > 0.1


def test_neighbours_with_one_seed_share_no_noise(transformer):
    from skdp.mechanisms import record_releases

    X, other = table(), table()
    other[0, 0] += 1e-9
    noises = []
    for rows in (X, other):
        with record_releases() as trace:
            clone(transformer).set_params(random_state=3).fit(rows)
        noises.append(trace.releases[0].output - trace.releases[0].value)
    assert np.abs(noises[0] - noises[1]).max() > 0.1


def test_clone_and_pickle(transformer):
    fitted = transformer.fit(table())
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(table()), fitted.transform(table()))
    assert again.privacy_spent_ == fitted.privacy_spent_
    assert not learned(clone(fitted))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_are_kept_and_do_not_matter(transformer, dtype):
    fitted = transformer.fit(table().astype(dtype))
    out = fitted.transform(table().astype(dtype))
    assert out.dtype == dtype
    np.testing.assert_allclose(out, fitted.transform(table()), atol=1e-4)


wild = st.floats(-1e300, 1e300)
norms = st.floats(1e-3, 1e3)
BOUNDED = {
    "scaler": st.builds(
        partial(DPStandardScaler, lower=-3.0, upper=5.0),
        row_norm=st.one_of(st.none(), st.just("auto"), norms),
        with_std=st.booleans(),
    ),
    "scaler of rows": st.builds(
        partial(DPStandardScaler, input_norm=3.0),
        row_norm=st.one_of(st.none(), st.just("auto"), norms),
        **{"with_mean": st.booleans(), "n_groups": st.sampled_from([1, None])},
    ),
    "means of rows": st.builds(
        partial(DPStandardScaler, input_norm=3.0, with_std=False), row_norm=st.none() | norms
    ),
    "quantiles": st.builds(DPQuantileClipper, row_norm=st.none() | norms),
    "pca": st.builds(
        partial(DPPCA, 2), data_norm=norms, center=st.booleans(), whiten=st.booleans()
    ),
}


@pytest.mark.parametrize("name", BOUNDED)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_row_exceeds_the_published_norm_even_by_rounding(name, data):
    transformer = data.draw(BOUNDED[name])
    transformer.set_params(epsilon=data.draw(st.sampled_from([0.01, 1.0, 100.0])), random_state=0)
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    X = data.draw(
        st.one_of(
            hnp.arrays(np.float64, (5, 3), elements=wild),
            st.integers(0, 2**32 - 1).map(lambda seed: table(20, seed=seed)),
        )
    )
    X = np.clip(X * 10.0 ** data.draw(st.integers(-8, 8)), -1e38, 1e38)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # tables are small
        fitted = transformer.fit(X.astype(dtype))
    aimed = [sign * 1e9 * vector for sign in (1, -1) for vector in vectors_of(fitted)]
    out = fitted.transform(np.vstack([X, *aimed]).astype(dtype))
    assert out.dtype == dtype
    for row in out:
        assert sum(Fraction(float(entry)) ** 2 for entry in row) <= Fraction(fitted.data_norm_) ** 2
    assert np.all(getattr(fitted, "explained_variance_", 0.0) >= 0.0)
    if getattr(fitted, "row_norm", None) == "auto" and name == "scaler" and fitted.with_std:
        assert fitted.data_norm_ == np.sqrt(3)


def vectors_of(fitted):
    """Return directions in which rows are longest."""
    found = [np.ones(3), *np.eye(3)]
    for name in ("mean_", "components_"):
        if (learned := getattr(fitted, name, None)) is not None:
            found += list(np.atleast_2d(learned))
    return found


def test_rows_are_transformed_one_by_one(transformer):
    """So that neighbouring tables stay neighbours behind the transformer."""
    fitted, X = transformer.fit(table()), table(seed=5)
    together = fitted.transform(X)
    np.testing.assert_allclose(together[:7], fitted.transform(X[:7]), atol=1e-12)
    np.testing.assert_allclose(together[::-1], fitted.transform(X[::-1]), atol=1e-12)


def test_large_tables_are_summed_in_blocks(transformer, monkeypatch):
    from skdp.mechanisms import record_releases
    from skdp.plans import second_moments as row_norms

    values = []
    for entries in (1 << 20, 100):
        monkeypatch.setattr(row_norms, "_BLOCK_ENTRIES", entries)
        with record_releases() as trace:
            clone(transformer).set_params(random_state=0).fit(table())
        values.append(trace.releases[0].value)
    np.testing.assert_allclose(*values, rtol=1e-12, atol=1e-9)


def test_large_delta_is_warned_of(transformer):
    with pytest.warns(PrivacyWarning, match="not below 1/n"):
        transformer.set_params(delta=0.01).fit(table())


def test_pandas_output(transformer):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    frame = pandas.DataFrame(table(), columns=["a", "b", "c"], index=np.arange(2000) + 5)
    out = transformer.set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == list(transformer.get_feature_names_out())
    assert out.index[0] == 5
    if not isinstance(transformer, DPPCA):
        assert list(out.columns) == ["a", "b", "c"]


def labelled(n=6000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.array([1.0, 50.0, 0.02, 3.0])[:d] + 7.0
    return X, (X[:, 0] - 7.0 + (X[:, 1] - 7.0) / 50.0 > 0).astype(int)


@pytest.mark.parametrize(
    "steps",
    [
        (DPStandardScaler(0.4, 1e-6, lower=-500.0, upper=500.0),),
        (DPQuantileClipper(0.9, 1e-6, row_norm=2.0),),
        (
            DPQuantileClipper(0.8, 1e-6, row_norm=None),
            DPStandardScaler(0.3, 1e-6),
            RowNormClipper(2.0),
            DPPCA(3, 0.2, 1e-6, data_norm=2.0),
        ),
    ],
    ids=["scaler", "quantiles", "chain"],
)
def test_pipelines_charge_one_budget_and_classify(steps):
    X, y = labelled()
    accountant = BudgetAccountant(10.0, 1e-4, composition="basic")
    model = OperaLogisticRegression(1.0, 1e-6, data_norm=2.0, classes=[0, 1])
    pipeline = make_pipeline(*(clone(step) for step in (*steps, model)))
    pipeline.set_params(
        **{
            f"{name}__accountant": accountant
            for name, step in pipeline.steps
            if hasattr(step, "accountant")
        }
    )
    pipeline.fit(X, y)
    private = [step for _, step in pipeline.steps if hasattr(step, "privacy_spent_")]
    assert len(accountant.entries()) == len(private)
    epsilon, delta = accountant.spent()
    assert epsilon == pytest.approx(sum(step.epsilon for step in private), rel=1e-6)
    assert delta == pytest.approx(1e-6 * len(private), rel=1e-6)
    if len(steps) == 1:
        assert pipeline.score(X, y) > 0.7


def test_a_block_takes_the_charges_of_clones_and_the_statement_names_every_step():
    X, y = labelled(n=3000)
    pipeline = make_pipeline(
        RowNormClipper(400.0),
        DPQuantileClipper(0.8, row_norm=None),
        DPPCA(3, 0.2, data_norm=2.0),
        OperaLogisticRegression(1.0, data_norm=2.0, classes=[0, 1]),
    )
    with BudgetAccountant(10.0, 1e-4) as accountant:
        fitted = clone(pipeline).fit(X, y)
    assert len(accountant.entries()) == 3
    assert accountant.spent()[0] < 2.0  # Gaussian releases add up better than their epsilons
    text = str(privacy_statement(fitted))
    assert "leaking" not in text
    for name in ("DPQuantileClipper", "DPPCA", "RowNormClipper"):
        assert name in text


def test_a_pipeline_stops_when_the_budget_is_spent():
    X, y = labelled(n=500)
    accountant = BudgetAccountant(1.0, 1e-4, composition="basic")
    pipeline = make_pipeline(
        DPStandardScaler(0.6, lower=-500.0, upper=500.0, accountant=accountant),
        OperaLogisticRegression(0.6, data_norm=2.0, accountant=accountant),
    )
    with pytest.raises(BudgetExceededError):
        pipeline.fit(X, y)
    assert accountant.spent()[0] == pytest.approx(0.6, rel=1e-6)
    assert not hasattr(pipeline[-1], "coef_")


def test_norms_of_column_blocks_add_up():
    X = labelled()[0]
    blocks = ColumnTransformer(
        [
            ("known", BoundedScaler([0, -200], [14, 200], row_norm=None), [0, 1]),
            ("unknown", DPQuantileClipper(5.0, row_norm=1.5), [2, 3]),
        ]
    ).fit(X)
    norms = [step.data_norm_ for _, step, _ in blocks.transformers_]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = blocks.transform(X)
    assert np.linalg.norm(out, axis=1).max() <= np.hypot(*norms) * (1.0 + 1e-12)


def test_callbacks_hear_of_a_fit_and_of_no_rows(transformer):
    pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")
    heard = []

    class Listener:
        def setup(self, estimator, context):
            heard.append(("setup", None, None))

        def on_fit_task_begin(self, estimator, context, *, X, y):
            heard.append(("begin", X, y))

        def on_fit_task_end(self, estimator, context, *, X, y):
            heard.append(("end", X, y))

        def teardown(self, estimator, context):
            heard.append(("teardown", None, None))

    transformer.set_callbacks(Listener()).fit(table())
    assert heard == [(name, None, None) for name in ("setup", "begin", "end", "teardown")]
