"""The keys of `--json` are those that docs/json.md explains, for every command."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import choice_machine
from few_trees import few_trees
from portblas_fakes import fake, faulty
from portblas_fakes import tune as tune_like_portblas
from random_benchmarks import rows
from stream_k_fakes import calibration
from tensile_files import SIZE_GROUPS
from tensile_logics import list_form, problem_type, solution, written
from tuned_samples import tensile_table
from tunesmith import session
from tunesmith.bench import Drift
from tunesmith.cli.app import COMMANDS as OWN_COMMANDS
from tunesmith.cli.app import GROUPS
from tunesmith.devices import FoundDevice
from tunesmith.devices.fake import fake_target
from tunesmith.formats.portblas.parameter_files import RuleSet
from tunesmith.kernels import KERNELS
from tunesmith.library import load
from tunesmith.logic.random.choice import choose_shapes
from tunesmith.models.choice.fit.fitting import fit_choice
from tunesmith.models.intensity.policies import POLICIES
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.models.roofline.measured import MeasuredRoofline
from tunesmith.models.stream_k.decision_models import DeviceCapacity, StreamKChoice, TiledProduct
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import CompiledFacts, Estimate, Measurement, Outcome, Problem, Rejection
from tunesmith.report import documents, imported
from tunesmith.report.heuristics import choice as choice_report
from tunesmith.report.heuristics import fitted as heuristics
from tunesmith.report.heuristics import lists as products
from tunesmith.report.heuristics import policies
from tunesmith.report.library_logic import pages as logic_pages
from tunesmith.report.portblas import lists as portblas_lists
from tunesmith.report.portblas import outcome as portblas_outcome
from tunesmith.report.random import choice as random_choice
from tunesmith.report.random import tuned as random_tuned
from tunesmith.report.roofline import tables as roofline
from tunesmith.report.store import tables as stores
from tunesmith.report.stream_k import explained as stream_k
from tunesmith.report.stream_k import sweep as stream_k_sweep
from tunesmith.session.frame.many_devices import DeviceShare
from tunesmith.session.frame.record import RunOutcome as Done
from tunesmith.session.heuristics.audit import audit_heuristics
from tunesmith.session.heuristics.design import WantedProducts, write_design
from tunesmith.session.heuristics.entrants import entrants
from tunesmith.session.heuristics.fit import FitMethod, FitTask, fit_heuristic
from tunesmith.session.heuristics.fit_choice import WrittenChoice
from tunesmith.session.heuristics.matrices import JudgedSubject, RepeatSpread
from tunesmith.session.heuristics.plans import WrittenPlans
from tunesmith.session.heuristics.sources import SourceTask
from tunesmith.session.heuristics.verdicts import judged
from tunesmith.session.intensity.characterize import CharacterizeTask, characterize
from tunesmith.session.library_logic.choice import tensile_choice
from tunesmith.session.library_logic.export import exported
from tunesmith.session.library_logic.stored import logic_of_store
from tunesmith.session.library_logic.summary import summary_of
from tunesmith.session.portblas.generate import generate
from tunesmith.session.portblas.sets import listed_sets
from tunesmith.session.random.compile import ProgramCompilation
from tunesmith.session.random.select import SelectedShapes
from tunesmith.session.stream_k.explain import ExplainTask, explain_stream_k
from tunesmith.session.stream_k.kernels import TileFilter
from tunesmith.session.stream_k.refit import Refit
from tunesmith.session.stream_k.swept import Swept
from tunesmith.session.tuning_file import NumpyComparison, SizeComparison
from tunesmith.session.tuning_file.compare import PeerRatio
from tunesmith.session.tuning_file.summary import MeasuringDevice
from tunesmith.store import CopyReport, Store, StoreLocation, store_named
from tunesmith.toolchains.blas import LoadedBlas
from tuning_runs import fake_file

COMMANDS = (
    # `worker` prints no facts.
    *(command for command in OWN_COMMANDS if command != "worker"),
    *(f"{group} {command}" for group, (_, commands) in GROUPS.items() for command in commands),
    "random tune --arch",
    "select --logic",
    "heuristics fit --method choice",
)
RUNS = (
    "tune",
    "random tune",
    "random tune --arch",
    "portblas tune",
    "calibrate stream-k",
    "calibrate roofline",
    "stream-k sweep",
    "heuristics judge",
)
"""Commands whose JSON begins with the keys of every run."""
PAGE = Path(__file__).parents[2] / "docs" / "json.md"

TUNING = """
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
"""
"""Something of everything: winners, a failure, an illegal lineage, leading dimensions."""
THEIRS = f"""{TUNING.replace("- FakeFault", "- StaggerU: [0, 32]" + chr(10) + "        - FakeFault")}
  - - DataType: z
    - ForkParameters: [{{DepthU: [8, 16]}}]
