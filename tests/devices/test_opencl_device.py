"""OpenCL devices: finding them, trying them out, and carrying out plans on them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cached_programs import launch_on_grid
from forked import run_forked
from tunesmith.devices import (
    FoundDevice,
    LaunchError,
    choice,
    choose,
    discover,
    driver_process,
    environment,
    open_device,
)
from tunesmith.devices.driver_process import DriverProcess
from tunesmith.records import (
    Binary,
    CompiledFacts,
    Launch,
    LocalArgument,
    Module,
    OperandArgument,
    Plan,
    ScalarArgument,
    TensorMapArgument,
    UserError,
    WorkspaceArgument,
    Zero,
)
from tunesmith.toolchains import TOOLCHAINS, CompileError
from tunesmith.toolchains.opencl import parse_nvidia_log

SOURCE = """
__kernel void scale(__global float *out, __global const float *in, float by, int n)
{
    if (get_global_id(0) < n) out[get_global_id(0)] = by * in[get_global_id(0)];
}
__kernel void add(__global float *out, __global const float *in, __local float *staged)
{
    staged[get_local_id(0)] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] += staged[get_local_size(0) - 1 - get_local_id(0)];
}
__kernel void where(__global int *out)
{
    out[get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2))] =
        get_group_id(0) + 10 * get_group_id(1) + 100 * get_group_id(2);
}
__kernel void greedy(__global float *out)
{
    __local float much[1 << 23];
    much[get_local_id(0)] = out[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = much[get_local_size(0) - 1 - get_local_id(0)];
}
"""
MODULE = Module("OpenCL", SOURCE, ("scale", "add", "where"))
OUT, IN, COUNT = OperandArgument("out"), OperandArgument("in"), 64


@pytest.fixture(scope="module")
def device():
    try:
        found = choose("OpenCL")
    except UserError as error:
        pytest.skip(f"no usable OpenCL device: {error}")
    live = open_device(found)
    yield live
    live.close()


@pytest.fixture(scope="module")
def binary(device):
    return TOOLCHAINS["OpenCL"].compile(MODULE, device.target)


def launch(entry, *arguments, groups=4, items=16):
    return Launch(0, entry, (groups, 1, 1), (items, 1, 1), arguments)  # type: ignore[arg-type]


def floats(device, values):
    buffer = device.allocate(values.nbytes)
    device.write(buffer, values.astype(np.float32).view(np.uint8))
    return buffer


def scaled(by):
    return launch("scale", OUT, IN, ScalarArgument(by, "float32"), ScalarArgument(COUNT, "int32"))


@pytest.mark.opencl
class TestPlans:
    def test_a_plan_runs_its_steps_in_order(self, device, binary):
        """The plan scales, sets the first half to zero, then adds the reversed group through local memory."""
        values = np.arange(1, COUNT + 1, dtype=np.float32)
        operands = {"out": device.allocate(4 * COUNT), "in": floats(device, values)}
        steps = (scaled(3.0), Zero("out", 0, 4 * 32), launch("add", OUT, IN, LocalArgument(4 * 16)))
        prepared = device.prepare(Plan(steps), [device.load(binary)], operands, None)
        prepared.enqueue()
        device.synchronize()
        first = np.where(np.arange(COUNT) < 32, 0, 3 * values)
        expected = first + values.reshape(4, 16)[:, ::-1].ravel()
        np.testing.assert_array_equal(device.read(operands["out"], 4 * COUNT).view(np.float32), expected)

    def test_workspace_is_addressed_and_zeroed_at_its_offset(self, device, binary):
        offset = 3 * device.alignment
        workspace = device.allocate(offset + 4 * COUNT)
        device.write(workspace, np.full(offset + 4 * COUNT, 255, np.uint8))
        steps = (
            Zero("", 0, device.alignment),
            launch(
                "scale", WorkspaceArgument(offset), IN, ScalarArgument(2, "float32"), ScalarArgument(COUNT, "int32")
            ),
        )
        operands = {"in": floats(device, np.ones(COUNT))}
        device.prepare(Plan(steps, offset + 4 * COUNT), [device.load(binary)], operands, workspace).enqueue()
        device.synchronize()
        after = device.read(workspace, offset + 4 * COUNT)
        assert not after[: device.alignment].any()
        assert (after[device.alignment : offset] == 255).all()
        assert (after[offset:].view(np.float32) == 2).all()

    def test_the_grid_counts_work_groups_in_three_dimensions(self, device, binary):
        out = device.allocate(4 * 6 * 4 * 4)
        plan = Plan((Launch(0, "where", (2, 2, 4), (3, 2, 1), (OUT,)),))
        device.prepare(plan, [device.load(binary)], {"out": out}, None).enqueue()
        groups = device.read(out, 4 * 6 * 4 * 4).view(np.int32).reshape(4, 4, 6)
        assert groups[3, 3, 5] == 311
        assert groups[2, 1, 2] == 200

    def test_no_execution_takes_no_time(self, device):
        assert device.time([]) == 0.0


@pytest.mark.opencl
class TestMemory:
    def test_memory_may_be_dropped_or_released_while_kernels_still_use_it(self, device, binary):
        """PoCL would end the process, so the device must keep the memory alive."""
        program, source = device.load(binary), floats(device, np.ones(COUNT))
        for _ in range(20):
            operands = {"out": device.allocate(4 * COUNT), "in": source}
            device.prepare(Plan((scaled(2.0),) * 20), [program], operands, None).enqueue()
            del operands
        out = device.allocate(4 * COUNT)
        device.prepare(Plan((scaled(2.0),) * 20), [program], {"out": out, "in": source}, None).enqueue()
        device.release(out)
        device.synchronize()

    def test_wrapping_shares_the_hosts_memory_or_declines(self, device, binary):
        array, read_only = np.zeros(COUNT + 1, np.float32)[1:], np.full(COUNT + 1, 2, np.float32)[1:]
        read_only.flags.writeable = False
        if device.target.kind == "GPU":
            assert device.wrap(array) is None
            return
        operands = {"out": device.wrap(array), "in": device.wrap(read_only)}
        device.prepare(Plan((scaled(4.0),)), [device.load(binary)], operands, None).enqueue()
        device.release(*operands.values())
        assert (array == 8).all()
        assert device.wrap(array[::2]) is None
        assert device.wrap(np.zeros(COUNT * 4 + 1, np.uint8)[1:].view(np.float32)) is None


@pytest.mark.opencl
class TestRefusals:
    def refused(self, device, binary, step):
        operands = {"out": device.allocate(4 * COUNT), "in": floats(device, np.ones(COUNT))}
        with pytest.raises(LaunchError) as caught:
            device.prepare(Plan((step,)), [device.load(binary)], operands, None).enqueue()
        device.synchronize()
        return caught.value

    def test_each_refusal_has_a_constant_reason_and_the_device_goes_on(self, device, binary):
        limit = device.target
        cases = {
            "invalid work-group size": launch("where", OUT, groups=1, items=2 * limit.max_work_group_size),
            "local memory": launch("add", OUT, IN, LocalArgument(limit.local_memory_bytes + 4)),
            "no such entry": launch("missing", OUT),
            "invalid argument": launch("where", TensorMapArgument("out", "float32", (4,), (1,), (4,))),
        }
        assert {reason: self.refused(device, binary, step).reason for reason, step in cases.items()} == {
            reason: reason for reason in cases
        }
        assert not any(self.refused(device, binary, step).poisoned for step in cases.values())

    def test_a_missing_workspace_or_argument_is_refused(self, device, binary):
        for step in (launch("where", WorkspaceArgument()), launch("where"), Zero("", 0, 16), launch("where", OUT, OUT)):
            assert self.refused(device, binary, step).reason == "invalid argument"

    def test_static_local_memory_beyond_the_device_never_reaches_the_driver(self, device):
        """PoCL would end the process at the launch of such a kernel."""
        try:
            greedy = TOOLCHAINS["OpenCL"].compile(Module("OpenCL", SOURCE, ("greedy",)), device.target)
        except CompileError:
            return
        assert self.refused(device, greedy, launch("greedy", OUT)).reason == "local memory"

    def test_a_program_that_does_not_load_is_a_launch_error(self, device):
        payload = json.dumps({"source": "__kernel void f() { x; }", "options": []}).encode()
        with pytest.raises(LaunchError, match="program does not load"):
            device.load(Binary("", "OpenCL", payload, (CompiledFacts("f"),)))


@pytest.mark.opencl
class TestToolchain:
    def test_facts_tell_local_memory_and_largest_work_group(self, device):
        source = """__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void f(__global float *a)
        {
            __local float t[100];
            t[get_local_id(0)] = a[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            a[get_global_id(0)] = t[7 - get_local_id(0)];
        }"""
        (facts,) = TOOLCHAINS["OpenCL"].compile(Module("OpenCL", source, ("f",)), device.target).facts
        assert facts.entry == "f"
        assert facts.local_bytes is not None
        assert facts.local_bytes >= 400
        assert facts.max_work_group_size

    def test_options_reach_the_compiler(self, device):
        source = "#ifndef WANTED\n#error missing\n#endif\n__kernel void f(__global int *a) { a[0] = WANTED; }"
        module = Module("OpenCL", source, ("f",), ("-DWANTED=3",))
        assert TOOLCHAINS["OpenCL"].compile(module, device.target).module == module.digest()
        with pytest.raises(CompileError, match="missing"):
            TOOLCHAINS["OpenCL"].compile(Module("OpenCL", source, ("f",)), device.target)

    def test_a_compile_error_carries_the_compilers_words(self, device):
        with pytest.raises(CompileError) as caught:
            TOOLCHAINS["OpenCL"].compile(
                Module("OpenCL", "__kernel void f() { undeclared = 1; }", ("f",)), device.target
            )
        assert caught.value.reason == "build failed"
        assert "undeclared" in caught.value.log

    def test_an_entry_that_is_not_there_is_a_compile_error(self, device):
        with pytest.raises(CompileError) as caught:
            TOOLCHAINS["OpenCL"].compile(dataclasses.replace(MODULE, entries=("missing",)), device.target)
        assert caught.value.reason == "no such entry"

    def test_the_version_names_the_driver(self, device):
        assert device.target.driver in TOOLCHAINS["OpenCL"].version(device.target)


def test_nvidias_log_tells_registers_and_spills_by_entry():
    log = (
        "ptxas info : 0 bytes gmem\n"
        "ptxas info : Compiling entry function 'first' for 'sm_90'\n"
        "ptxas info : Function properties for first\n"
        "    24 bytes stack frame, 20 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info : Used 255 registers, 400 bytes cmem[0]\n"
        "ptxas info : Compiling entry function 'second' for 'sm_90'\n"
        "ptxas info : Used 10 registers\n"
    )
    assert parse_nvidia_log(log) == {"first": (255, 32), "second": (10, 0)}
    assert parse_nvidia_log("Compilation started") == {}


@pytest.mark.opencl
def test_pocl_reuses_what_another_process_compiled_for_the_same_work_group_and_class_of_grid(
    device, tmp_path, own_programs
):
    """The compile pool relies on this: a worker must not compile again what the pool has launched once."""
    if "pocl" not in device.target.driver.lower():
        pytest.skip("a trait of PoCL")

    own = environment(tmp_path)
    cache = Path(own["POCL_CACHE_DIR"])

    def compiled_by(groups, items, n):
        before = set(cache.rglob("*.so"))
        done = run_forked(launch_on_grid, device.target.selector, groups, items, n, env={**os.environ, **own})
        assert not done.returncode, done.stderr
        return len(set(cache.rglob("*.so")) - before)

    assert compiled_by(2, 16, 32) == 1
    assert compiled_by(100, 16, 1000) == 0
    assert compiled_by(2, 32, 32) == 1
    assert compiled_by(4096, 16, 1000) == 1  # 65,536 work-items: no small grid any more
    assert compiled_by(5000, 16, 32) == 0


@pytest.mark.opencl
class TestChoosing:
    def test_a_device_is_found_by_selector_and_by_part_of_its_name(self, device):
        target = device.target
        assert choose(target.selector) == target
        assert choose(target.name[2:-1].upper(), languages=["OpenCL"]).name == target.name
        assert target in [found.target for found in discover("OpenCL", check=False)]

    def test_the_environment_chooses_where_nobody_else_does(self, device, monkeypatch):
        monkeypatch.setenv("TUNESMITH_DEVICE", device.target.selector)
        assert choose() == device.target
        monkeypatch.setenv("TUNESMITH_DEVICE", "no such thing")
        with pytest.raises(UserError, match=r"^TUNESMITH_DEVICE: .*no such thing.*OpenCL:0:0"):
            choose()

    def test_a_language_that_no_device_runs_leaves_none(self, device):
        there = rf"{re.escape(device.target.name)} \({device.target.selector}\) is there, but runs only OpenCL"
        with pytest.raises(UserError, match=rf"^device: .*{there}.*, and the file needs COBOL; "):
            choose(languages=["COBOL"])

    def test_a_selector_must_be_one(self):
        for wrong in ("OpenCL", "Fortran:0", "OpenCL:77:0", "OpenCL:x"):
            with pytest.raises(UserError):
                open_device(wrong)


ANSWERING = """
import json, os, sys, time
answer = lambda content: os.write(int(sys.argv[1]), json.dumps(content).encode() + b"\\n")
"""
"""The beginning of a program that stands in for the process which loads drivers."""


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("driver", "problem"),
    [
        ("os.abort()", "crashed with signal 6"),
        ("sys.exit('no compiler')", "failed: no compiler"),
        ("time.sleep(60)", "took more than 2 s"),
        ("print('chatter'); answer('computed [0]'); time.sleep(60)", "computed [0]"),
        ("print('chatter'); answer('')", ""),
    ],
)
def test_a_driver_that_crashes_hangs_or_computes_nonsense_is_a_reason_not_an_abort(
    device, monkeypatch, driver, problem
):
    monkeypatch.setattr(driver_process, "COMMAND", (sys.executable, "-c", ANSWERING + driver))
    monkeypatch.setattr(choice, "TRIAL_SECONDS", 2.0)
    monkeypatch.setattr(choice, "_trial_problems", {})
    with DriverProcess() as drivers:
        after = choice.after_trial(FoundDevice(device.target.name, device.target), drivers)
    assert problem in after.problem
    assert after.usable == (not problem)
    assert bool(after.remedy) == bool(problem)


def test_without_a_driver_the_remedy_is_named():
    script = "from tunesmith.devices import discover; print([device.remedy for device in discover('OpenCL')])"
    variables = {**os.environ, "OCL_ICD_VENDORS": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=variables, check=True, timeout=120, capture_output=True, text=True
    )
    assert "pocl-opencl-icd" in done.stdout
