// A store of keys and values in persistent memory that only appends, as Echo of WHISPER is built (a log for each client, and one
// hash table of all): a client writes a record to its own log, fences, and sets one word, by which the table's chain leads to
// the record; then it fences again. A removal is a record, too. Of 10 operations 3 read, 6 write, 1 removes.
//
//   --keys 64 --buckets 16 --ops 200 --threads 1 --seed 1 | --recover
//
// A key belongs to the client that its number says, as those of different users do, so that what is left does not depend on the
// order of threads. Buckets are shared, each with a lock in ordinary memory, and chains pass through all logs.
//
// A record carries a check of itself: those at the front of a log that are whole are what its client has done. Only the last of
// them may not be in its chain yet: --recover puts it there. Then it plays all operations again and compares.
//
// Left out: reclaiming the log's space, transactions of several keys.
//
// Exit codes: 10 header, 11 log, 13 count of operations, 20 set of keys, 21 torn value, 22 record in a wrong chain, 23 a bucket's
// records are not durable in their order.
#include "pool.h"

enum { WRONG_SET = 20, WRONG_VALUE = 21, WRONG_CHAIN = 22, WRONG_ORDER = 23 };

// A record is two lines: check, number of the operation + 1, key * 2 + removes, version of its bucket, next record, value.
enum { CHECK = 0, OPERATION = 8, WHAT = 16, VERSION = 24, NEXT = 32, VALUE = 40, VALUES = 11, RECORD = 2 * LINE };

typedef struct {
    lock_t lock;
    // Changes of this bucket so far.
    u64 version, unused[6];
} guard_t;

// A line for each client: where its log begins, records that it has, sum of what it read.
typedef struct {
    off_t log;
    u64 records, sum, unused[5];
} client_t;

static const u64 MAGIC = 0x6b766c6f67303031;
static u64 keys, buckets, ops, seed, threads;
static guard_t *guards;
static client_t *clients;

// There is no log in front of the table.
static inline off_t pool_area(u64 count) { return (void)count, LOGS_AT; }

static u64 key_of(u64 operation) { return mix(8 * seed, operation) % keys; }

// In 10: 3 read, 6 write, 1 removes.
static u64 kind_of(u64 operation) { return mix(8 * seed + 1, operation) % 10; }

static int reads(u64 operation) { return kind_of(operation) < 3; }

static int removes(u64 operation) { return kind_of(operation) == 9; }

static u64 value_of(u64 operation, u64 i) { return mix(8 * seed + 2, operation) * (2 * i + 1); }

static u64 bucket_of(u64 key) { return mix(8 * seed + 3, key) % buckets; }

static off_t bucket_at(u64 bucket) { return pool_area(threads) + 8 * bucket; }

// Places the logs: each is as long as its client's writes need. Bytes of the pool.
static u64 layout(void) {
    clients = alloc(threads * sizeof *clients);
    for (u64 i = 0; i < ops; i++) clients[key_of(i) % threads].records += !reads(i);
    off_t at = up(bucket_at(buckets), RECORD);
    for (u64 i = 0; i < threads; i++) {
        clients[i].log = at;
        at += clients[i].records * RECORD;
        clients[i].records = 0;
    }
    return at;
}

static u64 check_of(off_t record) {
    u64 check = MAGIC;
    for (u64 at = OPERATION; at < RECORD; at += 8) {
        if (at == NEXT) continue;
        check = (check ^ pm_get(record + at)) * 0x9e3779b97f4a7c15ul;
        check ^= check >> 32;
    }
    return check | 1;
}

// The word that leads to a key's record, or to 0 at the end of the chain.
static off_t link_to(u64 bucket, u64 key) {
    off_t link = bucket_at(bucket), record;
    for (u64 left = ops + 1; (record = pm_get(link)) != 0; link = record + NEXT) {
        must(record >= clients[0].log && record < pool->bytes && left-- > 0, WRONG_CHAIN, "link");
        if (pm_get(record + WHAT) >> 1 == key) break;
    }
    return link;
}

