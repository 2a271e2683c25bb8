"""Products of float8 tensors with scales on a simulated GPU, where the vendor's library is the choice: which of them
torch's own operator makes."""

from __future__ import annotations

import pytest

from gpu_fakes import WORKSPACE, Rig, close, every_type, logic, product
from tunesmith.library.gemm import _torch_matmul
from tunesmith.problems.gemm import gemm_type

SCALED = every_type("f8", scaled=True)
EPILOGUES = [*every_type("f8", scaled=True, bias=True), *every_type("f8", scaled=True, activation="relu")]
ROUNDING = 1e-2
"""Of results in bfloat16, whose neighbours are 2^-8 apart."""


class Operator:
    """torch's operator on the host. It counts its calls, refuses the next `refusals` of them, and notes the others'
    results."""

    def __init__(self):
        self.calls, self.refusals, self.results = 0, 0, []

    def __call__(self, a, b, scale_a, scale_b, *, out_dtype, out):
        self.calls += 1
        self.refusals -= 1
        if self.refusals >= 0:
            raise RuntimeError("refused")
        out = empty(a, b, out_dtype) if out is None else out
        assert out.dtype == out_dtype
        out.copy_((a.float() @ b.float()) * scale_a * scale_b)
        self.results.append(out)
        return out


def empty(a, b, dtype):
    """A result that the operator makes itself."""
    return a.new_empty((a.shape[0], b.shape[1]), dtype=dtype)


@pytest.fixture
def rig(monkeypatch):
    """The simulated GPU's only kernel is taken for the vendor's library."""
    rig = Rig(monkeypatch)
    monkeypatch.setattr(_torch_matmul, "VENDOR", "OnePlan")
    rig.operator = Operator()
    monkeypatch.setattr(rig.torch, "_scaled_mm", rig.operator)
    return rig


def operands(rig):
    a, b = (rig.on_gpu(rig.normal(*shape).float().to(rig.torch.float8_e4m3fn)) for shape in ((6, 5), (5, 7)))
    scales = {name: rig.on_gpu(rig.torch.tensor(value)) for name, value in (("scale_a", 2.0), ("scale_b", [1.5]))}
    return a, b, scales, 3 * product(a.float(), b.float())


def test_torchs_operator_makes_them_after_it_was_tried_once_for_the_layout(rig):
    launched = []
    lib = rig.library(*SCALED, launched=launched.append)
    a, b, scales, wide = operands(rig)
    out = rig.on_gpu(rig.torch.zeros(6, 7, dtype=rig.torch.bfloat16))
    for result in (None, out):
        for _ in range(2):
            found = lib.matmul(a, b, result, **scales)
            close(found, wide, ROUNDING)
            assert found is rig.operator.results[-1]
    assert found is out
    assert len(rig.operator.results) == 2 * (1 + 2)
    assert len(launched) == 4
    assert rig.device.launches == []


def apart(rig):
    return rig.on_gpu(rig.torch.zeros(6, 14, dtype=rig.torch.bfloat16))[:, :7]


def columns_first(rig):
    return rig.on_gpu(rig.torch.zeros(7, 6, dtype=rig.torch.bfloat16)).mT


@pytest.mark.parametrize(
    ("more", "change"),
    [
        (lambda rig: {"out": apart(rig)}, lambda wide: wide),
        (lambda rig: {"out": columns_first(rig)}, lambda wide: wide),
        (lambda rig: {"alpha": 2.0}, lambda wide: 2 * wide),
        (lambda rig: {"c": rig.on_gpu(rig.torch.ones(6, 7).bfloat16()), "beta": 4.0}, lambda wide: wide + 4),
        (lambda rig: {"bias": rig.on_gpu(rig.torch.ones(7).bfloat16())}, lambda wide: wide + 1),
        (lambda rig: {"activation": "relu"}, lambda wide: wide.clip(0)),
        (lambda rig: {"scale_b": None}, lambda wide: wide / 1.5),
        (lambda rig: {"scale_a": 2.0}, lambda wide: wide),
    ],
    ids=["rows apart", "columns first", "alpha", "c", "bias", "activation", "one scale", "a number"],
)
def test_what_it_does_not_do_is_not_left_to_it(rig, more, change):
    lib = rig.library(*SCALED, *EPILOGUES)
    a, b, scales, wide = operands(rig)
    for _ in range(2):
        close(lib.matmul(a, b, **{**scales, **more(rig)}), change(wide), 2 * ROUNDING)
    assert rig.operator.calls == 0
    assert len(rig.device.launches) == 2


