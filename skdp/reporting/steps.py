"""Judge whether the fitted state of a pipeline's step depends on private rows."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from skdp.base.scikit_learn import ADD_A_PLAN, is_private, lacks_a_plan

_ROWS = 12
# Functions may be slow, and each candidate of a search is judged again.
_verdicts: WeakKeyDictionary[Any, dict[Any, bool]] = WeakKeyDictionary()
# The number of columns of an unfitted step is unknown.
_WIDTHS = (1, 2, 3, 5)


def mixes_rows(step: Any) -> bool:
    """Return whether synthetic rows show that the output for a row depends on other rows."""
    # False proves nothing: the function may raise on synthetic rows.
    known = getattr(step, "n_features_in_", None), step.validate
    verdicts: dict[Any, bool] = {}
    with suppress(TypeError):  # not every callable can be a key
        # Arguments may be large arrays, which no short key distinguishes.
        verdicts = verdicts if step.kw_args else _verdicts.setdefault(step.func, {})
    if known not in verdicts:
        with warnings.catch_warnings(), np.errstate(all="ignore"), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            verdicts[known] = any(_shows_mixing(step, table) for table in _tables(step))
    return verdicts[known]


def _tables(step: Any) -> Iterator[Any]:
    generator = np.random.default_rng(0)
    known = getattr(step, "n_features_in_", None)
    names = getattr(step, "feature_names_in_", None)
    for width in _WIDTHS if known is None else (known,):
        table = generator.normal(0.0, 3.0, (_ROWS, width))
        gaps = np.where(generator.random(table.shape) < 0.2, np.nan, table)
        for rows in (table, np.floor(np.abs(table)), gaps):
            yield rows
            if names is not None and "pandas" in sys.modules:
                yield sys.modules["pandas"].DataFrame(rows, columns=names)


def _shows_mixing(step: Any, table: Any) -> bool:
    half = _ROWS // 2
    order = np.roll(np.arange(_ROWS), 5)[::-1]
    changed = table.copy()
    changed[-1:] = 1e6
    try:
        whole = _outputs(step, table)
        if len(whole) != _ROWS:
            return True
        others = [
            np.concatenate([_outputs(step, table[:half]), _outputs(step, table[half:])]),
            _outputs(step, _reorder(table, order))[np.argsort(order)],
            np.concatenate([_outputs(step, changed)[:-1], whole[-1:]]),
        ]
        return not all(_are_alike(whole, other) for other in others)
    except Exception:
        return False


def _reorder(table: Any, order: np.ndarray) -> Any:
    return table.iloc[order] if hasattr(table, "iloc") else table[order]


def _outputs(step: Any, table: Any) -> np.ndarray:
    # The clone has separate state, and a function may write to the table.
    made = clone(step).set_output(transform="default").set_params(check_inverse=False)
    found = made.fit_transform(table.copy())
    rows = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
    return rows if rows.dtype.kind == "f" else rows.astype(float)


def _are_alike(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape:
        return False
    # Products of matrices round by their shapes, in single precision even visibly.
    share = 1e-9 if one.dtype.itemsize >= 8 else 1e-4
    scale = np.max(np.abs(one), initial=0.0, where=np.isfinite(one))
    return np.allclose(one, other, share, share * scale, equal_nan=True)


def gives_dense(part: Any, *, framed: bool = False) -> bool:
    """Return whether the output is dense on every table; `framed`: the input is a frame."""
    if part is None or isinstance(part, str):
        return framed or part == "drop"
    checks_only = vars(type(part)).get("_only_checks_tables") is True
    if type(part) is Pipeline or (checks_only and isinstance(part, Pipeline)):
        steps = [step for _, step in part.steps if step is not None and step != "passthrough"]
        # Only the first step receives the frame.
        return gives_dense(steps[-1] if steps else None, framed=framed and len(steps) < 2)
    if type(part) is FeatureUnion:
        return all(gives_dense(step, framed=framed) for _, step in part.transformer_list)
    if type(part) is ColumnTransformer or checks_only:
        framed = framed or any(_by_name(columns) for _, _, columns in part.transformers)
        parts = [*(step for _, step, _ in part.transformers), part.remainder]
        return part.sparse_threshold == 0 or all(gives_dense(step, framed=framed) for step in parts)
    package = type(part).__module__.partition(".")[0]
    if package == "sklearn" and hasattr(part, "sparse_output"):
        return not part.sparse_output
    # In these packages, a step that refuses sparse input has no sparse output.
    known = package == "skdp" or (package == "sklearn" and type(part).__name__ == "OrdinalEncoder")
    return known and not get_tags(part).input_tags.sparse


def _by_name(columns: Any) -> bool:
    # scikit-learn takes names of frames only.
    if isinstance(columns, slice):
        columns = (columns.start, columns.stop)
    return any(isinstance(key, str) for key in np.ravel(np.array(columns, dtype=object)))


# The third is shown as `SHOWN_AS`; records keep the word for tools that parse them.
Kind = Literal["private", "data-independent", "taken at your word", "leaking"]
SHOWN_AS = "assumed, not checked"
# Beginning of each assumption of this kind.
ASSUMED = f"{SHOWN_AS}: "


class StepVerdict(NamedTuple):
    """Verdict on a step's fitted state, with reason, remedy and assumption."""

    kind: Kind
    reason: str
    remedy: str = ""
    assumption: str = ""


