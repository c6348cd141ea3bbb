// Operations on persistent memory and remote memory for C and C++ programs of CPUs (RV64GC). Each is one word of the
// custom-0 opcode or of Zicbom, written so that any assembler takes it. See docs for what each scheme makes of them.
//
// With PM_NONE defined they are compiler barriers, so that a program runs where these words are illegal.
#pragma once

#ifdef PM_NONE
#define PM_WORD(...) __asm__ volatile("" ::: "memory")
#define PM_WORD_AT(word, address) __asm__ volatile("" : : "r"(address) : "memory")
#else
#define PM_WORD(word) __asm__ volatile(word : : : "memory")
#define PM_WORD_AT(word, address) __asm__ volatile(word : : "r"(address) : "memory")
#endif

// What this thread stored to persistent memory before becomes durable before what it stores afterwards.
static inline void pm_ofence(void) { PM_WORD(".insn i 0x0b, 0, x0, x0, 0"); }

// Waits until what this thread stored (and, where a scheme needs it, wrote back) before is durable.
static inline void pm_dfence(void) { PM_WORD(".insn i 0x0b, 1, x0, x0, 0"); }

// A region ends here.
static inline void pm_region(void) { PM_WORD(".insn i 0x0b, 2, x0, x0, 0"); }

// A transaction begins, ends.
static inline void pm_tx_begin(void) { PM_WORD(".insn i 0x0b, 3, x0, x0, 1"); }
static inline void pm_tx_end(void) { PM_WORD(".insn i 0x0b, 3, x0, x0, 2"); }

// An operation of the workload is done: throughput counts these.
static inline void pm_op(void) { PM_WORD(".insn i 0x0b, 4, x0, x0, 0"); }

// The next store to the line of this address bypasses the caches.
static inline void pm_nt(const volatile void *line) { PM_WORD_AT(".insn i 0x0b, 5, x0, %0, 0", line); }

// Writes the line of this address back; it stays valid (clean) or not (flush).
static inline void pm_clean(const volatile void *line) { PM_WORD_AT(".insn i 0x0f, 2, x0, %0, 1", line); }
static inline void pm_flush(const volatile void *line) { PM_WORD_AT(".insn i 0x0f, 2, x0, %0, 2", line); }

// Writes every line of a range back.
static inline void pm_clean_range(const volatile void *start, unsigned long bytes) {
    unsigned long line = (unsigned long)start & ~63ul, end = (unsigned long)start + bytes;
    for (; line < end; line += 64) pm_clean((const volatile void *)line);
}

// A verb to another server: 32 bytes, read by the hardware after it was posted, as are the bytes that it names. Neither may
// change before an acknowledgement of this verb or of a later one to the same peer.
typedef struct {
    // RDMA_PWRITE: what is written persists, behind all that this thread posted to the peer before.
    unsigned int kind;
    // So many servers on, and round: 1 is the next one.
    unsigned int peer;
    const volatile void *local;
    // Where it goes, from the first byte of this thread's log at the peer; a multiple of 64, as are the bytes.
    unsigned long offset;
    unsigned int bytes;
    // 1 where the peer is to acknowledge it, and so all of this thread before it; else 0.
    unsigned int acknowledged;
} rdma_verb_t;

enum { RDMA_PWRITE = 1 };

// Posts a verb. What this thread stored before is in the bytes that it names.
static inline void rdma_post(const volatile rdma_verb_t *verb) { PM_WORD_AT(".insn i 0x0b, 6, x0, %0, 0", verb); }

// How many verbs of this thread to a peer are acknowledged: up to the last that was.
static inline unsigned long rdma_poll(unsigned long peer) {
#ifdef PM_NONE
    (void)peer;
    return ~0ul;
#else
    unsigned long done;
    __asm__ volatile(".insn i 0x0b, 7, %0, %1, 0" : "=r"(done) : "r"(peer) : "memory");
    return done;
#endif
}
