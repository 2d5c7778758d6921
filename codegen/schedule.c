/* codegen/schedule.c - what is decided about a kernel before it is printed: which nodes are needed,
 * in which pass over the row they run, which dims are merged, what a work item is. */
#include "codegen/emit_llvm_kernel.h"

#include <string.h>

static bool varies(rt_dim stride) { return stride != 0; }

static uint32_t access_dims(const kn_kernel *k, const kn_access *a) {
    uint32_t dims = 0;
    for (int d = 0; d < k->dim_count; d++)
        if (varies(a->strides[d]))
            dims |= 1u << d;
    return dims;
}

static uint32_t reduced_dims(const kn_kernel *k) {
    uint32_t dims = 0;
    for (int d = 0; d < k->dim_count; d++)
        if (k->dims[d].role == KN_SERIAL ||
            (k->dims[d].role == KN_VECTOR && k->reduces_vector))
            dims |= 1u << d;
    return dims;
}

static void mark_needed(kn_kernel *k) {
    for (int i = 0; i < k->node_count; i++)
        k->nodes[i].is_needed = false;
    for (int i = 0; i < k->store_count; i++)
        k->nodes[k->stores[i].node].is_needed = true;
    if (k->attention.is_on)
        k->nodes[k->attention.score].is_needed = true;
    for (int i = k->node_count - 1; i >= 0; i--) /* arguments come before their users */
        if (k->nodes[i].is_needed)
            for (int a = 0; a < 3; a++)
                if (k->nodes[i].args[a] >= 0)
                    k->nodes[k->nodes[i].args[a]].is_needed = true;
}

static void analyse_nodes(kn_kernel *k) {
    uint32_t reduced = reduced_dims(k);
    k->stage_count = 1;
    for (int i = 0; i < k->node_count; i++) {
        kn_node *n = &k->nodes[i];
        n->dims = 0;
        n->stage = 0;
        n->is_heavy = kn_scalar_is_heavy(n->code);
        n->save = -1;
        for (int a = 0; a < 3; a++) {
            if (n->args[a] < 0)
                continue;
            const kn_node *from = &k->nodes[n->args[a]];
            n->dims |= from->dims;
            n->stage = from->stage > n->stage ? from->stage : n->stage;
            n->is_heavy = n->is_heavy || (from->is_heavy && n->code != KN_REDUCE);
        }
        switch (n->code) {
        case KN_LOAD: n->dims |= access_dims(k, &n->access); break;
        case KN_TILE: n->dims = (1u << k->dim_count) - 1; break;
        case KN_INDEX: n->dims = 1u << n->dim; break;
        case KN_COUNT:
            for (int d = 0; d < k->dim_count; d++)
                if (k->dims[d].window.is_on)
                    n->dims |= 1u << k->dims[d].window.outer;
            break;
        case KN_REDUCE:
            n->dims &= ~reduced;
            n->stage++;
            break;
        default: break;
        }
        if (n->is_needed && n->stage + 1 > k->stage_count)
            k->stage_count = n->stage + 1;
    }
}

/* ---- merging of dims ---- */

static bool merges_in(const kn_kernel *k, const kn_access *a, int d) {
    return kn_dim_same(k, a->strides[d], kn_dim_mul(k, a->strides[d + 1], k->dims[d + 1].size));
}

static bool can_merge(const kn_kernel *k, int d) {
    const kn_dim *a = &k->dims[d], *b = &k->dims[d + 1];
    bool roles = a->role == b->role || (b->role == KN_VECTOR && a->role ==
                                        (k->reduces_vector ? KN_SERIAL : KN_OUTER));
    if (!roles || a->window.is_on || b->window.is_on)
        return false;
    for (int i = 0; i < k->dim_count; i++)
        if (k->dims[i].window.is_on &&
            (k->dims[i].window.outer == d || k->dims[i].window.outer == d + 1))
            return false;
    for (int i = 0; i < k->node_count; i++) {
        const kn_node *n = &k->nodes[i];
        if (n->is_needed && n->code == KN_LOAD && !merges_in(k, &n->access, d))
            return false;
        if (n->is_needed && n->code == KN_INDEX && (n->dim == d || n->dim == d + 1))
            return false;
    }
    for (int i = 0; i < k->store_count; i++)
        if (!merges_in(k, &k->stores[i].access, d))
            return false;
    return true;
}

