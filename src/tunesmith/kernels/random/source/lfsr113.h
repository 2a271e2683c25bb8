// LFSR113: four Tausworthe generators of 31, 29, 28 and 25 bits, xored (L'Ecuyer, Math. Comp. 68 (1999) 261), engines
// 2^55 apart. State: z1 ... z4.

#define STATE_WORDS 4
#define ROUNDS 4
// For each component the images of its 32 bits: it is a matrix of four blocks.
#define JUMP_WORDS (4 * 32)

typedef struct { u32 words[STATE_WORDS]; } Engine;

#define ADVANCE(z, q, s, width) z = (z & (0xffffffffu << (32 - width))) << s ^ ((z << q ^ z) >> (width - s))

INLINE u32 next(Engine *engine)
{
    u32 *z = engine->words;
    ADVANCE(z[0], 6, 18, 31);
    ADVANCE(z[1], 2, 2, 29);
    ADVANCE(z[2], 13, 7, 28);
    ADVANCE(z[3], 3, 13, 25);
    return z[0] ^ z[1] ^ z[2] ^ z[3];
}

// The seed in steps of 16 bits. A component below L'Ecuyer's limit would stay zero; the limit is added to it.
INLINE Engine seeded(u64 seed)
{
    Engine engine;
    UNROLL
    for (int i = 0; i < 4; ++i) {
        u32 limit = i == 0 ? 2 : i == 1 ? 8 : i == 2 ? 16 : 128;
        u32 z = (u32)(seed >> 16 * i);
        engine.words[i] = z < limit ? z + limit : z;
    }
    return engine;
}

INLINE void jump(Engine *engine, GLOBAL const u32 *matrix)
{
    UNROLL
    for (int i = 0; i < 4; ++i) {
        u32 image = 0;
        for (int bit = 0; bit < 32; ++bit) image ^= (0u - (engine->words[i] >> bit & 1)) & matrix[i * 32 + bit];
        engine->words[i] = image;
    }
}
