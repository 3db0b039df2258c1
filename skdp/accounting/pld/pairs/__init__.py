"""Dominating pairs of one release, and their losses in cells."""
