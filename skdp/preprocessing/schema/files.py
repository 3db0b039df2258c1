"""Schemas to and from dictionaries, JSON, YAML and files."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from skdp.exceptions import SchemaError
from skdp.preprocessing.schema.base import Column, SchemaPart
from skdp.preprocessing.schema.columns import NumericColumn
from skdp.preprocessing.schema.frames import import_pandas
from skdp.preprocessing.schema.io import (
    FORMAT,
    VERSION,
    as_plain,
    column_from_dict,
    column_to_dict,
    in_words_of_schemas,
    parse_json,
    parse_yaml,
    part_from_dict,
    part_to_dict,
    refuse_unknown,
    write_json,
    write_yaml,
)
from skdp.preprocessing.schema.label import LabelColumn, NumericLabel, PrivacyUnit
from skdp.preprocessing.schema.values import as_numbers

# Options of pandas.read_csv that say where cells begin and end, and nothing of what they mean.
_LAYOUT = (
    *("sep", "delimiter", "lineterminator", "quotechar", "quoting", "doublequote", "escapechar"),
    *("header", "names", "usecols", "skiprows", "nrows", "comment", "skip_blank_lines"),
    *("skipinitialspace", "on_bad_lines", "encoding", "encoding_errors", "compression"),
    "storage_options",
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class SchemaFiles(SchemaPart):
    """The part of a schema that reads and writes it."""

    # Fields of the schema.
    columns: Sequence[Column]
    label: LabelColumn | NumericLabel | None

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values.

        Returns
        -------
        dict
            With the format's name and version; `from_dict` gives an equal schema back.
        """
        given = self.given()
        tree: dict[str, Any] = {"format": FORMAT, "version": VERSION}
        for key in ("name", "description", "source", "unit", "label", "clip_norm", "interactions"):
            if key in given:
                part = given[key]
                tree[key] = part_to_dict(part) if isinstance(part, SchemaPart) else as_plain(part)
                if isinstance(part, NumericLabel):
                    tree[key] = {"name": part.name, "kind": part.kind, **tree[key]}
        return {**tree, "columns": [column_to_dict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, tree: Any) -> Self:
        """Return the schema that plain values describe.

        Parameters
        ----------
        tree : mapping
            See `to_dict`.

        Returns
        -------
        TableSchema
            The schema.

        Raises
        ------
        SchemaError
            If a field is unknown, missing or wrong; the message names column, field and remedy.
        """
        with in_words_of_schemas("the schema cannot be read"):
            return cls._from_tree(tree)

    @classmethod
    def _from_tree(cls, tree: Any) -> Self:
        if not isinstance(tree, Mapping):
            raise SchemaError(f"a schema must be a mapping, got {type(tree).__name__}.")
        fields = dict(tree)
        if fields.pop("format", FORMAT) != FORMAT:
            raise SchemaError(f"format: must be {FORMAT!r}, got {tree['format']!r}.")
        version = fields.pop("version", None)
        if version != VERSION or isinstance(version, bool):
            raise SchemaError(
                f"version: this skdp reads version {VERSION}, got {version!r}. A newer file needs "
                "a newer skdp."
            )
        known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        refuse_unknown("schema", fields, known)
        columns = fields.get("columns")
        if not isinstance(columns, list | tuple):
            raise SchemaError(f"columns: must be a list of columns, got {columns!r}.")
        fields["columns"] = [column_from_dict(entry, j) for j, entry in enumerate(columns)]
        for key, read in (("label", _label_from_dict), ("unit", _unit_from_dict)):
            if fields.get(key) is not None:
                fields[key] = read(fields[key])
            else:
                fields.pop(key, None)
        return cls(**fields)

    def to_json(self) -> str:
        """Return the schema as JSON.

        Returns
        -------
        str
            JSON, indented.
        """
        return write_json(self.to_dict()) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the schema that a JSON text describes.

        Parameters
        ----------
        text : str
            JSON.

        Returns
        -------
        TableSchema
            The schema.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120, source="range of the form")])
        >>> TableSchema.from_json(schema.to_json()) == schema
        True
        """
        return cls.from_dict(parse_json(text))

    def to_yaml(self) -> str:
        """Return the schema as YAML; needs PyYAML (``pip install 'skdp[schema]'``).

        Returns
        -------
        str
            YAML.
        """
        return write_yaml(self.to_dict())

    @classmethod
    def from_yaml(cls, text: str) -> Self:
        """Return the schema that a YAML text describes; needs PyYAML.

        Parameters
        ----------
        text : str
            YAML.

        Returns
        -------
        TableSchema
            The schema.
        """
        return cls.from_dict(parse_yaml(text))

    def read_csv(self, path: Any, **options: Any) -> Any:
        """Read a table, each cell by the description of its column and by itself.

        pandas alone decides a column's type by all of its cells, so that one row can change what
        the others mean.

        Parameters
        ----------
        path : path-like
            The file.
        **options : dict
            Given to `pandas.read_csv`, if they are about the layout of the file, such as ``sep``
            or ``encoding``; what cells mean is the schema's to say.

        Returns
        -------
        DataFrame
            Numeric columns as float64, NaN where a cell is no number. Where only numbers are
            listed, objects: integers exactly, other numbers as floats, other cells as text; a
            number is what JSON writes as one, so that 01 is none. Where False or True is listed,
            true and false in small or large letters are these. All else is text. An empty cell is
            missing unless it is listed; other words that stand for a missing one, such as NA,
            belong into `missing_codes`.

        Raises
        ------
        ImportError
            Without pandas.
        TypeError
            If an option is not about the layout, such as ``dtype`` or ``decimal``.
        """
        if refused := [name for name in options if name not in _LAYOUT]:
            raise TypeError(
                f"read_csv does not take {', '.join(refused)}: cells are read as text, and then by "
                f"the schema. It takes {', '.join(_LAYOUT)}."
            )
        pandas = import_pandas()
        frame = pandas.read_csv(path, dtype=str, na_filter=False, index_col=False, **options)
        parts: list[Any] = [*self.columns, *([] if self.label is None else [self.label])]
        for part in parts:
            if part.name in frame.columns:
                cells = _cells_of_texts(part, frame[part.name].to_list())
                frame[part.name] = pandas.Series(cells, frame.index, cells.dtype)
        return frame

    def read_parquet(self, path: Any, **options: Any) -> Any:
        """Read a table in the types that the file declares, which a missing cell does not change.

        Parameters
        ----------
        path : path-like
            The file.
        **options : dict
            Given to `pandas.read_parquet`, such as ``columns``.

        Returns
        -------
        DataFrame
            Backed by pyarrow.

        Raises
        ------
        ImportError
            Without pandas or pyarrow.
        """
        pandas = import_pandas()
        if importlib.util.find_spec("pyarrow") is None:
            raise ImportError("Parquet files need pyarrow: pip install 'skdp[parquet]'.")
        return pandas.read_parquet(path, engine="pyarrow", dtype_backend="pyarrow", **options)

    def save(self, path: Any) -> None:
        """Write the schema to a file, as YAML if its name ends in .yaml or .yml, else as JSON.

        Parameters
        ----------
        path : path-like
            The file.
        """
        text = self.to_yaml() if _is_yaml(path) else self.to_json()
        Path(path).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read a schema from a file; see `save`.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        TableSchema
            The schema.
        """
        text = Path(path).read_text(encoding="utf-8")
        return cls.from_yaml(text) if _is_yaml(path) else cls.from_json(text)


