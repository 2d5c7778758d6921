/* runtime/cycles.c - lists, dicts and objects that hold each other.
 *
 * Counting references alone would keep for ever what holds itself, on whatever way. So the compiler
 * says where a store may close such a circle (ir/cycles.c), and the session notes the container
 * that was written to. A search from these visits all that they hold and counts how often: a
 * container with more references than that is held from elsewhere (by the running program, the
 * session's own objects, a caller) and stays, with all that it reaches; all others let go of what
 * they hold. (Trial deletion, as in Bacon and Rajan, "Concurrent cycle collection in reference
 * counted systems", 2001, section 3, with a table of its own instead of colours in the values: these
 * may be shared with other threads.)
 *
 * A search runs at the end of a run that noted anything, and in the middle where much was noted or
 * much memory is held; never in programs without such stores. What the caller gets then is noted no
 * more: the handle of the result searches when it is released. */
#include "runtime/runtime_internal.h"

#include <stdlib.h>

enum {
    FLAG_NOTED = 1,         /* of rt_counted: a session's list holds it */
    HAND_STEPS = 2,         /* entries looked at for each one added: so at most half are dead */
    MEMORY_EVERY = 8,       /* additions until the pool is asked again */
    COUNT_LIMIT = 1024,     /* entries before a search in the middle of a run */
    MEMORY_LIMIT = 64 << 20 /* bytes of tensors, likewise */
};

typedef struct row {
    rt_value value;
    int64_t outside; /* references that are not from other rows, nor the caller's own */
    bool stays;
} row;

typedef struct table { /* rows in the order in which they were reached */
    row *rows;
    size_t count, capacity;
    uint32_t *index; /* open addressing by address: 0 empty, else position + 1 */
    size_t index_capacity;
    size_t *stack; /* positions of rows that stay, whose contents do not yet: depth without recursion */
    size_t depth;
    bool failed; /* memory ran out: nothing is known */
} table;

static bool is_container(rt_value v) {
    return v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE || v.tag == RT_TAG_DICT ||
           v.tag == RT_TAG_OBJECT;
}

static int64_t references(rt_value v) {
    return atomic_load_explicit(&v.as.counted->references, memory_order_acquire);
}

static void table_free(table *t) {
    free(t->rows);
    free(t->index);
    free(t->stack);
}

/* The place in the index where a value stands, or is to stand. */
static uint32_t *index_of(table *t, rt_value v) {
    size_t mask = t->index_capacity - 1;
    size_t at = (size_t)((uint64_t)(uintptr_t)v.as.counted * 0x9e3779b97f4a7c15u >> 20) & mask;
    while (t->index[at] && t->rows[t->index[at] - 1].value.as.counted != v.as.counted)
        at = (at + 1) & mask;
    return &t->index[at];
}

static bool grow(table *t) {
    size_t capacity = t->capacity ? t->capacity * 2 : 64;
    row *rows = capacity > UINT32_MAX / 2 ? NULL : realloc(t->rows, capacity * sizeof *rows);
    if (rows)
        t->rows = rows;
    uint32_t *index = rows ? calloc(capacity * 2, sizeof *index) : NULL;
    if (!index)
        return false;
    free(t->index);
    t->index = index;
    t->index_capacity = capacity * 2;
    t->capacity = capacity;
    for (size_t i = 0; i < t->count; i++)
        *index_of(t, t->rows[i].value) = (uint32_t)(i + 1);
    return true;
}

static row *find(table *t, rt_value v) {
    uint32_t at = t->count && is_container(v) ? *index_of(t, v) : 0;
    return at ? &t->rows[at - 1] : NULL;
}

/* The row of a container, a new one at first. */
static row *enter(table *t, rt_value v) {
    if (t->count == t->capacity && !grow(t)) {
        t->failed = true;
        return NULL;
    }
    uint32_t *at = index_of(t, v);
    if (!*at) {
        t->rows[t->count] = (row){.value = v, .outside = references(v)};
        *at = (uint32_t)++t->count;
    }
    return &t->rows[*at - 1];
}

