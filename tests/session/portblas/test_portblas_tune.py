"""`tunesmith portblas tune`: the order of measuring, failures that it survives, its files, and their use."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import tunesmith
from cuda_runner import H200
from opencl_runner import opencl_device
from portblas_fakes import DEFAULT, QUICK, TILES, fake, faulty, tune
from tunesmith.devices import FoundDevice
from tunesmith.kernels import KERNELS
from tunesmith.library import LaunchRecord
from tunesmith.library.call_adapters import storage_for
from tunesmith.library.gemm._call_adapter import GemmCallAdapter
from tunesmith.logic import Logic
from tunesmith.problems.gemm import is_interleaved
from tunesmith.records import Measurement, Outcome, UserError
from tunesmith.report.portblas import outcome as report
from tunesmith.search import STRATEGIES
from tunesmith.session.frame import events
from tunesmith.session.portblas import transposition
from tunesmith.session.portblas.plan import tune_portblas
from tunesmith.session.portblas.rows import RowKind
from tunesmith.session.portblas.task import PortBlasTask
from tunesmith.store import RunState, Store

SMALL = {
    "local": [
        {
            "cache_line_size": [32],
            "work_item_sizes": [[2, 2]],
            "work_group_sizes": [[4, 4]],
            "block_level_tiles": [[1, 1]],
            "double_buffer": [False],
            "no_bank_conflict_a": [True],
            "no_bank_conflict_b": [True],
            "vectorization_size": [2],
        }
    ],
    "non_local_interleaved": [
        {
            "work_item_sizes": [[1, 1], [2, 2]],
            "work_group_sizes": [[2, 2]],
            "batch_level_tiles": [[2, 2]],
            "vectorization_size": [2],
        }
    ],
    "naive": [{"cache_line_size": [64]}],
}


# --- on the fake device ---------------------------------------------------------------------------------------------

FEW = TILES[::6]


def header_of(outcome):
    return next((path for path in outcome.written if path.suffix == ".hpp"), None)


def measured(observed):
    return [event.solution.configuration for event in observed if isinstance(event, events.CellMeasured)]


def test_what_does_not_run_right_is_a_row_with_a_reason_and_stops_nothing(tmp_path):
    """Wrong, crashing, refused, too large: each has a reason, and no line in the list from the worst to the best."""
    faults = ("wrong value", "segfault", "launch error", "compile error")
    too_large = DEFAULT | {"WorkGroup": (64, 32, 1)}
    task = fake(listed=(*map(faulty, faults), too_large, TILES[7], TILES[4]))
    outcome = tune(task, tmp_path)
    (tuned,) = outcome.plan.tuned
    assert [reason for reason, _, _ in tuned.failures()] == [
        "rejected: language",
        "wrong result: wrong value",
        "crash: SIGSEGV",
        "launch error: invalid launch",
        "compile error: compile error",
        "rejected: work-group size",
    ]
    candidates = [row for row in tuned.ranked() if row.kind is RowKind.CANDIDATE]
    assert [row.solution.configuration for row in candidates] == [TILES[7], TILES[4]]
    assert len(tuned.listing("it").splitlines()) == 4 + 3
    (sentence,) = outcome.look_at
    assert "rejected" not in sentence
    assert sentence.count("(1)") == len(faults)
    assert outcome.state is RunState.FINISHED


def test_the_winner_is_what_the_model_says_and_goes_into_the_logic(tmp_path):
    outcome = tune(fake(listed=FEW), tmp_path)
    (tuned,), (path,) = outcome.plan.tuned, outcome.logic_files
    family = KERNELS["FakeGemm"]
    best = min(FEW, key=lambda config: family.guess(config, tuned.problem, outcome.target))
    assert tuned.winner.solution.configuration == best
    assert Logic.load(path).choose(tuned.problem.sizes).solution.configuration == best
    assert header_of(outcome) is None, "there is no kernel of portBLAS's among them"


@pytest.mark.thorough
def test_the_logic_of_a_folder_grows_with_its_sizes(tmp_path):
    """Another size is another row; the first size's winner stays."""
    first = tune(fake(listed=FEW), tmp_path)
    second = tune(fake(listed=FEW, m=16, n=16, k=4), tmp_path)
    logic = Logic.load(second.logic_files[0])
    for outcome in (first, second):
        (tuned,) = outcome.plan.tuned
        assert logic.choose(tuned.problem.sizes).solution == tuned.winner.solution
    assert len(logic.document.rows) == 2
    assert np.isfinite(logic.document.regret.worst), "every candidate was measured at both sizes"
    assert second.plan.tuned[0].row(RowKind.CURRENT).note == "logic, nearest"


