"""Configurations that a user's own constraint rules out are counted by reason, and are nothing to look at."""

from __future__ import annotations

import pytest

from command_line import invoke, invoke_json
from golden_bench import nothing_measured

REASON = "too much work for one work-item"
PARAMETERS = "[{ITEM_X: [4, 8]}, {ITEM_Y: [2, 4, 8]}%s]"
"""Of the six, three have more than 16 elements to a work-item, which the example's constraint rules out."""
SIZES = "{ProblemSizes: [Exact: [40, 70]]}"
FORKED = f"ForkParameters: {PARAMETERS % ''}\n      BenchmarkFinalParameters: [{SIZES}]"
AT_ONCE = f"BenchmarkFinalParameters: {PARAMETERS % f', {SIZES}'}"
FILE = """
GlobalParameters: {{SamplingSeconds: 0.01, WarmUpSeconds: 0.01, CompileProcesses: 1, ConfirmBlocks: 3}}
BenchmarkProblems:
  - - {{OperationType: Custom, Kernel: custom_stencil.yaml}}
    - {phases}
"""


@pytest.fixture
def tuned(copied, request):
    path = copied.with_name("tuning.yaml")
    path.write_text(FILE.format(phases=request.param))
    with nothing_measured():
        yield path, copied.with_name("out")


@pytest.mark.parametrize("tuned", [FORKED, AT_ONCE], indirect=True, ids=["a fork of all", "all at once"])
def test_a_constraint_is_counted_by_reason_and_the_exit_code_is_0(tuned):
    path, out = tuned
    found = invoke_json("tune", path, "-o", out, "--device", "CPU")
    assert found["left_out"] == {REASON: 3}
    assert [winner["sizes"] for winner in found["winners"]] == [[40, 70]]
    shown = invoke_json("show", out)
    final = shown["steps"][-1]
    assert (final["candidates"], final["rejected"], len(shown["finals"][0]["solutions"])) == (3, {REASON: 3}, 3)
    assert len(final["dropped"]) <= 1, "one sentence a reason"
    again = invoke("tune", path, "-o", out, "--device", "CPU")
    assert f"left out by constraints: {REASON} (3)" in again.stdout
    assert again.stderr.count(REASON) <= 1, "not a line for each lineage"


@pytest.mark.parametrize("tuned", [FORKED.replace("[4, 8]", "[8]").replace("[2, 4, 8]", "[4, 8]")], indirect=True)
def test_a_constraint_that_leaves_nothing_is_something_to_look_at(tuned):
    path, out = tuned
    found = invoke_json("tune", path, "-o", out, "--device", "CPU", code=1)
    dropped, nothing = found["look_at"]
    assert f"2 lineages were dropped in 02_Final: {REASON}" in dropped
    assert "nothing ran right on 1 sizes" in nothing
    assert found["left_out"] == {REASON: 2}
