"""Best guesses are measured first, and nothing else of a run depends on the order."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tunesmith.cli.app import app
from tunesmith.devices.fake import fake_target
from tunesmith.kernels import KERNELS, Kernel
from tunesmith.kernels.fake import FakeGemm
from tunesmith.models.intensity.policies import DEFAULT_POLICY, POLICIES, PolicyChoice
from tunesmith.models.intensity.policies.known_targets import KNOWN_TARGETS
from tunesmith.models.intensity.policies.nearness import PolicyDistance
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem, UserError
from tunesmith.session import tune
from tunesmith.session.frame import events
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.order import CellRace, Rank, in_order
from tunesmith.session.frame.run import carry_out
from tunesmith.session.tuning_file.file import ready
from tunesmith.session.tuning_file.order import AS_IN_FILE, checked_order, rank_of
from tunesmith.session.tuning_file.tuning import TuningPlan
from tuning_runs import fake_file

KIND = gemm_type(transpose_b=False)
SMALL, LARGE = Problem(KIND, (64, 32, 16)), Problem(KIND, (128, 128, 128))
CPU = KNOWN_TARGETS["x86-64"]
TILES = [FakeGemm().space(KIND).defaults | {"ThreadTile": (2 << n, 4), "LoopUnroll": 8} for n in range(3)]
ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart.yaml"


def by_tile(values):
    """A rank by the rows of a work-item's tile."""
    return lambda cell: values[cell[0].integers("ThreadTile")[0]]


def cells(*configs, problems=(LARGE, SMALL)):
    return tuple((config, problem) for config in configs for problem in problems)


def test_on_the_hosts_cpu_configurations_come_one_after_the_other_by_rank():
    """All sizes of a configuration come together, since compiling takes turns with timing; lineages come by their
    best."""
    oracle = ConfigurationOracle(KIND, fake_target("CPU"))
    first, second, third = TILES
    races = [CellRace(cells(first)), CellRace(cells(second, third), {SMALL: 1.0})]
    made = in_order(races, oracle, by_tile({2: 2.0, 4: 3.0, 8: 1.0}))
    assert made == [CellRace(cells(third, second), {SMALL: 1.0}), CellRace(cells(first))]
    assert in_order(races, oracle, None) == races
    assert in_order(races, oracle, lambda cell: 0.0) == races


def test_on_a_device_of_its_own_each_size_gets_the_lowest_rank_first():
    """The bench takes sizes in turn, so that sizes stay in the order of their guesses: the small one first."""
    oracle = ConfigurationOracle(KIND, fake_target("GPU"))
    ranks = {2: 2.0, 4: 0.5, 8: 1.0}
    (made,) = in_order([CellRace(cells(*TILES))], oracle, by_tile(ranks))
    best_first = (TILES[1], TILES[2], TILES[0])
    assert made.cells == tuple((config, problem) for problem in (SMALL, LARGE) for config in best_first)
    (alike,) = in_order([CellRace(cells(*TILES))], oracle, lambda cell: 0.0)
    for problem in (SMALL, LARGE):
        guesses = [oracle.guess(*cell) for cell in alike.cells if cell[1] == problem]
        assert guesses == sorted(guesses)


@pytest.mark.parametrize("policy", list(POLICIES))
def test_the_choice_of_a_policy_is_the_nearest_to_itself(policy):
    problem = Problem(KIND, (1024, 1024, 1024))
    kernel = KERNELS["RegisterGemm"]
    answer = POLICIES[policy].choose(problem, CPU, kernel)
    assert isinstance(answer, PolicyChoice)
    apart = PolicyDistance(POLICIES[policy], CPU)
    assert apart(kernel, answer.configuration, problem) == 0
    rows, columns = answer.configuration.integers("ThreadTile")
    taller = answer.configuration | {"ThreadTile": (4 * rows, columns)}
    assert apart(kernel, taller, problem) == 3, "two doublings of the macro tile, and of a work-item's share at half"
    other = answer.configuration | {"WorkGroupMapping": 16}
    assert apart(kernel, other, problem) == 0, "the policy decides nothing about it"


def test_what_no_policy_knows_keeps_its_order():
    """A family without a mapping, and a problem that a policy refuses."""
    oracle = ConfigurationOracle(KIND, fake_target("CPU"))
    rank = rank_of(DEFAULT_POLICY, oracle)
    assert rank is not None
    assert {rank(cell) for cell in cells(*TILES)} == {0.0}
    huge = Problem(KIND, (200_000, 200_000, 8))
    kernel = KERNELS["RegisterGemm"]
    config = kernel.space(KIND, CPU).defaults
    assert PolicyDistance(POLICIES["latency"], CPU)(kernel, config, huge) == 0
    assert rank_of(AS_IN_FILE, oracle) is None


def test_what_nobody_guesses_a_time_for_comes_in_a_random_order_that_stays(monkeypatch):
    monkeypatch.setattr(FakeGemm, "guess", Kernel.guess)
    first, second = (
        [rank_of(DEFAULT_POLICY, ConfigurationOracle(KIND, fake_target(kind)))(cell) for cell in cells(*TILES)]
        for kind in ("CPU", "GPU")
    )
    assert first == second
    assert len(set(first)) == len(TILES), "the sizes of a configuration have one rank"
    assert all(0 <= number < 1 for number in first)


class Ranked(TuningPlan):
    """A tuning file with a rank of one's own."""

    ranks: Rank | None = None

    def rank(self, oracle):
        return self.ranks


def shuffled(seed):
    """A rank that differs for every configuration and problem, and is the same in every run."""

    def rank(cell):
        digits = [ord(character) for character in f"{seed}{cell[0].to_json()}{cell[1]}"]
        return float(np.random.default_rng(digits).random())

    return rank


