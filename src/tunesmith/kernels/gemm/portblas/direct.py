"""The algorithm that reads operands straight from global memory."""

from __future__ import annotations

from collections.abc import Iterator

from .algorithm import Algorithm, transposes
from .text import Section, named
from .tiling import WIDEST_ACCESS, WIDEST_REGISTER, AccessWidth, ProgramTraits, Tiling, widest

UNROLLED = 4
"""Steps along K that are unrolled, if they are not read in vectors."""


class Direct(Algorithm):
    """`direct.h`. An operand that is contiguous along the block is read in vectors of rows or columns.

    With full vectorisation, an operand that is contiguous along K is read in vectors of steps; then as many steps of
    the other operand are read with it.
    """

    parameters_used = ("Vectorization", "VectorSize", "WorkItem")

    def widths(self, tiling: Tiling, traits: ProgramTraits) -> Iterator[AccessWidth]:
        if not traits.transpose_a:
            yield _rows(tiling)
        if traits.transpose_b:
            yield _columns(tiling)

    def registers(self, tiling: Tiling, traits: ProgramTraits) -> int:
        rows, columns = tiling.item
        return (rows * columns + _steps(tiling, traits) * (rows + columns)) * traits.element.sum_size // 4

    def sections(self, tiling: Tiling, traits: ProgramTraits, entry: str, suffix: str) -> list[Section]:
        name, steps = named("NAME", suffix), _steps(tiling, traits)
        rows = _gathered(tiling, traits) if traits.transpose_a else _rows(tiling).used
        macros = {
            "ENTRY": entry,
            **name,
            **transposes(traits),
            "ROW_LANES": rows,
            "COLUMN_LANES": _columns(tiling).used if traits.transpose_b else 1,
            "STEPS": steps,
            "UNROLLED": f"BY_DEVICE(1, {UNROLLED if steps == 1 else 1})",
        }
        return [Section("give.h", {**name, "LANES_GIVEN": rows}), Section("direct.h", macros)]


def _rows(tiling: Tiling) -> AccessWidth:
    return AccessWidth("the rows of a work-item", tiling.requested_width(along_k=False), tiling.item[0])


def _columns(tiling: Tiling) -> AccessWidth:
    return AccessWidth("the columns of a work-item", tiling.requested_width(along_k=False), tiling.item[1])


def _steps(tiling: Tiling, traits: ProgramTraits) -> int:
    """Steps that are read at once if an operand is contiguous along K. K need not be a multiple: the last steps are
    read one by one."""
    requested = tiling.requested_width(along_k=True) if traits.transpose_a or not traits.transpose_b else 1
    return AccessWidth("steps", requested, requested).used


def _gathered(tiling: Tiling, traits: ProgramTraits) -> int | str:
    """Rows in a vector of sums if A is not read in such vectors: as many as the device computes or stores at once."""
    if tiling.vectorization == "none":
        return 1
    on_cpu, on_gpu = (
        widest(size // traits.element.sum_size, tiling.item[0]) for size in (WIDEST_REGISTER, WIDEST_ACCESS)
    )
    return f"BY_DEVICE({on_cpu}, {on_gpu})"
