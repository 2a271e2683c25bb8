"""The order of a step's candidates in `tunesmith tune`: those nearest to a policy's choice are measured first."""

from __future__ import annotations

from tunesmith.models.intensity.policies import DEFAULT_POLICY, POLICIES
from tunesmith.models.intensity.policies.mappings import MAPPINGS
from tunesmith.models.intensity.policies.nearness import PolicyDistance
from tunesmith.protocol import Cell, Phases
from tunesmith.records import UserError
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
    is `file`."""
    if order == AS_IN_FILE:
        return None
    distance = PolicyDistance(POLICIES[order], oracle.target)

    def rank(cell: Cell) -> float:
        config, problem = cell
        return distance(oracle.family(config), oracle.launched(config, problem).configuration, problem)

    return rank


def described_order(order: str, phases: Phases, oracle: ConfigurationOracle) -> str:
    """The order of a group's steps in words, and the policy that it follows, for a person who reads a forecast."""
    without_policy = "in the file's order" if oracle.target.shares_the_host else "by the kernel family's own guess"
    if order == AS_IN_FILE:
        return without_policy
    legal = (config for config in first_configurations(phases) if not oracle.rejections(config))
    names = list(dict.fromkeys(oracle.family(config).name for config in legal))
    if any(name in MAPPINGS for name in names):
        return f"nearest to what the policy {order} chooses first"
    return f"{without_policy}, since no policy knows {', '.join(names) or 'these kernels'}"
