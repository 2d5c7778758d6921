/* runtime/ops/ref_rnn.c - LSTM, GRU and plain recurrent layers and their single steps.
 *
 * A padded input is a packed one whose steps all have the whole batch, so there is one walk: rows
 * below the step's batch size move on, the others keep their state. Backwards the same walk goes
 * from the last step, and sequences join with their initial state. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/contraction.h"
#include "runtime/ops/generator.h"

typedef enum cell { CELL_LSTM, CELL_GRU, CELL_TANH, CELL_RELU } cell;

static int gate_count(cell kind) { return kind == CELL_LSTM ? 4 : kind == CELL_GRU ? 3 : 1; }
typedef struct walk {
    cell kind;
    int64_t steps, batch, total; /* total: rows of all steps */
    const int64_t *batch_sizes;
} walk;

typedef struct stack {
    const rt_list *params;
    bool has_biases, train, bidirectional;
    int64_t layers;
    double dropout;
    const rt_tensor *h0, *c0;
} stack;

/* Dense numbers of a work type as a tensor. */
static ts_status give(rt_work work, const void *data, rt_dtype dtype, const int64_t *sizes, int rank,
                      rt_value *out) {
    rt_tensor *t;
    TS_TRY(rt_tensor_make(dtype, sizes, rank, &t));
    if (t->element_count)
        rt_store_block(work, dtype, t->data, (int64_t)rt_dtype_size(dtype), t->element_count, data);
    *out = rt_from_tensor(t);
    return NULL;
}

static ts_status take(const rt_tensor *t, rt_work work, void **out) {
    *out = NULL;
    if (!t)
        return NULL;
    if (rt_dtype_is_complex((rt_dtype)t->dtype))
        return rt_not_implemented("recurrent layers", (rt_dtype)t->dtype);
    return rt_work_copy(t, work, out);
}

static rt_work work_for(const rt_tensor *t) {
    return t->dtype == RT_float64 ? RT_WORK_DOUBLE : RT_WORK_FLOAT;
}

static ts_status states_of(cell kind, rt_value hx, stack *s) {
    if (kind != CELL_LSTM) {
        s->h0 = hx.as.tensor;
        return NULL;
    }
    const rt_value *items;
    size_t count;
    rt_as_items(hx, &items, &count);
    if (count != 2)
        return ts_raise("RuntimeError", "lstm expects two hidden states");
    s->h0 = items[0].as.tensor;
    s->c0 = items[1].as.tensor;
    return NULL;
}

#define REAL float
#define WORK RT_WORK_FLOAT
#define NAME(x) float_##x
#define EXP expf
#define TANH tanhf
#define FMAX fmaxf
#include "runtime/ops/rnn_body.h"
#undef REAL
#undef WORK
#undef NAME
#undef EXP
#undef TANH
#undef FMAX

#define REAL double
#define WORK RT_WORK_DOUBLE
#define NAME(x) double_##x
#define EXP exp
#define TANH tanh
#define FMAX fmax
#include "runtime/ops/rnn_body.h"

static ts_status check_state(const rt_tensor *h, int64_t rows, int64_t batch) {
    if (h->rank != 3 || h->sizes[0] != rows || h->sizes[1] != batch)
        return ts_raise("RuntimeError",
                        "Expected hidden size (%lld, %lld, ...), got a tensor of rank %d",
                        (long long)rows, (long long)batch, h->rank);
    return NULL;
}

/* Swaps the first two of three dims. */
static ts_status swapped(const rt_tensor *t, rt_tensor **out) {
    return rt_tensor_alias(t, 0, (int64_t[]){t->sizes[1], t->sizes[0], t->sizes[2]},
                           (int64_t[]){t->strides[1], t->strides[0], t->strides[2]}, 3, out);
}

static ts_status run(rt_context *context, cell kind, const rt_tensor *data, const walk *sizes,
                     const stack *s, const int64_t *out_sizes, int out_rank, rt_value *outs) {
    walk k = *sizes;
    k.kind = kind;
    void *x = NULL, *h = NULL, *c = NULL;
    rt_work work = work_for(data);
    int64_t directions = s->bidirectional ? 2 : 1, y_sizes[3];
    TS_TRY(check_state(s->h0, s->layers * directions, k.batch));
    if (s->c0)
        TS_TRY(check_state(s->c0, s->layers * directions, k.batch));
    const rt_tensor *first = s->params->count ? s->params->items[0].as.tensor : NULL;
    if (!first || first->rank != 2 || first->sizes[1] != data->sizes[data->rank - 1])
        return ts_raise("RuntimeError",
                        "input.size(-1) must be equal to input_size. Expected %lld, got %lld",
                        (long long)(first && first->rank == 2 ? first->sizes[1] : 0),
                        (long long)data->sizes[data->rank - 1]);
    ts_status status = take(data, work, &x);
    if (!status)
        status = take(s->h0, work, &h);
    if (!status)
        status = take(s->c0, work, &c);
    if (!status && work == RT_WORK_FLOAT) {
        float *y = x;
        status = float_run_stack(context, &k, s, &y, h, c);
        x = y;
    } else if (!status) {
        double *y = x;
        status = double_run_stack(context, &k, s, &y, h, c);
        x = y;
    }
    for (int i = 0; i < out_rank; i++)
        y_sizes[i] = out_sizes[i];
    y_sizes[out_rank - 1] = directions * s->h0->sizes[2];
    rt_dtype dtype = (rt_dtype)data->dtype;
    if (!status)
        status = give(work, x, dtype, y_sizes, out_rank, &outs[0]);
    if (!status)
        status = give(work, h, dtype, s->h0->sizes, 3, &outs[1]);
    if (!status && c)
        status = give(work, c, dtype, s->c0->sizes, 3, &outs[2]);
    free(x);
    free(h);
    free(c);
    return status;
}

