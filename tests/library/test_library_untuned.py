"""Products without a logic: a policy chooses, the result is right, and there is one warning."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path

import ml_dtypes  # noqa: F401  (teaches NumPy the names of its types)
import numpy as np
import pytest
from test_library_opencl import target, write  # noqa: F401  # a fixture

import tunesmith
from command_line import invoke, invoke_json
from forked import run_forked
from forked_programs import multiply_untuned
from gpu_fakes import Rig, every_type, numbers, product
from gpu_fakes import logic as gpu_logic
from library_fakes import TARGET
from opencl_runner import opencl_device
from tunesmith.devices.fake import FakeDevice
from tunesmith.devices.opencl.device import OpenCLDevice
from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.library import DeviceAbsentError, LaunchRecord, Library
from tunesmith.library.launch import _heuristic
from tunesmith.library.launch._heuristic import heuristic_choices, heuristic_refusals
from tunesmith.library.launch._programs import Programs
from tunesmith.logic import Rule
from tunesmith.models.intensity.policies import DEFAULT_POLICY, family_order, policy, policy_named
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.models.intensity.policies.mappings.vendor import VendorMapping
from tunesmith.problems.gemm import gemm_type, gemm_type_named
from tunesmith.records import Problem, Rejection, UserError

SPACINGS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The spacing of numbers between 1 and 2."""

random = np.random.default_rng(7)


def normal(*shape, dtype="float32"):
    return random.standard_normal(shape).astype(dtype)


