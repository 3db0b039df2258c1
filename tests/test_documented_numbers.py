"""The numbers in the tables of the documentation are computed again, and the verdicts follow.

A table is found by its heading. Cells are compared at the digits they print.
"""

import csv
import functools
import inspect
import math
import re
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import beta, norm

from skdp import accounting, budget, exceptions, reporting
from skdp.accounting import (
    BayesianAccountant,
    GaussianEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PrivacyValue,
    RDPAccountant,
    UniformSampledEvent,
)

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "errata.md"
NUMBER = re.compile(r"(?<![\w.^/])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w^])")


@functools.cache
def tables(page="errata.md"):
    """Return the numbers of each table's rows, by the line that announces it."""
    found, heading, title = {}, "", ""
    for line in (DOCS / page).read_text().splitlines():
        if line.startswith("|"):
            if not line.startswith("|---"):
                bare = re.sub(r"`[^`]*`|\$[^$]*\$", "", line)
                found.setdefault(title, []).append(NUMBER.findall(bare))
        elif line.startswith("#"):
            heading = title = line.strip("# ")
        elif line.endswith(":"):
            title = line if heading == "Reference values" else heading
    return {title: rows[1:] for title, rows in found.items()}


def all_rows(title, page="errata.md"):
    """Return the numbers of a table, from the file with all its rows if there is one."""
    shown = tables(page)[title]
    file = DOCS / "measured" / f"{page[:-3]}_{re.sub(r'[^a-z0-9]+', '_', title.lower())}.csv"
    if not file.exists():
        return shown
    with file.open() as lines:
        rows = [NUMBER.findall(" | ".join(row)) for row in csv.reader(lines)][1:]
    assert shown == [row for row in rows if row in shown] != rows, title
    return rows


def compare(title, expected, page="errata.md"):
    """Compare a table with recomputed rows, each number to half a unit of its last digit."""
    printed = all_rows(title, page)
    assert len(printed) == len(expected), title
    for row, wanted in zip(printed, expected, strict=True):
        assert len(row) == len(wanted), (title, row, wanted)
        for text, value in zip(row, wanted, strict=True):
            lower, upper = value if isinstance(value, PrivacyValue) else (value, value)
            if lower == 0.0:  # an accountant without lower bounds: it reports the upper one
                lower = upper
            mantissa, _, exponent = text.partition("e")
            digits = len(mantissa.partition(".")[2])
            half = 0.501 * 10.0 ** (int(exponent or 0) - digits)
            assert lower - half <= float(text) <= upper + half, (title, row, wanted)


def sampled_epsilon(step, steps, delta, adjacency="add-remove"):
    """Bound epsilon on both sides, far closer than tables print."""
    return PLDAccountant(adjacency, rtol=1e-5).compose(step, count=steps).epsilon(delta)


def gaussian_delta(epsilon, mu):
    """Exact profile of a Gaussian mechanism, in 50 digits."""
    with mp.workdps(50):
        e, m = mp.mpf(epsilon), mp.mpf(mu)
        return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


