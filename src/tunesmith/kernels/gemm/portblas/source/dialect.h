// One C for OpenCL and CUDA: every source of this folder is written in it. What varies stands in macros before a source;
// those of the whole text are REAL, the type of sums, and HALF where elements are 16 bits wide, widened when read.

#define JOINED_NAMES(a, b) a##b
#define JOINED(a, b) JOINED_NAMES(a, b)
#define PRAGMA(text) _Pragma(#text)
#define UNROLL _Pragma("unroll")
#define UNROLL_BY(times) PRAGMA(unroll times)
#define CEILING(a, b) (((a) + (b) - 1) / (b))

#ifdef __OPENCL_VERSION__

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

typedef long i64;
typedef uint u32;
#define STORED_BITS ushort

// `groups`: work-groups that should share a multiprocessor, so that the compiler keeps within their registers.
#define KERNEL(items, groups) __kernel __attribute__((reqd_work_group_size(items, 1, 1))) void
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_ARRAY(type, name, size) __local type name[size] __attribute__((aligned(64)))
#define RESTRICT restrict
// Always: PoCL (3.1) overlooks a barrier in a function that it does not inline.
#define INLINE static inline __attribute__((always_inline))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define LOCAL_ID ((int)get_local_id(0))
#define GROUP_NUMBER ((u32)get_group_id(0) + (u32)get_group_id(1) * (u32)get_num_groups(0))
#define GROUP_X ((int)get_group_id(0))
#define GROUP_Y ((int)get_group_id(1))
#define GROUPS_Y ((int)get_num_groups(1))
#define GROUP_Z ((int)get_group_id(2))

#else

typedef long long i64;
typedef unsigned int u32;
#define STORED_BITS unsigned short

#define KERNEL(items, groups) extern "C" __global__ void __launch_bounds__(items, groups)
#define GLOBAL
#define LOCAL
// More local memory than a source may declare comes with the launch.
#ifdef LOCAL_AT_LAUNCH
extern __shared__ __align__(16) unsigned char local_memory[];
#define LOCAL_ARRAY(type, name, size) type *const name = reinterpret_cast<type *>(local_memory)
#else
#define LOCAL_ARRAY(type, name, size) __shared__ __align__(16) type name[size]
#endif
#define RESTRICT __restrict__
#define INLINE static __device__ __forceinline__
#define BARRIER() __syncthreads()
#define LOCAL_ID ((int)threadIdx.x)
#define GROUP_NUMBER (blockIdx.x + blockIdx.y * gridDim.x)
#define GROUP_X ((int)blockIdx.x)
#define GROUP_Y ((int)blockIdx.y)
#define GROUPS_Y ((int)gridDim.y)
#define GROUP_Z ((int)blockIdx.z)

#endif

#if HALF
#define STORED STORED_BITS
#else
#define STORED REAL
#endif
