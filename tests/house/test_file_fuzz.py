"""Every kind of file that tunesmith reads, with a part removed or changed, cut short or scribbled over.

Whatever stands in it, the command that reads it does its work or says what is wrong where, within seconds.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
import shutil
import time
import warnings

import numpy as np
import pytest
import typer
import yaml

import tunesmith
from described import EXAMPLES, STENCIL, TARGET, document_of, type_of
from library_fakes import TYPES, logic, normal
from mutated_files import Kind, mutated
from random_benchmarks import benchmark
from random_stores import random_store
from stream_k_fakes import calibration
from tunesmith.cli.app import app
from tunesmith.formats.portblas.named_sets import SHIPPED
from tunesmith.kernels.custom import CustomKernel
from tunesmith.logic import dump
from tunesmith.logic.random.table import read_table
from tunesmith.models.stream_k.calibration_file import dump as dump_calibration
from tunesmith.models.stream_k.decision_models import DeviceCapacity
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, UserError
from tunesmith.session.tuning_file.file import read as read_tuning
from tuning_runs import FAKE

SECONDS = 5.0
"""Of the processor's time, so that a busy machine changes nothing."""

QUICK, THOROUGH = 20, 1000
"""Mutations of each kind of file in the normal suite and in a thorough run."""


def run(*arguments):
    """A command of the command line; its exit code does not matter."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(typer.Exit, SystemExit),
    ):
        app([str(argument) for argument in arguments], standalone_mode=False)


# --- what is read, and by whom ---------------------------------------------------------------------------------------


def as_yaml(tree):
    return str(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True))


def as_csv(rows):
    text = io.StringIO(newline="")
    cells = ((row if isinstance(row, list) else [row]) for row in rows) if isinstance(rows, list) else [[rows]]
    csv.writer(text).writerows([str(cell) for cell in row] for row in cells)
    return text.getvalue()


def read_csv(text):
    return list(csv.reader(io.StringIO(text)))


def used_logic(path):
    run("select", path, "--size", 64, 64, 64)
    run("select", path, "--size", 100, 7, 1, 3, "--json")
    with tunesmith.load(path) as library:
        library.says(33, 64, 65)
        library.matmul(normal(64, 64), normal(64, 64))


def shown_table(path):
    folder = path.parent / "run"
    random_store(folder)
    (folder / "tables" / "a").mkdir(parents=True, exist_ok=True)
    shutil.move(path, folder / "tables" / "a" / "01_Final.csv")
    run("show", folder)
    run("show", folder, "--json")


OBJECTIVES = ("geomean", "worst", "compat")


def selected(path):
    """For all objectives; the few files of the normal suite, in folders named by their seed, have one each, in turn."""
    seed = path.name if path.is_dir() else path.parent.name
    for objective in (OBJECTIVES[int(seed) % 3],) if seed.isdecimal() and int(seed) < QUICK else OBJECTIVES:
        out = path.parent / objective
        run("random", "select", path, "--objective", objective, "--out-dir", out, "--plot-out", out / "p.svg")
        run("random", "select", path, "--objective", objective, "--no-regressions", "--json")


def benchmarked(folder):
    path = folder / "gfx90a.json"
    path.write_text(GOOGLE)
    return path


def used_description(path):
    for file in EXAMPLES.glob("custom_stencil.*"):
        if file.name != path.name:
            shutil.copy(file, path.parent)
    kind, family, operation = type_of(path), CustomKernel(), OPERATIONS["Custom"]
    problem = Problem(kind, (33, 20)[: len(kind.indices)] + (1,) * (len(kind.indices) - 2))
    operation.flops(problem)
    operation.bytes(problem)
    operation.small(problem)
    operation.extents(kind)
    config = family.space(kind).defaults
    if not config or list(family.rejections(config, kind, TARGET)) + list(
        family.rejections_for(config, problem, TARGET)
    ):
        return
    family.modules(config, kind)
    family.plan(config, problem, TARGET)
    operation.reference(problem, operation.inputs(problem, np.random.default_rng(0)))


def listed(path):
    tuning = path.parent / "tuning.yaml"
    sizes = "{File: list.csv}"
    tuning.write_text(FAKE.replace("            - Exact: [32, 32, 32]\n", f"            - {sizes}\n"))
    run("plan", tuning, "--device", "fake:GPU:8", "--no-calibrate", "--max-size", 64)


def explained(path):
    run("stream-k", "explain", "--size", 512, 480, 1, 2048, "--tile", "128x128x64", "--calibration", path)
    run("stream-k", "explain", "--size", 512, 480, 1, 2048, "--tile", "128x128x64", "--calibration", path, "--json")


def generated(path):
    for mode in ("ours", "compat"):
        run("portblas", "generate", path, path.parent / "out.def", "--mode", mode)
    run("portblas", "configs", "--folder", path.parent)


RANDOM_TUNING = """
GlobalParameters: {Noise: 0.02, SamplingSeconds: 0.5}
BenchmarkProblems:
  - - OperationType: Random
      Generator: xorwow
      Distribution: normal
      ValueType: float
      Seed: 3
      StdDev: 2.0
    - ForkParameters:
        - BlockSize: [64, 256]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [4096]
