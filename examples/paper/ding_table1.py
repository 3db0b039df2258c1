"""Table I of Ding et al.: seconds of a run on all of Adult, 45,222 rows.

They print 244 s for the stochastic methods, n^2 = 2e9 steps of one row: 120 ns a step, in which a
plain loop would draw a normal for each of a hundred columns. Here a step draws one for each stored
entry of its row, ten (``_lazy_noise.py``). All steps cost the same, so that a sample of them is
timed. They do not state the steps of output perturbation, 21 to 68 s; here it takes 1000.

    python examples/paper/ding_table1.py           # writes results/ding.json
    python examples/paper/ding_table1.py --full    # all steps of one run as well, 15 minutes
    python examples/paper/ding_table1.py --fast    # on fewer steps and rows, seconds
"""

import argparse
import time

import numpy as np
from _baselines import OutPert, PrintedGrpua, PrintedOpera, SgdPert
from _ding_tables import load_tables
from ding import DELTA, PENALTY, read_results, write_results
from scipy.sparse import vstack

PRINTED = {
    PrintedOpera: ("OPERA", "21.3 and 68.0"),
    OutPert: ("OutPert", "21.3 and 67.8"),
    PrintedGrpua: ("GRPUA", "244.8 and 245.0"),
    SgdPert: ("SgdPert", "244.0 and 244.3"),
}


def time_run(method, X, signs, steps):
    """Return the seconds of one run, or of the first steps of one, on one processor."""
    start = time.process_time()
    if steps is None:
        method.release(X, signs, 1)
    else:
        method.simulate(X, signs, 1, steps, method.noise_scale(len(signs)))
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="take all steps once")
    parser.add_argument("--fast", action="store_true", help="take few steps, write nothing")
    arguments = parser.parse_args()
    table = next(load_tables())
    size = 3000 if arguments.fast else None
    X = vstack([table.X, table.X_test], format="csr")[:size]
    signs = np.concatenate([table.signs, table.signs_test])[:size]
    print(f"{len(signs)} rows of {table.name}")
    sample = 30_000 if arguments.fast else 3_000_000
    lines = []
    for cls, (name, printed) in PRINTED.items():
        method = cls(0.01, DELTA, penalty=PENALTY, random_state=0)
        if cls in (PrintedOpera, OutPert):
            found = f"{time_run(method, X, signs, None):.1f}, 1000 steps of gradient descent"
            verdict = "shorter, for steps that they do not state"
        else:
            time_run(method, X, signs, 10)  # Compiles.
            every = method.steps(len(signs))
            step = time_run(method, X, signs, sample) / sample
            found = f"{step * every:.0f}, extrapolated from {step * 1e9:.0f} ns a step"
            if arguments.full and cls is PrintedGrpua:
                found = f"{time_run(method, X, signs, every):.0f} for all steps; {found}"
            verdict = f"{step * 1e9 / 120.0:.1f} times their 120 ns; one core"
        lines.append((f"{name}: {printed} at epsilon 0.01 and 0.001", found, verdict))
        print(" | ".join(lines[-1]), flush=True)
    if not arguments.fast:
        write_results({**read_results(), "seconds": lines})


if __name__ == "__main__":
    main()
