"""Siblings of other distributions: found lazily by entry point; a broken sibling does not affect the others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tunesmith.kernels import KERNELS, families_of
from tunesmith.kernels.registry import OWN as OWN_FAMILIES
from tunesmith.records import Registry, UserError, _registry

GROUP = "tunesmith.testing"
OWN = {"list": "builtins:list"}


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A function that puts distributions on the path (name=text of its entry points) and returns a registry."""

    def make(**distributions):
        for name, entries in distributions.items():
            folder = tmp_path / name / f"{name}-2.1.dist-info"
            folder.mkdir(parents=True)
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.1\n")
            (folder / "entry_points.txt").write_text(f"[{GROUP}]\n{entries}\n")
            monkeypatch.syspath_prepend(folder.parent)
        _registry.installed.cache_clear()
        return Registry("thing", OWN, group=GROUP)

    yield make
    _registry.installed.cache_clear()


def test_siblings_of_a_distribution_follow_our_own(registry):
    things = registry(theirs="set = builtins:set\nlist = builtins:dict")
    assert list(things) == ["list", "set"]
    assert "set" in things
    assert things["set"] == set()
    assert things["list"] == [], "a name of ours stays ours"
    assert things["set"] is things["set"], "each is made once"


def test_a_broken_distribution_is_named_and_does_not_affect_others(registry):
    things = registry(broken="bad = no_such_module:thing\nworse = builtins:nothing_such", sound="set = builtins:set")
    for name, reason in (("bad", "no_such_module"), ("worse", "nothing_such")):
        with pytest.raises(UserError) as caught:
            things[name]
        assert caught.value.location == f"broken 2.1, [{GROUP}]"
        assert f"entry point {name} = " in str(caught.value)
        assert reason in str(caught.value)
    with pytest.warns(UserWarning, match="entry point (bad|worse)"):
        assert list(things.values()) == [[], set()]


def test_the_complete_objects_are_made_anew_only_when_the_distributions_change(registry):
    things = registry(theirs="set = builtins:set")
    assert things.complete() == ([], set())
    assert things.complete() is things.complete()
    registry(more="dict = builtins:dict")
    assert things.complete() == ([], set(), {})


def test_a_part_has_those_of_our_own_that_belong_to_it_and_all_installed_ones(registry):
    registry(theirs="set = builtins:set")
    own = {"list": "builtins:list", "never": "no_such_module:thing", "dict": "builtins:dict"}
    things = Registry("thing", own, group=GROUP, parts={"list": "ordered", "never": "other"})
    assert things.complete("ordered") == ([], {}, set()), "what belongs to no part belongs to all"
    assert things.complete("ordered") is things.complete("ordered")
    with pytest.raises(ModuleNotFoundError):
        things.complete()


def test_each_kernel_family_is_registered_for_its_operation():
    for operation, families in OWN_FAMILIES.items():
        assert {KERNELS[name].operation for name in families} == {operation}
        assert [kernel.name for kernel in families_of(operation)][: len(families)] == list(families)


def test_the_families_of_one_operation_are_imported_without_those_of_others():
    program = """
import sys
from tunesmith.kernels import families_of
assert [kernel.name for kernel in families_of("Custom")][:1] == ["Custom"]
print(*sys.modules)
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"tunesmith.kernels.gemm.triton.dense", "tunesmith.kernels.random"} & set(shown.split())


def test_the_complete_objects_are_not_kept_while_a_distribution_is_broken(registry):
    things = registry(broken="bad = no_such_module:thing")
    for _ in range(2):
        with pytest.warns(UserWarning, match="entry point bad"):
            assert things.complete() == ([],)


def test_an_unknown_name_is_answered_with_all_that_exist(registry):
    with pytest.raises(KeyError, match="no thing named 'map'; there are list, set"):
        registry(theirs="set = builtins:set")["map"]


def test_our_own_names_need_no_search_of_distributions():
    program = """
import sys
from tunesmith.records import Registry
things = Registry("thing", {"list": "builtins:list"}, group="tunesmith.testing")
assert "list" in things and things["list"] == []
assert "importlib.metadata" not in sys.modules
assert list(things) == ["list"]
assert "importlib.metadata" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_registry_has_a_group_of_its_own():
    from tunesmith.devices import APIS
    from tunesmith.kernels import KERNELS
    from tunesmith.library.call_adapters import CALL_ADAPTERS
    from tunesmith.problems import OPERATIONS
    from tunesmith.search import STRATEGIES
    from tunesmith.toolchains import TOOLCHAINS

    groups = [registry._group for registry in (OPERATIONS, KERNELS, TOOLCHAINS, APIS, STRATEGIES, CALL_ADAPTERS)]
    kinds = ("operations", "kernels", "toolchains", "devices", "strategies", "doors")
    assert groups == [f"tunesmith.{kind}" for kind in kinds]
