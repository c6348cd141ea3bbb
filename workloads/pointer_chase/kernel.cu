// One thread follows a chain of indices: each load waits for the one before. Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void chase(const unsigned *next, unsigned *last, unsigned start, unsigned hops)
{
    unsigned at = start;
#pragma nounroll
    for (unsigned hop = 0; hop < hops; hop++)
        at = next[at];
    *last = at;
}
