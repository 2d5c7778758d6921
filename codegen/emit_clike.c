/* codegen/emit_clike.c - kernel graphs as source for devices.
 *
 *   thread = one point of the dims that are not reduced
 *   for each stage                       reductions of the stage
 *     for all reduced dims
 *       accumulate
 *   stores; those along reduced dims in loops of their own
 *
 * A contraction is a loop over k in the thread of its element. Values that vary are computed again
 * where a later stage needs them: memory is dearer than arithmetic there. */
#include "codegen/dialect.h"

typedef struct clike {
    const cg_dialect *d;
    kn_kernel *k;
    ts_buffer *out;
    bool *done; /* by node: has a variable in the present scope */
    int indent;
    ts_status status;
} clike;

static const char *type_name(rt_dtype t) {
    switch (t) {
    case RT_float32: return "float";
    case RT_float64: return "double";
    case RT_int64: return "ts_long";
    case RT_int32: return "ts_int";
    case RT_int16: return "ts_short";
    case RT_int8: return "ts_char";
    case RT_uint8: return "ts_uchar";
    case RT_bool: return "bool";
    default: return NULL;
    }
}

static const char *memory_type(rt_dtype t) { return t == RT_bool ? "ts_uchar" : type_name(t); }

static void unsupported(clike *c, const char *what) {
    if (!c->status)
        c->status = ts_error_make(TS_ERR_UNSUPPORTED, "%s kernels: %s", c->d->name, what);
}

static void line(clike *c) {
    for (int i = 0; i < c->indent; i++)
        ts_buffer_text(c->out, "  ");
}

static void open_brace(clike *c) {
    ts_buffer_text(c->out, " {\n");
    c->indent++;
}

static void close_brace(clike *c) {
    c->indent--;
    line(c);
    ts_buffer_text(c->out, "}\n");
}

/* ---- sizes and addresses ---- */

static void put_size(clike *c, rt_dim d) {
    if (rt_dim_is_constant(d))
        ts_buffer_format(c->out, "%lldL", (long long)d);
    else if (d == RT_DIM_UNKNOWN)
        unsupported(c, "a size that is not known");
    else
        ts_buffer_format(c->out, "p%d", kn_dim_param(c->k, d));
}

/* offset + sum of index * stride over dims [0, count) */
static void put_offset(clike *c, const kn_access *a, int count) {
    put_size(c, a->offset);
    for (int d = 0; d < count; d++) {
        if (a->strides[d] == 0)
            continue;
        ts_buffer_format(c->out, " + i%d * ", d);
        put_size(c, a->strides[d]);
    }
}

/* more: a node whose value is added to the index; -1 none. */
static void put_element(clike *c, const kn_access *a, int count, int more) {
    const char *type = memory_type(a->element);
    if (!type) {
        unsupported(c, "an element type");
        return;
    }
    ts_buffer_format(c->out, "((%s%s *)(b%d + o%d))[", c->d->global, type, a->buffer, a->buffer);
    put_offset(c, a, count);
    if (more >= 0)
        ts_buffer_format(c->out, " + v%d", more);
    ts_buffer_char(c->out, ']');
}

/* ---- nodes ---- */

static bool is_integer(rt_dtype t) { return !rt_dtype_is_float(t); }

static void put_number(clike *c, rt_dtype type, double v) {
    if (v != v)
        ts_buffer_text(c->out, "(ts_infinity - ts_infinity)");
    else if (v > 1.7e308 || v < -1.7e308)
        ts_buffer_text(c->out, v > 0 ? "ts_infinity" : "(-ts_infinity)");
    else
        ts_buffer_format(c->out, type == RT_float64 ? "%a" : "%af", v);
}

static void put_node(clike *c, int index);