_STATELESS = "its output for a row depends only on that row and on its parameters"
_COUNTS_COLUMNS = "fit uses only the number of columns"

# scikit-learn's transformers that learn nothing from the rows, whatever their parameters are.
_DATA_INDEPENDENT = {
    "AdditiveChi2Sampler": _STATELESS,
    "Binarizer": _STATELESS,
    "FeatureHasher": _STATELESS,
    "Normalizer": _STATELESS,
    "PolynomialCountSketch": _COUNTS_COLUMNS,
    "PolynomialFeatures": _COUNTS_COLUMNS,
    # Their parts have separate verdicts.
    "FeatureUnion": "it stores only its parts",
    "Pipeline": "it stores only its steps",
}
# scikit-learn's encoders and imputer store the type of each column that they were fitted on.
_COLUMN_TYPES = (
    "the type of every column of the table is public: no single cell, such as a missing value, "
    "decides it"
)

_SELECTION = "ColumnTransformer with a public list of columns, or DPPCA"
# Samplers of imbalanced-learn, recognised by their method.
_RESAMPLING = (
    "it copies, synthesises or drops rows depending on other rows: one row may appear several "
    "times, or decide which others appear",
    "class_weight= of the private classifier, which its noise covers",
)
# Ensembles that use each row once in each fit.
_ENSEMBLES = {
    "BaggingClassifier": "the list of labels and seeds of its fits",
    "BaggingRegressor": "seeds of its fits",
    "VotingClassifier": "the list of labels",
    "VotingRegressor": "its parts",
    "OneVsRestClassifier": "the list of labels",
    "OutputCodeClassifier": "the list of labels",
    "MultiOutputClassifier": "the lists of labels",
    "MultiOutputRegressor": "its parts",
}

