"""A library logic is read in all its forms, and every mistake in it is told with its line and what to do."""

from __future__ import annotations

import itertools
import re

import pytest

from tensile_logics import (
    RANGES,
    REAL,
    keys_form,
    list_form,
    needs_real_logic,
    problem_type,
    solution,
    text_of,
    tree_form,
    written,
)
from tunesmith.formats.tensile.library import marked_yaml
from tunesmith.formats.tensile.library.read import is_tensile_logic, read_logic
from tunesmith.records import UserError


def test_both_forms_say_the_same(tmp_path):
    content = list_form(distance="Manhattan")
    listed, keyed = (read_logic(written(tmp_path, made)) for made in (content, keys_form(content)))
    assert (listed.form.value, keyed.form.value) == ("list", "keys")
    for name in ("schedule", "devices", "problem_type", "index_order", "distance", "metric"):
        assert getattr(listed, name) == getattr(keyed, name), name
    assert [(row.sizes, row.solution, row.speed) for row in listed.rows] == [
        (row.sizes, row.solution, row.speed) for row in keyed.rows
    ]
    assert [found.parameters for found in listed.solutions] == [found.parameters for found in keyed.solutions]
    assert keyed.hardware.compute_units == 104


@pytest.mark.parametrize("count", range(8, 15))
def test_a_list_may_end_early(count, tmp_path):
    """Old files have eight elements, the newest fourteen."""
    content = [*list_form(distance="Ratio"), "Fp16AltImplRound"]
    content[10:12] = ["CUEfficiency", "Fp16AltImpl"]
    logic = read_logic(written(tmp_path, content[:count]))
    assert logic.distance.value == ("Ratio" if count > 12 else "Euclidean")
    assert logic.metric == ("CUEfficiency" if count > 10 else "DeviceEfficiency")
    assert logic.variants == ("Fp16AltImpl",) * (count > 11) + ("Fp16AltImplRound",) * (count > 13)


def test_an_architecture_may_tell_its_compute_units(tmp_path):
    content = list_form()
    content[2] = {"Architecture": "gfx90a", "CUCount": 104, "IsAPU": 0}
    hardware = read_logic(written(tmp_path, content)).hardware
    assert (hardware.architecture, hardware.compute_units, hardware.is_apu) == ("gfx90a", 104, False)


def test_a_solution_without_a_name_gets_one_from_its_tile(tmp_path):
    kind = problem_type()
    made = [{"ProblemType": kind, "MacroTile0": 8, "MacroTile1": 4, "DepthU": 2}, {"ProblemType": kind}]
    logic = read_logic(written(tmp_path, list_form(made, [])))
    names = ["Cijk_Ailk_Bjlk_SB_MT8x4x2", "Cijk_Ailk_Bjlk_SB_solution1"]
    assert [found.name for found in logic.solutions] == names
    assert [found.own_index for found in logic.solutions] == [None, None]


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "Cijk_Ailk_Bjlk_SB"),
        ({"DataType": 4, "DestDataType": 4, "ComputeDataType": 0, "HighPrecisionAccumulate": True}, "HHS_BH"),
        ({"DataType": 4, "DestDataType": 4, "HighPrecisionAccumulate": True}, "HHS_BH"),
        ({"DataType": 4, "DestDataType": 4}, "Cijk_Ailk_Bjlk_HB"),
        ({"DataType": 7, "DestDataType": 0, "ComputeDataType": 0, "HighPrecisionAccumulate": True}, "BSS_BH"),
        ({"DataType": 8, "DestDataType": 6, "HighPrecisionAccumulate": True}, "I8II_BH"),
        ({"DataType": "c", "DestDataType": 2, "StridedBatched": False}, "Cijk_Ailk_Bjlk_CB_GB"),
        ({"DataType": 3, "DestDataType": 3, "ComplexConjugateB": True}, "Cijk_Ailk_BjlkC_ZB"),
        ({"F32XdlMathOp": 9}, "Cijk_Ailk_Bjlk_SB_MX"),
        ({"UseBeta": False}, "Cijk_Ailk_Bjlk_S"),
        ({"DataType": 4, "DestDataType": 4, "Fp16AltImpl": True, "HighPrecisionAccumulate": True}, "HHS_BHR"),
    ],
)
def test_a_type_has_tensiles_name(fields, name, tmp_path):
    kind = problem_type(**fields)
    logic = read_logic(written(tmp_path, list_form(kind=kind)))
    assert logic.problem_type.name.endswith(name)


