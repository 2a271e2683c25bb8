"""A list of configurations is measured as a tuning file's group; one that is added later is the only one measured."""

from __future__ import annotations

import json

import pytest

from opencl_runner import opencl_device
from tunesmith.autotuning.measured_call import ScreeningObserver
from tunesmith.session import events, tune

pytestmark = pytest.mark.opencl

SOURCE = """
__kernel void doubled(__global const float *x, __global float *y) {
    y[get_global_id(0)] = x[get_global_id(0)] * (WRONG ? 3 : 2);
}
"""

DESCRIPTION = """
Name: doubled
Source: doubled.cl
Entry: doubled
Sizes: [Calls]
Parameters:
  GROUP: {Values: any}
  WRONG: {Values: any}
  ITEMS: {Values: any}
Arguments:
  - {Name: x, DataType: float32, Shape: [256], Role: inout}
  - {Name: y, DataType: float32, Shape: [256], Role: inout}
WorkGroup: [GROUP]
Grid: {WorkGroups: [ITEMS]}
Reference: reference.py:doubled
Tolerance: 1
Flops: 0
"""

REFERENCE = """
def doubled(sizes, arrays):
    return {"x": arrays["x"], "y": arrays["x"] * 2}
"""

TUNING = """
GlobalParameters: {MinimumSamples: 2, MaximumSamples: 4, WarmUpSeconds: 0.01, ConfirmBlocks: 2}
BenchmarkProblems:
  - - {OperationType: Custom, Kernel: doubled.kernel.yaml}
    - ForkParameters:
        - Groups:
            - MEMBERS
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [1]
"""


def tuned(folder, *groups, wrong=()):
    members = [{"GROUP": group, "WRONG": group in wrong, "ITEMS": 256 // group} for group in groups]
    texts = {
        "doubled.cl": SOURCE,
        "doubled.kernel.yaml": DESCRIPTION,
        "reference.py": REFERENCE,
        "doubled.yaml": TUNING.replace("MEMBERS", json.dumps(members)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    compiled, leading = [], []
    screening = ScreeningObserver(
        events.nobody,
        lambda solution: compiled.append(solution.configuration["GROUP"]),
        lambda solution: leading.append(solution.configuration["GROUP"]),
    )
    device = opencl_device().target.selector
    return (
        tune(folder / "doubled.yaml", folder / "out", device=device, order="file", observe=screening),
        screening,
        compiled,
        leading,
    )


def test_an_added_configuration_is_the_only_one_measured(tmp_path):
    first, screening, compiled, leading = tuned(tmp_path, 16, 64, 32, wrong=[64])
    (table,) = (group.table for group in first.plan.groups)
    ((winner, *_),) = table.decided.values()
    assert winner.configuration["GROUP"] in (16, 32)
    assert {solution.configuration["GROUP"] for solution in table.solutions} == {16, 32, 64}
    assert first.failed.total() == 1
    assert screening.measured == 3
    assert {16, 32} <= set(compiled) <= {16, 32, 64}, "a CPU's bench times only what it has verified"
    assert set(leading) <= {16, 32}, "told if there are finalists to compare"
    for measured in (1, 0):
        _, screening, *_ = tuned(tmp_path, 16, 64, 32, 128, wrong=[64])
        assert screening.measured == measured
