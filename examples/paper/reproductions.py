"""Print docs/reproductions.md: results of papers and a lecture next to those of skdp.

Each module contains one paper and describes how to run its experiments again, which takes minutes.
Their results are stored in ``results``, so this script takes seconds. It also writes all rows to
docs/measured/reproductions.csv; the page leaves out most of those without a printed result.

    python examples/paper/reproductions.py > docs/reproductions.md
"""

import csv
import io
from pathlib import Path

import abadi
import abadi_mnist
import cifar10
import ding
import ding_networks
import pate
import scattering
import slides
import triastcyn
import triastcyn_variational

HEAD = """# Reproduced experiments

Printed results of the papers behind skdp, and of a lecture, next to those of skdp. **No guarantee**
marks numbers that do not bound the privacy loss of every record, even if their digits agree
([errata](errata.md)). [All rows](measured/reproductions.csv) include more results that
the papers do not have.

## Summary

- GRPUA as printed (Ding et al.) is better than SgdPert, as claimed in Figures 2 to 5. It has no
  guarantee, because its noise is nearly none. The sound GRPUA of skdp reaches an accuracy of 0.818
  on Adult at epsilon 0.1 (without privacy: 0.823; Figure 2).
- The moments accountant (Abadi et al.) is reproduced: 1.2586 for the printed 1.26. The tightest
  guarantee is 0.9469, under add-remove.
- The network of Abadi et al. on MNIST reaches 92.82, 95.48 and 97.17 % at epsilon 0.5, 2 and 8
  (printed: 90, 95 and 97 %).
- The printed epsilon of 1.62 (Triastcyn and Faltings) is reproduced, but the true one is over
  1.6975.
- PATE on MNIST reaches 97.50 % at epsilon 2.04 (printed: 98.0 %) and 98.30 % at 8.03 (98.1 %). The
  guarantee of skdp is for every table.

## Conditions

| condition | value |
|---|---|
| networks | those of Ding et al.; on MNIST those of Abadi et al. and Triastcyn and Faltings |
| linear models | in place of other networks |
| seconds | of one core |
| scripts | the file below each title runs its experiments again; `--fast` runs a small sample |
| this page | `examples/paper/reproductions.py` prints it from `examples/paper/results` |"""

COLUMNS = ("experiment", "paper", "skdp", "verdict")
CSV = Path(__file__).resolve().parents[2] / "docs" / "measured" / "reproductions.csv"


PAPERS = (
    *(ding, ding_networks, triastcyn, triastcyn_variational, abadi, abadi_mnist, scattering),
    *(cifar10, slides, pate),
)


def shown(row: tuple[str, ...]) -> bool:
    """Return whether a row has a printed result, is a counterexample, or is of Figure 2."""
    printed = "(not in the paper)" not in row[0] + row[1]
    return printed or "no guarantee" in row[3] or row[0].startswith("Figure 2,")


def all_rows() -> str:
    """Return all rows as CSV."""
    file = io.StringIO()
    rows = ((paper.TITLE, *row) for paper in PAPERS for row in paper.rows())
    csv.writer(file, lineterminator="\n").writerows([("title", *COLUMNS), *rows])
    return file.getvalue()


def page() -> str:
    parts = [HEAD]
    for paper in PAPERS:
        cells = [COLUMNS, ("---",) * 4, *filter(shown, paper.rows())]
        table = "\n".join(f"| {' | '.join(row)} |" for row in cells)
        parts += [f"## {paper.TITLE}", f"`examples/paper/{paper.__name__}.py`"]
        if hasattr(paper, "CONDITIONS"):
            head = (("condition", "value"), ("---", "---"), *paper.CONDITIONS)
            parts.append("\n".join(f"| {name} | {value} |" for name, value in head))
        parts += [table]
        parts += [paper.NOTE] if hasattr(paper, "NOTE") else []
    return "\n\n".join(parts)


if __name__ == "__main__":
    CSV.write_text(all_rows())
    print(page())
