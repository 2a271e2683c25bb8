"""portBLAS's parameter files: mode compat makes the original's combinations, mode ours those that the kernels allow."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from portblas_files import DATA, INTERLEAVED, LOCAL, NON_LOCAL, TALL_SKINNY, lines, names, needs_data, of
from portblas_oracle import combinations, made_up
from tunesmith.formats.portblas.lines import definition
from tunesmith.formats.portblas.parameter_files import Combination, RuleSet, read


def digest(texts):
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


GOLDEN = {
    "default": (
        "7dcaa2bd1e99e2ebda9b0e45c976ac9703bbca482935b64b76ea082dc76d8ef6",
        "89091d7b1f554158e1b12f04f1fcbc397a1044033d752bdedab620e9e3bff00f",
        "a4e48c5b98154463ff0f1925df2aeb9e5bd00eb01a563ec1c92dc679843dc682",
    ),
    "nvidia_gpu": (
        "2efbdd9190414087069f2eb694d1480d67701195e8a7ab36b324410e9c56b5b6",
        "50151f067366d0b061fbf577befd81efc6c90aaaf5975ba653670fb0229c12e7",
        "550eff93611e43c8fce320fe3927fe4c3611920a46f577b7d3ac2e7e2a5a053c",
    ),
}
"""SHA-256 of the original's output for its own files: its lines, its lines sorted, its source names sorted."""

COUNTS = {
    ("default", RuleSet.COMPAT): {"non_local": [(240, 30)], "non_local_interleaved": [(1536, 269)]},
    ("default", RuleSet.OURS): {"non_local": [(240, 38)], "non_local_interleaved": [(1536, 960)]},
    **{
        ("nvidia_gpu", mode): {"local": [(1632, 1236), (6, 6), (6, 6), (96, 68), (20, 18), (16, 14), (1, 1)]}
        for mode in RuleSet
    },
}
"""Counts of all and of valid combinations for each element, by array."""


@needs_data
@pytest.mark.parametrize("name", GOLDEN)
def test_compat_agrees_with_the_original_to_the_byte(name):
    config = read(DATA / f"{name}.json", RuleSet.COMPAT)
    found = lines(config)
    assert (digest(found), digest(sorted(found)), digest(sorted(names(config)))) == GOLDEN[name]
    assert config.notes == ()


@needs_data
@pytest.mark.parametrize(("name", "mode"), COUNTS)
def test_counts_by_element(name, mode):
    config = read(DATA / f"{name}.json", mode)
    expected = COUNTS[name, mode]
    assert {array: list(count.generators) for array, count in config.counts.items()} == expected
    for count in config.counts.values():
        assert (count.raw, count.valid) == tuple(map(sum, zip(*count.generators, strict=True)))
    assert sum(count.raw - count.valid for count in config.counts.values()) == len(config.rejected)
    assert sum(count.unique for count in config.counts.values()) == len(config.combinations)


@needs_data
def test_the_list_is_the_original_s_but_for_the_path():
    config = read(DATA / "default.json", RuleSet.COMPAT)
    first, path, rest = definition("some/default.json", lines(config)).split("\n", 2)
    assert path == "// Config from: some/default.json"
    assert f"{first}\n{rest}" == (DATA / "default.def").read_text()


@pytest.mark.parametrize("seed", range(40))
def test_made_up_files_give_what_a_second_writing_of_the_rules_gives(seed, tmp_path):
    document = made_up(seed)
    config = of(tmp_path, RuleSet.COMPAT, **document)
    assert (lines(config), names(config)) == combinations(document)


@pytest.mark.parametrize("mode", RuleSet)
@pytest.mark.parametrize("seed", range(20))
def test_each_combination_is_listed_once_under_a_name_of_its_own(seed, mode, tmp_path):
    config = of(tmp_path, mode, **made_up(seed))
    found = config.combinations
    assert len(found) == len(set(found)) == len(set(names(config))) == len(set(lines(config)))
    assert len({combination.configuration() for combination in found}) == len(found)
    assert not {rejected.combination for rejected in config.rejected} & set(found)


def test_the_same_arrays_in_another_order_give_the_same_list(tmp_path):
    arrays = {"local": [LOCAL], "non_local": [NON_LOCAL], "naive": [{"cache_line_size": [64]}]}
    backwards = dict(reversed(arrays.items()))
    assert of(tmp_path, **arrays).combinations == of(tmp_path, **backwards).combinations


def test_what_two_elements_ask_for_stands_where_it_is_asked_for_first(tmp_path):
    more = {**LOCAL, "cache_line_size": [32, 64, 64]}
    config = of(tmp_path, local=[LOCAL, more])
    assert [combination.cache_line for combination in config.combinations] == [64, 32]
    assert config.counts["local"].generators == ((1, 1), (3, 3))
    assert config.counts["local"].unique == 2


def test_a_combination_as_the_kernels_parameters(tmp_path):
    (combination,) = of(tmp_path, local=[LOCAL]).combinations
    assert combination == Combination("local", "full", 1, 64, (4, 4), (8, 8), (2, 2), (1, 1), False, False, True)
    assert dict(combination.configuration()) == {
        "PortBlasAlgorithm": "local",
        "Vectorization": "full",
        "VectorSize": 1,
        "CacheLine": 64,
        "WorkItem": (4, 4),
        "WorkGroup": (8, 8, 1),
        "TopTile": (2, 2),
        "BatchTile": (1, 1),
        "DoubleBuffer": False,
        "PadA": False,
        "PadB": True,
    }


