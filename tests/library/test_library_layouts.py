"""What a library keeps for a layout serves calls of that layout alone: a call that differs from the last one in one
thing comes to what it comes to in a library that was never called."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_fakes import HostGpu, Rig
from gpu_fakes import logic as gpu_logic
from library_fakes import DEVICES, ORIGIN, TARGET, close, library, logic, solution
from random_reference import OnGpu
from tunesmith.devices.fake import FakeDevice
from tunesmith.library import LaunchRecord, Library
from tunesmith.library.arrays._view import ALIGNMENT
from tunesmith.logic import Document, Logic, NamedSolution, SizeRow
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Estimate, UserError

NN, NT, TN = gemm_type(transpose_b=False), gemm_type(), gemm_type(transpose_a=True, transpose_b=False)

Given = Mapping[str, Any]


def columns(*shape, dtype="float32", padding=0, apart=0):
    """Column-major numbers, with rows of padding, and so many bytes behind an address that is aligned."""
    rows, *others = shape
    whole = np.zeros((rows + padding) * int(np.prod(others)) * np.dtype(dtype).itemsize + 2 * ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT + apart
    array = whole[start : start + len(whole) - 2 * ALIGNMENT].view(dtype)
    array = array.reshape((rows + padding, *others), order="F")[:rows]
    array[...] = np.random.default_rng([*shape, len(dtype)]).integers(-4, 5, shape)
    return array


def frozen(array):
    array.flags.writeable = False
    return array


def outcome(call, launched_records):
    """The result of a call or the reason of its refusal, and its launches."""
    before = len(launched_records)
    try:
        found = call()
        result: object = (found.dtype.str, found.strides, found.tolist())
    except (TypeError, ValueError, UserError) as error:
        result = f"{type(error).__name__}: {error}"
    return result, [(record.choice.name, record.problem) for record in launched_records[before:]]


def check(open_library, call, *arguments_of_calls):
    """Asserts that the last call has the same outcome after the other calls and alone."""
    outcomes = []
    for calls in (arguments_of_calls, arguments_of_calls[-1:]):
        launched_records: list[LaunchRecord] = []
        with open_library(launched_records) as lib:
            found = [
                outcome(lambda arguments_=arguments_: call(lib, arguments_), launched_records) for arguments_ in calls
            ]
        outcomes.append(found[-1])
        differ = len(calls) == 1 or found[0] != found[-1]
        assert differ, "two calls that come to the same show nothing"
    assert outcomes[0] == outcomes[1]


# --- `launch`, by operands' names -------------------------------------------------------------------------------------

USUAL: dict[str, Callable[[], Any]] = {
    "A": lambda: columns(6, 6),
    "B": lambda: columns(6, 7),
    "D": lambda: columns(6, 7),
}
OTHERS: dict[str, dict[str, Callable[[], Any] | None]] = {
    "data type": {"A": lambda: columns(6, 6, dtype="int32")},
    "byte order": {"A": lambda: columns(6, 6, dtype=">f4")},
    "order of axes": {"A": lambda: columns(6, 6).T},
    "leading dimension": {"A": lambda: columns(6, 6, padding=2)},
    "shape": {"B": lambda: columns(6, 8), "D": lambda: columns(6, 8)},
    "shape of one alone": {"B": lambda: columns(6, 8)},
    "output that must not be written": {"D": lambda: frozen(columns(6, 7))},
    "name of an operand": {"B": None, "C": lambda: columns(6, 7)},
    "one operand more": {"C": lambda: columns(6, 7), "beta": lambda: 1.0},
    "scalar": {"alpha": lambda: 2.0},
    "problem type": {"what": lambda: NT},
}


def arguments(changes):
    return {name: make() for name, make in {**USUAL, **changes}.items() if make}


def launch(lib, operands):
    return lib.launch(operands.get("what", NN), **{name: x for name, x in operands.items() if name != "what"})


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("device", DEVICES)
def test_a_launch_that_differs_in_one_thing(device, what):
    def open_library(launched_records):
        return library(logic(NN), logic(NT), device=device(TARGET), launched=launched_records.append)

    check(open_library, launch, arguments({}), arguments(OTHERS[what]))


@pytest.fixture
def rig(monkeypatch):
    monkeypatch.setattr("tunesmith.devices.cuda.device.ordinal_of", lambda address: 0)
    monkeypatch.setattr("tunesmith.devices.cuda.device.Mark", object)
    return Rig(monkeypatch)


def lent(operands):
    """The arrays as GPU arrays of a library that tunesmith does not know."""
    return {
        name: OnGpu(x, strides=x.strides, data=(x.ctypes.data, not x.flags.writeable))
        if isinstance(x, np.ndarray)
        else x
        for name, x in operands.items()
    }


ON_A_GPU = {**OTHERS, "address": {"A": lambda: columns(6, 6, apart=4)}}
"""The first solution takes its A by a tensor map, which needs an aligned address."""


@pytest.mark.parametrize("what", ON_A_GPU)
def test_a_launch_on_a_gpu_that_differs_in_one_thing(rig, what):
    def open_library(launched_records):
        rig.device = HostGpu()
        return rig.library(gpu_logic(NN, {"Maps": True}, {}), gpu_logic(NT), launched=launched_records.append)

    check(
        open_library, lambda lib, operands: launch(lib, lent(operands)).array, arguments({}), arguments(ON_A_GPU[what])
    )


def test_a_launch_on_another_gpu(monkeypatch):
    """With two equal GPUs, each works on the arrays in its own memory."""
    opened: dict[str, HostGpu] = {}

    def open_device(selector):
        open_library = opened[selector] = HostGpu(int(selector.partition(":")[2]))
        open_library.target = replace(open_library.target, name=TARGET.name, api="fake")
        return open_library

    monkeypatch.setattr("tunesmith.library._device.open_device", open_device)
    monkeypatch.setattr("tunesmith.library._device.context_kept", contextlib.nullcontext)
    monkeypatch.setattr("tunesmith.devices.cuda.device.Mark", object)
    with Library([(Path("nn.yaml"), gpu_logic(NN))]) as lib:
        for number in (0, 1, 0, 1):
            monkeypatch.setattr("tunesmith.devices.cuda.device.ordinal_of", lambda address, number=number: number)
            operands = arguments({})
            launch(lib, lent(operands))
            close(operands["D"], operands["A"] @ operands["B"])
            out = columns(6, 7)
            lib.matmul(*(OnGpu(x, strides=x.strides) for x in (operands["A"], operands["B"], out)))
            close(out, operands["A"] @ operands["B"])
        assert [len(device.launches) for device in opened.values()] == [4, 4]


# --- `matmul` ---------------------------------------------------------------------------------------------------------

FACTORS: dict[str, Callable[[], Any]] = {
    "a": lambda: columns(6, 6),
    "b": lambda: columns(6, 7),
    "out": lambda: columns(6, 7),
}
OTHER_FACTORS: dict[str, dict[str, Callable[[], Any] | None]] = {
    "data type": {"a": lambda: columns(6, 6, dtype="int32")},
    "byte order": {"a": lambda: columns(6, 6, dtype=">f4")},
    "byte order of out": {"out": lambda: columns(6, 7, dtype=">f4")},
    "order of axes": {"a": lambda: columns(6, 6).T},
    "leading dimension": {"a": lambda: columns(6, 6, padding=2)},
    "shape": {"b": lambda: columns(6, 8), "out": lambda: columns(6, 8)},
    "shape of one alone": {"b": lambda: columns(6, 8)},
    "output that must not be written": {"out": lambda: frozen(columns(6, 7))},
    "another argument": {"c": lambda: columns(6, 7), "beta": lambda: 1.0},
    "alpha": {"alpha": lambda: 2.0},
    "activation": {"activation": lambda: "relu"},
}


def factors(changes):
    return {name: make() for name, make in {**FACTORS, **changes}.items() if make}


@pytest.mark.filterwarnings("ignore:no logic is for")
@pytest.mark.parametrize("what", OTHER_FACTORS)
@pytest.mark.parametrize("device", DEVICES)
def test_a_product_that_differs_in_one_thing(device, what):
    def open_library(launched_records):
        return library(logic(NN), logic(TN), device=device(TARGET), launched=launched_records.append)

    check(open_library, lambda lib, operands: lib.matmul(**operands), factors({}), factors(OTHER_FACTORS[what]))


@pytest.mark.parametrize("what", ["data type", "order of axes", "leading dimension", "shape", "alpha", "address"])
def test_a_product_on_a_gpu_that_differs_in_one_thing(rig, what):
    def open_library(launched_records):
        rig.device = HostGpu()
        return rig.library(gpu_logic(NN, {"Maps": True}, {}), gpu_logic(TN), launched=launched_records.append)

    others = {**OTHER_FACTORS, "address": {"a": lambda: columns(6, 6, apart=4)}}
    check(open_library, lambda lib, operands: lib.matmul(**lent(operands)).array, factors({}), factors(others[what]))


class Careful(FakeDevice):
    """Refuses memory with misaligned elements, as a CPU's vector instructions do."""

    def wrap(self, array):  # type: ignore[no-untyped-def]
        assert array.flags.aligned
        return super().wrap(array)


