// Threads that write records of a file, each at its place; the first one reads them back. Then the file is renamed,
// and another one is deleted. With `--missing 1` it makes a system call that is not served, and fails.
//
//   --threads 4 --records 40
#include "cpu_rt.h"

enum { OPENAT = 56, CLOSE = 57, UNLINKAT = 35, RENAMEAT2 = 276, LSEEK = 62, READ = 63, PWRITE64 = 68, EPOLL_CREATE1 = 20 };
enum { HERE = -100, WRITE_ONLY = 1, READ_WRITE = 2, CREATE = 0100, TRUNCATE = 01000 };
// "000042 of 0003\n"
enum { RECORD_BYTES = 15 };

static u64 records, writers;
static i64 file;

static void digits(char *to, u32 count, u64 value) {
    for (u32 i = count; i-- > 0; value /= 10) to[i] = (char)('0' + value % 10);
}

static void write_records(u64 thread) {
    for (u64 i = thread; i < records; i += writers) {
        char text[RECORD_BYTES] = "000000 of 0000\n";
        digits(text, 6, i);
        digits(text + 10, 4, thread);
        check(rt_call(PWRITE64, file, (i64)text, RECORD_BYTES, (i64)(i * RECORD_BYTES), 0, 0) == RECORD_BYTES, "a record");
    }
}

int main(int argc, char **argv) {
    writers = arg_u64(argc, argv, "--threads", 4);
    records = arg_u64(argc, argv, "--records", 40);
    if (arg_u64(argc, argv, "--missing", 0)) return rt_call(EPOLL_CREATE1, 0, 0, 0, 0, 0, 0) < 0 ? 1 : 0;
    file = rt_call(OPENAT, HERE, (i64) "records.tmp", CREATE | TRUNCATE | READ_WRITE, 0644, 0, 0);
    check(file >= 0, "open");
    threads_run((u32)writers, write_records);
    static char text[RECORD_BYTES];
    u64 sum = 0;
    while (rt_call(READ, file, (i64)text, RECORD_BYTES, 0, 0, 0) == RECORD_BYTES) {
        u64 value = 0;
        for (u32 i = 0; i < 6; i++) value = value * 10 + (u64)(text[i] - '0');
        sum += value;
    }
    print_line("bytes", (u64)rt_call(LSEEK, file, 0, 2, 0, 0, 0));
    print_line("sum", sum);
    check(rt_call(CLOSE, file, 0, 0, 0, 0, 0) == 0, "close");
    check(rt_call(RENAMEAT2, HERE, (i64) "records.tmp", HERE, (i64) "records.txt", 0, 0) == 0, "rename");
    i64 other = rt_call(OPENAT, HERE, (i64) "/tmp/other", CREATE | WRITE_ONLY, 0644, 0, 0);
    check(other >= 0 && rt_call(UNLINKAT, HERE, (i64) "/tmp/other", 0, 0, 0, 0) == 0, "delete");
    return sum == records * (records - 1) / 2 ? 0 : 1;
}
