"""Loaders of tables from local files or OpenML, and ready-made schemas."""

from __future__ import annotations

import dataclasses
import gzip
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import sklearn.datasets
from sklearn.utils import Bunch

from skdp.base.parameters import DatasetName, Subset
from skdp.preprocessing import TableSchema
from skdp.preprocessing.schema.frames import import_pandas
from skdp.preprocessing.schema.label import LabelColumn

SCHEMAS = ("adult", "bank", "breast_cancer", "cardio", "heart", "support2")

_ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    *("native_country", "income"),
)
_BANK = (
    *("age", "job", "marital", "education", "default", "balance", "housing", "loan", "contact"),
    *("day", "month", "duration", "campaign", "pdays", "previous", "poutcome", "y"),
)
_CARDIO = (
    *("id", "age", "gender", "height", "weight", "ap_hi", "ap_lo", "cholesterol", "gluc"),
    *("smoke", "alco", "active", "cardio"),
)
_HEART = (
    *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak"),
    *("slope", "ca", "thal", "num"),
)
_SUPPORT2 = (
    *("age", "death", "sex", "hospdead", "slos", "d.time", "dzgroup", "dzclass", "num.co", "edu"),
    *("income", "scoma", "charges", "totcst", "totmcst", "avtisst", "race", "sps", "aps", "surv2m"),
    *("surv6m", "hday", "diabetes", "dementia", "ca", "prg2m", "prg6m", "dnr", "dnrday", "meanbp"),
    *("wblc", "hrt", "resp", "temp", "pafi", "alb", "bili", "crea", "sod", "ph", "glucose", "bun"),
    *("urine", "adlp", "adls", "sfdm2", "adlsc"),
)

# OpenML's heart-c writes the code book's numbers as words.
_HEART_WORDS = {
    "sex": {"female": 0, "male": 1},
    "cp": {"typ_angina": 1, "atyp_angina": 2, "non_anginal": 3, "asympt": 4},
    "fbs": {"f": 0, "t": 1},
    "restecg": {"normal": 0, "st_t_wave_abnormality": 1, "left_vent_hyper": 2},
    "exang": {"no": 0, "yes": 1},
    "slope": {"up": 1, "flat": 2, "down": 3},
    "thal": {"normal": 3, "fixed_defect": 6, "reversable_defect": 7},
    "num": {"<50": 0, ">50_1": 1, ">50_2": 2, ">50_3": 3, ">50_4": 4},
}


@dataclass(frozen=True)
class _Source:
    """Where to find one table and how its columns are called there."""

    # Names of the local files, without ``.gz``; their rows are put together.
    files: tuple[str, ...]
    columns: tuple[str, ...]  # names of the columns, for files without a header
    separator: str
    data_id: int | None  # of OpenML; None for no download
    renamed: Mapping[str, str] = field(default_factory=dict)  # our names by those of OpenML
    # Values in this package by values in other sources, by column.
    recoded: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


_SOURCES = {
    "adult": _Source(
        files=("adult_train.csv", "adult_test.csv"),
        columns=_ADULT,
        separator=",",
        data_id=1590,
        renamed={**{name.replace("_", "-"): name for name in _ADULT}, "class": "income"},
        recoded={"income": {"<=50K.": "<=50K", ">50K.": ">50K"}},
    ),
    "bank": _Source(
        files=("bank-full.csv",),
        columns=_BANK,
        separator=";",
        data_id=1461,
        renamed={**{f"V{number}": name for number, name in enumerate(_BANK[:-1], 1)}, "Class": "y"},
        recoded={"y": {"1": "no", "2": "yes"}},
    ),
    "cardio": _Source(files=("cardio_train.csv",), columns=_CARDIO, separator=";", data_id=45547),
    "heart": _Source(
        files=("heart_cleveland.csv",),
        columns=_HEART,
        separator=",",
        data_id=49,
        recoded=_HEART_WORDS,
    ),
    "support2": _Source(files=("support2.csv",), columns=_SUPPORT2, separator=",", data_id=None),
}


