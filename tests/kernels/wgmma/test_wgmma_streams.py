"""GEMM on Hopper's tensor cores beside other work: tiles that are shared repeat bit by bit and never hang."""

from __future__ import annotations

import pytest

from compiled_ahead import binary
from cuda_runner import cuda_device, toolchain
from cuda_streams import repeats_beside, running
from wgmma_cases import DIRECT, FAMILY, config, kind, problem

pytestmark = pytest.mark.gpu


@pytest.fixture
def hopper():
    toolchain("CUDA")
    device = cuda_device()
    if device.target.architecture != "sm_90":
        pytest.skip("needs a GPU of the Hopper generation")
    return device


def long_k(device, **values):
    """24 tiles and a long K: the programs, the plan and the problem. With `values`, tiles are shared."""
    problem_type = kind("b", dest="s")
    chosen, asked = config(problem_type, **DIRECT | values), problem(1000, 700, 1, 9000, problem_type=problem_type)
    programs = [device.load(binary(module, device.target)) for module in FAMILY.modules(chosen, problem_type)]
    assert not list(FAMILY.rejections(chosen, problem_type, device.target))
    return programs, FAMILY.plan(chosen, asked, device.target), asked


@pytest.mark.parametrize(
    "values",
    [
        {"StreamKGrid": 132},
        {"StreamKGrid": 17},
        {"StreamKGrid": 17, "StreamKFullTiles": 1},
        {"GlobalSplitU": 5},
        {"GlobalSplitU": 8},
    ],
    ids=str,
)
def test_shared_tiles_repeat_bit_by_bit_beside_other_work(hopper, values):
    with running(long_k(hopper, **values), long_k(hopper)) as (asked, other):
        repeats_beside(asked, other)


@pytest.mark.parametrize("streams", [1, 2, 8])
def test_stream_k_does_not_hang_on_several_streams(hopper, streams):
    """Each grid alone fills the GPU, and whole tiles keep a part of it; the test's time limit is what a hang runs
    into."""
    with running(long_k(hopper), *[long_k(hopper, StreamKGrid=132)] * streams) as (whole, *shared):
        for _ in range(200):
            for run in shared:
                whole.prepared.enqueue()
                run.prepared.enqueue()
        results = {run.result() for run in shared}
        whole.synchronize()
    assert len(results) == 1
