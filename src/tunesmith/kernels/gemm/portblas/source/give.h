// A vector of sums becomes neighbours in D. Macros: NAME, LANES_GIVEN; with SPLIT, partial sums in REAL.

#define GIVEN VEC(REAL, LANES_GIVEN)

#if SPLIT
INLINE void NAME(give)(GLOBAL REAL *to, GIVEN sum, int left)
{
    UNROLL
    for (int i = 0; i < LANES_GIVEN; ++i)
        if (i < left) to[i] = LANE(REAL, sum, i);
}
#else
// Whether D, and C if it is read, can be accessed by vectors every `of_d`, `of_c` elements.
INLINE int NAME(gives_vectors)(const Output *out, i64 of_d, i64 of_c)
{
    return aligned(out->d, of_d, LANES_GIVEN) && (!USE_BETA || out->beta == 0 || aligned(out->c, of_c, LANES_GIVEN));
}

// From element `of_d` of D and `of_c` of C on, as many as are `left` there.
INLINE void NAME(give)(const Output *out, int in_vectors, GIVEN sum, int left, i64 of_d, i64 of_c)
{
    if (in_vectors && LANES_GIVEN <= left) {
        GIVEN given = ZERO(REAL, LANES_GIVEN);
        if (USE_BETA && out->beta != 0) {
            GIVEN old = READ(GLOBAL, LANES_GIVEN, out->c + of_c);
            UNROLL
            for (int i = 0; i < LANES_GIVEN; ++i) LANE(REAL, given, i) = out->beta * LANE(REAL, old, i);
        }
        UNROLL
        for (int i = 0; i < LANES_GIVEN; ++i) LANE(REAL, given, i) += out->alpha * LANE(REAL, sum, i);
        WRITE(LANES_GIVEN, given, out->d + of_d);
    } else {
        UNROLL_BY(BY_DEVICE(1, LANES_GIVEN))
        for (int i = 0; i < LANES_GIVEN; ++i)
            if (i < left) give_element(out, LANE(REAL, sum, i), of_d + i, of_c + i);
    }
}
#endif

#undef GIVEN
