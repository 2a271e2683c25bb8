"""The store keeps each measurement once, and returns it unchanged."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import shutil
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from tunesmith.records import (
    CompiledFacts,
    Configuration,
    Cost,
    Estimate,
    Measurement,
    Outcome,
    Problem,
    ProblemType,
    Solution,
    Target,
    UserError,
)
from tunesmith.store import RunEnd, RunStart, RunState, StepRecord, Store, StoreEntry, Winner
from unprivileged import unwritable

GEMM = ProblemType("GEMM", "Cijk_Ailk_Bljk_SB", ("M", "N", "Batch", "K"), Configuration({"DataType": "s"}))
TARGET = Target(
    "fake", "fake:0", "a fake device", "CPU", "none", "1.0", 4, 256, 32768, 1 << 30, 1 << 28, 1 << 20, 8, True
)
COSTS = ("compile_seconds", "verify_seconds", "timing_seconds")
START = RunStart(("tunesmith", "tune", "a.yaml"), "a.yaml", "0" * 64, "a fake device", "1.0", "fake:0", "0.1.0")


def found(store, keys, round_):
    """The store's measurements of a round, by key."""
    return {key: rounds[round_] for key, rounds in store.rounds(keys).items() if round_ in rounds}


def entry(
    key="k",
    round="screen",  # noqa: A002
    measurement=None,
    size=64,
    tile=8,
):
    solution = Solution(GEMM, "tiled", Configuration({"Tile": tile}))
    problem = Problem(GEMM, (size, size, 1, size))
    ran = measurement or Measurement(Outcome.OK, samples=(1.0,), estimate=Estimate(1.0, 0.9, 1.1, 1))
    return StoreEntry(key, round, f"identity {tile}", solution, problem, TARGET, "compiler 1", ran)


def timed(seconds):
    return Measurement(Outcome.OK, samples=(seconds,), estimate=Estimate(seconds, seconds, seconds, 1))


@pytest.fixture
def store(location_of):
    with Store.open(location_of()) as opened:
        yield opened


@pytest.fixture
def round_names():
    return map("round {}".format, itertools.count())


seconds = st.floats(0, allow_nan=False)
counts = st.none() | st.integers(0, 2**40)
facts = st.builds(CompiledFacts, st.text(), counts, counts, counts, counts)
estimates = st.builds(Estimate, seconds, seconds, seconds, st.integers(0, 10**6))
measurements = st.builds(
    Measurement,
    st.sampled_from(Outcome),
    st.text(),
    st.text(),
    st.lists(seconds).map(tuple),
    st.none() | estimates,
    st.booleans(),
    st.lists(facts, max_size=3).map(tuple),
    st.builds(Cost, st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6)),
    st.floats(0, 1e12),
    st.text(),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text() | st.text("a\0\ue0000e"), measurements, max_size=4))
def test_a_measurement_comes_back_as_it_was(store, round_names, made):
    name = next(round_names)
    store.commit(entry(key, name, measurement) for key, measurement in made.items())
    assert found(store, made, name) == made


def test_nan_and_infinity_in_an_estimate_survive(store):
    store.commit([entry("n", measurement=Measurement(Outcome.OK, estimate=Estimate(1.0, math.nan, math.inf, 1)))])
    estimate = found(store, ["n"], "screen")["n"].estimate
    assert estimate is not None
    assert (math.isnan(estimate.low), estimate.high) == (True, math.inf)


def test_a_compilers_log_that_is_not_unicode_costs_no_measurement(store):
    store.commit([entry("log", measurement=Measurement(Outcome.COMPILE_ERROR, "refused", "bad \udcff byte \0 here"))])
    assert found(store, ["log"], "screen")["log"].detail == "bad \\udcff byte \0 here"


def test_the_same_key_and_round_keeps_its_first_measurement(store):
    assert store.commit([entry("a", measurement=timed(1.0)), entry("b")]) == 2
    assert store.commit([entry("a", measurement=timed(9.0)), entry("c"), entry("c")]) == 1
    assert found(store, ["a"], "screen")["a"] == timed(1.0)


def test_rounds_of_a_key_are_apart(store):
    store.commit([entry("a", "screen", timed(1.0)), entry("a", "confirm/7", timed(2.0))])
    assert found(store, ["a"], "confirm/7")["a"] == timed(2.0)
    assert found(store, ["a"], "confirm/8") == {}


