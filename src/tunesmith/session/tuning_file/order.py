"""The order of a step's candidates in `tunesmith tune`: those nearest to a policy's choice are measured first.
Kernels that no policy knows, and whose family guesses no time, come in a random order."""

from __future__ import annotations

import zlib

from tunesmith.kernels import Kernel
from tunesmith.models.intensity.policies import DEFAULT_POLICY, POLICIES
from tunesmith.models.intensity.policies.mappings import MAPPINGS
from tunesmith.models.intensity.policies.nearness import PolicyDistance
from tunesmith.protocol import Cell, Phases
from tunesmith.records import Configuration, UserError
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.order import Rank

from .calibration import first_configurations

AS_IN_FILE = "file"
"""The word for the file's own order, without a policy."""


def checked_order(order: str | None) -> str:
    """The name of a policy, or `file`. None means the default policy. Raises UserError for any other word."""
    if order is None:
        return DEFAULT_POLICY
    if order != AS_IN_FILE and order not in POLICIES:
        raise UserError("--order", f"there is no {order!r}", f"give {AS_IN_FILE}, or one of {', '.join(POLICIES)}")
    return order


def rank_of(order: str, oracle: ConfigurationOracle) -> Rank | None:
    """The rank of a cell: the distance of its configuration from the policy's choice for its problem. None if `order`
    is `file`.

    A configuration of which neither the policy nor its family knows anything gets a random rank, the same in every
    run. In the file's order, neighbours differ in one parameter only, so that a good candidate may come late, and a
    budget may end with a part of the space unseen.
    """
    if order == AS_IN_FILE:
        return None
    distance = PolicyDistance(POLICIES[order], oracle.target)

    def rank(cell: Cell) -> float:
        config, problem = cell
        family = oracle.family(config)
        if family.name not in MAPPINGS and not _guesses_times(family):
            return _random(config)
        return distance(family, oracle.launched(config, problem).configuration, problem)

    return rank


def _random(config: Configuration) -> float:
    """A number from 0 to 1 that depends on the configuration only."""
    return zlib.crc32(config.to_json().encode()) / 2**32


def described_order(order: str, phases: Phases, oracle: ConfigurationOracle) -> str:
    """The order of a group's steps in words, and the policy that it follows, for a person who reads a forecast."""
    without_policy = "in the file's order" if oracle.target.shares_the_host else "by the kernel family's own guess"
    if order == AS_IN_FILE:
        return without_policy
    legal = [config for config in first_configurations(phases) if not oracle.rejections(config)]
    names = list(dict.fromkeys(oracle.family(config).name for config in legal))
    if any(name in MAPPINGS for name in names):
        return f"nearest to what the policy {order} chooses first"
    if names and not any(_guesses_times(oracle.family(config)) for config in legal):
        without_policy = "in a random order"
    return f"{without_policy}, since no policy knows {', '.join(names) or 'these kernels'}"


def _guesses_times(family: Kernel) -> bool:
    return type(family).guess is not Kernel.guess
