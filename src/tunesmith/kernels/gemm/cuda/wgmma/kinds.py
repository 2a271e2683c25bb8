"""What warp-group products multiply. Source: PTX ISA, wgmma.mma_async: shapes, types and which may be transposed."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.records import ProblemType


@dataclass(frozen=True, slots=True)
class OperandType:
    """A type of operands: PTX's name for it and for that of the sums, NumPy's name for what TMA copies, and bytes.

    `either_way`: an operand need not be contiguous along K. `few_bits`: sums of products have fewer than a float32.
    """

    ptx: str
    sums: str
    copied_as: str
    bytes: int
    either_way: bool = False
    few_bits: bool = False

    @property
    def per_product(self) -> int:
        """Elements along K that one instruction multiplies: 32 bytes of each operand."""
        return PRODUCT_BYTES // self.bytes

    @property
    def depth(self) -> int:
        """Elements along K in one stage: the 128 bytes over which shared memory is swizzled."""
        return ROW_BYTES // self.bytes


ROW_BYTES, PRODUCT_BYTES = 128, 32

KINDS = {
    "h": OperandType("f16", "f32", "float16", 2, either_way=True),
    "b": OperandType("bf16", "f32", "bfloat16", 2, either_way=True),
    "f8": OperandType("e4m3", "f32", "uint8", 1, few_bits=True),
    "b8": OperandType("e5m2", "f32", "uint8", 1, few_bits=True),
    "i8": OperandType("s8", "s32", "uint8", 1),
    "s": OperandType("tf32", "f32", "float32", 4),
}
"""By the letter of the data type; single precision where a problem allows its products to be made in TF32."""


def kind_of(problem_type: ProblemType) -> OperandType | None:
    """None where no such instruction computes what is asked."""
    letter = problem_type.fields.word("DataType")
    if letter == "s" and "F32XdlMathOp" not in problem_type.fields:
        return None
    return KINDS.get(letter)
