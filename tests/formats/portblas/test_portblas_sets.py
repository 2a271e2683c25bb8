"""Parameter sets by name: the shipped sets, and the user's."""

from __future__ import annotations

import os

import pytest

from tunesmith.formats.portblas.parameter_files import ENVIRONMENT, RuleSet, find_set, list_sets, read
from tunesmith.records import UserError


def test_the_sets_that_ship_are_valid_modest_and_say_what_they_are_for():
    sets = [shipped_set for shipped_set in list_sets() if shipped_set.shipped]
    assert [shipped_set.name for shipped_set in sets] == ["amd", "cpu", "default", "intel", "nvidia"]
    for shipped_set in sets:
        config = read(shipped_set.path, RuleSet.OURS)
        assert config.about
        assert not config.notes
        assert {combination.algorithm for combination in config.combinations} == {
            "local",
            "non_local",
            "interleaved",
            "naive",
            "tall_skinny",
        }
        assert 50 <= len(config.combinations) <= 500
        assert all(count.valid for count in config.counts.values())


def test_a_set_is_found_by_name_first_in_the_user_s_folders(tmp_path, monkeypatch):
    user_folder, environment = tmp_path / "given", tmp_path / "environment"
    for folder, names in ((user_folder, ["mine"]), (environment, ["mine", "other", "cpu"])):
        folder.mkdir()
        for name in names:
            (folder / f"{name}.json").write_text("{}")
    monkeypatch.setenv(ENVIRONMENT, os.pathsep.join(["", str(environment)]))
    assert find_set("mine", [user_folder]) == user_folder / "mine.json"
    assert find_set("mine") == find_set("mine.json") == environment / "mine.json"
    assert find_set("other", [user_folder]) == environment / "other.json"
    assert find_set("cpu") == environment / "cpu.json"
    assert find_set("nvidia", [user_folder]).parent.name == "sets"
    assert find_set(user_folder / "mine.json") == user_folder / "mine.json"
    assert {found_set.name: found_set.shipped for found_set in list_sets([user_folder])}.items() >= {
        ("mine", False),
        ("nvidia", True),
    }


def test_a_name_that_no_set_has(tmp_path, monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    with pytest.raises(UserError, match=r"nvidea: is neither a file nor the name of a set; did you mean nvidia\?"):
        find_set("nvidea")
    with pytest.raises(UserError, match=r"one of amd, cpu, default, intel, nvidia"):
        find_set(tmp_path / "absent.json")
    with pytest.raises(UserError, match=r"--folder: .*absent is no folder"):
        find_set("nvidia", [tmp_path / "absent"])
