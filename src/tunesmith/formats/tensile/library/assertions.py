"""Whether a solution may run a problem: the assertions (`Assert...`) among its parameters, and limits that follow from
other parameters.

Source: ROCm/Tensile, `Contractions.py` and `ContractionProblemPredicates.hpp`. What depends on the caller and not on
the problem is taken as Tensile's defaults have it: any kernel language and arithmetic unit, no demand for determinism,
and a workspace that is large enough. `PersistentKernelCheck` needs the device and is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .contraction import SizedContraction
from .records import LoggedSolution

BUFFER_BYTES = 2**32
"""A buffer instruction's offset must be smaller."""
IGNORED = ("AssertMinApproxSize",)
"""Assertions that Tensile no longer asks."""

MULTIPLES: Mapping[str, tuple[str, Callable[[SizedContraction], int]]] = {
    "AssertFree0ElementMultiple": ("free size 0", lambda problem: problem.tile_size(0)),
    "AssertFree1ElementMultiple": ("free size 1", lambda problem: problem.tile_size(1)),
    "AssertSummationElementMultiple": ("the summed size", lambda problem: problem.bound_size(-1)),
}
"""A size that must be a multiple of the parameter."""

SIZES: Mapping[str, tuple[str, Callable[[int, int], bool]]] = {
    "AssertSizeEqual": ("is not", lambda size, value: size == value),
    "AssertSizeGreaterThan": ("is not above", lambda size, value: size > value),
    "AssertSizeLessThan": ("is not below", lambda size, value: size < value),
    "AssertSizeMultiple": ("is no multiple of", lambda size, value: size % value == 0),
}
"""What each size that the parameter names must be beside its value; -1 asks nothing."""

STRIDES = {f"AssertStride{tensor}Equal": tensor for tensor in "ABCD"}
INTENSITIES = {"AssertAIGreaterThanEqual": 1, "AssertAILessThanEqual": -1}
SCALARS = {"AssertAlphaValue": "alpha", "AssertBetaValue": "beta"}
C_EQUALS_D = "AssertCEqualsD"

ASSERTIONS = (*IGNORED, *MULTIPLES, *SIZES, *STRIDES, *INTENSITIES, *SCALARS, C_EQUALS_D)


def unmet(solution: LoggedSolution, problem: SizedContraction) -> str:
    """The first assertion that the problem does not meet, in words; empty if the solution may run the problem."""
    return next(_unmet(solution.parameters, problem), "")


def _unmet(parameters: Mapping[str, Any], problem: SizedContraction) -> Iterator[str]:
    for key, (what, size_of) in MULTIPLES.items():
        if key in parameters and size_of(problem) % parameters[key]:
            yield f"{key} {parameters[key]}: {what} is {size_of(problem)}"
    for key, (relation, is_met) in SIZES.items():
        for index, value in _asked(parameters, key):
            if not is_met(problem.sizes[index], value):
                yield f"{key}: size {problem.type.size_names[index]} {problem.sizes[index]} {relation} {value}"
    for key, tensor in STRIDES.items():
        for index, value in _asked(parameters, key):
            if problem.strides(tensor)[index] != value:
                yield f"{key}: stride {index} of {tensor} is {problem.strides(tensor)[index]}, not {value}"
    for key, sign in INTENSITIES.items():
        limit = parameters.get(key) or 0
        if limit > 0 and sign * problem.arithmetic_intensity() < sign * limit:
            yield f"{key} {limit}: the arithmetic intensity is {problem.arithmetic_intensity():.6g}"
    for key, scalar in SCALARS.items():
        value = parameters.get(key, False)
        # Tensile takes 0 for False here, so that an assertion of 0 asks nothing.
        if value and getattr(problem, scalar) != value:
            yield f"{key} {value}: {scalar} may have another value"
    if parameters.get(C_EQUALS_D) and not problem.c_equals_d:
        yield f"{C_EQUALS_D}: C and D are two arrays"
    yield from _too_small(parameters, problem)
    yield from _too_large(parameters, problem)


def _asked(parameters: Mapping[str, Any], key: str) -> Iterator[tuple[int, int]]:
    return ((index, value) for index, value in (parameters.get(key) or {}).items() if value != -1)


def _too_small(parameters: Mapping[str, Any], problem: SizedContraction) -> Iterator[str]:
    """A vector load needs so many elements of the tiled index, and a split of K so many steps in each part."""
    sides = (("A", problem.type.free_a), ("B", problem.type.free_b))
    for (matrix, free), tile_first in zip(sides, problem.type.tile_first, strict=True):
        width = (parameters.get(f"GlobalLoadVectorWidth{matrix}") or 1) if tile_first else 1
        size = problem.sizes[free[0]] if free else problem.batch_size()
        if size < width and problem.type.data_type.letters != "4xi8":
            yield f"GlobalLoadVectorWidth{matrix} {width}: the free size of {matrix} is {size}"
    split = parameters.get("GlobalSplitU") or 1
    # Files from before the limit do not have MinKForGSU, and their tables have solutions at smaller sizes.
    least = (parameters.get("MinKForGSU") or 0) * split
    if parameters.get("_GlobalAccumulation") and not parameters.get("StreamK") and problem.bound_size() < least:
        yield f"GlobalSplitU {split}: the summed size {problem.bound_size()} is below {least}"


def _too_large(parameters: Mapping[str, Any], problem: SizedContraction) -> Iterator[str]:
    """Offsets of buffer loads and stores must fit in 32 bits."""
    first = problem.type.tile_first
    for side, (matrix, number) in enumerate((("A", 0), ("B", 1))):
        edge = parameters.get("DepthU" if first[side] else f"MacroTile{number}")
        if not parameters.get("BufferLoad") or edge is None or len(problem.strides(matrix)) < 2:
            continue
        width, multiple = (
            parameters.get(key) or 1 for key in (f"GlobalLoadVectorWidth{matrix}", f"AssertFree{number}ElementMultiple")
        )
        shift = width if first[side] and multiple < width else 0
        reach = (problem.strides(matrix)[1] * edge + shift) * problem.type.data_type.element_bytes
        if reach >= BUFFER_BYTES:
            yield f"BufferLoad: a tile of {matrix} reaches {reach:.0f} bytes"
    edge = parameters.get("MacroTile1")
    if not parameters.get("BufferStore") or edge is None or problem.type.c_count < 2:
        return
    bound = dict(_asked(parameters, "AssertSizeLessThan")).get(1)
    rows = min(edge, bound - 1) if bound is not None else edge
    reach = problem.strides("D")[1] * problem.type.dest.element_bytes * rows
    if reach >= BUFFER_BYTES:
        yield f"BufferStore: a tile of D reaches {reach:.0f} bytes"