def test_a_product_of_what_lies_across_the_borders_of_elements_is_of_a_copy():
    launched_records: list[LaunchRecord] = []
    with library(logic(NN), device=Careful(TARGET), launched=launched_records.append) as lib:
        for apart in (0, 2, 0, 1):
            operands = factors({"a": lambda apart=apart: columns(6, 6, apart=apart)})
            close(lib.matmul(**operands), operands["a"] @ operands["b"])
    assert len(launched_records) == 4


def test_a_product_on_the_host_is_found_out_once_for_all_addresses_of_one_alignment():
    whole, b, out = np.zeros(4096, np.uint8), columns(5, 7), columns(6, 7)
    start = -whole.ctypes.data % ALIGNMENT
    with library(logic(NN)) as lib:
        for offset, kept in ((0, 1), (ALIGNMENT, 1), (20 * ALIGNMENT, 1), (4, 2), (ALIGNMENT + 4, 2), (8, 3)):
            a = whole[start + offset : start + offset + 120].view(np.float32).reshape(6, 5, order="F")
            close(lib.matmul(a, b, out), a @ b)
            assert len(lib._begun_products().host._entries) == kept


# --- how much is kept -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["matmul", "launch"])
def test_a_program_that_asks_for_ever_new_sizes_has_a_bounded_memory(call, monkeypatch):
    """When the cache is full, its entries are dropped and found out again."""
    bound = 4
    monkeypatch.setattr("tunesmith.library.launch._layout_cache.REMEMBERED", bound)
    monkeypatch.setattr("tunesmith.library.launch._launcher.REMEMBERED", bound)
    launched_records: list[LaunchRecord] = []
    with library(logic(NN), launched=launched_records.append) as lib:
        calls = lib._begun_products().host if call == "matmul" else lib._operands
        for size in (*range(1, 12), 1, 11):
            a, b = columns(size, 3), columns(3, 5)
            out = lib.matmul(a, b, out=columns(size, 5)) if call == "matmul" else lib.launch(NN, A=a, B=b)
            close(out, a @ b)
            assert 1 <= len(calls._entries) <= bound
            assert 1 <= len(lib._launchers[""]._ready) <= bound
    assert [record.problem.sizes[0] for record in launched_records] == [*range(1, 12), 1, 11]


