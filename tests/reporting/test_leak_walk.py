"""What neighbours' fits leave behind is the same to the last bit, once the noise is frozen.

Every attribute that can be reached is compared. Where something differs, the statement must call
the part leaking: the second half shows that the walk finds what leaks.
"""

import numpy as np
import pytest
from covering import pairs
from scipy import sparse
from scipy.stats import loguniform
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler, PolynomialCountSketch, RBFSampler
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags
from support import ESTIMATORS, rows

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
)
from skdp.model_selection import PrivateGridSearchCV, PrivateRandomizedSearchCV
from skdp.model_selection._search import METHODS
from skdp.preprocessing import (
    DPPCA,
    BooleanColumn,
    BoundedScaler,
    CategoricalColumn,
    DPQuantileClipper,
    DPStandardScaler,
    LabelColumn,
    NumericColumn,
    OrdinalColumn,
    RowNormClipper,
    TableSchema,
)
from skdp.reporting import privacy_statement
from skdp.reporting._examine import examine
from skdp.testing.replay import differences, fit_both

pd = pytest.importorskip("pandas")

ADJACENCIES = ("replace-one", "add-remove")
HOSTILE = {"zeros": np.zeros(4), "extreme": np.array([1e9, -1e9, 1e-9, 0.0])}


def neighbours(hostile, n=60, make=np.asarray):
    """Return a table and one with a row of zeros, as if removed, or of extreme values."""
    X, y = rows(n)
    other, labels = X.copy(), y.copy()
    other[7], labels[7] = HOSTILE[hostile], 1 - y[7]
    return (make(X), y), (make(other), labels)


@pytest.mark.parametrize(
    ("kind", "adjacency", "hostile", "make"),
    pairs(ESTIMATORS, ADJACENCIES, list(HOSTILE), [np.asarray, sparse.csr_matrix]),
)
def test_estimators(kind, adjacency, hostile, make):
    options = {"max_iter": 5} if kind is DPSGDClassifier else {}
    model = kind(adjacency=adjacency, classes=[0, 1], **options)
    fitted = fit_both(model, *neighbours(hostile, make=make))
    assert differences(*fitted) == []
    assert privacy_statement(fitted[0]).to_dict()["holds_for_the_whole"]


@pytest.mark.parametrize(
    "model",
    [
        OperaLogisticRegression(solver="gd"),
        GrpuaLogisticRegression(calibration="hidden-state", max_iter=5),
        DPSGDClassifier(batch_size=20, physical_batch_size=7, max_iter=5),
        ObjectivePerturbationLogisticRegression(),
    ],
    ids=str,
)
def test_other_ways_of_training_and_three_labels(model):
    one, other = neighbours("extreme")
    labels = np.arange(60) % 3
    fitted = fit_both(model, (one[0], labels), (other[0], np.where(np.arange(60) == 7, 0, labels)))
    assert differences(*fitted) == []


STEPS = [DPPCA(), DPStandardScaler(), DPQuantileClipper(), BoundedScaler(), RowNormClipper()]


@pytest.mark.parametrize(("step", "adjacency", "hostile"), pairs(STEPS, ADJACENCIES, list(HOSTILE)))
def test_transformers(step, adjacency, hostile):
    if hasattr(step, "adjacency"):
        step.set_params(adjacency=adjacency)
    model = make_pipeline(step, OperaLogisticRegression(adjacency=adjacency))
    fitted = fit_both(model, *neighbours(hostile))
    assert differences(*fitted) == []
    assert privacy_statement(fitted[0]).to_dict()["holds_for_the_whole"]


def _search(kind, method, adjacency, hostile):
    space = [0.1, 1.0] if kind is PrivateGridSearchCV else loguniform(0.1, 1.0)
    columns = make_column_transformer((BoundedScaler(), [0, 1]), (DPStandardScaler(), [2, 3]))
    search = kind(
        make_pipeline(columns, OperaLogisticRegression(classes=[0, 1])),
        {"operalogisticregression__alpha": space},
        method=method,
        adjacency=adjacency,
        epsilon=3.0,
        delta=1e-5,
        cv=2,
        expected_candidates=2,
        **({} if kind is PrivateGridSearchCV else {"n_iter": 2}),
    )
    fitted = fit_both(search, *neighbours(hostile))
    assert differences(*fitted) == []
    for model in (fitted[0], fitted[0].best_estimator_):
        assert privacy_statement(model).to_dict()["holds_for_the_whole"]


@pytest.mark.daily(1)
@pytest.mark.parametrize("method", METHODS)
def test_searches(method):
    _search(PrivateGridSearchCV, method, "replace-one", "extreme")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "method", "adjacency", "hostile"),
    pairs((PrivateGridSearchCV, PrivateRandomizedSearchCV), METHODS, ADJACENCIES, list(HOSTILE)),
)
def test_all_searches(kind, method, adjacency, hostile):
    _search(kind, method, adjacency, hostile)


