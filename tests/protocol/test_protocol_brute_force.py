"""The engine against a brute-force search, on small random spaces with random phases, legality and times."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from zlib import crc32

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from brute_force import Stage, World, solve
from protocol_fakes import Exact, FakeOracle, Noisy, choices, phases, size, sizes
from tunesmith.protocol import (
    Benchmark,
    Final,
    Fork,
    Join,
    Objective,
    Phase,
    TimeTable,
    run,
)
from tunesmith.protocol.winners import MAX_FINALISTS
from tunesmith.records import Estimate, Problem

NAMES = "abcdef"


def chance(seed, *what):
    """A number that depends only on the arguments."""
    return crc32(repr((seed, what)).encode())


def world_of(draw):
    seed, wildness = draw.randrange(1 << 30), draw.choice([0, 0, 1, 2])
    start = {name: draw.randrange(3) for name in NAMES}
    banned = {
        ((p, draw.randrange(3)), (q, draw.randrange(3)))
        for p, q in (draw.sample(NAMES, 2) for _ in range(draw.randrange(8)))
    } | {((p, start[p]), (p, start[p])) for p in NAMES if draw.random() < 0.15}
    inert = draw.choice(NAMES) if draw.random() < 0.3 else ""
    values = draw.choice([2, 4, 50])

    def essence(point):
        return tuple(point[name] for name in NAMES if name != inert)

    def time(point, number):
        if not admits(point, number) or chance(seed, "fails", essence(point), number) % 10 < wildness:
            return None
        return 1 + chance(seed, "time", essence(point), number) % values

    def admits(point, number):
        return chance(seed, "small", essence(point), number) % 10 >= wildness

    return World(
        start=start,
        legal=lambda point: not any(point[p] == x and point[q] == y for (p, x), (q, y) in banned),
        admits=admits,
        time=time,
        essence=essence,
        derive=lambda point: {"sum": point["a"] + point["b"], "odd": point["c"] % 2},
        work=lambda number: 1 + number**2,
        objective=draw.choice([*Objective]).value,
    )


def stages_of(draw):
    """Phases in Tensile's order. Parameters may be varied again, alone or together, with other values."""

    def lists(most):
        return {name: draw.sample(range(3), draw.randint(1, 3)) for name in draw.sample(NAMES, draw.randint(1, most))}

    def some_sizes():
        return draw.sample(range(4), draw.randint(1, 3))

    def tuned():
        return [Stage("tune", lists(2), some_sizes(), []) for _ in range(draw.randrange(3))]

    stages = tuned()
    if draw.random() < 0.8:
        stages.append(Stage("fork", lists(3), [], []))
    stages += tuned()
    if draw.random() < 0.7:
        stages.append(Stage("join", {}, some_sizes(), draw.sample([*NAMES, "sum", "odd"], draw.randrange(3))))
    return [*stages, *tuned(), Stage("final", {}, some_sizes(), [])]


def as_step(stage):
    combinations_ = choices({name: list(values) for name, values in stage.lists.items()})
    on = sizes(*stage.sizes)
    return {
        "tune": lambda: Benchmark(Phase.BENCHMARK_FORK, combinations_, on),
        "fork": lambda: Fork(combinations_),
        "join": lambda: Join(tuple(stage.keys), on),
        "final": lambda: Final(on),
    }[stage.kind]()


def engine(world, stages):
    def point(config):
        return {name: config.integer(name) for name in config}

    oracle = FakeOracle(
        illegal=lambda c: "" if world.legal(point(c)) else "banned",
        illegal_for=lambda c, p: "" if world.admits(point(c), p.sizes[0]) else "small",
        derive=lambda c: dict(world.derive(point(c))),
        same=lambda c: world.essence(point(c)),
        flops=lambda p: world.work(p.sizes[0]),
    )
    group = phases(world.start, *map(as_step, stages), objective=Objective(world.objective))
    return group, Exact(lambda c, p: world.time(point(c), p.sizes[0])), oracle


def plain(config):
    return dict(config)


def answer(result):
    return [plain(config) for config in result.survivors], {
        problem.sizes[0]: (plain(decision.winner), [plain(tie) for tie in decision.ties])
        for problem, decision in result.decisions.items()
    }


