// output = centre * input + (1 - centre) / 4 * (sum of the four neighbours), zero outside.
// The first two pointers come as described in custom_stencil.yaml; the macros are its parameters.

#define TILE_X (GROUP_X * ITEM_X)
#define TILE_Y (GROUP_Y * ITEM_Y)

float inside(__global const float *input, int row, int column, int rows, int columns)
{
    return row >= 0 && row < rows && column >= 0 && column < columns ? input[(size_t)row * columns + column] : 0.0f;
}

#if STAGED
#define AT(dy, dx) tile[local_y + 1 + (dy)][local_x + 1 + (dx)]
#else
#define AT(dy, dx) inside(input, row + (dy), column + (dx), rows, columns)
#endif

__attribute__((reqd_work_group_size(GROUP_X, GROUP_Y, 1)))
__kernel void stencil(__global const float *restrict input, __global float *restrict output,
                      int rows, int columns, float centre)
{
    const int first_row = get_group_id(1) * TILE_Y, first_column = get_group_id(0) * TILE_X;
    const float around = (1.0f - centre) * 0.25f;

#if STAGED
    __local float tile[TILE_Y + 2][TILE_X + 2];
    for (int y = get_local_id(1); y < TILE_Y + 2; y += GROUP_Y)
        for (int x = get_local_id(0); x < TILE_X + 2; x += GROUP_X)
            tile[y][x] = inside(input, first_row + y - 1, first_column + x - 1, rows, columns);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif

    for (int y = 0; y < ITEM_Y; ++y)
        for (int x = 0; x < ITEM_X; ++x) {
            const int local_y = y * GROUP_Y + get_local_id(1), local_x = x * GROUP_X + get_local_id(0);
            const int row = first_row + local_y, column = first_column + local_x;
            if (row < rows && column < columns)
                output[(size_t)row * columns + column] =
                    centre * AT(0, 0) + around * (AT(-1, 0) + AT(1, 0) + AT(0, -1) + AT(0, 1));
        }
}
