// One C for OpenCL and CUDA: every source of this folder is written in it. Loops are grid-stride, integers sized.

#define PRAGMA(text) _Pragma(#text)
#define UNROLL_BY(times) PRAGMA(unroll times)

#ifdef __OPENCL_VERSION__

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef int i32;
typedef long i64;
typedef uint4 Words4;
#define RealPair double2
#define REAL_PAIR (double2)

#define KERNEL __kernel __attribute__((reqd_work_group_size(BLOCK_SIZE, 1, 1))) void
#define GLOBAL __global
#define LOCAL_ARRAY(type, name, size) __local type name[size]
#define LARGE_LOCAL_ARRAY LOCAL_ARRAY
#define LOCAL __local
#define CONSTANT __constant
// Always: PoCL (3.1) overlooks a barrier in a function that it does not inline.
#define INLINE static inline __attribute__((always_inline))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define WARP_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define LOCAL_ID ((u32)get_local_id(0))
#define GROUP_ID ((u32)get_group_id(0))
#define GROUPS ((u32)get_num_groups(0))
#define GROUP_ID_Y ((u32)get_group_id(1))
#define UNROLL _Pragma("unroll")

INLINE void multiply_wide(u32 a, u32 b, u32 *low, u32 *high)
{
    u64 product = (u64)a * b;
    *low = (u32)product;
    *high = (u32)(product >> 32);
}
INLINE u32 float_bits(float x) { return as_uint(x); }
INLINE float bits_float(u32 x) { return as_float(x); }
INLINE u64 double_bits(double x) { return as_ulong(x); }
INLINE double bits_double(u64 x) { return as_double(x); }
INLINE u16 half_bits(float x) { u16 bits; vstore_half_rte(x, 0, (half *)&bits); return bits; }
INLINE Words4 words4(u32 a, u32 b, u32 c, u32 d) { return (Words4)(a, b, c, d); }
INLINE u32 chosen_bits(u32 mask, u32 there, u32 elsewhere) { return bitselect(elsewhere, there, mask); }
INLINE u32 less_unless(u32 x, u32 amount, int condition) { return condition ? x : x - amount; }
INLINE u32 scaled(u32 x, double factor) { return (u32)((double)x * factor); }
#define HAS_SPECIAL_UNIT 0
#define square_root(x) sqrt(x)
#define exponential(x) exp(x)
#define fused(a, b, c) fma(a, b, c)

#else

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef uint4 Words4;
typedef double2 RealPair;
#define REAL_PAIR(x, y) {x, y}

#define KERNEL extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
#define GLOBAL
#define LOCAL_ARRAY(type, name, size) __shared__ type name[size]
// Beyond 48 KiB local memory comes with the launch.
#ifdef LOCAL_AT_LAUNCH
#define LARGE_LOCAL_ARRAY(type, name, size) extern __shared__ type name[]
#else
#define LARGE_LOCAL_ARRAY LOCAL_ARRAY
#endif
#define LOCAL
#define CONSTANT static __device__ const
#define INLINE static __device__ __forceinline__
#define BARRIER() __syncthreads()
#define WARP_BARRIER() __syncwarp()
#define LOCAL_ID threadIdx.x
#define GROUP_ID blockIdx.x
#define GROUPS gridDim.x
#define GROUP_ID_Y blockIdx.y
#define UNROLL _Pragma("unroll")

// From `(u64)a * b` the compiler would make the same multiplication and add zero to its upper half.
INLINE void multiply_wide(u32 a, u32 b, u32 *low, u32 *high)
{
    asm("{ .reg .u64 product; mul.wide.u32 product, %2, %3; mov.b64 {%0, %1}, product; }"
        : "=r"(*low), "=r"(*high) : "r"(a), "r"(b));
}
INLINE u32 float_bits(float x) { return __float_as_uint(x); }
INLINE float bits_float(u32 x) { return __uint_as_float(x); }
INLINE u64 double_bits(double x) { return (u64)__double_as_longlong(x); }
INLINE double bits_double(u64 x) { return __longlong_as_double((i64)x); }
INLINE u16 half_bits(float x) { u16 bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); return bits; }
INLINE Words4 words4(u32 a, u32 b, u32 c, u32 d) { return make_uint4(a, b, c, d); }
INLINE u32 chosen_bits(u32 mask, u32 there, u32 elsewhere)
{
    u32 chosen;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(chosen) : "r"(mask), "r"(there), "r"(elsewhere));
    return chosen;
}
INLINE u32 less_unless(u32 x, u32 amount, int condition)
{
    asm("{ .reg .pred p; setp.eq.s32 p, %2, 0; @p sub.u32 %0, %0, %1; }" : "+r"(x) : "r"(amount), "r"(condition));
    return x;
}
// x * factor < 2^32, rounded once and cut: 2^52 + x is a double with x for its low word, and conversions are slow.
INLINE u32 scaled(u32 x, double factor)
{
    double product = fma(__hiloint2double(0x43300000, (int)x), factor, -4503599627370496.0 * factor);
    return (u32)__double2loint(__dadd_rz(product, 4503599627370496.0));
}
// Within 2^-23 of the root (PTX, sqrt.approx.f32), where the correctly rounded one would take a loop.
INLINE float square_root(float x)
{
    float root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}
#define HAS_SPECIAL_UNIT 1
INLINE float unit_sine(float x) { return __sinf(x); }
INLINE float unit_cosine(float x) { return __cosf(x); }
INLINE float unit_log2(float x) { float log2; asm("lg2.approx.f32 %0, %1;" : "=f"(log2) : "f"(x)); return log2; }
INLINE double square_root(double x) { return sqrt(x); }
INLINE float exponential(float x) { return expf(x); }
INLINE double exponential(double x) { return exp(x); }
INLINE float fused(float a, float b, float c) { return fmaf(a, b, c); }
INLINE double fused(double a, double b, double c) { return fma(a, b, c); }

#endif

#define GLOBAL_ID ((u64)GROUP_ID * BLOCK_SIZE + LOCAL_ID)
#define GLOBAL_SIZE ((u64)GROUPS * BLOCK_SIZE)
