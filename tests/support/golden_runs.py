"""Whole commands whose documents and files are recorded in `golden/commands/`.

Those that tune do so in earnest on the fake device; the others as `golden_bench` has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

from golden_bench import compilers_named, nothing_measured
from portblas_fakes import TILES, fake, faulty
from portblas_fakes import tune as tune_like_portblas
from random_benchmarks import benchmarks, write
from stream_k_fakes import calibration
from tunesmith.cli.app import app
from tunesmith.models.stream_k.calibration_file import dump
from tunesmith.models.stream_k.decision_models import DeviceCapacity, MacroTile, Subject
from tunesmith.report.portblas import outcome as portblas_outcome
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.portblas.plan import PortBlasPlan
from tuning_runs import FAKE

DEVICE = ("--device", "fake:GPU:8")

FAILING = """
GlobalParameters: {CompileProcesses: 1, WarmUpSeconds: 0.01, SamplingSeconds: 0.02}
BenchmarkProblems:
  - - DataType: s
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      BenchmarkCommonParameters:
        - ProblemSizes:
            - Exact: [16, 16, 16]
        - VectorWidth: [1, 2]
      ForkParameters:
        - WorkGroup: [[8, 8, 1], [64, 32, 1]]
        - FakeFault: [none, wrong value]
      BenchmarkForkParameters:
        - LoopUnroll: [8, 16]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Range: [[16, 16, 32], 0, 0]
            - Exact: [16, 16, 16, 20, 20, 20, 20]
  - - {DataType: d, Batched: True, TransposeA: True}
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [33, 17, 2, 40]
LibraryLogic: {ScheduleName: pinned, ArchitectureName: fake}
"""
"""Failures, an illegal lineage, leading dimensions, a second problem type, names for the logic."""

SMALL_SET = {
    "local": [
        {
            "cache_line_size": [32],
            "work_item_sizes": [[2, 2], [4, 4]],
            "work_group_sizes": [[4, 4], [8, 8]],
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

SPEEDS = {
    "uniform/float": {(256, 1024): 100.0, (64, 64): 200.0, (128, 64): 105.0, (1, 1): 1.0},
    "normal/float": {(256, 1024): 100.0, (64, 64): 90.0, (128, 64): 105.0},
}
"""A regression, a shape that is missing somewhere, a distribution with a shape of its own."""

PRODUCTS = """family,m,n,k,batch,trans_a,trans_b
few,640,640,4096,1,N,T
few,1024,448,2048,1,N,N
batch,256,320,1024,3,T,N
wave,2048,2048,512,1,N,T
"""

Run = Callable[[Path], None]
"""What is done in an empty folder: what it leaves in `out`, and documents beside it, are recorded."""


def invoke(folder: Path, *words: object, name: str = "") -> None:
    """A command with `--json`; its document and exit code go into the folder."""
    done = CliRunner().invoke(app, [*map(str, words), "--json"], env={"COLUMNS": "160"})
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    document(folder, name or str(words[0]), json.loads(done.stdout), done.exit_code)


def document(folder: Path, name: str, printed: object, exit_code: int) -> None:
    text = json.dumps({"exit code": exit_code, "document": printed}, indent=1)
    (folder / f"{name}.json").write_text(f"{text}\n")


def tuning_file(folder: Path, text: str) -> Path:
    path = folder / "tuning.yaml"
    path.write_text(text)
    return path


def planned(folder: Path) -> None:
    path = tuning_file(folder, FAKE)
    invoke(folder, "plan", path, *DEVICE, "--no-calibrate")
    invoke(folder, "plan", path, *DEVICE, name="calibrated")
    path = tuning_file(folder, FAILING)
    invoke(folder, "plan", path, *DEVICE, "--no-calibrate", "--max-size", 24, name="clamped")


def tuned(folder: Path) -> None:
    words = ("tune", tuning_file(folder, FAKE), "-o", folder / "out", *DEVICE)
    invoke(folder, *words)
    invoke(folder, *words, name="again")


def tuned_with_failures(folder: Path) -> None:
    """And what `show` and `select` say of it."""
    out = folder / "out"
    invoke(folder, "tune", tuning_file(folder, FAILING), "-o", out, *DEVICE)
    invoke(folder, "show", out)
    select = ("select", out / "logic", "--size")
    invoke(folder, *select, 33, 17, 2, 40, "--type", "Cijk_Alik_Bjlk_DB", name="select_exact")
    invoke(folder, *select, 24, 16, 30, "--type", "Cij_Aik_Bjk_SB", name="select_near")


def portblas_outcome_in(out: Path, guided: bool) -> RunOutcome[PortBlasPlan]:
    task = fake(listed=(*TILES[:: 1 if guided else 4], faulty("wrong value")), guided=guided)
    with compilers_named("BLAS"):
        return tune_like_portblas(task, out)


def portblas_on_fake(guided: bool) -> Run:
    def run(folder: Path) -> None:
        outcome = portblas_outcome_in(folder / "out", guided)
        document(folder, "tune", portblas_outcome.document(outcome), int(bool(outcome.look_at)))

    return run


def portblas_tuned(folder: Path) -> None:
    """With kernels of portBLAS's: all transpositions, then a batch inside, which the same header is to serve."""
    small = _small_set(folder)
    more = ("--config", small, "--device", "GPU", "-o", folder / "out")
    with nothing_measured():
        invoke(folder, "portblas", "tune", "all", 64, 48, 32, 1, 6, *more, name="all")
        invoke(folder, "portblas", "tune", "nt", 8, 8, 8, 64, 6, "interleaved", *more, "--vendor", name="interleaved")


