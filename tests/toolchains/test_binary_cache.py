"""Compiled programs on disk: they are found again, never the wrong ones, never too many, and never cause an error."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from bench_jobs import GPU
from cached_programs import fake_binary as binary
from cached_programs import fake_module as module
from cached_programs import keep_and_find, launch_kept
from cuda_runner import H200, toolchain
from forked import code_of, run_forked, started
from opencl_runner import opencl_device
from tunesmith import toolchains
from tunesmith.devices import environment
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Module, UserError
from tunesmith.toolchains import TOOLCHAINS, BinaryCache, compile_cached, user_cache
from tunesmith.toolchains.cache import DEFAULT_BYTES, FOLDER_VARIABLE, SIZE_VARIABLE
from tunesmith.toolchains.fake import FakeToolchain
from tunesmith.toolchains.triton import TritonToolchain


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    """Let the cache keep the fake compiler's binaries."""
    monkeypatch.setattr(FakeToolchain, "keeps", lambda self, module: True)


def files(folder):
    return sorted((folder / "binaries").iterdir())


def test_what_is_found_is_what_was_kept(tmp_path):
    BinaryCache(tmp_path, GPU).keep(module(3), binary(3))
    assert BinaryCache(tmp_path, GPU).find(module(3)) == binary(3)
    assert BinaryCache(tmp_path, GPU).find(module(4)) is None


def test_a_second_process_does_not_compile(tmp_path, monkeypatch):
    first = compile_cached(module(), GPU, BinaryCache(tmp_path, GPU))
    monkeypatch.setattr(FakeToolchain, "compile", None)
    assert compile_cached(module(), GPU, BinaryCache(tmp_path, GPU)) == first


@pytest.mark.parametrize(
    "changed",
    [
        lambda patch: patch.setattr(FakeToolchain, "version", lambda self, target: "fake 1.1"),
        lambda patch: patch.setattr(FakeToolchain, "conditions", lambda self, target: ("fake 1.0", "-O2")),
        lambda patch: patch.setattr(toolchains.cache, "_FORMAT", 1),
    ],
    ids=["compiler", "options", "format"],
)
def test_nothing_is_found_once_what_a_binary_depends_on_has_changed(changed, tmp_path, monkeypatch):
    BinaryCache(tmp_path, GPU).keep(module(), binary())
    changed(monkeypatch)
    assert BinaryCache(tmp_path, GPU).find(module()) is None


def test_a_program_serves_every_device_of_its_architecture_and_no_other(tmp_path):
    """The device's name and driver do not matter: they are conditions of OpenCL only."""
    BinaryCache(tmp_path, GPU).keep(module(), binary())
    alike = replace(GPU, name="another", selector="fake:GPU:9", driver="2.0", compute_units=9)
    assert BinaryCache(tmp_path, alike).find(module()) == binary()
    assert BinaryCache(tmp_path, replace(GPU, architecture="another")).find(module()) is None


def test_a_binary_that_is_not_complete_is_not_kept(tmp_path, monkeypatch):
    """The driver compiles the rest at the first launch. `Device.completed` returns the binary to keep."""
    monkeypatch.setattr(FakeToolchain, "is_complete", lambda self, binary: binary.payload != b"half")
    cache = BinaryCache(tmp_path, GPU)
    cache.keep(module(), replace(binary(), payload=b"half"))
    assert cache.find(module()) is None
    cache.keep(module(), binary())
    assert cache.find(module()) == binary()


@pytest.mark.opencl
def test_an_opencl_program_is_its_drivers_and_its_devices():
    target, compiler = opencl_device().target, TOOLCHAINS["OpenCL"]
    conditions = {compiler.conditions(replace(target, **{field: "another"})) for field in ("name", "driver")}
    assert len({*conditions, compiler.conditions(target)}) == 3


def test_a_variable_that_changes_what_triton_makes_changes_its_conditions(monkeypatch):
    compiler = toolchain("Triton")
    usual = compiler.conditions(H200)
    monkeypatch.setenv("TRITON_PTXAS_PATH", "/opt/another/ptxas")
    assert compiler.conditions(H200) != usual


def test_of_triton_only_functions_whose_text_says_all_are_kept():
    family = KERNELS["TritonTmaGemm"]
    kind = gemm_type("s")
    (own,) = family.modules(family.space(kind).defaults, kind)
    assert TritonToolchain().keeps(own)
    assert not TritonToolchain().keeps(replace(own, python="kernels/mine.py:gemm"))


