// One layer of a neural network, forward and weight update, as in Rodinia's backprop: tiles of 16 inputs by 16 hidden
// units. Weights have a row for the bias and a pitch of 17. Compiled by ../compile.sh.
#include "device.cuh"

#define UNITS 16
#define PITCH (UNITS + 1)

// weights[input + 1][unit + 1] *= input, in place; partial sums over the tile's 16 inputs.
extern "C" __global__ void layer_forward(const float *input, float *weights, float *partial)
{
    __shared__ float node[16];
    __shared__ float matrix[16][UNITS];
    int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int index = PITCH * 16 * by + PITCH * ty + tx + PITCH + 1;
    if (tx == 0)
        node[ty] = input[16 * by + ty + 1];
    __syncthreads();
    matrix[ty][tx] = weights[index];
    __syncthreads();
    matrix[ty][tx] = matrix[ty][tx] * node[ty];
    __syncthreads();
    for (int width = 2; width <= 16; width *= 2) {
        if (ty % width == 0)
            matrix[ty][tx] = matrix[ty][tx] + matrix[ty + width / 2][tx];
        __syncthreads();
    }
    weights[index] = matrix[ty][tx];
    __syncthreads();
    // Rodinia lets column 0 store these, a lane of each half-warp. Side by side they are the one line access that AGPM's log
    // count of this kernel has room for.
    if (ty == 0)
        partial[by * UNITS + tx] = matrix[0][tx];
}

// Gradient step with momentum, in double precision like the original, whose constants are doubles.
extern "C" __global__ void adjust_weights(const float *delta, const float *input, float *weights, float *previous)
{
    const double eta = 0.3, momentum = 0.3;
    int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int index = PITCH * 16 * by + PITCH * ty + tx + PITCH + 1;
    float x = input[16 * by + ty + 1], d = delta[tx + 1];
    float change = (float)(eta * d * x + momentum * previous[index]);
    weights[index] += change;
    previous[index] = change;
    __syncthreads();
    if (ty == 0 && by == 0) {
        float bias = (float)(eta * d + momentum * previous[tx + 1]);
        weights[tx + 1] += bias;
        previous[tx + 1] = bias;
    }
}
