"""What a sweep found out of each product, and how close every way to decide came to the best."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from tunesmith.models.stream_k.predict import StreamKChoice, StreamKDecision, Work
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Estimate, Problem

DATA_PARALLEL, BEST_SPLIT = "data-parallel", "best split-K"
"""Ways to decide that look at no model; the second looks at the times."""


@dataclass(frozen=True)
class Swept:
    """One product. `said` has the choice of every way to decide; `screened` the times of all choices that ran, the slow
    ones measured loosely; `finals` those of the finalists, measured side by side."""

    listed: ListedGemm
    problem: Problem
    work: Work
    said: Mapping[str, StreamKChoice]
    screened: Mapping[StreamKChoice, Estimate]
    finals: Mapping[StreamKChoice, Estimate]

    @property
    def best(self) -> StreamKChoice:
        """The fastest of the finalists."""
        return min(self.finals, key=lambda choice: self.finals[choice].seconds)

    def efficiency(self, way: str) -> float | None:
        """The best time over that of what this way chose; None where that did not run."""
        chosen = self.finals.get(self.said[way]) if way in self.said else None
        return self.finals[self.best].seconds / chosen.seconds if chosen else None


@dataclass(frozen=True, slots=True)
class Score:
    """How a way to decide did on `products` products: its efficiency's geometric mean, and the worst with its place."""

    way: str
    products: int
    geomean: float
    worst: float
    worst_at: Swept


def scores(swept: Sequence[Swept]) -> list[Score]:
    """A score for each way that decided anything, in the order in which they are first met."""
    made = []
    for way in dict.fromkeys(name for one in swept for name in one.said):
        found = [(value, one) for one in swept if (value := one.efficiency(way)) is not None]
        if found:
            worst, where = min(found, key=itemgetter(0))
            mean = math.exp(math.fsum(math.log(value) for value, _ in found) / len(found))
            made.append(Score(way, len(found), mean, worst, where))
    return made


def misses(swept: Iterable[Swept], way: str, count: int) -> list[Swept]:
    """Where a way lost most of the time that the best took, the worst first; nothing where it was the best."""
    lost = [(value, one) for one in swept if (value := one.efficiency(way)) is not None and value < 1]
    return [one for _, one in sorted(lost, key=itemgetter(0))[:count]]


COLUMNS = (
    *("family", "m", "n", "k", "batch", "trans_a", "trans_b", "problem_type"),
    *("tiles", "iterations", "remainder", "mode", "grid", "streamed", "full_tiles", "splits"),
    *("screened_seconds", "seconds", "low", "high", "efficiency", "chosen_by"),
)


def as_csv(swept: Iterable[Swept], groups: int) -> str:
    """A line for each choice of each product. `seconds` and what follows it are only known of finalists."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(row for one in swept for row in _rows(one, groups))
    return text.getvalue()


def product_of(listed: ListedGemm, problem: Problem) -> tuple[str, ...]:
    """What the first columns say of a product."""
    letters = ["T" if transposed else "N" for transposed in (listed.trans_a, listed.trans_b)]
    sizes = map(str, (listed.m, listed.n, listed.k, listed.batch))
    return listed.family, *sizes, *letters, problem.type.name


def products_in(text: str) -> set[str]:
    """The products in a table of `as_csv`, a text each."""
    header, *rows = csv.reader(io.StringIO(text), strict=True)
    if tuple(header) != COLUMNS:
        raise ValueError("other columns")
    return {product_text(row[: COLUMNS.index("tiles")]) for row in rows}


def product_text(product: Iterable[str]) -> str:
    return " ".join(filter(None, product))


def _rows(one: Swept, groups: int) -> Iterator[tuple[object, ...]]:
    work, product = one.work, product_of(one.listed, one.problem)
    for choice, screened in one.screened.items():
        made = StreamKDecision(work, choice)
        final = one.finals.get(choice)
        times = (
            (final.seconds, final.low, final.high, one.finals[one.best].seconds / final.seconds) if final else [""] * 4
        )
        ways = "; ".join(way for way, said in one.said.items() if said == choice)
        launch = (made.mode.value, choice.grid, choice.streamed, made.full_tiles, choice.splits)
        yield (*product, work.tiles, work.iterations, work.tiles % groups, *launch, screened.seconds, *times, ways)
