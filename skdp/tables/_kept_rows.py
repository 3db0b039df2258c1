"""Encoded rows of a table in files, stored on disk between the passes of a fit."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The pass over encoded rows that keeps them: predictions take one, fits at least three.
_WORTH_KEEPING, _NOT_NOW = 2, -1


class KeptRows:
    """Encoded rows of a second pass, in an unnamed file that later passes read.

    The file is in the folder of the table's files, with the same protection, or in `SKDP_SCRATCH`.
    It disappears with the rows or the process. Copies use separate files.
    """

    def __init__(
        self, folder: Any, shape: tuple[int, int], dtype: np.dtype[Any], kind: Callable[[Any], Any]
    ) -> None:
        self._given = folder, shape, dtype, kind
        self._lock, self._passes, self._end = threading.Lock(), 0, _NOT_NOW
        self._file: Any = None
        self._process = 0
        self.rows: Any = None  # of that kind, once all are there

    def __reduce__(self) -> Any:
        return type(self), self._given

    def offer(self, start: int, block: NDArray[Any]) -> None:
        """Store a block of encoded rows, if it is the next one."""
        with self._lock:
            if start == 0 and self.rows is None:
                self._passes += 1
                self._end = 0 if self._passes >= _WORTH_KEEPING else _NOT_NOW
            if start != self._end or (start and self._process != os.getpid()):
                return  # a forked process would write into its parent's file
            try:
                self._write(block)
            except OSError:  # no room, or no leave to write
                # Others need the room that there is.
                self._end, self._passes, self._file = _NOT_NOW, -(1 << 60), None
            except BaseException:
                self._end, self._file = _NOT_NOW, None
                raise

    def _write(self, block: NDArray[Any]) -> None:
        folder, shape, dtype, kind = self._given
        if self._end == 0:
            folder = os.environ.get("SKDP_SCRATCH", folder)
            size = shape[0] * shape[1] * dtype.itemsize
            if not size or folder in (None, "", "0") or shutil.disk_usage(folder).free < 2 * size:
                raise OSError
            # What is in a buffer would be written by forked processes once more.
            self._file, self._process = tempfile.TemporaryFile(buffering=0, dir=folder), os.getpid()
        if self._file.write(block.data) < block.nbytes:
            raise OSError
        self._end += len(block)
        if self._end == shape[0]:
            self.rows = kind(np.memmap(self._file, dtype, "r", shape=shape))
            self._end = _NOT_NOW
