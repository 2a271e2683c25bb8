"""A generator's checked settings, and the launch shapes that follow from them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.logic.random.table import RandomTable, read_table
from tunesmith.problems.random import GENERATORS, GeneratorKind, GeneratorSpec
from tunesmith.records import LaunchShape, UserError

ORDERINGS = {
    GeneratorKind.COUNTER: ("default", "legacy", "dynamic"),
    GeneratorKind.ENGINE: ("default", "legacy", "dynamic"),
    GeneratorKind.QUASI: ("default", "quasi"),
}
"""The orderings of each kind of generator, the default first."""

SEEDS, OFFSETS = 1 << 64, 1 << 63
"""Seeds and offsets are below these."""

LOCATION = "tunesmith.random.Generator"
"""The location of this package's errors."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the sequence depends on, except the number of engines of a dynamic ordering."""

    generator: GeneratorSpec
    seed: int
    ordering: str
    dimensions: int

    @staticmethod
    def of(name: str, seed: int, ordering: str, dimensions: int) -> Settings:
        if name not in GENERATORS:
            raise UserError(LOCATION, f"there is no generator {name!r}", f"take one of {', '.join(GENERATORS)}")
        generator = GENERATORS[name]
        orderings = ORDERINGS[generator.kind]
        if ordering not in orderings:
            raise UserError(LOCATION, f"{name} has no ordering {ordering!r}", f"take one of {', '.join(orderings)}")
        if dimensions != 1 and generator.kind is not GeneratorKind.QUASI:
            raise UserError(LOCATION, f"{name} has no dimensions", "leave dimensions out, or take a Sobol generator")
        return Settings(
            generator,
            natural("seed", seed, SEEDS),
            "quasi" if generator.kind is GeneratorKind.QUASI else ordering,
            natural("dimensions", dimensions, least=1),
        )

    @property
    def dynamic(self) -> bool:
        return self.ordering == "dynamic"

    @property
    def engines_depend(self) -> bool:
        """Whether the sequence depends on how many work-items the generator is launched with."""
        return self.generator.kind is GeneratorKind.ENGINE


@dataclass(frozen=True, slots=True)
class Shapes:
    """Launch shapes: the `requested` one, else the `table`'s, else the generator's default."""

    settings: Settings
    requested: LaunchShape | None
    table: RandomTable

    @staticmethod
    def of(
        settings: Settings, requested: LaunchShape | Sequence[int] | None, table: RandomTable | Path | str | None
    ) -> Shapes:
        read = table if isinstance(table, RandomTable) else RandomTable() if table is None else read_table(Path(table))
        return Shapes(settings, _shape(requested), read)

    @property
    def settled(self) -> LaunchShape | None:
        """The generator's shape if it is the same on every device, else None."""
        return self.requested or (None if self.table.entries else self._default)

    def own(self, architecture: str) -> LaunchShape:
        """The generator's shape on an architecture. In the default ordering, a tuned shape with another number of
        engines is passed over."""
        if self.requested:
            return self.requested
        tuned, default = self.table.shape(architecture, self.settings.generator.name), self._default
        is_fixed = self.settings.engines_depend and not self.settings.dynamic
        return default if tuned is None or (is_fixed and tuned.threads != default.threads) else tuned

    def launch(self, architecture: str, distribution: str, value_type: str) -> LaunchShape:
        """The launch shape for a distribution and type: the pair's own tuned shape if the sequence does not change with
        it, else the generator's shape."""
        own = self.own(architecture)
        pair = self.table.shape(architecture, self.settings.generator.name, distribution, value_type)
        if self.requested or pair is None or (self.settings.engines_depend and pair.threads != own.threads):
            return own
        return pair

    @property
    def _default(self) -> LaunchShape:
        generator = self.settings.generator
        return LaunchShape(generator.default_block, generator.default_grid)


def natural(name: str, value: int, below: int | None = None, least: int = 0) -> int:
    """`value` as an int. Raises UserError if it is no whole number, less than `least`, or not less than `below`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or (below is not None and number >= below):
        upper = "on" if below is None else f"to {below - 1}"
        raise UserError(LOCATION, f"{name} is {value!r}", f"give a whole number from {least} {upper}")
    return number


def _shape(requested: LaunchShape | Sequence[int] | None) -> LaunchShape | None:
    if requested is None or isinstance(requested, LaunchShape):
        return requested
    try:
        block, grid = map(operator.index, requested)
    except (TypeError, ValueError):
        block = grid = 0
    if min(block, grid) < 1:
        raise UserError(
            LOCATION, f"shape is {requested!r}", "give (block, grid): work-items of a work-group, and work-groups"
        )
    return LaunchShape(block, grid)
