"""Public descriptions of a table's columns: how they are read, checked, bounded and encoded."""
