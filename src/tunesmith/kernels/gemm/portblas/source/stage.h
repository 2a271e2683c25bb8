// One operand's part in a stage: EXTENT of its rows (of A) or columns (of B) by DEPTH steps of K, brought from global to
// local memory by all work-items. There step k of element i lies at k * LEADING + i.
//
// Macros: NAME; ALONG_K: whether K is the contiguous dimension in global memory, else it is EXTENT's; VECTOR: elements in
// one global load; STORE: in one store to local memory; LANES: work-items side by side along the contiguous dimension.

#if ALONG_K
#define ALONG (DEPTH / VECTOR)
#define ACROSS EXTENT
#else
#define ALONG (EXTENT / VECTOR)
#define ACROSS DEPTH
#endif
#define LANES_ACROSS (ITEMS / LANES)
#define TURNS_ACROSS CEILING(ACROSS, LANES_ACROSS)
#define TURNS (CEILING(ALONG, LANES) * TURNS_ACROSS)
#define ALL_BUSY (ITEMS % LANES == 0 && ALONG % LANES == 0 && ACROSS % LANES_ACROSS == 0)

typedef struct {
    GLOBAL const STORED *at;   // this work-item's first vector of the stage
    i64 leading;
    int extent;   // rows or columns from the block's first to the operand's last
    int in_vectors;   // whether there are EXTENT of them, and vectors lie so that they can be loaded
} NAME(Source);

typedef struct {
    VEC(STORED, VECTOR) part[TURNS];
} NAME(Staged);

// Where the vector of a turn lies in the stage, along the contiguous dimension in elements and across it.
INLINE int NAME(along)(int turn) { return (LOCAL_ID % LANES + turn / TURNS_ACROSS * LANES) * VECTOR; }
INLINE int NAME(across)(int turn) { return LOCAL_ID / LANES + turn % TURNS_ACROSS * LANES_ACROSS; }
INLINE int NAME(busy)(int turn)
{
    return ALL_BUSY ||
           (LOCAL_ID < LANES * LANES_ACROSS && NAME(along)(turn) < ALONG * VECTOR && NAME(across)(turn) < ACROSS);
}

INLINE NAME(Source) NAME(source)(GLOBAL const STORED *matrix, i64 leading, int first, int extent, int first_k)
{
    NAME(Source) source;
    source.leading = leading;
    source.extent = extent - first;
    source.in_vectors = source.extent >= EXTENT && aligned(matrix, leading, VECTOR);
#if ALONG_K
    matrix += first_k + first * leading;
#else
    matrix += first + first_k * leading;
#endif
    source.at = matrix + NAME(along)(0) + NAME(across)(0) * leading;
    return source;
}

INLINE void NAME(advance)(NAME(Source) *source) { source->at += ALONG_K ? DEPTH : DEPTH * source->leading; }

// The vector of a turn; zeros for what lies outside the operand or behind the `left` steps of K.
INLINE VEC(STORED, VECTOR) NAME(taken)(const NAME(Source) *source, int turn, int left)
{
    const i64 offset = turn / TURNS_ACROSS * LANES * VECTOR + turn % TURNS_ACROSS * LANES_ACROSS * source->leading;
    if (source->in_vectors && left >= DEPTH) return TAKE(VECTOR, source->at + offset);
    VEC(STORED, VECTOR) vector = ZERO(STORED, VECTOR);
    const int along = NAME(along)(turn), across = NAME(across)(turn);
    UNROLL
    for (int i = 0; i < VECTOR; ++i) {
#if ALONG_K
        const int is_inside = along + i < left && across < source->extent;
#else
        const int is_inside = along + i < source->extent && across < left;
#endif
        if (is_inside) LANE(STORED, vector, i) = source->at[offset + i];
    }
    return vector;
}

INLINE void NAME(put)(VEC(STORED, VECTOR) vector, LOCAL STORED *stage, int turn)
{
    const int along = NAME(along)(turn), across = NAME(across)(turn);
#if ALONG_K
    UNROLL
    for (int i = 0; i < VECTOR; ++i) stage[(along + i) * LEADING + across] = LANE(STORED, vector, i);
#else
    UNROLL
    for (int i = 0; i < VECTOR; i += STORE) {
        VEC(STORED, STORE) part;
        UNROLL
        for (int j = 0; j < STORE; ++j) LANE(STORED, part, j) = LANE(STORED, vector, i + j);
        PUT(STORE, part, stage + across * LEADING + along + i);
    }
#endif
}

INLINE void NAME(fetch)(const NAME(Source) *source, NAME(Staged) *staged, int left)
{
    UNROLL
    for (int turn = 0; turn < TURNS; ++turn)
        if (NAME(busy)(turn)) staged->part[turn] = NAME(taken)(source, turn, left);
}
INLINE void NAME(place)(const NAME(Staged) *staged, LOCAL STORED *stage)
{
    UNROLL
    for (int turn = 0; turn < TURNS; ++turn)
        if (NAME(busy)(turn)) NAME(put)(staged->part[turn], stage, turn);
}
INLINE void NAME(copy)(const NAME(Source) *source, LOCAL STORED *stage, int left)
{
    UNROLL_BY(4)
    for (int turn = 0; turn < TURNS; ++turn)
        if (NAME(busy)(turn)) NAME(put)(NAME(taken)(source, turn, left), stage, turn);
}

#undef ALONG
#undef ACROSS
#undef LANES_ACROSS
#undef TURNS_ACROSS
#undef TURNS
#undef ALL_BUSY
