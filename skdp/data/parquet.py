"""Tables in Parquet files, which are read a block of rows at a time (extra ``parquet``)."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from skdp.exceptions import RowsChangedError
from skdp.tables.digests import Digester
from skdp.tables.row_sources import BlockTable

# Rows decoded at once, bytes read at once, and bytes per piece of a digest.
_AT_ONCE, _BUFFER, _PIECE = 1 << 16, 1 << 18, 1 << 22
# Approximate bytes of a cell in memory: of a number, and of other cells, which become objects.
_NUMBER, _OBJECT = 16, 96


def open_parquet(paths: Any) -> ParquetTable:
    """Open a table in Parquet files without reading its rows.

    It needs pandas and pyarrow.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A file, a folder, or a sequence of different files and folders. All files of a folder that
        end in .parquet are used, in the order of their names, except hidden ones. All files must
        have the same columns with the same types.

    Returns
    -------
    ParquetTable
        Table that replaces a frame in ``schema.pipeline(estimator).fit``, ``TableSchema.split``,
        ``check`` and ``draft``, and in fitted pipelines. Files must not change while it is in use.
        Each pass compares their size and time stamps; the first and the last pass compare their
        bytes. A fit that encodes more than 1 GiB of rows stores them in an unnamed file in the
        folder of the first file. The environment variable ``SKDP_SCRATCH`` sets another folder; 0
        disables the file.

    Raises
    ------
    ImportError
        Without pandas or pyarrow.
    ValueError
        If there are no files, a file is no Parquet file or is given twice, or columns differ. Also
        if a folder has subfolders with Parquet files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from skdp import ObjectivePerturbationLogisticRegression
    >>> from skdp.data import open_parquet
    >>> from skdp.preprocessing import LabelColumn, NumericColumn, TableSchema
    >>> schema = TableSchema([NumericColumn("age", 0, 120)], label=LabelColumn("ill", [0, 1]))
    >>> model = schema.pipeline(ObjectivePerturbationLogisticRegression(epsilon=1.0))
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "patients.parquet")
    ...     pd.DataFrame({"age": [61, 47] * 500, "ill": [1, 0] * 500}).to_parquet(path)
    ...     table = open_parquet(path)
    ...     labels = model.fit(table).predict(table)
    >>> table.shape, labels.shape
    ((1000, 2), (1000,))
    """
    if absent := [name for name in ("pandas", "pyarrow") if not importlib.util.find_spec(name)]:
        raise ImportError(
            f"Parquet files need {' and '.join(absent)}: pip install 'skdp[parquet]'."
        )
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    files: list[Path] = []
    for path in map(Path, given):
        files += _files_of(path) if path.is_dir() else [path]
    if len({path.resolve() for path in files}) < len(files):
        raise ValueError(
            "open_parquet was given a file twice: its rows would count twice. Give it once."
        )
    if not files:
        raise ValueError("open_parquet found no file. Give a file, or a folder of .parquet files.")
    return ParquetTable(files)


class ParquetTable(BlockTable):
    """A table in Parquet files with rows that are read when they are used.

    `open_parquet` creates it.

    Attributes
    ----------
    columns : list of str
        Names of the columns.
    dtypes : list
        Types of the columns in pandas, as the files declare them.
    shape : tuple of int
        Numbers of rows and of columns.
    """

    def __init__(
        self, paths: Iterable[Any], columns: Iterable[str] | None = None, seal: Any = None
    ) -> None:
        self._paths = [Path(path) for path in paths]
        self.folder = self._paths[0].parent
        self._seal = _Seal(self._paths) if seal is None else seal
        self._seal.check_stamps()
        found = [_describe(path) for path in self._paths]
        own = found[0][0]
        if not all(own.equals(schema) for schema, _ in found):
            raise ValueError("the Parquet files differ in the names or the types of their columns.")
        self._groups = [groups for _, groups in found]
        self.columns = list(own.names) if columns is None else list(columns)
        if missing := sorted(set(self.columns) - set(own.names)):
            raise KeyError(f"no columns {', '.join(map(repr, missing))} in the Parquet files.")
        self._none = own.empty_table() if columns is None else own.empty_table().select(columns)
        self.shape = sum(map(sum, self._groups)), len(self.columns)
        self.dtypes = list(self.read(0, 0).dtypes)
        numbers = [getattr(dtype, "kind", "O") in "biuf" for dtype in self.dtypes]
        self.row_bytes = float(sum(_NUMBER if number else _OBJECT for number in numbers))
        # Batches after the last row that was read, and the rest of the current one.
        self._lock, self._at = threading.Lock(), -1
        self._batches: Iterator[Any] = iter(())
        self._rest: Any = None

    def __getitem__(self, key: Any) -> Any:
        """Return a slice of rows as a frame, or a table of the columns of a list of names."""
        if isinstance(key, slice):
            return super().__getitem__(key)
        if isinstance(key, str) or not all(isinstance(name, str) for name in key):
            raise TypeError(
                "a Parquet table is indexed only by lists of column names and slices of rows. To "
                "split its rows, use schema.split_holdout(table, share, seed), or encode it: "
                "schema.preprocessor().fit_transform(table)."
            )
        return type(self)(self._paths, key, self._seal)

    def __reduce__(self) -> Any:
        return type(self), (self._paths, self.columns, self._seal)

    def __repr__(self) -> str:
        return f"<ParquetTable of {self.shape[1]} columns in {len(self._paths)} files>"

    def read(self, start: int, stop: int) -> Any:
        """Return rows as a frame with pyarrow's types, as `TableSchema.read_parquet` does.

        Parameters
        ----------
        start, stop : int
            Number of the first row, and of the row after the last.

        Returns
        -------
        DataFrame
            The rows.
        """
        import pandas
        import pyarrow

        table = self._none
        if start < stop:
            with self._lock:
                try:
                    table = pyarrow.Table.from_batches(self._next(start, stop))
                except (StopIteration, OSError, pyarrow.ArrowException):
                    self._at = -1
                    raise RowsChangedError() from None
                except BaseException:
                    self._at = -1
                    raise
            table = table.select(self.columns)
        # Metadata written by pandas would decide about types.
        return table.replace_schema_metadata(None).to_pandas(types_mapper=pandas.ArrowDtype)

    def note_rows(self) -> None:
        """Note the bytes of the files, unless they are already noted."""
        self._seal.note_bytes()

    def check_rows(self) -> None:
        """Refuse files with other bytes than at the first reading."""
        self._seal.check_bytes()

    def check_stamps(self) -> None:
        """Refuse files that are gone, or have other stamps and bytes than before."""
        try:
            self._seal.check_stamps()
        except OSError:
            raise RowsChangedError() from None

    def _next(self, start: int, stop: int) -> list[Any]:
        """Return rows as batches, continuing after the last rows read if possible."""
        if start != self._at:
            self._seal.check_stamps()
            self._seal.note_bytes()
            self._batches, self._rest = self._open(start), None
        self._at, found, missing = stop, [], stop - start
        while missing:
            batch = next(self._batches) if self._rest is None else self._rest
            found.append(batch.slice(0, missing))
            self._rest = batch.slice(missing) if batch.num_rows > missing else None
            missing -= found[-1].num_rows
        return found

    def _open(self, start: int) -> Iterator[Any]:
        """Yield batches of rows, starting at one row."""
        from pyarrow.parquet import ParquetFile

        for path, groups in zip(self._paths, self._groups, strict=True):
            first = 0
            while first < len(groups) and start >= groups[first]:
                start -= groups[first]
                first += 1
            if first == len(groups):
                continue
            sums = {"page_checksum_verification": True}  # where the writer wrote them
            with ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER, **sums) as file:
                chosen = {"row_groups": range(first, len(groups)), "columns": self.columns}
                for batch in file.iter_batches(_AT_ONCE, use_threads=False, **chosen):
                    if start < batch.num_rows:
                        yield batch.slice(start)
                    start = max(0, start - batch.num_rows)


def _files_of(folder: Path) -> list[Path]:
    """Return the files of a folder, except hidden ones, in the order of their names."""
    found = [path for path in sorted(folder.glob("*.parquet")) if path.name[0] not in "._"]
    if any(path.suffix == ".parquet" and path not in found for path in folder.glob("*/**/*")):
        raise ValueError(f"{folder} has subfolders with Parquet files. Give a list of the files.")
    return found


class _Seal:
    """State of files when they were opened, and their bytes when they were first read."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths, self._stamps = paths, [_stamp(path) for path in paths]
        self._digester = Digester()
        self._digests: list[bytes] | None = None

    def check_stamps(self) -> None:
        found = [_stamp(path) for path in self._paths]
        if found != self._stamps:  # as by a copy or a link, which change no byte
            if self._digests is None or self._digests_now() != self._digests:
                raise RowsChangedError()
            self._stamps = found

    def note_bytes(self) -> None:
        if self._digests is None:
            self._digests = self._digests_now()

    def check_bytes(self) -> None:
        if self._digests is not None and self._digests_now() != self._digests:
            raise RowsChangedError()

    def _digests_now(self) -> list[bytes]:
        found = []
        for path in self._paths:
            with open(path, "rb") as file:
                pieces = iter(partial(file.read, _PIECE), b"")
                found.append(self._digester.digest(*map(self._digester.digest, pieces)))
        return found


def _stamp(path: Path) -> tuple[int, ...]:
    """Return numbers that change when a file is replaced or written; the last is hard to reset."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _describe(path: Path) -> tuple[Any, list[int]]:
    """Return the columns of a file, without pandas' index, and the rows of its groups."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            about, schema = file.metadata, file.schema_arrow
    except pyarrow.ArrowException:
        raise ValueError(f"{path} is no Parquet file.") from None
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    kept = [field for field in schema if field.name not in index]
    groups = [about.row_group(j).num_rows for j in range(about.num_row_groups)]
    return pyarrow.schema(kept), groups
