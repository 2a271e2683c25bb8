"""Stream-K at run time: what a logic leaves open is decided when a problem is launched, by what is known of the device
and by what the environment asks for, and the result is right."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace

import numpy as np
import pytest

from library_fakes import TARGET
from library_fakes import library as fake_library
from library_fakes import logic as fake_logic
from opencl_runner import opencl_device
from stream_k_fakes import calibration
from tunesmith.kernels import KERNELS
from tunesmith.library import Library, load
from tunesmith.library.launch._stream_k import StreamK
from tunesmith.logic import Choice, Document, Logic, NamedSolution, Origin, Rule, SizeRow
from tunesmith.models.stream_k.calibration_file import calibration_files, dump
from tunesmith.models.stream_k.decision_models import (
    CalibratedModel,
    DeviceCapacity,
    MacroTile,
    PortableModel,
    Subject,
    data_type_of,
)
from tunesmith.models.stream_k.launch_decisions import CALIBRATION, LaunchDecisions
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Estimate, Problem, Solution, UserError
from tunesmith.session.tuning_file import tune
from tunesmith.store import FILE_NAME, Store

FAMILY = KERNELS["RegisterGemm"]
SMALL = {"WorkGroup": (2, 2, 1), "ThreadTile": (8, 3), "VectorWidth": 4, "LoopUnroll": 4}
TILE = MacroTile(16, 6, 4)
TYPE = gemm_type("s", transpose_b=False)
MEASURED = (32, 12, 16)
SIZES = (37, 29, 61)
"""M, N, K of the kernel's problem: 3 x 5 tiles of 16 iterations."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("FULL_TILES", "FIXED_GRID", "CALIBRATION"):
        monkeypatch.delenv(f"TUNESMITH_STREAMK_{name}", raising=False)
    return tmp_path


def opened(folder, launches, floor=False, **tuned):
    """A library whose only solution has these parameters and won at the measured size."""
    solution = Solution(TYPE, FAMILY.name, FAMILY.space(TYPE).defaults | SMALL | tuned)
    row = SizeRow(MEASURED, (), 0, Estimate(1e-3, 0.9e-3, 1.1e-3, 7), 1.0)
    device = opencl_device()
    origin = Origin.of(device.target, "its own", "0.1.0", "2026-11-20T12:00:00Z")
    made = Logic(Document(origin, TYPE, (NamedSolution("S0", solution),), (row,), 0))
    return Library([(folder / "logic.yaml", made)], device=device, launched=launches.append, floor=floor)


def multiply(library, sizes=SIZES):
    """A product of column-major arrays, so that M and N are the kernel's, against NumPy in double precision."""
    m, n, k = sizes
    random = np.random.default_rng(sum(sizes))
    a = np.asfortranarray(random.standard_normal((m, k), np.float32))
    b = np.asfortranarray(random.standard_normal((k, n), np.float32))
    out = np.full((m, n), np.nan, np.float32, order="F")
    library.matmul(a, b, out=out)
    wide_a, wide_b = a.astype(float), b.astype(float)
    bound = np.abs(wide_a) @ np.abs(wide_b) * 2 * k**0.5 * np.finfo(np.float32).eps
    assert (np.abs(out - wide_a @ wide_b) <= bound).all()


def launched(launches):
    """The grid of the first launch, and the two parameters."""
    config = launches.solution.configuration
    return launches.plan.steps[0].grid, config["StreamKGrid"], config["StreamKFullTiles"]


def room():
    return DeviceCapacity(opencl_device().target.compute_units)


def calibrated_on_this_device(peer=1.0, **where):
    """Made-up costs for the tile of these tests; `peer` seconds for each work-group that meets another in a tile."""
    target = opencl_device().target
    subject = Subject.of(target, FAMILY.name, data_type_of(TYPE), TILE, where.get("room", room()))
    made = calibration(subject.room, subject, driver=target.driver)
    return replace(made, costs=(*made.costs[:6], replace(made.costs[6], adjusted=peer), *made.costs[7:]))


# --- decided --------------------------------------------------------------------------------------------------------


