"""The compiled short way of known products: what it repeats, what it leaves to the Python path, and its errors.

Tensors lie on the host here, and the functions that it calls are ours. `test_native_products_gpu.py` has a real GPU."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from types import SimpleNamespace

import pytest

from native_machine import Machine, compiled, matrices
from tunesmith.devices.cuda.native import OUT, A, B
from tunesmith.library.gemm._checked_call import Arguments
from tunesmith.library.gemm._native_products import (
    INTERFACE,
    OTHER_VERSION,
    NativeProducts,
    native_products,
)

torch = pytest.importorskip("torch")


module = pytest.fixture(scope="module")(compiled)


@pytest.fixture
def machine(module):
    return Machine(torch, module)


def test_a_known_product_is_repeated_with_the_addresses_of_each_call(machine):
    a, b = matrices(torch)
    assert machine.repeat(a, b, None) is None
    assert machine.learn(a, b, workspace=640)
    for x, y in ((a, b), matrices(torch)):
        machine.calls.clear()
        result = machine.repeat(x, y, None)
        assert result.shape == (4, 5)
        assert result.dtype is torch.float32
        assert result.is_contiguous()
        step = x.data_ptr(), y.data_ptr() + 8, result.data_ptr(), 1, 642, *range(5, 19)
        assert [name for name, _ in machine.calls] == ["push", "step", "pop"]
        assert machine.of("step") == [step]
        assert machine.of("push")[0][0] == 77


def test_the_result_goes_into_out(machine):
    a, b = matrices(torch)
    out = torch.empty(4, 5)
    assert machine.learn(a, b, out)
    assert machine.repeat(a, b, None) is None
    other = torch.empty(4, 5)
    assert machine.repeat(a, b, other) is other
    assert machine.of("step")[0][2] == other.data_ptr()


def changed(**changes):
    a, b = matrices(torch)
    known = {"a": a, "b": b, "out": None}
    return pytest.param(known | changes, id=next(iter(changes)))


@pytest.mark.parametrize(
    "call",
    [
        pytest.param({"a": torch.ones(8, 3)[::2], "b": torch.ones(3, 5), "out": None}, id="rows apart"),
        pytest.param({"a": torch.ones(3, 4).T, "b": torch.ones(3, 5), "out": None}, id="transposed"),
        pytest.param({"a": torch.ones(5, 3), "b": torch.ones(3, 5), "out": None}, id="another size"),
        pytest.param({"a": torch.ones(4, 3).bfloat16(), "b": torch.ones(3, 5).bfloat16(), "out": None}, id="type"),
        pytest.param({"a": torch.ones(13)[1:].view(4, 3), "b": torch.ones(3, 5), "out": None}, id="misaligned"),
        pytest.param({"a": torch.ones(1, 4, 3), "b": torch.ones(3, 5), "out": None}, id="a batch"),
        pytest.param({"a": torch.ones(3), "b": torch.ones(3, 5), "out": None}, id="a vector"),
        pytest.param({"a": [[1.0]], "b": torch.ones(3, 5), "out": None}, id="no tensor"),
        changed(out=torch.empty(4, 5)),
    ],
)
def test_any_other_call_is_left_to_the_python_path(machine, call):
    assert machine.learn(*matrices(torch))
    assert machine.repeat(call["a"], call["b"], call["out"]) is None
    assert not machine.of("step")


def test_out_over_an_operand_is_left_to_the_python_path(machine):
    """The bytes that a call reads and writes come from the recipe, since rows may lie apart."""
    a, b = torch.ones(4, 4), torch.ones(4, 4)
    assert machine.learn(a, b, torch.empty(4, 4), spans=(64, 64, 64))
    assert machine.repeat(a, b, a) is None
    assert machine.repeat(a, b, b) is None
    memory = torch.ones(32)
    low, high = memory[:16].view(4, 4), memory[16:].view(4, 4)
    assert machine.repeat(low, b, high) is high
    assert machine.repeat(high, b, low) is low


def test_a_gradient_that_torch_would_record_is_left_to_the_python_path(machine):
    a, b = matrices(torch)
    weights = torch.nn.Parameter(b)
    with torch.no_grad():
        assert machine.learn(a, weights)
        assert machine.repeat(a, weights, None) is not None
    assert machine.repeat(a, weights, None) is None
    assert machine.repeat(a, weights.detach(), None) is not None


@pytest.mark.parametrize(
    ("dtype", "setting", "changed", "matters"),
    [
        (torch.float32, "precision", "high", True),
        (torch.bfloat16, "precision", "high", False),
        (torch.bfloat16, "loose", (False, True), True),
        (torch.float32, "loose", (False, True), False),
        (torch.float16, "loose", (False, True), False),
    ],
)
def test_torchs_setting_for_the_data_type_is_part_of_a_call(machine, dtype, setting, changed, matters):
    a, b = matrices(torch, dtype=dtype)
    assert machine.learn(a, b)
    before = getattr(machine, setting)
    setattr(machine, setting, changed)
    assert (machine.repeat(a, b, None) is None) == matters
    setattr(machine, setting, before)
    assert machine.repeat(a, b, None) is not None


def test_an_error_of_a_setting_is_the_callers(machine):
    a, b = matrices(torch, dtype=torch.bfloat16)
    assert machine.learn(a, b)
    machine.loose = []  # has no hash
    with pytest.raises(TypeError, match="unhashable"):
        machine.repeat(a, b, None)


def kernel_step(machine, pointers=(), maps=()):
    """A launch whose words are read as a driver would read them: the configuration, and the parameters' first words."""

    def launched(words):
        config = ctypes.string_at(words[0], 16)
        addresses = (ctypes.c_uint64 * 3).from_address(words[2])
        assert not any(address % 128 for address in addresses)
        return (
            config[:8],
            int.from_bytes(config[8:], "little"),
            [ctypes.c_uint64.from_address(x).value for x in addresses],
        )

    values = (bytes(128), (5).to_bytes(8, "little"), (6).to_bytes(8, "little"))
    function = machine.function("launch", launched)
    return "launch", function, (0, 4242, 0, 0), (), (b"groups__" + bytes(8), 8, values, pointers, maps)


