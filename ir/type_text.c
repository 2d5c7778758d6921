/* ir/type_text.c - types as text: "float32[N,3]", "Optional[List[int]]", a class's name. */
#include "ir/ir_internal.h"

static const char *const kind_texts[] = {
#define KIND(name, text, is_mutable, holds) text,
#include "ir/type_kinds.def"
};

static void print_tensor(const ir_module *m, const ir_type *t, ts_buffer *out) {
    ts_buffer_text(out, t->dtype == RT_DTYPE_UNKNOWN ? "Tensor" : rt_dtype_name(t->dtype));
    if (t->rank < 0) {
        if (t->dtype != RT_DTYPE_UNKNOWN)
            ts_buffer_text(out, "[...]");
    } else {
        ts_buffer_char(out, '[');
        for (int i = 0; i < t->rank; i++) {
            if (i)
                ts_buffer_char(out, ',');
            ir_dim_print(m, t->dims[i], out);
        }
        ts_buffer_char(out, ']');
    }
    if (t->layout == IR_LAYOUT_CONTIGUOUS)
        ts_buffer_text(out, "{contiguous}");
    else if (t->layout == IR_LAYOUT_CHANNELS_LAST)
        ts_buffer_text(out, "{channels_last}");
}

static void print_args(const ir_module *m, const char *name, const ir_type *t, ts_buffer *out) {
    ts_buffer_text(out, name);
    ts_buffer_char(out, '[');
    for (size_t i = 0; i < t->arg_count; i++) {
        if (i)
            ts_buffer_text(out, ", ");
        ir_type_print(m, t->args[i], out);
    }
    ts_buffer_char(out, ']');
}

void ir_type_print(const ir_module *m, const ir_type *t, ts_buffer *out) {
    switch (t->kind) {
    case IR_TENSOR:
        print_tensor(m, t, out);
        return;
    case IR_LIST:
        print_args(m, "List", t, out);
        return;
    case IR_DICT:
        print_args(m, "Dict", t, out);
        return;
    case IR_OPTIONAL:
        print_args(m, "Optional", t, out);
        return;
    case IR_UNION:
        print_args(m, "Union", t, out);
        return;
    case IR_FUTURE:
        print_args(m, "Future", t, out);
        return;
    case IR_TUPLE:
        if (t->class_)
            ir_print_quotable(t->class_->base.name, out);
        if (!t->class_ || ir_type_of_class((ir_module *)(uintptr_t)m, t->class_) != t)
            print_args(m, "Tuple", t, out); /* after a class's name: fields with other facts */
        return;
    case IR_CLASS:
    case IR_ENUM:
        ir_print_quotable(t->class_->base.name, out);
        return;
    case IR_VAR:
        ts_buffer_str(out, t->name);
        return;
    default:
        ts_buffer_text(out, kind_texts[t->kind]);
    }
}

ts_str ir_type_text(ir_module *m, const ir_type *t) {
    ts_buffer buffer = {0};
    ir_type_print(m, t, &buffer);
    ts_str text = buffer.failed ? TS_STR("?")
                                : ts_arena_str(m->arena, (ts_str){buffer.data, buffer.length});
    ts_buffer_deinit(&buffer);
    return text;
}

/* ---- reading ---- */

static ts_status read_tensor(ir_text *t, rt_dtype dtype, const ir_type **out) {
    rt_dim dims[RT_MAX_RANK];
    int rank = -1;
    if (ir_text_take(t, "[")) {
        if (ir_text_take(t, "...")) {
            TS_TRY(ir_text_expect(t, "]"));
        } else {
            rank = 0;
            while (!ir_text_take(t, "]")) {
                if (rank == RT_MAX_RANK)
                    return ir_text_error(t, "at most 64 sizes");
                if (rank)
                    TS_TRY(ir_text_expect(t, ","));
                TS_TRY(ir_dim_read(t, &dims[rank]));
                if (rt_dim_is_constant(dims[rank]) && dims[rank] < 0)
                    return ir_text_error(t, "a size that is not negative before this");
                rank++;
            }
        }
    }
    ir_layout layout = IR_LAYOUT_ANY;
    if (ir_text_take(t, "{contiguous}"))
        layout = IR_LAYOUT_CONTIGUOUS;
    else if (ir_text_take(t, "{channels_last}"))
        layout = IR_LAYOUT_CHANNELS_LAST;
    *out = ir_type_tensor(t->m, dtype, rank, dims, layout);
    return NULL;
}

