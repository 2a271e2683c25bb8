"""What every kernel family promises: see `kernels.Kernel`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import pytest

from tunesmith.devices import Device
from tunesmith.kernels import Kernel
from tunesmith.problems import OPERATIONS, Operation, storage_bytes
from tunesmith.records import (
    Argument,
    Configuration,
    Launch,
    LibraryCall,
    LocalArgument,
    Module,
    OperandArgument,
    Plan,
    Problem,
    Rejection,
    Solution,
    Step,
    Target,
    TensorMapArgument,
    UserError,
    WorkspaceArgument,
    Write,
    Zero,
    freeze,
)
from tunesmith.spaces import ActsAt, Parameter
from tunesmith.toolchains import TOOLCHAINS

from .configurations import LegalConfigurations, around
from .guarded import mistakes
from .promises import pickled
from .targets import targets_for

_MOST_PLANS = 40
"""Legal configurations whose plans are looked at, for each problem and target."""


class KernelSuite:
    """Set `kernel`, and `problems`: small ones of the types that it computes.

    `configurations` are more starting points than the defaults, for parameters that act only together; `targets` the
    devices that it is asked about; `operation` what says which results are right, if it is not registered. Override
    `device` to have `launched` configurations verified on a live device.
    """

    kernel: Kernel
    problems: tuple[Problem, ...]
    configurations: tuple[Configuration, ...] = ()
    targets: tuple[Target, ...] = ()
    operation: Operation | None = None
    launched: int = 2

    def device(self) -> Device | None:
        """A live device that runs the language of the family; None leaves the results out."""
        return None

    def test_it_says_what_it_is(self) -> None:
        for what in ("name", "operation", "language"):
            assert getattr(self.kernel, what, ""), f"a family must have a {what}"
        for problem in self.problems:
            assert problem.type.operation == self.kernel.operation, f"it computes no {problem.type.operation}"

    def test_every_parameter_has_a_meaning_and_takes_its_own_values(self) -> None:
        for problem in self.problems:
            space = self.kernel.space(problem.type)
            names = [parameter.name for parameter in space]
            assert len(set(names)) == len(names), f"a space must name each parameter once: {names}"
            for parameter in space:
                assert parameter.doc.strip(), f"{parameter.name} must say what it means: it becomes documentation"
                for value in (parameter.default, *parameter.values):
                    try:
                        meant = parameter.check(value, parameter.name)
                    except UserError as refused:
                        raise AssertionError(f"a parameter must accept the values it lists: {refused}") from refused
                    assert meant == value, f"{parameter.name} must take its value {value!r} as it is, not as {meant!r}"

    def test_the_space_of_a_target_has_the_same_parameters(self) -> None:
        for problem, target in self._asked:
            without, with_target = (self.kernel.space(problem.type, known_target) for known_target in (None, target))
            names = ({p.name for p in with_target}, {p.name for p in without})
            assert names[0] == names[1], f"a target must not change which parameters there are: {names[0] ^ names[1]}"

    def test_why_not_is_a_rejection_with_a_constant_reason(self) -> None:
        """Two reasons that differ only in their numbers are one reason with something of the detail in it."""
        reasons: dict[str, str] = {}
        for problem, target in self._asked:
            for config in self._around(problem, target):
                for rejection in self._rejections(config, problem, target):
                    assert isinstance(rejection, Rejection), f"why not must be said by a Rejection: {rejection!r}"
                    assert rejection.reason.strip(), f"a rejection must have a reason: {config}"
                    assert rejection.detail.strip(), f"a rejection must have a detail: {rejection.reason}"
                    first = reasons.setdefault(re.sub(r"\d+", "#", rejection.reason), rejection.reason)
                    assert first == rejection.reason, (
                        f"a reason must be a constant: {first!r} and {rejection.reason!r} differ in their numbers"
                    )

    def test_rejections_are_the_same_when_they_are_asked_again(self) -> None:
        for problem, target in self._asked:
            for config in self._around(problem, target):
                first, second = (list(self._rejections(config, problem, target)) for _ in range(2))
                assert first == second, f"a family must be pure: it judges {config} in two ways"

    def test_something_is_legal_for_every_problem(self) -> None:
        for problem in self.problems:
            found = [self._legal[problem, target].legal for target in self._targets]
            assert any(found), (
                f"a family must be able to run something: none of its configurations is legal for {problem} of "
                f"{problem.type.name}; give `configurations` or `targets` for which one is"
            )

    def test_modules_are_the_same_when_they_are_asked_again(self) -> None:
        other = pickled(self.kernel, "a family")
        for problem, _, config in self._plans():
            modules = self.kernel.modules(config, problem.type)
            assert modules, "there must be a module: a launch names it"
            for again in (self.kernel, other):
                assert again.modules(config, problem.type) == modules, f"modules must be deterministic: {config}"

    def test_plans_are_the_same_when_they_are_asked_again(self) -> None:
        other = pickled(self.kernel, "a family")
        for problem, target, config in self._plans():
            plan = self.kernel.plan(config, problem, target)
            for again in (self.kernel, other):
                assert again.plan(config, problem, target) == plan, f"plan must be deterministic: {config}"
            assert plan.digest() == again.plan(config, problem, target).digest(), "a plan must keep its digest"

    def test_modules_and_plans_can_be_pickled(self) -> None:
        for problem, target, config in self._plans():
            made = self.kernel.modules(config, problem.type), self.kernel.plan(config, problem, target)
            assert pickled(made, "modules and plan") == made, f"modules and plan must come back from pickle: {config}"

    def test_a_plan_refers_only_to_what_exists(self) -> None:
        for problem, target, config in self._plans():
            modules = self.kernel.modules(config, problem.type)
            plan = self.kernel.plan(config, problem, target)
            sizes = {operand.name: storage_bytes(operand) for operand in self._operation.operands(problem)}
            for step in plan.from_scratch.steps:
                for wrong in _wrong_step(step, modules, sizes, plan, target):
                    raise AssertionError(f"a plan must refer only to what exists: {wrong} ({config} on {problem})")

    def test_a_plan_writes_every_output(self) -> None:
        for problem, target, config in self._plans():
            plan = self.kernel.plan(config, problem, target)
            if any(isinstance(step, LibraryCall) for step in plan.steps):
                continue  # the library is told of all operands
            written = {name for step in plan.steps for name in _named(step)}
            outputs = {operand.name for operand in self._operation.operands(problem) if operand.role != "in"}
            assert outputs <= written, f"a plan must name every output; {outputs - written} is missing ({config})"

    def test_a_compile_time_parameter_changes_the_identity(self) -> None:
        for name, groups in self._variants(ActsAt.COMPILE).items():
            changed = any(len({self._identity(problem, config) for config in group}) > 1 for problem, group in groups)
            assert changed or not groups, f"a compile-time parameter must change a module for some value, {name} too"

    def test_a_launch_time_parameter_shares_modules(self) -> None:
        for name, groups in self._variants(ActsAt.LAUNCH).items():
            shared = any(
                len({self.kernel.modules(config, problem.type) for config in group}) < len(group)
                for problem, group in groups
            )
            assert shared or not groups, f"values of a launch-time parameter must share a program, those of {name} too"

    def test_a_launch_time_parameter_changes_the_identity(self) -> None:
        for name, groups in self._variants(ActsAt.LAUNCH).items():
            for problem, group in groups:
                different = {self._identity(problem, config) for config in group}
                assert len(different) == len(group), f"each value of {name} must give its own identity: {group[0]}"

    def test_configurations_with_one_identity_have_one_plan(self) -> None:
        """They are measured once, so nothing that is launched may differ."""
        for problem, target in self._asked:
            first: dict[str, tuple[Configuration, Plan]] = {}
            for config in self._legal[problem, target].legal:
                plan = self.kernel.plan(config, problem, target)
                other, its_plan = first.setdefault(self._identity(problem, config), (config, plan))
                assert plan == its_plan, f"one identity must mean one plan; these have two: {config} and {other}"

    def test_a_guess_is_positive_or_none(self) -> None:
        for problem, target, config in self._plans():
            seconds = self.kernel.guess(config, problem, target)
            fine = seconds is None or 0 < seconds < math.inf
            assert fine, f"a guess must be a positive number of seconds, or None: {seconds} for {config} on {problem}"

    def test_derived_values_are_told_of_every_configuration(self) -> None:
        for problem, target in self._asked:
            for config in self._around(problem, target):
                derived = self.kernel.derived(config)
                assert self.kernel.derived(config) == derived, f"derived values must be deterministic: {config}"
                for name, value in derived.items():
                    assert freeze(value) == value, f"{name} must be what a configuration can hold, not {value!r}"

    def test_what_is_checked_before_timing_is_of_the_problems_type(self) -> None:
        for problem, _, config in self._plans():
            checks = self.kernel.checks(config, problem, self._operation.checks(problem))
            assert checks, f"a problem must be verified before it is timed: {config}"
            for check in checks:
                assert check.type == problem.type, f"what is checked must be of the problem's type: {check.type.name}"

    def test_results_are_right(self) -> None:
        if (device := self.device()) is None:
            pytest.skip("no device was given: override `device`")
        verified = 0
        for problem in self.problems:
            legal = _legal(self.kernel, problem, device.target, self._around(problem, device.target)).legal
            verified += sum(self._verify(device, config, problem) for config in legal[: self.launched])
        assert verified, f"nothing was verified: no configuration is legal on {device.target.name}"

    def _verify(self, device: Device, config: Configuration, problem: Problem) -> bool:
        """Whether it was launched, and not rejected for what the compiler made of it."""
        modules = self.kernel.modules(config, problem.type)
        binaries = [TOOLCHAINS[module.language].compile(module, device.target) for module in modules]
        facts = [fact for binary in binaries for fact in binary.facts]
        if list(self.kernel.rejections_compiled(config, facts, device.target)):
            return False
        programs = [device.load(binary) for binary in binaries]
        for check in self.kernel.checks(config, problem, self._operation.checks(problem)):
            plan = self.kernel.plan(config, check, device.target, facts)
            found = mistakes(device, programs, plan, self._operation, check)
            assert not found, f"what is not rejected must be right: {'; '.join(found)} ({config} on {check})"
        return True

    @cached_property
    def _operation(self) -> Operation:
        return self.operation or OPERATIONS[self.kernel.operation]

    @cached_property
    def _targets(self) -> tuple[Target, ...]:
        return self.targets or targets_for(self.kernel.language)

    @property
    def _asked(self) -> Iterator[tuple[Problem, Target]]:
        assert self.problems, "the suite needs problems to look at"
        return ((problem, target) for problem in self.problems for target in self._targets)

    def _around(self, problem: Problem, target: Target) -> list[Configuration]:
        return around(self.kernel.space(problem.type, target), self.configurations)

    def _rejections(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        found = list(self.kernel.rejections(config, problem.type, target))
        yield from found or self.kernel.rejections_for(config, problem, target)

    @property
    def _legal(self) -> Mapping[tuple[Problem, Target], LegalConfigurations]:
        """Looked for once for all tests of a suite."""
        found: dict[tuple[Problem, Target], LegalConfigurations] | None = vars(type(self)).get("_found")
        if found is None:
            found = {
                (problem, target): _legal(self.kernel, problem, target, self._around(problem, target))
                for problem, target in self._asked
            }
            type(self)._found = found  # type: ignore[attr-defined]  # each subclass has its own
        return found

    def _plans(self) -> Iterator[tuple[Problem, Target, Configuration]]:
        """Legal configurations of every problem and target, which may be planned."""
        for (problem, target), found in self._legal.items():
            step = max(1, -(-len(found.legal) // _MOST_PLANS))
            yield from ((problem, target, config) for config in found.legal[::step])

    def _variants(self, when: ActsAt) -> dict[str, list[tuple[Problem, list[Configuration]]]]:
        """By parameter, legal configurations that differ in nothing else."""
        found: dict[str, list[tuple[Problem, list[Configuration]]]] = {}
        for (problem, _), legal in self._legal.items():
            parameters: list[Parameter] = [parameter for parameter in legal.space if parameter.when is when]
            for parameter in parameters:
                groups = found.setdefault(parameter.name, [])
                groups += [(problem, group) for group in legal.variants(parameter)]
        return found

    def _identity(self, problem: Problem, config: Configuration) -> str:
        return self.kernel.identity(Solution(problem.type, self.kernel.name, config))


def _legal(kernel: Kernel, problem: Problem, target: Target, configs: Sequence[Configuration]) -> LegalConfigurations:
    def is_legal(config: Configuration) -> bool:
        refused = any(True for _ in kernel.rejections(config, problem.type, target))
        return not refused and not any(True for _ in kernel.rejections_for(config, problem, target))

    return LegalConfigurations(kernel.space(problem.type, target), tuple(filter(is_legal, configs)), is_legal)


def _wrong_step(
    step: Step, modules: Sequence[Module], sizes: Mapping[str, int], plan: Plan, target: Target
) -> Iterator[str]:
    """What a step refers to that is not there, in words."""
    every = {**sizes, "": plan.workspace_bytes}
    match step:
        case Zero(operand, offset, size):
            if operand not in every or not 0 <= offset <= offset + size <= every[operand]:
                yield f"it zeroes bytes {offset} to {offset + size} of {operand or 'the workspace'}"
        case Write(offset, data):
            if not 0 <= offset <= offset + len(data) <= plan.workspace_bytes:
                yield f"it writes bytes {offset} to {offset + len(data)} of {plan.workspace_bytes} in the workspace"
        case LibraryCall(module, function):
            if not 0 <= module < len(modules) or function not in modules[module].entries:
                yield f"it calls {function} of module {module}"
        case Launch():
            if not 0 <= step.module < len(modules) or step.entry not in modules[step.module].entries:
                yield f"it launches {step.entry!r} of module {step.module}"
            if min(step.grid) < 1 or min(step.work_group) < 1:
                yield f"a launch of {step.grid} work-groups of {step.work_group} work-items is empty"
            if (items := math.prod(step.work_group)) > target.max_work_group_size:
                yield f"a work-group has {items} work-items, the device allows {target.max_work_group_size}"
            if not 0 <= step.shared_bytes <= target.local_memory_bytes:
                yield f"{step.shared_bytes} bytes of local memory, the device has {target.local_memory_bytes}"
            yield from (f"it passes {argument}" for argument in step.arguments if not _exists(argument, every, target))


def _exists(argument: Argument, sizes: Mapping[str, int], target: Target) -> bool:
    match argument:
        case OperandArgument(name):
            return name in sizes and name != ""
        case WorkspaceArgument(offset):
            return 0 <= offset < max(sizes[""], 1)
        case TensorMapArgument():
            return argument.name in sizes and len(argument.shape) == len(argument.strides) == len(argument.block)
        case LocalArgument(size):
            return 0 < size <= target.local_memory_bytes
        case _:
            return True


def _named(step: Step) -> set[str]:
    """The operands that a step names."""
    if isinstance(step, Zero):
        return {step.operand}
    if not isinstance(step, Launch):
        return set()
    return {argument.name for argument in step.arguments if isinstance(argument, (OperandArgument, TensorMapArgument))}
