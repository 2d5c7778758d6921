/* runtime/ops/ref_rnn.c - LSTM, GRU and plain recurrent layers and their single steps, on doubles.
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
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Weights of one layer and direction, as doubles. */
typedef struct weights {
    int64_t input, hidden, out; /* out: hidden, or the size of the projection */
    double *ih, *hh, *b_ih, *b_hh, *hr;
} weights;

static void weights_deinit(weights *w) {
    free(w->ih);
    free(w->hh);
    free(w->b_ih);
    free(w->b_hh);
    free(w->hr);
}

static ts_status weights_init(weights *w, cell kind, const rt_tensor *ih, const rt_tensor *hh,
                              const rt_tensor *b_ih, const rt_tensor *b_hh, const rt_tensor *hr) {
    int gates = gate_count(kind);
    *w = (weights){0};
    if (ih->rank != 2 || hh->rank != 2 || ih->sizes[0] != hh->sizes[0] || ih->sizes[0] % gates)
        return ts_raise("RuntimeError", "recurrent weights do not fit each other");
    w->input = ih->sizes[1];
    w->hidden = ih->sizes[0] / gates;
    w->out = hr ? hr->sizes[0] : w->hidden;
    if (hh->sizes[1] != w->out || (b_ih && b_ih->element_count != ih->sizes[0]) ||
        (b_hh && b_hh->element_count != ih->sizes[0]) || (hr && hr->sizes[1] != w->hidden))
        return ts_raise("RuntimeError", "recurrent weights do not fit each other");
    ts_status status = rt_doubles(ih, &w->ih);
    if (!status)
        status = rt_doubles(hh, &w->hh);
    if (!status)
        status = rt_doubles(b_ih, &w->b_ih);
    if (!status)
        status = rt_doubles(b_hh, &w->b_hh);
    if (!status)
        status = rt_doubles(hr, &w->hr);
    if (status)
        weights_deinit(w);
    return status;
}

/* y[n][rows] = x[n][k] w[rows][k]^T + b */
static ts_status affine(int64_t n, int64_t rows, int64_t k, const double *x, const double *w,
                        const double *b, double *y) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < rows; j++)
            y[i * rows + j] = b ? b[j] : 0;
    return rt_gemm(RT_WORK_DOUBLE, n, rows, k, (rt_matrix){x, k, 1}, (rt_matrix){w, 1, k}, y, rows,
                   true);
}

/* One step of n rows: gi and gh are the gates' sums from input and state [n][gates * hidden]. The
 * new hidden vector (before a projection) goes to h_new [n][hidden]. */
static void step(cell kind, int64_t n, int64_t hidden, const double *gi, const double *gh,
                 const double *h, double *c, double *h_new) {
    for (int64_t i = 0; i < n; i++) {
        const double *x = gi + i * gate_count(kind) * hidden;
        const double *y = gh + i * gate_count(kind) * hidden;
        for (int64_t j = 0; j < hidden; j++) {
            double *to = &h_new[i * hidden + j];
            switch (kind) {
            case CELL_LSTM: {
                double in = sigmoid(x[j] + y[j]);
                double forget = sigmoid(x[hidden + j] + y[hidden + j]);
                double value = tanh(x[2 * hidden + j] + y[2 * hidden + j]);
                double open = sigmoid(x[3 * hidden + j] + y[3 * hidden + j]);
                c[i * hidden + j] = forget * c[i * hidden + j] + in * value;
                *to = open * tanh(c[i * hidden + j]);
                break;
            }
            case CELL_GRU: {
                double r = sigmoid(x[j] + y[j]), z = sigmoid(x[hidden + j] + y[hidden + j]);
                double value = tanh(x[2 * hidden + j] + r * y[2 * hidden + j]);
                *to = (h[i * hidden + j] - value) * z + value;
                break;
            }
            case CELL_TANH: *to = tanh(x[j] + y[j]); break;
            case CELL_RELU: *to = fmax(x[j] + y[j], 0); break;
            }
        }
    }
}