SCHEMA = TableSchema(
    [
        NumericColumn("age", 0, 120, unit="years", missing="ignore"),
        CategoricalColumn("ward", ["a", "b", "c"], missing="ignore"),
        OrdinalColumn("stage", [1, 2, 3], missing="ignore"),
        BooleanColumn("smoker", missing="ignore"),
    ],
    label=LabelColumn("died", classes=[0, 1]),
)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("cells", [(np.nan, None, np.nan, None, 0), (-1e9, "d", 7, True, 1)])
def test_schema_pipelines(cells, adjacency):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": generator.integers(20, 90, 60),
            "ward": generator.choice(["a", "b"], 60),
            "stage": generator.integers(1, 4, 60),
            "smoker": generator.random(60) < 0.3,
            "died": generator.integers(0, 2, 60),
        }
    )
    other = frame.astype({"age": float, "stage": float, "smoker": object})
    other.loc[7] = list(cells)
    other["died"] = other["died"].astype(int)
    model = SCHEMA.pipeline(OperaLogisticRegression(adjacency=adjacency))
    fitted = fit_both(model, SCHEMA.split(frame), SCHEMA.split(other))
    assert differences(*fitted) == []
    assert privacy_statement(fitted[0]).to_dict()["holds_for_the_whole"]


# scikit-learn's own, on columns of numbers, codes, texts or records.

CODES = [[0.0, 1.0, 2.0]] * 4
SPARSE_CODES = OneHotEncoder(categories=CODES[:2], handle_unknown="ignore")
DENSE_CODES = OneHotEncoder(categories=CODES[:2], handle_unknown="ignore", sparse_output=False)
ALL_CODES = {"categories": CODES, "handle_unknown": "ignore"}
OF_NUMBERS = [
    Binarizer(),
    FunctionTransformer(),
    FunctionTransformer(np.cbrt),
    FunctionTransformer(lambda X: X[:, :2] * X[:, 2:]),
    Normalizer(),
    PolynomialCountSketch(n_components=5),
    PolynomialFeatures(2),
    GaussianRandomProjection(2, compute_inverse_components=True),
    SparseRandomProjection(2),
    OneHotEncoder(**ALL_CODES),
    OneHotEncoder(**ALL_CODES, drop=[0.0] * 4),
    OrdinalEncoder(categories=CODES, handle_unknown="use_encoded_value", unknown_value=-1),
    SimpleImputer(strategy="constant", fill_value=0.5, keep_empty_features=True),
    RBFSampler(gamma=0.5, n_components=5),
    SplineTransformer(knots=np.linspace(-1, 1, 5)[:, None] * np.ones(4)),
    make_union(OneHotEncoder(**ALL_CODES), Normalizer()),
    make_pipeline(FunctionTransformer(np.floor), OneHotEncoder(**ALL_CODES)),
    ColumnTransformer(
        [("codes", OneHotEncoder(**ALL_CODES), [0, 1, 2, 3]), ("rest", "passthrough", [0])],
        sparse_threshold=0,
    ),
    make_column_transformer((DENSE_CODES, [0, 1]), (BoundedScaler(), [2, 3]), remainder="drop"),
    make_column_transformer((make_pipeline(Normalizer(), DENSE_CODES), [0, 1])),
]
TEXTS = {"categories": [["a", "b"], ["b", "c"]]}
OF_OBJECTS = [
    OneHotEncoder(**TEXTS, handle_unknown="ignore", drop="if_binary"),
    OrdinalEncoder(**TEXTS, handle_unknown="use_encoded_value", unknown_value=9),
    make_pipeline(
        SimpleImputer(strategy="constant", fill_value="b", keep_empty_features=True),
        OneHotEncoder(**TEXTS, handle_unknown="ignore"),
    ),
]
OF_FRAMES = [
    make_column_transformer(
        (
            OneHotEncoder(categories=CODES[:2], handle_unknown="ignore", sparse_output=False),
            ["a", "b"],
        ),
        (BoundedScaler(), ["c"]),
    ).set_output(transform="pandas"),
    make_column_transformer((DENSE_CODES, ["a", "b"]), remainder="passthrough"),
    make_column_transformer((DPStandardScaler(), make_column_selector("[ab]"))),
    make_column_transformer((BoundedScaler(), slice("a", "b")), remainder="passthrough"),
]
OF_OTHERS = [
    (AdditiveChi2Sampler(), "counts"),
    (HashingVectorizer(n_features=16), "texts"),
    (HashingVectorizer(n_features=16, analyzer=str.split), "texts"),
    (CountVectorizer(vocabulary=["a", "b"], max_features=1, min_df=2), "texts"),
    (TfidfVectorizer(vocabulary={"a", "b"}, use_idf=False), "texts"),
    (FeatureHasher(16), "records"),
]
CASES = [
    *((step, "numbers") for step in OF_NUMBERS),
    *((step, "objects") for step in OF_OBJECTS),
    *((step, "frames") for step in OF_FRAMES),
    *OF_OTHERS,
]


