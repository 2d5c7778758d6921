/* runtime/ops/ref_einsum.c - einsum and tensordot: operands are folded from the left, each pair as
 * one batched matrix product over [batch, m, k] and [batch, k, n]. */
#include <stdlib.h>

#include "runtime/ops/contraction.h"

/* Labels: 0..51 letters, then the dimensions of the ellipsis. */
enum { LETTERS = 52, LABELS = LETTERS + RT_MAX_RANK };

typedef struct term {
    rt_tensor *t; /* owned */
    int labels[RT_MAX_RANK];
} term;

static void term_deinit(term *a) {
    rt_tensor_release(a->t);
    a->t = NULL;
}

/* Replaces a's tensor by the view that keeps the given dims (their order may change). */
static ts_status keep_dims(term *a, const int *dims, int count) {
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    int labels[RT_MAX_RANK];
    rt_tensor *view;
    for (int i = 0; i < count; i++) {
        sizes[i] = a->t->sizes[dims[i]];
        strides[i] = a->t->strides[dims[i]];
        labels[i] = a->labels[dims[i]];
    }
    TS_TRY(rt_tensor_alias(a->t, 0, sizes, strides, count, &view));
    rt_tensor_release(a->t);
    a->t = view;
    for (int i = 0; i < count; i++)
        a->labels[i] = labels[i];
    return NULL;
}

/* A label that stands twice in one operand takes its diagonal. */
static ts_status take_diagonals(term *a) {
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    int labels[RT_MAX_RANK], rank = 0;
    for (int i = 0; i < a->t->rank; i++) {
        int j = 0;
        while (j < rank && labels[j] != a->labels[i])
            j++;
        if (j < rank) {
            if (sizes[j] != a->t->sizes[i])
                return ts_raise("RuntimeError", "einsum(): a repeated subscript has sizes %lld and "
                                                "%lld in one operand",
                                (long long)sizes[j], (long long)a->t->sizes[i]);
            strides[j] += a->t->strides[i];
            continue;
        }
        labels[rank] = a->labels[i];
        sizes[rank] = a->t->sizes[i];
        strides[rank++] = a->t->strides[i];
    }
    if (rank == a->t->rank)
        return NULL;
    rt_tensor *view;
    TS_TRY(rt_tensor_alias(a->t, 0, sizes, strides, rank, &view));
    rt_tensor_release(a->t);
    a->t = view;
    for (int i = 0; i < rank; i++)
        a->labels[i] = labels[i];
    return NULL;
}

static int find_label(const term *a, int label) {
    for (int i = 0; i < a->t->rank; i++)
        if (a->labels[i] == label)
            return i;
    return -1;
}

static int64_t product(const int64_t *sizes, int from, int to) {
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= sizes[i];
    return n;
}

/* a is [batch.. m.. k..], b [batch.. k.. n..]; result [batch.. m.. n..]. */
static ts_status contract(const rt_tensor *a, const rt_tensor *b, int batch_rank, int k_rank,
                          rt_tensor **out) {
    int64_t sizes[2 * RT_MAX_RANK];
    int rank = 0;
    rt_operand x = {0}, y = {0};
    rt_sink sink;
    for (int i = 0; i < a->rank - k_rank; i++)
        sizes[rank++] = a->sizes[i];
    for (int i = batch_rank + k_rank; i < b->rank; i++)
        sizes[rank++] = b->sizes[i];
    if (rank > RT_MAX_RANK)
        return ts_raise("RuntimeError", "einsum(): too many dimensions");
    int64_t batches = product(a->sizes, 0, batch_rank);
    int64_t m = product(a->sizes, batch_rank, a->rank - k_rank);
    int64_t k = product(a->sizes, a->rank - k_rank, a->rank);
    int64_t n = product(b->sizes, batch_rank + k_rank, b->rank);
    TS_TRY(rt_sink_init(&sink, (rt_dtype)a->dtype, sizes, rank));
    ts_status status = rt_operand_init(&x, a, true);
    if (!status)
        status = rt_operand_init(&y, b, true);
    for (int64_t i = 0; i < batches && !status; i++)
        status = rt_gemm(sink.work, m, n, k, (rt_matrix){x.data + i * m * k * x.size, k, 1},
                         (rt_matrix){y.data + i * k * n * y.size, n, 1},
                         sink.data + i * m * n * sink.size, n, true);
    rt_operand_deinit(&x);
    rt_operand_deinit(&y);
    if (status) {
        rt_sink_deinit(&sink);
        return status;
    }
    rt_value v;
    rt_sink_finish(&sink, &v);
    *out = v.as.tensor;
    return NULL;
}

