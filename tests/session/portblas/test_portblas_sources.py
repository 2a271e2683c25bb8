"""Sources of `portblas generate` with our kernels: OpenCL C that compiles by itself, and each program only once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opencl_runner import verify
from portblas_files import DATA, LOCAL, needs_data, written
from tunesmith.formats.portblas.parameter_files import RuleSet, list_sets
from tunesmith.kernels.gemm.portblas import PortBlasGemm
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import (
    Launch,
    Module,
    Problem,
)
from tunesmith.session.portblas.generate import MARK, generate

ENTRIES = ("gemm_nn", "gemm_tn", "gemm_nt", "gemm_tt")
SETS = [portblas_set.name for portblas_set in list_sets() if portblas_set.shipped]


class OfFile(PortBlasGemm):
    """The family with the text of a generated file, launching its kernels under the file's names."""

    def __init__(self, text):
        self._text = text

    def modules(self, config, problem_type):
        return (Module(self.language, self._text, (*ENTRIES, *(["reduce"] if " reduce(" in self._text else []))),)

    def plan(self, config, problem, target, facts=()):
        plan, fields = super().plan(config, problem, target, facts), problem.type.fields
        entry = "gemm_" + "".join("nt"[fields.flag(f"Transpose{matrix}")] for matrix in "AB")
        steps = (
            replace(step, entry=entry) if isinstance(step, Launch) and step.entry == "gemm" else step
            for step in plan.steps
        )
        return replace(plan, steps=tuple(steps))


@pytest.mark.opencl
@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["local", "non_local", "interleaved", "naive", "tall_skinny"])
def test_a_source_compiles_by_itself_and_is_right_for_each_transposition(algorithm, tmp_path):
    made = generate("default", RuleSet.OURS, folder=tmp_path)
    candidate = next(candidate for candidate in made.candidates if candidate.combination.algorithm == algorithm)
    text = (tmp_path / f"{candidate.stem}.cl").read_text()
    assert text.startswith(MARK)
    kernel, interleaved = OfFile(text), algorithm == "interleaved"
    for entry in ENTRIES:
        transposes = {f"transpose_{matrix}": letter == "t" for matrix, letter in zip("ab", entry[-2:], strict=True)}
        problem_type = gemm_type(batched=interleaved, interleaved=interleaved, **transposes)
        sizes = (37, 21, 3, 50) if interleaved else (37, 21, 50)
        verify(kernel, candidate.combination.configuration(), Problem(problem_type, sizes))


@pytest.mark.parametrize("name", SETS)
def test_every_candidate_of_our_sets_has_a_source(name, tmp_path):
    made = generate(name, RuleSet.OURS, folder=tmp_path)
    assert made.programs == len(made.listed) == len(list(tmp_path.glob("*.cl")))
    for path in tmp_path.glob("*.cl"):
        text = path.read_text()
        assert all(text.count(f"#define ENTRY {entry}\n") == 1 for entry in ENTRIES), path.name


@needs_data
@pytest.mark.parametrize(("name", "candidates", "programs"), [("default", 998, 990), ("nvidia_gpu", 1349, 1349)])
def test_programs_of_the_original_s_files(name, candidates, programs):
    """The eight that are equal are full vectorisation by 1."""
    made = generate(DATA / f"{name}.json", RuleSet.OURS)
    assert (len(made.candidates), made.programs) == (candidates, programs)
    equal = [candidate.combination for candidate in made.candidates if candidate.equal_to]
    assert all((combination.vectorization, combination.vector) == ("full", 1) for combination in equal)


@needs_data
def test_top_level_tiles_make_another_program():
    made = generate(DATA / "nvidia_gpu.json", RuleSet.OURS)
    (swizzled,) = (candidate for candidate in made.candidates if candidate.combination.top == (2, 2))
    assert "Tile<8, 8, 8, 8, 1, 1, 2, 2, 1, 1>" in swizzled.line
    assert not swizzled.equal_to


def test_what_only_the_original_s_rules_admit_has_a_source_of_its_own_kind(tmp_path):
    """Our kernels do not take a cache line of 6 bytes. The original lists it, as an instantiation in C++."""
    path = written(tmp_path, {"local": [{**LOCAL, "cache_line_size": [128, 6], "work_group_sizes": [[12, 8]]}]})
    made = generate(path, RuleSet.COMPAT, folder=tmp_path / "gen")
    assert len(made.candidates) == 2
    assert len(list((tmp_path / "gen").glob("*.cpp"))) == 2
