"""Privacy-loss distributions: dominating pairs, and two ways to compose them.

A pair of one release says how its privacy loss is distributed. `inversion` inverts the transform of
the composed loss along a contour; `grid` puts the losses on a grid and convolves. Both bound on
either side what they leave out, and `composed_bounds` takes the tightest of what they prove.
"""
