"""`tunesmith logic show` and `export`, and `tunesmith select --logic`."""

from __future__ import annotations

import re

import pytest

from command_line import invoke, invoke_json
from library_fakes import logic as ours
from tensile_logics import RANGES, list_form, problem_type, solution, tree_form, written
from tunesmith.logic import write_logic
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import UserError


@pytest.fixture
def listed(tmp_path):
    return written(tmp_path, list_form(distance="Euclidean"))


def test_show_says_what_is_in_a_logic(listed):
    text = invoke("logic", "show", listed).stdout
    for line in (
        rf"^file +{re.escape(str(listed))}, Tensile's list of version 4.33.0$",
        r"^device +gfx900: Device 0001$",
        r"^type +Cijk_Ailk_Bjlk_SB, sizes M N batch K$",
        r"^data +operands S result S sums S$",
        r"^others +the nearest row, by the distance Euclidean$",
        r"^solutions: 3$",
        r"^ +0 +Kernel0 +Source +1$",
        r"^exact sizes: 3$",
        r"^512x512x2x512 +2 +30$",
    ):
        assert re.search(line, text, re.MULTILINE), line


def test_show_tells_ranges_and_trees_in_words(tmp_path):
    text = invoke("logic", "show", written(tmp_path, list_form(3, [], ranges=RANGES))).stdout
    assert "K <= 100, M <= 32: solution 1\n" in text
    assert "by the range rules, then the nearest row" in text
    text = invoke("logic", "show", written(tmp_path, tree_form())).stdout
    assert re.search(r"^64 <= M, SizeEqual\(batch, 1\): 2 trees of 3 nodes, fallback solution 2$", text, re.MULTILINE)


def test_a_long_logic_is_shown_in_part_and_printed_whole(tmp_path):
    path = written(tmp_path, list_form(30, [([size, 1, 1, 1], [size, 1.0]) for size in range(30)]))
    text = invoke("logic", "show", path).stdout
    assert "and 10 more solutions; --json lists them" in text
    assert "and 10 more exact sizes; --json lists them" in text
    document = invoke_json("logic", "show", path)
    assert (len(document["solutions"]), len(document["exact"])) == (30, 30)


def test_show_takes_our_own_logic_too(tmp_path):
    path = tmp_path / "own.yaml"
    write_logic(ours(gemm_type(), [{}, {"VectorWidth": 2}], {(64, 64, 64): 1}).document, path)
    document = invoke_json("logic", "show", path)
    assert document["form"] == "tunesmith"
    assert document["exact"] == [{"sizes": [64, 64, 64], "leading": [], "solution": 1, "speed": 0.524288}]
    assert document["solutions"][1]["configuration"]["VectorWidth"] == 2
    assert "S1" in invoke("logic", "show", path).stdout


def test_select_says_what_tensile_chooses_and_why(listed):
    exact = invoke_json("select", "--logic", listed, "--size", 128, 64, 1, 64)
    assert (exact["solution"], exact["index"], exact["rule"], exact["distance"]) == ("Kernel1", 1, "exact", 0.0)
    assert exact["configuration"]["WorkGroup"] == [16, 16, 1]
    near = invoke_json("select", "--logic", listed, "--size", "129x64x64")
    assert (near["rule"], near["neighbour"], near["distance"]) == ("nearest", [128, 64, 1, 64], 1.0)
    text = invoke("select", "--logic", listed, "--size", 129, 64, 1, 64).stdout
    assert re.search(r"^solution +1: Kernel1$", text, re.MULTILINE)
    assert re.search(r"^rule +nearest: row 128x64x1x64 at Euclidean distance 1$", text, re.MULTILINE)


def test_the_logic_may_stand_in_either_place(listed):
    documents = [
        invoke_json("select", listed, "--size", 129, 64, 1, 64),
        invoke_json("select", "--size", 129, 64, 1, 64, "--logic", listed),
        invoke_json("select", "--logic", listed, "--size", "129,64,1,64"),
    ]
    assert documents[0] == documents[1] == documents[2]


def test_select_logic_takes_our_own_logic_too(tmp_path):
    write_logic(ours(gemm_type()).document, tmp_path / "own.yaml")
    found = invoke_json("select", "--logic", tmp_path / "own.yaml", "--size", 64, 64, 64)
    assert (found["rule"], found["kernel"]) == ("exact", "FakeGemm")


