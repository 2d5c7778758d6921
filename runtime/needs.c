/* runtime/needs.c - what the inputs of an entry must satisfy, checked before it runs. The compiler
 * found it (passes/infer_needs.c): what fails here would have failed in the program, in other
 * words. */
#include "runtime/runtime_internal.h"

/* The tensor of an input; NULL where it is none: its type says what else it may be. */
static const rt_tensor *tensor_of(const rt_value *inputs, uint32_t input) {
    return inputs[input].tag == RT_TAG_TENSOR ? inputs[input].as.tensor : NULL;
}

/* False where there is no such dim. */
static bool find_size(const rt_tensor *t, int dim, int64_t *out) {
    int at = dim < 0 ? dim + t->rank : dim;
    if (at < 0 || at >= t->rank)
        return false;
    *out = t->sizes[at];
    return true;
}

static bool sizes_hold(const rt_need *need, const rt_tensor *x, const rt_tensor *y) {
    int64_t size, other = 0;
    if (!find_size(x, need->dim, &size))
        return true;
    if (need->kind == TSM_NEED_SIZE)
        return size == need->value;
    if (need->kind == TSM_NEED_MULTIPLE)
        return size % need->value == 0;
    return !y || !find_size(y, need->other_dim, &other) || size == other;
}

static bool holds(const rt_need *need, const rt_value *inputs) {
    const rt_tensor *x = tensor_of(inputs, need->input);
    if (!x || x->rank >= TSM_NEED_RANKS)
        return true;
    if (need->kind == TSM_NEED_DTYPE)
        return need->value >> x->dtype & 1;
    if (need->kind == TSM_NEED_RANK)
        return need->value >> x->rank & 1;
    return sizes_hold(need, x, tensor_of(inputs, need->other));
}

/* The first kind of which nothing is said. Of any, where a size is zero: products of sizes are
 * equal then, and some operators do not look at an empty tensor. Of sizes, where any input has a
 * rank beyond what the compiler looked at. */
static tsm_need_kind first_open(const rt_entry *e, const rt_value *inputs) {
    tsm_need_kind open = TSM_NEED_COUNT;
    for (size_t i = 0; i < e->port_count; i++) {
        const rt_tensor *t = tensor_of(inputs, (uint32_t)i);
        if (t && t->rank >= TSM_NEED_SIZED_RANKS)
            open = TSM_NEED_SIZE;
        for (int d = 0; t && d < t->rank; d++)
            if (t->sizes[d] == 0)
                return TSM_NEED_DTYPE;
    }
    return open;
}

/* Line `at` of a text. */
static ts_str line_of(ts_str text, size_t at) {
    size_t from = 0, to;
    for (; at && from < text.length; from++)
        at -= text.data[from] == '\n';
    for (to = from; to < text.length && text.data[to] != '\n'; to++)
        ;
    return (ts_str){text.data + from, to - from};
}

static ts_status broken(const rt_entry *e, size_t at, const rt_value *inputs) {
    const rt_need *need = &e->needs[at];
    ts_str line = line_of(e->need_text, at), name = e->ports[need->input].name;
    char found[RT_DESCRIPTION], other[RT_DESCRIPTION];
    rt_describe(inputs[need->input], found, sizeof found);
    if (need->kind != TSM_NEED_SAME || need->other == need->input)
        return ts_invalid_input(ts_raise("RuntimeError", "input %.*s: expected %.*s, found %s",
                                         TS_STR_ARG(name), TS_STR_ARG(line), found));
    rt_describe(inputs[need->other], other, sizeof other);
    return ts_invalid_input(ts_raise("RuntimeError",
                                     "inputs %.*s and %.*s: expected %.*s, found %s and %s", TS_STR_ARG(name),
                                     TS_STR_ARG(e->ports[need->other].name), TS_STR_ARG(line), found, other));
}

ts_status rt_check_needs(const rt_entry *e, const rt_value *inputs) {
    tsm_need_kind open = e->need_count ? first_open(e, inputs) : TSM_NEED_DTYPE;
    for (size_t i = 0; i < e->need_count; i++)
        if (e->needs[i].kind < open && !holds(&e->needs[i], inputs))
            return broken(e, i, inputs);
    return NULL;
}
