/* codegen/emit_llvm_kernel.c - loop nests: graphs of nodes as vector code.
 *
 *   item of rows (the vector dim is reduced):     item of columns:
 *     for each stage                                for vectors of the chunk
 *       for serial dims                               for each stage
 *         for vectors of the row                        for serial dims
 *           accumulate, store                             accumulate, store
 *       reductions to scalars                         stores that need no serial dim
 *     stores of scalars
 *
 * What is left of a row is done with a lane mask by the same operations, so that a result does not
 * depend on how the items are shared among threads. */
#include "codegen/emit_llvm_kernel.h"

#include <math.h>
#include <string.h>

enum { MAX_UNROLLED_WINDOW = 50 }; /* 7 x 7: more is rare, and code grows */

static int vector_dim(const kn_kernel *k) { return k->dim_count - 1; }

static uint32_t role_dims(const kn_kernel *k, kn_role role) {
    uint32_t dims = 0;
    for (int d = 0; d < k->dim_count; d++)
        if (k->dims[d].role == role)
            dims |= 1u << d;
    return dims;
}

bool kn_is_uniform(const kn_emitter *e, const kn_node *n) {
    return !(n->dims & role_dims(e->k, KN_VECTOR));
}

/* ---- addresses ---- */

static LLVMValueRef element_offset(kn_emitter *e, const kn_access *a, uint32_t dims,
                                   LLVMValueRef sum) {
    for (int d = 0; d < e->k->dim_count; d++)
        if ((dims & (1u << d)) && a->strides[d] != 0)
            sum = kn_add(e, sum, kn_mul(e, e->index[d], kn_size(e, a->strides[d])));
    return sum;
}

void kn_prepare_bases(kn_emitter *e, uint32_t dims) {
    kn_kernel *k = e->k;
    for (int i = 0; i < k->node_count; i++) {
        const kn_access *a = &k->nodes[i].access;
        if (k->nodes[i].code != KN_LOAD || !k->nodes[i].is_needed)
            continue;
        e->bases[i] = kn_element(e, e->buffers[a->buffer],
                                 element_offset(e, a, dims, kn_size(e, a->offset)),
                                 (int64_t)rt_dtype_size(a->element));
    }
    for (int i = 0; i < k->store_count; i++) {
        const kn_access *a = &k->stores[i].access;
        e->store_bases[i] = kn_element(e, e->buffers[a->buffer],
                                       element_offset(e, a, dims, kn_size(e, a->offset)),
                                       (int64_t)rt_dtype_size(a->element));
    }
}

static LLVMValueRef access_address(kn_emitter *e, LLVMValueRef base, const kn_access *a) {
    uint32_t dims = role_dims(e->k, KN_SERIAL) | role_dims(e->k, KN_VECTOR);
    return kn_element(e, base, element_offset(e, a, dims, kn_i64(e, 0)),
                      (int64_t)rt_dtype_size(a->element));
}

/* NULL for adjacent elements. */
static LLVMValueRef vector_stride(kn_emitter *e, const kn_access *a) {
    rt_dim s = a->strides[vector_dim(e->k)];
    return s == 1 ? NULL : kn_size(e, s);
}

static LLVMValueRef saved_address(kn_emitter *e, const kn_node *n) {
    return kn_address(e, kn_element(e, e->scratch, e->row_index, (int64_t)rt_dtype_size(n->type)),
                      kn_i64(e, n->save));
}

/* ---- nodes ---- */

LLVMValueRef kn_lane_numbers(kn_emitter *e) {
    if (e->width == 1)
        return kn_i64(e, 0);
    LLVMValueRef lanes[64];
    for (int i = 0; i < e->width; i++)
        lanes[i] = kn_i64(e, i);
    return LLVMConstVector(lanes, (unsigned)e->width);
}

