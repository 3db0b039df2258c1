"""Pages, docstrings and messages keep to plain English; ``tests/oracles/prose.py`` lists faults."""

from collections import Counter

import prose
import pytest

# Sentences of more than 25 words and paragraphs of more than four lines: they may only get fewer.
LONG_SENTENCES = {"docs": 59, "proofs": 73, "docstrings": 35, "messages": 5}
LONG_PARAGRAPHS = {"docs": 0, "proofs": 1}
FAULTS = {
    "begins with 'Of'": "Of two rows one is read.",
    "'but for': write 'except'": "All rows but those of a unit.",
    "'what is ...' as a noun": "It returns what is left.",
    "'who is ...' as a subject": "Ask who has the ledger.",
    "'is to be': write 'must be'": "The bound is to be public.",
    "'so many', 'as many'": "It reads so many rows.",
    "'a row': write 'per row'": "Two numbers a row are kept.",
    "an old word": "It is charged beforehand.",
    "retired: batch": "Each lot is drawn anew.",
    "retired: adjacency": "Both relations are shown.",
    "very long sentence": "word " * 41 + "end.",
    "long line": "word " * 25,
    "long paragraph": "word\n" * 5,
}


@pytest.fixture(scope="module")
def found():
    return [
        (path, *finding)
        for path in [*prose.pages(), *prose.modules()]
        for finding in prose.findings(path)
    ]


@pytest.mark.parametrize("rule", FAULTS)
def test_checker_finds(rule, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"A good line about adjacency relations.\n\n{FAULTS[rule]}\n")
    assert rule in [finding[2] for finding in prose.findings(page)]
    page.write_text("What is left?\n\n```\n" + FAULTS[rule] + "\n```\n\n`what is` [it](who is).\n")
    assert list(prose.findings(page)) == []


def test_nobody_writes_in_habits(found):
    counted = ("long sentence", "long paragraph")
    faults = [
        f"{path.relative_to(prose.ROOT)}:{line}: {rule}: {excerpt}"
        for path, _, line, rule, excerpt in found
        if rule not in counted
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("rule", "most"), [("long sentence", LONG_SENTENCES), ("long paragraph", LONG_PARAGRAPHS)]
)
def test_long_texts_get_fewer(found, rule, most):
    count = Counter(finding[1] for finding in found if finding[3] == rule)
    assert all(count[kind] <= most[kind] for kind in most), count
