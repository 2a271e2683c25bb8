"""The computation that a call of `matmul` asks for, and the problem types that can do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tunesmith.problems.gemm import DATA_TYPES, Gemm, gemm_type, is_interleaved
from tunesmith.records import Problem, ProblemType

SCALED = ("f8", "b8")
"""Operands that may have a scale."""

LETTERS = {known.dtype: letter for letter, known in DATA_TYPES.items()}
"""Tensile's letters by NumPy's names of data types."""


@dataclass(frozen=True, slots=True)
class GemmRequest:
    """The types of operands and result by their letters, whether TF32 will do, and what follows the product."""

    data: str
    dest: str
    beta: bool = False
    bias: bool = False
    activation: str = "none"
    scaled: bool = False
    tf32: bool = False

    @property
    def attempts(self) -> Iterator[GemmRequest]:
        """All at once; else the product, with its scales if it has some, so that what is left can follow it."""
        product = replace(self, beta=False, bias=False, activation="none")
        yield from dict.fromkeys((self, product, replace(product, scaled=False)))

    @property
    def epilogue(self) -> str:
        """What follows the product, for a message."""
        parts = {"scales": self.scaled, "bias": self.bias, self.activation: self.activation != "none", "c": self.beta}
        return " and ".join(part for part, here in parts.items() if here)

    @property
    def operands(self) -> str:
        """NumPy's name of their type."""
        return DATA_TYPES[self.data].dtype

    @property
    def result(self) -> str:
        return DATA_TYPES[self.dest].dtype

    @property
    def sums(self) -> str:
        return DATA_TYPES[self.data].sums

    def served_by(self, kind: ProblemType) -> bool:
        """Whether problems of this type are what is asked for; beta may be 0, and TF32 may be passed over."""
        if kind.operation != "GEMM":
            return False
        offered = _offered(kind)
        same = replace(offered, beta=self.beta, tf32=self.tf32) == self
        return same and offered.beta >= self.beta and offered.tf32 <= self.tf32

    def type_like(self, kind: ProblemType, batched: bool = False) -> ProblemType:
        """The type that would compute all of it in the layout of another one, of whole batches if that does or
        `batched`."""
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
        """The type that computes all of it, in this layout; `use_beta` is as asked for unless it is given."""
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
def _offered(kind: ProblemType) -> GemmRequest:
    gemm = Gemm.of(Problem(kind, (1,) * len(kind.indices)))
    return GemmRequest(
        LETTERS[gemm.dtype], LETTERS[gemm.dest], gemm.use_beta, gemm.bias, gemm.activation, gemm.scaled, gemm.tf32
    )


def is_tf32(kind: ProblemType) -> bool:
    return _offered(kind).tf32


@lru_cache(maxsize=1024)
def data_types(given: tuple[tuple[str, str], ...], asked: str) -> tuple[str, str]:
    """Letters of operands and result, by NumPy's names of the types of `a`, `b` and, behind them, what has the result's
    type.

    `asked` is the name that the caller gave for the result, or nothing. Raises TypeError for what does not go together.
    """
    typed = ", ".join(f"{name} is {dtype}" for name, dtype in given)
    (_, of_a), (_, of_b), *others = given
    if of_a != of_b:
        raise TypeError(f"a and b must have the same data type: {typed}")
    known = DATA_TYPES.get(LETTERS.get(of_a, ""))
    if known is None or not known.dest:
        there = ", ".join(offered.dtype for offered in DATA_TYPES.values() if offered.dest)
        raise TypeError(f"the arrays are {of_a}; there are kernels for {there}")
    results = dict.fromkeys([*([asked] if asked else []), *(dtype for _, dtype in others)])
    chosen = LETTERS.get(next(iter(results), DATA_TYPES[known.dest[0]].dtype))
    if len(results) > 1 or chosen not in known.dest:
        asked_for = f", out_dtype is {asked}" if asked else ""
        options = " or ".join(DATA_TYPES[letter].dtype for letter in known.dest)
        what = f"of {known.dtype} operands the result, with all that is added to it, is {options}"
        raise TypeError(f"{what}: {typed}{asked_for}")
    return LETTERS[known.dtype], chosen


def added(c: object, residual: object, beta: float) -> float:
    """beta, which a residual has at 1. Raises ValueError where both are given, or beta without a c."""
    if residual is not None and (c is not None or beta != 0):
        raise ValueError("a residual is c with beta = 1: give one or the other")
    if beta != 0 and c is None:
        raise ValueError("beta is not zero, so c must be given")
    return 1.0 if residual is not None else beta
