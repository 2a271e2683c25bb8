"""The guided search, replayed from a sweep; a modelled sweep stands in for a recorded one."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from portblas_fakes import TILES
from protocol_fakes import choices
from tunesmith.formats.portblas.parameter_files import RuleSet, find_set, read
from tunesmith.kernels import LANGUAGE, family_for
from tunesmith.records import Configuration, Estimate, UserError
from tunesmith.search import STRATEGIES, Candidates
from tunesmith.search import surrogate as module
from tunesmith.search.features import features

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "portblas_guided.py"
_SPEC = importlib.util.spec_from_file_location("portblas_guided", BENCHMARK)
benchmark = sys.modules["portblas_guided"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(benchmark)

UNITS, SIZE = 132, 1024


def modelled(config, noise):
    """A rough model of a GPU's time at M = N = K = 1024: waves, register reuse, barriers, bank conflicts; 1 % noise."""
    derived = family_for("GEMM", config).derived(config)
    rows, columns = derived["MacroTile"]
    item = config.integers("WorkItem")
    items, depth = derived["WorkGroupSize"], derived["DepthU"]
    resident = max(1, min(8, 1024 // items))
    waves = math.ceil(math.ceil(SIZE / rows) * math.ceil(SIZE / columns) / (UNITS * resident))
    reuse = item[0] * item[1] / (item[0] + item[1])
    rate = reuse / (reuse + 1.5) * min(1.0, items * resident / 512) * depth / (depth + 4)
    rate *= 1.0 if config.flag("PadA") else 0.85
    rate *= 1 + 0.04 * math.log2(config.integer("VectorSize"))
    return waves * resident * rows * columns * SIZE / rate * 1e-13 * float(np.exp(0.01 * noise.standard_normal()))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):  # type: ignore[no-untyped-def]
    """A sweep file with modelled times of every local kernel in the NVIDIA set."""
    noise = np.random.default_rng(0)
    combinations = read(find_set("nvidia"), RuleSet.OURS).combinations
    configs = [
        combination.configuration() | {LANGUAGE: "CUDA"}
        for combination in combinations
        if combination.algorithm == "local"
    ]
    times = {config: modelled(config, noise) for config in configs}
    path = tmp_path_factory.mktemp("sweep") / "sweep.csv"
    facts = {"device": "model", "date": "2026-11-21", "problem_type": "Cij_Aik_Bkj_SB", "sizes": [SIZE] * 3}
    benchmark.write_sweep(path, {config: (time, time, time, 9) for config, time in times.items()}, facts)
    return path


def test_a_sweep_is_read_as_it_was_written(sweep):
    read_again = benchmark.read_sweep(sweep)
    assert len(read_again) > 100
    assert all(family_for("GEMM", config).name == "PortBlasCuda" for config in read_again)


def test_guided_finds_the_best_in_a_tenth_of_the_measurements(sweep):
    """Guided search comes within 3 % from nearly every seed, and more often than random search."""
    recorded_sweep = benchmark.read_sweep(sweep)
    guided, random = benchmark.figures(recorded_sweep, seeds=6)
    assert guided.measurements == random.measurements <= max(24, math.ceil(0.1 * len(recorded_sweep)))
    assert guided.share_near >= 5 / 6
    assert guided.median <= 1.03
    assert guided.share_near > random.share_near
    assert guided.worst < random.worst


@pytest.mark.thorough
def test_the_program_prints_both_strategies(sweep):
    command = [sys.executable, str(BENCHMARK), str(sweep), "--seeds", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert [strategy["strategy"] for strategy in document["strategies"]] == ["guided", "random"]
    assert document["best_seconds"] == min(benchmark.read_sweep(sweep).values())


# --- the model ------------------------------------------------------------------------------------------------------


def surrogate(listed, seed, trials=None):
    return STRATEGIES["surrogate"].start(
        replace(Candidates.of_list(listed), trials=trials), np.random.default_rng(seed)
    )


def carried(search, seconds):
    """All configurations that the search asks for, if it is told these times."""
    while batch := search.ask():
        times = {config: time for config in batch.configurations if (time := seconds(config)) is not None}
        search.tell(batch, {config: {benchmark.ANY: Estimate(time, time, time, 1)} for config, time in times.items()})
    return list(search.told)


def test_what_was_found_out_steers_what_is_asked():
    """If one tile is far faster than all others, the search asks for its neighbours before the rest."""
    listed = tuple(
        Configuration({"a": a, "b": b, "c": c}) for a in (1, 2, 4, 8, 16) for b in range(6) for c in range(4)
    )

    def seconds(config):
        return 1.0 + abs(config.integer("a") - 8) + 0.5 * abs(config.integer("b") - 3) + 0.1 * config.integer("c")

    measured = carried(surrogate(listed, 1, trials=30), seconds)
    assert Configuration({"a": 8, "b": 3, "c": 0}) in measured


@pytest.mark.thorough
def test_what_does_not_run_is_stayed_away_from():
    """All configurations with a = 16 fail; few of the last 40 that the search asks for have it."""
    listed = tuple(Configuration({"a": a, "b": b, "c": c}) for a in (2, 16) for b in range(10) for c in range(10))
    measured = carried(
        surrogate(listed, 2, 80), lambda config: None if config["a"] == 16 else 1.0 + 0.1 * config.integer("b")
    )
    assert sum(config["a"] == 16 for config in measured[40:]) <= 8


def test_the_trees_are_those_of_scikit_learns_forest(monkeypatch):
    from sklearn.ensemble import ExtraTreesRegressor

    monkeypatch.setattr(module, "TREES", 20)
    random = np.random.default_rng(0)
    known, unknown = random.integers(0, 9, (30, 7)) / 3, random.integers(0, 9, (50, 7)) / 3
    costs = random.standard_normal(30)
    forest = ExtraTreesRegressor(n_estimators=20, random_state=5).fit(known, costs)
    expected = [tree.predict(unknown) for tree in forest.estimators_]
    assert np.array_equal(module._predictions(known, costs, unknown, 5), expected)


def test_a_space_too_large_to_list_is_sampled(monkeypatch):
    monkeypatch.setattr(module, "MOST_CANDIDATES", 25)
    monkeypatch.setattr(module, "TREES", 20)
    huge = Candidates(choices({f"p{index}": list(range(10)) for index in range(18)}), trials=50)
    search = STRATEGIES["surrogate"].start(huge, np.random.default_rng(0))
    assert len(set(carried(search, lambda config: 1.0))) == 25


def test_features_are_logarithms_products_and_words():
    configs = [
        Configuration({"tile": (4, 8), "depth": 16, "kind": "local", "flag": True, "same": 3}),
        Configuration({"tile": (8, 8), "depth": 0, "kind": "naive", "flag": False, "same": 3}),
    ]
    feature_matrix = features(configs, lambda config: {"guess": 0.25} if config["depth"] else {})
    columns = {tuple(column) for column in feature_matrix.T}
    assert columns == {(4.0, -1.0), (1.0, 0.0), (0.0, 1.0), (2.0, 3.0), (5.0, 6.0), (-2.0, -1.0)}


def test_without_scikit_learn_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    with pytest.raises(UserError, match=r"pip install 'tunesmith\[search\]'"):
        surrogate(TILES, 0)
