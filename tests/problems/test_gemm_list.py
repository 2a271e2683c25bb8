"""Lists of GEMMs as CSV: what they mean, what is wrong with them, and what a tuning file makes of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from protocol_fakes import Exact, FakeOracle, benchmark, final, fork, join, phases, size
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type, strided
from tunesmith.problems.gemm.listed import ListedGemm, read_gemm_list
from tunesmith.protocol import Objective, run
from tunesmith.records import Problem, UserError
from tuning_space import complaint, line_of

LIST = """\
family,m,n,k,batch,trans_a,trans_b,weight
llama,16,6144,4096,1,N,T,2
llama,128,4096,14336,1,N,T,0.5
bench,35,700,2048,1,T,N,1
batched,512,384,96,8,N,N,1
"""


@pytest.fixture
def listed(tmp_path):
    """Read a list with this text."""

    def read(text):
        path = tmp_path / "problems.csv"
        path.write_text(text)
        return read_gemm_list(path)

    return read


@pytest.fixture
def sizes(group, tmp_path):
    """The problems and weights of a step over these `ProblemSizes`, with the list beside the tuning file."""

    def read(text, problem_type="{TransposeA: True, TransposeB: False}", rows=LIST, **options):
        (tmp_path / "problems.csv").write_text(rows)
        body = f"BenchmarkCommonParameters:\n  - ProblemSizes: {text}\n  - VectorWidth: [1, 2]\n"
        made = group(body, problem_type, **options)
        step = made.groups[0].steps[0]
        weights = {problem.sizes: weight for problem, weight in step.weights.items()}
        return [problem.sizes for problem in step.problems], weights, made.notes

    return read


# --- what a list means ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("trans_a", [False, True])
def test_a_row_is_the_product_of_row_major_matrices_in_the_same_memory(trans_a, trans_b, batch):
    """The operands of the column-major problem, laid over the row-major arrays, give the row-major product."""
    row = ListedGemm(5, 3, 7, batch, trans_a, trans_b)
    draw = np.random.default_rng(0)
    a = draw.random((batch, 7, 5) if trans_a else (batch, 5, 7))
    b = draw.random((batch, 3, 7) if trans_b else (batch, 7, 3))
    c = (a.swapaxes(1, 2) if trans_a else a) @ (b.swapaxes(1, 2) if trans_b else b)
    kind = gemm_type("d", transpose_a=trans_b, transpose_b=trans_a, batched=batch > 1)
    assert row.fits(kind)
    problem = Problem(kind, row.sizes(kind))
    inputs = {"A": b.ravel(), "B": a.ravel(), "C": np.zeros(c.size)}
    expected = OPERATIONS["GEMM"].reference(problem, inputs)["D"]
    d = next(operand for operand in OPERATIONS["GEMM"].operands(problem) if operand.name == "D")
    assert np.abs(strided(d, c.ravel())[expected.where] - expected.value).max() < 1e-12


def test_columns_come_in_any_order_and_those_left_out_have_their_defaults(listed):
    assert listed("k,m,n\n3,1,2\n\n 30 , 10 ,20\n") == (ListedGemm(1, 2, 3), ListedGemm(10, 20, 30))
    assert listed('m,n,k,trans_b,family\n1,2,3,T,"a, b"\n') == (ListedGemm(1, 2, 3, trans_b=True, family="a, b"),)


@pytest.mark.parametrize(
    ("text", "location", "words"),
    [
        ("m,n,K\n1,2,3\n", ":1", ["K", "did you mean k?"]),
        ("m,n,k,colour\n1,2,3,red\n", ":1", ["colour", "it has m, n, k, batch"]),
        ("m;n;k\n1;2;3\n", ":1", ["m;n;k"]),
        ("m,n,k,m\n1,2,3,4\n", ":1", ["column m is there twice"]),
        ("m,n\n1,2\n", ":1", ["no column k"]),
        ("", ":1", ["no column m"]),
        ("m,n,k\n", "problems.csv", ["lists no problem"]),
        ("m,n,k\n1,2,3\n1,2\n", ":3", ["2 cells under 3 columns"]),
        ("m,n,k\n1,2,3\n1,0,3\n", ":3", ["n cannot be 0", "whole number from 1"]),
        ("m,n,k\n1,2.0,3\n", ":2", ["n cannot be 2.0"]),
        ("m,n,k\n1,2,2147483648\n", ":2", ["k cannot be 2147483648"]),
        ("m,n,k,batch\n1,2,3,\n", ":2", ["batch cannot be an empty word"]),
        ("m,n,k,trans_a\n1,2,3,C\n", ":2", ["trans_a cannot be C", "N or T"]),
        ("m,n,k,weight\n1,2,3,0\n", ":2", ["weight cannot be 0", "positive number"]),
        ("m,n,k,weight\n1,2,3,inf\n", ":2", ["weight cannot be inf"]),
        ("m,n,k,weight\n1,2,3,nan\n", ":2", ["weight cannot be nan"]),
        ('m,n,k\n1,2,"3\n', ":2", ["is no CSV"]),
    ],
)
def test_a_mistake_in_a_list_is_answered_with_its_place_and_a_way_out(listed, text, location, words):
    with pytest.raises(UserError) as caught:
        listed(text)
    assert caught.value.location.endswith(location), str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_list_that_is_not_there_is_the_users_to_put_right(group):
    error = complaint(group, "BenchmarkFinalParameters: [ProblemSizes: [File: nowhere.csv]]")
    assert "nowhere.csv: cannot be read" in str(error)
    assert "CSV" in str(error)


# --- in a tuning file -----------------------------------------------------------------------------------------------


def test_a_type_takes_the_rows_of_its_layout_and_the_others_are_said(sizes):
    found, weights, notes = sizes("[File: problems.csv]")
    assert found == [(6144, 16, 4096), (4096, 128, 14336)]
    assert weights == {(6144, 16, 4096): 2.0, (4096, 128, 14336): 0.5}
    (note,) = [note for note in notes if "problems.csv: 2 of 4 rows" in note]
    assert "left out (1 T N, 1 N N batched)" in note
    assert note.split(": ")[0].endswith("file.yaml:6")


def test_every_row_is_of_one_type_and_of_no_other(sizes):
    taken = []
    for a in (False, True):
        for b in (False, True):
            for batched in (False, True):
                kind = f"{{TransposeA: {a}, TransposeB: {b}, Batched: {batched}}}"
                with suppress(UserError):  # of most types there is none
                    taken += sizes("[File: problems.csv]", kind)[0]
    assert sorted(taken) == [(384, 512, 8, 96), (700, 35, 2048), (4096, 128, 14336), (6144, 16, 4096)]


def test_families_are_chosen_by_name(sizes):
    assert sizes("[{File: problems.csv, Family: llama}]")[0] == [(6144, 16, 4096), (4096, 128, 14336)]
    transposed = "{TransposeA: False, TransposeB: True}"
    found, _, notes = sizes("[{File: problems.csv, Family: [bench]}]", transposed)
    assert found == [(700, 35, 2048)]
    assert not any("left out" in note for note in notes)


def test_lists_join_ranges_and_exacts_and_rows_of_one_size_count_together(sizes):
    rows = "m,n,k,trans_b,weight\n8,4,2,T,1.5\n8,4,2,T,2\n3,3,3,T,1\n"
    spelled = "[{Exact: [4, 8, 2]}, {File: problems.csv}, {Range: [[5], 0, 0]}]"
    found, weights, _ = sizes(spelled, rows=rows)
    assert found == [(4, 8, 2), (3, 3, 3), (5, 5, 5)]
    assert weights == {(4, 8, 2): 3.5, (3, 3, 3): 1.0}


def test_sizes_that_clamping_makes_one_count_together(sizes):
    rows = "m,n,k,trans_b,weight\n64,64,64,T,1\n128,64,64,T,2\n16,16,16,T,4\n"
    assert sizes("[File: problems.csv]", rows=rows, max_size=32)[:2] == (
        [(32, 32, 32), (16, 16, 16)],
        {(32, 32, 32): 3.0, (16, 16, 16): 4.0},
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[File: [a.csv]]", ["ProblemSizes.File is a list, expected a word"]),
        ("[Fiel: problems.csv]", ["did you mean File?"]),
        ("[{Exact: [1, 1, 1], Family: llama}]", ["Family stands without a File"]),
        ("[{File: problems.csv, Family: lama}]", ["no family lama", "llama, bench, batched"]),
        ("[{File: problems.csv, Family: []}]", ["Family names none"]),
        ("[{File: problems.csv, Family: bench}]", ["no problem of", "1 T N"]),
    ],
)
def test_a_mistake_beside_a_list_is_answered_with_its_line(sizes, text, words):
    error = complaint(sizes, text)
    assert line_of(error) == 6, str(error)
    assert all(word in str(error) for word in words), str(error)


def test_only_gemms_of_whole_matrices_are_listed(sizes):
    error = complaint(sizes, "[File: problems.csv]", "{Batched: True, Interleaved: True}")
    assert "something else" in str(error)


def test_a_list_without_families_has_none_to_choose(sizes):
    error = complaint(sizes, "[{File: problems.csv, Family: llama}]", rows="m,n,k\n1,2,3\n")
    assert "needs a column family" in str(error)


# --- what a weight does ---------------------------------------------------------------------------------------------


def weighed(step, weights):
    return replace(step, weights={size(number): weight for number, weight in weights.items()})


def winner(objective, weights):
    """Candidate 1 is 1.5 times as fast at size 1, candidate 2 at size 2, which takes ten times as long."""
    times = {(1, 1): 1.0, (2, 1): 1.5, (1, 2): 15.0, (2, 2): 10.0}
    step = weighed(benchmark(on=(1, 2), a=[1, 2]), weights)
    measure = Exact(lambda config, problem: times[config.integer("a"), problem.sizes[0]])
    judge = FakeOracle(flops=lambda problem: float(problem.sizes[0]))
    return run(phases({"a": 0}, step, objective=objective), measure, judge).survivors[0].integer("a")


@pytest.mark.parametrize(
    ("objective", "weights", "expected"),
    [
        (Objective.GEOMEAN, {1: 1.1}, 1),
        (Objective.GEOMEAN, {2: 1.1}, 2),
        (Objective.GEOMEAN, {1: 0.5, 2: 0.4}, 1),
        (Objective.TOTAL_TIME, {}, 2),
        (Objective.TOTAL_TIME, {1: 9.0}, 2),
        (Objective.TOTAL_TIME, {1: 11.0}, 1),
        (Objective.MAX, {2: 100.0}, 1),
    ],
)
def test_a_weight_is_the_say_of_a_size_in_a_step(objective, weights, expected):
    assert winner(objective, weights) == expected


def test_a_weight_of_two_is_the_same_size_twice():
    """Adding a size of the same times says the same as the weight."""
    times = {1: (1.0, 1.2), 2: (1.4, 1.0), 3: (1.4, 1.0)}
    measure = Exact(lambda config, problem: times[problem.sizes[0]][config.integer("a") - 1])
    twice, weighted = benchmark(on=(1, 2, 3), a=[1, 2]), weighed(benchmark(on=(1, 2), a=[1, 2]), {2: 2.0})
    scores = [
        run(phases({"a": 0}, step), measure, FakeOracle()).steps[0].trials[0].decision.scores
        for step in (twice, weighted)
    ]
    assert list(scores[0].values()) == pytest.approx(list(scores[1].values()))


@pytest.mark.parametrize(("weights", "expected"), [({}, 2), ({1: 3.0}, 1)])
def test_a_join_weighs_the_sizes_of_the_steps_before_it(weights, expected):
    times = {(1, 1): 1.0, (2, 1): 1.4, (1, 2): 1.5, (2, 2): 1.0}
    measure = Exact(lambda config, problem: times[config.integer("a"), problem.sizes[0]])
    benchmarked, joined = (weighed(step, weights) for step in (benchmark(on=(1, 2), b=[1, 2]), join(on=(1, 2))))
    made = run(phases({"a": 0, "b": 0}, fork(a=[1, 2]), benchmarked, joined, final(1, 2)), measure, FakeOracle())
    assert [config["a"] for config in made.survivors] == [expected]
