"""What Tensile chooses by a library logic: beside a slow second reading of its rules, and by hand."""

from __future__ import annotations

import random

import pytest
import yaml

from slow_tensile import least_distance, slow_choice
from tensile_logics import (
    DISTANCES,
    RANGES,
    REAL,
    list_form,
    needs_real_logic,
    problem_type,
    random_forest,
    random_logic,
    random_size,
    solution,
    tree_form,
    written,
)
from tunesmith.formats.tensile.library.contraction import SizedContraction
from tunesmith.formats.tensile.library.read import read_logic
from tunesmith.formats.tensile.library.selection import TensileSelector, choose
from tunesmith.records import UserError

OTHER_SIZES = 1000


def chosen(path, content, sizes):
    """Our choice and rule for each size, and those of the slow reading."""
    logic = read_logic(path)
    selector = TensileSelector(logic)
    for asked in sizes:
        made = selector.choose(SizedContraction(logic.problem_type, tuple(asked)))
        ours = made.solution.index if made.solution is not None else None, made.rule.value
        yield asked, made, ours, slow_choice(content, list(asked))


@needs_real_logic
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_a_real_logic_answers_its_own_sizes_with_what_it_records(path):
    content = yaml.safe_load(path.read_text())
    table = {tuple(row[0]): row[1][0] for row in content[7]}
    found = {asked: (ours, slow) for asked, _, ours, slow in chosen(path, content, table)}
    assert {asked: ours for asked, (ours, _) in found.items()} == {
        asked: (index, "exact") for asked, index in table.items()
    }
    assert all(ours == slow for ours, slow in found.values())


@needs_real_logic
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_a_real_logic_answers_a_thousand_other_sizes_as_the_rules_say(path):
    content, chance = yaml.safe_load(path.read_text()), random.Random(path.name)
    own = {tuple(row[0]) for row in content[7]}
    sizes = set()
    while len(sizes) < OTHER_SIZES:
        low = [chance.randint(1, 300) for _ in range(4)]
        spread = [int(2 ** chance.uniform(0, 14)) for _ in range(4)]
        near = [max(1, size + chance.randint(-2, 2)) for size in chance.choice(sorted(own))] if own else low
        sizes |= {tuple(chance.choice((low, spread, near)))} - own
    wrong = [(asked, ours, slow) for asked, _, ours, slow in chosen(path, content, sorted(sizes)) if ours != slow]
    assert not wrong


@pytest.mark.parametrize("distance", DISTANCES)
def test_tables_are_searched_like_the_slow_reading_does(distance, tmp_path):
    """Small sizes and few speeds make many ties; assertions rule out many solutions."""
    chance, rules = random.Random(distance), set()
    for _ in range(40):
        content = random_logic(chance, distance)
        path = written(tmp_path, content)
        logic = read_logic(path)
        count = len(logic.problem_type.size_names)
        sizes = [random_size(chance, count) for _ in range(18)] + [row.sizes for row in logic.rows[:4]]
        for asked, made, ours, slow in chosen(path, content, sizes):
            rules.add(made.rule.value)
            assert ours == slow, (distance, asked, path.read_text())
            if made.rule == "nearest" and distance != "JSD":  # JSD's search may end too early, in Tensile as here
                assert made.distance == least_distance(content, list(asked)), "and no row that may run is nearer"
    own = {"Equality": set(), "GridBased": {"grid"}, "Euclidean": {"nearest", "range"}}.get(distance, {"nearest"})
    assert rules == {"exact", "none"} | own, "or else a rule was not tried"


def test_decision_trees_answer_like_the_slow_reading_does(tmp_path):
    chance, rules = random.Random(7), set()
    for _ in range(80):
        content = random_forest(chance)
        path = written(tmp_path, content)
        sizes = [random_size(chance, 4) for _ in range(25)]
        for asked, made, ours, slow in chosen(path, content, sizes):
            rules.add(made.rule.value)
            assert ours == slow, (asked, path.read_text())
    assert rules == {"tree", "fallback", "none"}


def test_of_equally_near_rows_the_faster_wins(tmp_path):
    rows = [([60, 64, 1, 64], [0, 5.0]), ([64, 60, 1, 64], [1, 7.0]), ([68, 64, 1, 64], [2, 6.0])]
    logic = read_logic(written(tmp_path, list_form(3, rows)))
    made = choose(logic, (64, 64, 1, 64))
    assert (made.solution.index, made.rule.value, made.distance) == (1, "nearest", 16.0)


