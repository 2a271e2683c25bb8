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

// ---- normal: the inverse of its distribution function (Wichura 1988, algorithm AS 241) ----

INLINE float horner3(float x, float a, float b, float c, float d) { return fused(fused(fused(d, x, c), x, b), x, a); }

// `tail` is the probability beyond the value, at most a half: the value is negative or 0, good to about 1e-7.
INLINE float lower_quantile_float(float tail)
{
    float q = tail - 0.5f;
    if (q >= -0.425f) {
        float r = fused(-q, q, 0.180625f);
        return q * horner3(r, 3.3871327179f, 50.434271938f, 159.29113202f, 59.109374720f)
                 / horner3(r, 1.0f, 17.895169469f, 78.757757664f, 67.187563600f);
    }
    float r = square_root(0.5f * minus_two_log(tail));
    if (r <= 5.0f) {
        r -= 1.6f;
        return -horner3(r, 1.4234372777f, 2.7568153900f, 1.3067284816f, 0.17023821103f)
               / fused(fused(0.12021132975f, r, 0.73700164250f), r, 1.0f);
    }
    r -= 5.0f;
    return -horner3(r, 6.6579051150f, 3.0812263860f, 0.42868294337f, 0.017337203997f)
           / fused(fused(0.012258202635f, r, 0.24197894225f), r, 1.0f);
}

INLINE float quantile_of_word(u32 word)
{
    u32 nearer = word >> 31 ? ~word : word;
    float value = lower_quantile_float(fused((float)nearer, TWO_POW_MINUS_32, 0.5f * TWO_POW_MINUS_32));
    return word >> 31 ? -value : value;
}

#if VALUE_KIND == DOUBLE
INLINE double horner7(double x, double a, double b, double c, double d, double e, double f, double g, double h)
{
    return fused(fused(fused(fused(fused(fused(fused(h, x, g), x, f), x, e), x, d), x, c), x, b), x, a);
}

// The same, good to about 1e-16.
INLINE double lower_quantile_double(double tail)
{
    double q = tail - 0.5;
    if (q >= -0.425) {
        double r = fused(-q, q, 0.180625);
        return q * horner7(r, 3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427,
                           13731.693765509461125, 45921.953931549871457, 67265.770927008700853,
                           33430.575583588128105, 2509.0809287301226727)
                 / horner7(r, 1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
                           21213.794301586595867, 39307.895800092710610, 28729.085735721942674,
                           5226.4952788528545610);
    }
    double r = square_root(-log(tail));
    if (r <= 5.0) {
        r -= 1.6;
        return -horner7(r, 1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
                        3.64784832476320460504, 1.27045825245236838258, 0.241780725177450611770,
                        0.0227238449892691845833, 7.74545014278341407640e-4)
               / horner7(r, 1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550,
                         0.148103976427480074590, 0.0151986665636164571966, 5.47593808499534494600e-4,
                         1.05075007164441684324e-9);
    }
    r -= 5.0;
    return -horner7(r, 6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
                    0.296560571828504891230, 0.0265321895265761230930, 1.24266094738807843860e-3,
                    2.71155556874348757815e-5, 2.01033439929228813265e-7)
           / horner7(r, 1.0, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525,
                     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
                     2.04426310338993978564e-15);
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
    u64 word = WORD_BITS == 64 ? joined(words) : (u64)words[0] << 32 | 0x80000000u;
    u64 nearer = word >> 63 ? ~word : word;
    double value = lower_quantile_double(((double)nearer + 0.5) * TWO_POW_MINUS_64);
    normals[0] = word >> 63 ? -value : value;
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
