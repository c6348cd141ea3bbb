// A quantum computer of --qubits, simulated as libquantum of SPEC CPU2006 does: a register is an array of
// basis states of 16 bytes, an amplitude and a label, and a gate is a sweep over all of it. Toffoli, CNOT and X flip a bit of
// the labels, so that they store to a quarter, a half or all of the lines; a controlled phase turns amplitudes.
//
// The circuit adds a to b in superposition over all a and b of --width bits (Cuccaro et al., A new quantum ripple-carry
// addition circuit, 2004), then applies the phases of a Fourier transform to b, --rounds times.
//
//   --qubits 9 --width 2 --rounds 1
//
// Left out: gates that mix basis states (Hadamard, for which libquantum keeps a hash table), decoherence, measurement.
#include "cpu_rt.h"

typedef struct {
    float re, im;
    u64 state;
} node_t;

static u64 nodes, qubits, width, gates;
static node_t *reg;

static void x(u64 target) {
    for (u64 i = 0; i < nodes; i++) reg[i].state ^= 1ul << target;
    gates++;
}

static void cnot(u64 control, u64 target) {
    for (u64 i = 0; i < nodes; i++)
        if (reg[i].state >> control & 1) reg[i].state ^= 1ul << target;
    gates++;
}

static void toffoli(u64 one, u64 other, u64 target) {
    u64 mask = 1ul << one | 1ul << other;
    for (u64 i = 0; i < nodes; i++)
        if ((reg[i].state & mask) == mask) reg[i].state ^= 1ul << target;
    gates++;
}

// Turns amplitudes whose two bits are set by pi / 2^halvings.
static void phase(u64 one, u64 other, u64 halvings) {
    // By half angles, from cos(pi) = -1.
    double cosine = -1, sine = 0;
    for (u64 i = 0; i < halvings; i++) {
        sine = square_root((1 - cosine) / 2);
        cosine = square_root((1 + cosine) / 2);
    }
    u64 mask = 1ul << one | 1ul << other;
    float c = (float)cosine, s = (float)sine;
    for (u64 i = 0; i < nodes; i++)
        if ((reg[i].state & mask) == mask) {
            float re = reg[i].re, im = reg[i].im;
            reg[i].re = re * c - im * s;
            reg[i].im = re * s + im * c;
        }
    gates++;
}

// ---- The adder: bit i of a, of b, and the carry that comes in, which is behind all others

static u64 a(u64 i) { return i; }
static u64 b(u64 i) { return width + i; }
static u64 carry(u64 i) { return i == 0 ? qubits : a(i - 1); }

static void majority(u64 i) {
    cnot(a(i), b(i));
    cnot(a(i), carry(i));
    toffoli(carry(i), b(i), a(i));
}

static void unmajority_and_add(u64 i) {
    toffoli(carry(i), b(i), a(i));
    cnot(a(i), carry(i));
    cnot(carry(i), b(i));
}

static void add(void) {
    for (u64 i = 0; i < width; i++) majority(i);
    for (u64 i = width; i-- > 0;) unmajority_and_add(i);
}

int main(int argc, char **argv) {
    qubits = arg_u64(argc, argv, "--qubits", 9);
    width = arg_u64(argc, argv, "--width", 2);
    u64 rounds = arg_u64(argc, argv, "--rounds", 1);
    check(width >= 1 && 2 * width <= qubits && qubits <= 28, "--width is at least 1, --qubits from twice that to 28");
    nodes = 1ul << qubits;
    reg = alloc(nodes * sizeof *reg);
    // All basis states, the same amplitude each: what Hadamard gates on every qubit leave.
    float even = (float)square_root(1 / (double)nodes);
    for (u64 i = 0; i < nodes; i++) reg[i].re = even, reg[i].state = i;
    // X before and behind, since b is counted down: the complement of (a + the complement of b) is b - a.
    for (u64 round = 0; round < rounds; round++) {
        int down = round % 2;
        for (u64 i = 0; down && i < width; i++) x(b(i));
        add();
        for (u64 i = 0; down && i < width; i++) x(b(i));
        for (u64 i = 0; i < width; i++)
            for (u64 j = 0; j < i; j++) phase(b(i), b(j), i - j);
    }
    // Rounds add and subtract in turn: b + a is left after an odd number of them, b after an even one.
    u64 mask = (1ul << width) - 1, sum = 0;
    double norm = 0, share = 1 / (double)nodes;
    for (u64 i = 0; i < nodes; i++) {
        u64 added = rounds % 2 ? (i >> width) + i : i >> width, right = (i & ~(mask << width)) | (added & mask) << width;
        check(reg[i].state == right, "sum in a basis state");
        double re = reg[i].re, im = reg[i].im, square = re * re + im * im;
        check(square > 0.9999 * share && square < 1.0001 * share, "norm of an amplitude");
        norm += square;
        sum += mix(bits_of(re) ^ reg[i].state, bits_of(im) + i);
    }
    check(norm > 0.9999 && norm < 1.0001, "norm");
    print_value("qsim: ", nodes);
    print_value(" basis states, ", gates);
    print_value(" gates, norm ", (u64)(norm * 1e9));
    print_value(" billionths, sum ", sum);
    print_char('\n');
    return 0;
}
