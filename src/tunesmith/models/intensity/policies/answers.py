"""The answer of a policy: a configuration with the reasons for it, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.records import Configuration, Rejection


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """One stage of a decision: the name of the step or rule, and its result."""

    step: str
    text: str


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A full legal configuration of the family `kernel`, chosen by `policy`. `reason` is one sentence; `lines` are the
    stages that led to the configuration, in their order."""

    policy: str
    kernel: str
    configuration: Configuration
    reason: str
    lines: tuple[ReasonLine, ...]


@dataclass(frozen=True, slots=True)
class PolicyRefusal:
    """No configuration of the family `kernel` is legal for the problem, or the policy finds none. `lines` are the
    stages until then."""

    policy: str
    kernel: str
    rejection: Rejection
    lines: tuple[ReasonLine, ...]
