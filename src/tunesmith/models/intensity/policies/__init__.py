"""Policies: choose a full legal configuration for a problem that was never tuned, without measuring.

`POLICIES` has the policies by name. A policy wishes for a tile. The family's entry in `mappings` turns the wish into a
configuration of that family. The family's own rules then decide whether the configuration is legal (`legal.py`).
"""

from .answers import PolicyChoice, PolicyRefusal, ReasonLine
from .policy import STEPS, TilePolicy
from .registry import DEFAULT_POLICY, POLICIES, policy_named

__all__ = [
    "DEFAULT_POLICY",
    "POLICIES",
    "STEPS",
    "PolicyChoice",
    "PolicyRefusal",
    "ReasonLine",
    "TilePolicy",
    "policy_named",
]
