"""The compiled short way on a real GPU: right for every kind of launch, stream, graph and workspace."""

from __future__ import annotations

import itertools
import sys

import pytest

import tunesmith
from cuda_runner import torch_on_gpu
from matmul_overhead import LAUNCHES, untuned
from native_build import built
from tunesmith.records import UserError

pytestmark = pytest.mark.gpu

SPLIT = "split-K"


@pytest.fixture(scope="module")
def torch():
    torch = torch_on_gpu()
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this torch has no C exchange interface")
    return torch


@pytest.fixture
def native(torch, monkeypatch, tmp_path_factory):
    """The compiled module, as if it were installed."""
    module = built(tmp_path_factory.getbasetemp())
    if isinstance(module, str):
        pytest.skip(module)
    monkeypatch.setitem(sys.modules, "tunesmith_native", module)
    return module


def operands(torch, dtype, rows=96, inner=256, columns=128):
    return [
        torch.randn(*shape, device="cuda", dtype=getattr(torch, dtype)) for shape in ((rows, inner), (inner, columns))
    ]


def right(torch, found, a, b):
    """Whether a result is within the sums' rounding and one spacing of its type, of the product in double precision."""
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    spacing = torch.finfo(found.dtype).eps
    return bool(((found.double() - exact).abs() <= 2.0**-20 * size + spacing * exact.abs() + 1e-30).all())


@pytest.mark.parametrize("launches", list(LAUNCHES["GPU"]))
@pytest.mark.parametrize("with_out", [False, True])
def test_repeated_products_are_right_on_any_memory(torch, native, launches, with_out):
    kernel = LAUNCHES["GPU"][launches]
    with untuned(kernel, "GPU") as library:
        for _ in range(4):
            a, b = operands(torch, kernel.dtype)
            out = torch.empty(96, 128, device="cuda", dtype=a.dtype) if with_out else None
            result = library.matmul(a, b, out)
            assert right(torch, result, a, b)
            again = library._begun_products().torch.repeat(a, b, out, None, None)
            assert again is not None, "compiled code does not know the product"
            assert right(torch, again, a, b)
            assert out is None or again is out


@pytest.mark.parametrize("launches", list(LAUNCHES["GPU"]))
def test_a_product_follows_the_current_stream(torch, native, launches):
    """The operands are ready late on that stream, so a product on another stream would be wrong."""
    kernel = LAUNCHES["GPU"][launches]
    with untuned(kernel, "GPU") as library:
        streams = [torch.cuda.Stream() for _ in range(2)]
        for stream in (*streams, *streams):
            a, b = operands(torch, kernel.dtype)
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(20_000_000)
                late = a * 2
                result = library.matmul(late, b)
            stream.synchronize()
            assert right(torch, result, late, b)


@pytest.mark.parametrize("launches", list(LAUNCHES["GPU"]))
def test_a_captured_product_is_replayed_with_what_its_operands_hold_then(torch, native, launches):
    kernel = LAUNCHES["GPU"][launches]
    with untuned(kernel, "GPU") as library:
        a, b = operands(torch, kernel.dtype)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                library.matmul(a, b)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            result = library.matmul(a, b)
        for _ in range(2):
            a.copy_(torch.randn_like(a))
            graph.replay()
            torch.cuda.synchronize()
            assert right(torch, result, a, b)


def test_a_workspace_that_grows_is_used_from_then_on(torch, native):
    kernel = LAUNCHES["GPU"][SPLIT]
    with untuned(kernel, "GPU") as library:
        for rows in (64, 4096, 64):
            a, b = operands(torch, kernel.dtype, rows)
            for _ in range(3):
                assert right(torch, library.matmul(a, b), a, b)


def test_a_gradient_and_overlapping_memory_are_treated_as_before(torch, native):
    kernel = LAUNCHES["GPU"]["cuBLAS"]
    with untuned(kernel, "GPU") as library:
        a, b = operands(torch, kernel.dtype, 128, 128, 128)
        out = torch.empty_like(a)
        library.matmul(a, b, out)
        library.matmul(a, b)
        kept = a.clone()
        assert library.matmul(a, b, a) is a
        assert right(torch, a, kept, b)
        with pytest.raises(UserError, match="gradient"):
            library.matmul(torch.nn.Parameter(a), b)


