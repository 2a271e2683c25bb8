"""Results as portBLAS's tuner prints them: a line for each candidate, from the worst to the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tunesmith.records import Configuration, printable

from .combination import PARAMETERS
from .parameter_files import Combination

SYSTEM = "System GEMM implementation"
CURRENT = "tunesmith gemm"
"""The name of our library's result, where the original has the result of its own library."""

TYPE_NAMES = {"s": "float", "d": "double", "h": "half"}


@dataclass(frozen=True, slots=True)
class PortBlasResult:
    """One line: 10^9 FLOP a second, milliseconds, and the error relative to the reference (None: not known)."""

    name: str
    gflops: float
    milliseconds: float
    error: float | None

    def __str__(self) -> str:
        error = "-" if self.error is None else f"{self.error:e}"
        return f"{self.gflops:e} gflops: {self.name} - Time: {self.milliseconds:e} ms, Error: {error}"


def listing(device: str, results: Sequence[PortBlasResult]) -> str:
    """The whole text for one transposition."""
    ordered = sorted(results, key=lambda result: result.gflops)
    first = (f"Device: {printable(device)}", f"SIZE : {len(results)}", "== Performance Results ==")
    return "\n".join((*first, *map(str, ordered)))


def heading(transposes: str) -> str:
    return f"======= testing {transposes} ======"


def gemm_name(combination: Combination, data_type: str) -> str:
    """`Gemm <...>` with all parameters, in the original's order and words."""
    words, real = combination.words, TYPE_NAMES[data_type]
    parts = (
        *(str(int(flag)) for flag in combination.flags),
        str(combination.cache_line),
        combination.tile(),
        f"{real}_{real}gemm_memory:{words.memory}",
        f"gemm_algorithm:{words.algorithm}",
        f"gemm_vectorization:{combination.vectorization}",
        f"vector size{combination.vector}",
        f"batch_type:{words.batch}",
    )
    return f"Gemm <{', '.join(parts)}>"


def combination_of(configuration: Configuration) -> Combination | None:
    """The inverse of `Combination.configuration`; None for a configuration of another family."""
    if PARAMETERS["algorithm"] not in configuration:
        return None
    values: dict[str, Any] = {field: configuration[name] for field, name in PARAMETERS.items()}
    return Combination(**values | {"group": values["group"][:2]})


def short_name(combination: Combination) -> str:
    """A name for tables: the algorithm and the tiles, then the parameters that differ from their defaults."""
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