def fetch_adult(
    *,
    path: str | os.PathLike[str] | None = None,
    subset: Subset = "all",
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load Adult: does an adult earn more than 50,000 US dollars a year? (48,842 rows).

    Parameters
    ----------
    path : path-like or None, default=None
        A CSV file, or the folder of ``adult_train.csv`` and ``adult_test.csv``, gzipped or not.
        None uses the folder in the environment variable SKDP_DATA, then OpenML (number 1590).
    subset : {"all", "train", "test"}, default="all"
        Part of the table, as UCI divides it. Parts need a local folder, since OpenML does not mark
        them.
    data_home : path-like or None, default=None
        Folder of scikit-learn's downloads. None uses scikit-learn's default.
    download_if_missing : bool, default=True
        Whether to download from OpenML if there are no local files.
    return_X_y : bool, default=False
        Whether to return only (data, target).

    Returns
    -------
    Bunch
        ``data`` (feature columns), ``target`` (labels), ``frame`` (all columns), ``schema``,
        ``feature_names``, ``target_names``, ``DESCR``. Missing cells stay missing.

    Raises
    ------
    FileNotFoundError
        If the files are not at `path`, or are missing and may not be downloaded.
    ValueError
        If `subset` is unknown, or if a file lacks columns of the table or has a cell that is no
        number in a numeric column.
    ImportError
        Without pandas.

    Examples
    --------
    >>> from skdp.datasets import fetch_adult
    >>> adult = fetch_adult()
    >>> adult.data.shape, adult.target_names
    ((48842, 12), ['<=50K', '>50K'])
    """
    source = _SOURCES["adult"]
    if subset not in ("all", "train", "test"):
        raise ValueError(f"subset must be 'all', 'train' or 'test'; got {subset!r}.")
    if subset != "all":
        download_if_missing = False
        source = dataclasses.replace(source, files=(f"adult_{subset}.csv",))
    return _bunch("adult", source, path, data_home, download_if_missing, return_X_y)


def _fetcher(name: DatasetName, summary: str, files: str, remarks: str = "") -> Callable[..., Any]:
    """Return the function that loads a table from local files or OpenML."""

    def fetch(
        *,
        path: str | os.PathLike[str] | None = None,
        data_home: str | os.PathLike[str] | None = None,
        download_if_missing: bool = True,
        return_X_y: bool = False,
    ) -> Any:
        return _bunch(name, _SOURCES[name], path, data_home, download_if_missing, return_X_y)

    fetch.__name__ = fetch.__qualname__ = f"fetch_{name}"
    fetch.__doc__ = f"""{summary}
{remarks}
    Parameters
    ----------
    path : path-like or None, default=None
        {files}
    data_home : path-like or None, default=None
        Folder of scikit-learn's downloads. None uses scikit-learn's default.
    download_if_missing : bool, default=True
        Whether to download from OpenML if there are no local files.
    return_X_y : bool, default=False
        Whether to return only (data, target).

    Returns
    -------
    Bunch
        See `fetch_adult`.

    Examples
    --------
    >>> from skdp.datasets import fetch_{name}
    >>> table = fetch_{name}()
    >>> list(table.data.columns) == table.schema.features
    True
    """
    return fetch


fetch_bank = _fetcher(
    "bank",
    "Load Bank Marketing: does a client subscribe to a term deposit? (45,211 rows).",
    """``bank-full.csv``, gzipped or not, or its folder. None uses the folder SKDP_DATA, then
        OpenML (number 1461).""",
    """
    The column ``duration``, the length of the call, is known only after the call. Leave it out
    for a realistic forecast: ``schema.select([name for name in schema.features if name !=
    "duration"])``.
""",
)
fetch_cardio = _fetcher(
    "cardio",
    "Load Cardiovascular disease: does a patient have it? (70,000 rows, about half do).",
    """``cardio_train.csv``, gzipped or not, or its folder. None uses the folder SKDP_DATA, then
        OpenML (number 45547).""",
    """
    The original contains implausible cells, such as negative pressures. The schema's clinical
    bounds clip them.
""",
)
fetch_heart = _fetcher(
    "heart",
    "Load Heart disease (Cleveland): is a coronary vessel narrowed? (303 rows).",
    """``heart_cleveland.csv``, gzipped or not, with or without a line of names, or its folder.
        None uses the folder SKDP_DATA, then OpenML (number 49, heart-c; its words become the code
        book's numbers).""",
)
fetch_support2 = _fetcher(
    "support2",
    "Load SUPPORT2: does a seriously ill patient die in hospital? (9,105 rows, a quarter do).",
    """``support2.csv`` of the UCI Machine Learning Repository (number 880), gzipped or not, or its
        folder. None uses the folder SKDP_DATA. There is no download from OpenML.""",
    """
    The schema leaves out values that are known only later (length of stay, costs, orders not to
    resuscitate, disability) and predictions by other models or physicians.
""",
)


def load_breast_cancer(*, return_X_y: bool = False) -> Any:
    """Load Breast cancer Wisconsin (diagnostic), which is part of scikit-learn (569 rows).

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return only (data, target).

    Returns
    -------
    Bunch
        See `fetch_adult`. Label 0 is malignant, 1 benign.

    Examples
    --------
    >>> from skdp import DPSGDClassifier
    >>> from skdp.datasets import load_breast_cancer
    >>> cancer = load_breast_cancer()
    >>> model = cancer.schema.pipeline(DPSGDClassifier(epsilon=1.0, delta=1e-5))
    >>> model.fit(cancer.data, cancer.target).score(cancer.data, cancer.target) > 0.85
    True
    """
    import_pandas()
    bundled = sklearn.datasets.load_breast_cancer(as_frame=True)
    return _answer("breast_cancer", bundled.frame, return_X_y)


def _bunch(
    name: DatasetName, source: _Source, path: Any, data_home: Any, download: bool, return_X_y: bool
) -> Any:
    frame = _read_table(source, load_schema(name), path, data_home, download)
    return _answer(name, frame, return_X_y)


def _answer(name: DatasetName, frame: Any, return_X_y: bool) -> Any:
    schema = load_schema(name)
    labels = schema.label.classes if isinstance(schema.label, LabelColumn) else None
    data, target = schema.split(frame)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        schema=schema,
        feature_names=schema.features,
        target_names=list(labels or ()),
        DESCR=f"{schema.description}\n\nSource: {schema.source}.",
    )


