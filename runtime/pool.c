/* runtime/pool.c - memory of results, kept for the next run: after the first runs of a size the
 * system is asked for nothing more. Blocks go to free lists by size class (four to a power of
 * two). What is large takes the smallest free block that holds it, up to eight times as large: images
 * that get smaller from layer to layer then lie where the larger ones were, in memory that caches
 * hold, and a session keeps about what is alive at once. A storage may outlive the session: it keeps
 * the pool alive. */
#include "runtime/runtime_internal.h"

#include <stdlib.h>

#include "runtime/base/memory.h"

enum { CLASS_COUNT = 4 * 44, BLOCK_ALIGN = 64, LARGE_CLASS = 4 * 9 /* 32 KB */, MORE_CLASSES = 4 * 3 };

typedef struct block { /* BLOCK_ALIGN bytes before the memory that is given out */
    struct block *next; /* while it is free */
    int size_class;
    uint64_t freed; /* when: a count of the pool's */
} block;

struct rt_pool {
    rt_account account; /* first: what kernels allocate themselves counts here */
    atomic_size_t references;
    pthread_mutex_t lock;
    block *free_lists[CLASS_COUNT];
    uint64_t held, peak, allocations, limit, freed;
};

static size_t class_bytes(int c) {
    size_t base = (size_t)64 << (c / 4);
    return base + base / 4 * (size_t)(c % 4);
}

static int size_class(size_t bytes) {
    int c = 0;
    if (bytes > 64) {
        int log = 63 - __builtin_clzll((unsigned long long)bytes);
        c = (log - 6) * 4;
    }
    while (c < CLASS_COUNT && class_bytes(c) < bytes)
        c++;
    return c;
}

/* Counts the bytes as held; false where that is over the limit. */
static bool hold(rt_pool *pool, uint64_t bytes) {
    if (pool->limit && (bytes > pool->limit || pool->held > pool->limit - bytes))
        return false;
    pool->held += bytes;
    if (pool->held > pool->peak)
        pool->peak = pool->held;
    return true;
}

static ts_status over_limit(const rt_pool *pool) {
    return ts_error_make(TS_ERR_NO_MEMORY, "the session's memory limit of %llu bytes is met",
                         (unsigned long long)pool->limit);
}

static ts_status take(rt_account *account, size_t bytes) {
    rt_pool *pool = (rt_pool *)account;
    pthread_mutex_lock(&pool->lock);
    bool ok = hold(pool, bytes);
    pthread_mutex_unlock(&pool->lock);
    if (!ok)
        return over_limit(pool);
    atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
    return NULL;
}

static void give(rt_account *account, size_t bytes) {
    rt_pool *pool = (rt_pool *)account;
    pthread_mutex_lock(&pool->lock);
    pool->held -= bytes;
    pthread_mutex_unlock(&pool->lock);
    rt_pool_release(pool);
}

rt_account *rt_pool_account(rt_pool *pool) { return &pool->account; }

ts_status rt_pool_make(rt_pool **out) {
    rt_pool *pool = calloc(1, sizeof *pool);
    *out = pool;
    if (!pool)
        return ts_no_memory();
    pool->account = (rt_account){take, give};
    atomic_init(&pool->references, 1);
    pthread_mutex_init(&pool->lock, NULL);
    return NULL;
}

void rt_pool_release(rt_pool *pool) {
    if (!pool ||
        atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) != 1)
        return;
    for (int c = 0; c < CLASS_COUNT; c++)
        while (pool->free_lists[c]) {
            block *b = pool->free_lists[c];
            pool->free_lists[c] = b->next;
            free(b);
        }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void rt_pool_set_limit(rt_pool *pool, uint64_t bytes) { pool->limit = bytes; }

uint64_t rt_pool_limit(const rt_pool *pool) { return pool->limit; }

/* The free block for class c that was freed last, taken out of its list; NULL: there is none. */
static block *take_free(rt_pool *pool, int c) {
    int last = c < LARGE_CLASS ? c : c + MORE_CLASSES;
    block *best = NULL;
    for (; c <= last && c < CLASS_COUNT; c++) {
        block *b = pool->free_lists[c];
        if (b && (!best || b->freed > best->freed))
            best = b;
    }
    if (best)
        pool->free_lists[best->size_class] = best->next;
    return best;
}

static void give_back(rt_storage *storage) {
    rt_pool *pool = storage->owner;
    block *b = (block *)((char *)storage->data - BLOCK_ALIGN);
    pthread_mutex_lock(&pool->lock);
    pool->held -= class_bytes(size_class(storage->bytes));
    b->freed = ++pool->freed;
    b->next = pool->free_lists[b->size_class];
    pool->free_lists[b->size_class] = b;
    pthread_mutex_unlock(&pool->lock);
    rt_pool_release(pool);
}

ts_status rt_pool_storage(rt_pool *pool, size_t bytes, rt_storage **out) {
    *out = NULL;
    int c = size_class(bytes);
    if (c >= CLASS_COUNT)
        return ts_no_memory();
    size_t room = class_bytes(c);
    pthread_mutex_lock(&pool->lock);
    bool over = !hold(pool, room);
    block *b = over ? NULL : take_free(pool, c);
    if (!b)
        pool->allocations += !over;
    pthread_mutex_unlock(&pool->lock);
    if (over)
        return over_limit(pool);
    if (!b) {
        b = ts_memory_make(room + BLOCK_ALIGN);
        if (b)
            b->size_class = c;
    }
    ts_status status = b ? rt_storage_wrap((char *)b + BLOCK_ALIGN, bytes, give_back, pool, out)
                         : ts_no_memory();
    if (status) {
        pthread_mutex_lock(&pool->lock);
        pool->held -= room;
        pthread_mutex_unlock(&pool->lock);
        free(b);
        return status;
    }
    atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
    return NULL;
}

void rt_pool_statistics(rt_pool *pool, uint64_t *out_held, uint64_t *out_peak,
                        uint64_t *out_allocations) {
    pthread_mutex_lock(&pool->lock);
    *out_held = pool->held;
    *out_peak = pool->peak;
    *out_allocations = pool->allocations;
    pthread_mutex_unlock(&pool->lock);
}
