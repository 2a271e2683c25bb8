"""Single launches of `CudaWgmmaGemm` on a Hopper GPU: what early starts and shared tiles do to them.

    python benchmarks/hopper_launches.py [--rounds 9]

A line is a product and a configuration, column-major. The output is microseconds a launch, in a row of launches:
`late`, where each begins when the one before has ended; `early`, as the family launches; `at once`, where each also
asks for the next one as soon as its own work-groups run, which the family does not. Then the same, late and early,
together with another kernel before each launch, whose time alone stands before: an elementwise kernel of torch, and a
torch.mm of 512 x 512 x 512. Medians of some rounds, in which all sides take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from statistics import median
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from gemm_sides import GpuClock
from tunesmith.devices import open_device
from tunesmith.devices.base import Prepared
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Configuration, Launch, Module, Plan, Problem, Value
from tunesmith.toolchains import TOOLCHAINS

FAMILY = KERNELS["CudaWgmmaGemm"]
WAITING = "    wait_for_launch_before();\n"
AT_ONCE = WAITING + '    asm volatile("griddepcontrol.launch_dependents;");\n'
"""What the kernel says after its start, and what it would say to let the next launch start at once."""
SETS, LAUNCHES, SIDE = 4, 40, 512

Sizes = tuple[int, int, int]
ONE, TWO = {"WarpGroups": 1}, {"WarpGroups": 2, "StorePath": "TMA"}
CASES: tuple[tuple[str, Sizes, Mapping[str, Value]], ...] = (
    *(
        ("TN", (1856, 372, 3624), ONE | {"InstructionColumns": 96, "RowsAlong": "M", "ClusterShape": shape})
        for shape in ((1, 1), (2, 1), (2, 2), (2, 4))
    ),
    ("TN", (11008, 48, 2048), ONE | {"InstructionColumns": 160}),
    ("TN", (11200, 64, 1456), ONE | {"InstructionColumns": 160}),
    ("NT", (48, 12288, 4096), ONE | {"InstructionColumns": 192, "RowsAlong": "M", "ClusterShape": (1, 4)}),
    ("NN", (50176, 96, 3136), TWO | {"InstructionColumns": 192}),
    ("TN", (48, 400, 3648), ONE | {"InstructionColumns": 48, "ClusterShape": (1, 1, 6)}),
    ("TN", (512, 25, 1024), ONE | {"InstructionColumns": 32, "RowsAlong": "M", "ClusterShape": (1, 1, 4)}),
    ("TN", (4096, 2048, 1024), TWO),
    ("TN", (4096, 4096, 4096), TWO | {"ClusterShape": (1, 2)}),
    ("NN", (32, 6272, 128), ONE | {"InstructionColumns": 32, "StorePath": "TMA", "ClusterShape": (1, 4)}),
)
"""Which of A and B are transposed; M, N and K, column-major; and the configuration where it is not the default."""


def plan_and_modules(layout: str, sizes: Sizes, values: Mapping[str, Value], target: Any) -> tuple[Problem, Plan, Any]:
    a, b = (letter == "T" for letter in layout)
    problem_type = gemm_type("b", transpose_a=a, transpose_b=b, use_beta=False)
    leading = tuple(value for _, value in GemmOperation().leading(problem_type, sizes))
    problem = Problem(problem_type, sizes, leading, Configuration({"alpha": 1.0, "beta": 0.0}))
    config = FAMILY.space(problem_type, target).defaults | {"StorePath": "Direct", "WorkGroupMapping": 8, **values}
    for rejection in (
        *FAMILY.rejections(config, problem_type, target),
        *FAMILY.rejections_for(config, problem, target),
    ):
        raise SystemExit(f"{layout} {sizes} {values}: {rejection}")
    return problem, FAMILY.plan(config, problem, target), FAMILY.modules(config, problem_type)


class Products:
    """A product's launches, on sets of operands in turn: by name, as `late`, `early` and `at once`."""

    def __init__(self, device: Any, problem: Problem, plan: Plan, modules: Sequence[Module]) -> None:
        self._device, self._problem = device, problem
        product, *others = modules
        if product.text.count(WAITING) != 1:
            raise SystemExit("the kernel does not wait for the launch before it in the line that this script knows")
        letting = [replace(product, text=product.text.replace(WAITING, AT_ONCE)), *others]
        self._sets = [self._operands() for _ in range(SETS)]
        self._workspace = device.allocate(max(1, plan.workspace_bytes))
        device.write(self._workspace, np.zeros(max(1, plan.workspace_bytes), np.uint8))
        self.sides = {
            "late": self._prepared(_starting(plan, early=False), modules),
            "early": self._prepared(plan, modules),
            "at once": self._prepared(plan, letting),
        }

    def _operands(self) -> dict[str, Any]:
        operation, rng = GemmOperation(), np.random.default_rng(1)
        inputs = operation.inputs(self._problem, rng)
        buffers = {}
        for operand in operation.operands(self._problem):
            size = operand.storage_elements * np.dtype(operand.dtype).itemsize
            buffers[operand.name] = self._device.allocate(size)
            if operand.name in inputs:
                self._device.write(buffers[operand.name], inputs[operand.name].view(np.uint8))
        return buffers

    def _prepared(self, plan: Plan, modules: Sequence[Module]) -> list[Prepared]:
        device = self._device
        programs = [device.load(TOOLCHAINS["CUDA"].compile(module, device.target)) for module in modules]
        with device.on(torch.cuda.current_stream().cuda_stream):
            return [device.prepare(plan, programs, operands, self._workspace) for operands in self._sets]


def _starting(plan: Plan, early: bool) -> Plan:
    return replace(
        plan, steps=tuple(replace(step, early=early) if isinstance(step, Launch) else step for step in plan.steps)
    )


def microseconds(clock: GpuClock, calls: Sequence[Callable[[], object]]) -> float:
    """Microseconds a call, the calls by turns."""
    return 1e6 * clock.kernel(cycle(calls), LAUNCHES)


def behind(before: Callable[[], object], launch: Prepared) -> Callable[[], None]:
    def both() -> None:
        before()
        launch.enqueue()

    return both


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of all sides (default: 9)")
    rounds = parser.parse_args().rounds
    device, clock = open_device("CUDA:0"), GpuClock()
    numbers, side = torch.zeros(1 << 20, device="cuda"), torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    others: dict[str, Callable[[], object]] = {
        "elementwise": lambda: numbers.add_(1.0),
        "mm": lambda: torch.mm(side, side),
    }
    heads = [f"{other}{more}" for other in others for more in ("", " + late", " + early")]
    table = Table("product", "configuration", "late", "early", "at once", *heads, box=None)
    for layout, sizes, values in CASES:
        products = Products(device, *plan_and_modules(layout, sizes, values, device.target))
        calls: dict[str, list[Callable[[], object]]] = {
            name: [launch.enqueue for launch in launches] for name, launches in products.sides.items()
        }
        for other, before in others.items():
            calls[other] = [before]
            for name in ("late", "early"):
                calls[f"{other} + {name}"] = [behind(before, launch) for launch in products.sides[name]]
        found = [{name: microseconds(clock, turn) for name, turn in calls.items()} for _ in range(rounds)]
        configuration = " ".join(f"{name}={value}" for name, value in values.items())
        medians = [f"{median(times[name] for times in found):.2f}" for name in calls]
        table.add_row(f"{layout} {'x'.join(map(str, sizes))}", configuration, *medians)
    Console(highlight=False, width=240).print(f"{device.target.name}, {device.target.driver}", table)


if __name__ == "__main__":
    main()