static void put_scalar(clike *c, const kn_node *n) {
    rt_dtype from = c->k->nodes[n->args[0]].type;
    const char *text = c->d->scalar[n->code];
    if (n->code == KN_abs && is_integer(from))
        text = "($0 < 0 ? -$0 : $0)";
    else if (n->code == KN_sign && is_integer(from))
        text = "(($0 > 0) - ($0 < 0))";
    else if (n->code == KN_sign)
        text = "($0 > 0 ? 1 : $0 < 0 ? -1 : 0 * $0)";
    else if (from == RT_float64 && n->code != KN_neg && n->code < KN_add && n->code != KN_isnan)
        text = NULL;
    if (!text || !text[0]) {
        unsupported(c, "an operation without a spelling");
        return;
    }
    for (const char *t = text; *t; t++) {
        if (*t == '$' && t[1] >= '0' && t[1] <= '2') {
            ts_buffer_format(c->out, "v%d", n->args[t[1] - '0']);
            t++;
        } else {
            ts_buffer_char(c->out, *t);
        }
    }
}

/* How many window positions lie inside: the product over windows. */
static void put_count(clike *c, int index) {
    line(c);
    ts_buffer_format(c->out, "ts_long v%d = 1;\n", index);
    for (int d = 0; d < c->k->dim_count; d++) {
        const kn_window *w = &c->k->dims[d].window;
        if (!w->is_on)
            continue;
        line(c);
        ts_buffer_format(c->out, "{ ts_long n = 0; for (ts_long i = 0; i < ");
        put_size(c, c->k->dims[d].size);
        ts_buffer_format(c->out, "; i++) { ts_long at = i%d * %lldL + i * %lldL - %lldL; "
                         "n += at >= 0 && at < ", w->outer, (long long)w->stride,
                         (long long)w->dilation, (long long)w->padding);
        put_size(c, w->input);
        ts_buffer_format(c->out, "; } v%d *= n; }\n", index);
    }
}

static void put_expression(clike *c, const kn_node *n) {
    switch (n->code) {
    case KN_CONSTANT:
        if (rt_dtype_is_float(n->type))
            put_number(c, n->type, n->number);
        else
            ts_buffer_format(c->out, "%lldL", (long long)n->integer);
        break;
    case KN_PARAM:
        if (n->type == RT_float32)
            ts_buffer_format(c->out, "ts_param_float(p%d)", n->param);
        else if (n->type == RT_float64)
            ts_buffer_format(c->out, "ts_param_double(p%d)", n->param);
        else
            ts_buffer_format(c->out, n->type == RT_bool ? "p%d != 0" : "p%d", n->param);
        break;
    case KN_LOAD:
        put_element(c, &n->access, c->k->dim_count, n->args[0]);
        if (n->access.element == RT_bool)
            ts_buffer_text(c->out, " != 0");
        break;
    case KN_TILE: ts_buffer_text(c->out, "tile"); break;
    case KN_INDEX: ts_buffer_format(c->out, "i%d", n->dim); break;
    case KN_CAST:
        ts_buffer_format(c->out, n->type == RT_bool ? "v%d != 0" : "v%d", n->args[0]);
        break;
    case KN_COUNT:
    case KN_REDUCE:
    case KN_CODE_COUNT: break;
    default: put_scalar(c, n); break;
    }
}

/* A variable for the node and for what it needs, in the present scope. */
static void put_node(clike *c, int index) {
    const kn_node *n = &c->k->nodes[index];
    if (c->done[index] || c->status)
        return;
    if (n->code == KN_REDUCE) {
        unsupported(c, "a reduction that is not made yet");
        return;
    }
    /* Nodes come in order, so what a node needs has smaller numbers: no recursion is deep. */
    for (int a = 0; a < 3; a++)
        if (n->args[a] >= 0)
            put_node(c, n->args[a]);
    c->done[index] = true;
    if (n->code == KN_COUNT) {
        put_count(c, index);
        return;
    }
    const char *type = type_name(n->type);
    if (!type) {
        unsupported(c, "a type of values");
        return;
    }
    line(c);
    ts_buffer_format(c->out, "%s v%d = (%s)(", type, index, type);
    put_expression(c, n);
    ts_buffer_text(c->out, ");\n");
}

static void put_store(clike *c, const kn_store *s) {
    put_node(c, s->node);
    line(c);
    put_element(c, &s->access, c->k->dim_count, -1);
    const char *type = memory_type(s->access.element);
    if (s->access.element == RT_bool)
        ts_buffer_format(c->out, " = v%d != 0;\n", s->node);
    else
        ts_buffer_format(c->out, " = (%s)v%d;\n", type ? type : "", s->node);
}

