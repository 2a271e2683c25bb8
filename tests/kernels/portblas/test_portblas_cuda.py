"""portBLAS's kernels as CUDA C++: run by the host, compiled by NVRTC without a GPU, and verified on one."""

from __future__ import annotations

import ctypes
import itertools
from functools import cache

import numpy as np
import pytest

from compiled_ahead import ahead
from cuda_on_host import host_library, run_on_host, verify_on_host
from cuda_runner import H200, cuda_device, toolchain, unoptimised, wrong_on_gpu
from portblas_kernels import ALGORITHMS, CUDA, SMALL, TRANSPOSES, config, problem, type_for
from tunesmith.kernels.cuda_limits import DECLARED_SHARED_BYTES, REGISTERS_PER_BLOCK
from tunesmith.kernels.gemm.portblas import standalone_source
from tunesmith.kernels.gemm.portblas.algorithms import ALGORITHMS as TABLE
from tunesmith.kernels.gemm.portblas.tiling import ProgramTraits, Tiling
from tunesmith.problems.gemm import GemmOperation
from tunesmith.records import Module

TINY = SMALL | {"WorkItem": (4, 4), "WorkGroup": (2, 4, 1), "CacheLine": 32, "BatchTile": (4, 2)}


def cuda(algorithm="local", **values):
    return config(algorithm, CUDA, **values)


# One thread of the host for each work-item.


def right_on_host(folder, algorithm, data_type, transposes, **values):
    asked = problem(type_for(algorithm, data_type, transposes), 19, 21, 11, 23, pad=3)
    verify_on_host(CUDA, cuda(algorithm, **TINY | values), asked, folder)


@pytest.mark.parametrize(
    ("algorithm", "data_type", "transposes", "values"),
    [
        ("local", "s", "tn", {"DoubleBuffer": True, "PadA": True, "VectorSize": 4}),
        ("non_local", "d", "nt", {"Vectorization": "partial"}),
        ("interleaved", "h", "nn", {}),
    ],
)
def test_the_text_computes_a_gemm(tmp_path, algorithm, data_type, transposes, values):
    right_on_host(tmp_path, algorithm, data_type, transposes, **values)


@pytest.mark.thorough
@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize("data_type", "sdh")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_text_computes_every_gemm(tmp_path, algorithm, data_type, transposes):
    right_on_host(tmp_path, algorithm, data_type, transposes)


def test_a_double_buffer_halves_the_barriers(tmp_path):
    """Five stages: two barriers each, or one. The host's runner adds one for each work-group."""
    asked = problem(type_for("local"), 8, 16, 1, 33, beta=0.0)
    operation, met = GemmOperation(), {}
    for double in (False, True):
        made = cuda(**TINY, DoubleBuffer=double)
        folder = tmp_path / str(double)
        folder.mkdir()
        library = host_library(CUDA.modules(made, asked.type)[0], folder)
        inputs = operation.inputs(asked, np.random.default_rng(0))
        run_on_host(library, CUDA.plan(made, asked, H200), inputs | {"D": np.zeros(8 * 16, np.float32)}, np.zeros(0))
        met[double] = ctypes.c_long.in_dll(library, "barriers").value
    assert met == {False: 2 * 5 + 1, True: 5 + 1}


# NVRTC, where it is installed; it needs no GPU.


@cache
def compiled(made, type_, is_optimised):
    (module,) = CUDA.modules(made, type_)
    taken = module if is_optimised else unoptimised(module)
    return {fact.entry: fact for fact in toolchain("CUDA").compile(taken, H200).facts}


OPTIMISED = (("local", "s"), ("non_local", "d"), ("interleaved", "h"), ("naive", "d"), ("tall_skinny", "s"))
"""Each algorithm and each type."""


@pytest.mark.parametrize("data_type", "sdh")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nvrtc_compiles_without_a_gpu_and_tells_what_was_predicted(algorithm, data_type):
    """None of this depends on how well NVRTC optimises."""
    made, type_ = cuda(algorithm), type_for(algorithm, data_type, "tn")
    facts = compiled(made, type_, (algorithm, data_type) in OPTIMISED)
    assert list(facts) == ["gemm", "reduce"][: 1 + (algorithm == "tall_skinny")]
    assert facts["gemm"].local_bytes == TABLE[algorithm].local_bytes(Tiling.of(made), ProgramTraits.of(type_))
    assert facts["gemm"].max_work_group_size == TABLE[algorithm].items(Tiling.of(made))


@pytest.mark.parametrize(
    ("algorithm", "data_type"),
    [
        pytest.param(*pair, marks=() if pair in OPTIMISED else pytest.mark.thorough)
        for pair in itertools.product(ALGORITHMS, "sdh")
    ],
)
def test_what_nvrtc_makes_of_the_defaults_is_not_rejected(algorithm, data_type):
    """The thorough run adds the other types: their registers differ little, and no rule asks for the type."""
    made, type_ = cuda(algorithm), type_for(algorithm, data_type, "tn")
    facts = compiled(made, type_, True)
    assert not list(CUDA.rejections_compiled(made, list(facts.values()), H200))


