"""Benchmark data sets, encoded as their ready schemas declare, or by the automatic encoding.

Nothing in this module is fitted on the rows: the schemas hold bounds, cuts and categories from
code books, and every transform works on one record at a time. So encoding a table costs no
privacy, and ``data_norm`` is a public bound on the norm of an encoded row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp import datasets
from skdp.preprocessing import TableSchema

Array = NDArray[np.float64]

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


def data_directory(directory: str | os.PathLike[str] | None = None) -> Path:
    """Return the directory of the data files: argument, SKDP_DATA, or ``data`` at the root."""
    return Path(directory or os.environ.get("SKDP_DATA") or DEFAULT_DIRECTORY)


def _encode(
    schema: TableSchema, frame: Any, encoding: str
) -> tuple[Array, NDArray[np.int64], list[str]]:
    """Return encoded rows, labels 0 and 1, and the names of the columns."""
    rows, labels = schema.split(frame)
    if encoding != "declared":
        schema = schema.with_encoding(encoding)
    preprocessor = schema.preprocessor()
    X = np.ascontiguousarray(preprocessor.fit_transform(rows))
    positive = schema.label.classes[1]
    return X, (labels == positive).astype(np.int64), list(preprocessor.get_feature_names_out())


def _load(
    name: str,
    fetch: Callable[..., Any],
    directory: str | os.PathLike[str] | None,
    encoding: str,
) -> Dataset:
    """Encode a table without a test split of its own."""
    table = fetch(path=data_directory(directory))
    X, y, names = _encode(table.schema, table.frame, encoding)
    return Dataset(name, X, y, None, None, table.schema.data_norm, names)


def load_adult(
    directory: str | os.PathLike[str] | None = None, encoding: str = "declared"
) -> Dataset:
    """Adult (UCI, census income above 50,000 dollars), with the split that UCI gives.

    Rows with a missing value are dropped, as usual: 30,162 remain to train on and 15,060 to test
    on. The survey weight is left out, and so is ``education_num``, which codes ``education`` again.
    Numbers are cut into public bins, because income is not linear in age or capital gain.

    Parameters
    ----------
    directory : path-like, optional
        Directory of ``adult_train.csv.gz`` and ``adult_test.csv.gz``.
    encoding : {"declared", "auto"}, default="declared"
        What the schema declares, or waves for all columns of numbers that declare no other.

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
    for subset in ("train", "test"):
        table = datasets.fetch_adult(path=data_directory(directory), subset=subset)
        halves.append(_encode(table.schema, table.frame.dropna(), encoding))
    (X, y, names), (X_test, y_test, _) = halves
    return Dataset("adult", X, y, X_test, y_test, table.schema.data_norm, names)


def load_bank(
    directory: str | os.PathLike[str] | None = None, encoding: str = "declared"
) -> Dataset:
    """Bank Marketing (UCI, 45,211 rows: does a client subscribe a deposit), for random splits.

    All columns are kept, as most published figures do. ``duration``, the length of the call, is
    known only afterwards: accuracies with it are for comparison, not for a realistic forecast.
    `directory` holds ``bank-full.csv.gz``; FileNotFoundError if it does not.
    """
    return _load("bank", datasets.fetch_bank, directory, encoding)


def load_cardio(
    directory: str | os.PathLike[str] | None = None, encoding: str = "declared"
) -> Dataset:
    """Cardiovascular disease (Kaggle, S. Ulianova, 70,000 rows), for random splits.

    Implausible values, such as negative pressures, are kept and clipped to the clinical bounds.
    `directory` holds ``cardio_train.csv.gz``; FileNotFoundError if it does not.
    """
    return _load("cardio", datasets.fetch_cardio, directory, encoding)


def load_heart(
    directory: str | os.PathLike[str] | None = None, encoding: str = "declared"
) -> Dataset:
    """Heart disease (UCI, Cleveland, 303 rows: any narrowing against none), for random splits.

    A missing ``ca`` or ``thal`` (six rows) becomes zeros in its columns, so no row is lost.
    `directory` holds ``heart_cleveland.csv.gz``; FileNotFoundError if it does not.
    """
    return _load("heart", datasets.fetch_heart, directory, encoding)


def load_support2(
    directory: str | os.PathLike[str] | None = None, encoding: str = "declared"
) -> Dataset:
    """SUPPORT2 (UCI, 9,105 seriously ill patients: who dies in hospital), for random splits.

    What is known only after the third day, and what other models foretell, is left out.
    `directory` holds ``support2.csv.gz``; FileNotFoundError if it does not.
    """
    return _load("support2", datasets.fetch_support2, directory, encoding)


def load_breast_cancer(encoding: str = "declared") -> Dataset:
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
    table = datasets.load_breast_cancer()
    X, y, names = _encode(table.schema, table.frame, encoding)
    return Dataset("breast-cancer", X, y, None, None, table.schema.data_norm, names)


LOADERS = (load_adult, load_bank, load_cardio, load_support2, load_heart)
