"""Turns a wish into a legal configuration: as long as the family's rules reject the wish, it is made smaller or
narrower.

The mapping only uses values that the family knows, so most wishes are legal at once. Each attempt evaluates the
family's rules once (some 80 microseconds).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from tunesmith.kernels import Kernel
from tunesmith.models.stream_k.open_grids import is_open
from tunesmith.records import Configuration, Problem, ProblemType, Rejection, Target, UserError, Value

from .answers import ReasonLine
from .mappings import FamilyMapping
from .situation import PolicyInput
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
"""The remedies for each reason of a rejection; the first that still applies is taken. A reason without an entry does
not depend on the tile and ends the search."""


def legal_configuration(
    kernel: Kernel,
    mapping: FamilyMapping,
    wish: TileWish,
    situation: PolicyInput,
    problem: Problem,
    lines: list[ReasonLine],
) -> Configuration | Rejection:
    """The first legal configuration on the way down from a wish, or the rejection without a remedy. Each attempt is
    appended to `lines`."""
    start = _defaults(kernel, problem.type, situation.target)
    # Every remedy reduces the wish, so the loop would also end without a limit.
    for _ in range(MOST_ATTEMPTS):
        values = mapping.values(wish, situation)
        config = start | values
        lines.append(ReasonLine("mapping", f"{kernel.name}: {_shown(values)}"))
        rejection = _rejection(kernel, config, problem, situation.target)
        if rejection is None:
            return config
        remedies = REMEDIES.get(rejection.reason, ())
        reduced = next((reduced for remedy in remedies if (reduced := remedy(wish))), None)
        lines.append(ReasonLine("rejected", f"{rejection}" + (f"; tried instead: {reduced}" if reduced else "")))
        if reduced is None:
            return rejection
        wish = reduced
    return Rejection("no tile", f"{MOST_ATTEMPTS} attempts, of which the last wished for {wish}")


def tuned_configuration(
    kernel: Kernel, tuned: Mapping[str, Value], problem: Problem, target: Target, lines: list[ReasonLine]
) -> Configuration | None:
    """The family's defaults with the tuned parameters. None if the family has no such value for the problem's type, if
    it rejects the configuration, or if the grid of stream-K is left open. Each stage is appended to `lines`."""
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
    for_type = next(iter(kernel.rejections(config, problem.type, target)), None)
    return for_type or next(iter(kernel.rejections_for(config, problem, target)), None)


@lru_cache(maxsize=512)
def _defaults(kernel: Kernel, problem_type: ProblemType, target: Target) -> Configuration:
    return kernel.space(problem_type, target).defaults


def _shown(values: object) -> str:
    if isinstance(values, Mapping):
        return ", ".join(f"{name} {_shown(value)}" for name, value in values.items()) or "nothing to choose"
    return "x".join(map(str, values)) if isinstance(values, tuple) else str(values)