"""
"""The same with signs of Tensile."""


SHARES = (DeviceShare("CUDA:1@a", 0.9, 7, 1.01),)
MEASURING = (MeasuringDevice("CUDA:1@a", 7, (Problem(gemm_type(), (1, 1, 1)),)),)


@pytest.fixture(scope="module")
def documented():
    """For each command, every key on the page, including keys of the tables that the page refers to."""
    found: dict[str, set[str]] = {}
    for section in re.split(r"^## `tunesmith ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        command, _, text = section.partition("`")
        found[command] = set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE))
    head = found.pop("COMMAND")
    for command in RUNS:
        assert not found[command] & head, "what every run has is explained once"
        found[command] |= head
    found["show"] |= {f"logic[].{key}" for key in found["tune"] if key.startswith("winners[].")}
    return found


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """For each command, a document that it prints."""
    folder = tmp_path_factory.mktemp("run")
    file, theirs, device = fake_file(folder, TUNING), fake_file(folder, THEIRS, "theirs.yaml"), "fake:GPU:8"
    imported_file = session.import_file(fake_file(folder, SIZE_GROUPS, "old.yaml"), folder / "new.yaml")
    done = session.tune(file, folder / "run", device=device)
    done.health, done.devices = {"clock_mhz_least": 1980}, SHARES
    with load(folder / "run") as library:
        choice = library.select(16, 16, 16)
    time = Estimate(1.0, 1.0, 1.0, 7)
    compared = SizeComparison(Problem(gemm_type(), (1, 1, 1)), 2.0, "S", "exact", PeerRatio(time, time, 1.0, 1.0, 1.0))
    return {
        "devices": documents.devices([FoundDevice("it", fake_target()), FoundDevice("other", problem="gone")]),
        "plan": documents.plan(session.plan(theirs, device=device, calibrate=False)),
        "tune": documents.outcome(done) | {"left_out": {"a constraint": 1}},
        "show": documents.summary(replace(session.summarise(done.folder), devices=MEASURING)),
        "store copy": stores.copied_document(StoreLocation(folder), StoreLocation(folder), CopyReport()),
        "store show": _counted(done.folder),
        "select": documents.choice((16, 16, 16), choice),
        "select --logic": _tensile_answer(folder),
        "logic show": logic_pages.summary_document(summary_of(written(folder, _tensile_logic()))),
        "logic build": logic_pages.built_document(folder, logic_of_store(str(done.folder))),
        "logic export": logic_pages.export_document(exported(folder / "run", folder / "exported.yaml")),
        "compare": documents.comparison(NumpyComparison((compared,), LoadedBlas("BLAS", "", "", 2, "NumPy"), ())),
        "import": imported.outcome_document(imported_file),
        "characterize": roofline.characterized_document(characterize(_listed(folder))),
        "random tune": random_tuned.tuned_document(_done(folder, selection=choose_shapes(_random_rows()))),
        "random tune --arch": random_tuned.compiled_document(_compiled(folder)),
        "random select": random_choice.document(SelectedShapes(choose_shapes(_random_rows()), [])),
        "random grid-sizes": random_choice.grids(132, None, [128]),
        "portblas generate": portblas_lists.generated_document(generate("default", RuleSet.OURS, source=str)),
        "portblas tune": portblas_outcome.document(_portblas_outcome(folder)),
        "portblas configs": portblas_lists.sets_document(listed_sets((), RuleSet.OURS)),
        "calibrate stream-k": stream_k.calibrated_document(_done(folder, made=[calibration(DeviceCapacity(8))])),
        "calibrate roofline": roofline.measured_document(_done(folder, made=[ROOFLINE])),
        "stream-k explain": stream_k.explained_document(explain_stream_k(QUESTION, {})),
        "stream-k sweep": stream_k_sweep.document(_swept(folder)),
        "heuristics fit": heuristics.fitted_document(_fitted(folder)),
        "heuristics fit --method choice": choice_report.fitted_document(_fitted_choice(folder)),
        "heuristics audit": heuristics.audited_document(audit_heuristics(SourceTask((tensile_table(folder),)))),
        "heuristics explain": _policy_explained(),
        "heuristics design": products.written_document(write_design(folder / "design.csv", WantedProducts(4, 1))),
        "heuristics plans": products.planned_document(WrittenPlans((), 1, folder / "plans.csv")),
        "heuristics learn": products.learned_document(write_design(folder / "next.csv", WantedProducts(4, 1))),
        "heuristics judge": policies.judged_document(_judged(folder)),
    }


def _fitted_choice(folder):
    matrix = choice_machine.matrix(12)
    with few_trees(times=3):
        fit = fit_choice(matrix, choice_machine.TARGET, "bfloat16", ("run",), ("0", "2026-01-02"))
    subject = JudgedSubject(choice_machine.TARGET, "bfloat16", matrix, "families", RepeatSpread(0, 1.0, 0.0), 8.0)
    return WrittenChoice(fit, subject, folder / "choice.yaml", ())


def _counted(folder):
    with Store.read(store_named(str(folder))) as store:
        return stores.counted_document(store.location, store.devices(), store.runs())


def _tensile_logic():
    """A solution that may not run most sizes, and leading dimensions."""
    made = [solution(0, problem_type(), AssertFree0ElementMultiple=64), solution(1, problem_type())]
    return list_form(made, [([8, 8, 1, 8], [0, 1.0]), ([9, 9, 1, 9, 16, 16, 16, 16], [1, 1.0])])


def _tensile_answer(folder):
    return logic_pages.answer_document(tensile_choice(written(folder, _tensile_logic()), (8, 8, 1, 8)))


def _listed(folder):
    (folder / "gemms.csv").write_text("m,n,k\n16,16,16\n")
    return CharacterizeTask(folder / "gemms.csv", chip="MI300X")


def _done(folder, **plan):
    """A run with something of everything in its head; `plan` is what the command's own keys are about."""
    done = Done(SimpleNamespace(**plan), fake_target(), folder, health={"clock_mhz_least": 1980}, devices=SHARES)
    done.ledger.failures["key"] = "wrong result: wrong value"
    done.drift = Drift(1.5, True)
    return done


