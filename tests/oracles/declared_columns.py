"""A schema with every kind of column, rows for it, and fitted pipelines."""

import numpy as np

from skdp import OperaLogisticRegression
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    OrdinalColumn,
    TableSchema,
)

COLUMNS = (
    NumericColumn("age", 0, 100, cuts=[20, 40, 60, 80], unit="years"),
    NumericColumn("dose", 0, 10, cuts=[1, 3, 5], encoding="scaled+steps", missing="indicator"),
    NumericColumn("lab", 1, 1000, scale="log", missing="ignore", missing_codes=["1", 0]),
    NumericColumn("score", cuts=[1, 2.5, 3], encoding="cells", missing="fill", fill_value=0.0),
    CategoricalColumn("ward", ["A", "B", "C"], missing="indicator", unknown="indicator"),
    OrdinalColumn("stage", [1, 2, 3, "late"], missing="indicator"),
    BooleanColumn("smoker", missing="ignore"),
)


def schema(classes=(0, 1), columns=COLUMNS, **fields):
    return TableSchema(columns, label=LabelColumn("y", list(classes)), **fields)


def rows(n, seed=0):
    """Return cells by column, bounds exceeded, missing and unknown ones among them."""
    rng = np.random.default_rng(seed)

    def one_of(values):
        return rng.choice(np.array(values, dtype=object), n)

    cells = {
        "age": rng.uniform(-20, 130, n),
        "dose": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(-1, 12, n)),
        "lab": one_of([0, 1, 2.0, "30", 5000, None, np.nan]),
        "score": one_of([-1.0, 1, 2.7, 3, 9, None]),
        "ward": one_of(["A", "B", "C", "Z", None]),
        "stage": one_of([1, "2", 3, "late", "odd", None]),
        "smoker": one_of([True, 0, "maybe", None]),
    }
    table = np.empty((n, len(cells)), dtype=object)
    for place, column in enumerate(cells.values()):
        table[:, place] = column
    return cells, table


def fitted(estimator=None, classes=(0, 1), n=400, **fields):
    """Return a pipeline fitted on such rows, whose labels follow the age."""
    _, table = rows(n, seed=1)
    estimator = OperaLogisticRegression(2.0, random_state=0) if estimator is None else estimator
    labels = np.digitize(table[:, 0].astype(float), [50.0, 90.0][: len(classes) - 1])
    model = schema(classes, **fields).pipeline(estimator, positions=True)
    return model.fit(table, np.asarray(classes)[labels])