/* ---- loops over the reduced dims ---- */

static bool is_reduced(const kn_kernel *k, int d) {
    return k->dims[d].role == KN_SERIAL || (k->dims[d].role == KN_VECTOR && k->reduces_vector);
}

static int open_loops(clike *c) {
    int opened = 0;
    for (int d = 0; d < c->k->dim_count; d++) {
        const kn_dim *dim = &c->k->dims[d];
        if (!is_reduced(c->k, d))
            continue;
        line(c);
        ts_buffer_format(c->out, "for (ts_long i%d = 0; i%d < ", d, d);
        put_size(c, dim->size);
        ts_buffer_format(c->out, "; i%d++)", d);
        open_brace(c);
        opened++;
        if (dim->window.is_on) {
            line(c);
            ts_buffer_format(c->out, "ts_long at%d = i%d * %lldL + i%d * %lldL - %lldL;\n", d,
                             dim->window.outer, (long long)dim->window.stride, d,
                             (long long)dim->window.dilation, (long long)dim->window.padding);
            line(c);
            ts_buffer_format(c->out, "if (at%d < 0 || at%d >= ", d, d);
            put_size(c, dim->window.input);
            ts_buffer_text(c->out, ") continue;\n");
        }
    }
    return opened;
}

static void close_loops(clike *c, int opened) {
    while (opened-- > 0)
        close_brace(c);
}

static bool *save_scope(clike *c) {
    size_t n = (size_t)c->k->node_count;
    bool *saved = TS_NEW_ARRAY(c->k->arena, bool, n + 1);
    memcpy(saved, c->done, n * sizeof *saved);
    return saved;
}

static void restore_scope(clike *c, const bool *saved) {
    memcpy(c->done, saved, (size_t)c->k->node_count * sizeof *saved);
}

/* ---- reductions ---- */

static const char *lowest(rt_dtype t) {
    switch (t) {
    case RT_int64: return "(-0x7fffffffffffffffL - 1)";
    case RT_int32: return "(-0x7fffffff - 1)";
    case RT_int16: return "(-0x8000)";
    case RT_int8: return "(-0x80)";
    case RT_uint8:
    case RT_bool: return "0";
    default: return "(-ts_infinity)";
    }
}

static const char *highest(rt_dtype t) {
    switch (t) {
    case RT_int64: return "0x7fffffffffffffffL";
    case RT_int32: return "0x7fffffff";
    case RT_int16: return "0x7fff";
    case RT_int8: return "0x7f";
    case RT_uint8: return "0xff";
    case RT_bool: return "1";
    default: return "ts_infinity";
    }
}

static const char *initial(const kn_node *n, rt_dtype from) {
    switch (n->reduction) {
    case KN_RED_PROD: return "1";
    case KN_RED_MAX:
    case KN_RED_ARGMAX: return lowest(from);
    case KN_RED_MIN:
    case KN_RED_ARGMIN: return highest(from);
    case KN_RED_ALL: return from == RT_bool ? "1" : "-1";
    case KN_RED_SUM:
    case KN_RED_ANY: break;
    }
    return "0";
}

static bool is_argument(const kn_node *n) {
    return n->reduction == KN_RED_ARGMAX || n->reduction == KN_RED_ARGMIN;
}

static void declare_accumulator(clike *c, int index) {
    const kn_node *n = &c->k->nodes[index];
    rt_dtype from = c->k->nodes[n->args[0]].type;
    const char *type = type_name(from);
    if (!type || !type_name(n->type)) {
        unsupported(c, "a type of values");
        return;
    }
    line(c);
    ts_buffer_format(c->out, "%s a%d = %s;\n", type, index, initial(n, from));
    if (is_argument(n)) {
        line(c);
        ts_buffer_format(c->out, "ts_long w%d = 0;\n", index);
    }
}

