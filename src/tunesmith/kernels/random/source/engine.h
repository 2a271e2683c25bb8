// The driver of generators whose engines are independent: one work-item an engine, kept in registers.
//
// Included before: a generator with Engine, STATE_WORDS, `seeded`, `next`, `jump` by a matrix of JUMP_WORDS words, and
// ROUNDS, how many steps bring its registers round, so that none need be moved.
// `jumps` holds the matrices of 2^0 ... 2^63 words, then those of 2^0 ... 2^23 subsequences, the distance of engines.

#define WORD_POWERS 64

INLINE Engine load(GLOBAL const u32 *state, u64 number, u64 engines)
{
    Engine engine;
    UNROLL
    for (int i = 0; i < STATE_WORDS; ++i) engine.words[i] = state[i * engines + number];
    return engine;
}

INLINE void save(GLOBAL u32 *state, u64 number, u64 engines, const Engine *engine)
{
    UNROLL
    for (int i = 0; i < STATE_WORDS; ++i) state[i * engines + number] = engine->words[i];
}

INLINE void jump_by(Engine *engine, GLOBAL const u32 *matrices, u64 steps)
{
    for (; steps; steps >>= 1, matrices += JUMP_WORDS)
        if (steps & 1) jump(engine, matrices);
}

// All engines at the beginning of the sequence less its first `offset` words, which are dealt to them in turn.
KERNEL initialise(GLOBAL u32 *state, GLOBAL const u32 *jumps, u64 seed, u64 offset)
{
    u64 number = GLOBAL_ID, engines = GLOBAL_SIZE;
    Engine engine = seeded(seed);
    jump_by(&engine, jumps, offset / engines + (number < offset % engines));
    jump_by(&engine, jumps + WORD_POWERS * JUMP_WORDS, number);
    save(state, number, engines, &engine);
}

INLINE Vector next_vector(Engine *engine, Distribution distribution)
{
    u32 words[IN];
    UNROLL
    for (int i = 0; i < IN; ++i) words[i] = next(engine);
    return vector_of(words, distribution);
}

// `count` values, the first vector from engine `start`.
KERNEL generate(GLOBAL VALUE *out, u64 count, GLOBAL u32 *state, u32 start DISTRIBUTION_ARGUMENTS)
{
    Distribution distribution = DISTRIBUTION;
    u32 id = (u32)GLOBAL_ID, engines = (u32)GLOBAL_SIZE;
    u32 number = id + start < engines ? id + start : id + start - engines;
    Engine engine = load(state, number, engines);
    u64 vectors = count / OUT;
    u32 rounds = (u32)(vectors / engines), rest = (u32)(vectors % engines);
    int whole = holds_whole_vectors(out);
    u64 stride = (u64)engines * OUT;
    GLOBAL VALUE *to = out + (u64)id * OUT;
    for (; rounds >= ROUNDS; rounds -= ROUNDS) {
        UNROLL
        for (int i = 0; i < ROUNDS; ++i) {
            Vector made = next_vector(&engine, distribution);
            store(to, &made, whole);
            to += stride;
        }
    }
    for (; rounds; --rounds) {
        Vector made = next_vector(&engine, distribution);
        store(to, &made, whole);
        to += stride;
    }
    if (id < rest) {
        Vector made = next_vector(&engine, distribution);
        store(to, &made, whole);
    } else if (id == rest && count % OUT) {
        Vector made = next_vector(&engine, distribution);
        store_first(to, &made, (u32)(count % OUT));
    }
    save(state, number, engines, &engine);
}