def close(found, a, b, rest=0.0):
    """|found - (a b + rest)| <= (4 sqrt(K) + 2) u (|a||b| + |rest|), u half a spacing of the sums, which are single or
    double, and half a spacing of the result's type."""
    assert found.shape == (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    wide_a, wide_b = np.asarray(a, float), np.asarray(b, float)
    expected = wide_a @ wide_b + rest
    unit = SPACINGS["float64" if found.dtype == np.float64 else "float32"] / 2
    terms = np.abs(wide_a) @ np.abs(wide_b) + np.abs(rest)
    bound = (4 * a.shape[-1] ** 0.5 + 2) * unit * terms + SPACINGS[found.dtype.name] / 2 * np.abs(expected)
    assert (np.abs(found.astype(float) - expected) <= bound + 1e-300).all()


@pytest.fixture
def launches():
    return []


@pytest.fixture
def lib(launches):
    """Without any logic, on the OpenCL device, without the floor under calls on a CPU."""
    with warnings.catch_warnings(), Library((), device=opencl_device(), launched=launches.append, floor=False) as made:
        warnings.simplefilter("ignore", UserWarning)
        yield made


@pytest.mark.opencl
class TestOnTheHost:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 1, 2), (17, 31, 5), (1, 67, 129), (29, 1, 300), (255, 129, 67)])
    def test_odd_sizes(self, lib, launches, dtype, sizes):
        m, n, k = sizes
        a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
        found = lib.matmul(a, b)
        close(found, a, b)
        assert found.dtype == dtype
        (launch,) = launches
        assert launch.choice.rule is Rule.HEURISTIC

    def test_empty_extents(self, lib, launches):
        for m, n, k in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
            close(lib.matmul(normal(m, k), normal(k, n)), normal(m, k), np.zeros((k, n)))
        assert launches == []

    def test_transposed_and_padded_views_are_taken_as_they_lie(self, lib, launches):
        a, b = normal(35, 21), normal(21, 19)
        for x, y in ((a, b), (a.T.copy().T, b), (a, b.T.copy().T), (a.T.copy().T, b.T.copy().T)):
            close(lib.matmul(x, y), a, b)
        wide = normal(40, 30)
        close(lib.matmul(wide[2:37, 5:26], b), wide[2:37, 5:26], b)
        assert len({launch.problem.type for launch in launches}) == 4
        assert launches[-1].problem.leading == (19, 19, 19, 30), "nothing was copied"

    def test_views_that_no_kernel_takes_are_copied(self, lib):
        a, b = normal(24, 42), normal(21, 38)
        close(lib.matmul(a[::-1, ::2], b[:, ::2]), a[::-1, ::2], b[:, ::2])

    def test_out_with_something_between_its_rows(self, lib):
        a, b, out = normal(9, 5), normal(5, 8), np.full((9, 12), 7.0, np.float32)
        assert lib.matmul(a, b, out[:, :8]).base is out
        close(out[:, :8], a, b)
        assert (out[:, 8:] == 7.0).all()

    def test_batches(self, lib, launches):
        a, b = normal(3, 17, 5), normal(3, 5, 31)
        close(lib.matmul(a, b), a, b)
        close(lib.matmul(a, b[0]), a, b[0])
        assert [launch.problem.sizes for launch in launches] == [(31, 17, 3, 5), (31, 51, 5)]

    def test_a_batch_that_lies_as_no_type_wants_it_is_not_copied_for_one(self, lib, launches):
        """Matrices side by side: NumPy multiplies them, as it does batches beside a logic."""
        a, b = normal(17, 3, 5).transpose(1, 0, 2), normal(3, 5, 31)
        with pytest.warns(UserWarning, match="no logic is for Cijk_Ailk_Bljk_SB: NumPy multiplies such batches"):
            close(lib.matmul(a, b), a, b)
        assert launches == []

    def test_an_epilogue_follows_and_c_is_the_kernels(self, lib, launches):
        a, b, c, bias = normal(17, 5), normal(5, 31), normal(17, 31), normal(31)
        close(lib.matmul(a, b, c=c, beta=-0.5, alpha=2.0), 2 * a, b, -0.5 * c.astype(float))
        assert launches[-1].problem.scalars["beta"] == -0.5
        with pytest.warns(UserWarning, match="in steps of their own; no kernel does it in one"):
            found = lib.matmul(a, b, bias=bias, activation="relu")
        np.testing.assert_allclose(found, np.maximum(a @ b + bias, 0), rtol=1e-5, atol=1e-5)

    def test_half_precision_has_kernels_and_bfloat16_is_numpys(self, lib, launches):
        a, b = normal(17, 300, dtype="float16"), normal(300, 31, dtype="float16")
        close(lib.matmul(a, b), a, b)
        assert [launch.choice.solution.kernel for launch in launches] == ["PortBlasGemm"]
        a, b = normal(17, 300).astype("bfloat16"), normal(300, 31).astype("bfloat16")
        with pytest.warns(UserWarning, match="no kernel computes Cij_Aik_Bkj_BB on .*NumPy multiplies such arrays"):
            close(lib.matmul(a, b), a, b)
        assert len(launches) == 1

    def test_what_nothing_computes_is_refused_with_every_familys_reason(self, lib):
        a = np.ones((4, 4), np.int8)
        with pytest.raises(UserError, match=r"int8.*Cij_Aik_Bkj_I8IB.*RegisterGemm: data type.*VendorBlas: data type"):
            lib.matmul(a, a)

    def test_torch_tensors(self, lib):
        torch = pytest.importorskip("torch")
        a, b = torch.randn(17, 5), torch.randn(31, 5).mT
        found = lib.matmul(a, b)
        assert isinstance(found, torch.Tensor)
        close(found.numpy(), a.numpy(), b.numpy())

    def test_a_family_that_does_not_compile_leaves_the_product_to_the_next(self, lib, launches, monkeypatch):
        compiled = Programs.compiled

        def but_for_one(self, device, kernel, *more):  # type: ignore[no-untyped-def]
            broken = kernel.name == "RegisterGemm"
            return Rejection("compiler", "broken") if broken else compiled(self, device, kernel, *more)

        monkeypatch.setattr(Programs, "compiled", but_for_one)
        a, b = normal(17, 5), normal(5, 31)
        close(lib.matmul(a, b), a, b)
        assert [launch.choice.solution.kernel for launch in launches] == ["PortBlasGemm"]

    def test_a_product_beyond_the_devices_buffers_is_made_in_parts(self, launches):
        small = replace(opencl_device().target, max_allocation_bytes=40_000)
        a, b = normal(300, 40), normal(40, 200)
        lib = Library((), device=OpenCLDevice(small), launched=launches.append)
        with pytest.warns(UserWarning, match="no logic is for"):
            found = lib.matmul(a, b)
        close(found, a, b)
        lib.close()
        assert len(launches) == 8


