"""A chain of hashes: every row commits to all rows before it.

A row is a dictionary of plain values written as canonical JSON. Its hash is the SHA-256 of that
text, and the text holds the hash of the row before it; the first row, the genesis, holds the terms
of the budget. So whoever knows the last hash knows that no row was edited, dropped, inserted or
moved.
"""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction
from typing import Any

Row = dict[str, Any]

# What stands before the genesis row.
NO_ROW_BEFORE = "0" * 64


def canonical(row: Row) -> str:
    """Write a row as JSON in the one form that is hashed.

    Parameters
    ----------
    row : dict
        Plain values; numbers that are not finite are refused, see `plain_number`.

    Returns
    -------
    str
        ASCII text with sorted keys and no spaces.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    return json.dumps(row, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(content: str) -> str:
    """Return the hash of a row, in hexadecimal.

    Parameters
    ----------
    content : str
        The row as `canonical` writes it.

    Returns
    -------
    str
        Its SHA-256.
    """
    return hashlib.sha256(content.encode()).hexdigest()


def plain_number(value: float) -> float | str:
    """Return a number as JSON can carry it: infinities and "not a number" as text.

    Parameters
    ----------
    value : float
        Any number.

    Returns
    -------
    float or str
        The number itself if it is finite; ``float`` reads either.
    """
    return float(value) if math.isfinite(value) else repr(float(value))


def write_amounts(amounts: tuple[Fraction, ...]) -> list[str]:
    """Write exact amounts as texts, ``"1/100"``.

    Parameters
    ----------
    amounts : tuple of Fraction
        Any rational numbers.

    Returns
    -------
    list of str
        Each as a fraction in lowest terms.
    """
    return [str(amount) for amount in amounts]


def read_amounts(texts: list[str]) -> tuple[Fraction, ...]:
    """Read what `write_amounts` wrote.

    Parameters
    ----------
    texts : list of str
        Fractions as text.

    Returns
    -------
    tuple of Fraction
        The exact amounts.

    Raises
    ------
    ValueError
        If a text is no fraction.
    """
    return tuple(Fraction(text) for text in texts)


def link(row: Row, *, index: int, previous: str) -> tuple[str, str]:
    """Write a row as a link of the chain.

    Parameters
    ----------
    row : dict
        What the row says.
    index : int
        Its place in the chain; the genesis has 0.
    previous : str
        Hash of the row before it.

    Returns
    -------
    content, hash : str
        The text to store, and its hash.
    """
    content = canonical({**row, "index": index, "previous": previous})
    return content, digest(content)


def read_link(
    content: object, *, hash_: str, index: int, previous: str | None
) -> tuple[Row, str | None]:
    """Read a link, and say what is wrong with it, if anything.

    Parameters
    ----------
    content : str
        The stored text.
    hash_ : str
        The hash that was stored with it.
    index : int
        The place where it stands.
    previous : str or None
        Hash of the row before it; None if that is not known here.

    Returns
    -------
    row, fault
        What the row says, nothing if it was edited; and the fault, None for a sound link.
    """
    if not isinstance(content, str) or digest(content) != hash_:
        return {}, "was edited: its hash is another one"
    row: Row = json.loads(content)
    if row["index"] != index:
        return row, f"is out of place: it was written as row {row['index']}"
    if previous is not None and row["previous"] != previous:
        return row, "does not follow the row before it: rows were edited, dropped or inserted"
    return row, None
