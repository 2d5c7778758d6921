/* runtime/ops/ref_convert.c - conversions between values, and what a tensor tells about itself. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/base/checked.h"
#include "runtime/ops/ref_kernel.h"
#include "runtime/ops/text.h"

KERNEL(to_bool) {
    bool truth;
    TS_TRY(rt_truth(args[0], &truth));
    outs[0] = rt_bool(truth);
    return NULL;
}

KERNEL(value_truth) { return rt_ref_to_bool(context, args, outs); }

static ts_str stripped(ts_str s) {
    while (s.length) {
        size_t at = 0;
        if (!rt_char_is_space(rt_text_next(s, &at)))
            break;
        s.data += at;
        s.length -= at;
    }
    while (s.length && rt_char_is_space((unsigned char)s.data[s.length - 1]))
        s.length--;
    return s;
}

static ts_status parse_int(rt_value text, int64_t *out) {
    ts_str s = stripped(rt_str_text(text.as.str));
    size_t i = 0;
    bool negative = false, after_digit = false;
    int64_t r = 0;
    if (i < s.length && (s.data[i] == '-' || s.data[i] == '+'))
        negative = s.data[i++] == '-';
    bool is_good = i < s.length;
    for (; i < s.length && is_good; i++) {
        char c = s.data[i];
        if (c == '_' && after_digit && i + 1 < s.length) {
            after_digit = false;
            continue;
        }
        is_good = c >= '0' && c <= '9';
        after_digit = is_good;
        if (!is_good)
            break;
        int64_t digit = negative ? '0' - c : c - '0';
        if (!ts_mul_i64(r, 10, &r) || !ts_add_i64(r, digit, &r))
            return ts_raise("OverflowError", "Python int too large to convert to C long");
    }
    if (!is_good) {
        rt_value repr;
        TS_TRY(rt_to_repr(text, &repr));
        ts_status e = ts_raise("ValueError", "invalid literal for int() with base 10: %s",
                               repr.as.str->data);
        rt_release(repr);
        return e;
    }
    *out = r;
    return NULL;
}

KERNEL(to_int) {
    if (args[0].tag == RT_TAG_STR) {
        int64_t i = 0;
        TS_TRY(parse_int(args[0], &i));
        outs[0] = rt_int(i);
        return NULL;
    }
    rt_number n;
    TS_TRY(rt_number_of(args[0], &n));
    if (n.kind == NUMBER_COMPLEX)
        return ts_raise("TypeError", "int() argument must be a string, a bytes-like object or a "
                                     "real number, not 'complex'");
    if (n.kind == NUMBER_FLOAT)
        TS_TRY(rt_float_to_int(n.f, &n.i));
    outs[0] = rt_int(n.i);
    return NULL;
}

static bool is_word(ts_str s, const char *word) {
    size_t i = 0;
    for (; i < s.length && word[i]; i++)
        if ((s.data[i] | 32) != word[i])
            return false;
    return i == s.length && !word[i];
}

static bool parse_float(ts_str s, double *out) {
    char small[64], *text = small;
    double sign = 1;
    s = stripped(s);
    if (s.length && (s.data[0] == '-' || s.data[0] == '+')) {
        sign = s.data[0] == '-' ? -1 : 1;
        s.data++;
        s.length--;
    }
    if (is_word(s, "inf") || is_word(s, "infinity")) {
        *out = sign * INFINITY;
        return true;
    }
    if (is_word(s, "nan")) {
        *out = copysign(NAN, sign);
        return true;
    }
    if (s.length >= sizeof small && !(text = malloc(s.length + 1)))
        return false;
    size_t n = 0;
    bool is_good = s.length > 0;
    for (size_t i = 0; i < s.length && is_good; i++) {
        char c = s.data[i];
        bool digit = c >= '0' && c <= '9';
        if (c == '_')
            is_good = i > 0 && i + 1 < s.length && s.data[i - 1] >= '0' && s.data[i - 1] <= '9' &&
                      s.data[i + 1] >= '0' && s.data[i + 1] <= '9';
        else if (digit || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-')
            text[n++] = c;
        else
            is_good = false;
    }
    text[n] = 0;
    char *end = text;
    if (is_good && ((text[0] >= '0' && text[0] <= '9') || text[0] == '.'))
        *out = sign * strtod(text, &end);
    is_good = is_good && n > 0 && end == text + n;
    if (text != small)
        free(text);
    return is_good;
}

KERNEL(to_float) {
    if (args[0].tag == RT_TAG_STR) {
        double f = 0;
        if (!parse_float(rt_str_text(args[0].as.str), &f)) {
            rt_value repr;
            TS_TRY(rt_to_repr(args[0], &repr));
            ts_status e = ts_raise("ValueError", "could not convert string to float: %s",
                                   repr.as.str->data);
            rt_release(repr);
            return e;
        }
        outs[0] = rt_float(f);
        return NULL;
    }
    rt_number n;
    TS_TRY(rt_number_of(args[0], &n));
    if (n.kind == NUMBER_COMPLEX)
        return ts_raise("TypeError",
                        "float() argument must be a string or a real number, not 'complex'");
    outs[0] = rt_float(n.f);
    return NULL;
}

KERNEL(to_complex) {
    rt_number n;
    TS_TRY(rt_number_of(args[0], &n));
    return rt_complex_make(n.f, n.im, outs);
}

KERNEL(to_complex2) { /* complex(x, y) = x + y * 1j, also for complex x and y */
    rt_number a, b;
    TS_TRY(rt_number_of(args[0], &a));
    TS_TRY(rt_number_of(args[1], &b));
    bool has_im = args[0].tag == RT_TAG_COMPLEX || args[0].tag == RT_TAG_TENSOR; /* 0.0 + -0.0 is no -0.0 */
    return rt_complex_make(a.f - b.im, has_im && a.im != 0 ? a.im + b.f : b.f, outs);
}

