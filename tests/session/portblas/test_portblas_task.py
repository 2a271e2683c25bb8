"""The arguments of `tunesmith portblas tune`: in the original's order, and a missing one is a mistake, not a zero."""

from __future__ import annotations

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from tunesmith.cli.app import app
from tunesmith.devices.fake import fake_target
from tunesmith.problems.gemm import is_interleaved
from tunesmith.records import UserError
from tunesmith.session.portblas.task import PortBlasTask, own_set


@pytest.mark.parametrize(
    ("kind", "name", "architecture", "expected"),
    [
        ("CPU", "pthread-Intel(R) Xeon(R)", "x86-64", "cpu"),
        ("GPU", "NVIDIA H200", "sm_90", "nvidia"),
        ("GPU", "gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-", "amd"),
        ("GPU", "Intel(R) Arc(TM) A770 Graphics", "", "intel"),
        ("GPU", "Mali-G78", "", "default"),
    ],
)
def test_a_device_has_a_set_by_its_kind_or_vendor(kind, name, architecture, expected):
    assert own_set(replace(fake_target(kind), name=name, architecture=architecture)) == expected


def test_sizes_are_in_the_originals_order():
    """M K N on the command line; the problem's are M, N, batch, K."""
    task = PortBlasTask("nt", 2, 3, 5, 7, 9)
    problem = task.problem(task.kind("nt"))
    assert (problem.sizes, problem.type.name, task.policy.minimum_samples) == ((2, 5, 7, 3), "Cijk_Ailk_Bjlk_SB", 9)
    assert is_interleaved(replace(task, layout="interleaved").kind("nt"))
    assert not is_interleaved(replace(task, layout="interleaved").kind("nt", interleaved=False))


def invoke(*words):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(app, ["portblas", "tune", *map(str, words)])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nn", 4096, 4096, 4096, 4, "strided"), "REP: is missing before strided"),
        (("nn", 64, 64, 64, 1), "REP: is missing"),
        (("nn", 64, 64), "N: is missing"),
        (("nn", 64, 0, 64, 1, 5), "K: '0' is no whole number from 1"),
        (("nn", 64, "x", 64, 1, 5), "K: 'x' is no whole number from 1"),
        (("nn", 64, 64, 64, 1, 5, "packed"), "the layout of the batch: cannot be 'packed'"),
        (("nn", 64, 64, 64, 1, 5, "strided", 6), "6: is one argument too many"),
        (("xx", 64, 64, 64, 1, 5), "the transposition: cannot be 'xx'"),
        (("nn", 64, 64, 64, 1, 5, "--type", "q"), "--type: cannot be 'q'"),
        (("nn", 64, 64, 64, 1, 5, "--language", "Fortran"), "--language: cannot be 'Fortran'"),
        (("nn", 64, 64, 64, 1, 5, "--config", "nvidai"), "did you mean nvidia"),
    ],
)
def test_a_missing_or_wrong_argument_is_a_mistake_and_no_zero(words, message, tmp_path):
    """`tune_nn 4096 4096 4096 4 strided` divides by zero in the original (portBLAS issue 499)."""
    done = invoke(*words, "-o", tmp_path)
    assert isinstance(done.exception, UserError), done.output
    assert message in str(done.exception)
