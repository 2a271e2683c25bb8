"""Which problem type computes a call, how much of it, and what must be copied for that."""

from __future__ import annotations

from tunesmith.kernels import VENDOR
from tunesmith.library.launch._launcher import Launcher
from tunesmith.logic import Choice, Rule
from tunesmith.problems.gemm import is_interleaved

from ._checked_call import CheckedCall
from ._layouts import LayoutMatch, best_match, matches_of, misfits, problem_of
from ._untuned import untuned_match


def approach_to(launcher: Launcher, call: CheckedCall) -> tuple[LayoutMatch, CheckedCall, list[str]] | None:
    """The best match, the part of the call that one launch computes, and the arguments that do not fit. The match is
    with a type that has a logic, or for a batch with one that has a stand-in; else with a type that policies choose
    kernels for. On a GPU no batch is copied into interleaved order to fit a type, and nothing is copied if the vendor's
    BLAS takes it as it lies: a copy may take several times as long as the product. None if no kernel computes the
    product."""
    logics = launcher.logics
    match = best_match(call, logics, launcher.packaged)
    if match and match.copied_bytes and is_interleaved(match.type) and call.out.shape[0] > 1 and not call.out.on_host:
        others = {kind: logic for kind, logic in logics.items() if not is_interleaved(kind)}
        match = best_match(call, others, launcher.packaged)
    if match and match.one_by_one and not launcher.strict:
        match = _of_stand_in(launcher, call) or match
    if not launcher.strict and (match is None or _may_be_worse(launcher, call, match)):
        untuned = untuned_match(launcher, call)
        if match is None or (untuned and _is_better(launcher, call, untuned, match)):
            match = untuned
    if match is None:
        return None
    part = call.first() if match.one_by_one else call
    return match, part, misfits(part.only(match.computed), match.type, match.swapped)


def _of_stand_in(launcher: Launcher, call: CheckedCall) -> LayoutMatch | None:
    """The match of a batch with a type that another type stands in for, if nothing is copied for it and a solution is
    legal."""
    matches = matches_of(call, launcher.stand_ins)
    fitting = (match for match in matches if not (match.one_by_one or match.copied_bytes))
    whole = (match for match in fitting if _first_choice(launcher, call, match))
    return min(whole, key=lambda match: not match.swapped, default=None)


def _may_be_worse(launcher: Launcher, call: CheckedCall, match: LayoutMatch) -> bool:
    """Whether one call of the vendor's BLAS may be better than the match of a logic: if that copies on a GPU, or makes
    only the product, and by the vendor's BLAS."""
    if match.copied_bytes:
        return not call.out.on_host
    return (
        match.computed != call.request
        and (choice := _first_choice(launcher, call, match)) is not None
        and (choice.solution.kernel == VENDOR)
    )


def _is_better(launcher: Launcher, call: CheckedCall, match: LayoutMatch, other: LayoutMatch) -> bool:
    """Whether a match of a type without a logic copies nothing, and the vendor's BLAS is the choice for it, or the type
    that stands in has chosen. It must compute the whole request, or as much of it as the `other` match, in no more
    launches."""
    as_much = match.computed in (call.request, other.computed) and match.one_by_one <= other.one_by_one
    if match.copied_bytes or not as_much:
        return False
    first = _first_choice(launcher, call, match)
    return first is not None and first.rule in (Rule.VENDOR, Rule.SIBLING)


def _first_choice(launcher: Launcher, call: CheckedCall, match: LayoutMatch) -> Choice | None:
    """The choice for a match without copies."""
    part = (call.first() if match.one_by_one else call).only(match.computed)
    return next(launcher.choices(problem_of(part, match)), None)
