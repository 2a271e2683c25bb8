// A vector is what IN words make, OUT values that are stored at once where the address allows.

typedef union {
    VALUE values[OUT];
    u32 word;
    u64 pair;
    Words4 quad;
} Vector;

#define VECTOR_BYTES (OUT * sizeof(VALUE))

INLINE Vector vector_of(const u32 *words, Distribution distribution)
{
    Vector made;
    values(words, made.values, distribution);
    return made;
}

INLINE int holds_whole_vectors(GLOBAL const VALUE *out) { return OUT == 1 || (u64)out % VECTOR_BYTES == 0; }

INLINE void store(GLOBAL VALUE *to, const Vector *vector, int whole)
{
    if (OUT == 1 || !whole) {
        UNROLL
        for (int i = 0; i < OUT; ++i) to[i] = vector->values[i];
    } else if (VECTOR_BYTES == 16) {
        *(GLOBAL Words4 *)to = vector->quad;
    } else if (VECTOR_BYTES == 8) {
        *(GLOBAL u64 *)to = vector->pair;
    } else {
        *(GLOBAL u32 *)to = vector->word;
    }
}

// A call's last vector may be cut.
INLINE void store_first(GLOBAL VALUE *to, const Vector *vector, u32 many)
{
    UNROLL
    for (int i = 0; i < OUT; ++i)
        if ((u32)i < many) to[i] = vector->values[i];
}
