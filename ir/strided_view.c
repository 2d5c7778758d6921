/* ir/strided_view.c - see strided_view.h. Names are looked up in a sorted table, so that it holds
 * for whatever rows the operator table has. */
#include "ir/strided_view.h"

#include <string.h>

typedef struct view_name {
    const char *name; /* with its overload */
    ir_view_kind kind;
} view_name;

static const view_name view_names[] = {
    {"_unsafe_view", IR_VIEW_RESHAPE},     {"alias", IR_VIEW_IDENTITY},
    {"clone", IR_VIEW_IDENTITY},           {"contiguous", IR_VIEW_IDENTITY},
    {"detach", IR_VIEW_IDENTITY},          {"expand", IR_VIEW_EXPAND},
    {"expand_as", IR_VIEW_EXPAND},         {"flatten.using_ints", IR_VIEW_RESHAPE},
    {"lift_fresh", IR_VIEW_IDENTITY},      {"permute", IR_VIEW_PERMUTE},
    {"reshape", IR_VIEW_RESHAPE},          {"reshape_as", IR_VIEW_RESHAPE},
    {"select.int", IR_VIEW_SELECT},        {"slice.Tensor", IR_VIEW_SLICE},
    {"squeeze", IR_VIEW_RESHAPE},          {"squeeze.dim", IR_VIEW_RESHAPE},
    {"squeeze.dims", IR_VIEW_RESHAPE},     {"t", IR_VIEW_PERMUTE},
    {"transpose.int", IR_VIEW_PERMUTE},    {"unflatten.int", IR_VIEW_RESHAPE},
    {"unsqueeze", IR_VIEW_RESHAPE},        {"view", IR_VIEW_RESHAPE},
    {"view_as", IR_VIEW_RESHAPE},
};

ir_view_kind ir_view_kind_of(const ir_op *op) {
    if (!op || op->opcode != IR_OP_CORE || op->result_count != 1 ||
        op->results[0]->type->kind != IR_TENSOR)
        return IR_VIEW_NONE;
    ts_str name = rt_op_name(op->core);
    size_t low = 0, high = sizeof view_names / sizeof *view_names;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const char *candidate = view_names[middle].name;
        size_t length = strlen(candidate), common = length < name.length ? length : name.length;
        int order = memcmp(name.data, candidate, common);
        if (order == 0)
            order = name.length < length ? -1 : name.length > length;
        if (order == 0)
            return view_names[middle].kind;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return IR_VIEW_NONE;
}

ir_value *ir_core_operand(ir_module *m, const ir_op *op, const char *name) {
    const ir_schema *s = ir_schema_of(m, op->core);
    size_t length = strlen(name);
    for (size_t i = 0; i < s->arg_count && i < op->operand_count; i++)
        if (s->args[i].name.length == length && memcmp(s->args[i].name.data, name, length) == 0)
            return op->operands[i];
    return NULL;
}

bool ir_type_is_known_tensor(const ir_type *t) {
    if (t->kind != IR_TENSOR || t->dtype == RT_DTYPE_UNKNOWN || t->rank < 0 ||
        t->rank > IR_STRIDED_MAX_RANK)
        return false;
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] == RT_DIM_UNKNOWN)
            return false;
    return true;
}

bool ir_dim_same(ir_module *m, rt_dim a, rt_dim b) {
    if (a == RT_DIM_UNKNOWN || b == RT_DIM_UNKNOWN)
        return false;
    if (a == b)
        return true;
    if (rt_dim_is_constant(a) && rt_dim_is_constant(b))
        return false;
    const rt_dim_algebra *g = ir_dim_algebra(m);
    return g->equal(g->user, a, b);
}

static rt_dim times(ir_module *m, rt_dim a, rt_dim b) {
    if (a == 0 || b == 0)
        return 0;
    const rt_dim_algebra *g = ir_dim_algebra(m);
    return g->mul(g->user, a, b);
}
static rt_dim plus(ir_module *m, rt_dim a, rt_dim b) {
    const rt_dim_algebra *g = ir_dim_algebra(m);
    return g->add(g->user, a, b);
}

