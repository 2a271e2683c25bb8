"""The sets of portBLAS parameters that are found by name, and their contents (`tunesmith portblas configs`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.formats.portblas.parameter_files import ParameterFile, PortBlasSet, RuleSet, list_sets, read
from tunesmith.records import UserError


@dataclass(frozen=True, slots=True)
class ListedSet:
    """A set with its parsed contents; if it cannot be read, `problem` is the mistake in it."""

    set: PortBlasSet
    config: ParameterFile | None = None
    problem: str = ""


def listed_sets(folders: Sequence[Path], mode: RuleSet) -> tuple[ListedSet, ...]:
    """Every set that `--config` finds by its name."""
    return tuple(_listed(found, mode) for found in list_sets(folders))


def _listed(found: PortBlasSet, mode: RuleSet) -> ListedSet:
    try:
        return ListedSet(found, read(found.path, mode))
    except UserError as error:
        return ListedSet(found, problem=str(error))