// What a key's new record leads to: what its last one does, or the first record of the chain.
static off_t next_of(u64 bucket, u64 key) {
    off_t old = pm_get(link_to(bucket, key));
    return old ? pm_get(old + NEXT) : pm_get(bucket_at(bucket));
}

static void set_link(off_t link, off_t to) {
    pm_put(link, to);
    pm_clean((const u8 *)pool + link);
    pm_ofence();
}

// Puts a record that is durable in its chain: it takes the place of its key's last one, or the first place. Again does no harm.
static void enter(u64 bucket, off_t record) {
    u64 what = pm_get(record + WHAT);
    off_t link = link_to(bucket, what >> 1), old = pm_get(link);
    if (what & 1) {
        if (old) set_link(link, pm_get(old + NEXT));
        return;
    }
    if (old == record) return;
    // Its own link need not have been durable.
    off_t next = next_of(bucket, what >> 1);
    if (pm_get(record + NEXT) != next) set_link(record + NEXT, next);
    set_link(old ? link : bucket_at(bucket), record);
}

static void write(client_t *client, u64 operation, u64 key) {
    u64 bucket = bucket_of(key);
    off_t record = client->log + client->records++ * RECORD;
    for (u64 i = 0; i < VALUES; i++) pm_put(record + VALUE + 8 * i, removes(operation) ? 0 : value_of(operation, i));
    pm_put(record + OPERATION, operation + 1);
    pm_put(record + WHAT, key << 1 | (u64)removes(operation));
    lock(&guards[bucket].lock);
    pm_put(record + VERSION, ++guards[bucket].version);
    pm_put(record + CHECK, check_of(record));
    pm_put(record + NEXT, next_of(bucket, key));
    pm_clean_range((const u8 *)pool + record, RECORD);
#ifndef MISSING_FENCE
    pm_ofence();
#endif
    enter(bucket, record);
    unlock(&guards[bucket].lock);
}

static void read(client_t *client, u64 key) {
    u64 bucket = bucket_of(key);
    lock(&guards[bucket].lock);
    off_t record = pm_get(link_to(bucket, key));
    for (u64 i = 0; record && i < VALUES; i++) {
        u64 value = pm_get(record + VALUE + 8 * i);
        must(value == pm_get(record + VALUE) * (2 * i + 1), WRONG_VALUE, "torn value");
        client->sum += value;
    }
    unlock(&guards[bucket].lock);
}

static void work(u64 thread) {
    client_t *client = &clients[thread];
    for (u64 i = 0; i < ops; i++) {
        u64 key = key_of(i);
        if (key % threads != thread) continue;
        if (reads(i)) read(client, key);
        else write(client, i, key);
        pm_op();
    }
    pm_dfence();
}

// ---- Recovery and check

// Counts the whole records at the front of each log, which must be the first writes of its client; behind the first that is not
// whole there is none.
static u64 count_records(void) {
    u64 *number = alloc(buckets * sizeof *number), *sum = alloc(buckets * sizeof *sum), *last = alloc(buckets * sizeof *last);
    u8 *ended = alloc(threads);
    u64 all = 0;
    u64 *place = alloc(threads * sizeof *place);
    for (u64 i = 0; i < ops; i++) {
        if (reads(i)) continue;
        u64 key = key_of(i), bucket = bucket_of(key);
        client_t *client = &clients[key % threads];
        off_t record = client->log + place[key % threads]++ * RECORD;
        if (pm_get(record + CHECK) != check_of(record)) {
            ended[key % threads] = 1;
            continue;
        }
        must(!ended[key % threads], BAD_LOG, "a record behind one that is not whole");
        u64 what = key << 1 | (u64)removes(i), version = pm_get(record + VERSION);
        must(pm_get(record + OPERATION) == i + 1 && pm_get(record + WHAT) == what, BAD_COUNT, "record of another operation");
        for (u64 j = 0; j < VALUES; j++)
            must(pm_get(record + VALUE + 8 * j) == (removes(i) ? 0 : value_of(i, j)), WRONG_VALUE, "torn value");
        client->records++;
        number[bucket]++;
        sum[bucket] += version;
        if (version > last[bucket]) last[bucket] = version;
        all++;
    }
    // A bucket's versions are 1, 2, ...: a later change is not durable without those before it.
    for (u64 i = 0; i < buckets; i++)
        must(number[i] == last[i] && sum[i] == last[i] * (last[i] + 1) / 2, WRONG_ORDER, "order of a bucket's records");
    return all;
}

