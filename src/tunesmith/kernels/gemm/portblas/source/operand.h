// A or B as a work-item reads it straight from global memory: rows of A, columns of B, counted from its first.

typedef struct {
    GLOBAL const STORED *at;   // the first row at the first step of K
    i64 row, step;   // elements from one row and from one step of K to the next
    int last;   // the operand's last row, which stands in for those beyond: nobody keeps what becomes of them
} Operand;

INLINE Operand operand(GLOBAL const STORED *first, i64 leading, int along_k, int apart, int row, int extent)
{
    Operand made;
    made.row = (along_k ? leading : 1) * apart;
    made.step = (along_k ? 1 : leading) * apart;
    made.at = first + row * made.row;
    made.last = extent - 1 - row;
    return made;
}
INLINE GLOBAL const STORED *place(const Operand *operand, int row, i64 step, int is_checked)
{
    return operand->at + (is_checked && row > operand->last ? operand->last : row) * operand->row + step * operand->step;
}
