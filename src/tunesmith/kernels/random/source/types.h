// Types and constants that follow from what is compiled in: DISTRIBUTION_KIND (UNIFORM, NORMAL,
// LOG_NORMAL, POISSON), VALUE_KIND (U8, U16, U32, U64, HALF, FLOAT, DOUBLE), DOUBLE_WORDS, and QUASI where a word is a point of a low-discrepancy sequence, which pairs of words would spoil.

#define UNIFORM 0
#define NORMAL 1
#define LOG_NORMAL 2
#define POISSON 3
#define U8 0
#define U16 1
#define U32 2
#define U64 3
#define HALF 4
#define FLOAT 5
#define DOUBLE 6

#if VALUE_KIND == U8
typedef u8 VALUE;
#elif VALUE_KIND == U16 || VALUE_KIND == HALF
typedef u16 VALUE;
#elif VALUE_KIND == U32
typedef u32 VALUE;
#elif VALUE_KIND == U64
typedef u64 VALUE;
#elif VALUE_KIND == FLOAT
typedef float VALUE;
#else
typedef double VALUE;
#endif

#if VALUE_KIND == DOUBLE
typedef double REAL;
#else
typedef float REAL;
#endif

#define TWO_POW_MINUS_16 1.52587890625e-5f
#define TWO_POW_MINUS_32 2.3283064365386963e-10f
#define TWO_POW_MINUS_53 1.1102230246251565e-16
#define TWO_POW_MINUS_64 5.421010862427522e-20

// In (0, 1]; the least is 2^-32, 2^-53, 2^-16.
INLINE float unit_float(u32 word) { return fused((float)word, TWO_POW_MINUS_32, TWO_POW_MINUS_32); }
INLINE float unit_16(u32 half_word) { return (float)(half_word + 1) * TWO_POW_MINUS_16; }
INLINE u64 joined(const u32 *words) { return words[0] | (u64)words[1] << 32; }
#if VALUE_KIND == DOUBLE
// Of DOUBLE_WORDS words: all 32 bits of one, 53 bits of two.
INLINE double unit_double(const u32 *words)
{
#if DOUBLE_WORDS == 1
    return ((double)words[0] + 1.0) * (1.0 / 4294967296.0);
#else
    return fused((double)(joined(words) >> 11), TWO_POW_MINUS_53, TWO_POW_MINUS_53);
#endif
}
#endif
