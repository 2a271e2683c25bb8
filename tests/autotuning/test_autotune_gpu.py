"""`tunesmith.autotune` on a GPU: kernels are tuned by their calls, and launched through Triton."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuda_runner import cuda_device, toolchain

triton = pytest.importorskip("triton", reason="Triton is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

import tunesmith  # noqa: E402
from autotune_kernels import accumulated, masked_copy, product, scaled_copy, strided_rows  # noqa: E402
from jit_kernels import softmax  # noqa: E402

pytestmark = pytest.mark.gpu

QUICK = {"TimeoutSeconds": 5, "Noise": 0.1, "MaximumSamples": 20, "WarmUpSeconds": 0.02, "ConfirmBlocks": 5}


@pytest.fixture(autouse=True)
def users_cache(monkeypatch, tmp_path):
    """An empty cache of the user's; a skip without a GPU."""
    toolchain("Triton")
    cuda_device()
    monkeypatch.setenv("TUNESMITH_CACHE", str(tmp_path))
    monkeypatch.delenv("TUNESMITH_AUTOTUNE", raising=False)


def autotuned(fn, blocks, key, warps=(4, 8), **changes):
    configs = [triton.Config({"BLOCK": block}, num_warps=count) for block in blocks for count in warps]
    return tunesmith.autotune(configs, key, settings=QUICK, quiet=True, **changes)(fn)


def copied(kernel, count=4096, **keywords):
    """A launch of `scaled_copy`; its result and what it must be."""
    x = torch.randn(count, device="cuda")
    y = torch.full_like(x, float("nan"))
    kernel[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](y, x, count, 2.0, None, **keywords)
    return y, x * 2


def test_a_softmax_is_right_and_a_second_object_has_its_choice():
    x = torch.randn(512, 1000, device="cuda")
    for _ in range(2):
        kernel = autotuned(softmax, (1024, 2048), ["columns"])
        y = torch.empty_like(x)
        kernel[(512,)](y, x, 1000)
        assert torch.allclose(y, torch.softmax(x, 1), atol=1e-6)
    assert kernel.measured is None
    assert kernel.best_config.kwargs["BLOCK"] in (1024, 2048)


