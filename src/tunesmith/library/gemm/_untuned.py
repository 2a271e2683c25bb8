"""Products of types that no logic is for: the type is the one that the arrays are problems of as they lie, and policies
choose its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tunesmith.library.launch._heuristic import policies_know
from tunesmith.library.launch._launcher import Launcher
from tunesmith.records import Problem, ProblemType

from ._call import Call
from ._layouts import LayoutMatch, matches_of, misfits, problem_of, sizes_by
from ._request import GemmRequest

SMALL = 64
"""Sizes at which a type is tried where no kernel takes the product as large as it is: it may be made in parts."""


def untuned_match(launcher: Launcher, call: Call) -> LayoutMatch | None:
    """The match with the fewest bytes to copy of a type that policies choose kernels for, of all that is asked for if a
    kernel has it, else of the product alone. None where no kernel computes the product.

    A batch that would have to be copied is left to who serves batches without a type (`_batches`), which copies less.
    """
    for smaller in (_as_it_is, _at_most_small):
        for request in call.request.attempts:
            for match in _in_order(call, request):
                if next(launcher.choices(smaller(_problem(call, match))), None):
                    return match
    return None


def untuned_sentence(launcher: Launcher, kind: ProblemType) -> str:
    """What is said once of a type that no logic is for, where policies choose its kernels."""
    from tunesmith.models.intensity.policies import DEFAULT_POLICY

    why = launcher.sunk.get(kind) or (launcher.absent if launcher.sunk else None)
    instead = f" ({why.location} {why.what})" if why else ""
    what = f"no logic is for {kind.name} on {launcher.device.target.name}{instead}"
    return f"{what}: the {DEFAULT_POLICY} policy chooses its kernels unmeasured; tune that type to have the fastest"


def unserved_type(launcher: Launcher, call: Call) -> ProblemType | None:
    """The type of a product that no kernel computes; None on a device that policies do not know."""
    *_, plain = call.request.attempts
    kind = _in_order(call, plain)[0].type
    return kind if policies_know(launcher.device.target) else None


def reasons_of(launcher: Launcher, kind: ProblemType) -> str:
    """Why families compute no product of the type."""
    refusals = launcher.refusals(Problem(kind, (SMALL,) * len(kind.indices)))
    return "; ".join(f"{family}: {reason}" for family, reason in refusals.items())


def _in_order(call: Call, request: GemmRequest) -> list[LayoutMatch]:
    """Every layout of what is asked for; of equals, the one that reads the result in rows comes first."""
    kinds = _types(request, is_batch=call.out.shape[0] > 1)
    return sorted(
        matches_of(call.only(request), kinds), key=lambda match: (match.copied, *match.cost, not match.swapped)
    )


def _types(request: GemmRequest, is_batch: bool) -> Iterator[ProblemType]:
    """With beta wherever there is no activation, as types are tuned unless a file says otherwise: cuBLASLt activates
    what beta C is added to."""
    use_beta = request.beta or request.activation == "none"
    flags = product((False, True), (False, True), {request.tf32, False}, {is_batch, False})
    for a, b, tf32, batched in flags:
        yield request.type_of(a, b, tf32=tf32, batched=batched, use_beta=use_beta)


def _problem(call: Call, match: LayoutMatch) -> Problem:
    """The problem that the call is by a match; of what is copied first, with natural leading dimensions."""
    part = (call.first() if match.one_by_one else call).only(match.done)
    if misfits(part, match.type, match.swapped):
        return Problem(match.type, sizes_by(call, match))
    return problem_of(part, match)


def _as_it_is(problem: Problem) -> Problem:
    return problem


def _at_most_small(problem: Problem) -> Problem:
    return Problem(problem.type, tuple(min(size, SMALL) for size in problem.sizes))
