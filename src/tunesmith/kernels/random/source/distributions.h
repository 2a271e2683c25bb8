// From random words to values of a distribution: `values` makes OUT values of IN words.
// Compiled in: DISTRIBUTION_KIND (UNIFORM, NORMAL, LOG_NORMAL, POISSON), VALUE_KIND (U8, U16, U32, U64, HALF, FLOAT,
// DOUBLE), and QUASI where a word is a point of a low-discrepancy sequence, which pairs of words would spoil.

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

// ---- normal: Box and Muller ----

#if DISTRIBUTION_KIND == NORMAL || DISTRIBUTION_KIND == LOG_NORMAL || DISTRIBUTION_KIND == POISSON

// -2 ln u for a normal float u in (0, 1], by u = 2^e m with m between sqrt(1/2) and sqrt(2):
// ln m = f - f^2 / 2 + f^3 P(f), f = m - 1, P fitted for the least relative error (below a tenth of a unit roundoff).
INLINE float minus_two_log(float u)
{
    i32 exponent = (i32)(float_bits(u) - 0x3f3504f3u) >> 23;
    float f = bits_float(float_bits(u) - ((u32)exponent << 23)) - 1.0f;
    float p = -0.07634429633617401f;
    p = fused(p, f, 0.12761549651622772f);
    p = fused(p, f, -0.131601944565773f);
    p = fused(p, f, 0.14201761782169342f);
    p = fused(p, f, -0.16623356938362122f);
    p = fused(p, f, 0.20001226663589478f);
    p = fused(p, f, -0.250008225440979f);
    p = fused(p, f, 0.3333333134651184f);
    float square = f * f;
    float logarithm = fused(f * square, p, fused(-0.5f, square, f));
    return -2.0f * fused((float)exponent, 0.6931471805599453f, logarithm);
}

// sin and cos of 2 pi word / 2^32, by the device's own unit where it has one: within [-pi, pi] that is good to 2^-20.9
// (CUDA C++ programming guide, intrinsic functions; cuRAND and rocRAND use it too). Elsewhere the quadrant is taken off
// exactly, and the rest, an eighth of a turn at most, goes into polynomials that are good to a roundoff.
#if HAS_SINE_UNIT
INLINE void sine_cosine(u32 word, float *sine, float *cosine)
{
    float angle = (float)(i32)word * 1.4629180792671596e-9f;
    *sine = unit_sine(angle);
    *cosine = unit_cosine(angle);
}
#else
INLINE void sine_cosine(u32 word, float *sine, float *cosine)
{
    u32 quadrant = (word + 0x20000000u) >> 30;
    float turns = (float)(i32)(word - (quadrant << 30)) * TWO_POW_MINUS_32;
    float square = turns * turns;
    float s = fused(square, -75.39356231689453f, 81.59235382080078f);
    s = fused(s, square, -41.3416633605957f);
    s = fused(s, square, 6.2831854820251465f) * turns;
    float c = fused(square, 59.22924041748047f, -85.4432373046875f);
    c = fused(c, square, 64.93932342529297f);
    c = fused(c, square, -19.739208221435547f);
    c = fused(c, square, 1.0f);
    float a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
    *sine = quadrant & 2 ? -a : a;
    *cosine = (quadrant + 1) & 2 ? -b : b;
}
#endif

#if VALUE_KIND == DOUBLE
INLINE void pair_of_normals(const u32 *words, REAL *pair)
{
    double u = fused((double)(joined(words) >> 11), TWO_POW_MINUS_53, TWO_POW_MINUS_53);
    double half_turns = (double)(joined(words + 2) >> 11) * (2.0 * TWO_POW_MINUS_53);
    double radius = square_root(-2.0 * log(u)), sine, cosine;
#ifdef __OPENCL_VERSION__
    sine = sinpi(half_turns);
    cosine = cospi(half_turns);
#else
    sincospi(half_turns, &sine, &cosine);
#endif
    pair[0] = radius * sine;
    pair[1] = radius * cosine;
}
#else
INLINE void pair_of_normals(const u32 *words, REAL *pair)
{
#if VALUE_KIND == HALF
    float u = unit_16(words[0] & 0xffffu);
    u32 angle = words[0] & 0xffff0000u;
#else
    float u = unit_float(words[0]);
    u32 angle = words[1];
#endif
    float radius = square_root(minus_two_log(u)), sine, cosine;
    sine_cosine(angle, &sine, &cosine);
    pair[0] = radius * sine;
    pair[1] = radius * cosine;
}
#endif

// ---- normal: the inverse of its distribution function ----
//
// With x = 2 p - 1 the quantile of p is x G(W), W = -ln(1 - x^2) = -ln(4 p (1 - p)), and G is smooth: a polynomial in W
// in the middle, in sqrt(W) in the tails (the idea is Giles's, "Approximating the erfinv function", GPU Computing Gems
// 2010; the polynomials interpolate G at Chebyshev points, within 1.6e-7 in single and 1.8e-15 in double precision).

#define POLYNOMIAL(REAL, terms) \
    REAL sum = terms[0]; \
    UNROLL \
    for (int i = 1; i < (int)(sizeof(terms) / sizeof(REAL)); ++i) sum = fused(sum, at, terms[i]); \
    return sum;

