"""The operand types of warp-group products. Source: PTX ISA, wgmma.mma_async: shapes, types, allowed transposes."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.records import ProblemType


@dataclass(frozen=True, slots=True)
class OperandType:
    """A type of operands: PTX's names of the type and of its sums, NumPy's name of the type that TMA copies, and bytes.

    With `any_layout`, an operand need not be contiguous along K. With `short_sums`, sums of products have fewer bits
    than a float32.
    """

    ptx: str
    sums: str
    copied_as: str
    bytes: int
    any_layout: bool = False
    short_sums: bool = False

    @property
    def per_product(self) -> int:
        """Elements along K that one instruction multiplies: 32 bytes of each operand."""
        return PRODUCT_BYTES // self.bytes

    @property
    def depth(self) -> int:
        """Elements along K in one stage: the 128 bytes over which shared memory is swizzled."""
        return ROW_BYTES // self.bytes


ROW_BYTES, PRODUCT_BYTES = 128, 32

OPERAND_TYPES = {
    "h": OperandType("f16", "f32", "float16", 2, any_layout=True),
    "b": OperandType("bf16", "f32", "bfloat16", 2, any_layout=True),
    "f8": OperandType("e4m3", "f32", "uint8", 1, short_sums=True),
    "b8": OperandType("e5m2", "f32", "uint8", 1, short_sums=True),
    "i8": OperandType("s8", "s32", "uint8", 1),
    "s": OperandType("tf32", "f32", "float32", 4),
}
"""The operand types by the letter of the data type; single precision is for problems that permit TF32."""


def operand_type_of(problem_type: ProblemType) -> OperandType | None:
    """The operand type of a problem type; None if the instruction does not compute it."""
    letter = problem_type.fields.word("DataType")
    if letter == "s" and "F32XdlMathOp" not in problem_type.fields:
        return None
    return OPERAND_TYPES.get(letter)
