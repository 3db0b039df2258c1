"""The ready schemas, which are files of the package."""

from __future__ import annotations

from importlib import resources

from skdp.choices import DatasetName
from skdp.preprocessing import TableSchema

SCHEMAS = ("adult", "bank", "breast_cancer", "cardio", "heart", "support2")


def load_schema(name: DatasetName) -> TableSchema:
    """Return the ready schema of a public table.

    Parameters
    ----------
    name : {"adult", "bank", "breast_cancer", "cardio", "heart", "support2"}
        The table.

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