STRANGE = {
    "texts": ["", "a " * 999],
    "records": [{}, {"x": 9}],
    "objects": [["a" * 99, 7.0], [np.nan, "c"]],
}


def tables(kind):
    """Return a table, hostile neighbours of equal size, and the table without one row."""
    X, y = rows(60)
    base = {"numbers": X, "counts": np.abs(X), "frames": pd.DataFrame(X, columns=list("abcd"))}.get(
        kind
    )
    if kind in STRANGE:
        base = [["word and more", {"a": 1, "b": 2}][kind == "records"]] * 60
        if kind == "objects":
            base = np.array([["a", "c"], ["b", "b"]] * 30, dtype=object)
        others = [[*base[:-1], new] for new in STRANGE[kind]]
        if kind == "objects":
            others = [np.array(other, dtype=object) for other in others]
        return (base, y), [(other, y) for other in others], (base[:-1], y[:-1])
    found = []
    for row in HOSTILE.values():
        other = base.copy()
        other[-1:] = np.abs(row) if kind == "counts" else row
        found.append((other, y))
    return (base, y), found, (base[:-1], y[:-1])


@pytest.mark.daily(10)
@pytest.mark.parametrize(("step", "kind"), CASES, ids=lambda value: str(value)[:40])
def test_what_is_said_to_learn_nothing_keeps_nothing(step, kind):
    one, others, fewer = tables(kind)
    if kind == "numbers" and get_tags(step).input_tags.allow_nan:
        others.append((np.vstack([one[0][:-1], np.full(4, np.nan)]), one[1]))
    for other in [*others, fewer]:
        fitted = fit_both(step, one, other)
        if not (other is fewer and "DPStandard" in repr(step)):  # the row count is public
            assert differences(*fitted) == []
    assert all(finding.kind != "leaking" for finding in examine(fitted[0]))
    model = make_pipeline(step, OperaLogisticRegression())
    fitted = fit_both(model, one, others[1])
    assert differences(*fitted) == []
    assert privacy_statement(fitted[0]).to_dict()["holds_for_the_whole"]


# What leaks is found by the walk, and said.


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        MinMaxScaler(),
        KBinsDiscretizer(3),
        OneHotEncoder(handle_unknown="ignore"),
        SimpleImputer(),
        PCA(2),
        SelectKBest(k=2),
        BaggingClassifier(random_state=0),
        make_union(StandardScaler(), "passthrough"),
        make_column_transformer((StandardScaler(), [0]), sparse_threshold=0),
    ],
    ids=lambda step: type(step).__name__,
)
def test_the_walk_finds_what_leaks(step):
    fitted = fit_both(step, *neighbours("extreme"))
    assert differences(*fitted)
    assert not privacy_statement(fitted[0]).to_dict()["holds_for_the_whole"]


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(2), np.zeros(2, dtype=np.float32)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.array(["a"]), np.array(["a"], dtype="<U9")),
        (np.array([1, None], dtype=object), np.array([1.0, None], dtype=object)),
        (sparse.csr_matrix(np.eye(2)), sparse.csr_matrix(np.diag([1.0, 0.0]))),
        (sparse.csr_matrix(np.eye(2)), sparse.csc_matrix(np.eye(2))),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (1, 1.0),
        (np.random.RandomState(0), np.random.RandomState(1)),
        (pd.Index(["a"]), pd.Index(["b"])),
        ({"a"}, {"b"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_walk_sees_types_shapes_and_what_is_deep_inside(one, other):
    assert differences(one, other)
    assert differences([Slotted({"x": (one,)})], [Slotted({"x": (other,)})])
    assert differences([Slotted(one), one], [Slotted(one), one]) == []


def test_types_of_columns_are_an_assumption():
    whole = pd.DataFrame({"a": np.arange(60) % 3})
    gap = whole.astype(float)
    gap.loc[7, "a"] = np.nan
    step = OneHotEncoder(categories=[[0, 1, 2]], handle_unknown="ignore")
    fitted = fit_both(step, (whole,), (gap,))
    assert any("categories_" in path for path in differences(*fitted))
    assert "no single cell" in " ".join(privacy_statement(fitted[0]).split())
