"""The launches of a described kernel, as its YAML file lists them: one at the top of the file, or several in
`Launches`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.problems.yaml import Node
from tunesmith.spaces.expressions import Expression

LAUNCH_KEYS, LAUNCH_OPTIONS = ("Entry", "Grid"), ("WorkGroup", "LocalMemory")
"""What a launch must say, and what it may say. Only Triton needs no WorkGroup (`triton_check`)."""

SEVERAL = "Launches"
"""The key of a list of launches, which then have the keys of a launch instead of the description."""


@dataclass(frozen=True, slots=True)
class DescribedLaunch:
    """One launch of a solution.

    `arguments` names the described arguments that the kernel `entry` takes, in the kernel's order. `grid` counts
    work-groups, or work-items (rounded up to whole groups) if `in_items`. `work_group` may be empty if the description
    is in Triton only.
    """

    entry: str
    arguments: tuple[str, ...]
    work_group: tuple[Expression, ...]
    grid: tuple[Expression, ...]
    in_items: bool
    local_memory: Expression | None


@dataclass(frozen=True)
class LaunchReader:
    """Reads launches whose expressions may name `names`, and whose kernels may take the described `arguments`."""

    names: Sequence[str]
    arguments: Sequence[str]
    identifier: Callable[[Node, str], str]
    expression: Callable[[Node, Iterable[str]], Expression]

    def launches(self, fields: Mapping[str, Node]) -> tuple[DescribedLaunch, ...]:
        """The launches, in their order. Raises UserError for a mistake, and for an argument that no launch takes."""
        if SEVERAL not in fields:
            return (self._launch(fields, tuple(self.arguments)),)
        for name in (*LAUNCH_KEYS, *LAUNCH_OPTIONS):
            if name in fields:
                raise fields[name].wrong(f"{name} stands beside {SEVERAL}", f"put it into a launch of {SEVERAL}")
        entries = fields[SEVERAL].sequence(SEVERAL)
        if not entries:
            raise fields[SEVERAL].wrong(f"{SEVERAL} is empty", "list at least one launch")
        launches = []
        for entry in entries:
            launch = entry.fields("a launch", LAUNCH_KEYS, (*LAUNCH_OPTIONS, "Arguments"))
            launches.append(self._launch(launch, self._arguments(launch.get("Arguments"))))
        taken = {name for launch in launches for name in launch.arguments}
        if unused := [name for name in self.arguments if name not in taken]:
            raise fields[SEVERAL].wrong(f"no launch takes the argument {unused[0]}", "leave it out, or pass it")
        return tuple(launches)

    def _arguments(self, entry: Node | None) -> tuple[str, ...]:
        """The arguments that a launch names; all of them if it names none."""
        if entry is None:
            return tuple(self.arguments)
        named = [item.word("Arguments") for item in entry.sequence("Arguments")]
        for name in named:
            if name not in self.arguments:
                raise entry.wrong(f"there is no argument {name}", f"name some of {', '.join(self.arguments)}")
        return tuple(named)

    def _launch(self, fields: Mapping[str, Node], arguments: tuple[str, ...]) -> DescribedLaunch:
        grid = fields["Grid"].mapping("Grid")
        unit = next(iter(grid), "")
        if len(grid) != 1 or unit not in ("WorkGroups", "WorkItems"):
            raise fields["Grid"].wrong("Grid says neither WorkGroups nor WorkItems", "give one: {WorkItems: [..]}")
        return DescribedLaunch(
            entry=self.identifier(fields["Entry"], "Entry"),
            arguments=arguments,
            work_group=self._extents(fields["WorkGroup"], "WorkGroup") if "WorkGroup" in fields else (),
            grid=self._extents(grid[unit], f"Grid.{unit}"),
            in_items=unit == "WorkItems",
            local_memory=self.expression(fields["LocalMemory"], self.names) if "LocalMemory" in fields else None,
        )

    def _extents(self, entry: Node, what: str) -> tuple[Expression, ...]:
        extents = entry.sequence(what)
        if not 1 <= len(extents) <= 3:
            raise entry.wrong(f"{what} has {len(extents)} dimensions", "give one, two or three, the fastest first")
        return tuple(self.expression(extent, self.names) for extent in extents)


def launch_nodes(fields: Mapping[str, Node]) -> tuple[Mapping[str, Node], ...]:
    """The keys of each launch, for messages: its own, and else those of the whole description."""
    if SEVERAL not in fields:
        return (fields,)
    return tuple({**fields, **entry.mapping("a launch")} for entry in fields[SEVERAL].sequence(SEVERAL))
