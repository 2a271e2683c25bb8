"""Who is judged: every policy, the published one with its steps switched, fitted heuristics; on each kernel family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.kernels import KERNELS, VENDOR, Kernel
from tunesmith.models.intensity.policies import POLICIES, PolicyChoice, TilePolicy, policy_named
from tunesmith.models.intensity.policies.family_order import kernel_order
from tunesmith.models.intensity.policies.fitted import FittedPolicy, fitted_policy
from tunesmith.models.intensity.policies.mappings import MAPPINGS
from tunesmith.records import Problem, Solution, Target, UserError
from tunesmith.session.frame.outputs import TABLES
from tunesmith.store import FILE_NAME

ABLATED = "published-intensity"
SWITCHED = ("subgroup-favor", "tile-favor", "workgroup-cap")
"""Steps of the ablation: none of them, each alone, each pair."""
FURTHER = ("boost", "utilisation-guard")
"""Steps that are added to the published ones, each alone."""


@dataclass(frozen=True)
class Entrant:
    """A policy under the name that its row has, and the kernel family that it chooses from; empty for the first family
    of the usual order that can compute a product."""

    name: str
    policy: TilePolicy
    kernel: str = ""

    def ranked(self, problem: Problem, target: Target, count: int) -> tuple[Solution, ...]:
        """Its choice for a problem, then its further guesses; none where it has none."""
        for kernel in self.families(problem, target):
            if found := self.policy.ranked(problem, target, kernel, count):
                return tuple(_solution(problem, choice) for choice in found)
        return ()

    def families(self, problem: Problem, target: Target) -> Sequence[Kernel]:
        """Those to ask, in their order; the vendor's library is not judged."""
        if self.kernel:
            return (KERNELS[self.kernel],)
        return [kernel for kernel in kernel_order(problem, target) if kernel.name != VENDOR]


def entrants(
    policies: Sequence[str] = (), heuristics: Sequence[Path] = (), kernels: Sequence[str] = ()
) -> tuple[Entrant, ...]:
    """All of them, or the named `policies`; the heuristics in files on top. Each takes part once for each kernel.

    Raises UserError for a name that nothing has, and for a file that is no heuristic.
    """
    for kernel in kernels:
        if kernel not in MAPPINGS:
            raise UserError("--kernel", f"no policy maps tiles to {kernel!r}", f"give one of {', '.join(MAPPINGS)}")
    named = [(name, policy_named(name)) for name in dict.fromkeys(policies)]
    judged = [*(named or _all()), *_fitted(tuple(dict.fromkeys(heuristics)))]
    return tuple(Entrant(name, policy, kernel) for name, policy in judged for kernel in kernels or ("",))


def _fitted(paths: Sequence[Path]) -> Iterator[tuple[str, TilePolicy]]:
    """By the files' names, or by their paths where several have the same name."""
    counts = Counter(path.name for path in paths)
    for path in paths:
        yield f"fitted: {path.name if counts[path.name] == 1 else path}", fitted_policy(path)


def fitted_here(judged: Sequence[Entrant], matrices: Sequence[Path]) -> Iterator[str]:
    """A sentence about each fitted heuristic with a source that has the name of a judged matrix."""
    names = {name for path in matrices for name in _names(path)}
    for name, policy in {entrant.name: entrant.policy for entrant in judged}.items():
        sources = policy.heuristic.origin.sources if isinstance(policy, FittedPolicy) else ()
        if same := [source for source in dict.fromkeys(sources) if source in names]:
            yield (
                f"{name} was fitted on {', '.join(same)}, and a judged matrix has that name: on products that it was "
                "fitted on, its score says nothing about other products; leave them out with --without"
            )


def _names(matrix: Path) -> Iterator[str]:
    """Of a matrix, and of the finals' tables of its run where it is a run's folder or store."""
    yield matrix.name
    folder = matrix.parent if matrix.name == FILE_NAME else matrix
    yield from (table.name for table in (folder / TABLES).glob("*/*_Final.csv"))


def _all() -> Iterator[tuple[str, TilePolicy]]:
    """Every policy, and behind the published one its ablation."""
    for name in POLICIES:
        yield name, POLICIES[name]
        if name == ABLATED:
            yield from _ablation(POLICIES[name])


def _ablation(policy: TilePolicy) -> Iterator[tuple[str, TilePolicy]]:
    """The published policy itself has the cap alone, and is not repeated."""
    rest = policy.steps - set(SWITCHED)
    alone = [(step,) for step in SWITCHED]
    pairs = [(first, second) for number, first in enumerate(SWITCHED) for second in SWITCHED[number + 1 :]]
    for switched in ((), *alone, *pairs):
        steps = rest | set(switched)
        if steps != policy.steps:
            yield f"{ABLATED}, {' + '.join(switched) or 'none of these'}", policy.with_steps(steps)
    for step in FURTHER:
        yield f"{ABLATED} + {step}", policy.with_steps(policy.steps | {step})


def _solution(problem: Problem, choice: PolicyChoice) -> Solution:
    return Solution(problem.type, choice.kernel, choice.configuration)
