"""Plans: the only coupling of learning and accounting.

A plan is built from public numbers and contains everything that must agree: loss and constants,
clipping, sampler, noise, adjacency, and the event for the accountants.
"""
