"""The compiled short way of float8 products with scales, and of products that a Python function makes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from native_machine import Machine, compiled, matrices
from tunesmith.devices.cuda.native import SCALE_A, SCALE_B, A, B
from tunesmith.library.gemm._checked_call import Arguments
from tunesmith.library.gemm._native_products import STRAIGHT, SWAPPED, NativeProducts

torch = pytest.importorskip("torch")


module = pytest.fixture(scope="module")(compiled)


@pytest.fixture
def machine(module):
    return Machine(torch, module)


def scales(first=2.0, second=(1.5,)):
    return torch.tensor(first), torch.tensor(second)


def test_scales_are_part_of_a_product_and_their_addresses_of_a_call(machine):
    a, b = matrices(torch)
    step = "step", machine.function("step"), (), ((0, SCALE_A, 0), (1, SCALE_B, 4)), None
    assert machine.learn(a, b, None, scales(), steps=(step,))
    assert machine.repeat(a, b, None) is None
    assert machine.repeat(a, b, None, None, None) is None
    for pair in (scales(), scales(3.0)):
        assert machine.repeat(a, b, None, *pair).shape == (4, 5)
        assert machine.of("step")[-1][:2] == (pair[0].data_ptr(), pair[1].data_ptr() + 4)


@pytest.mark.parametrize(
    "others",
    [
        (torch.tensor(2.0), None),
        (None, torch.tensor([1.5])),
        (torch.tensor(2.0), torch.tensor(1.5)),
        (torch.tensor(2.0), torch.tensor([1.5, 1.5])),
        (torch.tensor(2.0), torch.tensor([1.5], dtype=torch.float64)),
        (torch.tensor([0.0, 2.0])[1], torch.tensor([1.5])),
        (2.0, torch.tensor([1.5])),
    ],
)
def test_other_scales_are_left_to_the_python_path(machine, others):
    a, b = matrices(torch)
    assert machine.learn(a, b, None, scales())
    assert machine.repeat(a, b, None, *others) is None
    assert not machine.of("step")


def test_a_product_without_steps_is_made_by_its_function(machine):
    a, b = matrices(torch)
    out, calls = torch.empty(4, 5), []

    def function(*tensors):
        calls.append(tensors)
        return "made"

    assert machine.learn(a, b, out, scales(), steps=(), owner=function)
    pair = scales()
    assert machine.repeat(a, b, out, *pair) == "made"
    assert [[id(x) for x in call] for call in calls] == [[id(x) for x in (a, b, out, *pair)]]
    assert machine.calls == []


def test_an_error_of_such_a_function_is_the_callers_and_clearing_inside_it_is_safe(machine):
    a, b = matrices(torch)

    def function(*tensors):
        machine.products.clear()
        raise LookupError("refused")

    assert machine.learn(a, b, steps=(), owner=function)
    with pytest.raises(LookupError, match="refused"):
        machine.repeat(a, b, None)
    assert machine.repeat(a, b, None) is None


def test_a_function_does_not_get_a_product_over_an_operand(machine):
    a, b = torch.ones(4, 4), torch.ones(4, 4)
    function = pytest.fail
    assert machine.learn(a, b, torch.empty(4, 4), steps=(), spans=(64, 64, 64), owner=function)
    assert machine.repeat(a, b, a) is None
    assert machine.repeat(a, b, b) is None


def test_a_call_that_the_function_does_not_make_is_left_to_the_python_path(machine):
    a, b = matrices(torch)
    assert machine.learn(a, b, steps=(), owner=lambda *tensors: None)
    assert machine.repeat(a, b, None) is None


def test_what_a_function_reads_and_writes_is_kept_with_it():
    kept = []
    products = object.__new__(NativeProducts)
    products.types = (torch.Tensor, torch.nn.Parameter)
    products._table = SimpleNamespace(learn=lambda *described: kept.append(described) or True)
    a, b = matrices(torch)
    recipe = SimpleNamespace(reads=((0, 48), (1, 60)), writes=80)
    assert products.learn_function(print, recipe, Arguments(a, b, scale_a="s", scale_b="t", out="o"))
    assert kept == [(a, b, "o", "s", "t", (), 0, 0, 48, 60, 80, None, print)]
    assert not products.learn_function(print, recipe, Arguments([[1.0]], b))


def test_the_scales_of_a_swapped_product_are_swapped():
    of_names = {"A": A, "B": B, "ScaleA": SCALE_A, "ScaleB": SCALE_B}
    assert STRAIGHT.items() >= of_names.items()
    assert {SWAPPED[name] for name in ("A", "ScaleA")} == {B, SCALE_B}
    assert {SWAPPED[name] for name in ("B", "ScaleB")} == {A, SCALE_A}


@pytest.mark.parametrize("count", [0, 3, 4, 6])
def test_another_number_of_arguments_is_refused(machine, count):
    with pytest.raises(TypeError, match="repeat takes"):
        machine.products.repeat(*[None] * count)