@pytest.mark.opencl
class TestBesideALogic:
    def test_a_type_with_a_logic_keeps_it(self, target, tmp_path, launches):  # noqa: F811
        write(gemm_type("s", transpose_b=False), target, tmp_path)
        a, b = normal(64, 32), normal(32, 48)
        lib = tunesmith.load(tmp_path, launched=launches.append, floor=False)
        with lib, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            close(lib.matmul(a, b), a, b)
            close(lib.matmul(a.T.copy().T, b), a, b)  # a copy for the type with a logic
            close(lib.matmul(a.astype(float), b.astype(float)), a, b)
        assert [launch.choice.rule for launch in launches[:2]] == [Rule.NEAREST] * 2
        assert [launch.choice.rule for launch in launches[2:]] == [Rule.HEURISTIC]
        assert len(warned) == 1
        assert "no logic is for Cij_Aik_Bkj_DB" in str(warned[0].message)

    def test_a_logic_of_another_device_is_named_and_the_policy_chooses(self, target, tmp_path, launches):  # noqa: F811
        write(gemm_type("s", transpose_b=False), target, tmp_path)
        write(gemm_type("d", transpose_b=False), replace(target, name="another device"), tmp_path)
        a, b = normal(7, 5, dtype="float64"), normal(5, 9, dtype="float64")
        with tunesmith.load(tmp_path, launched=launches.append) as lib:
            says = (
                r"no logic is for Cij_Aik_Bkj_DB on .* \(.*DB\.yaml was made on another device \(OpenCL\); the library"
            )
            with pytest.warns(UserWarning, match=says):
                close(lib.matmul(a, b), a, b)
            assert lib.select(9, 7, 5, problem_type="Cij_Aik_Bkj_DB") == launches[-1].choice
            with pytest.raises(
                UserError, match=r"there are Cij_Aik_Bkj_SB; without a logic nothing computes \w+_I8IB on"
            ):
                lib.matmul(a.astype(np.int8), b.astype(np.int8))

    def test_without_any_logics_device_products_go_on_and_launches_do_not(self, target, tmp_path, launches):  # noqa: F811
        write(gemm_type("s", transpose_b=False), replace(target, name="another device"), tmp_path)
        a, b = normal(7, 5), normal(5, 9)
        with tunesmith.load(tmp_path, launched=launches.append) as lib:
            for _ in range(2):
                with pytest.raises(DeviceAbsentError, match="made on another device"):
                    _ = lib.target
                with pytest.raises(DeviceAbsentError, match="made on another device"):
                    lib.launch("GEMM", A=a.T, B=b.T)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    close(lib.matmul(a, b), a, b)
            assert lib.select(9, 7, 5) == launches[-1].choice
        assert launches[-1].choice.rule is Rule.VENDOR

    def test_select_on_the_command_line(self, target, tmp_path):  # noqa: F811
        write(gemm_type("s", transpose_b=False), target, tmp_path)
        arguments = ("select", tmp_path, "--size", 255, 129, 67, "--type", "Cij_Aik_Bkj_DB")
        chosen = invoke_json(*arguments)
        assert (chosen["rule"], chosen["problem_type"], chosen["kernel"]) == (
            *("vendor", "Cij_Aik_Bkj_DB"),
            "VendorBlas",
        )
        assert (chosen["expected_seconds"], chosen["neighbour"], chosen["unfinished"]) == (None, [], "")
        assert "vendor: no kernel is known to be faster here than the BLAS" in invoke(*arguments).stdout
        half = invoke(*arguments[:-1], "Cij_Aik_Bkj_HB").stdout
        assert "heuristic: no logic is for this type here" in half
        with pytest.raises(UserError, match="name one problem type of Cij_Aik_Bkj_SB, not 'Cij_Aik_Bkj_XB'"):
            invoke("select", tmp_path, "--size", 8, 8, 8, "--type", "Cij_Aik_Bkj_XB")
        tuned = invoke_json("select", tmp_path, "--size", 64, 48, 32)  # the logic says 1 ms
        assert (tuned["rule"], tuned["neighbour"]) == ("vendor", [64, 48, 32])


# --- what is said, and where ------------------------------------------------------------------------------------------