@pytest.mark.opencl
def test_what_is_left_open_goes_by_rules_of_thumb_which_is_said_once(folder):
    launches = []
    with opened(folder, launches, StreamKGrid=-1) as library, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for sizes in (SIZES, (16, 6, 4000), MEASURED):
            multiply(library, sizes)
    assert [str(warning.message).partition(":")[0] for warning in warned] == [
        f"nothing is calibrated for RegisterGemm s 16x6x4 on {opencl_device().target.name}"
    ]
    for record in launches:
        m, n, k = record.problem.sizes
        choice = PortableModel(room()).choose(TILE.work(m, n, 1, k))
        assert record.solution.configuration["StreamKGrid"] == (choice.grid if choice.streamed else 0)
        assert record.choice.solution.configuration["StreamKGrid"] == -1, "the choice is the logic's"


@pytest.mark.opencl
def test_a_calibration_beside_the_logic_is_asked(folder):
    """Expensive peers leave a long tile to one work-group; rules of thumb would split the tile."""
    long = (16, 6, 4000)
    (folder / "stream_k.yaml").write_text(dump([calibrated_on_this_device(peer=1.0)]))
    launches = []
    with opened(folder, launches, StreamKGrid=-1) as library, warnings.catch_warnings():
        warnings.simplefilter("error")
        multiply(library, long)
    if room().groups > 1:
        assert PortableModel(room()).choose(TILE.work(16, 6, 1, 4000)).streamed, "else the test says nothing"
    assert launched(launches[0])[1:] == (0, 0)


@pytest.mark.opencl
def test_another_versions_calibration_is_passed_over_and_that_is_said(folder, monkeypatch):
    """A calibration that the environment names must be readable."""
    other = folder / "stream_k.yaml"
    other.write_text(dump([calibrated_on_this_device()]).replace("tunesmith-stream-k: 2", "tunesmith-stream-k: 1"))
    with opened(folder, [], StreamKGrid=-1) as library, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        multiply(library, SIZES)
    caught = [str(warning.message) for warning in warned]
    assert [sentence for sentence in caught if sentence.startswith(f"{other}:") and "calibrate again" in sentence]
    assert [sentence for sentence in caught if sentence.startswith("nothing is calibrated for")]
    monkeypatch.setenv(CALIBRATION, str(other))
    refused = pytest.raises(UserError, match="format 1, this tunesmith reads 2")
    with opened(folder, [], StreamKGrid=-1) as library, warnings.catch_warnings(action="ignore"), refused:
        multiply(library, SIZES)


@pytest.mark.opencl
def test_a_calibration_that_a_variable_names_goes_before_it(folder, monkeypatch):
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / "stream_k.yaml").write_text(dump([calibrated_on_this_device(peer=1.0)]))
    cheap = calibrated_on_this_device(peer=0.0)
    (elsewhere / "mine.yaml").write_text(dump([cheap]))
    monkeypatch.setenv(CALIBRATION, str(elsewhere / "mine.yaml"))
    launches = []
    with opened(folder, launches, StreamKGrid=-1) as library:
        multiply(library, (16, 6, 4000))
    choice = CalibratedModel(cheap, parts=()).choose(TILE.work(16, 6, 1, 4000))
    assert launches[0].solution.configuration["StreamKGrid"] == (choice.grid if choice.streamed else 0)
    if room().groups > 1:
        assert choice.streamed, "else the test says nothing"


@pytest.mark.opencl
def test_a_calibration_of_part_of_the_device_is_another_devices(folder):
    if room().groups == 1:
        pytest.skip("a device with one compute unit has no part")
    (folder / "part.yaml").write_text(dump([calibrated_on_this_device(room=DeviceCapacity(room().groups - 1))]))
    with opened(folder, [], StreamKGrid=-1) as library, pytest.warns(UserWarning, match="nothing is calibrated"):
        multiply(library)


@pytest.mark.opencl
def test_a_grid_that_was_measured_stays_at_its_size_alone(folder):
    launches = []
    (folder / "stream_k.yaml").write_text(dump([calibrated_on_this_device(peer=1.0)]))
    with opened(folder, launches, StreamKGrid=7, StreamKFullTiles=1) as library:
        multiply(library, MEASURED)
        multiply(library, (16, 6, 4000))
    assert launched(launches[0]) == ((7, 1, 1), 7, 1)
    assert launched(launches[1])[1:] == (0, 0)


