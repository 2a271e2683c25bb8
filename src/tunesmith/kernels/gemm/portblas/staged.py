"""The algorithms that stage operands in local memory; one of them splits K, and a second launch adds its sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tunesmith.kernels.cuda_limits import REGISTERS_PER_BLOCK
from tunesmith.kernels.gemm.launching import GRID_MAX, integers, output_arguments
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Launch, Plan, Target, WorkspaceArgument

from .algorithm import Algorithm, block_macros
from .text import Macros, Section, named
from .tiling import WIDEST_ACCESS, WIDEST_REGISTER, AccessWidth, ProgramTraits, Tiling, blocks, widest

WARP = 32
"""Work-items that run in step on NVIDIA's GPUs; also the number of banks of local memory, of 4 bytes each."""
MOST_ON_THE_WAY = 40
"""The most registers for a stage that is fetched while another is multiplied; with more, too few are left for sums."""
MOST_UNROLLED = 4096
"""The most multiply-adds that are unrolled; a stage with more is unrolled in part."""
ADDRESSES = 28
"""Registers for indices and addresses."""
MOST_GROUPS_AT_ONCE = 8
"""The most work-groups at once on a multiprocessor; more would not help kernels that are as busy as these."""
REDUCE_ITEMS = 256
STAGES_OF_A_PART = 4
"""The fewest stages of a part of K; with fewer, adding the parts costs more than it saves."""
GROUPS_A_UNIT = {"CPU": 1, "GPU": 4}
"""Work-groups for each of the device's compute units at which it counts as busy."""