static void drop_stride(kn_access *a, int d) {
    for (int i = d; i + 1 < KN_MAX_DIMS; i++)
        a->strides[i] = a->strides[i + 1];
    a->strides[KN_MAX_DIMS - 1] = 0;
}

static void drop_dim(kn_kernel *k, int d) {
    for (int i = 0; i < k->node_count; i++) {
        kn_node *n = &k->nodes[i];
        if (n->code == KN_LOAD)
            drop_stride(&n->access, d);
        if (n->code == KN_INDEX && n->dim > d)
            n->dim--;
    }
    for (int i = 0; i < k->store_count; i++)
        drop_stride(&k->stores[i].access, d);
    if (k->contraction.is_on) {
        drop_stride(&k->contraction.left, d);
        drop_stride(&k->contraction.right, d);
        if (d <= k->contraction.batch_count)
            k->contraction.batch_count--;
        if (d < k->contraction.line_dim)
            k->contraction.line_dim--;
    }
    for (int i = d; i + 1 < k->dim_count; i++)
        k->dims[i] = k->dims[i + 1];
    k->dim_count--;
    for (int i = 0; i < k->dim_count; i++)
        if (k->dims[i].window.is_on && k->dims[i].window.outer > d)
            k->dims[i].window.outer--;
}

static bool is_referenced(const kn_kernel *k, int d) {
    if (k->dims[d].window.is_on)
        return true;
    for (int i = 0; i < k->dim_count; i++)
        if (k->dims[i].window.is_on && k->dims[i].window.outer == d)
            return true;
    for (int i = 0; i < k->node_count; i++)
        if (k->nodes[i].code == KN_INDEX && k->nodes[i].dim == d)
            return true;
    return false;
}

static void merge_dims(kn_kernel *k) {
    /* Dims of one step go, but for the last. */
    for (int d = k->dim_count - 2; d >= 0; d--)
        if (k->dims[d].size == 1 && !is_referenced(k, d))
            drop_dim(k, d);
    /* A vector dim of one step gives its place to an outer one beside it. */
    int last = k->dim_count - 1;
    if (last > 0 && k->dims[last].size == 1 && !is_referenced(k, last) && !k->reduces_vector &&
        k->dims[last - 1].role == KN_OUTER) {
        drop_dim(k, last);
        k->dims[last - 1].role = KN_VECTOR;
    }
    for (int d = k->dim_count - 2; d >= 0; d--) {
        if (!can_merge(k, d))
            continue;
        k->dims[d + 1].size = kn_dim_mul(k, k->dims[d].size, k->dims[d + 1].size);
        drop_dim(k, d); /* strides of d+1 are the merged ones; they move into place d */
    }
}

bool kn_merge_pixels(kn_kernel *k, int d) {
    mark_needed(k);
    if (k->dims[d].size != 1 && k->dims[d + 1].size != 1 && !can_merge(k, d))
        return false;
    rt_dim size = kn_dim_mul(k, k->dims[d].size, k->dims[d + 1].size);
    int keep = k->dims[d + 1].size == 1 && k->dims[d].size != 1 ? d + 1 : d; /* the one dropped */
    drop_dim(k, keep);
    k->dims[d].size = size;
    return true;
}

/* Batch dims of a contraction become rows where every operand lies so: the more rows a product
 * has, the better its tiles are filled. */