INLINE float quantile_middle_float(float at)
{
    const float terms[] = {
        3.19696803e-8f, 4.83978825e-7f, -4.88579604e-6f, -6.19474573e-6f, 0.000308741177f, -0.00177308282f,
        -0.0059076601f, 0.348802717f, 2.12331347f};
    POLYNOMIAL(float, terms)
}

INLINE float quantile_tail_float(float at)
{
    const float terms[] = {
        -2.6791639e-5f, 4.09902709e-5f, 0.000116774555f, -0.000391645889f, 0.0006228088f, -0.000943571351f,
        0.00158066593f, -0.00297325354f, 0.00469559728f, 1.42457058f, 4.70716534f};
    POLYNOMIAL(float, terms)
}

// Of the middle of the interval that a word stands for; symmetric.
INLINE float quantile_of_word(u32 word)
{
    float x = fused((float)(i32)(word ^ 0x80000000u), 2.0f * TWO_POW_MINUS_32, TWO_POW_MINUS_32);
    float tail = fused((float)(word >> 31 ? ~word : word), TWO_POW_MINUS_32, 0.5f * TWO_POW_MINUS_32);
    float w = 0.5f * minus_two_log(4.0f * tail * (1.0f - tail));
    return x * (w < 5.0f ? quantile_middle_float(w - 2.5f) : quantile_tail_float(square_root(w) - 3.4930339887498948f));
}

#if VALUE_KIND == DOUBLE
INLINE double quantile_middle(double at)
{
    const double terms[] = {
        -3.3408952670514295e-22, -2.3740870632137201e-19, 1.5595624147452077e-18, 1.5734249840893945e-17,
        -1.8253287748806958e-16, 3.0645931900798469e-17, 9.3082904605786835e-15, -5.7352214440419984e-14,
        -1.1464455824953868e-13, 3.7244339363308474e-12, -1.8352963862456958e-11, -7.6585912051110316e-11,
        1.4866499261231771e-9, -5.8161415131622491e-9, -4.1111735078272622e-8, 5.9888942942563181e-7,
        -1.9310650328765146e-6, -1.9632852817479085e-5, 0.00026408204954264024, -0.0010475115695030075,
        -0.0085328991772675704, 0.33963495870114085, 2.3386207100265933};
    POLYNOMIAL(double, terms)
}

INLINE double quantile_tail(double at)
{
    const double terms[] = {
        -5.4179086497286948e-10, 1.2829675534728861e-7, -3.7987156169677647e-7, 2.5914049149097859e-8,
        2.1154178620497005e-6, -5.6765774349593466e-6, 4.1399294837569928e-6, 1.7642799936726544e-5,
        -6.6919919936233994e-5, 9.656934757201043e-5, 3.398547982401634e-5, -0.00050209887399882296,
        0.0013481547306223936, -0.0023875821885560206, 0.0035234312043213086, -0.0053050099466861389,
        0.0075956202039890411, 1.421650865810257, 4.3612728551653304};
    POLYNOMIAL(double, terms)
}

INLINE double quantile_far_tail(double at)
{
    const double terms[] = {
        -2.9620890967478303e-12, 3.788068059671561e-11, -1.544013977969632e-10, 3.2367267934429073e-10,
        -5.3859212662890035e-10, 1.1048441436135804e-9, -2.5897011039880149e-9, 7.4090098850034841e-9,
        -3.076477269791552e-8, 1.5357166193242612e-7, -7.8053023856573181e-7, 3.8185416532385811e-6,
        -1.7367672534489341e-5, 6.8707023029867254e-5, -0.00018289832167440246, -0.0004471223558979251,
        1.4285480665775876, 7.3588410333253637};
    POLYNOMIAL(double, terms)
}

INLINE double quantile_of_long_word(u64 word)
{
    double x = fused((double)(i64)(word ^ 1ul << 63), 2.0 * TWO_POW_MINUS_64, TWO_POW_MINUS_64);
    double tail = ((double)(word >> 63 ? ~word : word) + 0.5) * TWO_POW_MINUS_64;
    double w = -log(4.0 * tail * (1.0 - tail));
    if (w < 6.25) return x * quantile_middle(w - 3.125);
    double root = square_root(w);
    return x * (root < 4.0 ? quantile_tail(root - 3.25) : quantile_far_tail(root - 5.35));
}
#endif
#endif

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
#elif WORD_BITS == 64
    out[0] = fused((double)(joined(words) >> 11), TWO_POW_MINUS_53, TWO_POW_MINUS_53);
#else
    out[0] = ((double)top + 1.0) * (1.0 / 4294967296.0);
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

#define IN 2
#define OUT 1
INLINE void values(const u32 *words, VALUE *out, Distribution distribution)
{
#if VALUE_KIND == U64
    out[0] = joined(words);
#else
    out[0] = fused((double)(joined(words) >> 11), TWO_POW_MINUS_53, TWO_POW_MINUS_53);
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
#define IN 4
#define OUT 2
#endif

INLINE void values(const u32 *words, VALUE *out, Distribution distribution)
{
    REAL normals[OUT];
#if !defined(QUASI)
    pair_of_normals(words, normals);
#elif VALUE_KIND == DOUBLE
    normals[0] = quantile_of_long_word(WORD_BITS == 64 ? joined(words) : (u64)words[0] << 32 | 0x80000000u);
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
