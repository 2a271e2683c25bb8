"""Devices are looked for and tried out by another process: what its ends and answers mean. Scripts stand in for it, and
no driver is loaded."""

from __future__ import annotations

import dataclasses
import json
import sys
import threading

import pytest

from portblas_kernels import GPU
from tunesmith.devices import begin_to_choose, choice, choose, discover, driver_process, open_device
from tunesmith.records import UserError

FOUND = {"name": "a card", "target": dataclasses.asdict(GPU), "problem": "", "remedy": ""}
BROKEN = {"name": "OpenCL", "target": None, "problem": "no platform", "remedy": "install one"}

SCRIPT = """
import json, os, signal, socket, sys, time
log, answers, number = sys.argv[1:]
answers = json.loads(answers)
connection = socket.socket(fileno=int(number))
print("noise", flush=True)
for line in connection.makefile("r"):
    task, api, *selector = json.loads(line)
    with open(log, "a") as asked:
        asked.write(json.dumps([os.getpid(), task, api, *selector]) + "\\n")
    usual = [] if task == "find" and api != "OpenCL" else answers["usual " + task]
    answer = answers.get(task + " " + api, answers.get(task, usual))
    if isinstance(answer, dict):
        sys.stderr.write(answer["messages"])
        sys.stderr.flush()
        time.sleep(answer["sleeps"])
        if answer["status"] < 0:
            signal.signal(-answer["status"], signal.SIG_DFL)
            os.kill(os.getpid(), -answer["status"])
        os._exit(answer["status"])
    print("more noise", flush=True)
    sys.stderr.write("warning")
    connection.sendall(json.dumps(answer).encode() + b"\\n")
"""
"""Answers each question as `answers` says by its task, and notes it in a file."""


def end(status=0, messages="", sleeps=0):
    """How a process ends in place of an answer."""
    return {"status": status, "messages": messages, "sleeps": sleeps}


@pytest.fixture
def processes(monkeypatch, tmp_path):
    """A function that sets what processes answer to tasks, and returns a function that tells what they were asked, with
    the process that was asked. By default a search finds a card, and a trial has no problem."""
    monkeypatch.delenv(choice.SELECTOR_VARIABLE, raising=False)

    def answer(**answers):
        log = tmp_path / "asked"
        log.write_text("")
        monkeypatch.setattr(choice, "_listings", {})
        monkeypatch.setattr(choice, "_trial_problems", {})
        by_task = {task.replace("_", " "): content for task, content in answers.items()}
        usual = {"usual find": [FOUND], "usual trial": ""}
        script = (sys.executable, "-S", "-c", SCRIPT, str(log), json.dumps({**usual, **by_task}))
        monkeypatch.setattr(driver_process, "COMMAND", script)
        return lambda: [tuple(json.loads(line)) for line in log.read_text().splitlines()]

    return answer


def questions(asked):
    return [question for _, *question in asked()]


ENDS = [
    (end(-11), "crashed with signal 11"),
    (end(1, "first line\nlast line\n"), "failed: last line"),
    (end(1), "failed: no message"),
    (end(0), "failed: no message"),
    (end(sleeps=60), "took more than"),
]


@pytest.fixture
def short_times(monkeypatch):
    """Time limits for processes that do not answer."""

    def shorten(answer):
        if answer == end(sleeps=60):
            monkeypatch.setattr(choice, "FIND_SECONDS", 1.0)
            monkeypatch.setattr(choice, "TRIAL_SECONDS", 0.1)

    return shorten


@pytest.mark.parametrize(("answer", "says"), ENDS)
def test_a_search_that_ends_badly_is_a_problem_of_its_api(processes, short_times, answer, says):
    processes(find=answer)
    short_times(answer)
    (found,) = discover("OpenCL")
    assert not found.usable
    assert found.problem.startswith("looking for devices")
    assert says in found.problem


@pytest.mark.parametrize(("answer", "says"), [*ENDS, ("it computed [0]", "it computed [0]")])
def test_a_trial_that_ends_badly_is_a_problem_of_its_device(processes, short_times, answer, says):
    processes(trial=answer)
    assert discover("OpenCL", check=False)
    short_times(answer)
    (found,) = discover("OpenCL")
    assert (found.target, found.usable) == (GPU, False)
    assert says in found.problem


def test_a_search_is_of_the_named_api_or_of_all_that_are_shown(processes):
    asked = processes()
    assert [found.target for found in discover("OpenCL:0:0", check=False)] == [GPU]
    assert questions(asked) == [["find", "OpenCL"]]
    asked = processes()
    assert [found.target for found in discover()] == [GPU]
    assert questions(asked) == [["find", "CUDA"], ["find", "OpenCL"], ["trial", "OpenCL", GPU.selector]]
    assert [found.usable for found in discover("fake")][:1] == [True]


