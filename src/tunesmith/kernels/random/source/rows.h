// For generators whose engines advance together, a row of words at a time, one word an engine: which part of a call's
// output lies in which row of vectors.
//
// A call's last row may be cut: then the state is saved as it was before it, with the number of words a vector of it
// took, and the next call goes over the row again, keeping what the former left out (`start` > 0), or skips it (`start`
// = 0). A call whose vectors take another number of words than the former's must skip.

typedef struct {
    GLOBAL VALUE *out;
    u64 vectors;   // that are whole
    u32 values_left;   // after them
    int aligned;
    u32 engines;
    u64 first;   // the vector of the work-item in row 0, below zero (wrapped around) where the former call gave it
    u64 complete;   // rows that are used up
    u64 all;   // and the row that is cut, if there is one
    u64 plain;   // rows below it, but for row 0 if it is begun, need no look at the bounds
    u32 begun;   // whether the first row is one that the former call cut
} Rows;

INLINE Rows rows_of(GLOBAL VALUE *out, u64 count, u32 start)
{
    Rows rows;
    rows.out = out;
    rows.vectors = count / OUT;
    rows.values_left = (u32)(count % OUT);
    rows.aligned = holds_whole_vectors(out);
    rows.engines = (u32)GLOBAL_SIZE;
    rows.first = GLOBAL_ID - start;
    u64 end = start + rows.vectors + (rows.values_left > 0);
    rows.complete = end / rows.engines;
    rows.all = rows.complete + (end % rows.engines > 0);
    rows.plain = (start + rows.vectors) / rows.engines;
    rows.begun = start > 0;
    return rows;
}

INLINE void store_checked(const Rows *rows, u64 row, const Vector *vector)
{
    u64 number = rows->first + row * rows->engines;
    GLOBAL VALUE *to = rows->out + number * OUT;
    if (number < rows->vectors) {
        store(to, vector, rows->aligned);
    } else if (number == rows->vectors) {
        store_first(to, vector, rows->values_left);
    }
}
