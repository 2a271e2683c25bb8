"""What a policy answers: a configuration with the reasons for it, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.records import Configuration, Rejection


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """One stage of a decision: the name of the step or rule, and what it made of the tile."""

    step: str
    text: str


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A full legal configuration of the family `kernel`, by the policy `policy`. `reason` is one sentence; `lines` are
    the stages that led to it, in their order."""

    policy: str
    kernel: str
    configuration: Configuration
    reason: str
    lines: tuple[ReasonLine, ...]


@dataclass(frozen=True, slots=True)
class PolicyRefusal:
    """No configuration of the family `kernel` is legal for the problem, or the policy finds none; `lines` are the
    stages up to there."""

    policy: str
    kernel: str
    rejection: Rejection
    lines: tuple[ReasonLine, ...]
