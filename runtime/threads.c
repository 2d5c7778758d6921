/* runtime/threads.c - the process's thread pool, made at first use: the one piece of state that
 * is not a session's. Each worker has a mailbox of its own, spins on it briefly after work (a
 * model's next kernel comes within microseconds) and then parks.
 *
 * The partition is the caller's and static, so results never depend on who ran what. When another
 * session uses the pool, a caller simply does all parts itself. */
#define _GNU_SOURCE
#include "runtime/runtime_internal.h"

#include <sched.h>
#include <stdlib.h>

enum { WORKERS_MAX = 255, SPIN_ROUNDS = 4000 /* about 20 to 40 us */ };

typedef struct job {
    void (*part)(void *user, int index);
    void *user;
    atomic_int pending;
} job;

typedef struct worker {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Atomic(job *) mail;
    atomic_bool is_parked;
    int index; /* of its part */
} worker;

static struct {
    pthread_mutex_t busy; /* one job at a time */
    worker *workers[WORKERS_MAX];
    int count;
    bool has_fork_handler;
} pool = {.busy = PTHREAD_MUTEX_INITIALIZER};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void *work(void *argument) {
    worker *w = argument;
    for (;;) {
        job *j = NULL;
        for (int i = 0; i < SPIN_ROUNDS && !j; i++) {
            j = atomic_load_explicit(&w->mail, memory_order_acquire);
            if (!j)
                relax();
        }
        if (!j) {
            pthread_mutex_lock(&w->lock);
            atomic_store(&w->is_parked, true);
            while (!(j = atomic_load(&w->mail)))
                pthread_cond_wait(&w->wake, &w->lock);
            atomic_store(&w->is_parked, false);
            pthread_mutex_unlock(&w->lock);
        }
        atomic_store_explicit(&w->mail, NULL, memory_order_relaxed);
        j->part(j->user, w->index);
        atomic_fetch_sub_explicit(&j->pending, 1, memory_order_release);
    }
    return NULL;
}

/* A child has no threads but the one that forked; its pool starts anew. */
static void after_fork(void) {
    pool.count = 0;
    pthread_mutex_init(&pool.busy, NULL);
}

static bool add_worker(void) {
    worker *w = calloc(1, sizeof *w);
    if (!w)
        return false;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    w->index = pool.count + 1;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, (size_t)512 << 10);
    pthread_t thread;
    bool made = pthread_create(&thread, &attributes, work, w) == 0;
    pthread_attr_destroy(&attributes);
    if (!made) {
        free(w);
        return false;
    }
    pool.workers[pool.count++] = w;
    return true;
}

static void send(worker *w, job *j) {
    atomic_store(&w->mail, j);
    if (atomic_load(&w->is_parked)) {
        pthread_mutex_lock(&w->lock);
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
    }
}

void rt_parallel(int count, void (*part)(void *user, int index), void *user) {
    int helpers = 0;
    if (count > 1 && pthread_mutex_trylock(&pool.busy) == 0) {
        if (!pool.has_fork_handler)
            pool.has_fork_handler = pthread_atfork(NULL, NULL, after_fork) == 0;
        helpers = count - 1 < WORKERS_MAX ? count - 1 : WORKERS_MAX;
        while (pool.count < helpers && add_worker())
            continue;
        if (helpers > pool.count)
            helpers = pool.count;
        job j = {part, user, helpers};
        for (int i = 0; i < helpers; i++)
            send(pool.workers[i], &j);
        part(user, 0);
        for (int i = helpers + 1; i < count; i++)
            part(user, i);
        for (int i = 0; atomic_load_explicit(&j.pending, memory_order_acquire) > 0; i++) {
            if (i < SPIN_ROUNDS)
                relax();
            else
                sched_yield();
        }
        pthread_mutex_unlock(&pool.busy);
        return;
    }
    for (int i = 0; i < count; i++)
        part(user, i);
}
