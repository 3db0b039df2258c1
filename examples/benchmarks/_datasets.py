"""Benchmark data sets, encoded with public knowledge only.

Nothing in this module is fitted on the rows: categories come from the code books, bounds of
numeric columns are round numbers that the meaning of the column suggests, and every transform
works on one record at a time. So encoding a table costs no privacy, and ``data_norm`` is a public
bound on the norm of an encoded row.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer as _sklearn_breast_cancer

Array = NDArray[np.float64]
Row = dict[str, str]

# Directory of the data sets unless an argument or SKDP_DATA names another one.
DEFAULT_DIRECTORY = Path(__file__).resolve().parents[2] / "data"


@dataclass(frozen=True)
class Dataset:
    """One encoded binary classification problem.

    Attributes
    ----------
    name : str
        Short name for tables.
    X, y : ndarray
        Training rows, or all rows where `X_test` is None. Labels are 0 and 1.
    X_test, y_test : ndarray or None
        The test split that comes with the data, if there is one.
    data_norm : float
        Public bound on the Euclidean norm of a row of `X`.
    feature_names : list of str
        One name for each column of `X`.
    """

    name: str
    X: Array
    y: NDArray[np.int64]
    X_test: Array | None
    y_test: NDArray[np.int64] | None
    data_norm: float
    feature_names: list[str]

    def splits(
        self, repeats: int, test_size: float = 0.3
    ) -> Iterator[tuple[Array, NDArray[np.int64], Array, NDArray[np.int64]]]:
        """Yield `repeats` tuples (X_train, y_train, X_test, y_test).

        Data sets with a test split of their own give the same split every time; the others are
        divided at random, without looking at the labels, with seeds 0, 1, ....

        Parameters
        ----------
        repeats : int
            Number of splits, at least 1.
        test_size : float, default=0.3
            Share of the rows that is held out, in (0, 1).

        Yields
        ------
        tuple of ndarray
            X_train, y_train, X_test, y_test.
        """
        for seed in range(repeats):
            if self.X_test is not None and self.y_test is not None:
                yield self.X, self.y, self.X_test, self.y_test
                continue
            order = np.random.default_rng(seed).permutation(len(self.y))
            held = round(test_size * len(self.y))
            test, train = order[:held], order[held:]
            yield self.X[train], self.y[train], self.X[test], self.y[test]


# ---------------------------------------------------------------------------------------------
# Column encoders. Each gives the encoded columns, their names and a bound on their squared norm.
Encoded = tuple[Array, list[str], float]


@dataclass(frozen=True)
class Numeric:
    """A number clipped to public bounds and mapped linearly to [-1, 1].

    With ``bins`` edges the column is one-hot encoded instead: cell j holds edge j-1 <= x < edge j.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    bins: tuple[float, ...] = ()

    def encode(self, rows: Sequence[Row]) -> Encoded:
        """Encode the column of all rows."""
        values = np.array([float(row[self.name]) for row in rows])
        if self.bins:
            cells = np.digitize(values, self.bins)
            names = [f"{self.name}_bin{j}" for j in range(len(self.bins) + 1)]
            return np.eye(len(names))[cells], names, 1.0
        values = np.clip(values, self.low, self.high)
        scaled = 2.0 * (values - self.low) / (self.high - self.low) - 1.0
        return scaled[:, None], [self.name], 1.0


@dataclass(frozen=True)
class Categorical:
    """One-hot columns for a code book's categories (words of one string); others give zeros."""

    name: str
    categories: str

    def encode(self, rows: Sequence[Row]) -> Encoded:
        """Encode the column of all rows."""
        values = np.array([row[self.name] for row in rows])
        categories = self.categories.split()
        columns = values[:, None] == np.array(categories)[None, :]
        return columns.astype(float), [f"{self.name}={c}" for c in categories], 1.0


def _encode(
    rows: Sequence[Row], columns: Iterable[Numeric | Categorical]
) -> tuple[Array, list[str], float]:
    """Encode `rows` and give the matrix, the feature names and the row-norm bound."""
    parts = [column.encode(rows) for column in columns]
    matrix = np.ascontiguousarray(np.hstack([part[0] for part in parts]))
    names = [name for part in parts for name in part[1]]
    return matrix, names, float(np.sqrt(sum(part[2] for part in parts)))


def data_directory(directory: str | os.PathLike[str] | None = None) -> Path:
    """Return the directory of the data files: argument, SKDP_DATA, or ``data`` at the root."""
    return Path(directory or os.environ.get("SKDP_DATA") or DEFAULT_DIRECTORY)


