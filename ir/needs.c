/* ir/needs.c - what the inputs of an entry must satisfy, and what its fast paths take for granted,
 * as text for those who call it. */
#include "ir/ir_internal.h"

/* "x.size(-1)": a dim counted from the end where it is negative. */
static void put_size(ts_str name, int dim, ts_buffer *out) {
    ts_buffer_format(out, "%.*s.size(%d)", TS_STR_ARG(name), dim);
}

/* Operators take quantized tensors by way of floats: not worth a word beside others. */
static uint64_t without_quantized(uint64_t bits) {
    uint64_t plain = bits;
    for (int d = 0; d < RT_DTYPE_COUNT; d++)
        if (rt_dtype_category((rt_dtype)d) == 'q')
            plain &= ~((uint64_t)1 << d);
    return plain ? plain : bits;
}

static void put_dtypes(uint64_t bits, ts_buffer *out) {
    bits = without_quantized(bits);
    bool is_one = (bits & (bits - 1)) == 0, is_first = true;
    ts_buffer_text(out, is_one ? " == " : " in (");
    for (int d = 0; d < RT_DTYPE_COUNT; d++) {
        if (!(bits >> d & 1))
            continue;
        ts_buffer_format(out, "%s%s", is_first ? "" : ", ", rt_dtype_name((rt_dtype)d));
        is_first = false;
    }
    ts_buffer_text(out, is_one ? "" : ")");
}

static void put_ranks(uint64_t bits, ts_buffer *out) {
    int low = 0, high = IR_NEED_RANKS - 1;
    while (low < high && !(bits >> low & 1))
        low++;
    while (high > low && !(bits >> high & 1))
        high--;
    if (bits >> low == (1u << (IR_NEED_RANKS - low)) - 1) {
        ts_buffer_format(out, " >= %d", low);
    } else if (low == high) {
        ts_buffer_format(out, " == %d", low);
    } else {
        ts_buffer_text(out, " in (");
        for (int r = low; r <= high; r++)
            if (bits >> r & 1)
                ts_buffer_format(out, "%s%d", r > low ? ", " : "", r);
        ts_buffer_char(out, ')');
    }
}

void ir_need_print(const ir_function *f, const ir_need *need, ts_buffer *out) {
    ts_str name = f->parameter_names[need->input];
    switch (need->kind) {
    case IR_NEED_DTYPE:
        ts_buffer_format(out, "%.*s.dtype", TS_STR_ARG(name));
        put_dtypes((uint64_t)need->value, out);
        return;
    case IR_NEED_RANK:
        ts_buffer_format(out, "%.*s.dim()", TS_STR_ARG(name));
        put_ranks((uint64_t)need->value, out);
        return;
    case IR_NEED_SIZE:
        put_size(name, need->dim, out);
        ts_buffer_format(out, " == %lld", (long long)need->value);
        return;
    case IR_NEED_MULTIPLE:
        put_size(name, need->dim, out);
        ts_buffer_format(out, " %% %lld == 0", (long long)need->value);
        return;
    case IR_NEED_SAME:
        put_size(name, need->dim, out);
        ts_buffer_text(out, " == ");
        put_size(f->parameter_names[need->other], need->other_dim, out);
        return;
    case IR_NEED_COUNT:
        return;
    }
}

/* ---- fast paths ---- */

static bool is_parameter(const ir_function *f, const ir_value *v) {
    return !v->def && v->block == f->body;
}

static void put_separator(bool *is_first, ts_buffer *out) {
    ts_buffer_text(out, *is_first ? "" : ", ");
    *is_first = false;
}

/* What a condition asks of the function's parameters; false where it asks anything else. */
static bool put_condition(const ir_function *f, const ir_value *v, int depth, bool *is_first,
                          ts_buffer *out) {
    const ir_op *op = v->def;
    bool is_true;
    if (depth > 200)
        return false;
    if (ir_const_bool(v, &is_true))
        return is_true;
    if (is_parameter(f, v)) {
        put_separator(is_first, out);
        ts_buffer_format(out, "%.*s is True", TS_STR_ARG(f->parameter_names[v->index]));
        return true;
    }
    if (!op)
        return false;
    if (op->opcode == IR_OP_REFINE && is_parameter(f, op->operands[0])) {
        put_separator(is_first, out);
        ts_buffer_format(out, "%.*s: ", TS_STR_ARG(f->parameter_names[op->operands[0]->index]));
        ir_type_print(f->module, op->type, out);
        return true;
    }
    if (op->opcode == IR_OP_CORE && is_parameter(f, op->operands[0])) {
        bool is_none =
            ts_str_is(rt_op_name(op->core), "__is__") && op->operands[1]->type->kind == IR_NONE;
        if (!is_none && !ts_str_is(rt_op_name(op->core), "__not__"))
            return false;
        put_separator(is_first, out);
        ts_buffer_format(out, "%.*s is %s", TS_STR_ARG(f->parameter_names[op->operands[0]->index]),
                         is_none ? "None" : "False");
        return true;
    }
    bool both = op->opcode == IR_OP_IF && op->result_count == 1 &&
                ir_const_bool(op->regions[1]->last->operands[0], &is_true) && !is_true;
    return both && put_condition(f, op->operands[0], depth + 1, is_first, out) &&
           put_condition(f, op->regions[0]->last->operands[0], depth + 1, is_first, out);
}

