"""Each promise of the kernel suite is broken by a family that is wrong in one way."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from broken_promises import assert_all_can_be_broken, assert_broken
from tunesmith.devices import open_device
from tunesmith.devices.fake import fake_target
from tunesmith.kernels.fake import FakeGemm
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Launch, Module, OperandArgument, Problem, Rejection, identity
from tunesmith.spaces import ActsAt, Parameter, Space
from tunesmith.testing import KernelSuite, targets_for

NUMBERS = count()


def changed(plan, **values):
    """The same plan with other values in its only launch."""
    (launch,) = plan.steps
    assert isinstance(launch, Launch)
    return replace(plan, steps=(replace(launch, **values),))


def with_operands(plan, *names):
    """The same plan on other operands."""
    (launch,) = plan.steps
    return changed(plan, arguments=(*map(OperandArgument, names), *launch.arguments[len(names) :]))


class WithIdle(FakeGemm):
    """One parameter more, which nothing looks at."""

    idle = Parameter("Idle", 0, (0, 1, 2), "Nothing.")

    def space(self, problem_type, target=None):
        return Space((*super().space(problem_type, target).parameters, self.idle))

    def modules(self, config, problem_type):
        return super().modules(config.without(["Idle"]), problem_type)


class Nameless(FakeGemm):
    name = ""


class MeansNothing(WithIdle):
    idle = Parameter("Idle", 0, (0, 1, 2), "")


class HidesAParameter(FakeGemm):
    def space(self, problem_type, target=None):
        parameters = super().space(problem_type).parameters
        return Space(parameters[:-1] if target else parameters)


class ReasonsInNumbers(FakeGemm):
    def rejections(self, config, problem_type, target):
        for number in config.integers("WorkGroup")[:1]:
            yield Rejection(f"{number} work-items", "too many")


class ChangesItsMind(FakeGemm):
    def rejections(self, config, problem_type, target):
        if next(NUMBERS) % 2:
            yield Rejection("mood", "not now")


class RejectsAll(FakeGemm):
    def rejections(self, config, problem_type, target):
        yield Rejection("principle", "never")


class NumbersItsModules(FakeGemm):
    def modules(self, config, problem_type):
        (module,) = super().modules(config, problem_type)
        return (replace(module, text=f"gemm {next(NUMBERS)}"),)


class NumbersItsPlans(FakeGemm):
    def plan(self, config, problem, target, facts=()):
        return changed(super().plan(config, problem, target), grid=(1 + next(NUMBERS), 1, 1))


class LocalModule(FakeGemm):
    """A module of a class that no other process can import."""

    def modules(self, config, problem_type):
        class Here(Module):
            pass

        return (Here("fake", "gemm", ("gemm",)),)


class ReadsWhatIsNotThere(FakeGemm):
    def plan(self, config, problem, target, facts=()):
        return with_operands(super().plan(config, problem, target), "D", "E")


class WritesNothing(FakeGemm):
    def plan(self, config, problem, target, facts=()):
        return with_operands(super().plan(config, problem, target), "C")


class CompilesWhatActsAtLaunch(WithIdle):
    idle = Parameter("Idle", 0, (0, 1, 2), "Nothing.", ActsAt.LAUNCH)

    def modules(self, config, problem_type):
        return FakeGemm.modules(self, config.without(["Idle"]) | {"Busy": config["Idle"]}, problem_type)


class ForgetsTheLaunch(FakeGemm):
    def identity(self, solution):
        return identity(self.modules(solution.configuration, solution.type), Configuration())


class ActsUnseen(WithIdle):
    def plan(self, config, problem, target, facts=()):
        return changed(super().plan(config, problem, target), shared_bytes=config.integer("Idle"))


class GuessesLessThanNothing(FakeGemm):
    def guess(self, config, problem, target):
        return -1.0


class DerivesLists(FakeGemm):
    def derived(self, config):
        return {"MacroTile": [1, 2]}


class ChecksNothing(FakeGemm):
    def checks(self, config, problem, usual):
        return ()


class IsWrong(FakeGemm):
    def modules(self, config, problem_type):
        return super().modules(config | {"FakeFault": "wrong value"}, problem_type)


BROKEN = {
    "test_it_says_what_it_is": Nameless(),
    "test_every_parameter_has_a_meaning_and_takes_its_own_values": MeansNothing(),
    "test_the_space_of_a_target_has_the_same_parameters": HidesAParameter(),
    "test_why_not_is_a_rejection_with_a_constant_reason": ReasonsInNumbers(),
    "test_rejections_are_the_same_when_they_are_asked_again": ChangesItsMind(),
    "test_something_is_legal_for_every_problem": RejectsAll(),
    "test_modules_are_the_same_when_they_are_asked_again": NumbersItsModules(),
    "test_plans_are_the_same_when_they_are_asked_again": NumbersItsPlans(),
    "test_modules_and_plans_can_be_pickled": LocalModule(),
    "test_a_plan_refers_only_to_what_exists": ReadsWhatIsNotThere(),
    "test_a_plan_writes_every_output": WritesNothing(),
    "test_a_compile_time_parameter_changes_the_identity": WithIdle(),
    "test_a_launch_time_parameter_shares_modules": CompilesWhatActsAtLaunch(),
    "test_a_launch_time_parameter_changes_the_identity": ForgetsTheLaunch(),
    "test_configurations_with_one_identity_have_one_plan": ActsUnseen(),
    "test_a_guess_is_positive_or_none": GuessesLessThanNothing(),
    "test_derived_values_are_told_of_every_configuration": DerivesLists(),
    "test_what_is_checked_before_timing_is_of_the_problems_type": ChecksNothing(),
    "test_results_are_right": IsWrong(),
}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_family_is_found_out(promise):
    class Suite(KernelSuite):
        kernel = BROKEN[promise]
        problems = (Problem(gemm_type("s"), (9, 5, 7), (), Configuration({"alpha": 1.5, "beta": 0.5})),)

        def device(self):
            return open_device(fake_target())

    assert_broken(Suite(), promise)


def test_every_promise_can_be_broken():
    assert_all_can_be_broken(KernelSuite, BROKEN)


FAULTS = ["unwritten element", "modify an input", "write past the end", "write before the start", "write between rows"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_family_that_writes_where_it_should_not_is_found_out(fault):
    class Harms(FakeGemm):
        def modules(self, config, problem_type):
            return super().modules(config | {"FakeFault": fault}, problem_type)

    class Suite(KernelSuite):
        kernel = Harms()
        problems = (Problem(gemm_type("s"), (9, 5, 7), (11, 11, 9, 5), Configuration({"alpha": 1.5, "beta": 0.5})),)

        def device(self):
            return open_device(fake_target())

    assert_broken(Suite(), "test_results_are_right")


def test_a_suite_that_is_told_too_little_says_so():
    suite = KernelSuite()
    suite.kernel, suite.problems = FakeGemm(), ()
    assert_broken(suite, "test_rejections_are_the_same_when_they_are_asked_again")
    with pytest.raises(LookupError, match="'COBOL'; set `targets`"):
        targets_for("COBOL")
