"""The examples run, and untuned defaults reach the accuracy that the documentation promises.

Adult needs the data files (environment variable SKDP_DATA) and is skipped without them; the
breast cancer table ships with scikit-learn. Seeds are fixed, so that the figures do not wander.
"""

import ast
import csv
import functools
import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import accuracy
import numpy as np
import pytest
from _datasets import load_adult, load_breast_cancer

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
)

ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def adult():
    try:
        return load_adult()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


ADULT = [
    *((cls, 1.0, 0.815) for cls in (OperaLogisticRegression, OperaSVC)),
    *((cls, 1.0, 0.84) for cls in (GrpuaLogisticRegression, GrpuaSVC, ObjectivePerturbationSVC)),
    *((DPSGDClassifier, epsilon, least) for epsilon, least in ((0.1, 0.83), (1.0, 0.845))),
    *(
        (ObjectivePerturbationLogisticRegression, epsilon, least)
        for epsilon, least in ((0.1, 0.818), (0.5, 0.831), (1.0, 0.845), (3.0, 0.845))
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "epsilon", "least"), ADULT)
def test_adult(cls, epsilon, least):
    table = adult()
    scores = [
        cls(epsilon, 1e-6, data_norm=table.data_norm, random_state=seed)
        .fit(table.X, table.y)
        .score(table.X_test, table.y_test)
        for seed in range(3)
    ]
    assert np.mean(scores) >= least


@pytest.mark.daily(3)
@pytest.mark.parametrize(
    ("cls", "least"),
    [
        (OperaLogisticRegression, 0.85),
        (OperaSVC, 0.85),
        (GrpuaLogisticRegression, 0.88),
        (GrpuaSVC, 0.88),
        (DPSGDClassifier, 0.93),
        (ObjectivePerturbationLogisticRegression, 0.92),
        (ObjectivePerturbationSVC, 0.91),
    ],
)
def test_breast_cancer(cls, least):
    table = load_breast_cancer()
    scores = [
        cls(1.0, 1e-5, data_norm=table.data_norm, random_state=seed).fit(X, y).score(X_test, y_test)
        for seed, (X, y, X_test, y_test) in enumerate(table.splits(20))
    ]
    assert np.mean(scores) >= least


@pytest.mark.slow
def test_quickstart_prints_its_table():
    printed = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "quickstart.py")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert [line.split()[0] for line in printed[1:]] == [
        "LogisticRegression",
        "OperaLogisticRegression",
        "GrpuaSVC",
        "DPSGDClassifier",
    ]
    for line in printed[2:]:
        accuracy, area, epsilon = map(float, line.split()[1:4])
        assert accuracy > 0.7 and area > 0.7 and 0.999 <= epsilon <= 1.0


def load_script(path):
    """Import a script by its place; its name may be that of a module elsewhere."""
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


GALLERY = sorted((ROOT / "examples").glob("plot_*.py"))
# Runs a page of the gallery, and says which of its pictures lack names or cannot be read in grey.
RUN_PAGE = """
import runpy, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb

runpy.run_path(sys.argv[1], run_name="__main__")
assert plt.get_fignums(), "no picture"
for axes in (axes for number in plt.get_fignums() for axes in plt.figure(number).axes):
    assert axes.get_xlabel() and axes.get_ylabel(), f"axes without a name: {axes}"
    lines = [line for line in axes.lines if not line.get_label().startswith("_")]
    looks = [
        (line.get_linestyle(), line.get_marker(),
         round(4 * sum(map(float.__mul__, (0.3, 0.6, 0.1), map(float, to_rgb(line.get_color()))))))
        for line in lines
    ]
    assert len(set(looks)) == len(looks), f"lines that look alike in grey: {looks}"
"""


@pytest.mark.parametrize("page", GALLERY, ids=lambda page: page.stem)
def test_gallery_pages_have_a_title_cells_and_a_picture(page):
    source = page.read_text()
    _, title, line = ast.get_docstring(ast.parse(source), clean=False).splitlines()[:3]
    assert line == "=" * len(title)
    assert "\n# %%\n" in source and "plt.show()" in source
    assert "argparse" not in source  # a page runs without arguments