def solve(function, low, high):
    """Bisect a decreasing function to its zero."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return 0.5 * (low + high)


@functools.cache
def gaussian_sigma(epsilon, delta):
    """Noise of the analytic Gaussian mechanism at sensitivity 1."""
    log_sigma = solve(lambda s: gaussian_delta(epsilon, math.exp(-s)) - delta, -5.0, 20.0)
    return math.exp(log_sigma)


def sampled_delta(epsilon, rate, sigma):
    """Exact profile of one Poisson-sampled Gaussian step, add-remove (removal)."""
    with mp.workdps(50):
        inner = mp.log1p(mp.expm1(mp.mpf(epsilon)) / rate)
        return float(rate * gaussian_delta(inner, 1.0 / sigma))


# --- Ding et al. ----------------------------------------------------------------------------------

CLAIMS = [(0.1, 1e-3), (0.01, 1e-3), (0.1, 1e-6), (0.01, 1e-6)]


def claimed_total(epsilon, delta, n):
    """Theorem 7 as printed."""
    leading = math.sqrt(8 * math.log(n / delta)) * epsilon
    return leading + 2 * n * epsilon * math.expm1(2 * epsilon / n), n * delta


@functools.cache
def last_iterate(n, sigma):
    """Densities of the last iterate on two neighbours, by Fourier inversion; linear loss, L = 1."""
    steps = np.arange(1, n * n)
    eta = 1.0 / np.sqrt(steps * (n * n + sigma * sigma))
    jumps = 2 * n * eta / (sigma * np.sqrt(np.sum(eta**2)))
    spread = math.sqrt(np.sum(jumps**2) / n) + 1.0
    low, high = -12.0, np.sum(jumps) / n + 14.0 * spread
    frequencies = np.arange(0.0, 10.0, 2 * math.pi / (high - low))
    log_phi = -0.5 * frequencies**2 + 0j
    for jump in jumps:
        log_phi += np.log1p(np.expm1(1j * frequencies * jump) / n)
    x = np.linspace(low, high, 12001)[:-1]
    weights = np.where(frequencies > 0, 2.0, 1.0) / (high - low)
    moved = np.exp(-1j * np.outer(x, frequencies)) @ (weights * np.exp(log_phi))
    return x, np.maximum(moved.real, 0.0), norm.pdf(x)


def last_iterate_delta(epsilon, n, sigma):
    x, moved, still = last_iterate(n, sigma)
    factor, step = math.exp(epsilon), x[1] - x[0]
    both = (
        np.maximum(moved - factor * still, 0.0).sum(),
        np.maximum(still - factor * moved, 0.0).sum(),
    )
    return step * max(both)


def test_noise_is_short():
    rows = []
    for epsilon, delta in CLAIMS:
        sigma = gaussian_sigma(epsilon, delta)
        total, failure = claimed_total(epsilon, delta, 50)
        found = last_iterate_delta(total, 50, sigma)
        true = solve(lambda e, s=sigma, f=failure: last_iterate_delta(e, 50, s) - f, 0.0, 40.0)
        assert found > 4 * failure and true > 4 * total
        rows.append([epsilon, delta, sigma, total, failure, found, true])
    compare("Exact laws of the last iterate", rows)


def limits(hits, other, runs=40_000, error=1e-3):
    """Clopper-Pearson: lower limit of one probability, upper limit of the other."""
    return (
        beta.ppf(error / 2, hits, runs - hits + 1),
        beta.ppf(1 - error / 2, other + 1, runs - other),
    )


def test_attacks():
    rows = []
    for row in all_rows("Attacks on the last iterate"):
        epsilon, delta, hits, other = float(row[0]), float(row[1]), int(row[2]), int(row[3])
        total, failure = claimed_total(epsilon, delta, 50)
        low, high = limits(hits, other)
        bounds = math.log((low - failure) / high), low - math.exp(total) * high
        assert bounds[0] > total and bounds[1] > failure
        rows.append([epsilon, delta, hits, other, *bounds])
    compare("Attacks on the last iterate", rows)


@pytest.mark.slow
def test_an_attack_runs():
    """The first logistic attack with a tenth of the runs; false alarms below 1e-6."""
    n, runs, sigma = 50, 4000, gaussian_sigma(0.1, 1e-3)
    total, failure = claimed_total(0.1, 1e-3, n)
    rng = np.random.default_rng(0)

    def descend(runs, flipped):
        w = np.zeros(runs)
        for t in range(1, n * n):
            sign = np.where(rng.integers(n, size=runs) == 0, -1.0, 1.0) if flipped else 1.0
            gradient = -sign / (1.0 + np.exp(np.clip(sign * w, -60, 60)))
            step = 10.0 / math.sqrt(t * (n * n + sigma * sigma))
            w = w - step * (n * gradient + sigma * rng.standard_normal(runs))
            w = np.clip(w, -10.0, 10.0)
        return w

    threshold = np.quantile(descend(500, True), 0.14)
    hits, other = (int(np.sum(descend(runs, flipped) < threshold)) for flipped in (True, False))
    low, high = limits(hits, other, runs, error=1e-6)
    assert math.log((low - failure) / high) > total


def test_lemma_three():
    rows = []
    for epsilon in (0.1, 1.0, 1.2564, 2.0, 4.0):
        for rate in (0.01, 1e-4):
            exact = math.log1p(rate * math.expm1(epsilon))
            rows.append([epsilon, rate, 2 * rate * epsilon, exact, exact / (2 * rate * epsilon)])
    compare("Lemma 3", rows)
    root = float(mp.findroot(lambda e: mp.expm1(e) - 2 * e, 1.25))
    assert f"{root:.6f}" in PAGE.read_text()


def test_bookkeeping_of_delta():
    rows = [[n, 1e-3, n * 1e-3, n * 1e-3 + 1e-3 / n] for n in (50, 1000, 30162, 45222)]
    compare("The total delta", rows)


def test_second_moment():
    rows = []
    for n in (1000, 30_000):
        for epsilon, delta in ((0.1, 1e-3), (1.0, 1e-3)):
            noise = 100 * gaussian_sigma(epsilon, delta) ** 2
            rows.append([n, epsilon, delta, n * n, noise, noise / (noise + n * n)])
    compare("The second moment", rows)


def test_output_perturbation_sensitivity():
    m, smooth = 0.001, 0.251
    eta = 1.0 / (m + smooth)
    printed = 5 * (m + smooth) / (m * smooth)
    rows = []
    for steps in (1, 10, 100, 1000, 10_000):
        ours = 2.0 / m * -math.expm1(steps * math.log1p(-eta * m))
        rows.append([steps, printed, ours, printed / ours])
    rows.append([printed, 2.0 / m, printed * m / 2.0])
    compare("Lemma 1", rows)


def test_what_alpha_hides():
    rows = []
    for delta, epsilons in ((1e-3, (1e-6, 1e-3, 1e-2, 0.1, 1.0)), (1e-6, (1e-3, 0.1, 1.0))):
        for epsilon in epsilons:
            sigma = gaussian_sigma(epsilon, delta)
            alpha = sigma * math.sqrt(2 * epsilon)
            classical = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
            rows.append([delta, epsilon, sigma, alpha, alpha**2 / epsilon, classical / sigma])
    compare("Dependence of alpha on epsilon", rows)
    limit = 1.0 / (2.0 * norm.ppf(0.5 * (1 + 1e-3)))
    assert f"{limit:.2f}" in PAGE.read_text()


# --- Abadi et al. ---------------------------------------------------------------------------------

ABADI = {"q": 0.01, "sigma": 4.0, "delta": 1e-5}


def log_moment(order, reverse=False):
    """Log moment of the sampled Gaussian's loss, by its closed form or by quadrature."""
    q, sigma = ABADI["q"], ABADI["sigma"]
    if not reverse:
        return float(
            mp.log(
                mp.fsum(
                    mp.binomial(order + 1, k)
                    * mp.mpf(1 - q) ** (order + 1 - k)
                    * mp.mpf(q) ** k
                    * mp.exp(mp.mpf(k * (k - 1)) / (2 * sigma**2))
                    for k in range(order + 2)
                )
            )
        )
    x = np.linspace(-12 * sigma, 12 * sigma, 4001)
    ratio = 1 - q + q * np.exp((2 * x - 1) / (2 * sigma**2))
    return math.log(np.sum(norm.pdf(x, scale=sigma) * ratio ** (-order)) * (x[1] - x[0]))


