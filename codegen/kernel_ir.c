/* codegen/kernel_ir.c - construction of kernel graphs: nodes are shared as they are made, so that
 * an input that is read twice is loaded once. */
#include "codegen/kernel_ir.h"

#include <string.h>

kn_kernel *kn_make(ts_arena *arena, ir_module *ir, int buffer_count) {
    kn_kernel *k = ts_arena_alloc(arena, sizeof *k);
    memset(k, 0, sizeof *k);
    k->arena = arena;
    k->ir = ir;
    k->buffer_count = buffer_count;
    k->variant = cg_variant_get(0);
    return k;
}

static void *grow(ts_arena *arena, void *data, int count, int *capacity, size_t size) {
    if (count < *capacity)
        return data;
    int wanted = *capacity ? *capacity * 2 : 16;
    void *larger = ts_arena_alloc(arena, (size_t)wanted * size);
    if (count > 0)
        memcpy(larger, data, (size_t)count * size);
    *capacity = wanted;
    return larger;
}

static bool same_access(const kn_access *a, const kn_access *b) {
    if (a->buffer != b->buffer || a->element != b->element || a->offset != b->offset)
        return false;
    for (int d = 0; d < KN_MAX_DIMS; d++)
        if (a->strides[d] != b->strides[d])
            return false;
    return true;
}

static bool same_bits(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

static bool same_node(const kn_node *a, const kn_node *b) {
    return a->code == b->code && a->type == b->type && a->args[0] == b->args[0] &&
           a->args[1] == b->args[1] && a->args[2] == b->args[2] &&
           same_bits(a->number, b->number) && a->integer == b->integer && a->param == b->param &&
           a->dim == b->dim && a->reduction == b->reduction &&
           (a->code != KN_LOAD || same_access(&a->access, &b->access));
}

int kn_add_node(kn_kernel *k, kn_node node) {
    node.save = -1;
    for (int i = 0; i < k->node_count; i++)
        if (same_node(&k->nodes[i], &node))
            return i;
    k->nodes = grow(k->arena, k->nodes, k->node_count, &k->node_capacity, sizeof *k->nodes);
    k->nodes[k->node_count] = node;
    return k->node_count++;
}

kn_node kn_blank(kn_code code, rt_dtype type) {
    kn_node n;
    memset(&n, 0, sizeof n);
    n.code = code;
    n.type = type;
    n.args[0] = n.args[1] = n.args[2] = -1;
    return n;
}

int kn_constant_integer(kn_kernel *k, rt_dtype type, int64_t value) {
    if (rt_dtype_is_float(type))
        return kn_constant_number(k, type, (double)value);
    kn_node n = kn_blank(KN_CONSTANT, type);
    n.integer = type == RT_bool ? value != 0 : value;
    return kn_add_node(k, n);
}

int kn_constant_number(kn_kernel *k, rt_dtype type, double value) {
    if (!rt_dtype_is_float(type)) {
        bool fits = value >= -9.2e18 && value <= 9.2e18;
        return kn_constant_integer(k, type, type == RT_bool ? value != 0 : fits ? (int64_t)value : 0);
    }
    kn_node n = kn_blank(KN_CONSTANT, type);
    n.number = value;
    return kn_add_node(k, n);
}

static rt_dtype result_type(const kn_kernel *k, kn_code code, int a, int b) {
    switch (code) {
    case KN_eq: case KN_ne: case KN_lt: case KN_le: case KN_gt: case KN_ge:
    case KN_isnan: case KN_not:
        return RT_bool;
    case KN_select:
        return k->nodes[b].type;
    default:
        return k->nodes[a].type;
    }
}

int kn_op3(kn_kernel *k, kn_code code, int a, int b, int c) {
    kn_node n = kn_blank(code, result_type(k, code, a, b));
    n.args[0] = a;
    n.args[1] = b;
    n.args[2] = c;
    return kn_add_node(k, n);
}
int kn_op2(kn_kernel *k, kn_code code, int a, int b) { return kn_op3(k, code, a, b, -1); }
int kn_op1(kn_kernel *k, kn_code code, int a) { return kn_op3(k, code, a, -1, -1); }

int kn_cast(kn_kernel *k, int a, rt_dtype type) {
    const kn_node *from = &k->nodes[a];
    if (from->type == type)
        return a;
    if (from->code == KN_CONSTANT && type != RT_bool) {
        return rt_dtype_is_float(from->type) ? kn_constant_number(k, type, from->number)
                                             : kn_constant_integer(k, type, from->integer);
    }
    kn_node n = kn_blank(KN_CAST, type);
    n.args[0] = a;
    return kn_add_node(k, n);
}

int kn_load(kn_kernel *k, const kn_access *access) {
    rt_dtype type = access->element;
    if (type == RT_float16 || type == RT_bfloat16)
        type = RT_float32;
    kn_node n = kn_blank(KN_LOAD, type);
    n.access = *access;
    return kn_add_node(k, n);
}

int kn_load_at(kn_kernel *k, const kn_access *access, int offset) {
    rt_dtype type = access->element;
    if (type == RT_float16 || type == RT_bfloat16)
        type = RT_float32;
    kn_node n = kn_blank(KN_LOAD, type);
    n.access = *access;
    n.args[0] = offset;
    return kn_add_node(k, n);
}

int kn_reduce(kn_kernel *k, kn_reduction reduction, int a) {
    rt_dtype type = k->nodes[a].type;
    if (reduction == KN_RED_ARGMAX || reduction == KN_RED_ARGMIN)
        type = RT_int64;
    kn_node n = kn_blank(KN_REDUCE, type);
    n.args[0] = a;
    n.reduction = reduction;
    return kn_add_node(k, n);
}

void kn_add_store(kn_kernel *k, int node, const kn_access *access) {
    k->stores = grow(k->arena, k->stores, k->store_count, &k->store_capacity, sizeof *k->stores);
    k->stores[k->store_count++] = (kn_store){.node = node, .access = *access};
}

int kn_add_constant(kn_kernel *k, const void *data, size_t bytes) {
    k = k->owner ? k->owner : k;
    k->constants =
        grow(k->arena, k->constants, k->constant_count, &k->constant_capacity, sizeof *k->constants);
    k->constants[k->constant_count] = (cg_constant){.data = data, .bytes = bytes};
    return k->buffer_count + k->constant_count++;
}

static int add_param(kn_kernel *k, cg_param p) {
    k = k->owner ? k->owner : k;
    k->params = grow(k->arena, k->params, k->param_count, &k->param_capacity, sizeof *k->params);
    k->params[k->param_count] = p;
    return k->param_count++;
}

int kn_dim_param(kn_kernel *k, rt_dim d) {
    k = k->owner ? k->owner : k;
    for (int i = 0; i < k->param_count; i++)
        if (k->params[i].kind == CG_PARAM_DIM && k->params[i].dim == d)
            return i;
    return add_param(k, (cg_param){.kind = CG_PARAM_DIM, .dim = d});
}

ts_status kn_need_sizes(kn_kernel *k, const rt_dim *sizes, size_t count, const char *what) {
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] == RT_DIM_UNKNOWN)
            return ts_error_make(TS_ERR_UNSUPPORTED, "%s needs sizes that are known", what);
        if (!rt_dim_is_constant(sizes[i]))
            kn_dim_param(k, sizes[i]);
    }
    return NULL;
}

