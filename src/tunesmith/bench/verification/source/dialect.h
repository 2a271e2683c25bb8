// One C for OpenCL and CUDA: `checks.h` is written in it. Integers are sized, bytes little-endian.

#ifdef __OPENCL_VERSION__

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef long i64;

#define KERNEL __kernel __attribute__((reqd_work_group_size(BLOCK_SIZE, 1, 1))) void
#define GLOBAL __global
#define LOCAL_ARRAY(type, name, size) __local type name[size]
// Always: PoCL (3.1) overlooks a barrier in a function that it does not inline.
#define INLINE static inline __attribute__((always_inline))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define LOCAL_ID ((u32)get_local_id(0))
#define GROUP_ID ((u32)get_group_id(0))
#define GROUPS ((u32)get_num_groups(0))

INLINE float bits_float(u32 x) { return as_float(x); }
INLINE double bits_double(u64 x) { return as_double(x); }

#else

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define KERNEL extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
#define GLOBAL
#define LOCAL_ARRAY(type, name, size) __shared__ type name[size]
#define INLINE static __device__ __forceinline__
#define BARRIER() __syncthreads()
#define LOCAL_ID threadIdx.x
#define GROUP_ID blockIdx.x
#define GROUPS gridDim.x

INLINE float bits_float(u32 x) { return __uint_as_float(x); }
INLINE double bits_double(u64 x) { return __longlong_as_double((i64)x); }

#endif

#define GLOBAL_ID ((u64)GROUP_ID * BLOCK_SIZE + LOCAL_ID)
#define GLOBAL_SIZE ((u64)GROUPS * BLOCK_SIZE)

// A loop over so many elements, of which each work-item gets its share. On a GPU neighbours take neighbouring elements. A
// CPU carries out one work-item after the other, so there each takes elements that follow one another.
#ifdef CONTIGUOUS
#define EACH(i, count)                                                                                        \
    for (u64 share = ((count) + GLOBAL_SIZE - 1) / GLOBAL_SIZE, i = GLOBAL_ID * share,                        \
             end_of_share = i + share < (count) ? i + share : (count); i < end_of_share; ++i)
#else
#define EACH(i, count) for (u64 i = GLOBAL_ID; i < (count); i += GLOBAL_SIZE)
#endif
