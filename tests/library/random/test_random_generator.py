"""Random generators on an OpenCL device: each buffer gets exactly the numbers of the sequence."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from opencl_runner import opencl_device, unoptimised
from random_reference import close, expected
from tunesmith.kernels.random import OpenCLRandom
from tunesmith.library.random import _devices
from tunesmith.library.random._position import Position
from tunesmith.library.random._runner import POISSON_ROOM
from tunesmith.logic.random.table import RandomTable, TunedShapes, write_table
from tunesmith.problems.random import GENERATORS, poisson_table
from tunesmith.random import Generator
from tunesmith.records import LaunchShape, UserError, architecture_name

pytestmark = pytest.mark.opencl

SMALL = LaunchShape(64, 4)
"""A shape with few engines, so that short buffers take several turns."""

T = SMALL.threads


@pytest.fixture(scope="module")
def device():
    return opencl_device()


UNOPTIMISED = unoptimised(OpenCLRandom())


@pytest.fixture
def quickly_compiled(monkeypatch):
    """For tests of many programs that fill little."""
    monkeypatch.setattr(_devices, "FAMILIES", (UNOPTIMISED,))


def generator(device, name="philox4_32_10", seed=7, **options):
    return Generator(name, seed, device=device, **options)


def few(device, name="xorwow", seed=7, **options):
    return generator(device, name, seed, ordering="dynamic", shape=SMALL, **options)


CASES = [
    ("philox4_32_10", "uniform", "float32", 5001, {}),
    ("philox4_32_10", "uniform", "uint8", 5003, {}),
    ("philox4_32_10", "uniform", "int64", 777, {}),
    ("philox4_32_10", "normal", "float64", 3001, {"mean": 2.0, "stddev": 0.5}),
    ("philox4_32_10", "log_normal", "float16", 3001, {"mean": 0.25, "stddev": 0.5}),
    ("philox4_32_10", "poisson", "int32", 3001, {"lam": 12.5}),
    ("threefry2_32_20", "uniform", "uint32", 5001, {}),
    ("threefry4_64_20", "uniform", "float64", 5001, {}),
]


@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize(("name", "distribution", "dtype", "count", "parameters"), CASES)
def test_numbers_are_those_of_the_sequence(device, name, distribution, dtype, count, parameters):
    numbers = generator(device, name, seed=2**40 + 3)
    out = np.zeros(count, dtype)
    assert getattr(numbers, distribution)(out, **parameters) is out
    close(out, expected(name, distribution, dtype, count, seed=2**40 + 3, **parameters))


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_engines_of_the_default_ordering_are_those_of_the_default_launch(device, distribution):
    out = np.zeros(200_001, np.float32)
    numbers = generator(device, "xorwow", seed=3)
    getattr(numbers, distribution)(out)
    close(out, expected("xorwow", distribution, "float32", out.size, seed=3))
    assert numbers.launched.shape.threads == GENERATORS["xorwow"].default_engines


def test_points_lie_dimension_after_dimension_and_go_on_where_they_ended(device):
    numbers = generator(device, "sobol32", dimensions=3, offset=2)
    first, second = numbers.uniform(np.zeros((3, 500), np.float32)), numbers.uniform(np.zeros(3 * 41, np.float32))
    close(first, expected("sobol32", "uniform", "float32", 500, seed=0, position=2, dimensions=3))
    close(second, expected("sobol32", "uniform", "float32", 41, seed=0, position=502, dimensions=3))
    assert numbers.position == 2 + 500 + 41
    with pytest.raises(ValueError, match="dimensions"):
        numbers.uniform(np.zeros(100, np.float32))


def test_two_calls_give_what_one_gives_where_the_first_takes_whole_vectors(device):
    whole = generator(device).normal(np.zeros(1000, np.float32))
    parts = generator(device)
    both = [parts.normal(np.zeros(count, np.float32)) for count in (0, 334, 666)]
    assert np.array_equal(np.concatenate(both), whole)
    assert parts.position == 1000


def test_a_call_that_cuts_a_vector_drops_the_rest_of_it(device):
    numbers = generator(device)
    numbers.normal(np.zeros(3, np.float32))
    assert numbers.position == 4
    close(
        numbers.uniform(np.zeros(9, np.float32)), expected("philox4_32_10", "uniform", "float32", 9, seed=7, position=4)
    )


@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("name", ["philox4_32_10", "xorwow"])
def test_an_offset_and_skipping_leave_out_words(device, name):
    offset = 5 * T + 33
    by_offset = few(device, name, offset=offset)
    skipping = few(device, name)
    skipping.uniform(np.zeros(33, np.float32))
    skipping.skip(5 * T)
    assert by_offset.position == skipping.position == offset
    reference = expected(name, "uniform", "float32", 3 * T + 1, seed=7, position=offset, engines=T)
    for numbers in (by_offset, skipping):
        close(numbers.uniform(np.zeros(3 * T + 1, np.float32)), reference)


def test_other_distributions_begin_with_a_new_turn_of_the_engines(device):
    """Then all engines have dealt equally many words, except for the words of the offset."""
    numbers, offset = few(device, offset=10), 10
    close(numbers.normal(np.zeros(2 * T + 20, np.float32)), expected_at("normal", 2 * T + 20, Position(offset)))
    # T + 10 vectors were given; the rest of the second turn is left out.
    offset += 2 * 2 * T
    close(numbers.uniform(np.zeros(T + 5, np.float32)), expected_at("uniform", T + 5, Position(offset)))
    offset += T + 5
    close(numbers.normal(np.zeros(6, np.float32)), expected_at("normal", 6, Position(offset)))
    close(numbers.normal(np.zeros(2 * T, np.float32)), expected_at("normal", 2 * T, Position(offset, 3, 2)))
    assert numbers.position == offset + 2 * T + 3 * 2


def expected_at(distribution, count, position, name="xorwow"):
    return expected(name, distribution, "float32", count, seed=7, position=position, engines=T)


@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["philox4_32_10", "xorwow"])
def test_views_at_odd_elements_are_filled_and_nothing_beside_them(device, name, dtype):
    for begin, count in ((1, 1), (1, 6), (3, 1021)):
        memory = np.full(begin + count + 5, 99, dtype)
        numbers = few(device, name)
        numbers.normal(memory[begin : begin + count])
        close(memory[begin : begin + count], expected(name, "normal", dtype, count, seed=7, engines=T))
        assert (memory[:begin] == 99).all()
        assert (memory[begin + count :] == 99).all()


def test_an_array_at_an_odd_address_is_filled(device):
    memory = bytearray(b"\x99" * 50)
    generator(device).uniform(out := np.frombuffer(memory, np.float32, count=10, offset=3))
    close(out, expected("philox4_32_10", "uniform", "float32", 10, seed=7))
    assert memory[:3] + memory[43:] == b"\x99" * 10


def test_a_poisson_table_leaves_the_states_where_they_are(device):
    numbers = few(device)
    numbers.uniform(np.zeros(T, np.float32))
    for turn, lam in ((1, 3.0), (2, 3999.0), (3, 5000.0), (4, 3.0)):
        found = numbers.poisson(np.zeros(T, np.uint32), lam)
        values = expected("xorwow", "poisson", "uint32", T, seed=7, position=turn * T, engines=T, lam=lam)
        assert (np.abs(found - values.value.astype(np.float64)) <= values.bound).all()
    largest = max(poisson_table(lam).pairs.nbytes for lam in (31.999, 100.0, 1000.0, 4000.0))
    assert largest <= POISSON_ROOM


def test_generators_share_a_device_without_disturbing_each_other(device):
    first, second = few(device, seed=1), few(device, seed=2)
    parts = [(first.uniform(np.zeros(100, np.float32)), second.uniform(np.zeros(100, np.float32))) for _ in range(4)]
    for index, seed in enumerate((1, 2)):
        found = np.concatenate([part[index] for part in parts])
        close(found, expected("xorwow", "uniform", "float32", 400, seed=seed, engines=T))


def test_threads_take_turns(device):
    numbers, buffers = few(device), [np.zeros(T, np.uint32) for _ in range(8)]
    threads = [threading.Thread(target=numbers.uniform, args=(buffer,)) for buffer in buffers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = expected("xorwow", "uniform", "uint32", 8 * T, seed=7, engines=T).value.reshape(8, T)
    assert {buffer.tobytes() for buffer in buffers} == {part.tobytes() for part in whole}


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
@pytest.mark.parametrize(
    "copied",
    [
        lambda numbers, device: Generator.from_state(json.loads(json.dumps(numbers.state())), device=device),
        lambda numbers, device: pickle.loads(pickle.dumps(numbers)),
    ],
    ids=["state", "pickle"],
)
def test_a_state_goes_on_in_the_middle_of_a_turn(device, copied, distribution, monkeypatch):
    monkeypatch.setenv("TUNESMITH_DEVICE", "OpenCL")
    numbers = few(device, offset=11)
    numbers.normal(np.zeros(2 * T + 70, np.float32))
    twin = copied(numbers, device)
    assert (twin.name, twin.seed, twin.ordering, twin.shape) == ("xorwow", 7, "dynamic", SMALL)
    assert twin.position == numbers.position
    for _ in range(2):
        outs = [getattr(each, distribution)(np.zeros(300, np.float32)) for each in (numbers, twin)]
        assert np.array_equal(*outs)


def test_a_closed_generator_goes_on_where_it_was(device):
    numbers = few(device)
    with numbers:
        first = numbers.normal(np.zeros(100, np.float32))
    second = numbers.normal(np.zeros(900, np.float32))
    close(np.concatenate([first, second]), expected_at("normal", 1000, Position(0)))


def tuned(device, **entries):
    return RandomTable({architecture_name(device.target.architecture): entries})


@pytest.mark.usefixtures("quickly_compiled")
def test_counter_based_generators_are_launched_as_the_table_says_and_give_the_same(device, tmp_path):
    pairs = {("normal", "float"): LaunchShape(32, 3)}
    table = tuned(device, philox4_32_10=TunedShapes(LaunchShape(128, 5), pairs))
    write_table(table, tmp_path / "table.json")
    by_file, plain = generator(device, table=tmp_path / "table.json"), generator(device)
    assert by_file.shape is None
    for distribution, shape in (("uniform", LaunchShape(128, 5)), ("normal", LaunchShape(32, 3))):
        found, usual = (getattr(each, distribution)(np.zeros(10_001, np.float32)) for each in (by_file, plain))
        assert np.array_equal(found, usual)
        assert by_file.launched.shape == shape
        assert by_file.launched.name == f"philox4_32_10_{distribution}_float"
        assert by_file.launched.device == device.target.name
    assert by_file.shape == LaunchShape(128, 5)
    assert plain.launched.shape == plain.shape == LaunchShape(256, 1024)
    assert generator(device, table=table, shape=(64, 2)).shape == LaunchShape(64, 2)


def test_engines_follow_the_table_in_the_dynamic_ordering_only(device):
    """A pair's own shape is used only if it has the same number of engines."""
    pairs = {("normal", "float"): LaunchShape(32, 8), ("log_normal", "float"): LaunchShape(32, 16)}
    table = tuned(device, xorwow=TunedShapes(SMALL, pairs))
    dynamic = generator(device, "xorwow", ordering="dynamic", table=table)
    close(dynamic.uniform(np.zeros(1000, np.float32)), expected_at("uniform", 1000, Position(0)))
    assert dynamic.launched.shape == dynamic.shape == SMALL
    close(dynamic.normal(np.zeros(1000, np.float32)), expected_at("normal", 1000, Position(1000)))
    assert dynamic.launched.shape == LaunchShape(32, 8)
    dynamic.log_normal(np.zeros(4, np.float32))
    assert dynamic.launched.shape == SMALL
    assert "64x4" in repr(dynamic)
    assert dynamic.state()["shape"] == [64, 4]
    default = generator(device, "xorwow", table=table)
    default.uniform(np.zeros(4, np.float32))
    assert default.launched.shape.threads == GENERATORS["xorwow"].default_engines