def test_without_a_choice_select_says_so_and_returns_1(tmp_path):
    path = written(tmp_path, list_form(distance="Equality"))
    document = invoke_json("select", "--logic", path, "--size", 9, 9, 9, 9, code=1)
    assert (document["rule"], document["solution"], document["configuration"]) == ("none", None, None)
    result = invoke("select", "--logic", path, "--size", 9, 9, 9, 9)
    assert result.exit_code == 1
    assert "none: the table does not have this size" in result.stdout


def test_select_says_what_was_passed_over(tmp_path):
    made = [solution(0, problem_type(), AssertSizeLessThan={0: 9}), solution(1, problem_type())]
    rows = [([64, 64, 1, 64], [0, 1.0]), ([999, 64, 1, 64], [1, 1.0])]
    path = written(tmp_path, list_form(made, rows))
    (passed,) = invoke_json("select", "--logic", path, "--size", 64, 64, 1, 64)["passed_over"]
    assert passed == {"solution": "Kernel0", "reason": "AssertSizeLessThan: size M 64 is not below 9"}
    text = invoke("select", "--logic", path, "--size", 64, 64, 1, 64).stdout
    assert "Kernel0: AssertSizeLessThan" in text


def test_infinite_speeds_are_json(tmp_path):
    path = written(tmp_path, list_form(rows=[([8, 8, 1, 8], [0, float("inf")])]))
    assert invoke_json("logic", "show", path)["exact"][0]["speed"] == "inf"
    assert invoke_json("select", "--logic", path, "--size", 8, 8, 1, 8)["recorded_speed"] == "inf"


MISTAKES = {
    "no logic": (["select", "--size", "1"], r"LOGIC: is missing; name a library logic"),
    "two logics": (["select", "out", "--logic", "LOGIC", "--size", "1"], r"--logic: .* is given beside out; name one"),
    "sizes": (
        ["select", "--logic", "LOGIC", "--size", "1", "2"],
        r"--size: 2 sizes given, Cijk_Ailk_Bjlk_SB has M, N, batch, K; give one number for each",
    ),
    "a large size": (["select", "--logic", "LOGIC", "--size", f"{2**64}x1x1x1"], r"--size: \d+ is too large; give"),
    "type": (["select", "--logic", "LOGIC", "--size", "8x8x8", "--type", "X"], r"--type: .* has no logic of X; it is"),
    "a folder": (["logic", "show", "."], r"\.: is a folder; name one of its files of library logic"),
    "no such file": (["logic", "show", "absent.yaml"], r"absent\.yaml: cannot be read \(No such file"),
    "an empty folder": (["logic", "export", "FOLDER", "-o", "x.yaml"], r"holds no library logic; name the output"),
    "another type": (["logic", "export", "OWN", "-o", "x.yaml", "--type", "Y"], r"--type: .* no logic of Y; it has C"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_says_what_to_do(name, tmp_path, listed):
    command, message = MISTAKES[name]
    (tmp_path / "empty").mkdir()
    write_logic(ours(gemm_type()).document, tmp_path / "own.yaml")
    paths = {"LOGIC": listed, "FOLDER": tmp_path / "empty", "OWN": tmp_path / "own.yaml"}
    with pytest.raises(UserError, match=message):
        invoke(*(paths.get(word, word) for word in command))


def test_export_writes_what_select_reads(tmp_path):
    kinds = gemm_type(), gemm_type("d", batched=True)
    for kind in kinds:
        rows = {(64,) * len(kind.indices): 1, (8,) * len(kind.indices): 0}
        write_logic(ours(kind, [{}, {"VectorWidth": 2}], rows).document, tmp_path / "out" / f"{kind.name}.yaml")
    out = tmp_path / "exported.yaml"
    with pytest.raises(UserError, match=r"--type: .* has 2 logics; name the file, or one type of Cij"):
        invoke("logic", "export", tmp_path / "out", "-o", out)
    done = invoke_json("logic", "export", tmp_path / "out", "-o", out, "--type", kinds[1].name)
    assert (done["rows"], done["distance"], done["notes"]) == (2, "Euclidean", [])
    found = invoke_json("select", "--logic", out, "--size", 64, 64, 64, 64)
    assert (found["problem_type"], found["solution"], found["rule"]) == (kinds[1].name, "S1", "exact")
    text = invoke("logic", "export", tmp_path / "out", "-o", out, "--type", kinds[0].name).stdout
    assert text == f"{out}: {kinds[0].name}, 2 solutions, 2 exact sizes, Euclidean\n"
