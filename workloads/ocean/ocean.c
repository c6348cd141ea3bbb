// Currents of an ocean that wind drives, in a square basin, as ocean of SPLASH-3 has it: each step computes a vorticity from the
// stream function, then the stream function from the vorticity by red-black Gauss-Seidel sweeps with over-relaxation, until no cell
// changes by more than --tolerance millionths. Threads have tiles of the basin; the greatest change is found under a lock; barriers part
// the red cells, the black ones and the test.
//
// The ocean is Stommel's (The westward intensification of wind-driven ocean currents, 1948): wind sin(pi y), friction, and a
// rotation that differs from south to north, which drives the gyre's middle towards the west.
//
//   --size 14 --steps 2 --tolerance 1 --threads 1
//
// Left out: SPLASH's second layer, its advection (Jacobians), its multigrid levels.
#include "cpu_rt.h"

static const double PI = 3.14159265358979323846, STEP = 0.5, FRICTION = 0.1, ROTATION = 1;

static u64 size, width, steps, threads, tile_rows, sweeps;
static double h, factor, tolerance, *stream, *vorticity, *wind;
static barrier_t barrier;
static lock_t error_lock;
// Of two sweeps in turn.
static double errors[2];

// By its series, |x| up to pi.
static double sine(double x) {
    double term = x, sum = x;
    for (int i = 1; i < 16; i++) {
        term *= -x * x / ((2 * i) * (2 * i + 1));
        sum += term;
    }
    return sum;
}

static void add_vorticity(range_t rows, range_t columns) {
    for (u64 y = rows.first + 1; y <= rows.end; y++)
        for (u64 x = columns.first + 1; x <= columns.end; x++) {
            u64 at = y * width + x;
            double slope = (stream[at + 1] - stream[at - 1]) / (2 * h);
            vorticity[at] += STEP * (wind[y] - FRICTION * vorticity[at] - ROTATION * slope);
        }
}

// Cells of one colour. The greatest change.
static double sweep(range_t rows, range_t columns, u64 colour) {
    double most = 0, quarter = factor / 4;
    for (u64 y = rows.first + 1; y <= rows.end; y++) {
        u64 first = columns.first + 1;
        for (u64 x = first + ((first ^ y ^ colour) & 1); x <= columns.end; x += 2) {
            double *at = stream + y * width + x, old = *at;
            double around = (at[-(i64)width] + at[width]) + (at[-1] + at[1]) - h * h * vorticity[y * width + x];
            double now = (1 - factor) * old + quarter * around, change = now > old ? now - old : old - now;
            *at = now;
            if (change > most) most = change;
        }
    }
    return most;
}

static void work(u64 thread) {
    range_t rows = range_of(size, thread / (threads / tile_rows), tile_rows);
    range_t columns = range_of(size, thread % (threads / tile_rows), threads / tile_rows);
    for (u64 step = 0, turn = 0; step < steps; step++) {
        add_vorticity(rows, columns);
        barrier_wait(&barrier);
        for (;; turn ^= 1) {
            double red = sweep(rows, columns, 0);
            barrier_wait(&barrier);
            double black = sweep(rows, columns, 1), most = red > black ? red : black;
            lock(&error_lock);
            if (most > errors[turn]) errors[turn] = most;
            unlock(&error_lock);
            barrier_wait(&barrier);
            if (thread == 0) errors[turn ^ 1] = 0, sweeps++;
            if (errors[turn] < tolerance) break;
            barrier_wait(&barrier);
        }
        // The next step begins with the other place, which is 0 behind this barrier.
        turn ^= 1;
        barrier_wait(&barrier);
    }
}

int main(int argc, char **argv) {
    threads = arg_u64(argc, argv, "--threads", 1);
    size = arg_u64(argc, argv, "--size", 14);
    steps = arg_u64(argc, argv, "--steps", 2);
    tolerance = (double)arg_u64(argc, argv, "--tolerance", 1) * 1e-6;
    check(threads && size >= 4 && steps >= 2, "--threads is at least 1, --size at least 4, --steps at least 2");
    // Tiles are as square as their number lets them be.
    for (u64 i = 1; i * i <= threads; i++)
        if (threads % i == 0) tile_rows = i;
    width = size + 2;
    h = 1 / (double)(size + 1);
    factor = 2 / (1 + sine(PI * h));
    stream = alloc(width * width * sizeof(double));
    vorticity = alloc(width * width * sizeof(double));
    wind = alloc(width * sizeof(double));
    for (u64 y = 1; y <= size; y++) wind[y] = -sine(PI * h * (double)y);
    barrier_init(&barrier, (u32)threads);
    threads_run((u32)threads, work);
    // The stream function is that of the vorticity, alike in north and south, and greatest in the west.
    double most = 0, west = 0, east = 0;
    u64 sum = 0, middle = 0;
    for (u64 y = 1; y <= size; y++)
        for (u64 x = 1; x <= size; x++) {
            const double *at = stream + y * width + x;
            double left = (at[-(i64)width] + at[width]) + (at[-1] + at[1]) - 4 * *at - h * h * vorticity[y * width + x];
            check(left < 8 * tolerance && left > -8 * tolerance, "stream function of the vorticity");
            double other = *at - stream[(size + 1 - y) * width + x], bound = tolerance * (double)size;
            check(other < bound && other > -bound, "likeness of north and south");
            if (*at > most) most = *at, middle = x;
            if (2 * x <= size) west += *at;
            if (2 * x > size + 1) east += *at;
            sum += mix(y * width + x, bits_of(*at));
        }
    check(most > 0 && west > east && 2 * middle <= size + 1, "middle of the gyre in the west");
    print_value("ocean: ", steps);
    print_value(" steps, ", sweeps);
    print_value(" sweeps, greatest stream ", (u64)(most * 1e6));
    print_value(" millionths in column ", middle);
    print_value(", sum ", sum);
    print_char('\n');
    return 0;
}
