"""The command line: tables for people, JSON and CSV for programs, exit codes for scripts."""

import csv
import importlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest

from skdp import cli
from skdp.accounting import ApproxDPEvent, GaussianEvent
from skdp.budget import BudgetAccountant
from skdp.budget.ledger.chain import canonical, digest


@pytest.fixture
def budget(tmp_path):
    budget = BudgetAccountant(3.0, 1e-5, ledger=tmp_path / "ledger.sqlite", name="study")
    budget.reserve(GaussianEvent(5.0), label="a model", parameters={"alpha": float("inf")})
    budget.reserve(ApproxDPEvent(0.25, 1e-9), label="a, count", seeded=True)
    plan = budget.plan([GaussianEvent(20.0)] * 2)
    plan.reserve(GaussianEvent(20.0), label="planned\nfit")
    return budget


def run(capsys, *arguments):
    code = cli.main(["ledger", *map(str, arguments)])
    out = capsys.readouterr()
    return code, out.out, out.err


def strict(text):
    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_show(budget, capsys):
    code, out, err = run(capsys, "show", budget.ledger)
    assert code == 0 and err == ""
    lines = out.splitlines()
    assert any(line.split()[:2] == ["name", "study"] for line in lines)
    table = lines[lines.index("") + 1 :]
    assert table[0].startswith("entry  time") and "cost: mu squared" in table[0]
    assert len(table) == 6 and "a model" in table[2] and "planned of 3" in table[5]
    assert max(map(len, table)) < 200 and "planned fit" in table[5]
    epsilon, delta = budget.spent()
    assert f"epsilon {epsilon:.6g}, delta {delta:.6g}" in out
    assert str(budget.verify()) in out
    _, out, _ = run(capsys, "show", budget.ledger, "--last", 1)
    assert "planned fit" in out and "a model" not in out


def test_show_as_json(budget, capsys):
    code, out, _ = run(capsys, "show", budget.ledger, "--json")
    shown = strict(out)
    assert code == 0 and len(shown["entries"]) == 4
    assert shown["budget"]["spent"] == dict(zip(("epsilon", "delta"), budget.spent(), strict=True))
    assert shown["entries"][0]["parameters"] == {"alpha": "inf"}


def test_verify(budget, capsys):
    code, out, _ = run(capsys, "verify", budget.ledger)
    receipt = str(budget.verify())
    assert code == 0 and "4 entries" in out and receipt in out
    code, out, _ = run(capsys, "verify", budget.ledger, "--json", "--receipt", receipt)
    assert code == 0 and strict(out) == {
        **{"sound": True, "entries": 4, "receipt": receipt},
        "not priced again": [],
    }
    other = receipt[:-1] + ("0" if receipt[-1] != "0" else "1")
    code, _, err = run(capsys, "verify", budget.ledger, "--receipt", other)
    assert code == 1 and "rewritten" in err


def test_exports_can_be_checked_by_others(budget, capsys, tmp_path):
    code, out, _ = run(capsys, "export", budget.ledger, "--json")
    exported = strict(out)
    assert code == 0 and exported["terms"]["epsilon"] == 3.0
    previous = digest(canonical(exported["terms"]))
    for row in exported["entries"]:
        hash_ = row.pop("hash")
        assert row["previous"] == previous and digest(canonical(row)) == hash_
        previous = hash_
    assert previous == budget.verify().head
    target = tmp_path / "out.json"
    assert run(capsys, "export", budget.ledger, "--format", "json", "--output", target)[:2] == (
        0,
        "",
    )
    assert strict(target.read_text()) == strict(out)


def test_export_as_csv(budget, capsys):
    code, out, _ = run(capsys, "export", budget.ledger)
    table = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and [row["label"] for row in table[:2]] == ["a model", "a, count"]
    assert table[3]["label"] == "planned fit"
    assert json.loads(table[0]["event"]) == GaussianEvent(5.0).to_dict()
    assert table[0]["epsilon"] == "" and table[1]["epsilon"] == "0.25"


def test_copies_of_ledgers_in_use_are_complete(budget, capsys, tmp_path):
    target = tmp_path / "copy.sqlite"
    code, out, _ = run(capsys, "copy", budget.ledger, target)
    assert code == 0 and "4 entries" in out
    assert BudgetAccountant.open(target).verify(budget.verify()) == budget.verify()
    code, _, err = run(capsys, "copy", budget.ledger, target)
    assert code == 3 and "already" in err
    code, out, _ = run(capsys, "copy", budget.ledger, tmp_path / "again", "--json")
    assert code == 0 and strict(out)["receipt"] == str(budget.verify())
    assert run(capsys, "copy", tmp_path / "none", tmp_path / "new")[0] == 3
    assert run(capsys, "copy", budget.ledger, tmp_path / "none" / "new")[0] == 3
    budget.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["again", "copy.sqlite", "ledger.sqlite"]


def test_damaged_ledgers(budget, capsys):
    with closing(sqlite3.connect(budget.ledger)) as connection, connection:
        connection.execute("UPDATE entries SET content = replace(content, 'count', 'mean')")
    for command in ("show", "verify", "export"):
        code, out, err = run(capsys, command, budget.ledger)
        assert (code, out) == (1, "") and "entry 2 was edited" in err
    code, out, _ = run(capsys, "verify", budget.ledger, "--json")
    assert code == 1 and strict(out)["error"] == "LedgerDamagedError"
    code, out, _ = run(capsys, "export", budget.ledger, "--unverified", "--json")
    assert code == 0 and strict(out)["entries"][1]["label"] == "a, mean"