def test_another_kernels_product_is_not_left_to_it(rig, monkeypatch):
    monkeypatch.setattr(_torch_matmul, "VENDOR", "another")
    a, b, scales, wide = operands(rig)
    close(rig.library(*SCALED).matmul(a, b, **scales), wide, ROUNDING)
    assert rig.operator.calls == 0


def test_what_it_refuses_is_launched(rig):
    """If it refuses the first try, it is not asked again; if it refuses a later call, only that one is launched."""
    lib, (a, b, scales, wide) = rig.library(*SCALED), operands(rig)
    rig.operator.refusals = 1
    for _ in range(2):
        close(lib.matmul(a, b, **scales), wide, ROUNDING)
    assert (rig.operator.calls, len(rig.device.launches)) == (1, 2)
    out = rig.on_gpu(rig.torch.zeros(6, 7, dtype=rig.torch.bfloat16))[:]
    later = rig.library(*SCALED)
    later.matmul(a, b, out, **scales)
    rig.operator.refusals = 1
    for _ in range(2):
        close(later.matmul(a, b, out, **scales), wide, ROUNDING)
    assert (len(rig.operator.results), len(rig.device.launches)) == (3, 3)


def test_a_graph_has_our_own_call_with_the_graphs_workspace(rig):
    lib = rig.library(
        logic(gemm_type("f8", scaled=True, transpose_a=False, transpose_b=False), {"Workspace": WORKSPACE})
    )
    a, b, scales, wide = operands(rig)
    lib.matmul(a, b, **scales)
    made = len(rig.operator.results)
    rig.captures, rig.stream = True, 9
    close(lib.matmul(a, b, **scales), wide, ROUNDING)
    assert len(rig.operator.results) == made
    ((_, stream, _, workspace, on_zeros),) = rig.device.launches
    assert (stream, on_zeros) == (9, False)
    assert workspace


class Native:
    """Takes the place of compiled code: it notes what it is told to keep, and makes what a function was kept for."""

    def __init__(self):
        self.launches, self.functions, self.asked = [], [], []

    def learn(self, recipe, arguments, like, workspace):
        self.launches.append(arguments)
        return True

    def learn_function(self, function, recipe, arguments):
        self.functions.append((function, arguments))
        assert dict(recipe.reads).keys() == {0, 1}
        return True

    def repeat(self, *tensors):
        self.asked.append(tensors)
        return self.functions[-1][0](*tensors) if self.functions else None

    def clear(self):
        pass


@pytest.fixture
def native(monkeypatch):
    native = Native()
    monkeypatch.setattr(_torch_matmul, "native_products", lambda torch, warn: native)
    return native


def test_compiled_code_calls_torchs_operator_from_the_second_call_on(rig, native):
    lib, (a, b, scales, wide) = rig.library(*SCALED), operands(rig)
    close(lib.matmul(a, b, **scales), wide, ROUNDING)
    ((_, arguments),) = native.functions
    assert arguments.scale_a is scales["scale_a"]
    assert arguments.scale_b is scales["scale_b"]
    calls = rig.operator.calls
    found = lib.matmul(a, b, **scales)
    close(found, wide, ROUNDING)
    assert found is rig.operator.results[-1]
    assert found.dtype is rig.torch.bfloat16
    assert native.asked == [(a, b, None, scales["scale_a"], scales["scale_b"])]
    assert rig.operator.calls == calls + 1
    assert len(native.functions) == 1


