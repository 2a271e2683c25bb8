"""The scripts that compare GEMM with the vendor's and with triton.autotune, as far as they run without a GPU."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import nullcontext
from itertools import count, cycle
from pathlib import Path
from types import SimpleNamespace

import pytest

from tunesmith.devices import LaunchError
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Configuration, Cost, Measurement, Outcome, Problem, Solution
from tunesmith.store import RunEnd, RunStart, RunState, StoredRun, StoreEntry
from tuning_runs import fake_file, tune_json

torch = pytest.importorskip("torch", reason="torch is not installed")
BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")
sys.path.insert(0, BENCHMARKS)
import gemm_sides  # noqa: E402
import gemm_vs_cublas  # noqa: E402
from gemm_ratios import AGAIN, EXHAUSTIVE, OURS, OWN, VENDOR  # noqa: E402
from gemm_sides import Ceilings, GpuClock, Operands, Precision, alternate, operand_sets  # noqa: E402
from tuning_time import DeviceTime, Tuning  # noqa: E402

SINGLE = Precision("float32", "float32", tf32=False, scaled=False)


# --- operands and calls ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("trans_a", [False, True])
def test_both_sides_multiply_the_same_matrices_stored_as_the_list_says(trans_a, trans_b, batch):
    operands = Operands.of(ListedGemm(4, 5, 6, batch, trans_a, trans_b), SINGLE, "cpu")
    assert (operands.a.shape[-2:], operands.b.shape[-2:], operands.out.shape[-2:]) == ((4, 6), (6, 5), (4, 5))
    assert (operands.a.stride(-1) == 1, operands.b.stride(-1) == 1) == (not trans_a, not trans_b)

    our_call, vendor_call = gemm_sides.ours(torch.matmul, operands, SINGLE), gemm_sides.vendor(operands, SINGLE)
    assert gemm_sides.difference(our_call, vendor_call, operands) <= SINGLE.tolerance(6)


def test_a_result_that_is_wrong_in_one_element_or_not_written_at_all_lies_too_far_away():
    operands = Operands.of(ListedGemm(64, 64, 64), SINGLE, "cpu")
    vendor_call = gemm_sides.vendor(operands, SINGLE)

    def nearly():
        vendor_call()
        operands.out[3, 5] = 0.0

    assert not gemm_sides.difference(nearly, vendor_call, operands) <= SINGLE.tolerance(64)
    assert not gemm_sides.difference(lambda: None, vendor_call, operands) <= SINGLE.tolerance(64)


def test_operands_leave_the_cache_before_they_are_used_again():
    problem = ListedGemm(64, 64, 64)
    sets = operand_sets(problem, SINGLE, "cpu", cache_bytes=100_000)
    assert sum(operands.size for operands in sets) >= 200_000
    assert len({operands.a.data_ptr() for operands in sets}) == len(sets)
    assert len(operand_sets(problem, SINGLE, "cpu", cache_bytes=1)) == 2


def test_a_folder_of_several_precisions_is_the_users_to_put_right():
    assert Precision.of([gemm_type("b"), gemm_type("b", batched=True)]).dest == "bfloat16"
    with pytest.raises(gemm_sides.UserError, match="bfloat16 and float16"):
        Precision.of([gemm_type("b"), gemm_type("h")])


def test_the_floor_is_the_longer_of_computing_and_moving():
    ceilings = Ceilings(flops=1e12, fill=1e9, copy=2e9)
    wide = ListedGemm(1000, 1000, 1000, batch=10)
    assert ceilings.floor(ListedGemm(1000, 1000, 10**6), SINGLE) == pytest.approx(4 * 2.001e9 / 2e9)
    assert Ceilings(1e9, 1e15, 1e15).floor(wide, SINGLE) == pytest.approx(2e10 / 1e9)
    assert ceilings.floor(wide, SINGLE) == pytest.approx(10 * 4 * 3e6 / 2e9)


# --- blocks ---------------------------------------------------------------------------------------------------------


class RecordingClock:
    """A clock that records the order of its blocks; a call returns its name and its seconds."""

    pause, block_seconds, most_calls = 0.0, 1.0, 10

    def __init__(self):
        self.blocks: list[str] = []
        self.tick = count()

    def kernel(self, turn, calls):
        name, seconds = next(turn)()
        self.blocks.append(name)
        return seconds + next(self.tick) * 1e-9

    def host(self, turn, calls):
        return 2 * next(turn)()[1]


def test_blocks_of_all_sides_alternate_and_each_begins_in_turn():
    clock = RecordingClock()
    sides = {name: [lambda name=name: (name, 0.25)] for name in ("one", "two", "three")}
    taken = alternate(sides, clock, rounds=4)
    assert " ".join(clock.blocks) == "one two three two three one three one two one two three"
    assert [len(taken[name].kernel) for name in sides] == [4, 4, 4]
    assert taken["two"].host == (0.5,) * 4
    assert list(taken["one"].kernel) == sorted(taken["one"].kernel), "in the order taken"


@pytest.mark.parametrize("launched_in", [0.0, 0.005, 1.0])
def test_calls_wait_behind_a_gate_that_is_long_enough_and_no_longer_than_others_need(launched_in, monkeypatch):
    """A block takes `launched_in` seconds to launch. The clock counts blocks for which no gate is long enough."""
    gates: list[float] = []
    event = SimpleNamespace(record=lambda: None, synchronize=lambda: None, elapsed_time=lambda end: 8.0)
    event.query = lambda: gates[-1] < launched_in
    monkeypatch.setattr(torch.cuda, "Event", lambda enable_timing: event)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: gates.append(cycles / GpuClock.HERTZ), raising=False)
    clock = GpuClock()
    for _ in range(2):
        assert clock.kernel(cycle([lambda: None]), 4) == pytest.approx(0.002)
    assert clock.starved == 2 * (launched_in == 1.0)
    again = gates[len(gates) // 2 :] if clock.starved else gates[-1:]
    assert again[0] == pytest.approx({0.0: 0.001, 0.005: 0.008, 1.0: 0.001}[launched_in])


# --- the whole script -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "precision",
    [
        Precision("bfloat16", "bfloat16", tf32=False, scaled=False),
        Precision("float16", "float16", tf32=False, scaled=False),
        Precision("int8", "int32", tf32=False, scaled=False),
        Precision("float8_e4m3fn", "bfloat16", tf32=False, scaled=True),
    ],
    ids=lambda precision: precision.dtype,
)
def test_torch_has_a_product_for_every_precision_within_the_tolerance(precision):
    """The weights are stored n x k; the reference is a product in double precision."""
    operands = Operands.of(ListedGemm(32, 48, 64, trans_b=True), precision, "cpu")

    def exact():
        operands.out.copy_((operands.a.double() @ operands.b.double()).to(operands.out.dtype))

    assert gemm_sides.difference(gemm_sides.vendor(operands, precision), exact, operands) <= precision.tolerance(64)


@pytest.mark.parametrize("poisoned", [False, True])
def test_a_refused_call_costs_its_problem_and_a_broken_device_all_that_follow(poisoned, tmp_path, monkeypatch):
    problems_asked: list[ListedGemm] = []

    class Refusing:
        def __init__(self, *_):
            pass

        def row(self, problem):
            problems_asked.append(problem)
            raise LaunchError("not supported", "no algorithm", poisoned)

        def facts(self):
            return {"device": "none", "precision": "none", "date": "today"}

        def close(self):
            pass

    monkeypatch.setattr(gemm_vs_cublas, "Contest", Refusing)
    (tmp_path / "list.csv").write_text("family,m,n,k\none,32,32,32\none,64,32,32\n")
    monkeypatch.setattr(sys, "argv", ["gemm_vs_cublas.py", str(tmp_path / "list.csv"), "--logic", str(tmp_path)])
    with pytest.raises(LaunchError) if poisoned else nullcontext():
        assert gemm_vs_cublas.main() == 1
    assert len(problems_asked) == (1 if poisoned else 2)


@pytest.mark.parametrize("options", [["--exhaustive"], ["--device", "cpu"]], ids=" ".join)
def test_what_the_logic_in_the_package_cannot_do_is_refused(options, tmp_path, monkeypatch, capsys):
    (tmp_path / "list.csv").write_text("family,m,n,k\none,32,32,32\n")
    monkeypatch.setattr(sys, "argv", ["gemm_vs_cublas.py", str(tmp_path / "list.csv"), *options])
    with pytest.raises(SystemExit):
        gemm_vs_cublas.main()
    assert "--logic is missing" in capsys.readouterr().err


@pytest.mark.slow
def test_the_script_compares_every_problem_and_writes_what_it_is_asked_for(tmp_path, monkeypatch, capsys):
    """On the fake device with the host's memory, everything runs as on a GPU, except the clock."""
    out, rows = tmp_path / "out", "family,m,n,k,trans_a\ntuned,32,32,32,T\ntuned,64,128,32,T\nother,7,5,3,N\n"
    tune_json(fake_file(tmp_path), out)
    (tmp_path / "list.csv").write_text(rows)
    monkeypatch.setattr(gemm_sides.HostClock, "pause", 0.0)
    monkeypatch.setattr(gemm_sides.HostClock, "block_seconds", 1e-4)
    monkeypatch.setitem(gemm_sides.LARGE, "cpu", (64, 2**16))
    written = {kind: tmp_path / f"result.{kind}" for kind in ("json", "csv", "svg")}
    options = [word for kind, path in written.items() for word in (f"--{kind}", str(path))]
    fixed = ["--logic", str(out), "--device", "cpu", "--rounds", "3", "--exhaustive"]
    monkeypatch.setattr(sys, "argv", ["gemm_vs_cublas.py", str(tmp_path / "list.csv"), *fixed, *options])
    assert gemm_vs_cublas.main() == 0, capsys.readouterr().out
    result = json.loads(written["json"].read_text())
    assert [(row["m"], row["rule"], row["kernel"]) for row in result["rows"]] == [
        (32, "exact", "FakeGemm"), (64, "exact", "FakeGemm"), (7, "nearest", "FakeGemm"),
    ]  # fmt: skip
    for row in result["rows"]:
        assert all(row[f"{side}_kernel"] > 0 for side in (OURS, VENDOR, OWN, EXHAUSTIVE)), row
        assert row["noise_low"] <= row["noise"] <= row["noise_high"]
        assert row["own_ratio"] == row["ratio"], "ours was chosen, so it is our best, and is timed once"
    assert [summary["family"] for summary in result["summaries"]] == ["tuned", "other", "all"]
    assert len(list(csv.reader(written["csv"].open()))) == 4
    assert written["svg"].read_text().count("<circle") == 3
    assert AGAIN not in written["csv"].read_text()