/* The position in the reduced dims, row-major. */
static void put_position(clike *c) {
    ts_buffer_text(c->out, "(0");
    for (int d = 0; d < c->k->dim_count; d++) {
        if (!is_reduced(c->k, d))
            continue;
        ts_buffer_text(c->out, " * ");
        put_size(c, c->k->dims[d].size);
        ts_buffer_format(c->out, " + i%d)", d);
    }
}

static int reduced_count(const kn_kernel *k) {
    int n = 0;
    for (int d = 0; d < k->dim_count; d++)
        n += is_reduced(k, d);
    return n;
}

static void accumulate(clike *c, int index) {
    const kn_node *n = &c->k->nodes[index];
    int from = n->args[0];
    put_node(c, from);
    line(c);
    switch (n->reduction) {
    case KN_RED_SUM: ts_buffer_format(c->out, "a%d += v%d;\n", index, from); return;
    case KN_RED_PROD: ts_buffer_format(c->out, "a%d *= v%d;\n", index, from); return;
    case KN_RED_MAX:
        ts_buffer_format(c->out, "a%d = ts_maximum(v%d, a%d);\n", index, from, index);
        return;
    case KN_RED_MIN:
        ts_buffer_format(c->out, "a%d = ts_minimum(v%d, a%d);\n", index, from, index);
        return;
    case KN_RED_ANY: ts_buffer_format(c->out, "a%d |= v%d;\n", index, from); return;
    case KN_RED_ALL: ts_buffer_format(c->out, "a%d &= v%d;\n", index, from); return;
    case KN_RED_ARGMAX:
    case KN_RED_ARGMIN: break;
    }
    char sign = n->reduction == KN_RED_ARGMAX ? '>' : '<';
    ts_buffer_format(c->out, "if (v%d %c a%d || (v%d != v%d && a%d == a%d)) { a%d = v%d; w%d = ",
                     from, sign, index, from, from, index, index, index, from, index);
    for (int i = 1; i < reduced_count(c->k); i++)
        ts_buffer_char(c->out, '(');
    put_position(c);
    ts_buffer_text(c->out, "; }\n");
}

static void put_stage(clike *c, int stage) {
    kn_kernel *k = c->k;
    bool any = false;
    for (int i = 0; i < k->node_count; i++) {
        const kn_node *n = &k->nodes[i];
        if (n->code != KN_REDUCE || !n->is_needed || n->stage != stage + 1)
            continue;
        declare_accumulator(c, i);
        any = true;
    }
    if (!any || c->status)
        return;
    bool *saved = save_scope(c);
    int opened = open_loops(c);
    for (int i = 0; i < k->node_count; i++) {
        const kn_node *n = &k->nodes[i];
        if (n->code == KN_REDUCE && n->is_needed && n->stage == stage + 1)
            accumulate(c, i);
    }
    close_loops(c, opened);
    restore_scope(c, saved);
    for (int i = 0; i < k->node_count; i++) {
        const kn_node *n = &k->nodes[i];
        if (n->code != KN_REDUCE || !n->is_needed || n->stage != stage + 1)
            continue;
        const char *type = type_name(n->type);
        line(c);
        ts_buffer_format(c->out, "%s v%d = (%s)%c%d;\n", type, i, type, is_argument(n) ? 'w' : 'a',
                         i);
        c->done[i] = true;
    }
}

/* ---- stores ---- */

static bool is_inner_store(const kn_kernel *k, const kn_store *s) {
    for (int d = 0; d < k->dim_count; d++)
        if (is_reduced(k, d) && (s->access.strides[d] != 0 || (k->nodes[s->node].dims & 1u << d)))
            return true;
    return false;
}

static void put_stores(clike *c) {
    bool any_inner = false;
    for (int i = 0; i < c->k->store_count; i++) {
        if (is_inner_store(c->k, &c->k->stores[i]))
            any_inner = true;
        else
            put_store(c, &c->k->stores[i]);
    }
    if (!any_inner)
        return;
    bool *saved = save_scope(c);
    int opened = open_loops(c);
    for (int i = 0; i < c->k->store_count; i++)
        if (is_inner_store(c->k, &c->k->stores[i]))
            put_store(c, &c->k->stores[i]);
    close_loops(c, opened);
    restore_scope(c, saved);
}