# --- damage, and others' files ----------------------------------------------------------------------------------------


def test_a_file_in_which_any_byte_changed_is_not_loaded(tmp_path):
    kept = BinaryCache(tmp_path, GPU)
    kept.keep(module(), binary())
    (path,) = files(tmp_path)
    content = path.read_bytes()
    for index in range(len(content)):
        path.write_bytes(content[:index] + bytes([content[index] ^ 1]) + content[index + 1 :])
        assert kept.find(module()) is None, f"byte {index}"
    for shorter in (0, 20, len(content) - 1):
        path.write_bytes(content[:shorter])
        assert kept.find(module()) is None
    path.write_bytes(content)
    assert kept.find(module()) == binary()


def test_folder_and_files_are_the_users_own(tmp_path):
    before = os.umask(0)
    try:
        BinaryCache(tmp_path, GPU).keep(module(), binary())
    finally:
        os.umask(before)
    (path,) = files(tmp_path)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
@pytest.mark.parametrize("of", ["folder", "file"])
def test_what_others_may_write_to_is_not_loaded(of, mode, tmp_path):
    kept = BinaryCache(tmp_path, GPU)
    kept.keep(module(), binary())
    (path,) = files(tmp_path)
    (path if of == "file" else path.parent).chmod(mode)
    assert kept.find(module()) is None
    assert compile_cached(module(), GPU, kept).payload != binary().payload, "compiled again, without a word"


def test_a_folder_of_another_user_is_neither_read_nor_written(tmp_path, monkeypatch):
    kept = BinaryCache(tmp_path, GPU)
    kept.keep(module(), binary())
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert kept.find(module()) is None
    kept.keep(module(1), binary(1))
    assert len(files(tmp_path)) == 1


def test_what_an_earlier_version_left_in_the_folder_does_no_harm(tmp_path):
    """Files of that version began with the line of JSON."""
    folder = tmp_path / "binaries"
    folder.mkdir()
    kept = BinaryCache(tmp_path, GPU)
    (folder / "0123abcd").write_bytes(b'{"facts": [], "metadata": "{}", "sha256": "00"}\nold')
    kept.keep(module(), binary())
    (new,) = set(files(tmp_path)) - {folder / "0123abcd"}
    new.write_bytes((folder / "0123abcd").read_bytes())
    assert kept.find(module()) is None


# --- where nothing can be kept ----------------------------------------------------------------------------------------


def is_a_file(folder, patch):
    folder.write_text("no folder")


def is_read_only(folder, patch):
    """Root may write everywhere, so the system's error is simulated."""

    def refused(*args, **kwargs):
        raise PermissionError(13, "read-only file system")

    patch.setattr(Path, "mkdir", refused)
    patch.setattr(tempfile, "mkstemp", refused)
    patch.setattr(os, "utime", refused)


def is_on_a_full_disk(folder, patch):
    def full(dir):  # noqa: A002  # its name there
        (dir / "unfinished").touch()
        return os.open("/dev/full", os.O_WRONLY), str(dir / "unfinished")

    patch.setattr(tempfile, "mkstemp", full)


