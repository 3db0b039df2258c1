"""Dominating pairs of one release, and how their losses are cut into cells."""
