// Motion search of a video encoder: how much each 4 x 4 block of a frame differs (sum of absolute differences) from the
// block of a reference frame at each of 33 x 33 displacements; coordinates outside the reference clamp to its edge. A
// CTA of 61 threads does a block: a thread does 18 displacements from pixels in shared memory, the 16-bit sums gather in
// shared memory, and a warp copies them out as 274 words of 8 bytes (1096 sums, the last seven 0). After the description
// of Parboil's sad (first kernel); there the reference is a texture (here, it
// is read by the read-only path) and blocks are numbered by macroblocks. Compiled by
// ../compile.sh.
#include "device.cuh"

#define SIDE 33
#define POSITIONS (SIDE * SIDE)
#define WORDS 274
#define EACH 18

extern "C" __global__ void sad(const unsigned char *frame, const unsigned char *__restrict__ reference,
                               unsigned long long *sums, int width, int height)
{
    __shared__ unsigned char block[16];
    __shared__ unsigned long long gathered[WORDS];
    unsigned short *gathered16 = (unsigned short *)gathered;
    int x = 4 * blockIdx.x, y = 4 * blockIdx.y;
    if (threadIdx.x < 16)
        block[threadIdx.x] = frame[(y + threadIdx.x / 4) * width + x + threadIdx.x % 4];
    __syncthreads();
    for (int position = EACH * threadIdx.x; position < EACH * (threadIdx.x + 1) && position < 4 * WORDS; position++) {
        int dx = position % SIDE - SIDE / 2, dy = position / SIDE - SIDE / 2;
        unsigned sum = 0;
        if (position < POSITIONS)
            for (int row = 0; row < 4; row++) {
                int v = y + dy + row;
                v = v < 0 ? 0 : v > height - 1 ? height - 1 : v;
#pragma unroll
                for (int column = 0; column < 4; column++) {
                    int u = x + dx + column;
                    u = u < 0 ? 0 : u > width - 1 ? width - 1 : u;
                    int difference = block[4 * row + column] - reference[v * width + u];
                    sum += difference < 0 ? -difference : difference;
                }
            }
        gathered16[position] = sum;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        unsigned long long *to = sums + (gridDim.x * blockIdx.y + blockIdx.x) * WORDS;
        for (int word = threadIdx.x; word < WORDS; word += 32)
            to[word] = gathered[word];
    }
}