/* A load whose offset is a node's value: one for the vector, or one for each lane. */
static LLVMValueRef load_at(kn_emitter *e, int index, int width) {
    const kn_node *n = &e->k->nodes[index], *offset = &e->k->nodes[n->args[0]];
    int64_t bytes = (int64_t)rt_dtype_size(n->access.element);
    LLVMValueRef base = access_address(e, e->bases[index], &n->access);
    LLVMValueRef mask = width > 1 ? e->mask : NULL;
    if (kn_is_uniform(e, offset))
        return kn_emit_load(e, kn_element(e, base, kn_value(e, n->args[0]), bytes),
                            width > 1 ? vector_stride(e, &n->access) : NULL, n->access.element,
                            width, mask);
    LLVMValueRef lanes = kn_vector_value(e, n->args[0]), stride = vector_stride(e, &n->access);
    LLVMValueRef numbers = kn_lane_numbers(e);
    if (stride)
        numbers = LLVMBuildMul(e->b, numbers, kn_splat(e, stride, width), "");
    return kn_emit_gather(e, base, LLVMBuildAdd(e->b, lanes, numbers, ""), n->access.element, width,
                          mask);
}

/* A reduction down columns jumps from row to row, which the processor does not foresee as it does a walk in
 * order: what the next item reads at this place comes to the second-level cache meanwhile. */
static void ask_for_next_item(kn_emitter *e, int load) {
    const kn_kernel *k = e->k;
    const kn_access *a = &k->nodes[load].access;
    int outer = -1;
    bool jumps = false;
    for (int d = 0; d < k->dim_count; d++) {
        if (k->dims[d].window.is_on)
            return;
        if (k->dims[d].role == KN_OUTER)
            outer = d;
        jumps = jumps || (k->dims[d].role == KN_SERIAL && a->strides[d] != 0);
    }
    if (k->reduces_vector || k->contraction.is_on || k->attention.is_on || !jumps || outer < 0 ||
        a->strides[outer] == 0 || a->strides[vector_dim(k)] != 1)
        return;
    int64_t bytes = (int64_t)rt_dtype_size(a->element);
    LLVMValueRef next = kn_element(e, access_address(e, e->bases[load], a), kn_size(e, a->strides[outer]), bytes);
    for (int64_t at = 0; at < e->width * bytes; at += 64)
        kn_prefetch(e, kn_address(e, next, kn_i64(e, at)));
}

static LLVMValueRef emit_node(kn_emitter *e, int index) {
    const kn_node *n = &e->k->nodes[index];
    bool uniform = kn_is_uniform(e, n);
    int width = uniform ? 1 : e->width;
    switch (n->code) {
    case KN_CONSTANT:
        return rt_dtype_is_float(n->type) ? kn_float_constant(e, n->type, 1, n->number)
                                          : kn_int_constant(e, n->type, 1, n->integer);
    case KN_PARAM: {
        LLVMValueRef bits = kn_param_bits(e, n->param);
        if (rt_dtype_is_float(n->type)) {
            LLVMValueRef d = LLVMBuildBitCast(e->b, bits, e->unit->f64, "");
            return kn_emit_cast(e, d, RT_float64, n->type, 1);
        }
        return kn_emit_cast(e, bits, RT_int64, n->type, 1);
    }
    case KN_LOAD:
        if (n->args[0] >= 0)
            return load_at(e, index, width);
        ask_for_next_item(e, index);
        return kn_emit_load(e, access_address(e, e->bases[index], &n->access),
                            uniform ? NULL : vector_stride(e, &n->access), n->access.element, width,
                            uniform ? NULL : e->mask);
    case KN_TILE:
        return e->tile_value ? e->tile_value
                             : kn_emit_load(e, e->tile, NULL, n->type, width, NULL);
    case KN_INDEX:
        if (n->dim == vector_dim(e->k) && width > 1)
            return LLVMBuildAdd(e->b, kn_splat(e, e->index[n->dim], width), kn_lane_numbers(e), "");
        return e->index[n->dim];
    case KN_COUNT: return e->count;
    case KN_CAST: {
        LLVMValueRef a = uniform ? kn_value(e, n->args[0]) : kn_vector_value(e, n->args[0]);
        return kn_emit_cast(e, a, e->k->nodes[n->args[0]].type, n->type, width);
    }
    case KN_REDUCE: return LLVMGetUndef(kn_llvm_type(e, n->type, width)); /* set by its stage */
    default: {
        LLVMValueRef args[3] = {NULL, NULL, NULL};
        for (int a = 0; a < 3; a++)
            if (n->args[a] >= 0)
                args[a] = uniform ? kn_value(e, n->args[a]) : kn_vector_value(e, n->args[a]);
        return kn_emit_scalar(e, n->code, e->k->nodes[n->args[0]].type, width, args);
    }
    }
}

