"""What a library logic computes: the problem type as a tensor contraction, and a problem of it with its strides.

Sources: ROCm/Tensile, `SolutionStructs.py` (names and defaults of a problem type) and `ContractionProblem.cpp` (sizes
and strides). A GEMM is a contraction with the indices M, N, batch (if there is one) and K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tunesmith.problems import shortened

from .marked_yaml import Located

LETTERS = "ijklmnopqrstuvwxyz"
"""The names of indices in names of problem types."""

LARGEST_SIZE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TensileDataType:
    """A data type: its letters in names, and the bytes of an element."""

    letters: str
    element_bytes: float


TENSILE_DATA_TYPES = (
    TensileDataType("S", 4), TensileDataType("D", 8), TensileDataType("C", 8), TensileDataType("Z", 16),
    TensileDataType("H", 2), TensileDataType("4xi8", 4), TensileDataType("I", 4), TensileDataType("B", 2),
    TensileDataType("I8", 1), TensileDataType("X", 4), TensileDataType("F8", 1), TensileDataType("B8", 1),
    TensileDataType("F8B8", 1), TensileDataType("B8F8", 1),
)  # fmt: skip
"""Data types by the number that a file has for them."""

TYPES_BY_LETTERS = {data_type.letters.lower(): data_type for data_type in TENSILE_DATA_TYPES}

NAMED_BY_THREE = {
    *(("H", dest, "S") for dest in "HS"), *(("B", dest, "S") for dest in "BS"), ("I8", "I", "I"), ("4xi8", "I", "I"),
    *((operands, "S", "S") for operands in ("F8", "B8", "F8B8", "B8F8")),
    *((operands, "H", "S") for operands in ("F8", "B8", "F8B8", "B8F8")),
    ("F8B8", "B8", "S"), ("B8F8", "B8", "S"), ("F8", "F8", "S"), ("B8", "B8", "S"),
}  # fmt: skip
"""Data types of the operands, of C and D, and of the sums, of which a type's name has all three."""


@dataclass(frozen=True, slots=True)
class ContractionType:
    """A problem type. Indices are positions in a problem's sizes: first those of C, then those that are summed over.

    `a` and `b` are the indices of A and B in the order of memory, the fastest first; `c_count` counts those of C.
    `data_type` is the type of A and B, `dest` that of C and D, `compute` that of the sums.
    """

    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    c_count: int
    data_type: TensileDataType
    dest: TensileDataType
    compute: TensileDataType
    is_gemm: bool = True
    conjugated: tuple[bool, bool] = (False, False)
    use_beta: bool = True
    strided_batched: bool = True
    xf32: bool = False

    @property
    def index_count(self) -> int:
        return len({*self.a, *self.b})

    @property
    def summed(self) -> tuple[int, ...]:
        return tuple(range(self.c_count, self.index_count))

    @property
    def batch(self) -> tuple[int, ...]:
        return tuple(index for index in range(self.c_count) if index in self.a and index in self.b)

    @property
    def free_a(self) -> tuple[int, ...]:
        return tuple(index for index in range(self.c_count) if index in self.a and index not in self.b)

    @property
    def free_b(self) -> tuple[int, ...]:
        return tuple(index for index in range(self.c_count) if index in self.b and index not in self.a)

    @property
    def transposes(self) -> tuple[bool, bool]:
        """Whether A and B have their summed index before their free index."""
        return self.a[0] in self.summed, self.b[0] not in self.summed

    @property
    def size_names(self) -> tuple[str, ...]:
        if self.is_gemm:
            return ("M", "N", "batch", "K") if self.batch else ("M", "N", "K")
        return tuple(LETTERS[: self.index_count])

    @property
    def tile_first(self) -> tuple[bool, bool]:
        """Whether the first free index of A (of B) lies before the last summed index in memory."""
        free = ((self.a, self.free_a), (self.b, self.free_b))
        first, second = (
            bool(mine) and indices.index(mine[0]) < indices.index(self.summed[-1]) for indices, mine in free
        )
        return first, second


