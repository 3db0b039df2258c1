"""Schemas as plain dictionaries, JSON and YAML, with errors that name the place."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from skdp.exceptions import SchemaError
from skdp.preprocessing.schema.base import Column, SchemaPart, plain
from skdp.preprocessing.schema.label import LabelColumn, NumericLabel, PrivacyUnit
from skdp.preprocessing.schema.lists import KINDS

_FORMAT, _VERSION = "skdp-table-schema", 1
_LONGEST_NUMBER = 400  # characters, of all that floats can hold
# Fields of a schema before its columns, in the order of a file.
_ABOUT = ("name", "description", "source", "unit", "label", "clip_norm", "interactions", "others")


def schema_to_dict(schema: Any) -> dict[str, Any]:
    """Return a schema as plain values, with the format's name and version."""
    given = schema.given()
    tree: dict[str, Any] = {"format": _FORMAT, "version": _VERSION}
    tree |= {key: _as_plain(given[key]) for key in _ABOUT if key in given}
    if isinstance(schema.label, NumericLabel):
        label = schema.label
        tree["label"] = {"name": label.name, "kind": label.kind, **tree["label"]}
    return {**tree, "columns": [_column_to_dict(column) for column in schema.columns]}


def _column_to_dict(column: Column) -> dict[str, Any]:
    """Return a column as a dictionary with its kind, open fields as None, and no defaults."""
    given = _as_plain(column)
    name = given.pop("name")
    return {"name": name, "kind": column.kind, **dict.fromkeys(column.left_open()), **given}


def _as_plain(value: Any) -> Any:
    """Return a value in plain types: tuples as lists, parts of schemas as given fields."""
    if isinstance(value, SchemaPart):
        return {name: _as_plain(field) for name, field in value.given().items()}
    if isinstance(value, tuple):
        return [_as_plain(item) for item in value]
    if isinstance(value, dict):  # whose keys JSON takes as texts only
        return {str(key): _as_plain(item) for key, item in value.items()}
    return plain(value)


def schema_from_dict(cls: type[Any], tree: Any) -> Any:
    """Return the schema that plain values describe."""
    with _in_words_of_schemas("the schema cannot be read"):
        return cls(**_fields_from_dict(cls, tree))


def _fields_from_dict(cls: type[Any], tree: Any) -> dict[str, Any]:
    if not isinstance(tree, Mapping):
        raise SchemaError(f"a schema must be a mapping, got {type(tree).__name__}.")
    fields = dict(tree)
    if fields.pop("format", _FORMAT) != _FORMAT:
        raise SchemaError(f"format: must be {_FORMAT!r}, got {tree['format']!r}.")
    version = fields.pop("version", None)
    if version != _VERSION or isinstance(version, bool):
        raise SchemaError(
            f"version: this skdp reads version {_VERSION}, got {version!r}. A newer file needs "
            "a newer skdp."
        )
    refuse_unknown("schema", fields, [field.name for field in dataclasses.fields(cls)])
    columns = fields.get("columns")
    if not isinstance(columns, list | tuple):
        raise SchemaError(f"columns: must be a list of columns, got {columns!r}.")
    fields["columns"] = [_column_from_dict(entry, j) for j, entry in enumerate(columns)]
    for key, read in (("label", _label_from_dict), ("unit", _unit_from_dict)):
        if (entry := fields.pop(key, None)) is not None:
            fields[key] = read(entry)
    return fields


