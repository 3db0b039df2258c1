"""Fixtures of the estimator tests."""

import pytest
from support import FAMILIES, rows


@pytest.fixture
def table():
    return rows()


@pytest.fixture(params=FAMILIES, ids=lambda estimator: estimator.__name__)
def estimator(request):
    return request.param


def pytest_configure(config):
    config.addinivalue_line(
        "filterwarnings", "ignore:delta=.* is not below 1/n:skdp.exceptions.PrivacyWarning"
    )


def pytest_collection_modifyitems(items):
    """Leave one of the two longest checks, all sparse formats, to the slow tests."""
    for item in items:
        if item.path.name == "test_common.py" and item.name.endswith("sparse_matrix]"):
            item.add_marker(pytest.mark.slow)
