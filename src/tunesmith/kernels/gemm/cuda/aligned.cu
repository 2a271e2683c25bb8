// A matrix copied to where each row begins at a multiple of 16 bytes: as it is, or transposed.
//
// A row may begin at any byte. Its words are read at multiples of 4 bytes and shifted together; words that lie wholly
// behind a row are not read, so that nothing beyond the matrix is touched but the rest of its last word. What follows a
// row's end in its last 16 bytes means nothing.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef long long i64;

// A launch that started early, as those on Hopper may, waits here for the launch before it.
__device__ __forceinline__ void wait_for_launch_before()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// One thread writes 16 bytes.
extern "C" __global__ void __launch_bounds__(256) align(
    const unsigned char *from, unsigned char *to, i64 row_bytes, i64 rows, i64 row_step, i64 batch_step, i64 row_step_to,
    i64 batch_step_to)
{
    wait_for_launch_before();
    i64 parts = (row_bytes + 15) / 16, index = (i64)blockIdx.x * 256 + threadIdx.x;
    if (index >= parts * rows) return;
    i64 row = index / parts, part = index % parts;
    u64 begin = (u64)from + blockIdx.z * batch_step + row * row_step, end = begin + row_bytes, here = begin + 16 * part;
    u32 shift = (u32)(here & 3) * 8;
    const u32 *words = (const u32 *)(here & ~3ull);
    u32 read[5];
#pragma unroll
    for (int i = 0; i < 5; ++i) read[i] = (u64)(words + i) < end ? words[i] : 0;
    uint4 written = {
        __funnelshift_r(read[0], read[1], shift), __funnelshift_r(read[1], read[2], shift),
        __funnelshift_r(read[2], read[3], shift), __funnelshift_r(read[3], read[4], shift)};
    *(uint4 *)(to + blockIdx.z * batch_step_to + row * row_step_to + 16 * part) = written;
}

// A tile has 32 x 32 blocks, each as many elements wide and high as a word holds. A thread reads a block by its rows and
// turns it round in registers, so that a warp reads and writes 128 bytes of a row at once, whatever an element's size.
#define WARP 32
#define WARPS 8
#define MOST_IN_A_WORD 4
// The words of a tile by their row of a turned block, and that block's row and column. One column more than there are
// keeps both ways through it free of bank conflicts.
typedef u32 Tile[MOST_IN_A_WORD][WARP][WARP + 1];

// What begins at `here`, in a row that ends at `end`.
__device__ __forceinline__ u32 word_at(u64 here, u64 end)
{
    u32 shift = (u32)(here & 3) * 8;
    const u32 *words = (const u32 *)(here & ~3ull);
    u32 low = (u64)words < end ? words[0] : 0, high = shift && (u64)(words + 1) < end ? words[1] : 0;
    return __funnelshift_r(low, high, shift);
}

template <int BYTES>
__device__ __forceinline__ void transpose_tile(
    Tile &tile, u64 from, u64 to, i64 row_bytes, i64 rows, i64 row_step, i64 row_step_to)
{
    const int in_a_word = 4 / BYTES, bits = 8 * BYTES;
    const u32 one = ~0u >> (32 - bits);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    i64 across = (row_bytes + 4 * WARP - 1) / (4 * WARP);
    i64 left = blockIdx.x % across * WARP, top = blockIdx.x / across * WARP;
#pragma unroll
    for (int pass = 0; pass < WARP / WARPS; ++pass) {
        int down = pass * WARPS + warp;
        u32 read[in_a_word];
#pragma unroll
        for (int i = 0; i < in_a_word; ++i) {
            i64 row = (top + down) * in_a_word + i;
            u64 begin = from + row * row_step;
            read[i] = row < rows ? word_at(begin + 4 * (left + lane), begin + row_bytes) : 0;
        }
#pragma unroll
        for (int i = 0; i < in_a_word; ++i) {
            u32 turned = 0;
#pragma unroll
            for (int j = 0; j < in_a_word; ++j) turned |= (read[j] >> i * bits & one) << j * bits;
            tile[i][lane][down] = turned;
        }
    }
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < WARP / WARPS; ++pass) {
        int down = pass * WARPS + warp;
#pragma unroll
        for (int i = 0; i < in_a_word; ++i) {
            i64 row = (left + down) * in_a_word + i;
            if (row * BYTES < row_bytes && (top + lane) * in_a_word < rows)
                *(u32 *)(to + row * row_step_to + 4 * (top + lane)) = tile[i][down][lane];
        }
    }
}

// One work-group writes a tile.
extern "C" __global__ void __launch_bounds__(256) transpose(
    const unsigned char *from, unsigned char *to, i64 row_bytes, i64 rows, i64 row_step, i64 batch_step, i64 row_step_to,
    i64 batch_step_to, int element_bytes)
{
    wait_for_launch_before();
    __shared__ Tile tile;
    u64 matrix = (u64)from + blockIdx.z * batch_step, copy = (u64)to + blockIdx.z * batch_step_to;
    if (element_bytes == 1) transpose_tile<1>(tile, matrix, copy, row_bytes, rows, row_step, row_step_to);
    else if (element_bytes == 2) transpose_tile<2>(tile, matrix, copy, row_bytes, rows, row_step, row_step_to);
    else transpose_tile<4>(tile, matrix, copy, row_bytes, rows, row_step, row_step_to);
}