bool ir_strided_dense(ir_module *m, const ir_type *t, ir_layout layout, ir_strided *out) {
    if (!ir_type_is_known_tensor(t))
        return false;
    memset(out, 0, sizeof *out);
    out->rank = t->rank;
    for (int d = 0; d < t->rank; d++)
        out->sizes[d] = t->dims[d];
    rt_dim stride = 1;
    bool channels_last = layout == IR_LAYOUT_CHANNELS_LAST && t->rank >= 3;
    if (channels_last) {
        out->strides[1] = 1;
        stride = t->dims[1];
    }
    for (int d = t->rank - 1; d >= 0; d--) {
        if (channels_last && d == 1)
            continue;
        out->strides[d] = stride;
        stride = times(m, stride, t->dims[d]);
        if (stride == RT_DIM_UNKNOWN)
            return false;
    }
    return true;
}

static bool wrap_dim(const ir_value *v, int rank, int *out) {
    int64_t d;
    if (!v || !ir_const_int(v, &d))
        return false;
    if (d < 0)
        d += rank;
    if (d < 0 || d >= rank)
        return false;
    *out = (int)d;
    return true;
}

bool ir_view_permutation(ir_module *m, const ir_op *op, int *out) {
    int rank = op->results[0]->type->rank;
    for (int d = 0; d < rank; d++)
        out[d] = d;
    ts_str name = rt_op_name(op->core);
    if (name.length == 7) { /* permute */
        int64_t dims[IR_STRIDED_MAX_RANK];
        size_t count;
        const ir_value *list = ir_core_operand(m, op, "dims");
        if (!list || !ir_const_int_list(list, dims, IR_STRIDED_MAX_RANK, &count) ||
            count != (size_t)rank)
            return false;
        for (int d = 0; d < rank; d++) {
            int64_t from = dims[d] < 0 ? dims[d] + rank : dims[d];
            if (from < 0 || from >= rank)
                return false;
            out[d] = (int)from;
        }
        return true;
    }
    int a = 0, b = 1;
    if (name.length == 1) { /* t */
        if (rank < 2)
            return true;
    } else if (!wrap_dim(ir_core_operand(m, op, "dim0"), rank, &a) ||
               !wrap_dim(ir_core_operand(m, op, "dim1"), rank, &b)) {
        return false;
    }
    out[a] = b;
    out[b] = a;
    return true;
}

bool ir_view_slice(ir_module *m, const ir_op *op, int *out_dim, int64_t *out_start,
                   int64_t *out_step) {
    const ir_type *from = op->operands[0]->type;
    if (!ir_type_is_known_tensor(from) || !wrap_dim(ir_core_operand(m, op, "dim"), from->rank, out_dim))
        return false;
    rt_dim size = from->dims[*out_dim];
    const ir_value *start = ir_core_operand(m, op, "start"), *step = ir_core_operand(m, op, "step");
    if (ir_view_kind_of(op) == IR_VIEW_SELECT)
        start = ir_core_operand(m, op, "index");
    *out_start = 0;
    *out_step = 1;
    if (!start)
        return false;
    if (start->type->kind != IR_NONE && !ir_const_int(start, out_start))
        return false;
    if (step && !ir_const_int(step, out_step))
        return false;
    bool known = rt_dim_is_constant(size);
    int64_t low, high;
    bool is_inside = !known && *out_start > 0 && ir_dim_bounds(m, size, &low, &high) &&
                     low > *out_start;
    if (*out_start < 0) {
        if (!known)
            return false;
        *out_start += size;
    }
    if (ir_view_kind_of(op) == IR_VIEW_SELECT)
        return *out_start >= 0 && (known ? *out_start < size : *out_start == 0 || is_inside);
    if (*out_start < 0)
        *out_start = 0;
    if (known && *out_start > size)
        *out_start = size;
    return *out_step > 0 && (known || *out_start == 0 || is_inside);
}

