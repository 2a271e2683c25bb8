"""The vendor's BLAS as a family: right on the host's CPU whatever the layout, and cuBLAS asked for what was meant."""

from __future__ import annotations

import ctypes
import gc
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

from cuda_runner import H200, cuda_device, wrong_on_gpu
from opencl_runner import opencl_device, programs, run, verify
from tunesmith.bench import Bench, Bound, Job, Policy
from tunesmith.devices import LaunchError, _cublas
from tunesmith.devices._cublas import CuBlas, gemm_arguments
from tunesmith.devices._host_blas import HostBlas
from tunesmith.devices.fake import fake_target
from tunesmith.kernels import KERNELS, family_for
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Configuration, GemmCall, Launch, Plan, Problem, Zero
from tunesmith.toolchains import TOOLCHAINS, CompileError
from tunesmith.toolchains.blas import cublas_version, library

FAMILY = KERNELS["VendorBlas"]
CONFIG = FAMILY.space(gemm_type()).defaults
TRANSPOSES = [(False, False), (False, True), (True, False), (True, True)]


def problem(*sizes, kind=None, leading=(), **scalars) -> Problem:
    return Problem(kind or gemm_type("s", batched=True), sizes, leading, Configuration(scalars))


def call(**changes) -> GemmCall:
    """An NT call in a batch of three, with something of everything."""
    kind = gemm_type("s", transpose_b=True, batched=True)
    made = problem(5, 7, 3, 11, kind=kind, leading=(6, 8, 9, 10), alpha=1.5, beta=0.5)
    (step,) = FAMILY.plan(CONFIG, made, H200).steps
    return replace(step, **changes)


# --- the family -----------------------------------------------------------------------------------------------------


def test_a_tuning_file_picks_it_by_its_language():
    assert family_for("GEMM", Configuration({"KernelLanguage": "BLAS"})) is FAMILY


@pytest.mark.parametrize(
    ("target", "data_type", "reasons"),
    [
        (H200, "s", []),
        (H200, "d", []),
        (replace(H200, api="OpenCL", selector="OpenCL:0:0"), "s", ["no BLAS"]),
        (replace(fake_target("CPU"), api="OpenCL"), "d", []),
        (H200, "h", []),
        (replace(fake_target("CPU"), api="OpenCL"), "h", ["data type"]),
        (fake_target("CPU"), "s", ["no BLAS"]),
        (H200, "b", []),
        (H200, "i8", []),
        (H200, "b8", ["data type"]),
        (H200, "f8", ["layout"]),
    ],
    ids=["cuda s", "cuda d", "a gpu's opencl", "a cpu's opencl", "cuda h", "a cpu's h", "fake", "b", "i8", "b8", "f8"],
)
def test_a_device_without_a_blas_is_a_named_rejection(target, data_type, reasons):
    found = [one.reason for one in FAMILY.rejections(CONFIG, gemm_type(data_type), target)]
    assert found == reasons


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [
        (gemm_type("b", bias=True), []),
        (gemm_type("b", bias=True, activation="relu", use_beta=False), []),
        (gemm_type("b", activation="relu"), ["epilogue"]),
        (gemm_type("b", activation="gelu", use_beta=False), ["epilogue"]),
        (gemm_type("f8", transpose_a=True, transpose_b=False, scaled=True, bias=True), []),
        (gemm_type("f8", transpose_a=True, transpose_b=False, scaled=True, bias=True, dest="s"), ["epilogue"]),
    ],
)
def test_what_the_extension_computes_otherwise_is_a_named_rejection(kind, reasons):
    """It adds C before the activation, where we add it after; its gelu is an approximation."""
    assert [one.reason for one in FAMILY.rejections(CONFIG, kind, H200)] == reasons
    on_host = [one.reason for one in FAMILY.rejections(CONFIG, kind, replace(fake_target("CPU"), api="OpenCL"))]
    assert "epilogue" in on_host