def test_the_search_ends_where_the_first_size_alone_is_as_far_as_the_best(tmp_path):
    """So a faster row, as near as the best by its first size alone, is not seen; Tensile does the same."""
    rows = [([68, 64, 1, 64], [0, 5.0]), ([60, 64, 1, 64], [1, 7.0])]
    logic = read_logic(written(tmp_path, list_form(3, rows)))
    assert choose(logic, (64, 64, 1, 64)).solution.index == 0


def test_batch_and_leading_dimensions_do_not_count_but_for_equality(tmp_path):
    rows = [([64, 64, 8, 64, 128, 128, 128, 128], [1, 9.0]), ([64, 64, 1, 64], [0, 5.0])]
    made = choose(read_logic(written(tmp_path, list_form(3, rows, "Euclidean"))), (64, 64, 1, 64))
    assert (made.solution.index, made.rule.value) == (1, "exact")
    assert "batch" in made.detail
    logic = read_logic(written(tmp_path, list_form(3, rows, "Equality")))
    assert [choose(logic, (64, 64, batch, 64)).solution.index for batch in (1, 8)] == [0, 1]
    assert choose(logic, (64, 64, 2, 64)).solution is None


def test_a_solution_that_may_not_run_is_passed_over_with_its_reason(tmp_path):
    kind = problem_type()
    made = [solution(0, kind, AssertFree0ElementMultiple=8), solution(1, kind)]
    rows = [([64, 64, 1, 64], [0, 5.0]), ([512, 64, 1, 64], [1, 5.0])]
    logic = read_logic(written(tmp_path, list_form(made, rows)))
    assert choose(logic, (72, 64, 1, 64)).solution.index == 0
    found = choose(logic, (70, 64, 1, 64))
    assert found.solution.index == 1
    assert found.passed_over == ((0, "AssertFree0ElementMultiple 8: free size 0 is 70"),)


ASSERTED = {
    "AssertFree1ElementMultiple": (4, (1, 8, 1, 1), (1, 6, 1, 1)),
    "AssertSummationElementMultiple": (4, (1, 1, 1, 8), (1, 8, 1, 6)),
    "AssertSizeEqual": ({1: 5}, (1, 5, 1, 1), (5, 1, 1, 1)),
    "AssertSizeGreaterThan": ({3: 32}, (1, 1, 1, 33), (1, 1, 1, 32)),
    "AssertSizeLessThan": ({1: 17}, (1, 16, 1, 1), (1, 17, 1, 1)),
    "AssertSizeMultiple": ({2: 3}, (1, 1, 6, 1), (6, 1, 1, 1)),
    "AssertStrideAEqual": ({1: 7}, (7, 1, 1, 1), (8, 1, 1, 7)),
    "AssertStrideBEqual": ({2: 12}, (1, 4, 1, 3), (4, 1, 1, 3)),
    "AssertStrideCEqual": ({2: 12}, (4, 3, 1, 1), (4, 4, 1, 1)),
    "AssertStrideDEqual": ({0: 2}, None, (1, 1, 1, 1)),
    "AssertAIGreaterThanEqual": (10.0, (512, 512, 1, 512), (2, 2, 1, 2)),
    "AssertAILessThanEqual": (10.0, (2, 2, 1, 2), (512, 512, 1, 512)),
    "AssertAlphaValue": (1, None, (1, 1, 1, 1)),
    "AssertBetaValue": (1, None, (1, 1, 1, 1)),
    "AssertCEqualsD": (True, None, (1, 1, 1, 1)),
    "GlobalLoadVectorWidthA": (4, (4, 1, 1, 1), (3, 4, 1, 4)),
    "GlobalLoadVectorWidthB": (4, (1, 4, 1, 1), (4, 3, 1, 4)),
}
"""For each assertion a value, a size that meets it (or none does), and one that does not. The type is an NT."""


@pytest.mark.parametrize("name", ASSERTED)
def test_an_assertion_lets_its_sizes_through_and_no_others(name, tmp_path):
    value, met, unmet = ASSERTED[name]
    made = [solution(0, problem_type(), **{name: value})]
    logic = read_logic(written(tmp_path, list_form(made, [([1, 1, 1, 1], [0, 1.0])])))
    assert choose(logic, unmet).solution is None
    assert choose(logic, unmet).passed_over[0][1].startswith(name)
    assert met is None or choose(logic, met).solution.index == 0


