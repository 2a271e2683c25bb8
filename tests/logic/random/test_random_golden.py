"""Benchmark files of our own for rocRAND's choice, with what its rules make of them, worked out by hand, and with the
rules written down a second time: what its golden cases show (`test_random_compat.py`) where they are not there."""

from __future__ import annotations

import random
import re
import statistics

import pytest

from random_benchmarks import benchmark, benchmarks, decide, pair, rows, write
from tunesmith.formats import read_random
from tunesmith.formats.random.outputs import write_selection
from tunesmith.logic.random.choice import choose_shapes
from tunesmith.logic.random.decision import RandomObjective
from tunesmith.logic.random.shapes import DEFAULT_SHAPES

COMPAT = RandomObjective.COMPAT
Shape = tuple[int, int]
Speeds = dict[str, dict[Shape, float]]

PHILOX: Speeds = {
    "uniform/float": {(256, 1024): 100.0, (512, 2048): 110.0, (64, 64): 95.0, (1024, 512): 80.0},
    "normal/float": {(256, 1024): 50.0, (512, 2048): 60.0, (64, 64): 70.0, (1024, 512): 45.0},
}
"""Of the default's speed: 512x2048 1.1 and 1.2; 64x64 0.95 and 1.4; 1024x512 0.8 and 0.9."""
XORWOW: Speeds = {"uniform/unsigned_int": {(256, 512): 200.0, (128, 1024): 199.0, (1024, 1024): 150.0}}
OTHER_CARD: Speeds = {"uniform/float": {(256, 1024): 80.0, (64, 64): 40.0, (512, 2048): 100.0}}


def messages(decision):
    return [remark.reason for remark in decision.remarks if "_" in remark.reason]


@pytest.fixture
def selection(tmp_path):
    """Two files of two architectures. In the first, one benchmark failed, and one has no generator's name."""
    spoilt = [
        benchmark("philox4_32_10_normal_float_t128_b64", None),
        benchmark("BM_memcpy", 500.0),
    ]
    valid = [*benchmarks("philox4_32_10", PHILOX), *benchmarks("xorwow", XORWOW)]
    write(tmp_path / "tuning_gfx90a.json", [*valid, *spoilt])
    write(tmp_path / "tuning_gfx1100.json", benchmarks("philox4_32_10", OTHER_CARD), "gfx1100")
    reading = read_random(sorted(tmp_path.glob("*.json")))
    complaints = " ".join(map(str, reading.complaints))
    assert "tuning_gfx90a.json" in complaints
    assert "BM_memcpy/manual_time: is no name of a generator's benchmark" in complaints
    return choose_shapes(reading.rows, COMPAT)


def test_compat_chooses_ranks_and_warns_by_generator_and_architecture(selection):
    found = {(decision.generator, decision.architecture): decision for decision in selection.decisions}
    assert set(found) == {("philox4_32_10", "gfx90a"), ("xorwow", "gfx90a"), ("philox4_32_10", "gfx1100")}
    first, second, third = (found[key] for key in sorted(found, key=lambda key: (key[0], key[1] != "gfx90a")))

    assert pair(first.chosen) == (64, 64)
    assert first.score == pytest.approx((0.95 + 1.4) / 2, rel=1e-15)
    assert {str(ratio.case): ratio.ratio for ratio in first.ratios} == {"normal/float": 1.4, "uniform/float": 0.95}
    assert [str(ratio.case) for ratio in first.regressions] == ["uniform/float"]
    ranking = [(pair(scored.shape), scored.score) for scored in first.ranking if scored.score == scored.score]
    assert [shape for shape, _ in ranking] == [(64, 64), (512, 2048), (256, 1024), (1024, 512)]
    assert [score for _, score in ranking] == pytest.approx([1.175, 1.15, 1.0, 0.85], rel=1e-15)
    assert messages(first) == ["best_has_regressions", "next_best_without_regressions"]
    assert first.safe
    assert pair(first.safe.shape) == (512, 2048)

    assert (pair(second.chosen), second.score, messages(second)) == ((512, 2048), 1.25, [])
    assert (pair(third.chosen), third.score, messages(third)) == ((256, 512), 1.0, [])