def portblas_listed(folder: Path) -> None:
    small, out = _small_set(folder), folder / "out"
    words = ("portblas", "generate", small)
    invoke(folder, *words, out / "ours.def", "--source-dir", out, name="ours")
    invoke(folder, *words, out / "compat.def", "--mode", "compat", name="compat")
    invoke(folder, "portblas", "configs", "--folder", small.parent, name="configs")


def _small_set(folder: Path) -> Path:
    path = folder / "sets" / "small.json"
    path.parent.mkdir()
    path.write_text(json.dumps(SMALL_SET))
    return path


def random_selected(folder: Path) -> None:
    measured = folder / "measured"
    measured.mkdir()
    files = [
        write(measured / f"{generator}.json", benchmarks(generator, SPEEDS))
        for generator in ("philox4_32_10", "xorwow")
    ]
    more = ("--out-dir", folder / "out", "--plot-out", folder / "out" / "plot.svg")
    invoke(folder, "random", "select", *files, *more, name="select")
    invoke(folder, "random", "grid-sizes", *DEVICE, name="grid-sizes")


def random_tuned(folder: Path) -> None:
    which = ("--generators", "philox4_32_10,xorwow,sobol32", "--distributions", "uniform,normal", "--types", "float")
    shapes = ("--block-sizes", "64,256", "--grid-sizes", "64,128", "--min-threads", 1, "--bytes", "1MiB,64KiB")
    words = ("random", "tune", *which, *shapes, "--device", "GPU", "-o", folder / "out")
    with nothing_measured():
        invoke(folder, *words, name="tune")
        invoke(folder, *words, name="again")


def explained(folder: Path) -> None:
    path, room = folder / "h200.yaml", DeviceCapacity(132)
    subjects = [
        Subject("CUDA", "H200", "sm_90", "SomeGemm", "s", MacroTile(128, 128, depth), room) for depth in (32, 64)
    ]
    path.write_text(dump(calibration(room, subject) for subject in subjects))
    words = ("stream-k", "explain", "--size", 17920, 128, 1, 16384, "--tile")
    invoke(folder, *words, "128x128x64", "--calibration", path, name="calibrated")
    invoke(folder, *words, "128x256x64", "--compute-units", 132, name="portable")


def calibrated(folder: Path) -> None:
    (folder / "out").mkdir()
    words = ("calibrate", "stream-k", "s", "--tile", "64x64", "--device", "GPU")
    with nothing_measured():
        invoke(folder, *words, "-o", folder / "out" / "calibration.yaml")
        invoke(folder, *words, "-o", folder / "out" / "calibration.yaml", name="again")


def swept(folder: Path) -> None:
    path = folder / "products.csv"
    path.write_text(PRODUCTS)
    words = ("stream-k", "sweep", path, "--tile", "64x64x8", "--grids", 3, "--device", "GPU", "-o", folder / "out")
    with nothing_measured():
        invoke(folder, *words, name="sweep")
        invoke(folder, *words, "--refit", name="refit")
        invoke(folder, *words, "--family", "few", "--family", "wave", name="again")


COMMANDS: dict[str, Run] = {
    "plan": planned,
    "tune": tuned,
    "tune_failing": tuned_with_failures,
    "portblas_fake": portblas_on_fake(guided=False),
    "portblas_guided": portblas_on_fake(guided=True),
    "portblas_tune": portblas_tuned,
    "portblas_lists": portblas_listed,
    "random_select": random_selected,
    "random_tune": random_tuned,
    "stream_k_explain": explained,
    "stream_k_calibrate": calibrated,
    "stream_k_sweep": swept,
}
"""By the folder of `golden/commands/` with what they left."""
