"""Coverage and width of intervals from one look at a private model, over simulated tables.

Columns are even, skewed, binary, rare, correlated or levels of categories; half of the coefficients
are 0. Objective perturbation takes .4 of the squared budget, and the look takes .6. Coverage is
that of the slopes, or of a level compared with the first. `--compare` adds other constructions, and
`--estimators` measures `PrivateInference` after fits of the library instead. `--plan` compares
widths of `fit_evaluate` at epsilon 1 with their forecasts.

    python examples/benchmarks/inference.py                     # an hour of a processor
    python examples/benchmarks/inference.py --designs 66 --tables 12
    python examples/benchmarks/inference.py --compare --tables 12
    python examples/benchmarks/inference.py --estimators --tables 40
    python examples/benchmarks/inference.py --plan --tables 40  # a minute of a processor
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from skdp.inference._forecast import expected_widths, mean_curvature
from skdp.inference._stages import (
    STAGES,
    Reading,
    combine_readings,
    count_remainders,
    posterior_of,
    second_weights,
)
from skdp.mechanisms import analytic_gaussian_epsilon, analytic_gaussian_sigma

Array = NDArray[np.float64]

DELTA, FIT_SHARE, PRIOR = 1e-6, 0.4, 2.5
EPSILONS = (0.5, 1.0, 3.0)
KINDS = ("even", "skewed", "binary", "rare", "levels", "correlated", "mixed")
SIZES, COLUMNS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000), (2, 3, 5, 8, 12, 20)
PREVALENCES = (0.03, 0.1, 0.3, 0.5)
BANDS = (1.15, 1.5, 3.0, np.inf)
# Noise of the information against that of the score; see docs/proofs/inference.md.
RATIO = {"add-remove": 3.33019, "replace-one": 4.96}


@dataclass(frozen=True)
class Design:
    """Law of a table, with public numbers. Rows are scaled to norm at most 1."""

    seed: int
    kind: str
    n: int
    d: int
    prevalence: float
    relation: str
    norm: float
    roc_auc: float
    weights: Array  # true weights in scaled units, the intercept first
    contrasts: Array  # slopes per half range, or levels against the first

    @classmethod
    def of(cls, seed: int) -> Design:
        """Return the design of a seed."""
        rng = np.random.default_rng([53, seed])
        kind, relation = KINDS[seed % len(KINDS)], list(RATIO)[seed // len(KINDS) % 2]
        n, d = int(rng.choice(SIZES)), int(rng.choice(COLUMNS))
        prevalence = float(rng.choice(PREVALENCES))
        groups = d if kind != "levels" else -(-d // 3)
        norm = np.sqrt(1.0 + groups)
        slopes = rng.normal(0.0, 0.7, d) * (rng.permutation(d) < d - d // 2)
        contrasts = np.eye(d)
        if kind == "levels":  # four levels are the corners of a tetrahedron
            contrasts = np.zeros((d, d))
            for start in range(0, d, 3):
                width = min(3, d - start)
                corners = _corners(width)
                block = slice(start, start + width)
                contrasts[block, block] = corners[1:] - corners[0]
            slopes = np.linalg.solve(contrasts, slopes)
        draft = cls(seed, kind, n, d, prevalence, relation, norm, 0.5, np.zeros(d + 1), contrasts)
        z = draft.columns(np.random.default_rng([59, seed]), 40_000) @ slopes
        low, high = -30.0, 30.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if expit(z + middle).mean() < prevalence else (low, middle)
        positive = expit(z + low)
        order = np.argsort(z)
        below = np.cumsum(1.0 - positive[order])
        auc = float(positive[order] @ below / (positive.sum() * below[-1]))
        weights = norm * np.append(low, slopes)
        scaled = np.hstack([np.zeros((len(contrasts), 1)), contrasts]) / norm
        return cls(
            seed, kind, n, d, prevalence, relation, norm, round(20.0 * auc) / 20.0, weights, scaled
        )

    def columns(self, rng: np.random.Generator, n: int) -> Array:
        """Draw columns in [-1, 1], or corners of norm 1 for groups of levels."""
        law = np.random.default_rng([61, self.seed])
        if self.kind == "levels":
            blocks = []
            for start in range(0, self.d, 3):
                corners = _corners(min(3, self.d - start))
                shares = law.dirichlet(np.full(len(corners), 3.0))
                blocks.append(corners[rng.choice(len(corners), n, p=shares)])
            return np.hstack(blocks)
        if self.kind == "correlated":
            loading = law.uniform(0.4, 0.9, self.d)
            common = rng.normal(size=(n, 1))
            normal = common * loading + rng.normal(size=(n, self.d)) * np.sqrt(1.0 - loading**2)
            return np.clip(normal / 2.5, -1.0, 1.0)
        drawn = np.empty((n, self.d))
        for j in range(self.d):
            kind = KINDS[law.integers(4)] if self.kind == "mixed" else self.kind
            drawn[:, j] = _column(kind, law, rng, n)
        return drawn

    def rows(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw scaled rows with the intercept's column, and labels."""
        X = np.hstack([np.ones((self.n, 1)), self.columns(rng, self.n)]) / self.norm
        return X, (rng.random(self.n) < expit(X @ self.weights)).astype(float)


