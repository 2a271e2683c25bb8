"""A run adds to the files of an earlier run in the folder. Files that it cannot add to are kept, and the run says
so."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from hashlib import sha256

import pytest

from golden_bench import nothing_measured
from portblas_fakes import DEFAULT, fake
from portblas_fakes import tune as tune_like_portblas
from tunesmith.bench import Policy
from tunesmith.devices.fake import fake_target
from tunesmith.logic import Logic, Origin, read_csv
from tunesmith.session import events, tune
from tunesmith.session.frame.earlier import keep_aside, write_table
from tunesmith.session.random import plan as random_plan
from tunesmith.session.random.task import RandomTask
from tunesmith.session.stream_k import sweep
from tunesmith.session.stream_k.kernels import TileFilter
from tunesmith.store import RunState
from tuning_runs import fake_file

SIZES = """
GlobalParameters: {CompileProcesses: 1, ConfirmBlocks: 7, WarmUpSeconds: 0.01, SamplingSeconds: 0.02}
BenchmarkProblems:
  - - DataType: s
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      ForkParameters:
        - WorkGroup: [[16, 8, 1], [8, 16, 1]]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [32, 32, 32]
            - Exact: [256, 96, 64]
"""
OTHERS = SIZES.replace("[32, 32, 32]", "[48, 32, 16]").replace("[256, 96, 64]", "[96, 256, 64]")
LOGIC, FINAL = "logic/Cij_Aik_Bjk_SB.yaml", "tables/Cij_Aik_Bjk_SB_00/02_Final.csv"
QUICK = Policy(noise=0.5, maximum_samples=6, sampling_seconds=0.005, warm_up_seconds=0.001, cold=False)
PAIR = tuple(DEFAULT | {"WorkGroup": group} for group in ((16, 8, 1), (8, 16, 1)))


@pytest.fixture(autouse=True)
def quick():
    """What is in a folder does not depend on how it was measured."""
    with nothing_measured():
        yield


def tuned(folder, text=SIZES, sentences=None, **options):
    def observe(event):
        if sentences is not None and isinstance(event, events.Message):
            sentences.append(event.text)

    return tune(fake_file(folder, text), folder, device="fake:GPU:8", observe=observe, **options)


def like_portblas(folder, m, **more):
    return tune_like_portblas(replace(fake(m=m, n=256, k=32), listed=PAIR), folder, **more)


def sizes(path):
    return {row.sizes for row in Logic.load(path).document.rows}


def test_sizes_of_two_files_add_up_and_the_run_says_so(tmp_path):
    tuned(tmp_path)
    first = Logic.load(tmp_path / LOGIC).document
    sentences: list[str] = []
    done = tuned(tmp_path, OTHERS, sentences)
    merged = Logic.load(tmp_path / LOGIC).document
    assert sizes(tmp_path / LOGIC) == {(32, 32, 32), (256, 96, 64), (48, 32, 16), (96, 256, 64)}
    # How many samples a time has may differ: in the first run it was a finalist's, now it is the one of the store.
    before = {row.sizes: (first.solutions[row.solution].solution, row.estimate.seconds) for row in first.rows}
    after = {row.sizes: (merged.solutions[row.solution].solution, row.estimate.seconds) for row in merged.rows}
    assert {where: after[where] for where in before} == before
    assert f"{LOGIC}: 2 sizes of earlier runs stay" in sentences
    assert done.look_at == []
    sentences.clear()
    tuned(tmp_path, OTHERS, sentences)
    assert f"{LOGIC}: 2 sizes of earlier runs stay" in sentences


def test_fewer_sizes_leave_the_others_where_the_store_is_gone(tmp_path):
    """The logic itself has the times of the other sizes. A user gets fewer sizes with `--max-size`."""
    tuned(tmp_path)
    first = {row.sizes: row.estimate for row in Logic.load(tmp_path / LOGIC).document.rows}
    for file in tmp_path.glob("measurements.sqlite*"):
        file.unlink()
    tuned(tmp_path, max_size=32)
    after = {row.sizes: row.estimate for row in Logic.load(tmp_path / LOGIC).document.rows}
    assert sizes(tmp_path / LOGIC) == {(32, 32, 32), (256, 96, 64)}
    assert after[256, 96, 64] == first[256, 96, 64]


def test_a_size_that_gets_another_solution_is_named(tmp_path):
    tuned(tmp_path)
    (row, *_) = Logic.load(tmp_path / LOGIC).document.rows
    text = (tmp_path / LOGIC).read_text()
    first, other = ("WorkGroup: [16, 8, 1]", "WorkGroup: [4, 4, 1]")
    swapped = text.replace(first, other).replace("WorkGroup: [8, 16, 1]", other.replace("4, 4", "4, 8"))
    assert swapped != text
    (tmp_path / LOGIC).write_text(swapped)
    sentences: list[str] = []
    tuned(tmp_path, sentences=sentences)
    (note,) = [sentence for sentence in sentences if sentence.startswith(LOGIC)]
    assert "2 have another solution now (" in note
    assert "x".join(map(str, row.sizes)) in note


def test_a_table_of_other_sizes_is_kept_under_another_name(tmp_path):
    tuned(tmp_path)
    first = (tmp_path / FINAL).read_bytes()
    sentences: list[str] = []
    for _ in range(2):
        tuned(tmp_path, OTHERS, sentences)
        assert [tuple(row.values()) for row in read_csv(tmp_path / FINAL).sizes] == [(48, 32, 16), (96, 256, 64)]
        kept = tmp_path / f"{FINAL}.earlier-1"
        assert kept.read_bytes() == first
    assert [sentence for sentence in sentences if "has 2 other sizes" in sentence] == [
        f"{tmp_path / FINAL} has 2 other sizes, which this run does not have; it is kept as 02_Final.csv.earlier-1 and"
        " 02_Final.details.csv.earlier-1"
    ]
    tuned(tmp_path)
    tuned(tmp_path, OTHERS)
    names = sorted(path.name for path in kept.parent.iterdir() if "earlier" in path.name and "details" not in path.name)
    assert names == ["02_Final.csv.earlier-1", "02_Final.csv.earlier-2"], "the same table is kept once"


def test_the_same_command_again_keeps_no_table_aside(tmp_path):
    tuned(tmp_path, budget_minutes=1e-9)
    tuned(tmp_path)
    tuned(tmp_path)
    assert not list(tmp_path.rglob("*.earlier-*"))


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff\xfe\x00nonsense",
        b"tunesmith-logic: 99\n",
        b"tunesmith-logic: 2\norigin: {api: fake}\n",
        b"tunesmith-logic: 2\n[[[",
    ],
    ids=["empty", "not text", "of another version", "fields are missing", "no YAML"],
)
@pytest.mark.parametrize("command", [tuned, lambda folder: like_portblas(folder, 256)], ids=["tune", "portblas"])
def test_a_logic_that_cannot_be_read_is_kept_and_sinks_nothing(command, damage, tmp_path):
    command(tmp_path)
    (logic,) = (tmp_path / "logic").glob("*.yaml")
    whole = sizes(logic)
    logic.write_bytes(damage)
    done = command(tmp_path)
    assert (done.state, sizes(logic)) == (RunState.FINISHED, whole)
    assert logic.with_name(f"{logic.name}.earlier-1").read_bytes() == damage
    assert any(f"it is kept as {logic.name}.earlier-1" in sentence for sentence in done.look_at)
    assert command(tmp_path).look_at == []


def test_another_logic_of_the_folder_that_cannot_be_read_sinks_nothing(tmp_path):
    """`portblas tune` reads all logic files, for the current library and for its header."""
    other = tmp_path / "logic" / "other.yaml"
    other.parent.mkdir()
    other.write_text("tunesmith-logic: 1\n")
    done = like_portblas(tmp_path, 256)
    assert len(done.logic_files) == 1
    assert other.read_text() == "tunesmith-logic: 1\n"
    (sentence,) = [sentence for sentence in done.look_at if "other.yaml" in sentence]
    assert "is format 1, this tunesmith reads 2" in sentence


def test_the_logic_of_another_device_is_kept(tmp_path):
    tuned(tmp_path)
    text = (tmp_path / LOGIC).read_text()
    (tmp_path / LOGIC).write_text(text.replace("device: fake GPU", "device: another GPU"))
    sentences: list[str] = []
    assert tuned(tmp_path, OTHERS, sentences).look_at == []
    kept = tmp_path / f"{LOGIC}.earlier-1"
    assert sizes(kept) == {(32, 32, 32), (256, 96, 64)}
    assert sizes(tmp_path / LOGIC) == {(48, 32, 16), (96, 256, 64)}
    assert any("is for another GPU (fake); it is kept as" in sentence for sentence in sentences)


def test_a_name_that_is_taken_is_not_used(tmp_path):
    path, taken = tmp_path / "a.yaml", tmp_path / "a.yaml.earlier-1"
    path.write_text("new")
    taken.write_text("old")
    assert keep_aside(path).name == "a.yaml.earlier-2"
    assert (taken.read_text(), path.exists()) == ("old", False)


def test_any_other_table_is_kept_where_it_has_what_the_run_does_not(tmp_path):
    path, sentences = tmp_path / "table.csv", list[str]()

    def write(own, text):
        write_table(own, lambda found: [str(int(word)) for word in found.split()], sentences.append, path, text)

    write(["1", "2"], "1")
    write(["1", "2"], "1 2")
    assert sentences == []
    write(["2", "3"], "2 3")
    kept = tmp_path / "table.csv.earlier-1"
    assert (kept.read_text(), path.read_text()) == ("1 2", "2 3")
    assert sentences == [f"{path} has 1, which this run does not have; it is kept as {kept.name}"]
    path.write_text("damaged")
    write(["2", "3"], "2 3")
    assert (tmp_path / "table.csv.earlier-2").read_text() == "damaged"
    assert "cannot be read (ValueError" in sentences[-1]


def test_rows_of_other_generators_and_products_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(random_plan.RandomPlan, "policy", QUICK)
    monkeypatch.setattr(sweep.SweepPlan, "policy", QUICK)
    shapes = {"blocks": (64,), "grids": (2,), "min_threads": 1, "bytes": (1 << 16,), "grow": False}
    for name in ("philox4_32_10", "threefry2_32_20", "threefry2_32_20"):
        task = RandomTask((name,), ("uniform",), ("float",), **shapes)  # type: ignore[arg-type]
        random_plan.tune_random(task, tmp_path / "random", device="OpenCL")
    (kept,) = (tmp_path / "random").glob("*.earlier-*")
    assert kept.name == "benchmark_65536.json.earlier-1"
    assert "philox" in kept.read_text()
    for size in (16, 48, 48):
        (tmp_path / "list.csv").write_text(f"m,n,k,trans_b\n{size},16,24,T\n")
        sweep.sweep_stream_k(
            sweep.SweepTask(tmp_path / "list.csv", tile=TileFilter(16, 16, 8), grids=2),
            tmp_path / "sweep",
            device="OpenCL",
        )
    (kept,) = (tmp_path / "sweep").glob("*.earlier-*")
    assert kept.read_text().splitlines()[1].startswith(",16,16,24,1,N,T,")


@pytest.mark.parametrize("command", ["portblas", "tune"])
def test_what_was_measured_with_other_limits_of_the_device_stays(command, tmp_path):
    """PoCL's largest allocation follows the host's free memory, and other limits the driver."""
    portblas = command == "portblas"
    like_portblas(tmp_path, 256) if portblas else tuned(tmp_path)
    _with_another_limit(tmp_path / "measurements.sqlite")
    done = like_portblas(tmp_path, 128) if portblas else tuned(tmp_path, OTHERS)
    (logic,) = done.logic_files
    assert len(sizes(logic)) == (2 if portblas else 4)
    again = like_portblas(tmp_path, 256) if portblas else tuned(tmp_path)
    assert (again.ledger.measured, again.look_at) == (0, [])
    assert len(sizes(logic)) == (2 if portblas else 4)


def test_devices_are_compared_in_one_place():
    """API, name and architecture identify a device; its limits and its driver do not count."""
    device = fake_target("GPU")
    origin = Origin.of(device, "compiler", "0.1", "today")
    for same in (replace(device, max_allocation_bytes=1), replace(device, driver="2", selector="fake:GPU:9")):
        assert device.same_device(same)
        assert origin.is_of(same)
    for other in (replace(device, api="OpenCL"), replace(device, name="x"), replace(device, architecture="sm_90")):
        assert not device.same_device(other)
        assert not origin.is_of(other)


def _with_another_limit(store):
    with sqlite3.connect(store) as connection:
        rows = connection.execute("SELECT digest, text FROM documents WHERE text LIKE '%max_allocation%'").fetchall()
        assert rows
        for digest, text in rows:
            other = json.dumps({**json.loads(text), "max_allocation_bytes": 1 << 27}, sort_keys=True)
            renamed = sha256(other.encode()).hexdigest()
            connection.execute("INSERT INTO documents VALUES (?, ?)", (renamed, other))
            connection.execute("UPDATE measurements SET target = ? WHERE target = ?", (renamed, digest))
    connection.close()


TWO_GROUPS = (
    SIZES
    + """
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      ForkParameters:
        - WorkGroup: [[16, 8, 1], [4, 16, 1]]
          VectorWidth: [1, 2]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [64, 512, 64]
"""
)


def test_a_solution_has_one_name_in_the_tables_and_in_the_logic(tmp_path):
    """Also where the logic chooses one of many, where two groups of sizes have tables of their own, and where another
    file added sizes."""
    tuned(tmp_path, OTHERS)
    tuned(tmp_path, TWO_GROUPS)
    document = Logic.load(tmp_path / LOGIC).document
    tables = [read_csv(tmp_path / "tables" / f"Cij_Aik_Bjk_SB_0{group}" / "02_Final.csv") for group in (0, 1)]
    columns = {name for table in tables for name in table.names}
    assert len(columns) == 5, "16 x 8 with one word at a time is a column of both"
    assert {named.name for named in document.solutions} <= columns
    assert len(document.rows) == 5
