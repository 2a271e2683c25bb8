// What becomes of sums: D = alpha sum + beta C, or with SPLIT partial sums of a part of K each, which `reduce` adds up.
// With beta = 0 C is not read: it may hold NaN. A type without beta (USE_BETA 0) has no C.

typedef struct {
    GLOBAL STORED *d;
    i64 ldd;
    REAL alpha;
    GLOBAL const STORED *c;
    i64 ldc;
    REAL beta;
} Output;

#if USE_BETA
#define OUTPUT_PARAMETERS \
    GLOBAL STORED *RESTRICT d, i64 ldd, i64 stride_d, REAL alpha, \
    GLOBAL const STORED *RESTRICT c, i64 ldc, i64 stride_c, REAL beta
#define OUTPUT_OF(batch) \
    {d + (batch) * stride_d, ldd, alpha, c + (batch) * stride_c, ldc, beta}
#else
#define OUTPUT_PARAMETERS GLOBAL STORED *RESTRICT d, i64 ldd, i64 stride_d, REAL alpha
#define OUTPUT_OF(batch) {d + (batch) * stride_d, ldd, alpha, d, 0, 0}
#endif

// The element at `of_d` in D, `of_c` in C.
INLINE void give_element(const Output *out, REAL sum, i64 of_d, i64 of_c)
{
    const REAL product = out->alpha * sum;
    GIVE(USE_BETA && out->beta != 0 ? product + out->beta * ELEMENT(out->c + of_c) : product, out->d + of_d);
}