static void put_paths(const ir_function *f, const ir_block *b, int depth, ts_buffer *out) {
    for (const ir_op *op = b->first; op && depth < 16; op = op->next) {
        bool is_bool = op->result_count == 1 && op->results[0]->type->kind == IR_BOOL;
        if (op->opcode != IR_OP_IF || is_bool)
            continue;
        size_t before = out->length;
        bool is_first = true;
        if (!put_condition(f, op->operands[0], 0, &is_first, out) || is_first) {
            out->length = before; /* an `if` of the program's own */
            continue;
        }
        ts_buffer_char(out, '\n');
        put_paths(f, op->regions[1], depth + 1, out);
    }
}

void ir_print_assumptions(const ir_function *f, ts_buffer *out) { put_paths(f, f->body, 0, out); }

/* ---- the text of the IR ---- */

static void put_choice(const ir_need *need, ts_buffer *out) {
    bool is_first = true;
    ts_buffer_text(out, need->kind == IR_NEED_DTYPE ? " dtype " : " rank ");
    for (int i = 0; i < 63; i++) {
        if (!(need->value >> i & 1))
            continue;
        ts_buffer_text(out, is_first ? "" : "|");
        is_first = false;
        if (need->kind == IR_NEED_DTYPE)
            ts_buffer_text(out, rt_dtype_name((rt_dtype)i));
        else
            ts_buffer_format(out, "%d", i);
    }
}

static void put_need(const ir_function *f, const ir_need *need, ts_buffer *out) {
    ir_print_quotable(f->parameter_names[need->input], out);
    if (need->kind == IR_NEED_DTYPE || need->kind == IR_NEED_RANK) {
        put_choice(need, out);
        return;
    }
    ts_buffer_format(out, "[%d] ", need->dim);
    ts_buffer_text(out, need->kind == IR_NEED_MULTIPLE ? "multiple " : "= ");
    if (need->kind != IR_NEED_SAME) {
        ts_buffer_format(out, "%lld", (long long)need->value);
        return;
    }
    ir_print_quotable(f->parameter_names[need->other], out);
    ts_buffer_format(out, "[%d]", need->other_dim);
}

void ir_print_needs(const ir_function *f, ts_buffer *out) {
    for (size_t i = 0; i < f->need_count; i++) {
        ts_buffer_text(out, i ? ", " : " needs(");
        put_need(f, &f->needs[i], out);
        ts_buffer_text(out, f->needs[i].is_own ? " own" : "");
    }
    ts_buffer_text(out, f->need_count ? ")" : "");
}

static ts_status read_input(ir_text *t, const ir_function *f, size_t *out) {
    ts_str name;
    TS_TRY(ir_text_quotable(t, &name));
    for (size_t i = 0; i < f->body->parameter_count; i++) {
        *out = i;
        if (ts_str_equal(f->parameter_names[i], name))
            return NULL;
    }
    return ir_text_error(t, "a parameter before this");
}

static ts_status read_dim(ir_text *t, int *out) {
    int64_t dim;
    TS_TRY(ir_text_expect(t, "["));
    if (!ir_text_int(t, &dim) || dim < -RT_MAX_RANK || dim >= RT_MAX_RANK)
        return ir_text_error(t, "a dim");
    *out = (int)dim;
    return ir_text_expect(t, "]");
}

/* "float32|float64", "2|3": bits. */
static ts_status read_choice(ir_text *t, bool of_dtypes, int64_t *out) {
    do {
        int64_t bit = -1;
        if (of_dtypes)
            bit = rt_dtype_parse(ir_text_name(t));
        else if (!ir_text_int(t, &bit) || bit >= IR_NEED_RANKS)
            bit = -1;
        if (bit < 0)
            return ir_text_error(t, of_dtypes ? "a dtype" : "a rank");
        *out |= (int64_t)1 << bit;
    } while (ir_text_take(t, "|"));
    return NULL;
}

/* "x dtype float32|float64", "x rank 2|3", "x[-1] = 3", "x[0] = y[0]", "x[1] multiple 8". */
static ts_status read_need(ir_text *t, const ir_function *f, ir_need *out) {
    *out = (ir_need){.kind = IR_NEED_DTYPE};
    TS_TRY(read_input(t, f, &out->input));
    if (ir_text_take(t, "dtype"))
        return read_choice(t, true, &out->value);
    out->kind = IR_NEED_RANK;
    if (ir_text_take(t, "rank"))
        return read_choice(t, false, &out->value);
    TS_TRY(read_dim(t, &out->dim));
    bool is_multiple = ir_text_take(t, "multiple");
    out->kind = is_multiple ? IR_NEED_MULTIPLE : IR_NEED_SIZE;
    if (!is_multiple)
        TS_TRY(ir_text_expect(t, "="));
    if (ir_text_int(t, &out->value))
        return !is_multiple || out->value > 0 ? NULL : ir_text_error(t, "a positive number");
    if (is_multiple)
        return ir_text_error(t, "a number");
    out->kind = IR_NEED_SAME;
    TS_TRY(read_input(t, f, &out->other));
    return read_dim(t, &out->other_dim);
}

ts_status ir_read_needs(ir_text *t, ir_function *f) {
    size_t capacity = 0;
    TS_TRY(ir_text_expect(t, "("));
    do {
        ir_need need;
        TS_TRY(read_need(t, f, &need));
        need.is_own = ir_text_take(t, "own");
        TS_APPEND(t->m->arena, f->needs, f->need_count, capacity, need);
    } while (ir_text_take(t, ","));
    return ir_text_expect(t, ")");
}
