// SPDX-License-Identifier: Apache-2.0
// GEMM configurations of portBLAS for a GPU of 24 units, measured and chosen by tunesmith varies
// (`tunesmith portblas tune`). Tune again to change them: this file is written anew.
//
// It stands in for a backend of portBLAS. A size that was not measured takes what won the nearest one that was, over the
// logarithms of M, N, K and the batch; a transposition that was not measured takes another one's.

#ifndef TUNESMITH_PORTBLAS_BACKEND_HPP_
#define TUNESMITH_PORTBLAS_BACKEND_HPP_

#include "interface/gemm_launcher.h"

#include <cmath>
#include <cstddef>

namespace blas
{
namespace gemm
{
namespace backend
{
namespace tuned
{

// All that a launch is made with, except for what is transposed and the types.
template <int WorkGroup, bool DoubleBuffer, bool PadA, bool PadB, int CacheLine, typename Tiles, gemm_memory_t Memory,
          gemm_algorithm_t Algorithm, gemm_vectorization_t Vectorization, int VectorSize, gemm_batch_type_t Batch>
struct configuration
{
    template <bool TransA, bool TransB, bool SymmA, bool SymmB, bool BetaIsZero, typename A, typename B, typename C>
    using launcher
        = Gemm_Launcher<A, B, C, WorkGroup, DoubleBuffer, PadA, PadB, CacheLine, Tiles, TransA, TransB, SymmA, SymmB,
                        static_cast<int>(Memory), static_cast<int>(Algorithm), static_cast<int>(Vectorization),
                        BetaIsZero, VectorSize, static_cast<int>(Batch), false>;
};

struct size
{
    double m, n, k, batch;
};

// The place of the nearest size; of several equally near ones the first, which is the fastest.
template <std::size_t Count>
std::size_t nearest(const size (&known)[Count], const size& asked)
{
    const auto apart = [](double one, double other) {
        const double doublings = std::log2((one > 1 ? one : 1) / (other > 1 ? other : 1));
        return doublings * doublings;
    };
    std::size_t best = 0;
    double least = 0;
    for(std::size_t place = 0; place < Count; ++place)
    {
        const size& here = known[place];
        const double distance = apart(here.m, asked.m) + apart(here.n, asked.n) + apart(here.k, asked.k)
                                + apart(here.batch, asked.batch);
        if(place == 0 || distance < least - 1e-9)
        {
            best = place;
            least = distance;
        }
    }
    return best;
}

// What to launch, by element, transpositions and whether the batch is interleaved: `use` is called with a configuration.
template <typename Real, bool TransA, bool TransB, bool Interleaved>
struct choice : choice<float, TransA, TransB, Interleaved>
{
};

template <>
struct choice<float, false, false, false>
{
    template <typename Use>
    static auto with(const size&, Use use)
    {
        // 64 x 32, K = 48: 31.75 GFLOP/s
        return use(configuration<1, false, false, false, 64, Tile<1, 1, 1, 1, 1, 1, 1, 1, 1, 1>, gemm_memory_t::no_local, gemm_algorithm_t::naive, gemm_vectorization_t::none, 1, gemm_batch_type_t::strided>{});
    }
};

template <>
struct choice<float, false, true, false>
{
    template <typename Use>
    static auto with(const size&, Use use)
    {
        // 64 x 32, K = 48: 32.14 GFLOP/s
        return use(configuration<64, false, true, true, 32, Tile<4, 4, 8, 8, 1, 1, 1, 1, 1, 1>, gemm_memory_t::local, gemm_algorithm_t::standard, gemm_vectorization_t::full, 2, gemm_batch_type_t::strided>{});
    }
};

template <>
struct choice<float, true, false, false>
{
    template <typename Use>
    static auto with(const size&, Use use)
    {
        // 64 x 32, K = 48: 31.34 GFLOP/s
        return use(configuration<1, false, false, false, 64, Tile<1, 1, 1, 1, 1, 1, 1, 1, 1, 1>, gemm_memory_t::no_local, gemm_algorithm_t::naive, gemm_vectorization_t::none, 1, gemm_batch_type_t::strided>{});
    }
};

template <>
struct choice<float, true, true, false>
{
    template <typename Use>
    static auto with(const size&, Use use)
    {
        // 64 x 32, K = 48: 32.85 GFLOP/s
        return use(configuration<16, false, true, true, 32, Tile<4, 4, 4, 4, 1, 1, 1, 1, 1, 1>, gemm_memory_t::local, gemm_algorithm_t::standard, gemm_vectorization_t::full, 2, gemm_batch_type_t::strided>{});
    }
};

template <>
struct choice<float, false, true, true>
{
    template <typename Use>
    static auto with(const size&, Use use)
    {
        // 8 x 8, K = 8, 64 of them: 12.18 GFLOP/s
        return use(configuration<512, false, false, true, 64, Tile<4, 4, 16, 16, 1, 1, 1, 1, 4, 2>, gemm_memory_t::no_local, gemm_algorithm_t::standard, gemm_vectorization_t::full, 4, gemm_batch_type_t::interleaved>{});
    }
};

// Not tuned.
template <>
struct choice<float, false, false, true>
    : choice<float, false, true, true>
{
};

// Not tuned.
template <>
struct choice<float, true, false, true>
    : choice<float, false, true, true>
{
};

// Not tuned.
template <>
struct choice<float, true, true, true>
    : choice<float, false, true, true>
{
};

} // namespace tuned

template <bool TransA, bool TransB, bool SymmA, bool SymmB, bool BetaIsZero, typename element_in_t,
          typename element_out_t, typename sb_handle_t, typename container_0_t, typename container_1_t,
          typename container_2_t, typename index_t>
typename sb_handle_t::event_t _gemm(sb_handle_t& handle, index_t m, index_t n, index_t k, element_out_t alpha,
                                    container_0_t a, index_t lda, index_t stride_a, container_1_t b, index_t ldb,
                                    index_t stride_b, element_out_t beta, container_2_t c, index_t ldc,
                                    index_t stride_c, index_t batch, gemm_batch_type_t batch_type,
                                    const typename sb_handle_t::event_t& dependencies)
{
    // Of symmetric operands there is one at most, and the other is not transposed.
    if constexpr((SymmA && SymmB) || (SymmA && TransB) || (SymmB && TransA))
    {
        return dependencies;
    }
    else
    {
        const auto launch = [&](auto chosen) {
            using launcher = typename decltype(chosen)::template launcher<
                TransA, TransB, SymmA, SymmB, BetaIsZero, container_0_t, container_1_t, container_2_t>;
            return launcher::_select_gemm(handle, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
                                          stride_c, batch, dependencies);
        };
        const tuned::size asked{static_cast<double>(m), static_cast<double>(n), static_cast<double>(k),
                                static_cast<double>(batch)};
        if(batch_type == gemm_batch_type_t::interleaved)
            return tuned::choice<element_in_t, TransA, TransB, true>::with(asked, launch);
        return tuned::choice<element_in_t, TransA, TransB, false>::with(asked, launch);
    }
}

} // namespace backend
} // namespace gemm
} // namespace blas

#endif // TUNESMITH_PORTBLAS_BACKEND_HPP_