def _portblas_outcome(folder):
    """A winner, and a candidate that does not run."""
    outcome = tune_like_portblas(fake(listed=(faulty("wrong value"),)), folder / "portblas")
    outcome.health, outcome.devices = {"clock_mhz_least": 1980}, SHARES
    outcome.drift = Drift(1.0, False)
    return outcome


ROOFLINE = MeasuredRoofline("CUDA", "a GPU", "sm_90", "1", "b", 1e15, "GEMM", 4e12, "a copy", "2026-01-01")


def _policy_explained():
    problem, target = Problem(gemm_type(), (64, 64, 64)), known_target("sm_90")
    answer = POLICIES["latency"].choose(problem, target, KERNELS["CudaSimtGemm"])
    return policies.explained_document(answer, problem, target)


QUESTION = ExplainTask((100, 100, 1, 100), TileFilter(16, 16, 8), compute_units=8)


def _swept(folder):
    """One product, where the model missed the best; and a calibration that has learnt from it."""
    fitted = calibration(DeviceCapacity(8))
    times = {StreamKChoice(8): Estimate(2.0, 2.0, 2.0, 7), StreamKChoice(8, 1): Estimate(1.0, 1.0, 1.0, 7)}
    product = Problem(gemm_type(transpose_b=False), (9, 9, 9))
    swept = Swept(ListedGemm(9, 9, 9), product, TiledProduct(9, 9, 64), {"calibrated": StreamKChoice(8)}, times, times)
    refit, subject = Refit(fitted, fitted, folder / "c.yaml", "", 1), fitted.subject
    return _done(
        folder, subject=subject, room=subject.room, judged="calibrated", products=1, swept=[swept], refit=refit
    )


