"""Products without a logic: the problem type follows from how the arrays lie in memory, and policies choose its
kernels."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product

from tunesmith.library.launch._heuristic import policies_know
from tunesmith.library.launch._launcher import Launcher
from tunesmith.records import Problem, ProblemType

from ._checked_call import CheckedCall
from ._layouts import LayoutMatch, matches_of, misfits, problem_of, sizes_by
from ._request import GemmRequest

SMALL = 64
"""The largest sizes at which a type is tried if no kernel takes the product at its full size; the product may be
computed in parts."""


def untuned_match(launcher: Launcher, call: CheckedCall) -> LayoutMatch | None:
    """The match with the fewest bytes to copy of a type that another type stands in for, or that policies choose
    kernels for: for the whole request if a kernel computes it, else for the product alone. None if no kernel computes
    the product.

    A batch that would have to be copied goes to `_batches`, which serves batches without a type and copies less.
    """
    for resize in (_full_size, _at_most_small):
        for request in call.request.attempts:
            for match in _in_order(call, request, launcher.stand_ins):
                if next(launcher.choices(resize(_problem(call, match))), None):
                    return match
    return None


def untuned_sentence(launcher: Launcher, kind: ProblemType) -> str:
    """The warning for a type without a logic, whose kernels policies choose."""
    from tunesmith.models.intensity.policies import DEFAULT_POLICY

    what = f"the {DEFAULT_POLICY} policy chooses its kernels unmeasured"
    return f"{no_logic(launcher, kind)}: {what}; tune that type to have the fastest"


def blas_sentence(launcher: Launcher, kind: ProblemType) -> str:
    """The warning for a type without a logic, which the BLAS of the host or of a GPU's vendor computes."""
    blas = "NumPy's BLAS" if launcher.device.target.kind == "CPU" else "the vendor's BLAS"
    return f"{no_logic(launcher, kind)}: {blas} computes it; tune that type to have what is faster"


def unserved_type(launcher: Launcher, call: CheckedCall) -> ProblemType | None:
    """The type of the call's product, which no kernel computes; None on a device that policies do not know."""
    return nearest_type(call) if policies_know(launcher.device.target) else None


def nearest_type(call: CheckedCall) -> ProblemType:
    """The type of the call's product for which the fewest bytes would have to be copied."""
    *_, product_alone = call.request.attempts
    return _in_order(call, product_alone)[0].type


def may_be_tuned(launcher: Launcher, kind: ProblemType) -> bool:
    """Whether a kernel computes products of the type; also true on a device that policies do not know."""
    small = Problem(kind, (SMALL,) * len(kind.indices))
    return not policies_know(launcher.device.target) or next(launcher.choices(small), None) is not None


def reasons_of(launcher: Launcher, kind: ProblemType) -> str:
    """Why no family computes a product of the type, as text."""
    refusals = launcher.refusals(Problem(kind, (SMALL,) * len(kind.indices)))
    return "; ".join(f"{family}: {reason}" for family, reason in refusals.items())


def _in_order(call: CheckedCall, request: GemmRequest, preferred: Collection[ProblemType] = ()) -> list[LayoutMatch]:
    """Every match of the request, the fewest bytes to copy first; among equals, reading the result in rows first, then
    the preferred types."""
    kinds = [*preferred, *_types(request, is_batch=call.out.shape[0] > 1)]
    return sorted(
        matches_of(call.only(request), kinds), key=lambda match: (match.copied_bytes, *match.cost, not match.swapped)
    )


def _types(request: GemmRequest, is_batch: bool) -> Iterator[ProblemType]:
    """The request's types in every layout. Types without an activation have beta, as types are tuned unless a file
    says otherwise. Types with an activation have beta only on request: cuBLASLt adds beta C before the activation."""
    use_beta = request.beta or request.activation == "none"
    flags = product((False, True), (False, True), {request.tf32, False}, {is_batch, False})
    for transpose_a, transpose_b, tf32, batched in flags:
        yield request.type_of(transpose_a, transpose_b, tf32=tf32, batched=batched, use_beta=use_beta)


def _problem(call: CheckedCall, match: LayoutMatch) -> Problem:
    """The call as a problem of the match's type; with natural leading dimensions if arrays are copied first."""
    part = (call.first() if match.one_by_one else call).only(match.computed)
    if misfits(part, match.type, match.swapped):
        return Problem(match.type, sizes_by(call, match))
    return problem_of(part, match)


def no_logic(launcher: Launcher, kind: ProblemType) -> str:
    """That no logic is for the type here, with the reason if one was made elsewhere."""
    error = launcher.unused.get(kind) or (launcher.absent if launcher.unused else None)
    reason = f" ({error.location} {error.what})" if error else ""
    return f"no logic is for {kind.name} on {launcher.device.target.name}{reason}"


def _full_size(problem: Problem) -> Problem:
    return problem


def _at_most_small(problem: Problem) -> Problem:
    return Problem(problem.type, tuple(min(size, SMALL) for size in problem.sizes))
