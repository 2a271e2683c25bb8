"""The package's logic on GPUs that are not there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_fakes import HostGpu
from tunesmith.library._default_library import shared_library
from tunesmith.library.launch._launcher import Launcher
from tunesmith.logic import shipped, shipped_files
from tunesmith.models.choice.model import ChoiceModel
from tunesmith.models.choice.model_file import model_of
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.records import Target

FILES = shipped_files()
H100 = replace(known_target("sm_90"), name="NVIDIA H100 80GB HBM3", selector="CUDA:0")
H200 = replace(known_target("sm_90"), selector="CUDA:0")
OPERANDS = "Aki_Bkj", "Aik_Bkj", "Aik_Bjk"
HALVES = "nvidia-h100-bf16"
MEASURED, BETWEEN = (4096, 16, 4096), (4096, 24, 4096)


def gpu(target: Target) -> HostGpu:
    """A GPU that is not there: choices are made for it, nothing is launched."""
    device = HostGpu()
    device.target = target
    return device


def beside(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes that nobody measured, near some of a type: with more rows, columns and products."""
    m, n, *batch, k = sizes
    return (m + 8, n + 8, *batch, k + 64)


def named(path: Path) -> str:
    return path.name.removesuffix(shipped.SUFFIX)


def packaged_model(name: str) -> ChoiceModel:
    """The choice model of a file of the package, by the file's name."""
    path = next(path for path in FILES if named(path) == name)
    return model_of(shipped.read_shipped_model(path), name)


MADE_ON = {named(path): next(gpu for gpu in (H100, H200) if shipped.read_head(path).is_of(gpu)) for path in FILES}
"""The device of each file, by the file's name."""
TYPES = {kind for path in FILES for kind in shipped.read_head(path).types}


def without_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Around a test: no environment variable names a logic. No cuBLAS is there to be asked, and one that could not be
    asked would be known not to run."""
    monkeypatch.delenv("TUNESMITH_LOGIC", raising=False)
    monkeypatch.setattr(Launcher, "foreseen", lambda launcher, problem: None)
    shared_library.cache_clear()
    yield
    shared_library.cache_clear()
