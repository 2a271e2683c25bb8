"""Reading a tuning file for a run: against the families' spaces, with its device and its bench policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.devices import APIS, asks_for_hidden, choose
from tunesmith.formats.tensile.library.sizes import SUFFIXES, read_logic_sizes
from tunesmith.formats.tensile.tuning import TensileImport, TranslatedFile, read_translated
from tunesmith.kernels import LANGUAGE, OPEN, families_meant, families_of, languages, tuning_space
from tunesmith.problems import Mistakes
from tunesmith.problems.gemm import gemm_type
from tunesmith.protocol import Benchmark, Final, Fork, Phases, TuningFile, read_tuning_file
from tunesmith.records import ProblemType, Target, UserError
from tunesmith.spaces import Space

LISTS = dict.fromkeys(SUFFIXES, read_logic_sizes)
"""Readers of the lists that are not CSV, by the suffixes of their names."""


@dataclass(frozen=True)
class ReadyFile:
    """A tuning file and the device to tune it on. If the file leaves the language open, it is set to one that the
    device runs. `imported` is the record of the translation if the file is one of Tensile's."""

    file: TuningFile
    target: Target
    imported: TensileImport | None


def ready(path: Path, max_size: int | None, selector: str | Target | None, sizes: Path | None = None) -> ReadyFile:
    """Read a tuning file, and choose the device. `sizes` is the sizes file of a file in Tensile's split form."""
    file, imported = read_imported(path, max_size, selector, sizes)
    target = device_for(file, selector)
    return ReadyFile(
        replace(file, groups=tuple(_with_language(phases, target) for phases in file.groups)), target, imported
    )


def read(path: Path, max_size: int | None, selector: str | Target | None) -> TuningFile:
    """Read a tuning file against the parameters of all families that the device may have; raises UserError."""
    return read_imported(path, max_size, selector)[0]


def read_imported(
    path: Path, max_size: int | None, selector: str | Target | None, sizes: Path | None = None
) -> tuple[TuningFile, TensileImport | None]:
    """`read`, and the record of the translation if the file is one of Tensile's. Then the file may have no groups."""
    translated, file = read_both(path, max_size, selector, sizes)
    return file, translated.imported


def read_both(
    path: Path, max_size: int | None, selector: str | Target | None, sizes: Path | None = None
) -> tuple[TranslatedFile, TuningFile]:
    """A file's content in our form, translated if it is one of Tensile's, and the tuning file that was read from it."""
    if not path.is_file():
        raise UserError(str(path), "no such file", "give the path of a tuning file, such as examples/quickstart.yaml")
    hidden = asks_for_hidden(selector)
    translated = read_translated(path, lambda: tuning_space(gemm_type(), hidden=hidden), sizes)
    space, may_be_empty = partial(_tuned_space, hidden=hidden), translated.imported is not None
    file = read_tuning_file(path, space, derived_names, max_size, families_meant, LISTS, translated.root, may_be_empty)
    return translated, file


def refuse_empty(path: Path, file: TuningFile, imported: TensileImport | None) -> None:
    """Raise UserError if no problem of a translated file is left to tune, with the reason for each."""
    if file.groups or imported is None:
        return
    mistakes = Mistakes()
    for problem in imported.rejected:
        what = f"no kernel computes {problem.name}: {problem.reason} ({problem.detail})"
        mistakes.add(UserError(problem.location, what, "`tunesmith plan` counts what is written; nothing can be tuned"))
    mistakes.tell()
    raise UserError(str(path), "there is no problem to tune", "list problem types with their size groups")


def _tuned_space(problem_type: ProblemType, hidden: bool) -> Space:
    """The space to tune. Raises LookupError if no kernel computes the operation."""
    if not families_of(problem_type.operation, hidden):
        operation = problem_type.operation
        raise LookupError(f"no kernel computes {operation} yet: `tunesmith characterize` takes it, tuning does not")
    return tuning_space(problem_type, hidden=hidden)


def derived_names(problem_type: ProblemType) -> frozenset[str]:
    """The names of derived values: a join may name these as well as parameters."""
    names: set[str] = set()
    for family in families_of(problem_type.operation):
        names.update(family.derived(family.space(problem_type).defaults))
    return frozenset(names)


def device_for(file: TuningFile, selector: str | Target | None) -> Target:
    """The device that `selector` names, else the first usable device that runs a language of the file."""
    return choose(selector, languages=sorted({name for phases in file.groups for name in _languages(phases)}))


def policy_of(file: TuningFile) -> Policy:
    """The bench's default policy, with the values that the file sets."""
    return replace(Policy(), **file.globals.policy())  # type: ignore[arg-type]  # names are the policy's, a test holds it


def _with_language(phases: Phases, target: Target) -> Phases:
    """The phases with an open language set to the first one that the device runs and a family has."""
    if phases.start.get(LANGUAGE) != OPEN:
        return phases
    offered = languages(phases.problem_type)
    language = next((name for name in APIS[target.api].languages if name in offered), offered[0])
    return replace(phases, start=phases.start | {LANGUAGE: language})


def _languages(phases: Phases) -> set[str]:
    """The languages that a size group names; if it leaves the language open, also all that its families have."""
    names = {phases.start[LANGUAGE]} if LANGUAGE in phases.start else set()
    for step in phases.steps:
        if isinstance(step, Fork | Benchmark | Final):
            names.update(step.choices.values(LANGUAGE))
    return {str(name) for name in names if name != OPEN} | set(languages(phases.problem_type) if OPEN in names else ())
