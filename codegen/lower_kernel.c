/* codegen/lower_kernel.c - the body of an IR_OP_KERNEL as a kernel graph, and that as code.
 *
 * Without an anchor (a contraction, pooling, depthwise convolution) the body is one loop nest over a
 * space: the shape that reductions reduce, else the first result's, seen through the views that
 * follow it. Dims run in the order of memory, the contiguous one last. */
#include "codegen/dialect.h"
#include "codegen/lower.h"
#include "ir/kernel_form.h"

#include <string.h>

/* ---- results ---- */

typedef struct output {
    ir_value *value;    /* what is stored, views undone */
    ir_strided strided; /* where its elements go */
} output;

static bool is_body_input(const lowering *l, const ir_value *v) {
    return !v->def || v->def->opcode == IR_OP_CONST || v->def->block != l->body;
}

static ts_status resolve_output(lowering *l, size_t index, output *out) {
    const ir_type *t = l->op->results[index]->type;
    ir_value *v = l->body->last->operands[index];
    if (!ir_strided_dense(l->ir, t, t->layout, &out->strided))
        return ts_error_at(TS_ERR_UNSUPPORTED, l->op->place, "a result of unknown dtype or sizes");
    for (int depth = 0; depth < 64 && !is_body_input(l, v); depth++) {
        ir_strided inner;
        if (ir_view_kind_of(v->def) == IR_VIEW_NONE ||
            !ir_strided_invert(l->ir, v->def, &out->strided, &inner))
            break;
        out->strided = inner;
        v = v->def->operands[0];
    }
    out->value = v;
    return NULL;
}

ts_status lw_output(lowering *l, size_t index, ir_value **out_value, ir_strided *out_strided) {
    output o;
    TS_TRY(resolve_output(l, index, &o));
    *out_value = o.value;
    *out_strided = o.strided;
    return NULL;
}

static bool has_dims(lowering *l, const ir_type *t, const rt_dim *dims, int rank) {
    if (t->rank != rank)
        return false;
    for (int d = 0; d < rank; d++)
        if (!ir_dim_same(l->ir, t->dims[d], dims[d]))
            return false;
    return true;
}

/* The map of a value of type t: the space's, or without the reduced dims. */
static bool map_of(lowering *l, const ir_type *t, lw_map *out) {
    memset(out, 0, sizeof *out);
    if (has_dims(l, t, l->space, l->space_rank)) {
        *out = l->space_map;
        return true;
    }
    if (!l->reduced)
        return false;
    out->rank = t->rank;
    bool keeps = t->rank == l->space_rank;
    int j = 0;
    for (int d = 0; d < l->space_rank; d++) {
        bool is_reduced = (l->reduced & (1u << d)) != 0;
        if (is_reduced && !keeps)
            continue;
        if (j >= t->rank)
            return false;
        if (is_reduced ? t->dims[j] != 1 : !ir_dim_same(l->ir, t->dims[j], l->space[d]))
            return false;
        if (!is_reduced)
            out->dims[j] = l->space_map.dims[d];
        j++;
    }
    return j == t->rank;
}

ts_status lw_stores(lowering *l) {
    size_t operands = 0;
    for (size_t i = 0; i < l->op->operand_count; i++)
        operands += l->op->operands[i]->type->kind == IR_TENSOR;
    for (size_t i = 0; i < l->op->result_count; i++) {
        output o;
        TS_TRY(resolve_output(l, i, &o));
        lw_map map;
        if (!map_of(l, o.value->type, &map))
            return ts_error_at(TS_ERR_UNSUPPORTED, l->op->place, "results of different shapes");
        int node = lw_value(l, o.value, &map);
        if (node < 0)
            return l->status;
        kn_access a;
        memset(&a, 0, sizeof a);
        a.buffer = (int)(operands + i);
        a.element = l->op->results[i]->type->dtype;
        a.offset = o.strided.offset;
        for (int d = 0; d < map.rank; d++) {
            a.offset = kn_dim_add(l->k, a.offset,
                                  kn_dim_mul(l->k, o.strided.strides[d], map.dims[d].offset));
            for (int n = 0; n < l->k->dim_count; n++)
                a.strides[n] = kn_dim_add(
                    l->k, a.strides[n],
                    kn_dim_mul(l->k, o.strided.strides[d], map.dims[d].factors[n]));
        }
        kn_add_store(l->k, node, &a);
    }
    return NULL;
}

/* ---- the space of a nest ---- */

