// Insertion into a key-value store in persistent memory, a pair a thread: the example of the work-item's persist barrier in
// Gope, Basu, Puthoor and Meswani, "A Case for Scoped Persist Barriers in GPUs" (GPGPU 2018), section 5.
//
//   values[slot] = value;   p_barrier_wi;   keys[slot] = key
//
// A key that is durable has a durable value. Key i has the slot i * 2654435761 modulo the number of slots, a power of two:
// an odd factor permutes the slots, so pairs do not overlap and need no lock.
#include "device.cuh"
#include "pm.cuh"

typedef unsigned long long u64;

// Word `word` of the value of a key: never 0, and no other key's.
__device__ inline u64 value_of(unsigned key, unsigned words, unsigned word) { return (u64)key * words + word + 1; }

// `words` words a value. `barrier` 0: the order of value and key is left to chance.
extern "C" __global__ void kv_insert(
    unsigned *keys, u64 *values, const unsigned *insert, unsigned count, unsigned slots, unsigned words, unsigned barrier)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    unsigned key = insert[i];
    unsigned slot = (key * 2654435761u) & (slots - 1);
    for (unsigned w = 0; w < words; w++)
        values[(u64)slot * words + w] = value_of(key, words, w);
    if (barrier != 0)
        pm_barrier_wi();
    keys[slot] = key;
}

// At boot: pairs whose key is not there are inserted again. No barrier: nothing runs beside it, and it starts again.
extern "C" __global__ void kv_recover(
    unsigned *keys, u64 *values, const unsigned *insert, unsigned count, unsigned slots, unsigned words)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    unsigned key = insert[i];
    unsigned slot = (key * 2654435761u) & (slots - 1);
    if (keys[slot] == key)
        return;
    for (unsigned w = 0; w < words; w++)
        values[(u64)slot * words + w] = value_of(key, words, w);
    pm_barrier_wi();
    keys[slot] = key;
}
