"""Tables of Ding et al.: one-hot categories, numbers in [0, 1], rows of norm 1.

The paper reads ranges and categories off the rows; here they are the public ones of skdp's ready
schemas. Rows with missing values are dropped, as there. Adult is without its survey weight and the
code of education.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.preprocessing import OneHotEncoder, normalize

from skdp import datasets


@dataclass(frozen=True)
class Table:
    """Rows in CSR form and labels -1 and 1, to train and to test on."""

    name: str
    X: Any
    signs: np.ndarray
    X_test: Any
    signs_test: np.ndarray


def encode(schema, frame):
    """Return rows of norm 1 and labels -1 and 1 by public bounds and categories alone."""
    blocks = []
    for column in schema.columns:
        if column.kind == "ignored":
            continue
        cells = frame[[column.name]]
        if listed := column.listed():
            encoder = OneHotEncoder(categories=[list(listed)], handle_unknown="ignore")
            blocks.append(encoder.fit_transform(cells))
        else:
            inside = np.clip(cells.to_numpy(float), column.lower, column.upper)
            blocks.append(csr_array((inside - column.lower) / (column.upper - column.lower)))
    signs = np.where(schema.split(frame)[1] == schema.label.classes[1], 1.0, -1.0)
    return csr_array(normalize(hstack(blocks))), signs


def _divide(name, X, signs, seed=0):
    """Hold out 30 % of the rows, at random and for a seed always the same."""
    order = np.random.default_rng(seed).permutation(len(signs))
    test, train = np.split(order, [round(0.3 * len(signs))])
    return Table(name, X[train], signs[train], X[test], signs[test])


def _load_adult():
    """Read Adult with the split of UCI: 30,162 rows to train on and 15,060 to test on."""
    parts = [datasets.fetch_adult(subset=subset) for subset in ("train", "test")]
    halves = [encode(part.schema, part.frame.dropna()) for part in parts]
    return Table("Adult", *halves[0], *halves[1])


def load_ipums(path):
    """Read a user's extract of IPUMS-BR: a CSV file whose last column is the label, of two values.

    Nobody may pass that table on, so that there is no schema for it: categories and ranges are read
    off the rows, as in the paper, which differential privacy does not cover.
    """
    import pandas

    frame = pandas.read_csv(path).dropna()
    features = pandas.get_dummies(frame.iloc[:, :-1], dtype=float)
    lower, upper = features.min(), features.max()
    scaled = ((features - lower) / (upper - lower).where(upper > lower, 1.0)).to_numpy()
    signs = np.where(frame.iloc[:, -1] == frame.iloc[:, -1].max(), 1.0, -1.0)
    return _divide("IPUMS-BR", csr_array(normalize(scaled)), signs)


def load_tables(ipums=None):
    """Yield Adult and BANK, or breast cancer, which scikit-learn has, where they are missing."""
    try:
        yield _load_adult()
        bank = datasets.fetch_bank(download_if_missing=False)
        yield _divide("BANK", *encode(bank.schema, bank.frame))
    except FileNotFoundError as missing:
        print(f"breast cancer in their place: {missing}")
        table = datasets.load_breast_cancer()
        yield _divide("breast cancer", *encode(table.schema, table.frame))
    if ipums:
        yield load_ipums(ipums)


def load_medical_table(name, seed):
    """Return Heart or Cardio, or breast cancer in the place of a missing one, divided by a seed."""
    try:
        fetch = {"Heart": datasets.fetch_heart, "Cardio": datasets.fetch_cardio}[name]
        found = fetch(download_if_missing=False)
    except FileNotFoundError as missing:
        print(f"breast cancer in its place: {missing}")
        name, found = "breast cancer", datasets.load_breast_cancer()
    return _divide(name, *encode(found.schema, found.frame.dropna()), seed)