static ts_status read_args(ir_text *t, const ir_type ***out_items, size_t *out_count) {
    const ir_type **items = NULL;
    size_t count = 0, capacity = 0;
    TS_TRY(ir_text_expect(t, "["));
    if (ir_text_take(t, "()")) /* Tuple[()] */
        TS_TRY(ir_text_expect(t, "]"));
    else
        while (!ir_text_take(t, "]")) {
            const ir_type *item;
            if (count)
                TS_TRY(ir_text_expect(t, ","));
            TS_TRY(ir_type_read(t, &item));
            TS_APPEND(t->m->arena, items, count, capacity, item);
        }
    *out_items = items;
    *out_count = count;
    return NULL;
}

static ts_status read_container(ir_text *t, ts_str name, const ir_type **out, bool *out_found) {
    static const struct {
        const char *name;
        size_t args; /* 0: any number */
        ir_kind kind;
    } containers[] = {{"List", 1, IR_LIST},         {"Dict", 2, IR_DICT},
                      {"Optional", 1, IR_OPTIONAL}, {"Tuple", 0, IR_TUPLE},
                      {"Union", 0, IR_UNION},       {"Future", 1, IR_FUTURE}};
    *out_found = false;
    for (size_t i = 0; i < sizeof containers / sizeof containers[0]; i++) {
        if (!ts_str_is(name, containers[i].name))
            continue;
        const ir_type **args;
        size_t count;
        TS_TRY(read_args(t, &args, &count));
        if (containers[i].args && containers[i].args != count)
            return ir_text_error(t, "another number of types inside the brackets before this");
        *out_found = true;
        switch (containers[i].kind) {
        case IR_LIST:
            *out = ir_type_list(t->m, args[0]);
            break;
        case IR_DICT:
            *out = ir_type_dict(t->m, args[0], args[1]);
            break;
        case IR_OPTIONAL:
            *out = ir_type_optional(t->m, args[0]);
            break;
        case IR_FUTURE:
            *out = ir_type_future(t->m, args[0]);
            break;
        case IR_UNION:
            *out = ir_type_union(t->m, args, count);
            break;
        default:
            *out = ir_type_tuple(t->m, args, count, NULL);
        }
        return NULL;
    }
    return NULL;
}

static ts_status read_named(ir_text *t, const ir_type **out) {
    ts_str name;
    const char *from = t->at;
    TS_TRY(ir_text_quotable(t, &name));
    bool is_quoted = *from == '"';
    if (!is_quoted) {
        if (ts_str_is(name, "Tensor"))
            return read_tensor(t, RT_DTYPE_UNKNOWN, out);
        for (size_t i = 0; i < sizeof kind_texts / sizeof kind_texts[0]; i++)
            if (*kind_texts[i] && ts_str_is(name, kind_texts[i]) && !ir_text_peek(t, "[")) {
                *out = ir_type_simple(t->m, (ir_kind)i);
                return NULL;
            }
        if (ts_str_is(name, "NoneType") || ts_str_is(name, "Scalar")) {
            *out = ir_type_simple(t->m, ts_str_is(name, "Scalar") ? IR_NUMBER : IR_NONE);
            return NULL;
        }
        rt_dtype dtype = rt_dtype_parse(name);
        if (dtype != RT_DTYPE_UNKNOWN)
            return read_tensor(t, dtype, out);
        bool found;
        TS_TRY(read_container(t, name, out, &found));
        if (found)
            return NULL;
    }
    const ir_class *class_ = ir_class_find(t->m, name);
    if (!class_) {
        t->at = from;
        return ir_text_error(t, "a type");
    }
    *out = class_->type ? class_->type : ir_type_of_class(t->m, class_);
    if (class_->base.kind == RT_CLASS_NAMED_TUPLE && ir_text_take(t, "Tuple")) {
        const ir_type **items;
        size_t count;
        TS_TRY(read_args(t, &items, &count));
        *out = ir_type_tuple(t->m, items, count, class_);
    }
    return NULL;
}

ts_status ir_type_read(ir_text *t, const ir_type **out) {
    *out = NULL;
    if (++t->depth > IR_TEXT_DEPTH)
        return ir_text_error(t, "less nesting");
    ir_text_blank(t);
    ts_status status = read_named(t, out);
    t->depth--;
    return status;
}

ts_status ir_type_parse(ir_module *m, ts_str text, const ir_type **out) {
    ir_text t = ir_text_make(m, (ts_str){0}, text);
    TS_TRY(ir_type_read(&t, out));
    ir_text_blank(&t);
    return t.at == t.end ? NULL : ir_text_error(&t, "the end of the type");
}