LLVMValueRef kn_value(kn_emitter *e, int node) {
    if (e->memo[node])
        return e->memo[node];
    const kn_node *n = &e->k->nodes[node];
    LLVMValueRef v;
    if (n->save >= 0 && e->stage > n->stage && e->row_index)
        v = kn_emit_load(e, saved_address(e, n), NULL, n->type, e->width, e->mask);
    else
        v = emit_node(e, node);
    e->memo[node] = v;
    return v;
}

LLVMValueRef kn_vector_value(kn_emitter *e, int node) {
    LLVMValueRef v = kn_value(e, node);
    const kn_node *n = &e->k->nodes[node];
    if (!kn_is_uniform(e, n) || e->width == 1)
        return v;
    if (n->code == KN_CONSTANT) /* a constant vector, not a shuffle */
        return rt_dtype_is_float(n->type) ? kn_float_constant(e, n->type, e->width, n->number)
                                          : kn_int_constant(e, n->type, e->width, n->integer);
    return kn_splat(e, v, e->width);
}

void kn_emit_store_node(kn_emitter *e, int store) {
    const kn_store *s = &e->k->stores[store];
    const kn_node *n = &e->k->nodes[s->node];
    bool is_vector = s->access.strides[vector_dim(e->k)] != 0 || !kn_is_uniform(e, n);
    LLVMValueRef address = access_address(e, e->store_bases[store], &s->access);
    rt_dtype to = s->access.element;
    if (to == RT_float16 || to == RT_bfloat16)
        to = RT_float32;
    int width = is_vector ? e->width : 1;
    LLVMValueRef v = is_vector ? kn_vector_value(e, s->node) : kn_value(e, s->node);
    v = kn_emit_cast(e, v, n->type, to, width);
    kn_emit_store(e, v, address, is_vector ? vector_stride(e, &s->access) : NULL,
                  s->access.element, width, is_vector ? e->mask : NULL);
}

/* ---- serial loops ---- */

typedef struct serial_loops {
    kn_loop loops[KN_MAX_DIMS];
    int count;
} serial_loops;

void kn_window_range(kn_emitter *e, const kn_dim *d, LLVMValueRef *begin, LLVMValueRef *end) {
    /* Positions with 0 <= origin + i * dilation < input. */
    const kn_window *w = &d->window;
    LLVMValueRef origin = kn_sub(e, kn_mul(e, e->index[w->outer], kn_i64(e, w->stride)),
                                 kn_i64(e, w->padding));
    LLVMValueRef dilation = kn_i64(e, w->dilation), zero = kn_i64(e, 0);
    LLVMValueRef low = kn_max(e, kn_sub(e, zero, origin), zero); /* first allowed i * dilation */
    LLVMValueRef high = kn_max(e, kn_sub(e, kn_size(e, w->input), origin), zero);
    if (w->dilation != 1) {
        LLVMValueRef up = kn_i64(e, w->dilation - 1);
        low = LLVMBuildUDiv(e->b, kn_add(e, low, up), dilation, "");
        high = LLVMBuildUDiv(e->b, kn_add(e, high, up), dilation, "");
    }
    *begin = low;
    *end = kn_min(e, high, kn_size(e, d->size));
}

/* The count of window positions, for means that leave padding out. */
void kn_emit_count(kn_emitter *e) {
    LLVMValueRef count = kn_i64(e, 1);
    for (int d = 0; d < e->k->dim_count; d++) {
        if (!e->k->dims[d].window.is_on)
            continue;
        LLVMValueRef begin, end;
        kn_window_range(e, &e->k->dims[d], &begin, &end);
        count = kn_mul(e, count, kn_max(e, kn_sub(e, end, begin), kn_i64(e, 0)));
    }
    e->count = count;
}

