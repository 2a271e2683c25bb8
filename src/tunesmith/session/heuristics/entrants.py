"""The entrants to be judged, on each kernel family: policies, the published policy with other steps, fitted
heuristics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
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
"""The ablation switches these steps: none, each alone, each pair."""
FURTHER = ("boost", "utilisation-guard")
"""Each of these steps is added alone to the published steps."""


@dataclass(frozen=True)
class Entrant:
    """A policy with the name of its row, and the kernel family that it chooses from. An empty `kernel` means the first
    family that can compute a product, in the policy's order."""

    name: str
    policy: TilePolicy
    kernel: str = ""

    @property
    def ranks(self) -> bool:
        """Whether the policy has further guesses."""
        return self.policy.ranks

    def ranked(self, problem: Problem, target: Target, count: int) -> tuple[Solution, ...]:
        """The policy's choice for a problem, then its further guesses, at most `count`; empty if it has no choice."""
        for kernel in self.families(problem, target):
            if choices := self.policy.ranked(problem, target, kernel, count):
                return tuple(_solution(problem, choice) for choice in choices)
        return ()

    def families(self, problem: Problem, target: Target) -> Sequence[Kernel]:
        """The families to ask, in their order, without the vendor's library."""
        if self.kernel:
            return (KERNELS[self.kernel],)
        own = [kernel for kernel in kernel_order(problem, target) if kernel.name != VENDOR]
        return self.policy.ordered(problem, target, own)


def entrants(
    policies: Sequence[str] = (), heuristics: Sequence[Path] = (), kernels: Sequence[str] = ()
) -> tuple[Entrant, ...]:
    """An entrant for each policy and each of `kernels`: the named `policies` (all if none is named), then the
    heuristics in files.

    Raises UserError for an unknown name, and for a file that is no heuristic.
    """
    for kernel in kernels:
        if kernel not in MAPPINGS:
            raise UserError("--kernel", f"no policy maps tiles to {kernel!r}", f"give one of {', '.join(MAPPINGS)}")
    named = [(name, policy_named(name)) for name in dict.fromkeys(policies)]
    judged = [*(named or _all()), *_fitted(tuple(dict.fromkeys(heuristics)))]
    return tuple(Entrant(name, policy, kernel) for name, policy in judged for kernel in kernels or ("",))


def _fitted(paths: Sequence[Path]) -> Iterator[tuple[str, TilePolicy]]:
    """Fitted policies with their names: the files' names, or their paths if several files have the same name."""
    counts = Counter(path.name for path in paths)
    for path in paths:
        yield f"fitted: {path.name if counts[path.name] == 1 else path}", fitted_policy(path)


def fitted_here(judged: Sequence[Entrant], matrices: Sequence[Path]) -> Iterator[str]:
    """A warning for each fitted heuristic that has a source with the name of a judged matrix."""
    names = {name for path in matrices for name in _names(path)}
    for name, policy in {entrant.name: entrant.policy for entrant in judged}.items():
        sources = policy.heuristic.origin.sources if isinstance(policy, FittedPolicy) else ()
        if same := [source for source in dict.fromkeys(sources) if source in names]:
            yield (
                f"{name} was fitted on {', '.join(same)}, and a judged matrix has that name: on products that it was "
                "fitted on, its score says nothing about other products; leave them out with --without"
            )


def _names(matrix: Path) -> Iterator[str]:
    """The name of a matrix; if it is a run's folder or store, also the names of the run's final tables."""
    yield matrix.name
    folder = matrix.parent if matrix.name == FILE_NAME else matrix
    yield from (table.name for table in (folder / TABLES).glob("*/*_Final.csv"))


def _all() -> Iterator[tuple[str, TilePolicy]]:
    """Every policy with its name; the published policy is followed by its ablation."""
    for name in POLICIES:
        yield name, POLICIES[name]
        if name == ABLATED:
            yield from _ablation(POLICIES[name])


def _ablation(policy: TilePolicy) -> Iterator[tuple[str, TilePolicy]]:
    """The published policy with other steps. The policy itself, which has the cap alone, is not repeated."""
    other_steps = policy.steps - set(SWITCHED)
    for switched in chain.from_iterable(combinations(SWITCHED, count) for count in range(3)):
        steps = other_steps | set(switched)
        if steps != policy.steps:
            yield f"{ABLATED}, {' + '.join(switched) or 'none of these'}", policy.with_steps(steps)
    for step in FURTHER:
        yield f"{ABLATED} + {step}", policy.with_steps(policy.steps | {step})


def _solution(problem: Problem, choice: PolicyChoice) -> Solution:
    return Solution(problem.type, choice.kernel, choice.configuration)
