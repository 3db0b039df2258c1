"""Where a table comes from: a local file, or OpenML by way of scikit-learn."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sklearn.datasets

from skdp.preprocessing import TableSchema
from skdp.preprocessing.schema.frames import import_pandas


@dataclass(frozen=True)
class Source:
    """Where to find one table and how its columns are called there."""

    # Names of the local files, without ``.gz``; their rows are put together.
    files: tuple[str, ...]
    columns: tuple[str, ...]  # names of the columns, for files without a line of names
    separator: str
    data_id: int | None  # of OpenML, which None does not ask
    renamed: Mapping[str, str] = field(default_factory=dict)  # our names by those of OpenML
    # For columns whose values others write otherwise: our values by theirs.
    recoded: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_table(
    source: Source,
    schema: TableSchema,
    path: str | os.PathLike[str] | None,
    data_home: str | os.PathLike[str] | None,
    download: bool,
) -> Any:
    """Return a table as a pandas frame, in the columns and codes of its schema.

    From `path`, else from the folder SKDP_DATA, else from OpenML, if `download` allows it.
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


def _read_file(pandas: Any, file: Path, source: Source) -> Any:
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
        raise ValueError(f"{file} lacks the columns {', '.join(missing)}: is it another table?")
    return frame


def _recode(frame: Any, source: Source) -> Any:
    for name, codes in source.recoded.items():
        if name in frame.columns:
            cells = frame[name].astype(object)
            frame[name] = cells.map(lambda cell, codes=codes: codes.get(cell, cell))
    return frame


def _conform(pandas: Any, frame: Any, schema: TableSchema) -> Any:
    """Give each column the type of its description and the schema's order."""
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
                    f"column {name!r} holds a cell that is no number: is it another table? The "
                    "cell is not shown, since it may be private."
                ) from None
    return frame