def test_int8_needs_leading_dimensions_in_fours():
    kind = gemm_type("i8", transpose_a=True, transpose_b=False)
    assert [one.reason for one in FAMILY.rejections_for(CONFIG, problem(7, 5, 6, kind=kind), H200)] == ["alignment"]
    assert not list(FAMILY.rejections_for(CONFIG, problem(7, 5, 8, kind=kind), H200))


def test_an_interleaved_batch_is_none_that_blas_takes():
    kind = gemm_type("s", batched=True, interleaved=True)
    assert [one.reason for one in FAMILY.rejections(CONFIG, kind, H200)] == ["batch layout"]


def test_too_much_for_one_allocation_is_a_named_rejection():
    small = replace(fake_target("CPU"), api="OpenCL")
    reasons = [one.reason for one in FAMILY.rejections_for(CONFIG, problem(1 << 14, 8, 1, 1 << 14), small)]
    assert reasons == ["maximum allocation"]


def test_nothing_to_compute_is_nothing_to_call():
    assert FAMILY.plan(CONFIG, problem(0, 5, 2, 3), H200) == Plan(())


# --- the host's BLAS ------------------------------------------------------------------------------------------------


@pytest.mark.opencl
@pytest.mark.parametrize("data_type", ["s", "d"])
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_the_hosts_blas_is_right_in_all_layouts(transposes, data_type):
    """Batch, alpha, beta, leading dimensions larger than needed, odd sizes; guards and padding stay as they were."""
    a, b = transposes
    kind = gemm_type(data_type, transpose_a=a, transpose_b=b, batched=True)
    verify(FAMILY, CONFIG, problem(37, 29, 3, 23, kind=kind, leading=(43, 41, 40, 33), alpha=-1.5, beta=0.5))
    verify(FAMILY, CONFIG, problem(37, 29, 1, 23, kind=kind, alpha=1.0, beta=0.0))
    verify(FAMILY, CONFIG, problem(1, 1, 1, 1, kind=kind, beta=2.0))


@pytest.mark.opencl
def test_without_terms_the_hosts_blas_leaves_beta_c():
    made = problem(9, 7, 0, kind=gemm_type(), leading=(9, 9, 9, 7), alpha=2.0, beta=0.5)
    c = np.random.default_rng(0).random(9 * 7, dtype=np.float32)
    nothing = np.zeros(0, np.float32)
    d = run(FAMILY, CONFIG, made, {"A": nothing, "B": nothing, "C": c})
    np.testing.assert_array_equal(d, np.float32(0.5) * c)


@pytest.mark.opencl
def test_the_bench_verifies_and_times_it_like_any_solution(tmp_path):
    """Through the worker process, against a kernel, and interleaved with it."""
    target, made = opencl_device().target, problem(64, 48, 2, 32, alpha=1.0, beta=0.0)

    def job(family) -> Job:
        config = family.space(made.type).defaults

        def bind(facts):
            other = replace(made, scalars=Configuration({"alpha": 2.0, "beta": 1.5}))
            checks = tuple((one, family.plan(config, one, target)) for one in (made, other))
            return Bound(family.plan(config, made, target), checks)

        probe = made, family.plan(config, made, target)
        return Job(family.name, family.modules(config, made.type), made, probe, bind)

    jobs = [job(FAMILY), job(KERNELS["TiledGemm"])]
    policy = Policy(sampling_seconds=0.02, warm_up_seconds=0.01, confirm_blocks=6)
    with Bench(target, policy, tmp_path) as bench:
        measured = {one.key: measurement for one, measurement in bench.run([jobs], racing=False)}
        together = bench.interleave(jobs)
    assert [one.outcome.value for one in (*measured.values(), *together)] == ["ok"] * 4
    assert all(1e-8 < one.estimate.seconds < 1.0 for one in measured.values())


