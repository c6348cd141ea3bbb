// Poisson's equation on a periodic cube by multigrid, as MG of the NAS parallel benchmarks has it: V cycles of residuals, smoothing,
// restriction and interpolation with stencils of 27 points, on grids from 2^--levels to 2 points a side. Threads share the planes
// of a grid, and meet at a barrier behind each operation; coarse grids have fewer planes than there are threads.
//
// The right side is 1 at ten points and -1 at ten others. Sums of four neighbours and of four diagonal ones are kept for a row, as
// MG does, so that a point of the stencil costs less than 27 loads.
//
//   --levels 3 --cycles 2 --threads 1 --seed 1
//
// The residual must fall in every cycle to half at most: it does to a third or less. (Class S of MG ends with 0.000053; here, with
// other points but as many, --levels 5 --cycles 4 ends with 0.000055.)
#include "cpu_rt.h"

enum { MOST_LEVELS = 8, CHARGES = 10 };

typedef struct {
    u64 points, shift;
    double *u, *r;
} grid_t;

// Of a row: its points, sums of the four rows beside it, sums of the four at its edges; a point more at both ends.
typedef struct {
    double *centre, *faces, *edges;
} rows_t;

static const double A[] = {-8.0 / 3, 0, 1.0 / 6, 1.0 / 12}, C[] = {-3.0 / 8, 1.0 / 32, -1.0 / 64, 0};

static u64 levels, cycles, threads;
static grid_t grids[MOST_LEVELS + 1];
static double *v, *squares, norms[2];
static barrier_t barrier;

static const double *row_of(const grid_t *grid, const double *field, u64 z, u64 y) {
    u64 mask = grid->points - 1;
    return field + ((z & mask) << grid->shift | (y & mask)) * grid->points;
}

static void gather(const grid_t *grid, const double *field, u64 z, u64 y, const rows_t *to) {
    const double *centre = row_of(grid, field, z, y);
    const double *a = row_of(grid, field, z - 1, y), *b = row_of(grid, field, z + 1, y);
    const double *c = row_of(grid, field, z, y - 1), *d = row_of(grid, field, z, y + 1);
    const double *e = row_of(grid, field, z - 1, y - 1), *f = row_of(grid, field, z - 1, y + 1);
    const double *g = row_of(grid, field, z + 1, y - 1), *h = row_of(grid, field, z + 1, y + 1);
    u64 n = grid->points;
    for (u64 x = 0; x < n; x++) {
        to->centre[x + 1] = centre[x];
        to->faces[x + 1] = (a[x] + b[x]) + (c[x] + d[x]);
        to->edges[x + 1] = (e[x] + f[x]) + (g[x] + h[x]);
    }
    double *const ends[] = {to->centre, to->faces, to->edges};
    for (int i = 0; i < 3; i++) ends[i][0] = ends[i][n], ends[i][n + 1] = ends[i][1];
}

// r = from - A u
static void residual(u64 thread, const grid_t *grid, const double *from, const rows_t *rows) {
    range_t planes = range_of(grid->points, thread, threads);
    const double *c = rows->centre + 1, *f = rows->faces + 1, *e = rows->edges + 1;
    for (u64 z = planes.first; z < planes.end; z++)
        for (u64 y = 0; y < grid->points; y++) {
            u64 at = (z << grid->shift | y) * grid->points;
            gather(grid, grid->u, z, y, rows);
            for (i64 x = 0; x < (i64)grid->points; x++)
                grid->r[at + (u64)x] = from[at + (u64)x] - A[0] * c[x] - A[2] * (e[x] + (f[x - 1] + f[x + 1])) -
                                       A[3] * (e[x - 1] + e[x + 1]);
        }
    barrier_wait(&barrier);
}

// u = u + C r
static void smooth(u64 thread, const grid_t *grid, const rows_t *rows) {
    range_t planes = range_of(grid->points, thread, threads);
    const double *c = rows->centre + 1, *f = rows->faces + 1, *e = rows->edges + 1;
    for (u64 z = planes.first; z < planes.end; z++)
        for (u64 y = 0; y < grid->points; y++) {
            double *u = grid->u + (z << grid->shift | y) * grid->points;
            gather(grid, grid->r, z, y, rows);
            for (i64 x = 0; x < (i64)grid->points; x++)
                u[x] += C[0] * c[x] + C[1] * (f[x] + (c[x - 1] + c[x + 1])) + C[2] * (e[x] + (f[x - 1] + f[x + 1]));
        }
    barrier_wait(&barrier);
}

// The residual of the next coarser grid: weights of 1/2, 1/4, 1/8 and 1/16.
static void restrict_to(u64 thread, const grid_t *coarse, const grid_t *fine, const rows_t *rows) {
    range_t planes = range_of(coarse->points, thread, threads);
    const double *c = rows->centre + 1, *f = rows->faces + 1, *e = rows->edges + 1;
    for (u64 z = planes.first; z < planes.end; z++)
        for (u64 y = 0; y < coarse->points; y++) {
            double *r = coarse->r + (z << coarse->shift | y) * coarse->points;
            gather(fine, fine->r, 2 * z, 2 * y, rows);
            for (i64 x = 0; x < (i64)coarse->points; x++) {
                i64 at = 2 * x;
                r[x] = 0.5 * c[at] + 0.25 * (f[at] + (c[at - 1] + c[at + 1])) +
                       0.125 * (e[at] + (f[at - 1] + f[at + 1])) + 0.0625 * (e[at - 1] + e[at + 1]);
            }
        }
    barrier_wait(&barrier);
}

