/* tools/compile_check.c - --check-each: the program is run with the reference kernels after every
 * pass, and the first pass whose result differs is named, with the first operator that computes
 * something else than the operator of the same place and name did before. */
#include "tools/compile.h"

#include <math.h>
#include <stdlib.h>

enum { EVALUATE_OPS = 20000000, DEPTH = 500 };

/* What one executed operator gave: kept as two sums, since passes may reorder and split. */
typedef struct trace_entry {
    ts_place place;
    rt_op core;
    double sum, magnitude;
    struct trace_entry *next; /* of one slot */
} trace_entry;

typedef struct trace {
    trace_entry **slots;
    size_t slot_count;
} trace;

struct tsc_check {
    ts_arena *arena;
    rt_context *context;
    ts_str entry;
    rt_value *args;
    size_t arg_count;
    rt_value result;
    bool has_result;
    trace before, now;
    const ir_op *culprit;
};

enum { SLOTS = 4096 };

static void summarise(rt_value v, double *sum, double *magnitude) {
    if (v.tag == RT_TAG_TENSOR) {
        rt_cursor c;
        for (rt_cursor_start(&c, v.as.tensor); c.left; rt_cursor_next(&c)) {
            double x = rt_load_double((rt_dtype)v.as.tensor->dtype, c.data);
            *sum += isfinite(x) ? x : 1e30;
            *magnitude += isfinite(x) ? fabs(x) : 1e30;
        }
    } else if (v.tag == RT_TAG_FLOAT) {
        *sum += v.as.f;
        *magnitude += fabs(v.as.f);
    } else if (v.tag == RT_TAG_INT || v.tag == RT_TAG_BOOL) {
        *sum += (double)v.as.i;
        *magnitude += fabs((double)v.as.i);
    }
}

static trace_entry **slot_of(trace *t, const ir_op *op) {
    size_t hash = (size_t)op->place.line * 31 + (size_t)op->place.column * 7 + (size_t)op->core;
    return &t->slots[hash % SLOTS];
}

static bool same_key(const trace_entry *e, const ir_op *op) {
    return e->core == op->core && e->place.line == op->place.line &&
           e->place.column == op->place.column && ts_str_equal(e->place.file, op->place.file);
}

static bool is_close(double a, double b, double magnitude) {
    return fabs(a - b) <= 1e-3 * magnitude + 1e-4 || (isnan(a) && isnan(b));
}

/* Records the first execution of each (place, operator); finds the first that changed. */
static ts_status observe(void *user, const ir_op *op, const rt_value *results) {
    tsc_check *check = user;
    if (op->opcode != IR_OP_CORE || op->place.line == 0 || op->result_count == 0)
        return NULL;
    for (const trace_entry *e = *slot_of(&check->now, op); e; e = e->next)
        if (same_key(e, op))
            return NULL;
    trace_entry *entry = TS_NEW(check->arena, trace_entry);
    entry->place = op->place;
    entry->core = op->core;
    for (size_t i = 0; i < op->result_count; i++)
        summarise(results[i], &entry->sum, &entry->magnitude);
    entry->next = *slot_of(&check->now, op);
    *slot_of(&check->now, op) = entry;
    if (check->culprit || !check->has_result)
        return NULL;
    for (const trace_entry *e = *slot_of(&check->before, op); e; e = e->next)
        if (same_key(e, op) && !is_close(e->sum, entry->sum, e->magnitude))
            check->culprit = op;
    return NULL;
}

static bool equal_tensors(const rt_tensor *a, const rt_tensor *b) {
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->sizes[i] != b->sizes[i])
            return false;
    double largest = 0;
    rt_cursor x, y;
    for (rt_cursor_start(&x, a); x.left; rt_cursor_next(&x)) {
        double v = fabs(rt_load_double((rt_dtype)a->dtype, x.data));
        if (isfinite(v) && v > largest)
            largest = v;
    }
    rt_cursor_start(&x, a);
    rt_cursor_start(&y, b);
    bool is_exact = !rt_dtype_is_float((rt_dtype)a->dtype) &&
                    !rt_dtype_is_complex((rt_dtype)a->dtype);
    for (; x.left; rt_cursor_next(&x), rt_cursor_next(&y)) {
        rt_complex128 p = rt_load_complex((rt_dtype)a->dtype, x.data);
        rt_complex128 q = rt_load_complex((rt_dtype)b->dtype, y.data);
        if (is_exact) {
            if (rt_load_int((rt_dtype)a->dtype, x.data) != rt_load_int((rt_dtype)b->dtype, y.data))
                return false;
        } else if (isnan(p.re) || isinf(p.re) || isnan(q.re) || isinf(q.re)) {
            if (!(isnan(p.re) && isnan(q.re)) && p.re != q.re)
                return false;
        } else if (hypot(p.re - q.re, p.im - q.im) > 1e-4 * largest + 1e-6) {
            return false;
        }
    }
    return true;
}

