"""Keys of measurements: anything that could change a measurement's value changes its key, and nothing else does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from tunesmith.bench import Bench, Job, Policy
from tunesmith.devices.fake import fake_target
from tunesmith.kernels.fake import FakeGemm
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import (
    Configuration,
    Estimate,
    Launch,
    Measurement,
    Outcome,
    Problem,
    ScalarArgument,
)
from tunesmith.session.frame.measure import Ledger, RecordedMeasure
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.store import Store, measurement_key
from tunesmith.toolchains.fake import FakeToolchain

NN, NT = gemm_type(transpose_b=False), gemm_type()
GPU, CONFIG, SIZE = fake_target(), FakeGemm().space(NN).defaults, (64, 32, 16)

PARTS: dict[str, Any] = {
    "target": GPU,
    "toolchain": "compiler 1",
    "identity": "i",
    "plan_digest": "p",
    "problem": Problem(NN, SIZE),
    "policy": Policy().key(),
}
OTHERS: dict[str, Any] = {
    "api": {"target": replace(GPU, api="another")},
    "device": {"target": replace(GPU, name="another")},
    "architecture": {"target": replace(GPU, architecture="another")},
    "driver": {"target": replace(GPU, driver="1.1")},
    "compiler": {"toolchain": "compiler 2"},
    "solution": {"identity": "j"},
    "plan": {"plan_digest": "q"},
    "type": {"problem": Problem(NT, SIZE)},
    "sizes": {"problem": Problem(NN, (64, 32, 17))},
    "leading dimensions": {"problem": Problem(NN, SIZE, (64, 64, 64, 17))},
    "scalars": {"problem": Problem(NN, SIZE, (), Configuration({"alpha": 2.0}))},
    "policy": {"policy": Policy(noise=0.02).key()},
}


def test_each_part_alone_makes_another_key():
    keys = {name: measurement_key(**{**PARTS, **changed}) for name, changed in OTHERS.items()}
    assert len({measurement_key(**PARTS), *keys.values()}) == 1 + len(OTHERS)
    assert set(inspect.signature(measurement_key).parameters) == set(PARTS)


def test_parts_that_change_places_make_another_key():
    """So parts are not joined into one text without a separator."""
    names = ("toolchain", "identity", "plan_digest")
    keys = {
        measurement_key(**{**PARTS, **dict(zip(names, values, strict=True))})
        for values in (("ab", "c", ""), ("a", "bc", ""), ("a", "b", "c"), ("", "abc", ""), ("c", "ab", ""))
    }
    assert len(keys) == 5


# --- what a run measures again ----------------------------------------------------------------------------------------


class Counting(Bench):
    """A bench that measures everything as one second and keeps its jobs."""

    def __init__(self):
        self.jobs: list[Job] = []

    def run(self, batch):
        for job in (job for race in batch.races for job in race.jobs):
            self.jobs.append(job)
            yield job, Measurement(Outcome.OK, samples=(1.0,), estimate=Estimate(1.0, 1.0, 1.0, 1))


def asked(location, target=GPU, policy=None, size=None):
    """How many cells the bench measures when a run on this store needs one cell."""
    bench, problem = Counting(), size or Problem(NN, SIZE)
    with Store.open(location) as store:
        oracle = ConfigurationOracle(problem.type, target)
        measure = RecordedMeasure(oracle, bench, store, policy or Policy(), Ledger())  # type: ignore[arg-type]
        table = measure.screen([[CONFIG]], [problem], racing=False)
    assert len(table.cells) == 1
    return len(bench.jobs)


def other_options(self, config, kind, real=FakeGemm.modules):  # type: ignore[no-untyped-def]
    return tuple(replace(module, options=(*module.options, "-O1")) for module in real(self, config, kind))


def other_text(self, config, kind, real=FakeGemm.modules):  # type: ignore[no-untyped-def]
    return tuple(replace(module, text=module.text + " ") for module in real(self, config, kind))


def with_another_scalar(plan):  # type: ignore[no-untyped-def]
    """The same program, launched with another scalar argument."""
    steps = [
        replace(step, arguments=(*step.arguments[:-1], ScalarArgument(0.5, "float64")))
        for step in plan.steps
        if isinstance(step, Launch)
    ]
    return replace(plan, steps=tuple(steps))


def other_plan(self, *arguments, real=FakeGemm.plan):  # type: ignore[no-untyped-def]
    return with_another_scalar(real(self, *arguments))


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], object]] = {
    "compiler": lambda patch: patch.setattr(FakeToolchain, "version", lambda self, target: "fake 1.1"),
    "options": lambda patch: patch.setattr(FakeGemm, "modules", other_options),
    "text": lambda patch: patch.setattr(FakeGemm, "modules", other_text),
    "plan": lambda patch: patch.setattr(FakeGemm, "plan", other_plan),
    "what is timed": lambda patch: patch.setattr(FakeGemm, "timed", lambda self, plan: with_another_scalar(plan)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_program_or_its_launch_depends_on_is_measured_again_after_a_change(what, location_of, monkeypatch):
    assert (asked(location_of()), asked(location_of())) == (1, 0)
    CHANGES[what](monkeypatch)
    assert (asked(location_of()), asked(location_of())) == (1, 0)


@pytest.mark.parametrize("part", ["name", "architecture", "driver"])
def test_another_device_or_driver_is_measured_again(part, location_of):
    other = replace(GPU, **{part: "another"})
    assert [asked(location_of(), target) for target in (GPU, other, GPU, other)] == [1, 1, 0, 0]


@pytest.mark.parametrize("size", [change["problem"] for change in OTHERS.values() if "problem" in change], ids=str)
def test_another_problem_is_measured_again(size, location_of):
    assert [asked(location_of(), size=problem) for problem in (None, size, None, size)] == [1, 1, 0, 0]


HOW_LONG_TO_WAIT = {"timeout_seconds", "compile_timeout_seconds", "compile_processes"}
"""Of a policy what changes no measurement's value."""


@pytest.mark.parametrize("name", [field.name for field in fields(Policy)])
def test_another_policy_is_measured_again_unless_only_its_patience_changed(name, location_of):
    usual = getattr(Policy(), name)
    other = replace(Policy(), **{name: (not usual) if isinstance(usual, bool) else usual + 1})
    assert [asked(location_of(), policy=policy) for policy in (None, other)] == [1, int(name not in HOW_LONG_TO_WAIT)]


def test_where_a_device_is_plugged_in_is_no_part_of_a_key(location_of):
    """Two GPUs of the same kind share their measurements."""
    assert (asked(location_of()), asked(location_of(), replace(GPU, selector="fake:GPU:7"))) == (1, 0)
