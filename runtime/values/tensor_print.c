/* runtime/values/tensor_print.c - the text of a tensor, after PyTorch's torch/_tensor_str.py.
 *
 * Options are its defaults: precision 4, threshold 1000, edgeitems 3, linewidth 80. */
#include <math.h>
#include <stdio.h>

#include "runtime/values/values_internal.h"

enum { PRECISION = 4, THRESHOLD = 1000, EDGE = 3, LINE_WIDTH = 80 };

typedef struct formatter {
    bool is_float, is_whole, is_scientific;
    int width;
    double low, high; /* of the finite nonzero magnitudes */
    bool has_values;
} formatter;

typedef struct printer {
    const rt_tensor *tensor;
    ts_buffer *out;
    bool summarize, is_complex;
    formatter real, imaginary;
} printer;

static int format_real(const formatter *f, double x, char out[400]) {
    if (x != x) /* printf may write -nan */
        return snprintf(out, 400, "nan");
    if (f->is_scientific)
        return snprintf(out, 400, "%.*e", PRECISION, x);
    if (f->is_whole) {
        int n = snprintf(out, 400, "%.0f", x);
        if (isfinite(x)) {
            out[n++] = '.';
            out[n] = 0;
        }
        return n;
    }
    return snprintf(out, 400, "%.*f", PRECISION, x);
}

static void survey(formatter *f, double x) {
    if (!isfinite(x) || x == 0)
        return;
    double magnitude = fabs(x);
    if (!f->has_values || magnitude < f->low)
        f->low = magnitude;
    if (!f->has_values || magnitude > f->high)
        f->high = magnitude;
    f->has_values = true;
    if (x != ceil(x))
        f->is_whole = false;
}

static void settle(formatter *f) {
    if (f->has_values)
        f->is_scientific =
            f->high / f->low > 1000.0 || f->high > 1e8 || (!f->is_whole && f->low < 1e-4);
}

static void widen(formatter *f, double x) {
    if (!isfinite(x) || x == 0)
        return;
    char text[400];
    int n = format_real(f, x, text);
    if (n > f->width)
        f->width = n;
}

static int format_integer(const rt_tensor *t, const char *data, char out[400]) {
    int64_t i = rt_load_int((rt_dtype)t->dtype, data);
    if (t->dtype == RT_bool)
        return snprintf(out, 400, "%s", i ? "True" : "False");
    return snprintf(out, 400, "%lld", (long long)i);
}

static rt_complex128 load(const printer *p, const char *data) {
    rt_complex128 c = rt_load_complex((rt_dtype)p->tensor->dtype, data);
    if (p->tensor->is_conjugated)
        c.im = -c.im;
    return c;
}

/* Visits the elements that will be printed. */
static void visit(printer *p, int dim, const char *data, void (*see)(printer *, const char *)) {
    const rt_tensor *t = p->tensor;
    if (dim == t->rank) {
        see(p, data);
        return;
    }
    int64_t size = t->sizes[dim];
    int64_t step = t->strides[dim] * (int64_t)rt_dtype_size((rt_dtype)t->dtype);
    for (int64_t i = 0; i < size; i++) {
        if (p->summarize && size > 2 * EDGE && i == EDGE)
            i = size - EDGE;
        visit(p, dim + 1, data + i * step, see);
    }
}

static void see_range(printer *p, const char *data) {
    rt_complex128 c = load(p, data);
    survey(&p->real, c.re);
    survey(&p->imaginary, c.im);
}

static void see_width(printer *p, const char *data) {
    if (p->real.is_float) {
        rt_complex128 c = load(p, data);
        widen(&p->real, c.re);
        widen(&p->imaginary, c.im);
    } else {
        char text[400];
        int n = format_integer(p->tensor, data, text);
        if (n > p->real.width)
            p->real.width = n;
    }
}

static void print_padded(ts_buffer *out, int width, const char *text, int length) {
    for (int i = length; i < width; i++)
        ts_buffer_char(out, ' ');
    ts_buffer_append(out, text, (size_t)length);
}

static void print_element(printer *p, const char *data) {
    char text[400];
    if (!p->real.is_float) {
        print_padded(p->out, p->real.width, text, format_integer(p->tensor, data, text));
        return;
    }
    rt_complex128 c = load(p, data);
    print_padded(p->out, p->real.width, text, format_real(&p->real, c.re, text));
    if (!p->is_complex)
        return;
    int n = format_real(&p->imaginary, c.im, text);
    if (text[0] != '-' && text[0] != '+')
        ts_buffer_char(p->out, '+');
    ts_buffer_append(p->out, text, (size_t)n);
    ts_buffer_char(p->out, 'j');
}

static void print_spaces(ts_buffer *out, int count) {
    for (int i = 0; i < count; i++)
        ts_buffer_char(out, ' ');
}