def test_a_kernels_parameters_and_its_launch_configuration_are_kept(machine):
    a, b = matrices(torch)
    assert machine.learn(a, b, steps=(kernel_step(machine, pointers=((1, B, 4), (2, OUT, 0))),))
    result = machine.repeat(a, b, None)
    assert machine.of("launch") == [(b"groups__", 0, [0, b.data_ptr() + 4, result.data_ptr()])]


def test_the_driver_writes_an_address_into_a_tensor_map_only_where_it_differs(machine):
    a, b = matrices(torch)
    assert machine.learn(a, b, steps=(kernel_step(machine, maps=((0, A, 16),)),))
    for x in (a, a, torch.ones(4, 3)):
        machine.repeat(x, b, None)
    moved = [words[1] for words in machine.of("move")]
    assert len(moved) == 2
    assert moved[0] == a.data_ptr() + 16
    assert len(machine.of("launch")) == 3


@pytest.mark.parametrize(("broken", "step"), [("step", 0), ("move", 1), ("push", 2)])
def test_a_step_that_fails_raises_its_error_and_takes_no_further_step(machine, broken, step):
    a, b = matrices(torch)
    first = "step", machine.function("step"), (), (), None
    assert machine.learn(a, b, steps=(first, kernel_step(machine, maps=((0, A, 0),))))
    machine.statuses[broken] = 9
    with pytest.raises(LookupError, match=f"owner {step} 9"):
        machine.repeat(a, b, None)
    assert not machine.of("launch")
    assert len(machine.of("step")) == (broken != "push")
    assert len(machine.of("pop")) == (broken != "push")
    machine.statuses.clear()
    assert machine.repeat(a, b, None) is not None


def test_forgotten_products_let_go_of_what_they_kept(machine):
    owner = ["recipe"]
    a, b = matrices(torch)
    before = sys.getrefcount(owner)
    assert machine.learn(a, b, owner=owner)
    assert machine.learn(a, b, owner=owner)
    assert sys.getrefcount(owner) == before + 1
    machine.products.clear()
    assert sys.getrefcount(owner) == before
    assert machine.repeat(a, b, None) is None


def test_clearing_waits_for_the_steps_that_are_taken_and_no_later_call_takes_them(machine):
    """Who clears releases memory next. A call that was about to begin is then left to the Python path."""
    a, b = matrices(torch)
    inside, cleared, order, results = threading.Event(), threading.Event(), [], []

    def slow(_):
        inside.set()
        assert not cleared.wait(0.3), "cleared while steps were taken"
        order.append("step")

    assert machine.learn(a, b, steps=(("slow", machine.function("slow", slow), (), (), None),))
    calls = [threading.Thread(target=lambda: results.append(machine.repeat(a, b, None) is None)) for _ in range(2)]

    def clear():
        machine.products.clear()
        order.append("cleared")
        cleared.set()

    calls[0].start()
    assert inside.wait(10)
    calls[1].start()  # waits for the first call, and finds the product forgotten
    clearing = threading.Thread(target=clear)
    clearing.start()
    for thread in (*calls, clearing):
        thread.join(10)
        assert not thread.is_alive()
    assert order[:2] == ["step", "cleared"] or order == ["step", "step", "cleared"]
    assert order[-1] == "cleared"
    assert machine.repeat(a, b, None) is None


