/* codegen/lower_value.c - values of a kernel's body at an index: inputs, views, numbers. */
#include "codegen/lower.h"

#include <string.h>

#include "runtime/values/tensor.h"

enum { MAX_DEPTH = 400 };

int lw_fail(lowering *l, const ir_op *op, const char *why) {
    if (!l->status) {
        ts_str name = op && op->opcode == IR_OP_CORE ? rt_op_name(op->core) : TS_STR("kernel");
        l->status = ts_error_at(TS_ERR_UNSUPPORTED, l->op->place, "%.*s: %s", (int)name.length,
                                name.data, why);
    }
    return -1;
}

bool lw_is_none(const ir_value *v) { return !v || v->type->kind == IR_NONE; }

/* ---- inputs ---- */

static int parameter_index(const lowering *l, const ir_value *v) {
    if (v->block != l->body || v->def)
        return -1;
    for (size_t i = 0; i < l->body->parameter_count; i++)
        if (l->body->parameters[i] == v)
            return (int)i;
    return -1;
}

static const rt_tensor *constant_tensor(const ir_value *v) {
    if (!v->def || v->def->opcode != IR_OP_CONST || v->def->value.tag != RT_TAG_TENSOR)
        return NULL;
    return v->def->value.as.tensor;
}

static const void *contiguous_bytes(lowering *l, const rt_tensor *t) {
    if (rt_tensor_is_contiguous(t))
        return t->data;
    size_t size = rt_dtype_size((rt_dtype)t->dtype);
    char *out = ts_arena_alloc(l->unit->arena, (size_t)t->element_count * size + 1);
    rt_cursor c;
    char *to = out;
    for (rt_cursor_start(&c, t); c.left; rt_cursor_next(&c), to += size)
        memcpy(to, c.data, size);
    return out;
}

const float *lw_constant_floats(lowering *l, const ir_value *v) {
    const rt_tensor *t = constant_tensor(v);
    if (!t || t->dtype != RT_float32)
        return NULL;
    return contiguous_bytes(l, t);
}

int lw_tensor_buffer(lowering *l, const ir_value *v) {
    const rt_tensor *t = constant_tensor(v);
    if (t)
        return kn_add_constant(l->k, contiguous_bytes(l, t),
                               (size_t)t->element_count * rt_dtype_size((rt_dtype)t->dtype));
    int index = parameter_index(l, v), buffer = 0;
    if (index < 0)
        return -1;
    for (int i = 0; i < index; i++)
        buffer += l->op->operands[i]->type->kind == IR_TENSOR;
    return buffer;
}

static bool is_input(const lowering *l, const ir_value *v) {
    return v->type->kind == IR_TENSOR && (parameter_index(l, v) >= 0 || constant_tensor(v));
}

static const ir_value *base_of(const lowering *l, const ir_value *v) {
    for (int depth = 0; depth < MAX_DEPTH; depth++) {
        if (is_input(l, v))
            return v;
        if (!v->def || ir_view_kind_of(v->def) == IR_VIEW_NONE)
            return NULL;
        v = v->def->operands[0];
    }
    return NULL;
}

static bool source_view(lowering *l, const ir_value *v, ir_strided *out, int depth) {
    if (depth > 64)
        return false;
    if (constant_tensor(v))
        return ir_strided_dense(l->ir, v->type, IR_LAYOUT_CONTIGUOUS, out);
    int index = parameter_index(l, v);
    if (index >= 0) {
        const ir_type *t = l->op->operands[index]->type; /* holds the layout */
        return ir_strided_dense(l->ir, t, t->layout, out);
    }
    ir_strided in;
    return source_view(l, v->def->operands[0], &in, depth + 1) &&
           ir_strided_apply(l->ir, v->def, &in, out);
}

bool lw_source(lowering *l, ir_value *v, int *out_buffer, ir_strided *out) {
    const ir_value *base = base_of(l, v);
    if (!base || !source_view(l, v, out, 0))
        return false;
    *out_buffer = lw_tensor_buffer(l, base);
    return *out_buffer >= 0;
}

static int load(lowering *l, rt_dtype element, int buffer, const ir_strided *s, const lw_map *map) {
    kn_access a;
    memset(&a, 0, sizeof a);
    a.buffer = buffer;
    a.element = element;
    a.offset = s->offset;
    for (int d = 0; d < s->rank; d++) {
        a.offset = kn_dim_add(l->k, a.offset, kn_dim_mul(l->k, s->strides[d], map->dims[d].offset));
        for (int n = 0; n < l->k->dim_count; n++)
            a.strides[n] = kn_dim_add(
                l->k, a.strides[n], kn_dim_mul(l->k, s->strides[d], map->dims[d].factors[n]));
    }
    return kn_load(l->k, &a);
}

/* ---- views of computed values ---- */

