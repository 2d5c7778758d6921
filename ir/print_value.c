/* ir/print_value.c - constants as text: numbers, strings, lists in place; objects by number, large
 * tensors by name. Numbers follow the walk through the object tree, so equal modules print equal. */
#include "ir/print_internal.h"

enum { INLINE_ELEMENTS = 8, VALUE_DEPTH = 200 };

static size_t slot_of(const ir_printer *p, const void *pointer) {
    size_t at = (size_t)(((uint64_t)(uintptr_t)pointer >> 4) * 0x9E3779B97F4A7C15u >> 20) &
                (p->slot_capacity - 1);
    while (p->slots[at] && p->slots[at]->pointer != pointer)
        at = (at + 1) & (p->slot_capacity - 1);
    return at;
}

static ir_heap_entry *find_entry(const ir_printer *p, const void *pointer) {
    return p->slot_capacity ? p->slots[slot_of(p, pointer)] : NULL;
}

static ir_heap_entry *add_entry(ir_printer *p, rt_value v) {
    if (2 * (p->entry_count + 1) > p->slot_capacity) {
        p->slot_capacity = p->slot_capacity ? 2 * p->slot_capacity : 64;
        p->slots = TS_NEW_ARRAY(p->arena, ir_heap_entry *, p->slot_capacity);
        for (size_t i = 0; i < p->entry_count; i++)
            p->slots[slot_of(p, p->entries[i]->pointer)] = p->entries[i];
    }
    ir_heap_entry *e = TS_NEW(p->arena, ir_heap_entry);
    e->pointer = v.as.pointer;
    e->value = v;
    e->number = -1;
    TS_APPEND(p->arena, p->entries, p->entry_count, p->entry_capacity, e);
    p->slots[slot_of(p, e->pointer)] = e;
    return e;
}

static ts_str path_of(ir_printer *p, ts_str path, ts_str name) {
    return path.length ? ts_arena_format(p->arena, "%.*s.%.*s", (int)path.length, path.data,
                                         (int)name.length, name.data)
                       : name;
}

static ts_str index_name(ir_printer *p, size_t index) {
    return ts_arena_format(p->arena, "%zu", index);
}

static void collect(ir_printer *p, rt_value v, ts_str path, bool in_object, int depth) {
    if (depth > VALUE_DEPTH)
        return;
    bool tracked = v.tag == RT_TAG_OBJECT || v.tag == RT_TAG_LIST || v.tag == RT_TAG_DICT ||
                   v.tag == RT_TAG_TENSOR;
    if (tracked) {
        ir_heap_entry *e = find_entry(p, v.as.pointer);
        bool seen = e != NULL;
        if (!e)
            e = add_entry(p, v);
        e->visits++;
        e->in_object |= in_object;
        if (!e->name.length && v.tag == RT_TAG_TENSOR)
            e->name = path;
        if (seen)
            return;
    }
    if (v.tag == RT_TAG_OBJECT) {
        const rt_object *o = v.as.object;
        for (size_t i = 0; i < o->field_count; i++)
            collect(p, o->fields[i], path_of(p, path, o->class_->fields[i]), true, depth + 1);
    } else if (v.tag == RT_TAG_LIST) {
        for (size_t i = 0; i < v.as.list->count; i++)
            collect(p, v.as.list->items[i], path_of(p, path, index_name(p, i)), in_object,
                    depth + 1);
    } else if (v.tag == RT_TAG_TUPLE) {
        for (size_t i = 0; i < v.as.tuple->count; i++)
            collect(p, v.as.tuple->items[i], path_of(p, path, index_name(p, i)), in_object,
                    depth + 1);
    } else if (v.tag == RT_TAG_DICT) {
        const rt_dict_entry *e;
        size_t i = 0;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at)); i++) {
            collect(p, e->key, path, in_object, depth + 1);
            collect(p, e->value, path_of(p, path, index_name(p, i)), in_object, depth + 1);
        }
    }
}

static void collect_block(ir_printer *p, const ir_block *b) {
    for (const ir_op *op = b->first; op; op = op->next) {
        if (op->opcode == IR_OP_CONST)
            collect(p, op->value, op->weight_name, false, 0);
        for (size_t i = 0; i < op->region_count; i++)
            collect_block(p, op->regions[i]);
    }
}

static bool is_small_tensor(const rt_tensor *t) {
    char category = rt_dtype_category((rt_dtype)t->dtype);
    return t->element_count <= INLINE_ELEMENTS &&
           (category == 'b' || category == 'i' || category == 'f');
}