@pytest.mark.parametrize(("a", "b", "batched"), list(itertools.product((False, True), repeat=3)))
def test_the_indices_of_a_gemm_follow_from_its_transposes(a, b, batched, tmp_path):
    whole = problem_type(batched, (a, b))
    short = {key: whole[key] for key in ("OperationType", "DataType", "Batched", "TransposeA", "TransposeB")}
    order, sizes = ((2, 3, 0, 1), [8, 8, 1, 8]) if batched else ((2, 0, 1), [8, 8, 8])
    logics = [
        read_logic(written(tmp_path, list_form(rows=[(sizes, [0, 1.0])], kind=kind, order=order)))
        for kind in (whole, short)
    ]
    assert logics[0].problem_type == logics[1].problem_type
    assert logics[0].problem_type.transposes == (a, b)


def test_a_contraction_names_its_sizes_by_letters(tmp_path):
    """Two free indices in A, one in B, and two that are summed over."""
    fields = {"OperationType": "TensorContraction", "NumIndicesC": 3, "DataType": 0}
    kind = fields | {"IndexAssignmentsA": [0, 3, 2, 4], "IndexAssignmentsB": [4, 3, 1]}
    rows = [([8, 8, 2, 16, 4], [0, 1.0])]
    logic = read_logic(written(tmp_path, list_form(rows=rows, kind=kind, order=(2, 3, 4, 0, 1))))
    assert (logic.problem_type.name, logic.problem_type.size_names) == ("Cijk_Ailkm_Bmlj_SB", tuple("ijklm"))
    assert (logic.problem_type.free_a, logic.problem_type.free_b) == ((0, 2), (1,))
    assert (logic.problem_type.summed, logic.problem_type.batch) == ((3, 4), ())


def test_what_is_not_read_is_noted_with_its_line(tmp_path):
    path = written(tmp_path, keys_form(list_form()) | {"Flavour": "sweet"})
    (note,) = read_logic(path).notes
    assert re.fullmatch(r".*logic\.yaml:\d+: Flavour is not read", note)


def test_speeds_may_be_infinite(tmp_path):
    """Tensile records them where a time was too short to measure."""
    logic = read_logic(written(tmp_path, list_form(rows=[([8, 8, 1, 8], [0, float("inf")])])))
    assert logic.rows[0].speed == float("inf")


def test_only_a_file_that_says_its_version_is_taken_for_tensiles(tmp_path):
    assert is_tensile_logic(written(tmp_path, list_form()))
    assert not is_tensile_logic(written(tmp_path, {"tunesmith-logic": 3}))
    assert not is_tensile_logic(tmp_path)


@needs_real_logic
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_a_real_logic_has_the_type_of_its_name(path):
    logic = read_logic(path)
    assert path.stem.endswith(logic.problem_type.name)
    assert all(found.name.startswith(logic.problem_type.name) for found in logic.solutions)
    assert not logic.notes


# --- mistakes --------------------------------------------------------------------------------------------------------


def changed(at, value, content=None):
    """A good logic with one value changed, or removed if `value` is ...; `at` are the keys that lead to it."""
    content = list_form(distance="Euclidean") if content is None else content
    *path, last = at
    inside = content
    for step in path:
        inside = inside[step]
    if value is ...:
        del inside[last]
    else:
        inside[last] = value
    return content