static void open_serial(kn_emitter *e, serial_loops *s, LLVMValueRef *acc, int count) {
    s->count = 0;
    e->row_index = kn_i64(e, 0);
    for (int d = 0; d < e->k->dim_count; d++) {
        const kn_dim *dim = &e->k->dims[d];
        if (dim->role != KN_SERIAL)
            continue;
        LLVMValueRef begin = kn_i64(e, 0), end = kn_size(e, dim->size);
        if (dim->window.is_on)
            kn_window_range(e, dim, &begin, &end);
        kn_loop *loop = &s->loops[s->count++];
        kn_loop_begin(e, loop, begin, end, 1, acc, count);
        for (int i = 0; i < count; i++)
            acc[i] = loop->phis[i];
        e->index[d] = loop->index;
        e->row_index = kn_add(e, kn_mul(e, e->row_index, kn_size(e, dim->size)), loop->index);
    }
}

static void close_serial(kn_emitter *e, serial_loops *s, LLVMValueRef *acc, int count) {
    while (s->count > 0) {
        kn_loop *loop = &s->loops[--s->count];
        kn_loop_end(e, loop, acc);
        for (int i = 0; i < count; i++)
            acc[i] = loop->exit_phis[i];
    }
}

/* ---- what runs where ---- */

static uint32_t inner_dims(const kn_kernel *k) {
    return role_dims(k, KN_SERIAL) | (k->reduces_vector ? role_dims(k, KN_VECTOR) : 0);
}

static uint32_t store_dims(const kn_kernel *k, const kn_store *s) {
    uint32_t dims = k->nodes[s->node].dims;
    for (int d = 0; d < k->dim_count; d++)
        if (s->access.strides[d] != 0)
            dims |= 1u << d;
    return dims;
}

static bool is_inner_store(const kn_kernel *k, const kn_store *s) {
    return (store_dims(k, s) & inner_dims(k)) != 0;
}

static bool stage_has_work(const kn_emitter *e, int stage, const kn_reduction_set *set) {
    if (set->count > 0)
        return true;
    for (int i = 0; i < e->k->store_count; i++)
        if (is_inner_store(e->k, &e->k->stores[i]) &&
            e->k->nodes[e->k->stores[i].node].stage == stage)
            return true;
    for (int i = 0; i < e->k->node_count; i++)
        if (e->k->nodes[i].is_needed && e->k->nodes[i].save >= 0 && e->k->nodes[i].stage == stage)
            return true;
    return false;
}

static void emit_body(kn_emitter *e, const kn_reduction_set *set, LLVMValueRef *acc) {
    kn_accumulate(e, set, acc);
    for (int i = 0; i < e->k->node_count; i++) {
        const kn_node *n = &e->k->nodes[i];
        if (n->is_needed && n->save >= 0 && n->stage == e->stage)
            kn_emit_store(e, kn_vector_value(e, i), saved_address(e, n), NULL, n->type, e->width,
                          e->mask);
    }
    for (int i = 0; i < e->k->store_count; i++)
        if (is_inner_store(e->k, &e->k->stores[i]) &&
            e->k->nodes[e->k->stores[i].node].stage == e->stage)
            kn_emit_store_node(e, i);
}

/* Values that vary with nothing but `dims` and can be had by now: made here, not in the loops. */
static void hoist(kn_emitter *e, uint32_t dims, int stage) {
    for (int i = 0; i < e->k->node_count; i++) {
        const kn_node *n = &e->k->nodes[i];
        if (n->is_needed && !(n->dims & ~dims) && n->stage <= stage && n->code != KN_REDUCE)
            kn_value(e, i);
    }
}

/* ---- rows ---- */

static bool is_heavy_stage(const kn_emitter *e, int stage) {
    int cost = 0;
    for (int i = 0; i < e->k->node_count; i++) {
        const kn_node *n = &e->k->nodes[i];
        if (n->is_needed && n->stage == stage && !kn_is_uniform(e, n))
            cost += kn_scalar_is_heavy(n->code) ? 20 : 1;
    }
    return cost > 16;
}

typedef struct row_pass {
    const kn_reduction_set *set;
    LLVMValueRef row_start; /* row_index of the row's first element */
} row_pass;

