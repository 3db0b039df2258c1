"""Whoever bounds the rows nowhere is told so before the charge; whoever does is left in peace."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from support import ESTIMATORS, rows

from skdp import OperaLogisticRegression
from skdp.exceptions import PrivacyWarning
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    DPPCA,
    BooleanColumn,
    BoundedScaler,
    DPQuantileClipper,
    DPStandardScaler,
    LabelColumn,
    NumericColumn,
    RowNormClipper,
    SchemaEncoder,
    TableSchema,
)

X, y = rows(n=400, d=3)
X = 50.0 * X
NAMES = r"TableSchema.*BoundedScaler.*RowNormClipper"
PRIVATE = [*ESTIMATORS, DPPCA]


class Charges:
    """A budget that refuses, and so shows that a warning came before it."""

    def reserve(self, *args, **kwargs):
        raise RuntimeError("charged")

    def __deepcopy__(self, memo):
        return self


def messages(estimator, X=X, y=y):
    """Return what a fit says of bounds on rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    return [str(w.message) for w in caught if "data_norm" in str(w.message)]


def private(cls, **parameters):
    return cls(epsilon=1.0, delta=1e-4, **parameters)


def opera(**parameters):
    return private(OperaLogisticRegression, **parameters)


@pytest.mark.parametrize("cls", PRIVATE)
def test_a_fit_on_rows_that_nobody_bounds_warns_before_the_charge(cls):
    with pytest.warns(PrivacyWarning, match=NAMES), pytest.raises(RuntimeError, match="charged"):
        private(cls, accountant=Charges()).fit(X, y)


@pytest.mark.parametrize("cls", PRIVATE)
def test_a_given_bound_never_warns_and_none_means_one(cls):
    assert messages(private(cls, data_norm=1.0)) == []
    assert cls().data_norm is None
    plans = [
        repr(private(cls, data_norm=norm).privacy_plan(400, 3).to_dict()) for norm in (None, 1.0)
    ]
    assert plans[0] == plans[1] and "data_norm=1'" in plans[0]


def test_the_warning_does_not_depend_on_the_rows():
    for table in (X, X / 1e9, np.zeros_like(X), sparse.csr_matrix(X)):
        assert messages(opera(), table) == messages(opera())


BOUNDED = {
    "scaler": BoundedScaler(-50, 50),
    "smaller": BoundedScaler(-50, 50, row_norm=0.5),
    "clipper": RowNormClipper(),
    "pca": private(DPPCA, data_norm=1.0),
    "standard": private(DPStandardScaler, lower=-50, upper=50, row_norm=1.0),
    "quantiles": private(DPQuantileClipper, lower=-50, upper=50),
    "encoder": SchemaEncoder([NumericColumn(c, -50, 50, weight=0.5) for c in "abc"]),
}


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("cls", [OperaLogisticRegression, DPPCA])
def test_steps_that_bound_rows_keep_the_fit_silent(name, cls):
    step = BOUNDED[name]
    for table in (X, X.astype(np.float32), np.asfortranarray(X)):
        assert messages(make_pipeline(clone(step), private(cls)), table) == []


FORMS = [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array]
FORMS += [sparse.dok_array, sparse.lil_matrix, sparse.dia_matrix, sparse.bsr_array]


@pytest.mark.parametrize("container", FORMS)
def test_sparse_rows_are_followed_too(container):
    assert messages(make_pipeline(RowNormClipper(), opera()), container(X)) == []
    assert len(messages(opera(), container(X))) == 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("step", [BoundedScaler(-50, 50), RowNormClipper()], ids=["scaler", "clip"])
def test_frames_around_bounded_rows_are_followed(step, order):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    frame = pandas.DataFrame(np.asarray(X, order=order), columns=list("abc"))
    step = clone(step).set_output(transform="pandas")
    assert messages(make_pipeline(step, opera()), frame) == []
    assert messages(make_pipeline(step, search(opera())), frame) == []


def test_polars_frames_around_bounded_rows_are_followed():
    pytest.importorskip("polars", reason="needs polars")
    step = BoundedScaler(-50, 50).set_output(transform="polars")
    assert messages(make_pipeline(step, opera()), np.asfortranarray(X)) == []


@pytest.mark.parametrize(
    ("step", "bound"),
    [
        (BoundedScaler(-50, 50, row_norm=None), "data_norm=1.73205"),
        (RowNormClipper(7.0), "data_norm=7"),
        (private(DPStandardScaler, lower=-50, upper=50), "data_norm=1.73205"),
        (SchemaEncoder([NumericColumn(c, -50, 50) for c in "abc"]), "data_norm=1.73205"),
    ],
)
def test_a_larger_bound_is_named(step, bound):
    (message,) = messages(make_pipeline(step, opera()))
    assert bound in message


def test_what_changes_the_rows_ends_what_is_known_of_them():
    scaler = BoundedScaler(-50, 50)
    for step in (PolynomialFeatures(), FunctionTransformer(lambda Z: 2.0 * Z)):
        assert len(messages(make_pipeline(scaler, step, opera()))) == 1
    union = FeatureUnion([("a", BoundedScaler(-50, 50)), ("b", BoundedScaler(-50, 50))])
    assert len(messages(make_pipeline(union, opera()))) == 1
    for step in ("passthrough", FunctionTransformer()):
        assert messages(make_pipeline(scaler, step, opera())) == []


