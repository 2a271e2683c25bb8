"""The cost of verifying one candidate: on the host, which looks at every byte, and by programs on the device.

    python benchmarks/verification.py [SELECTOR [MxNxK ...]]

The candidate is the default configuration of a GEMM family in single precision, with both checks of the problem. First
the case is made (inputs and reference, once a problem), then brought to the device (once a problem), then the candidate
is verified three times in each way. The last column is the part of the candidate's own six runs. The figures are
medians in milliseconds.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.cases import Cases
from tunesmith.bench.verification.host_memory import HostMemory
from tunesmith.bench.verification.poison import POISONS
from tunesmith.bench.verification.verify import Verdict, Verifier, _judged
from tunesmith.devices import Device, choose, open_device
from tunesmith.kernels import KERNELS
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem
from tunesmith.toolchains import TOOLCHAINS

FAMILIES = {"OpenCL": "RegisterGemm", "CUDA": "CudaSimtGemm"}
TYPE = gemm_type("s", transpose_b=False)


def main(selector: str = "", *sizes: str) -> None:
    device = open_device(choose(selector or None))
    print(device.target.name)
    print(f"{'size':>16} {'make case':>10} {'bring it':>10} {'host way':>10} {'device way':>10} {'the runs':>10}")
    for size in sizes or ("256x256x256", "1024x1024x1024"):
        m, n, k = map(int, size.split("x"))
        problem = Problem(TYPE, (m, n, k), (), Configuration({"alpha": 1.0, "beta": 0.0}))
        print(f"{size:>16}" + "".join(f" {1e3 * seconds:>10.1f}" for seconds in _measured(device, problem)))


def _measured(device: Device, problem: Problem) -> tuple[float, ...]:
    family = KERNELS[FAMILIES[device.target.api]]
    config = family.space(TYPE, device.target).defaults
    compiler = TOOLCHAINS[family.language]
    programs = [device.load(compiler.compile(module, device.target)) for module in family.modules(config, TYPE)]
    checks = OPERATIONS["GEMM"].checks(problem)
    plans = [family.plan(config, check, device.target) for check in checks]
    cases, verifier = Cases(0), Verifier(device)

    def judge(judge_with: Callable[[int, VerificationCase], Verdict]) -> None:
        for index, check in enumerate(checks):
            verdict = judge_with(index, cases.get(check))
            assert verdict.wrong is None, verdict.wrong

    def on_host(index: int, case: VerificationCase) -> Verdict:
        with HostMemory(device, case) as memory:
            return _judged(memory, programs, plans[index], case)

    def on_device(index: int, case: VerificationCase) -> Verdict:
        return verifier.judge(programs, plans[index], case)

    making = _seconds(lambda: [cases.get(check) for check in checks])
    verifier.hold(cases.get(checks[0]))  # compiles the programs
    verifier.clear()
    bringing = _seconds(lambda: [verifier.hold(cases.get(check)) for check in checks])
    judge(on_device)
    medians = [
        statistics.median(_seconds(lambda judge_with=judge_with: judge(judge_with)) for _ in range(3))
        for judge_with in (on_host, on_device)
    ]
    verifier.clear()
    operands = {
        operand.name: device.allocate(4 * operand.storage_elements) for operand in OPERATIONS["GEMM"].operands(problem)
    }
    workspace = device.allocate(plans[0].workspace_bytes) if plans[0].workspace_bytes else None
    prepared = [device.prepare(plan, programs, operands, workspace) for plan in plans]

    def run() -> None:
        for launch in prepared:
            for _ in POISONS:
                launch.enqueue()
        device.synchronize()

    return making, bringing, *medians, statistics.median(_seconds(run) for _ in range(3))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(*sys.argv[1:])