@pytest.mark.parametrize("trouble", [is_a_file, is_read_only, is_on_a_full_disk])
def test_a_folder_that_cannot_be_written_to_only_costs_the_time_to_compile(trouble, tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    trouble(folder, monkeypatch)
    kept = BinaryCache(folder, GPU)
    for _ in range(2):
        assert compile_cached(module(), GPU, kept).module == module().digest()
    assert not list(folder.rglob("binaries/*")), "and nothing unfinished is left"


def test_a_read_only_folder_still_serves(tmp_path, monkeypatch):
    BinaryCache(tmp_path, GPU).keep(module(), binary())
    is_read_only(tmp_path, monkeypatch)
    assert BinaryCache(tmp_path, GPU).find(module()) == binary()


# --- size -------------------------------------------------------------------------------------------------------------


def test_the_least_recently_used_files_go_when_there_are_too_many(tmp_path, monkeypatch):
    kept = BinaryCache(tmp_path, GPU)
    kept.keep(module(0), binary(0, 1000))
    monkeypatch.setenv(SIZE_VARIABLE, str(3 * files(tmp_path)[0].stat().st_size + 20))
    kept = BinaryCache(tmp_path, GPU)
    for number in (1, 2):
        kept.keep(module(number), binary(number, 1000))
    for number, path in enumerate(sorted(files(tmp_path), key=lambda path: path.read_bytes()[-1])):
        os.utime(path, (number, number))
    assert kept.find(module(0)), "which makes it the last used"
    kept.keep(module(3), binary(3, 1000))
    assert [number for number in range(4) if kept.find(module(number))] == [0, 2, 3]


def test_the_folder_never_holds_much_more_than_its_bound(tmp_path, monkeypatch):
    monkeypatch.setenv(SIZE_VARIABLE, "20000")
    kept = BinaryCache(tmp_path, GPU)
    for number in range(60):
        kept.keep(module(number), binary(number, 900))
        assert sum(path.stat().st_size for path in files(tmp_path)) <= 20000
    assert len(files(tmp_path)) > 10
    kept.keep(module(60), binary(60, 30000))
    assert kept.find(module(60)) is None


def test_a_bound_of_nothing_keeps_nothing_and_a_wrong_bound_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(SIZE_VARIABLE, "0")
    BinaryCache(tmp_path, GPU).keep(module(), binary())
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv(SIZE_VARIABLE, "1 GB")
    with pytest.raises(UserError, match=f"{SIZE_VARIABLE}: '1 GB' is no number of bytes"):
        BinaryCache(tmp_path, GPU)
    monkeypatch.delenv(SIZE_VARIABLE)
    assert DEFAULT_BYTES == 2**30


def test_processes_that_share_a_folder_find_each_others_whole_files_while_others_are_removed(tmp_path):
    variables = {**os.environ, SIZE_VARIABLE: "50000"}
    with ExitStack() as stack:
        running = [stack.enter_context(started(keep_and_find, str(tmp_path), env=variables)) for _ in range(4)]
        for child, call in running:
            assert code_of(child) == 0, call.err.read_text()
        assert sum(int(call.out.read_text()) for _, call in running) > 0
    sizes = [path.stat().st_size for path in files(tmp_path)]
    assert sum(sizes) <= 2 * 50000
    assert min(sizes) > 2000, "nothing unfinished is left"


# --- where --------------------------------------------------------------------------------------------------------


def test_the_users_cache_is_where_the_system_keeps_such_things(monkeypatch):
    for name in (FOLDER_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert user_cache() == Path("/home/somebody/.cache/tunesmith")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert user_cache() == Path("/home/somebody/.cache/tunesmith")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/somebody")
    assert user_cache() == Path("/var/cache/somebody/tunesmith")
    monkeypatch.setenv(FOLDER_VARIABLE, "/mine")
    assert user_cache() == Path("/mine")


def test_a_user_without_a_home_has_a_folder_all_the_same(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    for name in (FOLDER_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert user_cache().is_absolute()


# --- what real compilers make -----------------------------------------------------------------------------------------


def test_a_triton_program_is_found_with_all_that_its_launch_needs(tmp_path, monkeypatch):
    toolchain("Triton")
    family, kind = KERNELS["TritonTmaGemm"], gemm_type("s")
    (module,) = family.modules(family.space(kind, H200).defaults, kind)
    first = compile_cached(module, H200, BinaryCache(tmp_path, H200))
    assert first.metadata
    monkeypatch.setattr(TritonToolchain, "compile", None)
    assert compile_cached(module, H200, BinaryCache(tmp_path, H200)) == first


@pytest.mark.opencl
def test_a_second_process_neither_builds_an_opencl_program_nor_compiles_at_its_first_launch(tmp_path, tmp_path_factory):
    """It does not need PoCL's own cache either. So each process has one of its own, in which no other test compiles."""
    target = opencl_device().target

    def launched_by(process):
        own = {"POCL_CACHE_DIR": str(tmp_path_factory.mktemp(process))}
        variables = {**os.environ, **environment(tmp_path / process), **own}
        done = run_forked(launch_kept, target.selector, str(tmp_path), process, env=variables)
        assert not done.returncode, done.stderr

    launched_by("first")
    (path,) = files(tmp_path)
    launched_by("second")
    assert files(tmp_path) == [path]


@pytest.mark.opencl
def test_a_program_that_the_driver_does_not_take_is_built_from_its_source():
    device = opencl_device()
    complete = TOOLCHAINS["OpenCL"].compile(Module("OpenCL", "__kernel void f() {}", ("f",)), device.target)
    strange = replace(complete, payload=complete.payload + b"\0what another driver made")
    assert TOOLCHAINS["OpenCL"].is_complete(strange)
    assert device.load(strange).program.kernel_names == "f"
