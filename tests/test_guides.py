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


def test_links_between_pages_lead_somewhere():
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    found = 0
    for page in pages:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\((?![a-z]+:|#)([^)\s]+)\)", text):
            found += 1
            assert (page.parent / link.partition("#")[0]).exists(), (page.name, link)
    assert found > 300


def test_every_guide_is_in_a_table_of_contents():
    docs = ROOT / "docs"
    trees = re.findall(
        r"```\{toctree\}(.*?)```", "\n".join(p.read_text() for p in docs.rglob("*.md")), re.DOTALL
    )
    named = {line.strip().rpartition("/")[2] for tree in trees for line in tree.splitlines()}
    assert {page.stem for page in docs.glob("*.md")} - named <= {"index"}
