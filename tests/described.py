"""The example of a kernel of one's own, as it is or edited, for the tests of described kernels."""

from __future__ import annotations

from pathlib import Path

from tunesmith.problems.custom import CustomOperation
from tunesmith.records import ProblemType

EXAMPLES = Path(__file__).parents[1] / "examples"
STENCIL = "custom_stencil.yaml"


def type_of(path: Path) -> ProblemType:
    fields = {"OperationType": "Custom", "Kernel": path.name}
    return CustomOperation().type_of(fields, lambda key: f"tuning.yaml:{key}", path.parent)


def edited(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path
