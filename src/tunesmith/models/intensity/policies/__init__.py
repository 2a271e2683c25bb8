"""A tile for a product that nobody tuned: policies that turn a problem into a full legal configuration, unmeasured.

`POLICIES` has them by name. A policy wishes for a tile; the family's entry in `mappings` turns the wish into a
configuration of that family; the family's own rules then say whether it is legal (`legal.py`).
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