def test_a_product_in_half_precision():
    m, n, k = 512, 384, 320
    configs = [
        triton.Config({"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": 32}, num_warps=4, num_stages=stages)
        for rows, columns in ((64, 64), (128, 64), (128, 128))
        for stages in (2, 3)
    ]
    kernel = tunesmith.autotune(configs, ["M", "N", "K"], settings=QUICK, quiet=True)(product)
    for dtype in (torch.float16, torch.bfloat16):
        a, b = (torch.randn(shape, device="cuda", dtype=dtype) for shape in ((m, k), (k, n)))
        c = torch.empty(m, n, device="cuda", dtype=dtype)
        kernel[lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"]))](c, a, b, m, n, k)
        assert torch.allclose(c, a @ b, atol=0.5, rtol=0.02)
        assert not kernel.measured.failures


def test_a_sum_begins_with_zero_and_the_calls_tensor_is_added_to_once():
    kernel = autotuned(accumulated, (256, 1024), ["count"], reset_to_zero=["total"])
    x, total = torch.ones(5000, device="cuda"), torch.full((1,), 7.0, device="cuda")
    kernel[lambda meta: (triton.cdiv(5000, meta["BLOCK"]),)](total, x, 5000)
    assert total.item() == 5007
    assert not kernel.measured.failures


def test_a_strided_view():
    kernel = autotuned(strided_rows, (64, 256), ["columns"])
    x = torch.randn(33, 400, device="cuda")[:, ::2]
    y = torch.zeros(33, 200, device="cuda")
    kernel[(33,)](y, x, 33, 200, y.stride(0), x.stride(0), x.stride(1))
    assert torch.equal(y, x * 2)


def test_truth_values():
    kernel = autotuned(masked_copy, (64, 256), ["count"])
    x = torch.rand(5000, device="cuda") < 0.5
    y = torch.zeros(5000, device="cuda")
    kernel[lambda meta: (triton.cdiv(5000, meta["BLOCK"]),)](y, x, 5000)
    assert torch.equal(y, x.float())
    assert not kernel.measured.failures


@pytest.mark.parametrize(("mode", "outcome"), [("hang", "timeout"), ("wrong", "wrong result")])
def test_a_configuration_that_hangs_or_is_wrong_is_recorded(mode, outcome):
    kernel = autotuned(scaled_copy, (128, 256, 64), ["count"], warps=(4,))
    y, expected = copied(kernel, MODE=mode)
    assert torch.equal(y, expected)
    assert kernel.best_config.kwargs["BLOCK"] in (128, 256)
    assert len(kernel.measured.failures) == 1
    assert all(reason.startswith(outcome) for reason in kernel.measured.failures.values())


def test_the_first_configuration_hangs():
    kernel = autotuned(scaled_copy, (64, 128), ["count"], warps=(4,))
    y, expected = copied(kernel, MODE="hang")
    assert torch.equal(y, expected)


def test_a_reference_is_compared_with():
    kernel = autotuned(scaled_copy, (64, 128), ["count"], reference=lambda call: {"y": call["x"] * call["factor"]})
    y, expected = copied(kernel, MODE="wrong")
    assert torch.equal(y, expected)
    assert len(kernel.measured.failures) == 2


def test_an_added_configuration_is_the_only_one_measured():
    copied(autotuned(scaled_copy, (64, 128), ["count"]))
    kernel = autotuned(scaled_copy, (64, 128, 256), ["count"])
    copied(kernel)
    assert kernel.measured.measured == 2, "the new block with both numbers of warps"


def test_never_takes_the_nearest(monkeypatch):
    copied(autotuned(scaled_copy, (64, 128), ["count"]), 4096)
    monkeypatch.setenv("TUNESMITH_AUTOTUNE", "never")
    kernel = autotuned(scaled_copy, (64, 128), ["count"])
    with pytest.warns(UserWarning, match=r"takes the choice of \(4096, "):
        y, expected = copied(kernel, 5000)
    assert torch.equal(y, expected)


def test_a_captured_graph_needs_a_choice():
    kernel = autotuned(scaled_copy, (64, 128), ["count"])
    x = torch.randn(4096, device="cuda")
    y = torch.zeros_like(x)
    grid = lambda meta: (triton.cdiv(4096, meta["BLOCK"]),)  # noqa: E731
    kernel.precompile(y, x, 4096, 2.0, None, grid=grid)
    assert not y.any()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[grid](y, x, 4096, 2.0, None)
    graph.replay()
    assert torch.equal(y, x * 2)


PROGRAM = """
import sys, time
sys.path.insert(0, {support!r})
import torch, triton, tunesmith
from autotune_kernels import scaled_copy
configs = [triton.Config({{"BLOCK": block}}) for block in (64, 128)]
kernel = tunesmith.autotune(configs, ["count"], quiet=True)(scaled_copy)
x = torch.ones(4096, device="cuda")
y = torch.zeros_like(x)
torch.cuda.synchronize()
began = time.monotonic()
kernel[lambda meta: (triton.cdiv(4096, meta["BLOCK"]),)](y, x, 4096, 2.0, None)
torch.cuda.synchronize()
assert (y == 2).all()
print(kernel.measured is not None, time.monotonic() - began)
assert kernel.measured is not None or "sqlalchemy" not in sys.modules
"""


def test_a_second_process_is_ready_at_once():
    program = PROGRAM.format(support=str(Path(__file__).parents[1] / "support"))
    outputs = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        assert not done.returncode, done.stderr
        outputs.append(done.stdout.split())
    assert [measured for measured, _ in outputs] == ["True", "False"]
    assert float(outputs[1][1]) < 1
