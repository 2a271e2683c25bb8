"""Do several runs of one tuning file choose the same? Compares folders of `tunesmith tune` with the first of them.

    python benchmarks/runs_compared.py RUN RUN [RUN ...]

For each other run: the sizes whose winners are equal or tied in both, and its chosen times over the first run's, each
as its own run measured it (geometric mean, and how far the middle 90 % of the sizes lie apart).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tunesmith.logic import Logic

Size = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class ChosenAt:
    """What a run chose at a size: the configurations that may be the fastest, the winner first, and its seconds."""

    alike: tuple[str, ...]
    seconds: float


def chosen(folder: Path) -> dict[Size, ChosenAt]:
    """What a run chose at each size that it decided, by the type's name and the sizes."""
    found = {}
    for path in sorted((folder / "logic").glob("*.yaml")):
        document = Logic.load(path).document
        texts = [named.solution.configuration.to_json() for named in document.solutions]
        for row in document.rows:
            alike = tuple(texts[number] for number in (row.solution, *row.ties))
            found[document.problem_type.name, row.where] = ChosenAt(alike, row.estimate.seconds)
    return found


def compared(first: dict[Size, ChosenAt], other: dict[Size, ChosenAt]) -> str:
    common = [size for size in first if size in other]
    same = sum(bool(set(first[size].alike) & set(other[size].alike)) for size in common)
    logs = np.log([other[size].seconds / first[size].seconds for size in common])
    low, high = np.exp(np.percentile(logs, [5, 95]))
    ratio = f"chosen times {math.exp(logs.mean()):.4f} of the first's (90 % of the sizes {low:.3f} to {high:.3f})"
    return f"{same} of {len(common)} winners equal or tied ({100 * same / len(common):.1f} %), {ratio}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    first, *others = options.runs
    reference = chosen(first)
    print(f"{first}: {len(reference)} sizes")
    for other in others:
        print(f"{other}: {compared(reference, chosen(other))}")


if __name__ == "__main__":
    main()
