"""How a search describes what it did, for its record and the privacy statement."""

from __future__ import annotations

import math

from skdp.model_selection._plan import PricedSearch
from skdp.model_selection._scoring import RowScorer
from skdp.reporting.privacy_spent import REAL_NUMBERS, PrivacySpent
from skdp.units import about_units


def mechanism(plan: PricedSearch) -> str:
    """Return the mechanism and the theorem it rests on."""
    design = plan.design
    count = len(design.candidates)
    if design.method == "random-stopping":
        law = (
            f"a Poisson number of runs of mean {design.mean:g}"
            if math.isinf(design.shape)
            else "a truncated negative binomial number of runs of shape "
            f"{design.shape:g} and mean {design.mean:g}"
        )
        text = (
            f"private selection by random stopping: {law}; each trains one of {count} candidates, "
            "drawn at random, and scores it on a disjoint part with Gaussian noise; the run with "
            "the best noisy score is released (Papernot & Steinke 2022, with a bound on the whole "
            "privacy profile)"
        )
    else:
        selector = (
            "the best of Gaussian noisy scores"
            if design.noisy_scores
            else f"permute-and-flip with epsilon={design.selection_epsilon:.6g} "
            "(McKenna & Sheldon 2020)"
        )
        where = (
            "on a disjoint part of the rows, where a record is in one of the two parts"
            if design.method != "cv"
            else f"by {len(design.train_sizes)}-fold cross-validation, where a record is in all "
            "training parts but one"
        )
        runs = f"{len(design.runs)} runs, whose number is public, of " * (design.method == "fixed")
        text = f"composition of the training of {runs}{count} candidates; {selector} {where}"
    if design.refit:
        text += "; the chosen candidate is trained once more on all rows"
    return text


def assumptions(plan: PricedSearch, scorer: RowScorer) -> tuple[str, ...]:
    """Return what the guarantee takes for granted."""
    design = plan.design
    rows = "units" if design.by_unit else "rows"
    labels = "the label set " * (design.n_classes > 1)
    found = [
        f"the number of {rows}, the columns, {labels}and all parameters, the grid included, are "
        "public",
        f"{rows} are divided into parts at random, without looking at them",
        f"the score {scorer.name!r} is a sum over {rows} of values in [{scorer.lower:g}, "
        f"{scorer.upper:g}]",
        "steps classed as independent of the data are",
        *design.assumptions,
        about_units("its score is the mean of theirs") if design.by_unit else "a record is one row",
        *(f"of trainings: {text}" for each in _trainings(plan) for text in each.assumptions),
        "whether the training of a run fails is not decided by rows",
    ]
    if design.method == "random-stopping":
        found.append(
            "neither the number of runs, nor the losing runs, nor the time it took becomes known"
        )
    if design.adjacency == "add-remove":
        found.append(f"the sizes of the parts, which {rows} draw one by one, are public")
    return tuple(dict.fromkeys(found))


def arithmetic(plan: PricedSearch) -> str:
    """Return what is assumed of the arithmetic of trainings, and of scores."""
    trainings = "; ".join(dict.fromkeys(each.arithmetic for each in _trainings(plan)))
    same = trainings == REAL_NUMBERS
    return trainings if same else f"of trainings: {trainings}; of scores: {REAL_NUMBERS}"


def _trainings(plan: PricedSearch) -> list[PrivacySpent]:
    return [step for fit in (*plan.fits.values(), *plan.refits) for step in fit.plans]


def list_releases(plan: PricedSearch) -> tuple[str, ...]:
    """Return what leaves the search."""
    design = plan.design
    names = ["best_index_", "best_params_"]
    if design.method != "cv" or design.refit:
        names.append("best_estimator_")
    if design.method == "random-stopping" or design.noisy_scores:
        names.append("best_score_")
    if design.method != "random-stopping" and design.noisy_scores:
        names.append("noisy_scores_")
    return tuple(names)