/* ---- contractions ---- */

static void put_base(clike *c, const kn_access *a, const char *name) {
    line(c);
    ts_buffer_format(c->out, "%sconst float *%s = (%sconst float *)(b%d + o%d) + ", c->d->global,
                     name, c->d->global, a->buffer, a->buffer);
    put_offset(c, a, c->k->contraction.batch_count);
    ts_buffer_text(c->out, ";\n");
}

static void put_right(clike *c) {
    const kn_contraction *t = &c->k->contraction; /* float32: lower_weights.c sees to it */
    int n = t->batch_count + 1;
    if (t->right_is_packed) {
        ts_buffer_format(c->out, "right[((i%d >> 4) * ", n);
        put_size(c, t->k);
        ts_buffer_format(c->out, " + k) * 16 + (i%d & 15)]", n);
        return;
    }
    ts_buffer_text(c->out, "right[k * ");
    put_size(c, t->right_k);
    ts_buffer_format(c->out, " + i%d * ", n);
    put_size(c, t->right.strides[n]);
    ts_buffer_char(c->out, ']');
}

static void put_product_rows(clike *c) {
    const kn_contraction *t = &c->k->contraction;
    int m = t->batch_count;
    line(c);
    ts_buffer_text(c->out, "for (ts_long k = 0; k < ");
    put_size(c, t->k);
    ts_buffer_text(c->out, "; k++)\n");
    c->indent++;
    line(c);
    ts_buffer_format(c->out, "tile += left[i%d * ", m);
    put_size(c, t->left.strides[m]);
    ts_buffer_text(c->out, " + k * ");
    put_size(c, t->left_k);
    ts_buffer_text(c->out, "] * ");
    put_right(c);
    ts_buffer_text(c->out, ";\n");
    c->indent--;
}

static void put_tap(clike *c, char axis, int64_t kernel, int64_t stride, int64_t dilation,
                    int64_t pad, rt_dim input) {
    line(c);
    ts_buffer_format(c->out, "for (ts_long k%c = 0; k%c < %lldL; k%c++)", axis, axis,
                     (long long)kernel, axis);
    open_brace(c);
    line(c);
    ts_buffer_format(c->out, "ts_long %c = o_%c * %lldL + k%c * %lldL - %lldL;\n", axis, axis,
                     (long long)stride, axis, (long long)dilation, (long long)pad);
    line(c);
    ts_buffer_format(c->out, "if (%c < 0 || %c >= ", axis, axis);
    put_size(c, input);
    ts_buffer_text(c->out, ") continue;\n");
}

static void put_product_images(clike *c) {
    const kn_contraction *t = &c->k->contraction;
    line(c);
    ts_buffer_format(c->out, "ts_long row = i%d / ", t->batch_count);
    put_size(c, t->out_w);
    ts_buffer_format(c->out, ", o_w = i%d - row * ", t->batch_count);
    put_size(c, t->out_w);
    ts_buffer_text(c->out, ", image = row / ");
    put_size(c, t->out_h);
    ts_buffer_text(c->out, ", o_h = row - image * ");
    put_size(c, t->out_h);
    ts_buffer_text(c->out, ";\n");
    put_tap(c, 'h', t->kernel_h, t->stride_h, t->dilation_h, t->pad_h, t->input_h);
    put_tap(c, 'w', t->kernel_w, t->stride_w, t->dilation_w, t->pad_w, t->input_w);
    line(c);
    ts_buffer_text(c->out, "ts_long at = image * ");
    put_size(c, t->image_stride);
    ts_buffer_text(c->out, " + h * ");
    put_size(c, t->h_stride);
    ts_buffer_text(c->out, " + w * ");
    put_size(c, t->w_stride);
    ts_buffer_text(c->out, ";\n");
    line(c);
    ts_buffer_format(c->out, "for (ts_long c = 0; c < %lldL; c++)", (long long)t->channels);
    open_brace(c);
    line(c);
    ts_buffer_format(c->out, "ts_long k = c * %lldL + kh * %lldL + kw * %lldL;\n",
                     (long long)t->term_c, (long long)t->term_h, (long long)t->term_w);
    line(c);
    ts_buffer_text(c->out, "tile += left[at + c * ");
    put_size(c, t->left_k);
    ts_buffer_text(c->out, "] * ");
    put_right(c);
    ts_buffer_text(c->out, ";\n");
    close_brace(c);
    close_brace(c);
    close_brace(c);
}