REMEDIES = {
    "StandardScaler": "BoundedScaler with public bounds, or DPStandardScaler",
    "MinMaxScaler": "BoundedScaler with public bounds, or DPQuantileClipper",
    "MaxAbsScaler": "BoundedScaler with public bounds, or DPQuantileClipper",
    "RobustScaler": "BoundedScaler with public bounds, or DPQuantileClipper",
    "QuantileTransformer": "DPQuantileClipper",
    "PCA": "DPPCA",
    "TruncatedSVD": "DPPCA",
    "SimpleImputer": (
        "missing= of a TableSchema's columns, or SimpleImputer(strategy='constant', "
        "fill_value=..., keep_empty_features=True) with a public value"
    ),
    "KNNImputer": "missing= of a TableSchema's columns, which handles each cell by itself",
    "IterativeImputer": "missing= of a TableSchema's columns, which handles each cell by itself",
    "OneHotEncoder": "OneHotEncoder(categories=[...]) with public lists of categories",
    "OrdinalEncoder": "OrdinalEncoder(categories=[...]) with public lists of categories",
    "TargetEncoder": "CategoricalColumn of a TableSchema, with its public list",
    "KBinsDiscretizer": "NumericColumn(cuts=[...]) of a TableSchema, with public thresholds",
    "SplineTransformer": "knots=[...], public numbers, or NumericColumn(encoding='waves')",
    "PowerTransformer": "BoundedScaler with public bounds, or NumericColumn(scale='log')",
    **dict.fromkeys(
        ("SelectKBest", "SelectPercentile", "SelectFpr", "SelectFdr", "SelectFwe"), _SELECTION
    ),
    **dict.fromkeys(
        ("GenericUnivariateSelect", "SelectFromModel", "SequentialFeatureSelector"), _SELECTION
    ),
    **dict.fromkeys(("VarianceThreshold", "RFE", "RFECV"), _SELECTION),
    "CountVectorizer": "vocabulary=[...], a public list, or HashingVectorizer",
    "TfidfVectorizer": (
        "vocabulary=[...], a public list, with use_idf=False; or transform the texts before the "
        "pipeline with one that was fitted on public texts"
    ),
    "TfidfTransformer": (
        "use_idf=False; or transform the counts before the pipeline with one that was fitted on "
        "public texts"
    ),
    "GaussianRandomProjection": "n_components as a number",
    "SparseRandomProjection": "n_components as a number",
    "LogisticRegression": "OperaLogisticRegression or another private classifier",
    "LinearSVC": "OperaSVC or another private classifier",
    "SVC": "OperaSVC or another private classifier",
    "CalibratedClassifierCV": "skdp.metrics.PrivateCalibrator around the fitted private model",
    "TunedThresholdClassifierCV": "skdp.metrics.PrivateThreshold around the fitted private model",
    "TransformedTargetRegressor": (
        "transform y with a public function before the fit, pass target_bounds of the transformed "
        "targets, and invert the function on predictions"
    ),
    "FixedThresholdClassifier": "put it around the fitted model; a public threshold is free",
}
_GENERAL_REMEDY = (
    "replace it with a private step or one that uses only public knowledge; if it learns nothing "
    "from the rows and transforms each by itself, set _learns_from_rows = False on its class "
    "(parent classes do not count)"
)


def classify_step(step: Any) -> StepVerdict:
    """Return whether a step's fitted state is private, data-independent, assumed or leaking."""
    # Unknown classes leak, unless the class itself (no parent) sets ``_learns_from_rows = False``.
    # A container is judged by the state that it stores in addition to its parts.
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return _known("it passes columns on or drops them")
    name = type(step).__name__
    package = type(step).__module__.partition(".")[0]
    if is_private(step):
        reason = "its fit is a differentially private release"
        return StepVerdict("private", reason, assumption=private_claim(step))
    if lacks_a_plan(step):
        return StepVerdict(
            "leaking", "it has no method privacy_plan to report its cost", ADD_A_PLAN
        )
    if vars(type(step)).get("_learns_from_rows", True) is False:
        if package == "skdp":
            granted = getattr(step, "_takes_for_granted", "")
            return _known("its class declares that fit learns no values", granted)
        return assumed(f"{name} learns nothing from the rows and transforms each by itself")
    if package == "sklearn":
        if name in _DATA_INDEPENDENT:
            return _known(_DATA_INDEPENDENT[name])
        judge = _DEPENDS_ON_PARAMETERS.get(name)
        if judge is not None and (verdict := judge(step)) is not None:
            return verdict
        if name in _ENSEMBLES:
            return StepVerdict(
                "leaking",
                f"its fits are charged separately and add up, but its other state, such as "
                f"{_ENSEMBLES[name]}, comes from the rows without noise",
                "one private estimator with the complete epsilon, or the fits inside by themselves",
            )
    if hasattr(step, "fit_resample"):
        return StepVerdict("leaking", *_RESAMPLING)
    reason = "it learns from the rows without noise"
    if package != "sklearn" or name not in REMEDIES:
        reason += ", or nothing shows that it does not"
    return StepVerdict("leaking", reason, REMEDIES.get(name, _GENERAL_REMEDY))


def private_claim(step: Any) -> str:
    """Return the assumption about a private step of another library; none for steps of skdp."""
    if type(step).__module__.partition(".")[0] == "skdp":
        return ""
    return f"{ASSUMED}the fit of {type(step).__name__} is as private as its record states"


