// D = alpha sum + beta C, the sum taken over the parts of K in their order, so that it is the same every time.

KERNEL(REDUCE_ITEMS, 1) reduce(GLOBAL const REAL *RESTRICT sums_of_parts, int m, int n, int parts, OUTPUT_PARAMETERS)
{
    const i64 elements = (i64)m * n;
    const int row = GROUP_X * REDUCE_ITEMS + LOCAL_ID;
    if (row >= m) return;
    const Output out = OUTPUT_OF(GROUP_Z);
    for (int column = GROUP_Y; column < n; column += GROUPS_Y) {
        GLOBAL const REAL *part = sums_of_parts + GROUP_Z * parts * elements + row + (i64)column * m;
        REAL sum = 0;
        UNROLL_BY(8)
        for (int i = 0; i < parts; ++i) sum += part[i * elements];
        give_element(&out, sum, row + column * out.ldd, row + column * out.ldc);
    }
}