@pytest.mark.opencl
def test_without_a_grid_nothing_is_decided(folder, monkeypatch):
    monkeypatch.setattr(LaunchDecisions, "decide", lambda *what: pytest.fail("asked for a decision"))
    monkeypatch.setenv("TUNESMITH_STREAMK_FULL_TILES", "-1")
    launches = []
    with opened(folder, launches) as library:
        multiply(library)
    assert launched(launches[0])[1:] == (0, 0)


@pytest.mark.opencl
@pytest.mark.filterwarnings("ignore:nothing is calibrated")
def test_a_problem_is_decided_once(folder, monkeypatch):
    asked = []
    decide = LaunchDecisions.decide
    monkeypatch.setattr(LaunchDecisions, "decide", lambda self, *what: asked.append(what) or decide(self, *what))
    with opened(folder, [], StreamKGrid=-1) as library:
        for _ in range(3):
            multiply(library)
    assert len(asked) == 1


# --- overridden -----------------------------------------------------------------------------------------------------


@pytest.mark.opencl
@pytest.mark.filterwarnings("ignore:nothing is calibrated")
@pytest.mark.parametrize("tuned", [-1, 0, 7], ids=["left open", "whole tiles", "tuned"])
@pytest.mark.parametrize("full_tiles", [0, 1, 2])
def test_variables_change_the_grid_and_the_full_tiles(folder, monkeypatch, tuned, full_tiles):
    """15 tiles on 6 work-groups: the remainder of 3 is split, alone or with one or two waves."""
    monkeypatch.setenv("TUNESMITH_STREAMK_FIXED_GRID", "6")
    monkeypatch.setenv("TENSILE_STREAMK_FULL_TILES", str(full_tiles))
    launches = []
    with opened(folder, launches, StreamKGrid=tuned) as library:
        multiply(library)
        multiply(library, MEASURED)
    assert launched(launches[0]) == ((6, 1, 1), 6, full_tiles)
    assert launched(launches[1])[0] == (6, 1, 1), "also at the size that was measured"


@pytest.mark.opencl
@pytest.mark.filterwarnings("ignore:nothing is calibrated")
def test_a_grid_alone_is_launched_though_nothing_is_split(folder, monkeypatch):
    """14 of the last 15 work-groups have a tile: rules of thumb split none, and the grid is 16 all the same."""
    monkeypatch.setenv("TUNESMITH_STREAMK_FIXED_GRID", "16")
    sizes = (16, 6 * 31, 64)
    assert not PortableModel(DeviceCapacity(16)).choose(TILE.work(*sizes[:2], 1, 64)).streamed
    launches = []
    with opened(folder, launches, StreamKGrid=-1) as library:
        multiply(library, sizes)
    assert launched(launches[0]) == ((16, 1, 1), 16, -1)
    assert len(launches[0].plan.steps) == 1, "no sums to add"


@pytest.mark.opencl
@pytest.mark.filterwarnings("ignore:nothing is calibrated")
@pytest.mark.parametrize("tuned", [-1, 0])
def test_a_grid_that_a_variable_asks_for_is_launched_though_the_blas_would_be_chosen(folder, monkeypatch, tuned):
    for launches in ([], []):
        with opened(folder, launches, floor=True, StreamKGrid=tuned) as library:
            multiply(library)
        asked = "TUNESMITH_STREAMK_FIXED_GRID" in os.environ
        assert launches[0].choice.solution.kernel == (FAMILY.name if asked else "VendorBlas")
        monkeypatch.setenv("TUNESMITH_STREAMK_FIXED_GRID", "6")


@pytest.mark.opencl
@pytest.mark.parametrize("tuned", [-1, 0])
def test_a_value_that_means_nothing_stops_the_first_use(folder, monkeypatch, tuned):
    monkeypatch.setenv("TUNESMITH_STREAMK_FULL_TILES", "many")
    with opened(folder, [], StreamKGrid=tuned) as library:
        for _ in range(2):
            with pytest.raises(UserError, match="TUNESMITH_STREAMK_FULL_TILES: 'many' is no whole number"):
                multiply(library)


