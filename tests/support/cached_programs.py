"""What processes do that share compiled programs, one after the other or at the same time. Tests call it by
`forked.run_forked`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from bench_jobs import GPU
from tunesmith.devices import open_device
from tunesmith.records import (
    Binary,
    CompiledFacts,
    Configuration,
    Launch,
    Module,
    OperandArgument,
    Plan,
    ScalarArgument,
)
from tunesmith.toolchains import TOOLCHAINS, BinaryCache, compile_cached
from tunesmith.toolchains.fake import FakeToolchain


def fake_module(number: int = 0) -> Module:
    return Module("fake", f"text {number}", ("f",))


def fake_binary(number: int = 0, size: int = 10) -> Binary:
    facts = (CompiledFacts("f", registers=number, spill_bytes=None, local_bytes=0),)
    metadata = Configuration({"threads": number, "maps": ((1, (2, 3)),)})
    return Binary(fake_module(number).digest(), "fake", bytes([number % 256]) * size, facts, metadata)


def keep_and_find(folder: str) -> None:
    """Find or keep 29 programs in turn, 300 times, and print how many were found. Each that is found is whole."""
    FakeToolchain.keeps = lambda self, module: True  # type: ignore[method-assign]
    kept, found = BinaryCache(Path(folder), GPU), 0
    for turn in range(300):
        number = turn % 29
        if cached := kept.find(fake_module(number)):
            assert cached == fake_binary(number, 2000), number
            found += 1
        else:
            kept.keep(fake_module(number), fake_binary(number, 2000))
    print(found, flush=True)


def launch_kept(selector: str, folder: str, process: str) -> None:
    """Launch a program that is kept in the folder. The second process must find it there, and find that it is complete,
    and neither it nor PoCL may compile it."""
    device, is_second = open_device(selector), process == "second"
    source = "__kernel void f(__global int *a, int n) { if (get_global_id(0) < n) a[get_global_id(0)] = n * FACTOR; }"
    module = Module("OpenCL", source, ("f",), ("-DFACTOR=3",))
    if is_second:
        type(TOOLCHAINS["OpenCL"]).compile = None  # type: ignore[method-assign, assignment]
    kept = BinaryCache(Path(folder), device.target)
    binary = compile_cached(module, device.target, kept)
    program = device.load(binary)
    before = _machine_code()
    arguments = (OperandArgument("a"), ScalarArgument(50, "int32"))
    memory = device.allocate(256)
    plan = Plan((Launch(0, "f", (4, 1, 1), (16, 1, 1), arguments),))
    device.prepare(plan, [program], {"a": memory}, None).enqueue()
    device.synchronize()
    assert np.asarray(device.read(memory, 200)).view(np.int32).tolist() == [150] * 50
    if is_second and "pocl" in device.target.driver.lower():
        assert before, "the program has its machine code"
        after = _machine_code()
        assert after == before, f"PoCL compiled {sorted(set(after) - set(before))}, had {before}"
    complete = device.completed(binary, program)
    assert (complete is binary) == is_second
    kept.keep(module, complete)


def launch_on_grid(selector: str, groups: int, items: int, number: int) -> None:
    """Compile and launch a program on so many groups of so many work-items, with a number as its argument."""
    device = open_device(selector)
    source = "__kernel void f(__global int *a, int n) { if (get_global_id(0) < n) a[get_global_id(0)] = n; }"
    program = device.load(TOOLCHAINS["OpenCL"].compile(Module("OpenCL", source, ("f",)), device.target))
    arguments = (OperandArgument("a"), ScalarArgument(number, "int32"))
    plan = Plan((Launch(0, "f", (groups, 1, 1), (items, 1, 1), arguments),))
    device.prepare(plan, [program], {"a": device.allocate(4 * number)}, None).enqueue()
    device.synchronize()


def _machine_code() -> list[Path]:
    return sorted(Path(os.environ["POCL_CACHE_DIR"]).rglob("*.so"))
