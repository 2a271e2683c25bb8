"""`scripts/settled_in_type.py` makes a tuning file of another data type from solutions that are settled in bfloat16."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from packaged_logic import packaged_model
from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.library._configurations import mistake_in
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.problems.gemm import gemm_type, gemm_type_named
from tunesmith.problems.yaml import parse_yaml
from tunesmith.records import Configuration, Solution

SCRIPT = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "settled_in_type.py"))
TARGET = known_target("sm_90")
LAYOUTS = 3


def in_type(word, kernel, **values):
    """What becomes of a bfloat16 solution."""
    known = Solution(gemm_type("b", transpose_a=True, transpose_b=False, use_beta=False), kernel, Configuration(values))
    return dict(SCRIPT["TYPES"][word].solution_like(known).configuration)


@pytest.mark.parametrize(
    ("word", "depth", "vector", "stored"), [("h", 64, 8, 8), ("tf32", 32, 4, 4), ("f8", 128, 16, 8)]
)
def test_what_counts_elements_counts_as_many_bytes(word, depth, vector, stored):
    triton = in_type(word, "TritonGemm", DepthU=64, GlobalReadVectorWidth=8, StoreVectorWidth=8, NumWarps=4)
    assert triton == {
        "DepthU": depth,
        "GlobalReadVectorWidth": vector,
        "StoreVectorWidth": stored,
        "NumWarps": 4,
    }
    assert in_type(word, "TritonGemv", GlobalReadVectorWidth=1) == {"GlobalReadVectorWidth": 1}


def test_a_type_gets_the_values_that_its_kernels_need():
    assert in_type("tf32", "TritonGemm", InputPrecision="tf32x3") == {"InputPrecision": "tf32"}
    wgmma = {"StorePath": "TMA", "PromoteEvery": 0}
    assert in_type("tf32", "CudaWgmmaGemm", **wgmma) == wgmma | {"StorePath": "Direct"}
    assert in_type("f8", "CudaWgmmaGemm", **wgmma) == wgmma | {"PromoteEvery": 1}
    assert in_type("h", "CudaWgmmaGemm", **wgmma) == wgmma


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("word", ["b", "h", "tf32", "f8"])
def test_the_file_has_solutions_of_every_layout_that_the_kernels_have(word, batch, tmp_path, monkeypatch):
    listed = tmp_path / "list.csv"
    rows = "".join(f"64,96,128,{batch},{layout}\n" for layout in ("N,T", "N,N", "T,N"))
    listed.write_text(f"m,n,k,batch,trans_a,trans_b\n{rows}")
    monkeypatch.setattr("sys.argv", ["settled_in_type.py", word, str(listed), "-o", str(tmp_path / "tune.yaml")])
    SCRIPT["main"]()
    file = parse_yaml((tmp_path / "tune.yaml").read_text(), "tune.yaml").fields(
        "file", ("GlobalParameters", "BenchmarkProblems")
    )
    problems = file["BenchmarkProblems"].sequence("problems")
    assert len(problems) == LAYOUTS
    model = SCRIPT["model_in"](word)
    kinds = [kind for kind in map(gemm_type_named, model.types) if kind.fields.flag("Batched") == (batch > 1)]
    assert len(kinds) == LAYOUTS
    for kind in kinds:
        solutions = model.solutions_of(kind)
        assert len(set(solutions)) == len(solutions) > 50
        assert [solution.kernel for solution in solutions].count(VENDOR) == 1
        assert not any(map(mistake_in, solutions))
        legal = [s for s in solutions if not any(KERNELS[s.kernel].rejections(s.configuration, kind, TARGET))]
        assert len(legal) > 0.9 * len(solutions)
        small = [s for s in solutions if s.configuration.get("MacroTile") == (16, 16)]
        assert bool(small) == (batch > 1)


def test_solutions_that_the_package_has_in_the_type_are_there():
    own = packaged_model("nvidia-h200-tf32")
    made = SCRIPT["model_in"]("tf32")
    for kind in map(gemm_type_named, own.types):
        assert set(own.solutions_of(kind)) <= set(made.solutions_of(kind))


def test_batches_that_are_settled_do_not_become_single_matrices():
    own = packaged_model("nvidia-h200-bf16-batched")
    assert SCRIPT["single"](SCRIPT["solutions_in"](own)) == []
    made = SCRIPT["model_in"]("b")
    known = packaged_model("nvidia-h200-bf16")
    for kind in map(gemm_type_named, known.types):
        assert set(made.solutions_of(kind)) == set(known.solutions_of(kind))
