// XORWOW: Marsaglia's xorshift of 160 bits plus a Weyl sequence (J. Stat. Softw. 8 (2003), no. 14), engines 2^67 apart.
// State: x0 ... x4, d.

#define STATE_WORDS 6
#define ROUNDS 5
#define WEYL 362437u
#define BITS 160
// A matrix row by row, five words' worth of 160 columns, and what the steps add to d.
#define JUMP_WORDS (5 * BITS + 1)

typedef struct { u32 words[STATE_WORDS]; } Engine;

INLINE u32 next(Engine *engine)
{
    u32 *x = engine->words;
    u32 t = x[0] ^ (x[0] >> 2), last = x[4] ^ (x[4] << 4) ^ t ^ (t << 1);
    UNROLL
    for (int i = 0; i < 4; ++i) x[i] = x[i + 1];
    x[4] = last;
    x[5] += WEYL;
    return last + x[5];
}

// Marsaglia's state, disturbed by the seed as in rocRAND.
INLINE Engine seeded(u64 seed)
{
    u32 t0 = 1228688033u * ((u32)seed ^ 0x2c7f967fu), t1 = 2073658381u * ((u32)(seed >> 32) ^ 0xa03697cbu);
    Engine engine;
    engine.words[0] = 123456789u + t0;
    engine.words[1] = 362436069u ^ t0;
    engine.words[2] = 521288629u + t1;
    engine.words[3] = 88675123u ^ t1;
    engine.words[4] = 5783321u + t0;
    engine.words[5] = 6615241u + t0 + t1;
    return engine;
}

INLINE void jump(Engine *engine, GLOBAL const u32 *matrix)
{
    u32 image[5] = {0, 0, 0, 0, 0};
    UNROLL
    for (int from = 0; from < 5; ++from)
        for (int bit = 0; bit < 32; ++bit) {
            u32 mask = 0u - (engine->words[from] >> bit & 1);
            UNROLL
            for (int to = 0; to < 5; ++to) image[to] ^= mask & matrix[to * BITS + from * 32 + bit];
        }
    UNROLL
    for (int i = 0; i < 5; ++i) engine->words[i] = image[i];
    engine->words[5] += matrix[5 * BITS];
}