def test_views_are_known_and_copies_are_not():
    bounded = BoundedScaler(-50, 50).fit_transform(X)
    for view in (bounded, bounded[10:], bounded[::2], bounded[:, :2], np.asarray(bounded)):
        assert messages(opera(), view, y[: len(view)]) == []
    for copy in (bounded.copy(), bounded[np.arange(400)], 2.0 * bounded, bounded.tolist()):
        assert len(messages(opera(), copy)) == 1
    assert messages(OneVsRestClassifier(opera()), bounded) == []


def search(estimator, grid=None, **parameters):
    return PrivateGridSearchCV(
        estimator,
        grid or {},
        epsilon=3.0,
        delta=1e-3,
        method="holdout",
        random_state=0,
        **parameters,
    )


def test_a_search_warns_once_before_the_charge_and_its_fits_are_silent():
    grid = {"alpha": [0.1, 1.0]}
    assert len(messages(search(opera(), grid))) == 1
    assert messages(search(opera(data_norm=1.0), grid)) == []
    assert messages(search(opera(), {"data_norm": [1.0, 50.0]})) == []
    assert len(messages(search(opera(), {"data_norm": [None, 50.0]}))) == 1
    with pytest.warns(PrivacyWarning, match=NAMES), pytest.raises(RuntimeError, match="charged"):
        search(opera(), grid, accountant=Charges()).fit(X, y)
    with pytest.warns(PrivacyWarning, match=NAMES):
        assert search(opera()).fit(X, y).best_estimator_.data_norm is None


@pytest.mark.parametrize("name", BOUNDED)
def test_a_search_knows_the_steps_of_its_candidates(name):
    inside = search(make_pipeline(clone(BOUNDED[name]), opera()))
    expected = name == "encoder"  # which only a schema makes, with the bound of all its columns
    assert len(messages(inside)) == expected
    outside = make_pipeline(clone(BOUNDED[name]), search(opera()))
    assert messages(outside) == []


def test_structure_of_candidates():
    bounded = make_pipeline(BoundedScaler(-50, 50), "passthrough")
    assert messages(search(make_pipeline(bounded, private(DPPCA), None, opera()))) == []
    whitened = make_pipeline(BoundedScaler(-50, 50), private(DPPCA, whiten=True), opera())
    wide = make_pipeline(BoundedScaler(-50, 50, row_norm=None), opera())
    changed = make_pipeline(BoundedScaler(-50, 50), PolynomialFeatures(), opera())
    union = make_pipeline(FeatureUnion([("a", BoundedScaler(-50, 50))]), opera())
    for candidate in (whitened, wide, changed, union):
        assert len(messages(search(candidate))) == 1
    inner = make_pipeline(BoundedScaler(-50, 50), FeatureUnion([("a", private(DPPCA))]))
    assert messages(search(make_pipeline(inner, RowNormClipper(), opera()))) == []


SCHEMA = TableSchema(
    [NumericColumn("pressure", 80, 200), BooleanColumn("smoker")], label=LabelColumn("ill", [0, 1])
)


def with_norm(norm):
    classifier = OperaLogisticRegression(data_norm=norm)
    grid = {"alpha": [0.1, 1.0]}
    return {
        "classifier": classifier,
        "pipeline": make_pipeline(None, "passthrough", classifier),
        "private search": PrivateGridSearchCV(classifier, grid),
        "search": GridSearchCV(classifier, grid),
        "search of a pipeline": PrivateGridSearchCV(make_pipeline(None, classifier), grid),
    }


@pytest.mark.parametrize("name", with_norm(None))
def test_a_schema_fills_in_its_norm_and_refuses_another(name):
    for given in (None, SCHEMA.data_norm):
        found = SCHEMA.pipeline(with_norm(given)[name]).get_params()
        norms = [value for key, value in found.items() if key.rpartition("__")[2] == "data_norm"]
        assert norms and set(norms) == {SCHEMA.data_norm}
    for other in (1.0, 5.0):
        with pytest.raises(ValueError, match=rf"data_norm={other}.*clip_norm"):
            SCHEMA.pipeline(with_norm(other)[name])


@pytest.mark.parametrize("wrapped", [lambda model: model, search], ids=["alone", "searched"])
def test_a_schema_leaves_the_norms_of_other_rows_alone(wrapped):
    found = SCHEMA.pipeline(wrapped(make_pipeline(private(DPPCA), opera()))).get_params()
    norms = {key: value for key, value in found.items() if key.endswith("__data_norm")}
    assert {value for key, value in norms.items() if "dppca" in key} == {SCHEMA.data_norm}
    assert {value for key, value in norms.items() if "opera" in key} == {None}
    table = np.array([[80.0, 0.0], [200.0, 1.0]] * 200)
    labels = np.array([0, 1] * 200)
    shorter = make_pipeline(RowNormClipper(1.0), opera().set_params(data_norm=1.0))
    scaled = make_pipeline(private(DPStandardScaler, lower=-1, upper=1, row_norm=None), opera())
    for inner, expected in ((shorter, None), (scaled, "OperaLogisticRegression was")):
        found = messages(SCHEMA.pipeline(wrapped(inner), positions=True), table, labels)
        assert len(found) == (expected is not None)
        assert all(expected in text and "given no data_norm" in text for text in found)


def test_a_grid_over_the_norm_is_left_alone():
    model = SCHEMA.pipeline(PrivateGridSearchCV(OperaLogisticRegression(), {"data_norm": [0.5, 1]}))
    assert model[-1].param_grid == {"data_norm": [0.5, 1]}
