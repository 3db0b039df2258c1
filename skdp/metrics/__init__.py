"""Figures of a model's performance on private rows, each with an interval, from one release."""
