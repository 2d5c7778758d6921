/* runtime/values/loop.c - the strided loop over several tensors. */
#include "runtime/values/loop.h"

void rt_loop_init(rt_loop *loop, const int64_t *sizes, int rank) {
    loop->rank = rank;
    loop->operand_count = 0;
    loop->keep_order = false;
    for (int d = 0; d < rank; d++)
        loop->sizes[d] = sizes[d];
}

void rt_loop_add(rt_loop *loop, const rt_tensor *t) {
    int at = loop->operand_count++, shift = loop->rank - t->rank;
    /* Strides of an empty tensor may be as large as they like, and are never walked: unsigned products wrap. */
    uint64_t size = rt_dtype_size((rt_dtype)t->dtype);
    loop->data[at] = t->data;
    for (int d = 0; d < loop->rank; d++) {
        int own = d - shift;
        loop->strides[at][d] = own < 0 || t->sizes[own] == 1 ? 0 : (int64_t)((uint64_t)t->strides[own] * size);
    }
}

void rt_loop_add_raw(rt_loop *loop, void *data, const int64_t *strides_bytes) {
    int at = loop->operand_count++;
    loop->data[at] = data;
    for (int d = 0; d < loop->rank; d++)
        loop->strides[at][d] = strides_bytes[d];
}

static void move_dim(rt_loop *loop, int from, int to) {
    loop->sizes[to] = loop->sizes[from];
    for (int p = 0; p < loop->operand_count; p++)
        loop->strides[p][to] = loop->strides[p][from];
}

static void swap_dims(rt_loop *loop, int a, int b) {
    int64_t size = loop->sizes[a];
    loop->sizes[a] = loop->sizes[b];
    loop->sizes[b] = size;
    for (int p = 0; p < loop->operand_count; p++) {
        int64_t stride = loop->strides[p][a];
        loop->strides[p][a] = loop->strides[p][b];
        loop->strides[p][b] = stride;
    }
}

/* Dimension a should be outside b: the first operand that tells them apart decides. */
static bool is_outer(const rt_loop *loop, int a, int b) {
    for (int p = 0; p < loop->operand_count; p++) {
        int64_t sa = loop->strides[p][a], sb = loop->strides[p][b];
        if (sa == 0 || sb == 0)
            continue;
        if (sa != sb)
            return sa > sb;
    }
    return true;
}

static bool can_join(const rt_loop *loop, int outer, int inner) {
    for (int p = 0; p < loop->operand_count; p++)
        if (loop->strides[p][outer] != loop->strides[p][inner] * loop->sizes[inner])
            return false;
    return true;
}

void rt_loop_start(rt_loop *loop) {
    loop->is_running = true;
    int rank = 0;
    for (int d = 0; d < loop->rank; d++) {
        if (loop->sizes[d] == 0)
            loop->is_running = false;
        if (loop->sizes[d] != 1)
            move_dim(loop, d, rank++);
    }
    if (!loop->is_running)
        return;
    if (!loop->keep_order)
        for (int d = 1; d < rank; d++)
            for (int e = d; e > 0 && !is_outer(loop, e - 1, e); e--)
                swap_dims(loop, e - 1, e);
    int joined = 0;
    for (int d = 1; d < rank; d++) {
        if (can_join(loop, joined, d)) {
            int64_t size = loop->sizes[joined] * loop->sizes[d];
            move_dim(loop, d, joined);
            loop->sizes[joined] = size;
        } else {
            move_dim(loop, d, ++joined);
        }
    }
    if (rank > 0) {
        loop->rank = joined; /* the outer dimensions */
        loop->inner_count = loop->sizes[joined];
        for (int p = 0; p < loop->operand_count; p++)
            loop->inner_strides[p] = loop->strides[p][joined];
    } else {
        loop->rank = 0;
        loop->inner_count = 1;
        for (int p = 0; p < loop->operand_count; p++)
            loop->inner_strides[p] = 0;
    }
    for (int d = 0; d < loop->rank; d++)
        loop->index[d] = 0;
}

/* The data of a tensor without elements may be null, to which nothing can be added. */
static char *moved(char *data, int64_t offset) { return data ? data + offset : NULL; }

void rt_loop_next(rt_loop *loop) {
    for (int d = loop->rank - 1; d >= 0; d--) {
        if (++loop->index[d] < loop->sizes[d]) {
            for (int p = 0; p < loop->operand_count; p++)
                loop->data[p] = moved(loop->data[p], loop->strides[p][d]);
            return;
        }
        loop->index[d] = 0;
        for (int p = 0; p < loop->operand_count; p++)
            loop->data[p] = moved(loop->data[p], -loop->strides[p][d] * (loop->sizes[d] - 1));
    }
    loop->is_running = false;
}
