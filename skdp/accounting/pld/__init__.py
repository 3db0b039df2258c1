"""Privacy-loss distributions: dominating pairs, and two ways to compose them.

The pair of a release gives the distribution of its privacy loss. `inversion` inverts the transform
of the composed loss along a contour; `grid` puts the losses on a grid and convolves. Both bound the
parts that they omit, and `composed_bounds` combines the tightest results.
"""
