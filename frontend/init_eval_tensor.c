/* frontend/init_eval_tensor.c - the evaluator of scripts: attributes and indexing of tensors. */
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "runtime/values/tensor.h"

ts_status ev_parameter_make(evaluator *ev, rt_value tensor, bool requires_grad, uint32_t flag,
                            rt_value *out) {
    (void)ev;
    const rt_tensor *t = tensor.as.tensor;
    rt_tensor *made;
    *out = rt_none();
    TS_TRY(rt_tensor_alias(t, 0, t->sizes, t->strides, t->rank, &made));
    made->requires_grad = requires_grad;
    made->base.flags |= flag;
    *out = rt_from_tensor(made);
    return NULL;
}

static ts_status sizes_tuple(const int64_t *sizes, int rank, rt_value *out) {
    TS_TRY(rt_tuple_make((size_t)rank, out));
    out->as.counted->flags |= EV_FLAG_SIZE;
    for (int i = 0; i < rank; i++)
        out->as.tuple->items[i] = rt_int(sizes[i]);
    return NULL;
}

ts_status ev_tensor_attribute(evaluator *ev, rt_value v, ts_str name, bool *out_found,
                              rt_value *out) {
    const rt_tensor *t = v.as.tensor;
    *out_found = true;
    if (ts_str_is(name, "shape"))
        return sizes_tuple(t->sizes, t->rank, out);
    if (ts_str_is(name, "dtype")) {
        *out = rt_int_meaning(t->dtype, RT_MEANING_DTYPE);
        return NULL;
    }
    if (ts_str_is(name, "device")) {
        *out = (rt_value){.tag = RT_TAG_DEVICE, .aux = 0, .as.i = -1};
        return NULL;
    }
    if (ts_str_is(name, "ndim")) {
        *out = rt_int(t->rank);
        return NULL;
    }
    if (ts_str_is(name, "requires_grad")) {
        *out = rt_bool(t->requires_grad);
        return NULL;
    }
    if (ts_str_is(name, "is_leaf")) {
        *out = rt_bool(true);
        return NULL;
    }
    if (ts_str_is(name, "is_cuda") || ts_str_is(name, "is_sparse") || ts_str_is(name, "is_quantized") ||
        ts_str_is(name, "is_meta") || ts_str_is(name, "is_mkldnn") || ts_str_is(name, "is_nested")) {
        *out = rt_bool(false);
        return NULL;
    }
    if (ts_str_is(name, "grad") || ts_str_is(name, "grad_fn"))
        return NULL;
    if (ts_str_is(name, "layout")) {
        *out = rt_int(0);
        return NULL;
    }
    if (ts_str_is(name, "itemsize") || ts_str_is(name, "nbytes")) {
        int64_t size = (int64_t)rt_dtype_size((rt_dtype)t->dtype);
        *out = rt_int(ts_str_is(name, "itemsize") ? size : size * t->element_count);
        return NULL;
    }
    if (ts_str_is(name, "data"))
        return ev_parameter_make(ev, v, false, 0, out);
    static const struct {
        const char *name, *op;
    } views[] = {{"T", "numpy_T"}, {"mT", "mT"}, {"H", "matrix_H"}, {"mH", "mH"}, {"real", "real"}, {"imag", "imag"}};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (ts_str_is(name, views[i].name)) {
            if (views[i].name[0] == 'T' && t->rank == 2) {
                rt_value args[3] = {v, rt_int(0), rt_int(1)};
                return ev_op(ev, "transpose", args, 3, out);
            }
            return ev_op(ev, views[i].op, &v, 1, out);
        }
    *out_found = false;
    return NULL;
}

ts_status ev_tensor_set_attribute(evaluator *ev, rt_value v, ts_str name, rt_value value) {
    rt_tensor *t = v.as.tensor;
    (void)ev;
    if (ts_str_is(name, "requires_grad") && value.tag == RT_TAG_BOOL) {
        t->requires_grad = value.as.i;
        return NULL;
    }
    if (ts_str_is(name, "grad") && rt_is_none(value))
        return NULL;
    if (ts_str_is(name, "data") && value.tag == RT_TAG_TENSOR) {
        const rt_tensor *from = value.as.tensor;
        if (from == t)
            return NULL;
        if (from->rank != t->rank)
            return ts_error_make(TS_ERR_UNSUPPORTED,
                                 "assigning .data of another rank is not supported: %d to %d",
                                 from->rank, t->rank);
        rt_storage *old = t->storage;
        if (from->storage)
            atomic_fetch_add_explicit(&from->storage->references, 1, memory_order_relaxed);
        t->storage = from->storage;
        t->data = from->data;
        t->dtype = from->dtype;
        t->element_count = from->element_count;
        for (int i = 0; i < t->rank; i++) {
            t->sizes[i] = from->sizes[i];
            t->strides[i] = from->strides[i];
        }
        if (old)
            rt_storage_release(old);
        return NULL;
    }
    if (ts_str_starts_with(name, "_"))
        return NULL; /* marks that libraries put on tensors: _no_weight_decay and the like */
    return ts_raise("AttributeError", "'Tensor' object attribute '%.*s' cannot be set",
                    TS_STR_ARG(name));
}

