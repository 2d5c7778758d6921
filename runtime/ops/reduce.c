/* runtime/ops/reduce.c - walks of reductions and of lanes. */
#include "runtime/ops/reduce.h"

#include <stdlib.h>

enum { CHUNK = 256, TILE = 16 };

int rt_reduced_sizes(const rt_tensor *in, const bool *mask, bool keep, int64_t *out_sizes) {
    int rank = 0;
    for (int d = 0; d < in->rank; d++)
        if (!mask[d] || keep)
            out_sizes[rank++] = mask[d] ? 1 : in->sizes[d];
    return rank;
}

typedef struct dims {
    int rank;
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK], index[RT_MAX_RANK];
} dims;

static void add_dim(dims *s, int64_t size, int64_t stride) {
    if (size == 1)
        return;
    if (s->rank > 0 && s->strides[s->rank - 1] == stride * size) {
        s->sizes[s->rank - 1] *= size;
        s->strides[s->rank - 1] = stride;
        return;
    }
    s->sizes[s->rank] = size;
    s->strides[s->rank] = stride;
    s->index[s->rank++] = 0;
}

/* The next position of the dims outside `inner`; false at the end. */
static bool step(dims *s, int inner, const char **data) {
    for (int d = s->rank - 1 - inner; d >= 0; d--) {
        if (++s->index[d] < s->sizes[d]) {
            *data += s->strides[d];
            return true;
        }
        s->index[d] = 0;
        *data -= s->strides[d] * (s->sizes[d] - 1);
    }
    return false;
}

static int64_t inner_size(const dims *s) { return s->rank ? s->sizes[s->rank - 1] : 1; }
static int64_t inner_stride(const dims *s) { return s->rank ? s->strides[s->rank - 1] : 0; }
static int has_inner(const dims *s) { return s->rank > 0; }

typedef union chunk {
    double d[CHUNK];
    int64_t i[CHUNK];
    rt_complex128 c[CHUNK];
} chunk;

static void reduce_row(rt_dtype dtype, rt_work work, dims *reduced, const char *data, rt_fold fold,
                       double param, rt_acc *acc) {
    int64_t n = inner_size(reduced), stride = inner_stride(reduced);
    chunk values;
    do {
        for (int64_t at = 0; at < n; at += CHUNK) {
            int64_t m = n - at < CHUNK ? n - at : CHUNK;
            rt_load_block(work, dtype, data + at * stride, stride, m, &values);
            fold(acc, &values, m, param);
            acc->count += m;
        }
    } while (step(reduced, has_inner(reduced), &data));
}

/* Neighbouring results together: rows of memory are read whole, then turned. */
static void reduce_tile(rt_dtype dtype, rt_work work, dims *reduced, const char *data,
                        int64_t tile_stride, int64_t width, rt_fold fold, double param,
                        rt_acc *acc) {
    enum { ROWS = CHUNK / TILE };
    int64_t n = inner_size(reduced), stride = inner_stride(reduced);
    size_t size = rt_work_size(work);
    chunk values, turned;
    do {
        for (int64_t at = 0; at < n; at += ROWS) {
            int64_t m = n - at < ROWS ? n - at : ROWS;
            for (int64_t r = 0; r < m; r++)
                rt_load_block(work, dtype, data + (at + r) * stride, tile_stride, width,
                              (char *)&values + (size_t)(r * TILE) * size);
            for (int64_t j = 0; j < width; j++) {
                for (int64_t r = 0; r < m; r++)
                    memcpy((char *)&turned + (size_t)r * size,
                           (char *)&values + (size_t)(r * TILE + j) * size, size);
                fold(&acc[j], &turned, m, param);
                acc[j].count += m;
            }
        }
    } while (step(reduced, has_inner(reduced), &data));
}

void rt_reduce(const rt_tensor *in, const bool *mask, rt_work work, rt_fold fold,
               const rt_acc *start, double param, rt_finish finish, void *user) {
    dims kept = {0}, reduced = {0};
    int64_t size = rt_element_bytes(in), kept_count = 1, reduced_count = 1;
    for (int d = 0; d < in->rank; d++) {
        if (mask[d])
            reduced_count *= in->sizes[d];
        else
            kept_count *= in->sizes[d];
    }
    rt_dtype dtype = rt_dtype_of(in);
    if (kept_count == 0)
        return;
    if (reduced_count == 0) {
        for (int64_t at = 0; at < kept_count; at++)
            finish(user, at, start);
        return;
    }
    for (int d = 0; d < in->rank; d++)
        add_dim(mask[d] ? &reduced : &kept, in->sizes[d], in->strides[d] * size);
    bool is_tiled =
        has_inner(&kept) && has_inner(&reduced) && inner_stride(&kept) < inner_stride(&reduced);
    const char *data = in->data;
    int64_t at = 0, width = is_tiled ? inner_size(&kept) : 1;
    do {
        for (int64_t j = 0; j < width; j += TILE) {
            int64_t m = width - j < TILE ? width - j : TILE;
            rt_acc acc[TILE];
            for (int64_t k = 0; k < m; k++)
                acc[k] = *start;
            const char *from = data + j * inner_stride(&kept);
            if (m > 1)
                reduce_tile(dtype, work, &reduced, from, inner_stride(&kept), m, fold, param, acc);
            else
                reduce_row(dtype, work, &reduced, from, fold, param, acc);
            for (int64_t k = 0; k < m; k++)
                finish(user, at++, &acc[k]);
        }
    } while (step(&kept, is_tiled, &data));
}

