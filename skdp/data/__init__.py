"""Tables on disk whose rows are read a block at a time."""

from skdp.data.parquet import ParquetTable, open_parquet

__all__ = ["ParquetTable", "open_parquet"]
