"""What the guides quote is what the package says, and packages carry links that lead somewhere."""

import re
import tomllib
from pathlib import Path

import skdp

ROOT = Path(__file__).resolve().parents[1]


def what_the_package_says():
    """Return all source text, the pieces of a message that is written on several lines joined."""
    sources = Path(skdp.__file__).parent.rglob("*.py")
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text() for path in sources))


def test_messages_are_quoted_as_they_are():
    page = (ROOT / "docs" / "troubleshoot.md").read_text()
    rows = re.findall(r"^\| (`.*?) \| ", page, flags=re.MULTILINE)
    quoted = [part for row in rows for part in re.findall(r"`([^`]+)`", row) if " " in part]
    assert len(quoted) > 12
    said = re.sub(r"\{[^{}\n]*\}", "...", what_the_package_says())
    for message in quoted:
        for piece in message.split("..."):
            assert piece in said, piece


def test_links_of_the_packaged_readme_are_absolute():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    rules = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    text = (ROOT / "README.md").read_text()
    relative = len(re.findall(r"\]\((?!https?:)", text))
    for rule in rules:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    assert relative > 20
    assert not re.findall(r"\]\((?!https?:)", text)
    assert text.count(project["project"]["urls"]["Repository"] + "/blob/main/") == relative