@dataclass(frozen=True, slots=True)
class StagedOperand:
    """How a stage's part of A or B is copied to local memory and read there, for the macros of `stage.h`.

    `item` is the number of a work-item's rows of A or columns of B, `extent` the number of the block's. `packet` is the
    number of elements that one access to local memory moves; with `padded` it is also the gap after each step.
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
    def a_and_b(tiling: Tiling, traits: ProgramTraits) -> tuple[StagedOperand, StagedOperand]:
        depth = tiling.depth(traits.element)

        def operand(side: int, name: str, along_k: bool) -> StagedOperand:
            extent = tiling.block[side]
            what, side_by_side = ("the steps of a stage", depth) if along_k else (name, extent)
            width = AccessWidth(what, tiling.requested_width(along_k), side_by_side)
            item, padded = tiling.item[side], tiling.pad[side]
            return StagedOperand(extent, item, depth, along_k, width, padded, tiling.items, traits.element.size)

        a = operand(0, "the rows of A's block", traits.transpose_a)
        return a, operand(1, "the columns of B's block", not traits.transpose_b)

    @property
    def packet(self) -> int:
        return widest(WIDEST_ACCESS // self.element_size, self.item)

    @property
    def leading(self) -> int:
        """Elements of local memory from one step to the next."""
        return self.extent + (self.packet if self.padded else 0)

    @property
    def elements(self) -> int:
        """Elements of local memory for one stage, rounded up so that the next part can be accessed in packets."""
        alignment = WIDEST_ACCESS // self.element_size
        return -(-self.leading * self.depth // alignment) * alignment

    @property
    def store(self) -> int:
        """Elements of one store to local memory, if vectors are contiguous there as in global memory."""
        most = WIDEST_ACCESS // self.element_size
        return min(self.width.used, self.packet if self.padded else most)

    @property
    def lanes(self) -> int:
        """Work-items side by side along the contiguous dimension.

        Along K, the elements of a vector are stored one by one: step k of row i goes to bank k * gap + i. The banks are
        all different for `gap * vector` rows of as many vectors as fill a warp.
        """
        vectors = self.width.extent // self.width.used
        most = max(1, WARP // (self.packet * self.width.used)) if self.along_k else self.items
        return min(most, vectors, self.items)

    @property
    def registers(self) -> int:
        """Registers of a work-item for its part of a stage that is being fetched."""
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
    """`local.h`. Work-items copy a stage, which is CacheLine bytes deep, to local memory together. They read their rows
    and columns from there, and keep sums in registers."""

    parameters_used = ("Vectorization", "VectorSize", "CacheLine", "WorkItem", "DoubleBuffer", "PadA", "PadB")

    def local_bytes(self, tiling: Tiling, traits: ProgramTraits) -> int:
        stage = sum(side.elements for side in StagedOperand.a_and_b(tiling, traits))
        return (2 if tiling.double_buffer else 1) * stage * traits.element.size

    def widths(self, tiling: Tiling, traits: ProgramTraits) -> Iterator[AccessWidth]:
        yield from (side.width for side in StagedOperand.a_and_b(tiling, traits))

    def registers(self, tiling: Tiling, traits: ProgramTraits) -> int:
        rows, columns = tiling.item
        return (rows * columns + rows + columns) * traits.element.sum_size // 4

    def macros(self, tiling: Tiling, traits: ProgramTraits) -> Macros:
        lanes_m, lanes_n = _warp(*tiling.group)
        depth, sums = tiling.depth(traits.element), tiling.item[0] * tiling.item[1]
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

    def sections(self, tiling: Tiling, traits: ProgramTraits, entry: str, suffix: str) -> list[Section]:
        a, b = StagedOperand.a_and_b(tiling, traits)
        on_cpu = widest(WIDEST_REGISTER // traits.element.sum_size, tiling.item[0])
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
            "GROUPS_AT_ONCE": _groups_at_once(tiling.items, self.registers(tiling, traits) + ahead),
        }
        return [
            Section("give.h", {**name, "LANES_GIVEN": rows, "SPLIT": int(self.split)}),
            Section("stage.h", {**named("NAME", f"_a{suffix}"), **a.macros()}),
            Section("stage.h", {**named("NAME", f"_b{suffix}"), **b.macros()}),
            Section("local.h", macros),
        ]


class TallSkinny(Staged):
    """`local.h` with `reduce.h`, for few rows or columns and a long K.

    K is split into as many parts as keep the device busy, and each part leaves its sums in the workspace. They are
    added in a fixed order, so that results repeat bit by bit.
    """

    split = True

    def plan(self, tiling: Tiling, traits: ProgramTraits, gemm: Gemm, target: Target, shared_bytes: int) -> Plan:
        parts, part_k = parts_of_k(tiling, traits, gemm, target)
        arguments = (*self.inputs(tiling, gemm), WorkspaceArgument(), *integers(parts, part_k))
        add = Launch(
            module=0,
            entry="reduce",
            grid=(-(-gemm.m // REDUCE_ITEMS), min(gemm.n, GRID_MAX), gemm.batch),
            work_group=(REDUCE_ITEMS, 1, 1),
            arguments=(WorkspaceArgument(), *integers(gemm.m, gemm.n, parts), *output_arguments(gemm)),
        )
        multiply = self.launch(tiling, gemm, gemm.batch * parts, arguments, shared_bytes)
        sums = parts * gemm.batch * gemm.m * gemm.n * traits.element.sum_size
        return Plan((multiply, add), workspace_bytes=sums)


def parts_of_k(tiling: Tiling, traits: ProgramTraits, gemm: Gemm, target: Target) -> tuple[int, int]:
    """The number of parts of K, and the steps of each part: whole stages. The last part may have fewer."""
    depth = tiling.depth(traits.element)
    count_m, count_n = blocks(tiling.block, gemm)
    busy = GROUPS_A_UNIT[target.kind] * target.compute_units // max(1, count_m * count_n * gemm.batch)
    stages = max(1, -(-gemm.k // depth))
    parts = max(1, min(busy, stages // STAGES_OF_A_PART, GRID_MAX // max(1, gemm.batch)))
    stages_each = -(-stages // parts)
    return -(-stages // stages_each), stages_each * depth


def _groups_at_once(items: int, registers: int) -> int:
    """Work-groups whose registers, with those for addresses, a multiprocessor holds; a low estimate of what compilers
    allocate."""
    return max(1, min(MOST_GROUPS_AT_ONCE, REGISTERS_PER_BLOCK // (items * (registers + ADDRESSES))))


def _warp(rows: int, columns: int) -> tuple[int, int]:
    """The shape of a warp along M and N: nearly square, so that its work-items read few different rows and columns."""
    lanes_m = widest(8, rows)
    fits = WARP % lanes_m == 0 and columns % (WARP // lanes_m) == 0
    return (lanes_m, WARP // lanes_m) if fits else (rows, columns)
