"""The result of a sweep for each product, and how close the choice of every method comes to the best (`Swept.best`)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from tunesmith.models.stream_k.decision_models import StreamKChoice, StreamKDecision, TiledProduct
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Estimate, Problem

DATA_PARALLEL, BEST_SPLIT = "data-parallel", "best split-K"
"""Methods without a model: all whole tiles, and the split-K that the race shows to be the fastest."""


@dataclass(frozen=True)
class Swept:
    """One product. `choices` has the choice of every method. `screened` has the times of all choices that ran, of slow
    choices less exactly; `finals` has the times of the finalists, measured interleaved."""

    listed: ListedGemm
    problem: Problem
    work: TiledProduct
    choices: Mapping[str, StreamKChoice]
    screened: Mapping[StreamKChoice, Estimate]
    finals: Mapping[StreamKChoice, Estimate]

    @property
    def best(self) -> StreamKChoice:
        """The fastest of the finalists."""
        return min(self.finals, key=lambda choice: self.finals[choice].seconds)

    def efficiency(self, method: str) -> float | None:
        """The best time over the time of the method's choice; None if that choice did not run."""
        chosen = self.finals.get(self.choices[method]) if method in self.choices else None
        return self.finals[self.best].seconds / chosen.seconds if chosen else None


@dataclass(frozen=True, slots=True)
class Score:
    """The efficiency of a method on `products` products: the geometric mean, and the worst with its product."""

    method: str
    products: int
    geomean: float
    worst: float
    worst_at: Swept


def scores(swept: Sequence[Swept]) -> list[Score]:
    """A score for each method with a choice that ran, in the order in which the products name the methods."""
    result = []
    for method in dict.fromkeys(name for product in swept for name in product.choices):
        found = [(value, product) for product in swept if (value := product.efficiency(method)) is not None]
        if found:
            worst, worst_at = min(found, key=itemgetter(0))
            mean = math.exp(math.fsum(math.log(value) for value, _ in found) / len(found))
            result.append(Score(method, len(found), mean, worst, worst_at))
    return result


def misses(swept: Iterable[Swept], method: str, count: int) -> list[Swept]:
    """The `count` products on which a method lost most against the best, the worst first, without those on which it was
    the best."""
    efficiencies = ((product.efficiency(method), product) for product in swept)
    lost = [(value, product) for value, product in efficiencies if value is not None and value < 1]
    return [product for _, product in sorted(lost, key=itemgetter(0))[:count]]


COLUMNS = (
    *("family", "m", "n", "k", "batch", "trans_a", "trans_b", "problem_type"),
    *("tiles", "iterations", "remainder", "mode", "grid", "streamed", "full_tiles", "splits"),
    *("screened_seconds", "seconds", "low", "high", "efficiency", "chosen_by"),
)


def as_csv(swept: Iterable[Swept], groups: int) -> str:
    """A line for each choice of each product. Only finalists have `seconds` and the columns up to `efficiency`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(row for product in swept for row in _rows(product, groups))
    return text.getvalue()


def product_of(listed: ListedGemm, problem: Problem) -> tuple[str, ...]:
    """The first columns of a product's lines."""
    letters = ["T" if transposed else "N" for transposed in (listed.trans_a, listed.trans_b)]
    sizes = map(str, (listed.m, listed.n, listed.k, listed.batch))
    return listed.family, *sizes, *letters, problem.type.name


def products_in(text: str) -> set[str]:
    """The products in a table of `as_csv`, each as a text."""
    header, *rows = csv.reader(io.StringIO(text), strict=True)
    if tuple(header) != COLUMNS:
        raise ValueError("other columns")
    return {product_text(row[: COLUMNS.index("tiles")]) for row in rows}


def product_text(product: Iterable[str]) -> str:
    return " ".join(filter(None, product))


def _rows(swept: Swept, groups: int) -> Iterator[tuple[object, ...]]:
    work, product = swept.work, product_of(swept.listed, swept.problem)
    for choice, screened in swept.screened.items():
        decision = StreamKDecision(work, choice)
        final = swept.finals.get(choice)
        best = swept.finals[swept.best].seconds if final else 0.0
        times = (final.seconds, final.low, final.high, best / final.seconds) if final else [""] * 4
        methods = "; ".join(method for method, chosen in swept.choices.items() if chosen == choice)
        launch = (decision.mode.value, choice.grid, choice.streamed, decision.full_tiles, choice.splits)
        yield (*product, work.tiles, work.iterations, work.tiles % groups, *launch, screened.seconds, *times, methods)