@pytest.mark.opencl
def test_steps_of_the_device_and_calls_of_the_host_do_not_mix():
    device, made = opencl_device(), problem(4, 4, 1, 4)
    (step,) = FAMILY.plan(CONFIG, made, device.target).steps
    with pytest.raises(LaunchError) as raised:
        device.prepare(Plan((step, Zero("D", 0, 4))), programs(FAMILY, CONFIG, made.type, device.target), {}, None)
    assert raised.value.reason == "invalid plan"


def test_a_data_type_that_blas_does_not_have_is_a_launch_error():
    with pytest.raises(LaunchError) as raised:
        HostBlas({}).gemm(call(dtype="float16"), dict.fromkeys("ABCD", 1))
    assert raised.value.reason == "data type"


def test_its_version_names_library_machine_and_threads():
    """All that its speed depends on, so that a measurement with other threads is another one."""
    said = library(replace(fake_target("CPU"), api="OpenCL")).version
    assert " of SciPy " in said
    assert "threads" in said or "BLAS" in said


def test_a_device_without_a_blas_does_not_compile_one():
    (module,) = FAMILY.modules(CONFIG, gemm_type())
    with pytest.raises(CompileError) as raised:
        TOOLCHAINS["BLAS"].compile(module, fake_target())
    assert raised.value.reason == "no library"
    with pytest.raises(CompileError) as raised:
        TOOLCHAINS["BLAS"].compile(replace(module, entries=("trsm",)), fake_target())
    assert raised.value.reason == "no such entry"


# --- cuBLAS ---------------------------------------------------------------------------------------------------------

ADDRESSES = {"A": 0xA000, "B": 0xB000, "C": 0xC000, "D": 0xD000}


@dataclass
class FakeCuBlas:
    """Stands in for the loaded library: keeps what it is called with, and answers with `status`."""

    status: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)

    def __getattr__(self, name: str):
        def called(*arguments: object) -> int:
            self.calls.append((name, tuple(map(plain, arguments))))
            return self.status.get(name, 0)

        return called

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def plain(argument: object) -> object:
    """What a ctypes argument holds; for one by reference, what it refers to."""
    held = getattr(argument, "_obj", argument)
    return getattr(held, "value", held)


def test_a_batch_goes_by_strides_in_the_order_of_cublas():
    """cublasGemmStridedBatchedEx(transa, transb, m, n, k, alpha, A, type, lda, stride, B, ..., beta, C, ..., batch,
    compute type, algorithm), without the handle."""
    name, arguments = gemm_arguments(call(), ADDRESSES)
    assert name == "cublasGemmStridedBatchedEx"
    assert [plain(one) for one in arguments] == [
        *(0, 1, 5, 7, 11, 1.5),
        *(0xA000, 0, 9, 9 * 11),
        *(0xB000, 0, 10, 10 * 11),
        0.5,
        *(0xD000, 0, 6, 6 * 7),
        *(3, 68, -1),
    ]
    assert [type(one) for one in arguments if isinstance(one, ctypes.c_longlong)] == [ctypes.c_longlong] * 3


def test_one_matrix_goes_without_strides():
    name, arguments = gemm_arguments(call(batch=1, beta=0.0), ADDRESSES)
    assert name == "cublasGemmEx"
    held = [plain(one) for one in arguments]
    assert held == [0, 1, 5, 7, 11, 1.5, 0xA000, 0, 9, 0xB000, 0, 10, 0.0, 0xD000, 0, 6, 68, -1]


@pytest.mark.parametrize(
    ("types", "data", "compute", "scalar"),
    [
        (("float32", "float32"), (0, 0), 68, ctypes.c_float),
        (("float64", "float64"), (1, 1), 70, ctypes.c_double),
        (("float16", "float16"), (2, 2), 68, ctypes.c_float),
        (("bfloat16", "float32"), (14, 0), 68, ctypes.c_float),
        (("int8", "int32"), (3, 10), 72, ctypes.c_int),
    ],
)
def test_sums_and_scalars_have_the_type_that_cublas_wants(types, data, compute, scalar):
    dtype, dest = types
    _, arguments = gemm_arguments(call(dtype=dtype, dest=dest, batch=1), ADDRESSES)
    assert [plain(arguments[place]) for place in (7, 10, 14)] == [data[0], data[0], data[1]]
    assert plain(arguments[-2]) == compute
    assert isinstance(arguments[5]._obj, scalar)
    assert isinstance(arguments[12]._obj, scalar)


