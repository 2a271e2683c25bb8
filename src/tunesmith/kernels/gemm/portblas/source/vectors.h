// Vectors of 1, 2, 4, 8 or 16 neighbours in memory: TAKE and PUT move elements as they are stored, READ and WRITE convert
// to REAL and back. Addresses must be as ALIGNED says. A vector is a private variable; LANE names one of its elements.

#ifdef __OPENCL_VERSION__

#define VEC(type, width) JOINED(type, width)
typedef float float1;
typedef ushort ushort1;
#ifdef cl_khr_fp64
typedef double double1;
#endif
// Each name is made in one piece: `vload` by itself is a macro of PoCL's.
#define VLOAD_NAME(width) vload##width
#define VSTORE_NAME(width) vstore##width
#define VLOAD_HALF_NAME(width) vload_half##width
#define VSTORE_HALF_NAME(width) vstore_half##width##_rte
#define VLOAD(width) VLOAD_NAME(width)
#define VSTORE(width) VSTORE_NAME(width)
#define VLOAD_HALF(width) VLOAD_HALF_NAME(width)
#define VSTORE_HALF(width) VSTORE_HALF_NAME(width)
#define vload1(place, from) ((from)[place])
#define vstore1(value, place, to) ((to)[place] = (value))
#define vload_half1 vload_half
#define vstore_half1_rte vstore_half_rte

// CPUs read vectors at any address at the same cost; GPUs take many loads for them where they may be unaligned.
#ifndef ANY_ADDRESS
#if defined(__x86_64__) || defined(__aarch64__)
#define ANY_ADDRESS 1
#else
#define ANY_ADDRESS 0
#endif
#endif
#if ANY_ADDRESS
#define TAKE(width, from) VLOAD(width)(0, from)
#define PUT(width, value, to) VSTORE(width)(value, 0, to)
#else
#define TAKE(width, from) (*(GLOBAL const VEC(STORED, width) *)(from))
#define PUT(width, value, to) (*(LOCAL VEC(STORED, width) *)(to) = (value))
#endif

#if HALF
#define READ(space, width, from) VLOAD_HALF(width)(0, (space const half *)(from))
#define WRITE(width, value, to) VSTORE_HALF(width)(value, 0, (GLOBAL half *)(to))
#elif ANY_ADDRESS
#define READ(space, width, from) VLOAD(width)(0, from)
#define WRITE(width, value, to) VSTORE(width)(value, 0, to)
#else
#define READ(space, width, from) (*(space const VEC(REAL, width) *)(from))
#define WRITE(width, value, to) (*(GLOBAL VEC(REAL, width) *)(to) = (value))
#endif

#define ELEMENT(from) READ(GLOBAL, 1, from)
#define GIVE(value, to) WRITE(1, value, to)
#if ANY_ADDRESS
#define BY_DEVICE(cpu, gpu) cpu
#else
#define BY_DEVICE(cpu, gpu) gpu
#endif
#define ALIGNMENT(width) (ANY_ADDRESS ? (int)sizeof(STORED) : (width) * (int)sizeof(STORED))
#define LANE(type, vector, number) (((type *)&(vector))[number])
#define ZERO(type, width) ((VEC(type, width))(0))
#define MULTIPLY_ADD(width, sum, a, b) (sum = fma(a, (VEC(REAL, width))(b), sum))

#else

#define ANY_ADDRESS 0
#define BY_DEVICE(cpu, gpu) gpu
#define MOST_BYTES 16

template <class T, int width> struct __align__(width * sizeof(T) < MOST_BYTES ? width * sizeof(T) : MOST_BYTES) Vector {
    T lane[width];
};

#if HALF
INLINE REAL widened(STORED bits) { REAL x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
INLINE STORED narrowed(REAL x) { STORED bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); return bits; }
#else
INLINE REAL widened(STORED x) { return x; }
INLINE STORED narrowed(REAL x) { return x; }
#endif

template <int width> INLINE Vector<STORED, width> take(const STORED *from)
{
    return *reinterpret_cast<const Vector<STORED, width> *>(from);
}
template <int width> INLINE Vector<REAL, width> read(const STORED *from)
{
    const Vector<STORED, width> stored = take<width>(from);
    Vector<REAL, width> made;
    UNROLL
    for (int i = 0; i < width; ++i) made.lane[i] = widened(stored.lane[i]);
    return made;
}
template <int width> INLINE void write(const Vector<REAL, width> &value, STORED *to)
{
    Vector<STORED, width> made;
    UNROLL
    for (int i = 0; i < width; ++i) made.lane[i] = narrowed(value.lane[i]);
    *reinterpret_cast<Vector<STORED, width> *>(to) = made;
}
template <int width> INLINE void multiply_add(Vector<REAL, width> &sum, const Vector<REAL, width> &a, REAL b)
{
    UNROLL
    for (int i = 0; i < width; ++i) sum.lane[i] += a.lane[i] * b;
}
template <int width>
INLINE void multiply_add(Vector<REAL, width> &sum, const Vector<REAL, width> &a, const Vector<REAL, width> &b)
{
    UNROLL
    for (int i = 0; i < width; ++i) sum.lane[i] += a.lane[i] * b.lane[i];
}

#define VEC(type, width) Vector<type, width>
#define TAKE(width, from) take<width>(from)
#define PUT(width, value, to) (*reinterpret_cast<VEC(STORED, width) *>(to) = (value))
#define READ(space, width, from) read<width>(from)
#define WRITE(width, value, to) write<width>(value, to)
#define ELEMENT(from) widened(*(from))
#define GIVE(value, to) (*(to) = narrowed(value))
#define ALIGNMENT(width) ((width) * (int)sizeof(STORED) < MOST_BYTES ? (width) * (int)sizeof(STORED) : MOST_BYTES)
#define LANE(type, vector, number) ((vector).lane[number])
#define ZERO(type, width) (VEC(type, width){})
#define MULTIPLY_ADD(width, sum, a, b) multiply_add(sum, a, b)

#endif

// Whether vectors so wide may be read from every column, `leading` elements after the one before.
INLINE int aligned(GLOBAL const STORED *from, i64 leading, int width)
{
    return (i64)from % ALIGNMENT(width) == 0 && leading * (int)sizeof(STORED) % ALIGNMENT(width) == 0;
}
