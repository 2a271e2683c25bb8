"""Tuning runs like those with portBLAS's parameters, on the fake device, for the tests that look at the run itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tunesmith.bench import Policy
from tunesmith.devices import choose
from tunesmith.formats.portblas.parameter_files import ParameterFile, RuleSet
from tunesmith.kernels import KERNELS
from tunesmith.records import Configuration, Target
from tunesmith.session.frame import events
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.portblas.plan import PortBlasPlan, tune_portblas
from tunesmith.session.portblas.task import PortBlasTask

QUICK = Policy(noise=0.05, minimum_samples=6, maximum_samples=20, sampling_seconds=0.02, warm_up_seconds=0.005)
DEFAULT = KERNELS["FakeGemm"].space(PortBlasTask("nn", 1, 1, 1, 1, 1).kind("nn")).defaults
TILES = tuple(
    DEFAULT | {"WorkGroup": group, "ThreadTile": tile, "VectorWidth": width}
    for group in ((8, 8, 1), (16, 8, 1), (16, 16, 1))
    for tile in ((2, 2), (4, 4), (8, 4), (8, 8))
    for width in (1, 2, 4)
)


@dataclass(frozen=True, slots=True)
class FakeTask(PortBlasTask):
    """Other candidates, on the device that does as it is told."""

    listed: tuple[Configuration, ...] = TILES

    def check(self) -> None:
        """Its language is none that a person may ask for."""

    @property
    def policy(self) -> Policy:
        return Policy(sampling_seconds=0.02, warm_up_seconds=0.01, confirm_blocks=6, compile_processes=1)

    def target(self, selector: str | None) -> Target:
        return choose("fake:GPU:8")

    def candidates(self, target: Target) -> tuple[ParameterFile, dict[Configuration, Any]]:
        config = ParameterFile(Path(__file__), RuleSet.OURS, "", (), (), (), {})
        return config, dict.fromkeys(self.listed)

    def default(self, target: Target) -> Configuration:
        return DEFAULT


def fake(**changes: object) -> FakeTask:
    return replace(FakeTask("nn", 256, 64, 192, 1, 6), **changes)


def faulty(fault: str) -> Configuration:
    return DEFAULT | {"FakeFault": fault}


def tune(
    task: PortBlasTask, folder: Path, observe: Callable[[events.Event], None] = events.nobody, **more: Any
) -> RunOutcome[PortBlasPlan]:
    return tune_portblas(task, folder, observe=observe, **more)
