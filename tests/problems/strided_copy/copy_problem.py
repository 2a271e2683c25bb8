"""Out = In: rows of float32 that lie apart, packed. The operation, registered by `entry_points.txt`."""

from __future__ import annotations

import numpy as np

from tunesmith.problems import Expected, Key, Operation, checked, strided
from tunesmith.records import Configuration, Operand, ProblemType

FIELDS = (
    Key("OperationType", "one of", "What is computed.", "Copy", ("Copy",)),
    Key("DataType", "one of", "What is copied.", "s", ("s",)),
)


class CopyOperation(Operation):
    """Sizes: Rows, Columns. `In` has its rows LD elements apart (Columns, unless `Exact` says more), `Out` is dense."""

    name, unit = "Copy", "B"

    def type_of(self, fields, location, folder) -> ProblemType:
        checked(fields, FIELDS, location, "the ProblemType of a copy")
        return ProblemType(self.name, "Copy_S", ("Rows", "Columns"), Configuration({"DataType": "s"}))

    def leading(self, problem_type, sizes) -> tuple[tuple[str, int], ...]:
        return (("LD", sizes[1]),)

    def operands(self, problem) -> tuple[Operand, ...]:
        rows, columns = problem.sizes
        (apart,) = problem.leading or (columns,)
        return (
            Operand("In", "float32", (rows, columns), (apart, 1), "in"),
            Operand("Out", "float32", (rows, columns), (columns, 1), "out"),
        )

    def inputs(self, problem, random) -> dict[str, np.ndarray]:
        """All elements differ; what lies between rows is NaN, so that copying it shows."""
        source = self.operands(problem)[0]
        storage = np.full(source.storage_elements, np.nan, np.float32)
        values = np.arange(1, 1 + np.prod(source.shape), dtype=np.float32)
        strided(source, storage, writeable=True)[...] = random.permutation(values).reshape(source.shape)
        return {"In": storage}

    def reference(self, problem, inputs) -> dict[str, Expected]:
        """Exactly what lies in the rows."""
        value = strided(self.operands(problem)[0], inputs["In"]).astype(np.float64)
        return {"Out": Expected((...,), value, np.zeros_like(value))}
