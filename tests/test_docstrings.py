"""Public docstrings: every parameter is described, every object has an example, and all run."""

import doctest
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import warnings
from pathlib import Path

import pytest
from reachable import PUBLIC, exported, reachable, with_sections

import skdp
from skdp.exceptions import PrivacyWarning

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
    return seen.values()


def section(doc, title):
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc, re.DOTALL | re.MULTILINE)
    return found.group(1) if found else ""


def documented(doc):
    names = []
    for line in section(doc, "Parameters").splitlines():
        if line and not line.startswith(" "):
            names += [name.strip().lstrip("*") for name in line.split(" : ")[0].split(",")]
    return names


def test_parameters_are_documented():
    for thing in public_objects():
        check_parameters(thing)


def check_parameters(thing):
    doc = inspect.getdoc(thing)
    assert doc and doc.splitlines()[0].endswith("."), thing
    if inspect.isclass(thing) and "from_" in doc.split("Parameters")[0]:
        return  # built by class methods that document themselves
    try:
        parameters = list(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return
    if inspect.isclass(thing) and not section(doc, "Parameters"):
        assert parameters in ([], ["args", "kwargs"]), thing
        return
    assert documented(doc) == [name for name in parameters if name != "self"], thing


def test_sections_are_for_what_users_can_reach():
    seen = reachable()
    long = [
        f"{module}.{name}" for module, name, _ in with_sections(".") if (module, name) not in seen
    ]
    assert long == [], "three lines are enough; python tests/oracles/reachable.py lists them"


def is_exception(thing):
    return isinstance(thing, type) and issubclass(thing, BaseException)


def test_every_public_object_shows_its_use():
    without = [
        f"{thing.__module__}.{thing.__qualname__}"
        for thing in exported()
        if not is_exception(thing)
        and ">>>" not in section(inspect.cleandoc(thing.__doc__ or ""), "Examples")
    ]
    assert without == [], "a docstring of their own with a section Examples that runs"


def has_examples(name):
    return ">>>" in Path(importlib.util.find_spec(name).origin).read_text()


# Examples of these names need files, and take a while to read them.
NEEDS_FILES = "fetch_"


def failed_examples(name, *, with_files):
    """Run the examples of a module, each by itself; draw pictures where there is matplotlib."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    failed = 0
    for test in doctest.DocTestFinder().find(importlib.import_module(name), name, globs={}):
        lines = [example.source for example in test.examples]
        assert not any("+SKIP" in line for line in lines), f"{test.name} shows what nobody runs"
        draws = any("Display" in line for line in lines)
        if any("parquet" in line for line in lines) and not importlib.util.find_spec("pyarrow"):
            continue
        if any(NEEDS_FILES in line for line in lines) is with_files and draw_in_memory(draws):
            with warnings.catch_warnings():
                warnings.simplefilter("error", PrivacyWarning)  # they teach the honest use
                failed += runner.run(test).failed
    return failed


def draw_in_memory(draws):
    """Say whether examples can run: they draw nothing, or there is what draws it."""
    if draws and importlib.util.find_spec("matplotlib"):
        import matplotlib.pyplot as plt

        plt.switch_backend("Agg")
        plt.close("all")  # of the examples before
        return True
    return not draws


@pytest.mark.parametrize("name", [name for name in ALL_MODULES if has_examples(name)])
def test_examples_run(name):
    assert failed_examples(name, with_files=False) == 0


@pytest.mark.slow
@pytest.mark.skipif("SKDP_DATA" not in os.environ, reason="needs the data files (SKDP_DATA)")
def test_examples_that_read_files_run():
    failed = {name: failed_examples(name, with_files=True) for name in ALL_MODULES}
    assert not any(failed.values()), failed