def test_tf32_is_asked_for_only_where_it_is_allowed():
    computes = [plain(gemm_arguments(call(tf32=allowed), ADDRESSES)[1][-2]) for allowed in (False, True)]
    assert computes == [68, 77]


def test_the_handle_is_made_once_and_follows_the_stream():
    """Strict precision is asked for; a call on another stream sets it anew, one on the same does not."""
    fake = FakeCuBlas()
    blas = CuBlas(fake)
    first, second = (blas.gemm(call(beta=0.0), ADDRESSES, stream) for stream in (11, 12))
    assert fake.calls == []
    for enqueue in (first, first, second):
        enqueue()
    gemm = "cublasGemmStridedBatchedEx"
    assert fake.names == [
        *("cublasCreate_v2", "cublasSetMathMode", "cublasSetStream_v2", gemm),
        gemm,
        *("cublasSetStream_v2", gemm),
    ]
    assert fake.calls[1][1][1] == 0
    assert [arguments[1] for name, arguments in fake.calls if name == "cublasSetStream_v2"] == [11, 12]


def test_with_beta_c_is_copied_first_and_its_padding_is_not(monkeypatch):
    """Rows of M elements, at the leading dimensions of C and D; N columns of each matrix."""
    copies = []
    memory = SimpleNamespace(CU_MEMORYTYPE_DEVICE="device")
    fake_driver = SimpleNamespace(CUDA_MEMCPY2D=SimpleNamespace, CUmemorytype=memory)
    monkeypatch.setattr(_cublas, "bindings", lambda: fake_driver)
    monkeypatch.setattr(_cublas, "call", lambda name, made, stream: copies.append((name, vars(made), stream)))
    fake = FakeCuBlas()
    CuBlas(fake).gemm(call(), ADDRESSES, 11)()
    ((name, made, stream),) = copies
    assert (name, stream) == ("cuMemcpy2DAsync", 11)
    assert (made["srcDevice"], made["srcPitch"]) == (0xC000, 8 * 4)
    assert (made["dstDevice"], made["dstPitch"]) == (0xD000, 6 * 4)
    assert (made["WidthInBytes"], made["Height"]) == (5 * 4, 7 * 3)
    CuBlas(fake).gemm(call(), ADDRESSES | {"C": ADDRESSES["D"]}, 11)()
    CuBlas(fake).gemm(call(beta=0.0), ADDRESSES, 11)()
    assert len(copies) == 1


@pytest.mark.parametrize(
    ("status", "reason", "poisoned"),
    [(7, "invalid value", False), (15, "not supported", False), (13, "execution failed", True), (99, "unknown", True)],
)
def test_a_refusal_is_a_launch_error(status, reason, poisoned):
    enqueue = CuBlas(FakeCuBlas({"cublasGemmStridedBatchedEx": status})).gemm(call(beta=0.0), ADDRESSES, 1)
    with pytest.raises(LaunchError) as raised:
        enqueue()
    assert (raised.value.reason, raised.value.poisoned) == (reason, poisoned)


def test_equal_calls_share_whether_they_ran():
    """Equal calls launch the same kernels, so what ran once need not be waited for again."""
    blas = CuBlas(FakeCuBlas())
    assert blas.use(call()) is blas.use(call())
    assert blas.use(call()) is not blas.use(call(m=6))


