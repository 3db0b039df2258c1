"""The site's sources: every public object has an API page, and every benchmark has its row."""

import importlib
import pkgutil
import re
from pathlib import Path

import skdp

ROOT = Path(__file__).resolve().parents[1]


def public_objects():
    """Return the objects that packages export, by identity, with the shortest name of each."""
    packages = [info.name for info in pkgutil.iter_modules(skdp.__path__) if info.ispkg]
    found = {}
    for module in (skdp, *(importlib.import_module(f"skdp.{name}") for name in packages)):
        for name in getattr(module, "__all__", ()):
            found.setdefault(id(getattr(module, name)), f"{module.__name__}.{name}")
    return found


def resolve(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_every_public_object_has_an_api_page_and_every_page_an_object():
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.rst"))
    shown = re.findall(r"^   (skdp[\w.]+)$", pages, re.MULTILINE)
    assert len(set(shown)) == len(shown)
    there = {id(resolve(path)) for path in shown}  # a name that is not there raises
    missing = sorted(name for key, name in public_objects().items() if key not in there)
    assert not missing, missing


def test_every_benchmark_stands_in_the_table_of_benchmarks():
    named = re.findall(r"^\| `(\w+\.py)`", (ROOT / "docs/benchmarks.md").read_text(), re.MULTILINE)
    scripts = (ROOT / "examples" / "benchmarks").glob("[!_]*.py")
    assert sorted(named) == sorted(script.name for script in scripts)


def test_files_of_measured_rows_are_linked_and_links_have_files():
    folder = ROOT / "docs" / "measured"
    pages = [path.read_text() for path in (ROOT / "docs").glob("*.md")]
    linked = {name for text in pages for name in re.findall(r"\]\(measured/([^)]+)\)", text)}
    assert linked == {path.name for path in folder.iterdir()}
