"""The C++ header with tuned kernels: it compiles, and each size gets the combination that won it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest

from portblas_files import TUNED
from tunesmith.formats.portblas.backend import compiles_for, header
from tunesmith.formats.portblas.parameter_files import Combination

LAUNCHER = r"""
#pragma once
#include <sstream>
#include <string>
#include <type_traits>
namespace sycl { struct half { short bits; }; }
namespace blas {
template <typename Container> struct ValueType;
template <typename Element> struct ValueType<Element*> { using type = std::remove_cv_t<Element>; };
template <typename Element> struct BufferIterator { Element* memory; };
template <typename Element> struct ValueType<BufferIterator<Element>> { using type = std::remove_cv_t<Element>; };
template <typename Type> struct is_sycl_scalar : std::is_scalar<Type>::type {};
template <> struct is_sycl_scalar<sycl::half> : std::true_type {};
enum class gemm_memory_t { local, no_local };
enum class gemm_algorithm_t { standard, naive, tall_skinny };
enum class gemm_vectorization_t { none, partial, full };
enum class gemm_batch_type_t { strided, interleaved };
template <int... Numbers> struct Tile {
    static std::string text() { std::ostringstream s; ((s << Numbers << ' '), ...); return s.str(); }
};
template <typename A, typename B, typename C, int Wg, bool Db, bool PadA, bool PadB, int Cl, typename Tiles, bool TA,
          bool TB, bool SA, bool SB, int Memory, int Algorithm, int Vectorization, bool BetaZero, int Vector, int Batch,
          bool Joint>
struct Gemm_Launcher {
    template <typename Handle, typename Event, typename... Rest>
    static typename Handle::event_t _select_gemm(Handle&, int m, int n, int k, Event, Rest...) {
        std::ostringstream s;
        s << sizeof(typename ValueType<A>::type) << ':';
        s << Wg << '|' << Db << PadA << PadB << '|' << Cl << '|' << Tiles::text() << '|' << TA << TB << '|' << Memory
          << Algorithm << Vectorization << '|' << Vector << '|' << Batch;
        return s.str();
    }
};
}
"""
"""A substitute for portBLAS's `src/interface/gemm_launcher.h` and its includes (commit 6cf5e589): a launch returns the
bytes of an element and its template's parameters, as text."""

PROGRAM = r"""
#include "portblas_backend.hpp"
#include <iostream>
struct Handle { using event_t = std::string; };
struct Complex { float real, imaginary; };
using blas::gemm_batch_type_t;
template <bool TA, bool TB, bool SA, bool SB, typename Handle, typename In, typename Out, typename Scalar,
          typename Index>
typename Handle::event_t specific(Handle& handle, Index m, Index n, Index k, Scalar alpha, In a, Out c, Index batch,
                                  gemm_batch_type_t type) {
    // What portBLAS's `_gemm_platform_specific` names, and what it leaves to deduction.
    return blas::gemm::backend::_gemm<TA, TB, SA, SB, true>(
        handle, m, n, k, alpha, a, m, Index(0), a, k, Index(0), Scalar(0), c, m, Index(0), batch, type,
        typename Handle::event_t());
}
template <bool TA, bool TB, typename Real = float, bool SA = false, bool SB = false>
void tell(int m, int n, int k, int batch, gemm_batch_type_t type = gemm_batch_type_t::strided) {
    Handle handle;
    Real memory{};
    std::cout << specific<TA, TB, SA, SB>(handle, m, n, k, 1.0f, &memory, &memory, batch, type) << '\n';
}
void deduced() {
    Handle handle;
    sycl::half in{};
    float out = 0;
    // Halves in and floats out; constant memory; a buffer.
    std::cout << specific<false, false, false, false>(handle, 9, 9, 9, 1.0f, &in, &out, 1, gemm_batch_type_t::strided)
              << '\n';
    const float constant = 0;
    std::cout << specific<false, false, false, false>(handle, 9, 9, 9, 1.0f, &constant, &out, 1,
                                                      gemm_batch_type_t::strided)
              << '\n';
    blas::BufferIterator<const double> input{};
    blas::BufferIterator<double> output{};
    std::cout << specific<false, false, false, false>(handle, 9L, 9L, 9L, 1.0, input, output, 1L,
                                                      gemm_batch_type_t::strided)
              << '\n';
}
int main() {
    tell<false, false>(1024, 1024, 1024, 1);
    tell<false, false>(900, 1100, 2000, 1);
    tell<false, false>(64, 64, 64, 64);
    tell<false, false>(100, 80, 50, 20);
    tell<true, false>(7, 7, 7, 1);
    tell<true, true>(1024, 1024, 1024, 1);
    tell<false, false, double>(1024, 1024, 1024, 1);
    tell<false, true>(5, 5, 5, 8, gemm_batch_type_t::interleaved);
    tell<true, false>(7, 7, 7, 2);
    tell<false, false, float, true, false>(64, 64, 64, 64);
    tell<false, false, float, false, true>(1024, 1024, 1024, 1);
    tell<false, false, Complex>(1024, 1024, 1024, 1);
    deduced();
}
"""