def test_alpha_beta_and_one_array_for_c_and_d_meet_their_assertions(tmp_path):
    made = [solution(0, problem_type(), AssertAlphaValue=1, AssertBetaValue=-1, AssertCEqualsD=True)]
    logic = read_logic(written(tmp_path, list_form(made, [([1, 1, 1, 1], [0, 1.0])])))
    problem = SizedContraction(logic.problem_type, (8, 8, 1, 8), alpha=1.0, beta=-1.0, c_equals_d=True)
    assert TensileSelector(logic).choose(problem).solution.index == 0


@pytest.mark.parametrize(
    ("parameters", "met", "unmet"),
    [
        ({"GlobalSplitU": 4, "MinKForGSU": 64, "_GlobalAccumulation": "Any"}, (9, 9, 1, 256), (9, 9, 1, 255)),
        ({"BufferLoad": True, "DepthU": 16}, (2**26 - 1, 9, 1, 9), (2**26, 9, 1, 9)),
        ({"BufferStore": True, "MacroTile1": 64}, (2**24 - 1, 9, 1, 9), (2**24, 9, 1, 9)),
    ],
    ids=["split K", "loads", "stores"],
)  # fmt: skip
def test_limits_follow_from_other_parameters(parameters, met, unmet, tmp_path):
    """Single precision: an offset of 2^32 bytes is 2^30 elements."""
    made = [solution(0, problem_type(), **parameters)]
    logic = read_logic(written(tmp_path, list_form(made, [([1, 1, 1, 1], [0, 1.0])])))
    assert choose(logic, met).solution.index == 0
    assert choose(logic, unmet).solution is None


@pytest.mark.parametrize(
    ("sizes", "index", "detail"),
    [
        ((32, 500, 7, 100), 1, "K <= 100, M <= 32"),
        ((33, 64, 7, 100), 2, "K <= 100, N <= 64"),
        ((33, 65, 7, 100), 0, "K <= 100"),
        ((33, 65, 7, 101), 2, "any size"),
    ],
)
def test_range_rules_ask_one_size_after_the_other(sizes, index, detail, tmp_path):
    made = choose(read_logic(written(tmp_path, list_form(3, [], ranges=RANGES))), sizes)
    assert (made.solution.index, made.rule.value, made.detail) == (index, "range", detail)


def test_exact_sizes_come_before_ranges(tmp_path):
    logic = read_logic(written(tmp_path, list_form(3, [([32, 500, 7, 100], [2, 1.0])], ranges=RANGES)))
    assert (choose(logic, (32, 500, 7, 100)).solution.index, choose(logic, (32, 500, 6, 100)).solution.index) == (2, 1)


@pytest.mark.parametrize(
    ("sizes", "row"),
    [
        ((65, 60, 1, 300), (128, 64, 1, 256)),
        ((128, 65, 1, 70), (128, 128, 1, 64)),
        ((500, 10, 1, 64), (128, 64, 1, 64)),
        ((64, 500, 1, 64), (64, 64, 1, 64)),
        ((64, 64, 1, 256), (64, 64, 1, 256)),
    ],
    ids=["next M", "next N", "beyond the last M", "beyond the last N", "on the grid"],
)
def test_a_grid_rounds_m_and_n_up_and_takes_the_nearest_k(sizes, row, tmp_path):
    points = [(64, 64, 64), (64, 64, 256), (128, 64, 64), (128, 64, 256), (128, 128, 64)]
    rows = [([m, n, 1, k], [index % 3]) for index, (m, n, k) in enumerate(points)]
    made = choose(read_logic(written(tmp_path, list_form(3, rows, "GridBased"))), sizes)
    assert made.row.sizes == row


@pytest.mark.parametrize(
    ("sizes", "index", "rule"),
    [
        ((128, 200, 1, 40), 1, "tree"),
        ((128, 200, 1, 60), 0, "tree"),
        ((128, 100, 1, 60), 2, "fallback"),
        ((128, 200, 2, 40), None, "none"),
    ],
)
def test_the_first_tree_that_says_yes_chooses(sizes, index, rule, tmp_path):
    made = choose(read_logic(written(tmp_path, tree_form())), sizes)
    assert (made.solution.index if made.solution else None, made.rule.value) == (index, rule)


def test_a_choice_by_chance_is_refused(tmp_path):
    logic = read_logic(written(tmp_path, list_form(3, distance="Random")))
    with pytest.raises(UserError, match=r"logic\.yaml:\d+: the distance Random chooses by chance"):
        choose(logic, (64, 64, 1, 64))
