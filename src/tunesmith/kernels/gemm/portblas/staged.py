"""Blocks of D through local memory; with K split, as much of them as their sums, which a second launch adds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tunesmith.kernels.cuda_limits import REGISTERS_PER_BLOCK
from tunesmith.kernels.gemm.launching import GRID_MAX, final, integers
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Launch, Plan, Target, WorkspaceArgument

from .algorithm import Algorithm, block_macros
from .text import Macros, Section, named
from .tiling import WIDEST_ACCESS, WIDEST_REGISTER, AccessWidth, ProgramTraits, Tiling, blocks, widest

WARP = 32
"""Work-items that run in step on NVIDIA's GPUs, and banks of local memory, of 4 bytes."""
MOST_ON_THE_WAY = 40
"""Registers for a stage that is fetched while another is multiplied; beyond it, too few are left to multiply with."""
MOST_UNROLLED = 4096
"""Multiply-adds that are written out; of a stage with more, fewer steps are."""
ADDRESSES = 28
"""Registers for indices and addresses."""
MOST_GROUPS_AT_ONCE = 8
"""More would not help a kernel that is as busy as these."""
REDUCE_ITEMS = 256
STAGES_OF_A_PART = 4
"""The fewest that a part of K has; below that, adding the parts costs more than it saves."""
GROUPS_A_UNIT = {"CPU": 1, "GPU": 4}
"""Work-groups for each of the device's compute units at which it counts as busy."""


