// Heat in a solid, one step: an element becomes a weighted sum of itself and its six neighbours, a thread an element, all
// read from global memory: no tiles. A CTA is a row along x; the faces of the solid stay as they are. After the
// description of the naive form of Parboil's stencil. Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void stencil(const float *from, float *to, float centre, float neighbour, int nx, int ny)
{
    int i = threadIdx.x, j = blockIdx.x + 1, k = blockIdx.y + 1;
    int at = i + nx * (j + ny * k);
    if (i > 0 && i < nx - 1)
        to[at] = neighbour * (from[at + nx * ny] + from[at - nx * ny] + from[at + nx] + from[at - nx] + from[at + 1] + from[at - 1])
            - centre * from[at];
}
