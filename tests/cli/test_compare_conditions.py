"""`compare` reports NumPy's BLAS, and reasons to trust a ratio less."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
from rich.console import Console

from command_line import invoke_json
from library_fakes import logic
from tunesmith.devices.host_load import HostLoad
from tunesmith.logic import write_logic
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Estimate, Problem
from tunesmith.report import documents, tables
from tunesmith.session.tuning_file.compare import PeerRatio
from tunesmith.session.tuning_file.peer import NumpyComparison, SizeComparison, conditions_of, settings_of
from tunesmith.toolchains.blas import LoadedBlas, numpy_blas

OPENBLAS = LoadedBlas("OpenBLAS", "0.3.31", "Haswell", 2, "NumPy 2.4")
TIME = Estimate(1.0, 0.9, 1.1, 12)


def row(ratio, low, high):
    return SizeComparison(
        Problem(gemm_type(), (64, 64, 64)), 2.0 * 64**3, "S", "exact", PeerRatio(TIME, TIME, ratio, low, high)
    )


# --- the settings ---------------------------------------------------------------------------------------------------


def test_a_kernel_that_a_variable_chose_is_said_with_both_names():
    (sentence,) = settings_of(OPENBLAS, {"OPENBLAS_CORETYPE": "Haswell"}, 2)
    assert "OPENBLAS_CORETYPE=Haswell is set" in sentence
    assert "unset it" in sentence
    assert not list(settings_of(OPENBLAS, {"OPENBLAS_CORETYPE": ""}, 2))
    assert not list(settings_of(OPENBLAS, {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}, 2)), "another library's variable"
    mkl = LoadedBlas("MKL", "2025.0", "", 2, "NumPy 2.4")
    assert "MKL_ENABLE_INSTRUCTIONS=SSE4_2 is set" in next(settings_of(mkl, {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}, 2))


@pytest.mark.parametrize(
    ("threads", "message"), [(1, "has 1 thread on 8"), (4, "has 4 threads on 8"), (8, ""), (None, "")]
)
def test_fewer_threads_than_processors_are_said(threads, message):
    blas = LoadedBlas("OpenBLAS", "0.3.31", "SkylakeX", threads, "NumPy 2.4")
    assert message in " ".join(settings_of(blas, {}, 8))
    assert bool(list(settings_of(blas, {}, 8))) == bool(message)


SHOWN = """
import json, numpy
from dataclasses import asdict
from tunesmith.toolchains.blas import numpy_blas
print(json.dumps(asdict(numpy_blas())))
"""


@pytest.mark.parametrize("first", ["", "import scipy.linalg.cython_blas\n"])
def test_the_blas_of_numpy_is_named_whatever_else_is_loaded(first):
    pytest.importorskip("threadpoolctl")
    if numpy_blas().name != "OpenBLAS":
        pytest.skip("this NumPy calls another BLAS")
    variables = {**os.environ, "OPENBLAS_CORETYPE": "Nehalem", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", first + SHOWN], capture_output=True, text=True, env=variables)
    found = json.loads(done.stdout)
    assert (found["kernel"], found["threads"]) == ("Nehalem", 1), done.stderr
    assert found["owner"].startswith("NumPy ")


# --- the machine ----------------------------------------------------------------------------------------------------


class Machine:
    """The counters of our two processors and of a third; a test adds ticks of 10 ms."""

    def __init__(self, folder):
        self.now, self.own, self.ticks = 100.0, 7.0, {0: 500, 1: 400, 2: 300}
        self.file = folder / "stat"
        self.write()

    def write(self):
        lines = [f"cpu{n} {busy} 0 0 99999 5 0 0 0 {busy} 0" for n, busy in self.ticks.items()]
        self.file.write_text("\n".join(["cpu  9 9 9 9 9 9 9 9 9 9", *lines, "intr 1 2 3"]))

    def load(self):
        return HostLoad(self.file, frozenset({0, 1}), clock=lambda: self.now, own=lambda: self.own)

    def runs(self, seconds, ours, busy):
        tick = os.sysconf("SC_CLK_TCK")
        self.now, self.own = self.now + seconds, self.own + ours
        self.ticks = {n: self.ticks[n] + round(tick * each) for n, each in enumerate(busy)}
        self.write()


def test_what_others_do_on_our_processors_is_what_is_busy_without_us(tmp_path):
    machine = Machine(tmp_path)
    load = machine.load()
    machine.runs(10.0, ours=12.0, busy=(9.0, 8.0, 10.0))
    assert load.others() == pytest.approx(0.5)


@pytest.mark.parametrize(("others", "is_reported"), [(0.0, False), (0.15, False), (0.5, True), (1.9, True)])
def test_a_busy_machine_is_said(tmp_path, others, is_reported):
    machine = Machine(tmp_path)
    load = machine.load()
    machine.runs(10.0, ours=1.0, busy=(1.0 + 5 * others, 5 * others, 0.0))
    found = list(conditions_of([row(1.0, 0.95, 1.05)], load))
    assert [sentence for sentence in found if "busy with other work" in sentence] == found
    assert bool(found) == is_reported


def test_where_the_system_does_not_tell_nothing_is_said(tmp_path):
    load = HostLoad(tmp_path / "none", frozenset({0}))
    assert load.others() is None
    assert not list(conditions_of([], load))


def test_a_ratio_that_may_be_anything_is_said_and_marked(tmp_path):
    rows = (row(6.68, 2.89, 15.43), row(0.5, 0.45, 0.56))
    sentences = list(conditions_of(rows, HostLoad(tmp_path / "none", frozenset({0}))))
    assert len(sentences) == 1
    assert "64x64x64: the ratio may be anything from 2.89 to 15.43" in sentences[0]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(tables.comparison(NumpyComparison(rows, OPENBLAS, tuple(sentences)), tmp_path))
    shown = console.export_text()
    assert "? 6.68" in shown
    assert "? 0.50" not in shown
    assert "NumPy's BLAS: OpenBLAS 0.3.31 Haswell, 2 threads, of NumPy 2.4" in shown
    assert f"look at: {sentences[0]}" in shown


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_says_which_blas_and_which_variable_chose_its_kernel(tmp_path, monkeypatch):
    """The variable acts when the library is loaded (test_the_blas_of_numpy_is_named...). The command sees it here."""
    write_logic(logic(gemm_type(), [{}], {(16, 24, 8): 0}).document, tmp_path / "logic.yaml")
    if (blas := numpy_blas()).name != "OpenBLAS":
        pytest.skip("this NumPy calls another BLAS")
    monkeypatch.setenv("OPENBLAS_CORETYPE", blas.kernel)
    found = invoke_json("compare", tmp_path)
    assert (found["peer"]["name"], found["peer"]["kernel"]) == ("OpenBLAS", blas.kernel)
    assert any(f"OPENBLAS_CORETYPE={blas.kernel}" in sentence for sentence in found["look_at"])
    assert documents.comparison(NumpyComparison((), OPENBLAS, ()))["peer"]["kernel"] == "Haswell"
