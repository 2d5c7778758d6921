/* tools/tsrun_inline.c - numbers and whole tensors as JSON: {"dtype": T, "shape": [sizes], "data":
 * [elements in row-major order]}, the same in arguments and in results. */
#include "tools/tsrun.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ts_status bad(const char *text) {
    return ts_error_make(TS_ERR_INVALID_INPUT, "--args: %s", text);
}

/* ---- floats: JSON has neither infinities nor NaN ---- */

ts_status tsrun_float_read(const json_t *j, double *out) {
    if (json_object_size(j) == 1 && json_object_get(j, "float"))
        j = json_object_get(j, "float");
    const char *text = json_string_value(j);
    if (json_is_number(j)) {
        *out = json_number_value(j);
        return NULL;
    }
    static const struct {
        const char *text;
        double value;
    } names[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}, {"-nan", -NAN}};
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i].text) == 0) {
            *out = names[i].value;
            return NULL;
        }
    char *end = NULL;
    *out = text ? strtod(text, &end) : 0;
    return text && end != text && !*end ? NULL : bad("expected a number, \"inf\", \"-inf\" or \"nan\"");
}

json_t *tsrun_float_tree(double f) {
    if (isfinite(f))
        return json_real(f);
    return json_pack("{s:s}", "float", isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
}

/* ---- tensors ---- */

/* Bits of a float16 or bfloat16, complex numbers and quantized integers have no form here. */
static ts_status no_form(const char *dtype) {
    return ts_error_make(TS_ERR_INVALID_INPUT, "a %s tensor does not fit a tree: use a safetensors "
                         "file (--inputs, --output)", dtype);
}

/* One element into memory of its dtype. */
static ts_status put_element(const json_t *j, tsrt_dtype dtype, char *to) {
    double d = 0;
    int64_t n = json_is_boolean(j) ? json_is_true(j) : json_integer_value(j), low = 0, high = 1;
    if (dtype == TSRT_FLOAT32 || dtype == TSRT_FLOAT64) {
        TS_TRY(tsrun_float_read(j, &d));
        float f = (float)d;
        if (dtype == TSRT_FLOAT32)
            memcpy(to, &f, sizeof f);
        else
            memcpy(to, &d, sizeof d);
        return NULL;
    }
    size_t width = tsrt_dtype_bytes(dtype);
    if (dtype != TSRT_BOOL8) {
        bool is_signed = dtype != TSRT_UINT8;
        high = width == 8 ? INT64_MAX : ((int64_t)1 << (8 * (int)width - is_signed)) - 1;
        low = is_signed ? -high - 1 : 0;
    }
    if ((!json_is_integer(j) && !json_is_boolean(j)) || n < low || n > high)
        return ts_error_make(TS_ERR_INVALID_INPUT, "--args: an element of a tensor's data does not "
                             "fit %s", tsrt_dtype_name(dtype));
    memcpy(to, &n, width); /* little-endian, as artifacts are */
    return NULL;
}

ts_status tsrun_inline_read(const json_t *j, tsrt_value **out) {
    enum { RANK_MAX = 64 };
    const char *name = json_string_value(json_object_get(j, "dtype"));
    const json_t *shape = json_object_get(j, "shape"), *data = json_object_get(j, "data");
    int dtype = name ? tsrt_dtype_parse(name) : -1;
    size_t rank = json_array_size(shape);
    *out = NULL;
    if (dtype < 0 || !json_is_array(shape) || !json_is_array(data) || rank > RANK_MAX)
        return bad("tensor takes the name of one of --inputs, or {\"dtype\": \"float32\", "
                   "\"shape\": [2], \"data\": [0.5, 1]}");
    switch ((tsrt_dtype)dtype) {
    case TSRT_FLOAT16:
    case TSRT_BFLOAT16:
    case TSRT_COMPLEX32:
    case TSRT_COMPLEX64:
    case TSRT_COMPLEX128:
    case TSRT_QINT8:
    case TSRT_QUINT8:
    case TSRT_QINT32: return no_form(name);
    default: break;
    }
    int64_t sizes[RANK_MAX] = {0};
    size_t count = 1, most = json_array_size(data);
    for (size_t i = 0; i < rank; i++) {
        sizes[i] = json_integer_value(json_array_get(shape, i));
        if (!json_is_integer(json_array_get(shape, i)) || sizes[i] < 0)
            return bad("the sizes of a tensor's shape are whole numbers from 0");
        if (sizes[i] && count > SIZE_MAX / (size_t)sizes[i])
            return bad("a tensor's shape is too large");
        count *= (size_t)sizes[i];
    }
    if (count != most)
        return ts_error_make(TS_ERR_INVALID_INPUT, "--args: a tensor's shape holds %zu elements, "
                             "its data %zu", count, most);
    TS_TRY(tsrun_status(tsrt_value_make_tensor((tsrt_dtype)dtype, sizes, (int)rank, out)));
    tsrt_tensor_view view = {.size = sizeof view};
    ts_status status = tsrun_status(tsrt_value_view_tensor(*out, &view));
    size_t width = tsrt_dtype_bytes((tsrt_dtype)dtype);
    for (size_t i = 0; i < count && !status; i++)
        status = put_element(json_array_get(data, i), (tsrt_dtype)dtype,
                             (char *)view.data + i * width);
    if (status) {
        tsrt_value_release(*out);
        *out = NULL;
    }
    return status;
}

/* Elements of a tensor in place, as nested lists would be: a flat list with its shape. */
ts_status tsrun_inline_write(const tsrt_value *v, json_t **out) {
    tsrt_value *dense = NULL;
    TS_TRY(tsrun_status(tsrt_value_contiguous(v, &dense)));
    tsrt_tensor_view view = {.size = sizeof view};
    ts_status status = tsrun_status(tsrt_value_view_tensor(dense, &view));
    json_t *data = json_array(), *shape = json_array();
    for (int i = 0; !status && i < view.rank; i++)
        json_array_append_new(shape, json_integer(view.sizes[i]));
    size_t width = status ? 0 : tsrt_dtype_bytes(view.dtype);
    for (int64_t i = 0; !status && i < view.element_count; i++) {
        const char *p = (const char *)view.data + (size_t)i * width;
        int64_t n = 0;
        double d = 0;
        float f = 0;
        switch (view.dtype) {
        case TSRT_FLOAT32: memcpy(&f, p, 4); json_array_append_new(data, tsrun_float_tree((double)f)); break;
        case TSRT_FLOAT64: memcpy(&d, p, 8); json_array_append_new(data, tsrun_float_tree(d)); break;
        case TSRT_BOOL8: json_array_append_new(data, json_boolean(*p)); break;
        case TSRT_UINT8:
        case TSRT_QUINT8: json_array_append_new(data, json_integer((unsigned char)*p)); break;
        case TSRT_INT8:
        case TSRT_QINT8: json_array_append_new(data, json_integer((signed char)*p)); break;
        case TSRT_INT16: {
            int16_t s = 0;
            memcpy(&s, p, 2);
            json_array_append_new(data, json_integer(s));
            break;
        }
        case TSRT_INT32:
        case TSRT_QINT32: {
            int32_t s = 0;
            memcpy(&s, p, 4);
            json_array_append_new(data, json_integer(s));
            break;
        }
        case TSRT_INT64: memcpy(&n, p, 8); json_array_append_new(data, json_integer(n)); break;
        case TSRT_FLOAT16:
        case TSRT_BFLOAT16:
        case TSRT_COMPLEX32:
        case TSRT_COMPLEX64:
        case TSRT_COMPLEX128:
            status = no_form(tsrt_dtype_name(view.dtype));
            break;
        }
    }
    if (status) {
        json_decref(data);
        json_decref(shape);
    } else {
        *out = json_pack("{s:{s:s,s:o,s:o}}", "tensor", "dtype", tsrt_dtype_name(view.dtype),
                         "shape", shape, "data", data);
    }
    tsrt_value_release(dense);
    return status;
}

