"""Odds ratios of public tables from one budget, compared with a regression without privacy.

Schemas have few columns, with bounds and lists from code books, and no cuts. The complete table is
used. `fit_evaluate` has the epsilon in the table for fit and look together. Standard errors without
privacy are those of statsmodels' ``Logit``: the inverse of the information at the estimate.

    SKDP_DATA=data python examples/benchmarks/odds_ratios_real.py         # minutes of a processor
    SKDP_DATA=data python examples/benchmarks/odds_ratios_real.py --seeds 3 --tables cardio
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
from _datasets import data_directory
from scipy.special import ndtri
from sklearn.linear_model import LogisticRegression

from skdp import OperaLogisticRegression
from skdp.inference import PrivateInference
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    TableSchema,
)

DELTA = 1e-6
FILES = {
    "adult": ("adult_train.csv.gz", {"na_values": "?"}),
    "bank": ("bank-full.csv.gz", {"sep": ";"}),
    "cardio": ("cardio_train.csv.gz", {"sep": ";", "index_col": "id"}),
    "support2": ("support2.csv.gz", {"index_col": 0}),
}
YES = ["no", "yes"]
MARRIED = {"Married-civ-spouse": "married", "Married-AF-spouse": "married"}
MARRIED |= {"Never-married": "single"}
LUNGS = {"ARF/MOSF w/Sepsis": "organ failure", "MOSF w/Malig": "organ failure", "Coma": "coma"}
LUNGS |= {"Colon Cancer": "cancer", "Lung Cancer": "cancer"}
GROUPS = ["organ failure", "cancer", "CHF", "COPD", "Cirrhosis", "coma"]
RACES = ["White", "Black", "Asian-Pac-Islander", "other"]
SCHEMAS = {
    "adult": TableSchema([
        NumericColumn("age", 17, 90, unit="years"),
        NumericColumn("education_num", 1, 16, unit="years"),
        NumericColumn("hours_per_week", 1, 99, unit="hours"),
        BooleanColumn("sex", ["Female", "Male"]),
        CategoricalColumn("marital_status", ["married", "single", "divorced or widowed"]),
        CategoricalColumn("race", RACES),
        CategoricalColumn("workclass", ["Private", "government", "self-employed", "other"]),
    ], label=LabelColumn("income", ["<=50K", ">50K"])),
    "bank": TableSchema([
        NumericColumn("age", 18, 95, unit="years"),
        NumericColumn("campaign", 1, 50, scale="log"),
        CategoricalColumn("marital", ["married", "single", "divorced"]),
        CategoricalColumn("education", ["secondary", "primary", "tertiary", "unknown"]),
        CategoricalColumn("contact", ["cellular", "telephone", "unknown"]),
        CategoricalColumn("poutcome", ["unknown", "failure", "other", "success"]),
        BooleanColumn("default", YES),
        BooleanColumn("housing", YES),
        BooleanColumn("loan", YES),
    ], label=LabelColumn("y", YES)),
    "cardio": TableSchema([
        NumericColumn("age", 30, 70, unit="years"),
        NumericColumn("bmi", 12, 60, unit="kg/m2"),
        NumericColumn("ap_hi", 80, 220, unit="mmHg"),
        NumericColumn("ap_lo", 40, 140, unit="mmHg"),
        BooleanColumn("gender", [1, 2]),
        CategoricalColumn("cholesterol", [1, 2, 3]),
        CategoricalColumn("gluc", [1, 2, 3]),
        BooleanColumn("smoke"),
        BooleanColumn("alco"),
        BooleanColumn("active"),
    ], label=LabelColumn("cardio", [0, 1])),
    "support2": TableSchema([
        NumericColumn("age", 18, 100, unit="years"),
        BooleanColumn("sex", ["female", "male"]),
        CategoricalColumn("dzgroup", GROUPS),
        NumericColumn("num.co", 0, 9, unit="diseases"),
        NumericColumn("scoma", 0, 100, unit="points", missing="fill", fill_value=0),
        NumericColumn("meanbp", 30, 180, unit="mmHg", missing="fill", fill_value=90),
        NumericColumn("hrt", 30, 200, unit="1/min", missing="fill", fill_value=80),
        NumericColumn("resp", 4, 60, unit="1/min", missing="fill", fill_value=18),
        NumericColumn("crea", 0.3, 15, scale="log", missing="fill", fill_value=1),
        BooleanColumn("diabetes"),
    ], label=LabelColumn("hospdead", [0, 1])),
}  # fmt: skip


def read_table(name: str) -> tuple[TableSchema, pd.DataFrame]:
    """Return a schema and its table, in which rare levels are merged row by row."""
    file, how = FILES[name]
    frame = pd.read_csv(data_directory() / file, **how)
    if name == "adult":
        frame["marital_status"] = frame.marital_status.map(MARRIED).fillna("divorced or widowed")
        frame["race"] = frame.race.where(frame.race.isin(RACES), "other")
        work = frame.workclass.fillna("other")
        frame["workclass"] = np.select(
            [work == "Private", work.str.contains("-gov"), work.str.startswith("Self")],
            ["Private", "government", "self-employed"],
            "other",
        )
    if name == "cardio":
        frame["age"] /= 365.25
        frame["bmi"] = frame.weight / (frame.height / 100.0) ** 2
    if name == "support2":
        frame["dzgroup"] = frame.dzgroup.replace(LUNGS)
    schema = SCHEMAS[name]
    return schema, frame[[*schema.features, schema.label.name]]


def without_privacy(schema: TableSchema, frame: pd.DataFrame, result: Any) -> tuple[Any, Any]:
    """Return estimates and standard errors without privacy, for the rows of a result's table."""
    cells, labels = schema.split(frame)
    X = schema.preprocessor().fit_transform(cells)
    model = LogisticRegression(C=math.inf, tol=1e-10, max_iter=5000).fit(X, labels)
    told, functions, _ = result._effects(None)
    rows = np.column_stack([X, np.ones(len(X))]) @ result.part.basis
    chance = model.predict_proba(X)[:, 1]
    covariance = np.linalg.inv((rows.T * (chance * (1.0 - chance))) @ rows)
    kept = functions[~told["is_reference"]][:-1]  # without the intercept
    spread = kept @ result.part.basis
    estimates = kept @ np.append(model.coef_[0], model.intercept_)
    return estimates, np.sqrt(((spread @ covariance) * spread).sum(axis=1))