# --- the time of tuning ---------------------------------------------------------------------------------------------

KIND = gemm_type("b")


def entry(name, started, verify, timing, round_="full", size=64):
    measured = Measurement(Outcome.OK, cost=Cost(9.0, verify, timing), started=started)
    solution = Solution(KIND, "TritonGemm", Configuration({}))
    return StoreEntry(f"{name} {size}", round_, name, solution, Problem(KIND, (size,) * 3), None, "triton", measured)  # type: ignore[arg-type]


def test_the_device_is_busy_while_it_verifies_and_times_and_compiling_is_not_busy():
    spent = DeviceTime.of([entry("a", 100.0, 1.0, 2.0), entry("b", 105.0, 0.0, 5.0)])
    assert (spent.span, spent.verify, spent.timing) == (10.0, 1.0, 7.0)
    assert spent.busy == pytest.approx(0.8)


def test_finalists_share_the_time_of_their_blocks():
    """Both measurements have the same start, and take turns for four seconds."""
    finalists = [entry(name, 100.0, 0.0, 2.0, "confirm/x") for name in "ab"]
    spent = DeviceTime.of(finalists)
    assert (spent.span, spent.busy) == (4.0, pytest.approx(1.0))


def test_what_never_reached_the_device_has_no_time_on_it():
    assert DeviceTime.of([entry("a", 0.0, 0.0, 0.0)]) == DeviceTime(0.0, 0.0, 0.0)
    assert DeviceTime.of([]).busy == 0.0


def test_a_tuning_that_was_resumed_took_all_of_its_runs():
    start = RunStart((), "file", "sha", "H200", "driver", "CUDA:0", "0")
    runs = [StoredRun("1", 0.0, start, 1.0, RunEnd(RunState.INTERRUPTED, 40.0, 1, 0)), StoredRun("2", 2.0, start)]
    runs.append(StoredRun("3", 3.0, start, 4.0, RunEnd(RunState.FINISHED, 20.0, 1, 1)))
    entries = [entry("a", 100.0, 1.0, 1.0), entry("b", 102.0, 1.0, 1.0), entry("a", 104.0, 1.0, 1.0, size=128)]
    final = [entry.problem for entry in entries[1:]]
    tuning = Tuning.of("H200", final, entries, runs)
    assert (tuning.seconds, tuning.problems, tuning.configurations, tuning.busy) == (60.0, 2, 1.5, 1.0)
