"""Which files are library logic, and what is left of a file that is written anew."""

from __future__ import annotations

import os
import subprocess

import pytest
from test_logic_select import GOOD

from tunesmith.logic import logic_files, write_atomically


def test_a_folders_logic_is_found_by_its_mark_in_every_depth(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    for path in (tmp_path / "z.yaml", deep / "first.yml", deep / "second.yaml"):
        path.write_text(GOOD)
    (tmp_path / "tuning.yaml").write_text("GlobalParameters: {}\n")
    (tmp_path / "indented.yaml").write_text("  tunesmith-logic: 3\n")
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "logic.txt").write_text(GOOD)
    assert logic_files(tmp_path) == [deep / "first.yml", deep / "second.yaml", tmp_path / "z.yaml"]


def test_the_mark_may_stand_in_any_line(tmp_path):
    (tmp_path / "logic.yaml").write_text("# by hand\n\ntunesmith-logic: 3\n")
    assert logic_files(tmp_path) == [tmp_path / "logic.yaml"]


def test_a_folder_or_a_pipe_with_a_logics_name_is_passed_over(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.yaml")
    assert logic_files(tmp_path) == []


@pytest.mark.parametrize("name", ["logic.yaml", "logic.txt", "absent.yaml"])
def test_a_file_that_is_named_is_taken_whatever_it_holds(tmp_path, name):
    if "absent" not in name:
        (tmp_path / name).write_text("words\n")
    assert logic_files(tmp_path / name) == [tmp_path / name]


def test_a_written_file_takes_the_place_of_the_old_one_alone(tmp_path):
    path = tmp_path / "new" / "folder" / "file.txt"
    for text in ("old, and longer\n", "ne\u00fc\r\n"):
        write_atomically(path, text)
        assert path.read_bytes() == text.encode()
    assert [file.name for file in path.parent.iterdir()] == ["file.txt"]


def test_what_a_killed_writer_left_is_removed_and_what_others_still_write_is_not(tmp_path):
    """A process of this host may write the file too, and so may one of another host that shares the folder."""
    host, gone = os.uname().nodename, subprocess.Popen(["true"])
    gone.wait()
    left = [f".t.csv.{host}.{gone.pid}.tmp"]
    others = [
        f".t.csv.{host}.{os.getppid()}.tmp",
        f".t.csv.another-{host}.{gone.pid}.tmp",
        f".u.csv.{host}.{gone.pid}.tmp",
    ]
    for name in (*left, *others):
        (tmp_path / name).touch()
    write_atomically(tmp_path / "t.csv", "M,N\n")
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", *others}