static void row_copy(kn_emitter *e, const row_pass *p, LLVMValueRef index, LLVMValueRef *acc) {
    size_t bytes = (size_t)e->k->node_count * sizeof *e->memo;
    LLVMValueRef *saved = ts_arena_alloc(e->unit->arena, bytes + 1);
    memcpy(saved, e->memo, bytes);
    e->index[vector_dim(e->k)] = index;
    e->row_index = kn_add(e, p->row_start, index);
    emit_body(e, p->set, acc);
    memcpy(e->memo, saved, bytes);
}

static void row_vectors(kn_emitter *e, const row_pass *p, LLVMValueRef *acc, int copies) {
    const kn_dim *v = &e->k->dims[vector_dim(e->k)];
    LLVMValueRef n = kn_size(e, v->size), start = kn_i64(e, 0);
    int64_t known = rt_dim_is_constant(v->size) ? v->size : -1;
    int carried = p->set->carried, w = e->width;
    kn_loop loop;
    e->mask = NULL;
    if (copies > 1 && (known < 0 || known >= copies * w)) {
        int64_t step = (int64_t)copies * w;
        kn_loop_begin(e, &loop, start, kn_sub(e, n, kn_i64(e, step - 1)), step, acc,
                      carried * copies);
        for (int i = 0; i < carried * copies; i++)
            acc[i] = loop.phis[i];
        for (int u = 0; u < copies; u++)
            row_copy(e, p, kn_add(e, loop.index, kn_i64(e, u * w)), acc + u * carried);
        kn_loop_end(e, &loop, acc);
        for (int i = 0; i < carried * copies; i++)
            acc[i] = loop.exit_phis[i];
        start = LLVMBuildAnd(e->b, n, kn_i64(e, -step), "");
    }
    int64_t done = copies > 1 && known >= 0 ? known / (copies * w) * (copies * w) : 0;
    if (known < 0 || known - done >= w) {
        kn_loop_begin(e, &loop, start, kn_sub(e, n, kn_i64(e, w - 1)), w, acc, carried);
        for (int i = 0; i < carried; i++)
            acc[i] = loop.phis[i];
        row_copy(e, p, loop.index, acc);
        kn_loop_end(e, &loop, acc);
        for (int i = 0; i < carried; i++)
            acc[i] = loop.exit_phis[i];
    }
    if (known < 0 || known % w != 0) {
        start = LLVMBuildAnd(e->b, n, kn_i64(e, -(int64_t)w), "");
        kn_loop_begin(e, &loop, start, n, w, acc, carried);
        for (int i = 0; i < carried; i++)
            acc[i] = loop.phis[i];
        e->mask = kn_lane_mask(e, kn_sub(e, n, loop.index), w);
        row_copy(e, p, loop.index, acc);
        e->mask = NULL;
        kn_loop_end(e, &loop, acc);
        for (int i = 0; i < carried; i++)
            acc[i] = loop.exit_phis[i];
    }
}

static void emit_row_item(kn_emitter *e) {
    kn_kernel *k = e->k;
    uint32_t outer = role_dims(k, KN_OUTER);
    hoist(e, outer, 0);
    for (int stage = 0; stage < k->stage_count; stage++) {
        kn_reduction_set set;
        kn_reductions_of(e, stage, &set);
        e->stage = stage;
        if (stage_has_work(e, stage, &set)) {
            int copies = is_heavy_stage(e, stage) || set.count == 0 ? 1 : 4;
            if (set.carried * copies > KN_MAX_CARRIED)
                copies = 1;
            LLVMValueRef acc[KN_MAX_CARRIED];
            for (int u = 0; u < copies; u++)
                kn_initial_values(e, &set, acc + u * set.carried);
            serial_loops serial;
            open_serial(e, &serial, acc, set.carried * copies);
            row_pass pass = {.set = &set};
            pass.row_start = kn_mul(e, e->row_index, kn_size(e, k->dims[vector_dim(k)].size));
            row_vectors(e, &pass, acc, copies);
            close_serial(e, &serial, acc, set.carried * copies);
            e->row_index = NULL;
            kn_finish_rows(e, &set, acc, copies);
        }
        hoist(e, outer, stage + 1);
    }
    for (int i = 0; i < k->store_count; i++)
        if (!is_inner_store(k, &k->stores[i]))
            kn_emit_store_node(e, i);
}

/* ---- columns ---- */

