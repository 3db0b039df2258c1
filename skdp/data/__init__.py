"""Tables on disk with rows that are read a block at a time."""

from skdp.data.parquet import open_parquet

__all__ = ["open_parquet"]
