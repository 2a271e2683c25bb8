"""Devices are looked for and tried out by processes of their own: what their ends and answers mean. None is started."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from types import SimpleNamespace

import pytest

from portblas_kernels import GPU
from tunesmith.devices import choice, choose, discover, open_device
from tunesmith.records import UserError

FOUND = {"name": "a card", "target": dataclasses.asdict(GPU), "problem": "", "remedy": ""}
BROKEN = {"name": "OpenCL", "target": None, "problem": "no platform", "remedy": "install one"}


@pytest.fixture
def processes(monkeypatch):
    """A function that sets how processes end: by a return code, with what they printed, or by an exception. By default
    a search finds a card, and a trial has no problem."""
    monkeypatch.delenv(choice.SELECTOR_VARIABLE, raising=False)
    monkeypatch.setattr(choice, "_trial", choice._trial.__wrapped__)  # without what it remembers

    def end(**ends):
        asked = []

        def run(command, *, capture_output, text, timeout, stdin):
            assert (capture_output, text, stdin) == (True, True, subprocess.DEVNULL)
            kind, *rest = command[len(choice._COMMAND) :]
            asked.append((kind, *rest))
            answer = ends.get(kind, [FOUND] if kind == "find" and rest == ["OpenCL"] else [] if kind == "find" else "")
            if isinstance(answer, Exception):
                raise answer
            code, out, err = answer if isinstance(answer, tuple) else (0, f"noise\n{json.dumps(answer)}", "warning")
            return SimpleNamespace(returncode=code, stdout=out, stderr=err)

        monkeypatch.setattr(choice.subprocess, "run", run)
        return asked

    return end


ENDS = [
    ((-11, "", ""), "crashed with signal 11"),
    ((1, "", "first line\nlast line\n"), "failed: last line"),
    ((1, "", ""), "failed: no message"),
    (subprocess.TimeoutExpired("trial", 60), "took more than"),
]


@pytest.mark.parametrize(("answer", "says"), ENDS)
def test_a_search_that_ends_badly_is_a_problem_of_its_api(processes, answer, says):
    processes(find=answer)
    (found,) = discover("OpenCL")
    assert not found.usable
    assert found.problem.startswith("looking for devices")
    assert says in found.problem


@pytest.mark.parametrize(("answer", "says"), [*ENDS, ("it computed [0]", "it computed [0]")])
def test_a_trial_that_ends_badly_is_a_problem_of_its_device(processes, answer, says):
    processes(trial=answer)
    (found,) = discover("OpenCL")
    assert (found.target, found.usable) == (GPU, False)
    assert says in found.problem


def test_a_search_is_of_the_named_api_or_of_all_that_are_shown(processes):
    asked = processes()
    assert [found.target for found in discover("OpenCL:0:0", check=False)] == [GPU]
    assert asked == [("find", "OpenCL")]
    del asked[:]
    assert [found.target for found in discover()] == [GPU]
    assert asked == [("find", "CUDA"), ("find", "OpenCL"), ("trial", "OpenCL", GPU.selector)]
    assert [found.usable for found in discover("fake")][:1] == [True]


def test_what_cannot_be_tried_out_stands_behind_what_works(processes):
    processes(find=[BROKEN, FOUND])
    assert [found.usable for found in discover("OpenCL")] == [True, False]
    processes(find=[BROKEN, FOUND], trial="it computed [0]")
    assert [found.target for found in discover("OpenCL")] == [GPU, None], "a broken device stands before none at all"


def test_an_error_is_where_the_selector_was_written(processes, monkeypatch):
    processes(find=[])
    for selector, variable, location in (
        ("a card", "", "device"),
        ("a card", "another", "device"),
        (None, "", "device"),
        (None, "a card", choice.SELECTOR_VARIABLE),
    ):
        monkeypatch.setenv(choice.SELECTOR_VARIABLE, variable)
        with pytest.raises(UserError) as refused:
            choose(selector)
        assert refused.value.location == location


def test_the_languages_of_a_device_are_listed_where_none_is_the_files(processes):
    asked = processes()
    with pytest.raises(
        UserError, match=r"runs only OpenCL and BLAS, and the file needs CUDA or Triton; none here does"
    ):
        choose("OpenCL", ["CUDA", "Triton"])
    assert ("trial", "OpenCL", GPU.selector) not in asked
    processes(find=[BROKEN, FOUND])
    with pytest.raises(UserError, match=r"the file needs CUDA; OpenCL: no platform \(install one\)"):
        choose("OpenCL", ["CUDA"])


@pytest.mark.parametrize("selector", ["OpenCL", "Metal:0", "0"])
def test_a_full_selector_names_an_api_before_a_colon(selector):
    with pytest.raises(UserError, match="is no selector"):
        open_device(selector)
