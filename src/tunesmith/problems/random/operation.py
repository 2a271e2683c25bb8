"""Filling a buffer with random numbers, as an operation: types, sizes and the reference."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems.base import Array, Expected, Operation, refuse_mismatch
from tunesmith.problems.keys import checked
from tunesmith.records import Configuration, Operand, Problem, ProblemType, UserError, Value

from .distributions import quasi_values_of, values_of
from .fields import FIELDS, SCALARS
from .generators import DTYPES, GENERATORS, WIDTHS, FillWidth, GeneratorKind, GeneratorSpec, width_of
from .poisson import LARGEST_MEAN
from .streams import quasi_words, words

SAMPLED = 2048
"""Vectors whose values are compared: at the beginning, at the end, and at random in between."""


def random_type(
    generator: str, distribution: str = "uniform", value_type: str = "float", *, dynamic: bool = False
) -> ProblemType:
    """The problem type, with a name such as `philox4_32_10_uniform_float`.

    With `dynamic` the name ends in `_dynamic`, if the ordering changes the generator's sequence. Raises ValueError for
    a combination that is not offered.
    """
    if generator not in GENERATORS or value_type not in WIDTHS.get(distribution, {}):
        raise ValueError(f"there is no {generator} {distribution} {value_type}")
    kind = GENERATORS[generator].kind
    ordering = (
        "quasi" if kind is GeneratorKind.QUASI else "dynamic" if dynamic and kind is GeneratorKind.ENGINE else "default"
    )
    name = f"{generator}_{distribution}_{value_type}" + ("_dynamic" if ordering == "dynamic" else "")
    fields: dict[str, Value] = {
        "Generator": generator,
        "Distribution": distribution,
        "ValueType": value_type,
        "Ordering": ordering,
    }
    indices = ("N", "Dimensions") if kind is GeneratorKind.QUASI else ("N",)
    return ProblemType("Random", name, indices, Configuration(fields))


@dataclass(frozen=True, slots=True)
class RandomFill:
    """A typed view of a problem: `count` values in each of `dimensions`.

    `width` has the words that a vector takes and the values that it gives; `lam` is a Poisson distribution's mean.
    """

    generator: GeneratorSpec
    distribution: str
    value_type: str
    count: int
    dimensions: int
    seed: int
    offset: int
    engines: int
    width: FillWidth
    lam: float

    @staticmethod
    def of(problem: Problem) -> RandomFill:
        fields, scalars = problem.type.fields, problem.scalars
        generator = GENERATORS[fields.word("Generator")]
        is_quasi = generator.kind is GeneratorKind.QUASI
        distribution, value_type = fields.word("Distribution"), fields.word("ValueType")
        return RandomFill(
            generator,
            distribution,
            value_type,
            problem.size("N"),
            problem.size("Dimensions") if is_quasi else 1,
            scalars.integer("seed"),
            scalars.integer("offset"),
            scalars.integer("engines") if "engines" in scalars else generator.default_engines,
            width_of(generator, distribution, value_type),
            float(scalars["lambda"]) if "lambda" in scalars else 0.0,  # type: ignore[arg-type]  # a number by its key
        )

    @property
    def dtype(self) -> str:
        return DTYPES[self.value_type]

    @property
    def vectors(self) -> int:
        """Vectors in each dimension; the last vector may be cut."""
        return -(-self.count // self.width.values)


class RandomOperation(Operation):
    """Fills a buffer with N values; a quasi generator with N values in each of Dimensions, one after the other."""

    name = "Random"
    unit = "B"

    def type_of(self, fields: Mapping[str, Value], location: Callable[[str], str], folder: Path) -> ProblemType:
        chosen = _checked(fields, location)
        generator, distribution, value_type = (str(chosen[n]) for n in ("Generator", "Distribution", "ValueType"))
        offered = WIDTHS[distribution]
        if value_type not in offered:
            what = f"{distribution} numbers do not come as {value_type}"
            raise UserError(location("ValueType"), what, f"give one of {', '.join(offered)}")
        ordering, is_quasi = chosen["Ordering"], GENERATORS[generator].kind is GeneratorKind.QUASI
        if ordering is not None and (ordering == "quasi") != is_quasi:
            remedy = "leave it out, or give quasi" if is_quasi else "give default or dynamic"
            raise UserError(location("Ordering"), f"{generator} has no ordering {ordering}", remedy)
        return random_type(generator, distribution, value_type, dynamic=ordering == "dynamic")

    def validate(self, problem_type: ProblemType) -> None:
        refuse_mismatch(problem_type, self.type_of(problem_type.fields, str, Path()))

    def scalars_of(self, fields: Mapping[str, Value], location: Callable[[str], str]) -> Configuration:
        chosen = _checked(fields, location)
        distribution, generator = str(chosen["Distribution"]), GENERATORS[str(chosen["Generator"])]
        for name, below in (("Seed", 2.0**64), ("Offset", 2.0**63), ("Lambda", LARGEST_MEAN)):
            if chosen[name] >= below:  # type: ignore[operator]  # a number by its key
                raise UserError(location(name), f"{name} {chosen[name]} is too large", f"give less than {below:.0f}")
        if chosen["Offset"] and not generator.skips:
            what = f"{generator.name} cannot leave out the beginning of its sequence"
            raise UserError(location("Offset"), what, "leave Offset out")
        return scalars_for(
            distribution,
            seed=int(chosen["Seed"]),  # type: ignore[arg-type]
            offset=int(chosen["Offset"]),  # type: ignore[arg-type]
            mean=float(chosen["Mean"]),  # type: ignore[arg-type]
            stddev=float(chosen["StdDev"]),  # type: ignore[arg-type]
            lam=float(chosen["Lambda"]),  # type: ignore[arg-type]
        )

    def operands(self, problem: Problem) -> tuple[Operand, ...]:
        fill = RandomFill.of(problem)
        return (Operand("Out", fill.dtype, (fill.count * fill.dimensions,), (1,), "out"),)

    def inputs(self, problem: Problem, random: np.random.Generator) -> dict[str, Array]:
        return {}

    def reference(self, problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """The values of sampled vectors with their tolerance (`reference.py`).

        The scalar `engines` says how many engines the stream has.
        """
        fill = RandomFill.of(problem)
        vectors = _sample(fill, problem)
        if fill.generator.kind is GeneratorKind.QUASI:
            dimensions = vectors % fill.dimensions
            points = quasi_words(fill.generator.name, fill.seed, fill.offset, vectors, dimensions)
            values = quasi_values_of(fill.distribution, fill.value_type, points[:, None], problem.scalars)
            indices = (dimensions * fill.count + vectors)[:, None]
        else:
            random_words = words(fill.generator.name, fill.seed, fill.offset, fill.engines, vectors, fill.width.words)
            values = values_of(fill.distribution, fill.value_type, random_words, problem.scalars)
            indices = vectors[:, None] * fill.width.values + np.arange(fill.width.values)
        # The last vector may reach beyond the end of the buffer.
        inside = indices < fill.count * fill.dimensions
        return {"Out": Expected((indices[inside],), values.value[inside], values.bound[inside])}

    def small(self, problem: Problem) -> Problem:
        sizes = (min(problem.size("N"), 4096), *(min(size, 2) for size in problem.sizes[1:]))
        return replace(problem, sizes=sizes)


def scalars_for(
    distribution: str, *, seed: int = 0, offset: int = 0, mean: float = 0.0, stddev: float = 1.0, lam: float = 10.0
) -> Configuration:
    """The scalars of a problem: seed, offset, and those of mean, stddev and lambda that its distribution has."""
    scalars: dict[str, Value] = {"seed": seed, "offset": offset}
    if distribution in ("normal", "log_normal"):
        scalars |= {"mean": mean, "stddev": stddev}
    if distribution == "poisson":
        scalars["lambda"] = lam
    return Configuration(scalars)


def _checked(fields: Mapping[str, Value], location: Callable[[str], str]) -> dict[str, Value]:
    return checked(fields, (*FIELDS, *SCALARS), location, "the ProblemType of random numbers")


def _sample(fill: RandomFill, problem: Problem) -> NDArray[np.int64]:
    """The vectors to compare: the first and the last, those around each turn of the engines, and some at random."""
    count, ends = fill.vectors, SAMPLED // 4
    if count <= SAMPLED:
        return np.arange(count)
    digest = hashlib.sha256(problem.to_json().encode()).digest()
    random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    turns = np.arange(fill.engines, count, fill.engines)[:64]
    chosen = [np.arange(ends), np.arange(count - ends, count), random.integers(0, count, SAMPLED - 2 * ends)]
    chosen += [turns - 1, turns]
    return np.unique(np.concatenate(chosen))
