"""What every toolchain promises: see `toolchains.Toolchain`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tunesmith.devices import Device
from tunesmith.records import Binary, Module, Target
from tunesmith.toolchains import CompileError, Toolchain

from .promises import pickled, raised


class ToolchainSuite:
    """Set `toolchain`, `target` (or override `find_target`), a `module` that compiles and one, `broken`, that does not.

    Override `device` to have binaries loaded.
    """

    toolchain: Toolchain
    target: Target
    module: Module
    broken: Module

    def find_target(self) -> Target:
        """What is compiled for."""
        return self.target

    def device(self) -> Device | None:
        """A live device that loads the binaries; None leaves loading out."""
        return None

    @pytest.fixture(autouse=True)
    def _available(self, request: pytest.FixtureRequest) -> None:
        """Only what asks about that is asked of a toolchain that this machine does not have."""
        if "unavailable" not in request.node.name and (missing := self.toolchain.unavailable()):
            pytest.skip(missing)

    def test_where_it_is_unavailable_it_says_why(self) -> None:
        for _ in range(2):
            missing = self.toolchain.unavailable()
            assert missing is None or missing.strip(), "`unavailable` must be None or say why, with the remedy"

    def test_it_can_be_made_in_every_process(self) -> None:
        try:
            other = type(self.toolchain)()
        except TypeError as error:
            raise AssertionError(f"a toolchain must be made of its class, without arguments: {error}") from error
        assert other.language == self.toolchain.language, "each toolchain of a class must compile one language"

    def test_it_compiles_its_own_language(self) -> None:
        languages = {self.toolchain.language, self.module.language, self.broken.language}
        assert len(languages) == 1, f"a toolchain must be asked for its own language; here are {languages}"

    def test_its_version_and_conditions_are_part_of_keys(self) -> None:
        target = self.find_target()
        version, conditions = self.toolchain.version(target), self.toolchain.conditions(target)
        assert version.strip(), "the version must not be empty: measurements are kept under it"
        assert conditions, "there must be conditions: binaries are kept under them"
        assert all(isinstance(condition, str) for condition in conditions), f"conditions must be words: {conditions}"
        assert version in conditions, f"the version {version!r} must be among the conditions {conditions}"
        again = (self.toolchain.version(target), self.toolchain.conditions(target))
        assert again == (version, conditions), "version and conditions must be the same when they are asked again"

    def test_a_binary_is_that_of_its_module(self) -> None:
        binary = self._compiled()
        assert binary.module == self.module.digest(), "a binary must name its module by the module's digest"
        assert binary.language == self.toolchain.language, "a binary must have the language of its module"
        assert binary.payload, "a binary must have a payload"
        entries = tuple(fact.entry for fact in binary.facts)
        assert entries == self.module.entries, f"there must be facts of each entry, in order: {entries}"

    def test_compiling_again_gives_the_same_binary(self) -> None:
        assert self._compiled() == self._compiled(), "compile must be deterministic: one module gave two binaries"

    def test_whether_binaries_may_be_kept_is_said_of_every_module(self) -> None:
        for module in (self.module, self.broken, replace(self.module, options=(*self.module.options, "-I."))):
            first, second = (self.toolchain.keeps(module) for _ in range(2))
            assert first is second, f"`keeps` must say the same again, it said {first} and {second}"
            assert first is True or first is False, f"`keeps` must say whether a binary may be kept, not {first}"

    def test_a_compile_error_is_a_reason_and_a_log(self) -> None:
        error = self._refused()
        assert error.reason.strip(), "a CompileError must have a reason that reports can count by"
        assert "\n" not in error.reason, "the reason must be a constant; what the compiler said belongs into the log"
        assert error.log.strip(), "a CompileError must have a log that says what is wrong"
        back = pickled(error, "a CompileError")
        assert (back.reason, back.log) == (error.reason, error.log), "a CompileError must come through a process whole"

    def test_it_compiles_after_a_compile_error(self) -> None:
        before = self._compiled()
        self._refused()
        assert self._compiled() == before, "a compile error must leave nothing behind"

    def test_a_binary_comes_back_from_pickle_and_loads_again(self) -> None:
        binary = self._compiled()
        back = pickled(binary, "a binary")
        assert back == binary, "a binary must come back from pickle as it was"
        if device := self.device():
            for _ in range(2):
                assert device.load(back) is not None, "a device must load a binary, and load it again"

    def test_it_leaves_the_folder_as_it_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        self._compiled()
        assert not list(tmp_path.iterdir()), "compile must leave no file in the folder where it is called"

    def test_its_architectures_are_those_that_targets_name(self) -> None:
        known = self.toolchain.architectures()
        assert all(isinstance(name, str) and name for name in known), f"architectures must be names: {known}"
        architecture = self.find_target().architecture
        assert not known or architecture in known, f"it compiled for {architecture}, which it does not list: {known}"

    def test_is_complete_answers_for_every_binary(self) -> None:
        binary = self._compiled()
        answer = self.toolchain.is_complete(binary)
        assert answer is True or answer is False, "is_complete must say whether anything is left to compile"

    def _compiled(self) -> Binary:
        return self.toolchain.compile(self.module, self.find_target())

    def _refused(self) -> CompileError:
        target = self.find_target()
        promise = "compile must raise CompileError for a module that is wrong"
        return raised(CompileError, lambda: self.toolchain.compile(self.broken, target), promise)
