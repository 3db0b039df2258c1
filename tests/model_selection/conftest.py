"""What tests of searches share."""


def pytest_configure(config):
    config.addinivalue_line(
        "filterwarnings", "ignore:delta=.* is not below 1/n:skdp.exceptions.PrivacyWarning"
    )
