/* runtime/ops/rnn_body.h - recurrent layers in one type: REAL, whose work type is WORK.
 *
 * Included by ref_rnn.c once for float and once for double, so it has no guard. */

static REAL NAME(sigmoid)(REAL x) { return 1 / (1 + EXP(-x)); }

/* Weights of one layer and direction, in the type. */
typedef struct NAME(weights) {
    int64_t input, hidden, out; /* out: hidden, or the size of the projection */
    REAL *ih, *hh, *b_ih, *b_hh, *hr;
} NAME(weights);

static ts_status NAME(load)(const rt_tensor *t, REAL **out) {
    void *data = NULL;
    ts_status status = t ? rt_work_copy(t, WORK, &data) : NULL;
    *out = data;
    return status;
}

static REAL *NAME(zeros)(int64_t count) { return calloc((size_t)count + 1, sizeof(REAL)); }

static void NAME(weights_deinit)(NAME(weights) *w) {
    free(w->ih);
    free(w->hh);
    free(w->b_ih);
    free(w->b_hh);
    free(w->hr);
}

static ts_status NAME(weights_init)(NAME(weights) *w, cell kind, const rt_tensor *ih, const rt_tensor *hh,
                              const rt_tensor *b_ih, const rt_tensor *b_hh, const rt_tensor *hr) {
    int gates = gate_count(kind);
    *w = (NAME(weights)){0};
    if (ih->rank != 2 || hh->rank != 2 || ih->sizes[0] != hh->sizes[0] || ih->sizes[0] % gates)
        return ts_raise("RuntimeError", "recurrent weights do not fit each other");
    w->input = ih->sizes[1];
    w->hidden = ih->sizes[0] / gates;
    w->out = hr ? hr->sizes[0] : w->hidden;
    if (hh->sizes[1] != w->out || (b_ih && b_ih->element_count != ih->sizes[0]) ||
        (b_hh && b_hh->element_count != ih->sizes[0]) || (hr && hr->sizes[1] != w->hidden))
        return ts_raise("RuntimeError", "recurrent weights do not fit each other");
    ts_status status = NAME(load)(ih, &w->ih);
    if (!status)
        status = NAME(load)(hh, &w->hh);
    if (!status)
        status = NAME(load)(b_ih, &w->b_ih);
    if (!status)
        status = NAME(load)(b_hh, &w->b_hh);
    if (!status)
        status = NAME(load)(hr, &w->hr);
    if (status)
        NAME(weights_deinit)(w);
    return status;
}

/* y[n][rows] = x[n][k] w^T + b; w is [rows][k], or turned: [k][rows]. Few rows go one by one, so
 * that nothing is packed for them. */
static ts_status NAME(affine)(int64_t n, int64_t rows, int64_t k, const REAL *x, const REAL *w,
                              bool is_turned, const REAL *b, REAL *y) {
    rt_matrix right = {w, is_turned ? rows : 1, is_turned ? 1 : k};
    int64_t at_once = n <= 8 ? 1 : n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < rows; j++)
            y[i * rows + j] = b ? b[j] : 0;
    for (int64_t i = 0; i < n; i += at_once)
        TS_TRY(rt_gemm(WORK, at_once, rows, k, (rt_matrix){x + i * k, k, 1}, right, y + i * rows,
                       rows, true));
    return NULL;
}

/* One step of n rows: gi and gh are the gates' sums from input and state [n][gates * hidden]. The
 * new hidden vector (before a projection) goes to h_new [n][hidden]. */
