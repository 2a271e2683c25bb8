"""A GEMM problem as a call of `matmul`, and as NumPy's product where NumPy computes the same."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_fakes import HostGpu, logic
from library_fakes import close, library
from tunesmith.library.call_adapters import call_adapter_of, logical_arrays, storage_for
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem

PLAIN = {"transpose_b": False}


def adapted(alpha=1.0, beta=0.0, **fields):
    """The adapter of a problem, the problem, and its memory."""
    made = Problem(gemm_type(**PLAIN, **fields), (6, 7, 5), (), Configuration({"alpha": alpha, "beta": beta}))
    return call_adapter_of(made.type), made, storage_for(made, np.random.default_rng(3))


def test_numpy_computes_a_plain_product_into_the_same_memory():
    for fields in ({}, {"use_beta": False}):
        adapter, made, storage = adapted(**fields)
        adapter.peer(made, storage)()
        arrays = logical_arrays(made, storage)
        close(arrays["D"], arrays["A"] @ arrays["B"])


@pytest.mark.parametrize(
    "more",
    [
        {"alpha": 2.0},
        {"beta": 0.5},
        {"bias": True},
        {"activation": "relu"},
        {"bias": True, "activation": "relu"},
        {"bias": True, "beta": 0.5},
        {"tf32": True},
    ],
)
def test_numpy_is_no_peer_of_anything_more(more):
    adapter, made, storage = adapted(**more)
    assert adapter.peer(made, storage) is None


def test_c_is_read_only_if_the_type_has_beta_and_the_problem_too():
    unread = [
        adapted(**more)[0].unread(adapted(**more)[1]) for more in ({}, {"beta": 0.5}, {"beta": 0.5, "use_beta": False})
    ]
    assert unread == [("C",), (), ("C",)]


def test_without_scalars_alpha_is_1_and_beta_0():
    adapter, made, storage = adapted()
    bare, options = replace(made, scalars=Configuration()), []
    assert adapter.unread(bare) == ("C",)
    assert adapter.peer(bare, storage)
    keeping = SimpleNamespace(matmul=lambda *arrays, **named: options.append(set(named)))
    adapter.call(keeping, bare, storage)()
    assert options == [{"out"}]


@pytest.mark.parametrize(
    "more", [{}, {"alpha": 2.0}, {"beta": 0.5}, {"bias": True}, {"activation": "relu"}, {"alpha": -1.0, "beta": 1.0}]
)
def test_the_call_solves_the_problem_in_its_memory(more):
    adapter, made, storage = adapted(**more)
    before = {name: x.copy() for name, x in logical_arrays(made, storage).items()}
    with library(logic(made.type), device=HostGpu()) as lib:
        adapter.call(lib, made, storage)()
    wide = more.get("alpha", 1.0) * (before["A"].astype(float) @ before["B"])
    wide += before["Bias"][:, None] if "bias" in more else 0.0
    wide = np.maximum(wide, 0.0) if "activation" in more else wide
    beta = more.get("beta", 0.0)
    close(logical_arrays(made, storage)["D"], wide + beta * before["C"] if beta else wide)


def test_host_arrays_are_no_problem_with_scales_on_a_device_or_with_tf32():
    takes = [
        call_adapter_of(kind).takes_host_arrays(kind)
        for kind in (gemm_type(), gemm_type("f8", scaled=True), gemm_type(tf32=True), gemm_type(bias=True))
    ]
    assert takes == [True, False, False, True]


def test_a_batch_of_one_may_be_given_for_a_type_without_a_batch():
    single, batched = gemm_type(), gemm_type(batched=True)
    adapter = call_adapter_of(single)
    assert adapter.sizes(single, (6, 7, 5)) == adapter.sizes(single, (6, 7, 1, 5)) == (6, 7, 5)
    assert adapter.sizes(batched, (6, 7, 2, 5)) == (6, 7, 2, 5)
    with pytest.raises(ValueError, match="has no batch, 2 was given"):
        adapter.sizes(single, (6, 7, 2, 5))
    for kind, numbers in ((single, (6, 7)), (single, (6, 7, 1, 5, 2)), (batched, (6, 7, 5))):
        with pytest.raises(ValueError, match=f"{len(numbers)} numbers were given"):
            adapter.sizes(kind, numbers)