@dataclass(frozen=True, slots=True)
class StagedOperand:
    """How a stage's part of A or B is brought to local memory and read there: what `stage.h` is told.

    `item` is a work-item's rows of A or columns of B, `extent` those of the block. `packet` is what one access to local
    memory moves, and the gap after each step with `padded`.
    """

    extent: int
    item: int
    depth: int
    along_k: bool
    width: AccessWidth
    padded: bool
    items: int
    element_size: int

    @staticmethod
    def both(tiling: Tiling, kind: ProgramTraits) -> tuple[StagedOperand, StagedOperand]:
        depth = tiling.depth(kind.element)

        def made(side: int, name: str, along_k: bool) -> StagedOperand:
            extent = tiling.block[side]
            what, side_by_side = ("the steps of a stage", depth) if along_k else (name, extent)
            width = AccessWidth(what, tiling.asked_width(along_k), side_by_side)
            item, padded = tiling.item[side], tiling.pad[side]
            return StagedOperand(extent, item, depth, along_k, width, padded, tiling.items, kind.element.size)

        a = made(0, "the rows of A's block", kind.transpose_a)
        return a, made(1, "the columns of B's block", not kind.transpose_b)

    @property
    def packet(self) -> int:
        return widest(WIDEST_ACCESS // self.element_size, self.item)

    @property
    def leading(self) -> int:
        """Elements of local memory from one step to the next."""
        return self.extent + (self.packet if self.padded else 0)

    @property
    def elements(self) -> int:
        """Of local memory for one stage, so that what follows can be accessed in packets."""
        whole = WIDEST_ACCESS // self.element_size
        return -(-self.leading * self.depth // whole) * whole

    @property
    def store(self) -> int:
        """Elements of one store to local memory, where a vector lies along it as it does in global memory."""
        most = WIDEST_ACCESS // self.element_size
        return min(self.width.used, self.packet if self.padded else most)

    @property
    def lanes(self) -> int:
        """Work-items side by side along the contiguous dimension.

        Along K, vectors are taken apart when they are stored: step k of row i goes to bank k * gap + i, all different
        for `gap * vector` rows of as many vectors as fill a warp.
        """
        vectors = self.width.extent // self.width.used
        most = max(1, WARP // (self.packet * self.width.used)) if self.along_k else self.items
        return min(most, vectors, self.items)

    @property
    def registers(self) -> int:
        """Of a work-item, for its part of a stage on the way."""
        across = self.extent if self.along_k else self.depth
        vectors = self.width.extent // self.width.used
        turns = -(-vectors // self.lanes) * -(-across // max(1, self.items // self.lanes))
        return -(-turns * self.width.used * self.element_size // 4)

    def macros(self) -> dict[str, int | str]:
        return {
            "ALONG_K": int(self.along_k),
            "EXTENT": self.extent,
            "VECTOR": self.width.used,
            "STORE": self.store,
            "LANES": self.lanes,
            "LEADING": self.leading,
        }


class Staged(Algorithm):
    """`local.h`. A stage is CacheLine bytes deep; work-items bring it to local memory together, read their rows and
    columns from there, and keep sums in registers."""

    acts = ("Vectorization", "VectorSize", "CacheLine", "WorkItem", "DoubleBuffer", "PadA", "PadB")

    def local_bytes(self, tiling: Tiling, kind: ProgramTraits) -> int:
        stage = sum(side.elements for side in StagedOperand.both(tiling, kind))
        return (2 if tiling.double_buffer else 1) * stage * kind.element.size

    def widths(self, tiling: Tiling, kind: ProgramTraits) -> Iterator[AccessWidth]:
        yield from (side.width for side in StagedOperand.both(tiling, kind))

    def registers(self, tiling: Tiling, kind: ProgramTraits) -> int:
        rows, columns = tiling.item
        return (rows * columns + rows + columns) * kind.element.sum_size // 4

    def macros(self, tiling: Tiling, kind: ProgramTraits) -> Macros:
        lanes_m, lanes_n = _warp(*tiling.group)
        depth, sums = tiling.depth(kind.element), tiling.item[0] * tiling.item[1]
        unrolled = depth if depth * sums <= MOST_UNROLLED else widest(max(2, MOST_UNROLLED // sums), depth)
        return {
            **block_macros(tiling, tiling.items),
            "DEPTH": depth,
            "UNROLLED": f"BY_DEVICE(2, {unrolled})",
            "BUFFERS": 2 if tiling.double_buffer else 1,
            "LANES_M": lanes_m,
            "LANES_N": lanes_n,
            **({"REDUCE_ITEMS": REDUCE_ITEMS} if self.split else {}),
        }

    def sections(self, tiling: Tiling, kind: ProgramTraits, entry: str, suffix: str) -> list[Section]:
        a, b = StagedOperand.both(tiling, kind)
        on_cpu = widest(WIDEST_REGISTER // kind.element.sum_size, tiling.item[0])
        rows = f"BY_DEVICE({on_cpu}, {a.packet})"
        fetched = a.registers + b.registers
        ahead = fetched if fetched <= MOST_ON_THE_WAY else 0
        name = named("NAME", suffix)
        macros = {
            "ENTRY": entry,
            **name,
            **named("NAME_A", f"_a{suffix}"),
            **named("NAME_B", f"_b{suffix}"),
            "SPLIT": int(self.split),
            "ROW_LANES": rows,
            "COLUMN_LANES": f"BY_DEVICE(1, {b.packet})",
            "LEADING_A": a.leading,
            "LEADING_B": b.leading,
            "ELEMENTS_A": a.elements,
            "ELEMENTS_B": b.elements,
            "PREFETCH": "BY_DEVICE(0, 1)" if ahead else 0,
            "GROUPS_AT_ONCE": _groups_at_once(tiling.items, self.registers(tiling, kind) + ahead),
        }
        return [
            Section("give.h", {**name, "LANES_GIVEN": rows, "SPLIT": int(self.split)}),
            Section("stage.h", {**named("NAME", f"_a{suffix}"), **a.macros()}),
            Section("stage.h", {**named("NAME", f"_b{suffix}"), **b.macros()}),
            Section("local.h", macros),
        ]


class TallSkinny(Staged):
    """`local.h` with `reduce.h`, for few rows or columns and a long K: as many parts of K as keep the device busy, of
    which each leaves its sums in the workspace. The order of adding is fixed, so that results repeat bit by bit."""

    split = True

    def plan(self, tiling: Tiling, kind: ProgramTraits, gemm: Gemm, target: Target, shared_bytes: int) -> Plan:
        parts, part_k = parts_of_k(tiling, kind, gemm, target)
        arguments = (*self.inputs(tiling, gemm), WorkspaceArgument(), *integers(parts, part_k))
        add = Launch(
            module=0,
            entry="reduce",
            grid=(-(-gemm.m // REDUCE_ITEMS), min(gemm.n, GRID_MAX), gemm.batch),
            work_group=(REDUCE_ITEMS, 1, 1),
            arguments=(WorkspaceArgument(), *integers(gemm.m, gemm.n, parts), *final(gemm)),
        )
        multiply = self.launch(tiling, gemm, gemm.batch * parts, arguments, shared_bytes)
        sums = parts * gemm.batch * gemm.m * gemm.n * kind.element.sum_size
        return Plan((multiply, add), workspace_bytes=sums)


def parts_of_k(tiling: Tiling, kind: ProgramTraits, gemm: Gemm, target: Target) -> tuple[int, int]:
    """How many, and steps of each but the last, which may have fewer; whole stages."""
    depth = tiling.depth(kind.element)
    count_m, count_n = blocks(tiling.block, gemm)
    busy = GROUPS_A_UNIT[target.kind] * target.compute_units // max(1, count_m * count_n * gemm.batch)
    stages = max(1, -(-gemm.k // depth))
    parts = max(1, min(busy, stages // STAGES_OF_A_PART, GRID_MAX // max(1, gemm.batch)))
    of_each = -(-stages // parts)
    return -(-stages // of_each), of_each * depth


def _groups_at_once(items: int, registers: int) -> int:
    """Work-groups whose registers a multiprocessor holds, addresses included: a bit less than compilers would take."""
    return max(1, min(MOST_GROUPS_AT_ONCE, REGISTERS_PER_BLOCK // (items * (registers + ADDRESSES))))


def _warp(rows: int, columns: int) -> tuple[int, int]:
    """Work-items that run in step, along M and N: near a square, so that they read few different rows and columns."""
    lanes_m = widest(8, rows)
    fits = WARP % lanes_m == 0 and columns % (WARP // lanes_m) == 0
    return (lanes_m, WARP // lanes_m) if fits else (rows, columns)