@pytest.mark.opencl
def test_it_is_said_once_for_each_type_at_the_callers_line(launches):
    with (
        warnings.catch_warnings(record=True) as warned,
        Library((), device=opencl_device(), launched=launches.append, floor=False) as lib,
    ):
        warnings.simplefilter("always")
        for size in (5, 6, 7):
            lib.matmul(normal(size, 4), normal(4, 3))
        lib.matmul(normal(5, 4, dtype="float64"), normal(4, 3, dtype="float64"))
    assert len(launches) == 4
    for warning, name in zip(warned, ("Cij_Aik_Bkj_SB", "Cij_Aik_Bkj_DB"), strict=True):
        assert f"no logic is for {name} on" in str(warning.message)
        assert "policy chooses its kernels unmeasured; tune that type" in str(warning.message)
        assert warning.filename == __file__


@pytest.mark.opencl
def test_select_says_what_is_launched_for_any_type_by_name(lib, launches):
    kind = gemm_type("d", transpose_a=True, transpose_b=False)
    chosen = lib.select(31, 17, 5, problem_type=kind.name)
    assert (chosen.rule, chosen.expected_seconds, chosen.solution.type) == (Rule.HEURISTIC, None, kind)
    assert lib.select(31, 17, 5, problem_type=kind) == chosen
    lib.matmul(normal(17, 5, dtype="float64"), normal(31, 5, dtype="float64").T)
    assert launches[-1].choice == chosen
    with pytest.raises(UserError, match=r"no solution is legal at 8x8x8.*RegisterGemm: data type"):
        lib.select(8, 8, 8, problem_type="Cij_Aik_Bkj_I8IB")
    for wrong in ("Cij_Aik_Bkj_XB", "", "stencil5"):
        with pytest.raises(ValueError, match="name one problem type"):
            lib.select(8, 8, 8, problem_type=wrong)


def test_every_type_has_its_own_name():
    for letter in ("s", "d", "h", "b", "i8", "f8"):
        for kind in every_type(letter):
            assert gemm_type_named(kind.name) == kind
    fused = gemm_type("f8", dest="s", bias=True, activation="silu", scaled=True, use_beta=False)
    assert gemm_type_named(fused.name) == fused
    assert gemm_type_named("stencil5") is None


@pytest.mark.parametrize("letter", ["b", "s", "d", "i8"])
@pytest.mark.parametrize("sizes", [(255, 129, 67), (4096, 4096, 4096), (1, 31, 17)])
def test_families_follow_the_vendors_blas_in_the_policies_order_each_legal_or_with_its_reason(
    letter, sizes, monkeypatch
):
    monkeypatch.setattr(_heuristic, "_missing_compiler", lambda language: None)
    problem, hopper = Problem(gemm_type(letter, transpose_b=False), sizes), known_target("sm_90")
    choices, refusals = list(heuristic_choices(problem, hopper)), heuristic_refusals(problem, hopper)
    chosen = [choice.solution.kernel for choice in choices]
    families = family_order.kernel_order(problem, hopper)
    order = [kernel.name for kernel in policy_named(DEFAULT_POLICY).ordered(problem, hopper, families)]
    assert sorted(order) == sorted(kernel.name for kernel in families)
    assert chosen == [name for name in dict.fromkeys((VENDOR, *order)) if name not in refusals]
    assert [choice.rule for choice in choices] == [Rule.VENDOR if name == VENDOR else Rule.HEURISTIC for name in chosen]
    assert set(chosen).isdisjoint(refusals)
    assert len({choice.name for choice in choices}) == len(choices) > 0
    for choice in choices:
        family, config = KERNELS[choice.solution.kernel], choice.solution.configuration
        assert not [*family.rejections(config, problem.type, hopper), *family.rejections_for(config, problem, hopper)]
    monkeypatch.setattr(_heuristic, "_missing_compiler", lambda language: "gone")
    assert list(heuristic_choices(problem, hopper)) == []
    assert {heuristic_refusals(problem, hopper)[name].reason for name in chosen} == {"no compiler"}


def test_a_device_that_policies_do_not_know_is_refused_with_what_has_to_be_done():
    a = normal(4, 4)
    with Library((), device=FakeDevice(TARGET)) as lib:
        for call in (lambda: lib.matmul(a, a), lambda: lib.problem_types):
            with pytest.raises(UserError, match=r"no logic is loaded; tune, and load the logic"):
                call()


