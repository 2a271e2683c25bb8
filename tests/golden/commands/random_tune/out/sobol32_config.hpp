// SPDX-License-Identifier: Apache-2.0
// Launch shapes of sobol32, chosen by `tunesmith random select`. Run it again to change them: architectures
// that it is not given keep theirs.

#ifndef ROCRAND_RNG_CONFIG_SOBOL32_CONFIG_HPP_
#define ROCRAND_RNG_CONFIG_SOBOL32_CONFIG_HPP_

#include "config_defaults.hpp"
#include <rocrand/rocrand.h>

namespace rocrand_impl::host
{

// T does not matter: one shape for all value types.
template<class T>
struct generator_config_selector<ROCRAND_RNG_QUASI_SOBOL32, T>
{
    __host__ __device__ static constexpr unsigned int get_threads(const target_arch arch)
    {
        switch(arch)
        {
            case target_arch::gfx90a: return 64;
            default: return generator_config_defaults<ROCRAND_RNG_QUASI_SOBOL32, T>::threads;
        }
    }

    __host__ __device__ static constexpr unsigned int get_blocks(const target_arch arch)
    {
        switch(arch)
        {
            case target_arch::gfx90a: return 4;
            default: return generator_config_defaults<ROCRAND_RNG_QUASI_SOBOL32, T>::blocks;
        }
    }
};

} // namespace rocrand_impl::host

#endif // ROCRAND_RNG_CONFIG_SOBOL32_CONFIG_HPP_
