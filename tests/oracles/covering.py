"""Covering arrays: few cases in which each pair of values of any two settings meets."""

import itertools


def pairs(*settings):
    """Return tuples with one value of each setting, every pair of values among them."""
    sizes = [range(len(values)) for values in settings]
    places = list(itertools.combinations(range(len(sizes)), 2))
    waiting = {(a, b, i, j) for a, b in places for i in sizes[a] for j in sizes[b]}
    every, cases = list(itertools.product(*sizes)), []
    while waiting:
        # Of equally good ones the first: the same cases in every process.
        met = [{(a, b, case[a], case[b]) for a, b in places} & waiting for case in every]
        best = max(range(len(every)), key=lambda k: len(met[k]))
        cases.append(tuple(values[i] for values, i in zip(settings, every[best], strict=True)))
        waiting -= met[best]
    return cases