/* How many steps the serial dims have together, where they are windows (or constant) and few. */
static int64_t window_steps(const kn_kernel *k) {
    int64_t steps = 1;
    bool has_window = false;
    for (int d = 0; d < k->dim_count; d++) {
        if (k->dims[d].role != KN_SERIAL)
            continue;
        if (!rt_dim_is_constant(k->dims[d].size))
            return 0;
        has_window = has_window || k->dims[d].window.is_on;
        steps *= k->dims[d].size;
        if (steps > MAX_UNROLLED_WINDOW)
            return 0;
    }
    return has_window ? steps : 0;
}

static void looped_pass(kn_emitter *e, const kn_reduction_set *set, LLVMValueRef *acc) {
    serial_loops serial;
    open_serial(e, &serial, acc, set->carried);
    emit_body(e, set, acc);
    close_serial(e, &serial, acc, set->carried);
}

/* All steps in a row, for windows that lie inside of the image. */
static void unrolled_pass(kn_emitter *e, const kn_reduction_set *set, LLVMValueRef *acc,
                          int64_t steps) {
    kn_kernel *k = e->k;
    size_t bytes = (size_t)k->node_count * sizeof *e->memo;
    LLVMValueRef *saved = ts_arena_alloc(e->unit->arena, bytes + 1);
    for (int64_t step = 0; step < steps; step++) {
        int64_t rest = step;
        for (int d = k->dim_count - 1; d >= 0; d--) {
            if (k->dims[d].role != KN_SERIAL)
                continue;
            e->index[d] = kn_i64(e, rest % k->dims[d].size);
            rest /= k->dims[d].size;
        }
        e->row_index = kn_i64(e, step);
        memcpy(saved, e->memo, bytes);
        emit_body(e, set, acc);
        memcpy(e->memo, saved, bytes);
    }
}

static void emit_serial_pass(kn_emitter *e, const kn_reduction_set *set, LLVMValueRef *acc) {
    int64_t steps = window_steps(e->k);
    if (!steps || !e->windows_inside) {
        looped_pass(e, set, acc);
        return;
    }
    LLVMContextRef c = e->unit->context;
    LLVMBasicBlockRef all = LLVMAppendBasicBlockInContext(c, e->function, "");
    LLVMBasicBlockRef some = LLVMAppendBasicBlockInContext(c, e->function, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(c, e->function, "");
    LLVMBuildCondBr(e->b, e->windows_inside, all, some);
    LLVMValueRef inside[KN_MAX_CARRIED], partly[KN_MAX_CARRIED];
    memcpy(inside, acc, sizeof inside);
    memcpy(partly, acc, sizeof partly);
    LLVMPositionBuilderAtEnd(e->b, all);
    unrolled_pass(e, set, inside, steps);
    LLVMBasicBlockRef all_end = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, some);
    looped_pass(e, set, partly);
    LLVMBasicBlockRef some_end = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, done);
    for (int i = 0; i < set->carried; i++) {
        acc[i] = LLVMBuildPhi(e->b, LLVMTypeOf(inside[i]), "");
        LLVMAddIncoming(acc[i], &inside[i], &all_end, 1);
        LLVMAddIncoming(acc[i], &partly[i], &some_end, 1);
    }
}

/* Whether every window position of this item exists: decided once an item. */
static void emit_windows_inside(kn_emitter *e) {
    e->windows_inside = NULL;
    if (!window_steps(e->k))
        return;
    for (int d = 0; d < e->k->dim_count; d++) {
        const kn_dim *dim = &e->k->dims[d];
        if (!dim->window.is_on)
            continue;
        LLVMValueRef begin, end;
        kn_window_range(e, dim, &begin, &end);
        LLVMValueRef whole = LLVMBuildAnd(
            e->b, LLVMBuildICmp(e->b, LLVMIntEQ, begin, kn_i64(e, 0), ""),
            LLVMBuildICmp(e->b, LLVMIntEQ, end, kn_size(e, dim->size), ""), "");
        e->windows_inside =
            e->windows_inside ? LLVMBuildAnd(e->b, e->windows_inside, whole, "") : whole;
    }
}

