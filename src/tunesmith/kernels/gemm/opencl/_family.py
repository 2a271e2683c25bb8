"""What both OpenCL families answer alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tunesmith.kernels._base import Kernel
from tunesmith.records import CompiledFacts, Configuration, Rejection, Target, Value

from . import _rules as rules
from ._schedule import Schedule


class OpenClGemm(Kernel):
    """A GEMM whose work is cut as `Schedule` says."""

    operation, language = "GEMM", "OpenCL"

    def rejections_compiled(
        self, config: Configuration, facts: Sequence[CompiledFacts], target: Target
    ) -> Iterator[Rejection]:
        yield from rules.compiled(Schedule.of(config), facts, target)

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        return Schedule.of(config).derived()
