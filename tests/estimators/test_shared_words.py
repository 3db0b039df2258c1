"""A parameter that estimators, transformers and searches share is described in the same words."""

import inspect
import re

import pytest
from sklearn.base import BaseEstimator

import skdp
import skdp.model_selection
import skdp.preprocessing

# What descriptions begin with; what is special to one class may follow.
WORDS = {
    "epsilon": "Privacy parameter of one fit, positive.",
    "delta": "Privacy parameter of one fit, in (0, 1); keep it well below 1/n.",
    "adjacency": "Neighbouring tables: one row replaced, or one added or removed.",
    "data_norm": "Public bound on the Euclidean norm of a row. Longer rows are scaled down to it. "
    "None takes 1.0, and `fit` warns unless the rows come from a step of skdp that bounds them by "
    "that.",
    "classes": "Public label set. None reads it from `y`, which the statement then says.",
    "alpha": "L2 penalty on all weights, the intercept included.",
    "fit_intercept": "Whether to fit an intercept.",
    "intercept_scaling": "Value of the constant column behind the intercept; it is part of the row "
    'norm. ``"auto"`` takes a fixed share of `data_norm`.',
    "half_width": "Half-width h of the smoothed kink; the loss is ``1/(2h)``-smooth in the margin.",
    "physical_batch_size": "At most so many rows, or 288, are handled at once; it bounds memory, "
    "not the lots.",
    "accountant": "Budget to charge before rows are used. None charges that of the ``with`` block "
    "in which it is made or fitted; without one the fit is not counted, or refused where "
    "`set_config` requires a budget.",
    "random_state": "None draws all randomness from a cryptographic stream keyed by the operating "
    "system. A seed is for tests: the guarantee does not hold against whoever knows it.",
    "verbose": "If positive, print what the fit will spend.",
}


def public_classes():
    for module in (skdp, skdp.preprocessing, skdp.model_selection):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, BaseEstimator):
                yield value


def descriptions(cls):
    """Return what the class says of each of its parameters, in one line each."""
    doc = inspect.getdoc(cls).partition("Parameters\n----------\n")[2]
    doc = re.split(r"\n\n\S+[^\n]*\n-+\n", doc)[0]
    found = re.findall(r"^(\S[^\n]*?) : [^\n]*\n((?:    [^\n]*\n?)+)", doc, re.MULTILINE)
    return {name: " ".join(text.split()) for names, text in found for name in names.split(", ")}


@pytest.mark.parametrize("cls", list(public_classes()), ids=lambda cls: cls.__name__)
def test_shared_parameters_are_described_alike(cls):
    said = descriptions(cls)
    assert set(said) == set(inspect.signature(cls).parameters)
    own = {"alpha"} if cls is skdp.PrivateRidge else set()  # its intercept has no penalty
    for name in (WORDS.keys() & said.keys()) - own:
        assert said[name].startswith(WORDS[name]), (name, said[name])


def test_every_shared_word_is_in_use():
    named = [name for cls in public_classes() for name in descriptions(cls)]
    assert all(named.count(name) > 1 for name in WORDS)
