"""The comparison of random fills with cuRAND, as far as it runs without a GPU: orderings, ratios, the mark."""

from __future__ import annotations

import csv
import io
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

import random_vs_curand as benchmark
from random_ratios import MARK, CurandResult, Fill, Row, csv_text, flat, sums

PHILOX = Fill("philox4_32_10", "uniform", "float", 2**30)
OURS = (1.00, 1.01, 0.99, 1.00)


def beside(*sides, fill=PHILOX):
    """A row with a result of cuRAND for each side: the ordering, its speed, and its time relative to ours."""
    results = tuple(
        CurandResult.of(name, speed, 5e-6, [times * seconds for seconds in OURS], OURS) for name, speed, times in sides
    )
    return Row(fill, "256x528", 4400.0, 4300.0, 4650.0, 2e-5, results)


class FakeCurand(ModuleType):
    """A fake of CuPy's binding of cuRAND that records its calls; MT19937 has no dynamic ordering."""

    class CURANDError(RuntimeError):
        pass

    def __init__(self):
        super().__init__("cupy_backends.cuda.libs.curand")
        self.calls: list[tuple[str, ...]] = []

    def createGenerator(self, kind):  # noqa: N802 (CuPy's name)
        self.calls.append(("create", kind))
        return kind

    def setGeneratorOrdering(self, generator, ordering):  # noqa: N802
        if (generator, ordering) == (benchmark.CURAND["mt19937"], 104):
            raise self.CURANDError("CURAND_STATUS_OUT_OF_RANGE")
        self.calls.append(("ordering", ordering))

    def setPseudoRandomGeneratorSeed(self, generator, seed):  # noqa: N802
        self.calls.append(("seed", seed))

    def generateUniform(self, generator, address, count):  # noqa: N802
        self.calls.append(("uniform", address, count))

    def destroyGenerator(self, generator):  # noqa: N802
        self.calls.append(("destroy", generator))


@pytest.fixture
def library(monkeypatch):
    library = FakeCurand()
    for name in ("cupy_backends", "cupy_backends.cuda", "cupy_backends.cuda.libs"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, library.__name__, library)
    monkeypatch.setattr(sys.modules["cupy_backends.cuda.libs"], "curand", library, raising=False)
    return library


OUT = SimpleNamespace(data_ptr=lambda: 4096, numel=lambda: 32)


@pytest.mark.parametrize(("ordering", "number"), [("best", 100), ("default", 101), ("dynamic", 104)])
def test_an_ordering_is_set_before_the_seed_and_the_generator_is_given_back(library, ordering, number):
    with benchmark.curand_call("philox4_32_10", ordering, "uniform", "float", OUT) as call:
        assert call is not None
        call()
    filled = ("uniform", 4096, 32)
    assert library.calls == [("create", 161), ("ordering", number), ("seed", 1), filled, filled, ("destroy", 161)]


def test_an_ordering_that_a_generator_lacks_is_left_out(library):
    with benchmark.curand_call("mt19937", "dynamic", "uniform", "float", OUT) as call:
        assert call is None
    assert library.calls == [("create", 142), ("destroy", 142)]


def test_pseudo_random_generators_are_timed_in_three_orderings_and_others_in_their_only_one():
    assert set(benchmark.orderings("xorwow")) == {"default", "best", "dynamic"}
    assert benchmark.orderings("scrambled_sobol64") == ("default",)
    assert benchmark.orderings("threefry2_32_20") == ()


def test_the_ratio_that_leads_is_to_the_fastest_ordering():
    row = beside(("default", 2000.0, 2.2), ("best", 2100.0, 2.1), ("dynamic", 4500.0, 0.98))
    assert row.fastest.ordering == "dynamic"
    assert row.fastest.ratio == pytest.approx(0.98)
    assert flat(row)["over_curand"] == pytest.approx(0.98)
    assert flat(row)["over_default"] == pytest.approx(2.2)
    assert "over cuRAND's fastest ordering 0.980" in sums([row])[0]


@pytest.mark.parametrize(("times", "misses"), [(0.960, True), (0.969, True), (0.975, False), (1.2, False)])
def test_a_row_misses_the_mark_where_an_interval_lies_below_it(times, misses):
    row = beside(("default", 2000.0, 2.2), ("dynamic", 4500.0, times))
    assert bool(row.misses) == misses
    misses_said = [line for line in sums([row]) if line.startswith(f"misses the mark of {MARK}")]
    assert bool(misses_said) == misses
    assert not misses_said or "philox4_32_10 uniform float, 1024 MiB, beside the ordering dynamic" in misses_said[0]


def test_an_interval_that_reaches_the_mark_does_not_miss_it():
    noisy = CurandResult.of("dynamic", 4500.0, 5e-6, [0.80, 0.95, 0.94, 0.99], [1.0] * 4)
    assert noisy.ratio < MARK < noisy.high
    assert not Row(PHILOX, "256x528", 4400.0, 4300.0, 4650.0, 2e-5, (noisy,)).misses


def test_rows_are_written_with_each_ordering():
    rows = [beside(("default", 2000.0, 2.2)), beside(fill=Fill("lfsr113", "uniform", "float", 2**24))]
    first, second = csv.DictReader(io.StringIO(csv_text(rows)))
    assert (first["ordering"], first["curand_default"], first["over_dynamic"]) == ("default", "2000.0", "")
    assert float(first["over_curand_high"]) >= float(first["over_curand"]) >= float(first["over_curand_low"])
    assert (second["generator"], second["curand"], second["over_curand"]) == ("lfsr113", "", "")


@pytest.mark.parametrize(("times", "failing", "code"), [(1.1, (), 0), (0.9, (), 1), (1.1, ("it did not run",), 1)])
def test_the_exit_code_says_whether_all_ran_and_reached_the_mark(monkeypatch, tmp_path, times, failing, code):
    def measure(names, sizes, folder, failed):
        failed += failing
        yield beside(("default", 2000.0, times))

    monkeypatch.setattr(benchmark, "tune", lambda *_: None)
    monkeypatch.setattr(benchmark, "measure", measure)
    monkeypatch.setattr(benchmark, "facts", lambda: {"device": "none"})
    written, run = tmp_path / "rows.csv", tmp_path / "run.json"
    monkeypatch.setattr(sys, "argv", ["it", str(tmp_path), "--csv", str(written), "--json", str(run)])
    assert benchmark.main() == code
    assert len(written.read_text().splitlines()) == 2
    assert json.loads(run.read_text())["failed"] == list(failing)


def test_what_was_measured_is_written_when_the_rest_fails(monkeypatch, tmp_path):
    def measure(*_):
        yield beside(("default", 2000.0, 1.1))
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(benchmark, "tune", lambda *_: None)
    monkeypatch.setattr(benchmark, "measure", measure)
    monkeypatch.setattr(benchmark, "facts", dict)
    monkeypatch.setattr(sys, "argv", ["it", str(tmp_path), "--csv", str(tmp_path / "rows.csv")])
    with pytest.raises(RuntimeError):
        benchmark.main()
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 2
