"""A configuration's text: its algorithm's sources, for one problem type or for all four transpositions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tunesmith.kernels.cuda_limits import DECLARED_SHARED_BYTES

from .algorithm import Algorithm
from .text import Macros, Section, text_of
from .tiling import ProgramTraits, Tiling


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A kernel of a text: its name, what is transposed, and what its functions' names end with."""

    name: str
    transpose_a: bool
    transpose_b: bool
    suffix: str = "_of"


def program(
    algorithm: Algorithm, tiling: Tiling, kind: ProgramTraits, language: str, entries: Sequence[EntryPoint]
) -> str:
    """`kind` but for its transposes, which the entries have."""
    kinds = [replace(kind, transpose_a=entry.transpose_a, transpose_b=entry.transpose_b) for entry in entries]
    macros: Macros = {
        "REAL": kind.element.real,
        "HALF": int(kind.element.size == 2),
        "USE_BETA": int(kind.use_beta),
        **({"LOCAL_AT_LAUNCH": 1} if any(shared_bytes(algorithm, tiling, one, language) for one in kinds) else {}),
        **algorithm.macros(tiling, kind),
    }
    sections = [
        section
        for entry, one in zip(entries, kinds, strict=True)
        for section in algorithm.sections(tiling, one, entry.name, entry.suffix)
    ]
    return text_of(macros, [*sections, Section("reduce.h", {})] if algorithm.split else sections)


def shared_bytes(algorithm: Algorithm, tiling: Tiling, kind: ProgramTraits, language: str) -> int:
    """Local memory that must come with a launch, since a source may not declare so much; 0 where it may."""
    need = algorithm.local_bytes(tiling, kind)
    return need if language == "CUDA" and need > DECLARED_SHARED_BYTES else 0
