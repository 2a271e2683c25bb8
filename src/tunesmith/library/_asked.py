"""What a caller asked for by words and numbers: a problem type, sizes; and why no solution is legal there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tunesmith.problems import whole_size
from tunesmith.records import Problem, ProblemType, Rejection, UserError

from .call_adapters import call_adapter_of
from .launch._launcher import with_left_out

TOO_LARGE = "maximum allocation"
"""The reason with which families reject an operand that is larger than any buffer of the device."""


def nothing_legal(problem: Problem, refusals: Mapping[str, Rejection]) -> UserError:
    """`refusals` has a rejection for each solution, by the solution's name."""
    reasons = "; ".join(f"{name}: {refusal}" for name, refusal in refusals.items())
    in_parts = problem.type.operation == "GEMM" and all(refusal.reason == TOO_LARGE for refusal in refusals.values())
    remedy = "ask for a part: `matmul` of arrays on the host makes such a product in halves" if in_parts else ""
    what = f"no solution is legal at {problem} ({reasons})"
    return UserError(problem.type.name, what, remedy or "tune for such sizes")


def sizes_asked_for(kind: ProblemType, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """A size for each index, from the sizes that a person gave. Raises ValueError for an impossible size or number of
    sizes."""
    sizes = call_adapter_of(kind).sizes(kind, numbers)
    return tuple(whole_size(kind, index, size) for index, size in zip(kind.indices, sizes, strict=True))


def type_asked_for(
    kinds: Collection[ProblemType], requested: ProblemType | str, left_out: Sequence[UserError] = ()
) -> ProblemType:
    """The requested type, by its name or its operation's name; for "", the only type that there is."""
    fitting = [kind for kind in kinds if requested in ("", kind, kind.name, kind.operation)]
    if len(fitting) != 1:
        names = ", ".join(kind.name for kind in kinds)
        name = requested if isinstance(requested, str) else requested.name
        what = f"name one problem type of {names}" + (f", not {name!r}" if name else "")
        raise ValueError(with_left_out(what, left_out))
    return fitting[0]
