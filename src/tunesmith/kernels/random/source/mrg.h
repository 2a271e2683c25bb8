// What MRG32k3a and MRG31k3p share, after their own files: engines, matrices and seeds. Two recurrences of order three,
// modulo M1 and M2, have three words each.

#define STATE_WORDS 6
#define ROUNDS 3
// Two matrices of 3 x 3, row by row.
#define JUMP_WORDS (2 * 9)
#define DEFAULT_SEED 12345u

typedef struct { u32 words[STATE_WORDS]; } Engine;

INLINE u32 next(Engine *engine) { return scaled(advance(engine->words, engine->words + 3), STRETCH); }

INLINE void seed_one(u32 *x, u32 outer, u32 inner, u64 seed, u32 modulus)
{
    x[0] = x[2] = product(outer, seed, modulus);
    x[1] = product(inner, seed, modulus);
    // From zeros a recurrence gives zeros only.
    if ((x[0] | x[1]) == 0) x[0] = x[1] = x[2] = DEFAULT_SEED;
}

// As in rocRAND.
INLINE Engine seeded(u64 seed)
{
    Engine engine;
    if (seed == 0) seed = DEFAULT_SEED;
    u32 low = (u32)seed ^ 0x55555555u, high = (u32)(seed >> 32) ^ 0xaaaaaaaau;
    seed_one(engine.words, low, high, seed, M1);
    seed_one(engine.words + 3, high, low, seed, M2);
    return engine;
}

INLINE void jump_one(u32 *x, GLOBAL const u32 *matrix, u32 modulus)
{
    u64 image[3];
    UNROLL
    for (int row = 0; row < 3; ++row) {
        image[row] = 0;
        UNROLL
        for (int column = 0; column < 3; ++column) image[row] += (u64)matrix[3 * row + column] * x[column] % modulus;
    }
    UNROLL
    for (int row = 0; row < 3; ++row) x[row] = (u32)(image[row] % modulus);
}

INLINE void jump(Engine *engine, GLOBAL const u32 *matrices)
{
    jump_one(engine->words, matrices, M1);
    jump_one(engine->words + 3, matrices + 9, M2);
}
