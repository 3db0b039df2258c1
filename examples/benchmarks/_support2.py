"""SUPPORT2 (seriously ill patients in hospital) by public bounds alone.

Bounds are those of the measurement, round numbers from physiology, and lists from the code book;
no column has cuts, and none a scale but the linear one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
from _datasets import Dataset, data_directory

from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    TableSchema,
)

_BOUNDS = {
    "age": (18, 100),
    "num.co": (0, 10),
    "edu": (0, 30),
    "scoma": (0, 100),
    "hday": (1, 30),
    "meanbp": (0, 200),
    "wblc": (0, 50),
    "hrt": (0, 200),
    "resp": (0, 60),
    "temp": (32, 42),
    "pafi": (50, 600),
    "alb": (1, 6),
    "bili": (0, 30),
    "crea": (0, 12),
    "sod": (110, 170),
    "ph": (6.8, 7.8),
    "glucose": (0, 600),
    "bun": (0, 150),
    "urine": (0, 6000),
    "adlp": (0, 7),
    "adls": (0, 7),
}
_LISTS = {
    "sex": ["female", "male"],
    "race": ["white", "black", "hispanic", "asian", "other"],
    "income": ["under $11k", "$11-$25k", "$25-$50k", ">$50k"],
    "ca": ["no", "yes", "metastatic"],
    "dzgroup": [
        *("ARF/MOSF w/Sepsis", "CHF", "COPD", "Cirrhosis"),
        *("Colon Cancer", "Coma", "Lung Cancer", "MOSF w/Malig"),
    ],
}


def load_support2(directory: str | os.PathLike[str] | None = None) -> Dataset:
    """SUPPORT2 (9,105 rows: death in hospital), for random splits.

    `directory` holds ``support2.csv.gz``; FileNotFoundError if it does not.
    """
    frame = pd.read_csv(Path(data_directory(directory)) / "support2.csv.gz", index_col=0)
    ignored = {"missing": "indicator"}
    schema = TableSchema(
        [
            *(NumericColumn(name, *bounds, **ignored) for name, bounds in _BOUNDS.items()),
            *(CategoricalColumn(name, listed, **ignored) for name, listed in _LISTS.items()),
            *(BooleanColumn(name, [0, 1]) for name in ("diabetes", "dementia")),
        ],
        label=LabelColumn("hospdead", [0, 1]),
    )
    # What is known later, and other models' answers, is left out.
    rows, y = schema.split(frame[[*schema.features, schema.label.name]])
    X = schema.preprocessor().fit_transform(rows)
    return Dataset("support2", X, y, None, None, schema.data_norm, schema.features)
