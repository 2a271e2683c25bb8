"""The command line: what each command prints, and the exit codes 0, 1 and 2 (130 is in test_kill.py)."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from command_line import invoke, invoke_json
from library_fakes import logic
from tunesmith.cli import app, main
from tunesmith.devices import FoundDevice
from tunesmith.devices.fake import fake_target
from tunesmith.logic import write_logic
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import UserError
from tuning_runs import FAKE, FAKE_STEPS, environment, fake_file, steady_or_drifted, tunesmith
from unprivileged import unwritable

ROOT = Path(__file__).parents[2]
GPU = "fake:GPU:8"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    assert invoke("tune", fake_file(folder), "-o", folder / "run", "--device", GPU, "--quiet").exit_code == 0
    return folder / "run"


def test_without_a_terminal_a_run_prints_plain_whole_lines_and_few(tmp_path):
    env = environment()
    env.pop("COLUMNS", None)
    folder = tmp_path / ("a folder with a long name " * 3 + "[bold] and :smile: brackets")
    done = tunesmith("tune", fake_file(tmp_path), "-o", folder, "--device", GPU, env=env)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"[^\x20-\x7e\n±µ]", done.stdout + done.stderr), "no control characters"
    steps = [line for line in done.stderr.splitlines() if re.match(r"0\d_", line)]
    assert [line.partition(":")[0] for line in steps] == FAKE_STEPS
    assert len(done.stderr.splitlines()) == len(steps) + 1, "and one for the device"
    assert f"logic: {folder}/logic/Cij_Aik_Bjk_SB.yaml" in done.stdout.splitlines()
    assert f"CSV: {folder}/tables/Cij_Aik_Bjk_SB_00/06_Final.csv" in done.stdout.splitlines()


def test_quiet_and_json_say_nothing_on_the_way(run):
    file = run.parent / "fake.yaml"
    for option in ("--quiet", "--json"):
        assert invoke("tune", file, "-o", run, "--device", GPU, option).stderr == ""


def test_tune_prints_winners_with_intervals_and_where_everything_is(run):
    text = invoke("tune", run.parent / "fake.yaml", "-o", run, "--device", GPU, "-q").stdout
    assert re.search(r"^32x32x32 +[\d.]+ +0\.0 % +\d+ +Cij_Aik_Bjk_SB", text, re.MULTILINE)
    assert "leave-one-out regret" in text
    assert re.search(r"^0 measured, \d+ found in the store", text, re.MULTILINE)


def test_a_run_with_something_to_look_at_exits_with_1_and_so_does_show(tmp_path):
    file = fake_file(tmp_path, FAKE.replace("VectorWidth: [1, 4]", "FakeFault: [none, segfault]"))
    done = invoke_json("tune", file, "-o", tmp_path / "run", "--device", GPU, code=1)
    assert done["state"] == "finished"
    assert done["failed"] == {"crash: SIGSEGV": 2}
    assert "crash: SIGSEGV (2)" in done["look_at"][0]
    shown = invoke("show", tmp_path / "run")
    assert shown.exit_code == 1
    assert re.search(r"^crash +SIGSEGV +2 +while verifying", shown.stdout, re.MULTILINE)
    failures = invoke_json("show", tmp_path / "run", code=1)["failures"]
    assert [(failure["outcome"], failure["reason"], failure["count"]) for failure in failures] == [
        ("crash", "SIGSEGV", 2)
    ]


def test_a_spent_budget_exits_with_1_and_the_same_command_goes_on(tmp_path):
    file = fake_file(tmp_path, FAKE.replace("CompileProcesses", "BudgetMinutes: 0.0000001\n  CompileProcesses"))
    command = ("tune", file, "-o", tmp_path / "run", "--device", GPU)
    stopped = invoke_json(*command, code=1)
    assert (stopped["state"], stopped["measured"], stopped["logic"]) == ("interrupted", 1, [])
    assert invoke_json("show", tmp_path / "run")["state"] == "interrupted"
    done = invoke_json(*command, "--budget", 10)
    assert done["state"] == "finished", "the command line's budget is above the file's"


def test_show_tells_steps_winners_final_logic_and_cost(run):
    text = invoke("show", run).stdout
    assert re.search(
        r"^03_BF_VectorWidth +2 +4 +1 +VectorWidth=\d +ThreadTile=2x2 WorkGroup=\S+ *$", text, re.MULTILINE
    )
    assert re.search(r"^32x32x32 +[\d.]+\*? ", text, re.MULTILINE)
    assert "cost: compiling" in text
    document = invoke_json("show", run)
    assert (document["state"], document["device"]) == ("finished", "fake GPU")
    assert [len(step["winners"]) for step in document["steps"]] == [1, 0, 2, 0, 2, 0]


def test_show_reads_a_folder_that_may_not_be_written(run):
    shown = invoke_json("show", run)
    with unwritable(run) as folder:
        assert invoke_json("show", folder)["steps"] == shown["steps"]
        assert sorted(path.name for path in folder.glob("measurements*")) == ["measurements.sqlite"]


def test_what_others_said_is_printed_as_it_is(tmp_path, monkeypatch):
    """Compilers write brackets and colons that rich would take for markup."""
    found = (FoundDevice("[/usr] :x: [red]device", problem="no [/b] such", remedy="install [it]"),)
    monkeypatch.setattr("tunesmith.cli.devices.discover", lambda: found)
    result = invoke("devices")
    assert "[/usr] :x: [red]device: no [/b] such; install [it]" in result.stdout
    assert result.exit_code == 1, "there is nothing to tune on"


def test_devices_lists_limits_and_does_not_offer_the_fake(monkeypatch):
    monkeypatch.setattr("tunesmith.cli.devices.discover", lambda: (FoundDevice("one", fake_target("CPU")),))
    assert re.search(
        r"^fake:CPU:8 +fake CPU +CPU +8 +1024 +48 KiB +1 GiB +256 KiB +yes", invoke("devices").stdout, re.M
    )
    assert invoke_json("devices")["devices"][0]["properties"]["max_work_group_size"] == 1024
    help_texts = [invoke(*command, "--help").stdout for command in ([], *([name] for name in app.COMMANDS))]
    assert not any("fake" in text for text in help_texts)


def test_plan_prints_every_step_before_running(run):
    command = ("plan", run.parent / "fake.yaml", "--device", GPU, "--no-calibrate")
    text = invoke(*command).stdout
    assert re.search(r"^03_BF_VectorWidth +2 +2 +4 +1 +4 +4 +2", text, re.MULTILINE)
    assert re.search(r"^14 enqueues, 14 after rejections; exhaustive: 32$", text, re.MULTILINE)
    assert invoke_json(*command)["minutes"] is None
    assert re.search(r"expected: about 0:\d\d, on a machine as busy as now", invoke(*command[:-1]).stdout)


@pytest.mark.opencl
def test_plan_of_the_wikis_example_counts_as_the_issue_says():
    document = invoke_json("plan", ROOT / "examples" / "wiki.yaml", "--no-calibrate", "--device", "OpenCL")
    (group,) = document["groups"]
    assert [step["enqueues"] for step in group["steps"] if step["enqueues"]] == [4, 36, 36, 10, 320]
    (join,) = (step for step in group["steps"] if "Join_MacroTile" in step["name"])
    assert join["survivors"] == 5
    assert group["enqueues_before_rejections"] == 406


def test_select_says_solution_rule_and_expected_time(run):
    text = invoke("select", run, "--size", 32, 32, 1, 32).stdout
    assert re.search(r"^rule +exact: this size was measured$", text, re.MULTILINE)
    assert re.search(r"^expected +[\d.]+ µs$", text, re.MULTILINE)
    assert "KernelLanguage=fake WorkGroup=" in text
    exact = invoke_json("select", run, "--size", "32x32x32")
    assert (exact["rule"], exact["distance"], exact["neighbour"]) == ("exact", 0.0, [32, 32, 32])
    near = invoke_json("select", run / "logic" / "Cij_Aik_Bjk_SB.yaml", "--size", "40,32,1,32")
    assert (near["rule"], near["neighbour"], near["sizes"]) == ("nearest", [32, 32, 32], [40, 32, 1, 32])


def test_select_answers_for_a_device_that_is_not_here_and_says_so(run, tmp_path):
    text = (run / "logic" / "Cij_Aik_Bjk_SB.yaml").read_text()
    device = yaml.safe_load(text)["origin"]["device"]
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_text(text.replace(device, "a device of another machine"))
    result = invoke("select", elsewhere, "--size", 32, 32, 1, 32)
    assert "exact: this size was measured" in result.stdout
    assert "a device of another machine" in result.stderr
    assert "was not asked" in result.stderr


def test_a_tiny_problem_is_not_expected_to_take_less_than_any_that_was_measured(run):
    near = invoke_json("select", run, "--size", 1, 1, 1, 1)
    assert near["rule"] == "nearest"
    times = [row["seconds"] for logic in invoke_json("show", run)["logic"] for row in logic["winners"]]
    assert near["expected_seconds"] == min(times)


@pytest.mark.parametrize("name", ["tables", "cache", "logic"])
def test_a_file_where_a_folder_belongs_is_one_line_and_exit_code_2(tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).touch()
    done = tunesmith("tune", fake_file(tmp_path), "-o", out, "--device", GPU, "-q")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert name in done.stderr


@pytest.mark.parametrize(
    ("parameter", "value"), [("WorkGroup", "[]"), ("VectorWidth", "x"), ("LoopUnroll", "-1"), ("ThreadTile", "[4]")]
)
def test_a_logic_whose_configuration_means_nothing_is_refused_with_its_place(run, tmp_path, parameter, value):
    text = (run / "logic" / "Cij_Aik_Bjk_SB.yaml").read_text()
    mangled, count = re.subn(rf"{parameter}: (\[[^\]]*\]|\S+?)(?=[,}}\n])", f"{parameter}: {value}", text, count=1)
    assert count == 1
    path = tmp_path / "mangled.yaml"
    path.write_text(mangled)
    with pytest.raises(UserError, match=f"mangled.yaml:\\d+: solution .*{parameter}"):
        invoke("select", path, "--size", 32, 32, 1, 32)


def test_select_names_the_type_where_a_folder_has_several(tmp_path):
    kinds = [gemm_type(), gemm_type(batched=True)]
    for kind in kinds:
        write_logic(logic(kind).document, tmp_path / f"{kind.name}.yaml")
    with pytest.raises(UserError, match=f"--type: name one problem type of {kinds[0].name}, {kinds[1].name}"):
        invoke("select", tmp_path, "--size", 8, 8, 1, 8)
    chosen = invoke_json("select", tmp_path, "--size", 8, 8, 3, 8, "--type", kinds[1].name)
    assert chosen["problem_type"] == kinds[1].name


@pytest.mark.opencl
def test_a_kernel_of_ones_own_is_tuned_and_selected_too(tmp_path):
    for path in (ROOT / "examples").glob("custom_stencil.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    text = """
