"""The map in docs/design.md against the tree: every module in its folder's row, and no other."""

import re
from pathlib import Path

import skdp

PACKAGE = Path(skdp.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "design.md"


def on_the_map():
    rows = re.findall(r"^\| `(skdp/[\w/]*)` \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    found = {folder.rstrip("/"): set(re.findall(r"`(\w+)`", names)) for folder, names in rows}
    assert len(found) == len(rows), "a folder stands on the map twice"
    return found


def in_the_tree():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        if path.stem != "__init__":
            folder = path.parent.relative_to(PACKAGE.parent).as_posix()
            found.setdefault(folder, set()).add(path.stem)
    return found


def pairs(by_folder):
    return {(folder, name) for folder, names in by_folder.items() for name in names}


def test_every_module_is_on_the_map_and_every_name_on_it_exists():
    named, there = pairs(on_the_map()), pairs(in_the_tree())
    assert not there - named, "modules that are not on the map"
    assert not named - there, "names on the map without a module"


def test_files_that_the_docs_name_exist():
    for page in (PAGE.parents[1] / "README.md", *PAGE.parent.rglob("*.md")):
        named = re.findall(r"\b(?:skdp|tests|examples)/[\w/]+\.(?:py|md)\b", page.read_text())
        assert not {name for name in named if not (PAGE.parents[1] / name).exists()}, page
