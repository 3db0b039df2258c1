"""Plans: the only coupling of learning and accounting.

A plan is built from public numbers and holds everything that must agree: loss and constants,
clipping, sampler, noise, adjacency and the event that the accountants are told about.
"""
