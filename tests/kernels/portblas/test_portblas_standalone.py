"""One text with a configuration's kernels for all transpositions, to be compiled without tunesmith."""

from __future__ import annotations

import pytest

from opencl_runner import opencl_device
from portblas_kernels import ALGORITHMS, TRANSPOSES, config
from tunesmith.kernels.gemm.portblas import standalone_source
from tunesmith.kernels.gemm.portblas.text import Section, text_of
from tunesmith.records import (
    Module,
    Target,
    UserError,
)
from tunesmith.toolchains.opencl import OpenCLToolchain


def test_a_standalone_text_is_the_same_for_equal_programs_only():
    naive = standalone_source(config("naive"))
    assert naive == standalone_source(config("naive", CacheLine=128, PadA=True, WorkItem=(2, 2)))
    assert naive != standalone_source(config("naive", WorkGroup=(8, 8, 1)))
    assert standalone_source(config()).count("gemm_") == len(TRANSPOSES)


def test_a_standalone_text_needs_no_language_and_forgives_vectors_that_do_not_fit():
    """The generator makes a file for every combination of portBLAS's own rules."""
    asked = config("non_local", CacheLine=0, VectorSize=8).without(["KernelLanguage"])
    assert standalone_source(asked) == standalone_source(config("non_local", CacheLine=0, VectorSize=4)).replace(
        "#define STEPS 4", "#define STEPS 8"
    )


@pytest.mark.parametrize(
    ("made", "language", "dtype", "words"),
    [
        (config(), "Fortran", "s", "language: there is no 'Fortran'; give one of OpenCL, CUDA"),
        (config(), "OpenCL", "z", "dtype: there is no 'z'"),
        (config("none"), "OpenCL", "s", "there is no 'none'; give one of local, "),
        (config(CacheLine=0), "OpenCL", "s", "CacheLine 0 is no number of elements"),
        (config().without(["TopTile"]), "OpenCL", "s", "lacks a parameter ('TopTile')"),
    ],
)
def test_a_standalone_text_of_nothing_is_refused(made, language, dtype, words):
    with pytest.raises(UserError) as caught:
        standalone_source(made, language, dtype)
    assert words in str(caught.value)


@pytest.mark.opencl
@pytest.mark.parametrize(("algorithm", "data_type"), [(name, "s") for name in ALGORITHMS] + [("local", "h")])
def test_a_standalone_text_compiles_without_options(algorithm, data_type):
    small = {"WorkItem": (2, 2), "WorkGroup": (4, 2, 1), "VectorSize": 2, "CacheLine": 16}
    text = standalone_source(config(algorithm, **small), dtype=data_type)
    entries = tuple(f"gemm_{transposes}" for transposes in TRANSPOSES)
    entries += ("reduce",) if algorithm == "tall_skinny" else ()
    target: Target = opencl_device().target
    binary = OpenCLToolchain().compile(Module("OpenCL", text, entries), target)
    assert [fact.entry for fact in binary.facts] == list(entries)


def test_sections_leave_no_macro_behind():
    text = text_of({}, [Section("naive.h", {"ENTRY": "one", "NAME(x)": "x##_one"})])
    assert text.rstrip().endswith("#undef ENTRY\n#undef NAME")
