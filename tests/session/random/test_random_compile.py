"""`tunesmith random tune --arch`: programs for a device that is not here, which a run on such a device finds."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console
from typer.testing import CliRunner

from bench_jobs import GPU, QUICK, batch, job
from cuda_runner import H200, cuda_device, toolchain
from tunesmith.bench import Bench, ModuleCompiled
from tunesmith.bench.processes.process import Spawner
from tunesmith.cli.app import app
from tunesmith.devices import absent_target
from tunesmith.kernels import KERNELS
from tunesmith.kernels.random import family as random_family
from tunesmith.problems.random import random_type
from tunesmith.records import Binary, LaunchShape, Measurement, UserError
from tunesmith.report import CompilingReport
from tunesmith.report.random.tuned import compiled_document
from tunesmith.session.frame import events
from tunesmith.session.frame.outputs import CACHE
from tunesmith.session.random.compile import compile_random
from tunesmith.session.random.plan import POLICY, tune_random
from tunesmith.session.random.task import RandomTask, configuration_of
from tunesmith.toolchains import BinaryCache
from tunesmith.toolchains.fake import FakeToolchain
from tunesmith.toolchains.nvrtc import NvrtcToolchain

TASK = RandomTask(
    generators=("philox4_32_10", "mt19937"),
    distributions=("uniform",),
    value_types=("float",),
    blocks=(1024,),
    grids=(32,),
    min_threads=1,
)


def no_process(self, module, *variables):
    raise AssertionError(f"a process was started: {module}")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Two generators, with their default block of 256 and another."""
    toolchain("CUDA")
    return compile_random(TASK, tmp_path_factory.mktemp("run"), "sm_90")


# --- what is compiled ------------------------------------------------------------------------------------------------


def test_every_block_of_the_matrix_is_compiled_or_refused_with_a_reason(compiled):
    made = {program.name: (program.rejection and program.rejection.reason) for program in compiled.plan.programs}
    assert made == {
        "philox4_32_10_uniform_float_t256": None,
        "philox4_32_10_uniform_float_t1024": None,
        "mt19937_uniform_float_t256": None,
        "mt19937_uniform_float_t1024": "local memory",
    }
    for program in compiled.plan.programs:
        entries = {"initialise", "generate"} if program.generator == "mt19937" else {"generate"}
        assert {fact.entry for fact in program.facts} == (set() if program.rejection else entries)
        assert all(fact.registers for fact in program.facts)
    assert len(list((compiled.folder / CACHE / "binaries").iterdir())) == 3


def test_a_device_of_the_architecture_finds_every_program(compiled, monkeypatch):
    """A device's bench asks for modules made from its own target, and finds all of them without a compile process."""
    monkeypatch.setattr(Spawner, "start", no_process)
    family, modules = KERNELS["CudaRandom"], []
    for generator, blocks in (("philox4_32_10", (256, 1024)), ("mt19937", (256,))):
        kind = random_type(generator, "uniform", "float", dynamic=True)
        for block in blocks:
            modules += family.modules(configuration_of(kind, LaunchShape(block, 528), H200), kind)
    with Bench(H200, POLICY, compiled.folder / CACHE) as bench:
        made = list(bench.compile(modules))
    assert len(made) == len(modules) == 3
    assert all(compilation.found and isinstance(compilation.made, Binary) for compilation in made)
    facts = {fact for program in compiled.plan.programs for fact in program.facts}
    assert {fact for compilation in made for fact in compilation.made.facts} == facts


def test_the_same_command_compiles_nothing_again(compiled, monkeypatch):
    monkeypatch.setattr(Spawner, "start", no_process)
    again = compile_random(TASK, compiled.folder, "sm_90")
    assert [replace(program, found=False) for program in again.plan.programs] == compiled.plan.programs
    assert {program.found for program in again.plan.programs if not program.rejection} == {True}


def test_another_architecture_and_another_compiler_have_their_own(compiled, monkeypatch):
    kind = random_type("philox4_32_10", "uniform", "float")
    (module,) = KERNELS["CudaRandom"].modules(configuration_of(kind, LaunchShape(256, 32), H200), kind)
    assert BinaryCache(compiled.folder / CACHE, H200).find(module)
    assert BinaryCache(compiled.folder / CACHE, replace(H200, name="another", compute_units=1, driver="13.9")).find(
        module
    )
    assert not BinaryCache(compiled.folder / CACHE, replace(H200, architecture="sm_80")).find(module)
    monkeypatch.setattr(NvrtcToolchain, "version", lambda *_: "NVRTC 99")
    assert not BinaryCache(compiled.folder / CACHE, H200).find(module)