KEYED = lambda: keys_form(list_form())  # noqa: E731  # a new one for each case
MISTAKES = {
    "no list, no keys": ("word", r":1: is neither a list nor keys with values; give a library logic of Tensile"),
    "a short list": (list_form()[:7], r":1: a list of 7 elements; .* at least 8; the elements are Minimum.*, table"),
    "no version": (changed((0,), {}), r":1: MinimumRequiredVersion: MinimumRequiredVersion is missing"),
    "no architecture": (changed((2,), {"CUCount": 4}), r":3: ArchitectureName: Architecture is missing"),
    "CUCount": (changed((2,), {"Architecture": "g", "CUCount": -1}), r"CUCount: -1 is no whole number from 1"),
    "no data type": (changed((4, "DataType"), ..., list_form()), r":\d+: ProblemType: DataType is missing; write"),
    "data type": (changed((4, "DataType"), 99), r"ProblemType\.DataType: 99 is no whole number from 0 to 13"),
    "indices": (changed((4, "IndexAssignmentsA"), [0, 4, 2]), r"A has the indices \[0, 4, 2\], B .* no contraction"),
    "no GEMM": (changed((4, "IndexAssignmentsA"), [0, 3]), r"A has the indices \[0, 3\] and .* no GEMM; write Tensor"),
    "index twice": (changed((4, "IndexAssignmentsA"), [0, 0, 2]), r"has no index, or one twice; name each index"),
    "no solutions": (changed((5,), []), r":\d+: Solutions: there is no solution; a library logic has at least one"),
    "other type": (
        changed((5, 1, "ProblemType"), problem_type(DataType=1, DestDataType=1)),
        r"Solutions\[1\]\.ProblemType: the solution is of Cijk_Ailk_Bjlk_DB, the file of Cijk_Ailk_Bjlk_SB; remove",
    ),
    "assertion": (changed((5, 0, "AssertFree0ElementMultipel"), 2), r"no such assertion; did you mean AssertFree0El"),
    "multiple": (changed((5, 0, "AssertFree0ElementMultiple"), 0), r"AssertFree0ElementMultiple: 0 is no whole number"),
    "size index": (changed((5, 0, "AssertSizeLessThan"), {4: 1}), r"there is no index 4; give an index from 0 to 3"),
    "tile": (changed((5, 0, "MacroTile1"), "big"), r"Solutions\[0\]\.MacroTile1: big is no whole number"),
    "order": (changed((6,), [0, 1, 2, 2]), r"indexOrder: \[0, 1, 2, 2\] is no order of the 4 sizes M, N, batch, K"),
    "row": (changed((7, 1), [[1, 1, 1, 1]]), r":\d+: table\[1\]: is no row; write \[\[sizes\], \[solution, speed\]\]"),
    "sizes": (changed((7, 1, 0), [1, 2, 3]), r"table\[1\]: \[1, 2, 3\] has 3 numbers; give 4 sizes, and no more or"),
    "size": (changed((7, 0, 0, 2), -1), r"table\[0\]: -1 is no size; give a whole number from 0"),
    "solution": (changed((7, 2, 1, 0), 3), r"table\[2\]: 3 is no solution of the file; give an index from 0 to 2"),
    "speed": (changed((7, 0, 1), [0]), r"table\[0\]: \[0\] does not name a solution and its speed; write"),
    "speed nan": (changed((7, 0, 1, 1), float("nan")), r"table\[0\], speed: nan is no number; write a number"),
    "zero on a grid": (changed((7, 0, 0, 0), 0, list_form(distance="GridBased")), r"0 is no size; .* from 1"),
    "threshold": (list_form(ranges=[[64, 0], [32, 1]], order=(0,) * 4), None),
    "metric": (changed((10,), "Beauty"), r"PerfMetric: Beauty is no metric; there are DeviceEfficiency, CUEff"),
    "distance": (changed((12,), "Euclidian"), r"distance: there is no distance Euclidian; did you mean Euclidean\?"),
    "no library": (changed(("Library",), ..., KEYED()), r":1: the file: Library is missing; write Library there"),
    "library type": (changed(("LibraryType",), "Oracle", KEYED()), r"Oracle is not read here; there are Matching, De"),
    "no region": (tree_form(regions=[]), r"Library: there is no region; a library of decision trees has at least one"),
    "circle": (
        tree_form(regions=[{"region": [], "features": [{"type": "FreeSizeA"}], "trees": [{"solution": 0, "tree": [
            {"featureIdx": 0, "threshold": 1.0, "nextIdxLTE": 0, "nextIdxGT": -2}]}]}]),
        r"nextIdxLTE: 0 leads back from node 0; name a later node, -1 for no or -2 for yes",
    ),
    "feature": (tree_form(regions=[{"region": [], "features": [{"type": "FreSizeA"}], "trees": []}]),
                r"there is no feature FreSizeA; did you mean FreeSizeA\?"),
    "condition": (tree_form(regions=[{"region": [{"type": "SizeEquals", "value": 1}], "features": [], "trees": []}]),
                  r"there is no condition SizeEquals; did you mean SizeEqual\?"),
}  # fmt: skip
MISTAKES["threshold"] = (
    list_form(ranges=[[-1, [[64, [[-1, [[-1, 0]]]], ], [32, [[-1, [[-1, 1]]]]]]]]),
    r"the threshold 32 comes after 64; let thresholds grow; -1 is the last",
)  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_line_and_remedy(name, tmp_path):
    content, message = MISTAKES[name]
    path = written(tmp_path, content)
    with pytest.raises(UserError, match=message) as caught:
        read_logic(path)
    assert re.match(rf"{re.escape(str(path))}:\d+$", caught.value.errors[0].location)