static void NAME(step)(cell kind, int64_t n, int64_t hidden, const REAL *gi, const REAL *gh,
                 const REAL *h, REAL *c, REAL *h_new) {
    for (int64_t i = 0; i < n; i++) {
        const REAL *x = gi + i * gate_count(kind) * hidden;
        const REAL *y = gh + i * gate_count(kind) * hidden;
        for (int64_t j = 0; j < hidden; j++) {
            REAL *to = &h_new[i * hidden + j];
            switch (kind) {
            case CELL_LSTM: {
                REAL in = NAME(sigmoid)(x[j] + y[j]);
                REAL forget = NAME(sigmoid)(x[hidden + j] + y[hidden + j]);
                REAL value = TANH(x[2 * hidden + j] + y[2 * hidden + j]);
                REAL open = NAME(sigmoid)(x[3 * hidden + j] + y[3 * hidden + j]);
                c[i * hidden + j] = forget * c[i * hidden + j] + in * value;
                *to = open * TANH(c[i * hidden + j]);
                break;
            }
            case CELL_GRU: {
                REAL r = NAME(sigmoid)(x[j] + y[j]), z = NAME(sigmoid)(x[hidden + j] + y[hidden + j]);
                REAL value = TANH(x[2 * hidden + j] + r * y[2 * hidden + j]);
                *to = (h[i * hidden + j] - value) * z + value;
                break;
            }
            case CELL_TANH: *to = TANH(x[j] + y[j]); break;
            case CELL_RELU: *to = FMAX(x[j] + y[j], 0); break;
            }
        }
    }
}

/* x [total][input] -> columns of y (row stride y_stride); h [batch][out] and c [batch][hidden] are
 * the states, in and out. */
