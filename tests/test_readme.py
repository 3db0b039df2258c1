"""The Python of the README and the docs runs, and prints the output that the first pages show."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), flags=re.DOTALL)


NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"


def run_and_compare(path, namespace):
    """Run the Python of a page, compare shown output with printed one, and return their number.

    A block of text directly behind one of Python is its output, where "..." stands for anything.
    Below a comment "noisy", numbers may differ by 15 %.
    """
    compared = 0
    block = re.compile(
        r"^```python\n(.*?)^```(?:\n+(<!-- noisy -->)?\n*```text\n(.*?)^```)?",
        flags=re.DOTALL | re.MULTILINE,
    )
    for code, noisy, shown in block.findall(path.read_text()):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, path.name, "exec"), namespace)
        if not shown:
            continue
        compared += 1
        printed, shown = printed.getvalue().strip(), shown.strip()
        if noisy:
            found = [float(number) for number in re.findall(NUMBER, printed)]
            told = [float(number) for number in re.findall(NUMBER, shown)]
            assert found == pytest.approx(told, rel=0.15), (printed, shown)
            printed, shown = (re.sub(NUMBER, "0", text) for text in (printed, shown))
        pattern = ".*".join(re.escape(piece) for piece in shown.split("..."))
        assert re.fullmatch(pattern, printed, flags=re.DOTALL), (printed, shown)
    return compared


def test_readme_python_prints_what_it_shows():
    namespace = {}
    assert run_and_compare(ROOT / "README.md", namespace) == 2
    epsilon, delta = namespace["model"][-1].privacy_spent_
    assert 0 < epsilon <= 1.0 and delta == 1e-5


FIRST = {"start.md": 5, "start_engineer.md": 4, "start_privacy.md": 6, "choosing.md": 1}


@pytest.mark.parametrize("name", FIRST)
def test_first_pages_print_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of it writes files
    assert run_and_compare(ROOT / "docs" / name, {}) == FIRST[name]


def test_readme_example_is_short():
    first = blocks(ROOT / "README.md", "python")[0].strip().splitlines()
    code = [line for line in first if line.strip() and not line.lstrip().startswith("#")]
    assert len(code) <= 10


PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if blocks(path, "python")]
PAGES = [path for path in PAGES if path.name != "developing.md"]  # which test_recipes.py runs
PAGES = [path for path in PAGES if path.name not in FIRST]
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
