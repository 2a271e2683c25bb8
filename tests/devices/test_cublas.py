"""cuBLAS gets the right call on the right stream, and on a GPU its result is right."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from cublas_fakes import ADDRESSES, CONFIG, FAMILY, TRANSPOSES, FakeCuBlas, bound, call, plain, problem
from cuda_runner import cuda_device, wrong_on_gpu
from tunesmith.devices import LaunchError
from tunesmith.devices.cuda import cublas
from tunesmith.devices.cuda.cublas import CuBlas, gemm_arguments
from tunesmith.devices.gemm_call import GemmCall
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Launch
from tunesmith.toolchains import TOOLCHAINS
from tunesmith.toolchains import blas as toolchain
from tunesmith.toolchains.blas import cublas_version

POINTERS = {name: ctypes.c_void_p(address) for name, address in ADDRESSES.items()}


def test_a_batch_goes_by_strides_in_the_order_of_cublas():
    """cublasGemmStridedBatchedEx(transa, transb, m, n, k, alpha, A, type, lda, stride, B, ..., beta, C, ..., batch,
    compute type, algorithm), without the handle."""
    name, arguments = gemm_arguments(GemmCall.of(call()), POINTERS)
    assert name == "cublasGemmStridedBatchedEx"
    assert [plain(argument) for argument in arguments] == [
        *(0, 1, 5, 7, 11, 1.5),
        *(0xA000, 0, 9, 9 * 11),
        *(0xB000, 0, 10, 10 * 11),
        0.5,
        *(0xD000, 0, 6, 6 * 7),
        *(3, 68, -1),
    ]
    assert sum(isinstance(argument, ctypes.c_longlong) for argument in arguments) == 3


def test_strides_of_a_batch_may_be_any_also_none():
    """A matrix for the whole batch has the stride 0. Heads that lie side by side have a stride within a row."""
    _, arguments = gemm_arguments(GemmCall.of(call(stride_a=0, stride_b=7, stride_d=2**40)), POINTERS)
    held = [plain(argument) for argument in arguments]
    assert (held[9], held[13], held[18]) == (0, 7, 2**40)


def test_one_matrix_goes_without_strides():
    name, arguments = gemm_arguments(GemmCall.of(call(batch=1, beta=0.0)), POINTERS)
    assert name == "cublasGemmEx"
    held = [plain(argument) for argument in arguments]
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
    _, arguments = gemm_arguments(GemmCall.of(call(dtype=dtype, dest=dest, batch=1)), POINTERS)
    assert [plain(arguments[index]) for index in (7, 10, 14)] == [data[0], data[0], data[1]]
    assert plain(arguments[-2]) == compute
    assert isinstance(arguments[5]._obj, scalar)
    assert isinstance(arguments[12]._obj, scalar)


def test_tf32_is_asked_for_only_where_it_is_allowed():
    computes = [plain(gemm_arguments(GemmCall.of(call(tf32=allowed)), POINTERS)[1][-2]) for allowed in (False, True)]
    assert computes == [68, 77]


def test_the_handle_is_made_once_and_follows_the_stream():
    """The handle has strict precision. A call on another stream sets the stream; a call on the same stream does not."""
    fake = FakeCuBlas()
    blas = CuBlas(fake)
    first, second = (bound(blas, call(beta=0.0), ADDRESSES, stream) for stream in (11, 12))
    assert fake.calls == []
    for enqueue in (first, first, second):
        enqueue()
    gemm = "cublasGemmStridedBatchedEx"
    assert fake.names == [
        *("cublasCreate_v2", "cublasSetMathMode", "cublasSetStream_v2", gemm),
        gemm,
        *("cublasSetStream_v2", gemm),
    ]
    assert fake.calls[1][1][1] == 16
    assert [arguments[1] for name, arguments in fake.calls if name == "cublasSetStream_v2"] == [11, 12]


@pytest.mark.parametrize(("dtype", "mode"), [("bfloat16", 0), ("float16", 0), ("float32", 16), ("float64", 16)])
def test_loose_sums_have_a_handle_of_their_own_and_float32_has_none(dtype, mode):
    fake = FakeCuBlas()
    blas = CuBlas(fake)
    kinds = {"dtype": dtype, "dest": dtype, "beta": 0.0}
    strict, loose = (bound(blas, call(**kinds, **more), ADDRESSES, stream=11) for more in ({}, {"loose_sums": True}))
    for enqueue in (strict, loose, strict, loose):
        enqueue()
    modes = [arguments[1] for name, arguments in fake.calls if name == "cublasSetMathMode"]
    assert modes == ([16, 0] if mode == 0 else [16])
    assert fake.names.count("cublasSetStream_v2") == len(modes), "each handle keeps its stream"


def test_compiled_launches_with_loose_sums_have_a_handle_of_their_own(monkeypatch):
    monkeypatch.setattr(cublas, "address_of", lambda function: 4242)
    fake = FakeCuBlas()
    blas = CuBlas(fake)
    slots = {name: number for number, name in enumerate("ABD")}
    for more in ({}, {"loose_sums": True}, {"loose_sums": True}):
        steps = blas.native(call(dtype="bfloat16", dest="bfloat16", beta=0.0, **more), slots)
        assert [step.name for step in steps] == ["cublasSetStream_v2", "cublasGemmStridedBatchedEx"]
    assert [arguments[1] for name, arguments in fake.calls if name == "cublasSetMathMode"] == [16, 0]


def test_with_beta_c_is_copied_first_and_its_padding_is_not(monkeypatch):
    """The copy has rows of M elements, at the leading dimensions of C and D, and N columns of each matrix."""
    copies = []
    memory = SimpleNamespace(CU_MEMORYTYPE_DEVICE="device")
    fake_driver = SimpleNamespace(CUDA_MEMCPY2D=SimpleNamespace, CUmemorytype=memory)
    monkeypatch.setattr(cublas, "bindings", lambda: fake_driver)
    monkeypatch.setattr(cublas, "call", lambda name, copy, stream: copies.append((name, vars(copy), stream)))
    fake = FakeCuBlas()
    bound(CuBlas(fake), call(), ADDRESSES, 11)()
    ((name, copy, stream),) = copies
    assert (name, stream) == ("cuMemcpy2DAsync", 11)
    assert (copy["srcDevice"], copy["srcPitch"]) == (0xC000, 8 * 4)
    assert (copy["dstDevice"], copy["dstPitch"]) == (0xD000, 6 * 4)
    assert (copy["WidthInBytes"], copy["Height"]) == (5 * 4, 7 * 3)
    bound(CuBlas(fake), call(), ADDRESSES | {"C": ADDRESSES["D"]}, 11)()
    bound(CuBlas(fake), call(beta=0.0), ADDRESSES, 11)()
    assert len(copies) == 1
    repeated = CuBlas(fake).repeated(call(), ADDRESSES)
    for c in (ADDRESSES["C"], ADDRESSES["D"], 0xC800):
        repeated(11, ADDRESSES | {"C": c})
    assert [vars_then["srcDevice"] for _, vars_then, _ in copies[1:]] == [0xC000, 0xC800]


@pytest.mark.parametrize("strides", [{"stride_c": 100}, {"stride_d": 100}, {"stride_c": 100, "stride_d": 90}])
def test_where_matrices_do_not_follow_one_another_c_is_copied_matrix_by_matrix(monkeypatch, strides):
    copies = []
    memory = SimpleNamespace(CU_MEMORYTYPE_DEVICE="device")
    fake_driver = SimpleNamespace(CUDA_MEMCPY2D=SimpleNamespace, CUmemorytype=memory)
    monkeypatch.setattr(cublas, "bindings", lambda: fake_driver)
    monkeypatch.setattr(cublas, "call", lambda name, copy, stream: copies.append(dict(vars(copy))))
    bound(CuBlas(FakeCuBlas()), call(**strides), ADDRESSES, 11)()
    c, d = strides.get("stride_c", 8 * 7), strides.get("stride_d", 6 * 7)
    assert [(copy["srcDevice"], copy["dstDevice"], copy["Height"]) for copy in copies] == [
        (0xC000 + 4 * index * c, 0xD000 + 4 * index * d, 7) for index in range(3)
    ]


@pytest.mark.parametrize(
    ("status", "reason", "poisoned"),
    [(7, "invalid value", False), (15, "not supported", False), (13, "execution failed", True), (99, "unknown", True)],
)
def test_a_refusal_is_a_launch_error(status, reason, poisoned):
    enqueue = bound(CuBlas(FakeCuBlas({"cublasGemmStridedBatchedEx": status})), call(beta=0.0), ADDRESSES, 1)
    with pytest.raises(LaunchError) as raised:
        enqueue()
    assert (raised.value.reason, raised.value.poisoned) == (reason, poisoned)


def test_the_strict_sums_are_in_the_compilers_version_and_so_in_every_key(monkeypatch):
    """Measurements without strict sums must not count for the calls of today."""
    monkeypatch.setattr(toolchain, "_cublas", lambda: ("libcublas.so", None))
    monkeypatch.setattr(toolchain, "cublas_version", lambda loaded: (13, 1, 0))
    assert toolchain.cublas_library.__wrapped__().version == "cuBLAS 13.1.0, strict sums"


def test_calls_that_were_bound_to_different_memory_keep_apart():
    fake = FakeCuBlas()
    blas = CuBlas(fake)
    first, second = (bound(blas, call(beta=0.0), ADDRESSES | {"A": a}, 11) for a in (0xA000, 0xA800))
    for enqueue in (first, second, first):
        enqueue()
    products = [arguments for name, arguments in fake.calls if name == "cublasGemmStridedBatchedEx"]
    assert [arguments[7] for arguments in products] == [0xA000, 0xA800, 0xA000]


def test_equal_calls_share_whether_they_ran():
    """Equal calls launch the same kernels, so their code is loaded once any of them ran."""
    blas = CuBlas(FakeCuBlas())
    assert blas.call_state(call()) is blas.call_state(call())
    assert blas.call_state(call()) is not blas.call_state(call(m=6))


@pytest.mark.parametrize("beside", [True, False])
def test_the_extension_is_loaded_from_beside_the_library_or_by_its_name(monkeypatch, tmp_path, beside):
    loaded = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name, *mode: loaded.append(name))
    location, sibling = tmp_path / "libcublas.so.13", tmp_path / "libcublasLt.so.13"
    if beside:
        sibling.touch()
    CuBlas.load(str(location))
    assert loaded == [str(sibling) if beside else sibling.name, str(location)]


def test_the_version_is_the_librarys_own():
    class Versioned:
        @staticmethod
        def cublasGetProperty(part, number):  # noqa: N802  (the library's name)
            number._obj.value = (13, 1, 4)[part]
            return 0

    assert cublas_version(Versioned()) == (13, 1, 4)
    with pytest.raises(LookupError, match="status 1"):
        cublas_version(FakeCuBlas({"cublasGetProperty": 1}))


@pytest.mark.gpu
@pytest.mark.parametrize("data_type", ["s", "d"])
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_cublas_is_right_in_all_layouts(transposes, data_type):
    a, b = transposes
    kind = gemm_type(data_type, transpose_a=a, transpose_b=b, batched=True)
    padded = problem(37, 29, 3, 23, kind=kind, leading=(43, 41, 40, 33), alpha=-1.5, beta=0.5)
    for size in (padded, problem(37, 29, 1, 23, kind=kind), problem(1, 1, 1, 1, kind=kind, beta=2.0)):
        assert wrong_on_gpu(FAMILY, CONFIG, size) == []


@pytest.mark.gpu
def test_cublas_is_timed_behind_the_gate_as_kernels_are():
    """A thousand calls queue up without a deadlock, and their time grows with their number."""
    device, size = cuda_device(), problem(256, 256, 1, 256)
    plan = FAMILY.plan(CONFIG, size, device.target)
    modules = FAMILY.modules(CONFIG, size.type)
    loaded = [device.load(TOOLCHAINS["BLAS"].compile(module, device.target)) for module in modules]
    memory = {name: device.allocate(256 * 256 * 4) for name in "ABCD"}
    prepared = device.prepare(plan, loaded, memory, None)
    device.time([prepared])
    assert prepared.launched
    single, many = (min(device.time([prepared] * count) for _ in range(5)) for count in (10, 1000))
    assert 20 < many / single < 500
    assert not any(isinstance(step, Launch) for step in plan.steps)
    device.release(*memory.values())
