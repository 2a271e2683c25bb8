"""In which order a step's candidates are measured: those first that are nearest to what a policy would choose."""

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
"""The order that asks no policy."""


def checked_order(order: str | None) -> str:
    """The name of a policy, or `file`; None means the default policy. Raises UserError for any other word."""
    if order is None:
        return DEFAULT_POLICY
    if order != AS_IN_FILE and order not in POLICIES:
        raise UserError("--order", f"there is no {order!r}", f"give {AS_IN_FILE}, or one of {', '.join(POLICIES)}")
    return order


def rank_of(order: str, oracle: ConfigurationOracle) -> Rank | None:
    """The distance of a cell's configuration to the policy's choice for the cell's problem; None where there is no
    policy to ask."""
    if order == AS_IN_FILE:
        return None
    apart = PolicyDistance(POLICIES[order], oracle.target)

    def rank(cell: Cell) -> float:
        config, problem = cell
        return apart(oracle.family(config), oracle.launched(config, problem).configuration, problem)

    return rank


def described_order(order: str, phases: Phases, oracle: ConfigurationOracle) -> str:
    """For a person who looks at a plan: the order that the group's steps take, and by which policy."""
    without = "in the file's order" if oracle.target.shares_the_host else "by the kernel family's own guess"
    if order == AS_IN_FILE:
        return without
    legal = (config for config in first_configurations(phases) if not oracle.rejections(config))
    names = list(dict.fromkeys(oracle.family(config).name for config in legal))
    if any(name in MAPPINGS for name in names):
        return f"nearest to what the policy {order} chooses first"
    return f"{without}, since no policy knows {', '.join(names) or 'these kernels'}"
