"""`tunesmith.autotune` above kernels in the patterns of public programs (`benchmarks/triton_patterns`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_runner import H200, cuda_device, toolchain

triton = pytest.importorskip("triton", reason="Triton is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

import interpreted_patterns  # noqa: E402
import triton_patterns  # noqa: E402
import tunesmith  # noqa: E402
from triton_patterns import PATTERNS  # noqa: E402
from triton_patterns.planted import HANGS, RIGHT, WRONG  # noqa: E402
from tunesmith.autotuning.call_problem import call_problem, listed_config  # noqa: E402
from tunesmith.autotuning.jit_text import JitText  # noqa: E402
from tunesmith.autotuning.measured_call import written  # noqa: E402
from tunesmith.kernels.custom import CustomTritonKernel  # noqa: E402
from tunesmith.session.tuning_file.file import read  # noqa: E402

QUICK = {"TimeoutSeconds": 5, "Noise": 0.1, "MaximumSamples": 20, "WarmUpSeconds": 0.02, "ConfirmBlocks": 5}

every_pattern = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)


PLANTED = ["softmax", "split K", "attention"]


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    """What a program found that calls every pattern in Triton's interpreter, which stands in for a GPU."""
    folders = [str(Path(module.__file__).parents[1]) for module in (tunesmith, triton_patterns)]
    variables = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(folders)}
    program = Path(interpreted_patterns.__file__)
    command = [sys.executable, program, tmp_path_factory.mktemp("planted"), *PLANTED]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_called_as_it_stands_and_is_right(interpreted, name):
    """In the interpreter the first configuration is taken. A result that is off by one is noticed."""
    assert interpreted[name] == {"right": True, "first": True, "noticed": True}


@every_pattern
def test_a_call_becomes_programs_that_compile_for_the_gpu(pattern, tmp_path):
    compiler = toolchain("Triton")
    arguments = pattern.call("cpu", False)
    configs = [pattern.configs[0], pattern.configs[-1]]
    grids = [pattern.grid({**arguments, **config.kwargs}) for config in configs]
    listed = [
        listed_config(config, {}, grid, False, "program.py:1") for config, grid in zip(configs, grids, strict=True)
    ]
    problem = call_problem(
        JitText(pattern.kernel), arguments, listed, reset_to_zero=pattern.reset_to_zero, location="program.py:1"
    )
    (phases,) = read(written(problem, tmp_path, {}), None, None).groups
    family, (size,) = CustomTritonKernel(), phases.steps[-1].problems
    defaults = family.space(phases.problem_type).defaults
    members = [defaults | member for member in problem.listed]
    for config, grid in zip(members, grids, strict=True):
        assert not list(family.rejections(config, phases.problem_type, H200))
        assert family.plan(config, size, H200).steps[-1].grid == (*grid, 1, 1)[:3]
    (module,) = family.modules(members[0], phases.problem_type)
    assert compiler.compile(module, H200).facts[0].entry == pattern.kernel.__name__


@pytest.mark.gpu
@every_pattern
def test_a_pattern_is_tuned_on_the_gpu(pattern, monkeypatch, tmp_path):
    toolchain("Triton")
    cuda_device()
    monkeypatch.setenv("TUNESMITH_CACHE", str(tmp_path))
    monkeypatch.delenv("TUNESMITH_AUTOTUNE", raising=False)
    few = [*pattern.configs[:2], pattern.configs[-1]]
    decorate = tunesmith.autotune(few, pattern.key, reset_to_zero=pattern.reset_to_zero, settings=QUICK, quiet=True)
    kernel = decorate(pattern.kernel)
    arguments = pattern.call("cuda", False)
    kernel[pattern.grid](*arguments.values())
    assert interpreted_patterns.is_right(pattern, arguments)
    assert kernel.measured.failures == {}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_in_the_program_and_change_nothing_else(interpreted, name):
    """The right configurations of a planted pattern give the pattern's own result, in the interpreter."""
    found = interpreted[f"planted {name}"]
    assert found["faults"] == [RIGHT, HANGS, WRONG, *[RIGHT] * (len(PATTERNS[name].configs) - 1)]
    assert found["right"] == [True, False], "the first is right, and the third is wrong"