def _unit_from_dict(entry: Any) -> PrivacyUnit:
    return cast(PrivacyUnit, part_from_dict(PrivacyUnit, entry, "unit"))


def _label_from_dict(entry: Any) -> Any:
    kinds: dict[Any, type[Any]] = {None: LabelColumn, NumericLabel.kind: NumericLabel}
    kind = entry.get("kind") if isinstance(entry, Mapping) else None
    if isinstance(kind, list | dict) or kind not in kinds:
        raise SchemaError(f"label: kind: is 'numeric', or left out for classes; got {kind!r}.")
    if kind is not None:
        entry = {key: value for key, value in entry.items() if key != "kind"}
    return part_from_dict(kinds[kind], entry, "label")


def _is_yaml(path: Any) -> bool:
    return Path(path).suffix.lower() in (".yaml", ".yml")


def _cells_of_texts(part: Any, texts: list[str]) -> np.ndarray:
    """Return the cells that texts of a file stand for by a description, each by itself."""
    found = np.array(texts, dtype=object)
    if isinstance(part, NumericColumn | NumericLabel):
        return as_numbers(found, ())
    listed = part.listed() or ("",)
    words = {"true": True, "false": False} if any(isinstance(v, bool) for v in listed) else {}
    numeric = not any(isinstance(value, str) for value in listed)
    kept = (*listed, *getattr(part, "missing_codes", ()))

    def read(text: str) -> Any:
        if text in kept:
            return text
        rest = _exact_number(text) if numeric else text or None
        return words.get(text.casefold(), rest)

    found[:] = [read(text) for text in texts]
    return found


def _exact_number(text: str) -> Any:
    """Return a text as the number that it spells, itself if it spells none, None if it is empty."""
    if spelled := _NUMBER.fullmatch(text):
        with contextlib.suppress(ValueError):  # Python reads no integer of more than 4300 digits
            return float(text) if spelled[1] or spelled[2] else int(text)
    return text or None