def _column(kind: str, law: Any, rng: Any, n: int) -> Array:
    if kind == "even":
        return np.asarray(rng.uniform(-1.0, 1.0, n))
    if kind == "skewed":
        return np.clip(-0.7 + 0.3 * rng.exponential(1.0, n), -1.0, 1.0)
    share = law.uniform(0.02, 0.06) if kind == "rare" else law.uniform(0.2, 0.8)
    return np.where(rng.random(n) < share, 1.0, -1.0)


def _corners(d: int) -> Array:
    """Return the d + 1 corners of a simplex around 0, at distance 1."""
    centred = np.eye(d + 1) - 1.0 / (d + 1)
    basis = np.linalg.svd(centred)[2][:d]
    corners = centred @ basis.T
    return np.asarray(corners / np.linalg.norm(corners, axis=1, keepdims=True))


def minimise(X: Array, y: Array, start: Array, penalty: float, centre: Array, tilt: Array) -> Array:
    """Return the minimiser of the sum of losses with penalty and tilt, by Newton steps."""

    def value(w: Array) -> float:
        margin = X @ w
        shift = w - centre
        losses = float(np.logaddexp(0.0, margin).sum() - y @ margin)
        return losses + 0.5 * penalty * float(shift @ shift) + float(tilt @ w)

    weights, now = start, value(start)
    for _ in range(60):
        chance = expit(X @ weights)
        gradient = X.T @ (chance - y) + penalty * (weights - centre) + tilt
        step = np.linalg.solve(
            (X.T * (chance * (1.0 - chance))) @ X + penalty * np.eye(len(weights)), gradient
        )
        size = 1.0
        while (then := value(weights - size * step)) > now + 1e-9 and size > 1e-6:
            size *= 0.5
        weights, now = weights - size * step, then
        if gradient @ step < 1e-12:
            break
    return weights


def budget(epsilon: float, relation: str) -> tuple[float, float, float, float]:
    """Return k, the mu of fit and look, and the epsilon of the fit."""
    k = 1.0 if relation == "add-remove" else 2.0
    mu = 1.0 / analytic_gaussian_sigma(epsilon, DELTA)
    fit, look = mu * np.sqrt(FIT_SHARE), mu * np.sqrt(1.0 - FIT_SHARE)
    return k, fit, look, analytic_gaussian_epsilon(1.0 / fit, DELTA)


