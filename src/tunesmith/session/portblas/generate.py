"""From a portBLAS parameter file to the files of a build: the list of candidates, and a source file for each
program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tunesmith.formats.portblas import lines as portblas_lines
from tunesmith.formats.portblas.parameter_files import Combination, ParameterFile, RuleSet, find_set, read
from tunesmith.records import Configuration, UserError

from .made_files import MadeFiles

Source = Callable[[Configuration], str]
"""Makes the text of a source file with a configuration's kernels for nn, tn, nt and tt; it compiles by itself."""

MARK = "// Made by `tunesmith portblas generate`, which will remake it and remove it: change nothing here."
SUFFIXES = {RuleSet.OURS: ".cl", RuleSet.COMPAT: ".cpp"}
"""In `compat` the sources are as in the original: C++ for portBLAS's own tuner."""
_SOURCE_PATTERNS = tuple(f"tune_gemm_*{suffix}" for suffix in SUFFIXES.values())


@dataclass(frozen=True, slots=True)
class GeneratedKernel:
    """A combination with its line in the list and the stem of its file's name.

    `equal_to` is the stem of an earlier candidate with the same program, if there is one.
    """

    combination: Combination
    line: str
    stem: str
    equal_to: str = ""


@dataclass(frozen=True)
class GeneratedFiles:
    """The result of `generate`.

    `definition` is the text of the list. `listed` are the paths of the source files, or their names if no folder was
    given. `programs` is the number of different programs, None if no text was made.
    """

    config: ParameterFile
    candidates: tuple[GeneratedKernel, ...]
    programs: int | None
    definition: str
    listed: tuple[str, ...]
    changes: MadeFiles


def generate(
    name_or_path: str | Path,
    mode: RuleSet,
    definition: Path | None = None,
    folder: Path | None = None,
    list_only: bool = False,
    folders: tuple[Path, ...] = (),
    source: Source | None = None,
) -> GeneratedFiles:
    """Read a parameter file (or a set, by name), write the list to `definition` and the sources into `folder`.

    With `list_only` nothing is written. Files that would not change are not touched; sources in `folder` that an
    earlier run generated and that are no longer listed are removed. Raises UserError for a bad parameter file, and for
    a path that cannot be written or has a file that was not generated.
    """
    config = read(find_set(name_or_path, folders), mode)
    into = None if list_only else folder
    # Making the texts takes long, so it is left out if they are not needed.
    make_source = (source or _standalone) if into is not None or mode is RuleSet.OURS else None
    suffix = SUFFIXES[mode]
    files, stems = MadeFiles(), dict[bytes, str]()
    candidates, lines, listed = [], [], []
    for combination in config.combinations:
        line, stem = portblas_lines.line(combination, mode), portblas_lines.stem(combination, mode)
        text = _text(make_source, combination, stem, mode) if make_source else ""
        first = stems.setdefault(hashlib.sha256(text.encode()).digest(), stem) if make_source else stem
        candidates.append(GeneratedKernel(combination, line, stem, "" if first == stem else first))
        # The original has a file for every combination; ours has a file for every program.
        if first != stem and mode is RuleSet.OURS:
            lines.append(f"// the same program as {first}: {line}")
            continue
        lines.append(line)
        listed.append(str(folder / f"{stem}{suffix}") if folder else f"{stem}{suffix}")
        if into is not None:
            body = portblas_lines.instantiations(combination, mode) if mode is RuleSet.COMPAT else text
            head = (MARK, f"// {line}", f"// {combination.configuration().to_json()}")
            files.write(into / f"{stem}{suffix}", "\n".join((*head, body)), MARK)
    if into is not None:
        for pattern in _SOURCE_PATTERNS:
            files.remove_others(into, pattern, MARK)
    text = portblas_lines.definition(str(config.path), lines)
    if definition is not None and not list_only:
        files.write(definition, text, portblas_lines.FIRST_LINE)
    return GeneratedFiles(config, tuple(candidates), len(stems) if make_source else None, text, tuple(listed), files)


def _text(source: Source, combination: Combination, stem: str, mode: RuleSet) -> str:
    """The program's text, by which equal candidates are found. In `compat`, a combination that none of our kernels
    takes has its stem as text, so it equals no other."""
    try:
        return source(combination.configuration())
    except UserError:
        if mode is RuleSet.OURS:
            raise
        return stem


def _standalone(configuration: Configuration) -> str:
    # Imported here since only this needs the kernels' templates.
    from tunesmith.kernels.gemm.portblas import standalone_source

    return standalone_source(configuration, language="OpenCL", dtype="s")
