"""The library on a real device: the kernels' own sources, compiled and launched, against NumPy in double precision."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tunesmith
from tunesmith.devices import APIS
from tunesmith.devices.opencl.device import OpenCLDevice
from tunesmith.kernels import KERNELS
from tunesmith.library import LaunchRecord
from tunesmith.library.launch._host_launch import AGAIN
from tunesmith.logic import Document, FinalTable, NamedSolution, Origin, Rule, SizeRow, TableCell, write_logic
from tunesmith.logic.build import build
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Configuration, Estimate, Outcome, Problem, Solution

pytestmark = pytest.mark.opencl

SIZES = [(16, 16, 16), (64, 48, 32), (200, 120, 70)]
FAMILIES = ["TiledGemm", "RegisterGemm"]


@pytest.fixture(scope="module")
def target():
    try:
        found = APIS["OpenCL"].find()
    except ImportError as error:
        pytest.skip(f"no OpenCL: {error}")
    usable = [device.target for device in found if device.target and device.usable]
    if not usable:
        pytest.skip(f"no OpenCL device: {found[0].problem}")
    return usable[0]


def table(kind, target):
    """Made-up times: the families take turns as the fastest."""
    solutions = tuple(Solution(kind, name, KERNELS[name].space(kind, target).defaults) for name in FAMILIES)
    batch = (1,) if "Batch" in kind.indices else ()
    problems = tuple(
        Problem(kind, (m, n, *batch, k), (), Configuration({"alpha": 1.0, "beta": 0.0})) for m, n, k in SIZES
    )
    cells = {
        (problem, solution): TableCell(Outcome.OK, estimate=Estimate(t, t, t, 7))
        for row, problem in enumerate(problems)
        for column, solution in enumerate(solutions)
        if (t := 1e-3 * (1 + (row + column) % 2))
    }
    return FinalTable(kind, problems, tuple(map(GemmOperation().flops, problems)), solutions, cells)


def write(kind, target, folder):
    origin = Origin.of(target, "its own", "0.1.0", "2026-11-20T12:00:00Z")
    write_logic(build([table(kind, target)], origin).document, folder / f"{kind.name}.yaml")


def close(found, a, b, c, beta):
    """Asserts equality within single precision: a few units of |A| |B|, whatever cancels."""
    wide_a, wide_b, wide_c = (x.astype(np.float64) for x in (a, b, c))
    bound = (np.abs(wide_a) @ np.abs(wide_b) + np.abs(wide_c)) * 2 * a.shape[-1] ** 0.5 * np.finfo(np.float32).eps
    assert (np.abs(found - (wide_a @ wide_b + beta * wide_c)) <= bound + 1e-6).all()


@pytest.mark.slow
@pytest.mark.parametrize("batched", [False, True])
def test_seen_and_unseen_sizes_in_every_layout(target, tmp_path, batched):
    for transpose_a, transpose_b in itertools.product([False, True], repeat=2):
        write(gemm_type("s", transpose_a=transpose_a, transpose_b=transpose_b, batched=batched), target, tmp_path)
    random = np.random.default_rng(3)
    unseen = [tuple(int(extent) for extent in random.integers(1, 90, 3)) for _ in range(4)] + [(1, 1, 1), (300, 1, 129)]
    launches: list[LaunchRecord] = []
    with tunesmith.load(tmp_path, launched=launches.append, floor=False) as lib:
        orders = itertools.cycle(itertools.product("CF", repeat=2))
        # Row-major D is the problem of its transpose, so the measured (M, N, K) is n, m, k here.
        for (n, m, k), beta in itertools.product([*SIZES, *unseen], [0.0, -0.5]):
            lead = (3,) if batched and m < 100 else ()
            a, b, c = (random.standard_normal((*lead, *shape)).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
            for a_order, b_order in (next(orders), next(orders)):
                a, b = (_in_order(x, order) for x, order in ((a, a_order), (b, b_order)))
                close(lib.matmul(a, b, c=c, beta=beta), a, b, c, beta)
    assert {record.choice.solution.kernel for record in launches} == set(FAMILIES)
    assert {record.choice.rule for record in launches} == {Rule.EXACT, Rule.NEAREST}
    fields = [record.problem.type.fields for record in launches]
    assert len({(f["TransposeA"], f["TransposeB"]) for f in fields}) == 4


def _in_order(x, order):
    return np.ascontiguousarray(x) if order == "C" else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def test_the_callers_own_memory_serves_where_the_device_shares_it(target, tmp_path):
    """Arrays of any size are wrapped, with rows further apart than their length; D and the memory around D are
    checked."""
    write(gemm_type("s", transpose_b=False), target, tmp_path)
    m, n, k = 301, 257, 129
    random = np.random.default_rng(4)
    wide = np.full((m, n + 7), 5.0, np.float32)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    with tunesmith.load(tmp_path, floor=False) as lib:
        lib.matmul(a, b, out=wide[:, :n])
        close(wide[:, :n], a, b, np.zeros((m, n)), 0.0)
        assert (wide[:, n:] == 5.0).all()
        close(lib.matmul(a, b), a, b, np.zeros((m, n)), 0.0)


@pytest.fixture
def prepared(monkeypatch):
    """The numbers of steps of all plans that a device bound."""
    steps: list[int] = []
    prepare = OpenCLDevice.prepare

    def counted(self, plan, *more):
        steps.append(len(plan.steps))
        return prepare(self, plan, *more)

    monkeypatch.setattr(OpenCLDevice, "prepare", counted)
    return steps


def test_a_call_on_the_same_memory_is_bound_once_and_every_call_reads_what_is_there_now(target, tmp_path, prepared):
    write(gemm_type("s", transpose_b=False), target, tmp_path)
    random = np.random.default_rng(5)
    a, b = (random.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    b.flags.writeable = False
    out = np.empty((32, 32), np.float32)
    with tunesmith.load(tmp_path, floor=False) as lib:
        for _ in range(3):
            assert lib.matmul(a, b, out) is out
            close(out, a, b, np.zeros((32, 32)), 0.0)
            a += 1
        assert len(prepared) == 1
        lib.matmul(a, b, out, alpha=2.0)
        close(out, 2 * a, b, np.zeros((32, 32)), 0.0)
        lib.matmul(b, a, out)
        close(out, b, a, np.zeros((32, 32)), 0.0)
        overlapping = a.copy()
        close(lib.matmul(overlapping, b, overlapping), a, b, np.zeros((32, 32)), 0.0)


def test_memory_that_comes_and_goes_is_never_mistaken_for_other_memory(target, tmp_path):
    """More sets of arrays than a plan stays bound to, in an order of their own, some of them freed in between."""
    write(gemm_type("s", transpose_b=False), target, tmp_path)
    random = np.random.default_rng(6)
    sets = [[random.standard_normal((20, 20)).astype(np.float32) for _ in range(3)] for _ in range(2 * AGAIN)]
    with tunesmith.load(tmp_path, floor=False) as lib:
        for turn in range(6 * AGAIN):
            number = int(random.integers(len(sets)))
            a, b, c = sets[number]
            close(lib.matmul(a, b, c=c, beta=1.0), a, b, c, 1.0)
            if turn % 3 == 0:
                del a, b, c
                sets[number] = [random.standard_normal((20, 20)).astype(np.float32) for _ in range(3)]
        (ready,) = lib._launchers[""]._ready.values()
        assert len(ready.bound.again) == AGAIN


def test_a_workspace_that_grows_binds_plans_anew(target, tmp_path):
    """Both sizes pack an operand into one workspace, which the larger size replaces."""
    kind = gemm_type("s", transpose_b=False)
    config = KERNELS["RegisterGemm"].space(kind, target).defaults | {"PackA": True}
    rows = tuple(SizeRow(size, (), 0, Estimate(1e-3, 1e-3, 1e-3, 7), 1.0) for size in SIZES)
    origin = Origin.of(target, "its own", "0.1.0", "2026-11-20T12:00:00Z")
    document = Document(origin, kind, (NamedSolution("packing", Solution(kind, "RegisterGemm", config)),), rows, 0)
    write_logic(document, tmp_path / "packing.yaml")
    random = np.random.default_rng(7)
    with tunesmith.load(tmp_path, floor=False) as lib:
        small, large = ([random.standard_normal((n, n)).astype(np.float32) for _ in range(3)] for n in (16, 200))
        for a, b, out in (small, large, small, large, small):
            out.fill(np.nan)
            lib.matmul(a, b, out)
            close(out, a, b, np.zeros(out.shape), 0.0)


def test_torch_tensors_and_a_bias_that_follows(target, tmp_path):
    """Kernels from their own sources work on the tensors' own memory, in any layout."""
    torch = pytest.importorskip("torch")
    for transpose_a, transpose_b in itertools.product([False, True], repeat=2):
        write(gemm_type("s", transpose_a=transpose_a, transpose_b=transpose_b), target, tmp_path)
    a, b, bias = torch.randn(50, 33), torch.randn(41, 33).mT, torch.randn(41)
    with tunesmith.load(tmp_path, floor=False) as lib:
        out = torch.full((52, 45), 3.0)
        assert lib.matmul(a, b, out[1:51, 2:43]) is not None
        close(out[1:51, 2:43].numpy(), a.numpy(), b.numpy(), np.zeros((50, 41)), 0.0)
        assert float(out.sum() - out[1:51, 2:43].sum()) == pytest.approx(3.0 * (52 * 45 - 50 * 41), rel=1e-4)
        with pytest.warns(UserWarning, match="after the product comes bias and relu"):
            found = lib.matmul(a, b, bias=bias, activation="relu")
        close(lib.matmul(a, b).numpy(), a.numpy(), b.numpy(), np.zeros((50, 41)), 0.0)
        torch.testing.assert_close(found, torch.relu(a @ b + bias), rtol=1e-4, atol=1e-4)
