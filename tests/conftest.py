"""Property tests try the same examples in every run and have no clock, however slow the machine.

``pytest --hypothesis-profile=search`` tries new ones.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("same"), derandomize=False)
settings.load_profile("same")