def test_a_forked_child_forgets_without_waiting(machine):
    a, b = matrices(torch)
    assert machine.learn(a, b)
    machine.products.clear_in_child()
    assert machine.repeat(a, b, None) is None


def test_threads_do_not_mix_up_their_addresses(machine):
    """Each call's words hold the operands of one call, since one thread at a time takes steps."""
    known = [torch.ones(4, 3) for _ in range(8)]
    b, out = torch.ones(3, 5), [torch.empty(4, 5) for _ in range(8)]
    partners = {x.data_ptr(): y.data_ptr() for x, y in zip(known, out, strict=True)}
    assert machine.learn(known[0], b, out[0])
    threads = [
        threading.Thread(target=lambda x=x, y=y: [machine.repeat(x, b, y) for _ in range(200)])
        for x, y in zip(known, out, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = machine.of("step")
    assert len(words) == 1600
    assert all(partners[word[0]] == word[2] for word in words)


def test_more_products_than_the_table_keeps_begin_a_new_table(machine):
    a, b = torch.ones(5000, 1), torch.ones(1, 1)
    step = "step", machine.function("step"), (), (), None
    for rows in range(1, 4100):
        assert machine.learn(a[:rows], b, steps=(step,))
    gc.collect()
    assert machine.repeat(a[:1], b, None) is None
    assert machine.repeat(a[:4099], b, None) is not None


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ((0, (), ((0, 9, 0),), None), "no such slot"),
        ((0, tuple(range(25)), (), None), "too many words"),
        ((0, (), ((24, A, 0),), None), "no such word"),
        ((0, (), ((0, A, 0),) * 17, None), "too many addresses"),
        ((0, (), (), (bytes(64), 48, (bytes(8),), ((1, A, 0),), ())), "no such parameter"),
        ((0, (), (), (bytes(64), 60, (), (), ())), "does not fit"),
    ],
)
def test_a_step_that_is_described_wrongly_is_refused(machine, step, message):
    with pytest.raises(ValueError, match=message):
        machine.products.learn(*matrices(torch), None, None, None, (step,), 0, 0, 0, 0, 0, torch.empty(1), "owner")
    assert machine.repeat(*matrices(torch), None) is None


@pytest.mark.parametrize("interface", [{}, {"INTERFACE": 1}, {"INTERFACE": 3}])
def test_a_distribution_of_another_tunesmith_is_not_used(monkeypatch, interface):
    monkeypatch.setitem(sys.modules, "tunesmith_native", SimpleNamespace(**interface))
    warnings = []
    assert native_products(torch, warnings.append) is None
    assert warnings == [OTHER_VERSION]


def test_the_distribution_is_of_this_tunesmith(module):
    assert module.INTERFACE == INTERFACE


class SubclassedTensor(torch.Tensor):
    """A tensor whose operations may mean something else."""


@pytest.mark.parametrize("refused", ["subclass", "no plan on a GPU", "a launch for each matrix", "no steps"])
def test_what_compiled_code_cannot_repeat_is_not_kept(refused):
    kept = []
    products = object.__new__(NativeProducts)
    products.types, products._owners = (torch.Tensor, torch.nn.Parameter), {}
    products._table = SimpleNamespace(learn=lambda *described: kept.append(described) or True)
    step = SimpleNamespace(described=("a step",))
    plan = SimpleNamespace(native=lambda slots: (step,), context=7)
    launched = SimpleNamespace(launched=SimpleNamespace(plan=SimpleNamespace(zeroed=0)))
    recipe = SimpleNamespace(plan=plan, launches=1, ready=launched, swapped=False, reads=((0, 4), (1, 8)), writes=16)
    a, b = matrices(torch)
    assert products.learn(recipe, Arguments(a, b), None, 0) is True
    assert len(kept) == 1
    if refused == "subclass":
        a = a.as_subclass(SubclassedTensor)
    changed = {
        "no plan on a GPU": {"plan": None},
        "a launch for each matrix": {"launches": 2},
        "no steps": {"plan": SimpleNamespace(native=lambda slots: (), context=7)},
    }.get(refused, {})
    assert products.learn(SimpleNamespace(**{**vars(recipe), **changed}), Arguments(a, b), None, 0) is False
    assert len(kept) == 1
