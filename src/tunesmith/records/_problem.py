"""Problem types, problems (a type with sizes), and the arrays that a problem reads and writes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Literal

from ._configuration import Configuration, thaw
from ._pickled import pickled_by_fields


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class ProblemType:
    """An operation with everything but the sizes: data types, transposes, batch, epilogue.

    `name` is the established name of the type (`Cijk_Ailk_Bljk_SB`). `indices` are the names of the sizes, in the order
    of a tuning file (for a batched GEMM: M, N, Batch, K). `fields` holds everything that defines the type.
    """

    operation: str
    name: str
    indices: tuple[str, ...]
    fields: Configuration

    def to_json(self) -> str:
        return json.dumps(
            {"operation": self.operation, "name": self.name, "indices": self.indices, "fields": self.fields.to_json()},
            sort_keys=True,
        )

    @staticmethod
    def from_json(text: str) -> ProblemType:
        raw = json.loads(text)
        return ProblemType(raw["operation"], raw["name"], tuple(raw["indices"]), Configuration.from_json(raw["fields"]))


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Problem:
    """A problem type with one size for each of its indices.

    `leading` holds the leading dimensions in elements if they are not the natural ones (GEMM: D, C, A, B as in
    Tensile's `Exact`); otherwise it is empty. `scalars` are the arguments that are passed by value (alpha, beta).
    """

    type: ProblemType
    sizes: tuple[int, ...]
    leading: tuple[int, ...] = ()
    scalars: Configuration = Configuration()

    def __str__(self) -> str:
        text = "x".join(str(size) for size in self.sizes)
        return f"{text} ld {','.join(map(str, self.leading))}" if self.leading else text

    def size(self, index: str) -> int:
        return self.sizes[self.type.indices.index(index)]

    @property
    def bare(self) -> Problem:
        """The problem without its scalars, as in a table."""
        return replace(self, scalars=Configuration())

    def to_json(self) -> str:
        """Canonical text with everything that could change a measurement."""
        return json.dumps(
            {
                "type": self.type.to_json(),
                "sizes": self.sizes,
                "leading": self.leading,
                "scalars": {name: thaw(value) for name, value in self.scalars.items()},
            },
            sort_keys=True,
        )

    @staticmethod
    def from_json(text: str) -> Problem:
        raw = json.loads(text)
        return Problem(
            ProblemType.from_json(raw["type"]),
            tuple(raw["sizes"]),
            tuple(raw["leading"]),
            Configuration.from_json(json.dumps(raw["scalars"])),
        )


@dataclass(frozen=True, slots=True)
class Operand:
    """An array of a problem: logical shape, strides in elements, and whether a kernel reads or writes it.

    The storage extends from element 0 to the last addressed element. Elements between rows are padding and must not be
    written.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    role: Literal["in", "out", "inout"]

    @property
    def storage_elements(self) -> int:
        """The number of elements from the first to the last addressed one; 0 for an empty array."""
        if 0 in self.shape:
            return 0
        return 1 + sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))
