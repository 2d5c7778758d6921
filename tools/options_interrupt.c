/* tools/options_interrupt.c - an interrupted tool leaves no temporary file behind.
 *
 * The signals are blocked in all threads but one, which waits for them: what it does then is not
 * bound to what a signal handler may do. LLVM aborts the process where memory runs out: that is handed
 * to the same thread and ends in a message and status 1. */
#define _GNU_SOURCE
#include "tools/options.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic(const char *) protected_output;
static volatile sig_atomic_t was_aborted;

/* ts_file_write calls them OUTPUT.tmp.PID.XXXXXX. */
static void remove_temporaries(const char *output) {
    const char *slash = strrchr(output, '/'), *name = slash ? slash + 1 : output;
    char folder[4096], prefix[512];
    int folder_length = snprintf(folder, sizeof folder, "%.*s", (int)(name - output), output);
    int prefix_length = snprintf(prefix, sizeof prefix, "%s.tmp.%ld.", name, (long)getpid());
    if (folder_length >= (int)sizeof folder || prefix_length >= (int)sizeof prefix)
        return;
    DIR *d = opendir(folder[0] ? folder : ".");
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, prefix, (size_t)prefix_length) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

static void make_set(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

static void *wait_for_signals(void *unused) {
    (void)unused;
    sigset_t set;
    int number = 0;
    make_set(&set);
    while (sigwait(&set, &number) != 0) {
    }
    const char *output = atomic_load(&protected_output);
    if (output)
        remove_temporaries(output);
    static const char gave_up[] = "tsc: error: the code generator gave up: out of memory, or what the "
                                  "line before says\n";
    if (was_aborted && write(2, gave_up, sizeof gave_up - 1) < 0)
        _exit(1);
    _exit(was_aborted ? 1 : 128 + number);
}

static void on_abort(int number) {
    (void)number;
    was_aborted = 1;
    kill(getpid(), SIGTERM); /* blocked but for the thread that waits */
    for (;;)
        pause();
}

void interrupts_init(void) {
    sigset_t set;
    pthread_t thread;
    make_set(&set);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return;
    if (pthread_create(&thread, NULL, wait_for_signals, NULL) != 0)
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    else
        pthread_detach(thread);
    struct sigaction action = {.sa_handler = on_abort};
    sigaction(SIGABRT, &action, NULL);
}

void interrupts_protect(const char *output) { atomic_store(&protected_output, output); }
