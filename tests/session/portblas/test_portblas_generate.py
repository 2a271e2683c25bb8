"""`tunesmith portblas generate`: a list and sources as a build step makes them, and what the command prints."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from portblas_files import DATA, LOCAL, NON_LOCAL, needs_data, written
from tunesmith.cli import app
from tunesmith.formats.portblas.lines import FIRST_LINE
from tunesmith.formats.portblas.parameter_files import RuleSet
from tunesmith.records import Configuration, UserError
from tunesmith.session.portblas import generate as portblas_generate
from tunesmith.session.portblas.generate import MARK, generate

TWO = {"local": [{**LOCAL, "vectorization_size": [1, 2]}], "naive": [{"cache_line_size": [64]}]}
SAME = {"non_local": [{**NON_LOCAL, "vectorization_size": [1]}]}
"""Partial and full vectorisation by 1."""


def stand_in(configuration):
    """A stand-in for sources: one text for each program. Vectors of 1 are the same program with any vectorisation."""
    vectors = configuration.word("Vectorization") if configuration.integer("VectorSize") > 1 else "none"
    return f"kernels of {(configuration | {'Vectorization': vectors}).to_json()}\n"


@pytest.fixture(autouse=True)
def _texts(monkeypatch):
    monkeypatch.setattr(portblas_generate, "_standalone", stand_in)


def make(folder, document, mode=RuleSet.OURS):
    return generate(written(folder, document), mode, folder / "c.def", folder / "gen")


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in [*folder.glob("gen/*"), folder / "c.def"]}


def invoke(*arguments, code=0):
    result = CliRunner().invoke(app.app, ["portblas", *map(str, arguments)])
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_a_source_for_each_program_and_a_list_of_them(tmp_path):
    made = make(tmp_path, TWO)
    assert made.programs == len(made.candidates) == 3
    for candidate in made.candidates:
        mark, line, configuration, text = (tmp_path / "gen" / f"{candidate.stem}.cl").read_text().split("\n", 3)
        assert (mark, line) == (MARK, f"// {candidate.line}")
        assert Configuration.from_json(configuration.removeprefix("// ")) == candidate.combination.configuration()
        assert text == stand_in(candidate.combination.configuration())
    found = (tmp_path / "c.def").read_text().split("\n")
    assert found[0] == FIRST_LINE
    assert [line for line in found if line.startswith("BENCH")] == [candidate.line for candidate in made.candidates]
    assert made.listed == tuple(str(tmp_path / "gen" / f"{candidate.stem}.cl") for candidate in made.candidates)


def test_candidates_that_are_the_same_program_are_one(tmp_path):
    made = make(tmp_path, SAME)
    first, second = made.candidates
    assert (first.equal_to, second.equal_to, made.programs) == ("", first.stem, 1)
    assert [path.stem for path in (tmp_path / "gen").iterdir()] == [first.stem]
    last = (tmp_path / "c.def").read_text().split("\n")[-1]
    assert last == f"// the same program as {first.stem}: {second.line}"
    assert len(made.listed) == 1


def test_in_compat_every_combination_has_its_line_and_file_and_equals_are_told(tmp_path):
    array = {**NON_LOCAL, "work_item_sizes": [[1, 1]], "vectorization_size": [1]}
    made = make(tmp_path, {"non_local": [array]}, RuleSet.COMPAT)
    first, second = made.candidates
    assert second.equal_to == first.stem
    assert len(list((tmp_path / "gen").glob("*.cpp"))) == 2
    assert (tmp_path / "c.def").read_text().split("\n")[5:] == [first.line, second.line]


TUNER = r"""
#include <cstdio>
namespace blas {
enum class gemm_memory_t { local, no_local };
enum class gemm_algorithm_t { naive, standard };
enum class gemm_batch_type_t { strided, interleaved };
enum class gemm_vectorization_t { none, partial, full };
template <int Rows, int Columns, int GroupRows, int GroupColumns, int, int, int, int, int, int> struct Tile {};
}
struct portblas_handle_t {};
struct TestResultEntry {};
template <bool, bool, blas::gemm_memory_t, blas::gemm_algorithm_t, blas::gemm_batch_type_t, blas::gemm_vectorization_t>
struct GemmConfig {};
template <typename> struct GemmArgs {};
template <int VecSize, int Cls, typename Tile, bool DoubleBuffer, bool Nbca, bool Nbcb, typename Config, typename T>
TestResultEntry tune(portblas_handle_t&, int, GemmArgs<T>);
"""
"""Stands in for portBLAS's `tools/auto_tuner/include/tune.hpp` and what it includes (commit 6cf5e589)."""