static lw_index scaled(lowering *l, const lw_index *i, rt_dim factor, rt_dim offset) {
    lw_index r;
    r.offset = kn_dim_add(l->k, kn_dim_mul(l->k, i->offset, factor), offset);
    for (int n = 0; n < KN_MAX_DIMS; n++)
        r.factors[n] = kn_dim_mul(l->k, i->factors[n], factor);
    return r;
}

static lw_index sum_of(lowering *l, const lw_index *a, const lw_index *b) {
    lw_index r;
    r.offset = kn_dim_add(l->k, a->offset, b->offset);
    for (int n = 0; n < KN_MAX_DIMS; n++)
        r.factors[n] = kn_dim_add(l->k, a->factors[n], b->factors[n]);
    return r;
}

/* Dims of the operand from those of a reshape's result: equal dims pass, several result dims make
 * one operand dim; one result dim that several operand dims make up cannot be split. */
static bool reshape_map(lowering *l, const ir_type *from, const ir_type *to, const lw_map *map,
                        lw_map *out) {
    out->rank = from->rank;
    int j = 0;
    for (int i = 0; i < from->rank; i++) {
        lw_index zero;
        memset(&zero, 0, sizeof zero);
        out->dims[i] = zero;
        if (from->dims[i] == 1)
            continue;
        while (j < to->rank && to->dims[j] == 1)
            j++;
        if (j == to->rank)
            return false;
        rt_dim covered = to->dims[j];
        lw_index index = map->dims[j++];
        while (!ir_dim_same(l->ir, covered, from->dims[i])) {
            if (j == to->rank || covered == RT_DIM_UNKNOWN)
                return false;
            if (rt_dim_is_constant(covered) && rt_dim_is_constant(from->dims[i]) &&
                covered > from->dims[i])
                return false;
            lw_index high = scaled(l, &index, to->dims[j], 0);
            index = sum_of(l, &high, &map->dims[j]);
            covered = kn_dim_mul(l->k, covered, to->dims[j++]);
        }
        out->dims[i] = index;
    }
    return true;
}

static int through_view(lowering *l, const ir_op *op, const lw_map *map) {
    ir_value *x = op->operands[0];
    const ir_type *from = x->type, *to = op->results[0]->type;
    lw_map inner;
    memset(&inner, 0, sizeof inner);
    inner.rank = from->rank;
    switch (ir_view_kind_of(op)) {
    case IR_VIEW_NONE: return lw_fail(l, op, "not a view");
    case IR_VIEW_IDENTITY: return lw_value(l, x, map);
    case IR_VIEW_RESHAPE:
        if (!reshape_map(l, from, to, map, &inner))
            return lw_fail(l, op, "a reshape inside of a kernel splits a dim");
        break;
    case IR_VIEW_PERMUTE: {
        int source[IR_STRIDED_MAX_RANK];
        if (!ir_view_permutation(l->ir, op, source))
            return lw_fail(l, op, "unknown permutation");
        for (int d = 0; d < to->rank; d++)
            inner.dims[source[d]] = map->dims[d];
        break;
    }
    case IR_VIEW_EXPAND: return lw_broadcast(l, x, to, map);
    case IR_VIEW_SLICE: case IR_VIEW_SELECT: {
        int dim;
        int64_t start, step;
        if (!ir_view_slice(l->ir, op, &dim, &start, &step))
            return lw_fail(l, op, "a slice whose bounds are not constant");
        bool is_select = to->rank < from->rank;
        for (int d = 0; d < from->rank; d++) {
            if (d == dim && is_select)
                inner.dims[d].offset = start;
            else if (d == dim)
                inner.dims[d] = scaled(l, &map->dims[d], step, start);
            else
                inner.dims[d] = map->dims[is_select && d > dim ? d - 1 : d];
        }
        break;
    }
    }
    return lw_value(l, x, &inner);
}

/* ---- values ---- */

