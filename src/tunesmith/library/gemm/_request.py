"""The computation that a call of `matmul` asks for, and the problem types that can do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tunesmith.problems.gemm import DATA_TYPES, Gemm, gemm_type, is_interleaved
from tunesmith.records import Problem, ProblemType

SCALED = ("f8", "b8")
"""Letters of the operand types that may have a scale."""

LETTERS = {data_type.dtype: letter for letter, data_type in DATA_TYPES.items()}
"""Tensile's letters by NumPy's names of data types."""


@dataclass(frozen=True, slots=True)
class GemmRequest:
    """The letters of the operands' and the result's data types, whether TF32 is allowed, and the epilogue."""

    data: str
    dest: str
    beta: bool = False
    bias: bool = False
    activation: str = "none"
    scaled: bool = False
    tf32: bool = False

    @property
    def attempts(self) -> Iterator[GemmRequest]:
        """The requests to try in order: all at once, then the product with its scales, then the product alone. What a
        request leaves out is computed after the product."""
        product = replace(self, beta=False, bias=False, activation="none")
        yield from dict.fromkeys((self, product, replace(product, scaled=False)))

    @property
    def epilogue(self) -> str:
        """The parts of the epilogue, for a message; "" if there are none."""
        parts = {"scales": self.scaled, "bias": self.bias, self.activation: self.activation != "none", "c": self.beta}
        return " and ".join(part for part, is_requested in parts.items() if is_requested)

    @property
    def operands(self) -> str:
        """NumPy's name of the operands' data type."""
        return DATA_TYPES[self.data].dtype

    @property
    def result(self) -> str:
        return DATA_TYPES[self.dest].dtype

    @property
    def sums(self) -> str:
        return DATA_TYPES[self.data].sums

    def served_by(self, kind: ProblemType) -> bool:
        """Whether problems of this type compute the request. The type may have a beta that is then 0, and may compute
        without TF32 where the request allows it."""
        if kind.operation != "GEMM":
            return False
        offered = offered_by(kind)
        same = replace(offered, beta=self.beta, tf32=self.tf32) == self
        return same and offered.beta >= self.beta and offered.tf32 <= self.tf32

    def type_like(self, kind: ProblemType, batched: bool = False) -> ProblemType:
        """The type that would compute the whole request in the layout of `kind`; for whole batches if `batched` or if
        `kind` is."""
        fields = kind.fields
        return self.type_of(
            fields.flag("TransposeA"),
            fields.flag("TransposeB"),
            tf32=self.tf32,
            batched=batched or fields.flag("Batched"),
            use_beta=self.beta or fields.flag("UseBeta"),
            interleaved=is_interleaved(kind),
        )

    def type_of(
        self,
        transpose_a: bool,
        transpose_b: bool,
        *,
        tf32: bool,
        batched: bool,
        use_beta: bool | None = None,
        interleaved: bool = False,
    ) -> ProblemType:
        """The type that computes the whole request in this layout. `use_beta` is by default what the request needs."""
        return gemm_type(
            self.data,
            dest=self.dest,
            tf32=tf32,
            transpose_a=transpose_a,
            transpose_b=transpose_b,
            batched=batched,
            use_beta=self.beta if use_beta is None else use_beta,
            interleaved=interleaved,
            bias=self.bias,
            activation=self.activation,
            scaled=self.scaled,
        )


@lru_cache(maxsize=1024)
def offered_by(kind: ProblemType) -> GemmRequest:
    """All that problems of the type compute."""
    gemm = Gemm.of(Problem(kind, (1,) * len(kind.indices)))
    return GemmRequest(
        LETTERS[gemm.dtype], LETTERS[gemm.dest], gemm.use_beta, gemm.bias, gemm.activation, gemm.scaled, gemm.tf32
    )


def is_tf32(kind: ProblemType) -> bool:
    return offered_by(kind).tf32


@lru_cache(maxsize=1024)
def data_types(arguments: tuple[tuple[str, str], ...], out_dtype: str) -> tuple[str, str]:
    """The letters of the operands' and the result's data types.

    `arguments` are names of arguments with NumPy's names of their data types: `a`, `b`, then the arguments that must
    have the result's type. `out_dtype` is the type that the caller named for the result, or "". Raises TypeError for
    types that do not go together.
    """
    listed = ", ".join(f"{name} is {dtype}" for name, dtype in arguments)
    (_, of_a), (_, of_b), *others = arguments
    if of_a != of_b:
        raise TypeError(f"a and b must have the same data type: {listed}")
    data_type = DATA_TYPES.get(LETTERS.get(of_a, ""))
    if data_type is None or not data_type.dest:
        offered = ", ".join(offered.dtype for offered in DATA_TYPES.values() if offered.dest)
        raise TypeError(f"the arrays are {of_a}; there are kernels for {offered}")
    results = dict.fromkeys([*([out_dtype] if out_dtype else []), *(dtype for _, dtype in others)])
    dest = LETTERS.get(next(iter(results), DATA_TYPES[data_type.dest[0]].dtype))
    if len(results) > 1 or dest not in data_type.dest:
        requested = f", out_dtype is {out_dtype}" if out_dtype else ""
        options = " or ".join(DATA_TYPES[letter].dtype for letter in data_type.dest)
        what = f"of {data_type.dtype} operands the result, with all that is added to it, is {options}"
        raise TypeError(f"{what}: {listed}{requested}")
    return LETTERS[data_type.dtype], dest


def effective_beta(c: object, residual: object, beta: float) -> float:
    """The call's beta; 1 for a residual. Raises ValueError for a residual beside c or beta, and for beta without c."""
    if residual is not None and (c is not None or beta != 0):
        raise ValueError("a residual is c with beta = 1: give one or the other")
    if beta != 0 and c is None:
        raise ValueError("beta is not zero, so c must be given")
    return 1.0 if residual is not None else beta