def test_headers_of_compat_return_the_chosen_shapes(selection, tmp_path):
    write_selection(selection.decisions, tmp_path / "out")
    lines = {
        path.name: sorted(re.findall(r"case target_arch::(\w+): return (\d+);", path.read_text()))
        for path in (tmp_path / "out").glob("*.hpp")
        if path.name != "tunesmith_target_arch.hpp"
    }
    assert lines == {
        "philox4_32_10_config.hpp": [("gfx1100", "2048"), ("gfx1100", "512"), ("gfx90a", "64"), ("gfx90a", "64")],
        "xorwow_config.hpp": [("gfx90a", "256"), ("gfx90a", "512")],
    }


def test_a_distribution_without_the_default_is_said_with_its_file_and_left_out(tmp_path):
    """In this case rocRAND's script stops with an IndexError."""
    path = write(tmp_path / "tuning.json", benchmarks("philox4_32_10", {"uniform/float": {(64, 64): 90.0}}))
    selection = choose_shapes(read_random([path]).rows, COMPAT)
    assert selection.decisions == ()
    complaints = [str(complaint) for complaint in selection.complaints if "tuning.json" in str(complaint)]
    assert any("the default 256x1024 was not measured for uniform/float" in complaint for complaint in complaints)


# --- the rules once more ----------------------------------------------------------------------------------------------


def by_the_rules(speeds, default):
    """Each speed over the default's, the mean for each shape, the highest wins; below 0.98 is a regression, and then
    the best of the others is looked for that is faster than the default on average and everywhere."""
    ratios: dict[Shape, dict[str, float]] = {}
    for case in sorted(speeds):
        for shape, speed in speeds[case].items():
            ratios.setdefault(shape, {})[case] = speed / speeds[case][default]
    means = {shape: statistics.fmean(by_case.values()) for shape, by_case in ratios.items()}
    ranking = sorted(means, key=lambda shape: -means[shape])
    best, *others = ranking
    regressions = [case for case, ratio in ratios[best].items() if ratio < 0.98]
    reasons, safe = [], None
    if regressions:
        faster = [shape for shape in others if means[shape] > 1]
        safe = next((shape for shape in faster if all(ratio > 1 for ratio in ratios[shape].values())), None)
        reasons = ["best_has_regressions"] + ([] if faster else ["no_other_config_with_average_speedup"])
        reasons += ["next_best_without_regressions" if safe else "no_config_without_regressions"]
    return {"ranking": ranking, "means": means, "regressions": regressions, "reasons": reasons, "safe": safe}


def made_up(source, default):
    """All means differ, so that the order of equal values in NumPy's quicksort does not matter."""
    shapes = {(source.choice([64, 128, 256, 512, 1024]), source.choice([64, 512, 1024, 4096])) for _ in range(9)}
    cases = source.sample(["uniform/float", "normal/double", "poisson/unsigned_int", "log_normal/half"], 3)
    spread = source.choice([0.01, 0.1, 0.4])
    speed = {case: source.uniform(50, 500) for case in cases}
    return {
        case: {shape: speed[case] * (1 + spread * source.uniform(-1, 1)) for shape in sorted({*shapes, default})}
        for case in cases
    }


def test_made_up_speeds_are_chosen_from_as_by_a_second_writing_of_the_rules():
    shape = DEFAULT_SHAPES["philox4_32_10"]
    default, met = (shape.block, shape.grid), set()
    for seed in range(200):
        speeds = made_up(random.Random(seed), default)
        decision, expected = decide(rows("philox4_32_10", speeds), COMPAT), by_the_rules(speeds, default)
        assert [pair(scored.shape) for scored in decision.ranking] == expected["ranking"]
        means = [expected["means"][shape] for shape in expected["ranking"]]
        assert [scored.score for scored in decision.ranking] == pytest.approx(means, rel=1e-14)
        assert [str(ratio.case) for ratio in decision.regressions] == expected["regressions"]
        assert messages(decision) == expected["reasons"]
        assert (decision.safe and pair(decision.safe.shape)) == expected["safe"]
        met.add(tuple(expected["reasons"]))
    assert len(met) == 4, "every message is met"
