/* Prints the candidates of the generated list; a tuner would call something for each line instead. */
#include <stdio.h>

#define BENCH_PARAMS(...) #__VA_ARGS__,

static const char *const candidates[] = {
#include "candidates.def"
};

int main(void)
{
    const size_t count = sizeof candidates / sizeof *candidates;
    for (size_t i = 0; i < count; ++i)
        puts(candidates[i]);
    printf("%zu candidates\n", count);
    return 0;
}
