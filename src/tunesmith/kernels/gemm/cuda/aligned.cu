// Rows copied to where each begins at a multiple of 16 bytes: one thread writes 16 of them.
//
// A row may begin at any byte. Its words are read at multiples of 4 bytes and shifted together; words that lie wholly
// behind a row are not read, so that nothing beyond the matrix is touched but the rest of its last word. What follows a
// row's end in its last 16 bytes means nothing.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef long long i64;

extern "C" __global__ void __launch_bounds__(256) align(
    const unsigned char *from, unsigned char *to, i64 row_bytes, i64 rows, i64 row_step, i64 batch_step, i64 row_step_to,
    i64 batch_step_to)
{
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
