"""The library gives NumPy's results, by the solutions of its logic, for arrays in any layout."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tunesmith
from library_fakes import DEVICES, ORIGIN, TARGET, TYPES, WithoutSharedMemory, close, library, logic, normal
from tunesmith.devices.fake import FakeDevice, fake_target
from tunesmith.kernels.gemm.opencl.tiled import TiledGemm
from tunesmith.library import LaunchRecord, Library
from tunesmith.logic import NamedSolution, Rule, write_logic
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Binary, Configuration, Solution, UserError


@st.composite
def views(draw, rows, columns, batch=0, dtype="float32"):
    """A matrix (or a batch of them) in any layout that a NumPy user may have."""
    kind = draw(st.sampled_from(["C", "F", "padded C", "padded F", "steps", "backwards", "C", "F"]))
    lead = (batch,) if batch else ()
    values = normal(*lead, rows, columns, dtype=dtype)
    if kind == "F":
        return np.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2)
    if kind == "padded C":
        wide = np.full((*lead, rows, columns + 3), np.nan, dtype)
        wide[..., :columns] = values
        return wide[..., :columns]
    if kind == "padded F":
        wide = np.full((*lead, columns, rows + 2), np.nan, dtype)
        wide[..., :rows] = values.swapaxes(-1, -2)
        return wide[..., :rows].swapaxes(-1, -2)
    if kind == "steps":
        wide = np.full((*lead, rows * 2, columns * 3), np.nan, dtype)
        wide[..., ::2, ::3] = values
        return wide[..., ::2, ::3]
    if kind == "backwards":
        return values[..., ::-1].copy()[..., ::-1]
    return values


size = st.integers(1, 20)


@settings(max_examples=150, deadline=None)
@given(st.data(), size, size, size, st.integers(0, 3), st.sampled_from([0.0, -0.5]), st.booleans(), st.booleans())
def test_any_layout_gives_numpys_product(data, m, n, k, batch, beta, all_types, shared):  # type: ignore[no-untyped-def]
    """Random shapes, strides, batches and beta, with all four types, or with one type so that most layouts are
    copied."""
    batched = data.draw(st.booleans())
    kinds = [
        gemm_type(transpose_a=t.fields.flag("TransposeA"), transpose_b=t.fields.flag("TransposeB"), batched=batched)
        for t in TYPES
    ]
    kinds = kinds if all_types else [data.draw(st.sampled_from(kinds))]
    a, b = data.draw(views(m, k, batch)), data.draw(views(k, n, batch))
    c = data.draw(views(m, n, batch))
    expected = 1.5 * (a.astype(float) @ b.astype(float)) + (beta * c.astype(float) if beta else 0)
    device = FakeDevice(TARGET) if shared else WithoutSharedMemory(TARGET)
    out = data.draw(st.none() | views(m, n, batch))
    with library(*map(logic, kinds), device=device) as lib:
        found = lib.matmul(a, b, c=c, alpha=1.5, beta=beta, out=out)
    close(found, expected)
    assert found is out or (out is None and found.flags.c_contiguous and found.dtype == np.float32)
    assert not np.isnan(a).any(), "what was read is as it was"


@pytest.mark.parametrize("device", DEVICES)
def test_what_lies_between_the_rows_of_out_is_left_alone(device):  # type: ignore[no-untyped-def]
    wide = np.full((9, 12), 7.0, np.float32)
    a, b = normal(9, 5), normal(5, 8)
    with library(logic(TYPES[0]), device=device(TARGET)) as lib:
        lib.matmul(a, b, out=wide[:, :8])
    close(wide[:, :8], a @ b)
    assert (wide[:, 8:] == 7.0).all()


def test_out_may_be_an_operand():
    a, b = normal(12, 12), normal(12, 12)
    for index in range(3):
        arrays = [a.copy(), b.copy(), normal(12, 12)]
        expected = arrays[0] @ arrays[1] + 2 * arrays[2]
        with library(logic(TYPES[0])) as lib:
            close(lib.matmul(arrays[0], arrays[1], c=arrays[2], beta=2.0, out=arrays[index]), expected)


def test_one_matrix_serves_a_whole_batch_as_in_numpy():
    a, b = normal(3, 5, 7), normal(7, 4)
    with library(logic(gemm_type(batched=True))) as lib:
        close(lib.matmul(a, b), a @ b)
        close(lib.matmul(b.T, a.swapaxes(1, 2)), b.T @ a.swapaxes(1, 2))


def test_double_precision_is_kept():
    a, b = normal(9, 5, dtype="float64"), normal(5, 8, dtype="float64")
    with library(logic(gemm_type("s")), logic(gemm_type("d"))) as lib:
        found = lib.matmul(a, b)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, a @ b, rtol=1e-13)


def test_numbers_of_another_byte_order_and_lists_are_taken():
    a, b = normal(3, 4), normal(4, 5)
    out = np.empty((3, 5), np.dtype(np.float32).newbyteorder("S"))
    with library(logic(gemm_type("s")), logic(gemm_type("d"))) as lib:
        close(lib.matmul(a.astype(a.dtype.newbyteorder("S")), b), a @ b)
        close(lib.matmul(a, b, out=out), a @ b)
        close(lib.matmul([[1.0, 2.0]], [[3.0], [4.0]]), np.array([[11.0]]))


@pytest.mark.parametrize(
    ("m", "n", "k", "batch"), [(0, 3, 4, 0), (3, 0, 4, 0), (3, 4, 0, 0), (3, 4, 5, "none"), (2, 0, 0, 2)]
)
def test_empty_extents_give_what_numpy_gives_without_a_launch(m, n, k, batch):  # type: ignore[no-untyped-def]
    lead = (0,) if batch == "none" else (batch,) if batch else ()
    launches: list[LaunchRecord] = []
    with library(logic(gemm_type(batched=True)), launched=launches.append) as lib:
        a, b, c = normal(*lead, m, k), normal(*lead, k, n), normal(*lead, m, n)
        close(lib.matmul(a, b), a @ b)
        close(lib.matmul(a, b, c=c, beta=2.0, out=np.full_like(c, np.nan)), a @ b + 2 * c)
    assert launches == []


def test_beta_zero_reads_no_c():
    a, b = normal(5, 6), normal(6, 7)
    for device in DEVICES:
        with library(logic(TYPES[0]), device=device(TARGET)) as lib:
            close(lib.matmul(a, b, c=np.full((5, 7), np.nan, np.float32), beta=0.0), a @ b)


def test_beta_where_no_type_has_it_follows_the_product():
    a, b, c = normal(2, 3), normal(3, 2), normal(2, 2)
    with library(logic(gemm_type(use_beta=False))) as lib:
        close(lib.matmul(a, b), a @ b)
        with pytest.warns(UserWarning, match="after the product comes c,"):
            close(lib.matmul(a, b, c=c, beta=0.5), a @ b + 0.5 * c)


CONFIGS = [{"LoopUnroll": 4}, {"LoopUnroll": 8}, {"LoopUnroll": 16}]


class Watched(FakeDevice):
    """Keeps the constants of the programs that are executed."""

    def __init__(self):
        super().__init__(TARGET)
        self.unrolls: list[object] = []
        self.loaded: list[Binary] = []

    def load(self, binary):  # type: ignore[no-untyped-def]
        self.loaded.append(binary)
        return super().load(binary)

    def enqueue(self, prepared):  # type: ignore[no-untyped-def]
        self.unrolls.append(prepared.constants["LoopUnroll"])
        super().enqueue(prepared)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 40))
def test_what_select_says_is_what_runs(m, n, k):
    """The device shows what runs, whatever was chosen. Arrays are row-major, so m and n change places."""
    device, launches = Watched(), []
    tuned = logic(TYPES[0], CONFIGS, {(8, 8, 8): 0, (64, 64, 16): 1, (256, 32, 32): 2})
    with library(tuned, device=device, launched=launches.append) as lib:
        warned = lib.select(n, m, 1, k)
        lib.matmul(np.ones((m, k), np.float32), np.ones((k, n), np.float32))
    assert device.unrolls == [warned.solution.configuration["LoopUnroll"]]
    assert [record.choice for record in launches] == [warned]
    assert launches[0].problem.sizes == (n, m, k)


def test_select_says_which_rule_answered():
    with library(logic(TYPES[0], CONFIGS, {(8, 8, 8): 1, (64, 64, 16): 2})) as lib:
        assert (lib.select(64, 64, 1, 16).name, lib.select(64, 64, 1, 16).rule) == ("S2", Rule.EXACT)
        assert (lib.select(9, 8, 1, 8).name, lib.select(9, 8, 1, 8).rule) == ("S1", Rule.NEAREST)
        assert lib.select(9, 8, 8) == lib.select(9, 8, 1, 8), "without a batch it may be left out"
        assert lib.measured_sizes(TYPES[0]) == ((8, 8, 8), (64, 64, 16))
        with pytest.raises(ValueError, match="M, N, K; 2 numbers"):
            lib.select(8, 8)
        with pytest.raises(ValueError, match="no batch"):
            lib.select(8, 8, 2, 8)
    with library(*map(logic, TYPES)) as lib:
        assert lib.select(8, 8, 1, 8, problem_type=TYPES[2].name).solution.type == TYPES[2]
        with pytest.raises(ValueError, match="name one problem type of"):
            lib.select(8, 8, 1, 8)


def test_a_solution_that_is_illegal_here_is_passed_over_by_select_and_launch():
    illegal = {"WorkGroup": (64, 32, 1)}
    device = Watched()
    with library(
        logic(TYPES[0], [CONFIGS[0], illegal, CONFIGS[2]], {(8, 8, 8): 1, (64, 64, 64): 2}), device=device
    ) as lib:
        assert lib.select(8, 8, 1, 8).name == "S2"
        close(lib.matmul(normal(8, 8) * 0, normal(8, 8)), np.zeros((8, 8)))
    assert device.unrolls == [16]


def test_a_solution_that_does_not_compile_is_passed_over_and_remembered():
    broken = {"FakeFault": "compile error"}
    with library(logic(TYPES[0], [CONFIGS[0], broken], {(8, 8, 8): 1})) as lib:
        assert lib.select(8, 8, 1, 8).name == "S1", "nothing has been compiled yet"
        close(lib.matmul(normal(8, 8) * 0, normal(8, 8)), np.zeros((8, 8)))
        assert lib.select(8, 8, 1, 8).name == "S0"


def test_when_nothing_runs_every_reason_is_given():
    tuned = logic(TYPES[0], [{"WorkGroup": (64, 32, 1)}, {"FakeFault": "compile error"}], {(8, 8, 8): 1})
    with library(tuned) as lib, pytest.raises(UserError, match=r"S1: compile error.*S0: work-group size"):
        lib.matmul(normal(8, 8), normal(8, 8))


def test_a_program_is_compiled_once_and_shared_by_launch_time_variants():
    device = Watched()
    configs = [{"GlobalSplitU": 1}, {"GlobalSplitU": 2}, {"LoopUnroll": 4}]
    tuned = logic(TYPES[0], configs, {(8, 8, 8): 0, (16, 16, 16): 1, (32, 32, 32): 2})
    with library(tuned, device=device) as lib:
        for extent in (8, 16, 32, 8, 16, 32):
            lib.matmul(normal(extent, extent), normal(extent, extent))
    assert len(device.loaded) == 2


def test_memory_is_reused_and_given_back():
    class Counted(WithoutSharedMemory):
        live = 0

        def allocate(self, size):  # type: ignore[no-untyped-def]
            self.live += 1
            return super().allocate(size)

        def release(self, *buffers):  # type: ignore[no-untyped-def]
            self.live -= len(buffers)
            super().release(*buffers)

    device = Counted(TARGET)
    lib = library(logic(TYPES[0]), device=device)
    for extent in (8, 30, 8, 90, 30, 8, 90):
        a, b = normal(extent, extent), normal(extent, extent)
        close(lib.matmul(a, b), a @ b)
        assert device.live == 3, "A, B and D"
    lib.close()
    assert device.live == 0


class TestFiles:
    def written(self, folder, **changes):
        document = logic(TYPES[0]).document
        write_logic(replace(document, origin=replace(ORIGIN, **changes)), folder / "nn.yaml")
        return folder / "nn.yaml"

    def test_a_file_finds_its_device_and_multiplies(self, tmp_path):
        a, b = normal(30, 20), normal(20, 10)
        with tunesmith.load(self.written(tmp_path)) as lib:
            close(lib.matmul(a, b), a @ b)
            assert lib.target.name == TARGET.name

    def test_a_folder_serves_all_its_types_and_ignores_other_yaml(self, tmp_path):
        for kind in TYPES:
            write_logic(logic(kind).document, tmp_path / "logic" / f"{kind.name}.yaml")
        (tmp_path / "tuning.yaml").write_text("BenchmarkProblems: [")
        with tunesmith.load(tmp_path) as lib:
            assert set(lib.problem_types) == set(TYPES)

    def test_a_layout_that_has_its_own_type_is_not_copied(self, tmp_path):
        launches: list[LaunchRecord] = []
        with library(*map(logic, TYPES), launched=launches.append) as lib:
            for a_order, b_order in itertools.product("CF", repeat=2):
                a, b = np.asarray(normal(30, 20), order=a_order), np.asarray(normal(20, 10), order=b_order)  # type: ignore[call-overload]
                close(lib.matmul(a, b), a @ b)
        fields = [record.problem.type.fields for record in launches]
        # D' = B' A': A of the problem is b, transposed where b is column-major.
        assert [(f["TransposeA"], f["TransposeB"]) for f in fields] == [
            (False, False),
            (True, False),
            (False, True),
            (True, True),
        ]

    def test_a_device_that_is_not_here_is_named_beside_those_that_are(self, tmp_path):
        path = self.written(tmp_path, device="a device of the future")
        with pytest.raises(UserError, match=r"a device of the future.*fake GPU.*fake CPU") as caught:
            tunesmith.load(path).launch("GEMM", A=normal(2, 2), B=normal(2, 2))
        assert caught.value.location == str(path)

    def test_a_device_api_that_is_not_here_is_named(self, tmp_path):
        with pytest.raises(UserError, match="Quantum"):
            tunesmith.load(self.written(tmp_path, api="Quantum")).launch("GEMM", A=normal(2, 2), B=normal(2, 2))

    def test_where_no_device_is_here_products_name_the_logics(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TUNESMITH_DEVICE", "fake:CPU:9")
        with pytest.raises(UserError, match=r"was made on fake CPU \(Quantum\)"):
            tunesmith.load(self.written(tmp_path, api="Quantum")).matmul(normal(2, 2), normal(2, 2))
        with pytest.raises(UserError, match="no usable device matches 'fake:CPU:9'"):
            Library(()).matmul(normal(2, 2), normal(2, 2))

    def test_another_device_may_be_asked_for(self, tmp_path):
        path = self.written(tmp_path, device="a device of the future")
        with tunesmith.load(path, device=fake_target("GPU").selector) as lib:
            close(lib.matmul(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)), np.eye(3))
            assert lib.target.kind == "GPU"

    @pytest.mark.parametrize("is_open", [False, True])
    def test_a_device_that_does_not_run_the_kernels_language_is_refused(self, tmp_path, is_open):
        tiled = Solution(TYPES[0], "TiledGemm", TiledGemm().space(TYPES[0]).defaults)
        tuned = replace(logic(TYPES[0]).document, solutions=(NamedSolution("S0", tiled),))
        path = tmp_path / "opencl.yaml"
        write_logic(replace(tuned, origin=replace(ORIGIN, api="OpenCL", device="a CPU")), path)
        reference = FakeDevice(TARGET) if is_open else TARGET.selector
        what = r"its kernels are in OpenCL, fake CPU \(fake:CPU:8\) runs only fake"
        with pytest.raises(UserError, match=f"{what}; tune on that device, or name one") as caught:
            tunesmith.load(path, device=reference).matmul(normal(2, 2), normal(2, 2))
        assert caught.value.location == str(path)

    def test_another_driver_is_said_once(self, tmp_path):
        lib = tunesmith.load(self.written(tmp_path, driver="0.9"))
        with pytest.warns(UserWarning, match=r"0\.9.*1\.0"):
            lib.matmul(normal(2, 2), normal(2, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            lib.matmul(normal(2, 2), normal(2, 2))

    def test_two_logics_for_one_thing_are_refused_by_name(self, tmp_path):
        write_logic(logic(TYPES[0]).document, tmp_path / "one.yaml")
        write_logic(logic(TYPES[0]).document, tmp_path / "two.yaml")
        with pytest.raises(UserError, match=r"two\.yaml.*one\.yaml"):
            tunesmith.load(tmp_path)

    def test_an_empty_folder_and_a_missing_file_are_refused(self, tmp_path):
        with pytest.raises(UserError, match="no library logic"):
            tunesmith.load(tmp_path)
        with pytest.raises(UserError, match="cannot be read"):
            tunesmith.load(tmp_path / "none.yaml")

    def test_a_kernel_that_this_tunesmith_does_not_know_is_named(self, tmp_path):
        document = logic(TYPES[0]).document
        stranger = NamedSolution("S0", Solution(TYPES[0], "StrangeGemm", Configuration()))
        write_logic(replace(document, solutions=(stranger,)), tmp_path / "nn.yaml")
        with pytest.raises(UserError, match="StrangeGemm"):
            tunesmith.load(tmp_path).matmul(normal(2, 2), normal(2, 2))