@given(st.integers(0, 1 << 60))
@settings(max_examples=200, deadline=None)
def test_the_engine_agrees_with_brute_force(seed):
    draw = random.Random(seed)
    world, stages = world_of(draw), stages_of(draw)
    group, measure, oracle = engine(world, stages)
    result = run(group, measure, oracle)
    counts = Counter(
        {
            "dropped": len(result.dropped),
            "deferred": sum(len(t.proposal.substituted) > 0 for step in result.steps for t in step.trials),
            "deferred by two": sum(len(t.proposal.substituted) > 1 for step in result.steps for t in step.trials),
            "ties": sum(bool(t.decision and t.decision.ties) for step in result.steps for t in step.trials),
            "incumbents kept": sum(
                bool(t.decision and t.decision.incumbent_kept) for step in result.steps for t in step.trials
            ),
        }
    )
    for what, count in counts.items():
        event(what, count > 0)
    assert answer(result) == solve(world, stages, MAX_FINALISTS)


class KilledError(Exception):
    pass


class Remembering:
    """Keeps every answer of a `Measure` by solution and problem, and raises after a number of new answers (`fuse`)."""

    def __init__(self, measure, oracle, fuse):
        self.measure, self.oracle, self.fuse = measure, oracle, fuse
        self.estimates: dict[tuple[str, Problem], Estimate | None] = {}
        self.samples: dict[tuple[frozenset[str], Problem], dict[str, tuple[float, ...]]] = {}

    def burn(self):
        if self.fuse == 0:
            raise KilledError
        self.fuse -= 1

    def screen_cells(self, groups, racing):
        cells = {}
        for config, problem in (cell for group in groups for cell in group):
            key = self.oracle.identity(config), problem
            if key not in self.estimates:
                self.burn()
                self.estimates[key] = self.measure.screen_cells([[(config, problem)]], racing).cells.get(
                    (config, problem)
                )
            if estimate := self.estimates[key]:
                cells[config, problem] = estimate
        return TimeTable(cells)

    def announce(self, confirmations):
        """What will be asked for is measured when it is asked for."""

    def confirm(self, configs, problems):
        paired = {}
        names = {config: self.oracle.identity(config) for config in configs}
        for problem in problems:
            key = frozenset(names.values()), problem
            if key not in self.samples:
                self.burn()
                fresh = self.measure.confirm(configs, [problem]).paired
                self.samples[key] = {names[config]: samples for (config, _), samples in fresh.items()}
            paired.update({(c, problem): self.samples[key][n] for c, n in names.items() if n in self.samples[key]})
        return TimeTable(paired=paired)


@given(st.integers(0, 1 << 60), st.integers(0, 60))
@settings(max_examples=40, deadline=None)
def test_a_run_that_is_killed_and_started_again_measures_nothing_twice_and_then_nothing_more(seed, fuse):
    """Times have noise, so that a repeated measurement would give another number."""
    draw = random.Random(seed)
    group, exact, oracle = engine(world_of(draw), stages_of(draw))
    memory = Remembering(Noisy(exact.seconds, np.random.default_rng(seed)), oracle, fuse)
    with suppress(KilledError):
        run(group, memory, oracle)
    committed = dict(memory.estimates), dict(memory.samples)
    memory.fuse = 1_000_000
    resumed = run(group, memory, oracle)
    assert all(memory.estimates[key] == value for key, value in committed[0].items())
    assert all(memory.samples[key] == value for key, value in committed[1].items())
    memory.fuse = 0
    assert run(group, memory, oracle) == resumed


@given(st.integers(0, 1 << 60))
@settings(max_examples=60, deadline=None)
def test_no_cell_is_asked_for_twice_in_a_step_and_only_the_final_is_not_raced(seed):
    draw = random.Random(seed)
    group, measure, oracle = engine(world_of(draw), stages_of(draw))
    result = run(group, measure, oracle)
    measured = [step for step in result.steps if step.cells]
    assert len(measured) == len(measure.screens)
    for step, (groups, problems, racing) in zip(measured, measure.screens, strict=True):
        identities = {oracle.identity(config) for g in groups for config in g}
        assert len({config for g in groups for config in g}) == len(identities)
        assert step.cells == len(identities) * len(problems)
        assert all(len(set(g)) == len(g) for g in groups)
        assert racing == (step.phase is not Phase.FINAL)
        assert all(not oracle.rejections(config) for g in groups for config in g)
        assert {p for _, p in step.table.cells} <= set(problems) <= {size(n) for n in range(4)}