/* Calls visit for each container that v holds. */
static void for_held(table *t, rt_value v, void (*visit)(table *t, rt_value held)) {
    const rt_value *items = NULL;
    size_t n = 0;
    switch (v.tag) {
    case RT_TAG_LIST:
        items = v.as.list->items;
        n = v.as.list->count;
        break;
    case RT_TAG_TUPLE:
        items = v.as.tuple->items;
        n = v.as.tuple->count;
        break;
    case RT_TAG_OBJECT:
        items = v.as.object->fields;
        n = v.as.object->field_count;
        break;
    case RT_TAG_DICT: {
        rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at)) != NULL;) {
            if (is_container(e->key))
                visit(t, e->key);
            if (is_container(e->value))
                visit(t, e->value);
        }
        return;
    }
    default: return;
    }
    for (size_t i = 0; i < n; i++)
        if (is_container(items[i]))
            visit(t, items[i]);
}

static void is_held(table *t, rt_value held) {
    row *r = enter(t, held);
    if (r)
        r->outside--;
}

static void enter_held(table *t, rt_value held) { (void)enter(t, held); }

/* Everything that the rows reach becomes a row. */
static void reach_all(table *t, void (*visit)(table *t, rt_value held)) {
    for (size_t i = 0; i < t->count && !t->failed; i++)
        for_held(t, t->rows[i].value, visit);
}

static void enter_own(table *t, const rt_value *values, size_t count) {
    for (size_t i = 0; i < count && !t->failed; i++)
        if (is_container(values[i]))
            is_held(t, values[i]); /* the reference is the caller's own */
}

static void stay(table *t, rt_value held) {
    row *r = find(t, held);
    if (!r || r->stays)
        return;
    r->stays = true;
    t->stack[t->depth++] = (size_t)(r - t->rows);
}

static void let_go(rt_value v) {
    if (v.tag == RT_TAG_LIST)
        rt_list_clear(v.as.list);
    else if (v.tag == RT_TAG_DICT)
        rt_dict_clear(v.as.dict);
    for (size_t i = 0; v.tag == RT_TAG_OBJECT && i < v.as.object->field_count; i++)
        rt_assign(&v.as.object->fields[i], rt_none());
}

/* What is not held from elsewhere, but for the references in the two arrays, is emptied. */
static void empty_unheld(const rt_value *first, size_t first_count, const rt_value *second,
                         size_t second_count) {
    table t = {0};
    enter_own(&t, first, first_count);
    enter_own(&t, second, second_count);
    reach_all(&t, is_held);
    t.stack = t.failed ? NULL : malloc((t.count + 1) * sizeof *t.stack);
    if (t.stack) {
        for (size_t i = 0; i < t.count; i++)
            if (t.rows[i].outside > 0)
                stay(&t, t.rows[i].value);
        while (t.depth)
            for_held(&t, t.rows[t.stack[--t.depth]].value, stay);
        for (size_t i = 0; i < t.count; i++) /* rows outlive each other's end */
            if (!t.rows[i].stays)
                rt_retain(t.rows[i].value);
        for (size_t i = 0; i < t.count; i++)
            if (!t.rows[i].stays)
                let_go(t.rows[i].value);
        for (size_t i = 0; i < t.count; i++)
            if (!t.rows[i].stays)
                rt_release(t.rows[i].value);
    }
    table_free(&t);
}

void rt_cycles_release_value(rt_value v) {
    if (is_container(v))
        empty_unheld(&v, 1, NULL, 0);
    rt_release(v);
}

/* ---- what a session noted ---- */

static void forget(rt_cycles *c, size_t i) {
    rt_value v = c->items[i];
    c->items[i] = c->items[--c->count];
    v.as.counted->flags &= ~(uint32_t)FLAG_NOTED;
    rt_release(v);
}

/* Entries that nobody else holds go. */
static void sweep(rt_cycles *c) {
    for (size_t i = c->count; i-- > 0;)
        if (references(c->items[i]) == 1)
            forget(c, i);
}

static void collect(rt_cycles *c) {
    sweep(c);
    empty_unheld(c->items, c->count, NULL, 0);
    sweep(c);
}

