/* passes/open_quantized.c - operators over quantized tensors as operators over bytes.
 *
 *   %q = quantize_per_tensor(%x, 0.02, 7, quint8)   =>  %b = _quantize_bytes(%x, 0.02, 7, uint8)
 *   %r = quantized_conv2d.new(%q, PACKED, 0.1, 3)       %s = _integer_convolution(%b, WEIGHT, 7, ...)
 *                                                       %c = _requantize(%s, ADDEND, MULTIPLIER, 3, 0, uint8)
 *   %y = dequantize.self(%r)                            %y = _dequantize_bytes(%c, 0.1, 3)
 *
 * A quantized tensor whose scale and zero point are constants is its bytes; whoever must have the
 * tensor itself gets it back from _make_per_tensor_quantized_tensor. Layers become exact sums and a
 * rounding that is fbgemm's, so kernels (and reference kernels) of the parts give the bytes that the
 * whole operator gives. Dynamic layers choose a scale, round their input and multiply bytes.
 *
 * Needs: infer_types (dtype, rank). Leaves alone: quantized tensors of unknown scale, by channels, of
 * int32, or that are written to; layers over unknown sizes (no kernel holds them); transposed and 3d
 * convolutions; weights that are no bytes about their zero point. Why after open_operators: library calls are inlined. */
#include <math.h>
#include <string.h>

#include "ir/strided_view.h"
#include "passes/pass_internal.h"
#include "runtime/ops/quantized.h"
#include "runtime/ops/quantized_lift.h"

typedef struct quantum { /* a quantized value that is known */
    ir_value *bytes;
    double scale;
    int64_t zero_point;
    rt_dtype dtype; /* of the bytes: uint8, int8 */
} quantum;

typedef struct opener {
    pass_context *ctx;
    ir_module *m;
    ir_builder b;
    quantum *quanta; /* by value->number - 1 */
    size_t count, capacity;
    pass_op_list opened; /* whose results are quanta */
} opener;

static void remember(opener *o, ir_value *v, quantum q) {
    TS_APPEND(o->ctx->scratch, o->quanta, o->count, o->capacity, q);
    v->number = (uint32_t)o->count;
}

static bool is_bytes(const ir_value *v) {
    return v->type->kind == IR_TENSOR && (v->type->dtype == RT_uint8 || v->type->dtype == RT_int8);
}

/* What v is made of; NULL: not known. */
static const quantum *quantum_of(opener *o, ir_value *v) {
    if (v->number > 0 && v->number <= o->count)
        return &o->quanta[v->number - 1];
    ir_op *def = v->def;
    while (def && def->opcode == IR_OP_CAST)
        def = def->operands[0]->def;
    quantum q;
    if (!def || !ir_is_core(def, OP_make_per_tensor_quantized) || !is_bytes(def->operands[0]) ||
        !ir_const_double(def->operands[1], &q.scale) || !ir_const_int(def->operands[2], &q.zero_point))
        return NULL;
    q.bytes = def->operands[0];
    q.dtype = q.bytes->type->dtype;
    remember(o, v, q);
    return &o->quanta[v->number - 1];
}

static rt_dtype bytes_under(rt_dtype quantized) {
    return quantized == RT_quint8  ? RT_uint8
           : quantized == RT_qint8 ? RT_int8
                                   : RT_DTYPE_UNKNOWN;
}

static bool fits_bytes(rt_dtype dtype, int64_t zero_point) {
    return dtype == RT_uint8 ? zero_point >= 0 && zero_point <= 255
                             : dtype == RT_int8 && zero_point >= -128 && zero_point <= 127;
}

static bool scale_is_usable(double scale) { /* its inverse is a float */
    return (float)scale > 0 && isfinite((float)scale) && isfinite(1.0f / (float)scale);
}

static bool is_float_tensor(const ir_value *v) {
    return v->type->kind == IR_TENSOR && v->type->dtype == RT_float32 && v->type->rank >= 0;
}

/* ---- building ---- */

/* t with another dtype. */
static const ir_type *with_dtype(opener *o, const ir_type *t, rt_dtype dtype) {
    return ir_type_tensor(o->m, dtype, t->rank, t->dims, IR_LAYOUT_ANY);
}

static ir_value *core(opener *o, rt_op op, const ir_type *type, ir_value *const *operands, size_t count) {
    ir_value *v = ir_build_core1(&o->b, op, operands, count);
    v->type = type;
    return v;
}