ts_status rt_lanes(const rt_lane_call *call, rt_value *out, rt_value *out_index) {
    const rt_tensor *in = call->in;
    int64_t sizes[RT_MAX_RANK], n = in->rank ? in->sizes[call->dim] : 1;
    bool mask[RT_MAX_RANK] = {false};
    mask[call->dim] = true;
    int rank = in->rank;
    for (int d = 0; d < in->rank; d++)
        sizes[d] = in->sizes[d];
    if (call->is_reduction)
        rank = rt_reduced_sizes(in, mask, call->keep, sizes);
    rt_tensor *result = NULL, *index = NULL;
    size_t size = rt_work_size(call->work);
    char *memory = NULL;
    size_t bytes = 0, lane_size = (size_t)(n > 0 ? n : 1);
    ts_status status = NULL;
    TS_TRY_OR(rt_tensor_make(call->dtype, sizes, rank, &result), done);
    if (call->has_index)
        TS_TRY_OR(rt_tensor_make(RT_int64, sizes, rank, &index), done);
    if (!ts_mul_size(lane_size, 2 * size + sizeof(int64_t) + sizeof(rt_complex128), &bytes) ||
        !(memory = malloc(bytes))) {
        status = ts_no_memory();
        goto done;
    }
    rt_lane lane = {.in = memory, .n = n, .out = memory + lane_size * size, .param = call->param};
    lane.scratch = memory + 2 * lane_size * size;
    int64_t *index_lane =
        (int64_t *)(void *)((char *)lane.scratch + lane_size * sizeof(rt_complex128));
    lane.index = index_lane;

    /* The other dims drive the loop; the results have stride 0 or their own along dim. */
    rt_loop loop;
    int64_t outer[RT_MAX_RANK], in_strides[RT_MAX_RANK], out_strides[RT_MAX_RANK],
        index_strides[RT_MAX_RANK];
    int outer_rank = 0, own = 0;
    int64_t in_step = 0, out_step = 0, index_step = 0;
    for (int d = 0; d < in->rank; d++) {
        bool is_dim = d == call->dim, is_there = !is_dim || !call->is_reduction || call->keep;
        int64_t in_stride = in->strides[d] * rt_element_bytes(in);
        int64_t out_stride = is_there ? result->strides[own] * rt_element_bytes(result) : 0;
        int64_t index_stride = is_there && index ? index->strides[own] * 8 : 0;
        own += is_there;
        if (is_dim) {
            in_step = in_stride;
            out_step = out_stride;
            index_step = index_stride;
        } else {
            outer[outer_rank] = in->sizes[d];
            in_strides[outer_rank] = in_stride;
            out_strides[outer_rank] = out_stride;
            index_strides[outer_rank++] = index_stride;
        }
    }
    rt_loop_init(&loop, outer, outer_rank);
    rt_loop_add_raw(&loop, result->data, out_strides);
    rt_loop_add_raw(&loop, in->data, in_strides);
    rt_loop_add_raw(&loop, index ? index->data : NULL, index_strides);
    int64_t out_n = call->is_reduction ? 1 : n;
    for (rt_loop_start(&loop); loop.is_running; rt_loop_next(&loop)) {
        for (int64_t i = 0; i < loop.inner_count; i++) {
            rt_load_block(call->work, rt_dtype_of(in), loop.data[1] + i * loop.inner_strides[1],
                          in_step, n, memory);
            call->function(&lane);
            rt_store_block(call->work, call->dtype, loop.data[0] + i * loop.inner_strides[0],
                           out_step, out_n, lane.out);
            if (index)
                rt_store_block(RT_WORK_INT, RT_int64, loop.data[2] + i * loop.inner_strides[2],
                               index_step, out_n, index_lane);
        }
    }
    *out = rt_from_tensor(result);
    if (index)
        *out_index = rt_from_tensor(index);
    result = index = NULL;
done:
    free(memory);
    rt_tensor_release(result);
    rt_tensor_release(index);
    return status;
}