"""

SHAPES = [(b, g) for b in (128, 256) for g in (512, 1024)]
GOOGLE = json.dumps(
    {
        "context": {"bytes": "536870912", "hdp_gcn_arch_name": "gfx90a:sramecc+"},
        "benchmarks": [
            benchmark(f"{generator}_{pair}_t{b}_b{g}", b + g / 7, bytes_per_second_low=1e9, bytes_per_second_high=1e15)
            for generator in ("xorwow", "philox4_32_10")
            for pair in ("uniform_float", "normal_double")
            for b, g in SHAPES
        ],
    }
)
PRIMBENCH = json.dumps(
    {
        "context": {"general": {"gpu": {"arch": "gfx942"}}, "settings": {"batch_window_size": 5}},
        "specializations": [
            {
                "name": "s",
                "meta": {
                    "engine": "xorwow",
                    "distribution": "normal",
                    "type": "double",
                    "cfg": {"threads": b, "blocks": g},
                },
                "bytes_per_second": 1e11 + b * g,
                "noise_percent": 1.5,
                "items": 1000,
                "bytes_per_item": 8,
            }
            for b, g in SHAPES
            for cfg in [{"threads": b, "blocks": g}]
        ],
    }
)
DEFAULTS = {"xorwow": {"block_size": 256, "grid_size": 512}, "own": {"block_size": 1, "grid_size": 1}}
WEIGHTS = {"uniform/float": 3, "xorwow/normal/double": 0.5}
WEIGHED = "distribution,type,weight,generator\nuniform,float,3,\nnormal,double,0.5,xorwow\n"
TABLE = {
    "tunesmith-random": 1,
    "architectures": {"sm_90": {"xorwow": {"shape": [256, 1024], "pairs": {"normal/float": [512, 2048]}}}},
}
FINAL = "M,N,K,LDD,TotalFlops,a,b\n64,64,64,,524288,12.5,\n96,64,32,128,393216,3,4e2\n"
LIST = "family,weight,m,n,k,batch,trans_a,trans_b\na,1,64,64,64,1,T,N\nb,2.5,32,48,16,1,T,N\n"


def weighed(path):
    run("random", "select", benchmarked(path.parent), "--objective", "weighted", "--weights", path)


def planned(path):
    run("plan", path, "--device", "fake:GPU:8", "--no-calibrate", "--max-size", 64)
    run("plan", path, "--device", "fake:GPU:8", "--no-calibrate", "--max-size", 64, "--json")


TREE = {"parse": json.loads, "write": json.dumps}
LINES = {"parse": yaml.safe_load, "write": as_yaml}
CELLS = {"parse": read_csv, "write": as_csv}
KINDS = {
    "tuning": Kind("tuning.yaml", FAKE, planned, **LINES),
    "tuning of random numbers": Kind("tuning.yaml", RANDOM_TUNING, lambda path: read_tuning(path, 64, None), **LINES),
    "logic": Kind("logic.yaml", dump(logic(TYPES[1]).document), used_logic, **LINES),
    "logic of a kernel of one's own": Kind(
        "logic.yaml",
        dump(document_of(type_of(EXAMPLES / STENCIL))),
        lambda path: run("select", path, "--size", 64, 64),
        **LINES,
    ),
    "google": Kind("gfx90a.json", GOOGLE, selected, **TREE),
    "primbench": Kind("prim.json", PRIMBENCH, selected, **TREE),
    "defaults": Kind(
        "config_defaults.json",
        json.dumps(DEFAULTS),
        lambda path: run("random", "select", benchmarked(path.parent), "--default-config", path.parent),
        **TREE,
    ),
    "weights": Kind("weights.json", json.dumps(WEIGHTS), weighed, **TREE),
    "weights as CSV": Kind("weights.csv", WEIGHED, weighed, **CELLS),
    "table": Kind("tunesmith_random.json", json.dumps(TABLE), read_table, **TREE),
    "calibration": Kind(
        "calibration.yaml", dump_calibration([calibration(DeviceCapacity(132, 2))]), explained, **LINES
    ),
    "portblas": Kind("own.json", (SHIPPED / "default.json").read_text(), generated, **TREE),
    "description": Kind(STENCIL, (EXAMPLES / STENCIL).read_text(), used_description, **LINES),
    "list": Kind("list.csv", LIST, listed, **CELLS),
    "final table": Kind("final.csv", FINAL, shown_table, **CELLS),
}


# --- what must be true -----------------------------------------------------------------------------------------------


def survives(use, path, what):
    """Done, or an error that says all three things; anything else fails with `what`, so that it can be made again."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            use(path)
    except UserError as error:
        if not all((error.location, error.what, error.remedy)):
            pytest.fail(f"{what}: says too little: {error}")
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    assert time.process_time() - began < SECONDS, what


def fuzz(name, folder, seeds):
    kind = KINDS[name]
    for seed in seeds:
        own = folder / str(seed)
        own.mkdir()
        (own / kind.name).write_bytes(mutated(kind, random.Random(f"{name} {seed}")))
        survives(kind.use, own / kind.name, f"{name}, seed {seed}")
        shutil.rmtree(own)


@pytest.mark.parametrize("name", KINDS)
def test_a_good_file_is_used(name, tmp_path):
    """Or else what follows would test nothing."""
    kind = KINDS[name]
    (tmp_path / kind.name).write_text(kind.text)
    kind.use(tmp_path / kind.name)


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_file_is_used_or_refused(name, tmp_path):
    fuzz(name, tmp_path, range(QUICK))


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", KINDS)
def test_a_thousand_changed_files_are_used_or_refused(name, tmp_path):
    fuzz(name, tmp_path, range(QUICK, THOROUGH))
