/* runtime/ops/ref_ctc.c - connectionist temporal classification: the forward pass.
 *
 * Graves et al. (2006), equations 6 to 8, in logarithms: alpha over the labels with blanks between
 * them. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/contraction.h"

static double log_add(double a, double b) {
    double top = a > b ? a : b;
    return top == -INFINITY ? top : top + log(exp(a - top) + exp(b - top));
}

typedef struct ctc {
    int64_t steps, batch, classes, longest; /* longest: of the targets */
    double *log_probs;                      /* [steps][batch][classes] */
    int64_t *targets;                       /* of all, with offsets */
    int64_t *offsets, *input_lengths, *target_lengths;
    int64_t blank;
    double *alpha, *loss; /* [batch][steps][2 longest + 1], [batch] */
} ctc;

static void ctc_deinit(ctc *c) {
    free(c->log_probs);
    free(c->targets);
    free(c->offsets);
    free(c->input_lengths);
    free(c->target_lengths);
    free(c->alpha);
    free(c->loss);
}

static ts_status load_ints(rt_value v, int64_t expected, const char *what, int64_t **out,
                           int64_t *out_count) {
    const rt_value *items;
    size_t count = 0;
    rt_tensor *dense = NULL;
    if (v.tag == RT_TAG_TENSOR)
        TS_TRY(rt_tensor_contiguous(v.as.tensor, &dense));
    else
        rt_as_items(v, &items, &count);
    int64_t n = dense ? dense->element_count : (int64_t)count;
    *out_count = n;
    *out = malloc((size_t)(n + 1) * sizeof **out);
    for (int64_t i = 0; i < n && *out; i++)
        (*out)[i] = dense ? rt_load_int((rt_dtype)dense->dtype,
                                        (const char *)dense->data +
                                            i * (int64_t)rt_dtype_size((rt_dtype)dense->dtype))
                          : rt_as_int(items[i]);
    rt_tensor_release(dense);
    if (!*out)
        return ts_no_memory();
    if (expected >= 0 && n != expected)
        return ts_raise("RuntimeError", "%s must be of size batch_size", what);
    return NULL;
}

static ts_status ctc_init(ctc *c, const rt_value *args, int64_t blank) {
    const rt_tensor *p = args[0].as.tensor, *t = args[1].as.tensor;
    int64_t count, rows;
    *c = (ctc){.blank = blank};
    if (p->rank != 2 && p->rank != 3)
        return ts_raise("RuntimeError", "ctc_loss: expected log_probs of 2 or 3 dimensions");
    c->steps = p->sizes[0];
    c->batch = p->rank == 3 ? p->sizes[1] : 1;
    c->classes = p->sizes[p->rank - 1];
    if (blank < 0 || blank >= c->classes)
        return ts_raise("RuntimeError", "blank must be in label range");
    TS_TRY(rt_doubles(p, &c->log_probs));
    TS_TRY(load_ints(args[2], c->batch, "input_lengths", &c->input_lengths, &count));
    TS_TRY(load_ints(args[3], c->batch, "target_lengths", &c->target_lengths, &count));
    TS_TRY(load_ints(args[1], -1, "targets", &c->targets, &count));
    c->offsets = calloc((size_t)c->batch + 1, sizeof *c->offsets);
    if (!c->offsets)
        return ts_no_memory();
    bool padded = t->rank == 2;
    rows = padded ? t->sizes[1] : 0;
    int64_t at = 0;
    for (int64_t b = 0; b < c->batch; b++) {
        int64_t n = c->target_lengths[b];
        c->offsets[b] = padded ? b * rows : at;
        if (n < 0 || c->input_lengths[b] < 0 || c->input_lengths[b] > c->steps ||
            c->offsets[b] + n > count || (padded && n > rows))
            return ts_raise("RuntimeError", "ctc_loss: lengths do not fit log_probs and targets");
        for (int64_t i = 0; i < n; i++)
            if (c->targets[c->offsets[b] + i] < 0 ||
                c->targets[c->offsets[b] + i] >= c->classes)
                return ts_raise("RuntimeError", "ctc_loss: targets must be in label range");
        c->longest = n > c->longest ? n : c->longest;
        at += n;
    }
    int64_t width = 2 * c->longest + 1;
    c->alpha = malloc((size_t)(c->batch * c->steps * width + 1) * sizeof *c->alpha);
    c->loss = rt_new_doubles(c->batch);
    if (!c->alpha || !c->loss)
        return ts_no_memory();
    for (int64_t i = 0; i < c->batch * c->steps * width; i++)
        c->alpha[i] = -INFINITY;
    return NULL;
}

