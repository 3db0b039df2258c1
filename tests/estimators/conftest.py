"""Fixtures of the estimator tests."""

import pytest
from support import ESTIMATORS, rows


@pytest.fixture
def table():
    return rows()


@pytest.fixture(params=ESTIMATORS, ids=lambda estimator: estimator.__name__)
def estimator(request):
    return request.param


def pytest_configure(config):
    config.addinivalue_line(
        "filterwarnings", "ignore:delta=.* is not below 1/n:skdp.exceptions.PrivacyWarning"
    )


def pytest_collection_modifyitems(items):
    """Mark half of the longest checks, all sparse formats, as slow, and half of those of networks.

    The daily run has arrays with default parameters, and matrices with negligible noise.
    """
    longest = ("check_estimator_sparse_array]", "check_estimator_sparse_matrix]")
    for item in items:
        if item.path.name == "test_common.py" and item.name.endswith(longest):
            if ("epsilon=" in item.name) == item.name.endswith(longest[0]):
                item.add_marker(pytest.mark.slow)
        if item.path.name == "test_common.py" and "epsilon=1000000.0,hidden" in item.name:
            item.add_marker(pytest.mark.slow)