def test_what_replaces_a_measurement_is_the_only_one_that_is_given(store):
    """This holds for every method. The file keeps both measurements, and a second replacement replaces the first."""
    failed = Measurement(Outcome.COMPILE_ERROR, "compiler crashed")
    store.commit([entry("k", "full", failed), entry("other", "full", failed, size=8)])
    store.commit([entry("k", "full/recheck", Measurement(Outcome.CRASH, "SIGKILL"))])
    for seconds in (0.5, 2.0):
        assert store.commit([entry("k", "full", timed(seconds))], replacing={("k", "full")}) == 1
        assert store.rounds(["k", "other"]) == {"k": {"full": timed(seconds)}, "other": {"full": failed}}
        assert [(row.key, row.round, row.measurement) for row in store.entries(round_prefix="full")] == [
            ("other", "full", failed),
            ("k", "full", timed(seconds)),
        ]
        assert [row.measurement for row in store.best().values()] == [timed(seconds)]
        assert [(row.reason, row.count) for row in store.failures()] == [("compiler crashed", 1)]
    assert store.commit([entry("k", "full", timed(1.0)), entry("new", "full", timed(1.0))], replacing={("x", "y")}) == 1
    assert store.rounds(["k"]) == {"k": {"full": timed(2.0)}}
    store.commit([entry("k", "full/recheck", Measurement(Outcome.CRASH, "SIGSEGV"))], replacing={("k", "full/recheck")})
    assert set(store.rounds(["k"])["k"]) == {"full", "full/recheck"}


def test_a_store_of_an_earlier_version_tells_its_runs(store):
    """The record of such a run does not say whether the run measured everything again."""
    document = json.loads(START.to_json())
    del document["remeasures"]
    assert RunStart.from_json(json.dumps(document)) == START


def test_asking_takes_more_keys_than_a_query_may_have(store):
    keys = [str(number) for number in range(40_000)]
    store.commit(entry(key) for key in keys[::200])
    assert set(found(store, keys, "screen")) == set(keys[::200])


def test_entries_come_whole_in_the_order_of_commits_over_pages(store, small_pages):
    entries = [entry(str(number), tile=number % 3, size=64 + number % 5) for number in range(123)]
    store.commit(entries)
    assert list(store.entries()) == entries


def test_entries_are_filtered_by_type_round_and_outcome(store):
    wrong = Measurement(Outcome.WRONG_RESULT, "beyond the bound")
    store.commit([entry("a"), entry("b", "confirm/1"), entry("c", "Confirm/2"), entry("d", measurement=wrong)])

    def keys(**filters):
        return [found.key for found in store.entries(**filters)]  # type: ignore[arg-type]

    assert keys(round_prefix="confirm/") == ["b"]
    assert keys(outcomes=[Outcome.WRONG_RESULT]) == ["d"]
    assert keys(problem_type=GEMM.name, round_prefix="screen") == ["a", "d"]
    assert keys(problem_type="another") == []


def test_the_problems_of_a_type_come_once_each(store):
    another = dataclasses.replace(
        entry("d"), problem=Problem(dataclasses.replace(GEMM, name="another"), (64, 64, 1, 64))
    )
    store.commit([entry("a"), entry("b", size=128), entry("c", "full", tile=4), another])
    assert {problem.sizes[0] for problem in store.problems(GEMM.name)} == {64, 128}
    assert len(store.problems(GEMM.name)) == 2
    assert store.problems("another") == [another.problem]
    assert store.problems("missing") == []


def test_best_is_the_fastest_that_ran_for_each_problem(store):
    store.commit(
        [
            entry("a", measurement=timed(3.0), size=64, tile=1),
            entry("b", measurement=timed(2.0), size=64, tile=2),
            entry("c", measurement=timed(1.0), size=64, round="anchor/1"),
            entry("d", measurement=timed(5.0), size=128, tile=3),
            entry("e", measurement=Measurement(Outcome.CRASH), size=256),
            entry("f", measurement=dataclasses.replace(timed(0.1), outcome=Outcome.WRONG_RESULT), size=128),
        ]
    )
    best = store.best(round_prefix="screen")
    assert {problem.sizes[0]: found.key for problem, found in best.items()} == {64: "b", 128: "d"}