def test_compiled_code_lets_torchs_operator_write_into_out(rig, native):
    lib, (a, b, scales, wide) = rig.library(*SCALED), operands(rig)
    out = rig.on_gpu(rig.torch.zeros(6, 7, dtype=rig.torch.bfloat16))
    for _ in range(2):
        assert lib.matmul(a, b, out, **scales) is out
        close(out, wide, ROUNDING)
        out.zero_()
    assert native.asked == [(a, b, out, scales["scale_a"], scales["scale_b"])]


def test_what_torchs_operator_refuses_later_is_launched(rig, native):
    lib, (a, b, scales, wide) = rig.library(*SCALED), operands(rig)
    lib.matmul(a, b, **scales)
    rig.operator.refusals = 2  # the compiled call, and the one after it
    close(lib.matmul(a, b, **scales), wide, ROUNDING)
    assert len(rig.device.launches) == 1


def test_a_warning_that_is_an_error_comes_once(rig, monkeypatch):
    calls = []

    def refused(torch, warn):
        calls.append(warn)
        raise UserWarning("of another version")

    monkeypatch.setattr(_torch_matmul, "native_products", refused)
    lib, (a, b, scales, wide) = rig.library(*SCALED), operands(rig)
    with pytest.raises(UserWarning):
        lib.matmul(a, b, **scales)
    close(lib.matmul(a, b, **scales), wide, ROUNDING)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({"scale_b": None}, {}),
        ({"scale_a": 2.0}, {}),
        ({"alpha": 2.0}, {}),
        ({}, {"launched": lambda record: None}),
    ],
    ids=["one scale", "a number", "alpha", "launches are told"],
)
@pytest.mark.parametrize("maker", ["torch", "our kernel"])
def test_compiled_code_keeps_no_other_call_with_scales(rig, native, monkeypatch, maker, more, options):
    if maker == "our kernel":
        monkeypatch.setattr(_torch_matmul, "VENDOR", "another")
    lib, (a, b, scales, _) = rig.library(*SCALED, **options), operands(rig)
    for _ in range(2):
        lib.matmul(a, b, **{**scales, **more})
    assert native.functions == native.launches == []


def test_compiled_code_keeps_our_kernels_product_with_both_scales(rig, native, monkeypatch):
    monkeypatch.setattr(_torch_matmul, "VENDOR", "another")
    lib, (a, b, scales, wide) = rig.library(*SCALED), operands(rig)
    for _ in range(2):
        close(lib.matmul(a, b, **scales), wide, ROUNDING)
    assert [arguments.scale_b for arguments in native.launches] == [scales["scale_b"]] * 2
    assert native.asked == [(a, b, None, scales["scale_a"], scales["scale_b"])]


def test_a_product_with_scales_is_no_product_of_the_hosts(rig, native, monkeypatch):
    """The short way of arrays on the host looks at no scales."""
    lib, (a, b, scales, wide) = rig.library(*SCALED), operands(rig)
    lib.matmul(a, b, **scales)
    native.functions.clear()
    host = lib._products.host
    for name in ("known_product", "known_product_of_tensors"):
        monkeypatch.setattr(host, name, lambda *arrays: pytest.fail("a product without scales"))
    monkeypatch.setattr(host, "products", {"something": "known"})
    close(lib.matmul(a, b, **scales), wide, ROUNDING)
    close(lib.matmul(a, b, **scales | {"scale_b": None}), wide / 1.5, ROUNDING)


@pytest.mark.parametrize("maker", ["torch", "our kernel"])
def test_compiled_code_keeps_no_product_of_a_type_that_was_asked_for(rig, native, monkeypatch, maker):
    """A call that asks for nothing would get a result of that type."""
    if maker == "our kernel":
        monkeypatch.setattr(_torch_matmul, "VENDOR", "another")
    lib, (a, b, scales, wide) = rig.library(*every_type("f8", scaled=True, dest="s")), operands(rig)
    for _ in range(2):
        found = lib.matmul(a, b, **scales, out_dtype=rig.torch.float32)
        assert found.dtype is rig.torch.float32
        close(found, wide, ROUNDING)
    assert native.functions == native.launches == []
