// A batch whose index is the fastest: element (row, column) of all matrices lies together, at (row + column * leading) *
// batch. Vectors of VECTOR matrices; a work-item has BATCH_VECTORS of these, WB apart, and ROWS x COLUMNS elements of each,
// WR and WC apart.

#define MATRICES VEC(REAL, VECTOR)

// A vector of matrices at one place. Checked, the last of `left` matrices stands in for those beyond.
INLINE MATRICES NAME(matrices)(GLOBAL const STORED *from, int left, int is_checked)
{
    if (!is_checked) return READ(GLOBAL, VECTOR, from);
    MATRICES made = ZERO(REAL, VECTOR);
    UNROLL
    for (int i = 0; i < VECTOR; ++i) LANE(REAL, made, i) = ELEMENT(from + (i < left ? i : left - 1));
    return made;
}

INLINE void NAME(multiply)(
    const Operand *a, const Operand *b, MATRICES sums[BATCH_VECTORS][COLUMNS][ROWS], i64 k, int left, int is_checked)
{
    UNROLL
    for (int vector = 0; vector < BATCH_VECTORS; ++vector) {
        const int matrix = vector * WB * VECTOR;
        MATRICES of_a[ROWS];
        UNROLL
        for (int i = 0; i < ROWS; ++i)
            of_a[i] = NAME(matrices)(place(a, i * WR, k, is_checked) + matrix, left - matrix, is_checked);
        UNROLL
        for (int j = 0; j < COLUMNS; ++j) {
            const MATRICES of_b = NAME(matrices)(place(b, j * WC, k, is_checked) + matrix, left - matrix, is_checked);
            UNROLL
            for (int i = 0; i < ROWS; ++i) MULTIPLY_ADD(VECTOR, sums[vector][j][i], of_a[i], of_b);
        }
    }
}

KERNEL(ITEMS, 1) ENTRY(
    GLOBAL const STORED *RESTRICT a, i64 lda, GLOBAL const STORED *RESTRICT b, i64 ldb,
    int m, int n, int k, int batch, int blocks_m, int blocks_n, OUTPUT_PARAMETERS)
{
    int block_m, block_n;
    visited(GROUP_NUMBER, blocks_m, blocks_n, &block_m, &block_n);
    const int row = block_m * BLOCK_M + LOCAL_ID / WB % WR, column = block_n * BLOCK_N + LOCAL_ID / (WB * WR);
    const int first = GROUP_Z * BLOCK_BATCH, matrix = first + LOCAL_ID % WB * VECTOR;
    const Operand of_a = operand(a + matrix, lda, TRANSPOSE_A, batch, row, m);
    const Operand of_b = operand(b + matrix, ldb, !TRANSPOSE_B, batch, column, n);

    MATRICES sums[BATCH_VECTORS][COLUMNS][ROWS];
    UNROLL
    for (int vector = 0; vector < BATCH_VECTORS; ++vector)
        UNROLL
        for (int j = 0; j < COLUMNS; ++j)
            UNROLL
            for (int i = 0; i < ROWS; ++i) sums[vector][j][i] = ZERO(REAL, VECTOR);

    // Every place is a multiple of the batch.
    if (block_m * BLOCK_M + BLOCK_M <= m && block_n * BLOCK_N + BLOCK_N <= n && first + BLOCK_BATCH <= batch &&
        aligned(a, batch, VECTOR) && aligned(b, batch, VECTOR)) {
        UNROLL_BY(UNROLLED)
        for (int step = 0; step < k; ++step) NAME(multiply)(&of_a, &of_b, sums, step, 0, 0);
    } else {
        for (int step = 0; step < k; ++step) NAME(multiply)(&of_a, &of_b, sums, step, batch - matrix, 1);
    }

    const Output out = OUTPUT_OF(0);
    const int in_vectors = NAME(gives_vectors)(&out, batch, batch);
    UNROLL
    for (int j = 0; j < COLUMNS; ++j)
        UNROLL
        for (int i = 0; i < ROWS; ++i) {
            const int to_row = row + i * WR, to_column = column + j * WC;
            if (to_row < m && to_column < n)
                UNROLL
                for (int vector = 0; vector < BATCH_VECTORS; ++vector) {
                    const int to = matrix + vector * WB * VECTOR;
                    const i64 of_d = to + (to_row + to_column * out.ldd) * batch;
                    const i64 of_c = to + (to_row + to_column * out.ldc) * batch;
                    NAME(give)(&out, in_vectors, sums[vector][j][i], batch - to, of_d, of_c);
                }
        }
}

#undef MATRICES
