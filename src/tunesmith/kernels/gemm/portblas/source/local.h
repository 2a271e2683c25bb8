// D by blocks of BLOCK_M x BLOCK_N through local memory, in stages of DEPTH steps along K. Work-items have ROWS x COLUMNS
// elements each, in vectors of ROW_LANES rows, WR vectors apart, and likewise COLUMN_LANES columns, WC apart.
//
// With BUFFERS 2 a stage is stored while others still read the one before, which saves a barrier. With PREFETCH the next
// stage is on its way from global memory, to registers, while the present one is multiplied.

#define ROW VEC(REAL, ROW_LANES)
#define COLUMN VEC(REAL, COLUMN_LANES)
#define ROW_VECTORS (ROWS / ROW_LANES)
#define COLUMN_VECTORS (COLUMNS / COLUMN_LANES)

INLINE void NAME(fragments)(ROW *of_a, COLUMN *of_b, LOCAL const STORED *a, LOCAL const STORED *b)
{
    UNROLL
    for (int i = 0; i < ROW_VECTORS; ++i) of_a[i] = READ(LOCAL, ROW_LANES, a + i * WR * ROW_LANES);
    UNROLL
    for (int j = 0; j < COLUMN_VECTORS; ++j) of_b[j] = READ(LOCAL, COLUMN_LANES, b + j * WC * COLUMN_LANES);
}

// On GPUs what the next step needs is read before the present one is multiplied.
#define AHEAD BY_DEVICE(0, 1)

INLINE void NAME(multiply)(ROW kept[COLUMNS][ROW_VECTORS], LOCAL const STORED *a, LOCAL const STORED *b)
{
    // What lives across a barrier PoCL keeps in memory; a copy can stay in registers.
    ROW sums[COLUMNS][ROW_VECTORS];
    UNROLL
    for (int j = 0; j < COLUMNS; ++j)
        UNROLL
        for (int i = 0; i < ROW_VECTORS; ++i) sums[j][i] = kept[j][i];
    ROW of_a[1 + AHEAD][ROW_VECTORS];
    COLUMN of_b[1 + AHEAD][COLUMN_VECTORS];
    if (AHEAD) NAME(fragments)(of_a[0], of_b[0], a, b);
    UNROLL_BY(UNROLLED)
    for (int step = 0; step < DEPTH; ++step) {
        const int now = AHEAD ? step % 2 : 0, next = AHEAD ? 1 - now : 0;
        if (step + AHEAD < DEPTH)
            NAME(fragments)(of_a[next], of_b[next], a + (step + AHEAD) * LEADING_A, b + (step + AHEAD) * LEADING_B);
        UNROLL
        for (int j = 0; j < COLUMNS; ++j)
            UNROLL
            for (int i = 0; i < ROW_VECTORS; ++i)
                MULTIPLY_ADD(
                    ROW_LANES, sums[j][i], of_a[now][i], LANE(REAL, of_b[now][j / COLUMN_LANES], j % COLUMN_LANES));
    }
    UNROLL
    for (int j = 0; j < COLUMNS; ++j)
        UNROLL
        for (int i = 0; i < ROW_VECTORS; ++i) kept[j][i] = sums[j][i];
}

KERNEL(ITEMS, GROUPS_AT_ONCE) ENTRY(
    GLOBAL const STORED *RESTRICT a, i64 lda, i64 stride_a, GLOBAL const STORED *RESTRICT b, i64 ldb, i64 stride_b,
    int m, int n, int k, int blocks_m, int blocks_n,
#if SPLIT
    GLOBAL REAL *RESTRICT sums_of_parts, int parts, int part_k
#else
    OUTPUT_PARAMETERS
#endif
)
{
    LOCAL_ARRAY(STORED, stages, BUFFERS * (ELEMENTS_A + ELEMENTS_B));
    // Work-items that run in step read few different rows and columns: LANES_M x LANES_N of them side by side.
    const int lane = LOCAL_ID % (LANES_M * LANES_N), warp = LOCAL_ID / (LANES_M * LANES_N);
    const int item_m = lane % LANES_M + warp % (WR / LANES_M) * LANES_M;
    const int item_n = lane / LANES_M + warp / (WR / LANES_M) * LANES_N;
    int block_m, block_n;
    visited(GROUP_NUMBER, blocks_m, blocks_n, &block_m, &block_n);
#if SPLIT
    const int batch = GROUP_Z / parts, part = GROUP_Z % parts;
    const int first_k = part * part_k, end_k = part_k < k - first_k ? first_k + part_k : k;
#else
    const int batch = GROUP_Z, first_k = 0, end_k = k;
#endif
    NAME_A(Source) of_a = NAME_A(source)(a + batch * stride_a, lda, block_m * BLOCK_M, m, first_k);
    NAME_B(Source) of_b = NAME_B(source)(b + batch * stride_b, ldb, block_n * BLOCK_N, n, first_k);

    ROW sums[COLUMNS][ROW_VECTORS];
    UNROLL
    for (int j = 0; j < COLUMNS; ++j)
        UNROLL
        for (int i = 0; i < ROW_VECTORS; ++i) sums[j][i] = ZERO(REAL, ROW_LANES);

#if PREFETCH
    NAME_A(Staged) next_a;
    NAME_B(Staged) next_b;
    NAME_A(fetch)(&of_a, &next_a, end_k - first_k);
    NAME_B(fetch)(&of_b, &next_b, end_k - first_k);
#endif
    int present = 0;
    for (int left = end_k - first_k; left > 0; left -= DEPTH) {
        LOCAL STORED *stage_a = stages + present, *stage_b = stage_a + ELEMENTS_A;
#if PREFETCH
        NAME_A(place)(&next_a, stage_a);
        NAME_B(place)(&next_b, stage_b);
        BARRIER();
        NAME_A(advance)(&of_a);
        NAME_B(advance)(&of_b);
        if (left > DEPTH) {
            NAME_A(fetch)(&of_a, &next_a, left - DEPTH);
            NAME_B(fetch)(&of_b, &next_b, left - DEPTH);
        }
#else
        NAME_A(copy)(&of_a, stage_a, left);
        NAME_B(copy)(&of_b, stage_b, left);
        NAME_A(advance)(&of_a);
        NAME_B(advance)(&of_b);
        BARRIER();
#endif
        NAME(multiply)(sums, stage_a + item_m * ROW_LANES, stage_b + item_n * COLUMN_LANES);
#if BUFFERS == 2
        present = ELEMENTS_A + ELEMENTS_B - present;
#else
        BARRIER();
#endif
    }

#if SPLIT
    GLOBAL REAL *to = sums_of_parts + (i64)GROUP_Z * m * n;
#else
    const Output out = OUTPUT_OF(batch);
    const int in_vectors = NAME(gives_vectors)(&out, out.ldd, out.ldc);
#endif
    UNROLL
    for (int j = 0; j < COLUMNS; ++j) {
        const int column =
            block_n * BLOCK_N + (j / COLUMN_LANES * WC + item_n) * COLUMN_LANES + j % COLUMN_LANES;
        if (column < n)
            UNROLL
            for (int i = 0; i < ROW_VECTORS; ++i) {
                const int row = block_m * BLOCK_M + (i * WR + item_m) * ROW_LANES;
#if SPLIT
                NAME(give)(to + row + (i64)column * m, sums[j][i], m - row);
#else
                NAME(give)(&out, in_vectors, sums[j][i], m - row, row + column * out.ldd, row + column * out.ldc);
#endif
            }
    }
}

#undef AHEAD
#undef ROW
#undef COLUMN
#undef ROW_VECTORS
#undef COLUMN_VECTORS