def test_failures_are_counted_by_reason_the_most_frequent_first(store):
    def failed(outcome, reason, detail):
        return Measurement(outcome, reason, detail)

    store.commit(
        [
            entry("a"),
            entry("b", measurement=failed(Outcome.CRASH, "signal 11", "x")),
            entry("c", measurement=failed(Outcome.REJECTED, "local memory", "70000 bytes")),
            entry("d", measurement=failed(Outcome.REJECTED, "local memory", "80000 bytes")),
        ]
    )
    counted = [(failure.outcome, failure.reason, failure.count) for failure in store.failures()]
    assert counted == [(Outcome.REJECTED, "local memory", 2), (Outcome.CRASH, "signal 11", 1)]
    assert store.failures()[0].example == "70000 bytes"


def test_cost_adds_up_what_everything_took(store):
    assert store.cost() == Cost(0.0, 0.0, 0.0)
    spent = Measurement(Outcome.OK, cost=Cost(1.0, 2.0, 4.0))
    store.commit([entry("a", measurement=spent), entry("b", measurement=spent)])
    assert store.cost() == Cost(2.0, 4.0, 8.0)


STEP = StepRecord(
    GEMM.name, 0, 3, "BenchmarkForkParameters", "03_BF_VectorWidth", 4, 3, 3, 2, {"local memory": 2}, {},
    (Winner(Configuration({"Tile": (8, 8), "Flag": True}), Configuration({"VectorWidth": 4}), True),), 1,
    ("the last: it did not run",), (), 2.5,
)  # fmt: skip


END = RunEnd(RunState.FINISHED, 12.5, 100, 20, Cost(1.0, 2.0, 3.0), "all well")


def test_runs_and_their_steps_come_back(store):
    finished, killed = store.begin_run(START), store.begin_run(START)
    store.record_step(finished, STEP)
    store.record_step(killed, dataclasses.replace(STEP, number=9))
    store.record_step(finished, dataclasses.replace(STEP, number=4, winners=()))
    store.end_run(finished, END)

    assert [step.number for step in store.steps(finished)] == [3, 4]
    assert store.steps(finished)[0] == STEP
    runs = store.runs()
    assert [(run.id, run.state, run.end) for run in runs] == [
        (finished, RunState.FINISHED, END),
        (killed, RunState.OPEN, None),
    ]
    assert runs[0].start == START


def test_no_statement_ever_changes_or_removes_a_row(store):
    statements: list[str] = []
    event.listen(store._database.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    run = store.begin_run(START)
    for _ in range(2):
        store.commit([entry("a"), entry("b")])
    store.record_step(run, STEP)
    store.end_run(run, RunEnd(RunState.INTERRUPTED, 1.0, 2, 0))
    verbs = {statement.split()[0].upper() for statement in statements}
    assert verbs <= {"BEGIN", "INSERT", "SELECT"}
    assert "INSERT" in verbs
    assert not [text for text in map(str.upper, statements) if "REPLACE" in text or "DO UPDATE" in text]


def test_commit_is_all_or_nothing(store):
    unpackable = dataclasses.replace(entry("z"), measurement=Measurement(Outcome.OK, samples=("soon",)))  # type: ignore[arg-type]
    with pytest.raises(Exception, match="required argument"):
        store.commit([entry("a"), unpackable])
    unbindable = dataclasses.replace(entry("z"), identity=object())  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"Error binding|type .object. is not supported|cannot adapt type"):
        store.commit([entry("a"), unbindable])
    assert list(store.entries()) == []


