"""The policies by name, and which of them is asked where nobody names one."""

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
"""Asked where nobody names a policy: by what is recorded (docs/policies.md), it chooses best."""


def policy_named(name: str) -> TilePolicy:
    """Raises UserError for a name that no policy has."""
    if name not in POLICIES:
        raise UserError("--policy", f"there is no {name!r}", f"give one of {', '.join(POLICIES)}")
    return POLICIES[name]
