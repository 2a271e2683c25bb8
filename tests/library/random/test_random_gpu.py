"""Random numbers in memory of a GPU: on torch's streams, at any address, and equal to the CPU's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_runner import cuda_device, toolchain
from random_reference import close, expected
from tunesmith.random import Generator

pytestmark = pytest.mark.gpu

T = 64 * 4


@pytest.fixture(scope="module")
def gpu():
    toolchain("CUDA")
    return cuda_device()


@pytest.fixture
def torch(gpu):
    return pytest.importorskip("torch")


def few(gpu, name="xorwow", **options):
    return Generator(name, 7, ordering="dynamic", shape=(64, 4), device=gpu, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int64"])
@pytest.mark.parametrize("name", ["philox4_32_10", "threefry4_64_20", "xorwow", "mrg32k3a", "lfsr113"])
def test_a_tensor_is_filled_from_any_element_and_nothing_beside_it(torch, gpu, name, dtype):
    for begin, count in ((0, 5000), (1, 5001), (3, 7)):
        whole = torch.full((begin + count + 5,), 99, dtype=getattr(torch, dtype), device="cuda")
        numbers = few(gpu, name)
        assert numbers.uniform(whole[begin : begin + count]) is not None
        found = whole.cpu().numpy()
        close(found[begin : begin + count], expected(name, "uniform", dtype, count, seed=7, engines=T))
        assert (found[:begin] == 99).all()
        assert (found[begin + count :] == 99).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_normal_numbers_are_within_the_bound_of_the_reference(torch, gpu, dtype):
    out = few(gpu).normal(torch.empty(5001, dtype=getattr(torch, dtype), device="cuda")[1:], mean=1.0, stddev=2.0)
    reference = expected("xorwow", "normal", dtype, 5000, seed=7, engines=T, mean=1.0, stddev=2.0)
    close(out.cpu().numpy(), reference)


def test_a_tensor_is_filled_on_the_current_stream_and_nothing_waits(torch, gpu):
    """The stream is busy before the call, and still busy when the call returns."""
    numbers, side = few(gpu), torch.cuda.Stream()
    numbers.uniform(torch.empty(T, device="cuda"))
    torch.cuda.synchronize()
    out = torch.zeros(3 * T, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(1_000_000_000)
        numbers.uniform(out)
        assert not side.query()
    side.synchronize()
    close(out.cpu().numpy(), expected("xorwow", "uniform", "float32", 3 * T, seed=7, position=T, engines=T))


def test_engines_go_from_one_stream_to_the_next(torch, gpu):
    """The first stream is delayed, so that engines that did not wait for it would deal their first numbers twice."""
    numbers, streams = few(gpu), [torch.cuda.Stream() for _ in range(3)]
    outs = [torch.zeros(100, device="cuda") for _ in streams]
    torch.cuda.synchronize()
    for stream, out in zip(streams, outs, strict=True):
        with torch.cuda.stream(stream):
            if out is outs[0]:
                torch.cuda._sleep(300_000_000)
        numbers.uniform(out, stream=stream)
    torch.cuda.synchronize()
    found = torch.cat(outs).cpu().numpy()
    close(found, expected("xorwow", "uniform", "float32", 300, seed=7, engines=T))


def test_a_tensor_without_a_device_named_opens_its_own(torch, gpu):
    numbers, before = Generator("philox4_32_10", 3), torch.cuda.current_device()
    out = numbers.uniform(torch.empty(1000, device="cuda"))
    close(out.cpu().numpy(), expected("philox4_32_10", "uniform", "float32", 1000, seed=3))
    assert (numbers.launched.device, torch.cuda.current_device()) == (gpu.target.name, before)


def test_a_type_that_torch_has_and_nobody_else_is_refused(torch, gpu):
    for device in ("cpu", "cuda"):
        with pytest.raises(TypeError, match=r"bfloat16.*float16, float32, float64"):
            Generator(device=gpu).uniform(torch.empty(10, dtype=torch.bfloat16, device=device))
    with pytest.raises(ValueError, match="contiguous"):
        Generator(device=gpu).uniform(torch.empty(10, device="cuda")[::2])


def test_host_arrays_and_tensors_are_filled_through_the_gpu(torch, gpu):
    numbers = few(gpu)
    first, second = numbers.uniform(np.zeros(301, np.float32)[1:]), numbers.uniform(torch.zeros(200)).numpy()
    close(np.concatenate([first, second]), expected("xorwow", "uniform", "float32", 500, seed=7, engines=T))


def test_cupy_arrays_are_full_on_return_and_take_streams(gpu):
    cupy = pytest.importorskip("cupy")
    numbers, out = few(gpu), cupy.zeros(1001, cupy.float32)
    numbers.uniform(out[1:])
    close(cupy.asnumpy(out[1:]), expected("xorwow", "uniform", "float32", 1000, seed=7, engines=T))
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    numbers.poisson(counts := cupy.zeros(500, cupy.uint32), 4.0, stream=stream.ptr)
    stream.synchronize()
    reference = expected("xorwow", "poisson", "uint32", 500, seed=7, position=1000, engines=T, lam=4.0)
    close(cupy.asnumpy(counts), reference)


def test_a_state_goes_on_on_the_gpu(torch, gpu):
    numbers = few(gpu)
    numbers.normal(torch.empty(2 * T + 70, device="cuda"))
    twin = Generator.from_state(numbers.state(), device=gpu)
    outs = [each.normal(torch.empty(300, device="cuda")) for each in (numbers, twin)]
    assert torch.equal(*outs)
