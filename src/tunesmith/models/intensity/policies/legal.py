"""From a wish to a legal configuration: the family's rules are asked, and what they reject is made smaller or narrower.

The mapping keeps to the values that a family knows, so most wishes are legal at once; each turn of the loop costs the
family's rules once (some 80 microseconds).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from tunesmith.kernels import Kernel
from tunesmith.models.stream_k.open import is_open
from tunesmith.records import Configuration, Problem, ProblemType, Rejection, Target, UserError, Value

from .answers import ReasonLine
from .mappings import FamilyMapping
from .situation import Situation
from .wish import TileWish, fewer_stages, fewer_sub_groups, narrow, shorter, smaller, unpacked, unsplit

Remedy = Callable[[TileWish], TileWish | None]

MOST_ATTEMPTS = 24
REMEDIES: dict[str, tuple[Remedy, ...]] = {
    "local memory": (fewer_stages, shorter, smaller),
    "registers": (smaller,),
    "unrolled code": (shorter, smaller),
    "work-group size": (unsplit, fewer_sub_groups, smaller),
    "tile loads": (narrow, shorter, smaller),
    "coalesced loads": (narrow, shorter, smaller),
    "vector width": (narrow,),
    "vector width and thread tile": (narrow, smaller),
    "vector size": (narrow, smaller),
    "TMA alignment": (narrow,),
    "TMA store": (narrow,),
    "TMA box": (narrow, smaller),
    "global split": (unsplit,),
    "grid": (unsplit,),
    "maximum allocation": (unsplit, unpacked),
    "device memory": (unsplit, unpacked),
}
"""By the reason of a rejection: what may make the wish legal, of which the first that still applies is taken. A reason
that is not here has nothing to do with the tile, and ends the search."""


def legal_configuration(
    kernel: Kernel,
    mapping: FamilyMapping,
    wish: TileWish,
    situation: Situation,
    problem: Problem,
    lines: list[ReasonLine],
) -> Configuration | Rejection:
    """The first legal configuration on the way down from a wish, or the rejection that nothing remedies; what happened
    is appended to `lines`."""
    start = _defaults(kernel, problem.type, situation.target)
    # Every remedy makes the wish less, so the loop would end without a limit, too.
    for _ in range(MOST_ATTEMPTS):
        values = mapping.values(wish, situation)
        config = start | values
        lines.append(ReasonLine("mapping", f"{kernel.name}: {_shown(values)}"))
        rejection = _rejection(kernel, config, problem, situation.target)
        if rejection is None:
            return config
        less = next((made for remedy in REMEDIES.get(rejection.reason, ()) if (made := remedy(wish))), None)
        lines.append(ReasonLine("rejected", f"{rejection}" + (f"; tried instead: {less}" if less else "")))
        if less is None:
            return rejection
        wish = less
    return Rejection("no tile", f"{MOST_ATTEMPTS} attempts, of which the last wished for {wish}")


def tuned_configuration(
    kernel: Kernel, tuned: Mapping[str, Value], problem: Problem, target: Target, lines: list[ReasonLine]
) -> Configuration | None:
    """The family's defaults with parameters that were tuned; None where the family has no such value for the problem's
    type, or rejects it, and where the grid of stream-K is left open. What happened is appended to `lines`."""
    space = kernel.space(problem.type, target)
    try:
        values = {name: space[name].check(value, kernel.name) for name, value in tuned.items() if name in space}
    except UserError as error:
        lines.append(ReasonLine("rejected", f"{error.what}; its tile is taken instead"))
        return None
    config = space.defaults | values
    lines.append(ReasonLine("mapping", f"{kernel.name}, as it was tuned: {_shown(values)}"))
    if is_open(config):
        lines.append(ReasonLine("rejected", "the stream-K grid was left open; its tile is taken instead"))
        return None
    rejection = _rejection(kernel, config, problem, target)
    if rejection is not None:
        lines.append(ReasonLine("rejected", f"{rejection}; its tile is taken instead"))
        return None
    return config


def _rejection(kernel: Kernel, config: Configuration, problem: Problem, target: Target) -> Rejection | None:
    always = next(iter(kernel.rejections(config, problem.type, target)), None)
    return always or next(iter(kernel.rejections_for(config, problem, target)), None)


@lru_cache(maxsize=512)
def _defaults(kernel: Kernel, problem_type: ProblemType, target: Target) -> Configuration:
    return kernel.space(problem_type, target).defaults


def _shown(values: object) -> str:
    if isinstance(values, Mapping):
        return ", ".join(f"{name} {_shown(value)}" for name, value in values.items()) or "nothing to choose"
    return "x".join(map(str, values)) if isinstance(values, tuple) else str(values)
