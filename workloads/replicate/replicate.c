// A redo log that is replicated to other servers before its transactions are applied here: each thread has a table in
// persistent memory, and a log at every peer, written by rdma_pwrite. Every server runs this program: each is the primary
// of its own tables and a replica of those of the servers before it.
//
//   --transactions 200 --epochs 6 --bytes 512 --peers 1 --threads 2 --log-kb 64 --sync 0 | --recover
//
// A transaction adds to words of the table. Its log has `epochs` parts of `bytes` bytes, each one verb: the words and what
// is added, and last a commit record.
//   --sync 1   the next part is posted when every peer has acknowledged the one before
//   --sync 0   all parts are posted at once, and the last alone is acknowledged (BSP)
// When every peer has the commit record the table is changed. The log begins anew at its end: what is there was applied.
//
// After a power failure (--recover, with the other arguments as they were) a thread's table must have all of the transactions
// before one, of that one some words, and nothing of later ones: the rest of that one is in the logs of the peers, which a
// program does not read. Nothing is written.
//
// Exit codes: 0, 1 wrong arguments or memory, 20 a table that is not what its transactions make of it, 21 a count of
// acknowledgements, 22 a word that no number of additions makes, 23 a transaction that began before an earlier one was whole.
#include "cpu_rt.h"
#include "pm.h"

enum { LINE = 64, WORDS = 1024, TABLE = WORDS * 8, MAX_PEERS = 64, BAD_TABLE = 20, BAD_COUNT = 21, BAD_WORD = 22, BAD_ORDER = 23 };

static u64 transactions, epochs, bytes, peers, threads, log_bytes, sync;
static u64 *tables;
static barrier_t begun;
static u64 wrong[64];

static u64 place_of(u64 thread, u64 transaction, u64 entry) { return mix(mix(thread, transaction), entry) % WORDS; }

static u64 added_by(u64 thread, u64 transaction, u64 entry) { return mix(transaction, mix(entry, thread)); }

// Words of a part, two for each entry; the last part says that the transaction is whole.
static void fill(u64 *part, u64 thread, u64 transaction, u64 epoch) {
    u64 entries = bytes / 16;
    for (u64 i = 0; i < entries; i++) {
        u64 entry = epoch * entries + i;
        part[2 * i] = epoch + 1 < epochs ? place_of(thread, transaction, entry) : ~transaction;
        part[2 * i + 1] = epoch + 1 < epochs ? added_by(thread, transaction, entry) : thread;
    }
}

static void apply(u64 *table, u64 thread, u64 transaction) {
    for (u64 entry = 0; entry < (epochs - 1) * (bytes / 16); entry++) {
        u64 *word = &table[place_of(thread, transaction, entry)];
        *word += added_by(thread, transaction, entry);
        pm_clean(word);
    }
    pm_ofence();
}

static void wait_for(u64 posted) {
    for (u64 peer = 1; peer <= peers; peer++)
        while (rdma_poll(peer) < posted) rt_pause();
}

static void work(u64 thread) {
    u64 *table = tables + thread * WORDS, posted = 0;
    u8 *parts = alloc(epochs * bytes);
    rdma_verb_t *verb = alloc(epochs * peers * sizeof *verb);
    // No hart is free before every thread has one: thread and hart have the same number.
    barrier_wait(&begun);
    for (u64 t = 0; t < transactions; t++) {
        for (u64 epoch = 0; epoch < epochs; epoch++) {
            u8 *part = parts + epoch * bytes;
            int asks = sync || epoch + 1 == epochs;
            fill((u64 *)part, thread, t, epoch);
            u64 offset = (t * epochs + epoch) % (log_bytes / bytes) * bytes;
            for (u64 peer = 1; peer <= peers; peer++) {
                rdma_verb_t *of = &verb[epoch * peers + peer - 1];
                *of = (rdma_verb_t){RDMA_PWRITE, (u32)peer, part, offset, (u32)bytes, (u32)asks};
                rdma_post(of);
            }
            posted++;
            // Only then may the parts be written again.
            if (asks) wait_for(posted);
        }
        apply(table, thread, t);
        pm_op();
    }
    pm_dfence();
    for (u64 peer = 1; peer <= peers; peer++)
        if (rdma_poll(peer) != posted) wrong[thread] = BAD_COUNT;
}

// The table again, by other means: entry by entry of all transactions, for one word after the other.
static int is_right(u64 thread) {
    u64 *expected = alloc(TABLE);
    for (u64 t = 0; t < transactions; t++)
        for (u64 entry = 0; entry < (epochs - 1) * (bytes / 16); entry++)
            expected[place_of(thread, t, entry)] += added_by(thread, t, entry);
    for (u64 word = 0; word < WORDS; word++)
        if (expected[word] != tables[thread * WORDS + word]) return 0;
    return 1;
}

// What is wrong with a thread's table, or 0. Of each word the additions that it has are the first ones of all.
static int judge(u64 thread) {
    enum { SEARCHED, FOUND, BEYOND };
    const u64 *table = tables + thread * WORDS;
    u64 *sum = alloc(TABLE), *state = alloc(TABLE), complete = transactions, begun = 0;
    for (u64 word = 0; word < WORDS; word++) state[word] = table[word] ? SEARCHED : FOUND;
    for (u64 t = 0; t < transactions; t++)
        for (u64 entry = 0; entry < (epochs - 1) * (bytes / 16); entry++) {
            u64 word = place_of(thread, t, entry);
            if (state[word] == SEARCHED) {
                sum[word] += added_by(thread, t, entry);
                if (sum[word] != table[word]) continue;
                // The last addition that it has: transaction t has begun.
                state[word] = FOUND;
                if (t + 1 > begun) begun = t + 1;
            } else if (state[word] == FOUND) {
                // The first addition that it lacks: transactions before t may be complete.
                state[word] = BEYOND;
                if (t < complete) complete = t;
            }
        }
    for (u64 word = 0; word < WORDS; word++)
        if (state[word] == SEARCHED) return BAD_WORD;
    // One transaction at most has begun and is not complete.
    return begun > complete + 1 ? BAD_ORDER : 0;
}

static int recover(void) {
    for (u64 thread = 0; thread < threads; thread++) {
        int wrong_with = judge(thread);
        if (wrong_with) {
            print_line("wrong table", thread);
            return wrong_with;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    transactions = arg_u64(argc, argv, "--transactions", 200);
    epochs = arg_u64(argc, argv, "--epochs", 6);
    bytes = arg_u64(argc, argv, "--bytes", 512);
    peers = arg_u64(argc, argv, "--peers", 1);
    threads = arg_u64(argc, argv, "--threads", 2);
    log_bytes = arg_u64(argc, argv, "--log-kb", 64) << 10;
    sync = arg_u64(argc, argv, "--sync", 0);
    check(epochs >= 2, "--epochs: data and a commit record are two");
    check(bytes && bytes % LINE == 0, "--bytes: whole lines of 64");
    check(peers >= 1 && peers <= MAX_PEERS, "--peers");
    check(threads >= 1 && threads <= 64, "--threads");
    check(log_bytes >= epochs * bytes, "--log-kb: a transaction does not fit");
    tables = pm_map(threads * TABLE);
    if (arg_flag(argc, argv, "--recover")) return recover();
    barrier_init(&begun, (u32)threads);
    threads_run((u32)threads, work);
    for (u64 thread = 0; thread < threads; thread++) {
        if (wrong[thread]) return (int)wrong[thread];
        if (!is_right(thread)) return BAD_TABLE;
    }
    print_line("transactions", transactions * threads);
    return 0;
}
