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