def moments_epsilon(steps, reverse=False):
    return min(
        (steps * log_moment(order, reverse) - math.log(ABADI["delta"])) / order
        for order in range(1, 33)
    )


def test_moments_accountant():
    counts, delta = (10_000, 40_000), ABADI["delta"]
    step = PoissonSampledEvent(ABADI["q"], GaussianEvent(ABADI["sigma"]))
    rows = [
        [1.26, 2.55],
        [max(moments_epsilon(t), moments_epsilon(t, True)) for t in counts],
        [RDPAccountant().compose(step, count=t).epsilon(delta) for t in counts],
        [sampled_epsilon(step, t, delta) for t in counts],
        [sampled_epsilon(step, t, delta, "replace-one") for t in counts],
    ]
    compare("The moments accountant", rows)
    assert moments_epsilon(39_100) < 2.55 < moments_epsilon(39_300)


def strong_composition(steps, mean, amplify):
    """Strong composition as the figure has it: half of delta for the theorem, half for steps."""
    q, sigma, delta = ABADI["q"], ABADI["sigma"], ABADI["delta"]
    inner = math.sqrt(2 * math.log(1.25 / (delta / (2 * steps * q)))) / sigma
    step = math.log1p(q * math.expm1(inner)) if amplify else q * inner
    return step * (math.sqrt(2 * steps * math.log(2 / delta)) + steps * mean(step))


def test_strong_composition():
    counts = (10_000, 40_000)
    rows = [
        [9.34, 24.22],
        [strong_composition(t, lambda e: e, False) for t in counts],
        [strong_composition(t, math.expm1, False) for t in counts],
        [strong_composition(t, math.expm1, True) for t in counts],
    ]
    compare("Strong composition", rows)


