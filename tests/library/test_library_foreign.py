"""`matmul` of other libraries' arrays on a simulated GPU: CUDA array interface, DLPack, streams."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_fakes import WORKSPACE, HostGpu, Rig, every_type, logic
from library_fakes import normal
from random_reference import OnGpu
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import UserError

NN = gemm_type(transpose_b=False)


@pytest.fixture
def rig(monkeypatch):
    monkeypatch.setattr("tunesmith.devices.cuda.device.ordinal_of", lambda address: 0)
    monkeypatch.setattr("tunesmith.devices.cuda.device.Mark", object)
    return Rig(monkeypatch)


def lent(array, **changes):
    return OnGpu(array, strides=array.strides, **changes)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_arrays_are_taken_in_any_layout_with_an_out(rig):
    lib, device = rig.library(*every_type()), rig.device
    for a, b in ((normal(6, 5), normal(5, 7)), (normal(5, 6).T, normal(9, 12)[2:9, 3:8].T)):
        out = lent(np.zeros((6, 7), np.float32))
        assert lib.matmul(lent(a), lent(b), out) is out
        close(out.array, a @ b)
    assert [entry[1] for entry in device.launches] == [1, 1], "CUDA's default stream"


def test_the_stream_is_the_one_given_else_the_one_of_the_interface(rig):
    lib = rig.library(*every_type())
    a, b, out = normal(6, 5), normal(5, 7), lent(np.zeros((6, 7), np.float32))
    lib.matmul(lent(a, stream=5), lent(b), out)
    lib.matmul(lent(a, stream=5), lent(b, stream=6), out, stream=9)
    lib.matmul(lent(a), lent(b), lent(out.array, stream=6))
    warned = [entry[:2] for entry in rig.device.log if entry[0] in ("record", "follow", "launch")]
    waits = [("record", 5), ("follow", 9), ("record", 6), ("follow", 9)]
    assert warned == [("launch", 5), *waits, ("launch", 9), ("launch", 6)]


class Capsule:
    """A NumPy array whose DLPack device is a GPU."""

    def __init__(self, array, versions=True, read_only=False):
        self.array, self.versions, self.streams = array, versions, []
        array.flags.writeable = not read_only

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None, **options):
        self.streams.append(stream)
        if options and not self.versions:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("versions", [True, False])
def test_dlpack_tells_where_an_array_lies_and_its_producer_waits_for_our_stream(rig, versions):
    a, b = Capsule(normal(9, 5)[1:7], versions), Capsule(normal(7, 5).T, versions)
    out = Capsule(np.zeros((6, 7), np.float32), versions)
    rig.library(*every_type()).matmul(a, b, out, stream=9)
    close(out.array, a.array @ b.array)
    assert set(a.streams) == {9}
    rig.library(*every_type()).matmul(a, b, out, stream=0)
    assert a.streams[-1] == 1, "DLPack's name of the default stream"


def test_what_must_not_be_written_is_not(rig):
    a, b, lib = normal(6, 5), normal(5, 7), rig.library(*every_type())
    zeros = np.zeros((6, 7), np.float32)
    with pytest.raises(ValueError, match="must not be written"):
        lib.matmul(lent(a), lent(b), lent(zeros, data=(zeros.ctypes.data, True)))
    with pytest.raises(ValueError, match="must not be written"):
        lib.matmul(Capsule(a), Capsule(b), Capsule(zeros, read_only=True))


def test_a_workspace_is_the_streams_own_and_none_is_made_in_a_capture(rig):
    lib = rig.library(logic(NN, {"Workspace": WORKSPACE}))
    a, b, out = lent(normal(6, 5)), lent(normal(5, 7)), lent(np.zeros((6, 7), np.float32))
    for stream in (5, 6, 5):
        lib.matmul(a, b, out, stream=stream)
    works_in = [entry[3] for entry in rig.device.launches]
    assert works_in[0] == works_in[2] != works_in[1]
    rig.device.captured = {5, 8}
    lib.matmul(a, b, out, stream=5)
    with pytest.raises(UserError, match="captured"):
        lib.matmul(a, b, out, stream=8)
    lib.close()


@pytest.mark.parametrize(
    ("make_arguments", "error", "says"),
    [
        (lambda: {"out": None}, ValueError, "give out"),
        (lambda: {"b": np.zeros((5, 7), np.float32)}, ValueError, "b lies on the host, a on a GPU"),
        (lambda: {"b": lent(normal(5, 14)[:, ::2])}, ValueError, "b would have to be copied.*contiguous"),
        (lambda: {"bias": lent(normal(7))}, UserError, "no logic is for bias.*Bias"),
        (lambda: {"b": lent(normal(5, 7), typestr="<i8")}, TypeError, "b is int64"),
        (lambda: {"b": lent(normal(5, 7), mask=1)}, ValueError, "b is masked"),
    ],
)  # fmt: skip
def test_what_only_a_library_with_operations_could_do_is_refused_with_the_remedy(rig, make_arguments, error, says):
    lib = rig.library(*every_type())
    arguments = {"a": lent(normal(6, 5)), "b": lent(normal(5, 7)), "out": lent(np.zeros((6, 7), np.float32))}
    with pytest.raises(error, match=says):
        lib.matmul(**arguments | make_arguments())


def test_an_out_that_overlaps_and_sums_without_terms_are_refused(rig):
    lib, whole = rig.library(*every_type()), normal(12, 6)
    with pytest.raises(ValueError, match="shares memory"):
        lib.matmul(lent(whole[:6]), lent(whole[6:]), lent(whole[3:9]))
    empty, out = np.zeros((3, 0), np.float32), lent(np.zeros((3, 4), np.float32))
    with pytest.raises(ValueError, match="nothing to add up"):
        lib.matmul(lent(empty), lent(np.zeros((0, 4), np.float32)), out)


def test_arrays_on_two_gpus_are_refused(rig, monkeypatch):
    a, b, out = normal(6, 5), normal(5, 7), np.zeros((6, 7), np.float32)
    monkeypatch.setattr("tunesmith.devices.cuda.device.ordinal_of", lambda address: int(address == b.ctypes.data))
    with pytest.raises(ValueError, match="CUDA:0 and CUDA:1"):
        rig.library(*every_type()).matmul(lent(a), lent(b), lent(out))
    assert isinstance(rig.device, HostGpu)
