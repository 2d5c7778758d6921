/* runtime/ops/ref_triangle.c - diagonals and triangles of matrices. */
#include "runtime/ops/index_ops.h"

KERNEL(diag_embed) {
    rt_tensor *self, *result, *view;
    int a, b;
    TS_TRY(rt_need_tensor(args[0], &self));
    if (self->rank == 0)
        return ts_raise("RuntimeError", "diag_embed expects at least a vector");
    int rank = self->rank + 1;
    int64_t offset = args[1].as.i, length = self->sizes[self->rank - 1];
    TS_TRY(rt_wrap_dim(args[2].as.i, rank, &a));
    TS_TRY(rt_wrap_dim(args[3].as.i, rank, &b));
    if (a == b)
        return ts_raise("RuntimeError", "diagonal dimensions cannot be identical %d, %d", a, b);
    int64_t sizes[RT_MAX_RANK + 1], wide;
    int at = 0;
    if (offset == INT64_MIN || !ts_add_i64(length, offset < 0 ? -offset : offset, &wide))
        return ts_no_memory();
    for (int d = 0; d < rank; d++)
        sizes[d] = d == a || d == b ? wide : self->sizes[at++];
    TS_TRY(rt_tensor_make_zeroed(rt_dtype_of(self), sizes, rank, &result));
    ts_status status = rt_diagonal_of(result, offset, a, b, &view);
    if (!status) {
        status = rt_tensor_copy_into(view, self);
        rt_tensor_release(view);
    }
    return rt_give(status, result, outs);
}

KERNEL(diag) {
    rt_tensor *self, *view, *copy;
    TS_TRY(rt_need_tensor(args[0], &self));
    if (self->rank == 1)
        return rt_ref_diag_embed(context, (rt_value[]){args[0], args[1], rt_int(0), rt_int(1)},
                                 outs);
    if (self->rank != 2)
        return ts_raise("RuntimeError", "diag(): Supports 1D or 2D tensors. Got %dD", self->rank);
    TS_TRY(rt_diagonal_of(self, args[1].as.i, 0, 1, &view));
    ts_status status = rt_tensor_clone(view, &copy);
    rt_tensor_release(view);
    TS_TRY(status);
    outs[0] = rt_from_tensor(copy);
    return NULL;
}

/* Zeroes what lies above (lower) or below the diagonal of each matrix. */
static void clear_triangle(rt_tensor *t, int64_t diagonal, bool keep_lower) {
    int64_t rows = t->sizes[t->rank - 2], columns = t->sizes[t->rank - 1];
    int64_t size = rt_element_bytes(t);
    if (t->element_count == 0)
        return;
    if (diagonal > columns)
        diagonal = columns;
    if (diagonal < -rows)
        diagonal = -rows;
    char *row = t->data;
    for (int64_t i = 0; i < t->element_count / columns; i++, row += columns * size) {
        int64_t split = i % rows + diagonal + (keep_lower ? 1 : 0);
        split = split < 0 ? 0 : split > columns ? columns : split;
        if (keep_lower)
            memset(row + split * size, 0, (size_t)((columns - split) * size));
        else
            memset(row, 0, (size_t)(split * size));
    }
}

static ts_status triangle(const rt_value *args, bool keep_lower, rt_value *outs) {
    rt_tensor *self, *result;
    TS_TRY(rt_need_tensor(args[0], &self));
    if (self->rank < 2)
        return ts_raise("RuntimeError", "%s: input tensor must have at least 2 dimensions",
                        keep_lower ? "tril" : "triu");
    TS_TRY(rt_tensor_clone(self, &result));
    clear_triangle(result, args[1].as.i, keep_lower);
    outs[0] = rt_from_tensor(result);
    return NULL;
}
KERNEL(tril) { return triangle(args, true, outs); }
KERNEL(triu) { return triangle(args, false, outs); }