static void merge_batch_dims(kn_kernel *k) {
    kn_contraction *c = &k->contraction;
    bool has_images = c->left_kind == KN_LEFT_CONVOLUTION || c->kernel_h > 0;
    for (int d = c->batch_count - 1; d >= 0; d--) {
        if (c->has_line_dim && (d == c->line_dim || d + 1 == c->line_dim) &&
            (d == c->line_dim || k->dims[d].size != 1))
            continue; /* addresses are made of its index */
        if (k->dims[d].size == 1) {
            drop_dim(k, d);
            continue;
        }
        bool into_rows = d + 1 == c->batch_count;
        if (!can_merge(k, d) || !merges_in(k, &c->right, d))
            continue;
        if (into_rows && c->left_kind == KN_LEFT_LINES)
            continue; /* its rows are those of one image */
        if (has_images && into_rows) {
            if (c->image_stride != 0)
                continue;
            c->image_stride = c->left.strides[d];
            c->images = k->dims[d].size;
        } else if (!merges_in(k, &c->left, d)) {
            continue;
        }
        k->dims[d + 1].size = kn_dim_mul(k, k->dims[d].size, k->dims[d + 1].size);
        drop_dim(k, d);
    }
}

/* ---- items and scratch ---- */

static void plan_items(kn_kernel *k) {
    const kn_dim *vector = &k->dims[k->dim_count - 1];
    bool has_serial = false;
    double per_item = 1;
    rt_dim items = 1;
    for (int d = 0; d < k->dim_count; d++) {
        if (k->dims[d].role == KN_OUTER)
            items = kn_dim_mul(k, items, k->dims[d].size);
        else if (k->dims[d].role == KN_SERIAL) {
            has_serial = true;
            per_item *= rt_dim_is_constant(k->dims[d].size) ? (double)k->dims[d].size : 16;
        }
    }
    k->chunk = 0;
    double length = rt_dim_is_constant(vector->size) ? (double)vector->size : 256;
    if (!k->reduces_vector) {
        int64_t chunk = (has_serial ? 256 : 4096) * k->variant->chunk_percent / 100;
        if (!rt_dim_is_constant(vector->size) || vector->size > chunk + chunk / 2) {
            k->chunk = chunk;
            items = kn_dim_mul(k, items, kn_dim_ceil_div(k, vector->size, chunk));
            length = (double)chunk;
        }
    }
    double cost = 0; /* rough nanoseconds an element: a vector operation each */
    for (int i = 0; i < k->node_count; i++)
        if (k->nodes[i].is_needed)
            cost += kn_scalar_is_heavy(k->nodes[i].code) ? 1.0 : 0.05;
    cost *= per_item * length;
    k->work_items = k->part_items = items;
    k->grain = cost > 4000 ? 1 : (int64_t)(4000 / (cost + 0.1)) + 1;
    k->flops = rt_dim_is_constant(items)
                   ? (double)items * per_item * length * (double)k->node_count
                   : 0;
}

/* Rows worth keeping between passes: something expensive that a later pass reads again. */
static void plan_saved_rows(kn_kernel *k) {
    if (!k->reduces_vector)
        return;
    int64_t row = 1;
    for (int d = 0; d < k->dim_count; d++) {
        if (k->dims[d].role == KN_OUTER)
            continue;
        if (!rt_dim_is_constant(k->dims[d].size))
            return;
        row *= k->dims[d].size;
    }
    if (row > 1 << 20)
        return;
    uint32_t reduced = reduced_dims(k);
    int64_t offset = 0;
    for (int i = 0; i < k->node_count; i++) {
        kn_node *n = &k->nodes[i];
        if (!n->is_needed || !n->is_heavy || !(n->dims & reduced) || n->type == RT_bool)
            continue;
        bool is_read_later = false;
        for (int j = i + 1; j < k->node_count; j++)
            for (int a = 0; a < 3; a++)
                if (k->nodes[j].is_needed && k->nodes[j].args[a] == i &&
                    k->nodes[j].stage - (k->nodes[j].code == KN_REDUCE) > n->stage)
                    is_read_later = true;
        if (!is_read_later)
            continue;
        n->save = offset;
        offset += (row * (int64_t)rt_dtype_size(n->type) + 127) / 64 * 64;
    }
    k->scratch_bytes = offset;
}

