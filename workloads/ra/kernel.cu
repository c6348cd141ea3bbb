// Random updates of a table, after the rules of HPCC's RandomAccess: a thread draws pseudo-random words (a shift register
// over x^63 + x^2 + x + 1) from its own start and combines each by exclusive or with the element that its low bits name.
// Updates are atomic, so none is lost and the result does not depend on the order. Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void random_access(const unsigned long long *start, unsigned long long *table, unsigned elements,
                                         int updates, int threads)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= threads)
        return;
    unsigned long long word = start[thread];
    for (int update = 0; update < updates; update++) {
        // All bits the sign's. Clang 14 makes a wrong extraction of bits (`bfe.u64 63, 3`) of `word < 0 ? 7 : 0`.
        unsigned long long sign;
        asm("shr.s64 %0, %1, 63;" : "=l"(sign) : "l"(word));
        word = (word << 1) ^ (sign & 7);
        atomicXor(&table[word & (elements - 1)], word);
    }
}