def _column_from_dict(entry: Any, place: int) -> Column:
    """Return the column that a dictionary describes."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise SchemaError(f"columns[{place}]: name: every column needs a name, as text.")
    where = f"column {entry['name']!r}"
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise SchemaError(f"{where}: kind: must be one of {', '.join(KINDS)}; got {kind!r}.")
    fields = {key: value for key, value in entry.items() if key != "kind"}
    return _part_from_dict(KINDS[kind], fields, where)


def _unit_from_dict(entry: Any) -> Any:
    return _part_from_dict(PrivacyUnit, entry, "unit")


def _label_from_dict(entry: Any) -> Any:
    kinds: dict[Any, type[Any]] = {None: LabelColumn, NumericLabel.kind: NumericLabel}
    kind = entry.get("kind") if isinstance(entry, Mapping) else None
    if isinstance(kind, list | dict) or kind not in kinds:
        raise SchemaError(f"label: kind: must be 'numeric', or left out for classes; got {kind!r}.")
    if kind is not None:
        entry = {key: value for key, value in entry.items() if key != "kind"}
    return _part_from_dict(kinds[kind], entry, "label")


def _part_from_dict(cls: type[Any], entry: Any, where: str) -> Any:
    """Return a part of a schema from its fields."""
    if not isinstance(entry, Mapping):
        raise SchemaError(f"{where}: must be a mapping of fields to values, got {entry!r}.")
    fields = dataclasses.fields(cls)
    refuse_unknown(where, entry, [field.name for field in fields])
    for field in fields:
        if field.default is dataclasses.MISSING and field.name not in entry:
            raise SchemaError(f"{where}: {field.name}: is required.")
    return cls(**entry)


def refuse_unknown(where: str, entry: Mapping[Any, Any], known: list[str]) -> None:
    """Refuse fields that are not known."""
    for key in entry:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            meant = (
                f" Did you mean {close[0]!r}?" if close else f" Known fields: {', '.join(known)}."
            )
            raise SchemaError(f"{where}: {key}: is an unknown field.{meant}")


@contextmanager
def _in_words_of_schemas(problem: str, *others: type[Exception]) -> Iterator[None]:
    """Convert errors of a schema in any format to a SchemaError."""
    faults: tuple[type[Exception], ...] = (ValueError, OverflowError, *others)
    try:
        yield
    except SchemaError:
        raise
    except RecursionError:
        raise SchemaError(f"{problem}: it is nested too deeply.") from None
    except faults as error:
        raise SchemaError(f"{problem}: {error}.") from None


def parse_json(text: str) -> Any:
    """Read JSON, refusing a field that is given twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise SchemaError(f"{key}: is given twice in one mapping of the JSON text.")
            found[key] = value
        return found

    with _in_words_of_schemas("the schema is no JSON"):
        return json.loads(text, object_pairs_hook=unique)


def write_json(tree: Any, indent: str = "") -> str:
    """Return a tree of plain values as JSON, with lists of plain values on one line."""
    deeper = indent + "  "
    if isinstance(tree, dict):
        parts = [f"{json.dumps(key)}: {write_json(value, deeper)}" for key, value in tree.items()]
        opening, closing = "{", "}"
    elif isinstance(tree, list) and any(isinstance(item, dict) for item in tree):
        parts = [write_json(item, deeper) for item in tree]
        opening, closing = "[", "]"
    else:
        return json.dumps(tree, ensure_ascii=False, allow_nan=False)
    inside = ",\n".join(deeper + part for part in parts)
    return f"{opening}\n{inside}\n{indent}{closing}"


def parse_yaml(text: str) -> Any:
    """Read YAML, refusing a field that is given twice."""
    yaml = _import_yaml()

    class UniqueKeys(yaml.SafeLoader):  # type: ignore[name-defined]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            with suppress(TypeError):  # of keys that are no keys the base class tells
                if len(set(keys)) < len(keys):
                    twice = Counter(keys).most_common(1)[0][0]
                    raise SchemaError(f"{twice}: is given twice in one mapping of the YAML text.")
            return super().construct_mapping(node, deep)

        def construct_scalar(self, node: Any) -> Any:
            # Numbers to the base of 60 take a time that is quadratic in their length.
            if node.tag.endswith((":int", ":float")) and len(node.value) > _LONGEST_NUMBER:
                raise SchemaError(f"a number of the YAML text has {len(node.value)} characters.")
            return super().construct_scalar(node)

    with _in_words_of_schemas("the schema is no YAML", yaml.YAMLError, KeyError, AttributeError):
        return yaml.load(text, UniqueKeys)


def write_yaml(tree: Any) -> str:
    """Return a tree of plain values as YAML."""
    yaml = _import_yaml()

    class Dumper(yaml.SafeDumper):  # type: ignore[name-defined]
        pass

    def quoted(dumper: Any, text: str) -> Any:
        # Rare line breaks survive only between double quotes.
        style = '"' if any(mark in text for mark in "\x85\u2028\u2029\ufeff") else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, quoted)
    dumped = yaml.dump(
        tree, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    return str(dumped)


def _import_yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ImportError(
            "Schemas in YAML need PyYAML: pip install 'skdp[schema]'. JSON needs no package."
        ) from error
    return yaml


def write_file(schema: Any, path: Any) -> None:
    """Write a schema to a file, as YAML if its name ends so, else as JSON."""
    text = schema.to_yaml() if _is_yaml(path) else schema.to_json()
    Path(path).write_text(text, encoding="utf-8")


def read_file(cls: type[Any], path: Any) -> Any:
    """Return the schema that a file of either format describes."""
    text = Path(path).read_text(encoding="utf-8")
    return cls.from_yaml(text) if _is_yaml(path) else cls.from_json(text)


def _is_yaml(path: Any) -> bool:
    return Path(path).suffix.lower() in (".yaml", ".yml")