static bool equal_values(rt_value a, rt_value b, int depth) {
    if (a.tag != b.tag || depth > DEPTH)
        return false;
    switch (a.tag) {
    case RT_TAG_TENSOR:
        return equal_tensors(a.as.tensor, b.as.tensor);
    case RT_TAG_FLOAT:
        return a.as.f == b.as.f || (isnan(a.as.f) && isnan(b.as.f)) ||
               fabs(a.as.f - b.as.f) <= 1e-6 * fabs(a.as.f);
    case RT_TAG_LIST:
        if (a.as.list->count != b.as.list->count)
            return false;
        for (size_t i = 0; i < a.as.list->count; i++)
            if (!equal_values(a.as.list->items[i], b.as.list->items[i], depth + 1))
                return false;
        return true;
    case RT_TAG_TUPLE:
        if (a.as.tuple->count != b.as.tuple->count)
            return false;
        for (size_t i = 0; i < a.as.tuple->count; i++)
            if (!equal_values(a.as.tuple->items[i], b.as.tuple->items[i], depth + 1))
                return false;
        return true;
    case RT_TAG_DICT:
    case RT_TAG_OBJECT:
        return true; /* not compared */
    default: {
        bool is_equal = false;
        ts_status status = rt_equal(a, b, &is_equal);
        bool known = status == NULL;
        ts_status_release(status);
        return !known || is_equal;
    }
    }
}

static const ir_function *first_entry(const ir_module *m) {
    for (const ir_function *f = m->functions; f; f = f->next)
        if (f->is_entry)
            return f;
    return m->functions;
}

static const rt_tensor *find_argument(ts_arena *arena, const tsc_example *example, ts_str name,
                                      size_t position) {
    ts_str numbered = ts_arena_format(arena, "in%zu", position);
    for (size_t i = 0; i < example->count; i++)
        if (ts_str_equal(example->names[i], name) || ts_str_equal(example->names[i], numbered))
            return example->tensors[i];
    return NULL;
}

tsc_check *tsc_check_make(ts_arena *arena, ir_module *m, const tsc_example *example,
                          rt_context *context) {
    const ir_function *f = first_entry(m);
    if (!f)
        return NULL;
    tsc_check *check = TS_NEW(arena, tsc_check);
    *check = (tsc_check){.arena = arena, .context = context, .entry = f->name};
    bool has_self = f->body->parameter_count && m->root.tag == RT_TAG_OBJECT &&
                    f->body->parameters[0]->type->kind == IR_CLASS;
    size_t count = f->body->parameter_count;
    check->args = TS_NEW_ARRAY(arena, rt_value, count + 1);
    for (size_t i = has_self; i < count; i++) {
        const rt_tensor *t = find_argument(arena, example, f->parameter_names[i], i - has_self);
        if (t) {
            union {
                const rt_tensor *in;
                rt_tensor *out;
            } cast = {.in = t};
            check->args[i] = rt_from_tensor(cast.out);
        } else if (f->defaults && f->defaults[i].tag != RT_TAG_UNINITIALIZED) {
            check->args[i] = f->defaults[i];
        } else {
            return NULL;
        }
    }
    check->arg_count = count;
    return check;
}

/* ---- state: what a run changes on the module's objects is put back ---- */

typedef struct saved_object {
    rt_object *object;
    rt_value *fields; /* retained */
    rt_tensor **copies; /* contents of tensors that may be written, or NULL */
} saved_object;

typedef struct snapshot {
    ts_arena *arena;
    saved_object *items;
    size_t count, capacity;
    bool failed;
} snapshot;