CALLS = r"""
#include "tune.hpp"
template <typename Config, int VecSize, int Cls, typename Tile, bool... Flags>
void call() {
    portblas_handle_t handle;
    tune<VecSize, Cls, Tile, Flags..., Config, float>(handle, 1, GemmArgs<float>());
}
#define BENCH_PARAMS(MEM, ALGO, BATCH, VEC, ...)                       \
    call<GemmConfig<false, false, MEM, ALGO, BATCH, VEC>, __VA_ARGS__>(); \
    call<GemmConfig<true, false, MEM, ALGO, BATCH, VEC>, __VA_ARGS__>();  \
    call<GemmConfig<false, true, MEM, ALGO, BATCH, VEC>, __VA_ARGS__>();  \
    call<GemmConfig<true, true, MEM, ALGO, BATCH, VEC>, __VA_ARGS__>();
int main() {
#include "c.def"
}
"""
"""What portBLAS's tuner does with the list: it calls each combination in four transpositions."""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_compat_writes_the_files_that_it_lists_and_the_list_links_with_them(tmp_path):
    path, folder = written(tmp_path, {**TWO, **SAME}), tmp_path / "gen"
    make(tmp_path, {**TWO, **SAME})
    listed = invoke("generate", path, "--mode", "compat", "--source-dir", folder, "--list-files").stdout.splitlines()
    invoke("generate", path, tmp_path / "c.def", "--mode", "compat", "--source-dir", folder)
    assert sorted(listed) == sorted(map(str, folder.iterdir()))
    assert {Path(name).suffix for name in listed} == {".cpp"}
    (tmp_path / "tune.hpp").write_text(TUNER)
    body = "{ return {}; }"
    (tmp_path / "tune_impl.hpp").write_text(TUNER.replace("GemmArgs<T>);", f"GemmArgs<T>) {body}"))
    (tmp_path / "main.cpp").write_text(CALLS)
    command = ["g++", "-std=c++17", "-I", tmp_path, tmp_path / "main.cpp", *listed, "-o", tmp_path / "tuner"]
    subprocess.run(command, check=True)
    subprocess.run([tmp_path / "tuner"], check=True)


def test_compat_writes_also_what_is_no_kernel_of_ours(tmp_path, monkeypatch):
    """The original's rules allow vectors that OpenCL does not have; the sources are written anyway."""

    def refuses(configuration):
        raise UserError("VectorSize", "no such vector", "take another")

    monkeypatch.setattr(portblas_generate, "_standalone", refuses)
    made = make(tmp_path, TWO, RuleSet.COMPAT)
    assert sorted(map(str, (tmp_path / "gen").iterdir())) == sorted(made.listed)
    assert not [candidate for candidate in made.candidates if candidate.equal_to]


@pytest.mark.parametrize("mode", RuleSet)
def test_unchanged_input_leaves_every_file_untouched(mode, tmp_path):
    assert len(make(tmp_path, TWO, mode).changes.written) == 4
    before = times(tmp_path)
    again = make(tmp_path, TWO, mode)
    assert times(tmp_path) == before
    assert (len(again.changes.unchanged), again.changes.written, again.changes.removed) == (4, [], [])


def test_a_change_writes_and_removes_what_it_changes_and_nothing_else(tmp_path):
    first = make(tmp_path, TWO)
    by_hand = tmp_path / "gen" / "tune_gemm_by_hand.cl"
    by_hand.write_text("// mine\n")
    before = times(tmp_path)
    second = make(tmp_path, {**TWO, "local": [{**LOCAL, "vectorization_size": [2, 4]}]})
    gone, kept, naive = (candidate.stem for candidate in first.candidates)
    new = second.candidates[1].stem
    assert [path.stem for path in second.changes.removed] == [gone]
    assert {path.name for path in second.changes.written} == {f"{new}.cl", "c.def"}
    after = times(tmp_path)
    assert set(after) == {f"{stem}.cl" for stem in (kept, naive, new)} | {"c.def", by_hand.name}
    assert {name for name in after if after[name] == before.get(name)} == {f"{kept}.cl", f"{naive}.cl", by_hand.name}


def test_a_file_that_was_changed_by_hand_is_remade_but_nobody_else_s_is_written_over(tmp_path):
    stem = make(tmp_path, TWO).candidates[0].stem
    source = tmp_path / "gen" / f"{stem}.cl"
    text = source.read_text()
    source.write_text(text + "// more")
    assert make(tmp_path, TWO).changes.written == [source]
    assert source.read_text() == text
    source.write_text("mine")
    with pytest.raises(UserError, match="is there already and was not generated"):
        make(tmp_path, TWO)
    assert source.read_text() == "mine"


def test_the_list_is_not_written_over_another_parameter_file(tmp_path):
    path, other = written(tmp_path, TWO), tmp_path / "other.json"
    other.write_text("{}")
    with pytest.raises(UserError, match=r"other\.json: is there already and was not generated"):
        generate(path, RuleSet.COMPAT, other)
    assert other.read_text() == "{}"


def test_a_place_that_cannot_be_written_is_a_mistake_with_its_name(tmp_path):
    (tmp_path / "gen").write_text("")
    with pytest.raises(UserError, match=r"gen.*cannot be written"):
        make(tmp_path, TWO)