/* Names must differ: the second tensor of a name gets ".1". */
static void name_tensors(ir_printer *p) {
    size_t unnamed = 0;
    for (size_t i = 0; i < p->entry_count; i++) {
        ir_heap_entry *e = p->entries[i];
        if (e->value.tag != RT_TAG_TENSOR)
            continue;
        if (is_small_tensor(e->value.as.tensor) && !(e->in_object && e->visits > 1)) {
            e->name = (ts_str){0};
            continue;
        }
        ts_str wanted = e->name;
        if (!wanted.length)
            wanted = ts_arena_format(p->arena, "constant%zu", unnamed++);
        ts_str name = wanted;
        for (int suffix = 1;; suffix++) {
            bool taken = false;
            for (size_t j = 0; j < i && !taken; j++)
                taken = p->entries[j]->value.tag == RT_TAG_TENSOR &&
                        ts_str_equal(p->entries[j]->name, name);
            if (!taken)
                break;
            name = ts_arena_format(p->arena, "%.*s.%d", (int)wanted.length, wanted.data, suffix);
        }
        e->name = name;
        if (p->weights && !is_small_tensor(e->value.as.tensor)) {
            ir_weight_list *w = p->weights;
            size_t room = w->capacity;
            if (w->count == w->capacity)
                w->names = ts_arena_grow(p->m->arena, w->names, w->count, &room, sizeof *w->names);
            TS_APPEND(p->m->arena, w->tensors, w->count, w->capacity, e->value);
            w->names[w->count - 1] = ts_arena_str(p->m->arena, name);
        }
    }
}

void ir_printer_collect(ir_printer *p) {
    ir_module *m = p->m;
    collect(p, m->root, (ts_str){0}, true, 0);
    for (size_t i = 0; i < m->class_count; i++) {
        const ir_class *c = m->classes[i];
        for (size_t j = 0; j < c->field_count; j++)
            if (c->fields[j].is_constant)
                collect(p, c->fields[j].constant, c->fields[j].name, true, 0);
    }
    for (const ir_function *f = m->functions; f; f = f->next) {
        for (size_t i = 0; i < f->body->parameter_count; i++)
            collect(p, f->defaults[i], f->parameter_names[i], true, 0);
        collect_block(p, f->body);
    }
    int64_t number = 0;
    for (size_t i = 0; i < p->entry_count; i++) {
        ir_heap_entry *e = p->entries[i];
        if (e->value.tag == RT_TAG_OBJECT ||
            (e->value.tag != RT_TAG_TENSOR && e->in_object && e->visits > 1))
            e->number = number++;
    }
    name_tensors(p);
}

/* ---- text ---- */

static void print_double(double f, ts_buffer *out) {
    char text[32];
    size_t length = rt_format_double(f, text);
    ts_buffer_append(out, text, length);
}

static void print_tensor(ir_printer *p, const rt_tensor *t) {
    ts_buffer *out = p->out;
    ir_heap_entry *e = find_entry(p, t);
    if (e && e->name.length) {
        ts_buffer_char(out, '@');
        ir_print_quotable(e->name, out);
        if (e->is_written || !is_small_tensor(t))
            return;
        e->is_written = true; /* a small one stands where its name is met first */
        ts_buffer_text(out, " = ");
    }
    if (!p->slot_capacity && !is_small_tensor(t)) {
        ts_buffer_text(out, "@constant");
        return;
    }
    ts_buffer_format(out, "tensor(%s[", rt_dtype_name((rt_dtype)t->dtype));
    for (int i = 0; i < t->rank; i++)
        ts_buffer_format(out, "%s%lld", i ? "," : "", (long long)t->sizes[i]);
    ts_buffer_text(out, "], [");
    rt_cursor c;
    bool first = true;
    for (rt_cursor_start(&c, t); c.left; rt_cursor_next(&c)) {
        if (!first)
            ts_buffer_text(out, ", ");
        first = false;
        if (rt_dtype_is_float((rt_dtype)t->dtype))
            print_double(rt_load_double((rt_dtype)t->dtype, c.data), out);
        else
            ts_buffer_format(out, "%lld", (long long)rt_load_int((rt_dtype)t->dtype, c.data));
    }
    ts_buffer_text(out, "]");
    if (t->requires_grad)
        ts_buffer_text(out, ", requires_grad");
    ts_buffer_text(out, ")");
}

static void print_items(ir_printer *p, const rt_value *items, size_t count, int depth) {
    for (size_t i = 0; i < count; i++) {
        if (i)
            ts_buffer_text(p->out, ", ");
        ir_print_value(p, items[i], depth + 1);
    }
}