static ts_status find_space(lowering *l, ir_strided *reference) {
    const ir_type *shape = NULL;
    for (const ir_op *op = l->body->first; op; op = op->next) {
        const ir_type *s;
        uint32_t reduced;
        if (!lw_is_reduction(l, op))
            continue;
        if (!lw_reduction_space(l, op, &s, &reduced))
            return ts_error_at(TS_ERR_UNSUPPORTED, op->place, "a reduction over unknown dims");
        if (shape && (reduced != l->reduced || !has_dims(l, s, shape->dims, shape->rank)))
            return ts_error_at(TS_ERR_UNSUPPORTED, op->place, "reductions of different dims");
        shape = s;
        l->reduced = reduced;
    }
    output o;
    TS_TRY(resolve_output(l, 0, &o));
    bool has_reference = false;
    if (!shape) {
        shape = o.value->type;
        *reference = o.strided;
        has_reference = true;
    }
    if (!ir_type_is_known_tensor(shape))
        return ts_error_at(TS_ERR_UNSUPPORTED, l->op->place, "a shape that is not known");
    l->space_rank = shape->rank;
    for (int d = 0; d < shape->rank; d++)
        l->space[d] = shape->dims[d];
    for (size_t i = 0; i < l->op->operand_count && !has_reference; i++) {
        const ir_type *t = l->op->operands[i]->type;
        if (t->kind == IR_TENSOR && has_dims(l, t, l->space, l->space_rank))
            has_reference = ir_strided_dense(l->ir, t, t->layout, reference);
    }
    if (!has_reference && !ir_strided_dense(l->ir, shape, IR_LAYOUT_CONTIGUOUS, reference))
        return ts_error_at(TS_ERR_UNSUPPORTED, l->op->place, "a shape that is not known");
    return NULL;
}

