"""What a person sees of a policy's choice: each stage that led to it, and the configuration."""

from __future__ import annotations

from rich.console import Group, RenderableType

from tunesmith.models.intensity.policies import PolicyChoice, PolicyRefusal
from tunesmith.records import Problem, Target, thaw

from ..table import table, titled

Answer = PolicyChoice | PolicyRefusal


def explained(answer: Answer, problem: Problem, target: Target) -> RenderableType:
    """The stages as rows; then the configuration in one line, or the reason why there is none."""
    title = f"{problem} of {problem.type.name} on {target.name}: {answer.policy}, {answer.kernel}"
    rows = table("step", "what it decides", rows=((line.step, line.text) for line in answer.lines))
    if isinstance(answer, PolicyRefusal):
        return Group(titled(title, rows), f"no configuration: {answer.rejection}")
    values = ", ".join(f"{name}: {_value(value)}" for name, value in answer.configuration.items())
    return Group(titled(title, rows), f"configuration: {{{values}}}")


def explained_document(answer: Answer, problem: Problem, target: Target) -> dict[str, object]:
    """For `--json`."""
    found = answer if isinstance(answer, PolicyChoice) else None
    return {
        "problem_type": problem.type.name,
        "sizes": list(problem.sizes),
        "device": target.name,
        "architecture": target.architecture,
        "policy": answer.policy,
        "kernel": answer.kernel,
        "configuration": {name: thaw(value) for name, value in found.configuration.items()} if found else {},
        "reason": found.reason if found else "",
        "rejection": str(answer.rejection) if isinstance(answer, PolicyRefusal) else None,
        "lines": [{"step": line.step, "text": line.text} for line in answer.lines],
    }


def _value(value: object) -> str:
    return "[" + ", ".join(map(_value, value)) + "]" if isinstance(value, tuple) else str(value)
