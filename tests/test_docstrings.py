"""Public docstrings: every parameter is described, and every example runs."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest
from reachable import PUBLIC, reachable, with_sections

import skdp

PUBLIC_MODULES = [importlib.import_module(f"skdp{name}") for name in PUBLIC]
# Where docstrings of what nobody outside can reach are still longer than they need to be.
ALL_MODULES = [
    info.name
    for info in pkgutil.walk_packages(skdp.__path__, "skdp.")
    if not info.name.endswith(("_kernels", "_kernel", "_softmax", "_prefetch", "_elementary"))
]


def public_objects():
    seen = {}
    for module in PUBLIC_MODULES:
        for name in getattr(module, "__all__", ()):
            seen[f"{module.__name__}.{name}"] = getattr(module, name)
    return [pytest.param(value, id=key) for key, value in seen.items()]


def section(doc, title):
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc, re.DOTALL | re.MULTILINE)
    return found.group(1) if found else ""


def documented(doc):
    names = []
    for line in section(doc, "Parameters").splitlines():
        if line and not line.startswith(" "):
            names += [name.strip().lstrip("*") for name in line.split(" : ")[0].split(",")]
    return names


@pytest.mark.parametrize("thing", public_objects())
def test_parameters_are_documented(thing):
    doc = inspect.getdoc(thing)
    assert doc and doc.splitlines()[0].endswith(".")
    if inspect.isclass(thing) and "from_" in doc.split("Parameters")[0]:
        return  # built by class methods that document themselves
    try:
        parameters = list(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return
    if inspect.isclass(thing) and not section(doc, "Parameters"):
        assert parameters in ([], ["args", "kwargs"])
        return
    assert documented(doc) == [name for name in parameters if name != "self"]


def test_sections_are_for_what_users_can_reach():
    seen = reachable()
    long = [
        f"{module}.{name}" for module, name, _ in with_sections(".") if (module, name) not in seen
    ]
    assert long == [], "three lines are enough; python tests/oracles/reachable.py lists them"


@pytest.mark.parametrize("name", ALL_MODULES)
def test_examples_run(name):
    results = doctest.testmod(
        importlib.import_module(name),
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert results.failed == 0