def look_at(theta: Array, design: Design, X: Array, y: Array, mu: float, rng: Any) -> Reading:
    """Return score and information at weights, with the noise of a look of one mu."""
    d, chance = X.shape[1], expit(X @ theta)
    s1 = (1.0 if design.relation == "add-remove" else 2.0) / mu
    s2 = s1 / RATIO[design.relation]
    drawn = np.triu(rng.normal(0.0, s2, (d, d)))
    drawn = (drawn + drawn.T) / np.sqrt(2.0)
    drawn[np.arange(d), np.arange(d)] /= np.sqrt(2.0)
    score = X.T @ (y - chance) + rng.normal(0.0, s1, d)
    return Reading(theta, score, s1, (X.T * (chance * (1.0 - chance))) @ X + drawn, s2)


def release(
    design: Design, X: Array, y: Array, epsilon: float, start: Array, rng: Any, stages: int
) -> Reading:
    """Return a private fit whose penalty is centred at the prevalence, and a look at it."""
    k, fit, look, epsilon_fit = budget(epsilon, design.relation)
    d, penalty = X.shape[1], 5.0 * k / epsilon_fit
    centre = np.zeros(d)
    centre[0] = design.norm * logit(design.prevalence)
    theta = minimise(X, y, start, penalty, centre, rng.normal(0.0, k / fit, d))
    of_fit = Reading(theta, penalty * (theta - centre), k / fit)
    if stages == 1:
        return combine_readings([of_fit, look_at(theta, design, X, y, look, rng)])
    return look_in_stages(theta, [of_fit], design, X, y, look, rng)


def look_in_stages(
    theta: Array, found: list[Reading], design: Design, X: Array, y: Array, mu: float, rng: Any
) -> Reading:
    """Return all stages combined, as `LookPlan.look` does, and what is known before."""
    k = 1.0 if design.relation == "add-remove" else 2.0
    prior = np.full(len(theta), PRIOR * design.norm)
    for share, later in zip(STAGES, (*STAGES[1:], None), strict=True):
        found = [*found, look_at(theta, design, X, y, mu * np.sqrt(share), rng)]
        if later is not None:
            theta = second_weights(found, k / (mu * np.sqrt(later)), prior)
    return combine_readings(count_remainders(found, prior))


def eigen_cone(look: Reading, prior: float, contrasts: Array, rng: Any) -> Array:
    """Return the intervals of the library."""
    return posterior_of(look, np.full(len(look.theta), prior)).quantiles(contrasts, [0.025, 0.975])


def _matrix(look: Reading) -> Array:
    assert look.information is not None
    return look.information


def _matrix_term(look: Reading, squares: Array) -> Array:
    return 0.5 * look.matrix_noise**2 * (np.trace(squares) * np.eye(len(squares)) + squares)


def plug_in(look: Reading, prior: float, contrasts: Array, rng: Any, counted: bool = True) -> Array:
    """Return Wald intervals of the released matrix, infinite where it is not clear of noise."""
    M, d = _matrix(look), len(look.theta)
    if np.linalg.eigvalsh(M)[0] < look.matrix_noise * np.sqrt(2.0 * d):
        return np.tile([-np.inf, np.inf], (len(contrasts), 1))
    inverse = np.linalg.inv(M + _matrix_term(look, np.linalg.inv(M)))
    shift = inverse @ look.score
    noise = M + look.score_noise**2 * np.eye(d)
    if counted:
        noise = noise + _matrix_term(look, np.outer(shift, shift))
    deviation = np.sqrt(((contrasts @ (inverse @ noise @ inverse)) * contrasts).sum(axis=1))
    centre = contrasts @ (look.theta + shift)
    return np.stack([centre - 1.96 * deviation, centre + 1.96 * deviation], axis=1)


def naive(look: Reading, prior: float, contrasts: Array, rng: Any) -> Array:
    """Return Wald intervals that take the released matrix for the exact one."""
    return plug_in(look, prior, contrasts, rng, counted=False)