@needs_data
@pytest.mark.parametrize("spelling", ["--list-files", "--list_files"])
def test_compat_prints_the_original_s_list_and_names(spelling):
    config = DATA / "default.json"
    result = invoke("generate", config, "--mode", "compat")
    assert result.stderr == ""
    lines = result.stdout.split("\n")
    assert lines.pop(1) == f"// Config from: {config}"
    assert "\n".join(lines) == (DATA / "default.def").read_text()
    names = invoke("generate", config, "--mode", "compat", spelling).stdout.splitlines()
    assert (len(names), names[0]) == (299, "tune_gemm_1_0_0_0_0_0_1_0_1_4_4_4_4_1_1_1_1_1_1.cpp")
    assert names[-1] == "tune_gemm_1_0_1_0_0_0_2_0_2_2_4_8_8_1_1_1_1_2_2.cpp"


@pytest.mark.parametrize("spelling", ["--source-dir", "--source_dir"])
def test_listing_names_what_a_run_without_it_writes(spelling, tmp_path):
    path, folder = written(tmp_path, {**TWO, **SAME}), tmp_path / "gen"
    listed = invoke("generate", path, spelling, folder, "--list-files")
    assert not folder.exists()
    assert "is the same as" in listed.stderr
    assert "files: 4 written, 0 unchanged, 0 removed" in invoke("generate", path, spelling, folder).stdout
    assert sorted(listed.stdout.splitlines()) == sorted(map(str, folder.iterdir()))


def test_what_was_not_valid_is_counted_by_reason_with_an_example(tmp_path):
    path = written(tmp_path, {"local": [{**LOCAL, "vectorization_size": [1, 3, 8]}]})
    text = invoke("generate", path, tmp_path / "c.def").stdout
    assert f"{path}, mode ours: 1 combinations of 3" in text
    assert re.search(r"^vector does not divide item rows +1 +4 rows of a work-item are not whole", text, re.MULTILINE)
    assert re.search(r"^no such vector +1 +vectors of 3; there are those of 1, 2, 4, 8, 16", text, re.MULTILINE)


def test_notes_go_to_standard_error_where_the_list_is_printed(tmp_path):
    path = written(tmp_path, {**TWO, "lokal": []})
    result = invoke("generate", path, "--mode", "compat")
    assert "lokal" not in result.stdout
    assert "did you mean local?" in result.stderr


def test_json_has_everything_and_writes_as_well(tmp_path):
    path = written(tmp_path, {**TWO, **SAME})
    made: dict[str, Any] = json.loads(invoke("generate", path, tmp_path / "c.def", "--json").stdout)
    assert made["arrays"]["local"] == {"asked": 2, "valid": 2, "unique": 2}
    assert made["programs"] == len(made["files"]) == len(made["candidates"]) - 1
    assert made["written"] == [str(tmp_path / "c.def")]
    listed = json.loads(invoke("generate", path, "--list-files", "--json").stdout)
    assert listed["files"] == [
        f"{candidate['stem']}.cl" for candidate in listed["candidates"] if not candidate["equal_to"]
    ]


def test_no_valid_combination_is_something_to_look_at(tmp_path):
    path = written(tmp_path, {"local": [{**LOCAL, "vectorization_size": [3]}]})
    assert "makes no combination" in invoke("generate", path, code=1).stderr
    assert "makes no combination" in invoke("generate", path, tmp_path / "c.def", code=1).stdout


def test_a_set_is_generated_by_its_name(tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps(TWO))
    assert invoke("generate", "mine", "--folder", tmp_path, "--list-files").stdout.count(".cl\n") == 3
    with pytest.raises(UserError, match="--list-files: writes nothing"):
        invoke("generate", "cpu", tmp_path / "c.def", "--list-files")


def test_configs_lists_our_sets_and_the_user_s_and_says_what_is_wrong_with_them(tmp_path):
    assert re.search(r"^nvidia +\d+ +local \d+, .*NVIDIA GPUs", invoke("configs").stdout, re.MULTILINE)
    (tmp_path / "mine.json").write_text(json.dumps({**TWO, "about": "for [bold] tests"}))
    (tmp_path / "broken.json").write_text("{")
    result = invoke("configs", "--folder", tmp_path, code=1)
    assert re.search(r"^mine +3 +local 2, naive 1 +for \[bold\] tests", result.stdout, re.MULTILINE)
    assert re.search(r"^look at: .*broken\.json:1:2: not valid JSON", result.stdout, re.MULTILINE)
    sets = json.loads(invoke("configs", "--folder", tmp_path, "--json", code=1).stdout)["sets"]
    by_name = {row["name"]: row for row in sets}
    assert by_name["broken"]["combinations"] is None
    assert "not valid JSON" in by_name["broken"]["problem"]
    assert (by_name["mine"]["shipped"], by_name["cpu"]["shipped"]) == (False, True)