static void emit_column(kn_emitter *e, LLVMValueRef index) {
    kn_kernel *k = e->k;
    uint32_t fixed = role_dims(k, KN_OUTER) | role_dims(k, KN_VECTOR);
    e->index[vector_dim(k)] = index;
    /* Reductions over dims of one element have no serial dim left, and still run. */
    if (role_dims(k, KN_SERIAL) || k->stage_count > 1) {
        hoist(e, fixed, 0);
        for (int stage = 0; stage < k->stage_count; stage++) {
            kn_reduction_set set;
            kn_reductions_of(e, stage, &set);
            e->stage = stage;
            if (stage_has_work(e, stage, &set)) {
                LLVMValueRef acc[KN_MAX_CARRIED];
                kn_initial_values(e, &set, acc);
                emit_serial_pass(e, &set, acc);
                e->row_index = NULL;
                for (int i = 0, c = 0; i < set.count; i++) {
                    const kn_node *n = &k->nodes[set.nodes[i]];
                    LLVMValueRef v = acc[kn_reduces_to_position(n) ? c + 1 : c];
                    /* A reduction of what does not vary along the row is one scalar. */
                    e->memo[set.nodes[i]] =
                        kn_is_uniform(e, n) && e->width > 1 ? kn_lane(e, v, 0) : v;
                    c += kn_reduces_to_position(n) ? 2 : 1;
                }
            }
            hoist(e, fixed, stage + 1);
        }
    }
    for (int i = 0; i < k->store_count; i++)
        if (!is_inner_store(k, &k->stores[i]))
            kn_emit_store_node(e, i);
}

static void emit_column_item(kn_emitter *e, LLVMValueRef begin, LLVMValueRef end, bool may_be_short,
                             bool may_be_whole) {
    int w = e->width;
    kn_loop loop;
    hoist(e, role_dims(e->k, KN_OUTER), 0);
    if (may_be_whole) {
        kn_loop_begin(e, &loop, begin, kn_sub(e, end, kn_i64(e, w - 1)), w, NULL, 0);
        emit_column(e, loop.index);
        kn_loop_end(e, &loop, NULL);
    }
    if (may_be_short) {
        /* begin is a multiple of the width. */
        LLVMValueRef start = LLVMBuildAnd(e->b, end, kn_i64(e, -(int64_t)w), "");
        kn_loop_begin(e, &loop, start, end, w, NULL, 0);
        e->mask = kn_lane_mask(e, kn_sub(e, end, loop.index), w);
        emit_column(e, loop.index);
        e->mask = NULL;
        kn_loop_end(e, &loop, NULL);
    }
}

/* ---- the kernel ---- */

static void split_outer(kn_emitter *e, LLVMValueRef rest) {
    kn_kernel *k = e->k;
    int first = -1;
    for (int d = k->dim_count - 1; d >= 0; d--)
        if (k->dims[d].role == KN_OUTER)
            first = d;
    for (int d = k->dim_count - 1; d >= 0; d--) {
        if (k->dims[d].role != KN_OUTER)
            continue;
        if (d == first) {
            e->index[d] = rest;
            break;
        }
        LLVMValueRef size = kn_size(e, k->dims[d].size);
        LLVMValueRef quotient = LLVMBuildUDiv(e->b, rest, size, "");
        e->index[d] = kn_sub(e, rest, kn_mul(e, quotient, size));
        rest = quotient;
    }
}

int64_t kn_items_of_line(const kn_kernel *k, int buffer, rt_dim lines, rt_dim step) {
    int line = -1;
    if (k->contraction.is_on || k->attention.is_on || k->next || k->reduces_vector)
        return 0;
    for (int d = 0; d < k->dim_count; d++) {
        if (k->dims[d].window.is_on)
            return 0;
        if (k->dims[d].role != KN_OUTER || k->dims[d].size == 1)
            continue;
        if (line >= 0 || !kn_dim_same(k, k->dims[d].size, lines))
            return 0;
        line = d;
    }
    for (int i = 0; line >= 0 && i < k->node_count; i++) {
        const kn_node *n = &k->nodes[i];
        if (n->is_needed && n->code == KN_LOAD && n->access.buffer == buffer &&
            (!kn_dim_same(k, n->access.strides[line], step) || n->args[0] >= 0))
            return 0;
    }
    rt_dim items = k->chunk ? kn_dim_ceil_div(k, k->dims[vector_dim(k)].size, k->chunk) : 1;
    return line >= 0 && rt_dim_is_constant(items) ? items : 0;
}

