"""The fitted policy: buckets become legal configurations with their reasons, and bad files become our errors."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_heuristic_file import mutated
from typer.testing import CliRunner

from policy_problems import fitted_to_families, is_legal, problem
from quick_yaml import dumped, loaded
from tuned_samples import ORIGIN
from tunesmith.cli.app import app
from tunesmith.kernels import KERNELS
from tunesmith.models.intensity.fit.heuristic import BucketSeed, CutPoint, FittedHeuristic, MetricRule, Question
from tunesmith.models.intensity.fit.heuristic_file import dump_heuristic, read_heuristic
from tunesmith.models.intensity.policies import DEFAULT_POLICY, POLICIES, PolicyChoice, PolicyRefusal
from tunesmith.models.intensity.policies.family_order import kernel_order
from tunesmith.models.intensity.policies.fitted import FittedPolicy, fitted_policy
from tunesmith.models.intensity.policies.known_targets import KNOWN_TARGETS
from tunesmith.models.intensity.policies.packaged import FOLDER
from tunesmith.records import Configuration, UserError, Value

ROOT = Path(__file__).parents[3]
H200, MI210 = KNOWN_TARGETS["sm_90"], KNOWN_TARGETS["gfx90a"]
TREE = Question("m", 64.0, 0, Question("mnk", 1e9, 1, 2))
TILES: tuple[Mapping[str, Value], ...] = (
    {"MacroTile": (16, 64), "DepthU": 64},
    {"MacroTile": (64, 64), "DepthU": 32},
    {"Kernel": "TritonGemm", "MacroTile": (128, 128), "DepthU": 64, "NumWarps": 8},
)


def heuristic(buckets=TILES, rule=TREE):
    seeds = tuple(BucketSeed(Configuration(bucket), None, 5) for bucket in buckets)
    return FittedHeuristic(replace(ORIGIN, data_type="bf16"), 206.0, 132, {}, rule, seeds)


def written(folder, fitted):
    path = folder / "fitted.yaml"
    path.write_text(dump_heuristic(fitted), encoding="utf-8")
    return path


def chosen(policy, kernel, *sizes, **fields):
    gemm = problem("b", *sizes, **fields)
    answer = policy.choose(gemm, H200, KERNELS[kernel])
    assert isinstance(answer, PolicyChoice)
    assert is_legal(KERNELS[kernel], answer.configuration, gemm, H200)
    return answer


def test_a_configuration_of_the_requested_family_is_taken_as_it_was_tuned():
    """2 M N K / (M N + N K + M K) of 256 x 256 x 64 is 85, in the second bucket: cut points at 30 and 200."""
    answer = chosen(fitted_to_families(), "TritonGemm", 256, 256, 64)
    assert answer.configuration["MacroTile"] == (128, 256)
    assert (answer.configuration["DepthU"], answer.configuration["NumWarps"]) == (64, 8)
    assert "as it was tuned" in answer.lines[-1].text


def test_another_family_gets_the_tile_of_the_tuned_configuration():
    """CudaWgmmaGemm of WarpGroups 2 along N and 96 columns has a tile of 96 x 128."""
    answer = chosen(fitted_to_families(), "TritonGemm", 16, 256, 64)
    tile = answer.configuration.integers("MacroTile")
    assert tile[0] == 16, "no side is longer than that of the product"
    assert tile[1] == 128
    assert "as it was tuned" not in answer.lines[-1].text


def test_a_tuned_configuration_that_is_illegal_gives_its_tile():
    """Loads of 8 elements need rows that are multiples of 16 bytes; rows of 255 elements are not."""
    answer = chosen(fitted_to_families(), "TritonGemm", 255, 255, 65)
    assert [line.step for line in answer.lines] == ["bucket", "seed", "mapping", "rejected", "tile", "mapping"]
    assert answer.configuration["GlobalReadVectorWidth"] == 1


def test_a_bucket_of_the_vendors_library_asks_it_first_and_has_no_tile_for_others():
    buckets = ({"MacroTile": (64, 64)}, {"Kernel": "VendorBlas"})
    policy = FittedPolicy(heuristic(buckets, MetricRule("mn", (CutPoint(1e6),))), "vendor.yaml")
    large, small = problem("b", 4096, 4096, 64), problem("b", 64, 64, 64)
    for gemm, kernel in ((large, "VendorBlas"), (small, "CudaWgmmaGemm")):
        answer = policy.choose_among(gemm, H200, kernel_order(gemm, H200))
        assert isinstance(answer, PolicyChoice)
        assert answer.kernel == kernel
        assert answer.reason.startswith("bucket ")
    other = chosen(policy, "TritonGemm", 4096, 4096, 64)
    latency = POLICIES["latency"].choose(large, H200, KERNELS["TritonGemm"])
    assert isinstance(latency, PolicyChoice)
    assert other.configuration == latency.configuration
    assert "VendorBlas has no tile, so the latency model decides; least expected time" in other.reason


def test_steps_that_are_off_are_off_in_the_latency_model_too():
    """The product has few tiles and a long K, so the model would split K."""
    policy = FittedPolicy(heuristic(({"Kernel": "VendorBlas"},), MetricRule("mn", ())), "vendor.yaml")
    gemm, kernel = problem("b", 256, 256, 65536), KERNELS["TritonGemm"]
    latency = POLICIES["latency"]
    answers = [policy.with_steps(steps).choose(gemm, H200, kernel) for steps in ((), ("split",))]
    of_latency = [latency.with_steps(steps).choose(gemm, H200, kernel) for steps in ((), ("split",))]
    assert all(isinstance(answer, PolicyChoice) for answer in (*answers, *of_latency))
    configurations = [answer.configuration for answer in answers]
    assert configurations == [answer.configuration for answer in of_latency]
    assert configurations[0] != configurations[1]


def test_a_configuration_with_an_open_grid_is_not_taken():
    """The launch of the choice would have to decide the grid."""
    bucket = {"Kernel": "CudaWgmmaGemm", "WarpGroups": 1, "InstructionColumns": 128, "StreamKGrid": -1}
    policy = FittedPolicy(heuristic((bucket,), MetricRule("mn", ())), "open.yaml")
    answer = chosen(policy, "CudaWgmmaGemm", 1024, 1024, 1024)
    assert answer.configuration["StreamKGrid"] == 0
    assert answer.configuration["InstructionColumns"] == 128
    assert any("left open" in line.text for line in answer.lines)


def test_the_reason_names_value_bucket_interval_and_pin():
    policy = fitted_to_families()
    between = "bucket 2 of 4: intensity = 85.33, at least 30 (95 % 20 to 40) and below 200 (95 % 150 to 300)"
    assert chosen(policy, "TritonGemm", 256, 256, 64).reason == f"{between}: TritonGemm as it was tuned"
    assert chosen(policy, "CudaWgmmaGemm", 256, 256, 64).reason.startswith(f"{between}: 128 x 256 x 64, 4 x 2")
    big = chosen(policy, "TritonGemm", 8192, 8192, 8192).reason
    assert big.startswith("bucket 4 of 4: intensity = 5461, at least 800 (pinned by a person, fitted 700): 96 x 160")
    tree = FittedPolicy(heuristic(), "tree.yaml")
    assert chosen(tree, "TritonGemm", 128, 128, 128).reason.startswith(
        "bucket 2 of 3: m = 128 >= 64, mnk = 2.097e+06 < 1e+09: 64 x 64 x 32"
    )
    assert chosen(tree, "TritonGemm", 32, 128, 128).reason.startswith("bucket 1 of 3: m = 32 < 64: 16 x 64 x 64")


def test_a_pin_written_into_the_file_is_read_at_once(tmp_path):
    cuts = MetricRule("mnk", (CutPoint(1e6), CutPoint(1e9)))
    path = written(tmp_path, heuristic(rule=cuts))
    before = chosen(fitted_policy(path), "TritonGemm", 64, 64, 64)
    assert fitted_policy(path) is fitted_policy(path), "an unchanged file is not read again"
    path.write_text(path.read_text().replace("{fitted: 1000000.0}", "{fitted: 1000000.0, pinned: 10.0}"))
    after = chosen(fitted_policy(path), "TritonGemm", 64, 64, 64)
    assert before.configuration["MacroTile"] == (16, 64)
    assert after.configuration["MacroTile"] == (64, 64)
    assert "pinned by a person" in after.reason


@pytest.mark.parametrize(
    ("bucket", "message"),
    [
        ({"Solution": "Cij_MT64x64"}, "bucket 1 of 1: {'Solution': 'Cij_MT64x64'} has no tile; give MacroTile"),
        ({"MacroTile": (64,)}, "has no tile"),
        ({"MacroTile": (64, -64)}, "has no tile"),
        ({"MacroTile": (64, 10**9)}, "has no tile"),
        ({"MacroTile": (64, True)}, "has no tile"),
        ({"MacroTile": (64, 64), "DepthU": "deep"}, "DepthU cannot be deep"),
        ({"MacroTile": (64, 64), "GlobalSplitU": 10**12}, "GlobalSplitU cannot be 1000000000000"),
        ({"Kernel": "Magic", "MacroTile": (64, 64)}, "there is no GEMM kernel Magic; give one of TiledGemm"),
        ({"Kernel": ("a", "b"), "MacroTile": (64, 64)}, "there is no GEMM kernel"),
        ({"Kernel": "OpenCLRandom", "MacroTile": (64, 64)}, "there is no GEMM kernel OpenCLRandom"),
        ({"Kernel": "TritonGemm", "MacroTile": (64, 64), "Depth": 4}, "TritonGemm has no parameter Depth"),
        ({"Kernel": "TritonGemm", "MacroTile": (64, 63.5)}, "MacroTile cannot be [64, 63.5]"),
        ({"Kernel": "VendorBlas", "MacroTile": (64, 64)}, "VendorBlas has no parameter MacroTile"),
    ],
)
def test_a_bucket_without_a_tile_is_named(bucket, message, tmp_path):
    path = written(tmp_path, heuristic((bucket,), MetricRule("mn", ())))
    with pytest.raises(UserError) as raised:
        fitted_policy(path)
    assert message in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_damaged_file_gives_a_policy_that_answers_or_our_error(tmp_path):
    """Mutated files of both rules. A policy from a readable file gives legal configurations or named reasons."""
    generator = random.Random("fitted")
    texts = [dump_heuristic(fitted) for fitted in (heuristic(), fitted_to_families().heuristic)]
    outcomes: Counter[str] = Counter()
    mistakes: list[tuple[Path, UserError]] = []
    problems = [problem("b", 300, 200, 1000), problem("s", 1, 77, 5000), problem("h", 4096, 4096, 64)]
    for number in range(300):
        text = texts[number % 2]
        if number % 3:
            text = dumped(mutated(loaded(text), generator), allow_unicode=True)
        else:
            start = generator.randrange(len(text))
            text = text[:start] + generator.choice("{}[]:-,'\"#&*!%@\t\n09a") + text[start + generator.randrange(3) :]
        path = tmp_path / f"{number}.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            policy = fitted_policy(path)
        except UserError as error:
            outcomes["refused"] += 1
            mistakes += [(path, mistake) for mistake in error.errors]
            continue
        for gemm in problems:
            for target, kernel in ((H200, "CudaWgmmaGemm"), (H200, "TritonGemm"), (MI210, "TritonGemm")):
                answer = policy.choose(gemm, target, KERNELS[kernel])
                outcomes[type(answer).__name__] += 1
                if isinstance(answer, PolicyChoice):
                    assert is_legal(KERNELS[kernel], answer.configuration, gemm, target)
                else:
                    assert answer.rejection.reason in ("data type", "layout"), answer
    assert outcomes["refused"] > 30
    assert all(mistake.remedy and mistake.location.startswith(str(path)) for path, mistake in mistakes)
    assert outcomes[PolicyChoice.__name__] > outcomes[PolicyRefusal.__name__]


def test_the_packaged_heuristic_of_the_target_and_type_decides():
    """For gfx90a in half precision there is a heuristic. For sm_90 there is none, and the reason says so."""
    gemm = problem("h", 4096, 4096, 4096)
    answer = POLICIES["fitted"].choose(gemm, MI210, KERNELS["TritonGemm"])
    assert isinstance(answer, PolicyChoice)
    assert answer == fitted_policy(FOLDER / "gfx90a_float16.yaml").choose(gemm, MI210, KERNELS["TritonGemm"])
    for target, kind, message in ((H200, "b", "sm_90 in bfloat16"), (MI210, "s", "gfx90a in float32")):
        other = problem(kind, 4096, 4096, 4096)
        fallback = POLICIES["fitted"].choose(other, target, KERNELS["TritonGemm"])
        latency = POLICIES["latency"].choose(other, target, KERNELS["TritonGemm"])
        assert isinstance(fallback, PolicyChoice)
        assert isinstance(latency, PolicyChoice)
        assert fallback.configuration == latency.configuration
        start = f"no heuristic is packaged for {message}, so the latency model decides; least"
        assert fallback.reason.startswith(start)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_packaged_file_says_its_held_out_score_and_fits_its_name(path):
    packaged = read_heuristic(path)
    types = {"f16": "float16", "bf16": "bfloat16"}
    assert path.stem == f"{packaged.origin.device}_{types[packaged.origin.data_type]}"
    scores = packaged.scores
    assert scores["r2-low"] > scores["published-r2"]
    page = (ROOT / "docs" / "results" / "policies.md").read_text(encoding="utf-8")
    score = f"{scores['r2']:.2f} [{scores['r2-low']:.2f}, {scores['r2-high']:.2f}]"
    assert f"| `{path.name}` | {packaged.origin.products:,} | {score} |" in page


@pytest.mark.parametrize("data_type", ["f16", "bf16", "f32"])
def test_the_page_has_how_near_the_tiles_come_to_winners(data_type):
    rows = json.loads((ROOT / "benchmarks/recorded/policies" / f"winners_{data_type}.json").read_text("utf-8"))
    page = (ROOT / "docs" / "results" / "policies.md").read_text(encoding="utf-8")
    for row in rows:
        shown = f"| {data_type} | `{row['policy']}` | {row['products']:,} | {row['r2']:.2f} | {row['ratio']:.2f} |"
        assert shown in page, shown


def test_explain_takes_a_file():
    path = FOLDER / "gfx90a_bfloat16.yaml"
    common = ["heuristics", "explain", "--size", "512,512,512", "--type", "b", "--architecture", "gfx90a"]
    result = CliRunner().invoke(app, [*common, "--heuristic", str(path), "--json"])
    document: dict[str, Any] = json.loads(result.stdout)
    assert document["policy"] == "fitted"
    assert [line["step"] for line in document["lines"]] == ["bucket", "seed", "tile", "mapping"]
    default = json.loads(CliRunner().invoke(app, [*common, "--json"]).stdout)
    assert default["policy"] == DEFAULT_POLICY
    result = CliRunner().invoke(app, [*common, "--heuristic", str(path), "--policy", "latency"])
    assert isinstance(result.exception, UserError)
    assert str(result.exception) == "--heuristic: --policy latency is named too; give one of the two"
