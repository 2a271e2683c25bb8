"""The OpenCL toolchain and the device that loads what it compiled, in one process."""

from __future__ import annotations

import pyopencl as cl
import pytest

from opencl_runner import opencl_device
from tunesmith.records import Module
from tunesmith.toolchains import TOOLCHAINS
from tunesmith.toolchains.opencl import MOST_JUST_BUILT

pytestmark = pytest.mark.opencl


@pytest.fixture
def builds(monkeypatch):
    """The sources that the driver has built, in their order."""
    sources = []

    class Counted(cl.Program):
        def __init__(self, context, source):
            sources.append(source)
            super().__init__(context, source)

    opencl_device()
    monkeypatch.setattr(cl, "Program", Counted)
    return sources


def compiled(number):
    source = f"__kernel void fill(__global int *out) {{ out[get_global_id(0)] = {number}; }}"
    target = opencl_device().target
    return TOOLCHAINS["OpenCL"].compile(Module("OpenCL", source, ("fill",), ()), target)


def test_what_is_loaded_where_it_was_compiled_is_built_once_and_again_for_a_second_program(builds):
    binary = compiled(1)
    first = opencl_device().load(binary)
    assert len(builds) == 1
    second = opencl_device().load(binary)
    assert len(builds) == 2
    assert first.program is not second.program


def test_a_program_of_other_text_is_not_taken_for_it(builds):
    binaries = [compiled(number) for number in (2, 3)]
    for binary, number in zip(binaries, (2, 3), strict=True):
        assert f"= {number};" in opencl_device().load(binary).program.source
    assert len(builds) == 2


def test_few_programs_wait_to_be_loaded(builds):
    binaries = [compiled(number) for number in range(MOST_JUST_BUILT + 1)]
    for binary in binaries[::-1]:
        opencl_device().load(binary)
    assert len(builds) == MOST_JUST_BUILT + 2, "the oldest is built again"