/* ---- indexing ---- */

typedef struct indexer {
    evaluator *ev;
    rt_value x;        /* the view so far; owned */
    int dim;           /* its next dimension */
    rt_value indices;  /* list of tensors and None, by dimension of x; owned */
    bool has_tensors;
} indexer;

static bool is_ellipsis(rt_value v) {
    fe_binding b = fe_binding_of_value(v);
    return b.kind == FE_NAME && ts_str_is(b.path, "builtins.Ellipsis");
}

static ts_status replace(indexer *ix, const char *row, const rt_value *args) {
    rt_value next;
    TS_TRY(ev_row(ix->ev, row, args, &next));
    rt_assign(&ix->x, next);
    return NULL;
}

static ts_status add_index(indexer *ix, rt_value tensor) {
    while (ix->indices.as.list->count < (size_t)ix->dim)
        TS_TRY(rt_list_append(ix->indices.as.list, rt_none()));
    ix->has_tensors = true;
    return rt_list_append(ix->indices.as.list, tensor);
}

static ts_status int_of(rt_value v, rt_value *out) {
    *out = v;
    if (ev_is_int(v) || rt_is_none(v))
        return NULL;
    if (v.tag == RT_TAG_TENSOR && v.as.tensor->element_count == 1) {
        TS_TRY(rt_tensor_item(v.as.tensor, out));
        if (ev_is_int(*out))
            return NULL;
    }
    return ts_raise("TypeError", "slice indices must be integers or None");
}

static int consumed(rt_value v) {
    if (rt_is_none(v) || is_ellipsis(v) || v.tag == RT_TAG_BOOL)
        return 0;
    if (v.tag == RT_TAG_TENSOR &&
        (v.as.tensor->dtype == RT_bool || v.as.tensor->dtype == RT_uint8))
        return v.as.tensor->rank;
    return 1;
}

static ts_status apply_one(indexer *ix, rt_value v) {
    rt_value parts[3];
    if (rt_is_none(v)) {
        rt_value args[2] = {ix->x, rt_int(ix->dim++)};
        return replace(ix, "unsqueeze", args);
    }
    if (ix->dim >= ix->x.as.tensor->rank && v.tag != RT_TAG_TENSOR)
        return ts_raise("IndexError", "too many indices for tensor of dimension %d",
                        (int)ix->x.as.tensor->rank);
    if (v.tag == RT_TAG_INT) {
        rt_value args[3] = {ix->x, rt_int(ix->dim), v};
        int64_t size = ix->x.as.tensor->sizes[ix->dim];
        if (v.as.i < -size || v.as.i >= size)
            return ts_raise("IndexError", "index %lld is out of bounds for dimension %d with size %lld",
                            (long long)v.as.i, ix->dim, (long long)size);
        return replace(ix, "select.int", args);
    }
    if (ev_slice_parts(v, parts)) {
        rt_value args[5] = {ix->x, rt_int(ix->dim++), rt_none(), rt_none(), rt_int(1)};
        TS_TRY(int_of(parts[0], &args[2]));
        TS_TRY(int_of(parts[1], &args[3]));
        if (!rt_is_none(parts[2]))
            TS_TRY(int_of(parts[2], &args[4]));
        if (args[4].as.i <= 0)
            return ts_raise("ValueError", "step must be greater than zero");
        return replace(ix, "slice.Tensor", args);
    }
    if (v.tag == RT_TAG_TENSOR) {
        const rt_tensor *t = v.as.tensor;
        if (t->rank == 0 && rt_dtype_is_integral((rt_dtype)t->dtype)) {
            rt_value item;
            TS_TRY(rt_tensor_item(t, &item));
            return apply_one(ix, item);
        }
        TS_TRY(add_index(ix, v));
        bool is_mask = t->dtype == RT_bool || t->dtype == RT_uint8;
        ix->dim += is_mask ? t->rank : 1;
        return NULL;
    }
    if (ev_is_sequence(v) || ev_as_range(v)) {
        rt_value list, t;
        TS_TRY(ev_to_list(ix->ev, v, &list));
        ts_status status = ev_op(ix->ev, "tensor", &list, 1, &t);
        rt_release(list);
        TS_TRY(status);
        if (t.as.tensor->element_count == 0) {
            rt_tensor *empty;
            status = rt_tensor_cast(t.as.tensor, RT_int64, false, &empty);
            if (!status)
                rt_assign(&t, rt_from_tensor(empty));
        }
        if (!status)
            status = add_index(ix, t);
        ix->dim += t.as.tensor->dtype == RT_bool ? t.as.tensor->rank : 1;
        rt_release(t);
        return status;
    }
    return ts_raise("TypeError", "tensor indices must be integers, slices, None, tensors or lists, not %.*s",
                    TS_STR_ARG(ev_type_name(v)));
}