static ir_value *dequantize(opener *o, const quantum *q, double scale, const ir_type *like) {
    ir_value *args[4] = {q->bytes, ir_build_float(&o->b, scale), ir_build_int(&o->b, q->zero_point),
                         ir_build_bool(&o->b, false)};
    return core(o, OP_dequantize_bytes, with_dtype(o, like, RT_float32), args, 4);
}

static ir_value *quantize(opener *o, ir_value *x, double scale, int64_t zero_point, rt_dtype dtype) {
    ir_value *args[5] = {x, ir_build_float(&o->b, scale), ir_build_int(&o->b, zero_point),
                         ir_build_int(&o->b, dtype), ir_build_bool(&o->b, false)};
    return core(o, OP_quantize_bytes, with_dtype(o, x->type, dtype), args, 5);
}

/* The bytes of q under another scale. */
static ir_value *rescale(opener *o, const quantum *q, const quantum *to, const ir_type *like) {
    if (q->scale == to->scale && q->zero_point == to->zero_point && q->dtype == to->dtype)
        return q->bytes;
    return quantize(o, dequantize(o, q, q->scale, like), to->scale, to->zero_point, to->dtype);
}

static void set_result(opener *o, ir_op *op, quantum q) {
    remember(o, op->results[0], q);
    TS_APPEND(o->ctx->scratch, o->opened.items, o->opened.count, o->opened.capacity, op);
    pass_count(o->ctx, "opened", 1);
}

static void replace_result(opener *o, ir_op *op, ir_value *with) {
    pass_replace(o->m, op->results[0], with);
    ir_op_remove(op);
    pass_count(o->ctx, "opened", 1);
}

/* op on other operands, of which those that are NULL stay. */
static ir_value *again(opener *o, ir_op *op, const ir_type *type, ir_value *const *operands) {
    ir_value *args[RT_LIFT_ARGS];
    for (size_t i = 0; i < op->operand_count; i++)
        args[i] = operands[i] ? operands[i] : op->operands[i];
    return core(o, op->core, type, args, op->operand_count);
}

/* ---- quantize, dequantize ---- */

static bool target_of(const ir_op *op, size_t scale, size_t zero_point, rt_dtype dtype, quantum *out) {
    *out = (quantum){.dtype = dtype};
    return ir_const_double(op->operands[scale], &out->scale) &&
           ir_const_int(op->operands[zero_point], &out->zero_point) &&
           fits_bytes(dtype, out->zero_point) && scale_is_usable(out->scale);
}

/* What was dequantized with its own scale to give x. */
static const quantum *quantum_behind(const ir_value *x, quantum *out) {
    const ir_op *def = x->def;
    if (!def || !ir_is_core(def, OP_dequantize_bytes) || !is_bytes(def->operands[0]) ||
        !ir_const_double(def->operands[1], &out->scale) || !ir_const_int(def->operands[2], &out->zero_point))
        return NULL;
    out->bytes = def->operands[0];
    out->dtype = out->bytes->type->dtype;
    return out;
}

/* Parts of a concatenation are rounded one by one: each in the kernel that makes it. */
static ir_value *quantize_parts(opener *o, ir_value *x, const quantum *to) {
    ir_op *cat = x->def;
    if (!cat || !ir_is_core(cat, OP_cat) || cat->results[0]->use_count != 1)
        return NULL;
    ir_op *list = cat->operands[0]->def;
    if (!list || list->opcode != IR_OP_LIST || list->operand_count == 0 || !ir_list_is_stable(cat->operands[0]))
        return NULL;
    for (size_t i = 0; i < list->operand_count; i++)
        if (!is_float_tensor(list->operands[i]))
            return NULL;
    ir_value **parts = TS_NEW_ARRAY(o->ctx->scratch, ir_value *, list->operand_count);
    for (size_t i = 0; i < list->operand_count; i++) {
        quantum from;
        ir_value *part = list->operands[i];
        parts[i] = quantum_behind(part, &from) ? rescale(o, &from, to, part->type)
                                                  : quantize(o, part, to->scale, to->zero_point, to->dtype);
    }
    const ir_type *tensors = ir_type_list(o->m, ir_type_any_tensor(o->m));
    ir_value *args[2] = {ir_build_op(&o->b, IR_OP_LIST, parts, list->operand_count, &tensors, 1)->results[0],
                         cat->operands[1]};
    return core(o, OP_cat, with_dtype(o, x->type, to->dtype), args, 2);
}