ts_status kn_schedule(kn_kernel *k, const cg_target_info *target) {
    mark_needed(k);
    if (k->contraction.is_on)
        merge_batch_dims(k);
    else if (!k->attention.is_on)
        merge_dims(k);
    analyse_nodes(k);
    if (k->attention.is_on)
        return kn_plan_attention(k, target);
    if (k->contraction.is_on)
        return kn_plan_contraction(k, target);
    if (!kn_plan_window(k, target)) {
        plan_items(k);
        plan_saved_rows(k);
    }
    if (k->work_items == RT_DIM_UNKNOWN)
        return ts_error_make(TS_ERR_UNSUPPORTED, "a kernel needs sizes that are known or named");
    /* Every size that is not constant becomes a parameter before emission starts. */
    for (int d = 0; d < k->dim_count; d++) {
        if (k->dims[d].size == RT_DIM_UNKNOWN)
            return ts_error_make(TS_ERR_UNSUPPORTED, "a kernel needs sizes that are known or named");
        if (!rt_dim_is_constant(k->dims[d].size))
            kn_dim_param(k, k->dims[d].size);
        if (k->dims[d].window.is_on && !rt_dim_is_constant(k->dims[d].window.input))
            kn_dim_param(k, k->dims[d].window.input);
    }
    if (k->chunk) {
        rt_dim chunks = kn_dim_ceil_div(k, k->dims[k->dim_count - 1].size, k->chunk);
        if (!rt_dim_is_constant(chunks))
            kn_dim_param(k, chunks);
    }
    return NULL;
}

static ts_status register_access(kn_kernel *k, const kn_access *a) {
    for (int d = -1; d < k->dim_count; d++) {
        rt_dim s = d < 0 ? a->offset : a->strides[d];
        if (s == RT_DIM_UNKNOWN)
            return ts_error_make(TS_ERR_UNSUPPORTED, "a kernel needs strides that are known");
        if (!rt_dim_is_constant(s))
            kn_dim_param(k, s);
    }
    return NULL;
}

ts_status kn_check_supported(kn_kernel *k, const cg_target_info *target) {
    int carried = 0;
    for (int i = 0; i < k->node_count; i++) {
        const kn_node *n = &k->nodes[i];
        if (!n->is_needed)
            continue;
        if (n->type == RT_float16 || n->type == RT_bfloat16 || rt_dtype_is_complex(n->type) ||
            n->type == RT_DTYPE_UNKNOWN || rt_dtype_category(n->type) == 'q')
            return ts_error_make(TS_ERR_UNSUPPORTED, "no kernels compute in %s",
                                 rt_dtype_name(n->type));
        if (n->code == KN_LOAD) {
            TS_TRY(register_access(k, &n->access));
            if (n->access.element == RT_float16 && target->vector_bytes < 32)
                return ts_error_make(TS_ERR_UNSUPPORTED, "half precision needs F16C");
        }
        /* Their reduction of the argument asks for an exact product. */
        if ((n->code == KN_sin || n->code == KN_cos) && !target->has_fma)
            return ts_error_make(TS_ERR_UNSUPPORTED, "sin and cos need FMA");
        if (n->code == KN_fma && !target->has_fma)
            return ts_error_make(TS_ERR_UNSUPPORTED, "rounding to bytes needs FMA");
        if (n->code == KN_REDUCE)
            carried += n->reduction == KN_RED_ARGMAX || n->reduction == KN_RED_ARGMIN ? 2 : 1;
        if (n->code > KN_REDUCE && !kn_scalar_has_type(n->code, k->nodes[n->args[0]].type) &&
            n->code != KN_select)
            return ts_error_make(TS_ERR_UNSUPPORTED, "no vector form of an operation on %s",
                                 rt_dtype_name(k->nodes[n->args[0]].type));
    }
    for (int i = 0; i < k->store_count; i++) {
        TS_TRY(register_access(k, &k->stores[i].access));
        if (k->stores[i].access.element == RT_float16 && target->vector_bytes < 32)
            return ts_error_make(TS_ERR_UNSUPPORTED, "half precision needs F16C");
    }
    if (carried * 2 > KN_MAX_CARRIED)
        return ts_error_make(TS_ERR_UNSUPPORTED, "too many reductions in one kernel");
    return NULL;
}