typedef struct walk {
    cell kind;
    int64_t steps, batch, total; /* total: rows of all steps */
    const int64_t *batch_sizes;
} walk;

/* x [total][input] -> columns of y (row stride y_stride); h [batch][out] and c [batch][hidden] are
 * the states, in and out. */
static ts_status run_layer(const walk *k, const weights *w, bool backwards, const double *x,
                           double *y, int64_t y_stride, double *h, double *c) {
    int64_t gates = gate_count(k->kind) * w->hidden;
    double *gi = rt_new_doubles(k->total * gates), *gh = rt_new_doubles(k->batch * gates);
    double *h_new = rt_new_doubles(k->batch * w->hidden);
    ts_status status = gi && gh && h_new
                           ? affine(k->total, gates, w->input, x, w->ih, w->b_ih, gi)
                           : ts_no_memory();
    int64_t row = backwards ? k->total : 0;
    for (int64_t s = 0; s < k->steps && !status; s++) {
        int64_t n = k->batch_sizes[backwards ? k->steps - 1 - s : s];
        if (backwards)
            row -= n;
        status = affine(n, gates, w->out, h, w->hh, w->b_hh, gh);
        if (status)
            break;
        step(k->kind, n, w->hidden, gi + row * gates, gh, h, c, h_new);
        if (w->hr)
            status = affine(n, w->out, w->hidden, h_new, w->hr, NULL, h);
        else
            memcpy(h, h_new, (size_t)(n * w->hidden) * sizeof *h);
        for (int64_t i = 0; i < n; i++)
            memcpy(y + (row + i) * y_stride, h + i * w->out, (size_t)w->out * sizeof *y);
        if (!backwards)
            row += n;
    }
    free(gi);
    free(gh);
    free(h_new);
    return status;
}

static ts_status drop(rt_context *context, double p, bool is_double, int64_t n, double *x) {
    rt_generator *g;
    TS_TRY(rt_generator_of(context, rt_none(), &g));
    for (int64_t i = 0; i < n; i++) {
        double keep = p < 1 ? rt_uniform_double(g) < 1 - p : 0;
        x[i] *= p < 1 ? (is_double ? keep / (1 - p) : (double)(float)(keep / (1 - p))) : 0;
    }
    return NULL;
}

typedef struct stack {
    const rt_list *params;
    bool has_biases, train, bidirectional;
    int64_t layers;
    double dropout;
    const rt_tensor *h0, *c0;
} stack;

