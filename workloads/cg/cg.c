// The least eigenvalue of a sparse symmetric matrix by inverse iteration, whose equations are solved by conjugate gradients, as
// CG of the NAS parallel benchmarks has it: products of a matrix of random structure with a vector, gathered word by word,
// sums over vectors, and a barrier behind each.
//
// Row i has its diagonal and, for --degree random pairs a row, entries at both (i, j) and (j, i). The diagonal exceeds the sum of
// the others by a little more than 0.1, so that the matrix is positive definite.
//
//   --rows 128 --degree 3 --outer 2 --inner 10 --threads 1 --seed 1
//
// Sums are by --rows in 64 parts, added in order, so that any number of threads gives the same bits.
//
// Left out: CG's way of making the matrix, a weighted sum of outer products, which is no part of its time.
#include "cpu_rt.h"

enum { PARTS = 64 };

typedef struct {
    double part[PARTS];
} sums_t;

static u64 rows, degree, outer, inner, threads;
static u32 *starts, *columns;
static double *values, *x, *z, *p, *q, *r;
static sums_t sums[2];
static barrier_t barrier;
static double residual, reciprocal;

static void make_matrix(u64 seed) {
    u64 pairs = rows * degree;
    starts = alloc((rows + 2) * sizeof *starts);
    u32 *next = alloc((rows + 1) * sizeof *next);
    columns = alloc((rows + 2 * pairs) * sizeof *columns);
    values = alloc((rows + 2 * pairs) * sizeof *values);
    for (u64 row = 0; row < rows; row++) starts[row + 1] = 1;
    for (u64 i = 0; i < pairs; i++) {
        u64 random = mix(seed, i), from = i % rows, to = (from + 1 + random % (rows - 1)) % rows;
        starts[from + 1]++, starts[to + 1]++;
    }
    for (u64 row = 0; row < rows; row++) {
        starts[row + 1] += starts[row];
        next[row] = starts[row] + 1;
        columns[starts[row]] = (u32)row;
        values[starts[row]] = 0.1 + 0.1 * uniform(mix(seed + 1, row));
    }
    for (u64 i = 0; i < pairs; i++) {
        u64 random = mix(seed, i), from = i % rows, to = (from + 1 + random % (rows - 1)) % rows;
        double value = uniform(mix(seed + 2, i)) - 0.5, size = value < 0 ? -value : value;
        columns[next[from]] = (u32)to, values[next[from]++] = value;
        columns[next[to]] = (u32)from, values[next[to]++] = value;
        values[starts[from]] += size, values[starts[to]] += size;
    }
}

// Sum of a product of vectors; all threads get it. The next sum is in another place, so that one barrier is enough.
static double dot(u64 thread, u64 *turn, const double *a, const double *b) {
    sums_t *mine = &sums[(*turn)++ % 2];
    range_t parts = range_of(PARTS, thread, threads);
    for (u64 part = parts.first; part < parts.end; part++) {
        range_t range = range_of(rows, part, PARTS);
        double sum = 0;
        for (u64 i = range.first; i < range.end; i++) sum += a[i] * b[i];
        mine->part[part] = sum;
    }
    barrier_wait(&barrier);
    double sum = 0;
    for (u64 part = 0; part < PARTS; part++) sum += mine->part[part];
    return sum;
}

static void multiply(range_t mine, double *to, const double *from) {
    for (u64 row = mine.first; row < mine.end; row++) {
        double sum = 0;
        for (u32 i = starts[row], end = starts[row + 1]; i < end; i++) sum += values[i] * from[columns[i]];
        to[row] = sum;
    }
}

static void work(u64 thread) {
    // Rows of this thread are those of its parts of sums.
    range_t parts = range_of(PARTS, thread, threads), mine;
    mine.first = range_of(rows, parts.first, PARTS).first;
    mine.end = range_of(rows, parts.end, PARTS).first;
    u64 turn = 0;
    for (u64 i = mine.first; i < mine.end; i++) x[i] = 1;
    for (u64 step = 0; step < outer; step++) {
        for (u64 i = mine.first; i < mine.end; i++) z[i] = 0, p[i] = r[i] = x[i];
        double rho = dot(thread, &turn, r, r);
        for (u64 i = 0; i < inner; i++) {
            multiply(mine, q, p);
            double alpha = rho / dot(thread, &turn, p, q), old = rho;
            for (u64 at = mine.first; at < mine.end; at++) z[at] += alpha * p[at], r[at] -= alpha * q[at];
            rho = dot(thread, &turn, r, r);
            for (u64 at = mine.first; at < mine.end; at++) p[at] = r[at] + rho / old * p[at];
            barrier_wait(&barrier);
        }
        // x - A z by itself, and beside it what the recursion says it is.
        double before = dot(thread, &turn, x, x), product = dot(thread, &turn, x, z), length = dot(thread, &turn, z, z);
        multiply(mine, q, z);
        for (u64 i = mine.first; i < mine.end; i++) q[i] = x[i] - q[i];
        double left = dot(thread, &turn, q, q);
        check(left <= 1e-2 * before, "the residual falls");
        check(left - rho <= 1e-9 * before && rho - left <= 1e-9 * before, "the residual is that of the recursion");
        if (thread == 0) residual = square_root(left / before), reciprocal = before / product;
        double scale = 1 / square_root(length);
        for (u64 i = mine.first; i < mine.end; i++) x[i] = scale * z[i];
        barrier_wait(&barrier);
    }
}

int main(int argc, char **argv) {
    threads = arg_u64(argc, argv, "--threads", 1);
    rows = arg_u64(argc, argv, "--rows", 128);
    degree = arg_u64(argc, argv, "--degree", 3);
    outer = arg_u64(argc, argv, "--outer", 2);
    inner = arg_u64(argc, argv, "--inner", 10);
    check(threads >= 1 && threads <= PARTS && rows >= PARTS, "--threads is from 1 to 64, --rows at least 64");
    check(degree && outer && inner && rows * degree < 1ul << 30, "--degree, --outer and --inner are at least 1");
    make_matrix(arg_u64(argc, argv, "--seed", 1));
    double **vectors[] = {&x, &z, &p, &q, &r};
    for (int i = 0; i < 5; i++) *vectors[i] = alloc(rows * sizeof(double));
    barrier_init(&barrier, (u32)threads);
    threads_run((u32)threads, work);
    // All eigenvalues lie above 0.1, by Gershgorin's circles.
    check(reciprocal > 0.1 && reciprocal < 1e6, "eigenvalue");
    u64 sum = 0;
    for (u64 i = 0; i < rows; i++) sum += mix(i, bits_of(x[i]));
    print_value("cg: eigenvalue ", (u64)(reciprocal * 1e9));
    print_value(" billionths, residual ", (u64)(residual * 1e18));
    print_value(" of 10^18, sum ", sum);
    print_char('\n');
    return 0;
}
