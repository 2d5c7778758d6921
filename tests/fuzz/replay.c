/* tests/fuzz/replay.c - runs a fuzz target over files, as they are and changed, without libFuzzer.
 *
 *     replay [--changes N] FILE...
 *
 * Each file is given to the target once as it is and N times with a few bytes changed, cut off or
 * doubled; the changes follow from the file's bytes, so every run makes the same ones. An input that
 * crashes or takes more than 10 seconds of the processor ends the process with a line that names it,
 * and lies in fuzz.input then. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 20, HANG_SECONDS = 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char at[512]; /* what runs now, for the handler */
static const uint8_t *input;
static size_t input_bytes;

static void tell(int signal) {
    static const char hangs[] = " hangs; the input is in fuzz.input\n", crashes[] = " crashes; the input is in fuzz.input\n";
    const char *what = signal == SIGPROF ? hangs : crashes;
    ssize_t ignored = write(2, at, strlen(at));
    ignored += write(2, what, strlen(what));
    int file = open("fuzz.input", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0)
        ignored += write(file, input, input_bytes);
    _exit(ignored < 0 ? 2 : 1);
}

static uint64_t next(uint64_t *state) { /* xorshift64* */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

static size_t below(uint64_t *state, size_t n) { return n ? (size_t)(next(state) % n) : 0; }

/* One change of bytes[*size]; there is room for MAX_BYTES. */
static void change(uint8_t *bytes, size_t *size, uint64_t *state) {
    static const int64_t numbers[] = {0,         1,         -1,        127,       128,       255,       256,
                                      INT16_MAX, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1ll << 40, 1ll << 20};
    size_t where = below(state, *size), count = 1 + below(state, 1 + below(state, 64));
    if (!*size)
        return;
    switch (below(state, 7)) {
    case 0: bytes[where] ^= (uint8_t)(1u << below(state, 8)); break;
    case 1: bytes[where] = (uint8_t)next(state); break;
    case 2: { /* a number of 1 to 8 bytes */
        int64_t number = numbers[below(state, sizeof numbers / sizeof *numbers)];
        size_t width = (size_t)1 << below(state, 4);
        memcpy(bytes + where, &number, width < *size - where ? width : *size - where);
        break;
    }
    case 3: *size = where; break;
    case 4: /* a piece is left out */
        count = count < *size - where ? count : *size - where;
        memmove(bytes + where, bytes + where + count, *size - where - count);
        *size -= count;
        break;
    case 5: /* a piece stands twice */
        count = count < *size - where ? count : *size - where;
        if (*size + count > MAX_BYTES)
            break;
        memmove(bytes + where + count, bytes + where, *size - where);
        *size += count;
        break;
    default: { /* a piece of elsewhere */
        size_t from = below(state, *size), most = from > where ? *size - from : *size - where;
        memmove(bytes + where, bytes + from, count < most ? count : most);
        break;
    }
    }
}

static void run(const uint8_t *bytes, size_t size) {
    uint8_t *exact = malloc(size ? size : 1); /* what reads past the end is seen by tools */
    if (!exact)
        exit(2);
    memcpy(exact, bytes, size);
    input = exact;
    input_bytes = size;
    struct itimerval limit = {.it_value.tv_sec = HANG_SECONDS}, none = {0};
    setitimer(ITIMER_PROF, &limit, NULL);
    LLVMFuzzerTestOneInput(exact, size);
    setitimer(ITIMER_PROF, &none, NULL);
    free(exact);
}

static void replay(const char *path, unsigned long changes) {
    static uint8_t original[MAX_BYTES], bytes[MAX_BYTES];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(2);
    }
    size_t length = fread(original, 1, sizeof original, file);
    fclose(file);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < length; i++)
        state = (state ^ original[i]) * 1099511628211u;
    state |= 1;
    for (unsigned long i = 0; i <= changes; i++) {
        size_t size = length;
        snprintf(at, sizeof at, "%s, change %lu:", path, i);
        memcpy(bytes, original, length);
        for (size_t k = i ? 1 + below(&state, 4) : 0; k > 0; k--)
            change(bytes, &size, &state);
        run(bytes, size);
    }
}

int main(int argc, char **argv) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF};
    unsigned long changes = 0;
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--changes") == 0) {
        changes = strtoul(argv[2], NULL, 10);
        first = 3;
    }
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], tell);
    for (int i = first; i < argc; i++)
        replay(argv[i], changes);
    printf("%d files, %lu changes of each\n", argc - first, changes);
    return argc > first ? 0 : 2;
}