static ts_status rnn_input(rt_context *context, cell kind, const rt_value *args, rt_value *outs) {
    const rt_tensor *data = args[0].as.tensor;
    bool batch_first = args[8].as.i != 0;
    stack s = {.params = args[2].as.list,
               .has_biases = args[3].as.i != 0,
               .layers = args[4].as.i,
               .dropout = args[5].as.f,
               .train = args[6].as.i != 0,
               .bidirectional = args[7].as.i != 0};
    if (data->rank != 3)
        return ts_raise("RuntimeError", "input must have 3 dimensions, got %d", data->rank);
    TS_TRY(states_of(kind, args[1], &s));
    rt_tensor *turned = NULL;
    if (batch_first)
        TS_TRY(swapped(data, &turned));
    const rt_tensor *x = batch_first ? turned : data;
    walk k = {.steps = x->sizes[0], .batch = x->sizes[1]};
    k.total = k.steps * k.batch;
    int64_t *sizes = malloc((size_t)(k.steps + 1) * sizeof *sizes);
    ts_status status = sizes ? NULL : ts_no_memory();
    for (int64_t i = 0; i < k.steps && sizes; i++)
        sizes[i] = k.batch;
    k.batch_sizes = sizes;
    if (!status)
        status = run(context, kind, x, &k, &s, x->sizes, 3, outs);
    if (!status && batch_first) {
        rt_tensor *y;
        status = swapped(outs[0].as.tensor, &y);
        if (!status)
            rt_assign(&outs[0], rt_from_tensor(y));
    }
    free(sizes);
    rt_tensor_release(turned);
    return status;
}

static ts_status rnn_data(rt_context *context, cell kind, const rt_value *args, rt_value *outs) {
    const rt_tensor *data = args[0].as.tensor;
    rt_tensor *sizes;
    stack s = {.params = args[3].as.list,
               .has_biases = args[4].as.i != 0,
               .layers = args[5].as.i,
               .dropout = args[6].as.f,
               .train = args[7].as.i != 0,
               .bidirectional = args[8].as.i != 0};
    TS_TRY(states_of(kind, args[2], &s));
    if (data->rank != 2 || args[1].as.tensor->rank != 1 || args[1].as.tensor->dtype != RT_int64)
        return ts_raise("RuntimeError", "expected packed data of 2 dimensions and batch sizes");
    TS_TRY(rt_tensor_contiguous(args[1].as.tensor, &sizes));
    walk k = {.steps = sizes->sizes[0], .batch_sizes = sizes->data};
    ts_status status = NULL;
    for (int64_t i = 0; i < k.steps && !status; i++) {
        int64_t n = k.batch_sizes[i];
        if (n <= 0 || (i > 0 && n > k.batch_sizes[i - 1]))
            status = ts_raise("RuntimeError", "batch sizes of a packed sequence must decrease");
        k.total += n;
    }
    k.batch = k.steps ? k.batch_sizes[0] : 0;
    if (!status && k.total != data->sizes[0])
        status = ts_raise("RuntimeError", "packed data and batch sizes do not fit");
    if (!status)
        status = run(context, kind, data, &k, &s, data->sizes, 2, outs);
    rt_tensor_release(sizes);
    return status;
}

#define RNN(name, kind)                                                                            \
    KERNEL(name##_input) { return rnn_input(context, kind, args, outs); }                          \
    KERNEL(name##_data) { return rnn_data(context, kind, args, outs); }
RNN(lstm, CELL_LSTM)
RNN(gru, CELL_GRU)
RNN(rnn_tanh, CELL_TANH)
RNN(rnn_relu, CELL_RELU)

static ts_status single_step(cell kind, const rt_value *args, rt_value *outs) {
    const rt_tensor *x = args[0].as.tensor;
    stack s = {0};
    TS_TRY(states_of(kind, args[1], &s));
    return work_for(x) == RT_WORK_FLOAT ? float_single_step(kind, x, &s, args, outs)
                                        : double_single_step(kind, x, &s, args, outs);
}

KERNEL(lstm_cell) { return single_step(CELL_LSTM, args, outs); }
KERNEL(gru_cell) { return single_step(CELL_GRU, args, outs); }
KERNEL(rnn_tanh_cell) { return single_step(CELL_TANH, args, outs); }
KERNEL(rnn_relu_cell) { return single_step(CELL_RELU, args, outs); }
