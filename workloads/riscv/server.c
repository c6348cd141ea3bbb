// The program of a server that has none of its own: it ends at once. Clients persist in the server's memory all the same.
#include "cpu_rt.h"

int main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    return 0;
}