static void recover(void) {
    for (u64 i = 0; i < threads; i++) {
        if (!clients[i].records) continue;
        off_t record = clients[i].log + (clients[i].records - 1) * RECORD;
        enter(bucket_of(pm_get(record + WHAT) >> 1), record);
    }
    pm_dfence();
}

static u64 items, item_sum;

// Plays the operations again that the logs have, and compares with the chains.
static void verify(void) {
    off_t *expected = alloc(keys * sizeof *expected);
    u64 *place = alloc(threads * sizeof *place);
    for (u64 i = 0; i < ops; i++) {
        u64 key = key_of(i);
        const client_t *client = &clients[key % threads];
        if (reads(i) || place[key % threads] == client->records) continue;
        off_t record = client->log + place[key % threads]++ * RECORD;
        expected[key] = removes(i) ? 0 : record;
    }
    for (u64 bucket = 0; bucket < buckets; bucket++)
        for (off_t record = pm_get(bucket_at(bucket)); record; record = pm_get(record + NEXT)) {
            must(record % LINE == 0 && record >= clients[0].log && record < pool->bytes, WRONG_CHAIN, "link");
            u64 key = pm_get(record + WHAT) >> 1;
            must(key < keys && bucket_of(key) == bucket, WRONG_CHAIN, "record in a wrong chain");
            must(expected[key] == record, WRONG_SET, "record that must not be there");
            expected[key] = 0;
            items++;
            item_sum += mix(key, pm_get(record + VALUE));
        }
    for (u64 key = 0; key < keys; key++) must(!expected[key], WRONG_SET, "key that is missing");
}

int main(int argc, char **argv) {
    u64 written, sum = 0;
    if (arg_flag(argc, argv, "--recover")) {
        if (!pool_open(MAGIC)) {
            print_text("kvlog: no pool\n");
            return 0;
        }
        const u64 *parameters = pool->parameters;
        threads = pool->threads;
        keys = parameters[0], buckets = parameters[1], ops = parameters[2], seed = parameters[3];
        must(keys && buckets && layout() <= pool->bytes, BAD_HEADER, "layout");
        written = count_records();
        recover();
    } else {
        threads = arg_u64(argc, argv, "--threads", 1);
        keys = arg_u64(argc, argv, "--keys", 64);
        buckets = arg_u64(argc, argv, "--buckets", 16);
        ops = arg_u64(argc, argv, "--ops", 200);
        seed = arg_u64(argc, argv, "--seed", 1);
        check(threads && keys && buckets, "--threads, --keys and --buckets are at least 1");
        u64 parameters[] = {keys, buckets, ops, seed}, wanted = 0;
        pool_create(layout(), threads, parameters, 4);
        // An empty table is zeros.
        pool_ready(MAGIC);
        guards = alloc(buckets * sizeof *guards);
        threads_run((u32)threads, work);
        for (u64 i = 0; i < threads; i++) {
            wanted += clients[i].records;
            sum += clients[i].sum;
            clients[i].records = 0;
        }
        written = count_records();
        must(written == wanted, BAD_COUNT, "operations");
    }
    verify();
    print_value("kvlog: ", written);
    print_value(" records, ", items);
    print_value(" items, sum ", item_sum + sum);
    print_char('\n');
    return 0;
}
