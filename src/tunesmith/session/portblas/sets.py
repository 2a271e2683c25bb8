"""Which sets of portBLAS parameters there are, and what each makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.formats.portblas.parameter_files import Config, PortBlasSet, RuleSet, list_sets, read
from tunesmith.records import UserError


@dataclass(frozen=True, slots=True)
class ListedSet:
    """A set with what it says; `problem` is the mistake in it where it cannot be read."""

    set: PortBlasSet
    config: Config | None = None
    problem: str = ""


def listed_sets(folders: Sequence[Path], mode: RuleSet) -> tuple[ListedSet, ...]:
    """Every set that `--config` finds by its name."""
    return tuple(_listed(one, mode) for one in list_sets(folders))


def _listed(one: PortBlasSet, mode: RuleSet) -> ListedSet:
    try:
        return ListedSet(one, read(one.path, mode))
    except UserError as error:
        return ListedSet(one, problem=str(error))