@pytest.mark.slow
@pytest.mark.parametrize("page", GALLERY, ids=lambda page: page.stem)
def test_gallery_runs(page):
    pytest.importorskip("matplotlib", reason="needs the plot extra")
    command = [sys.executable, "-c", RUN_PAGE, str(page)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["moments_accountant", "generic_epsilon", "generic_delta", "generic_moment", "variational"],
)
def test_pictures_of_papers_are_drawn(name, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the plot extra")
    picture = tmp_path / "curve.png"
    script = ROOT / "examples" / "paper" / f"plot_{name}.py"
    subprocess.run([sys.executable, str(script), str(picture)], check=True, capture_output=True)
    assert 10_000 < picture.stat().st_size < 80_000


def test_hospital_study_spends_its_budget_and_not_more(capsys, monkeypatch):
    """Without matplotlib as well: the gate runs it with the runtime dependencies alone."""
    monkeypatch.delenv("SKDP_DATA", raising=False)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    runpy.run_path(str(ROOT / "examples" / "plot_hospital_budget.py"))
    printed = capsys.readouterr().out
    spent = float(re.search(r"spent in total: epsilon ([\d.]+)", printed).group(1))
    assert 2.99 < spent <= 3.0 and "one more fit is refused" in printed
    assert "leaking" not in printed and "ledger verified: 3:" in printed


def test_accounting_benchmark_measures_and_certifies(monkeypatch):
    """Without peers, which take their time: one row per plan, and bounds on the right side."""
    script = load_script(ROOT / "examples" / "benchmarks" / "accounting.py")
    monkeypatch.setattr(script, "PEERS", {})
    rows = script.speed(repeats=1)[2:]
    exact = (0.94687, 2.03307, 0.62204, 2.29537, 5.12310, 2.05080, 4.37718, 6.65378)
    epsilons = [float(row.split(" | ")[4]) for row in rows]
    assert epsilons == pytest.approx(exact, rel=1e-4)
    for rate, sigma, steps in (script.GAUSSIAN, script.SAMPLED):
        for delta in script.DELTAS:
            lower, upper = script.skdp_epsilon(rate, sigma, steps, delta)
            assert 0 < lower <= upper <= lower * (1 + 1e-3)
    for row, delta in zip(script.certainty()[4:10], script.DELTAS, strict=True):
        printed = [float(cell) for cell in row.strip("| ").split(" | ")]
        assert printed[0] == delta and printed[1] <= printed[2] + 1e-6
    assert script.judged(0.9, 1.0).startswith("**0.900000**")
    assert (
        script.judged(1.0, 1.0) == "1.000000" and script.judged("ValueError", 1.0) == "ValueError"
    )


def stated_facts(page):
    """Return the facts of the encoded tables, from the page on accuracy."""
    rows = re.findall(r"^\| ([\w-]+) \| (\d+) \| (1e-\d+) \| (.*) \|$", page, re.MULTILINE)
    return [
        accuracy.Facts(name, encoding, int(n), int(cells.split(" | ")[j]), delta, cells[-6:])
        for j, encoding in enumerate(accuracy.ENCODINGS)
        for name, n, delta, cells in rows
    ]


def test_the_page_on_accuracy_is_made_of_its_csv_file():
    page = (ROOT / "docs/accuracy.md").read_text()
    records = accuracy.read_csv(ROOT / "docs/measured/accuracy.csv")
    facts = stated_facts(page)
    assert len(facts) == 12 and len(records) == 12 * (2 + 7 * 5 * 2)
    assert "\n".join(accuracy.page(facts, records, 10, "measured/accuracy.csv")) + "\n" == page


def test_accuracy_benchmark_writes_the_page_and_all_metrics(tmp_path):
    rng = np.random.default_rng(0)
    facts = [
        accuracy.Facts(table, encoding, 100, 3, "1e-05", "0.6000")
        for encoding in accuracy.ENCODINGS
        for table in ("adult", "bank", "cardio", "support2", "heart", "breast-cancer")
    ]
    cells = [cell for each in facts for cell in accuracy.cells(each.table, each.encoding)]
    results = {}
    for cell in cells:
        left_out = accuracy.FIGURES[2:] if "SVC" in cell.estimator else ()
        names = [name for name in (*accuracy.FIGURES, "seconds") if name not in left_out]
        results[cell.key] = [dict(zip(names, rng.random(len(names)), strict=True)) for _ in "ab"]
    records = [accuracy.record(results, cell) for cell in cells]
    accuracy.publish(facts, records, 2, tmp_path / "accuracy.md")
    page = (tmp_path / "accuracy.md").read_text()
    assert "(measured/accuracy.csv)" in page and stated_facts(page) == facts
    with (tmp_path / "measured/accuracy.csv").open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert rows == records and len(rows) == len(cells)
    names = ("ROC AUC", "accuracy", "log loss", "Brier score", "slope", "seconds")
    for cell, row in zip(cells, rows, strict=True):
        runs = results[cell.key]
        assert (row["table"], row["encoding"]) == (cell.table, cell.encoding)
        assert row["epsilon"] == (f"{cell.epsilon:g}" if cell.epsilon else "")
        assert row["adjacency"] == cell.relation.strip("-") and row["estimator"] == cell.estimator
        assert float(row["roc_auc_sd"]) == pytest.approx(
            np.std([run["ROC AUC"] for run in runs]), abs=6e-5
        )
        for name in names:
            printed = row[name.lower().replace(" ", "_")]
            if name not in runs[0] or (name == "seconds" and cell.relation == "replace-one"):
                assert printed == ""
            else:  # of two runs the median is the mean
                expected = np.mean([run[name] for run in runs])
                assert float(printed) == pytest.approx(expected, abs=6e-3)
        if row["adjacency"] == "add-remove":
            assert f"| {row['roc_auc']} / " in page