static void put_contraction(clike *c) {
    const kn_contraction *t = &c->k->contraction;
    if (t->is_integer)
        unsupported(c, "products of bytes");
    put_base(c, &t->left, "left");
    put_base(c, &t->right, "right");
    line(c);
    ts_buffer_text(c->out, "float tile = 0;\n");
    if (t->kernel_h > 0)
        put_product_images(c);
    else
        put_product_rows(c);
    put_stores(c);
}

/* ---- the kernel ---- */

static rt_dim thread_count(clike *c) {
    rt_dim n = 1;
    for (int d = 0; d < c->k->dim_count; d++)
        if (c->k->contraction.is_on || !is_reduced(c->k, d))
            n = kn_dim_mul(c->k, n, c->k->dims[d].size);
    return n;
}

static void put_indices(clike *c) {
    line(c);
    ts_buffer_text(c->out, "ts_long rest = thread;\n");
    for (int d = c->k->dim_count - 1; d >= 0; d--) {
        if (!c->k->contraction.is_on && is_reduced(c->k, d))
            continue;
        line(c);
        ts_buffer_format(c->out, "ts_long i%d = rest %% ", d);
        put_size(c, c->k->dims[d].size);
        ts_buffer_text(c->out, "; rest /= ");
        put_size(c, c->k->dims[d].size);
        ts_buffer_text(c->out, ";\n");
    }
}

static void put_signature(clike *c, ts_str name, ts_buffer *out) {
    ts_buffer_format(out, "%s %.*s(", c->d->kernel, (int)name.length, name.data);
    int buffers = c->k->buffer_count + c->k->constant_count;
    for (int i = 0; i < buffers; i++)
        ts_buffer_format(out, "%s%schar *b%d, ts_long o%d", i ? ", " : "", c->d->global, i, i);
    for (int i = 0; i < c->k->param_count; i++)
        ts_buffer_format(out, ", ts_long p%d", i);
    ts_buffer_text(out, ") {\n");
}

ts_status kn_emit_clike(const cg_dialect *dialect, kn_kernel *k, ts_str name, ts_buffer *out,
                        rt_dim *out_threads) {
    ts_buffer body = {0}, head = {0};
    clike c = {.d = dialect, .k = k, .out = &body, .indent = 1};
    c.done = TS_NEW_ARRAY(k->arena, bool, (size_t)k->node_count + 1);
    *out_threads = thread_count(&c);
    if (k->attention.is_on)
        unsupported(&c, "attention in one kernel");
    if (k->next)
        unsupported(&c, "a kernel of several parts");
    if (k->contraction.has_line_dim)
        unsupported(&c, "a convolution line by line");
    if (*out_threads == RT_DIM_UNKNOWN)
        unsupported(&c, "a size that is not known");
    ts_buffer_format(&body, "  ts_long thread = %s;\n  if (thread >= ", dialect->thread);
    put_size(&c, *out_threads);
    ts_buffer_text(&body, ")\n    return;\n");
    put_indices(&c);
    if (k->contraction.is_on) {
        put_contraction(&c);
    } else {
        for (int stage = 0; stage < k->stage_count; stage++)
            put_stage(&c, stage);
        put_stores(&c);
    }
    /* The signature names every parameter that the body made. */
    put_signature(&c, name, &head);
    if (!c.status)
        c.status = ts_buffer_status(&body);
    if (!c.status)
        c.status = ts_buffer_status(&head);
    if (!c.status) {
        ts_buffer_append(out, head.data, head.length);
        ts_buffer_append(out, body.data, body.length);
        ts_buffer_text(out, "}\n\n");
    }
    ts_buffer_deinit(&body);
    ts_buffer_deinit(&head);
    return c.status;
}
