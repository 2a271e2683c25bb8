"""Results as portBLAS's tuner prints them: a line a candidate, from the worst to the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.records import Configuration

from .portblas import Combination

SYSTEM = "System GEMM implementation"
CURRENT = "tunesmith gemm"
"""What stands where the original has its own library's."""

TYPE_NAMES = {"s": "float", "d": "double", "h": "half"}


@dataclass(frozen=True, slots=True)
class Result:
    """One line: 10^9 operations a second, milliseconds, and the error relative to the reference (None: not known)."""

    name: str
    gflops: float
    milliseconds: float
    error: float | None

    def __str__(self) -> str:
        error = "-" if self.error is None else f"{self.error:e}"
        return f"{self.gflops:e} gflops: {self.name} - Time: {self.milliseconds:e} ms, Error: {error}"


def listing(device: str, results: Sequence[Result]) -> str:
    """The whole text of one transposition."""
    ordered = sorted(results, key=lambda one: one.gflops)
    first = (f"Device: {device}", f"SIZE : {len(results)}", "== Performance Results ==")
    return "\n".join((*first, *map(str, ordered)))


def heading(transposes: str) -> str:
    return f"======= testing {transposes} ======"


def gemm_name(combination: Combination, data_type: str) -> str:
    """`Gemm <...>` with all parameters, in the original's order and words."""
    words = words_of(combination)
    real = TYPE_NAMES[data_type]
    flags = (combination.double_buffer, combination.pad_a, combination.pad_b)
    parts = (
        *(str(int(flag)) for flag in flags),
        str(combination.cache_line),
        tile(combination),
        f"{real}_{real}gemm_memory:{words.memory}",
        f"gemm_algorithm:{words.algorithm}",
        f"gemm_vectorization:{combination.vectorization}",
        f"vector size{combination.vector}",
        f"batch_type:{words.batch}",
    )
    return f"Gemm <{', '.join(parts)}>"


@dataclass(frozen=True, slots=True)
class Words:
    """What an algorithm of ours is called by `gemm_memory_t`, `gemm_algorithm_t` and `gemm_batch_type_t`."""

    memory: str
    algorithm: str
    batch: str


_WORDS = {
    "local": Words("local", "standard", "strided"),
    "non_local": Words("no_local", "standard", "strided"),
    "interleaved": Words("no_local", "standard", "interleaved"),
    "naive": Words("no_local", "naive", "strided"),
    "tall_skinny": Words("local", "tall_skinny", "strided"),
}


def words_of(combination: Combination) -> Words:
    return _WORDS[combination.algorithm]


def tile(combination: Combination) -> str:
    """`Tile<...>`: work-item, work-group, sub-group (ours has none), top-level and batch tiles."""
    numbers = (*combination.item, *combination.group, 1, 1, *combination.top, *combination.batch)
    return f"Tile<{', '.join(map(str, numbers))}>"


def combination_of(configuration: Configuration) -> Combination | None:
    """The inverse of `Combination.configuration`; None for a configuration of another family."""
    if "PortBlasAlgorithm" not in configuration:
        return None
    rows, columns, _ = configuration.integers("WorkGroup")

    def pair(name: str) -> tuple[int, int]:
        first, second = configuration.integers(name)
        return first, second

    return Combination(
        algorithm=configuration.word("PortBlasAlgorithm"),
        vectorization=configuration.word("Vectorization"),
        vector=configuration.integer("VectorSize"),
        cache_line=configuration.integer("CacheLine"),
        item=pair("WorkItem"),
        group=(rows, columns),
        top=pair("TopTile"),
        batch=pair("BatchTile"),
        double_buffer=configuration.flag("DoubleBuffer"),
        pad_a=configuration.flag("PadA"),
        pad_b=configuration.flag("PadB"),
    )


def short_name(combination: Combination) -> str:
    """For tables: the algorithm, and what is not as if it were not there."""
    parts = [
        combination.algorithm,
        f"{_by(combination.item)} each of {_by(combination.group)}",
        f"line {combination.cache_line}" if combination.cache_line else "",
        f"vector {combination.vector}" + (" partial" if combination.vectorization == "partial" else ""),
        f"top {_by(combination.top)}" if combination.top != (1, 1) else "",
        f"batch {_by(combination.batch)}" if combination.algorithm == "interleaved" else "",
        "double buffer" if combination.double_buffer else "",
        "pad " + "AB"[not combination.pad_a : 1 + combination.pad_b] if combination.pad_a or combination.pad_b else "",
    ]
    return ", ".join(part for part in parts if part)


def _by(pair: tuple[int, int]) -> str:
    return f"{pair[0]}x{pair[1]}"