static void print_body(ir_printer *p, rt_value v, int depth) {
    ts_buffer *out = p->out;
    if (v.tag == RT_TAG_LIST) {
        ts_buffer_char(out, '[');
        print_items(p, v.as.list->items, v.as.list->count, depth);
        ts_buffer_char(out, ']');
    } else if (v.tag == RT_TAG_DICT) {
        const rt_dict_entry *e;
        bool first = true;
        ts_buffer_char(out, '{');
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));) {
            if (!first)
                ts_buffer_text(out, ", ");
            first = false;
            ir_print_value(p, e->key, depth + 1);
            ts_buffer_text(out, ": ");
            ir_print_value(p, e->value, depth + 1);
        }
        ts_buffer_char(out, '}');
    } else {
        const rt_object *o = v.as.object;
        ts_buffer_char(out, '@');
        ir_print_quotable(o->class_->name, out);
        ts_buffer_text(out, " {");
        for (size_t i = 0; i < o->field_count; i++) {
            ts_buffer_text(out, i ? ", " : " ");
            ir_print_quotable(o->class_->fields[i], out);
            ts_buffer_text(out, " = ");
            ir_print_value(p, o->fields[i], depth + 1);
        }
        ts_buffer_text(out, o->field_count ? " }" : "}");
    }
}

void ir_print_value(ir_printer *p, rt_value v, int depth) {
    ts_buffer *out = p->out;
    static const char *const devices[] = {"cpu", "cuda", "opencl", "meta"};
    const ir_heap_entry *e;
    if (depth > VALUE_DEPTH) {
        ts_buffer_text(out, "opaque");
        return;
    }
    switch ((rt_tag)v.tag) {
    case RT_TAG_NONE:
        ts_buffer_text(out, "none");
        return;
    case RT_TAG_BOOL:
        ts_buffer_text(out, v.as.i ? "true" : "false");
        return;
    case RT_TAG_INT:
        ts_buffer_format(out, "%lld", (long long)v.as.i);
        return;
    case RT_TAG_FLOAT:
        print_double(v.as.f, out);
        return;
    case RT_TAG_DEVICE:
        ts_buffer_format(out, "device(\"%s", devices[v.aux & 3]);
        if (v.as.i >= 0)
            ts_buffer_format(out, ":%lld", (long long)v.as.i);
        ts_buffer_text(out, "\")");
        return;
    case RT_TAG_UNINITIALIZED:
        ts_buffer_text(out, "unset");
        return;
    case RT_TAG_COMPLEX:
        ts_buffer_text(out, "complex(");
        print_double(v.as.complex->re, out);
        ts_buffer_text(out, ", ");
        print_double(v.as.complex->im, out);
        ts_buffer_char(out, ')');
        return;
    case RT_TAG_STR:
        ir_print_string(rt_str_text(v.as.str), out);
        return;
    case RT_TAG_TENSOR:
        print_tensor(p, v.as.tensor);
        return;
    case RT_TAG_TUPLE:
        if (v.as.tuple->class_) {
            ts_buffer_char(out, '@');
            ir_print_quotable(v.as.tuple->class_->name, out);
        }
        ts_buffer_char(out, '(');
        print_items(p, v.as.tuple->items, v.as.tuple->count, depth);
        ts_buffer_text(out, v.as.tuple->count == 1 && !v.as.tuple->class_ ? ",)" : ")");
        return;
    case RT_TAG_LIST:
    case RT_TAG_DICT:
    case RT_TAG_OBJECT:
        e = find_entry(p, v.as.pointer);
        if (e && e->number >= 0)
            ts_buffer_format(out, "#%lld", (long long)e->number);
        else if (v.tag == RT_TAG_OBJECT)
            ts_buffer_text(out, "#?"); /* a function alone: objects have no numbers */
        else
            print_body(p, v, depth);
        return;
    case RT_TAG_ENUM:
        ts_buffer_text(out, "enum(@");
        ir_print_quotable(v.as.enumeration->class_->name, out);
        ts_buffer_text(out, ", ");
        ir_print_quotable(v.as.enumeration->name, out);
        ts_buffer_char(out, ')');
        return;
    case RT_TAG_GENERATOR:
    case RT_TAG_FUNCTION:
    case RT_TAG_CAPSULE:
        break;
    }
    ts_buffer_text(out, "opaque");
}