def test_local_memory_that_no_source_may_declare_comes_with_the_launch():
    made, type_ = cuda(WorkItem=(8, 8), CacheLine=128, DoubleBuffer=True), type_for("local")
    need = TABLE["local"].local_bytes(Tiling.of(made), ProgramTraits.of(type_))
    (step,) = CUDA.plan(made, problem(type_, 300, 300, 1, 300), H200).steps
    assert step.shared_bytes == need > DECLARED_SHARED_BYTES
    assert compiled(made, type_, False)["gemm"].local_bytes == 0
    (step,) = CUDA.plan(cuda(), problem(type_, 300, 300, 1, 300), H200).steps
    assert step.shared_bytes == 0


@pytest.mark.parametrize(
    "transposes", ["nn", "tt", *(pytest.param(both, marks=pytest.mark.thorough) for both in ("tn", "nt"))]
)
def test_two_work_groups_of_the_largest_blocks_share_a_multiprocessor(transposes):
    """8 x 8 elements for each of 256 work-items, what portBLAS ships for large matrices on NVIDIA: nothing spilled.

    Each operand both ways; the thorough run adds the other pairs of these.
    """
    facts = compiled(cuda(WorkItem=(8, 8), CacheLine=64), type_for("local", "s", transposes), True)
    assert 2 * 256 * facts["gemm"].registers <= REGISTERS_PER_BLOCK
    assert facts["gemm"].spill_bytes == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_standalone_text_compiles_without_options(algorithm):
    """But for one that spares NVRTC to optimise it."""
    text = standalone_source(cuda(algorithm, **TINY), "CUDA")
    entries = tuple(f"gemm_{transposes}" for transposes in TRANSPOSES)
    binary = toolchain("CUDA").compile(unoptimised(Module("CUDA", text, entries)), H200)
    assert [fact.entry for fact in binary.facts] == list(entries)


# On a GPU.


LARGE = {"WorkItem": (8, 8), "WorkGroup": (16, 16, 1)}
OTHERS = [
    ("local", LARGE | {"CacheLine": 128, "DoubleBuffer": True, "PadA": True}),
    ("local", LARGE | {"CacheLine": 64, "VectorSize": 1, "TopTile": (2, 2)}),
    ("local", LARGE | {"CacheLine": 32, "DoubleBuffer": True, "TopTile": (4, 3)}),
    ("local", {"WorkItem": (3, 5), "WorkGroup": (6, 7, 1), "Vectorization": "none"}),
    ("local", {"WorkItem": (8, 8), "WorkGroup": (4, 4, 1), "CacheLine": 128}),
    ("non_local", {"WorkItem": (8, 8), "VectorSize": 8}),
    ("non_local", {"WorkItem": (4, 8), "Vectorization": "partial", "TopTile": (3, 2)}),
    ("interleaved", {"WorkItem": (2, 4), "WorkGroup": (8, 4, 1), "BatchTile": (8, 4), "VectorSize": 2}),
    ("tall_skinny", {"WorkItem": (2, 2), "WorkGroup": (8, 8, 1), "CacheLine": 128}),
    ("naive", {"WorkGroup": (1, 1, 1)}),
]


@pytest.fixture(scope="module")
def programs():
    """Of the tests below."""
    asked = [(*case, {}) for case in itertools.product(ALGORITHMS, "sdh", TRANSPOSES)]
    asked += [(algorithm, "s", transposes, values) for algorithm, values in OTHERS for transposes in TRANSPOSES]
    modules = [
        module
        for algorithm, data_type, transposes, values in asked
        for module in CUDA.modules(cuda(algorithm, **values), type_for(algorithm, data_type, transposes))
    ]
    toolchain("CUDA")
    with ahead(modules, cuda_device().target):
        yield


@pytest.mark.gpu
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize("data_type", "sdh")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_gpu_agrees_with_the_reference(algorithm, data_type, transposes):
    """Edges and padded columns; then whole blocks at aligned addresses."""
    type_ = type_for(algorithm, data_type, transposes)
    assert wrong_on_gpu(CUDA, cuda(algorithm), problem(type_, 131, 67, 11, 45, pad=3)) == []
    assert wrong_on_gpu(CUDA, cuda(algorithm), problem(type_, 128, 64, 16, 64)) == []


@pytest.mark.gpu
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(("algorithm", "values"), OTHERS)
def test_other_configurations_agree_with_the_reference(algorithm, values):
    for transposes in TRANSPOSES:
        type_ = type_for(algorithm, "s", transposes)
        made = cuda(algorithm, **values)
        assert not list(CUDA.rejections(made, type_, H200))
        assert wrong_on_gpu(CUDA, made, problem(type_, 300, 260, 32, 517)) == []


@pytest.mark.gpu
def test_a_long_sum_is_split_and_right():
    type_ = type_for("tall_skinny", "s", "tn")
    assert wrong_on_gpu(CUDA, cuda("tall_skinny"), problem(type_, 24, 40, 1, 20_000)) == []