GlobalParameters: {Noise: 0.2, MaximumSamples: 10, SamplingSeconds: 0.05, WarmUpSeconds: 0.05, ConfirmBlocks: 6}
BenchmarkProblems:
  - - OperationType: Custom
      Kernel: custom_stencil.yaml
    - BenchmarkCommonParameters:
        - ProblemSizes:
            - Exact: [40, 50]
        - ITEM_X: [1, 2]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [60, 70]
"""
    arguments = ("tune", fake_file(tmp_path, text), "-o", tmp_path / "run", "--device", "OpenCL", "--json")
    done = steady_or_drifted(tunesmith(*arguments))
    assert [row["sizes"] for row in done["winners"]] == [[60, 70]]
    assert invoke_json("select", tmp_path / "run", "--size", 60, 70)["rule"] == "exact"
    with pytest.raises(UserError, match="has the sizes Rows, Columns; 3 numbers were given"):
        invoke("select", tmp_path / "run", "--size", 60, 70, 80)


MISTAKES = {
    "no such file": (["plan", "none.yaml"], r"none\.yaml: no such file; give the path"),
    "a wrong value": (["plan", "wrong.yaml", "--device", GPU], r"wrong\.yaml:\d+: VectorWidth cannot be 3; give"),
    "no such device": (["plan", "fake.yaml", "--device", "fake:none"], r"device: no usable device matches 'fake:none'"),
    "a folder without a run": (["show", "."], r"\.: no measurements\.sqlite in it; give the folder"),
    "a folder without logic": (["select", ".", "--size", "1"], r"\.: holds no library logic; name the output folder"),
    "sizes that are none": (["select", ".", "--size", "a"], r"--size: a is no list of whole numbers; write --size"),
    "a size below 1": (["select", ".", "--size", "0"], r"--size: 0 has a size below 1; write --size"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_with_its_place_and_remedy_and_exit_code_2(mistake, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fake_file(tmp_path)
    fake_file(tmp_path, FAKE.replace("VectorWidth: [1, 4]", "VectorWidth: [1, 3]"), "wrong.yaml")
    arguments, message = MISTAKES[mistake]
    monkeypatch.setattr("sys.argv", ["tunesmith", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main.main()
    out, err = capsys.readouterr()
    assert (stopped.value.code, out) == (2, "")
    assert re.fullmatch(rf"tunesmith: [^\n]*{message}[^\n]*\n", err), err


@pytest.mark.parametrize("arguments", [["tune"], ["tune", "x", "-o", "y", "--budget", "0"], ["plan", "x", "--no-such"]])
def test_a_wrong_option_exits_with_2(arguments):
    assert invoke(*arguments).exit_code == 2


def test_ctrl_c_among_the_imports_is_one_line_and_exit_code_130(tmp_path):
    (tmp_path / "rich.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = tunesmith("devices", env=environment(PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path])))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tunesmith: interrupted\n")
