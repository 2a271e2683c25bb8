"""A GPU's BLAS is asked how it would compute a problem, and an error of it is no reason to fail."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tunesmith.devices import LaunchError, choose, open_device
from tunesmith.library.launch import _foreseen, _launcher
from tunesmith.library.launch._foreseen import foreseen
from tunesmith.library.launch._launcher import Launcher
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, LibraryCall, LibraryPlan, Plan, Problem
from tunesmith.toolchains.blas import BlasLibrary

PLAN = LibraryPlan(66, 24, 2, 0, 3, 35, 4, 1024, 0.5)
CALL = LibraryCall(1, "gemm", Configuration({}))


class Gpu:
    lost, target = False, None

    def __init__(self, error=None, capturing=False):
        self.error, self.is_capturing, self.asked = error, capturing, []

    def capturing(self):
        return self.is_capturing

    def on(self, stream):
        assert stream is None
        return nullcontext()

    def foreseen(self, step, program):
        self.asked.append((step, program))
        if self.error:
            raise self.error
        return PLAN


def ready(*steps):
    launched, compiled = SimpleNamespace(plan=Plan(steps)), SimpleNamespace(programs=("first", "second"))
    return SimpleNamespace(launched=launched, compiled=compiled)


def test_the_library_is_asked_about_its_call():
    gpu = Gpu()
    assert foreseen(gpu, lambda: ready(CALL)) == PLAN
    assert gpu.asked == [(CALL, "second")]


def test_without_a_call_nothing_is_asked():
    gpu = Gpu()
    assert foreseen(gpu, lambda: None) is None
    assert foreseen(gpu, ready) is None
    assert gpu.asked == []


def test_nothing_is_asked_in_a_child_and_in_a_capture():
    forked = Gpu()
    forked.lost = True
    for gpu in (forked, Gpu(capturing=True)):
        assert foreseen(gpu, lambda: pytest.fail("nothing may be loaded")) is None
        assert gpu.asked == []


@pytest.mark.parametrize(
    ("made_with", "asked"),
    [
        (None, True),
        ("NVRTC 13.0; Triton 3.6.0; cuBLAS 13.1.0, strict sums", True),
        ("cuBLAS 13.1.2, strict sums; NVRTC 13.1", True),
        ("NVRTC 13.1; cuBLAS 13.2.0, strict sums", False),
        ("cuBLAS 12.1.0, strict sums", False),
        ("NVRTC 13.1", False),
    ],
)
def test_another_release_of_the_library_is_not_asked(monkeypatch, made_with, asked):
    here = BlasLibrary("libcublas.so.13", "cuBLAS 13.1.0, strict sums")
    monkeypatch.setattr(_foreseen, "library", lambda target: here)
    gpu = Gpu()
    assert foreseen(gpu, lambda: ready(CALL), made_with) == (PLAN if asked else None)
    assert gpu.asked == ([(CALL, "second")] if asked else [])


def test_without_a_library_nothing_is_asked(monkeypatch):
    def missing(target):
        raise LookupError("it is not installed")

    monkeypatch.setattr(_foreseen, "library", missing)
    assert foreseen(Gpu(), lambda: pytest.fail("nothing may be loaded"), "cuBLAS 13.1.0") is None


def test_an_error_means_that_nothing_is_known_unless_the_gpu_is_lost():
    def broken():
        raise LaunchError("no library", "libcublasLt")

    assert foreseen(Gpu(), broken) is None
    assert foreseen(Gpu(LaunchError("not supported", "")), lambda: ready(CALL)) is None
    with pytest.raises(LaunchError):
        foreseen(Gpu(LaunchError("fault", "", poisoned=True)), lambda: ready(CALL))


def test_a_launcher_asks_for_its_choices_on_a_gpu(monkeypatch):
    """The fake device is no GPU of which anything is asked, until it says that it is one. cuBLAS is asked with the
    workspace that it has on its own, and the versions are those of the logic by which the choice is made."""
    launcher = Launcher(open_device(choose("fake:GPU:8")), {}, {})
    problem, stood_for = (Problem(gemm_type(letter, use_beta=False), (64, 64, 64)) for letter in "bh")
    asked = []
    monkeypatch.setattr(
        _launcher, "foreseen", lambda gpu, by_vendor, made_with: asked.append((gpu, by_vendor(), made_with)) or PLAN
    )
    assert launcher._predicted._plan.__wrapped__ == launcher.foreseen
    assert launcher.by_vendor(problem, {}, aligned=True) is None, "the fake device has no BLAS"
    assert launcher.foreseen(problem) is None
    assert asked == []
    monkeypatch.setattr(Launcher, "on_gpu", True)
    monkeypatch.setattr(Launcher, "by_vendor", lambda self, problem, changes, aligned: (problem, changes, aligned))
    assert launcher.foreseen(problem) == PLAN
    launcher.logics = {problem.type: SimpleNamespace(document=SimpleNamespace(origin=SimpleNamespace(toolchain="its")))}
    launcher.stand_ins = {stood_for.type: problem.type}
    assert launcher.foreseen(problem) == launcher.foreseen(stood_for) == PLAN
    assert asked == [
        (launcher.device, (about, {"workspace_bytes": 32 * 2**20}, True), made_with)
        for about, made_with in ((problem, None), (problem, "its"), (stood_for, "its"))
    ]