def _fitted(folder):
    """Cut points with their rules, and the lines of the other method beside them."""
    source, out = SourceTask((tensile_table(folder),)), folder / "heuristic.yaml"
    made = fit_heuristic(FitTask(source, out, metric="mnk", buckets=3))
    study = fit_heuristic(FitTask(source, folder / "study.yaml", FitMethod.PERCENTILE_R2))
    return replace(made, fit=replace(made.fit, percentiles=study.fit.percentiles))


def _judged(folder):
    """A policy that ranks, on a problem; and one whose choice did not run."""
    target = known_target("x86-64")
    problem, kernel = Problem(gemm_type(), (64, 64, 64)), "RegisterGemm"
    ranked = {entrant: entrant.ranked(problem, target, 5) for entrant in entrants(("latency",), kernels=(kernel,))}
    (chosen, *_), absent = next(iter(ranked.values())), entrants(("trip-count",), kernels=("TiledGemm",))[0]
    matrix = TimeMatrix((problem,), ("a family",), (chosen,), np.array([[1.0]]))
    spread = RepeatSpread(1, 1.1, 0.01)
    subject = JudgedSubject(target, "float32", matrix, "products of equal M and N", spread, 1.0)
    guesses = {**{entrant: [found] for entrant, found in ranked.items()}, absent: [()]}
    return _done(folder, judgements=(judged(subject, matrix, spread, guesses, is_measured=False),))


def _compiled(folder):
    programs = [
        ProgramCompilation("xorwow", "a", (CompiledFacts("generate", 32, 0, 0),)),
        ProgramCompilation("xorwow", "b", rejection=Rejection("registers", "too many")),
        ProgramCompilation("xorwow", "c", failure=Measurement(Outcome.COMPILE_ERROR, "compilation", "error: no")),
    ]
    return _done(folder, compiler="NVRTC 13.0", programs=programs)


def _random_rows():
    """A regression, a shape that is missing somewhere, a distribution with a shape of its own."""
    speeds = {
        "uniform/float": {(256, 1024): 100.0, (64, 64): 200.0, (128, 64): 105.0, (1, 1): 1.0},
        "normal/float": {(256, 1024): 100.0, (64, 64): 90.0, (128, 64): 105.0},
    }
    return rows("philox4_32_10", speeds)


def keys(value, named, prefix=""):
    """Every key below a value; keys that are data appear as the page names them (`named`)."""
    if isinstance(value, list):
        for item in value:
            yield from keys(item, named, f"{prefix}[]")
    elif isinstance(value, dict):
        above = f"{prefix}." if prefix else ""
        data = next((key for key in named if re.fullmatch(re.escape(above) + "<[^.]+>", key)), None)
        for name, item in value.items():
            key = data or above + name
            yield key
            yield from keys(item, named, key)


def test_every_command_is_documented(documented):
    assert set(documented) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_keys_are_those_of_the_page(command, documented, printed):
    assert set(keys(printed[command], documented[command])) == documented[command]