static ts_status widen(term *a) {
    rt_tensor *wide;
    if (rt_dtype_is_float((rt_dtype)a->t->dtype) || rt_dtype_is_complex((rt_dtype)a->t->dtype))
        return NULL;
    TS_TRY(rt_tensor_cast(a->t, RT_int64, false, &wide));
    rt_tensor_release(a->t);
    a->t = wide;
    return NULL;
}

/* Sums out labels that nobody needs any more: a product with ones. */
static ts_status sum_out(term *a, const bool *is_needed) {
    int dims[RT_MAX_RANK], count = 0, kept;
    for (int i = 0; i < a->t->rank; i++)
        if (is_needed[a->labels[i]])
            dims[count++] = i;
    kept = count;
    if (kept == a->t->rank)
        return NULL;
    for (int i = 0; i < a->t->rank; i++)
        if (!is_needed[a->labels[i]])
            dims[count++] = i;
    TS_TRY(keep_dims(a, dims, count));
    TS_TRY(widen(a)); /* whole numbers add up in 64 bits */
    rt_tensor *ones, *sum;
    TS_TRY(rt_tensor_make((rt_dtype)a->t->dtype, a->t->sizes + kept, count - kept, &ones));
    for (int64_t i = 0; i < ones->element_count; i++)
        rt_store_int((rt_dtype)ones->dtype,
                     (char *)ones->data + (size_t)i * rt_dtype_size((rt_dtype)ones->dtype), 1);
    ts_status status = contract(a->t, ones, 0, count - kept, &sum);
    rt_tensor_release(ones);
    TS_TRY(status);
    rt_tensor_release(a->t);
    a->t = sum;
    return NULL;
}

/* Drops dims of size 1 whose label is larger in the other operand. */
static ts_status drop_broadcast(term *a, const term *other) {
    int dims[RT_MAX_RANK], count = 0;
    for (int i = 0; i < a->t->rank; i++) {
        int j = find_label(other, a->labels[i]);
        if (j < 0 || a->t->sizes[i] != 1 || other->t->sizes[j] == 1)
            dims[count++] = i;
    }
    return count == a->t->rank ? NULL : keep_dims(a, dims, count);
}

static ts_status fold(term *a, term *b, const bool *is_needed) {
    bool needed_a[LABELS], needed_b[LABELS];
    TS_TRY(drop_broadcast(a, b));
    TS_TRY(drop_broadcast(b, a));
    for (int l = 0; l < LABELS; l++) {
        needed_a[l] = is_needed[l] || find_label(b, l) >= 0;
        needed_b[l] = is_needed[l] || find_label(a, l) >= 0;
    }
    TS_TRY(sum_out(a, needed_a));
    TS_TRY(sum_out(b, needed_b));
    if (a->t->dtype != b->t->dtype) { /* one of them was widened */
        TS_TRY(widen(a));
        TS_TRY(widen(b));
    }
    int a_dims[RT_MAX_RANK], b_dims[RT_MAX_RANK], a_count = 0, b_count = 0, batch = 0, k = 0;
    for (int i = 0; i < a->t->rank; i++) {
        int j = find_label(b, a->labels[i]);
        if (j >= 0 && a->t->sizes[i] != b->t->sizes[j])
            return ts_raise("RuntimeError",
                            "einsum(): operands do not broadcast with remapped shapes: %lld and "
                            "%lld for one subscript",
                            (long long)a->t->sizes[i], (long long)b->t->sizes[j]);
        if (j >= 0 && is_needed[a->labels[i]]) {
            a_dims[a_count++] = i;
            b_dims[b_count++] = j;
            batch++;
        }
    }
    for (int i = 0; i < a->t->rank; i++)
        if (find_label(b, a->labels[i]) < 0)
            a_dims[a_count++] = i;
    for (int i = 0; i < a->t->rank; i++) {
        int j = find_label(b, a->labels[i]);
        if (j >= 0 && !is_needed[a->labels[i]]) {
            a_dims[a_count++] = i;
            b_dims[b_count++] = j;
            k++;
        }
    }
    for (int j = 0; j < b->t->rank; j++)
        if (find_label(a, b->labels[j]) < 0)
            b_dims[b_count++] = j;
    TS_TRY(keep_dims(a, a_dims, a_count));
    TS_TRY(keep_dims(b, b_dims, b_count));
    rt_tensor *r;
    TS_TRY(contract(a->t, b->t, batch, k, &r));
    int rank = a_count - k;
    for (int j = batch + k; j < b_count; j++)
        a->labels[rank++] = b->labels[j];
    rt_tensor_release(a->t);
    a->t = r;
    return NULL;
}