def test_the_version_is_the_librarys_own():
    class Versioned:
        @staticmethod
        def cublasGetProperty(part, number):  # noqa: N802  (the library's name)
            number._obj.value = (13, 1, 4)[part]
            return 0

    assert cublas_version(Versioned()) == (13, 1, 4)
    with pytest.raises(LookupError, match="status 1"):
        cublas_version(FakeCuBlas({"cublasGetProperty": 1}))


# --- cuBLASLt -------------------------------------------------------------------------------------------------------

EXTENDED = ADDRESSES | {"Bias": 0xE008, "ScaleA": 0xF000, "ScaleB": 0xF100, "": 0x10000}


@dataclass
class FakeLt(FakeCuBlas):
    """Descriptors are numbered; the heuristic finds as many algorithms as `found`, the one of 77s first."""

    found: int = 1
    alive: list[int] = field(default_factory=list)

    def __getattr__(self, name: str):
        def called(*arguments: object) -> int:
            self.calls.append((name, tuple(map(plain, arguments))))
            if name.endswith("Create"):
                arguments[0]._obj.value = len(self.alive) + 1
                self.alive.append(len(self.alive) + 1)
            if name.endswith("Destroy"):
                self.alive[arguments[0].value - 1] = 0
            if name == "cublasLtMatmulAlgoGetHeuristic":
                arguments[-1]._obj.value = self.found
                arguments[-2]._obj.algorithm[:] = [77] * 8
            return self.status.get(name, 0)

        return called

    def said(self, function: str) -> list[tuple[object, ...]]:
        return [arguments for name, arguments in self.calls if name == function]


def extended(**changes) -> GemmCall:
    """A TN call of float8 with everything that it may have."""
    kind = gemm_type("f8", transpose_a=True, transpose_b=False, batched=True, scaled=True, bias=True, activation="relu")
    (step,) = FAMILY.plan(CONFIG, problem(48, 32, 3, 64, kind=kind, alpha=1.5, beta=0.0), H200).steps
    return replace(step, **changes)


def test_the_extension_is_told_transposes_epilogue_bias_and_scales():
    fake = FakeLt()
    CuBlas(None, fake).gemm(extended(), EXTENDED, 11)
    assert [arguments[1:3] for arguments in fake.said("cublasLtMatmulDescSetAttribute")] == [
        *((3, 1), (4, 0), (7, 6)),
        *((8, 0xE008), (17, 0xF000), (18, 0xF100)),
    ]
    assert [arguments[1:] for arguments in fake.said("cublasLtMatrixLayoutCreate")] == [
        *((28, 64, 48, 64), (28, 64, 32, 64)),
        *((14, 48, 32, 48), (14, 48, 32, 48)),
    ]
    batches = [arguments[1:3] for arguments in fake.said("cublasLtMatrixLayoutSetAttribute")]
    assert batches == [(5, 3), (6, 64 * 48), (5, 3), (6, 64 * 32), *[(5, 3), (6, 48 * 32)] * 2]
    assert fake.said("cublasLtMatmulDescCreate")[0][1:] == (68, 0)


def test_the_extension_may_use_the_plans_workspace_and_knows_how_addresses_lie():
    fake = FakeLt()
    step = extended()
    CuBlas(None, fake).gemm(step, EXTENDED | {"A": 0xA010}, 11)
    assert [arguments[1:3] for arguments in fake.said("cublasLtMatmulPreferenceSetAttribute")] == [
        *((1, 32 << 20), (5, 16), (6, 256), (7, 256), (8, 256)),
    ]
    assert FAMILY.plan(CONFIG, problem(48, 32, 64, kind=gemm_type("b", bias=True)), H200).workspace_bytes == 32 << 20
    assert step.workspace_bytes == 32 << 20


