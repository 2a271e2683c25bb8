// Conversions of half precision by the compiler's builtins: <immintrin.h> would take half of the time of a compilation.
#pragma once

typedef float FourFloats __attribute__((vector_size(16)));
typedef short EightHalves __attribute__((vector_size(16)));

inline float float_of_half(unsigned short bits)
{
    return __builtin_ia32_vcvtph2ps(EightHalves{(short)bits})[0];
}
inline unsigned short half_of_float(float x)
{
    const int to_nearest_even = 0;
    return __builtin_ia32_vcvtps2ph(FourFloats{x}, to_nearest_even)[0];
}