bool ir_strided_reshape(ir_module *m, const ir_strided *in, const rt_dim *sizes, int rank,
                        ir_strided *out) {
    if (rank > IR_STRIDED_MAX_RANK)
        return false;
    ir_strided r = {.rank = rank, .offset = in->offset};
    for (int d = 0; d < rank; d++) {
        r.sizes[d] = sizes[d];
        r.strides[d] = 1;
    }
    /* Dims of one element say nothing: leave them out of the old shape. */
    rt_dim old_sizes[IR_STRIDED_MAX_RANK], old_strides[IR_STRIDED_MAX_RANK];
    int old_rank = 0;
    for (int d = 0; d < in->rank; d++)
        if (in->sizes[d] != 1) {
            old_sizes[old_rank] = in->sizes[d];
            old_strides[old_rank++] = in->strides[d];
        }
    int to = rank - 1;
    for (int from = old_rank - 1; from >= 0; from--) {
        rt_dim base = old_strides[from], span = old_sizes[from];
        while (from > 0 &&
               ir_dim_same(m, old_strides[from - 1], times(m, old_sizes[from], old_strides[from]))) {
            from--;
            span = times(m, span, old_sizes[from]);
        }
        /* New dims that together make this run of memory. */
        rt_dim covered = 1;
        while (to >= 0 && !ir_dim_same(m, covered, span)) {
            r.strides[to] = times(m, covered, base);
            covered = times(m, covered, sizes[to]);
            if (covered == RT_DIM_UNKNOWN)
                return false;
            to--;
        }
        if (!ir_dim_same(m, covered, span))
            return false;
    }
    for (; to >= 0; to--) /* leading dims of one */
        if (sizes[to] != 1)
            return false;
    *out = r;
    return true;
}

bool ir_strided_apply(ir_module *m, const ir_op *op, const ir_strided *in, ir_strided *out) {
    const ir_type *t = op->results[0]->type;
    if (!ir_type_is_known_tensor(t))
        return false;
    ir_strided r = {.rank = t->rank, .offset = in->offset};
    for (int d = 0; d < t->rank; d++)
        r.sizes[d] = t->dims[d];
    switch (ir_view_kind_of(op)) {
    case IR_VIEW_NONE: return false;
    case IR_VIEW_IDENTITY: *out = *in; return in->rank == t->rank;
    case IR_VIEW_RESHAPE: return ir_strided_reshape(m, in, t->dims, t->rank, out);
    case IR_VIEW_PERMUTE: {
        int from[IR_STRIDED_MAX_RANK];
        if (in->rank != t->rank || !ir_view_permutation(m, op, from))
            return false;
        for (int d = 0; d < t->rank; d++)
            r.strides[d] = in->strides[from[d]];
        break;
    }
    case IR_VIEW_EXPAND: {
        int lead = t->rank - in->rank;
        if (lead < 0)
            return false;
        for (int d = 0; d < t->rank; d++) {
            if (d < lead)
                continue;
            bool repeats = in->sizes[d - lead] == 1 && t->dims[d] != 1;
            if (!repeats && !ir_dim_same(m, in->sizes[d - lead], t->dims[d]))
                return false;
            r.strides[d] = repeats ? 0 : in->strides[d - lead];
        }
        break;
    }
    case IR_VIEW_SLICE: {
        int dim;
        int64_t start, step;
        if (in->rank != t->rank || !ir_view_slice(m, op, &dim, &start, &step))
            return false;
        for (int d = 0; d < t->rank; d++)
            r.strides[d] = d == dim ? times(m, in->strides[d], step) : in->strides[d];
        r.offset = plus(m, r.offset, times(m, in->strides[dim], start));
        break;
    }
    case IR_VIEW_SELECT: {
        int dim;
        int64_t index, step;
        if (in->rank != t->rank + 1 || !ir_view_slice(m, op, &dim, &index, &step))
            return false;
        for (int d = 0; d < t->rank; d++)
            r.strides[d] = in->strides[d < dim ? d : d + 1];
        r.offset = plus(m, r.offset, times(m, in->strides[dim], index));
        break;
    }
    }
    if (r.offset == RT_DIM_UNKNOWN)
        return false;
    *out = r;
    return true;
}

bool ir_strided_invert(ir_module *m, const ir_op *op, const ir_strided *result, ir_strided *out) {
    const ir_type *from = op->operands[0]->type;
    if (!ir_type_is_known_tensor(from))
        return false;
    switch (ir_view_kind_of(op)) {
    case IR_VIEW_IDENTITY: *out = *result; return true;
    case IR_VIEW_RESHAPE: return ir_strided_reshape(m, result, from->dims, from->rank, out);
    case IR_VIEW_PERMUTE: {
        int source[IR_STRIDED_MAX_RANK];
        if (!ir_view_permutation(m, op, source))
            return false;
        ir_strided r = {.rank = from->rank, .offset = result->offset};
        for (int d = 0; d < from->rank; d++) {
            r.sizes[source[d]] = from->dims[source[d]];
            r.strides[source[d]] = result->strides[d];
        }
        *out = r;
        return true;
    }
    case IR_VIEW_NONE: case IR_VIEW_EXPAND: case IR_VIEW_SLICE: case IR_VIEW_SELECT: break;
    }
    return false;
}