def finish_searches():
    """Wait for the searches in the background."""
    for thread in threading.enumerate():
        if thread.name == "tunesmith-devices":
            thread.join()


def test_a_search_that_began_in_the_background_is_not_made_again(processes):
    asked = processes()
    begin_to_choose("OpenCL")
    finish_searches()
    in_background = questions(asked)
    assert in_background == [["find", "OpenCL"], ["trial", "OpenCL", GPU.selector]]
    assert choose("OpenCL") == GPU
    assert questions(asked) == in_background


def test_without_an_api_nothing_is_tried_out_in_the_background(processes):
    """The caller's language decides which device may be tried out."""
    asked = processes()
    for selector in (None, "GPU"):
        begin_to_choose(selector)
        finish_searches()
    assert {task for task, *_ in questions(asked)} == {"find"}


def test_what_the_background_did_not_find_is_an_error_where_somebody_asks(processes):
    asked = processes(trial="it computed [0]")
    begin_to_choose("OpenCL")
    finish_searches()
    in_background = questions(asked)
    assert [task for task, *_ in in_background] == ["find", "trial"]
    with pytest.raises(UserError, match="it computed"):
        choose("OpenCL")
    assert questions(asked) == in_background


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
    assert ["trial", "OpenCL", GPU.selector] not in questions(asked)
    processes(find=[BROKEN, FOUND])
    with pytest.raises(UserError, match=r"the file needs CUDA; OpenCL: no platform \(install one\)"):
        choose("OpenCL", ["CUDA"])


@pytest.mark.parametrize("selector", ["OpenCL", "Metal:0", "0"])
def test_a_full_selector_names_an_api_before_a_colon(selector):
    with pytest.raises(UserError, match="is no selector"):
        open_device(selector)


# --- one process for many questions -----------------------------------------------------------------------------------


def test_one_process_lists_and_tries_the_devices_of_all_apis(processes):
    asked = processes()
    discover()
    assert len({process for process, *_ in asked()}) == 1


def test_what_was_found_and_tried_is_not_asked_again(processes):
    asked = processes()
    assert choose("OpenCL") == choose("OpenCL") == GPU
    assert questions(asked) == [["find", "OpenCL"], ["trial", "OpenCL", GPU.selector]]


def test_an_api_without_devices_is_asked_again(processes):
    asked = processes(find=[BROKEN])
    assert discover("OpenCL") == discover("OpenCL")
    assert questions(asked) == [["find", "OpenCL"]] * 2


@pytest.mark.parametrize("answer", [end(-6), end(1), end(sleeps=60)])
def test_an_api_whose_search_ends_badly_does_not_hide_the_devices_of_others(processes, monkeypatch, answer):
    asked = processes(find_CUDA=answer)
    if answer["sleeps"]:
        monkeypatch.setattr(choice, "FIND_SECONDS", 3.0)
    assert [(found.target, found.usable) for found in discover()] == [(GPU, True), (None, False)]
    first, *others = [process for process, *_ in asked()]
    assert first not in others
    assert len(set(others)) == 1


def test_a_device_whose_trial_crashes_does_not_hide_the_others(processes):
    second = {**FOUND, "name": "another", "target": {**FOUND["target"], "selector": "OpenCL:9:9"}}
    asked = processes(find=[FOUND, second], trial=end(-11))
    assert ["signal 11" in found.problem for found in discover("OpenCL")] == [True, True]
    first, *trials = [question[-1] for question in questions(asked)]
    assert (first, sorted(trials)) == ("OpenCL", [GPU.selector, "OpenCL:9:9"])


def test_several_gpus_are_tried_out_by_a_process_each(processes):
    second = {**FOUND, "name": "another", "target": {**FOUND["target"], "selector": "OpenCL:9:9"}}
    asked = processes(find=[FOUND, second])
    assert [found.usable for found in discover("OpenCL")] == [True, True]
    assert len({process for process, *_ in asked()}) == 3


def test_a_driver_is_blamed_only_for_what_it_does_in_a_process_of_its_own(processes):
    """The search crashes in the process that CUDA's driver was loaded into, and once more in a new one."""
    asked = processes(find_OpenCL=end(-11))
    assert "crashed with signal 11" in discover()[-1].problem
    (first, *_), (second, *_), (third, *_) = asked()
    assert first == second != third
    assert questions(asked) == [["find", "CUDA"], ["find", "OpenCL"], ["find", "OpenCL"]]