def fieller(look: Reading, prior: float, contrasts: Array, rng: Any) -> Array:
    """Return the profile sets of the pivot, cut at 1,000 log odds."""
    M, d = _matrix(look), len(look.theta)
    values, basis = np.linalg.eigh(M)
    floor = (basis * np.maximum(values, 0.0)) @ basis.T + look.score_noise**2 * np.eye(d)

    def objective(shift: Array) -> tuple[float, Array]:
        noise = floor + _matrix_term(look, np.outer(shift, shift))
        residual = look.score - M @ shift
        inverse = np.linalg.inv(noise)
        return float(residual @ inverse @ residual), inverse

    def profile(c: Array, value: float, shift: Array) -> tuple[float, Array]:
        best, kept = np.inf, shift
        for _ in range(4):  # weights from the last point, then the best point on the line
            inverse = objective(shift)[1]
            left = M @ inverse @ M + 1e-9 * np.eye(d)
            free = np.linalg.solve(left, M @ inverse @ look.score)
            across = np.linalg.solve(left, c)
            shift = free + across * (value - c @ free) / (c @ across)
            found = objective(shift)[0]
            if found < best:
                best, kept = found, shift
        return best, kept

    start = np.linalg.solve(M @ M + look.matrix_noise**2 * d * np.eye(d), M @ look.score)
    ends = []
    for c in contrasts:
        middle = c @ start
        pair = []
        for side in (-1.0, 1.0):
            inside, outside = 0.0, 1e-3
            while outside < 1e3 and profile(c, middle + side * outside, start)[0] < 3.84:
                inside, outside = outside, 2.0 * outside
            for _ in range(20):
                half = 0.5 * (inside + outside)
                held = profile(c, middle + side * half, start)[0] < 3.84
                inside, outside = (half, outside) if held else (inside, half)
            pair.append(c @ look.theta + middle + side * outside)
        ends.append(pair)
    return np.array(ends)


def bootstrap(look: Reading, prior: float, contrasts: Array, rng: Any) -> Array:
    """Return intervals of a parametric bootstrap, with eigenvalues floored at the noise."""
    d = len(look.theta)

    def floored(matrix: Array) -> Array:
        values, basis = np.linalg.eigh(matrix)
        kept = np.maximum(values, 0.5 * look.matrix_noise * np.sqrt(2.0 * d))
        return (basis * kept[..., None, :]) @ np.swapaxes(basis, -1, -2)

    M = floored(_matrix(look))
    shift = np.linalg.solve(M, look.score)
    noise = rng.normal(0.0, look.matrix_noise / np.sqrt(2.0), (400, d, d))
    noise = np.triu(noise) + np.swapaxes(np.triu(noise, 1), 1, 2)
    noise[:, np.arange(d), np.arange(d)] *= np.sqrt(2.0)
    root = np.linalg.cholesky(M + look.score_noise**2 * np.eye(d))
    scores = M @ shift + rng.normal(size=(400, d)) @ root.T
    drawn = np.linalg.solve(floored(M + noise), scores[..., None])[..., 0] - shift
    low, high = np.quantile(drawn @ contrasts.T, [0.025, 0.975], axis=0)
    centre = contrasts @ (look.theta + shift)
    return np.stack([centre - high, centre - low], axis=1)


CONSTRUCTIONS: dict[str, Callable[[Reading, float, Array, Any], Array]] = {
    "eigen-cone": eigen_cone,
    "plug-in": plug_in,
    "plug-in, matrix as exact": naive,
    "Fieller": fieller,
    "bootstrap": bootstrap,
}


