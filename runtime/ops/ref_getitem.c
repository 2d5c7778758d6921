/* runtime/ops/ref_getitem.c - x[...] by tensors as Python means it: a 0-d integer among the indices selects, as an
 * int does, and a 0-d mask stands over a dimension of its own. What is left is advanced indexing. */
#include "runtime/ops/index_ops.h"

ts_status rt_ref_index(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_index_put_(rt_context *context, const rt_value *args, rt_value *outs);

static bool is_mask(const rt_tensor *t) { return t->dtype == RT_bool || t->dtype == RT_uint8; }

bool rt_has_zero_dim_index(rt_value list, bool selects) {
    const rt_value *items;
    size_t count;
    rt_as_items(list, &items, &count);
    for (size_t i = 0; i < count; i++)
        if (items[i].tag == RT_TAG_TENSOR && items[i].as.tensor->rank == 0 &&
            (is_mask(items[i].as.tensor) || selects))
            return true;
    return false;
}

static ts_status unsqueezed(const rt_tensor *t, int dim, rt_tensor **out) {
    int64_t sizes[RT_MAX_RANK + 1], strides[RT_MAX_RANK + 1];
    if (t->rank >= RT_MAX_RANK)
        return ts_raise("RuntimeError", "indexing gives too many dimensions");
    for (int d = 0; d <= t->rank; d++) {
        sizes[d] = d == dim ? 1 : t->sizes[d - (d > dim)];
        strides[d] = d == dim ? 1 : t->strides[d - (d > dim)];
    }
    return rt_tensor_alias(t, 0, sizes, strides, t->rank + 1, out);
}

/* One 0-d index at dim: *view becomes another one; *out_index what is left to index by, or NULL. */
static ts_status take_zero_dim(rt_tensor **view, const rt_tensor *index, int dim, rt_tensor **out_index) {
    rt_tensor *next = NULL;
    *out_index = NULL;
    if (dim > (*view)->rank || (dim == (*view)->rank && !is_mask(index)))
        return ts_raise("IndexError", "too many indices for tensor of dimension %d", (*view)->rank);
    if (is_mask(index)) {
        TS_TRY(unsqueezed(index, 0, out_index));
        ts_status status = unsqueezed(*view, dim, &next);
        if (status) {
            rt_tensor_release(*out_index);
            *out_index = NULL;
            return status;
        }
    } else {
        int64_t at = 0;
        if (!rt_dtype_is_integral(rt_dtype_of(index)))
            return ts_raise("IndexError", "tensors used as indices must be long, int, byte or bool tensors");
        TS_TRY(rt_check_index(rt_load_int(rt_dtype_of(index), index->data), (*view)->sizes[dim], dim, &at));
        TS_TRY(rt_selected(*view, dim, at, &next));
    }
    rt_tensor_release(*view);
    *view = next;
    return NULL;
}

ts_status rt_index_view(const rt_tensor *self, rt_value list, bool selects, rt_tensor **out_view, rt_value *out_list) {
    const rt_value *items;
    size_t count;
    int dim = 0;
    rt_tensor *view = NULL;
    *out_view = NULL;
    rt_as_items(list, &items, &count);
    TS_TRY(rt_list_make(count, out_list));
    ts_status status = rt_tensor_alias(self, 0, self->sizes, self->strides, self->rank, &view);
    for (size_t i = 0; i < count && !status; i++) {
        rt_tensor *index = items[i].tag == RT_TAG_TENSOR ? items[i].as.tensor : NULL;
        if (index && index->rank == 0 && (selects || is_mask(index))) {
            rt_tensor *left;
            status = take_zero_dim(&view, index, dim, &left);
            if (!status && left) {
                status = rt_list_append(out_list->as.list, rt_from_tensor(left));
                rt_tensor_release(left);
                dim++;
            }
            continue;
        }
        dim += index && is_mask(index) ? index->rank : 1;
        status = rt_list_append(out_list->as.list, items[i]);
    }
    if (status) {
        rt_tensor_release(view);
        rt_release(*out_list);
        *out_list = rt_none();
        return status;
    }
    *out_view = view;
    return NULL;
}

KERNEL(getitem) {
    rt_tensor *self, *view;
    rt_value list;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_index_view(self, args[1], true, &view, &list));
    rt_value parts[2] = {rt_from_tensor(view), list};
    ts_status status = rt_ref_index(context, parts, outs); /* the view itself, where nothing is left */
    rt_tensor_release(view);
    rt_release(list);
    return status;
}

static ts_status set_items(rt_context *context, rt_value self, const rt_value *args) {
    rt_tensor *view, *t;
    rt_value list, ignored = rt_none();
    TS_TRY(rt_need_tensor(self, &t));
    TS_TRY(rt_index_view(t, args[1], true, &view, &list));
    rt_value parts[4] = {rt_from_tensor(view), list, args[2], args[3]};
    ts_status status = rt_ref_index_put_(context, parts, &ignored);
    rt_release(ignored);
    rt_tensor_release(view);
    rt_release(list);
    return status;
}

KERNEL(setitem) {
    rt_tensor *result;
    TS_TRY(rt_fresh_copy(args[0], &result));
    return rt_give(set_items(context, rt_from_tensor(result), args), result, outs);
}
KERNEL(setitem_) {
    TS_TRY(set_items(context, args[0], args));
    outs[0] = rt_retain(args[0]);
    return NULL;
}