def run(folder, rank, observe=events.nobody):
    folder.mkdir(exist_ok=True)
    path = fake_file(folder)
    found = ready(path, None, "fake:CPU:8")
    file, target = found.file, found.target
    plan = Ranked(path, file, target)
    plan.ranks = rank
    return carry_out(plan, folder / "run", observe=observe)


def results(done):
    """The logic without its head (dates), and the solutions of each size."""
    return {
        str(problem): f"{[solution.configuration.to_json() for solution in table.decided[problem]]}"
        for group in done.plan.groups
        if (table := group.table)
        for problem in table.problems
    }


def test_the_order_changes_neither_the_winners_nor_how_much_is_measured(tmp_path):
    """On a device whose times are the same whenever they are taken."""
    done = run(tmp_path / "file", None)
    for seed in range(3):
        other = run(tmp_path / f"shuffled{seed}", shuffled(seed))
        assert results(other) == results(done)
        assert other.ledger.measured == done.ledger.measured


def test_a_store_is_replayed_whatever_the_order_was(tmp_path):
    done = run(tmp_path, None)
    again = run(tmp_path, shuffled(1))
    assert again.ledger.measured == 0
    assert results(again) == results(done)


def test_a_stopped_run_has_measured_its_best_guess_and_goes_on_in_another_order(tmp_path):
    """The first step has two work-groups; the one that the file lists last has the lower rank."""

    def rank(cell):
        return float(cell[0].integers("WorkGroup")[0])

    measured: list[int] = []

    def stop(event):
        if isinstance(event, events.CellMeasured):
            measured.append(event.solution.configuration.integers("WorkGroup")[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, rank, stop)
    assert measured == [8], "the file begins with 16"
    went_on, whole = run(tmp_path, None), run(tmp_path / "whole", None)
    assert results(went_on) == results(whole)
    assert went_on.ledger.measured == whole.ledger.measured - 1


def test_an_order_that_does_not_exist_is_the_users_mistake(tmp_path):
    with pytest.raises(UserError, match="--order: there is no 'best'; give file, or one of trip-count, published"):
        tune(fake_file(tmp_path), tmp_path / "run", device="fake:CPU:8", order="best")
    assert checked_order(None) == DEFAULT_POLICY
    assert not (tmp_path / "run").exists()


def test_a_plan_says_which_order_is_taken_and_why(tmp_path, monkeypatch):
    def order_line(path, *options, device):
        made = CliRunner().invoke(app, ["plan", str(path), "--no-calibrate", "--device", device, *options])
        return next(line.strip() for line in made.stdout.splitlines() if line.startswith("order: "))

    fake = fake_file(tmp_path)
    assert order_line(fake, device="fake:CPU:8") == "order: in the file's order, since no policy knows FakeGemm"
    assert order_line(fake, device="fake:GPU:8").startswith("order: by the kernel family's own guess, since")
    assert order_line(fake, "--order", "file", device="fake:CPU:8") == "order: in the file's order"
    monkeypatch.setattr(FakeGemm, "guess", Kernel.guess)
    assert order_line(fake, device="fake:CPU:8") == "order: in a random order, since no policy knows FakeGemm"


@pytest.mark.opencl
def test_the_quickstart_is_tuned_in_the_order_of_a_policy():
    result = CliRunner().invoke(app, ["plan", str(QUICKSTART), "--no-calibrate", "--device", "CPU"])
    assert "order: nearest to what the policy latency chooses first" in result.stdout


def test_cells_of_a_known_family_come_by_their_distance_to_the_policy():
    """The latency model's own tile is measured first, whatever the file lists first."""
    oracle = ConfigurationOracle(KIND, replace(CPU, api="OpenCL"))
    problem = Problem(KIND, (1024, 1024, 1024))
    answer = POLICIES["latency"].choose(problem, oracle.target, KERNELS["RegisterGemm"])
    assert isinstance(answer, PolicyChoice)
    own = answer.configuration.integers("ThreadTile")
    tiles = [tile for tile in ((1, 1), (2, 2), (64, 8), (16, 2), (32, 8), (16, 4)) if tile != own] + [own]
    configs = [answer.configuration | {"ThreadTile": tile} for tile in tiles]
    (made,) = in_order([CellRace(cells(*configs, problems=(problem,)))], oracle, rank_of("latency", oracle))
    ranks = [rank_of("latency", oracle)(cell) for cell in made.cells]  # type: ignore[misc]  # it is a policy's
    assert made.cells[0][0] == answer.configuration
    assert ranks == sorted(ranks)
    assert len(set(ranks)) > 2


@pytest.mark.parametrize("name", ["quickstart", "tiles"])
def test_the_page_shows_the_counts_that_are_recorded(name):
    page = (ROOT / "docs" / "results" / "decisions.md").read_text(encoding="utf-8")
    rows = json.loads((ROOT / "benchmarks/recorded/measuring_order" / f"{name}.json").read_text(encoding="utf-8"))
    for row in rows:
        step = "all steps" if row["step"] == "all" else f"`{row['step']}`"
        counts = " | ".join(f"{row[order][0]}, {row[order][1]}" for order in ("file", "latency", "published-intensity"))
        shown = f"| `{name}.yaml` | {step} | {row['cells']} | {counts} |"
        assert shown in page, shown


def test_a_configuration_with_few_cells_is_not_first_for_that():
    """A configuration may be legal at few sizes only, or measured at the other sizes already."""
    oracle = ConfigurationOracle(KIND, fake_target("CPU"))
    near, far = TILES[:2]
    race = CellRace((*cells(near), *cells(far, problems=(SMALL,))))
    (made,) = in_order([race], oracle, by_tile({2: 1.0, 4: 1.5}))
    assert [config for config, _ in made.cells] == [near, near, far]
