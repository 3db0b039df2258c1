"""Print docs/reproductions.md: what papers and a lecture print, and what skdp finds.

Each module holds one paper and says how to run its experiments again, which takes minutes; their
outcomes are kept in ``results``, so that this page is printed in seconds.

    python examples/paper/reproductions.py > docs/reproductions.md
"""

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

HEAD = """# The papers' experiments, run again

One table for each of the papers and the lecture behind skdp: what is printed, what we get, and
what it is worth.
**No guarantee** marks numbers that do not bound the privacy loss of every record, however close the
digits; the reasons are in the [errata](errata.md). Seconds are of one core.

The networks of Ding et al., and those of Abadi et al. and of Triastcyn and Faltings on MNIST, are
trained; for others a linear model stands in where that tells something.

`python examples/paper/reproductions.py` prints this page from `examples/paper/results`. The script
below each title runs its experiments again; `--fast` tries it out on a small table."""


PAPERS = (
    *(ding, ding_networks, triastcyn, triastcyn_variational, abadi, abadi_mnist, scattering),
    *(cifar10, slides, pate),
)


def page() -> str:
    parts = [HEAD]
    for paper in PAPERS:
        cells = [("experiment", "paper", "skdp", "verdict"), ("---",) * 4, *paper.rows()]
        table = "\n".join(f"| {' | '.join(row)} |" for row in cells)
        parts += [f"## {paper.TITLE}", f"`examples/paper/{paper.__name__}.py`", table]
        parts += [paper.NOTE] if hasattr(paper, "NOTE") else []
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(page())