SMALL = Combination("non_local", "partial", 2, 0, (4, 2), (4, 8), (1, 1), (1, 1), False, False, False)
LINE = Combination("local", "full", 1, 128, (2, 2), (4, 8), (1, 1), (1, 1), False, False, False)
OTHER = Combination("tall_skinny", "none", 1, 128, (2, 2), (8, 8), (1, 1), (1, 1), False, True, True)
BATCH = replace(TUNED, m=64, n=64, k=64, batch=64, combination=SMALL, gflops=300.0)
TN = replace(TUNED, transpose_a=True, combination=OTHER, gflops=800.0)


def test_it_says_what_was_measured():
    text = header([TUNED, BATCH, TN], "Some GPU", "1.2")
    assert "for Some GPU" in text
    assert "1024 x 1024, K = 1024: 900 GFLOP/s" in text
    assert "64 x 64, K = 64, 64 of them: 300 GFLOP/s" in text
    assert "Tile<8, 8, 16, 8, 1, 1, 2, 2, 1, 1>" in text


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_each_size_and_transposition_gets_what_won_it(tmp_path):
    """A size gets the choice of the nearest size over logarithms; an untuned transposition, type or layout runs too."""
    printed = _printed(tmp_path, header([TUNED, BATCH, TN], "Some GPU", "1.2"))
    large, small = "128|101|64|8 8 16 8 1 1 2 2 1 1 ", "32|000|0|4 2 4 8 1 1 1 1 1 1 "
    other, interleaved = "64|011|128|2 2 8 8 1 1 1 1 1 1 ", "64|000|0|2 2 4 4 1 1 1 1 4 4 "
    plain = "64|000|64|2 2 8 8 1 1 1 1 1 1 "
    assert printed == [
        f"4:{large}|00|002|4|0",
        f"4:{large}|00|002|4|0",
        f"4:{small}|00|101|2|0",
        f"4:{small}|00|101|2|0",
        f"4:{other}|10|020|1|0",
        f"4:{large}|11|002|4|0",
        f"8:{large}|00|002|4|0",
        f"4:{interleaved}|01|102|4|1",
        # The tall and skinny kernel has no batches, and only the local-memory kernel takes symmetric operands.
        f"4:{plain}|10|002|1|0",
        f"4:{plain}|00|002|1|0",
        f"4:{large}|00|002|4|0",
        f"8:{plain}|00|002|1|0",
        f"2:{small}|00|101|2|0",
        f"4:{small}|00|101|2|0",
        f"8:{small}|00|101|2|0",
    ]


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_an_element_that_the_winner_is_illegal_for_gets_the_plain_kernel(tmp_path):
    """With lines of 128 bytes, 32 work-items fill whole lines with floats, but not with halves, 64 to a line."""
    printed = _printed(tmp_path, header([replace(TUNED, combination=LINE)], "Some GPU", "1.2"))
    assert [line for line in printed if line.startswith("4:32|000|128|")]
    assert [line for line in printed if line.startswith("2:")] == ["2:64|000|64|2 2 8 8 1 1 1 1 1 1 |00|002|1|0"]
    assert not compiles_for(LINE, "h")
    assert compiles_for(LINE, "s")
    assert compiles_for(LINE, "d")


def _printed(folder, text):
    """The lines that the program prints with this header."""
    (folder / "interface").mkdir()
    (folder / "interface" / "gemm_launcher.h").write_text(LAUNCHER)
    (folder / "portblas_backend.hpp").write_text(text)
    (folder / "main.cpp").write_text(PROGRAM)
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-I", str(folder)]
    subprocess.run([*command, str(folder / "main.cpp"), "-o", str(folder / "main")], check=True)
    return subprocess.run([folder / "main"], check=True, capture_output=True, text=True).stdout.splitlines()
