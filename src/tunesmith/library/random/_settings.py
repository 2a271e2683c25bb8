"""What a generator is asked to be, checked, and the launch shapes that follow from it."""

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
"""The orderings by kind of generator, what is taken where none is named first."""

SEEDS, OFFSETS = 1 << 64, 1 << 63
"""Seeds and offsets are below these."""

PLACE = "tunesmith.random.Generator"


@dataclass(frozen=True, slots=True)
class Settings:
    """All that the sequence depends on, but for the number of engines of a dynamic ordering."""

    generator: GeneratorSpec
    seed: int
    ordering: str
    dimensions: int

    @staticmethod
    def of(name: str, seed: int, ordering: str, dimensions: int) -> Settings:
        if name not in GENERATORS:
            raise UserError(PLACE, f"there is no generator {name!r}", f"take one of {', '.join(GENERATORS)}")
        generator = GENERATORS[name]
        orderings = ORDERINGS[generator.kind]
        if ordering not in orderings:
            raise UserError(PLACE, f"{name} has no ordering {ordering!r}", f"take one of {', '.join(orderings)}")
        if dimensions != 1 and generator.kind is not GeneratorKind.QUASI:
            raise UserError(PLACE, f"{name} has no dimensions", "leave dimensions out, or take a Sobol generator")
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
    """Launch shapes: the one `given`, else the `table`'s, else the generator's default."""

    settings: Settings
    given: LaunchShape | None
    table: RandomTable

    @staticmethod
    def of(
        settings: Settings, given: LaunchShape | Sequence[int] | None, table: RandomTable | Path | str | None
    ) -> Shapes:
        read = table if isinstance(table, RandomTable) else RandomTable() if table is None else read_table(Path(table))
        return Shapes(settings, _shape(given), read)

    @property
    def settled(self) -> LaunchShape | None:
        """The generator's shape, where it is the same on every device."""
        return self.given or (None if self.table.entries else self._default)

    def own(self, architecture: str) -> LaunchShape:
        """The generator's shape. In the default ordering, one with another number of engines is passed over."""
        if self.given:
            return self.given
        tuned, default = self.table.shape(architecture, self.settings.generator.name), self._default
        held = self.settings.engines_depend and not self.settings.dynamic
        return default if tuned is None or (held and tuned.threads != default.threads) else tuned

    def launch(self, architecture: str, distribution: str, value_type: str) -> LaunchShape:
        """That of a distribution and type, which may have its own where the sequence stays what it is."""
        own = self.own(architecture)
        pair = self.table.shape(architecture, self.settings.generator.name, distribution, value_type)
        if self.given or pair is None or (self.settings.engines_depend and pair.threads != own.threads):
            return own
        return pair

    @property
    def _default(self) -> LaunchShape:
        generator = self.settings.generator
        return LaunchShape(generator.default_block, generator.default_grid)


def natural(name: str, value: int, below: int | None = None, least: int = 0) -> int:
    """Raises UserError for what is no whole number from `least` on and below that."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or (below is not None and number >= below):
        upper = "on" if below is None else f"to {below - 1}"
        raise UserError(PLACE, f"{name} is {value!r}", f"give a whole number from {least} {upper}")
    return number


def _shape(given: LaunchShape | Sequence[int] | None) -> LaunchShape | None:
    if given is None or isinstance(given, LaunchShape):
        return given
    try:
        block, grid = map(operator.index, given)
    except (TypeError, ValueError):
        block = grid = 0
    if min(block, grid) < 1:
        raise UserError(PLACE, f"shape is {given!r}", "give (block, grid): work-items of a work-group, and work-groups")
    return LaunchShape(block, grid)
