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
        assert out.dtype == out_dtype
        out.copy_((a.float() @ b.float()) * scale_a * scale_b)
        self.results.append(out)


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
