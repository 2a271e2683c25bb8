"""What `tunesmith heuristics fit --method choice` prints: scores on held-out families, and the caution."""

from __future__ import annotations

import numpy as np
from rich.console import Group, RenderableType

from tunesmith.models.intensity.scoring import geomean
from tunesmith.session.heuristics.fit_choice import WrittenChoice

from ..run import Document
from ..table import table, titled


def fitted(written: WrittenChoice) -> RenderableType:
    """The scores by family, then the caution, then the file."""
    model, subject = written.fit.model, written.subject
    origin, siblings = model.origin, " and ".join(model.origin.siblings)
    title = f"{subject}: {origin.products} products, {origin.times} times, {len(model.solutions)} configurations"
    scores = table("family", "products", "geomean", "10th %", "worst", right=("products", "geomean", "10th %", "worst"))
    for name, products, *efficiencies in _by_family(written):
        scores.add_row(name, str(products), *(f"{efficiency:.3f}" for efficiency in efficiencies))
    return Group(
        titled(title, f"best time / time of the choice, on {subject.groups} that were held out", scores),
        "",
        *([f"{origin.translated} more products, of {siblings}, teach it"] if siblings else []),
        *([f"the library's times of {origin.library_alone} more products teach it"] if origin.library_alone else []),
        f"top 3: {model.scores['top-3']:.3f}",
        f"a kernel is preferred to the vendor's library if its gain is more than {model.caution:g} times the doubt",
        *(f"left out: {note}" for note in written.notes),
        f"wrote {written.path}",
    )


def fitted_document(written: WrittenChoice) -> Document:
    """For `--json`."""
    model, subject = written.fit.model, written.subject
    return {
        "device": subject.target.name,
        "data_type": subject.data_type,
        "products": model.origin.products,
        "times": model.origin.times,
        "siblings": list(model.origin.siblings),
        "translated": model.origin.translated,
        "library_alone": model.origin.library_alone,
        "configurations": len(model.solutions),
        "scores": dict(model.scores),
        "families": [
            {"name": name, "products": products, "geomean": mean, "percentile_10": low, "worst": worst}
            for name, products, mean, low, worst in _by_family(written)
        ],
        "caution": model.caution,
        "notes": list(written.notes),
        "written": str(written.path),
    }


MOST_ROWS = 40
"""Families that are shown one by one; a matrix without a list has too many."""


def _by_family(written: WrittenChoice) -> list[tuple[str, int, float, float, float]]:
    """The name, the number of products, the geometric mean, the tenth percentile and the least of each family, and of
    all together."""
    efficiencies, families = written.fit.efficiencies, np.array(written.fit.families)
    names = sorted(set(families.tolist()))
    groups = [(name, efficiencies[families == name]) for name in names] if len(names) <= MOST_ROWS else []
    return [
        (name, len(values), geomean(values), float(np.quantile(values, 0.1)), float(values.min()))
        for name, values in [*groups, ("all", efficiencies)]
    ]
