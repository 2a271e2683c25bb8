"""A fitted heuristic: chooses a configuration for a product by cut points along a metric or by a shallow tree."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tunesmith.models.intensity.metrics import Product
from tunesmith.records import Configuration

from .sample import FEATURES


@dataclass(frozen=True, slots=True)
class CutPoint:
    """A cut point with its 95 % interval. A person's `pinned` value takes the place of the fitted value."""

    fitted: float | None = None
    low: float | None = None
    high: float | None = None
    pinned: float | None = None

    @property
    def value(self) -> float:
        """The value in use. Raises ValueError if there is neither a fitted nor a pinned value."""
        value = self.fitted if self.pinned is None else self.pinned
        if value is None:
            raise ValueError("a cut point without a value")
        return value


@dataclass(frozen=True, slots=True)
class BucketSeed:
    """The configuration for the products of a bucket. `tile_area` is the geometric mean of the winners' tile areas in
    the bucket, in elements (None if tiles are unknown), and `products` the number of products it was fitted to."""

    configuration: Configuration
    tile_area: float | None
    products: int


@dataclass(frozen=True, slots=True)
class MetricRule:
    """Ascending cut points along one metric."""

    metric: str
    cut_points: tuple[CutPoint, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A node of a tree: is the feature below `cut`? Each answer leads to another question or to a bucket's number."""

    feature: str
    cut: float
    below: Question | int
    beyond: Question | int


@dataclass(frozen=True, slots=True)
class FitOrigin:
    """What a heuristic was fitted to, how, and when.

    `selection` says which rows of the sources were used. `operand_bytes` and `result_bytes` are element sizes.
    """

    sources: tuple[str, ...]
    selection: str
    device: str
    data_type: str
    products: int
    groups: int
    operand_bytes: float
    result_bytes: float
    method: str
    tunesmith: str
    date: str


@dataclass(frozen=True)
class FittedHeuristic:
    """Buckets of products, and a seed for each. `ridge` is that of the device in FLOP per byte, `units` the number of
    its compute units.

    `scores` are figures by name, such as R2 on held-out products.
    """

    origin: FitOrigin
    ridge: float
    units: int
    scores: Mapping[str, float]
    rule: MetricRule | Question
    seeds: tuple[BucketSeed, ...]

    def bucket(self, product: Product) -> int:
        """The number of the product's bucket, from 0."""
        rule: MetricRule | Question | int = self.rule
        if isinstance(rule, MetricRule):
            return bisect_right([cut.value for cut in rule.cut_points], self.value(rule.metric, product))
        while isinstance(rule, Question):
            rule = rule.below if self.value(rule.feature, product) < rule.cut else rule.beyond
        return rule

    def seed(self, product: Product) -> BucketSeed:
        """The seed of the product's bucket."""
        return self.seeds[self.bucket(product)]

    def value(self, feature: str, product: Product) -> float:
        """One of `FEATURES` of the product, on the device for which the heuristic was fitted."""
        return FEATURES[feature](product, self.ridge, self.units)


def answers(question: Question | int) -> Iterator[int]:
    """The buckets to which a tree's questions lead, from below to beyond."""
    if isinstance(question, Question):
        yield from answers(question.below)
        yield from answers(question.beyond)
    else:
        yield question


def pinned_values(rule: MetricRule | Question) -> tuple[float, ...]:
    """The cut points that a person pinned."""
    if isinstance(rule, Question):
        return ()
    return tuple(cut.pinned for cut in rule.cut_points if cut.pinned is not None)