def test_the_line_is_that_of_the_mistake(tmp_path):
    path = written(tmp_path, changed((7, 1, 1, 0), 7))
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "[7, 20.0]" in text)
    with pytest.raises(UserError) as caught:
        read_logic(path)
    # A row of two lines is told by its first.
    assert caught.value.location in (f"{path}:{line}", f"{path}:{line - 1}")


def test_the_mistakes_of_all_solutions_are_told_together(tmp_path):
    kind = problem_type()
    made = [solution(index, kind, DepthU="x" * index) for index in range(3)]
    made[0]["DepthU"] = 8
    with pytest.raises(UserError) as caught:
        read_logic(written(tmp_path, list_form(made, [])))
    assert len(caught.value.errors) == 2


TEXTS = {
    "empty": ("", r":1: the file is empty; give a file of Tensile's library logic"),
    "two documents": ("--- [1]\n--- [2]\n", r":1: the file has 2 documents; give one"),
    "a key twice": ("MinimumRequiredVersion: 1\na: 1\na: 2\n", r":3: a is given twice; keep one of the two"),
    "a list as a key": ("? [1]\n: 2\n", r":1: a list or a mapping is no key"),
    "a tag": ("- 1\n- !!python/name:os.system x\n", r":2: the tag .* is not read here"),
    "an alias in itself": ("- &a [*a]\n", r":1: an alias stands inside of what it names; write the value out"),
    "many aliases": ("".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 50) if i else 1}]\n" for i in range(9)),
                     r":\d+: aliases expand to .* values; use fewer aliases"),
    "deep": ("[" * 60 + "]" * 60, r":1: nested more than 40 deep; nothing that is read here goes so deep"),
    "a long number": ("- 1\n- " + "9" * 400, r":2: a number of 1329 bits; write one of at most 1024"),
    "a longer number": ("- 1\n- " + "9" * 5000, r":2: 999\d*\.\.\. is no value; write a number"),
    "syntax": ("- 1\n- [1, 2]]\n- 3\n", r":2: not valid YAML"),
    "a control character": ("- 1\n- \x07\n", r":2: not valid YAML"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_yaml_that_is_none_is_told_with_its_line(name, tmp_path):
    text, message = TEXTS[name]
    path = tmp_path / "logic.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"logic\.yaml{message}"):
        read_logic(path)


def test_bytes_that_are_no_utf8_are_told_with_their_line(tmp_path):
    path = tmp_path / "logic.yaml"
    path.write_bytes(b"- 1\n- \xff\n")
    with pytest.raises(UserError, match=r"logic\.yaml:2: is no UTF-8"):
        read_logic(path)


def test_aliases_are_what_they_name(tmp_path):
    """PyYAML writes an alias where one object stands twice: a ProblemType for each solution, most of all."""
    kind = problem_type()
    path = written(tmp_path, list_form(kind=kind))
    assert "*id001" in path.read_text()
    assert len(read_logic(path).solutions) == 3


def test_lines_are_those_of_the_text(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\nb:\n- [1, 2]\n- x\n-\n  - 3\nc: {d: 1,\n  e: 2}\n")
    content = marked_yaml.read_marked(path, "something")
    assert [content.line_of(key) for key in ("a", "b", "c")] == [1, 2, 7]
    assert [content["b"].line_of(index) for index in range(3)] == [3, 4, 6]
    assert (content["b"][0].line_of(1), content["c"].line_of("e")) == (3, 8)


def test_values_are_those_that_pyyaml_reads(tmp_path):
    """But for numbers such as 1e-5, which YAML 1.1 takes for words."""
    import yaml

    path = tmp_path / "a.yaml"
    path.write_text("[1, 0x10, 1.5, .inf, -.5, true, No, null, ~, '1', \"x\", Device 687f, 1LDS, 2020-01-01x, {0: 1}]")
    assert marked_yaml.read_marked(path, "something") == yaml.safe_load(path.read_text())
    path.write_text("- 1e-5\n- '1e-5'\n")
    assert marked_yaml.read_marked(path, "something") == [1e-5, "1e-5"]


def test_text_of_ranges_is_read_back(tmp_path):
    path = tmp_path / "logic.yaml"
    path.write_text(text_of(list_form(ranges=RANGES)))
    logic = read_logic(path)
    assert [rule.threshold for rule in logic.ranges] == [-1]
    assert [rule.threshold for rule in logic.ranges[0].inner] == [100, -1]
