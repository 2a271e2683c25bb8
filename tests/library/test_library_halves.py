"""Products on the host that are too large for a buffer of the device are computed in parts, in any layout."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from library_fakes import TARGET, TYPES, WithoutSharedMemory, close, library, logic, normal
from opencl_runner import opencl_device
from tunesmith.devices.fake import FakeDevice
from tunesmith.devices.opencl.device import OpenCLDevice
from tunesmith.kernels import KERNELS
from tunesmith.kernels.fake import FakeGemm
from tunesmith.library import LaunchRecord, Library
from tunesmith.logic import Document, Logic, NamedSolution, Origin, SizeRow
from tunesmith.problems import storage_bytes
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Estimate, Rejection, Solution, UserError

MOST = 800
"""Bytes of the largest buffer in these tests: 200 elements."""


@pytest.fixture
def small_buffers(monkeypatch):
    """Makes the fake family reject large operands as the families for devices do."""

    def rejections_for(self, config, problem, target):
        for operand in GemmOperation().operands(problem):
            if storage_bytes(operand) > target.max_allocation_bytes:
                yield Rejection("maximum allocation", operand.name)

    monkeypatch.setattr(FakeGemm, "rejections_for", rejections_for)


def opened(kinds, launches, device=FakeDevice):
    target = replace(TARGET, max_allocation_bytes=MOST)

    class Small(device):
        def allocate(self, size):
            assert size <= MOST
            return super().allocate(size)

    return library(*map(logic, kinds), device=Small(target), launched=launches.append)


SIZES = [(30, 20, 5), (20, 30, 5), (40, 3, 11), (3, 40, 11), (61, 1, 7), (1, 61, 7), (31, 33, 17), (7, 205, 3)]
COLUMNS_FIRST = [(), ("a",), ("b",), ("out", "c"), ("a", "b", "out")]
CASES = [
    pytest.param(*case, marks=[pytest.mark.thorough] * (sum(turns) % 2))
    for turns, case in zip(
        itertools.product(range(8), range(5), range(2)),
        itertools.product(SIZES, COLUMNS_FIRST, (FakeDevice, WithoutSharedMemory)),
        strict=True,
    )
]
"""Every size in every layout. The devices take turns, so that each has every size and every layout; the rest are
`thorough`."""


@pytest.mark.parametrize(("size", "columns_first", "device"), CASES)
@pytest.mark.usefixtures("small_buffers")
def test_parts_make_the_whole(size, columns_first, device):
    m, n, k = size
    launches: list[LaunchRecord] = []
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n), "out": (m, n)}
    made = {name: normal(*shape) for name, shape in shapes.items()}
    made = {name: np.asfortranarray(x) if name in columns_first else x for name, x in made.items()}
    with opened(TYPES, launches, device) as lib, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = lib.matmul(**made, bias=normal(n), alpha=1.5, beta=2.0, activation="none")
        plain = lib.matmul(made["a"], made["b"])
        assert found is made["out"]
        bias = lib.matmul(np.zeros((m, 1), np.float32), np.ones((1, n), np.float32), bias=normal(n))
    close(plain, made["a"] @ made["b"])
    assert bias.shape == (m, n)
    assert all(4 * math.prod(record.problem.sizes[:2]) <= MOST for record in launches)
    assert len(launches) > 2


@pytest.mark.usefixtures("small_buffers")
def test_c_beta_and_alpha_are_each_parts_own():
    a, b, c = normal(30, 5), normal(5, 20), normal(30, 20)
    with opened(TYPES, []) as lib:
        close(lib.matmul(a, b, c=c, alpha=0.5, beta=-2.0), 0.5 * a @ b - 2 * c)


@pytest.mark.usefixtures("small_buffers")
def test_an_out_that_is_an_operand_is_written_last():
    x, y = normal(30, 30), normal(30, 30)
    expected = x @ y
    with opened(TYPES, []) as lib:
        assert lib.matmul(x, y, out=x) is x
    close(x, expected)


@pytest.mark.parametrize("shared", ["", "a", "b"])
@pytest.mark.usefixtures("small_buffers")
def test_batches_are_cut_between_their_matrices_and_then_within(shared):
    launches: list[LaunchRecord] = []
    a, b = normal(*([] if shared == "a" else [5]), 30, 9), normal(*([] if shared == "b" else [5]), 9, 20)
    kinds = [
        *TYPES,
        *(gemm_type(transpose_a=x, transpose_b=y, batched=True) for x in (False, True) for y in (False, True)),
    ]
    with opened(kinds, launches) as lib:
        close(lib.matmul(a, b), a @ b)
    assert len(launches) > 5


@pytest.mark.usefixtures("small_buffers")
def test_what_cannot_be_cut_is_refused_with_the_reason():
    """The sums of one row and one column are longer than any buffer."""
    with opened(TYPES, []) as lib, pytest.raises(UserError, match=r"no solution runs 1x1x300.*maximum allocation"):
        lib.matmul(normal(1, 300), normal(300, 1))


@pytest.mark.usefixtures("small_buffers")
def test_select_says_why_and_what_to_ask_for():
    with opened(TYPES[:1], []) as lib, pytest.raises(UserError) as raised:
        lib.select(30, 20, 5)
    assert str(raised.value).endswith(
        "no solution is legal at 30x20x5 (S0: maximum allocation: C); "
        "ask for a part: `matmul` of arrays on the host makes such a product in halves"
    )


@pytest.mark.opencl
def test_a_real_device_with_small_buffers_makes_a_large_product():
    """As a device with buffers of 2 GiB would with a larger product, but faster."""
    target = replace(opencl_device().target, max_allocation_bytes=40_000)
    kind, launches = gemm_type(transpose_b=False), []
    family = KERNELS["TiledGemm"]
    solution = Solution(kind, family.name, family.space(kind, target).defaults)
    origin = Origin.of(target, "none", "0.1.0", "2026-11-20T12:00:00Z")
    row = SizeRow((64, 64, 64), (), 0, Estimate(1e-4, 1e-4, 1e-4, 7), 1.0)
    made = Logic(Document(origin, kind, (NamedSolution("S0", solution),), (row,), 0))
    a, b = normal(300, 40), normal(40, 200)
    with Library([(Path("logic.yaml"), made)], device=OpenCLDevice(target), launched=launches.append) as lib:
        close(lib.matmul(a, b), a.astype(float) @ b)
    assert len(launches) == 8
