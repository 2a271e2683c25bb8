"""The example of a kernel of one's own, as it is or edited, for the tests of described kernels."""

from __future__ import annotations

from pathlib import Path

from tunesmith.kernels.custom import CustomKernel
from tunesmith.logic import Document, NamedSolution, Origin, SizeRow
from tunesmith.problems.custom import CustomOperation
from tunesmith.records import Estimate, ProblemType, Solution, Target

EXAMPLES = Path(__file__).parents[2] / "examples"
STENCIL = "custom_stencil.yaml"
ORIGIN = Origin("fake", "a fake device", "CPU", "none", "1.0", "compiler 1", "0.1.0", "2026-11-20T12:00:00Z")
TARGET = Target(
    api="fake",
    selector="fake:0",
    name="paper",
    kind="CPU",
    architecture="none",
    driver="1",
    compute_units=2,
    max_work_group_size=256,
    local_memory_bytes=4096,
    global_memory_bytes=1 << 30,
    max_allocation_bytes=1 << 28,
    last_level_cache_bytes=1 << 20,
    sub_group_size=8,
    double_precision=False,
)


def type_of(path: Path) -> ProblemType:
    fields = {"OperationType": "Custom", "Kernel": path.name}
    return CustomOperation().type_of(fields, lambda key: f"tuning.yaml:{key}", path.parent)


def edited(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def document_of(problem_type: ProblemType) -> Document:
    named = NamedSolution("S0", Solution(problem_type, "Custom", CustomKernel().space(problem_type).defaults))
    row = SizeRow((64, 64), (), 0, Estimate(1e-5, 9e-6, 1.1e-5, 7), 2.46)
    return Document(ORIGIN, problem_type, (named,), (row,), 0)