static bool open_quantize(opener *o, ir_op *op) {
    ir_value *x = op->operands[0];
    int64_t dtype;
    quantum q, from;
    if (!is_float_tensor(x) || !ir_const_int(op->operands[3], &dtype) ||
        !target_of(op, 1, 2, bytes_under((rt_dtype)dtype), &q))
        return false;
    /* The same steps again give the same bytes. */
    if (quantum_behind(x, &from) && from.scale == q.scale && from.zero_point == q.zero_point &&
        from.dtype == q.dtype)
        q.bytes = from.bytes;
    else if (!(q.bytes = quantize_parts(o, x, &q)))
        q.bytes = quantize(o, x, q.scale, q.zero_point, q.dtype);
    set_result(o, op, q);
    return true;
}

static bool open_dequantize(opener *o, ir_op *op) {
    const quantum *q = quantum_of(o, op->operands[0]);
    if (!q)
        return false;
    replace_result(o, op, dequantize(o, q, q->scale, op->results[0]->type));
    return true;
}

/* ---- layers ---- */

typedef struct layer {
    const rt_tensor *weight, *bias; /* quantized; float32 or NULL */
    const rt_value *items;          /* of the packed parameters */
    int64_t channels;               /* of the output */
} layer;

static bool read_layer(const ir_value *packed, const char *what, size_t count, layer *out) {
    rt_value v;
    const rt_tuple *t = ir_const_value(packed, &v) ? rt_packed_tuple(v) : NULL;
    if (!t || t->count != count || t->items[0].tag != RT_TAG_STR ||
        !ts_str_is(rt_str_text(t->items[0].as.str), what) || t->items[1].tag != RT_TAG_TENSOR)
        return false;
    *out = (layer){.weight = t->items[1].as.tensor, .items = t->items};
    if (t->items[2].tag == RT_TAG_TENSOR)
        out->bias = t->items[2].as.tensor;
    out->channels = out->weight->rank > 0 ? out->weight->sizes[0] : 0;
    bool bias_fits = !out->bias || (out->bias->dtype == RT_float32 && rt_tensor_is_contiguous(out->bias) &&
                                    out->bias->element_count == out->channels);
    return bias_fits && out->weight->rank >= 2 && out->weight->element_count > 0;
}

static float weight_scale(const layer *l, int64_t i) {
    return (float)(l->weight->scales ? ((const double *)l->weight->scales->data)[i] : l->weight->scale);
}

/* The weight less its zero points, as int8 of these sizes; NULL where some do not fit. */
static ir_value *byte_weight(opener *o, const layer *l, const int64_t *sizes, int rank) {
    rt_tensor *floats, *bytes;
    const rt_tensor *w = l->weight;
    bool by_outputs = !w->scales || (w->axis == 0 && w->scales->element_count == l->channels);
    if (rt_dtype_category((rt_dtype)w->dtype) != 'q' || !by_outputs)
        return NULL;
    ts_status status = rt_centered(w, &floats);
    if (status) {
        ts_status_release(status);
        return NULL;
    }
    status = rt_tensor_make(RT_int8, sizes, rank, &bytes);
    if (status) {
        ts_status_release(status);
        rt_tensor_release(floats);
        return NULL;
    }
    bool fits = true;
    const float *from = floats->data;
    for (int64_t i = 0; i < floats->element_count; i++) {
        fits = fits && from[i] >= -128 && from[i] <= 127 && from[i] == rintf(from[i]);
        ((int8_t *)bytes->data)[i] = fits ? (int8_t)from[i] : 0;
    }
    rt_tensor_release(floats);
    rt_value value = rt_from_tensor(bytes);
    ir_value *v = fits ? ir_build_const(&o->b, value) : NULL;
    rt_release(value);
    return v;
}

/* A float32 constant of [1], or of [channels, 1, ...] with `behind` ones. */
static ir_value *per_channel(opener *o, const float *values, bool is_one, int64_t channels, int behind) {
    int64_t sizes[4] = {is_one ? 1 : channels, 1, 1, 1};
    rt_tensor *t;
    ts_status status = rt_tensor_make(RT_float32, sizes, is_one ? 1 : 1 + behind, &t);
    if (status) {
        ts_status_release(status);
        return NULL;
    }
    memcpy(t->data, values, (size_t)t->element_count * sizeof *values);
    rt_value value = rt_from_tensor(t);
    ir_value *v = ir_build_const(&o->b, value);
    rt_release(value);
    return v;
}