@pytest.mark.thorough
def test_the_current_library_is_what_the_named_logic_chooses(tmp_path):
    chosen = tune(fake(listed=TILES[:1]), tmp_path / "a").plan.tuned[0].winner.solution
    outcome = tune(fake(listed=FEW, logic=tmp_path / "a" / "logic"), tmp_path / "b")
    assert outcome.plan.tuned[0].row(RowKind.CURRENT).solution == chosen
    with pytest.raises(UserError, match="has nothing for"):
        tune(fake(transposes="tt", logic=tmp_path / "a" / "logic"), tmp_path / "c")


class Interrupting:
    """An observer that presses Ctrl-C after so many measurements."""

    def __init__(self, after):
        self.after, self.observed = after, list[events.Event]()

    def __call__(self, event):
        self.observed.append(event)
        if len(measured(self.observed)) == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("guided", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_after_ctrl_c_the_same_call_goes_on(tmp_path, guided):
    """Nothing is measured twice, and the results are those of a run that was not stopped."""
    task = fake(guided=guided, listed=TILES[:20])
    whole = tune(task, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        tune(task, tmp_path / "parts", Interrupting(15))
    rest: list[events.Event] = []
    parts = tune(task, tmp_path / "parts", rest.append)
    assert parts.ledger.reused >= 15
    for tuned, expected in zip(parts.plan.tuned, whole.plan.tuned, strict=True):
        assert tuned.winner.solution == expected.winner.solution
        assert [row.time for row in tuned.ranked()] == [row.time for row in expected.ranked()]


def test_the_same_call_again_measures_nothing(tmp_path):
    first = tune(fake(listed=FEW), tmp_path)
    again = tune(fake(listed=FEW), tmp_path)
    assert (again.ledger.measured, again.plan.tuned[0].winner.solution) == (0, first.plan.tuned[0].winner.solution)


@pytest.mark.thorough
def test_a_guided_search_measures_a_tenth_where_the_model_expects_most(tmp_path):
    """A tenth is measured, or the least that a model needs; the winner is within 3 % of the whole list's best."""
    depths = tuple(config | {"LoopUnroll": depth} for depth in (4, 8, 16, 32) for config in TILES)
    listed = tuple(config | {"PrefetchGlobalRead": flag} for flag in (False, True) for config in depths)
    outcome = tune(fake(guided=True, listed=listed), tmp_path)
    (tuned,) = outcome.plan.tuned
    assert tuned.searched
    tenth = STRATEGIES["surrogate"].count(tuned.programs, None)
    assert tuned.programs - tuned.left - 1 == tenth == 29, "and the current library, which is listed"
    family = KERNELS["FakeGemm"]
    times = [family.guess(config, tuned.problem, outcome.target) for config in listed]
    assert family.guess(tuned.winner.solution.configuration, tuned.problem, outcome.target) <= 1.03 * min(times)


@pytest.mark.thorough
def test_a_spent_budget_leaves_what_there_is_and_more_of_it_goes_on(tmp_path):
    task = fake(transposes="all", listed=TILES[:6])
    outcome = tune(task, tmp_path, budget_minutes=1e-9)
    assert outcome.state is RunState.INTERRUPTED
    assert "the budget is spent; the same command with more goes on" in outcome.look_at
    assert sum(tuned.left for tuned in outcome.plan.tuned) >= 4 * 5
    finished = tune(task, tmp_path)
    assert (finished.state, [tuned.left for tuned in finished.plan.tuned]) == (RunState.FINISHED, [0] * 4)


@pytest.mark.thorough
def test_long_lists_are_guided_where_there_is_a_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(transposition, "LONG_LIST", 2)
    assert tune(fake(listed=TILES[:3]), tmp_path, budget_minutes=10.0).plan.tuned[0].searched
    assert not tune(fake(listed=TILES[:3]), tmp_path).plan.tuned[0].searched
    assert not tune(fake(listed=TILES[:2]), tmp_path, budget_minutes=10.0).plan.tuned[0].searched


def test_kernels_by_opencl_on_an_nvidia_gpu_stand_beside_cublas_by_cuda(monkeypatch):
    """An NVIDIA GPU is called through two APIs; on other devices, the system BLAS is called through the kernels'
    API."""
    by_opencl = replace(H200, api="OpenCL", selector="OpenCL:0:0")
    monkeypatch.setattr(transposition, "discover", lambda selector, check: (FoundDevice(H200.name, H200),))
    assert transposition.blas_target(by_opencl) == H200
    for other in (H200, replace(by_opencl, name="another GPU"), replace(by_opencl, architecture="gfx90a")):
        assert transposition.blas_target(other) == other


# --- on this machine's CPU ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):  # type: ignore[no-untyped-def]
    """All transpositions of a small odd problem."""
    opencl_device()
    folder = tmp_path_factory.mktemp("portblas")
    (folder / "small.json").write_text(json.dumps(SMALL))
    task = PortBlasTask("all", 33, 65, 17, 1, 6, config=str(folder / "small.json"))
    observed: list[events.Event] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PortBlasTask, "policy", QUICK)
        return tune_portblas(task, folder / "run", device="OpenCL", observe=observed.append), observed


@pytest.mark.opencl
def test_every_combination_is_a_verified_measurement_or_a_named_rejection(run):
    outcome, _ = run
    assert [tuned.name for tuned in outcome.plan.tuned] == ["nn", "nt", "tn", "tt"]
    for tuned in outcome.plan.tuned:
        assert [row.kind for row in tuned.rows] == [RowKind.SYSTEM, RowKind.CURRENT, *[RowKind.CANDIDATE] * 4]
        assert [row.failure for row in tuned.rows] == [""] * 3 + ["rejected: batch layout"] * 2 + [""]
        assert all(0 < row.measurement.error < 1e-6 for row in tuned.rows if row.measurement)
        assert all(row.time.count >= 6 for row in tuned.ranked())


@pytest.mark.opencl
def test_the_order_is_system_blas_current_library_combinations(run):
    """Two more rounds follow, as on any CPU, the first of them in reverse order."""
    _, observed = run
    ran = [event.solution for event in observed if isinstance(event, events.CellMeasured)]
    assert [solution.kernel for solution in ran[:4]] == ["VendorBlas", *["PortBlasGemm"] * 3]
    assert ran[4:10] == [*ran[3:0:-1], *ran[1:4]]
    assert [solution.kernel for solution in ran[10:12]] == ["VendorBlas"] * 2
    assert sum(solution.kernel == "VendorBlas" for solution in ran) == 3 * 4


@pytest.mark.opencl
def test_a_cpus_times_come_from_rounds_that_lie_apart(run):
    """The interval contains the median of each of the three rounds, and all their samples count."""
    outcome, _ = run
    rounds: dict[str, dict[str, float]] = {}
    counts: Counter[str] = Counter()
    with Store.open(outcome.folder / "measurements.sqlite") as store:
        for entry in store.entries():
            if entry.round == "full" or entry.round.startswith("full/"):
                key = f"{entry.solution} {entry.problem}"
                rounds.setdefault(key, {})[entry.round] = float(np.median(entry.measurement.samples))
                counts[key] += len(entry.measurement.samples)
    for tuned in outcome.plan.tuned:
        for row in tuned.ranked():
            key = f"{row.solution} {tuned.problem}"
            medians = rounds[key]
            assert set(medians) == {"full", "full/2", "full/3"}
            assert row.time.low <= min(medians.values()) <= max(medians.values()) <= row.time.high
            assert row.time.count == counts[key]


@pytest.mark.opencl
def test_logic_and_header_have_the_times_of_the_printed_ranking(run):
    outcome, _ = run
    times = {(tuned.problem.type, tuned.problem.sizes): tuned.winner.time for tuned in outcome.plan.tuned}
    for path in outcome.logic_files:
        document = Logic.load(path).document
        for row in document.rows:
            time = times[document.problem_type, row.sizes]
            assert row.estimate.seconds == pytest.approx(time.seconds, rel=1e-5), "six digits are written"
            assert row.estimate.count == time.count
    header = (outcome.folder / "portblas_backend.hpp").read_text()
    for tuned in outcome.plan.tuned:
        assert f": {tuned.flops / tuned.winner.time.seconds / 1e9:.4g} GFLOP/s\n" in header


def multiply(library, problem):
    """On arrays in the problem's layout, against NumPy."""
    call = GemmCallAdapter().call(library, problem, storage_for(problem, np.random.default_rng(0)))
    call()
    a, b = call.args
    np.testing.assert_allclose(call.keywords["out"], a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.opencl
def test_the_library_launches_exactly_the_winner_of_each_transposition(run):
    """Loaded as a user loads it, with arrays in each layout; the result is right."""
    outcome, _ = run
    launched: list[LaunchRecord] = []
    logic = outcome.folder / "logic"
    with tunesmith.load(logic, device="OpenCL:0:0", floor=False, launched=launched.append) as library:
        for tuned in outcome.plan.tuned:
            multiply(library, tuned.problem)
            assert launched[-1].problem == tuned.problem
            assert launched[-1].choice.solution == tuned.winner.solution
    assert {tuned.winner.solution.kernel for tuned in outcome.plan.tuned} == {"PortBlasGemm"}


@pytest.mark.opencl
def test_it_prints_the_originals_lines_from_the_worst_to_the_best(run):
    outcome, _ = run
    tuned = outcome.plan.tuned[0]
    heading, device, size, results, *lines = tuned.listing(outcome.target.name).splitlines()
    assert heading == "======= testing nn ======"
    assert (device, size, results) == (f"Device: {outcome.target.name}", "SIZE : 4", "== Performance Results ==")
    shape = r"(\d\.\d{6}e[+-]\d\d) gflops: (.*) - Time: \d\.\d{6}e[+-]\d\d ms, Error: \d\.\d{6}e-\d\d"
    found = [re.fullmatch(shape, line) for line in lines]
    speeds = [float(match[1]) for match in found]
    assert speeds == sorted(speeds)
    assert {match[2] for match in found} == {
        "System GEMM implementation",
        "tunesmith gemm",
        "Gemm <0, 1, 1, 32, Tile<2, 2, 4, 4, 1, 1, 1, 1, 1, 1>, float_floatgemm_memory:local, "
        "gemm_algorithm:standard, gemm_vectorization:full, vector size2, batch_type:strided>",
        "Gemm <0, 0, 0, 64, Tile<1, 1, 1, 1, 1, 1, 1, 1, 1, 1>, float_floatgemm_memory:no_local, "
        "gemm_algorithm:naive, gemm_vectorization:none, vector size1, batch_type:strided>",
    }
    (written,) = (
        path for path in outcome.written if path.parent.name == "results" and tuned.problem.type.name in path.name
    )
    assert written.read_text() == tuned.listing(outcome.target.name) + "\n"


@pytest.mark.opencl
def test_the_table_and_the_document_say_the_same(run):
    outcome, _ = run
    console = Console(width=250, record=True, file=io.StringIO())
    console.print(report.tables(outcome))
    text = console.export_text()
    document = json.loads(json.dumps(report.document(outcome), allow_nan=False))
    assert [entry["name"] for entry in document["transpositions"]] == ["nn", "nt", "tn", "tt"]
    for entry in document["transpositions"]:
        assert [row["kind"] for row in entry["rows"]].count("candidate") == 4
        assert f"the winner: {entry['winner']}" in text or "the current library stays" in text
        system = next(row for row in entry["rows"] if row["kind"] == "system BLAS")
        assert system["over_system"] == 1.0
        assert [row["name"] for row in entry["rows"] if row["winner"]] == [entry["winner"]]
        assert " of SciPy " in system["toolchain"]
        assert entry["failures"] == [
            {"reason": "rejected: batch layout", "count": 2, "example": entry["failures"][0]["example"]}
        ]
    assert str(header_of(outcome)) in text


@pytest.mark.opencl
def test_the_header_has_the_winner_of_each_transposition(run):
    outcome, _ = run
    text = header_of(outcome).read_text()
    for a in ("false", "true"):
        for b in ("false", "true"):
            assert f"struct choice<float, {a}, {b}, false>" in text
    assert "33 x 17, K = 65: " in text


@pytest.mark.opencl
def test_an_interleaved_batch_is_tuned_and_used(tmp_path):
    """The system BLAS gets the same sizes as a strided batch, since it has no interleaved batches."""
    opencl_device()
    (tmp_path / "small.json").write_text(json.dumps(SMALL))
    task = PortBlasTask("tn", 5, 7, 6, 6, 6, "interleaved", config=str(tmp_path / "small.json"))
    outcome = tune_portblas(task, tmp_path / "run", device="OpenCL")
    (tuned,) = outcome.plan.tuned
    assert is_interleaved(tuned.problem.type)
    assert not is_interleaved(tuned.row(RowKind.SYSTEM).solution.type)
    assert [row.failure for row in tuned.rows] == ["", "", "rejected: batch layout", "", "", "rejected: batch layout"]
    launched: list[LaunchRecord] = []
    with tunesmith.load(outcome.folder / "logic", device="OpenCL:0:0", launched=launched.append) as library:
        multiply(library, tuned.problem)
    assert launched[-1].choice.solution == tuned.winner.solution
    assert launched[-1].problem == tuned.problem


@pytest.mark.opencl
def test_the_logic_may_choose_the_system_blas_where_it_is_asked_to(run, tmp_path):
    """On 33 x 17 x 65 a call is faster than any launch; the library then calls it, and the result is right."""
    outcome, _ = run
    task = replace(outcome.plan.task, vendor=True, transposes="tn")
    chosen = tune_portblas(task, outcome.folder, device="OpenCL")
    (tuned,) = chosen.plan.tuned
    fastest = tuned.ranked()[0]
    assert fastest.kind is RowKind.SYSTEM
    assert tuned.winner.solution == fastest.solution
    launched: list[LaunchRecord] = []
    with tunesmith.load(chosen.logic_files[0], device="OpenCL:0:0", launched=launched.append) as library:
        multiply(library, tuned.problem)
    assert launched[-1].choice.solution.kernel == "VendorBlas"
    assert "Tile<" in header_of(chosen).read_text()


def test_a_row_without_a_measurement_has_no_line():
    failed = Measurement(Outcome.WRONG_RESULT, "wrong value", "D[0] is 1")
    assert failed.error is None
    assert Measurement(Outcome.OK, detail="relative error 1.5e-07").error == 1.5e-7
    assert Measurement(Outcome.OK).error is None
