/* runtime/cycles.c - constants that hold each other, when their session ends.
 *
 * Counting references alone would keep an object for ever that holds itself, on whatever way. The
 * session's own lists, dicts, tuples and objects are known, so: who is held by others than these, and
 * what those reach, stays (a result may hold it); all others let go of what they hold. */
#include "runtime/runtime_internal.h"

#include <stdlib.h>

typedef struct row {
    rt_value value;
    int64_t outside; /* references that are not from other rows, nor the session's own */
    bool stays;
} row;

static bool is_container(rt_value v) {
    return v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE || v.tag == RT_TAG_DICT ||
           v.tag == RT_TAG_OBJECT;
}

static int by_address(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const row *)a)->value.as.counted;
    uintptr_t y = (uintptr_t)((const row *)b)->value.as.counted;
    return x < y ? -1 : x > y;
}

static row *find(row *rows, size_t count, rt_value v) {
    row wanted = {.value = v};
    return is_container(v) ? bsearch(&wanted, rows, count, sizeof wanted, by_address) : NULL;
}

/* Calls visit for each row that v holds. */
static void for_held(row *rows, size_t count, rt_value v, void (*visit)(row *held, void *user),
                     void *user) {
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
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at)) != NULL;)
            for (int side = 0; side < 2; side++) {
                row *held = find(rows, count, side ? e->value : e->key);
                if (held)
                    visit(held, user);
            }
        return;
    }
    default: return;
    }
    for (size_t i = 0; i < n; i++) {
        row *held = find(rows, count, items[i]);
        if (held)
            visit(held, user);
    }
}

static void is_held(row *held, void *user) {
    (void)user;
    held->outside--;
}

typedef struct stack {
    row **items;
    size_t count;
} stack;

static void reach(row *held, void *user) {
    stack *s = user;
    if (held->stays)
        return;
    held->stays = true;
    s->items[s->count++] = held;
}

static void let_go(rt_value v) {
    if (v.tag == RT_TAG_LIST)
        rt_list_clear(v.as.list);
    else if (v.tag == RT_TAG_DICT)
        rt_dict_clear(v.as.dict);
    for (size_t i = 0; v.tag == RT_TAG_OBJECT && i < v.as.object->field_count; i++)
        rt_assign(&v.as.object->fields[i], rt_none());
}

void rt_release_cycles(rt_value *nodes, size_t node_count) {
    row *rows = calloc(node_count + 1, sizeof *rows);
    stack s = {.items = calloc(node_count + 1, sizeof *s.items)};
    size_t count = 0;
    for (size_t i = 0; rows && i < node_count; i++)
        if (is_container(nodes[i])) {
            int64_t references = atomic_load(&nodes[i].as.counted->references);
            rows[count++] = (row){.value = nodes[i], .outside = references - 1};
        }
    if (rows && s.items) {
        qsort(rows, count, sizeof *rows, by_address);
        for (size_t i = 0; i < count; i++)
            for_held(rows, count, rows[i].value, is_held, NULL);
        for (size_t i = 0; i < count; i++)
            if (rows[i].outside > 0)
                reach(&rows[i], &s);
        while (s.count) {
            row *r = s.items[--s.count];
            for_held(rows, count, r->value, reach, &s);
        }
        for (size_t i = 0; i < count; i++)
            if (!rows[i].stays)
                let_go(rows[i].value);
    }
    free(rows);
    free(s.items);
    for (size_t i = 0; i < node_count; i++)
        rt_release(nodes[i]);
    free(nodes);
}
