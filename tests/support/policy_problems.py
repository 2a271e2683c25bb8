"""Random GEMMs for the tests of policies: log-uniform sizes, odd ones among them, every type and layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tuned_samples import ORIGIN
from tunesmith.kernels import KERNELS, Kernel
from tunesmith.models.intensity.fit.heuristic import BucketSeed, CutPoint, FittedHeuristic, MetricRule
from tunesmith.models.intensity.policies.fitted import FittedPolicy
from tunesmith.models.intensity.policies.known_targets import KNOWN_TARGETS
from tunesmith.models.intensity.policies.mappings import MAPPINGS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem, ProblemType, Target

LARGEST = 16384
KINDS = ("s", "d", "h", "b", "f8", "b8", "i8", "tf32")
TARGETS: tuple[Target, ...] = tuple(KNOWN_TARGETS.values())
FAMILIES: tuple[Kernel, ...] = tuple(KERNELS[name] for name in MAPPINGS)


def problem(kind: str, m: int, n: int, k: int, batch: int = 0, **fields: Any) -> Problem:
    """Of a data type's letter or `tf32`; with a batch where it is not 0."""
    letter, tf32 = ("s", True) if kind == "tf32" else (kind, False)
    made = gemm_type(letter, tf32=tf32, batched=bool(batch), **fields)
    return Problem(made, (m, n, batch, k) if batch else (m, n, k))


def random_problems(count: int, seed: int) -> Iterator[Problem]:
    """A quarter of the sizes are 1 or a power of two or a multiple of 64, the others as they come."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        m, n, k = (_size(random) for _ in range(3))
        if random.random() < 0.1:
            m, n = (1, n) if random.random() < 0.5 else (m, 1)
        kind = str(random.choice(KINDS))
        flags = {name: bool(random.random() < 0.5) for name in ("transpose_a", "transpose_b", "use_beta")}
        batch = int(2 ** random.uniform(0, 6)) if random.random() < 0.25 else 0
        extras = {"bias": bool(random.random() < 0.1), "interleaved": bool(batch and random.random() < 0.2)}
        yield problem(kind, m, n, k, batch, **flags, **extras)


def _size(random: np.random.Generator) -> int:
    size = int(2 ** random.uniform(0, np.log2(LARGEST + 1)))
    if random.random() < 0.25:
        return int(random.choice([1, 1 << (size.bit_length() - 1), -(-size // 64) * 64]))
    return size


def is_legal(kernel: Kernel, config: Configuration, problem: Problem, target: Target) -> bool:
    """By the family's own rules, with a value for exactly the parameters of its space."""
    space = kernel.space(problem.type, target)
    return (
        set(config) == {parameter.name for parameter in space}
        and all(parameter.check(config[parameter.name], "policy") == config[parameter.name] for parameter in space)
        and not list(kernel.rejections(config, problem.type, target))
        and not list(kernel.rejections_for(config, problem, target))
    )


def type_of(kind: str) -> ProblemType:
    """NT, with beta."""
    return problem(kind, 1, 1, 1).type


def fitted_to_families() -> FittedPolicy:
    """A policy whose buckets have a configuration of a family each, and one has a tile that no family has exactly."""
    buckets = (
        {"Kernel": "CudaWgmmaGemm", "WarpGroups": 2, "InstructionColumns": 96, "RowsAlong": "N"},
        {
            "Kernel": "TritonGemm",
            "MacroTile": (128, 256),
            "DepthU": 64,
            "NumStages": 2,
            "NumWarps": 8,
            "GlobalReadVectorWidth": 8,
        },
        {"Kernel": "RegisterGemm", "WorkGroup": (1, 4, 1), "ThreadTile": (32, 12), "VectorWidth": 16},
        {"MacroTile": (96, 320), "DepthU": 24, "GlobalSplitU": 3},
    )
    seeds = tuple(BucketSeed(Configuration(bucket), None, 10) for bucket in buckets)
    cuts = (CutPoint(30.0, 20.0, 40.0), CutPoint(200.0, 150.0, 300.0), CutPoint(700.0, pinned=800.0))
    origin = replace(ORIGIN, data_type="bf16")
    return FittedPolicy(FittedHeuristic(origin, 206.0, 132, {}, MetricRule("intensity", cuts), seeds), "families.yaml")
