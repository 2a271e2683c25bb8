"""`matmul` of arrays on the host: other data types, epilogues after the product, torch tensors, DLPack."""

from __future__ import annotations

import warnings
from math import erf

import numpy as np
import pytest

from gpu_fakes import HostGpu, Rig, every_type
from library_fakes import TARGET, library, normal
from library_fakes import logic as fake_logic
from tunesmith.devices.fake import FakeDevice
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import UserError


@pytest.fixture
def rig(monkeypatch):
    return Rig(monkeypatch)


def close(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=tolerance, atol=tolerance)


ACTIVATIONS = {
    None: lambda x: x,
    "none": lambda x: x,
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * (1 + erf(x / 2**0.5)) / 2,
    "silu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("batch", [0, 3])
def test_an_epilogue_without_a_type_follows_the_product(activation, batch):
    """The expected results follow from the definitions in double precision, with the residual added at the end."""
    lead = (batch,) if batch else ()
    a, b, bias, c = normal(*lead, 6, 5), normal(5, 7), normal(7), normal(*lead, 6, 7)
    wide = 0.5 * (a.astype(float) @ b) + bias
    expected = np.vectorize(ACTIVATIONS[activation])(wide) + c
    with library(fake_logic(gemm_type(batched=True))) as lib, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close(lib.matmul(a, b, bias=bias, activation=activation, alpha=0.5, residual=c), expected)
        assert lib.matmul(a, b, c, bias=bias, activation=activation, alpha=0.5, residual=c) is c
        close(c, expected)


def test_what_follows_is_said_once_and_names_the_type_to_tune():
    a, b = normal(6, 5), normal(5, 7)
    with library(fake_logic(gemm_type(transpose_b=False))) as lib, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for more in ({"bias": normal(7)}, {"bias": normal(7)}, {"activation": "relu"}, {}):
            lib.matmul(a, b, **more)
    named = [str(warning.message) for warning in warned]
    assert len(named) == 2
    assert gemm_type(transpose_b=False, bias=True).name in named[0]
    assert gemm_type(transpose_b=False, activation="relu").name in named[1]
    assert warned[0].filename == __file__


def test_a_silu_of_large_numbers_does_not_overflow():
    a = np.array([[1000.0, -1000.0]], np.float32)
    with library(fake_logic(gemm_type())) as lib, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        close(lib.matmul(a, np.eye(2, dtype=np.float32), activation="silu"), [[1000.0, 0.0]])


def test_without_terms_the_epilogue_is_left():
    bias = normal(4)
    with library(fake_logic(gemm_type())) as lib:
        close(lib.matmul(np.zeros((3, 0), np.float32), np.zeros((0, 4), np.float32), bias=bias), np.tile(bias, (3, 1)))


@pytest.mark.parametrize("fused", [True, False])
def test_half_precision_with_its_bias_in_the_kernel_or_behind_it(rig, fused):
    lib = rig.library(*every_type("b"), *(every_type("b", bias=True) if fused else ()))
    a, b, bias = (normal(*shape).astype("bfloat16") for shape in ((6, 5), (5, 7), (7,)))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = lib.matmul(a, b, bias=bias)
    assert found.dtype.name == "bfloat16"
    close(found, a.astype(float) @ b.astype(float) + bias.astype(float), 2e-2)
    assert len(warned) == (not fused)


def test_scales_are_numbers_on_the_host(rig):
    a, b = (normal(*shape).astype("float8_e5m2") for shape in ((6, 5), (5, 7)))
    found = rig.library(*every_type("b8", dest="s")).matmul(a, b, scale_a=2.0, scale_b=[3.0], out_dtype=np.float32)
    close(found, 6 * (a.astype(float) @ b.astype(float)))
    with pytest.raises(ValueError, match="scale_a has shape"):
        rig.library(*every_type("b8")).matmul(a, b, scale_a=[1.0, 2.0])


def test_tf32_is_not_used_for_numpy(rig):
    with pytest.raises(UserError, match="no logic serves float32"):
        rig.library(*every_type(tf32=True)).matmul(normal(3, 4), normal(4, 5))


# --- torch tensors and DLPack -----------------------------------------------------------------------------------------


class Watched(FakeDevice):
    """Keeps the addresses of wrapped arrays."""

    def __init__(self):
        super().__init__(TARGET)
        self.addresses: set[int] = set()

    def wrap(self, array):
        self.addresses.add(array.ctypes.data)
        return super().wrap(array)


def test_torch_tensors_on_the_host_are_multiplied_where_they_lie():
    torch = pytest.importorskip("torch")
    a, b, out = torch.randn(6, 5), torch.randn(7, 5).T, torch.zeros(6, 7)
    device = Watched()
    types = [gemm_type(transpose_a=x, transpose_b=y) for x in (False, True) for y in (False, True)]
    with library(*map(fake_logic, types), device=device) as lib:
        assert lib.matmul(a, b, out) is out
        assert {a.data_ptr(), b.data_ptr(), out.data_ptr()} <= device.addresses
        close(out, (a.double() @ b.double()).numpy())
        result = lib.matmul(a, b, residual=out)
        assert isinstance(result, torch.Tensor)
        close(result, 2 * out.double().numpy())
        close(lib.matmul(a.numpy(), b, out.numpy()), out.double().numpy())


def test_torchs_types_that_numpy_lacks_come_and_go(rig):
    torch = rig.torch
    a, b = torch.randn(6, 5).bfloat16(), torch.randn(5, 7).bfloat16()
    found = rig.library(*every_type("b")).matmul(a, b)
    assert found.dtype is torch.bfloat16
    close(found.double(), (a.double() @ b.double()).numpy(), 2e-2)
    eight = torch.randn(6, 5).to(torch.float8_e4m3fn)
    wide = rig.library(*every_type("f8", dest="s")).matmul(eight, eight.T, out_dtype=torch.float32)
    close(wide, (eight.double() @ eight.double().T).numpy())


def test_a_tensor_that_autograd_follows_is_refused():
    torch = pytest.importorskip("torch")
    a = torch.randn(3, 3, requires_grad=True)
    with library(fake_logic(gemm_type())) as lib:
        with pytest.raises(UserError, match=r"no gradient.*detach"):
            lib.matmul(a, torch.randn(3, 3))
        with torch.no_grad():
            close(lib.matmul(a, torch.eye(3)), a.double().numpy())


class Lent:
    """An array of a library with DLPack only."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_arrays_by_dlpack_are_read_where_they_lie():
    a, b = normal(6, 5), normal(5, 7)
    device = Watched()
    with library(fake_logic(gemm_type(transpose_b=False)), device=device) as lib:
        found = lib.matmul(Lent(a), Lent(b), activation="none")
    close(found, a.astype(float) @ b)
    assert {a.ctypes.data, b.ctypes.data} <= device.addresses


def test_memory_of_two_devices_is_refused(rig):
    lib, a = rig.library(*every_type()), normal(3, 3)
    on_gpu = rig.normal(3, 3)
    interface = {"shape": (3, 3), "typestr": "<f4", "data": (64, False), "version": 3}
    array = type("Array", (), {"__cuda_array_interface__": interface})()
    for other in (on_gpu, array):
        with pytest.raises(ValueError, match=r"b lies on .*a.* on the host"):
            lib.matmul(a, other)
    with pytest.raises(ValueError, match="stream goes with memory of a GPU"):
        lib.matmul(a, a, stream=3)


def test_a_library_that_works_on_a_gpu_takes_the_hosts_arrays_there(rig):
    """Both kinds of memory use the same logic and the same launcher, so nothing is compiled twice."""
    lib, a, b = rig.library(*every_type()), normal(6, 5), normal(5, 7)
    close(lib.matmul(a, b), a.astype(float) @ b)
    lib.matmul(rig.normal(6, 5), rig.normal(5, 7))
    assert isinstance(rig.device, HostGpu)
    assert len([entry for entry in rig.device.log if entry[0] == "load"]) == 1
