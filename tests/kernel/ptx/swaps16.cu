// 16 bytes that are swapped as a whole. Source of swaps16.nvrtc.ptx: NVRTC 13, sm_90.

struct __align__(16) Pair {
    unsigned long long low, high;
};

// Each thread puts its node in front of a list whose head is (node + 1, version).
extern "C" __global__ void push_all(Pair* head, unsigned long long* next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Pair seen = *head;
    while (true) {
        next[i] = seen.low;
        Pair old = atomicCAS(head, seen, Pair{(unsigned long long)i + 1, seen.high + 1});
        if (old.low == seen.low && old.high == seen.high) break;
        seen = old;
    }
}

__device__ Pair of(unsigned long long number) {
    return Pair{number, 3 * number + 7};
}

// Each thread leaves its pair in shared memory, and what it found there in one place for all CTAs; pairs belong together.
extern "C" __global__ void pass_on(Pair* place, unsigned long long* totals) {
    __shared__ Pair local;
    unsigned long long number = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (threadIdx.x == 0) local = of(0);
    __syncthreads();
    Pair found = atomicExch(&local, of(number));
    Pair left = atomicExch(place, found);
    if (found.high != of(found.low).high || left.high != of(left.low).high) atomicAdd(&totals[1], 1ull);
    atomicAdd(&totals[0], left.low);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&totals[0], local.low);
}

// One thread goes along the list: its length, the sum of its nodes, and the version. What is left in the place counts, too.
extern "C" __global__ void look(const Pair* head, const unsigned long long* next, int n, const Pair* place,
                                unsigned long long* totals) {
    unsigned long long length = 0, sum = 0;
    for (unsigned long long at = head->low; at != 0 && length <= n; at = next[at - 1]) {
        length += 1;
        sum += at;
    }
    totals[0] += place->low;
    totals[2] = length;
    totals[3] = sum;
    totals[4] = head->high;
}