static void save(snapshot *s, rt_value v, int depth) {
    if (v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE) {
        size_t n = v.tag == RT_TAG_LIST ? v.as.list->count : v.as.tuple->count;
        const rt_value *items = v.tag == RT_TAG_LIST ? v.as.list->items : v.as.tuple->items;
        for (size_t i = 0; i < n && depth < DEPTH; i++)
            save(s, items[i], depth + 1);
    }
    if (v.tag != RT_TAG_OBJECT || depth >= DEPTH)
        return;
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].object == v.as.object)
            return;
    rt_object *o = v.as.object;
    saved_object saved = {.object = o,
                          .fields = TS_NEW_ARRAY(s->arena, rt_value, o->field_count + 1),
                          .copies = TS_NEW_ARRAY(s->arena, rt_tensor *, o->field_count + 1)};
    for (size_t i = 0; i < o->field_count; i++) {
        saved.fields[i] = rt_retain(o->fields[i]);
        const rt_tensor *t = o->fields[i].tag == RT_TAG_TENSOR ? o->fields[i].as.tensor : NULL;
        ts_status status = t && t->storage && !t->storage->is_read_only
                               ? rt_tensor_clone(t, &saved.copies[i]) : NULL;
        s->failed = s->failed || status;
        ts_status_release(status);
    }
    TS_APPEND(s->arena, s->items, s->count, s->capacity, saved);
    for (size_t i = 0; i < o->field_count; i++)
        save(s, o->fields[i], depth + 1);
}

static void put_back(snapshot *s) {
    for (size_t k = 0; k < s->count; k++) {
        saved_object *saved = &s->items[k];
        for (size_t i = 0; i < saved->object->field_count; i++) {
            rt_assign(&saved->object->fields[i], saved->fields[i]);
            if (saved->copies[i]) {
                ts_status status =
                    rt_tensor_copy_into(saved->fields[i].as.tensor, saved->copies[i]);
                s->failed = s->failed || status;
                ts_status_release(status);
                rt_tensor_release(saved->copies[i]);
            }
        }
    }
}


static ts_status evaluate(tsc_check *check, ir_module *m, const ir_function *f, rt_value *out) {
    rt_value *args = TS_NEW_ARRAY(check->arena, rt_value, check->arg_count + 1);
    size_t first = check->arg_count - (f->body->parameter_count < check->arg_count
                                           ? f->body->parameter_count : check->arg_count);
    ts_status status = NULL;
    for (size_t i = first; i < check->arg_count && !status; i++) {
        bool is_self = i == 0 && check->args[0].tag == RT_TAG_NONE &&
                       m->root.tag == RT_TAG_OBJECT &&
                       f->body->parameters[0]->type->kind == IR_CLASS;
        status = rt_deep_copy(is_self ? m->root : check->args[i], true, &args[i - first]);
    }
    ir_evaluator_options options = {.context = check->context, .op_budget = EVALUATE_OPS,
                                    .depth_limit = DEPTH, .observe = observe, .user = check};
    snapshot state = {.arena = check->arena};
    save(&state, m->root, 0);
    for (size_t i = 0; i < m->retained_count; i++)
        save(&state, m->retained[i], 0);
    if (!status)
        status = ir_evaluate(m, f, args, check->arg_count - first, &options, out);
    put_back(&state);
    if (!status && state.failed)
        status = ts_no_memory();
    for (size_t i = 0; i < check->arg_count - first; i++)
        rt_release(args[i]);
    return status;
}

ts_status tsc_check_run(void *user, ir_module *m, const char *pass) {
    tsc_check *check = user;
    const ir_function *f = ir_function_find(m, check->entry);
    if (!f)
        return ts_error_make(TS_ERR_INTERNAL, "pass %s removed entry %.*s", pass,
                             TS_STR_ARG(check->entry));
    check->now.slots = TS_NEW_ARRAY(check->arena, trace_entry *, SLOTS);
    check->culprit = NULL;
    rt_value result = rt_none();
    ts_status status = evaluate(check, m, f, &result);
    if (status)
        return ts_status_context(status, "running the program after pass %s", pass);
    if (!check->has_result) {
        check->result = result;
        check->has_result = true;
    } else if (equal_values(check->result, result, 0)) {
        rt_release(result);
    } else {
        rt_release(result);
        const ir_op *op = check->culprit;
        if (!op)
            return ts_error_make(TS_ERR_INTERNAL, "pass %s changed the result of %.*s", pass,
                                 TS_STR_ARG(check->entry));
        ts_str name = rt_op_name(op->core);
        return ts_error_at(TS_ERR_INTERNAL, op->place, "pass %s changed the result of %.*s: the "
                           "first operator that differs is %.*s", pass, TS_STR_ARG(check->entry),
                           TS_STR_ARG(name));
    }
    check->before = check->now;
    return NULL;
}

void tsc_check_release(tsc_check *check) {
    if (check && check->has_result) {
        rt_release(check->result);
        check->has_result = false;
    }
}
