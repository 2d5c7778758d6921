/* frontend/archive/packed.c - Conv2dPackedParamsBase, Conv3dPackedParamsBase, LinearPackedParamsBase
 * and CellParamsBase: what their __getstate__ wrote, in all versions.
 *
 *   linear     (weight, bias)
 *   conv 1     (weight, bias, stride, padding, dilation: lists of 1-element tensors, groups: tensor)
 *   conv 2     ("2", [config, weight], [bias]): config is a tensor of int16
 *   conv 3     (3, config: list of ints, [None, weight, bias])
 *   cell       (kind, [b_ih, b_hh], doubles, [reduce_range], [packed w_ih, packed w_hh])
 *   embedding  (1, [weight], doubles, ints)
 *
 * config: dims, stride, padding, dilation, output padding (dims each), groups, transposed. */
#include "frontend/archive/packed.h"

static ts_status bad(const char *what) {
    return ts_error_make(TS_ERR_INVALID_FILE, "state of packed parameters: %s", what);
}

static bool is_tensor(rt_value v) { return v.tag == RT_TAG_TENSOR; }

static bool is_optional_tensor(rt_value v) { return is_tensor(v) || v.tag == RT_TAG_NONE; }

/* config: stride, padding, dilation and, where has_extra, output padding. */
static ts_status make_conv(rt_value weight, rt_value bias, const int64_t *config, size_t dims,
                           int64_t groups, bool transposed, bool has_extra, rt_value *out) {
    rt_value items[8] = {weight, bias, rt_none(), rt_none(), rt_none(), rt_int(groups),
                         rt_int(transposed), rt_none()};
    static const size_t places[4] = {2, 3, 4, 7};
    ts_status status = NULL;
    for (size_t i = 0; i < (has_extra ? 4u : 3u) && !status; i++)
        status = rt_int_list_make(config + i * dims, dims, &items[places[i]]);
    if (!status)
        status = rt_packed_of("conv", items, 8, out);
    for (size_t i = 0; i < 4; i++)
        rt_release(items[places[i]]);
    return status;
}

static ts_status from_config(const int64_t *config, size_t count, rt_value weight, rt_value bias,
                             rt_value *out) {
    size_t dims = count ? (size_t)config[0] : 0;
    if (dims < 1 || dims > 3 || count != 3 + 4 * dims)
        return bad("an odd configuration");
    if (!is_tensor(weight) || !is_optional_tensor(bias))
        return bad("expected a weight and a bias");
    return make_conv(weight, bias, config + 1, dims, config[count - 2], config[count - 1] & 1,
                     true, out);
}

enum { CONFIG_MAX = 16 };

static ts_status tensor_ints(rt_value v, int64_t *out, size_t *out_count) {
    *out_count = 0;
    if (!is_tensor(v) || v.as.tensor->element_count > CONFIG_MAX)
        return bad("expected a short tensor of ints");
    rt_cursor c;
    for (rt_cursor_start(&c, v.as.tensor); c.left; rt_cursor_next(&c))
        out[(*out_count)++] = rt_load_int((rt_dtype)v.as.tensor->dtype, c.data);
    return NULL;
}

static ts_status conv_1(const rt_tuple *s, rt_value *out) {
    int64_t config[CONFIG_MAX], groups[CONFIG_MAX];
    size_t count = 0, one = 0;
    if (!is_tensor(s->items[0]) || !is_optional_tensor(s->items[1]))
        return bad("expected a weight and a bias");
    for (size_t i = 2; i < 5; i++) {
        if (s->items[i].tag != RT_TAG_LIST)
            return bad("expected lists of tensors");
        const rt_list *l = s->items[i].as.list;
        for (size_t k = 0; k < l->count; k++) {
            int64_t value[CONFIG_MAX];
            TS_TRY(tensor_ints(l->items[k], value, &one));
            if (one != 1 || count == CONFIG_MAX)
                return bad("expected tensors of one element");
            config[count++] = value[0];
        }
    }
    TS_TRY(tensor_ints(s->items[5], groups, &one));
    if (one != 1 || count == 0 || count % 3 != 0)
        return bad("an odd configuration");
    return make_conv(s->items[0], s->items[1], config, count / 3, groups[0], false, false, out);
}

static ts_status conv(const rt_tuple *s, rt_value *out) {
    if (s->count == 6)
        return conv_1(s, out);
    if (s->count != 3)
        return bad("expected three or six parts");
    int64_t config[CONFIG_MAX];
    size_t count = 0;
    if (s->items[0].tag == RT_TAG_STR) {
        if (s->items[1].tag != RT_TAG_LIST || s->items[1].as.list->count != 2 ||
            s->items[2].tag != RT_TAG_LIST || s->items[2].as.list->count != 1)
            return bad("expected lists of two and one");
        TS_TRY(tensor_ints(s->items[1].as.list->items[0], config, &count));
        return from_config(config, count, s->items[1].as.list->items[1],
                           s->items[2].as.list->items[0], out);
    }
    if (s->items[0].tag != RT_TAG_INT || s->items[1].tag != RT_TAG_LIST ||
        s->items[2].tag != RT_TAG_LIST || s->items[2].as.list->count != 3)
        return bad("expected a version, a configuration and tensors");
    const rt_list *ints = s->items[1].as.list;
    for (size_t i = 0; i < ints->count && count < CONFIG_MAX; i++)
        config[count++] = ints->items[i].as.i;
    return from_config(config, count, s->items[2].as.list->items[1],
                       s->items[2].as.list->items[2], out);
}

