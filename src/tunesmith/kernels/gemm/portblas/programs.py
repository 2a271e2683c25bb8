"""The program of a configuration: its algorithm's sources, for one problem type or for all four transpositions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tunesmith.kernels.cuda_limits import DECLARED_SHARED_BYTES

from .algorithm import Algorithm
from .text import Macros, Section, text_of
from .tiling import ProgramTraits, Tiling


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A kernel of a text: its name, its transposes, and the suffix of its functions' names."""

    name: str
    transpose_a: bool
    transpose_b: bool
    suffix: str = "_of"


def program(
    algorithm: Algorithm, tiling: Tiling, traits: ProgramTraits, language: str, entries: Sequence[EntryPoint]
) -> str:
    """The text of a program. The transposes come from the entries, everything else from `traits`."""
    traits_of = {
        entry: replace(traits, transpose_a=entry.transpose_a, transpose_b=entry.transpose_b) for entry in entries
    }
    at_launch = any(shared_bytes(algorithm, tiling, own, language) for own in traits_of.values())
    macros: Macros = {
        "REAL": traits.element.real,
        "HALF": int(traits.element.size == 2),
        "USE_BETA": int(traits.use_beta),
        **({"LOCAL_AT_LAUNCH": 1} if at_launch else {}),
        **algorithm.macros(tiling, traits),
    }
    sections = [
        section
        for entry, own in traits_of.items()
        for section in algorithm.sections(tiling, own, entry.name, entry.suffix)
    ]
    return text_of(macros, [*sections, Section("reduce.h", {})] if algorithm.split else sections)


def shared_bytes(algorithm: Algorithm, tiling: Tiling, traits: ProgramTraits, language: str) -> int:
    """Bytes of local memory that a launch must ask for, because a source may not declare so much; otherwise 0."""
    need = algorithm.local_bytes(tiling, traits)
    return need if language == "CUDA" and need > DECLARED_SHARED_BYTES else 0