@pytest.mark.opencl
def test_a_calibration_that_is_not_there_stops_the_first_use(folder, monkeypatch):
    monkeypatch.setenv(CALIBRATION, str(folder / "gone.yaml"))
    with opened(folder, [], StreamKGrid=-1) as library, pytest.raises(UserError, match=r"gone\.yaml: .*cannot be read"):
        multiply(library)


# --- tuned ----------------------------------------------------------------------------------------------------------

LEFT_OPEN = """
GlobalParameters: {WarmUpSeconds: 0.001, SamplingSeconds: 0.005}
BenchmarkProblems:
  - - {DataType: s, TransposeB: False}
    - InitialSolutionParameters:
        - {LocalMemory: [False], WorkGroup: [[2, 2, 1]], ThreadTile: [[8, 3]], VectorWidth: [4], LoopUnroll: [4]}
      ForkParameters:
        - StreamKGrid: [-1]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [16, 6, 4000]
"""


@pytest.mark.opencl
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:nothing is calibrated")
def test_a_tuning_file_may_leave_it_open(folder, monkeypatch):
    """The decided grid is measured, and the logic leaves the grid open again."""
    monkeypatch.setenv("TUNESMITH_STREAMK_FIXED_GRID", "5")
    file = folder / "open.yaml"
    file.write_text(LEFT_OPEN)
    done = tune(file, folder / "run", device="OpenCL")
    assert done.look_at == []
    with Store.read(folder / "run" / FILE_NAME) as store:
        grids = {entry.solution.configuration["StreamKGrid"] for entry in store.entries()}
    assert grids == {5}
    launches = []
    with load(folder / "run", launched=launches.append, floor=False) as library:
        multiply(library, (16, 6, 4000))
    assert launches[0].choice.solution.configuration["StreamKGrid"] == -1
    assert launched(launches[0])[0] == (5, 1, 1)


# --- without a device -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["DataParallel", "Persistent", "SplitK"])
def test_a_variable_without_effect_on_a_compiled_schedule_is_said_once(folder, monkeypatch, schedule):
    monkeypatch.setenv("TENSILE_STREAMK_FIXED_GRID", "6")
    tuned = Solution(TYPE, "TritonGemm", KERNELS["TritonGemm"].space(TYPE).defaults | {"Schedule": schedule})
    choice = Choice(tuned, "S0", Rule.EXACT)
    stream_k = StreamK(TARGET, [])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert stream_k.solutions(choice, Problem(TYPE, SIZES)) == (tuned,)
    assert [str(warning.message) for warning in caught] == [
        f"TENSILE_STREAMK_FIXED_GRID has no effect on a TritonGemm of {TYPE.name} with Schedule: {schedule}: "
        "tune it with Schedule: StreamK, or unset the variable"
    ]


def test_families_that_split_no_tiles_are_left_alone(folder, monkeypatch):
    monkeypatch.setenv("TUNESMITH_STREAMK_FIXED_GRID", "nonsense")
    with fake_library(fake_logic(gemm_type())) as library:
        a = np.ones((4, 4), np.float32)
        assert (library.matmul(a, a) == 4).all()


def test_calibrations_are_told_from_other_files(tmp_path):
    (tmp_path / "a.yaml").write_text("tunesmith-logic: 1\n")
    (tmp_path / "b.yml").write_text(dump([calibration(DeviceCapacity(8))]))
    (tmp_path / "c.txt").write_text(dump([calibration(DeviceCapacity(8))]))
    assert calibration_files(tmp_path) == [tmp_path / "b.yml"]


def test_of_several_occupancies_the_largest_is_asked():
    from tunesmith.models.stream_k.decision_models import Calibrations

    rooms = [
        DeviceCapacity(TARGET.compute_units),
        DeviceCapacity(TARGET.compute_units, 3),
        DeviceCapacity(TARGET.compute_units, 2),
        DeviceCapacity(1, 9),
    ]
    subjects = [Subject.of(TARGET, "SomeGemm", "s", MacroTile(64, 64, 8), room) for room in rooms]
    known = Calibrations(calibration(subject.room, subject) for subject in subjects)
    assert known.widest(subjects[0]).room == DeviceCapacity(TARGET.compute_units, 3)
    assert known.widest(replace(subjects[0], data_type="d")).room == DeviceCapacity(TARGET.compute_units)
