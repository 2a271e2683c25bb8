// Each group copies GROUP * ITEMS neighbouring vectors; copy.yaml describes the macros and arguments.

__kernel void copy_of_memory(__global const int4 *source, __global int4 *target)
{
    const size_t first = get_group_id(0) * (size_t)(GROUP * ITEMS) + get_local_id(0);
    for (int item = 0; item < ITEMS; item++)
        target[first + item * GROUP] = source[first + item * GROUP];
}
