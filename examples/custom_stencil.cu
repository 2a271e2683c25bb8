// custom_stencil.cl in CUDA C++. Blocks are OpenCL's work-groups, threads its work-items, shared memory its local memory.

#define TILE_X (GROUP_X * ITEM_X)
#define TILE_Y (GROUP_Y * ITEM_Y)

__device__ float inside(const float *input, int row, int column, int rows, int columns)
{
    return row >= 0 && row < rows && column >= 0 && column < columns ? input[(size_t)row * columns + column] : 0.0f;
}

#if STAGED
#define AT(dy, dx) tile[local_y + 1 + (dy)][local_x + 1 + (dx)]
#else
#define AT(dy, dx) inside(input, row + (dy), column + (dx), rows, columns)
#endif

// extern "C" keeps the name that the description calls it by.
extern "C" __global__ void __launch_bounds__(GROUP_X * GROUP_Y)
stencil(const float *__restrict__ input, float *__restrict__ output, int rows, int columns, float centre)
{
    const int first_row = blockIdx.y * TILE_Y, first_column = blockIdx.x * TILE_X;
    const float around = (1.0f - centre) * 0.25f;

#if STAGED
    __shared__ float tile[TILE_Y + 2][TILE_X + 2];
    for (int y = threadIdx.y; y < TILE_Y + 2; y += GROUP_Y)
        for (int x = threadIdx.x; x < TILE_X + 2; x += GROUP_X)
            tile[y][x] = inside(input, first_row + y - 1, first_column + x - 1, rows, columns);
    __syncthreads();
#endif

    for (int y = 0; y < ITEM_Y; ++y)
        for (int x = 0; x < ITEM_X; ++x) {
            const int local_y = y * GROUP_Y + threadIdx.y, local_x = x * GROUP_X + threadIdx.x;
            const int row = first_row + local_y, column = first_column + local_x;
            if (row < rows && column < columns)
                output[(size_t)row * columns + column] =
                    centre * AT(0, 0) + around * (AT(-1, 0) + AT(1, 0) + AT(0, -1) + AT(0, 1));
        }
}
