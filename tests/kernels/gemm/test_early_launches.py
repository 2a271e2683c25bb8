"""Launches that start while the launch before them still runs: who does, and that all wait before they touch memory."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from compiled_ahead import binary
from cuda_runner import H200, configuration, cuda_device, toolchain
from sass import instructions
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Launch, Module, OperandArgument, Plan, Problem, ScalarArgument

KIND = gemm_type("b", transpose_b=False, use_beta=False)
SQUARE, COLUMN = (2048, 512, 512), (2048, 1, 512)
WGMMA = {"InstructionColumns": 128}
TRITON = {"MacroTile": (64, 64), "DepthU": 64, "NumWarps": 4, "LoadPath": "TMA"}
STARTING_EARLY = [
    ("CudaWgmmaGemm", {}, SQUARE, 0),
    ("CudaWgmmaGemm", {"StorePath": "Direct"}, SQUARE, 1),
    ("CudaWgmmaGemm", WGMMA | {"ClusterShape": (2, 2)}, SQUARE, 0),
    ("CudaWgmmaGemm", WGMMA | {"ClusterShape": (1, 1, 2), "StorePath": "Direct"}, SQUARE, 0),
    ("CudaWgmmaGemm", WGMMA | {"GlobalSplitU": 2}, SQUARE, 0),
    ("TritonGemm", TRITON, SQUARE, 0),
    ("TritonGemm", TRITON | {"Schedule": "Persistent"}, SQUARE, 0),
    ("TritonGemm", TRITON | {"Schedule": "SplitK", "GlobalSplitU": 2}, SQUARE, 0),
    ("TritonGemm", TRITON | {"Schedule": "FillK"}, (128, 128, 512), 0),
    ("TritonGemm", TRITON | {"Schedule": "StreamK", "StreamKGrid": 100}, SQUARE, 0),
    ("TritonGemv", {"GemvAlong": "M"}, COLUMN, 0),
    ("TritonGemv", {"GemvAlong": "M", "GlobalSplitU": 2}, COLUMN, 0),
]
"""The family, what is not its default, the sizes, and by how much rows of A and B are longer than they must be."""
EACH = pytest.mark.parametrize(("name", "values", "sizes", "longer"), STARTING_EARLY, ids=str)
MEMORY = (
    "LD",
    "LDG",
    "LDGSTS",
    "ST",
    "STG",
    "ATOM",
    "ATOMG",
    "RED",
    "REDG",
    "UBLKCP",
    "UBLKRED",
    "UTMALDG",
    "UTMASTG",
    "UTMAREDG",
)
"""Instructions that touch global memory, by their first word."""


def planned(name, values, sizes=SQUARE, longer=0, target=H200):
    """The configuration and the plan of D = A B."""
    m, _, k = sizes
    family = KERNELS[name]
    chosen = configuration(family, KIND, **values)
    asked = Problem(KIND, sizes, (m, m, m + longer, k + longer), Configuration({"alpha": 1.0, "beta": 0.0}))
    assert not list(family.rejections(chosen, KIND, target))
    assert not list(family.rejections_for(chosen, asked, target))
    return chosen, family.plan(chosen, asked, target)


@pytest.mark.parametrize(
    ("api", "architecture", "driver", "expected"),
    [
        ("CUDA", "sm_80", "580 (CUDA 13.0)", False),
        ("CUDA", "sm_90", "580 (CUDA 13.0)", True),
        ("CUDA", "sm_90a", "545 (CUDA 12.3)", True),
        ("CUDA", "sm_90", "535 (CUDA 12.2)", False),
        ("CUDA", "sm_90", "535", False),
        ("CUDA", "sm_100", "580 (CUDA 13.0)", True),
        ("HIP", "gfx942", "6.0", False),
        ("OpenCL", "sm_90", "580 (CUDA 13.0)", False),
    ],
)
def test_launches_start_early_from_hopper_and_cuda_12_3_on(api, architecture, driver, expected):
    target = dataclasses.replace(H200, api=api, architecture=architecture, driver=driver)
    assert target.starts_early is expected
    family = KERNELS["TritonGemm"]
    chosen = configuration(family, KIND, **TRITON | {"LoadPath": "Pointer"})
    asked = Problem(KIND, SQUARE, (2048, 2048, 2048, 512), Configuration({"alpha": 1.0, "beta": 0.0}))
    assert [step.early for step in family.plan(chosen, asked, target).steps] == [expected]


def test_a_program_that_cannot_wait_does_not_start_early():
    family = KERNELS["TritonTmaGemm"]
    kind = gemm_type("s", transpose_a=True)
    asked = Problem(kind, (64, 64, 64), (64, 64, 64, 64), Configuration({"alpha": 1.0, "beta": 0.0}))
    assert not any(step.early for step in family.plan(configuration(family, kind), asked, H200).steps)


@EACH
def test_every_entry_that_starts_early_waits_before_it_touches_memory(name, values, sizes, longer):
    """As ptxas made it: the wait is ACQBULK. What is only ever read may be moved before it, and must not exist."""
    toolchain("CUDA" if name.startswith("Cuda") else "Triton")
    chosen, plan = planned(name, values, sizes, longer)
    modules = KERNELS[name].modules(chosen, KIND)
    launches = [step for step in plan.steps if isinstance(step, Launch)]
    assert all(step.early for step in launches)
    for step in launches:
        names = instructions(binary(modules[step.module], H200))[step.entry]
        memory = [index for index, full in enumerate(names) if full.split(".")[0] in MEMORY]
        assert names.index("ACQBULK") < min(memory)
        assert not [full for full in names if full.startswith("LDG") and "CONSTANT" in full]


LATE = """
extern "C" __global__ void late(const unsigned int *from, unsigned int *to, long long words, long long cycles)
{
    asm volatile("griddepcontrol.launch_dependents;");
    for (long long begin = clock64(); clock64() - begin < cycles;) {}
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) to[i] = from[i];
}
"""


@pytest.mark.gpu
@EACH
def test_launches_wait_on_a_gpu_for_one_that_writes_their_operand_late(name, values, sizes, longer):
    """The launch before lets them start, and writes A a tenth of a millisecond later. B moves the columns of A."""
    device = cuda_device()
    if device.target.architecture != "sm_90":
        pytest.skip("needs a GPU of the Hopper generation")
    chosen, plan = planned(name, values, sizes, longer, device.target)
    assert all(step.early for step in plan.steps if isinstance(step, Launch)), "the driver is too old for this test"
    (m, n, k), rng = sizes, np.random.default_rng(3)
    programs = [device.load(binary(module, device.target)) for module in KERNELS[name].modules(chosen, KIND)]
    writer = device.load(toolchain("CUDA").compile(Module("CUDA", LATE, ("late",)), device.target))
    hidden, moves = [rng.integers(0x80, 0x3F80, (k, m + longer), np.uint16) for _ in range(2)], rng.permutation(k)[:n]
    moving = np.zeros((n, k + longer), np.uint16)  # by columns
    moving[np.arange(n), moves] = 0x3F80  # 1
    size = hidden[0].nbytes // 4 * 4
    a, d, *sources = (device.allocate(nbytes) for nbytes in (hidden[0].nbytes, 2 * m * n, *[hidden[0].nbytes] * 2))
    b, workspace = device.allocate(moving.nbytes), device.allocate(max(1, plan.workspace_bytes))
    device.write(b, moving.view(np.uint8).ravel())
    if plan.zeroed:
        device.write(workspace, np.zeros(plan.zeroed, np.uint8))
    for source, content in zip(sources, hidden, strict=True):
        device.write(source, content.view(np.uint8).ravel())
    device.write(a, hidden[1].view(np.uint8).ravel())
    numbers = (ScalarArgument(size // 4, "int64"), ScalarArgument(200_000, "int64"))
    launch = Launch(0, "late", (8, 1, 1), (256, 1, 1), (OperandArgument("from"), OperandArgument("to"), *numbers))
    late = [device.prepare(Plan((launch,)), [writer], {"from": source, "to": a}, workspace) for source in sources]
    product = device.prepare(plan, programs, {"A": a, "B": b, "C": d, "D": d}, workspace)
    for turn in range(6):
        late[turn % 2].enqueue()
        product.enqueue()
        device.synchronize()
        found = device.read(d, 2 * m * n).view(np.uint16).reshape(n, m)
        assert (found == hidden[turn % 2][moves, :m]).all()
