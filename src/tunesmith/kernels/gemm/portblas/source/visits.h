// Which block of D a work-group computes. Blocks are visited by top-level tiles of TOP_M x TOP_N, in bands TOP_N wide from
// the left; inside a band and inside a tile they go down, then right. Tiles at the edges are what is left.

INLINE void visited(u32 number, u32 blocks_m, u32 blocks_n, int *block_m, int *block_n)
{
    const u32 band = number / (blocks_m * TOP_N);
    const u32 in_band = number - band * (blocks_m * TOP_N);
    const u32 right = blocks_n - band * TOP_N, width = right < TOP_N ? right : TOP_N;
    const u32 tile = in_band / (TOP_M * width);
    const u32 in_tile = in_band - tile * (TOP_M * width);
    const u32 below = blocks_m - tile * TOP_M, height = below < TOP_M ? below : TOP_M;
    *block_m = (int)(tile * TOP_M + in_tile % height);
    *block_n = (int)(band * TOP_N + in_tile / height);
}