/* Label at position s of the target with blanks: blank, y0, blank, y1, ..., blank. */
static int64_t label(const ctc *c, int64_t b, int64_t s) {
    return s % 2 == 0 ? c->blank : c->targets[c->offsets[b] + s / 2];
}

static void forward(ctc *c, int64_t b) {
    int64_t width = 2 * c->longest + 1, used = 2 * c->target_lengths[b] + 1;
    int64_t steps = c->input_lengths[b];
    double *alpha = c->alpha + b * c->steps * width;
    if (steps == 0) {
        c->loss[b] = c->target_lengths[b] == 0 ? 0 : INFINITY;
        return;
    }
    for (int64_t t = 0; t < steps; t++) {
        const double *p = c->log_probs + (t * c->batch + b) * c->classes;
        double *now = alpha + t * width, *past = now - width;
        for (int64_t s = 0; s < used; s++) {
            double sum = -INFINITY;
            if (t == 0) {
                sum = s < 2 ? 0 : -INFINITY;
            } else {
                sum = past[s];
                if (s > 0)
                    sum = log_add(sum, past[s - 1]);
                if (s > 1 && label(c, b, s) != label(c, b, s - 2))
                    sum = log_add(sum, past[s - 2]);
            }
            now[s] = sum + p[label(c, b, s)];
        }
    }
    const double *last = alpha + (steps - 1) * width;
    c->loss[b] = -(used > 1 ? log_add(last[used - 1], last[used - 2]) : last[0]);
}

static ts_status run(ctc *c, const rt_value *args, int64_t blank) {
    TS_TRY(ctc_init(c, args, blank));
    for (int64_t b = 0; b < c->batch; b++)
        forward(c, b);
    return NULL;
}

KERNEL(ctc_loss) {
    ctc c;
    const rt_tensor *p = args[0].as.tensor;
    int64_t reduction = args[5].as.i;
    bool zero_infinity = args[6].as.i != 0;
    double total = 0;
    ts_status status = run(&c, args, args[4].as.i);
    for (int64_t b = 0; b < c.batch && !status; b++) {
        if (zero_infinity && isinf(c.loss[b]))
            c.loss[b] = 0;
        double length = c.target_lengths[b] > 0 ? (double)c.target_lengths[b] : 1;
        total += reduction == 1 ? c.loss[b] / length : c.loss[b];
    }
    if (!status && reduction == 0) {
        status = rt_from_doubles(c.loss, (rt_dtype)p->dtype, &c.batch, p->rank == 3, outs);
    } else if (!status) {
        total = reduction == 1 ? total / (double)c.batch : total;
        status = rt_from_doubles(&total, (rt_dtype)p->dtype, NULL, 0, outs);
    }
    ctc_deinit(&c);
    return status;
}

KERNEL(ctc_loss_forward) {
    ctc c;
    const rt_tensor *p = args[0].as.tensor;
    ts_status status = run(&c, args, args[4].as.i);
    int64_t sizes[3] = {c.batch, c.steps, 2 * c.longest + 1};
    if (!status)
        status = rt_from_doubles(c.loss, (rt_dtype)p->dtype, sizes, p->rank == 3, &outs[0]);
    if (!status)
        status = rt_from_doubles(c.alpha, (rt_dtype)p->dtype, sizes + (p->rank == 2),
                                 p->rank == 3 ? 3 : 2, &outs[1]);
    ctc_deinit(&c);
    return status;
}
