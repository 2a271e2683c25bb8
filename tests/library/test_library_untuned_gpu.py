"""Products of torch tensors on a real GPU without a logic: the vendor's BLAS or a policy computes them. Every data type
and layout is right."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from test_library_gpu import SPACINGS, UNIT, batches, close, torch, views  # noqa: F401  # a fixture

import tunesmith
from tunesmith.library import LaunchRecord, Library
from tunesmith.logic import Rule

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::UserWarning")]

SIZES = [(1, 1, 1), (17, 31, 5), (255, 129, 67), (1, 300, 64), (200, 1, 33), (512, 384, 256)]
INTEGERS = ["int8", "float8_e4m3fn", "float8_e5m2"]
"""Types whose products of small integers are exact."""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("size", SIZES)
def test_odd_sizes(torch, dtype, size):  # noqa: F811
    m, n, k = size
    a, b = (torch.randn(*shape, device="cuda").to(getattr(torch, dtype)) for shape in ((m, k), (k, n)))
    launches: list[LaunchRecord] = []
    with Library((), launched=launches.append) as lib:
        close(lib.matmul(a, b), a, b)
    assert [launch.choice.rule for launch in launches] == [Rule.VENDOR]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_views_of_every_layout(torch, dtype):  # noqa: F811
    kind = getattr(torch, dtype)
    with Library(()) as lib:
        for a, b in itertools.product(views(torch, 37, 65, kind), views(torch, 65, 129, kind)):
            close(lib.matmul(a, b), a, b)
        whole = torch.full((39, 132), 3.0, device="cuda", dtype=kind)
        a, b = next(views(torch, 37, 65, kind)), next(views(torch, 65, 129, kind))
        inside = whole[1:38, 2:131]
        close(lib.matmul(a, b, inside), a, b)
        inside.fill_(3.0)
        assert bool((whole == 3.0).all())


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_batches_of_every_layout(torch, dtype):  # noqa: F811
    kind, launches = getattr(torch, dtype), []
    with Library((), launched=launches.append) as lib:
        for a, b in itertools.product(batches(torch, 5, 33, 48, kind), batches(torch, 5, 48, 40, kind)):
            if a.ndim + b.ndim > 4:
                launches.clear()
                close(lib.matmul(a, b), a, b)
                assert len(launches) == 1


def test_double_precision(torch):  # noqa: F811
    a, b = (torch.randn(*shape, device="cuda", dtype=torch.float64) for shape in ((255, 67), (67, 129)))
    with Library(()) as lib:
        found = lib.matmul(a, b).cpu().numpy()
    wide = a.cpu().numpy().astype(np.longdouble), b.cpu().numpy().astype(np.longdouble)
    bound = (4 * 67**0.5 + 3) * 2.0**-53 * (np.abs(wide[0]) @ np.abs(wide[1]))
    assert (np.abs(found - wide[0] @ wide[1]) <= bound).all()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("size", [(17, 31, 5), (255, 129, 67), (128, 64, 96)])
def test_types_of_one_byte(torch, dtype, size):  # noqa: F811
    """Integers from -3 to 3: every product and sum is exact, and int8's and bfloat16's results are rounded once."""
    m, n, k = size
    a, b = (torch.randint(-3, 4, shape, device="cuda").to(getattr(torch, dtype)) for shape in ((m, k), (k, n)))
    with Library(()) as lib:
        found = lib.matmul(a, b)
    expected = a.double() @ b.double()
    spacing = 0.0 if dtype == "int8" else SPACINGS["bfloat16"]
    assert bool(((found.double() - expected).abs() <= spacing / 2 * expected.abs()).all())


def test_bias_activation_and_residual(torch):  # noqa: F811
    """The product and each later step are rounded to bfloat16 once."""
    a, b, bias, c = (torch.randn(*shape, device="cuda").bfloat16() for shape in ((65, 97), (97, 81), (81,), (65, 81)))
    wide = a.double() @ b.double()
    summed = torch.nn.functional.silu(wide + bias.double()) + c.double()
    largest = wide.abs().maximum(summed.abs()) + bias.double().abs() + c.double().abs()
    sums = (4 * 97**0.5 + 2) * UNIT * (a.double().abs() @ b.double().abs())
    with Library(()) as lib:
        found = lib.matmul(a, b, bias=bias, activation="silu", residual=c)
    # The derivative of silu is at most 1.1.
    assert bool(((found.double() - summed).abs() <= 1.1 * sums + 4 * SPACINGS["bfloat16"] * largest).all())


def test_the_module_says_once_what_it_does_and_a_graph_replays_it(torch):  # noqa: F811
    a, b = torch.randn(64, 48, device="cuda"), torch.randn(48, 80, device="cuda")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(2):
            close(tunesmith.matmul(a, b), a, b)
    assert ["the vendor's BLAS computes it; tune that type" in str(warning.message) for warning in warned] == [True]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = tunesmith.matmul(a, b)
    a.copy_(torch.randn_like(a))
    graph.replay()
    torch.cuda.synchronize()
    close(found, a, b)


def test_the_current_context_stays_what_it_was(torch):  # noqa: F811
    from tunesmith.devices.cuda.driver import call

    a = torch.randn(50, 50, device="cuda")
    context = int(call("cuCtxGetCurrent"))
    with Library(()) as lib:
        close(lib.matmul(a, a), a, a)
        assert int(call("cuCtxGetCurrent")) == context
    assert int(call("cuCtxGetCurrent")) == context


def test_torchs_operator_multiplies_float8_with_scales(torch, monkeypatch):  # noqa: F811
    """The operator is tried once for each layout. What it does not do here, such as a bias, is not left to it. Elements
    are 1/2 or 1 with a sign, so that the hardware's narrow sums are exact and only the result is rounded."""
    shapes = (64, 128), (96, 128)
    few = torch.tensor([-1, -0.5, 0.5, 1], device="cuda")
    a, b = (few[torch.randint(4, shape, device="cuda")].to(torch.float8_e4m3fn) for shape in shapes)
    scales = {name: torch.tensor(value, device="cuda") for name, value in (("scale_a", 0.5), ("scale_b", 3.0))}
    operator = torch._scaled_mm
    expected = operator(a, b.mT, *scales.values(), out_dtype=torch.bfloat16)
    calls, launches, out = [], [], torch.empty_like(expected)
    monkeypatch.setattr(torch, "_scaled_mm", lambda *some, **more: calls.append(more) or operator(*some, **more))
    with Library((), launched=launches.append) as lib:
        for _ in range(2):
            assert torch.equal(lib.matmul(a, b.mT, **scales), expected)
            assert torch.equal(lib.matmul(a, b.mT, out, **scales), expected)
        assert len(calls) == 2 + 4
        assert [launch.choice.rule for launch in launches] == [Rule.VENDOR] * 4
        bias = torch.ones(96, device="cuda", dtype=torch.bfloat16)
        found = lib.matmul(a, b.mT, bias=bias, **scales)
        assert len(calls) == 2 + 4
    spacing = SPACINGS["bfloat16"]
    wide = a.double() @ b.double().mT * 1.5 + 1
    assert bool(((found.double() - wide).abs() <= spacing * (wide.abs() + 1)).all())