static void collect_within_run(tsrt_session *s) {
    rt_cycles *c = &s->cycles;
    uint64_t held = 0, peak, allocations;
    if (++c->additions % MEMORY_EVERY == 0)
        rt_pool_statistics(s->pool, &held, &peak, &allocations);
    if (c->count < c->count_limit && held < c->memory_limit)
        return;
    collect(c);
    rt_pool_statistics(s->pool, &held, &peak, &allocations);
    c->count_limit = c->count < COUNT_LIMIT / 2 ? COUNT_LIMIT : 2 * c->count;
    c->memory_limit = held < MEMORY_LIMIT / 2 ? MEMORY_LIMIT : 2 * held;
    uint64_t most = rt_pool_limit(s->pool);
    if (most > held && c->memory_limit > held + (most - held) / 2)
        c->memory_limit = held + (most - held) / 2;
}

void rt_cycles_note(tsrt_session *s, rt_value v) {
    rt_cycles *c = &s->cycles;
    if (!is_container(v))
        return;
    c->is_due = true;
    if (v.as.counted->flags & FLAG_NOTED)
        return;
    for (int i = 0; i < HAND_STEPS && c->count; i++) {
        c->hand = c->hand + 1 < c->count ? c->hand + 1 : 0;
        if (references(c->items[c->hand]) == 1)
            forget(c, c->hand);
    }
    collect_within_run(s);
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? c->capacity * 2 : 16;
        rt_value *items = realloc(c->items, capacity * sizeof *items);
        if (!items)
            return; /* it is kept for ever at the worst */
        c->items = items;
        c->capacity = capacity;
    }
    v.as.counted->flags |= FLAG_NOTED;
    c->items[c->count++] = rt_retain(v);
}

/* Whether a value reaches a row of the table. */
static bool reaches(table *t, rt_value v) {
    table from = {0};
    if (!is_container(v) || !enter(&from, v))
        return false;
    reach_all(&from, enter_held);
    bool found = from.failed;
    for (size_t i = 0; i < from.count && !found; i++)
        found = find(t, from.rows[i].value) != NULL;
    table_free(&from);
    return found;
}

/* What is left after a search is held by the session's own objects, by the caller, or by both. The
 * caller's is noted no more; what both hold stays the session's affair. True: some went to the caller. */
static bool hand_over(tsrt_session *s, tsrt_value *const *args, size_t arg_count, rt_value result) {
    rt_cycles *c = &s->cycles;
    table own = {0};
    for (size_t i = 0; i < s->model->program.node_count; i++)
        if (is_container(s->nodes[i]))
            (void)enter(&own, s->nodes[i]);
    reach_all(&own, enter_held);
    bool is_shared = own.failed || reaches(&own, result), was_given = false;
    for (size_t i = 0; i < arg_count && !is_shared; i++)
        is_shared = args[i] && reaches(&own, args[i]->value);
    for (size_t i = c->count; i-- > 0 && !is_shared;)
        if (!find(&own, c->items[i])) {
            forget(c, i);
            was_given = true;
        }
    table_free(&own);
    return was_given;
}

bool rt_cycles_end_run(tsrt_session *s, tsrt_value *const *args, size_t arg_count,
                       rt_value result) {
    rt_cycles *c = &s->cycles;
    if (!c->is_due)
        return false;
    c->is_due = false;
    collect(c);
    if (!c->count || !hand_over(s, args, arg_count, result))
        return false;
    for (size_t i = 0; i < arg_count; i++)
        if (args[i] && is_container(args[i]->value))
            atomic_store_explicit(&args[i]->may_cycle, true, memory_order_relaxed);
    return is_container(result);
}

void rt_cycles_close(rt_cycles *c, rt_value *nodes, size_t node_count) {
    empty_unheld(nodes, nodes ? node_count : 0, c->items, c->count);
    while (c->count)
        forget(c, c->count - 1);
    free(c->items);
    for (size_t i = 0; nodes && i < node_count; i++)
        rt_release(nodes[i]);
    free(nodes);
}