def test_files_that_cannot_be_read(tmp_path, capsys):
    code, out, err = run(capsys, "show", tmp_path / "none.sqlite")
    assert (code, out) == (3, "") and "does not exist" in err
    (tmp_path / "text").write_text("no ledger")
    for extra in ([], ["--unverified"]):
        code, _, err = run(capsys, "export", tmp_path / "text", *extra)
        assert code == 1 and "not a ledger" in err
    code, out, _ = run(capsys, "verify", tmp_path / "none.sqlite", "--json")
    assert code == 3 and strict(out)["sound"] is False


def test_output_that_cannot_be_written(budget, capsys, tmp_path):
    code, _, err = run(capsys, "export", budget.ledger, "--output", tmp_path / "no" / "file")
    assert code == 3 and "cannot be written" in err


@pytest.mark.parametrize(
    "arguments", [[], ["ledger"], ["ledger", "erase", "x"], ["ledger", "show"]]
)
def test_wrong_calls(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2 and "usage" in capsys.readouterr().err


def test_the_command_is_installed():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["skdp"].partition(":")
    assert getattr(importlib.import_module(module), function) is cli.main


@pytest.mark.slow
def test_as_a_program_on_a_read_only_file(budget):
    budget.ledger.chmod(0o444)
    before = budget.ledger.read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "skdp.cli", "ledger", "verify", os.fspath(budget.ledger)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "4 entries" in done.stdout and budget.ledger.read_bytes() == before


ODD_LABELS = [
    *(
        "\x1b[2J\x1b[31mred",
        "a\u202eb\u2066c",
        "half \ud800 a pair",
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
    ),
    *("\t=1", "\r=1", "\uff1d1", " =1", "bell\x07", "\x9b31m", "zero\u200bwidth", "line\u2028two"),
]


def is_safe(text):
    return all(letter.isprintable() for line in text.split("\n") for letter in line)


@pytest.mark.parametrize("label", ODD_LABELS)
def test_no_label_steers_a_terminal_or_a_spreadsheet(tmp_path, capsys, label):
    from skdp.reporting import privacy_statement

    path = tmp_path / "ledger.sqlite"
    budget = BudgetAccountant(3.0, 1e-5, ledger=path, name=label)
    budget.reserve(GaussianEvent(5.0), label=label, estimator=label)
    plan = budget.plan([GaussianEvent(20.0)] * 2, label=label)
    statement = privacy_statement(budget)
    for shown in (repr(budget), repr(plan), statement, repr(budget.total), repr(budget.entries())):
        assert is_safe(shown)
    for shown in (budget._repr_html_(), plan._repr_html_(), statement._repr_html_()):
        assert is_safe(shown)
    assert is_safe(budget.total._repr_html_())
    for arguments in (["show"], ["verify"], ["show", "--json"], ["export"], ["export", "--json"]):
        code, out, err = run(capsys, arguments[0], path, *arguments[1:])
        assert code == 0 and is_safe(out) and is_safe(err)
        out.encode()
    code, out, _ = run(capsys, "export", path, "--json")
    assert json.loads(out)["entries"][0]["label"] == label  # JSON loses nothing
    for name in ("out.csv", "out.json"):
        options = ["--format", name[-4:].strip("."), "--output", tmp_path / name]
        assert run(capsys, "export", path, *options)[0] == 0
    for row in csv.reader(io.StringIO((tmp_path / "out.csv").read_text("utf-8"))):
        assert not any(cell.strip()[:1] in tuple("=+-@\uff1d") for cell in row if cell)


@pytest.mark.slow
def test_a_terminal_without_the_letters_gets_escapes(tmp_path):
    path = tmp_path / "ledger.sqlite"
    BudgetAccountant(3.0, 1e-5, ledger=path).reserve(GaussianEvent(5.0), label="M\u00fcller \ud800")
    command = [sys.executable, "-m", "skdp.cli", "ledger", "show", str(path)]
    done = subprocess.run(
        command, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 0 and b"M\\xfcller \\ufffd" in done.stdout


def test_verify_says_what_only_a_receipt_shows(budget, capsys):
    _, out, _ = run(capsys, "verify", budget.ledger)
    assert "as it was recorded" not in out and "recomputed cost" in out and "use --receipt" in out
    _, out, _ = run(capsys, "verify", budget.ledger, "--receipt", str(budget.verify()))
    assert "first 4 are those of the receipt" in out


@pytest.mark.parametrize("arguments", ["--version", "--help", "ledger --help", "ledger show -h"])
def test_help_and_version_load_nothing(arguments):
    code = (
        "import sys\nfrom skdp.cli import main\n"
        f"try:\n    main({arguments.split()})\n"
        "except SystemExit as done:\n    assert done.code == 0\n"
        "print('loaded:', *[m for m in ('sklearn', 'scipy', 'numba', 'numpy', 'pandas')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *said, loaded = done.stdout.splitlines()
    assert said[0].startswith(f"skdp {version('skdp')}" if "version" in arguments else "usage:")
    assert loaded == "loaded:"


def test_a_receipt_that_is_none_is_said_how_it_reads(budget, capsys):
    with pytest.raises(SystemExit):
        run(capsys, "verify", budget.ledger, "--receipt", "three")
    assert "must have the form 'ENTRIES:HASH'" in capsys.readouterr().err