/* Values of a nest with transcendental functions are two registers wide: their chains of dependent
 * operations then come interleaved, and a core's queues hold both. */
static int nest_width(const kn_emitter *e) {
    const kn_kernel *k = e->k;
    rt_dim size = k->dims[vector_dim(k)].size;
    if (rt_dim_is_constant(size) && size % (2 * e->lanes) != 0 && size < 8 * e->lanes)
        return e->lanes;
    for (int i = 0; i < k->node_count; i++)
        if (k->nodes[i].is_needed && k->nodes[i].is_heavy && !kn_is_uniform(e, &k->nodes[i]))
            return 2 * e->lanes;
    return e->lanes;
}

static void emit_nest(kn_emitter *e) {
    kn_kernel *k = e->k;
    e->width = nest_width(e);
    const kn_dim *v = &k->dims[vector_dim(k)];
    kn_loop items;
    kn_loop_begin(e, &items, e->begin, e->end, 1, NULL, 0);
    LLVMValueRef rest = items.index, begin = kn_i64(e, 0), end = kn_size(e, v->size);
    int64_t known = rt_dim_is_constant(v->size) ? v->size : -1;
    if (k->chunk) {
        LLVMValueRef chunks = kn_size(e, kn_dim_ceil_div(k, v->size, k->chunk));
        LLVMValueRef quotient = role_dims(k, KN_OUTER) ? LLVMBuildUDiv(e->b, rest, chunks, "")
                                                       : kn_i64(e, 0);
        LLVMValueRef chunk = kn_sub(e, rest, kn_mul(e, quotient, chunks));
        rest = quotient;
        begin = kn_mul(e, chunk, kn_i64(e, k->chunk));
        end = kn_min(e, kn_add(e, begin, kn_i64(e, k->chunk)), end);
    }
    split_outer(e, rest);
    kn_prepare_bases(e, role_dims(k, KN_OUTER));
    for (int i = 0; i < k->node_count; i++)
        if (k->nodes[i].is_needed && k->nodes[i].code == KN_COUNT && !e->count)
            kn_emit_count(e);
    emit_windows_inside(e);
    if (k->reduces_vector)
        emit_row_item(e);
    else
        emit_column_item(e, begin, end, known < 0 || known % e->width != 0,
                         known < 0 || known >= e->width);
    kn_loop_end(e, &items, NULL);
    e->width = e->lanes;
}

/* Items [e->begin, e->end) of one part. */
static void emit_part(kn_emitter *e) {
    kn_kernel *k = e->k;
    /* Planning again sets what the first part holds for all of them. */
    rt_dim items = k->work_items, scratch = k->scratch_bytes;
    double flops = k->flops;
    if (k->contraction.is_on)
        kn_emit_contraction(e);
    else if (k->attention.is_on)
        kn_emit_attention(e);
    else if (!kn_emit_window(e))
        emit_nest(e);
    k->work_items = items;
    k->scratch_bytes = scratch;
    k->flops = flops;
}

void kn_emit_llvm(cg_unit *unit, kn_kernel *k, LLVMValueRef function) {
    kn_emitter e;
    kn_emitter_start(&e, unit, k, function);
    if (!k->next) {
        emit_part(&e);
    } else {
        /* Items of the parts stand behind one another. */
        LLVMValueRef first = kn_i64(&e, 0);
        for (kn_kernel *part = k; part; part = part->next) {
            kn_emitter_use(&e, part);
            LLVMValueRef count = kn_size(&e, part->part_items);
            LLVMValueRef begin = kn_sub(&e, LLVMGetParam(function, 2), first);
            LLVMValueRef end = kn_sub(&e, LLVMGetParam(function, 3), first);
            e.begin = kn_max(&e, begin, kn_i64(&e, 0));
            e.end = kn_min(&e, end, count);
            emit_part(&e);
            first = kn_add(&e, first, count);
        }
    }
    LLVMBuildRetVoid(e.b);
    LLVMDisposeBuilder(e.b);
}
