"""The C++ header with what was tuned: a compiler takes it, and each size gets what won it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest

from tunesmith.formats.portblas import Combination
from tunesmith.formats.portblas_backend import Size, header

LAUNCHER = r"""
#pragma once
#include <sstream>
#include <string>
namespace cl { namespace sycl { struct half {}; } }
namespace blas {
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
        s << Wg << '|' << Db << PadA << PadB << '|' << Cl << '|' << Tiles::text() << '|' << TA << TB << '|' << Memory
          << Algorithm << Vectorization << '|' << Vector << '|' << Batch;
        return s.str();
    }
};
}
"""
"""Stands in for portBLAS: a launch tells its template's parameters."""

PROGRAM = r"""
#include "portblas_backend.hpp"
#include <iostream>
struct Handle { using event_t = std::string; };
using blas::gemm_batch_type_t;
template <bool TA, bool TB, typename Real = float>
void tell(int m, int n, int k, int batch, gemm_batch_type_t type = gemm_batch_type_t::strided) {
    Handle handle;
    float memory = 0;
    std::cout << blas::gemm::backend::_gemm<TA, TB, false, false, true, Real, float>(
        handle, m, n, k, 1.0f, &memory, m, 0, &memory, k, 0, 0.0f, &memory, m, 0, batch, type, std::string()) << '\n';
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
}
"""

LARGE = Combination("local", "full", 4, 64, (8, 8), (16, 8), (2, 2), (1, 1), True, False, True)
SMALL = Combination("non_local", "partial", 2, 0, (4, 2), (4, 8), (1, 1), (1, 1), False, False, False)
OTHER = Combination("tall_skinny", "none", 1, 128, (2, 2), (8, 8), (1, 1), (1, 1), False, True, True)
NN = Size("s", False, False, False, 1024, 1024, 1024, 1, LARGE, 900.0)
BATCH = replace(NN, m=64, n=64, k=64, batch=64, combination=SMALL, gflops=300.0)
TN = replace(NN, transpose_a=True, combination=OTHER, gflops=800.0)


def test_it_says_what_was_measured():
    text = header([NN, BATCH, TN], "Some GPU", "1.2")
    assert "for Some GPU" in text
    assert "1024 x 1024, K = 1024: 900 GFLOP/s" in text
    assert "64 x 64, K = 64, 64 of them: 300 GFLOP/s" in text
    assert "Tile<8, 8, 16, 8, 1, 1, 2, 2, 1, 1>" in text


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_each_size_and_transposition_gets_what_won_it(tmp_path):
    """The nearest size over logarithms; where a transposition, type or layout was not tuned, something that runs."""
    (tmp_path / "interface").mkdir()
    (tmp_path / "interface" / "gemm_launcher.h").write_text(LAUNCHER)
    (tmp_path / "portblas_backend.hpp").write_text(header([NN, BATCH, TN], "Some GPU", "1.2"))
    (tmp_path / "main.cpp").write_text(PROGRAM)
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-I", str(tmp_path)]
    subprocess.run([*command, str(tmp_path / "main.cpp"), "-o", str(tmp_path / "main")], check=True)
    told = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout.splitlines()
    large, small = "128|101|64|8 8 16 8 1 1 2 2 1 1 ", "32|000|0|4 2 4 8 1 1 1 1 1 1 "
    other, plain = "64|011|128|2 2 8 8 1 1 1 1 1 1 ", "64|000|0|2 2 4 4 1 1 1 1 4 4 "
    assert told == [
        f"{large}|00|002|4|0",
        f"{large}|00|002|4|0",
        f"{small}|00|101|2|0",
        f"{small}|00|101|2|0",
        f"{other}|10|020|1|0",
        f"{large}|11|002|4|0",
        f"{large}|00|002|4|0",
        f"{plain}|01|102|4|1",
    ]