@pytest.mark.parametrize(
    ("name", "ordering", "shape", "reason"),
    [
        ("lfsr113", "dynamic", (96, 4), "duplicate streams"),
        ("xorwow", "default", (64, 4), "ordering"),
        ("mt19937", "dynamic", (65, 1), "engines"),
        ("mt19937", "dynamic", (12, 2), "share a state"),
        ("xorwow", "dynamic", (1024, 20000), "there are streams for 16777216"),
        ("mtgp32", "dynamic", (128, 2), "work-group size"),
        ("philox4_32_10", "default", (1 << 20, 1), "work-group size"),
    ],
)
def test_shapes_that_cannot_be_are_refused_with_the_reason(device, name, ordering, shape, reason):
    numbers = Generator(name, ordering=ordering, shape=shape, device=device)
    with pytest.raises(UserError, match=reason):
        numbers.uniform(np.zeros(10, np.float32))
    assert numbers.position == 0


def test_what_fails_underway_is_seeded_again(device, monkeypatch):
    numbers = few(device)
    numbers.uniform(np.zeros(100, np.float32))
    with monkeypatch.context() as patch:
        patch.setattr(device, "synchronize", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            numbers.uniform(np.zeros(100, np.float32))
    close(numbers.uniform(np.zeros(300, np.float32)), expected_at("uniform", 300, Position(100)))


@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("name", ["mt19937", "mtgp32"])
def test_engines_that_cannot_skip_go_over_what_was_given(device, name):
    engines = 512
    numbers = Generator(name, 7, ordering="dynamic", shape=(256, 2), device=device)
    numbers.normal(np.zeros(2 * engines + 50, np.float32))
    for distribution, position in (("normal", Position(0, engines + 25, 2)), ("uniform", Position(0, 4 * engines))):
        twin = Generator.from_state(numbers.state(), device=device)
        found = [getattr(each, distribution)(np.zeros(300, np.float32)) for each in (numbers, twin)]
        assert np.array_equal(*found)
        close(found[0], expected(name, distribution, "float32", 300, seed=7, position=position, engines=engines))


def test_the_documentation_is_true(monkeypatch):
    """The programs of docs/random.md run, except those that need a GPU."""
    page = (Path(__file__).parents[3] / "docs" / "random.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(programs) == 5
    monkeypatch.setenv("TUNESMITH_DEVICE", "OpenCL")
    for program in programs:
        exec(program, {})


def test_importing_and_filling_load_nothing_heavy():
    program = """
import sys
import numpy as np
from tunesmith.random import Generator
assert not {"pyopencl", "cuda.bindings"} & set(sys.modules)
Generator(device="OpenCL").normal(np.zeros(9, np.float32))
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"scipy", "torch", "pydantic", "sqlalchemy", "jinja2", "matplotlib"} & set(done.stdout.split())
