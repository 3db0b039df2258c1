"""A schema's transformer, and its pipeline with an estimator, which takes entire tables."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if

from skdp.base.pipelines import behind_others, is_routed, who_needs_ids
from skdp.base.scikit_learn import last_and_meaning, responds
from skdp.preprocessing.schema.base import (
    names_read,
)
from skdp.preprocessing.schema.columns import NumericColumn
from skdp.preprocessing.schema.encoder import SchemaEncoder
from skdp.preprocessing.schema.frames import (
    refuse_container,
    refuse_no_label,
    rows_as_array,
    split_table,
    warn_without_ids,
)
from skdp.preprocessing.schema.label import NumericLabel
from skdp.preprocessing.schema.lists import KINDS
from skdp.preprocessing.schema.meanings import Meaning, label_words
from skdp.tables.inputs import note_table
from skdp.tables.places import as_rows_are_read, is_read_later
from skdp.tables.row_sources import BlockTable, source_of

_OTHERS = (
    "columns of the table that the schema does not mention are neither read nor checked: "
    "others='ignore'"
)


class SchemaPreprocessor(ColumnTransformer):
    """A `ColumnTransformer` that checks the kind of a table first.

    The errors of its base would name no remedy, and would quote cells of a mapping.
    """

    # The fitted state follows from the parameters, as that of its parts.
    _learns_from_rows = False
    # Otherwise it is its base, which walks over steps enter.
    _only_checks_tables = True
    _unit: Any = None  # whose rows are whose in the schema's tables

    def __sklearn_clone__(self) -> Any:
        found = super().__sklearn_clone__()
        found._unit = self._unit
        return found

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Check the kind of the table, then do the same as the base class."""
        return self._fit_transform_inputs(self._inputs_of(X), y, **params)

    def transform(self, X: Any, **params: Any) -> Any:
        """Check the kind of the table, then do the same as the base class."""
        return self._transform_inputs(self._inputs_of(X), **params)

    def _inputs_of(self, X: Any) -> Any:
        """Return a table that is not in memory without the columns that are not needed."""
        chosen = [key for _, _, keys in self.transformers for key in keys]
        names = list(X.columns) if is_read_later(X) and hasattr(X, "columns") else []
        kept = [name for name in names if name in chosen]
        return X[kept] if 0 < len(kept) < len(names) else X

    @as_rows_are_read
    def _fit_transform_inputs(self, X: Any, y: Any = None, **params: Any) -> Any:
        X = self._checked(X)
        if (source := source_of(X, converted=False)) is None:
            return super().fit_transform(X, y, **params)
        super().fit_transform(source.read(0, 0), **params)
        return self._as_read(source)

    @as_rows_are_read
    def _transform_inputs(self, X: Any, **params: Any) -> Any:
        X = self._checked(X)
        if (source := source_of(X, converted=False)) is None:
            return super().transform(X, **params)
        return self._as_read(source)

    def _as_read(self, source: BlockTable) -> Any:
        """Return rows that are encoded as they are read, with a copy of this fit."""
        steps = copy.deepcopy(self)
        for _, encoder, _ in steps.transformers_:
            if isinstance(encoder, SchemaEncoder):  # and no word such as "drop"
                encoder._tells = False
        return source.encoded(steps.encode_block, steps.encode_block(source.read(0, 0)))

    def encode_block(self, block: Any) -> Any:
        """Encode validated rows in memory, or mapped there."""
        return np.asarray(super().transform(block))

    def _meaning_after(self, before: Any) -> Meaning | None:
        """Return the meaning of the features of all its encoders."""
        found = [encoder._meaning_after(before) for _, encoder, _ in self.transformers]
        return (
            None if None in found else Meaning(tuple(part for each in found for part in each.parts))
        )

    def _checked(self, X: Any) -> Any:
        refuse_container(X)
        keys = {key for _, _, chosen in self.transformers for key in chosen}
        if any(isinstance(key, str) for key in keys):
            if hasattr(X, "columns"):
                return X
            raise ValueError(
                "the schema's columns are chosen by name, which needs a pandas or polars frame. "
                "For an array or list with the schema's features in their order, use "
                "positions=True in preprocessor or pipeline."
            )
        if isinstance(X, list | tuple):
            X = rows_as_array(X)
        if X.shape[1] != len(keys) or not self._has_names_of(X):
            raise ValueError(
                "the schema's columns are chosen by position: the table must have exactly the "
                "schema's features, in their order."
            )
        return X

    def _has_names_of(self, X: Any) -> bool:
        """Return whether a frame has the features' names in their order, or no names."""
        names = list(getattr(X, "columns", ()))
        parts = [
            (keys, names_read(getattr(step, "columns", ()))) for _, step, keys in self.transformers
        ]
        return not all(isinstance(name, str) for name in names[:1]) or all(
            names[key] == name
            for keys, own in parts
            for key, name in zip(keys, own, strict=False)
            if names
        )


