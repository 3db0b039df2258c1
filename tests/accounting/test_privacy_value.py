"""The number that knows what it promises."""

import copy
import json
import pickle

import numpy as np
import pytest

from skdp.accounting import PrivacyValue


def test_it_is_a_float_and_an_interval():
    value = PrivacyValue(1.5, lower=1.25)
    assert value == 1.5
    assert tuple(value) == (1.25, 1.5) == (value.lower, value.upper)
    assert type(value.upper) is float
    assert json.dumps([value]) == "[1.5]"
    assert f"{value:.1f}" == str(value) == "1.5"
    assert np.asarray([value, value]).dtype == np.float64
    assert np.asarray(value).shape == ()


@pytest.mark.parametrize(
    "copier", [copy.deepcopy, copy.copy, lambda v: pickle.loads(pickle.dumps(v))]
)
def test_copies_keep_what_is_known(copier):
    value = copier(PrivacyValue(0.5, 0.25, is_upper_bound=False, is_differential_privacy=False))
    assert tuple(value) == (0.25, 0.5)
    assert not value.is_upper_bound
    assert not value.is_differential_privacy
    assert not value.is_guarantee


def test_the_representation_says_what_it_is_not():
    assert "lower=0.25" in repr(PrivacyValue(0.5, 0.25))
    assert "no upper bound" in repr(PrivacyValue(0.5, is_upper_bound=False))
    assert "no differential privacy" in repr(PrivacyValue(0.5, is_differential_privacy=False))