KERNEL(to_scalar) { return rt_tensor_item(args[0].as.tensor, outs); }
KERNEL(to_str) { return rt_to_str(args[0], outs); }
KERNEL(to_repr) { return rt_to_repr(args[0], outs); }

KERNEL(hash) {
    uint64_t h;
    if (args[0].tag == RT_TAG_INT || args[0].tag == RT_TAG_BOOL) { /* as Python has it */
        const int64_t prime = (INT64_C(1) << 61) - 1;
        outs[0] = rt_int(args[0].as.i % prime == -1 ? -2 : args[0].as.i % prime);
        return NULL;
    }
    TS_TRY(rt_hash(args[0], &h));
    outs[0] = rt_int((int64_t)h);
    return NULL;
}

/* ---- trivial answers ---- */

KERNEL(nothing) {
    return NULL;
}
KERNEL(none) {
    outs[0] = rt_none();
    return NULL;
}
KERNEL(yes) {
    outs[0] = rt_bool(true);
    return NULL;
}
KERNEL(no) {
    outs[0] = rt_bool(false);
    return NULL;
}
KERNEL(is_scripting) { return rt_ref_yes(context, args, outs); }

KERNEL(identity) {
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(unwrap_optional) {
    if (rt_is_none(args[0]))
        return ts_raise("AssertionError", "Unwrapping null optional");
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(assert_scalar) {
    bool truth;
    TS_TRY(rt_truth(args[0], &truth));
    if (!truth)
        return ts_raise_str(TS_STR("RuntimeError"), rt_str_text(args[1].as.str));
    return NULL;
}

KERNEL(value_id) {
    outs[0] = rt_int(rt_is_counted(args[0]) ? (int64_t)(intptr_t)args[0].as.pointer : args[0].as.i);
    return NULL;
}

KERNEL(is_grad_enabled) {
    outs[0] = rt_bool(context && context->grad_enabled);
    return NULL;
}

KERNEL(set_grad_enabled) {
    if (context)
        context->grad_enabled = args[0].as.i != 0;
    return NULL;
}

KERNEL(time_point) {
    struct timespec t = {0};
    (void)timespec_get(&t, TIME_UTC);
    outs[0] = rt_int((int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
    return NULL;
}

KERNEL(print_text) {
    if (context && context->print)
        context->print(context->print_user, rt_str_text(args[0].as.str));
    return NULL;
}

/* Its operand is computed, whoever reads it: what does not fit raises. */
KERNEL(keep) { return NULL; }

KERNEL(print_values) {
    const rt_value *items = &args[0];
    size_t count = 1;
    if (args[0].tag == RT_TAG_TUPLE) {
        items = args[0].as.tuple->items;
        count = args[0].as.tuple->count;
    }
    ts_buffer line = {0};
    for (size_t i = 0; i < count; i++) {
        rt_value text;
        ts_status status = rt_to_str(items[i], &text);
        if (status) {
            ts_buffer_deinit(&line);
            return status;
        }
        if (i)
            ts_buffer_char(&line, ' ');
        ts_buffer_str(&line, rt_str_text(text.as.str));
        rt_release(text);
    }
    ts_buffer_char(&line, '\n');
    ts_status status = ts_buffer_status(&line);
    if (!status && context && context->print)
        context->print(context->print_user, (ts_str){line.data, line.length});
    ts_buffer_deinit(&line);
    return status;
}

/* ---- devices, enums, dtypes ---- */

static const char *const device_names[] = {"cpu", "cuda", "opencl", "meta"};

static ts_status parse_device(ts_str text, int64_t index, rt_value *out) {
    size_t colon = 0;
    while (colon < text.length && text.data[colon] != ':')
        colon++;
    ts_str name = {text.data, colon};
    for (size_t i = colon + 1; i < text.length; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || index > 1000)
            return ts_raise("RuntimeError", "Invalid device string: '%.*s'", TS_STR_ARG(text));
        index = (index < 0 ? 0 : index * 10) + (text.data[i] - '0');
    }
    for (uint32_t kind = 0; kind < 4; kind++)
        if (ts_str_is(name, device_names[kind])) {
            *out = (rt_value){.tag = RT_TAG_DEVICE, .aux = kind, .as.i = index};
            return NULL;
        }
    return ts_raise("RuntimeError", "Expected one of cpu, cuda, meta device type at start of "
                                    "device string: %.*s",
                    TS_STR_ARG(text));
}

KERNEL(device_make) { return parse_device(rt_str_text(args[0].as.str), -1, outs); }
KERNEL(device_make_index) {
    return parse_device(rt_str_text(args[0].as.str), args[1].as.i, outs);
}

KERNEL(device_index) {
    outs[0] = args[0].as.i < 0 ? rt_none() : rt_int(args[0].as.i);
    return NULL;
}

KERNEL(device_type) {
    return rt_str_make(ts_str_of(device_names[args[0].aux & 3]), outs);
}

KERNEL(enum_name) { return rt_str_make(args[0].as.enumeration->name, outs); }
KERNEL(enum_value) {
    outs[0] = rt_retain(args[0].as.enumeration->value);
    return NULL;
}

KERNEL(promote_types) {
    outs[0] = rt_int(rt_dtype_promote((rt_dtype)args[0].as.i, (rt_dtype)args[1].as.i));
    return NULL;
}

static int category_order(rt_dtype dtype) {
    char c = rt_dtype_category(dtype);
    return c == 'b' ? 0 : c == 'i' ? 1 : c == 'f' ? 2 : 3;
}

KERNEL(can_cast) {
    rt_dtype from = (rt_dtype)args[0].as.i, to = (rt_dtype)args[1].as.i;
    outs[0] = rt_bool(category_order(from) <= category_order(to));
    return NULL;
}

static rt_dtype number_dtype(rt_value v) {
    return v.tag == RT_TAG_BOOL    ? RT_bool
           : v.tag == RT_TAG_INT   ? RT_int64
           : v.tag == RT_TAG_FLOAT ? RT_float32
                                   : RT_complex64;
}

KERNEL(result_type) {
    outs[0] = rt_int(rt_dtype_promote(number_dtype(args[0]), number_dtype(args[1])));
    return NULL;
}

/* ---- shapes ---- */

static ts_status sizes_of(rt_value list, int64_t *sizes, int *rank) {
    if (list.as.list->count > RT_MAX_RANK)
        return ts_raise("RuntimeError", "a shape has at most 64 dimensions");
    *rank = (int)list.as.list->count;
    for (int i = 0; i < *rank; i++)
        sizes[i] = list.as.list->items[i].as.i;
    return NULL;
}

KERNEL(broadcast_shapes) {
    int64_t a[RT_MAX_RANK], b[RT_MAX_RANK], r[RT_MAX_RANK];
    int a_rank = 0, b_rank = 0, r_rank = 0;
    TS_TRY(sizes_of(args[0], a, &a_rank));
    TS_TRY(sizes_of(args[1], b, &b_rank));
    TS_TRY(rt_broadcast(a, a_rank, b, b_rank, r, &r_rank));
    return rt_int_list_make(r, (size_t)r_rank, outs);
}
KERNEL(_infer_size) { return rt_ref_broadcast_shapes(context, args, outs); }

/* ---- ranges ---- */

static ts_status range_count(int64_t lo, int64_t hi, int64_t step, int64_t *out) {
    if (step == 0)
        return ts_raise("ValueError", "range() arg 3 must not be zero");
    uint64_t span = 0, by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (step > 0 && lo < hi)
        span = (uint64_t)hi - (uint64_t)lo;
    else if (step < 0 && lo > hi)
        span = (uint64_t)lo - (uint64_t)hi;
    *out = span ? (int64_t)((span - 1) / by + 1) : 0;
    return NULL;
}

KERNEL(range_length) {
    int64_t n;
    TS_TRY(range_count(args[0].as.i, args[1].as.i, args[2].as.i, &n));
    outs[0] = rt_int(n);
    return NULL;
}

KERNEL(derive_index) {
    uint64_t r = (uint64_t)args[1].as.i + (uint64_t)args[0].as.i * (uint64_t)args[2].as.i;
    outs[0] = rt_int((int64_t)r);
    return NULL;
}

static ts_status list_of_range(int64_t lo, int64_t hi, int64_t step, rt_value *out) {
    int64_t n;
    TS_TRY(range_count(lo, hi, step, &n));
    if (n > (int64_t)1 << 32)
        return ts_no_memory();
    TS_TRY(rt_list_make((size_t)n, out));
    for (int64_t i = 0; i < n; i++) {
        ts_status status = rt_list_append(out->as.list, rt_int(lo + i * step));
        if (status) {
            rt_release(*out);
            return status;
        }
    }
    return NULL;
}

KERNEL(rangelist) { return list_of_range(0, args[0].as.i, 1, outs); }
KERNEL(range_list) { return list_of_range(args[0].as.i, args[1].as.i, args[2].as.i, outs); }

/* ---- tensors ---- */

KERNEL(num_to_tensor) {
    rt_tensor *t;
    rt_dtype dtype = args[0].tag == RT_TAG_FLOAT     ? RT_float64
                     : args[0].tag == RT_TAG_COMPLEX ? RT_complex128
                                                     : RT_DTYPE_UNKNOWN;
    TS_TRY(rt_tensor_from_number(args[0], dtype, &t));
    outs[0] = rt_from_tensor(t);
    return NULL;
}

KERNEL(tensor_dtype) {
    outs[0] = rt_int_meaning(args[0].as.tensor->dtype, RT_MEANING_DTYPE);
    return NULL;
}
KERNEL(tensor_device) {
    outs[0] = (rt_value){.tag = RT_TAG_DEVICE, .as.i = -1};
    return NULL;
}
KERNEL(tensor_layout) {
    outs[0] = rt_int(0); /* strided */
    return NULL;
}
KERNEL(tensor_requires_grad) {
    outs[0] = rt_bool(args[0].as.tensor->requires_grad);
    return NULL;
}
KERNEL(tensor_itemsize) {
    outs[0] = rt_int((int64_t)rt_dtype_size((rt_dtype)args[0].as.tensor->dtype));
    return NULL;
}
KERNEL(tensor_nbytes) {
    const rt_tensor *t = args[0].as.tensor;
    outs[0] = rt_int((int64_t)rt_dtype_size((rt_dtype)t->dtype) * t->element_count);
    return NULL;
}
KERNEL(tensor_data) { return rt_ref_identity(context, args, outs); }

static ts_status to_list(const rt_tensor *t, int dim, const char *data, rt_value *out) {
    rt_dtype dtype = (rt_dtype)t->dtype;
    if (dim == t->rank) {
        if (!rt_dtype_is_complex(dtype)) {
            *out = rt_load_number(dtype, data);
            return NULL;
        }
        rt_complex128 c = rt_load_complex(dtype, data);
        return rt_complex_make(c.re, c.im, out);
    }
    TS_TRY(rt_list_make((size_t)t->sizes[dim], out));
    int64_t step = t->strides[dim] * (int64_t)rt_dtype_size(dtype);
    for (int64_t i = 0; i < t->sizes[dim]; i++) {
        rt_value item;
        ts_status status = to_list(t, dim + 1, data + i * step, &item);
        if (!status) {
            status = rt_list_append(out->as.list, item);
            rt_release(item);
        }
        if (status) {
            rt_release(*out);
            return status;
        }
    }
    return NULL;
}

KERNEL(tensor_tolist) { return to_list(args[0].as.tensor, 0, args[0].as.tensor->data, outs); }
