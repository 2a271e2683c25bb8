"""OpenCL's kernel objects, which hold arguments: plans share them, and each keeps its own buffers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tunesmith.devices import choose, open_device
from tunesmith.devices.opencl import binding
from tunesmith.records import Launch, Module, OperandArgument, Plan, ScalarArgument, UserError
from tunesmith.toolchains import TOOLCHAINS

COUNT = 64
SCALE = """
__kernel void scale(__global float *out, __global const float *in, float by) {
    out[get_global_id(0)] = by * in[get_global_id(0)];
}
"""
pytestmark = pytest.mark.opencl


@pytest.fixture(scope="module")
def opencl():
    try:
        found = choose("OpenCL")
    except UserError as error:
        pytest.skip(f"no usable OpenCL device: {error}")
    live = open_device(found)
    yield live
    live.close()


@pytest.fixture(scope="module")
def scale(opencl):
    return TOOLCHAINS["OpenCL"].compile(Module("OpenCL", SCALE, ("scale",)), opencl.target)


def floats(opencl, values):
    buffer = opencl.allocate(4 * COUNT)
    opencl.write(buffer, values.astype(np.float32).view(np.uint8))
    return buffer


def scaled_by(factor):
    arguments = OperandArgument("out"), OperandArgument("in"), ScalarArgument(factor, "float32")
    return Launch(0, "scale", (4, 1, 1), (16, 1, 1), arguments)


@pytest.mark.parametrize("factors", [(2.0, 5.0), (2.0, 2.0)])
def test_plans_prepared_together_keep_their_own_arguments(opencl, scale, factors):
    """An OpenCL kernel object holds its arguments, and plans with the same launch share one: the second pair."""
    program = opencl.load(scale)
    outs = [opencl.allocate(4 * COUNT) for _ in range(2)]
    sources = [floats(opencl, np.full(COUNT, value)) for value in (1, 3)]
    plans = [
        opencl.prepare(Plan((scaled_by(by),)), [program], {"out": out, "in": source}, None)
        for by, out, source in zip(factors, outs, sources, strict=True)
    ]
    for prepared in (*plans, plans[0]):
        prepared.enqueue()
    opencl.synchronize()
    results = [opencl.read(out, 4 * COUNT).view(np.float32) for out in outs]
    assert [set(result) for result in results] == [{factors[0]}, {3 * factors[1]}]


def test_a_launch_that_is_prepared_again_makes_no_kernel_object(opencl, scale, monkeypatch):
    """PyOpenCL takes 0.1 to 0.4 ms for one, and more for each that a process made before."""
    made, new = [], binding.cl.Kernel
    monkeypatch.setattr(binding.cl, "Kernel", lambda *what: made.append(what) or new(*what))
    program, source, out = opencl.load(scale), floats(opencl, np.ones(COUNT)), opencl.allocate(4 * COUNT)
    for by in (2.0, 3.0) * 40:
        opencl.prepare(Plan((scaled_by(by),)), [program], {"out": out, "in": source}, None).enqueue()
    opencl.synchronize()
    assert len(made) == 2
    assert opencl.read(out, 4).view(np.float32)[0] == 3.0


def test_of_many_launches_the_last_are_kept_and_the_others_still_run(opencl, scale):
    program, source = opencl.load(scale), floats(opencl, np.ones(COUNT))
    outs = [opencl.allocate(4 * COUNT) for _ in range(binding.KEPT_KERNELS + 2)]
    plans = [
        opencl.prepare(Plan((scaled_by(by),)), [program], {"out": out, "in": source}, None)
        for by, out in enumerate(outs, 1)
    ]
    assert len(program._kernels) == binding.KEPT_KERNELS
    for prepared in plans:
        prepared.enqueue()
    opencl.synchronize()
    assert [opencl.read(out, 4).view(np.float32)[0] for out in outs] == list(range(1, len(outs) + 1))


def test_threads_that_share_a_kernel_object_do_not_mix_their_buffers(opencl, scale):
    program = opencl.load(scale)

    def wrong(value):
        source, out = floats(opencl, np.full(COUNT, value)), opencl.allocate(4 * COUNT)
        prepared = opencl.prepare(Plan((scaled_by(2.0),)), [program], {"out": out, "in": source}, None)
        found = []
        for _ in range(100):
            prepared.enqueue()
            found.append(set(opencl.read(out, 4 * COUNT).view(np.float32)))
        return [each for each in found if each != {2.0 * value}]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(wrong, range(1, 5))) == [[]] * 4
