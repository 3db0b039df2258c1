"""Units of privacy: the rows of one patient, found by the ids in groups=.

Ids that are equal in Python are one unit. So are texts that differ only in spelling, by rules of
Unicode's categories and names, because a patient who counts as two would lose protection. Letters
of two scripts that look alike stay different. No message quotes an id or the number of rows, which
is private.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.base.parameters import cached_property, check_choice

_MIXED = (
    "groups mixes numbers and texts, and one patient may have ids that differ only in type, such "
    "as 1 and '1'. Give every row an id of the same type, for example all as text."
)
_NULL = (
    "groups has missing ids (None, NaN or empty text), and the unit of these rows is unknown. Drop "
    "them, or count each as a separate unit with units_of(ids, null='own').codes, from "
    "skdp.tables.units."
)
_WRONG = (
    "groups must hold one id for each row of X, whole numbers or texts, in a list, an array or "
    "a column."
)


# Printable to Python, and without a form: joiners, fillers, Khmer and Mongolian marks, the empty
# Braille cell, and selectors of variants.
_WITHOUT_FORM = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
_SELECTORS = (("\ufe00", "\ufe0f"), ("\U000e0100", "\U000e01ef"))

# Rows whose ids are looked at together.
_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Units:
    """The rows of each unit, by number.

    Units are in the order of their ids; units of rows without an id come last.
    """

    codes: NDArray[np.int64]  # the unit of each row
    ids: tuple[Any, ...] = ()  # what units are called, but those of rows without an id

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each unit; private."""
        return np.bincount(self.codes)

    @property
    def n_units(self) -> int:
        """Number of units; public, like the number of rows without groups."""
        return self.counts.size

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Rows sorted by unit; those of unit p are ``order[starts[p] : starts[p + 1]]``."""
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Start of each unit in `order`, and the end."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    def weights(self, most: float = 1.0) -> NDArray[np.float64]:
        """Return the weight of each row; rows of a unit are equal and add up to at most `most`."""
        return np.minimum(1.0, most / self.counts)[self.codes]

    def draw(
        self, stream: Any, most: int, padded: bool
    ) -> tuple[NDArray[np.int64], Units | None, NDArray[np.float64] | None]:
        """Draw up to `most` rows per unit; return them, their units and their weights.

        With one row per unit, rows are units. Padding gives each unit `most` places.
        """
        rows, shares = self.draw_rows(stream.uniform(most * self.n_units).reshape(most, -1))
        if most == 1:
            return rows, None, None
        kept = slice(None) if padded else shares > 0.0
        codes = np.repeat(np.arange(self.n_units), most)
        return rows[kept], Units(codes[kept]), shares[kept]

    def draw_rows(
        self, uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return m places for rows of each unit, side by side, and the weight of each place.

        Rows are drawn without replacement, from ``m x n_units`` uniform numbers in [0, 1). In a
        unit with fewer rows than m, the last places repeat a row with weight zero.
        """
        most, counts = len(uniforms), self.counts
        order, first = self.order.copy(), self.starts[:-1]
        for j, uniform in enumerate(uniforms):
            left = np.maximum(counts - j, 1)
            here = first + np.minimum(j, counts - 1)
            there = here + np.minimum(uniform * left, left - 1).astype(int)
            order[here], order[there] = order[there], order[here]
        last = np.minimum(most, counts)[:, None] - 1
        places = np.arange(most)
        shares = np.where(places <= last, 1.0 / (last + 1), 0.0)
        return order[first[:, None] + np.minimum(places, last)].ravel(), shares.ravel()

    def rows_of(
        self, indices: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Convert batches of units to batches of their rows."""
        counts = self.counts[indices]
        ends = np.concatenate([[0], np.cumsum(counts)])
        places = np.repeat(self.starts[indices] - ends[:-1], counts) + np.arange(ends[-1])
        return self.order[places], ends[offsets]


class LotsOfUnits:
    """A sampler of units that returns their rows."""

    def __init__(self, sampler: Any, units: Units) -> None:
        self._sampler, self._units = sampler, units

    def draw(self, steps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sample the batches of `steps` steps, each with all rows of its units."""
        return self._units.rows_of(*self._sampler.draw(steps))


@dataclass(frozen=True)
class HoldoutRule:
    """Rule for held-out units: a function of an id, or a row's number, and two public numbers.

    The rule must never change: a unit that was held out of one table is held out of the next.
    """

    share: float
    seed: int

    def of_ids(self, ids: Any) -> NDArray[np.bool_]:
        """Return for each row whether it is held out, by its id."""
        units = units_of(ids)
        # As text: a file of texts and one of numbers may hold the same people.
        return self._are_held([self._digest(f"id {own}", 8) for own in units.ids])[units.codes]

    def of_numbers(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return whether rows ``start`` to ``stop`` are held out, by their numbers."""
        first = start // 8
        words = [self._digest(f"rows {k}", 64) for k in range(first, -(-stop // 8))]
        return self._are_held(words)[start - 8 * first : stop - 8 * first]

    @cached_property
    def _key(self) -> bytes:
        return hashlib.blake2b(str(self.seed).encode(), digest_size=32).digest()

    def _digest(self, text: str, size: int) -> bytes:
        given = text.encode(errors="surrogatepass")
        person = b"skdp holdout"  # of this use alone
        return hashlib.blake2b(given, digest_size=size, key=self._key, person=person).digest()

    def _are_held(self, words: list[bytes]) -> NDArray[np.bool_]:
        return np.frombuffer(b"".join(words), "<u8") < np.uint64(int(self.share * 2.0**64))


def units_of(ids: Any, n_rows: int | None = None, *, null: str = "refuse") -> Units:
    """Find the units of rows by their ids; missing ids raise, or are ``"own"`` units.

    Ids are whole numbers or texts. Texts are compared after Unicode's NFKC, without blanks at the
    ends or invisible characters, with plain dashes, quotation marks and digits. Nothing else is
    corrected: 'A1' and 'a1' are different, and so are a Latin and a Cyrillic A.
    """
    check_choice("null", null, ("refuse", "own"))
    array = _as_array(ids)
    if n_rows is not None and array.size != n_rows:
        raise ValueError(_WRONG)
    if array.size and array.dtype.kind in "iu":
        return _whole_units(array)
    distinct, first = _count_any(array)
    keys = [_key(value) for value in distinct]
    del distinct
    known = {key for key in keys if key is not None}
    if len({type(key) for key in known}) > 1:
        raise TypeError(_MIXED)
    place = {key: number for number, key in enumerate(sorted(known))}
    codes = np.array([-1 if key is None else place[key] for key in keys], dtype=np.int64)[first]
    missing = codes < 0
    if missing.any():
        if null == "refuse":
            raise ValueError(_NULL)
        codes[missing] = len(place) + np.arange(np.count_nonzero(missing))
    return Units(codes, tuple(place))


def _as_array(ids: Any) -> NDArray[Any]:
    """Return ids as an array of unchanged values."""
    if isinstance(ids, str | bytes | dict | set) or not isinstance(ids, Iterable):
        raise TypeError(_WRONG)
    if np.ma.isMaskedArray(ids):
        ids = ids.tolist()
    # Of a list numpy would make texts of numbers and of missing values.
    plain = not hasattr(ids, "__array__")
    try:
        array = np.asarray(list(ids), dtype=object) if plain else np.asarray(ids)
    except ValueError:
        raise TypeError(_WRONG) from None
    if array.ndim != 1 or array.dtype.kind not in "iufUTO":
        raise TypeError(_WRONG)
    return array


def _count_any(array: NDArray[Any], typed: bool = False) -> tuple[list[Any], NDArray[np.int64]]:
    """Return distinct ids, and the place of each row's id among them.

    Rows are processed in chunks: lists of all rows would take several times their memory.
    """
    places: dict[Any, int] = {}
    kinds: set[type] = set()
    first = np.empty(array.size, dtype=np.int64)
    for start in range(0, array.size, _AT_ONCE):
        keys: Any = array[start : start + _AT_ONCE].tolist()
        kinds.update(map(type, keys))
        if typed:
            keys = zip(map(type, keys), keys, strict=True)
        elif len(kinds) > 1:
            # Python takes 1, 1.0 and True for one key, of which the first would decide what the
            # others are.
            return _count_any(array, typed=True)
        try:
            own = [places.setdefault(key, len(places)) for key in keys]
        except TypeError:  # what cannot be hashed
            raise TypeError(_WRONG) from None
        first[start : start + _AT_ONCE] = own
    return [key[1] for key in places] if typed else list(places), first


def _whole_units(array: NDArray[Any]) -> Units:
    """Find the units of whole numbers, without sorting those of a short range."""
    low, high = int(array.min()), int(array.max())
    if high - low > 8 * array.size or max(-low, high) >= 2**62:
        distinct, places = np.unique(array, return_inverse=True)
        return Units(places, tuple(distinct.tolist()))
    seen = np.zeros(high - low + 1, dtype=bool)
    shifted = array.astype(np.int64) - low
    seen[shifted] = True
    return Units((np.cumsum(seen) - 1)[shifted], tuple((np.flatnonzero(seen) + low).tolist()))


def _key(value: Any) -> int | str | None:
    """Return the common key of ids of one unit, None for a missing id."""
    if type(value) is int:
        return value
    if type(value) is str and value.isascii() and value.isprintable():  # without forms of its own
        return " ".join(value.split()) or None
    if isinstance(value, str):
        seen = (c for c in unicodedata.normalize("NFKC", value) if c.isspace() or _is_seen(c))
        # What stood on either side of a character without a form may compose, or be blanks.
        whole = unicodedata.normalize("NFKC", "".join(seen))
        return " ".join("".join(map(_plain_form, whole)).split()) or None
    if isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64):
        return int(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        if math.isnan(number):
            return None
        if number.is_integer() and abs(number) < 2.0**53:  # larger ones may have been rounded
            return int(number)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    raise TypeError(_WRONG)


def _is_seen(c: str) -> bool:
    """Return whether a character is visible or a blank."""
    selects = any(low <= c <= high for low, high in _SELECTORS)
    return c.isprintable() and c not in _WITHOUT_FORM and not selects


def _plain_form(c: str) -> str:
    """Return the ASCII form of a dash, an apostrophe, a quotation mark or a digit, else itself."""
    if c.isascii():
        return c
    if unicodedata.category(c) == "Pd" or c == "\u2212":  # MINUS SIGN
        return "-"
    name = unicodedata.name(c, "")
    if "APOSTROPHE" in name or ("QUOTATION MARK" in name and "SINGLE" in name):
        return "'"
    if "QUOTATION MARK" in name:
        return '"'
    return str(unicodedata.digit(c, c))


def about_units(counted: str) -> str:
    """Return the assumption about records of a fit with groups=."""
    return (
        f"a record, or unit, is all rows that share an id in groups=, however many: {counted}. The "
        "number of rows is private. Two ids of one patient count as two units"
    )
