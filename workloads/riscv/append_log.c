// Threads that append records to logs of their own in persistent memory: a record is durable before the length that
// counts it. --recover checks what is there: every counted record is whole.
//
//   --threads 2 --records 100 [--recover]
#include "cpu_rt.h"
#include "pm.h"

enum { WORDS = 7, LOG_BYTES = 256 << 10 };

typedef struct {
    u64 words[WORDS];
    u64 sum;
} record_t;

typedef struct {
    // Records that count.
    u64 length;
    u64 unused[7];
    record_t records[];
} log_t;

static u64 records;
static u8 *pool;

static log_t *log_of(u64 thread) { return (log_t *)(pool + thread * LOG_BYTES); }

static u64 sum_of(const record_t *record, u64 number) {
    u64 sum = number + 1;
    for (int i = 0; i < WORDS; i++) sum = sum * 31 + record->words[i];
    return sum;
}

static void append(u64 thread) {
    log_t *log = log_of(thread);
    u64 seed = thread + 1;
    for (u64 number = log->length; number < records; number++) {
        record_t *record = &log->records[number];
        for (int i = 0; i < WORDS; i++) record->words[i] = random_next(&seed);
        record->sum = sum_of(record, number);
        pm_clean(record);
        pm_dfence();
        pm_ofence();
        log->length = number + 1;
        pm_clean(&log->length);
        pm_dfence();
        pm_ofence();
        pm_op();
    }
}

int main(int argc, char **argv) {
    u32 threads = (u32)arg_u64(argc, argv, "--threads", 2);
    records = arg_u64(argc, argv, "--records", 100);
    check(records * sizeof(record_t) + sizeof(log_t) <= LOG_BYTES, "records fit");
    pool = pm_map((u64)threads * LOG_BYTES);
    if (!arg_flag(argc, argv, "--recover")) threads_run(threads, append);
    u64 found = 0;
    for (u64 thread = 0; thread < threads; thread++) {
        log_t *log = log_of(thread);
        check(log->length <= records, "length");
        for (u64 number = 0; number < log->length; number++)
            check(log->records[number].sum == sum_of(&log->records[number], number), "record");
        found += log->length;
    }
    print_line("records", found);
    return 0;
}
