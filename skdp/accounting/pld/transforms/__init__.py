"""Moment generating functions of one release's loss along a contour, with error bounds."""
