"""`matmul` and `select` with a logic of another device: their results, their warnings, and what they keep."""

from __future__ import annotations

import weakref
from dataclasses import replace

import pytest
from test_library_opencl import target, write  # noqa: F401  # a fixture
from test_library_untuned import close, normal

import tunesmith
from command_line import invoke, invoke_json
from tunesmith.kernels import KERNELS
from tunesmith.library import DeviceAbsentError, LaunchRecord
from tunesmith.logic import Document, NamedSolution, Origin, SizeRow, write_logic
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Estimate, Solution, UserError

SINGLE, DOUBLE = gemm_type("s", transpose_b=False), gemm_type("d", transpose_b=False)


@pytest.fixture
def of_cuda(target, tmp_path):  # noqa: F811
    """A folder with logic in a language that the host's CPU does not run."""
    kernel = KERNELS["CudaSimtGemm"]
    solution = NamedSolution("S0", Solution(SINGLE, kernel.name, kernel.space(SINGLE).defaults))
    row = SizeRow((64, 64, 64), (), 0, Estimate(1e-3, 1e-3, 1e-3, 7), 1.0)
    gpu = replace(target, api="CUDA", name="a GPU", kind="GPU")
    origin = Origin.of(gpu, "NVRTC", "0.1.0", "2026-11-20T12:00:00Z")
    write_logic(Document(origin, SINGLE, (solution,), (row,), 0), tmp_path / "cuda.yaml")
    return tmp_path


@pytest.mark.opencl
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_named_device_that_runs_no_kernel_of_the_logic_multiplies_without_a_logic(of_cuda, target):  # noqa: F811
    """It does the same as without a named device."""
    a, b = normal(7, 5), normal(5, 9)
    for device in (None, target.selector):
        launches: list[LaunchRecord] = []
        with tunesmith.load(of_cuda, device=device, launched=launches.append) as lib:
            close(lib.matmul(a, b), a, b)
            with pytest.raises(DeviceAbsentError):
                _ = lib.target
        assert [launch.choice.rule for launch in launches] == ["vendor"]


@pytest.mark.opencl
def test_the_warning_names_the_absent_logic_in_every_layout(target, tmp_path):  # noqa: F811
    write(DOUBLE, replace(target, name="another device"), tmp_path)
    a, b = normal(7, 5, dtype="float64"), normal(5, 9, dtype="float64")
    with tunesmith.load(tmp_path) as lib:
        for left in (a, a.T.copy().T):
            with pytest.warns(UserWarning, match=r"no logic is for .* \(.*DB\.yaml was made on another device"):
                lib.matmul(left, b)


@pytest.mark.opencl
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_error_that_is_raised_again_keeps_no_array_of_the_caller(target, tmp_path):  # noqa: F811
    write(SINGLE, replace(target, name="another device"), tmp_path)
    with tunesmith.load(tmp_path) as lib:
        lib.matmul(normal(7, 5), normal(5, 9))

        def asked():
            mine = normal(3, 3)
            with pytest.raises(DeviceAbsentError):
                _ = lib.target
            return weakref.ref(mine)

        assert asked()() is None


@pytest.mark.opencl
class TestSelect:
    def test_a_type_without_logic_where_all_logic_is_absent(self, target, tmp_path):  # noqa: F811
        write(DOUBLE, replace(target, name="another device"), tmp_path)
        assert invoke_json("select", tmp_path, "--size", 64, 64, 64, "--type", SINGLE.name)["rule"] == "vendor"
        with pytest.raises(UserError, match="name one problem type"):
            invoke("select", tmp_path, "--size", 8, 8, 8, "--type", "Cij_Aik_Bkj_XB")

    def test_a_choice_without_a_logic_names_the_logic_that_is_not_used(self, target, tmp_path):  # noqa: F811
        write(SINGLE, target, tmp_path)
        write(DOUBLE, replace(target, name="another device"), tmp_path)
        chosen = invoke("select", tmp_path, "--size", 64, 64, 64, "--type", DOUBLE.name)
        assert f"{DOUBLE.name}.yaml was made on another device (OpenCL)" in chosen.stderr
        assert "vendor" in chosen.stdout
        assert invoke("select", tmp_path, "--size", 64, 64, 64, "--type", SINGLE.name).stderr == ""
