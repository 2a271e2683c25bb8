"""`tunesmith heuristics explain --size M N K --type TYPE`: the configuration that a policy chooses, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.devices import choose
from tunesmith.kernels import KERNELS, Kernel
from tunesmith.models.intensity.policies import DEFAULT_POLICY, PolicyRefusal, TilePolicy, policy_named
from tunesmith.models.intensity.policies.family_order import kernel_order
from tunesmith.models.intensity.policies.fitted import fitted_policy
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.models.intensity.policies.mappings import MAPPINGS
from tunesmith.records import Problem, ProblemType, Target, UserError
from tunesmith.report.heuristics import policies as report
from tunesmith.session.stream_k.kernels import type_named

from ..output import Device, Json, print_facts
from ..select import sizes_of

NO_STEPS = "none"


def explain(
    context: typer.Context,
    size: Annotated[str, typer.Option("--size", help="M, N and K; of a batched type M, N, batch and K.")],
    problem_type: Annotated[
        str, typer.Option("--type", help="A data type (s, d, h, b, f8, b8, i8, tf32) or a problem type's name.")
    ] = "s",
    policy: Annotated[
        str | None,
        typer.Option(help=f"trip-count, published-intensity, latency or fitted; {DEFAULT_POLICY} if absent."),
    ] = None,
    heuristic: Annotated[
        Path | None, typer.Option(help="A heuristic's file, by `tunesmith heuristics fit`: its buckets are the policy.")
    ] = None,
    kernel: Annotated[str, typer.Option(help="A kernel family; else the first that can compute the product.")] = "",
    steps: Annotated[
        str | None, typer.Option(help="The steps that act, with commas between; none for none of them.")
    ] = None,
    device: Device = None,
    architecture: Annotated[
        str, typer.Option(help="A known target that need not be here: sm_80, sm_90, sm_100, gfx90a, gfx942, x86-64.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Print the configuration that a policy chooses for a product without measuring anything, with each stage that led
    to it. Exit code 1 where no configuration is legal.

    Example: `tunesmith heuristics explain --size 4096,1024,4096 --type b --architecture sm_90`

    Example: `tunesmith heuristics explain --size 512 512 512 --policy trip-count --kernel RegisterGemm --device CPU`

    Example: `tunesmith heuristics explain --size 512 512 512 --type h --architecture gfx90a --heuristic gfx90a.yaml`
    """
    target = _target(device, architecture)
    problem = _problem(_type(problem_type), sizes_of([size, *context.args]))
    families = _families(kernel, problem, target)
    answer = _policy(policy, heuristic, steps).choose_among(problem, target, families)
    if answer is None:
        what = f"no kernel family with a mapping runs on {target.name} through {target.api}"
        raise UserError("--kernel", what, f"name one of {', '.join(MAPPINGS)}")
    print_facts(as_json, report.explained_document, report.explained, answer, problem, target)
    if isinstance(answer, PolicyRefusal):
        raise typer.Exit(1)


def _target(device: str | None, architecture: str) -> Target:
    if not architecture:
        return choose(device)
    if device is not None:
        what = f"--device {device} is named too"
        raise UserError("--architecture", what, "give one of the two")
    return known_target(architecture)


def _type(name: str) -> ProblemType:
    try:
        return type_named(name)
    except UserError:
        remedy = "give s, d, h, b, f8, b8, i8, tf32, or a name such as Cij_Aik_Bjk_SB"
        raise UserError("--type", f"{name} is no data type and no problem type", remedy) from None


def _problem(problem_type: ProblemType, sizes: tuple[int, ...]) -> Problem:
    if len(sizes) != len(problem_type.indices):
        indices = ", ".join(problem_type.indices)
        raise UserError(
            "--size", f"{len(sizes)} numbers for {problem_type.name}", f"write {indices}, such as 512,512,512"
        )
    return Problem(problem_type, sizes)


def _families(name: str, problem: Problem, target: Target) -> tuple[Kernel, ...]:
    if not name:
        return kernel_order(problem, target)
    if name not in MAPPINGS:
        raise UserError("--kernel", f"no policy maps tiles to {name!r}", f"give one of {', '.join(MAPPINGS)}")
    return (KERNELS[name],)


def _policy(name: str | None, heuristic: Path | None, steps: str | None) -> TilePolicy:
    if name and heuristic:
        raise UserError("--heuristic", f"--policy {name} is named too", "give one of the two")
    policy = fitted_policy(heuristic) if heuristic else policy_named(name or DEFAULT_POLICY)
    if steps is None:
        return policy
    words = [word.strip() for word in steps.split(",") if word.strip()]
    if NO_STEPS in words and len(words) > 1:
        remedy = f"give {NO_STEPS} alone, or only the steps that act"
        raise UserError("--steps", f"{steps} names {NO_STEPS} beside steps", remedy)
    return policy.with_steps(() if words == [NO_STEPS] else words)
