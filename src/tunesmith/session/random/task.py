"""The task of `tunesmith random tune`: its problems, its launch shapes, and their configurations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tunesmith.devices import APIS
from tunesmith.kernels import Kernel, families_of
from tunesmith.kernels.random.programs import PROGRAMS
from tunesmith.problems.random import DTYPES, GENERATORS, WIDTHS, GeneratorKind, GeneratorSpec, random_type, scalars_for
from tunesmith.records import Configuration, LaunchShape, Problem, ProblemType, Target, UserError

from .space import LaunchMatrix, matrix_for

BYTES = 512 * 1024**2
"""The default number of bytes that a call writes: rocRAND's `--bytes`."""

PSEUDO_TYPES = ("float", "half", "double", "unsigned_int", "unsigned_char", "unsigned_short")
LONG_TYPES = (*PSEUDO_TYPES, "unsigned_long_long")
"""The types that rocRAND tunes; 64-bit integers are for the 64-bit Threefry generators only."""


@dataclass(frozen=True, slots=True)
class RandomTask:
    """The generators, distributions, types and shapes to tune. None or empty means the default.

    `pattern` is searched in names such as `philox4_32_10_uniform_float_t256_b1024`, as google-benchmark does. `bytes`
    are sizes of the output buffer; `dimensions` is the number of dimensions of a quasi generator.
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
        """The problems with any included launch shape, by generator and type. Raises UserError if there are none."""
        problems: dict[GeneratorSpec, dict[ProblemType, list[Problem]]] = defaultdict(lambda: defaultdict(list))
        for problem in self._all_problems():
            generator = generator_of(problem.type)
            shapes = (default_shape(generator), *self.matrix(generator, target).shapes())
            if any(self.includes(problem.type, shape) for shape in shapes):
                problems[generator][problem.type].append(problem)
        if not problems:
            raise UserError("random tune", "nothing is left to tune", "ask for more generators, types or names")
        return problems

    def check(self) -> None:
        """Raises UserError for names that do not exist and for a pattern that is no regular expression."""
        for _ in self._all_problems():
            return

    def matrix(self, generator: GeneratorSpec, target: Target) -> LaunchMatrix:
        """The first matrix of shapes; for a quasi generator, grid sizes are work-groups of one dimension."""
        local_bytes = PROGRAMS[generator.name].local_bytes
        matrix = matrix_for(target, self.blocks, self.grids, self.min_threads, local_bytes)
        return matrix.shared_by(self.dimensions) if generator.kind is GeneratorKind.QUASI else matrix

    def includes(self, kind: ProblemType, shape: LaunchShape) -> bool:
        """Whether the task's pattern matches the name of a type and a shape."""
        return not self.pattern or bool(re.search(self.pattern, f"{plain_name(kind)}_t{shape.block}_b{shape.grid}"))

    def _all_problems(self) -> Iterator[Problem]:
        """The problems of the task, whatever its pattern. Raises UserError for a bad name or pattern."""
        try:
            re.compile(self.pattern)
        except re.error as error:
            what = f"{self.pattern!r} is no regular expression: {error}"
            raise UserError("--benchmark_filter", what, "give one, such as 'philox.*float'") from error
        for option, names, available in (
            ("--generators", self.generators, tuple(GENERATORS)),
            ("--distributions", self.distributions, tuple(WIDTHS)),
            ("--types", self.value_types, tuple(DTYPES)),
        ):
            for name in names:
                if name not in available:
                    raise UserError(option, f"there is no {name}", f"there are {', '.join(available)}")
        for name in self.generators or GENERATORS:
            generator = GENERATORS[name]
            for distribution, widths in WIDTHS.items():
                for value_type in _types(generator, self.value_types):
                    if value_type in widths and (not self.distributions or distribution in self.distributions):
                        kind = random_type(name, distribution, value_type, dynamic=True)
                        yield from self._problems_of(generator, kind)

    def _problems_of(self, generator: GeneratorSpec, kind: ProblemType) -> Iterator[Problem]:
        """A problem for each size of the buffer."""
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
    """A name such as `philox4_32_10_uniform_float`, without the ordering."""
    return "_".join(kind.fields.word(name) for name in ("Generator", "Distribution", "ValueType"))


def family_on(target: Target) -> Kernel:
    """The family of random generators that a device's API runs."""
    return next(family for family in families_of("Random") if family.language in APIS[target.api].languages)


def configuration_of(kind: ProblemType, shape: LaunchShape, target: Target) -> Configuration:
    start = family_on(target).space(kind, target).defaults
    return start | {"BlockSize": shape.block, "GridSize": shape.grid}


def _types(generator: GeneratorSpec, requested: Sequence[str]) -> Sequence[str]:
    if requested:
        return requested
    is_long = generator.name.startswith("threefry") and "_64_" in generator.name
    return LONG_TYPES if is_long else PSEUDO_TYPES
