"""The copy in OpenCL C: a family, registered by `entry_points.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tunesmith.kernels import LANGUAGE, Kernel
from tunesmith.records import Launch, Module, OperandArgument, Plan, Rejection, ScalarArgument
from tunesmith.spaces import ActsAt, Parameter, Space

SOURCE = Path(__file__).with_name("copy.cl")


class CopyKernel(Kernel):
    """Work-groups lie along the columns, and `RowGroups` of them side by side walk over the rows."""

    name, operation, language = "CopyRows", "Copy", "OpenCL"

    def space(self, problem_type, target=None) -> Space:
        return Space(
            (
                Parameter(LANGUAGE, self.language, (self.language,), "The language of the source."),
                Parameter("Threads", 64, (16, 64, 256), "Work-items of a work-group.", accepts="positive integer"),
                Parameter("Width", 1, (1, 4, 16), "Elements that a work-item copies.", accepts="positive integer"),
                Parameter(
                    "RowGroups", 4, (1, 4, 64), "Work-groups over the rows.", ActsAt.LAUNCH, accepts="positive integer"
                ),
            )
        )

    def rejections(self, config, problem_type, target) -> Iterator[Rejection]:
        if (threads := config.integer("Threads")) > target.max_work_group_size:
            yield Rejection("work-group size", f"{threads} work-items, the device allows {target.max_work_group_size}")

    def rejections_for(self, config, problem, target) -> Iterator[Rejection]:
        if config.integer("RowGroups") > problem.size("Rows"):
            yield Rejection("rows", f"{config['RowGroups']} work-groups for {problem.size('Rows')} rows")

    def modules(self, config, problem_type) -> tuple[Module, ...]:
        macros = (f"-DTHREADS={config['Threads']}", f"-DWIDTH={config['Width']}")
        return (Module(self.language, SOURCE.read_text(), ("copy",), macros),)

    def plan(self, config, problem, target, facts=()) -> Plan:
        rows, columns = problem.sizes
        numbers = (rows, columns, *(problem.leading or (columns,)))
        arguments = (OperandArgument("In"), OperandArgument("Out"), *(ScalarArgument(n, "int32") for n in numbers))
        threads = config.integer("Threads")
        across = -(-columns // (threads * config.integer("Width")))
        return Plan((Launch(0, "copy", (across, config.integer("RowGroups"), 1), (threads, 1, 1), arguments),))