def measure(
    design: Design, tables: int, names: list[str], stages: int
) -> Iterator[tuple[float, str, dict[str, Array]]]:
    """Yield epsilon, construction, and per table and contrast: held, width ratio, called."""
    truth = design.contrasts @ design.weights
    found: dict[tuple[float, str], list[list[Array]]] = {}
    seconds: dict[tuple[float, str], float] = {}
    foretold: dict[float, Array] = {}
    population = Design.rows(design, np.random.default_rng([67, design.seed]))[0]
    moments = population.T @ population / len(population)
    for table in range(tables):
        rng = np.random.default_rng([71, design.seed, table])
        X, y = design.rows(rng)
        zeros = np.zeros(design.d + 1)
        plain = minimise(X, y, zeros, (PRIOR * design.norm) ** -2.0, zeros, zeros)
        chance = expit(X @ plain)
        exact = (X.T * (chance * (1.0 - chance))) @ X + np.eye(design.d + 1) * 1e-9
        own = 3.92 * np.sqrt(((design.contrasts @ np.linalg.inv(exact)) * design.contrasts).sum(1))
        for epsilon in EPSILONS:
            look = release(design, X, y, epsilon, plain, rng, stages)
            if table == 0:
                foretold[epsilon] = expected_widths(
                    moments,
                    design.n,
                    mean_curvature(design.prevalence, max(design.roc_auc, 0.5)),
                    score_noise=look.score_noise,
                    matrix_noise=look.matrix_noise,
                    fit_noise=budget(epsilon, design.relation)[0]
                    / budget(epsilon, design.relation)[1],
                    prior_sd=PRIOR * design.norm,
                    contrasts=design.contrasts,
                )["width"]
            for name in names:
                begun = time.process_time()
                low, high = CONSTRUCTIONS[name](look, PRIOR * design.norm, design.contrasts, rng).T
                key = (epsilon, name)
                seconds[key] = seconds.get(key, 0.0) + time.process_time() - begun
                held, called = (low <= truth) & (truth <= high), (low > 0.0) | (high < 0.0)
                told = (high - low) / foretold[epsilon]
                control = np.abs(design.contrasts @ plain - truth) <= 0.5 * own
                found.setdefault(key, []).append([held, (high - low) / own, called, told, control])
    for (epsilon, name), parts in found.items():
        held, ratio, called, told, control = np.array(parts, dtype=float).transpose(1, 0, 2)
        yield (
            epsilon,
            name,
            {
                "held": held,
                "ratio": ratio,
                "called": called[:, np.abs(truth) < 1e-9],
                "found": called[:, np.abs(truth) > 0.2],
                "told": told,
                "control": control,
                "ms": np.array([1e3 * seconds[epsilon, name] / tables]),
            },
        )


def measure_estimators(tables: int) -> None:
    """Print coverage and width after fits with the defaults, on tables of six even columns."""
    from skdp import (
        DPSGDClassifier,
        GrpuaLogisticRegression,
        ObjectivePerturbationLogisticRegression,
        OperaLogisticRegression,
    )
    from skdp.inference import PrivateInference

    slopes = np.array([1.0, -0.7, 0.5, 0.0, 0.0, 0.0])
    print("| estimator | adjacency | n | epsilon | coverage | width / non-private | nulls called |")
    print("|-|-|-|-|-|-|-|")
    for estimator in (
        *(OperaLogisticRegression, ObjectivePerturbationLogisticRegression),
        *(GrpuaLogisticRegression, DPSGDClassifier),
    ):
        for relation in RATIO:
            for n, epsilon in ((8000, 1.0), (2000, 3.0)):
                found = []
                for table in range(tables):
                    rng = np.random.default_rng([73, n, table])
                    X = rng.uniform(-1.0, 1.0, (n, 6))
                    y = (rng.random(n) < expit(X @ slopes - 0.8)).astype(int)
                    _, _, look, epsilon_fit = budget(epsilon, relation)
                    common: dict[str, Any] = {"delta": DELTA, "adjacency": relation}
                    model = estimator(epsilon=epsilon_fit, data_norm=np.sqrt(6.0), **common)
                    private = PrivateInference(
                        epsilon=analytic_gaussian_epsilon(1.0 / look, DELTA), **common
                    )
                    result = private.evaluate(model.fit(X, y), X, y).to_frame()
                    low, high = (result[end].to_numpy()[:6] for end in ("low", "high"))
                    Z = np.hstack([X, np.ones((n, 1))])
                    plain = minimise(Z, y, np.zeros(7), 1e-6, np.zeros(7), np.zeros(7))
                    p = expit(Z @ plain)
                    own = 3.92 * np.sqrt(np.diag(np.linalg.inv((Z.T * (p * (1.0 - p))) @ Z)))[:6]
                    held = (low <= slopes) & (slopes <= high)
                    called = ((low > 0.0) | (high < 0.0))[3:]
                    found.append([held.mean(), np.median((high - low) / own), called.mean()])
                held, width, nulls = np.mean(found, axis=0)
                print(f"| {estimator.__name__} | {relation} | {n} | {epsilon:g} | {held:.3f} "
                      f"| {width:.2f} | {nulls:.3f} |", flush=True)  # fmt: skip