static ts_status cell(const rt_tuple *s, rt_value *out) {
    if (s->count != 5 || s->items[4].tag != RT_TAG_LIST || s->items[4].as.list->count != 2 ||
        s->items[3].tag != RT_TAG_LIST)
        return bad("expected five parts");
    const rt_list *weights = s->items[4].as.list, *flags = s->items[3].as.list;
    for (size_t i = 0; i < 2; i++)
        if (!rt_packed_tuple(weights->items[i]))
            return bad("expected packed weights");
    /* Cells from before the flag were made, and their results recorded, on processors whose sums of two
     * products are cut to 16 bits; such a cell keeps that meaning. Later ones reduce the range or
     * need not. */
    bool is_old = flags->count == 0 && s->items[0].tag == RT_TAG_STR &&
                  ts_str_is(rt_str_text(s->items[0].as.str), "quantized_dynamic");
    bool reduce_range = flags->count && flags->items[0].as.i != 0;
    rt_value items[4] = {rt_bool(reduce_range), weights->items[0], weights->items[1],
                         rt_bool(is_old)};
    return rt_packed_of("cell", items, 4, out);
}

static ts_status embedding(const rt_tuple *s, rt_value *out) {
    if (s->count != 4 || s->items[0].tag != RT_TAG_INT || s->items[1].tag != RT_TAG_LIST ||
        s->items[1].as.list->count != 1 || !is_tensor(s->items[1].as.list->items[0]))
        return bad("expected a version and a weight");
    return rt_packed_of("embedding", s->items[1].as.list->items, 1, out);
}

/* ---- parameters for XNNPACK: plain weights, and bounds of the result ---- */

static bool float_or_none(rt_value v, rt_value *out) {
    *out = v.tag == RT_TAG_INT ? rt_float((double)v.as.i) : v;
    return out->tag == RT_TAG_FLOAT || out->tag == RT_TAG_NONE;
}

static bool are_ints(rt_value v) {
    for (size_t i = 0; v.tag == RT_TAG_LIST && i < v.as.list->count; i++)
        if (v.as.list->items[i].tag != RT_TAG_INT)
            return false;
    return v.tag == RT_TAG_LIST;
}

/* (weight, bias, lowest, highest) */
static ts_status xnn_linear(const rt_tuple *s, rt_value *out) {
    rt_value items[4];
    if (s->count != 4 || !is_tensor(s->items[0]) || !is_optional_tensor(s->items[1]) ||
        !float_or_none(s->items[2], &items[2]) || !float_or_none(s->items[3], &items[3]))
        return bad("expected a weight, a bias and two bounds");
    items[0] = s->items[0];
    items[1] = s->items[1];
    return rt_packed_of("xnn_linear", items, 4, out);
}

/* (weight, bias, stride, padding, [output padding,] dilation, groups, lowest, highest) */
static ts_status xnn_conv(const rt_tuple *s, bool transposed, rt_value *out) {
    size_t extra = transposed;
    rt_value items[10];
    if (s->count != 8 + extra || !is_tensor(s->items[0]) || !is_optional_tensor(s->items[1]))
        return bad("expected a weight, a bias and a configuration");
    for (size_t i = 2; i < 5 + extra; i++)
        if (!are_ints(s->items[i]))
            return bad("expected lists of ints");
    if (s->items[5 + extra].tag != RT_TAG_INT || !float_or_none(s->items[6 + extra], &items[8]) ||
        !float_or_none(s->items[7 + extra], &items[9]))
        return bad("expected a number of groups and two bounds");
    for (size_t i = 0; i < 4; i++)
        items[i] = s->items[i];
    items[4] = s->items[4 + extra];
    items[5] = s->items[5 + extra];
    items[6] = rt_int(transposed);
    items[7] = transposed ? s->items[4] : rt_none();
    return rt_packed_of("xnn_conv", items, 10, out);
}

ts_status fe_packed_from_state(ts_str class_name, rt_value state, rt_value *out) {
    *out = rt_none();
    if (state.tag != RT_TAG_TUPLE)
        return bad("expected a tuple");
    const rt_tuple *s = state.as.tuple;
    if (ts_str_ends_with(class_name, "quantized.LinearPackedParamsBase")) {
        if (s->count != 2 || !is_tensor(s->items[0]) || !is_optional_tensor(s->items[1]))
            return bad("expected a weight and a bias");
        return rt_packed_of("linear", s->items, 2, out);
    }
    if (ts_str_ends_with(class_name, "xnnpack.LinearOpContext"))
        return xnn_linear(s, out);
    if (ts_str_ends_with(class_name, "xnnpack.Conv2dOpContext"))
        return xnn_conv(s, false, out);
    if (ts_str_ends_with(class_name, "xnnpack.TransposeConv2dOpContext"))
        return xnn_conv(s, true, out);
    if (ts_str_ends_with(class_name, "quantized.EmbeddingPackedParamsBase"))
        return embedding(s, out);
    if (ts_str_ends_with(class_name, "PackedParamsBase"))
        return conv(s, out);
    if (ts_str_ends_with(class_name, "rnn.CellParamsBase"))
        return cell(s, out);
    return ts_error_make(TS_ERR_UNSUPPORTED, "custom class %.*s is not supported yet",
                         TS_STR_ARG(class_name));
}
