"""Each promise of the toolchain suite is broken by a compiler that is wrong in one way."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from broken_promises import assert_all_can_be_broken, assert_broken
from tunesmith.devices.fake import fake_target
from tunesmith.records import Configuration, Module
from tunesmith.testing import ToolchainSuite
from tunesmith.toolchains import CompileError, Toolchain
from tunesmith.toolchains.fake import FakeToolchain

NUMBERS = count()


class LacksSomething(FakeToolchain):
    def unavailable(self):
        return ""


class NeedsAnArgument(FakeToolchain):
    def __init__(self, path):
        self.path = path


class SpeaksAnotherLanguage(FakeToolchain):
    language = "another"


class HasNoVersion(FakeToolchain):
    def version(self, target):
        return ""


class NamesNoModule(FakeToolchain):
    def compile(self, module, target):
        return replace(super().compile(module, target), module="")


class NumbersItsBinaries(FakeToolchain):
    def compile(self, module, target):
        return replace(super().compile(module, target), payload=str(next(NUMBERS)).encode())


class KeepsEverySecond(FakeToolchain):
    def keeps(self, module):
        return next(NUMBERS) % 2 == 0


class RefusesSilently(FakeToolchain):
    def compile(self, module, target):
        try:
            return super().compile(module, target)
        except CompileError as error:
            raise CompileError(error.reason, "") from error


class CompilesAnything(FakeToolchain):
    def compile(self, module, target):
        return super().compile(replace(module, constants=Configuration()), target)


class IsUpsetByAnError(FakeToolchain):
    upset = False

    def compile(self, module, target):
        try:
            return replace(super().compile(module, target), payload=b"upset" if self.upset else b"fine")
        except CompileError:
            self.upset = True
            raise


class MakesLocalPayloads(FakeToolchain):
    def compile(self, module, target):
        class Payload(bytes):
            pass

        return replace(super().compile(module, target), payload=Payload(b"here"))


class LeavesAFile(FakeToolchain):
    def compile(self, module, target):
        Path("module.tmp").write_text("left")
        return super().compile(module, target)


class KnowsOneArchitecture(FakeToolchain):
    def architectures(self):
        return ("sm_1",)


class CannotTell(FakeToolchain):
    def is_complete(self, binary):
        return None


BROKEN: dict[str, Toolchain] = {
    "test_where_it_is_unavailable_it_says_why": LacksSomething(),
    "test_it_can_be_made_in_every_process": NeedsAnArgument("here"),
    "test_it_compiles_its_own_language": SpeaksAnotherLanguage(),
    "test_its_version_and_conditions_are_part_of_keys": HasNoVersion(),
    "test_a_binary_is_that_of_its_module": NamesNoModule(),
    "test_compiling_again_gives_the_same_binary": NumbersItsBinaries(),
    "test_whether_binaries_may_be_kept_is_said_of_every_module": KeepsEverySecond(),
    "test_a_compile_error_is_a_reason_and_a_log": RefusesSilently(),
    "test_it_compiles_after_a_compile_error": IsUpsetByAnError(),
    "test_a_binary_comes_back_from_pickle_and_loads_again": MakesLocalPayloads(),
    "test_it_leaves_the_folder_as_it_is": LeavesAFile(),
    "test_its_architectures_are_those_that_targets_name": KnowsOneArchitecture(),
    "test_is_complete_answers_for_every_binary": CannotTell(),
}


def suite_of(toolchain):
    suite = ToolchainSuite()
    suite.toolchain, suite.target, suite.module = toolchain, fake_target(), Module("fake", "gemm", ("gemm",))
    suite.broken = replace(suite.module, constants=Configuration({"Fault": "compile error"}))
    return suite


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_toolchain_is_found_out(promise, tmp_path, monkeypatch):
    fixtures = (tmp_path, monkeypatch) if "folder" in promise else ()
    assert_broken(suite_of(BROKEN[promise]), promise, *fixtures)


def test_a_compiler_that_refuses_nothing_is_found_out():
    assert_broken(suite_of(CompilesAnything()), "test_a_compile_error_is_a_reason_and_a_log")


def test_every_promise_can_be_broken():
    assert_all_can_be_broken(ToolchainSuite, BROKEN)