void ir_print_objects(ir_printer *p) {
    bool any = false;
    for (size_t i = 0; i < p->entry_count; i++) {
        ir_heap_entry *e = p->entries[i];
        if (e->number < 0)
            continue;
        ts_buffer_format(p->out, "object #%lld = ", (long long)e->number);
        print_body(p, e->value, 0);
        ts_buffer_char(p->out, '\n');
        any = true;
    }
    if (p->m->root.tag != RT_TAG_NONE) {
        ts_buffer_text(p->out, "root = ");
        ir_print_value(p, p->m->root, 0);
        ts_buffer_char(p->out, '\n');
        any = true;
    }
    if (any)
        ts_buffer_char(p->out, '\n');
}

static bool is_inline(rt_value v, int depth) {
    if (depth > 8)
        return false;
    if (v.tag == RT_TAG_LIST) {
        if (v.as.list->count > 64)
            return false;
        for (size_t i = 0; i < v.as.list->count; i++)
            if (!is_inline(v.as.list->items[i], depth + 1))
                return false;
        return true;
    }
    if (v.tag == RT_TAG_TUPLE) {
        for (size_t i = 0; i < v.as.tuple->count; i++)
            if (!is_inline(v.as.tuple->items[i], depth + 1))
                return false;
        return true;
    }
    return v.tag == RT_TAG_NONE || v.tag == RT_TAG_BOOL || v.tag == RT_TAG_INT ||
           v.tag == RT_TAG_FLOAT || v.tag == RT_TAG_DEVICE || v.tag == RT_TAG_COMPLEX ||
           v.tag == RT_TAG_STR || v.tag == RT_TAG_ENUM || v.tag == RT_TAG_OBJECT;
}

bool ir_is_inline_value(rt_value v) { return is_inline(v, 0); }

/* ---- shared with the reader ---- */

const ir_type *ir_inline_type(ir_module *m, rt_value v, const ir_type *wanted) {
    const ir_type *own = ir_type_of_value(m, v);
    if (!wanted || v.tag != RT_TAG_LIST)
        return own;
    wanted = ir_type_without_none(m, wanted);
    if (wanted->kind != IR_LIST)
        return own;
    ir_kind element = wanted->args[0]->kind;
    if (element == IR_VAR || element == IR_ANY || element == IR_NUMBER)
        return own;
    for (size_t i = 0; i < v.as.list->count; i++)
        if (!ir_type_is_subtype(ir_type_of_value(m, v.as.list->items[i]), wanted->args[0]))
            return own;
    return wanted;
}

static bool same_constant(rt_value a, rt_value b, int depth) {
    if (a.tag != b.tag || depth > VALUE_DEPTH)
        return false;
    switch ((rt_tag)a.tag) {
    case RT_TAG_NONE:
        return true;
    case RT_TAG_BOOL:
    case RT_TAG_INT:
        return a.as.i == b.as.i;
    case RT_TAG_FLOAT:
        return memcmp(&a.as.f, &b.as.f, sizeof a.as.f) == 0;
    case RT_TAG_DEVICE:
        return a.as.i == b.as.i && a.aux == b.aux;
    case RT_TAG_STR:
        return ts_str_equal(rt_str_text(a.as.str), rt_str_text(b.as.str));
    case RT_TAG_COMPLEX:
        return memcmp(&a.as.complex->re, &b.as.complex->re, sizeof(double)) == 0 &&
               memcmp(&a.as.complex->im, &b.as.complex->im, sizeof(double)) == 0;
    case RT_TAG_LIST:
        if (a.as.list->count != b.as.list->count)
            return false;
        for (size_t i = 0; i < a.as.list->count; i++)
            if (!same_constant(a.as.list->items[i], b.as.list->items[i], depth + 1))
                return false;
        return true;
    case RT_TAG_TUPLE:
        if (a.as.tuple->count != b.as.tuple->count || a.as.tuple->class_ != b.as.tuple->class_)
            return false;
        for (size_t i = 0; i < a.as.tuple->count; i++)
            if (!same_constant(a.as.tuple->items[i], b.as.tuple->items[i], depth + 1))
                return false;
        return true;
    case RT_TAG_TENSOR:
    case RT_TAG_DICT:
    case RT_TAG_OBJECT:
    case RT_TAG_ENUM:
    case RT_TAG_GENERATOR:
    case RT_TAG_FUNCTION:
    case RT_TAG_CAPSULE:
    case RT_TAG_UNINITIALIZED:
        break;
    }
    return a.as.pointer == b.as.pointer;
}

bool ir_same_constant(rt_value a, rt_value b) { return same_constant(a, b, 0); }
