/* Macros: THREADS work-items of a work-group, WIDTH elements that each copies, side by side. */
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
void copy(__global const float *in, __global float *out, int rows, int columns, int leading)
{
    const int first = get_global_id(0) * WIDTH;
    for (int row = get_group_id(1); row < rows; row += get_num_groups(1))
        for (int column = first; column < min(first + WIDTH, columns); ++column)
            out[(size_t)row * columns + column] = in[(size_t)row * leading + column];
}
