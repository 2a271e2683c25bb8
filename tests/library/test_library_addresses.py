"""The addresses with which the library launches on a GPU: of each operand of the problem, and of nothing else."""

from __future__ import annotations

import pytest

from gpu_fakes import HostGpu, Rig, close, every_type, expected, product


class Keeping(HostGpu):
    """Keeps the addresses with which plans are made and carried out, by operand name."""

    def __init__(self):
        super().__init__()
        self.first, self.then = [], []

    def repeated_plan(self, plan, programs, addresses):
        self.first.append(dict(addresses))
        made = super().repeated_plan(plan, programs, addresses)

        class Repeated:
            def enqueue(_, stream, at, on_zeros=False):  # noqa: N805
                self.then.append(dict(at))
                made.enqueue(stream, at, on_zeros)

        return Repeated()


@pytest.fixture
def rig(monkeypatch):
    made = Rig(monkeypatch)
    made.device = Keeping()
    return made


PLAIN = {"", "A", "B", "C", "D"}


@pytest.mark.parametrize("swapped", [False, True], ids=["row-major", "column-major"])
def test_a_product_has_its_operands_and_c_is_the_output_where_nothing_reads_it(rig, swapped):
    lib = rig.library(*every_type())
    a, b, c, out = (rig.normal(*shape) for shape in ((6, 5), (5, 7), (6, 7), (6, 7)))
    if swapped:
        a, b, c, out = (rig.on_gpu(x.mT.contiguous()).mT for x in (a, b, c, out))
    for more, of_c in (({}, out), ({"residual": c}, c)):
        lib.matmul(a, b, out, **more)
        close(out, product(a, b) + (c.numpy() if more else 0))
        left, right = (a, b) if swapped else (b, a)
        where = {"A": left.data_ptr(), "B": right.data_ptr(), "C": of_c.data_ptr(), "D": out.data_ptr()}
        for addresses in (rig.device.first[-1], rig.device.then[-1]):
            workspace = addresses.pop("")
            assert workspace % 256 == 0
            assert addresses == where


def test_a_bias_and_scales_have_addresses_only_where_the_problem_has_them(rig):
    torch = rig.torch
    lib = rig.library(*every_type(bias=True), *every_type("f8"), *every_type("f8", scaled=True))
    a, b, bias = rig.normal(6, 5), rig.normal(5, 7), rig.normal(7)
    close(lib.matmul(a, b, bias=bias), expected(a, b, bias))
    assert set(rig.device.then[-1]) == PLAIN | {"Bias"}
    assert rig.device.then[-1]["Bias"] == bias.data_ptr()
    narrow = [rig.on_gpu(x.to(torch.float8_e4m3fn)) for x in (a, b)]
    lib.matmul(*narrow)
    assert set(rig.device.first[-1]) == set(rig.device.then[-1]) == PLAIN
    two = rig.on_gpu(torch.tensor(2.0))
    for scales, others in (({"scale_a": two}, "ScaleA"), ({"scale_b": two}, "ScaleB")):
        lib.matmul(*narrow, **scales)
        then = rig.device.then[-1]
        assert set(then) == PLAIN | {"ScaleA", "ScaleB"}
        assert two.data_ptr() in (then["ScaleA"], then["ScaleB"])
        assert then["ScaleA"] != then["ScaleB"], f"{others} is a 1.0 of the library's"