# --- leading dimensions -----------------------------------------------------------------------------------------------


def test_a_problem_that_was_measured_with_its_leading_dimensions_has_its_own_winner():
    """Three rows of one size: with natural leading dimensions, and with two paddings."""
    leading = {0: (), 2: (8, 8, 8, 8), 6: (12, 12, 12, 12)}
    named = tuple(NamedSolution(f"S{padding}", solution(NN, LoopUnroll=4 + padding)) for padding in leading)
    time = Estimate(1e-3, 0.9e-3, 1.1e-3, 7)
    rows = tuple(SizeRow((6, 6, 6), where, index, time, 1.0) for index, where in enumerate(leading.values()))
    launched_records: list[LaunchRecord] = []
    with library(Logic(Document(ORIGIN, NN, named, rows, 0)), launched=launched_records.append) as lib:
        for padding in leading:
            a, b, c, out = (columns(6, 6, padding=padding) for _ in range(4))
            close(lib.launch(NN, A=a, B=b, C=c, D=out), a @ b)
            close(lib.matmul(a, b, out=out), a @ b)
        assert lib.select(6, 6, 6).name == "S0"
    expected = [(f"S{padding}", where) for padding, where in leading.items() for _ in ("launch", "matmul")]
    assert [(record.choice.name, record.problem.leading) for record in launched_records] == expected