def test_top_level_tiles_stand_in_their_own_slots_and_in_compat_in_those_of_sub_groups(tmp_path):
    for mode, tile in (
        (RuleSet.COMPAT, "4, 4, 8, 8, 2, 2, 1, 1, 1, 1"),
        (RuleSet.OURS, "4, 4, 8, 8, 1, 1, 2, 2, 1, 1"),
    ):
        config = of(tmp_path, mode, local=[LOCAL])
        assert f"::blas::Tile<{tile}>" in lines(config)[0]
        assert f"_{tile.replace(', ', '_')}.cpp" in names(config)[0]


def test_tall_skinny_is_ours_and_the_original_passes_over_it(tmp_path):
    config = of(tmp_path, tall_skinny=[TALL_SKINNY])
    assert [combination.algorithm for combination in config.combinations] == ["tall_skinny"]
    assert "gemm_memory_t::local, ::blas::gemm_algorithm_t::tall_skinny" in lines(config)[0]
    compat = of(tmp_path, RuleSet.COMPAT, tall_skinny=[TALL_SKINNY], naive=[{"cache_line_size": [64]}])
    assert [combination.algorithm for combination in compat.combinations] == ["naive"]
    assert ["tall_skinny: is not the original's" in note for note in compat.notes] == [True]


def reasons(config):
    return Counter(rejected.rejection.reason for rejected in config.rejected)


@pytest.mark.parametrize(
    ("array", "change", "ours", "compat"),
    [
        ("local", {"work_item_sizes": [[4, 3]]}, *["item columns do not divide group rows"] * 2),
        ("local", {"work_item_sizes": [[3, 4]]}, *["item rows do not divide group columns"] * 2),
        ("local", {"cache_line_size": [96]}, *["group is not whole cache lines"] * 2),
        ("local", {"cache_line_size": [6]}, "cache line is not whole elements", "group is not whole cache lines"),
        ("local", {"vectorization_size": [8]}, "vector does not divide item rows", None),
        ("local", {"vectorization_size": [4], "cache_line_size": [8]}, "vector does not divide the cache line", None),
        ("local", {"vectorization_size": [3]}, "no such vector", None),
        ("non_local", {"work_group_sizes": [[8, 4]]}, *["block is not square"] * 2),
        ("non_local_interleaved", {"batch_level_tiles": [[2, 4]]}, *["vector does not divide batch items"] * 2),
        ("non_local_interleaved", {"work_group_sizes": [[16, 1]]}, None, "rows squared times batch above 256"),
        ("non_local_interleaved", {"work_item_sizes": [[1, 4]]}, None, "vector does not divide item rows"),
        ("non_local_interleaved", {"work_item_sizes": [[4, 1]]}, None, "vector does not divide item columns"),
    ],
)
def test_what_is_not_valid_is_named(array, change, ours, compat, tmp_path):
    """Without the changed value all combinations are valid."""
    usual = {"local": LOCAL, "non_local": NON_LOCAL, "non_local_interleaved": INTERLEAVED}[array]
    for mode, reason in ((RuleSet.OURS, ours), (RuleSet.COMPAT, compat)):
        assert of(tmp_path, mode, **{array: [usual]}).combinations
        config = of(tmp_path, mode, **{array: [{**usual, **change}]})
        assert bool(config.combinations) == (reason is None)
        assert reason is None or set(reasons(config)) == {reason}
        assert all(rejected.rejection.detail for rejected in config.rejected)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"work_group_sizes": [[32, 4]]}, "group rows do not divide the cache line"),
        ({"work_group_sizes": [[4, 32]]}, "group columns do not divide the cache line"),
        ({"work_item_sizes": [[16, 1]]}, "item rows do not divide group columns"),
    ],
)
def test_rules_of_tall_skinny(change, reason, tmp_path):
    assert set(reasons(of(tmp_path, tall_skinny=[{**TALL_SKINNY, **change}]))) == {reason}


@pytest.mark.parametrize(
    ("item", "group", "vector", "partial", "full"),
    [
        ([2, 4], [8, 4], 2, None, "item is not one vector each way"),
        ([2, 4], [8, 4], 4, "vector does not divide item rows", "item is not one vector each way"),
        ([4, 2], [4, 8], 4, "vector does not divide item columns", "item is not one vector each way"),
        ([4, 4], [8, 8], 4, None, None),
    ],
)
@pytest.mark.parametrize("mode", RuleSet)
def test_rules_of_partial_and_full_vectorisation(
    item,
    group,
    vector,
    partial,
    full,
    mode,
    tmp_path,
):
    values = {"work_item_sizes": [item], "work_group_sizes": [group], "vectorization_size": [vector]}
    config = of(tmp_path, mode, non_local=[values])
    found = {rejected.combination.vectorization: rejected.rejection.reason for rejected in config.rejected}
    found |= {combination.vectorization: None for combination in config.combinations}
    assert found == {"partial": partial, "full": full}


def test_full_vectorisation_by_one_is_valid_in_ours_whatever_the_item(tmp_path):
    array = [{**NON_LOCAL, "vectorization_size": [1]}]
    assert [combination.vectorization for combination in of(tmp_path, non_local=array).combinations] == [
        "partial",
        "full",
    ]
    assert [
        combination.vectorization for combination in of(tmp_path, RuleSet.COMPAT, non_local=array).combinations
    ] == ["partial"]