def test_naive_amplification_is_invalid():
    q, sigma = ABADI["q"], ABADI["sigma"]
    rows = []
    for steps in (10_000, 40_000):
        failure = ABADI["delta"] / (2 * steps * q)
        inner = math.sqrt(2 * math.log(1.25 / failure)) / sigma
        true = sampled_delta(q * inner, q, sigma)
        assert true > 100 * q * failure
        rows.append([steps, inner, failure, q * inner, q * failure, true, true / (q * failure)])
    compare("One sampled step", rows)


# --- Triastcyn and Faltings -----------------------------------------------------------------------


def printed_epsilon(q, sigma, steps, delta):
    """Equation 7 with its optimal order."""
    r = steps * q * q / (2 * sigma * sigma)
    return r + 2 * math.sqrt(-r * math.log(delta))


SETS = [
    (0.01, 0.5, 1, 1e-5),
    (0.01, 0.5, 10, 1e-5),
    (0.01, 0.5, 100, 1e-5),
    (0.01, 0.7, 100, 1e-5),
    (0.01, 0.8, 1000, 1e-5),
    (0.01, 1.0, 100, 1e-5),
    (0.01, 1.0, 1000, 1e-5),
    (0.01, 1.0, 10_000, 1e-5),
    (0.02, 1.0, 2000, 1e-6),
    (64 / 60_000, 1.0, 93_750, 1e-5),
    (0.01, 1.5, 1000, 1e-5),
    (0.01, 2.0, 1000, 1e-5),
    (0.01, 4.0, 10_000, 1e-5),
]


def test_squared_rate():
    rows = []
    for q, sigma, steps, delta in SETS:
        step = PoissonSampledEvent(q, GaussianEvent(sigma))
        printed = printed_epsilon(q, sigma, steps, delta)
        renyi = RDPAccountant().compose(step, count=steps).epsilon(delta)
        value = sampled_epsilon(step, steps, delta)
        rows.append([q, sigma, steps, delta, printed, value, renyi, printed / value.lower])
    compare("Equation 7", rows)
    assert [row[4] < row[5].lower for row in rows] == [True] * 10 + [False] * 3


def test_squared_rate_in_one_step():
    rows = []
    for sigma in (0.5, 0.7, 1.0):
        epsilon = printed_epsilon(0.01, sigma, 1, 1e-5)
        delta = sampled_delta(epsilon, 0.01, sigma)
        second = math.log1p(1e-4 * math.expm1(sigma**-2))
        rows.append([sigma, 1e-4 * sigma**-2, second, epsilon, 1e-5, delta])
        assert second > 1e-4 * sigma**-2 and delta > 1e-5
    compare("Equation 7 in one step", rows)


def test_no_outlier_is_protected():
    """No sampled pair touches the one odd record, so that all distances are zero."""
    rows = []
    for steps in (1, 100, 10_000):
        seen = BayesianAccountant().observe(GaussianEvent(5.0), np.zeros(100), count=steps)
        value = seen.epsilon(1e-5)
        assert not value.is_guarantee
        truth = solve(lambda e, t=steps: gaussian_delta(e, 0.2 * math.sqrt(t)) - 1e-5, 0, 1000)
        rows.append([steps, value, truth])
        assert value < truth
    compare("The Bayesian accountant", rows)
    missed = (1 - 2 / 1000) ** 100
    assert f"{100 * missed:.0f} %" in PAGE.read_text()


# --- Reference values of the accounting page ------------------------------------------------------

DELTAS = (1e-3, 1e-5, 1e-6, 1e-9)


def test_votes_with_laplace_noise():
    rows = []
    for gap in (2, 20, 100, 250, 10_000):
        # The difference of two Laplace variables, by quadrature over one of them.
        before, after = (
            mp.quad(
                lambda x, g=g: mp.exp(-abs(x)) / 2 * laplace_tail(x + mp.mpf(g) / 20),
                [-mp.inf, -g / 20, 0, mp.inf],
            )
            for g in (gap, gap - 2)
        )
        assert mp.almosteq(before, mp.exp(-gap / 20) * (2 + gap / 20) / 4, 1e-9)
        loss = float(mp.log(after / before))
        assert 0.05 < loss < 0.1
        rows.append([gap, 0.05, loss])
    compare("Votes with Laplace noise", rows)


def laplace_tail(x):
    return mp.exp(-x) / 2 if x >= 0 else 1 - mp.exp(x) / 2


def test_losses_above_epsilon():
    rows = []
    for epsilon, delta in ((0.1, 1e-5), (1.0, 1e-5), (1.0, 1e-6), (3.0, 1e-5)):
        mu = 1.0 / gaussian_sigma(epsilon, delta)
        above = norm.sf(epsilon / mu - mu / 2) + norm.sf(epsilon / mu + mu / 2)
        rows.append([epsilon, delta, above, above / delta])
    compare("Losses above epsilon", rows)


