// From random words to values of a distribution: `values` makes OUT values of IN words.
// IN and OUT follow from DISTRIBUTION_KIND and VALUE_KIND, and from QUASI.

// ---- what a distribution needs beside words ----

#if DISTRIBUTION_KIND == UNIFORM
typedef struct { u32 nothing; } Distribution;
#define DISTRIBUTION_ARGUMENTS
#define DISTRIBUTION unparametrised()
INLINE Distribution unparametrised(void) { Distribution distribution; distribution.nothing = 0; return distribution; }
#elif DISTRIBUTION_KIND == POISSON
// bits > 0: Walker's alias table of 2^bits columns, pairs of a threshold and the alias, the first column being `base`.
// bits = 0: so large a mean that a rounded normal does: `base` + `fraction` is the mean, `deviation` its root.
typedef struct { GLOBAL const u32 *table; u32 bits; u32 base; float fraction; float deviation; } Distribution;
#define DISTRIBUTION_ARGUMENTS , GLOBAL const u32 *table, u32 bits, u32 base, float fraction, float deviation
#define DISTRIBUTION poisson(table, bits, base, fraction, deviation)
INLINE Distribution poisson(GLOBAL const u32 *table, u32 bits, u32 base, float fraction, float deviation)
{
    Distribution distribution;
    distribution.table = table;
    distribution.bits = bits;
    distribution.base = base;
    distribution.fraction = fraction;
    distribution.deviation = deviation;
    return distribution;
}
#else
typedef struct { REAL mean; REAL deviation; } Distribution;
#define DISTRIBUTION_ARGUMENTS , REAL mean, REAL deviation
#define DISTRIBUTION normal(mean, deviation)
INLINE Distribution normal(REAL mean, REAL deviation)
{
    Distribution distribution;
    distribution.mean = mean;
    distribution.deviation = deviation;
    return distribution;
}
#endif

// ---- values ----

#if DISTRIBUTION_KIND == UNIFORM && defined(QUASI)

#define IN (WORD_BITS / 32)
#define OUT 1
INLINE void values(const u32 *words, VALUE *out, Distribution distribution)
{
    u32 top = words[IN - 1];
#if VALUE_KIND == U8
    out[0] = (u8)(top >> 24);
#elif VALUE_KIND == U16
    out[0] = (u16)(top >> 16);
#elif VALUE_KIND == U32
    out[0] = top;
#elif VALUE_KIND == U64
    out[0] = WORD_BITS == 64 ? joined(words) : (u64)top << 32;
#elif VALUE_KIND == HALF
    out[0] = half_bits(unit_16(top >> 16));
#elif VALUE_KIND == FLOAT
    out[0] = unit_float(top);
#else
    out[0] = unit_double(words);
#endif
}

#elif DISTRIBUTION_KIND == UNIFORM && VALUE_KIND == U8

#define IN 1
#define OUT 4
INLINE void values(const u32 *words, VALUE *out, Distribution distribution)
{
    UNROLL
    for (int i = 0; i < 4; ++i) out[i] = (u8)(words[0] >> 8 * i);
}

#elif DISTRIBUTION_KIND == UNIFORM && (VALUE_KIND == U16 || VALUE_KIND == HALF)

#define IN 1
#define OUT 2
INLINE void values(const u32 *words, VALUE *out, Distribution distribution)
{
#if VALUE_KIND == U16
    out[0] = (u16)words[0];
    out[1] = (u16)(words[0] >> 16);
#else
    out[0] = half_bits(unit_16(words[0] & 0xffffu));
    out[1] = half_bits(unit_16(words[0] >> 16));
#endif
}

#elif DISTRIBUTION_KIND == UNIFORM && (VALUE_KIND == U32 || VALUE_KIND == FLOAT)

#define IN 1
#define OUT 1
INLINE void values(const u32 *words, VALUE *out, Distribution distribution)
{
#if VALUE_KIND == U32
    out[0] = words[0];
#else
    out[0] = unit_float(words[0]);
#endif
}

#elif DISTRIBUTION_KIND == UNIFORM

#if VALUE_KIND == U64
#define IN 2
#else
#define IN DOUBLE_WORDS
#endif
#define OUT 1
INLINE void values(const u32 *words, VALUE *out, Distribution distribution)
{
#if VALUE_KIND == U64
    out[0] = joined(words);
#else
    out[0] = unit_double(words);
#endif
}

#elif DISTRIBUTION_KIND == POISSON

#ifdef QUASI
#define IN (WORD_BITS / 32)
#else
#define IN 1
#endif
#define OUT 1
INLINE void values(const u32 *words, VALUE *out, Distribution distribution)
{
    u32 word = words[IN - 1];
    if (distribution.bits) {
        u32 column = word >> (32 - distribution.bits), rest = word << distribution.bits;
        u32 threshold = distribution.table[2 * column], other = distribution.table[2 * column + 1];
        out[0] = (VALUE)(distribution.base + (rest < threshold ? column : other));
    } else {
        float away = rint(fused(distribution.deviation, quantile_of_word(word), distribution.fraction));
        float least = -(float)distribution.base;
        out[0] = (VALUE)((i64)distribution.base + (i64)(away < least ? least : away));
    }
}

#else

#ifdef QUASI
#define IN (WORD_BITS / 32)
#define OUT 1
#elif VALUE_KIND == HALF
#define IN 1
#define OUT 2
#elif VALUE_KIND == FLOAT
#define IN 2
#define OUT 2
#else
#define IN (2 * DOUBLE_WORDS)
#define OUT 2
#endif

INLINE void values(const u32 *words, VALUE *out, Distribution distribution)
{
    REAL normals[OUT];
#if !defined(QUASI)
    pair_of_normals(words, normals);
#elif VALUE_KIND == DOUBLE
    normals[0] = quantile_of_words(words);
#else
    normals[0] = quantile_of_word(words[IN - 1]);
#endif
    UNROLL
    for (int i = 0; i < OUT; ++i) {
        REAL value = fused(distribution.deviation, normals[i], distribution.mean);
#if DISTRIBUTION_KIND == LOG_NORMAL
        value = exponential(value);
#endif
#if VALUE_KIND == HALF
        out[i] = half_bits(value);
#else
        out[i] = value;
#endif
    }
}

#endif
