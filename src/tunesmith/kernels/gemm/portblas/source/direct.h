// D by blocks of BLOCK_M x BLOCK_N straight from global memory: the caches bring together what work-items share. Work-items
// have ROWS x COLUMNS elements each, in vectors of ROW_LANES rows, WR vectors apart, and likewise COLUMN_LANES columns.
//
// STEPS of K are read at once, as vectors where K is an operand's contiguous dimension.

#define ROW VEC(REAL, ROW_LANES)
#define COLUMN VEC(REAL, COLUMN_LANES)
#define STEP_VECTOR VEC(REAL, STEPS)
#define ROW_VECTORS (ROWS / ROW_LANES)
#define COLUMN_VECTORS (COLUMNS / COLUMN_LANES)
#define ROW_OF(vector) ((vector) * WR * ROW_LANES)
#define COLUMN_OF(vector) ((vector) * WC * COLUMN_LANES)

// STEPS steps with vectors; all elements exist.
INLINE void NAME(multiply)(const Operand *a, const Operand *b, ROW sums[COLUMNS][ROW_VECTORS], i64 k)
{
    ROW of_a[STEPS][ROW_VECTORS];
    REAL of_b[STEPS][COLUMNS];
    UNROLL
    for (int i = 0; i < ROW_VECTORS; ++i) {
#if TRANSPOSE_A
        UNROLL
        for (int lane = 0; lane < ROW_LANES; ++lane) {
            STEP_VECTOR along = READ(GLOBAL, STEPS, place(a, ROW_OF(i) + lane, k, 0));
            UNROLL
            for (int step = 0; step < STEPS; ++step) LANE(REAL, of_a[step][i], lane) = LANE(REAL, along, step);
        }
#else
        UNROLL
        for (int step = 0; step < STEPS; ++step) of_a[step][i] = READ(GLOBAL, ROW_LANES, place(a, ROW_OF(i), k + step, 0));
#endif
    }
    UNROLL
    for (int j = 0; j < COLUMN_VECTORS; ++j) {
#if TRANSPOSE_B
        UNROLL
        for (int step = 0; step < STEPS; ++step) {
            COLUMN along = READ(GLOBAL, COLUMN_LANES, place(b, COLUMN_OF(j), k + step, 0));
            UNROLL
            for (int lane = 0; lane < COLUMN_LANES; ++lane)
                of_b[step][j * COLUMN_LANES + lane] = LANE(REAL, along, lane);
        }
#else
        STEP_VECTOR along = READ(GLOBAL, STEPS, place(b, COLUMN_OF(j), k, 0));
        UNROLL
        for (int step = 0; step < STEPS; ++step) of_b[step][j] = LANE(REAL, along, step);
#endif
    }
    UNROLL
    for (int step = 0; step < STEPS; ++step)
        UNROLL
        for (int j = 0; j < COLUMNS; ++j)
            UNROLL
            for (int i = 0; i < ROW_VECTORS; ++i)
                MULTIPLY_ADD(ROW_LANES, sums[j][i], of_a[step][i], of_b[step][j]);
}

// One step, element by element.
INLINE void NAME(multiply_one)(const Operand *a, const Operand *b, ROW sums[COLUMNS][ROW_VECTORS], i64 k)
{
    ROW of_a[ROW_VECTORS];
    UNROLL
    for (int i = 0; i < ROW_VECTORS; ++i)
        UNROLL
        for (int lane = 0; lane < ROW_LANES; ++lane)
            LANE(REAL, of_a[i], lane) = ELEMENT(place(a, ROW_OF(i) + lane, k, 1));
    UNROLL
    for (int j = 0; j < COLUMNS; ++j) {
        const REAL of_b = ELEMENT(place(b, COLUMN_OF(j / COLUMN_LANES) + j % COLUMN_LANES, k, 1));
        UNROLL
        for (int i = 0; i < ROW_VECTORS; ++i) MULTIPLY_ADD(ROW_LANES, sums[j][i], of_a[i], of_b);
    }
}

KERNEL(ITEMS, 1) ENTRY(
    GLOBAL const STORED *RESTRICT a, i64 lda, i64 stride_a, GLOBAL const STORED *RESTRICT b, i64 ldb, i64 stride_b,
    int m, int n, int k, int blocks_m, int blocks_n, OUTPUT_PARAMETERS)
{
    int block_m, block_n;
    visited(GROUP_NUMBER, blocks_m, blocks_n, &block_m, &block_n);
    const int row = block_m * BLOCK_M + LOCAL_ID % WR * ROW_LANES;
    const int column = block_n * BLOCK_N + LOCAL_ID / WR * COLUMN_LANES;
    a += GROUP_Z * stride_a;
    b += GROUP_Z * stride_b;
    const Operand of_a = operand(a, lda, TRANSPOSE_A, 1, row, m);
    const Operand of_b = operand(b, ldb, !TRANSPOSE_B, 1, column, n);

    ROW sums[COLUMNS][ROW_VECTORS];
    UNROLL
    for (int j = 0; j < COLUMNS; ++j)
        UNROLL
        for (int i = 0; i < ROW_VECTORS; ++i) sums[j][i] = ZERO(REAL, ROW_LANES);

    i64 step = 0;
    if (block_m * BLOCK_M + BLOCK_M <= m && block_n * BLOCK_N + BLOCK_N <= n &&
        aligned(a, lda, TRANSPOSE_A ? STEPS : ROW_LANES) && aligned(b, ldb, TRANSPOSE_B ? COLUMN_LANES : STEPS)) {
        UNROLL_BY(UNROLLED)
        for (; step + STEPS <= k; step += STEPS) NAME(multiply)(&of_a, &of_b, sums, step);
    }
    for (; step < k; ++step) NAME(multiply_one)(&of_a, &of_b, sums, step);

    const Output out = OUTPUT_OF(GROUP_Z);
    const int in_vectors = NAME(gives_vectors)(&out, out.ldd, out.ldc);
    UNROLL
    for (int j = 0; j < COLUMNS; ++j) {
        const int to_column = column + COLUMN_OF(j / COLUMN_LANES) + j % COLUMN_LANES;
        if (to_column < n)
            UNROLL
            for (int i = 0; i < ROW_VECTORS; ++i) {
                const int to = row + ROW_OF(i);
                NAME(give)(&out, in_vectors, sums[j][i], m - to, to + to_column * out.ldd, to + to_column * out.ldc);
            }
    }
}

#undef ROW
#undef COLUMN
#undef STEP_VECTOR
#undef ROW_VECTORS
#undef COLUMN_VECTORS
#undef ROW_OF
#undef COLUMN_OF