static ts_status apply(indexer *ix, rt_value index) {
    size_t count = 1;
    const rt_value *items = &index;
    if (index.tag == RT_TAG_TUPLE)
        items = ev_items(index, &count);
    for (size_t i = 0; i < count; i++) {
        if (!is_ellipsis(items[i])) {
            TS_TRY(apply_one(ix, items[i]));
            continue;
        }
        int rest = 0;
        for (size_t k = i + 1; k < count; k++)
            rest += consumed(items[k]);
        ix->dim = ix->x.as.tensor->rank - rest;
        if (ix->dim < 0)
            return ts_raise("IndexError", "too many indices for tensor of dimension %d",
                            (int)ix->x.as.tensor->rank);
    }
    return NULL;
}

ts_status ev_tensor_get_item(evaluator *ev, rt_value t, rt_value index, rt_value *out) {
    indexer ix = {.ev = ev, .x = rt_retain(t)};
    *out = rt_none();
    ts_status status = rt_list_make(0, &ix.indices);
    if (!status)
        status = apply(&ix, index);
    if (!status && ix.has_tensors) {
        rt_value args[2] = {ix.x, ix.indices};
        status = ev_row(ev, "index.Tensor", args, out);
    } else if (!status) {
        *out = rt_retain(ix.x);
        if (rt_is(*out, t)) { /* t[...] is a new tensor */
            rt_value alias;
            status = ev_parameter_make(ev, t, t.as.tensor->requires_grad, 0, &alias);
            rt_assign(out, status ? rt_none() : alias);
        }
    }
    rt_release(ix.indices);
    rt_release(ix.x);
    return status;
}

ts_status ev_tensor_set_item(evaluator *ev, rt_value t, rt_value index, rt_value value) {
    indexer ix = {.ev = ev, .x = rt_retain(t)};
    rt_value source = rt_retain(value), ignored = rt_none();
    ts_status status = rt_list_make(0, &ix.indices);
    if (!status)
        status = apply(&ix, index);
    if (!status && value.tag != RT_TAG_TENSOR) {
        rt_tensor *boxed;
        if (!ev_is_number(value) && value.tag != RT_TAG_COMPLEX)
            status = ts_raise("TypeError", "can't assign a %.*s to a Tensor", TS_STR_ARG(ev_type_name(value)));
        else
            status = rt_tensor_from_number(value, (rt_dtype)t.as.tensor->dtype, &boxed);
        if (!status)
            rt_assign(&source, rt_from_tensor(boxed));
    }
    if (!status && ix.has_tensors) {
        rt_tensor *cast;
        status = rt_tensor_cast(source.as.tensor, (rt_dtype)t.as.tensor->dtype, false, &cast);
        if (!status) {
            rt_value args[4] = {ix.x, ix.indices, rt_from_tensor(cast), rt_bool(false)};
            status = ev_row(ev, "index_put_", args, &ignored);
            rt_release(args[2]);
        }
    } else if (!status) {
        /* Leading dimensions of size 1 of the source fall away, as PyTorch does. */
        rt_tensor *s = source.as.tensor;
        int extra = s->rank - ix.x.as.tensor->rank, skip = 0;
        while (skip < extra && s->sizes[skip] == 1)
            skip++;
        if (skip) {
            rt_tensor *view;
            status = rt_tensor_alias(s, 0, s->sizes + skip, s->strides + skip, s->rank - skip, &view);
            if (!status)
                rt_assign(&source, rt_from_tensor(view));
        }
        if (!status)
            status = rt_tensor_copy_into(ix.x.as.tensor, source.as.tensor);
    }
    rt_release(ignored);
    rt_release(source);
    rt_release(ix.indices);
    rt_release(ix.x);
    return status;
}
