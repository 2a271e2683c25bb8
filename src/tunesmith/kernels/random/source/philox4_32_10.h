// Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011): block n of the sequence is the counter n under the key seed.

#define BLOCK_WORDS 4

INLINE void block(u64 number, u64 seed, u32 *out)
{
    u32 c0 = (u32)number, c1 = (u32)(number >> 32), c2 = 0, c3 = 0;
    u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
    UNROLL
    for (int round = 0; round < 10; ++round) {
        u32 first_low, first_high, second_low, second_high;
        multiply_wide(0xD2511F53u, c0, &first_low, &first_high);
        multiply_wide(0xCD9E8D57u, c2, &second_low, &second_high);
        c0 = second_high ^ c1 ^ k0;
        c2 = first_high ^ c3 ^ k1;
        c1 = second_low;
        c3 = first_low;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}
