// Recursion, calls through pointers, and floating point in one thread: a quicksort and a heapsort with a comparison
// function, and the sums of their inputs in both precisions.
//
//   --count 5000
#include "cpu_rt.h"

typedef int (*compare_t)(const double *, const double *);

static int rising(const double *a, const double *b) { return (*a > *b) - (*a < *b); }

static int by_magnitude(const double *a, const double *b) {
    double x = *a < 0 ? -*a : *a, y = *b < 0 ? -*b : *b;
    return (x > y) - (x < y);
}

static void swap(double *a, double *b) {
    double kept = *a;
    *a = *b;
    *b = kept;
}

static void quicksort(double *from, double *to, compare_t compare) {
    if (to - from < 2) return;
    swap(from, from + (to - from) / 2);
    double *middle = from;
    for (double *at = from + 1; at < to; at++)
        if (compare(at, from) < 0) swap(++middle, at);
    swap(from, middle);
    quicksort(from, middle, compare);
    quicksort(middle + 1, to, compare);
}

static void sink(double *heap, u64 at, u64 count, compare_t compare) {
    for (u64 child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && compare(&heap[child], &heap[child + 1]) < 0) child++;
        if (compare(&heap[at], &heap[child]) >= 0) return;
        swap(&heap[at], &heap[child]);
    }
}

static void heapsort(double *from, double *to, compare_t compare) {
    u64 count = (u64)(to - from);
    for (u64 at = count / 2; at-- > 0;) sink(from, at, count, compare);
    for (u64 left = count; left-- > 1;) {
        swap(&from[0], &from[left]);
        sink(from, 0, left, compare);
    }
}

static void (*const sorts[])(double *, double *, compare_t) = {quicksort, heapsort};
static const compare_t comparisons[] = {rising, by_magnitude};

int main(int argc, char **argv) {
    u64 count = arg_u64(argc, argv, "--count", 5000), seed = 7;
    double *values = alloc(count * sizeof(double));
    for (int i = 0; i < 4; i++) {
        double sum = 0, sorted_sum = 0;
        float single = 0;
        for (u64 at = 0; at < count; at++) {
            values[at] = (double)(i64)random_next(&seed) / 1e15;
            sum += values[at];
            single += (float)values[at];
        }
        compare_t compare = comparisons[i / 2];
        sorts[i % 2](values, values + count, compare);
        for (u64 at = 0; at < count; at++) {
            check(at == 0 || compare(&values[at - 1], &values[at]) <= 0, "order");
            sorted_sum += values[at];
        }
        double error = sum - sorted_sum;
        check(error < 1e-3 && error > -1e-3, "sum");
        print_text("sum ");
        print_i64((i64)(sum * 1000));
        print_text(" single ");
        print_i64((i64)(single * 1000));
        print_text(" median ");
        print_i64((i64)(values[count / 2] * 1e6));
        print_char('\n');
    }
    return 0;
}