static void print_vector(printer *p, const char *data, int indent) {
    const rt_tensor *t = p->tensor;
    int dim = t->rank - 1;
    int64_t size = t->sizes[dim];
    int64_t step = t->strides[dim] * (int64_t)rt_dtype_size((rt_dtype)t->dtype);
    int element_width = p->real.width + 2 + (p->is_complex ? p->imaginary.width + 1 : 0);
    int per_line = (LINE_WIDTH - indent) / element_width;
    if (per_line < 1)
        per_line = 1;
    ts_buffer_char(p->out, '[');
    int on_line = 0;
    for (int64_t i = 0; i < size; i++) {
        bool is_gap = p->summarize && size > 2 * EDGE && i == EDGE;
        if (on_line == per_line) {
            ts_buffer_text(p->out, ",\n");
            print_spaces(p->out, indent + 1);
            on_line = 0;
        } else if (i) {
            ts_buffer_text(p->out, ", ");
        }
        on_line++;
        if (is_gap) {
            ts_buffer_text(p->out, " ...");
            i = size - EDGE - 1;
        } else {
            print_element(p, data + i * step);
        }
    }
    ts_buffer_char(p->out, ']');
}

static void print_dims(printer *p, int dim, const char *data, int indent) {
    const rt_tensor *t = p->tensor;
    if (t->rank == 0) {
        print_element(p, data);
        return;
    }
    if (dim == t->rank - 1) {
        print_vector(p, data, indent);
        return;
    }
    int64_t size = t->sizes[dim];
    int64_t step = t->strides[dim] * (int64_t)rt_dtype_size((rt_dtype)t->dtype);
    ts_buffer_char(p->out, '[');
    for (int64_t i = 0; i < size; i++) {
        if (i) {
            ts_buffer_char(p->out, ',');
            for (int n = dim; n < t->rank - 1; n++)
                ts_buffer_char(p->out, '\n');
            print_spaces(p->out, indent + 1);
        }
        if (p->summarize && size > 2 * EDGE && i == EDGE) {
            ts_buffer_text(p->out, "...");
            i = size - EDGE - 1;
        } else {
            print_dims(p, dim + 1, data + i * step, indent + 1);
        }
    }
    ts_buffer_char(p->out, ']');
}

static size_t last_line_length(const ts_buffer *out, size_t start) {
    size_t at = out->length;
    while (at > start && out->data[at - 1] != '\n')
        at--;
    /* _tensor_str counts len - rfind + 1, where rfind is -1 without a newline */
    return out->length - at + 2;
}

static void add_suffix(ts_buffer *out, size_t start, const char *text) {
    if (out->failed)
        return;
    size_t length = last_line_length(out, start);
    if (length + strlen(text) + 2 > LINE_WIDTH) {
        ts_buffer_text(out, ",\n");
        print_spaces(out, 7);
    } else {
        ts_buffer_text(out, ", ");
    }
    ts_buffer_text(out, text);
}

static void print_elements(const rt_tensor *t, ts_buffer *out) {
    rt_dtype dtype = (rt_dtype)t->dtype;
    bool is_complex = rt_dtype_is_complex(dtype);
    formatter start = {
        .is_float = is_complex || rt_dtype_is_float(dtype), .is_whole = true, .width = 1};
    printer p = {.tensor = t,
                 .out = out,
                 .summarize = t->element_count > THRESHOLD,
                 .is_complex = is_complex,
                 .real = start,
                 .imaginary = start};
    if (start.is_float) {
        visit(&p, 0, t->data, see_range);
        settle(&p.real);
        settle(&p.imaginary);
    }
    visit(&p, 0, t->data, see_width);
    print_dims(&p, 0, t->data, 7);
}

void rt_tensor_print(const rt_tensor *t, ts_buffer *out) {
    rt_dtype dtype = (rt_dtype)t->dtype;
    size_t start = out->length;
    char text[64];
    ts_buffer_text(out, "tensor(");
    if (t->element_count == 0) {
        ts_buffer_text(out, "[]");
        if (t->rank != 1) {
            ts_buffer_text(out, ", size=(");
            for (int d = 0; d < t->rank; d++)
                ts_buffer_format(out, "%s%lld", d ? ", " : "", (long long)t->sizes[d]);
            ts_buffer_char(out, ')');
        }
    } else if (!t->data) {
        ts_buffer_text(out, "...");
    } else {
        print_elements(t, out);
    }
    bool is_default =
        dtype == RT_float32 ||
        (t->element_count > 0 && (dtype == RT_int64 || dtype == RT_bool || dtype == RT_complex64));
    if (!is_default) {
        snprintf(text, sizeof text, "dtype=torch.%s", rt_dtype_name(dtype));
        add_suffix(out, start, text);
    }
    if (t->requires_grad)
        add_suffix(out, start, "requires_grad=True");
    ts_buffer_char(out, ')');
}
