// A fluid by the lattice Boltzmann method, D3Q19 with one relaxation time, as lbm of SPEC CPU2006 and CPU2017 has it: a
// cell has 19 distributions in double precision and a word that lbm has for flags, 160 bytes; each step reads a cell, relaxes
// it, and stores to its 19 neighbours in the other grid.
//
// The box is periodic in all directions, --size x --size x 2 --size cells. It begins with a wave of shear, which decays at a known
// rate: exp(-v k^2 t), where v = (2 tau - 1) / 6 is the viscosity.
//
//   --size 4 --steps 2
//
// Left out: lbm's obstacles, its inflow and its outflow.
#include "cpu_rt.h"

enum { Q = 19, CELL = 20 };

static const double TAU = 0.8, SPEED = 0.02;
static const signed char CX[Q] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
static const signed char CY[Q] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
static const signed char CZ[Q] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};

static u64 size, depth;
static double *grids[2];

static double weight(u64 i) { return i == 0 ? 1.0 / 3 : i < 7 ? 1.0 / 18 : 1.0 / 36; }

// sin(x) for |x| up to 2 pi, by its series.
static double sine(double x) {
    double term = x, sum = x;
    for (int i = 1; i < 22; i++) {
        term *= -x * x / ((2 * i) * (2 * i + 1));
        sum += term;
    }
    return sum;
}

typedef struct {
    double rho, x, y, z;
} moments_t;

static inline moments_t moments(const double *cell) {
    moments_t m = {0, 0, 0, 0};
#pragma GCC unroll 19
    for (u64 i = 0; i < Q; i++) {
        m.rho += cell[i];
        if (CX[i]) m.x += CX[i] > 0 ? cell[i] : -cell[i];
        if (CY[i]) m.y += CY[i] > 0 ? cell[i] : -cell[i];
        if (CZ[i]) m.z += CZ[i] > 0 ? cell[i] : -cell[i];
    }
    return m;
}

// Distributions of a fluid at rest among themselves: directions are in pairs of opposite ones, which differ by a sign.
static inline void equilibrium(double *to, double rho, double x, double y, double z) {
    const double along[] = {x, y, z, x + y, x - y, x + z, x - z, y + z, y - z};
    double still = 1 - 1.5 * (x * x + y * y + z * z);
    to[0] = weight(0) * rho * still;
#pragma GCC unroll 9
    for (u64 pair = 0; pair < Q / 2; pair++) {
        double scale = weight(1 + 2 * pair) * rho, a = along[pair];
        double even = scale * (still + 4.5 * a * a), odd = scale * 3 * a;
        to[1 + 2 * pair] = even + odd;
        to[2 + 2 * pair] = even - odd;
    }
}

// One more or one less, in a ring.
static u64 around(u64 at, int by, u64 length) { return (at + length + (u64)(i64)by) % length; }

static void step(const double *from, double *to) {
    double *rows[3][3];
    for (u64 z = 0; z < depth; z++)
        for (u64 y = 0; y < size; y++) {
            for (int i = -1; i <= 1; i++)
                for (int j = -1; j <= 1; j++)
                    rows[1 + i][1 + j] = to + (around(z, i, depth) * size + around(y, j, size)) * size * CELL;
            for (u64 x = 0; x < size; x++) {
                const u64 columns[] = {(x ? x - 1 : size - 1) * CELL, x * CELL, (x + 1 == size ? 0 : x + 1) * CELL};
                const double *cell = from + ((z * size + y) * size + x) * CELL;
                moments_t m = moments(cell);
                double calm[Q], inverse = 1 / m.rho;
                equilibrium(calm, m.rho, m.x * inverse, m.y * inverse, m.z * inverse);
#pragma GCC unroll 19
                for (u64 i = 0; i < Q; i++)
                    rows[1 + CZ[i]][1 + CY[i]][columns[1 + CX[i]] + i] = cell[i] + (calm[i] - cell[i]) * (1 / TAU);
            }
        }
}

int main(int argc, char **argv) {
    size = arg_u64(argc, argv, "--size", 4);
    u64 steps = arg_u64(argc, argv, "--steps", 2);
    check(size >= 3, "--size is at least 3");
    depth = 2 * size;
    u64 cells = size * size * depth;
    for (int i = 0; i < 2; i++) grids[i] = alloc(cells * CELL * sizeof(double));
    double k = 2 * 3.14159265358979323846 / (double)depth;
    for (u64 at = 0; at < cells; at++) {
        double x = SPEED * sine(k * (double)(at / (size * size)));
        equilibrium(grids[0] + at * CELL, 1, x, 0, 0);
    }
    for (u64 i = 0; i < steps; i++) step(grids[i % 2], grids[(i + 1) % 2]);
    const double *last = grids[steps % 2];
    double mass = 0, x = 0, y = 0, z = 0, wave = 0;
    u64 sum = 0;
    for (u64 at = 0; at < cells; at++) {
        moments_t m = moments(last + at * CELL);
        mass += m.rho, x += m.x, y += m.y, z += m.z;
        // The part of the wave, by the sine that it began as.
        wave += m.x * sine(k * (double)(at / (size * size)));
        for (u64 i = 0; i < Q; i++) sum = sum * 31 + bits_of(last[at * CELL + i]);
    }
    double all = (double)cells, amplitude = wave / (all / 2) / SPEED, decay = 1, each = 1, term = 1;
    // exp(-v k^2) by its series.
    for (int i = 1; i < 20; i++) {
        term *= -(2 * TAU - 1) / 6 * k * k / i;
        each += term;
    }
    for (u64 i = 0; i < steps; i++) decay *= each;
    check(mass > all * (1 - 1e-12) && mass < all * (1 + 1e-12), "mass");
    check(x * x + y * y + z * z < 1e-20 * all * all, "momentum");
    check(amplitude > decay - 0.05 && amplitude < decay + 0.05, "decay of the wave");
    print_value("lattice: ", cells);
    print_value(" cells, wave ", (u64)(amplitude * 1e6));
    print_value(" millionths of its first height, by theory ", (u64)(decay * 1e6));
    print_value(", sum ", sum);
    print_char('\n');
    return 0;
}