def load_schema(name: DatasetName) -> TableSchema:
    """Return the ready-made schema of a public table.

    Parameters
    ----------
    name : {"adult", "bank", "breast_cancer", "cardio", "heart", "support2"}
        Name of the table.

    Returns
    -------
    TableSchema
        Columns with bounds and lists from code books and physiology, each with its source.

    Raises
    ------
    ValueError
        If there is no schema of that name.

    Examples
    --------
    >>> from skdp.datasets import load_schema
    >>> pressure = load_schema("cardio")["ap_hi"]
    >>> pressure.lower, pressure.upper, pressure.unit
    (80.0, 200.0, 'mmHg')
    """
    if name not in SCHEMAS:
        raise ValueError(f"name must be one of {', '.join(SCHEMAS)}; got {name!r}.")
    file = resources.files("skdp.datasets") / "schemas" / f"{name}.json"
    return TableSchema.from_json(file.read_text(encoding="utf-8"))


def _read_table(
    source: _Source,
    schema: TableSchema,
    path: str | os.PathLike[str] | None,
    data_home: str | os.PathLike[str] | None,
    download: bool,
) -> Any:
    """Return a table as a pandas frame, with the columns and codes of its schema.

    It comes from `path`, else from the folder SKDP_DATA, else from OpenML, if `download` allows it.
    """
    pandas = import_pandas()
    given = path if path is not None else os.environ.get("SKDP_DATA")
    files = [] if given is None else _find(Path(given), source.files)
    if files:
        frame = pandas.concat(
            [_read_file(pandas, file, source) for file in files], ignore_index=True
        )
    elif path is not None or not download or source.data_id is None:
        raise FileNotFoundError(
            f"no {' and '.join(source.files)} (or .gz) in {given or 'any folder'}. Give path= the "
            "file or its folder, or set the environment variable SKDP_DATA to the folder."
        )
    else:
        fetched = sklearn.datasets.fetch_openml(
            data_id=source.data_id, as_frame=True, data_home=data_home
        )
        frame = fetched.frame.rename(columns=source.renamed)
    return _conform(pandas, _recode(frame, source), schema)


def _find(place: Path, names: Sequence[str]) -> list[Path]:
    """Return the files at a place, all or none of them."""
    if place.is_file():
        return [place]
    found = []
    for name in names:
        candidates = [place / f"{name}.gz", place / name]
        existing = [candidate for candidate in candidates if candidate.is_file()]
        if not existing:
            return []
        found.append(existing[0])
    return found


def _read_file(pandas: Any, file: Path, source: _Source) -> Any:
    """Read a file with or without a line of names; question marks and blanks are missing."""
    opened = gzip.open(file, "rt") if file.suffix == ".gz" else file.open(encoding="utf-8")
    with opened as stream:
        first = stream.readline()
    cells = first.replace('"', "").strip().split(source.separator)
    named = not set(cells).isdisjoint(source.columns)
    frame = pandas.read_csv(
        file,
        sep=source.separator,
        names=None if named else list(source.columns),
        skipinitialspace=True,
        na_values=["?", ""],
        keep_default_na=False,
        comment="|",  # the original test file of Adult starts with such a line
    )
    missing = [name for name in source.columns if name not in frame.columns]
    if missing:
        raise ValueError(f"{file} lacks the columns {', '.join(missing)}. Is it another table?")
    return frame


def _recode(frame: Any, source: _Source) -> Any:
    for name, codes in source.recoded.items():
        if name in frame.columns:
            cells = frame[name].astype(object)
            frame[name] = cells.map(lambda cell, codes=codes: codes.get(cell, cell))
    return frame


def _conform(pandas: Any, frame: Any, schema: TableSchema) -> Any:
    """Give each column the type of its description, and the order of the schema."""
    columns = {column.name: column.listed() for column in schema.columns}
    if schema.label is not None:
        columns[schema.label.name] = schema.label.listed()
    kept = [name for name in columns if name in frame.columns]
    frame = frame[kept].copy()
    for name in kept:
        values = columns[name]
        if values is None:  # an ignored column
            continue
        if any(isinstance(value, str) for value in values):
            frame[name] = frame[name].astype(object)
        else:
            try:
                frame[name] = pandas.to_numeric(frame[name])
            except (TypeError, ValueError):  # its message quotes a cell
                raise ValueError(
                    f"column {name!r} contains a cell that is not a number. Is it another table? "
                    "The cell is not shown, since it may be private."
                ) from None
    return frame