static bool same_map(const lw_map *a, const lw_map *b) {
    if (a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (memcmp(&a->dims[d], &b->dims[d], sizeof a->dims[d]) != 0)
            return false;
    return true;
}

static int compute(lowering *l, ir_value *v, const lw_map *map) {
    if (!ir_type_is_known_tensor(v->type))
        return lw_fail(l, v->def, "a tensor of unknown dtype or sizes");
    if (map->rank != v->type->rank)
        return lw_fail(l, v->def, "ranks do not fit");
    int buffer;
    ir_strided s;
    if (base_of(l, v) && lw_source(l, v, &buffer, &s))
        return load(l, v->type->dtype, buffer, &s, map);
    if (!v->def)
        return lw_fail(l, NULL, "not an input");
    if (v->def == l->anchor) {
        if (!lw_is_space(l, map, false))
            return lw_fail(l, v->def, "its result is read at two places");
        return l->anchor_node;
    }
    if (ir_view_kind_of(v->def) != IR_VIEW_NONE)
        return through_view(l, v->def, map);
    if (lw_is_reduction(l, v->def))
        return lw_reduction(l, v->def, v->index, map);
    ir_resize resize;
    if (ir_resize_of(l->ir, v->def, &resize))
        return lw_resize(l, v->def, &resize, map);
    return lw_pointwise(l, v->def, map);
}

int lw_value(lowering *l, ir_value *v, const lw_map *map) {
    if (l->status)
        return -1;
    lw_memo *memo = v->number < l->memo_count ? &l->memos[v->number] : NULL;
    if (memo && memo->is_set && same_map(&memo->map, map))
        return memo->node;
    if (++l->depth > MAX_DEPTH) {
        l->depth--;
        return lw_fail(l, v->def, "the body is too deep");
    }
    int node = compute(l, v, map);
    l->depth--;
    if (memo && node >= 0)
        *memo = (lw_memo){.is_set = true, .map = *map, .node = node};
    return node;
}

int lw_broadcast(lowering *l, ir_value *v, const ir_type *to, const lw_map *map) {
    const ir_type *from = v->type;
    if (!ir_type_is_known_tensor(from))
        return lw_fail(l, v->def, "a tensor of unknown dtype or sizes");
    int lead = to->rank - from->rank;
    if (lead < 0)
        return lw_fail(l, v->def, "an operand has more dims than the result");
    lw_map inner;
    memset(&inner, 0, sizeof inner);
    inner.rank = from->rank;
    for (int d = 0; d < from->rank; d++) {
        if (from->dims[d] == 1 && to->dims[d + lead] != 1)
            continue;
        if (!ir_dim_same(l->ir, from->dims[d], to->dims[d + lead]))
            return lw_fail(l, v->def, "sizes that may broadcast or not");
        inner.dims[d] = map->dims[d + lead];
    }
    return lw_value(l, v, &inner);
}

int lw_scalar(lowering *l, ir_value *v, rt_dtype type) {
    if (v->def && v->def->opcode == IR_OP_CONST) {
        rt_value c = v->def->value;
        if (c.tag == RT_TAG_FLOAT)
            return kn_constant_number(l->k, type, c.as.f);
        if (c.tag == RT_TAG_INT || c.tag == RT_TAG_BOOL)
            return kn_constant_integer(l->k, type, c.as.i);
        return lw_fail(l, v->def, "a constant that is no number");
    }
    int index = parameter_index(l, v);
    ir_kind kind = v->type->kind;
    if (index < 0 || (kind != IR_INT && kind != IR_FLOAT && kind != IR_BOOL))
        return lw_fail(l, v->def, "a number that is not known");
    kn_node n;
    memset(&n, 0, sizeof n);
    n.code = KN_PARAM;
    n.type = kind == IR_FLOAT ? RT_float64 : RT_int64;
    n.args[0] = n.args[1] = n.args[2] = -1;
    n.param = kn_scalar_param(l->k, (size_t)index);
    return kn_cast(l->k, kn_add_node(l->k, n), type);
}

int lw_operand(lowering *l, const ir_op *op, const char *name, rt_dtype type, const lw_map *map) {
    ir_value *v = ir_core_operand(l->ir, op, name);
    if (!v)
        return lw_fail(l, op, "no such argument");
    if (v->type->kind != IR_TENSOR)
        return lw_scalar(l, v, type);
    int node = lw_broadcast(l, v, op->results[0]->type, map);
    return node < 0 ? -1 : kn_cast(l->k, node, type);
}

bool lw_is_space(const lowering *l, const lw_map *map, bool reduced) {
    int j = 0;
    bool keeps = map->rank == l->space_rank;
    lw_index zero;
    memset(&zero, 0, sizeof zero);
    for (int d = 0; d < l->space_rank; d++) {
        bool is_reduced = reduced && (l->reduced & (1u << d));
        if (is_reduced && !keeps)
            continue;
        if (j >= map->rank)
            return false;
        bool one = l->space[d] == 1;
        const lw_index *wanted = is_reduced ? &zero : &l->space_map.dims[d];
        if (!one && memcmp(&map->dims[j], wanted, sizeof *wanted) != 0)
            return false;
        j++;
    }
    return j == map->rank;
}

int lw_size_node(lowering *l, rt_dim d, rt_dtype type) {
    if (rt_dim_is_constant(d))
        return kn_constant_integer(l->k, type, d);
    kn_node n;
    memset(&n, 0, sizeof n);
    n.code = KN_PARAM;
    n.type = RT_int64;
    n.args[0] = n.args[1] = n.args[2] = -1;
    n.param = kn_dim_param(l->k, d);
    return kn_cast(l->k, kn_add_node(l->k, n), type);
}
