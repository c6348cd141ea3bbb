// Threads that make system calls as they are told: each argument is a dash and the script of a thread, the first that
// of main.
// Every thread checks what the system tells it. Compiled by workloads/compile_riscv.sh.
//
//   b  the heap's end is where it was left; it grows by a page of zeros
//   m  a mapping of a page of zeros, which keeps what it is filled with
//   u  gives the last mapping back
//   w  writes a line to standard output; e, to standard error
//   r  reads three more letters of the file; l, moves back by one
//   s  gives the next thread a turn; h, waits for a turn
//   t  begins a thread that writes a line, and waits for its end
//   n  sleeps for a while
//   z  stores for ever; x, ends the process
#include "cpu_rt.h"

enum { RT_LSEEK = 62, RT_READ = 63, RT_NANOSLEEP = 101, RT_GETTID = 178, RT_MUNMAP = 215, PAGE = 4096, MOST = 8 };

typedef struct {
    u64 tag;
    u64 maps, written, read, offset, taken;
    i64 file;
    volatile u64 *map[MOST];
} own_t;

static const char *script[8];
static u32 turns[16] __attribute__((aligned(64)));
static own_t own[8] __attribute__((aligned(64)));

static void say(int stream, u64 t, char c) {
    char text[4] = {(char)('A' + t), c, '\n', 0};
    check(rt_call(RT_WRITE, stream, (i64)text, 3, 0, 0, 0) == 3, "write");
}

static void grow(void) {
    lock(&rt_heap_lock);
    u64 end = rt_heap_end;
    check((u64)rt_call(RT_BRK, 0, 0, 0, 0, 0, 0) == end, "the heap's end moved by itself");
    check((u64)rt_call(RT_BRK, (i64)(end + PAGE), 0, 0, 0, 0, 0) == end + PAGE, "brk");
    volatile u64 *page = (u64 *)((end + 7) & ~7ul);
    check(page[0] == 0 && page[100] == 0, "the heap grows by zeros");
    page[100] = end;
    check((u64)rt_call(RT_BRK, 0, 0, 0, 0, 0, 0) == end + PAGE, "the heap's end behind brk");
    check(page[100] == end, "the heap keeps its bytes");
    page[100] = 0;
    rt_heap_end = end + PAGE;
    unlock(&rt_heap_lock);
}

static void keep(own_t *of) {
    for (u64 i = 0; i < of->maps; i++)
        check(of->map[i][0] == of->tag + i && of->map[i][511] == of->tag + i, "mappings keep their bytes");
}

static void map(own_t *of) {
    if (of->maps == MOST) return;
    volatile u64 *page = (u64 *)rt_call(RT_MMAP, 0, PAGE, 3, 0x22, -1, 0);
    check((i64)page > 0 && page[0] == 0 && page[511] == 0, "a mapping is zeros");
    page[0] = page[511] = of->tag + of->maps;
    of->map[of->maps++] = page;
    keep(of);
}

static void unmap(own_t *of) {
    if (of->maps == 0) return;
    check(rt_call(RT_MUNMAP, (i64)of->map[--of->maps], PAGE, 0, 0, 0, 0) == 0, "munmap");
    keep(of);
}

static void read_letters(own_t *of) {
    char letters[3] = {0, 0, 0};
    if (!of->file) of->file = rt_call(RT_OPENAT, -100, (i64) "letters.txt", 0, 0, 0, 0);
    check(of->file > 2, "open");
    check(rt_call(RT_READ, of->file, (i64)letters, 3, 0, 0, 0) == 3, "read");
    for (u64 i = 0; i < 3; i++) check(letters[i] == (char)('a' + (of->offset + i) % 26), "the letters that follow");
    of->offset += 3;
}

static void back(own_t *of) {
    if (of->offset == 0) return;
    of->offset--;
    check(rt_call(RT_LSEEK, of->file, -1, 1, 0, 0, 0) == (i64)of->offset, "lseek");
}

static void turn(u64 t) {
    __atomic_add_fetch(&turns[t + 1], 1, __ATOMIC_RELEASE);
    rt_call(RT_FUTEX, (i64)&turns[t + 1], 1, 1, 0, 0, 0);
}

static void await(u64 t) {
    u32 have;
    while ((have = __atomic_load_n(&turns[t], __ATOMIC_ACQUIRE)) <= own[t].taken)
        rt_call(RT_FUTEX, (i64)&turns[t], 0, have, 0, 0, 0);
    own[t].taken++;
}

static void child(u64 t) { say(1, t, '+'); }

static void work(u64 t) {
    own_t *of = &own[t];
    of->tag = (t + 1) << 32;
    i64 number = rt_call(RT_GETTID, 0, 0, 0, 0, 0, 0);
    u64 time[2] = {0, 300};
    for (const char *op = script[t]; *op; op++) {
        switch (*op) {
            case 'b': grow(); break;
            case 'm': map(of); break;
            case 'u': unmap(of); break;
            case 'w': say(1, t, (char)('a' + of->written++)); break;
            case 'e': say(2, t, (char)('a' + of->written++)); break;
            case 'r': read_letters(of); break;
            case 'l': back(of); break;
            case 's': turn(t); break;
            case 'h': await(t); break;
            case 't': {
                thread_t other;
                thread_start(&other, child, t);
                thread_join(&other);
                break;
            }
            case 'n': rt_call(RT_NANOSLEEP, (i64)time, 0, 0, 0, 0, 0); break;
            case 'z':
                for (volatile u64 i = 0;; i++) {}
            case 'x': rt_exit(0); break;
            default: check(0, "an operation that there is not");
        }
        check(rt_call(RT_GETTID, 0, 0, 0, 0, 0, 0) == number, "a thread keeps its number");
    }
    keep(of);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) script[i - 1] = argv[i] + 1;
    threads_run((u32)argc - 1, work);
    return 0;
}