class TestFilesThatAreNoStore:
    """The user must correct each of these, so each raises a UserError that names the file."""

    def refused(self, path):
        def use():
            with Store.open(path) as store:
                list(store.entries())
                found(store, ["a"], "screen")

        with pytest.raises(UserError) as caught:
            use()
        assert str(path) in caught.value.location
        return f"{caught.value.what}; {caught.value.remedy}"

    def test_text(self, tmp_path):
        (tmp_path / "s").write_text("this is no database\n" * 100)
        assert "not a sound SQLite database" in self.refused(tmp_path / "s")

    def test_a_folder(self, tmp_path):
        assert "is a folder" in self.refused(tmp_path)

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("")
        assert "cannot be made" in self.refused(tmp_path / "file" / "store.sqlite")

    def test_a_log_in_a_folder_that_may_not_be_written(self, tmp_path):
        """The log's content is part of the store, and SQLite reads the log only with an index beside it."""
        (tmp_path / "run").mkdir()
        with Store.open(tmp_path / "run" / "s") as store:
            store.commit([entry("a")])
            with unwritable(tmp_path / "run") as folder, Store.open(folder / "s") as copy:
                assert len(list(copy.entries())) == 1, "the index is there"
            (tmp_path / "cut").mkdir()
            for name in ("s", "s-wal"):
                shutil.copy(tmp_path / "run" / name, tmp_path / "cut")
        with unwritable(tmp_path / "cut") as folder:
            assert "make its folder writable, or use a copy" in self.refused(folder / "s")

    def test_writing_where_it_is_not_allowed(self, tmp_path):
        Store.open(tmp_path / "s").close()
        with (
            unwritable(tmp_path) as folder,
            Store.open(folder / "s") as store,
            pytest.raises(UserError, match="the store cannot be written; make the file and its folder writable"),
        ):
            store.commit([entry("a")])

    def test_another_programs_database(self, tmp_path):
        with sqlite3.connect(tmp_path / "s") as other:
            other.execute("CREATE TABLE songs (title TEXT)")
        other.close()
        assert "another program" in self.refused(tmp_path / "s")

    @pytest.mark.parametrize(("version", "remedy"), [(99, "newer tunesmith"), (0, "older tunesmith")])
    def test_another_schema(self, tmp_path, version, remedy):
        Store.open(tmp_path / "s").close()
        with sqlite3.connect(tmp_path / "s") as changed:
            changed.execute(f"PRAGMA user_version = {version}")
        changed.close()
        assert remedy in self.refused(tmp_path / "s")

    def test_a_file_cut_short(self, tmp_path):
        with Store.open(tmp_path / "s") as store:
            store.commit(entry(str(number)) for number in range(2000))
        whole = (tmp_path / "s").read_bytes()
        (tmp_path / "s").write_bytes(whole[: len(whole) // 2])
        assert "not a sound SQLite database" in self.refused(tmp_path / "s")

    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE measurements SET samples = x'00'",
            "UPDATE measurements SET samples = x'000000000000F0BF'",  # -1.0
            *(f"UPDATE measurements SET {column} = -1" for column in ("seconds", "low", "high", "count")),
            "UPDATE measurements SET seconds = NULL, low = -1",
            *(f"UPDATE measurements SET {column} = {bad}" for column in COSTS for bad in (-1, 1.01e11)),
            "UPDATE measurements SET outcome = 'perhaps'",
            "UPDATE measurements SET facts = '{'",
            "UPDATE measurements SET facts = '[3]'",
            "UPDATE documents SET text = '[]'",
        ],
    )
    def test_a_damaged_row(self, tmp_path, damage):
        with Store.open(tmp_path / "s") as store:
            store.commit([entry("a")])
        with sqlite3.connect(tmp_path / "s") as damaged:
            damaged.execute(damage)
        damaged.close()
        assert "damaged row" in self.refused(tmp_path / "s")


@pytest.fixture(scope="module")
def sound_store(tmp_path_factory):
    """The bytes of a store with sixty measurements."""
    path = tmp_path_factory.mktemp("sound") / "s"
    with Store.open(path) as store:
        store.commit(entry(str(number)) for number in range(60))
    return path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(location=st.floats(0, 1, exclude_max=True), junk=st.binary(min_size=1, max_size=600))
def test_scribbled_bytes_give_an_answer_or_a_user_error(tmp_path_factory, sound_store, location, junk):
    path, whole = tmp_path_factory.mktemp("scribbled") / "s", bytearray(sound_store)
    start = int(location * len(whole))
    whole[start : start + len(junk)] = junk
    path.write_bytes(whole)
    try:
        with Store.open(path) as store:
            list(store.entries())
            store.best()
            store.failures()
            store.runs()
            store.commit([entry("another")])
    except UserError:
        pass
