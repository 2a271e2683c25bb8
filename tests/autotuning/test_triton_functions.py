"""Triton functions of a program are tuned from their text, which holds all that they read."""

# ruff: noqa: N803

from __future__ import annotations

import linecache

import numpy as np
import pytest

from cuda_runner import H200, cuda_device, toolchain

triton = pytest.importorskip("triton", reason="Triton is not installed")

import tunesmith  # noqa: E402
from jit_kernels import attention, softmax  # noqa: E402
from tunesmith import In, Out, UserError  # noqa: E402
from tunesmith.autotuning.jit_text import JitText, is_jit_function  # noqa: E402
from tunesmith.autotuning.kernel import DescriptionText  # noqa: E402
from tunesmith.autotuning.tuning import described_kernel, write  # noqa: E402
from tunesmith.kernels.custom import CustomTritonKernel  # noqa: E402
from tunesmith.problems.custom import CustomOperation  # noqa: E402

QUICK = {"Noise": 0.1, "MaximumSamples": 20, "WarmUpSeconds": 0.02, "ConfirmBlocks": 5}
HEAD = 64


def softmax_reference(x):
    exponentials = np.exp(x - x.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


SOFTMAX = {
    "arguments": {"y": Out("float32", "Rows", "Columns"), "x": In("float32", "Rows", "Columns"), "columns": "Columns"},
    "sizes": {"Rows": 512, "Columns": 1000},
    "parameters": {"BLOCK": [512, 1024, 2048], "num_warps": [1, 4, 8]},
    "constraints": lambda p: p.Columns <= p.BLOCK,
    "grid": "Rows",
    "reference": softmax_reference,
}


def attention_reference(q, k, v, scale):
    """The value, and the sums of absolute values: rows of v cancel each other."""
    weights = [softmax_reference(queries @ keys.T * scale) for queries, keys in zip(q, k, strict=True)]
    return np.matmul(weights, v), np.matmul(weights, np.abs(v))


HEADS = ("Heads", "Length", HEAD)
ATTENTION = {
    "arguments": {
        "out": Out("float16", *HEADS),
        **{name: In("float16", *HEADS) for name in "qkv"},
        "length": "Length",
        "scale": HEAD**-0.5,
    },
    "sizes": {"Heads": 4, "Length": 500},
    "parameters": {"HEAD": [HEAD], "BLOCK_M": [32, 64], "BLOCK_N": [32, 64], "num_warps": [4], "num_stages": [1, 2]},
    "grid": lambda p: (-(-p.Length // p.BLOCK_M), p.Heads),
    "reference": attention_reference,
    "tolerance": 40,
}


def compiled(kernel, folder, described, **values):
    description = described_kernel(kernel, "program.py:1", **described)
    path = write(folder, description, DescriptionText(description), "")
    fields = {"OperationType": "Custom", "Kernel": f"{description.name}.kernel.yaml"}
    problem_type = CustomOperation().type_of(fields, lambda key: key, path.parent)
    family = CustomTritonKernel()
    first = {name: listed[0] for name, listed in described["parameters"].items()}
    config = family.space(problem_type).defaults | first | values
    return [toolchain("Triton").compile(module, H200) for module in family.modules(config, problem_type)]


def test_a_function_is_compiled_from_its_text(tmp_path):
    (binary,) = compiled(softmax, tmp_path, SOFTMAX, BLOCK=1024)
    assert binary.facts[0].entry == "softmax"


def test_helpers_imports_and_constants_come_with_it(tmp_path):
    text = JitText(attention)
    assert text.text.count("@triton.jit\ndef ") == 2
    assert "constexpr(-1e+30)" in text.text
    assert "constexpr(1.4426950408889634)" in text.text
    assert "import triton.language as tl" in text.text
    (binary,) = compiled(attention, tmp_path, ATTENTION)
    assert binary.facts[0].entry == "attention"


def test_every_line_of_the_text_knows_its_file():
    text = JitText(attention)
    for number, line in enumerate(text.text.splitlines(), 1):
        if "def " in line or "tl.dot" in line:
            file, _, line_number = text.location_at(number).rpartition(":")
            assert linecache.getline(file, int(line_number)).rstrip() == line


def test_a_nested_function_brings_the_values_around_it(tmp_path):
    import triton.language as tl

    factor = 3.0

    @triton.jit
    def scaled(y, x, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at) * factor)

    assert is_jit_function(scaled)
    assert "factor = triton.language.constexpr(3.0)" in JitText(scaled).text


def test_a_function_that_is_defined_again_changes_nothing_that_was_made():
    import triton.language as tl

    @triton.jit
    def copied(y, x):
        tl.store(y, tl.load(x))

    before = JitText(copied)

    @triton.jit
    def copied(y, x):
        tl.store(y, tl.load(x) + 1)

    assert "+ 1" not in before.text
    assert "+ 1" in JitText(copied).text


def test_what_no_text_can_say_is_told_at_its_line():
    import triton.language as tl

    table = {"a": 1}

    @triton.jit
    def reads(y):
        tl.store(y, table["a"])

    @triton.jit
    def lacks(y):
        tl.store(y, nowhere)  # noqa: F821

    def line(function, number):
        return rf"test_triton_functions\.py:{function.fn.__code__.co_firstlineno + number}: "

    with pytest.raises(UserError, match=line(reads, 2) + "reads reads table, which is a dict; pass it as an argument"):
        JitText(reads)
    with pytest.raises(UserError, match=line(lacks, 2) + "lacks reads nowhere, which is not defined"):
        JitText(lacks)


def test_a_decorated_function_is_refused():
    wrapped = triton.autotune(configs=[triton.Config({"BLOCK": 1024})], key=[])(softmax)
    with pytest.raises(UserError, match="the kernel is a Autotuner; give its text, its file, or a function"):
        described_kernel(wrapped, "program.py:1", **SOFTMAX)


def test_a_parameter_that_the_function_lacks_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"nothing uses WIDTH, and softmax"):
        compiled(softmax, tmp_path, {**SOFTMAX, "parameters": {"BLOCK": [1024], "WIDTH": [1, 2]}})


def tuned_on_gpu(kernel, folder, described):
    toolchain("Triton")
    cuda_device()
    return tunesmith.tune(kernel, folder, **described, settings=QUICK, quiet=True, device="CUDA")


@pytest.mark.gpu
def test_a_softmax_is_tuned_and_launched_on_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    tuned = tuned_on_gpu(softmax, tmp_path, SOFTMAX)
    assert tuned.winner["BLOCK"] in (1024, 2048)
    x = torch.randn(77, 1000, device="cuda")
    assert torch.allclose(tuned.launch(x=x), torch.softmax(x, 1), atol=1e-6)
    assert not tuned_on_gpu(softmax, tmp_path, SOFTMAX).outcome.ledger.measured


@pytest.mark.gpu
def test_attention_is_tuned_and_launched_on_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    tuned = tuned_on_gpu(attention, tmp_path, ATTENTION)
    q, k, v = (torch.randn(2, 300, HEAD, device="cuda", dtype=torch.float16) for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    assert torch.allclose(tuned.launch(q=q, k=k, v=v), expected, atol=2e-3)