def test_names_pick_programs(tmp_path):
    toolchain("CUDA")
    outcome = compile_random(replace(TASK, pattern="philox.*_t256_"), tmp_path, "sm_90")
    assert [program.name for program in outcome.plan.programs] == ["philox4_32_10_uniform_float_t256"]


def test_too_many_registers_for_a_block_are_named(tmp_path, monkeypatch):
    toolchain("CUDA")
    monkeypatch.setattr(random_family, "REGISTERS_PER_BLOCK", 1024 * 16)
    outcome = compile_random(replace(TASK, generators=("philox4_32_10",)), tmp_path, "sm_90")
    assert [program.rejection and program.rejection.reason for program in outcome.plan.programs] == [
        None,
        "registers",
    ]
    document = compiled_document(outcome)
    assert document["generators"][0]["rejected"] == {"registers": 1}  # type: ignore[index]
    assert document["look_at"] == []


def test_limits_are_those_of_the_architecture():
    toolchain("CUDA")
    assert absent_target("sm_90").local_memory_bytes == H200.local_memory_bytes
    assert absent_target("sm_86").local_memory_bytes == 101376
    assert {absent_target(name).api for name in NvrtcToolchain().architectures()} == {"CUDA"}


# --- the command line ------------------------------------------------------------------------------------------------

ASKED = ("--generators", "philox4_32_10", "--types", "float", "--distributions", "uniform", "--block-sizes", "64")


def tune(*arguments):
    """Run `tunesmith random tune` in this process; a UserError comes out as it is raised."""
    result = CliRunner().invoke(app, ["random", "tune", *map(str, arguments)])
    if isinstance(result.exception, UserError):
        raise result.exception
    return result


def test_the_table_tells_what_was_compiled_and_where_it_is(tmp_path):
    toolchain("CUDA")
    done = tune(*ASKED, "--arch", "sm_90", "-o", tmp_path)
    assert done.exit_code == 0, done.output
    assert f"programs for sm_90, by {NvrtcToolchain().version(H200)}" in done.output
    row = next(line.split() for line in done.output.splitlines() if line.startswith("philox4_32_10"))
    assert row[1:3] == ["2", "0"]
    assert str(tmp_path / "cache") in done.output
    assert list(tmp_path.iterdir()) == [tmp_path / "cache"], "no store, since nothing is measured"