def measure_plan(tables: int) -> None:
    """Print widths of `fit_evaluate` over those without privacy, and their forecast."""
    import pandas as pd

    from skdp import OperaLogisticRegression
    from skdp.inference import PrivateInference
    from skdp.preprocessing import BooleanColumn, LabelColumn, NumericColumn, TableSchema

    numbers, flags = ["x0", "x1", "x2", "x3"], ["x4", "x5", "x6", "x7"]
    columns = [*(NumericColumn(name, -1, 1) for name in numbers), *map(BooleanColumn, flags)]
    schema = TableSchema(columns, label=LabelColumn("y", [0, 1]))
    slopes = np.array([1.0, -0.7, 0.5, 0.0, 0.5, -0.35, 0.25, 0.0])
    mu = 1.0 / analytic_gaussian_sigma(1.0, DELTA)
    fit, look = (analytic_gaussian_epsilon(mu**-1 / np.sqrt(s), DELTA) for s in (0.3, 0.7))
    print("| adjacency | n | width / non-private | forecast | coverage |\n|-|-|-|-|-|")
    for relation in RATIO:
        terms: dict[str, Any] = {"delta": DELTA, "adjacency": relation}
        for n in (2000, 5000, 20_000):
            found = []
            for table in range(tables):
                rng = np.random.default_rng([9, n, table])
                X = np.hstack([rng.uniform(-1, 1, (n, 4)), rng.random((n, 4)) < 0.4])
                y = (rng.random(n) < expit(X @ slopes - 1.1)).astype(int)
                frame = pd.DataFrame(X, columns=numbers + flags).assign(y=y)
                frame[flags] = frame[flags].astype(bool)
                inference = PrivateInference(epsilon=1.0, random_state=table, **terms)
                model = schema.pipeline(OperaLogisticRegression(random_state=table))
                told = inference.fit_evaluate(model, frame).to_frame()
                told = told[~told["is_reference"]].iloc[:8]
                low, high = told["low"].to_numpy(), told["high"].to_numpy()
                Z = np.hstack([X, np.ones((n, 1))])
                p = expit(Z @ minimise(Z, y, np.zeros(9), 1e-6, np.zeros(9), np.zeros(9)))
                own = 3.92 * np.sqrt(np.diag(np.linalg.inv((Z.T * (p * (1.0 - p))) @ Z)))[:8]
                held = (low <= slopes) & (slopes <= high)
                found.append([np.log((high - low) / own).mean(), held.mean()])
            planned = schema.pipeline(OperaLogisticRegression(epsilon=fit, **terms))
            forecast = PrivateInference(epsilon=look, **terms).expected_widths(
                planned, n, 0.3, auc=0.7
            )
            width, held = np.mean(found, axis=0)
            told = np.exp(np.log(forecast["width_ratio"]).mean())
            print(
                f"| {relation} | {n} | {np.exp(width):.2f} | {told:.2f} | {held:.3f} |", flush=True
            )