// Adds what the coarser grid has found: between its points the mean of them. A grid but the finest begins at zero.
static void interpolate(u64 thread, const grid_t *fine, const grid_t *coarse, int adds, const rows_t *rows) {
    range_t planes = range_of(fine->points, thread, threads);
    for (u64 z = planes.first; z < planes.end; z++)
        for (u64 y = 0; y < fine->points; y++) {
            const double *a = row_of(coarse, coarse->u, z / 2, y / 2), *b = row_of(coarse, coarse->u, z / 2, (y + 1) / 2);
            const double *c = row_of(coarse, coarse->u, (z + 1) / 2, y / 2);
            const double *d = row_of(coarse, coarse->u, (z + 1) / 2, (y + 1) / 2);
            double *u = fine->u + (z << fine->shift | y) * fine->points, *mean = rows->centre;
            for (u64 x = 0; x < coarse->points; x++) mean[x] = 0.25 * ((a[x] + b[x]) + (c[x] + d[x]));
            mean[coarse->points] = mean[0];
            for (u64 x = 0; x < coarse->points; x++) {
                double between = 0.5 * (mean[x] + mean[x + 1]);
                u[2 * x] = adds ? u[2 * x] + mean[x] : mean[x];
                u[2 * x + 1] = adds ? u[2 * x + 1] + between : between;
            }
        }
    barrier_wait(&barrier);
}

static void cycle(u64 thread, const rows_t *rows) {
    for (u64 level = levels; level > 1; level--) restrict_to(thread, &grids[level - 1], &grids[level], rows);
    range_t planes = range_of(grids[1].points, thread, threads);
    for (u64 i = planes.first * 4; i < planes.end * 4; i++) grids[1].u[i] = 0;
    barrier_wait(&barrier);
    smooth(thread, &grids[1], rows);
    for (u64 level = 2; level <= levels; level++) {
        interpolate(thread, &grids[level], &grids[level - 1], level == levels, rows);
        residual(thread, &grids[level], level == levels ? v : grids[level].r, rows);
        smooth(thread, &grids[level], rows);
    }
    residual(thread, &grids[levels], v, rows);
}

// The root of the mean square of the residual, by planes, which are added in order.
static double norm(u64 thread) {
    const grid_t *grid = &grids[levels];
    range_t planes = range_of(grid->points, thread, threads);
    u64 plane = grid->points * grid->points;
    for (u64 z = planes.first; z < planes.end; z++) {
        double sum = 0;
        for (u64 i = z * plane; i < (z + 1) * plane; i++) sum += grid->r[i] * grid->r[i];
        squares[z] = sum;
    }
    barrier_wait(&barrier);
    double sum = 0;
    for (u64 z = 0; z < grid->points; z++) sum += squares[z];
    barrier_wait(&barrier);
    return square_root(sum / (double)(plane * grid->points));
}

static void work(u64 thread) {
    u64 bytes = (grids[levels].points + 2) * sizeof(double);
    rows_t rows = {alloc(bytes), alloc(bytes), alloc(bytes)};
    residual(thread, &grids[levels], v, &rows);
    double first = norm(thread), before = first;
    for (u64 i = 0; i < cycles; i++) {
        cycle(thread, &rows);
        double now = norm(thread);
        check(now * 2 < before, "the residual falls");
        before = now;
    }
    if (thread == 0) norms[0] = first, norms[1] = before;
}

int main(int argc, char **argv) {
    threads = arg_u64(argc, argv, "--threads", 1);
    levels = arg_u64(argc, argv, "--levels", 3);
    cycles = arg_u64(argc, argv, "--cycles", 2);
    u64 seed = arg_u64(argc, argv, "--seed", 1);
    check(threads && cycles && levels >= 2 && levels <= MOST_LEVELS, "--threads and --cycles are at least 1, --levels 2 to 8");
    for (u64 level = 1; level <= levels; level++) {
        u64 points = 1ul << level, bytes = points * points * points * sizeof(double);
        grids[level] = (grid_t){points, level, alloc(bytes), alloc(bytes)};
    }
    u64 all = 1ul << 3 * levels;
    v = alloc(all * sizeof(double));
    squares = alloc(sizeof(double) << levels);
    u64 random = mix(seed, 0) | 1;
    for (u64 i = 0; i < 2 * CHARGES;) {
        u64 at = random_next(&random) % all;
        if (v[at] == 0) v[at] = i++ % 2 ? -1 : 1;
    }
    barrier_init(&barrier, (u32)threads);
    threads_run((u32)threads, work);
    u64 sum = 0;
    for (u64 i = 0; i < all; i++) sum += mix(i, bits_of(grids[levels].u[i]));
    print_value("mg: ", cycles);
    print_value(" cycles, residual ", (u64)(norms[0] * 1e12));
    print_value(" to ", (u64)(norms[1] * 1e12));
    print_value(" of 10^12, sum ", sum);
    print_char('\n');
    return 0;
}
