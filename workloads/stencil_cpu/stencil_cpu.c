// Jacobi's method on a square with walls at 0, in double precision: threads have bands of rows, and meet at a barrier after
// each step. The field begins as a product of sines, an eigenvector of the step, so that each step multiplies it by
// (cos(p h) + cos(q h)) / 2: what every cell must hold at the end is known.
//
//   --size 34 --steps 20 --threads 1
#include "cpu_rt.h"

enum { P = 1, Q = 2 };

static u64 size, steps, threads;
static double *fields[2];
static barrier_t after_step;

// By its series: |x| is at most pi.
static double cosine(double x) {
    double term = 1, sum = 1;
    for (int i = 1; i < 14; i++) {
        term *= -x * x / ((2 * i - 1) * (2 * i));
        sum += term;
    }
    return sum;
}

// sin(i x) for all i below size, by cos(x): sin((i + 1) x) = 2 cos(x) sin(i x) - sin((i - 1) x).
static void sines(double *to, double x) {
    double twice = 2 * cosine(x), half = cosine(x / 2);
    // sin(x) = sqrt(1 - cos(x)^2) by Newton's iteration; x is small.
    double square = 4 * (1 - half * half) * half * half, root = x;
    for (int i = 0; i < 6; i++) root = (root + square / root) / 2;
    to[0] = 0;
    to[1] = root;
    for (u64 i = 2; i < size; i++) to[i] = twice * to[i - 1] - to[i - 2];
    to[size - 1] = 0;
}

static void work(u64 thread) {
    u64 rows = size - 2, first = 1 + rows * thread / threads, end = 1 + rows * (thread + 1) / threads;
    for (u64 step = 0; step < steps; step++) {
        const double *from = fields[step % 2];
        double *to = fields[(step + 1) % 2];
        for (u64 row = first; row < end; row++)
            for (u64 column = 1; column < size - 1; column++) {
                const double *at = from + row * size + column;
                to[row * size + column] = 0.25 * ((at[-(i64)size] + at[size]) + (at[-1] + at[1]));
            }
        barrier_wait(&after_step);
    }
}

int main(int argc, char **argv) {
    threads = arg_u64(argc, argv, "--threads", 1);
    size = arg_u64(argc, argv, "--size", 34);
    steps = arg_u64(argc, argv, "--steps", 20);
    check(threads > 0 && size >= 3, "--threads is at least 1, --size at least 3");
    double h = 3.14159265358979323846 / (double)(size - 1);
    double *across = alloc(size * sizeof(double)), *down = alloc(size * sizeof(double));
    sines(across, P * h);
    sines(down, Q * h);
    for (int i = 0; i < 2; i++) fields[i] = alloc(size * size * sizeof(double));
    for (u64 row = 1; row < size - 1; row++)
        for (u64 column = 1; column < size - 1; column++) fields[0][row * size + column] = down[row] * across[column];
    barrier_init(&after_step, (u32)threads);
    threads_run((u32)threads, work);
    double factor = 1, each = (cosine(P * h) + cosine(Q * h)) / 2, energy = 0;
    for (u64 step = 0; step < steps; step++) factor *= each;
    const double *last = fields[steps % 2];
    for (u64 row = 0; row < size; row++)
        for (u64 column = 0; column < size; column++) {
            double value = last[row * size + column], error = value - factor * down[row] * across[column];
            check(error < 1e-9 && error > -1e-9, "value of a cell");
            energy += value * value;
        }
    print_text("stencil_cpu: ");
    print_u64(steps);
    print_text(" steps, energy ");
    print_u64((u64)(energy * 1e6));
    print_text(" millionths\n");
    return 0;
}