def test_what_the_compiler_refuses_is_told_with_its_words_and_exits_with_1(tmp_path, monkeypatch):
    toolchain("CUDA")
    modules = random_family.CudaRandom.modules

    def broken(self, config, kind):
        made = modules(self, config, kind)
        return tuple(
            replace(module, text=module.text + "\n#if BLOCK_SIZE == 64\n#error too odd\n#endif\n") for module in made
        )

    monkeypatch.setattr(random_family.CudaRandom, "modules", broken)
    done = tune(*ASKED, "--arch", "sm_90", "-o", tmp_path, "--json")
    assert done.exit_code == 1, done.output
    document = json.loads(done.stdout)
    (failure,) = document["failures"]
    assert (failure["program"], failure["reason"]) == ("philox4_32_10_uniform_float_t64", "compilation")
    assert "too odd" in failure["log"]
    (sentence,) = document["look_at"]
    assert sentence.startswith("philox4_32_10_uniform_float_t64: compilation: module.cu(")
    assert "too odd" in sentence
    assert (document["generators"][0]["compiled"], document["generators"][0]["failed"]) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--arch", "sm_60"), r"--arch: NVRTC does not compile for 'sm_60'; this one \(NVRTC [0-9.]+\) has sm_"),
        (("--arch", "sm_90a"), "does not compile for 'sm_90a'"),
        (("--arch", "x86-64"), "does not compile for 'x86-64'"),
        (("--arch", ""), "does not compile for ''"),
        (("--arch", "gfx942"), "--arch: gfx942 needs a HIP compiler, and tunesmith has none; .*random select"),
        (("--arch", "sm_90", "--device", "CPU"), "--arch: is for a device that is not here; give --arch or --device"),
        (("--arch", "sm_90", "--types", "int"), "--types: there is no int"),
        (("--arch", "sm_90", "--benchmark_filter", "nothing"), "nothing is left to tune"),
    ],
)
def test_what_cannot_be_compiled_for_is_a_mistake_with_its_place(arguments, message, tmp_path):
    toolchain("CUDA")
    with pytest.raises(UserError, match=message):
        tune(*arguments, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_nvrtc_it_is_said_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(NvrtcToolchain, "unavailable", lambda self: "No module named 'cuda': pip install it")
    with pytest.raises(UserError, match=r"--arch: sm_90 needs NVRTC, which is not here; .*pip install"):
        tune("--arch", "sm_90", "-o", tmp_path)


# --- binaries on disk ------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(monkeypatch):
    """The fake compiler's binaries are kept too."""
    monkeypatch.setattr(FakeToolchain, "keeps", lambda self, module: True)


def modules_of(job):
    return KERNELS[job.solution.kernel].modules(job.solution.configuration, job.problem.type)


def test_a_bench_keeps_what_it_compiles_and_the_next_one_finds_it(kept, tmp_path, monkeypatch):
    jobs = [job(LoopUnroll=unroll) for unroll in (8, 16)]
    with Bench(GPU, QUICK, tmp_path) as bench:
        assert all(measurement.ok for _, measurement in bench.run(batch(jobs)))
    observed: list[object] = []
    with Bench(GPU, QUICK, tmp_path, observed.append) as bench:
        assert all(measurement.ok for _, measurement in bench.run(batch(jobs)))
    built = [event for event in observed if isinstance(event, ModuleCompiled)]
    assert [event.seconds for event in built] == [0.0, 0.0]


def test_what_does_not_compile_is_not_kept(kept, tmp_path):
    broken = modules_of(job(fault="compile error"))
    for _ in range(2):
        with Bench(GPU, QUICK, tmp_path) as bench:
            (compilation,) = bench.compile(broken)
        assert isinstance(compilation.made, Measurement)
        assert (compilation.made.reason, compilation.found) == ("compile error", False)


def test_a_damaged_binary_is_compiled_again(kept, tmp_path):
    modules = modules_of(job(LoopUnroll=8))
    for damage in (lambda data: data[:-1], lambda data: b"", lambda data: data[:20], lambda data: data + b"x"):
        with Bench(GPU, QUICK, tmp_path) as bench:
            (first,) = bench.compile(modules)
        (path,) = (tmp_path / "binaries").iterdir()
        path.write_bytes(damage(path.read_bytes()))
        with Bench(GPU, QUICK, tmp_path) as bench:
            (again,) = bench.compile(modules)
        assert (again.made, again.found) == (first.made, False)


def test_a_module_that_includes_files_is_not_kept():
    kind = random_type("philox4_32_10", "uniform", "float")
    (module,) = KERNELS["CudaRandom"].modules(configuration_of(kind, LaunchShape(64, 32), H200), kind)
    assert NvrtcToolchain().keeps(module)
    assert not NvrtcToolchain().keeps(replace(module, options=(*module.options, "-Iheaders")))


# --- while waiting ---------------------------------------------------------------------------------------------------


def test_progress_is_told_now_and_then_where_there_is_no_terminal():
    text, now = io.StringIO(), [0.0]
    with CompilingReport(Console(file=text, width=200), clock=lambda: now[0]) as report:
        report(events.CompilingBegan(replace(H200, architecture="sm_80"), "NVRTC 13.0", 40))
        for number in range(40):
            now[0] += 1.0
            report(ModuleCompiled(str(number), 1.0, "compilation" if number == 5 else "", 0))
    assert text.getvalue().splitlines() == ["NVRTC 13.0 for sm_80: 21/40, 1 failed"]


# --- on a GPU --------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_a_tuning_on_a_gpu_compiles_nothing_that_was_compiled_without_it(tmp_path):
    toolchain("CUDA")
    architecture = cuda_device().target.architecture
    compiled = compile_random(TASK, tmp_path, architecture).plan.programs
    observed: list[object] = []
    task = replace(TASK, bytes=(1 << 24,), grow=False)
    outcome = tune_random(task, tmp_path, device="CUDA", observe=observed.append)
    assert all(row.measurement.ok for row in outcome.plan.measured)
    built = [event for event in observed if isinstance(event, ModuleCompiled)]
    assert len(built) == sum(not program.rejection for program in compiled) == 3
    assert {event.seconds for event in built} == {0.0}