def test_reference_noise():
    rows = [
        [epsilon, *(gaussian_sigma(epsilon, delta) for delta in DELTAS)]
        for epsilon in (0.01, 0.1, 0.5, 1.0, 2.0, 8.0)
    ]
    compare("Analytic Gaussian mechanism, `sigma / sensitivity`:", rows, page="accounting.md")


def test_reference_epsilons():
    rows = [
        [mu, *(solve(lambda e, m=mu, d=d: gaussian_delta(e, m) - d, 0.0, 50.0) for d in DELTAS)]
        for mu in (0.1, 0.5, 1.0, 2.0)
    ]
    compare("`mu`-GDP, epsilon at delta:", rows, page="accounting.md")


def test_reference_sampled_gaussians():
    sets = ((0.01, 1, 1000), (0.01, 2, 1000), (0.01, 4, 10_000), (0.1, 4, 200), (0.02, 8, 5000))
    rows = []
    for q, z, steps in sets:
        poisson = PoissonSampledEvent(q, GaussianEvent(z))
        uniform = UniformSampledEvent(round(1000 * q), 1000, GaussianEvent(z))
        rows.append([q, z, steps])
        for adjacency, step in (
            ("add-remove", poisson),
            ("replace-one", poisson),
            ("replace-one", uniform),
        ):
            rows[-1].append(sampled_epsilon(step, steps, 1e-5, adjacency))
    title = "Sampled Gaussian, epsilon at delta = 1e-5:"
    compare(title, rows, page="accounting.md")


def test_reference_fixed_size_pair():
    """One step in closed form, two by integrating the profile over the loss of the first."""
    rows = []
    for p, mu, epsilon in ((0.1, 1.0, 0.1), (0.05, 2.0, 0.2), (0.5, 0.8, 0.3)):

        def delta(e, p=p, mu=mu):
            if e < 0:
                return 1 - mp.exp(e) + mp.exp(e) * delta(-e)
            return p * gaussian_delta(mp.log1p(mp.expm1(e) / p), mu)

        def loss(x, p=p, mu=mu):
            return mp.log(1 - p + p * mp.exp(mu * x - mu * mu / 2))

        def rest(x, delta=delta, loss=loss, epsilon=epsilon):
            move = loss(x)
            return mp.npdf(x) * (mp.exp(move) * delta(epsilon - move) + delta(epsilon + move))

        with mp.workdps(15):
            kink = mp.findroot(lambda x, loss=loss, e=epsilon: loss(x) - e, mu)
            apart = mp.quad(rest, sorted([mu / 2, kink, kink + 2, 14]))
            still = (1 - p) * (1 - 2 * mp.ncdf(-mu / 2)) * delta(epsilon)
        rows.append([p, mu, epsilon, delta(epsilon), apart + still])
    compare(
        "One step of the fixed-size pair (`delta_1`) and two (`delta_2`):",
        rows,
        page="accounting.md",
    )


def test_speed_page_states_the_epsilons():
    exact = (0.94687, 2.03307, 0.62204, 2.29537, 5.12310, 2.05080, 4.37718, 6.65378)
    printed = [float(row[4]) for row in tables("accounting_speed.md")["Epsilon of a plan"]]
    assert np.allclose(printed, exact, rtol=1e-4, atol=1e-5)


def test_links_within_the_errata_lead_somewhere():
    text = PAGE.read_text()
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings}
    links = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert links and links <= anchors


def test_names_on_the_accounting_page_exist():
    text = (DOCS / "accounting.md").read_text()
    names = set(
        re.findall(r"`(?:skdp\.\w+\.)?(\w+(?:Accountant|Event|Display|Error|Value))\b", text)
    )
    names |= set(re.findall(r"`((?:calibrate|group|dpsgd)_\w+)\(", text))
    modules = (accounting, budget, exceptions, reporting)
    assert len(names) > 20
    assert [n for n in sorted(names) if not any(hasattr(module, n) for module in modules)] == []


def test_signatures_on_the_accounting_page_are_right():
    for name, shown in re.findall(
        r"`((?:calibrate|group|dpsgd)_\w+)\(([^)]*)\)`", (DOCS / "accounting.md").read_text()
    ):
        parameters = list(inspect.signature(getattr(accounting, name)).parameters)
        shown = [word for word in shown.split(", ") if word != "..."]
        assert parameters[: len(shown)] == shown, name