static int letter(char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

/* Reads the subscripts of one operand; -1 stands for the ellipsis. */
static ts_status read_labels(ts_str s, size_t *at, int *labels, int *count) {
    *count = 0;
    for (; *at < s.length && s.data[*at] != ',' && s.data[*at] != '-'; (*at)++) {
        char c = s.data[*at];
        if (c == ' ')
            continue;
        if (*count == RT_MAX_RANK)
            return ts_raise("RuntimeError", "einsum(): too many subscripts");
        if (c == '.') {
            if (s.length - *at < 3 || memcmp(s.data + *at, "...", 3) != 0)
                return ts_raise("RuntimeError",
                                "einsum(): found '.' that is not part of any ellipsis");
            *at += 2;
            labels[(*count)++] = -1;
        } else if (letter(c) < 0) {
            return ts_raise("RuntimeError", "einsum(): invalid subscript given at index %zu in the "
                                            "equation string, subscripts must be in [a-zA-Z]",
                            *at);
        } else {
            labels[(*count)++] = letter(c);
        }
    }
    return NULL;
}

/* Gives a term its labels; the ellipsis takes the dims that are left, counted from the right. */
static ts_status label_term(term *a, const int *labels, int count, int *ellipsis_rank) {
    int explicit_count = 0, at = 0, extra;
    bool has_ellipsis = false;
    for (int i = 0; i < count; i++) {
        explicit_count += labels[i] >= 0;
        has_ellipsis = has_ellipsis || labels[i] < 0;
    }
    extra = a->t->rank - explicit_count;
    if (extra < 0 || (extra > 0 && !has_ellipsis))
        return ts_raise("RuntimeError",
                        "einsum(): the number of subscripts in the equation (%d) does not match the "
                        "number of dimensions (%d) for an operand",
                        explicit_count, a->t->rank);
    for (int i = 0; i < count; i++) {
        if (labels[i] >= 0) {
            a->labels[at++] = labels[i];
            continue;
        }
        for (int j = 0; j < extra; j++)
            a->labels[at++] = LETTERS + RT_MAX_RANK - extra + j;
    }
    if (has_ellipsis && extra > *ellipsis_rank)
        *ellipsis_rank = extra;
    return NULL;
}

static ts_status einsum(ts_str equation, term *terms, size_t count, rt_value *out) {
    int labels[RT_MAX_RANK], n, ellipsis_rank = 0, result[2 * RT_MAX_RANK], result_rank = 0;
    int uses[LABELS] = {0};
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        TS_TRY(read_labels(equation, &at, labels, &n));
        TS_TRY(label_term(&terms[i], labels, n, &ellipsis_rank));
        for (int d = 0; d < terms[i].t->rank; d++)
            uses[terms[i].labels[d]]++;
        bool more = at < equation.length && equation.data[at] == ',';
        if (more != (i + 1 < count))
            return ts_raise("RuntimeError",
                            "einsum(): the number of operands does not match the equation");
        at += more;
        TS_TRY(take_diagonals(&terms[i]));
    }
    if (at < equation.length) { /* "->" */
        if (equation.length - at < 2 || equation.data[at + 1] != '>')
            return ts_raise("RuntimeError", "einsum(): found '-' that is not part of an arrow");
        at += 2;
        TS_TRY(read_labels(equation, &at, labels, &n));
        for (int i = 0; i < n; i++) {
            if (labels[i] >= 0 && !uses[labels[i]])
                return ts_raise("RuntimeError", "einsum(): an output subscript does not appear in "
                                                "the equation for any input operand");
            for (int j = 0; labels[i] < 0 && j < ellipsis_rank; j++)
                result[result_rank++] = LABELS - ellipsis_rank + j;
            if (labels[i] >= 0)
                result[result_rank++] = labels[i];
        }
    } else {
        for (int j = 0; j < ellipsis_rank; j++)
            result[result_rank++] = LABELS - ellipsis_rank + j;
        for (int l = 0; l < LETTERS; l++)
            if (uses[l] == 1)
                result[result_rank++] = l;
    }
    if (result_rank > RT_MAX_RANK)
        return ts_raise("RuntimeError", "einsum(): too many dimensions");
    for (size_t i = 0; i < count; i++) {
        bool is_needed[LABELS] = {false};
        for (int j = 0; j < result_rank; j++)
            is_needed[result[j]] = true;
        for (size_t later = i + 1; later < count; later++)
            for (int d = 0; d < terms[later].t->rank; d++)
                is_needed[terms[later].labels[d]] = true;
        if (i == 0)
            TS_TRY(sum_out(&terms[0], is_needed));
        else
            TS_TRY(fold(&terms[0], &terms[i], is_needed));
    }
    int dims[RT_MAX_RANK];
    for (int j = 0; j < result_rank; j++) {
        dims[j] = find_label(&terms[0], result[j]);
        if (dims[j] < 0)
            return ts_raise("RuntimeError", "einsum(): an output subscript appears more than once");
    }
    TS_TRY(keep_dims(&terms[0], dims, result_rank));
    rt_tensor *copy;
    TS_TRY(rt_tensor_clone(terms[0].t, &copy));
    *out = rt_from_tensor(copy);
    return NULL;
}

