"""The Triton families on a GPU: every schedule, type, layout and epilogue is right, repeats bit by bit, never hangs."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from compiled_ahead import ahead, binary
from cuda_runner import configuration, cuda_device, toolchain
from cuda_streams import repeats_beside, running
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Configuration, Problem, Target
from verified import verify

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("compilers")]

OPERATION = GemmOperation()
DENSE, GEMV = KERNELS["TritonGemm"], KERNELS["TritonGemv"]
TRANSPOSES = [(False, False), (True, False), (False, True), (True, True)]
MIDDLE = {"MacroTile": (64, 64), "DepthU": 32, "NumWarps": 4, "NumStages": 3, "LoadPath": "Pointer"}
SCHEDULES = {
    "data-parallel": {"WorkGroupMapping": 4},
    "persistent": {"Schedule": "Persistent", "EpilogueSubtile": 2},
    "flattened": {"Schedule": "Persistent", "FlattenTiles": True},
    "split-K": {"Schedule": "SplitK", "GlobalSplitU": 4},
    "split-K that fills the device": {"Schedule": "FillK"},
    "stream-K": {"Schedule": "StreamK", "StreamKGrid": 132},
    "stream-K, a wave more": {"Schedule": "StreamK", "StreamKGrid": 17, "StreamKFullTiles": 1},
}
EPILOGUE_SCHEDULES = ("data-parallel", "split-K", "stream-K")
"""Of which each has its own way to the epilogue."""
TMA = {"LoadPath": "TMA"}
PATHS = ({}, TMA)
INTEGERS_OR_NOT = ("s", "i8")
SPLITS = (1, 5)
TYPES = [
    ("s", {}, {"InputPrecision": "tf32x3"}),
    ("s", {}, {"InputPrecision": "ieee"}),
    ("s", {"tf32": True}, {"InputPrecision": "tf32"}),
    ("h", {"dest": "s", "activation": "silu"}, {}),
    ("b", {"bias": True, "activation": "gelu"}, {}),
    ("b", {"bias": True, "activation": "relu"}, {"MacroTile": (64, 16), "SwapOperands": False}),
    ("f8", {"scaled": True, "bias": True}, {"DepthU": 64}),
    ("b8", {"dest": "h"}, {"DepthU": 128}),
    ("i8", {"bias": True, "activation": "relu"}, {"DepthU": 64}),
    ("h", {"use_beta": False}, {"StoreVectorWidth": 1}),
]


@cache
def programs(family, config, kind):
    """The programs and what the compiler told, or the first reason why not."""
    kernel, device = KERNELS[family], cuda_device()
    if refused := next(kernel.rejections(config, kind, device.target), None):
        return refused
    binaries = [binary(module, device.target) for module in kernel.modules(config, kind)]
    facts = tuple(fact for binary in binaries for fact in binary.facts)
    if refused := next(kernel.rejections_compiled(config, facts, device.target), None):
        return refused
    return [device.load(binary) for binary in binaries], facts


def wrong(kernel, config, asked):
    """Every check of the problem, as the bench verifies it."""
    made = programs(kernel.name, config, asked.type)
    assert isinstance(made, tuple), made
    target: Target = cuda_device().target
    found: list[object] = []
    for check in OPERATION.checks(asked):
        found += kernel.rejections_for(config, check, target)
        inputs = OPERATION.inputs(check, np.random.default_rng(7))
        case = VerificationCase(OPERATION.operands(check), inputs, OPERATION.reference(check, inputs))
        if not found:
            found += filter(None, [verify(cuda_device(), made[0], kernel.plan(config, check, target, made[1]), case)])
    return found


def problem(kind, *sizes, pad=None):
    """With `pad`, leading dimensions are multiples of 16 and further apart by it."""
    least = [value for _, value in OPERATION.leading(kind, sizes)]
    leading = () if pad is None else tuple(-(-value // 16) * 16 + pad for value in least)
    whole = kind.fields.word("DataType") == "i8"
    return Problem(kind, sizes, leading, Configuration({"alpha": 2.0 if whole else 1.5, "beta": 3.0 if whole else 0.5}))


def config(kernel, kind, *values):
    return configuration(kernel, kind, **{name: value for some in values for name, value in some.items()})


def needs_hopper():
    if cuda_device().target.architecture != "sm_90":
        pytest.skip("needs a GPU of the Hopper generation")


def scheduled(transposes, name, path):
    kind = gemm_type("h", transpose_a=transposes[0], transpose_b=transposes[1], batched=True)
    return config(DENSE, kind, MIDDLE, SCHEDULES[name], path), kind


@pytest.mark.parametrize("path", PATHS, ids=["pointer", "TMA"])
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_every_schedule_is_right_in_every_layout(transposes, name, path):
    if path:
        needs_hopper()
    chosen, kind = scheduled(transposes, name, path)
    for sizes, pad in (((133, 77, 3, 1013), 16), ((1, 1, 1, 200), 0), ((520, 390, 1, 129), 0)):
        assert wrong(DENSE, chosen, problem(kind, *sizes, pad=pad)) == []


def of_type(data_type, more, values, name, path):
    """By the copy engine both contiguous along K, by loads neither."""
    kind = gemm_type(data_type, transpose_a=bool(path), transpose_b=not path, **more)
    return config(DENSE, kind, MIDDLE, SCHEDULES[name], path, values), kind


@pytest.mark.parametrize("name", EPILOGUE_SCHEDULES)
@pytest.mark.parametrize(("data_type", "more", "values"), TYPES)
def test_every_type_and_epilogue_is_right(data_type, more, values, name):
    for path in PATHS:
        if path:
            needs_hopper()
        chosen, kind = of_type(data_type, more, values, name, path)
        assert wrong(DENSE, chosen, problem(kind, 261, 135, 1027, pad=16)) == []


WAYS = [
    {"StorePath": "TMA", "Schedule": "Persistent", "FlattenTiles": True, **TMA},
    {"StorePath": "TMA", "EpilogueSubtile": 2, "SwapOperands": False, **TMA},
    {"MacroTile": (128, 256), "NumWarps": 8, "DepthU": 64, "StoreVectorWidth": 8, "Schedule": "Persistent", **TMA},
    {"GlobalReadVectorWidth": 8, "StoreVectorWidth": 8},
]


def brought(values):
    kind = gemm_type("b", transpose_a=True, transpose_b=False, bias=True)
    return config(DENSE, kind, MIDDLE, values), kind


@pytest.mark.parametrize("values", WAYS, ids=str)
def test_the_way_of_loads_and_stores_does_not_change_what_is_computed(values):
    needs_hopper()
    chosen, kind = brought(values)
    assert wrong(DENSE, chosen, problem(kind, 648, 390, 1032, pad=16)) == []


def biased(data_type, name):
    kind = gemm_type(data_type, bias=True)
    return config(DENSE, kind, MIDDLE, SCHEDULES[name]), kind


def test_sums_over_nothing_are_beta_c():
    for name, data_type in itertools.product(SCHEDULES, INTEGERS_OR_NOT):
        if not name.startswith("split-K"):  # K is too short to be split
            chosen, kind = biased(data_type, name)
            assert wrong(DENSE, chosen, problem(kind, 70, 65, 0)) == []


def of_vectors(data_type, more, along, transposes, splits):
    kind = gemm_type(data_type, transpose_a=transposes[0], transpose_b=transposes[1], batched=True, **more)
    return config(GEMV, kind, {"GemvAlong": along, "GlobalSplitU": splits, "NumWarps": 4}), kind


@pytest.mark.parametrize("along", ["M", "N"])
@pytest.mark.parametrize(("data_type", "more", "values"), TYPES)
def test_a_matrix_times_a_vector_is_right(data_type, more, values, along):
    for transposes, splits in itertools.product(TRANSPOSES, SPLITS):
        chosen, kind = of_vectors(data_type, more, along, transposes, splits)
        sizes = (1037, 1, 2, 2049) if along == "M" else (1, 1037, 2, 2049)
        assert wrong(GEMV, chosen, problem(kind, *sizes, pad=16)) == []


def drawn(random):
    data_type, more, values = TYPES[random.integers(len(TYPES))]
    kind = gemm_type(data_type, transpose_a=bool(random.integers(2)), transpose_b=bool(random.integers(2)), **more)
    shape = {
        "MacroTile": tuple(int(2 ** random.integers(4, 8)) for _ in range(2)),
        "SwapOperands": bool(random.integers(2)),
        "EpilogueSubtile": int(2 ** random.integers(2)),
        "WorkGroupMapping": int(random.integers(1, 9)),
    }
    schedule = SCHEDULES[str(random.choice(list(SCHEDULES)))]
    return config(DENSE, kind, MIDDLE, values, schedule, shape), kind


@cache
def drawings():
    random = np.random.default_rng(11)
    return [drawn(random) for _ in range(40)]


@pytest.mark.slow
def test_random_configurations_are_rejected_or_right():
    """40 configurations, 12 random problems each; odd sizes and strides."""
    random = np.random.default_rng(12)
    ran = 0
    for chosen, kind in drawings():
        if not isinstance(programs(DENSE.name, chosen, kind), tuple):
            continue
        for _ in range(12):
            sizes = [int(2 ** random.uniform(0, 10.5)) for _ in range(3)]
            asked = problem(kind, *sizes, pad=int(random.integers(3)) or None)
            if not list(DENSE.rejections_for(chosen, asked, cuda_device().target)):
                ran += 1
                assert wrong(DENSE, chosen, asked) == [], (chosen, asked)
    assert ran > 200


def everything():
    """What the tests above compile, in their order."""
    product = itertools.product
    yield from (scheduled(*case) for case in product(TRANSPOSES, SCHEDULES, PATHS))
    yield from (of_type(*kind, name, path) for kind, name, path in product(TYPES, EPILOGUE_SCHEDULES, PATHS))
    yield from map(brought, WAYS)
    yield from (biased(*case) for case in product(INTEGERS_OR_NOT, SCHEDULES))
    for (data_type, more, _), *rest in product(TYPES, "MN", TRANSPOSES, SPLITS):
        yield of_vectors(data_type, more, *rest)
    yield from drawings()


@pytest.fixture(scope="module")
def compilers():
    toolchain("Triton")
    target = cuda_device().target
    families = [GEMV if "GemvAlong" in chosen else DENSE for chosen, _ in everything()]
    modules = [
        module
        for kernel, (chosen, kind) in zip(families, everything(), strict=True)
        if not any(kernel.rejections(chosen, kind, target))
        for module in kernel.modules(chosen, kind)
    ]
    with ahead(modules, target):
        yield


# --- the same bits each time, and no hang ----------------------------------------------------------------------------


def long_k(name):
    """Few tiles and a long K, so that all tiles are shared."""
    kind = gemm_type("h", transpose_a=True, transpose_b=False)
    chosen, asked = config(DENSE, kind, MIDDLE, SCHEDULES[name]), problem(kind, 500, 333, 8111)
    loaded, facts = programs(DENSE.name, chosen, kind)
    return loaded, DENSE.plan(chosen, asked, cuda_device().target, facts), asked


@pytest.mark.parametrize("name", ["split-K", "stream-K", "stream-K, a wave more"])
def test_results_repeat_bit_by_bit_beside_other_work(name):
    with running(long_k(name), long_k("data-parallel")) as (asked, other):
        repeats_beside(asked, other)


@pytest.mark.parametrize("streams", [1, 2, 8])
def test_stream_k_does_not_hang_on_several_streams(streams):
    """Together they want more than fits at once; the test's time limit is what a hang runs into."""
    with running(*[long_k("stream-K")] * streams) as all_:
        for _ in range(200):
            for run in all_:
                run.prepared.enqueue()
        results = {run.result() for run in all_}
    assert len(results) == 1