def test_the_extension_is_called_with_its_first_algorithm_on_the_stream():
    """cublasLtMatmul(handle, operation, alpha, A, layout, B, layout, beta, C, layout, D, layout, algorithm, workspace,
    bytes, stream); without beta D stands for C, and C is not copied."""
    fake = FakeLt()
    blas = CuBlas(None, fake)
    for step, c in ((extended(), 0xD000), (extended(beta=0.5, activation="none"), 0xC000)):
        fake.calls.clear()
        blas.gemm(step, EXTENDED, 11)()
        (arguments,) = fake.said("cublasLtMatmul")
        operands = [arguments[place] for place in (3, 5, 8, 10)]
        assert operands == [0xA000, 0xB000, c, 0xD000]
        assert (arguments[2], arguments[7]) == (1.5, step.beta)
        assert list(arguments[12]) == [77] * 8
        assert arguments[13:] == (0x10000, 32 << 20, 11)


def test_descriptors_live_as_long_as_the_call():
    fake = FakeLt()
    enqueue = CuBlas(None, fake).gemm(extended(), EXTENDED, 11)
    assert sum(map(bool, fake.alive)) == 7, "a handle, an operation, four matrices and a preference"
    del enqueue
    gc.collect()
    assert sum(map(bool, fake.alive)) == 1


def test_a_call_that_the_extension_has_no_algorithm_for_is_a_launch_error():
    with pytest.raises(LaunchError) as raised:
        CuBlas(None, FakeLt(found=0)).gemm(extended(), EXTENDED, 11)
    assert (raised.value.reason, raised.value.poisoned) == ("not supported", False)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "kind",
    [
        gemm_type("b", transpose_b=False, batched=True),
        gemm_type("b", transpose_a=True, transpose_b=False, dest="s"),
        gemm_type("h", dest="s"),
        gemm_type("i8", transpose_a=True, transpose_b=False),
        gemm_type("s", tf32=True),
        gemm_type("b", transpose_a=True, transpose_b=False, bias=True),
        gemm_type("h", bias=True, activation="relu", use_beta=False),
        gemm_type("f8", transpose_a=True, transpose_b=False, scaled=True),
        gemm_type("f8", transpose_a=True, transpose_b=False, scaled=True, bias=True, activation="relu", use_beta=False),
    ],
    ids=lambda kind: kind.name,
)
def test_cublas_is_right_in_every_type_and_epilogue(kind):
    sizes = (48, 32, 3, 64) if "Batch" in kind.indices else (48, 32, 64)
    made = problem(*sizes, kind=kind, alpha=1.0, beta=0.0)
    for one in GemmOperation().checks(made):
        assert wrong_on_gpu(FAMILY, CONFIG, one) == []


@pytest.mark.gpu
@pytest.mark.parametrize("data_type", ["s", "d"])
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_cublas_is_right_in_all_layouts(transposes, data_type):
    a, b = transposes
    kind = gemm_type(data_type, transpose_a=a, transpose_b=b, batched=True)
    padded = problem(37, 29, 3, 23, kind=kind, leading=(43, 41, 40, 33), alpha=-1.5, beta=0.5)
    for made in (padded, problem(37, 29, 1, 23, kind=kind), problem(1, 1, 1, 1, kind=kind, beta=2.0)):
        assert wrong_on_gpu(FAMILY, CONFIG, made) == []


@pytest.mark.gpu
def test_cublas_is_timed_behind_the_gate_as_kernels_are():
    """A thousand calls queue up without a deadlock, and their time grows with their number."""
    device, made = cuda_device(), problem(256, 256, 1, 256)
    plan = FAMILY.plan(CONFIG, made, device.target)
    loaded = [device.load(TOOLCHAINS["BLAS"].compile(one, device.target)) for one in FAMILY.modules(CONFIG, made.type)]
    memory = {name: device.allocate(256 * 256 * 4) for name in "ABCD"}
    prepared = device.prepare(plan, loaded, memory, None)
    device.time([prepared])
    assert prepared.launched
    one, many = (min(device.time([prepared] * count) for _ in range(5)) for count in (10, 1000))
    assert 20 < many / one < 500
    assert not any(isinstance(step, Launch) for step in plan.steps)
    device.release(*memory.values())