/* sums, int32, as bytes under q's scale; `behind` dims follow the channels. */
static bool requantize(opener *o, const layer *l, ir_value *sums, double in_scale, int behind, bool relu,
                       quantum *q) {
    float *multiplier = ts_arena_array(o->ctx->scratch, (size_t)l->channels, sizeof *multiplier);
    float *addend = ts_arena_array(o->ctx->scratch, (size_t)l->channels, sizeof *addend);
    const float *bias = l->bias ? l->bias->data : NULL;
    for (int64_t i = 0; i < l->channels; i++) {
        float both = (float)in_scale * weight_scale(l, i);
        multiplier[i] = both / (float)q->scale;
        addend[i] = bias ? bias[i] / both : 0;
        if (!isfinite(multiplier[i]) || !isfinite(addend[i]))
            return false;
    }
    int64_t lowest = q->dtype == RT_int8 ? -128 : 0;
    if (relu && q->zero_point > lowest)
        lowest = q->zero_point;
    ir_value *args[6] = {sums,
                         per_channel(o, addend, !bias, l->channels, behind),
                         per_channel(o, multiplier, !l->weight->scales, l->channels, behind),
                         ir_build_int(&o->b, q->zero_point),
                         ir_build_int(&o->b, lowest),
                         ir_build_int(&o->b, q->dtype)};
    if (!args[1] || !args[2])
        return false;
    q->bytes = core(o, OP_requantize, with_dtype(o, sums->type, q->dtype), args, 6);
    return true;
}

/* sums, int32, as floats; scale: of the input. */
static ir_value *scale_sums(opener *o, const layer *l, ir_value *sums, ir_value *scale, int behind) {
    float *scales = ts_arena_array(o->ctx->scratch, (size_t)l->channels, sizeof *scales);
    for (int64_t i = 0; i < l->channels; i++)
        scales[i] = weight_scale(l, i);
    ir_value *args[4] = {sums, scale, per_channel(o, scales, !l->weight->scales, l->channels, behind),
                         l->bias ? per_channel(o, l->bias->data, false, l->channels, behind)
                                 : ir_build_none(&o->b)};
    return args[2] && args[3] ? core(o, OP_scale_sums, with_dtype(o, sums->type, RT_float32), args, 4) : NULL;
}

static ir_value *linear_sums(opener *o, const layer *l, ir_value *bytes, ir_value *zero_point) {
    if (l->weight->rank != 2)
        return NULL;
    ir_value *w = byte_weight(o, l, l->weight->sizes, 2), *args[3] = {bytes, w, zero_point};
    const ir_type *t = bytes->type;
    if (!w || t->rank < 2 || t->dims[t->rank - 1] != l->weight->sizes[1])
        return NULL;
    rt_dim *dims = TS_NEW_ARRAY(o->m->arena, rt_dim, (size_t)t->rank);
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[t->rank - 1] = l->channels;
    return core(o, OP_integer_linear, ir_type_tensor(o->m, RT_int32, t->rank, dims, IR_LAYOUT_ANY), args, 3);
}

/* A list of ints of the packed parameters, its last `dims`; of one it is repeated. */
static ir_value *numbers(opener *o, rt_value list, int dims) {
    int64_t items[RT_MAX_RANK];
    int count;
    ts_status status = rt_as_ints(list, items, &count);
    rt_value made = rt_none();
    if (!status && (count == 1 || count >= dims))
        status = rt_list_make((size_t)dims, &made);
    for (int i = 0; i < dims && made.tag == RT_TAG_LIST && !status; i++)
        status = rt_list_append(made.as.list, rt_int(items[count == 1 ? 0 : count - dims + i]));
    ir_value *v = NULL;
    if (!status && made.tag == RT_TAG_LIST)
        v = ir_build_const_typed(&o->b, made, ir_type_list(o->m, ir_type_simple(o->m, IR_INT)));
    ts_status_release(status);
    rt_release(made);
    return v;
}

