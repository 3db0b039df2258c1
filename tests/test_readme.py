"""The README's Python runs as printed, and the docs keep their promises of form."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), flags=re.DOTALL)


def test_readme_python_runs():
    found = blocks(ROOT / "README.md", "python")
    assert found
    namespace = {}
    for block in found:
        exec(compile(block, "README.md", "exec"), namespace)
    epsilon, delta = namespace["model"][-1].privacy_spent_
    assert 0 < epsilon <= 1.0 and delta == 1e-5


def test_readme_example_is_short():
    first = blocks(ROOT / "README.md", "python")[0].strip().splitlines()
    code = [line for line in first if line.strip() and not line.lstrip().startswith("#")]
    assert len(code) <= 10


PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if blocks(path, "python")]
PAGES = [path for path in PAGES if path.name != "developing.md"]  # which test_recipes.py runs
SLOW = ("membership.md",)  # attacks, which tests of audits try as well


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in SLOW))
        for page in PAGES
    ],
)
def test_docs_python_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of it writes files
    namespace = {}
    for block in blocks(path, "python"):
        if "open_parquet" in block:
            pytest.importorskip("pyarrow", reason="needs pyarrow")
        exec(compile(block, path.name, "exec"), namespace)


def test_the_security_page_names_tests_that_exist():
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "docs/security.md").read_text())
    assert len(named) > 10
    for path, test in named:
        assert f"def {test}(" in (ROOT / path).read_text() if test else (ROOT / path).exists(), path
