"""`tunesmith heuristics explain`: each stage, the configuration, and mistakes that say what would be right."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from typer.testing import CliRunner

from tunesmith.cli import app
from tunesmith.records import UserError


def invoke(*arguments):
    result = CliRunner().invoke(app.app, ["heuristics", "explain", *arguments])
    if isinstance(result.exception, UserError):
        raise result.exception
    return result


def document(*arguments):
    result = invoke(*arguments, "--json")
    made: dict[str, Any] = json.loads(result.stdout)
    return made


def test_every_stage_and_the_configuration_are_printed():
    options = ("--size", "4096,1024,4096", "--type", "b", "--architecture", "sm_90", "--policy", "published-intensity")
    text = invoke(*options).stdout
    # 2 M N K / (M N + N K + M K) of these sizes is 1365.3; a large product is five times the ridge of 206, or more.
    assert re.search(r"^bucket +1365.3 FLOP/element, the ridge is 206 FLOP/byte: large *$", text, re.MULTILINE)
    for step in ("seed", "workgroup-cap", "distribution", "tile", "mapping"):
        assert re.search(rf"^{step} +\S", text, re.MULTILINE), step
    assert re.search(
        r"^configuration: \{KernelLanguage: CUDA, MatrixInstruction: wgmma, .*ClusterShape", text, re.MULTILINE
    )


def test_sizes_may_be_separate_words_and_a_batch_comes_before_k():
    made = document("--size", "64", "128", "4", "32", "--type", "Cijk_Ailk_Bljk_SB", "--architecture", "x86-64")
    assert (made["sizes"], made["kernel"], made["rejection"]) == ([64, 128, 4, 32], "RegisterGemm", None)


def test_policy_family_and_steps_may_be_named():
    common = ("--size", "520,520,512", "--type", "h", "--architecture", "gfx942")
    made = document(*common, "--policy", "trip-count", "--kernel", "TritonGemm", "--steps", "none")
    assert [line["step"] for line in made["lines"]] == ["bucket", "seed", "distribution", "tile", "mapping"]
    capped = document(*common, "--policy", "trip-count", "--steps", "workgroup-cap,registers")
    assert "workgroup-cap" in [line["step"] for line in capped["lines"]]
    assert capped["configuration"]["MacroTile"] != made["configuration"]["MacroTile"]


def test_a_refusal_is_printed_with_its_reason_and_exits_with_1():
    result = invoke("--size", "64,64,64", "--type", "d", "--architecture", "sm_90", "--kernel", "TritonGemm")
    assert result.exit_code == 1
    assert "no configuration: data type: float64: this family has" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--size", "1,2"), r"--size: 2 numbers for Cij_Aik_Bjk_SB; write M, N, K"),
        (("--size", "0,2,3"), r"--size: 0,2,3 has a size below 1"),
        (("--size", "1,y,3"), r"--size: 1,y,3 is no list of whole numbers"),
        (("--size", "1,2,3", "--type", "q"), r"--type: q is no data type and no problem type; give s, d, h"),
        (("--size", "1,2,3", "--policy", "best"), r"--policy: there is no 'best'; give one of trip-count"),
        (("--size", "1,2,3", "--kernel", "Magic"), r"--kernel: no policy maps tiles to 'Magic'; give one of CudaWgmma"),
        (("--size", "1,2,3", "--steps", "boosted"), r"--steps: latency has no step 'boosted'; give some"),
        (("--size", "1,2,3", "--steps", "none,split"), r"--steps: none,split names none beside steps; give none alone"),
        (("--size", "1,2,3", "--device", "CPU"), r"--architecture: --device CPU is named too; give one of the two"),
    ],
)
def test_mistakes_say_what_would_be_right(arguments, message):
    with pytest.raises(UserError) as raised:
        invoke(*arguments, "--architecture", "sm_90")
    assert re.match(message, str(raised.value)), raised.value


def test_an_unknown_architecture_names_the_known_ones():
    with pytest.raises(UserError, match="'gfx1' is not known here; give one of sm_80, sm_90, sm_100, gfx90a, gfx942"):
        invoke("--size", "1,2,3", "--architecture", "gfx1")