/* like: the type of the operator's result. */
static ir_value *convolution_sums(opener *o, const layer *l, ir_value *bytes, ir_value *zero_point,
                                  const ir_type *like) {
    const rt_tensor *w = l->weight;
    int64_t sizes[4], transposed = rt_as_int(l->items[7]), groups = rt_as_int(l->items[6]);
    int rank = bytes->type->rank;
    bool is_flat = rank == 3 && w->rank == 4 && w->sizes[2] == 1; /* a 1d layer, packed as a 2d one */
    if (transposed || groups < 1 || (w->rank != rank && !is_flat) || rank < 3 || rank > 4 ||
        bytes->type->dims[1] != w->sizes[1] * groups)
        return NULL;
    for (int d = 0; d < rank; d++)
        sizes[d] = w->sizes[is_flat && d == 2 ? 3 : d];
    ir_value *args[7] = {bytes, byte_weight(o, l, sizes, rank), zero_point};
    for (int i = 0; i < 3; i++)
        args[3 + i] = numbers(o, l->items[3 + i], rank - 2);
    args[6] = ir_build_int(&o->b, groups);
    if (!args[1] || !args[3] || !args[4] || !args[5])
        return NULL;
    return core(o, OP_integer_convolution, with_dtype(o, like, RT_int32), args, 7);
}

static bool open_layer(opener *o, ir_op *op, bool is_linear, bool relu, size_t scale) {
    const quantum *x = quantum_of(o, op->operands[0]);
    layer l;
    quantum q;
    if (!x || !ir_type_is_known_tensor(x->bytes->type) || !read_layer(op->operands[1], is_linear ? "linear" : "conv", is_linear ? 3 : 9, &l) ||
        !target_of(op, scale, scale + 1, x->dtype, &q) || !scale_is_usable(x->scale))
        return false;
    double in_scale = x->scale;
    ir_value *zero = ir_build_int(&o->b, x->zero_point);
    ir_value *sums = is_linear ? linear_sums(o, &l, x->bytes, zero)
                               : convolution_sums(o, &l, x->bytes, zero, op->results[0]->type);
    int behind = sums && !is_linear ? sums->type->rank - 2 : 0;
    if (!sums || !requantize(o, &l, sums, in_scale, behind, relu, &q))
        return false;
    set_result(o, op, q);
    return true;
}

/* x as bytes of a scale chosen for all of it. */
static ir_value *choose(opener *o, ir_value *x, ir_value *reduce_range, ir_value **out_scale,
                        ir_value **out_zero_point) {
    ir_value *given[3] = {x, NULL, NULL};
    ir_op *ends = pass_build_core(&o->b, "aminmax", given, 3);
    for (int i = 0; i < 2; i++)
        ends->results[i]->type = ir_type_tensor(o->m, RT_float32, 0, NULL, IR_LAYOUT_ANY);
    ir_value *args[3] = {ends->results[0], ends->results[1], reduce_range};
    ir_op *chosen = ir_build_core(&o->b, OP_choose_scale, args, 3);
    *out_scale = chosen->results[0];
    *out_zero_point = chosen->results[1];
    ir_value *parts[5] = {x, *out_scale, *out_zero_point, ir_build_int(&o->b, RT_uint8),
                          ir_build_bool(&o->b, false)};
    return core(o, OP_quantize_bytes, with_dtype(o, x->type, RT_uint8), parts, 5);
}

static bool open_dynamic(opener *o, ir_op *op, const ir_value *packed, ir_value *reduce_range, bool is_linear,
                         bool relu) {
    ir_value *x = op->operands[0], *scale, *zero;
    layer l;
    if (!is_float_tensor(x) || x->type->rank < 2 || !ir_type_is_known_tensor(x->type) ||
        !read_layer(packed, is_linear ? "linear" : "conv", is_linear ? 3 : 9, &l))
        return false;
    if (is_linear && l.weight->dtype == RT_float32) { /* of half precision: nothing is rounded here */
        rt_value weight = l.items[1], bias = l.items[2];
        ir_value *args[3] = {x, ir_build_const(&o->b, weight), ir_build_const(&o->b, bias)};
        ir_value *y = core(o, OP_linear, op->results[0]->type, args, 3);
        replace_result(o, op, relu ? core(o, OP_relu, y->type, &y, 1) : y);
        return true;
    }
    for (int d = 0; d < x->type->rank; d++) /* extremes of nothing raise */
        if (x->type->dims[d] == 0)
            return false;
    ir_value *bytes = choose(o, x, reduce_range, &scale, &zero);
    ir_value *sums = is_linear ? linear_sums(o, &l, bytes, zero)
                               : convolution_sums(o, &l, bytes, zero, op->results[0]->type);
    ir_value *y = sums ? scale_sums(o, &l, sums, scale, is_linear ? 0 : sums->type->rank - 2) : NULL;
    if (!y)
        return false; /* what was built is dead */
    replace_result(o, op, relu ? core(o, OP_relu, y->type, &y, 1) : y);
    return true;
}