def report(cells: list[tuple[str, float, str, dict[str, Array]]], name: str) -> None:
    """Print the table of bands for one construction."""
    mine = [(label, epsilon, cell) for label, epsilon, each, cell in cells if each == name]
    width = np.array([np.median(cell["ratio"]) for *_, cell in mine])
    print(f"\n{name}: {np.mean([cell['ms'][0] for *_, cell in mine]):.1f} ms")
    print("| width / non-private | cells | coverage | lowest | nulls called | most | found |")
    print("|-|-|-|-|-|-|-|")
    for low, high in zip((0.0, *BANDS[:-1]), BANDS, strict=True):
        held = [
            cell
            for (*_, cell), w in zip(mine, width, strict=True)
            if low <= w < high or w == high == np.inf
        ]
        if held:
            covered = [cell["held"].mean() for cell in held]
            nulls = np.concatenate([cell["called"].ravel() for cell in held])
            worst = max((cell["called"].mean() for cell in held if cell["called"].size), default=0)
            seen = np.concatenate([cell["found"].ravel() for cell in held])
            power = seen.mean() if seen.size else np.nan
            print(
                f"| {low:g}-{high:g} | {len(held)} | {np.mean(covered):.4f} | {min(covered):.3f} "
                f"| {nulls.mean():.4f} of {nulls.size:,} | {worst:.3f} | {power:.2f} |"
            )
    every = np.concatenate([cell["called"].ravel() for *_, cell in mine])
    held, control = (
        np.mean([cell[key].mean() for *_, cell in mine]) for key in ("held", "control")
    )
    print(f"all: coverage {held:.4f}, without privacy {control:.4f}; median width "
          f"{np.median(width):.2f}; nulls called {every.mean():.4f} of {every.size:,}")  # fmt: skip
    for bound in BANDS[:-1]:
        told = [np.median(c["told"]) for (*_, c), w in zip(mine, width, strict=True) if w < bound]
        if told:
            low, mid, high = np.quantile(told, [0.1, 0.5, 0.9])
            print(f"measured/forecast width below {bound}: {mid:.2f} ({low:.2f}-{high:.2f})")
    lowest = sorted(mine, key=lambda each: each[2]["held"].mean())[:8]
    for label, epsilon, cell in lowest:
        print(
            f"low: {label}, epsilon {epsilon:g}: {cell['held'].mean():.3f}, "
            f"width {np.median(cell['ratio']):.2f}, without privacy {cell['control'].mean():.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--designs", type=int, default=70)
    parser.add_argument("--seeds", type=int, nargs="+", help="designs to measure instead")
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--compare", action="store_true", help="measure other constructions too")
    parser.add_argument("--estimators", action="store_true", help="measure fits of the library")
    parser.add_argument("--plan", action="store_true", help="measure widths against forecasts")
    parser.add_argument("--stages", type=int, choices=(1, len(STAGES)), default=len(STAGES))
    parser.add_argument("--largest", type=int, default=50_000, help="leave out larger tables")
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after the design")
    arguments = parser.parse_args()
    if arguments.plan:
        return measure_plan(arguments.tables)
    if arguments.estimators:
        return measure_estimators(arguments.tables)
    names = list(CONSTRUCTIONS) if arguments.compare else ["eigen-cone"]
    begun, cells = time.monotonic(), []
    for seed in arguments.seeds or range(arguments.designs):
        design = Design.of(seed)
        if design.n > arguments.largest:
            continue
        label = (
            f"{seed} {design.kind}, n {design.n}, d {design.d}, "
            f"prevalence {design.prevalence:g}, {design.relation}"
        )
        for epsilon, name, cell in measure(design, arguments.tables, names, arguments.stages):
            cells.append((label, epsilon, name, cell))
            print(
                f"{label}, epsilon {epsilon:g}, {name}: coverage {cell['held'].mean():.3f}, width "
                f"{np.median(cell['ratio']):.2f}, forecast {np.median(cell['told']):.2f}",
                flush=True,
            )
        if time.monotonic() - begun > 60.0 * arguments.minutes:
            break
    for name in names:
        report(cells, name)


if __name__ == "__main__":
    main()
