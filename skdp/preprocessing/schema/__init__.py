"""A table's columns, declared: what is read, checked, bounded and encoded."""
