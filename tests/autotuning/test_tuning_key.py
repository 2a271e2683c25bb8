"""Keys of calls, the nearest key, buckets, and pruning."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from tunesmith import UserError
from tunesmith.autotuning.tuning_key import Pruning, TuningKey, bucket_of, nearest


def tensor(dtype):
    return SimpleNamespace(dtype=dtype, shape=(4,))


def test_a_key_has_the_key_values_and_the_types_of_all_tensors():
    key = TuningKey.of(
        ["n", "mode", "absent"], {"y": tensor("torch.float16"), "n": 7, "mode": "fast", "x": tensor("i")}
    )
    assert key == TuningKey((7, "fast"), ("torch.float16", "i"))
    assert key.as_tuple == (7, "fast", "torch.float16", "i")


@pytest.mark.parametrize(
    ("rule", "value", "bucketed"),
    [("power_of_two", 5, 8), ("power_of_two", 8, 8), ("power_of_two", 0, 0), (lambda number: number // 10, 57, 5)],
)
def test_a_bucket_stands_for_its_numbers(rule, value, bucketed):
    bucket = bucket_of(rule, "program.py:1")
    assert TuningKey.of(["n", "word"], {"n": value, "word": "a"}, bucket).values == (bucketed, "a")


def test_an_unknown_bucket_is_a_mistake():
    with pytest.raises(UserError, match=r"program\.py:1: bucket cannot be 'tens'"):
        bucket_of("tens", "program.py:1")


def test_the_nearest_key_is_near_in_logarithms_and_has_the_same_types():
    kept = [TuningKey((64, "a"), ("f",)), TuningKey((900, "a"), ("f",)), TuningKey((500, "b"), ("f",))]
    assert nearest(TuningKey((300, "a"), ("f",)), kept) == kept[1]
    assert nearest(TuningKey((200, "a"), ("f",)), kept) == kept[0]
    assert nearest(TuningKey((300, "a"), ("h",)), kept) is None
    assert nearest(TuningKey((300, "a"), ("f",)), []) is None
    assert TuningKey((1, -2), ()).distance(TuningKey((1, 2), ())) == math.inf
    assert TuningKey((True,), ()).distance(TuningKey((2,), ())) == math.inf


class Config:
    def __init__(self, block):
        self.block = block

    def all_kwargs(self):
        return {"BLOCK": self.block}


CONFIGS = [Config(block) for block in (8, 32, 16, 64)]


def blocks(pruning, **keywords):
    return [config.block for config in pruning.pruned(CONFIGS, {"n": 40}, keywords, "program.py:1")]


@pytest.mark.parametrize(
    ("functions", "left"),
    [
        (None, [8, 32, 16, 64]),
        (
            {"early_config_prune": lambda configs, named: configs[: named["n"] // 10 - 1]},
            [8, 32, 16],
        ),
        ({"perf_model": lambda n, BLOCK: -BLOCK, "top_k": 2}, [64, 32]),  # noqa: N803
        ({"perf_model": lambda n, BLOCK: BLOCK, "top_k": 0.5}, [8, 16]),  # noqa: N803
        ({"perf_model": lambda n, BLOCK: BLOCK, "top_k": 0.01}, [8]),  # noqa: N803
        ({"perf_model": lambda n, BLOCK: BLOCK}, [8, 32, 16, 64]),  # noqa: N803
    ],
)
def test_configurations_are_pruned_as_triton_does(functions, left):
    assert blocks(Pruning.of(functions)) == left


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"early_config_prune": lambda configs, named: []}, "left no configuration"),
        ({"perf_model": lambda n, BLOCK: 1, "top_k": 1.5}, r"top_k cannot be 1\.5"),  # noqa: N803
    ],
)
def test_a_wrong_pruning_is_told(functions, message):
    with pytest.raises(UserError, match=message):
        blocks(Pruning.of(functions))
