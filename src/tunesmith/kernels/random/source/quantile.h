// Normal numbers by the inverse of their distribution function.
//
// With x = 2 p - 1 the quantile of p is x G(W), W = -ln(1 - x^2) = -ln(4 p (1 - p)), and G is smooth: a polynomial in W
// in the middle, in sqrt(W) in the tails (the idea is Giles's, "Approximating the erfinv function", GPU Computing Gems
// 2010; the polynomials interpolate G at Chebyshev points, within 1.6e-7 in single and 1.8e-15 in double precision).

#if DISTRIBUTION_KIND == NORMAL || DISTRIBUTION_KIND == LOG_NORMAL || DISTRIBUTION_KIND == POISSON

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

// -ln y, good to 2^-22 of 1 or of itself, whichever is more (PTX, lg2.approx.f32): where W is small, G hardly depends on it.
#if HAS_SPECIAL_UNIT
INLINE float minus_log_roughly(float y) { return -0.6931471805599453f * unit_log2(y); }
#else
INLINE float minus_log_roughly(float y) { return 0.5f * minus_two_log(y); }
#endif

// Of the middle of the interval that a word stands for; symmetric.
INLINE float quantile_of_word(u32 word)
{
    float x = fused((float)(i32)(word ^ 0x80000000u), 2.0f * TWO_POW_MINUS_32, TWO_POW_MINUS_32);
    float tail = fused((float)(word >> 31 ? ~word : word), TWO_POW_MINUS_32, 0.5f * TWO_POW_MINUS_32);
    float w = minus_log_roughly(4.0f * tail * (1.0f - tail));
    return x * (w < 5.0f ? quantile_middle_float(w - 2.5f) : quantile_tail_float(square_root(w) - 3.4930339887498948f));
}

#if VALUE_KIND == DOUBLE && defined(QUASI)
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

// `tail` is (1 - |x|) / 2.
INLINE double quantile(double x, double tail)
{
    double w = minus_log(4.0 * tail * (1.0 - tail));
    if (w < 6.25) return x * quantile_middle(w - 3.125);
    double root = square_root(w);
    return x * (root < 4.0 ? quantile_tail(root - 3.25) : quantile_far_tail(root - 5.35));
}

// Of the middle of the interval that a word stands for. A word of 32 bits leaves room for exact tails.
INLINE double quantile_of_words(const u32 *words)
{
#if WORD_BITS == 32
    double x = fused((double)(i32)(words[0] ^ 0x80000000u), 1.0 / 2147483648.0, 1.0 / 4294967296.0);
    return quantile(x, fused(fabs(x), -0.5, 0.5));
#else
    u64 word = joined(words);
    double x = fused((double)(i64)(word ^ 1ul << 63), 2.0 * TWO_POW_MINUS_64, TWO_POW_MINUS_64);
    return quantile(x, ((double)(word >> 63 ? ~word : word) + 0.5) * TWO_POW_MINUS_64);
#endif
}
#endif
#endif