int kn_scalar_param(kn_kernel *k, size_t operand) {
    k = k->owner ? k->owner : k;
    for (int i = 0; i < k->param_count; i++)
        if (k->params[i].kind == CG_PARAM_SCALAR && k->params[i].operand == operand)
            return i;
    return add_param(k, (cg_param){.kind = CG_PARAM_SCALAR, .operand = operand});
}

rt_dim kn_dim_add(const kn_kernel *k, rt_dim a, rt_dim b) {
    const rt_dim_algebra *g = ir_dim_algebra(k->ir);
    return g->add(g->user, a, b);
}
rt_dim kn_dim_mul(const kn_kernel *k, rt_dim a, rt_dim b) {
    if (a == 0 || b == 0)
        return 0;
    const rt_dim_algebra *g = ir_dim_algebra(k->ir);
    return g->mul(g->user, a, b);
}
rt_dim kn_dim_max(const kn_kernel *k, rt_dim a, rt_dim b) {
    const rt_dim_algebra *g = ir_dim_algebra(k->ir);
    return g->max(g->user, a, b);
}
rt_dim kn_dim_min(const kn_kernel *k, rt_dim a, rt_dim b) {
    const rt_dim_algebra *g = ir_dim_algebra(k->ir);
    return g->min(g->user, a, b);
}
rt_dim kn_dim_ceil_div(const kn_kernel *k, rt_dim a, int64_t b) {
    if (rt_dim_is_constant(a))
        return (a + b - 1) / b;
    const rt_dim_algebra *g = ir_dim_algebra(k->ir);
    return g->floordiv(g->user, g->add(g->user, a, b - 1), b);
}

rt_dim kn_dim_even_block(const kn_kernel *k, rt_dim size, rt_dim blocks, int64_t unit) {
    const rt_dim_algebra *g = ir_dim_algebra(k->ir);
    blocks = g->max(g->user, blocks, 1);
    rt_dim even = g->floordiv(g->user, kn_dim_add(k, size, g->sub(g->user, blocks, 1)), blocks);
    return kn_dim_mul(k, kn_dim_ceil_div(k, even, unit), unit);
}
bool kn_dim_same(const kn_kernel *k, rt_dim a, rt_dim b) {
    if (a == b)
        return a != RT_DIM_UNKNOWN;
    if (a == RT_DIM_UNKNOWN || b == RT_DIM_UNKNOWN)
        return false;
    const rt_dim_algebra *g = ir_dim_algebra(k->ir);
    return g->equal(g->user, a, b);
}