/* All layers. *x is replaced by the output of the last one, [total][directions * out]. */
static ts_status run_stack(rt_context *context, const walk *k, const stack *s, bool is_double,
                           double **x, double *h, double *c) {
    int64_t directions = s->bidirectional ? 2 : 1;
    bool projected = s->c0 && s->c0->sizes[2] != s->h0->sizes[2];
    size_t each = (s->has_biases ? 4u : 2u) + projected;
    int64_t out = s->h0->sizes[2];
    if (s->params->count != each * (size_t)(s->layers * directions))
        return ts_raise("RuntimeError", "got an incorrect number of RNN parameters");
    int64_t input = -1;
    for (int64_t l = 0; l < s->layers; l++) {
        double *y = rt_new_doubles(k->total * directions * out);
        ts_status status = y ? NULL : ts_no_memory();
        for (int64_t d = 0; d < directions && !status; d++) {
            int64_t at = l * directions + d;
            const rt_tensor *t[5] = {0};
            for (size_t i = 0; i < each; i++)
                t[i + (!s->has_biases && i == 2 ? 2 : 0)] =
                    s->params->items[(size_t)at * each + i].as.tensor;
            weights w;
            status = weights_init(&w, k->kind, t[0], t[1], t[2], t[3], t[4]);
            if (status)
                break;
            if (w.out != out || (input >= 0 && w.input != input) ||
                (c && w.hidden != s->c0->sizes[2]))
                status = ts_raise("RuntimeError", "hidden size does not fit the weights");
            if (!status)
                status = run_layer(k, &w, d == 1, *x, y + d * out, directions * out,
                                   h + at * k->batch * out,
                                   c ? c + at * k->batch * w.hidden : NULL);
            weights_deinit(&w);
        }
        free(*x);
        *x = y;
        if (!status && s->train && s->dropout > 0 && l + 1 < s->layers)
            status = drop(context, s->dropout, is_double, k->total * directions * out, y);
        TS_TRY(status);
        input = directions * out;
    }
    return NULL;
}

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
    double *x = NULL, *h = NULL, *c = NULL;
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
    ts_status status = rt_doubles(data, &x);
    if (!status)
        status = rt_doubles(s->h0, &h);
    if (!status)
        status = rt_doubles(s->c0, &c);
    if (!status)
        status = run_stack(context, &k, s, data->dtype == RT_float64, &x, h, c);
    for (int i = 0; i < out_rank; i++)
        y_sizes[i] = out_sizes[i];
    y_sizes[out_rank - 1] = directions * s->h0->sizes[2];
    rt_dtype dtype = (rt_dtype)data->dtype;
    if (!status)
        status = rt_from_doubles(x, dtype, y_sizes, out_rank, &outs[0]);
    if (!status)
        status = rt_from_doubles(h, dtype, s->h0->sizes, 3, &outs[1]);
    if (!status && c)
        status = rt_from_doubles(c, dtype, s->c0->sizes, 3, &outs[2]);
    free(x);
    free(h);
    free(c);
    return status;
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
    weights w;
    double *in = NULL, *h = NULL, *c = NULL, *gi = NULL, *gh = NULL, *h_new = NULL;
    TS_TRY(states_of(kind, args[1], &s));
    TS_TRY(weights_init(&w, kind, args[2].as.tensor, args[3].as.tensor, rt_optional_tensor(args[4]),
                        rt_optional_tensor(args[5]), NULL));
    ts_status status = NULL;
    if (x->rank < 1 || x->rank > 2 || x->rank != s.h0->rank || x->sizes[x->rank - 1] != w.input)
        status = ts_raise("RuntimeError", "input has inconsistent input_size: expected %lld",
                          (long long)w.input);
    else if (s.h0->sizes[x->rank - 1] != w.hidden ||
             (x->rank == 2 && s.h0->sizes[0] != x->sizes[0]))
        status = ts_raise("RuntimeError", "hidden0 has inconsistent hidden_size: expected %lld",
                          (long long)w.hidden);
    int64_t n = x->rank == 2 ? x->sizes[0] : 1, gates = gate_count(kind) * w.hidden;
    if (!status)
        status = rt_doubles(x, &in);
    if (!status)
        status = rt_doubles(s.h0, &h);
    if (!status)
        status = rt_doubles(s.c0, &c);
    gi = rt_new_doubles(n * gates);
    gh = rt_new_doubles(n * gates);
    h_new = rt_new_doubles(n * w.hidden);
    if (!status && (!gi || !gh || !h_new))
        status = ts_no_memory();
    if (!status)
        status = affine(n, gates, w.input, in, w.ih, w.b_ih, gi);
    if (!status)
        status = affine(n, gates, w.hidden, h, w.hh, w.b_hh, gh);
    if (!status) {
        step(kind, n, w.hidden, gi, gh, h, c, h_new);
        status = rt_from_doubles(h_new, (rt_dtype)x->dtype, s.h0->sizes, s.h0->rank, &outs[0]);
    }
    if (!status && c)
        status = rt_from_doubles(c, (rt_dtype)x->dtype, s.c0->sizes, s.c0->rank, &outs[1]);
    weights_deinit(&w);
    free(in);
    free(h);
    free(c);
    free(gi);
    free(gh);
    free(h_new);
    return status;
}

KERNEL(lstm_cell) { return single_step(CELL_LSTM, args, outs); }
KERNEL(gru_cell) { return single_step(CELL_GRU, args, outs); }
KERNEL(rnn_tanh_cell) { return single_step(CELL_TANH, args, outs); }
KERNEL(rnn_relu_cell) { return single_step(CELL_RELU, args, outs); }
