"""What is asked of random generators: which problems, which launch shapes, and the configurations that these mean."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tunesmith.devices import APIS
from tunesmith.kernels import Kernel, families
from tunesmith.kernels.random.programs import PROGRAMS
from tunesmith.problems.random import DTYPES, GENERATORS, WIDTHS, GeneratorKind, GeneratorSpec, random_type, scalars_for
from tunesmith.records import Configuration, LaunchShape, Problem, ProblemType, Target, UserError

from .space import LaunchMatrix, matrix_for

BYTES = 512 * 1024**2
"""What one call writes, unless told: rocRAND's `--bytes`."""

PSEUDO_TYPES = ("float", "half", "double", "unsigned_int", "unsigned_char", "unsigned_short")
LONG_TYPES = (*PSEUDO_TYPES, "unsigned_long_long")
"""What rocRAND tunes; 64-bit integers of the 64-bit Threefries alone."""


@dataclass(frozen=True, slots=True)
class RandomTask:
    """What is to be tuned. None or empty leaves it to the defaults.

    `pattern` is searched in names like `philox4_32_10_uniform_float_t256_b1024`, as google-benchmark does. `bytes` are
    sizes of the output buffer; `dimensions` those of a quasi generator.
    """

    generators: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    value_types: tuple[str, ...] = ()
    pattern: str = ""
    blocks: tuple[int, ...] = ()
    grids: tuple[int, ...] = ()
    min_threads: int | None = None
    bytes: tuple[int, ...] = ()
    lam: float = 10.0
    seed: int = 0
    dimensions: int = 16
    grow: bool = True

    def problems(self, target: Target) -> dict[GeneratorSpec, dict[ProblemType, list[Problem]]]:
        """By generator and type, those of which any launch shape is wanted. UserError where that is none."""
        found: dict[GeneratorSpec, dict[ProblemType, list[Problem]]] = defaultdict(lambda: defaultdict(list))
        for problem in self._asked():
            generator = generator_of(problem.type)
            shapes = (default_shape(generator), *self.matrix(generator, target).shapes())
            if any(self.wants(problem.type, shape) for shape in shapes):
                found[generator][problem.type].append(problem)
        if not found:
            raise UserError("random tune", "nothing is left to tune", "ask for more generators, types or names")
        return found

    def check(self) -> None:
        """Raises UserError for names that do not exist and a pattern that is none."""
        for _ in self._asked():
            return

    def matrix(self, generator: GeneratorSpec, target: Target) -> LaunchMatrix:
        """What is tried at first; a quasi generator's grid sizes are those of one of its dimensions."""
        local_bytes = PROGRAMS[generator.name].local_bytes
        matrix = matrix_for(target, self.blocks, self.grids, self.min_threads, local_bytes)
        return matrix.shared_by(self.dimensions) if generator.kind is GeneratorKind.QUASI else matrix

    def wants(self, kind: ProblemType, shape: LaunchShape) -> bool:
        return not self.pattern or bool(re.search(self.pattern, f"{plain_name(kind)}_t{shape.block}_b{shape.grid}"))

    def _asked(self) -> Iterator[Problem]:
        try:
            re.compile(self.pattern)
        except re.error as error:
            what = f"{self.pattern!r} is no regular expression: {error}"
            raise UserError("--benchmark_filter", what, "give one, such as 'philox.*float'") from error
        for option, given, known in (
            ("--generators", self.generators, tuple(GENERATORS)),
            ("--distributions", self.distributions, tuple(WIDTHS)),
            ("--types", self.value_types, tuple(DTYPES)),
        ):
            for name in given:
                if name not in known:
                    raise UserError(option, f"there is no {name}", f"there are {', '.join(known)}")
        for name in self.generators or GENERATORS:
            generator = GENERATORS[name]
            for distribution, widths in WIDTHS.items():
                for value_type in _types(generator, self.value_types):
                    if value_type in widths and (not self.distributions or distribution in self.distributions):
                        kind = random_type(name, distribution, value_type, dynamic=True)
                        yield from self._sized(generator, kind)

    def _sized(self, generator: GeneratorSpec, kind: ProblemType) -> Iterator[Problem]:
        fields = kind.fields
        distribution, item = fields.word("Distribution"), np.dtype(DTYPES[fields.word("ValueType")]).itemsize
        scalars = scalars_for(distribution, seed=self.seed, lam=self.lam)
        for size in self.bytes or (BYTES,):
            count = max(1, size // item)
            if generator.kind is GeneratorKind.QUASI:
                yield Problem(kind, (max(1, count // self.dimensions), self.dimensions), scalars=scalars)
            else:
                yield Problem(kind, (count,), scalars=scalars)


def generator_of(kind: ProblemType) -> GeneratorSpec:
    return GENERATORS[kind.fields.word("Generator")]


def default_shape(generator: GeneratorSpec) -> LaunchShape:
    return LaunchShape(generator.default_block, generator.default_grid)


def plain_name(kind: ProblemType) -> str:
    """`philox4_32_10_uniform_float`, whatever the ordering."""
    return "_".join(kind.fields.word(name) for name in ("Generator", "Distribution", "ValueType"))


def family_on(target: Target) -> Kernel:
    """The family that a device's API runs."""
    return next(family for family in families("Random") if family.language in APIS[target.api].languages)


def configuration_of(kind: ProblemType, shape: LaunchShape, target: Target) -> Configuration:
    start = family_on(target).space(kind, target).defaults
    return start | {"BlockSize": shape.block, "GridSize": shape.grid}


def _types(generator: GeneratorSpec, asked: Sequence[str]) -> Sequence[str]:
    if asked:
        return asked
    is_long = generator.name.startswith("threefry") and "_64_" in generator.name
    return LONG_TYPES if is_long else PSEUDO_TYPES
