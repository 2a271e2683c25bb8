"""Blocks of D straight from global memory."""

from __future__ import annotations

from collections.abc import Iterator

from .algorithm import Algorithm, transposes
from .text import Section, named
from .tiling import WIDEST_ACCESS, WIDEST_REGISTER, AccessWidth, ProgramTraits, Tiling, widest

UNROLLED = 4
"""Steps of K written out, where they are not read in vectors."""


class Direct(Algorithm):
    """`direct.h`. An operand that lies along the block is read in vectors of rows or columns; with full vectorisation,
    one that lies along K in vectors of steps, and then as many steps of the other are read with it."""

    acts = ("Vectorization", "VectorSize", "WorkItem")

    def widths(self, tiling: Tiling, kind: ProgramTraits) -> Iterator[AccessWidth]:
        if not kind.transpose_a:
            yield _rows(tiling)
        if kind.transpose_b:
            yield _columns(tiling)

    def registers(self, tiling: Tiling, kind: ProgramTraits) -> int:
        rows, columns = tiling.item
        return (rows * columns + _steps(tiling, kind) * (rows + columns)) * kind.element.sum_size // 4

    def sections(self, tiling: Tiling, kind: ProgramTraits, entry: str, suffix: str) -> list[Section]:
        name, steps = named("NAME", suffix), _steps(tiling, kind)
        rows = _gathered(tiling, kind) if kind.transpose_a else _rows(tiling).used
        macros = {
            "ENTRY": entry,
            **name,
            **transposes(kind),
            "ROW_LANES": rows,
            "COLUMN_LANES": _columns(tiling).used if kind.transpose_b else 1,
            "STEPS": steps,
            "UNROLLED": f"BY_DEVICE(1, {UNROLLED if steps == 1 else 1})",
        }
        return [Section("give.h", {**name, "LANES_GIVEN": rows}), Section("direct.h", macros)]


def _rows(tiling: Tiling) -> AccessWidth:
    return AccessWidth("the rows of a work-item", tiling.asked_width(along_k=False), tiling.item[0])


def _columns(tiling: Tiling) -> AccessWidth:
    return AccessWidth("the columns of a work-item", tiling.asked_width(along_k=False), tiling.item[1])


def _steps(tiling: Tiling, kind: ProgramTraits) -> int:
    """Read at once, where an operand lies along K: any number will do, since the last steps are read by themselves."""
    asked = tiling.asked_width(along_k=True) if kind.transpose_a or not kind.transpose_b else 1
    return AccessWidth("steps", asked, asked).used


def _gathered(tiling: Tiling, kind: ProgramTraits) -> int | str:
    """Rows in a vector of sums where A does not come in such vectors: as the device computes and stores them."""
    if tiling.vectorization == "none":
        return 1
    on_cpu, on_gpu = (
        widest(size // kind.element.sum_size, tiling.item[0]) for size in (WIDEST_REGISTER, WIDEST_ACCESS)
    )
    return f"BY_DEVICE({on_cpu}, {on_gpu})"
