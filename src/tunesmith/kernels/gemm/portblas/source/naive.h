// One element of D a work-item, WR x WC of them a work-group, and nothing kept for anybody.

KERNEL(ITEMS, 1) ENTRY(
    GLOBAL const STORED *RESTRICT a, i64 lda, i64 stride_a, GLOBAL const STORED *RESTRICT b, i64 ldb, i64 stride_b,
    int m, int n, int k, int blocks_m, int blocks_n, OUTPUT_PARAMETERS)
{
    int block_m, block_n;
    visited(GROUP_NUMBER, blocks_m, blocks_n, &block_m, &block_n);
    const int row = block_m * WR + LOCAL_ID % WR, column = block_n * WC + LOCAL_ID / WR;
    if (row >= m || column >= n) return;
    a += GROUP_Z * stride_a + (TRANSPOSE_A ? row * lda : row);
    b += GROUP_Z * stride_b + (TRANSPOSE_B ? column : column * ldb);
    REAL sum = 0;
    for (i64 step = 0; step < k; ++step)
        sum += ELEMENT(a + (TRANSPOSE_A ? step : step * lda)) * ELEMENT(b + (TRANSPOSE_B ? step * ldb : step));
    const Output out = OUTPUT_OF(GROUP_Z);
    give_element(&out, sum, row + column * out.ldd, row + column * out.ldc);
}