def _known(reason: str, assumption: str = "") -> StepVerdict:
    return StepVerdict("data-independent", reason, assumption=assumption)


def assumed(claim: str) -> StepVerdict:
    """Return the verdict on a step that rests on an unchecked claim."""
    return StepVerdict("taken at your word", claim, assumption=ASSUMED + claim)


def _encoder(step: Any) -> StepVerdict | None:
    listed = step.categories is not None and not isinstance(step.categories, str)
    # Grouping and dropping rare categories counts rows, even with listed categories.
    counts = getattr(step, "min_frequency", None) or getattr(step, "max_categories", None)
    if not listed or counts:
        return None
    return _known("its categories are listed in its parameters", _COLUMN_TYPES)


def _imputer(step: Any) -> StepVerdict | None:
    keeps_all = step.keep_empty_features and not step.add_indicator
    if step.strategy != "constant" or not keeps_all:
        return None
    return _known("it fills in a public constant", _COLUMN_TYPES)


def _unless_text(name: str, reason: str) -> Callable[[Any], StepVerdict | None]:
    """Judge by a parameter; a string value means that it is computed from the rows."""
    return lambda step: None if isinstance(getattr(step, name), str) else _known(reason)


# "auto" follows from the number of rows, which add-remove neighbours do not share.
_projection = _unless_text("n_components", _COUNTS_COLUMNS)


def _function(step: Any) -> StepVerdict:
    function = step.func
    of_numpy = isinstance(function, np.ufunc) and function is getattr(np, function.__name__, None)
    # With two functions, fit runs both, and warns if they are not inverse to each other.
    paired = function is not None and step.inverse_func is not None and step.check_inverse
    if not paired and (function is None or (of_numpy and not step.kw_args)):
        return _known(_STATELESS)
    if mixes_rows(step):
        return StepVerdict(
            "leaking",
            "the output of its function for a row depends on other rows or changes from call to "
            "call, as synthetic rows show",
            "a function that treats each row by itself, or a private transformer",
        )
    claim = "FunctionTransformer's function treats each row by itself"
    return assumed(f"{claim}, and inverse_func undoes it on every row" if paired else claim)


def _vectorizer(step: Any) -> StepVerdict | None:
    own = step.get_params(deep=False)
    # Frequencies, and a vocabulary unless listed, are learned from the texts.
    if own.get("use_idf", False) or own.get("vocabulary", ()) is None:
        return None
    if any(callable(value) for name, value in own.items() if name != "dtype"):
        return assumed(f"{type(step).__name__}'s functions treat each text by itself")
    return _known(_STATELESS)


def _columns(step: Any) -> StepVerdict:
    for _, _, columns in step.transformers:
        if callable(columns) and not _by_pattern(columns):
            return StepVerdict(
                "leaking",
                "it selects columns by a function of the table or by the types of columns, which "
                "one missing value can change",
                "list the columns, or use make_column_selector(pattern=...)",
            )
    if not gives_dense(step):
        return StepVerdict(
            "leaking",
            "it stores whether its output was sparse, which depends on the zeros in all rows",
            "sparse_threshold=0",
        )
    return _known("it stores only its parts and the positions of their columns")


def _by_pattern(columns: Any) -> bool:
    # The type of a column can change with one cell, unlike its name.
    selects = type(columns) is make_column_selector
    return selects and columns.dtype_include is None and columns.dtype_exclude is None


_DEPENDS_ON_PARAMETERS: dict[str, Callable[[Any], StepVerdict | None]] = {
    "ColumnTransformer": _columns,
    "CountVectorizer": _vectorizer,
    "FunctionTransformer": _function,
    "GaussianRandomProjection": _projection,
    "HashingVectorizer": _vectorizer,
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "RBFSampler": _unless_text("gamma", _COUNTS_COLUMNS),  # "scale" is that of the rows
    "SimpleImputer": _imputer,
    "SparseRandomProjection": _projection,
    "SplineTransformer": _unless_text("knots", "its knots are listed in its parameters"),
    "TfidfTransformer": _vectorizer,
    "TfidfVectorizer": _vectorizer,
}