def _read(directory: str | os.PathLike[str] | None, name: str, delimiter: str = ",") -> list[Row]:
    """Read the rows of ``<name>.csv.gz``."""
    path = data_directory(directory) / f"{name}.csv.gz"
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing. Pass the directory that holds {path.name}, or set the environment "
            "variable SKDP_DATA to it; the breast cancer data need no file."
        )
    with gzip.open(path, "rt", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


# ---------------------------------------------------------------------------------------------
# Adult. Bins of money are multiples of 2500 and 500 dollars: most people declare none.
_ADULT = (
    Numeric("age", bins=(20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70)),
    Categorical(
        "workclass",
        "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay "
        "Never-worked",
    ),
    Categorical(
        "education",
        "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc "
        "Assoc-acdm Bachelors Masters Prof-school Doctorate",
    ),
    Categorical(
        "marital_status",
        "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
        "Married-AF-spouse",
    ),
    Categorical(
        "occupation",
        "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
        "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
        "Priv-house-serv Protective-serv Armed-Forces",
    ),
    Categorical("relationship", "Wife Own-child Husband Not-in-family Other-relative Unmarried"),
    Categorical("race", "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
    Categorical("sex", "Female Male"),
    Numeric("capital_gain", bins=(1, 2500, 5000, 7500, 10000, 15000)),
    Numeric("capital_loss", bins=(1, 500, 1000, 1500, 2000, 2500)),
    Numeric("hours_per_week", bins=(20, 30, 40, 41, 50, 60)),
    Categorical(
        "native_country",
        "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) "
        "India Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica "
        "Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti "
        "Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador "
        "Trinadad&Tobago Peru Hong Holand-Netherlands",
    ),
)

_BANK = (
    Numeric("age", bins=(25, 30, 35, 40, 45, 50, 55, 60, 65)),
    Categorical(
        "job",
        "admin. unknown unemployed management housemaid entrepreneur student blue-collar "
        "self-employed retired technician services",
    ),
    Categorical("marital", "married divorced single"),
    Categorical("education", "unknown secondary primary tertiary"),
    Categorical("default", "yes no"),
    Numeric("balance", bins=(0, 500, 1000, 2000, 5000)),
    Categorical("housing", "yes no"),
    Categorical("loan", "yes no"),
    Categorical("contact", "unknown telephone cellular"),
    Numeric("day", bins=(6, 11, 16, 21, 26)),
    Categorical("month", "jan feb mar apr may jun jul aug sep oct nov dec"),
    Numeric("duration", bins=(60, 120, 180, 240, 300, 420, 600, 900, 1200)),
    Numeric("campaign", bins=(2, 3, 4, 6, 11)),
    Numeric("pdays", bins=(0, 91, 182, 274, 365)),
    Numeric("previous", bins=(1, 2, 3, 6)),
    Categorical("poutcome", "unknown other failure success"),
)

# Cardio. Age in days; pressures in mmHg with the edges of the clinical stages of hypertension.
_CARDIO = (
    Numeric("age", low=30 * 365.25, high=70 * 365.25),
    Categorical("gender", "1 2"),
    Numeric("height", low=140, high=200),
    Numeric("weight", low=40, high=130),
    Numeric("ap_hi", low=80, high=200),
    Numeric("ap_hi", bins=(90, 120, 130, 140, 160, 180)),
    Numeric("ap_lo", bins=(60, 80, 90, 100, 110)),
    Categorical("cholesterol", "1 2 3"),
    Categorical("gluc", "1 2 3"),
    Categorical("smoke", "0 1"),
    Categorical("alco", "0 1"),
    Categorical("active", "0 1"),
)

_HEART = (
    Numeric("age", low=30, high=80),
    Categorical("sex", "0.0 1.0"),
    Categorical("cp", "1.0 2.0 3.0 4.0"),
    Numeric("trestbps", low=80, high=200),
    Numeric("chol", low=100, high=400),
    Categorical("fbs", "0.0 1.0"),
    Categorical("restecg", "0.0 1.0 2.0"),
    Numeric("thalach", low=80, high=220),
    Categorical("exang", "0.0 1.0"),
    Numeric("oldpeak", low=0, high=4),
    Categorical("slope", "1.0 2.0 3.0"),
    Categorical("ca", "0.0 1.0 2.0 3.0"),
    Categorical("thal", "3.0 6.0 7.0"),
)


def load_adult(directory: str | os.PathLike[str] | None = None) -> Dataset:
    """Adult (UCI, census income above 50,000 dollars), with the split that UCI gives.

    Rows with a missing value are dropped, as usual: 30,162 remain to train on and 15,060 to test
    on. The survey weight is left out, and so is ``education_num``, which codes ``education`` again.
    Numbers are cut into public bins, because income is not linear in age or capital gain.

    Parameters
    ----------
    directory : path-like, optional
        Directory of ``adult_train.csv.gz`` and ``adult_test.csv.gz``.

    Returns
    -------
    Dataset
        With a test split.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    """
    halves = []
    for name in ("adult_train", "adult_test"):
        rows = [row for row in _read(directory, name) if "?" not in row.values()]
        matrix, names, norm = _encode(rows, _ADULT)
        halves.append((matrix, np.array([int(row["income"] == ">50K") for row in rows])))
    (X, y), (X_test, y_test) = halves
    return Dataset("adult", X, y, X_test, y_test, norm, names)


def load_bank(directory: str | os.PathLike[str] | None = None) -> Dataset:
    """Bank Marketing (UCI, 45,211 rows: does a client subscribe a deposit), for random splits.

    All columns are kept, as most published figures do. ``duration``, the length of the call, is
    known only afterwards: accuracies with it are for comparison, not for a realistic forecast.
    `directory` holds ``bank-full.csv.gz``; FileNotFoundError if it does not.
    """
    rows = _read(directory, "bank-full", ";")
    X, names, norm = _encode(rows, _BANK)
    y = np.array([int(row["y"] == "yes") for row in rows])
    return Dataset("bank", X, y, None, None, norm, names)


def load_cardio(directory: str | os.PathLike[str] | None = None) -> Dataset:
    """Cardiovascular disease (Kaggle, S. Ulianova, 70,000 rows), for random splits.

    Implausible values, such as negative pressures, are kept and clipped to the clinical bounds.
    `directory` holds ``cardio_train.csv.gz``; FileNotFoundError if it does not.
    """
    rows = _read(directory, "cardio_train", ";")
    X, names, norm = _encode(rows, _CARDIO)
    y = np.array([int(row["cardio"]) for row in rows])
    return Dataset("cardio", X, y, None, None, norm, names)


def load_heart(directory: str | os.PathLike[str] | None = None) -> Dataset:
    """Heart disease (UCI, Cleveland, 303 rows: any narrowing against none), for random splits.

    A missing ``ca`` or ``thal`` (six rows) becomes zeros in its one-hot columns, so no row is lost.
    `directory` holds ``heart_cleveland.csv.gz``; FileNotFoundError if it does not.
    """
    rows = _read(directory, "heart_cleveland")
    X, names, norm = _encode(rows, _HEART)
    y = np.array([int(float(row["num"]) > 0) for row in rows])
    return Dataset("heart", X, y, None, None, norm, names)


# Bounds for each of the ten measurements of a cell nucleus: round numbers, set by hand from what is
# measured (radii of 5 to 30 image units, perimeters and areas to match, shares and ratios).
_NUCLEUS = {
    "radius": (5.0, 30.0),
    "texture": (5.0, 40.0),
    "perimeter": (30.0, 200.0),
    "area": (100.0, 2500.0),
    "smoothness": (0.05, 0.2),
    "compactness": (0.0, 0.5),
    "concavity": (0.0, 0.5),
    "concave points": (0.0, 0.25),
    "symmetry": (0.1, 0.35),
    "fractal dimension": (0.04, 0.12),
}


def load_breast_cancer() -> Dataset:
    """Breast cancer Wisconsin (diagnostic), bundled with scikit-learn, for random splits.

    Every column is clipped to the public bounds of its measurement and its square root is mapped
    to [-1, 1]; standard errors go up to a tenth of the upper bound, worst values to 1.25 times it.
    Few records lie near many bounds at once, so rows are to be shortened to half of the largest
    possible norm where they are longer. Label 1 is benign, as in scikit-learn.

    Returns
    -------
    Dataset
        569 rows, 30 columns, without a test split.
    """
    bunch = _sklearn_breast_cancer()
    low, high = np.array(list(_NUCLEUS.values())).T
    lower = np.sqrt(np.concatenate([low, 0.0 * low, low]))
    upper = np.sqrt(np.concatenate([high, 0.1 * high, 1.25 * high]))
    roots = np.clip(np.sqrt(bunch.data), lower, upper)
    X = 2.0 * (roots - lower) / (upper - lower) - 1.0
    names = [str(name) for name in bunch.feature_names]
    return Dataset("breast-cancer", X, bunch.target, None, None, 0.5 * len(names) ** 0.5, names)