static ts_status NAME(run_layer)(const walk *k, const NAME(weights) *w, bool backwards, const REAL *x,
                           REAL *y, int64_t y_stride, REAL *h, REAL *c) {
    int64_t gates = gate_count(k->kind) * w->hidden;
    REAL *gi = NAME(zeros)(k->total * gates), *gh = NAME(zeros)(k->batch * gates);
    REAL *h_new = NAME(zeros)(k->batch * w->hidden);
    ts_status status = gi && gh && h_new
                           ? NAME(affine)(k->total, gates, w->input, x, w->ih, false, w->b_ih, gi)
                           : ts_no_memory();
    int64_t row = backwards ? k->total : 0;
    REAL *turned = NULL; /* the recurrent weights are read once a step: along their rows */
    if (!status && k->steps > 2 && !(turned = NAME(zeros)(gates * w->out)))
        status = ts_no_memory();
    for (int64_t i = 0; turned && i < gates; i += 16) /* in blocks: lines stay in the cache */
        for (int64_t j = 0; j < w->out; j += 16)
            for (int64_t a = i; a < i + 16 && a < gates; a++)
                for (int64_t b = j; b < j + 16 && b < w->out; b++)
                    turned[b * gates + a] = w->hh[a * w->out + b];
    for (int64_t s = 0; s < k->steps && !status; s++) {
        int64_t n = k->batch_sizes[backwards ? k->steps - 1 - s : s];
        if (backwards)
            row -= n;
        status = NAME(affine)(n, gates, w->out, h, turned ? turned : w->hh, turned != NULL, w->b_hh,
                              gh);
        if (status)
            break;
        NAME(step)(k->kind, n, w->hidden, gi + row * gates, gh, h, c, h_new);
        if (w->hr)
            status = NAME(affine)(n, w->out, w->hidden, h_new, w->hr, false, NULL, h);
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
    free(turned);
    return status;
}

static ts_status NAME(drop)(rt_context *context, double p, int64_t n, REAL *x) {
    rt_generator *g;
    TS_TRY(rt_generator_of(context, rt_none(), &g));
    for (int64_t i = 0; i < n; i++) {
        REAL keep = p < 1 ? rt_uniform_double(g) < 1 - p : 0;
        x[i] *= p < 1 ? keep / (REAL)(1 - p) : 0;
    }
    return NULL;
}

/* All layers. *x is replaced by the output of the last one, [total][directions * out]. */
static ts_status NAME(run_stack)(rt_context *context, const walk *k, const stack *s, REAL **x,
                                 REAL *h, REAL *c) {
    int64_t directions = s->bidirectional ? 2 : 1;
    bool projected = s->c0 && s->c0->sizes[2] != s->h0->sizes[2];
    size_t each = (s->has_biases ? 4u : 2u) + projected;
    int64_t out = s->h0->sizes[2];
    if (s->params->count != each * (size_t)(s->layers * directions))
        return ts_raise("RuntimeError", "got an incorrect number of RNN parameters");
    int64_t input = -1;
    for (int64_t l = 0; l < s->layers; l++) {
        REAL *y = NAME(zeros)(k->total * directions * out);
        ts_status status = y ? NULL : ts_no_memory();
        for (int64_t d = 0; d < directions && !status; d++) {
            int64_t at = l * directions + d;
            const rt_tensor *t[5] = {0};
            for (size_t i = 0; i < each; i++)
                t[i + (!s->has_biases && i == 2 ? 2 : 0)] =
                    s->params->items[(size_t)at * each + i].as.tensor;
            NAME(weights) w;
            status = NAME(weights_init)(&w, k->kind, t[0], t[1], t[2], t[3], t[4]);
            if (status)
                break;
            if (w.out != out || (input >= 0 && w.input != input) ||
                (c && w.hidden != s->c0->sizes[2]))
                status = ts_raise("RuntimeError", "hidden size does not fit the weights");
            if (!status)
                status = NAME(run_layer)(k, &w, d == 1, *x, y + d * out, directions * out,
                                   h + at * k->batch * out,
                                   c ? c + at * k->batch * w.hidden : NULL);
            NAME(weights_deinit)(&w);
        }
        free(*x);
        *x = y;
        if (!status && s->train && s->dropout > 0 && l + 1 < s->layers)
            status = NAME(drop)(context, s->dropout, k->total * directions * out, y);
        TS_TRY(status);
        input = directions * out;
    }
    return NULL;
}

static ts_status NAME(single_step)(cell kind, const rt_tensor *x, const stack *s,
                                   const rt_value *args, rt_value *outs) {
    NAME(weights) w;
    REAL *in = NULL, *h = NULL, *c = NULL;
    if (rt_dtype_is_complex((rt_dtype)x->dtype))
        return rt_not_implemented("recurrent layers", (rt_dtype)x->dtype);
    TS_TRY(NAME(weights_init)(&w, kind, args[2].as.tensor, args[3].as.tensor,
                              rt_optional_tensor(args[4]), rt_optional_tensor(args[5]), NULL));
    ts_status status = NULL;
    if (x->rank < 1 || x->rank > 2 || x->rank != s->h0->rank || x->sizes[x->rank - 1] != w.input)
        status = ts_raise("RuntimeError", "input has inconsistent input_size: expected %lld",
                          (long long)w.input);
    else if (s->h0->sizes[x->rank - 1] != w.hidden ||
             (x->rank == 2 && s->h0->sizes[0] != x->sizes[0]) ||
             (s->c0 && s->c0->element_count != s->h0->element_count))
        status = ts_raise("RuntimeError", "hidden0 has inconsistent hidden_size: expected %lld",
                          (long long)w.hidden);
    int64_t n = x->rank == 2 ? x->sizes[0] : 1, gates = gate_count(kind) * w.hidden;
    if (!status)
        status = NAME(load)(x, &in);
    if (!status)
        status = NAME(load)(s->h0, &h);
    if (!status)
        status = NAME(load)(s->c0, &c);
    REAL *gi = NAME(zeros)(n * gates), *gh = NAME(zeros)(n * gates);
    REAL *h_new = NAME(zeros)(n * w.hidden);
    if (!status && (!gi || !gh || !h_new))
        status = ts_no_memory();
    if (!status)
        status = NAME(affine)(n, gates, w.input, in, w.ih, false, w.b_ih, gi);
    if (!status)
        status = NAME(affine)(n, gates, w.hidden, h, w.hh, false, w.b_hh, gh);
    if (!status) {
        NAME(step)(kind, n, w.hidden, gi, gh, h, c, h_new);
        status = give(WORK, h_new, (rt_dtype)x->dtype, s->h0->sizes, s->h0->rank, &outs[0]);
    }
    if (!status && c)
        status = give(WORK, c, (rt_dtype)x->dtype, s->c0->sizes, s->c0->rank, &outs[1]);
    NAME(weights_deinit)(&w);
    free(in);
    free(h);
    free(c);
    free(gi);
    free(gh);
    free(h_new);
    return status;
}
