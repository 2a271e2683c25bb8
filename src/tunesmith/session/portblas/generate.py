"""A portBLAS parameter file made into what a build needs: the list of candidates and a source file for each program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tunesmith.formats import portblas_lines
from tunesmith.formats.portblas import Combination, Config, Mode, find_set, read
from tunesmith.records import Configuration, UserError

from .made_files import Changes, MadeFiles

Source = Callable[[Configuration], str]
"""Text of a file that holds a configuration's kernels for nn, tn, nt and tt, and can be compiled by itself."""

MARK = "// Made by `tunesmith portblas generate`, which will remake it and remove it: change nothing here."
SUFFIX = ".cl"
SUFFIX_OF_THE_ORIGINAL = ".cpp"
_OURS = f"tune_gemm_*{SUFFIX}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A combination with its line in the list and the stem of its file's name.

    `equal_to` is the stem of the first candidate that is the same program, if one before it is.
    """

    combination: Combination
    line: str
    stem: str
    equal_to: str = ""


@dataclass(frozen=True)
class Generated:
    """What became of a parameter file.

    `definition` is the text of the list and `listed` are the source files' paths, or their names where no folder was
    given; `programs` counts different ones, and is None where nobody had to know them.
    """

    config: Config
    candidates: tuple[Candidate, ...]
    programs: int | None
    definition: str
    listed: tuple[str, ...]
    changes: Changes = Changes()


def generate(
    name_or_path: str | Path,
    mode: Mode,
    definition: Path | None = None,
    folder: Path | None = None,
    list_only: bool = False,
    folders: tuple[Path, ...] = (),
    source: Source | None = None,
) -> Generated:
    """Read a parameter file (or a set, by name), write the list to `definition` and the sources into `folder`.

    With `list_only` nothing is written. Files that would not change are not touched; what stands in `folder` from an
    earlier run and is no longer listed is removed. UserError for a bad file and for a place that cannot be written, or
    that holds something else.
    """
    config = read(find_set(name_or_path, folders), mode)
    into = None if list_only else folder
    programs = _Programs(config.path, source or _standalone, asked=into is not None or mode is Mode.OURS)
    made = MadeFiles()
    candidates = []
    for combination in config.combinations:
        candidate, text = programs.candidate(combination, mode)
        candidates.append(candidate)
        if into is not None and _has_file(candidate, mode):
            made.write(into / f"{candidate.stem}{SUFFIX}", _file(candidate, text), MARK)
    if into is not None:
        made.remove_others(into, _OURS, MARK)
    text = portblas_lines.definition(str(config.path), _lines(candidates, mode))
    if definition is not None and not list_only:
        made.write(definition, text, portblas_lines.FIRST_LINE)
    listed = tuple(_listed(candidates, mode, folder))
    return Generated(config, tuple(candidates), programs.count, text, listed, made.changes)


class _Programs:
    """Texts of combinations, and which of them are the same. Texts are not made where nobody `asked`."""

    def __init__(self, path: Path, source: Source, asked: bool) -> None:
        self._path, self._source, self._asked = path, source, asked
        self._stems: dict[bytes, str] = {}

    @property
    def count(self) -> int | None:
        return len(self._stems) if self._asked else None

    def candidate(self, combination: Combination, mode: Mode) -> tuple[Candidate, str]:
        line, stem = portblas_lines.line(combination, mode), portblas_lines.stem(combination, mode)
        if not self._asked:
            return Candidate(combination, line, stem), ""
        text = self._text(combination, line)
        first = self._stems.setdefault(hashlib.sha256(text.encode()).digest(), stem)
        return Candidate(combination, line, stem, "" if first == stem else first), text

    def _text(self, combination: Combination, line: str) -> str:
        try:
            return self._source(combination.configuration())
        except UserError as error:
            # Only in mode compat, whose rules let through what is no kernel.
            raise UserError(f"{self._path}: {line}: {error.place}", error.what, error.remedy) from error


def _has_file(candidate: Candidate, mode: Mode) -> bool:
    """The original has a file for every combination; ours for every program."""
    return mode is Mode.COMPAT or not candidate.equal_to


def _file(candidate: Candidate, text: str) -> str:
    return "\n".join((MARK, f"// {candidate.line}", f"// {candidate.combination.configuration().to_json()}", text))


def _lines(candidates: Iterable[Candidate], mode: Mode) -> Iterator[str]:
    for candidate in candidates:
        repeats = not _has_file(candidate, mode)
        yield f"// the same program as {candidate.equal_to}: {candidate.line}" if repeats else candidate.line


def _listed(candidates: Iterable[Candidate], mode: Mode, folder: Path | None) -> Iterator[str]:
    suffix = SUFFIX_OF_THE_ORIGINAL if mode is Mode.COMPAT else SUFFIX
    for candidate in candidates:
        if _has_file(candidate, mode):
            name = f"{candidate.stem}{suffix}"
            yield str(folder / name) if folder else name


def _standalone(configuration: Configuration) -> str:
    # Imported here since the kernels' templates are only needed where texts are.
    from tunesmith.kernels.gemm.portblas import standalone_source

    return standalone_source(configuration, language="OpenCL", dtype="s")