/* One side of a recurrent cell. */
static bool open_cell(opener *o, ir_op *op) {
    rt_value v;
    const rt_tuple *t = ir_const_value(op->operands[1], &v) ? rt_packed_tuple(v) : NULL;
    bool hidden;
    if (!t || t->count != 5 || t->items[4].as.i || !ir_const_bool(op->operands[2], &hidden))
        return false;
    ir_value *side = ir_build_const(&o->b, t->items[hidden ? 3 : 2]);
    return open_dynamic(o, op, side, ir_build_bool(&o->b, t->items[1].as.i != 0), true, false);
}

/* ---- plain operators on quantized tensors ---- */

/* Operators that move elements or compare them: they do to bytes what they do to values. */
static const rt_op on_bytes[] = {
    OP_max_pool1d, OP_max_pool2d, OP_max_pool3d, OP_flip, OP_index_select, OP_pixel_shuffle,
};

static bool works_on_bytes(const ir_op *op) {
    if (ir_view_kind_of(op) != IR_VIEW_NONE)
        return true;
    for (size_t i = 0; i < sizeof on_bytes / sizeof *on_bytes; i++)
        if (ir_is_core(op, on_bytes[i]))
            return true;
    return false;
}

static bool has_quantized_tensor(const ir_op *op, size_t from) {
    for (size_t i = from; i < op->operand_count; i++)
        if (op->operands[i]->type->kind == IR_TENSOR &&
            rt_dtype_category(op->operands[i]->type->dtype) == 'q')
            return true;
    return false;
}

static bool open_on_bytes(opener *o, ir_op *op) {
    const quantum *x = quantum_of(o, op->operands[0]);
    if (!x || op->result_count != 1 || op->operand_count > RT_LIFT_ARGS || has_quantized_tensor(op, 1))
        return false;
    quantum q = *x;
    ir_value *args[RT_LIFT_ARGS] = {q.bytes};
    q.bytes = again(o, op, with_dtype(o, op->results[0]->type, q.dtype), args);
    set_result(o, op, q);
    return true;
}

/* cat, stack: parts under the first one's scale. */
static bool open_concat(opener *o, ir_op *op) {
    ir_op *list = op->operands[0]->def;
    const quantum *first;
    if (!list || list->opcode != IR_OP_LIST || list->operand_count == 0 ||
        !ir_list_is_stable(op->operands[0]) || !(first = quantum_of(o, list->operands[0])))
        return false;
    quantum q = *first;
    ir_value **parts = TS_NEW_ARRAY(o->ctx->scratch, ir_value *, list->operand_count);
    for (size_t i = 0; i < list->operand_count; i++) {
        const quantum *part = quantum_of(o, list->operands[i]);
        if (!part)
            return false;
        quantum copy = *part;
        parts[i] = rescale(o, &copy, &q, list->operands[i]->type);
    }
    const ir_type *tensors = ir_type_list(o->m, ir_type_any_tensor(o->m));
    ir_value *args[RT_LIFT_ARGS] = {
        ir_build_op(&o->b, IR_OP_LIST, parts, list->operand_count, &tensors, 1)->results[0]};
    q.bytes = again(o, op, with_dtype(o, op->results[0]->type, q.dtype), args);
    set_result(o, op, q);
    return true;
}

/* chunk, split: a list of views that is taken apart. */
static bool open_parts(opener *o, ir_op *op) {
    const quantum *x = quantum_of(o, op->operands[0]);
    ir_value *old = op->results[0];
    ir_op *unpack = old->use_count == 1 ? old->uses[0].op : NULL;
    if (!x || !unpack || unpack->opcode != IR_OP_LIST_UNPACK)
        return false;
    quantum q = *x;
    ir_value *args[RT_LIFT_ARGS] = {q.bytes};
    ir_value *list = again(o, op, ir_type_list(o->m, ir_type_any_tensor(o->m)), args);
    const ir_type **types = TS_NEW_ARRAY(o->m->arena, const ir_type *, unpack->result_count + 1);
    for (size_t i = 0; i < unpack->result_count; i++)
        types[i] = with_dtype(o, unpack->results[i]->type, q.dtype);
    ir_op *parts = ir_build_op(&o->b, IR_OP_LIST_UNPACK, &list, 1, types, unpack->result_count);
    for (size_t i = 0; i < unpack->result_count; i++) {
        quantum part = q;
        part.bytes = parts->results[i];
        remember(o, unpack->results[i], part);
    }
    TS_APPEND(o->ctx->scratch, o->opened.items, o->opened.count, o->opened.capacity, op);
    TS_APPEND(o->ctx->scratch, o->opened.items, o->opened.count, o->opened.capacity, unpack);
    pass_count(o->ctx, "opened", 1);
    return true;
}