/* Dims of the space by falling stride; what cannot be compared keeps its order. */
static void order_by_memory(const lowering *l, const ir_strided *reference, int *order) {
    for (int d = 0; d < l->space_rank; d++)
        order[d] = d;
    for (int i = 1; i < l->space_rank; i++)
        for (int j = i; j > 0; j--) {
            rt_dim a = reference->strides[order[j - 1]], b = reference->strides[order[j]];
            bool one_a = l->space[order[j - 1]] == 1, one_b = l->space[order[j]] == 1;
            if (one_a || one_b || !rt_dim_is_constant(a) || !rt_dim_is_constant(b)) {
                /* A symbolic stride is a product of sizes: more than 1. */
                if (one_a || one_b || !(a == 1 && !rt_dim_is_constant(b)))
                    break;
            } else if (a >= b) {
                break;
            }
            int swap = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
}

static void add_dim(lowering *l, int d, kn_role role) {
    kn_kernel *k = l->k;
    k->dims[k->dim_count] = (kn_dim){.size = l->space[d], .role = role};
    l->space_map.dims[d].factors[k->dim_count] = 1;
    k->dim_count++;
}

/* Three channels innermost fill no vector: the dim around them does, and its elements are stored apart. */
static int widen_vector(const lowering *l, const int *order, int last) {
    enum { FEW = 4, MANY = 16 };
    if (l->reduced || last < 0 || !rt_dim_is_constant(l->space[last]) || l->space[last] >= FEW)
        return last;
    int around = -1;
    for (int i = 0; order[i] != last; i++)
        if (l->space[order[i]] != 1)
            around = order[i];
    bool is_wide = around >= 0 && rt_dim_is_constant(l->space[around]) && l->space[around] >= MANY;
    return is_wide ? around : last;
}

/* Dims of the space in the order of `reference`; the innermost becomes the vector dim. */
static void add_dims(lowering *l, const ir_strided *reference) {
    int order[IR_STRIDED_MAX_RANK];
    order_by_memory(l, reference, order);
    l->space_map.rank = l->space_rank;
    int last = -1;
    for (int i = 0; i < l->space_rank; i++) /* the innermost dim that is more than one element */
        if (last < 0 || l->space[order[i]] != 1)
            last = order[i];
    last = widen_vector(l, order, last);
    l->k->reduces_vector = last >= 0 && (l->reduced & (1u << last));
    for (int i = 0; i < l->space_rank; i++)
        if (order[i] != last && !(l->reduced & (1u << order[i])))
            add_dim(l, order[i], KN_OUTER);
    for (int i = 0; i < l->space_rank; i++)
        if (order[i] != last && (l->reduced & (1u << order[i])))
            add_dim(l, order[i], KN_SERIAL);
    if (last >= 0)
        add_dim(l, last, KN_VECTOR);
    else
        l->k->dims[l->k->dim_count++] = (kn_dim){.size = 1, .role = KN_VECTOR};
}

static ts_status build_nest(lowering *l) {
    ir_strided reference;
    TS_TRY(find_space(l, &reference));
    add_dims(l, &reference);
    return lw_stores(l);
}

/* ---- concatenation: one part for each tensor ---- */

static ir_op *find_concat(const lowering *l) {
    for (ir_op *op = l->body->first; op; op = op->next)
        if (ir_is_concat(op))
            return op;
    return NULL;
}

static ts_status concat_part(lowering *l, ir_value *item, const ir_strided *result, int dim,
                             bool stacks, rt_dim start) {
    const ir_type *t = item->type;
    if (!ir_type_is_known_tensor(t))
        return ts_error_at(TS_ERR_UNSUPPORTED, l->op->place, "a part of unknown sizes");
    ir_strided to = {.rank = t->rank, .offset = kn_dim_mul(l->k, result->strides[dim], start)};
    for (int d = 0; d < t->rank; d++) {
        to.sizes[d] = l->space[d] = t->dims[d];
        to.strides[d] = result->strides[stacks && d >= dim ? d + 1 : d];
    }
    l->space_rank = t->rank;
    memset(&l->space_map, 0, sizeof l->space_map);
    memset(l->memos, 0, l->memo_count * sizeof *l->memos);
    add_dims(l, &to);
    int node = lw_value(l, item, &l->space_map);
    if (node < 0)
        return l->status;
    kn_access a;
    memset(&a, 0, sizeof a);
    for (size_t i = 0; i < l->op->operand_count; i++)
        a.buffer += l->op->operands[i]->type->kind == IR_TENSOR;
    a.element = l->op->results[0]->type->dtype;
    a.offset = to.offset;
    for (int d = 0; d < t->rank; d++)
        for (int n = 0; n < l->k->dim_count; n++)
            a.strides[n] = kn_dim_add(
                l->k, a.strides[n],
                kn_dim_mul(l->k, to.strides[d], l->space_map.dims[d].factors[n]));
    kn_add_store(l->k, node, &a);
    return NULL;
}

static ts_status build_concat(lowering *l, const ir_op *concat) {
    const ir_value *list = concat->operands[0];
    const ir_type *r = l->op->results[0]->type;
    ir_strided result;
    int64_t dim;
    if (l->op->result_count != 1 || l->body->last->operands[0] != concat->results[0] ||
        !list->def || list->def->opcode != IR_OP_LIST || !ir_const_int(concat->operands[1], &dim) ||
        !ir_strided_dense(l->ir, r, r->layout, &result))
        return ts_error_at(TS_ERR_UNSUPPORTED, l->op->place, "an odd concatenation");
    dim = dim < 0 ? dim + r->rank : dim;
    bool stacks = ir_is_stack(concat);
    kn_kernel *first = l->k, *last = NULL;
    rt_dim start = 0, items = 0;
    for (size_t i = 0; i < list->def->operand_count; i++) {
        ir_value *item = list->def->operands[i];
        if (last) {
            l->k = kn_make(l->unit->arena, l->ir, first->buffer_count);
            l->k->owner = first;
            last->next = l->k;
        }
        last = l->k;
        TS_TRY(concat_part(l, item, &result, (int)dim, stacks, start));
        TS_TRY(kn_schedule(l->k, l->unit->target));
        TS_TRY(kn_check_supported(l->k, l->unit->target));
        if (!rt_dim_is_constant(l->k->part_items))
            kn_dim_param(l->k, l->k->part_items);
        start = kn_dim_add(l->k, start, stacks ? 1 : item->type->dims[dim]);
        items = kn_dim_add(l->k, items, l->k->part_items);
        if (start == RT_DIM_UNKNOWN || items == RT_DIM_UNKNOWN)
            return ts_error_at(TS_ERR_UNSUPPORTED, l->op->place, "parts of unknown sizes");
    }
    l->k = first;
    first->work_items = items;
    return NULL;
}

/* ---- the kernel ---- */

static ts_status number_values(lowering *l, bool is_attention) {
    uint32_t count = 0;
    for (size_t i = 0; i < l->body->parameter_count; i++)
        l->body->parameters[i]->number = count++;
    for (ir_op *op = l->body->first; op; op = op->next) {
        if (op->region_count)
            return ts_error_at(TS_ERR_UNSUPPORTED, op->place, "control flow in a kernel");
        for (size_t i = 0; i < op->result_count; i++)
            op->results[i]->number = count++;
        if (lw_is_anchor(l, op) && !is_attention) {
            if (l->anchor)
                return ts_error_at(TS_ERR_UNSUPPORTED, op->place, "two contractions in a kernel");
            l->anchor = op;
        }
    }
    l->memos = TS_NEW_ARRAY(l->unit->arena, lw_memo, count + 1);
    l->memo_count = count;
    return NULL;
}

/* The product whose result is stored, behind views. */
static ir_op *stored_product(const lowering *l) {
    ir_value *v = l->body->last->operands[0];
    for (int depth = 0; depth < 64 && !is_body_input(l, v); depth++) {
        if (ir_view_kind_of(v->def) == IR_VIEW_NONE)
            return v->def;
        v = v->def->operands[0];
    }
    return NULL;
}

void lw_fill(const kn_kernel *k, const char *name, cg_kernel *out) {
    memset(out, 0, sizeof *out);
    out->symbol = (ts_str){.data = name, .length = strlen(name)};
    out->params = k->params;
    out->param_count = (size_t)k->param_count;
    out->constants = k->constants;
    out->constant_count = (size_t)k->constant_count;
    out->work_items = k->work_items;
    out->grain = k->grain;
    out->alternates = k->alternates;
    out->scratch_bytes = k->scratch_bytes;
    out->flops = k->flops;
    out->bytes = k->bytes;
}

ts_status lw_build(cg_unit *unit, const ir_op *op, kn_kernel **out) {
    lowering l;
    memset(&l, 0, sizeof l);
    l.unit = unit;
    l.ir = unit->ir;
    l.op = op;
    l.body = op->regions[0];
    if (!l.body->last || l.body->last->opcode != IR_OP_YIELD ||
        l.body->last->operand_count != op->result_count || op->result_count == 0)
        return ts_error_at(TS_ERR_INTERNAL, op->place, "a kernel that does not yield its results");
    int buffers = 0;
    for (size_t i = 0; i < op->operand_count; i++)
        buffers += op->operands[i]->type->kind == IR_TENSOR;
    l.k = kn_make(unit->arena, unit->ir, buffers + (int)op->result_count);
    if (unit->variant)
        l.k->variant = unit->variant;
    ir_attention attention;
    ir_op *product = stored_product(&l);
    bool is_attention = product && ir_attention_of(l.ir, product, &attention);
    TS_TRY(number_values(&l, is_attention));
    ir_op *concat = find_concat(&l);
    ts_status status = concat         ? build_concat(&l, concat)
                       : is_attention ? lw_attention(&l, &attention)
                       : l.anchor     ? lw_anchor(&l)
                                      : build_nest(&l);
    bool is_scheduled = concat || l.is_scheduled;
    if (!status && !is_scheduled)
        status = kn_schedule(l.k, unit->target);
    if (!status && !is_scheduled)
        status = kn_check_supported(l.k, unit->target);
    if (!status && l.k->scratch_bytes == RT_DIM_UNKNOWN)
        status = ts_error_at(TS_ERR_UNSUPPORTED, op->place, "scratch of unknown size");
    *out = l.k;
    return status;
}

ts_status cg_lower_kernel(cg_unit *unit, const ir_op *op, cg_kernel *out) {
    if (op->kernel_kind == IR_KERNEL_STREAM)
        return lw_stream(unit, op, out);
    kn_kernel *k;
    TS_TRY(lw_build(unit, op, &k));
    ts_status status;
    ts_str name = ts_arena_format(unit->arena, "kernel_%zu", unit->kernel_counter++);
    kn_emit_llvm(unit, k, cg_kernel_function(unit, name.data));
    ts_str device_name = {0};
    rt_dim device_threads = 0;
    if (unit->dialect) {
        device_name = ts_arena_format(unit->arena, "kernel_%zu", unit->kernel_counter - 1);
        status = kn_emit_clike(unit->dialect, k, device_name, unit->device_source,
                               &device_threads);
        if (status) { /* this one runs on the CPU */
            if (ts_status_code(status) != TS_ERR_UNSUPPORTED)
                return status;
            ts_status_release(status);
            device_name = (ts_str){0};
        }
    }
    lw_fill(k, name.data, out);
    out->device_symbol = device_name;
    out->device_threads = device_threads;
    return NULL;
}
