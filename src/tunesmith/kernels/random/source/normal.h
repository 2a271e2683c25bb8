// Normal numbers by Box and Muller, and the logarithms for them and for `quantile.h`.

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

// -ln x for a normal double x, by x = 2^k m with m from 0.6875 to 1.375, and for each 32nd of that a number c near 1 / m:
// ln m = ln (1 + r) - ln c, r = m c - 1. Where m is near 1, c is 1, so that small logarithms are good to a roundoff or two
// like the others. ln (1 + r) = r + r^2 P(r), where P interpolates at Chebyshev points, within 0.03 of a roundoff.
#if VALUE_KIND == DOUBLE
CONSTANT RealPair reciprocals[] = {
    // c, ln c
    REAL_PAIR(1.4382022471910112, 0.3633938941874773), REAL_PAIR(1.4065934065934067, 0.3411707574027672),
    REAL_PAIR(1.3763440860215055, 0.3194307707663613), REAL_PAIR(1.3473684210526315, 0.2981533723190763),
    REAL_PAIR(1.3195876288659794, 0.27731928541623435), REAL_PAIR(1.292929292929293, 0.2569104137850273),
    REAL_PAIR(1.2673267326732673, 0.23690974707835774), REAL_PAIR(1.2427184466019416, 0.2173012756899813),
    REAL_PAIR(1.2190476190476192, 0.19806991376209387), REAL_PAIR(1.1962616822429906, 0.17920142945771092),
    REAL_PAIR(1.1743119266055047, 0.16068238169047352), REAL_PAIR(1.1531531531531531, 0.142500062607283),
    REAL_PAIR(1.1327433628318584, 0.12464244520727659), REAL_PAIR(1.1130434782608696, 0.10709813555636712),
    REAL_PAIR(1.0940170940170941, 0.08985632912186114), REAL_PAIR(1.0756302521008403, 0.07290677080808773),
    REAL_PAIR(1.0578512396694215, 0.05623971832287611), REAL_PAIR(1.0406504065040652, 0.03984590854719978),
    REAL_PAIR(1.024, 0.023716526617316065), REAL_PAIR(1.0, 0.0), REAL_PAIR(1.0, 0.0),
    REAL_PAIR(0.9552238805970149, -0.04580953603129422), REAL_PAIR(0.927536231884058, -0.07522342123758752),
    REAL_PAIR(0.9014084507042254, -0.10379679368164355), REAL_PAIR(0.8767123287671232, -0.13157635778871932),
    REAL_PAIR(0.8533333333333334, -0.15860503017663852), REAL_PAIR(0.8311688311688312, -0.18492233849401193),
    REAL_PAIR(0.810126582278481, -0.21056476910734964), REAL_PAIR(0.7901234567901234, -0.23556607131276697),
    REAL_PAIR(0.7710843373493976, -0.259957524436926), REAL_PAIR(0.7529411764705882, -0.2837681731306446),
    REAL_PAIR(0.735632183908046, -0.3070250352949119)
};

INLINE double minus_log(double x)
{
    u64 bits = double_bits(x);
    u32 above = (u32)(bits >> 32) - 0x3fe60000u;
    i32 exponent = (i32)above >> 20;
    double m = bits_double(bits - ((u64)(above & 0xfff00000u) << 32));
    RealPair near = reciprocals[above >> 15 & 31];
    double r = fused(m, near.x, -1.0);
    double p = 0.10515517779753208;
    p = fused(p, r, -0.12494482597355566);
    p = fused(p, r, 0.14285952546420472);
    p = fused(p, r, -0.1666667011292348);
    p = fused(p, r, 0.19999999971647603);
    p = fused(p, r, -0.24999999999606895);
    p = fused(p, r, 0.3333333333333435);
    p = fused(p, r, -0.5000000000000001);
    double whole = fused((double)exponent, -0.69314718055994531, near.y);
    return whole - fused(r * r, p, r);
}
#endif

// sin and cos of 2 pi word / 2^32, by the device's own unit where it has one: within [-pi, pi] that is good to 2^-20.9
// (CUDA C++ programming guide, intrinsic functions; cuRAND and rocRAND use it too). Elsewhere the quadrant is taken off
// exactly, and the rest, an eighth of a turn at most, goes into polynomials that are good to a roundoff.
#if HAS_SPECIAL_UNIT
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
    double u = unit_double(words);
#if DOUBLE_WORDS == 1
    double half_turns = (double)words[1] * (1.0 / 2147483648.0);
#else
    double half_turns = (double)(joined(words + 2) >> 11) * (2.0 * TWO_POW_MINUS_53);
#endif
    double radius = square_root(2.0 * minus_log(u)), sine, cosine;
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

#endif