static bool open_lifted(opener *o, ir_op *op, rt_lift lift) {
    const quantum *x = op->operands[0]->type->kind == IR_TENSOR ? quantum_of(o, op->operands[0]) : NULL;
    const ir_type *t = op->results[0]->type;
    if (!x || op->result_count != 1 || t->kind != IR_TENSOR || op->operand_count > RT_LIFT_ARGS ||
        has_quantized_tensor(op, 1) || rt_dtype_category(t->dtype) != 'q')
        return false;
    quantum q = *x;
    if (ir_is_core(op, OP_relu)) {
        ir_value *args[2] = {q.bytes, ir_build_int(&o->b, q.zero_point)};
        q.bytes = core(o, OP_clamp_min, with_dtype(o, t, q.dtype), args, 2);
        set_result(o, op, q);
        return true;
    }
    if (lift == RT_LIFT_UNSIGNED_UNIT || lift == RT_LIFT_SIGNED_UNIT) {
        bool is_signed = q.dtype == RT_int8;
        q.scale = lift == RT_LIFT_UNSIGNED_UNIT ? 1.0 / 256 : 2.0 / 256;
        q.zero_point = lift == RT_LIFT_UNSIGNED_UNIT ? (is_signed ? -128 : 0) : is_signed ? 0 : 128;
    }
    double scale = lift == RT_LIFT_MEAN ? 1 : x->scale; /* means of integers are exact until they are divided */
    ir_value *args[RT_LIFT_ARGS] = {dequantize(o, x, scale, op->operands[0]->type)};
    ir_value *y = again(o, op, with_dtype(o, t, RT_float32), args);
    q.bytes = quantize(o, y, lift == RT_LIFT_MEAN ? 1 : q.scale, q.zero_point, q.dtype);
    set_result(o, op, q);
    return true;
}

/* ---- the walk ---- */

/* Nobody writes to the tensor or hands it on. */
static bool is_only_read(const ir_value *v) {
    for (size_t i = 0; i < v->use_count; i++) {
        const ir_op *user = v->uses[i].op;
        if (user->opcode != IR_OP_CORE || (ir_effects(user) & (IR_EFFECT_WRITES | IR_EFFECT_ALIASES)))
            return false;
    }
    return true;
}

static bool open_question(opener *o, ir_op *op) {
    const quantum *x = quantum_of(o, op->operands[0]);
    if (!x)
        return false;
    ir_value *with = op->core == OP_int_repr  ? x->bytes
                     : op->core == OP_q_scale ? ir_build_float(&o->b, x->scale)
                                              : ir_build_int(&o->b, x->zero_point);
    if (op->core == OP_int_repr && !is_only_read(op->results[0])) { /* a tensor of its own */
        ir_value *given[1] = {with};
        with = pass_build_core(&o->b, "clone", given, 1)->results[0];
        with->type = x->bytes->type;
    }
    replace_result(o, op, with);
    return true;
}