# --- a program of its own ---------------------------------------------------------------------------------------------


@pytest.mark.opencl
def test_a_program_multiplies_before_anything_was_tuned_and_compiles_once(tmp_path):
    opencl_device()
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    del variables["TUNESMITH_CACHE"]
    found = [run_forked(multiply_untuned, env=variables) for _ in range(2)]
    assert [program.stdout for program in found] == ["True\n", "False\n"], [program.stderr for program in found]


# --- a GPU that is not there ------------------------------------------------------------------------------------------


@pytest.fixture
def rig(monkeypatch):
    """The fake GPU with a kernel that policies know."""
    known = family_order.ORDER | {("fake", "GPU"): ("OnePlan",)}
    monkeypatch.setattr(family_order, "ORDER", known)
    monkeypatch.setattr(policy, "mapping_of", lambda name: VendorMapping())
    return Rig(monkeypatch)


@pytest.mark.filterwarnings("ignore:no logic is for")
@pytest.mark.parametrize("family", ["OnePlan", "VendorBlas"])
def test_a_layout_that_the_logic_lacks_is_taken_as_it_lies_by_the_vendor(rig, monkeypatch, family):
    """The logic's type needs a copy of a; a type without a logic needs none. `family` is the vendor's."""
    monkeypatch.setattr(_heuristic, "VENDOR", family)
    lib = rig.library(gemm_type(transpose_b=False))
    for a in (rig.normal(6, 5), rig.normal(5, 6).mT):
        b = rig.normal(5, 7)
        np.testing.assert_allclose(numbers(lib.matmul(a, b)), product(a, b), rtol=1e-5)
    transposes = [
        [problem.type.fields.flag(name) for name in ("TransposeA", "TransposeB")] for problem in rig.device.problems
    ]
    assert transposes == [[False, False], [False, family == "OnePlan"]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_tensors_are_multiplied_where_they_lie_in_any_layout(rig, dtype):
    launches: list[LaunchRecord] = []
    a, b = rig.normal(6, 5, dtype=dtype), rig.normal(5, 7, dtype=dtype)
    lib = Library((), device=rig.device, launched=launches.append)
    for x, y in ((a, b), (a.mT.contiguous().mT, b), (a, b.mT.contiguous().mT), (a[::2], b[:, 1:])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = numbers(lib.matmul(x, y))
        expected = product(x, y)  # which the stand-in's kernel rounds once, to the result's type
        assert (np.abs(found - expected) <= SPACINGS[dtype] * np.abs(expected) + 2.0**-50).all()
    lib.close()
    assert {launch.choice.rule for launch in launches} == {Rule.HEURISTIC}
    assert len(launches) == 4
    assert launches[-1].problem.leading == (6, 6, 7, 10), "nothing was copied"


def test_bias_and_activation_are_in_the_kernel_that_has_them(rig):
    launches: list[LaunchRecord] = []
    a, b, bias = rig.normal(6, 5), rig.normal(5, 7), rig.normal(7)
    lib = Library((), device=rig.device, launched=launches.append)
    with pytest.warns(UserWarning, match="Cij_Aik_Bkj_S_Bias_Relu") as warned:
        found = lib.matmul(a, b, bias=bias, activation="relu")
    lib.close()
    np.testing.assert_allclose(numbers(found), np.maximum(product(a, b) + numbers(bias), 0), rtol=1e-4, atol=1e-4)
    assert len(launches) == len(warned) == 1


def test_a_gpu_without_a_logic_of_its_own_is_served_all_the_same(rig, monkeypatch):
    rig.device.target = replace(rig.device.target, name="another GPU")
    monkeypatch.setattr("tunesmith.library._device.open_device", lambda selector: rig.device)
    monkeypatch.setattr("tunesmith.library._device.context_kept", warnings.catch_warnings)
    lib = Library([(Path("nn.yaml"), gpu_logic(gemm_type(transpose_b=False)))])
    a, b = rig.normal(6, 5), rig.normal(5, 7)
    with pytest.warns(UserWarning, match=r"no logic is for Cij_Aik_Bkj_SB on another GPU \(nn\.yaml was made on fake"):
        np.testing.assert_allclose(numbers(lib.matmul(a, b)), product(a, b), rtol=1e-4, atol=1e-4)
    lib.close()