def test_a_float8_product_over_an_operand_is_made_on_a_copy(torch, native):
    """The operands' memory is that of the result, as bfloat16."""
    if torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("no float8 products on this GPU")
    with tunesmith.load() as library:
        for rows, inner, columns in ((16, 256, 128), (2048, 2048, 1024)):
            a, b, scales, right_result = float8_operands(torch, rows, inner, columns)
            library.matmul(a, b, torch.empty(rows, columns, device="cuda", dtype=torch.bfloat16), **scales)
            out = a.view(torch.bfloat16)
            assert library.matmul(a, b, out, **scales) is out
            assert torch.equal(out, right_result)


def test_a_closed_library_forgets_its_products(torch, native):
    kernel = LAUNCHES["GPU"]["a kernel"]
    library = untuned(kernel, "GPU")
    a, b = operands(torch, kernel.dtype)
    library.matmul(a, b)
    library.close()
    assert library._begun_products().torch.repeat(a, b, None, None, None) is None


def float8_operands(torch, rows, inner, columns):
    """Whole numbers, whose sums are exact, with scales that are powers of two."""
    a, b = (
        torch.randint(-2, 3, shape, device="cuda").to(torch.float8_e4m3fn)
        for shape in ((rows, inner), (columns, inner))
    )
    scales = {
        name: torch.tensor(2.0 ** int(torch.randint(-2, 3, ())), device="cuda") for name in ("scale_a", "scale_b")
    }
    exact = (a.double() @ b.double().mT) * scales["scale_a"].double() * scales["scale_b"].double()
    return a, b.mT, scales, exact.bfloat16()


@pytest.mark.parametrize("with_out", [False, True])
def test_float8_products_with_scales_are_repeated_on_any_memory(torch, native, with_out):
    """By our kernels and, where the vendor's library is the choice (on an H200 for the last size), by torch's
    operator."""
    if torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("no float8 products on this GPU")
    with tunesmith.load() as library:
        for rows, inner, columns in ((16, 256, 128), (96, 256, 4096), (32, 512, 17920)):
            for _ in range(3):
                a, b, scales, right_result = float8_operands(torch, rows, inner, columns)
                out = torch.empty(rows, columns, device="cuda", dtype=torch.bfloat16) if with_out else None
                result = library.matmul(a, b, out, **scales)
                assert torch.equal(result, right_result)
                again = library._begun_products().torch.repeat(a, b, out, scales["scale_a"], scales["scale_b"])
                assert again is not None, "compiled code does not know the product"
                assert torch.equal(again, right_result)
                assert out is None or again is out


def test_a_captured_float8_product_is_replayed_with_what_its_scales_hold_then(torch, native, monkeypatch):
    """Torch's operator makes none of it: a graph has a workspace of its own."""
    multiply = torch._scaled_mm

    def outside_of_captures(*arguments, **options):
        assert not torch.cuda.is_current_stream_capturing()
        return multiply(*arguments, **options)

    monkeypatch.setattr(torch, "_scaled_mm", outside_of_captures)
    if torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("no float8 products on this GPU")
    with tunesmith.load() as library:
        for size in ((16, 256, 128), (2048, 2048, 2048)):
            a, b, scales, right_result = float8_operands(torch, *size)
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    library.matmul(a, b, **scales)
            stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                result = library.matmul(a, b, **scales)
            scales["scale_a"].mul_(2)
            graph.replay()
            torch.cuda.synchronize()
            assert torch.equal(result, 2 * right_result)


def test_many_layouts_stay_apart(torch, native):
    """Layouts differ in sizes, transposition, alignment and spacing; every one is right when it comes again."""
    kernel = LAUNCHES["GPU"]["cuBLAS"]
    with untuned(kernel, "GPU") as library:
        cases = []
        for rows, inner, columns, turned in itertools.product((1, 17, 64), (8, 65), (1, 40), (False, True)):
            a, b = operands(torch, kernel.dtype, rows, inner, columns)
            cases.append((a, b.T.contiguous().T if turned else b))
        for a, b in (*cases, *cases):
            assert right(torch, library.matmul(a, b), a, b)