static bool open_op(opener *o, ir_op *op) {
    bool in_place;
    switch (op->core) {
    case OP_quantize_per_tensor: return open_quantize(o, op);
    case OP_dequantize_self: return open_dequantize(o, op);
    case OP_int_repr: case OP_q_scale: case OP_q_zero_point: return open_question(o, op);
    case OP_quantized_linear: return open_layer(o, op, true, false, 2);
    case OP_quantized_linear_relu: return open_layer(o, op, true, true, 2);
    case OP_quantized_conv1d: case OP_quantized_conv2d_new: return open_layer(o, op, false, false, 2);
    case OP_quantized_conv1d_relu: case OP_quantized_conv2d_relu_new: return open_layer(o, op, false, true, 2);
    case OP_quantized_conv2d: return open_layer(o, op, false, false, 6);
    case OP_quantized_conv2d_relu: return open_layer(o, op, false, true, 6);
    case OP_quantized_linear_dynamic:
        return open_dynamic(o, op, op->operands[1], op->operands[2], true, false);
    case OP_quantized_linear_relu_dynamic:
        return open_dynamic(o, op, op->operands[1], op->operands[2], true, true);
    case OP_quantized_linear_dynamic_fp16:
        return open_dynamic(o, op, op->operands[1], NULL, true, false);
    case OP_quantized_conv1d_dynamic: case OP_quantized_conv2d_dynamic:
        return open_dynamic(o, op, op->operands[1], op->operands[2], false, false);
    case OP_quantized_cell: return open_cell(o, op);
    case OP_cat: case OP_stack: return open_concat(o, op);
    case OP_chunk: case OP_split_Tensor: return open_parts(o, op);
    default: break;
    }
    if (op->operand_count == 0 || op->result_count == 0)
        return false;
    if (works_on_bytes(op))
        return open_on_bytes(o, op);
    rt_lift lift = rt_lift_of(rt_op_name(op->core), &in_place);
    return lift != RT_LIFT_NONE && !in_place && open_lifted(o, op, lift);
}

static bool writes_quantized(const ir_block *block, int depth) {
    for (const ir_op *op = block->first; op; op = op->next) {
        for (size_t i = 0; i < op->region_count; i++)
            if (depth > 200 || writes_quantized(op->regions[i], depth + 1))
                return true;
        for (size_t i = 0; op->opcode == IR_OP_CORE && i < op->operand_count; i++)
            if (ir_op_writes(op, i) && op->operands[i]->type->kind == IR_TENSOR &&
                (op->operands[i]->type->dtype == RT_DTYPE_UNKNOWN ||
                 rt_dtype_category(op->operands[i]->type->dtype) == 'q'))
                return true;
    }
    return false;
}

static void clear_numbers(ir_block *block, int depth) {
    for (size_t i = 0; i < block->parameter_count; i++)
        block->parameters[i]->number = 0;
    for (ir_op *op = block->first; op && depth <= 1000; op = op->next) {
        for (size_t i = 0; i < op->result_count; i++)
            op->results[i]->number = 0;
        for (size_t i = 0; i < op->region_count; i++)
            clear_numbers(op->regions[i], depth + 1);
    }
}

/* Whoever still reads the quantized tensor gets it from its bytes. */
static void close(opener *o, ir_op *op) {
    for (size_t i = 0; i < op->result_count; i++) {
        ir_value *old = op->results[i];
        if (old->use_count == 0 || old->type->kind != IR_TENSOR)
            continue;
        const quantum *q = &o->quanta[old->number - 1];
        o->b = pass_before(o->m, op);
        ir_value *args[3] = {q->bytes, ir_build_float(&o->b, q->scale), ir_build_int(&o->b, q->zero_point)};
        pass_replace(o->m, old, core(o, OP_make_per_tensor_quantized, old->type, args, 3));
    }
    ir_op_remove(op);
}

static void open_function(opener *o, ir_function *f) {
    clear_numbers(f->body, 0);
    o->count = o->opened.count = 0;
    pass_op_list ops = pass_collect(o->ctx, f);
    for (size_t i = 0; i < ops.count; i++) {
        ir_op *op = ops.items[i];
        if (!pass_is_linked(op) || op->opcode != IR_OP_CORE)
            continue;
        ir_op *before = op->previous;
        o->b = pass_before(o->m, op);
        if (open_op(o, op))
            continue;
        while (op->previous != before) /* built for nothing */
            ir_op_remove(op->previous);
    }
    for (size_t i = o->opened.count; i-- > 0;)
        close(o, o->opened.items[i]);
    for (size_t i = 0; i < ops.count; i++) { /* of an earlier round, no longer read */
        ir_op *op = ops.items[i];
        if (pass_is_linked(op) && ir_is_core(op, OP_make_per_tensor_quantized) &&
            is_bytes(op->operands[0]) && op->results[0]->use_count == 0)
            ir_op_remove(op);
    }
}

ts_status pass_open_quantized(pass_context *ctx, ir_module *m) {
    opener o = {.ctx = ctx, .m = m};
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->body && !writes_quantized(f->body, 0))
            open_function(&o, f);
    return NULL;
}
