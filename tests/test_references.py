"""What code says of the documentation exists: pages, and statements under the numbers it names."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
MODULES = {path: path.read_text() for path in sorted((ROOT / "skdp").rglob("*.py"))}
ANCHOR = re.compile(r"^\(([\w-]+)\)=\n+(.*)$", re.MULTILINE)
REFERENCE = re.compile(r":ref:`([^`<]+?)\s*<([\w-]+)>`")
KINDS = "Theorem|Lemma|Corollary|Proposition"


def anchors():
    return [(label, after) for page in PAGES for label, after in ANCHOR.findall(page.read_text())]


def test_pages_that_code_names_exist():
    named = {name for text in MODULES.values() for name in re.findall(r"docs/[\w/]+\.md", text)}
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_references_lead_to_the_statements_that_they_name():
    labels = dict(anchors())
    found = [reference for text in MODULES.values() for reference in REFERENCE.findall(text)]
    assert len(found) > 10
    for text, label in found:
        assert label in labels, label
        number = re.search(r"\d+", text)
        assert number is None or label.endswith(f"-{number.group()}"), (text, label)


def test_statements_that_code_names_with_a_page_are_there():
    before = re.compile(rf"({KINDS})s? (\d+)[^.;:()]*? of\s+#?\s*`*docs/(proofs/\w+\.md)")
    behind = re.compile(rf"docs/(proofs/\w+\.md)`*,\s+#?\s*({KINDS})s? (\d+)")
    found = [statement for text in MODULES.values() for statement in before.findall(text)]
    for text in MODULES.values():
        found += [(kind, number, page) for page, kind, number in behind.findall(text)]
    assert len(found) > 20
    for kind, number, page in found:
        text = (ROOT / "docs" / page).read_text()
        assert re.search(rf"^\*\*{kind} {number}\b", text, re.MULTILINE), (kind, number, page)


def test_anchors_are_unique_and_have_the_numbers_of_their_statements():
    labels = [label for label, _ in anchors()]
    assert labels and len(labels) == len(set(labels))
    for label, after in anchors():
        numbered = re.match(rf"[#* ]*({KINDS}) (\d+)(?!['\d])", after)
        if numbered:
            kind, number = numbered.groups()
            assert label.endswith(
                f"-{number}" if kind == "Theorem" else f"-{kind.lower()}-{number}"
            )


def test_every_statement_of_a_proof_has_an_anchor():
    for page in (ROOT / "docs/proofs").glob("*.md"):
        text, stem = page.read_text(), page.stem.replace("_", "-")
        statement = rf"\*\*(?:{KINDS}) \d+\b"
        statements = re.findall(rf"^{statement}", text, re.MULTILINE)
        anchored = re.findall(rf"^\({stem}-[\w-]+\)=\n{statement}", text, re.MULTILINE)
        assert len(anchored) == len(statements), page.name
