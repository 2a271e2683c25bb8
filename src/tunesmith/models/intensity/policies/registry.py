"""The policies by name, and the default policy."""

from __future__ import annotations

from tunesmith.records import Registry, UserError

from .policy import TilePolicy

_HERE = "tunesmith.models.intensity.policies"

POLICIES: Registry[TilePolicy] = Registry(
    "policy",
    {
        "trip-count": f"{_HERE}.by_seed:TripCountPolicy",
        "published-intensity": f"{_HERE}.by_seed:PublishedIntensityPolicy",
        "latency": f"{_HERE}.latency:LatencyPolicy",
        "fitted": f"{_HERE}.packaged:PackagedPolicy",
    },
    group="tunesmith.policies",
)

DEFAULT_POLICY = "latency"
"""The policy that is used if nobody names one. It has the best recorded score (docs/policies.md)."""


def policy_named(name: str) -> TilePolicy:
    """The policy with this name. Raises UserError for an unknown name."""
    if name not in POLICIES:
        raise UserError("--policy", f"there is no {name!r}", f"give one of {', '.join(POLICIES)}")
    return POLICIES[name]