@dataclass(frozen=True, slots=True)
class SizedContraction:
    """A problem. `leading` has the leading dimensions of D, C, A and B; empty means the natural ones.

    `alpha` and `beta` are None if they may have any value.
    """

    type: ContractionType
    sizes: tuple[int, ...]
    leading: tuple[int, ...] = ()
    alpha: float | None = None
    beta: float | None = None
    c_equals_d: bool = False

    def free_size_a(self, position: int = 0) -> int:
        return self.sizes[self.type.free_a[position]]

    def free_size_b(self, position: int = 0) -> int:
        return self.sizes[self.type.free_b[position]]

    def batch_size(self, position: int = 0) -> int:
        return self.sizes[self.type.batch[position]] if self.type.batch else 1

    def bound_size(self, position: int = 0) -> int:
        return self.sizes[self.type.summed[position]]

    def tile_size(self, side: int) -> int:
        """The size of the output's first (0) or second (1) tiled index: index 0 of C, and that of the other operand."""
        type_ = self.type
        owners = (type_.free_a, type_.free_b) if 0 not in type_.free_b else (type_.free_b, type_.free_a)
        indices = owners[side] or type_.batch
        return self.sizes[indices[0]] if indices else 1

    def strides(self, tensor: str) -> tuple[int, ...]:
        """Elements between neighbours along each index of A, B, C or D."""
        indices = {"A": self.type.a, "B": self.type.b}.get(tensor, tuple(range(self.type.c_count)))
        strides = [1]
        for index in indices[:-1]:
            strides.append(strides[-1] * self.sizes[index])
        if self.leading and len(strides) > 1:
            leading = max(self.leading["DCAB".index(tensor)], strides[1])
            strides[1:] = [stride // strides[1] * leading for stride in strides[1:]]
        return tuple(strides)

    def arithmetic_intensity(self) -> float:
        """FLOP per byte of A, B and C (C counts twice if beta is not 0), each read once."""
        counts = {name: math.prod(self.sizes[i] for i in indices) for name, indices in self._tensors().items()}
        c = counts["C"] * (1 if self.beta == 0 else 2)
        operands, dest = self.type.data_type.element_bytes, self.type.dest.element_bytes
        gigabytes = ((counts["A"] + counts["B"]) * operands + c * dest) * 1e-9
        return 2 * math.prod(self.sizes) * 1e-9 / gigabytes if gigabytes else math.inf

    def _tensors(self) -> dict[str, tuple[int, ...]]:
        return {"A": self.type.a, "B": self.type.b, "C": tuple(range(self.type.c_count))}


def read_type(node: Located) -> ContractionType:
    """The type that a file's ProblemType describes. Raises UserError for one that is no contraction."""
    is_gemm = _word(node, "OperationType", "GEMM") == "GEMM"
    a, b, c_count = _indices(node, is_gemm)
    data_type = _data_type(node, "DataType", None)
    dest = _data_type(node, "DestDataType", data_type)
    sums_wide = _flag(node, "HighPrecisionAccumulate", False)
    default = TYPES_BY_LETTERS["s"] if sums_wide and data_type.letters in ("H", "B") else dest
    compute = _data_type(node, "ComputeDataType", default)
    conjugated = _flag(node, "ComplexConjugateA", False), _flag(node, "ComplexConjugateB", False)
    xf32 = _data_type(node, "F32XdlMathOp", TYPES_BY_LETTERS["s"]).letters == "X"
    use_beta, strided = _flag(node, "UseBeta", True), _flag(node, "StridedBatched", True)
    name = "_".join(
        (
            "C" + LETTERS[:c_count],
            *(
                matrix + "".join(LETTERS[index] for index in indices) + "C" * is_conjugated
                for matrix, indices, is_conjugated in zip("AB", (a, b), conjugated, strict=True)
            ),
            _suffix(node, data_type, dest, compute, sums_wide, xf32),
        )
    )
    return ContractionType(name, a, b, c_count, data_type, dest, compute, is_gemm, conjugated, use_beta, strided, xf32)


def _suffix(
    node: Located, data_type: TensileDataType, dest: TensileDataType, compute: TensileDataType, wide: bool, xf32: bool
) -> str:
    """What follows the indices in a type's name: data types, and a letter for each property."""
    three = (data_type.letters, dest.letters, compute.letters)
    types = "".join(three) + "_" if three in NAMED_BY_THREE else three[0]
    is_alternative = _flag(node, "Fp16AltImpl", False)
    letters = {
        "B": _flag(node, "UseBeta", True),
        "H": wide and not _flag(node, "SilentHighPrecisionAccumulate", False),
        "RZ": is_alternative and _flag(node, "Fp16AltImplRound", False),
        "R": is_alternative and not _flag(node, "Fp16AltImplRound", False),
        "I": _flag(node, "UseInitialStridesAB", False) or _flag(node, "UseInitialStrides", False),
        "Ic": _flag(node, "UseInitialStridesCD", False),
        "_GB": not _flag(node, "StridedBatched", True),
        "_MX": xf32 and data_type.letters == "S",
        "_SR": _flag(node, "StochasticRounding", False),
    }
    return types + "".join(letter for letter, has in letters.items() if has)


def _indices(node: Located, is_gemm: bool) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The indices of A and B, and the number of C's indices; those of a GEMM may follow from its transposes."""
    if is_gemm and node.get("IndexAssignmentsA") is None:
        is_batched = _flag(node, "Batched", False)
        summed, batch = (3, [2]) if is_batched else (2, [])
        a: tuple[int, ...] = (summed, 0) if _flag(node, "TransposeA", False) else (0, summed)
        b: tuple[int, ...] = (1, summed) if _flag(node, "TransposeB", True) else (summed, 1)
        return (*a, *batch), (*b, *batch), 2 + len(batch)
    c_count = node.need("NumIndicesC").whole(1, len(LETTERS) - 1)
    a, b = (_assigned(node.need(f"IndexAssignments{matrix}")) for matrix in "AB")
    used = sorted({*a, *b})
    summed_apart = [index for index in used if index >= c_count and (index in a) != (index in b)]
    if used != list(range(len(used))) or len(used) <= c_count or summed_apart:
        what = f"A has the indices {list(a)}, B has {list(b)} and C has 0 to {c_count - 1}"
        raise node.wrong(f"{what}, which is no contraction", "number all indices, first those of C")
    summed_index, batch_indices = len(used) - 1, list(range(2, c_count))
    gemm = sorted([0, *batch_indices, summed_index]), sorted([1, *batch_indices, summed_index])
    if is_gemm and (len(used) - c_count != 1 or c_count not in (2, 3) or (sorted(a), sorted(b)) != gemm):
        what = f"A has the indices {list(a)} and B has {list(b)}, which is no GEMM"
        raise node.wrong(what, "write TensorContraction as OperationType")
    return a, b, c_count


def _assigned(node: Located) -> tuple[int, ...]:
    indices = tuple(item.whole(0, len(LETTERS) - 1) for item in node.items())
    if not indices or len(set(indices)) < len(indices):
        raise node.wrong(f"{shortened(indices)} has no index, or one twice", "name each index of the tensor once")
    return indices


def _data_type(node: Located, key: str, default: TensileDataType | None) -> TensileDataType:
    found = node.get(key) if default is not None else node.need(key)
    if found is None or (found.value is None and default is not None):
        assert default is not None, "need would have raised"
        return default
    if isinstance(found.value, str) and found.value.lower() in TYPES_BY_LETTERS:
        return TYPES_BY_LETTERS[found.value.lower()]
    return TENSILE_DATA_TYPES[found.whole(0, len(TENSILE_DATA_TYPES) - 1)]


def _flag(node: Located, key: str, default: bool) -> bool:
    found = node.get(key)
    return default if found is None or found.value is None else found.flag()


def _word(node: Located, key: str, default: str) -> str:
    found = node.get(key)
    return default if found is None else found.word()