class SchemaPipeline(Pipeline):
    """A `Pipeline` that takes features, labels and ids of a table from the schema's columns."""

    # As above: it adds to its base only the handling of labels and ids.
    _learns_from_rows = False
    _only_checks_tables = True
    # With metadata routing steps request ids, and the pipeline itself requests none.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}
    __metadata_request__fit_transform: ClassVar[dict[str, str]] = {"groups": UNUSED}
    __metadata_request__fit_predict: ClassVar[dict[str, str]] = {"groups": UNUSED}

    def __init__(
        self,
        steps: Any,
        *,
        schema: Any = None,
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.schema = schema

    def __getitem__(self, ind: Any) -> Any:
        """Return a step, or a pipeline of several; with the first step it takes tables."""
        found = super().__getitem__(ind)
        if isinstance(ind, slice) and ind.indices(len(self.steps))[0] == 0:
            found.schema = self.schema
        return found

    @property
    def _unit(self) -> Any:
        """The unit that owns the rows of its tables."""
        return getattr(self.schema, "unit", None)

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **params: Any) -> Self:
        """Fit on a table with the schema's columns, or on features, labels and ids.

        Ids, from groups= or the unit's column, reach each step that learns privately, or fit
        raises.
        """
        table = X
        X, y, params = self._given(X, y, groups, params)
        super().fit(X, y, **params)
        note_table(self, table)
        self._tell_meaning()
        return self

    def _tell_meaning(self) -> None:
        """Pass the meaning of its features to a regressor that requests it; no row is read."""
        last, meaning = last_and_meaning(self)
        if meaning is not None and responds(last, "_hear"):
            last._hear(replace(meaning, target=label_words(getattr(self.schema, "label", None))))

    @property
    def _takes_for_granted(self) -> str:
        """Assumption of the privacy statement about the tables of this pipeline."""
        return _OTHERS if getattr(self.schema, "others", "raise") == "ignore" else ""

    @available_if(lambda self: callable(super().fit_transform))
    def fit_transform(self, X: Any, y: Any = None, *, groups: Any = None, **params: Any) -> Any:
        """Fit as `fit` does, and return the rows transformed by the last step."""
        X, y, params = self._given(X, y, groups, params)
        found = super().fit_transform(X, y, **params)
        self._tell_meaning()
        return found

    @available_if(lambda self: callable(super().fit_predict))
    def fit_predict(self, X: Any, y: Any = None, *, groups: Any = None, **params: Any) -> Any:
        """Fit as `fit` does, and return the predictions of the last step."""
        X, y, params = self._given(X, y, groups, params)
        found = super().fit_predict(X, y, **params)
        self._tell_meaning()
        return found

    @available_if(lambda self: callable(super().score))
    def score(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Return the score without noise, which is private; ``y=None`` uses the label's column."""
        X, y, _ = split_table(self.schema, X, y, groups=False)  # which need not be there
        return super().score(X, y, **params)

    def _given(
        self, X: Any, y: Any, groups: Any, params: dict[str, Any]
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Return rows, labels, and parameters of the fits of steps, with ids among them."""
        keys = [key for key in params if key.endswith("__groups") and params[key] is not None]
        if not keys:
            wanted = groups is not None
            X, y, groups = self._take_apart(X, y, groups, is_classifier(self) or is_regressor(self))
            return X, y, params if groups is None else {**params, **self._hand_on(groups, wanted)}
        named, whole = {key.removesuffix("__groups") for key in keys}, y is None
        missed = [name for name, why in who_needs_ids(self) if why or name not in named]
        X, y, ids = split_table(self.schema, X, y)
        if groups is not None or (ids is not None and (missed or whole)):
            raise ValueError(
                f"fit was given {', '.join(keys)}, and also ids for all steps, by groups= or the "
                "unit's column of the table. Leave the former out."
            )
        if missed:
            warn_without_ids(self.schema)
        return X, y, params

    def _take_apart(
        self, X: Any, y: Any, groups: Any, needs_label: bool = False
    ) -> tuple[Any, Any, Any]:
        """Return features, labels and ids, and warn if units may have several rows but no ids."""
        X, y, groups = split_table(self.schema, X, y, groups)
        if needs_label and y is None:
            refuse_no_label(self.schema, X)
        if groups is None:
            warn_without_ids(self.schema)
        return X, y, groups

    def _hand_on(self, ids: Any, wanted: bool) -> dict[str, Any]:
        """Return the parameters that pass ids to all steps that learn privately, or raise."""
        needs = list(who_needs_ids(self))
        if not needs and not wanted:  # nothing of it is private
            return {}
        if missed := [why for _, why in needs if why]:
            remedy = (
                "request them by set_fit_request(groups=True)"
                if is_routed()
                else "in a ColumnTransformer or FeatureUnion they need metadata routing"
            )
            raise ValueError(
                f"ids do not reach {', '.join(missed)}, which would treat each row as a record. "
                f"Private steps must receive groups=: {remedy}. For a search use "
                "skdp.model_selection.PrivateGridSearchCV, or put the pipeline into it."
            )
        if not needs and not is_routed():
            raise ValueError("groups= was given, but no step accepts it. Leave it out.")
        return {"groups": ids} if is_routed() else {f"{name}__groups": ids for name, _ in needs}


def make_preprocessor(schema: Any, positions: bool) -> SchemaPreprocessor:
    """Return the transformer of a schema: one encoder per kind of column and per interaction."""
    names = schema.inputs
    features = [schema[name] for name in schema.features]
    if not features:
        raise schema._fail("columns", "no column is a feature.")
    for column in features:
        column.refuse_open()
        if isinstance(column, NumericColumn):
            column.warn_of_cuts()
    groups = [(kind, [c.name for c in features if c.kind == kind], False) for kind in KINDS]
    groups += [(f"interaction {j}", own, True) for j, own in enumerate(schema.interactions, 1)]
    steps = [
        (
            title,
            SchemaEncoder(columns, product=product),
            [names.index(name) for name in read] if positions else read,
        )
        for title, own, product in groups
        for columns in [tuple(schema[name] for name in own)]
        for read in [names_read(columns)]
        if own
    ]
    made = SchemaPreprocessor(steps, remainder="drop", verbose_feature_names_out=False)
    made._unit = schema.unit
    return made


def make_schema_pipeline(schema: Any, estimator: Any, positions: bool) -> SchemaPipeline:
    """Return a pipeline of the preprocessor and a clone with the norm and label of the schema."""
    estimator = clone(estimator)
    for part in (estimator, *estimator.get_params(deep=True).values()):
        if hasattr(type(part), "_protects"):  # what it charges says so in the ledger
            part._protects = {"name": schema.unit.name, "max_rows": schema.unit.max_rows}
    of_label = {} if schema.label is None else _label_parameters(schema.label, estimator)
    elsewhere = behind_others(estimator)
    for key, value in estimator.get_params(deep=True).items():
        last = key.rpartition("__")[2]
        if last in of_label and value is None:
            estimator.set_params(**{key: of_label[last]})
        if last != "data_norm" or key.startswith(elsewhere):
            continue
        if value is None:
            estimator.set_params(**{key: schema.data_norm})
        elif value != schema.data_norm:
            raise ValueError(
                f"{key}={value!r} was given, but the schema's rows are bounded by data_norm="
                f"{schema.data_norm!r}. Leave it out. For shorter rows, give the schema a "
                "clip_norm: schema.replace(clip_norm=...)."
            )
    steps = make_pipeline(make_preprocessor(schema, positions), estimator).steps
    return SchemaPipeline(steps, schema=schema)


def _label_parameters(label: Any, estimator: Any) -> dict[str, Any]:
    """Return the estimator's parameters that follow from the label, or raise if it does not fit.

    Searches and pipelines are judged by their estimator. Other objects receive all parameters.
    """
    numeric, known = isinstance(label, NumericLabel), hasattr(estimator, "__sklearn_tags__")
    if known and (is_classifier if numeric else is_regressor)(estimator):
        holds, wanted = ("a number", "regressor") if numeric else ("a class", "classifier")
        name = type(estimator).__name__
        raise label._fail("kind", f"it is {holds}, which {name} does not predict. Use a {wanted}.")
    if isinstance(label, NumericLabel):
        label.refuse_open()
        return {"target_bounds": (label.lower, label.upper)}
    if label.classes is None:
        return {}
    return {"classes": list(label.classes), "prevalence": label.prevalence}