def look(schema: TableSchema, frame: pd.DataFrame, epsilon: float, args: Any, seed: int) -> Any:
    """Return the result of fit and look for one epsilon."""
    known = {"delta": DELTA, "adjacency": args.adjacency, "random_state": seed}
    share = {"share": args.share, "data_norm": args.data_norm}
    inference = PrivateInference(epsilon=epsilon, **known, **share)
    model = schema.pipeline(OperaLogisticRegression(random_state=seed))
    return inference.fit_evaluate(model, frame)


def measure(schema: TableSchema, frame: pd.DataFrame, epsilon: float, args: Any) -> list[float]:
    """Return means over seeds; significance is that of 95 % intervals."""
    found, plain = [], None
    for seed in range(args.seeds):
        result = look(schema, frame, epsilon, args, seed)
        plain = without_privacy(schema, frame, result) if plain is None else plain
        estimates, errors = plain
        table = result.table()
        told = np.flatnonzero(~table.is_reference)[:-1]
        low, high, note = (table[key][told] for key in ("low", "high", "note"))
        tested = np.isfinite(table["p_value"][told])
        known = np.abs(estimates) > ndtri(0.975) * errors
        both = known & ((low > 0.0) | (high < 0.0)) & tested
        wrong = both & (np.sign(low + high) != np.sign(estimates))
        ratio = np.median((high - low) / (2.0 * ndtri(0.975) * errors))
        agree = np.mean((low <= estimates) & (estimates <= high))
        far = np.mean(note == "mostly prior")
        found.append([both.sum() / known.sum(), wrong.sum(), agree, ratio, far])
    return np.append(np.mean(found, axis=0), known.sum()).tolist()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=list(FILES), default=list(FILES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.3, help="of the squared mu, for the fit")
    parser.add_argument("--data-norm", type=float)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table, rows | adjacency | epsilon | significant kept | wrong signs | agreement "
          "| width | mostly prior |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name in args.tables:
        schema, frame = read_table(name)
        for args.adjacency in ("add-remove", "replace-one"):
            for epsilon in (1.0, 3.0):
                kept, wrong, agree, ratio, prior, count = measure(schema, frame, epsilon, args)
                print(f"| {name}, {len(frame):,} | {args.adjacency} | {epsilon:g} | {kept:.2f} of "
                      f"{count:.0f} | {wrong * args.seeds:.0f} | {agree:.3f} "
                      f"| {ratio:.2f} | {prior:.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