KERNEL(einsum) {
    const rt_list *list = args[1].as.list;
    if (list->count == 0)
        return ts_raise("RuntimeError", "einsum(): must provide at least one operand");
    term *terms = calloc(list->count, sizeof *terms);
    if (!terms)
        return ts_no_memory();
    ts_status status = NULL;
    for (size_t i = 0; i < list->count && !status; i++) {
        terms[i].t = rt_retain(list->items[i]).as.tensor;
        if (terms[i].t->dtype != terms[0].t->dtype)
            status = ts_raise("RuntimeError", "expected scalar type %s but found %s",
                              rt_dtype_message_name((rt_dtype)terms[0].t->dtype),
                              rt_dtype_message_name((rt_dtype)terms[i].t->dtype));
    }
    if (!status)
        status = einsum(rt_str_text(args[0].as.str), terms, list->count, outs);
    for (size_t i = 0; i < list->count; i++)
        if (terms[i].t)
            term_deinit(&terms[i]);
    free(terms);
    return status;
}

KERNEL(tensordot) {
    int64_t da[RT_MAX_RANK], db[RT_MAX_RANK];
    int na, nb;
    const rt_tensor *a = args[0].as.tensor, *b = args[1].as.tensor;
    term x = {0}, y = {0};
    TS_TRY(rt_as_ints(args[2], da, &na));
    TS_TRY(rt_as_ints(args[3], db, &nb));
    if (na != nb)
        return ts_raise("RuntimeError", "both dimension lists should have same length");
    if (a->dtype != b->dtype)
        return ts_raise("RuntimeError", "both inputs should have same dtype");
    if (a->rank + b->rank > RT_MAX_RANK)
        return ts_raise("RuntimeError", "tensordot: too many dimensions");
    bool is_needed[LABELS] = {false};
    for (int i = 0; i < a->rank; i++)
        x.labels[i] = i;
    for (int i = 0; i < b->rank; i++)
        y.labels[i] = a->rank + i;
    for (int l = 0; l < a->rank + b->rank; l++)
        is_needed[l] = true;
    for (int i = 0; i < na; i++) {
        int p, q;
        TS_TRY(rt_wrap_dim(da[i], a->rank, &p));
        TS_TRY(rt_wrap_dim(db[i], b->rank, &q));
        if (a->sizes[p] != b->sizes[q] && a->sizes[p] != 1 && b->sizes[q] != 1)
            return ts_raise("RuntimeError",
                            "contracted dimensions need to match, but first has size %lld in dim "
                            "%d and second has size %lld in dim %d",
                            (long long)a->sizes[p], p, (long long)b->sizes[q], q);
        is_needed[y.labels[q]] = false;
        y.labels[q] = x.labels[p];
        is_needed[x.labels[p]] = false;
    }
    x.t = rt_retain(args[0]).as.tensor;
    y.t = rt_retain(args[1]).as.tensor;
    ts_status status = fold(&x, &y, is_needed);
    rt_tensor *narrow;
    if (!status) /* what was summed out in 64 bits, as its dtype */
        status = rt_tensor_cast(x.t, (rt_dtype)a->dtype, false, &narrow);
    if (!status)
        outs[0] = rt_from_tensor(narrow);
    term_deinit(&x);
    term_deinit(&y);
    return status;
}
