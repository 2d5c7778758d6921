/* frontend/init_eval_torch.c - the evaluator of scripts: what is called by a dotted name and is no
 * function of ours: torch.zeros, nn.Parameter, copy.deepcopy, functools.partial, ... and the methods
 * of tensors. */
#include <math.h>
#include <stdlib.h>

#include "frontend/init_eval_builtin.h"
#include "runtime/values/tensor.h"

/* ---- making tensors ---- */

/* Nested data as lists of numbers: tuples, ranges, tensors of one element. */
static ts_status plain_data(evaluator *ev, rt_value v, int depth, rt_value *out) {
    *out = rt_none();
    if (depth > RT_MAX_RANK)
        return ts_raise("ValueError", "too many dimensions");
    if (v.tag == RT_TAG_TENSOR) {
        if (v.as.tensor->rank == 0)
            return rt_tensor_item(v.as.tensor, out);
        rt_value list;
        TS_TRY(ev_to_list(ev, v, &list));
        ts_status status = plain_data(ev, list, depth, out);
        rt_release(list);
        return status;
    }
    if (!ev_is_sequence(v) && !ev_as_range(v)) {
        *out = rt_retain(v);
        return NULL;
    }
    rt_value list, made;
    TS_TRY(ev_to_list(ev, v, &list));
    ts_status status = rt_list_make(list.as.list->count, &made);
    for (size_t i = 0; i < list.as.list->count && !status; i++) {
        rt_value item;
        status = plain_data(ev, list.as.list->items[i], depth + 1, &item);
        if (!status)
            status = rt_list_append(made.as.list, item);
        rt_release(item);
    }
    rt_release(list);
    *out = made;
    return status;
}

static rt_value dtype_argument(rt_value v) {
    fe_binding b = fe_binding_of_value(v);
    if (b.kind != FE_NAME)
        return v;
    if (ts_str_is(b.path, "builtins.float"))
        return rt_int(RT_float32);
    if (ts_str_is(b.path, "builtins.int"))
        return rt_int(RT_int64);
    if (ts_str_is(b.path, "builtins.bool"))
        return rt_int(RT_bool);
    if (ts_str_is(b.path, "builtins.complex"))
        return rt_int(RT_complex64);
    return v;
}

static ts_status make_tensor(evaluator *ev, ev_arguments *args, bool is_copy, rt_value *out) {
    if (!args->count || args->items[0].name.length)
        return ts_raise("TypeError", "tensor() missing 1 required positional argument: 'data'");
    rt_value dtype = rt_none(), v = ARG(0);
    for (size_t i = 1; i < args->count; i++)
        if (ts_str_is(args->items[i].name, "dtype") || (!args->items[i].name.length && i == 1))
            dtype = ARG(i);
    rt_dtype wanted = ev_is_int(dtype) ? (rt_dtype)dtype.as.i : RT_DTYPE_UNKNOWN;
    if (v.tag == RT_TAG_TENSOR) {
        rt_tensor *t;
        TS_TRY(rt_tensor_cast(v.as.tensor,
                              wanted == RT_DTYPE_UNKNOWN ? (rt_dtype)v.as.tensor->dtype : wanted,
                              is_copy, &t));
        *out = rt_from_tensor(t);
        return NULL;
    }
    rt_value data;
    TS_TRY(plain_data(ev, v, 0, &data));
    ev_arguments two = {0};
    ev_arguments_add(ev, &two, (ts_str){0}, data);
    if (wanted != RT_DTYPE_UNKNOWN)
        ev_arguments_add(ev, &two, TS_STR("dtype"), dtype);
    ts_status status = ev_dispatch(ev, TS_STR("tensor"), &two, out);
    ev_arguments_release(&two);
    return status;
}

/* torch.FloatTensor(2, 3), torch.Tensor([1, 2]) */
static ts_status typed_tensor(evaluator *ev, rt_dtype dtype, ev_arguments *args, rt_value *out) {
    bool is_sizes = args->count > 0;
    for (size_t i = 0; i < args->count; i++)
        is_sizes &= ev_is_int(ARG(i));
    ev_arguments made = {0};
    rt_value list;
    ts_status status;
    if (is_sizes || !args->count) {
        TS_TRY(rt_list_make(args->count, &list));
        for (size_t i = 0; i < args->count; i++)
            TS_TRY(rt_list_append(list.as.list, ARG(i)));
        if (!args->count)
            TS_TRY(rt_list_append(list.as.list, rt_int(0)));
        ev_arguments_add(ev, &made, (ts_str){0}, list);
        ev_arguments_add(ev, &made, TS_STR("dtype"), rt_int(dtype));
        status = ev_dispatch(ev, TS_STR("zeros"), &made, out);
    } else {
        ev_arguments_add(ev, &made, (ts_str){0}, rt_retain(ARG(0)));
        ev_arguments_add(ev, &made, TS_STR("dtype"), rt_int(dtype));
        status = make_tensor(ev, &made, true, out);
    }
    ev_arguments_release(&made);
    return status;
}

static ts_status do_parameter(evaluator *ev, ev_arguments *args, uint32_t flag, rt_value *out) {
    rt_value slots[3];
    bool requires_grad = flag == EV_FLAG_PARAMETER;
    TS_TRY(ev_take(args, "Parameter", flag == EV_FLAG_PARAMETER ? "data,requires_grad" : "data,persistent", slots));
    if (flag == EV_FLAG_PARAMETER && ev_is_given(slots[1]))
        TS_TRY(ev_truth(ev, slots[1], &requires_grad));
    if (!ev_is_given(slots[0]) || rt_is_none(slots[0])) {
        ev_arguments none = {0};
        rt_value empty;
        TS_TRY(typed_tensor(ev, RT_float32, &none, &empty));
        ts_status status = ev_parameter_make(ev, empty, requires_grad, flag, out);
        rt_release(empty);
        return status;
    }
    if (slots[0].tag != RT_TAG_TENSOR)
        return ts_raise("TypeError", "'%.*s' object cannot be made a Parameter: expected a Tensor",
                        TS_STR_ARG(ev_type_name(slots[0])));
    if (requires_grad && !rt_dtype_is_float((rt_dtype)slots[0].as.tensor->dtype) &&
        !rt_dtype_is_complex((rt_dtype)slots[0].as.tensor->dtype))
        return ts_raise("RuntimeError",
                        "Only Tensors of floating point and complex dtype can require gradients");
    return ev_parameter_make(ev, slots[0], requires_grad, flag, out);
}

/* ---- small things of torch ---- */

static ts_status name_value(evaluator *ev, const char *path, rt_value *out) {
    return fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_NAME, .path = ts_str_of(path)}, out);
}

static ts_status do_device(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "device", 1, 2));
    if (ARG(0).tag == RT_TAG_DEVICE) {
        *out = ARG(0);
        return NULL;
    }
    if (!ev_is_str(ARG(0)))
        return ts_raise("TypeError", "device(): argument 'type' must be str");
    static const char *const names[] = {"cpu", "cuda", "opencl", "meta"};
    ts_str s = ev_text(ARG(0));
    for (uint32_t i = 0; i < 4; i++)
        if (ts_str_starts_with(s, names[i])) {
            size_t n = strlen(names[i]);
            int64_t index = args->count > 1 && ev_is_int(ARG(1)) ? ARG(1).as.i : -1;
            if (s.length > n + 1 && s.data[n] == ':')
                index = strtoll(s.data + n + 1, NULL, 10);
            *out = (rt_value){.tag = RT_TAG_DEVICE, .aux = i, .as.i = index};
            return NULL;
        }
    return ts_raise("RuntimeError", "Expected one of cpu, cuda device type at start of device string: %.*s",
                    TS_STR_ARG(s));
}

static ts_status record(evaluator *ev, const char *name, rt_value *out) {
    fe_class *c = TS_NEW(ev->arena, fe_class);
    c->name = c->bare_name = ts_str_of(name);
    c->kind = RT_CLASS_PLAIN;
    return ev_instance_make(ev, c, out);
}

static ts_status do_finfo(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "finfo", 0, 1));
    rt_dtype d = args->count ? (rt_dtype)dtype_argument(ARG(0)).as.i : RT_float32;
    double max = 3.4028234663852886e38, eps = 1.1920928955078125e-07, tiny = 1.1754943508222875e-38;
    if (d == RT_float64)
        max = 1.7976931348623157e308, eps = 2.220446049250313e-16, tiny = 2.2250738585072014e-308;
    else if (d == RT_float16)
        max = 65504, eps = 0.0009765625, tiny = 6.103515625e-05;
    else if (d == RT_bfloat16)
        max = 3.3895313892515355e38, eps = 0.0078125;
    TS_TRY(record(ev, "finfo", out));
    TS_TRY(ev_field_set(ev, *out, TS_STR("max"), rt_float(max), EV_PLAIN));
    TS_TRY(ev_field_set(ev, *out, TS_STR("min"), rt_float(-max), EV_PLAIN));
    TS_TRY(ev_field_set(ev, *out, TS_STR("eps"), rt_float(eps), EV_PLAIN));
    TS_TRY(ev_field_set(ev, *out, TS_STR("smallest_normal"), rt_float(tiny), EV_PLAIN));
    TS_TRY(ev_field_set(ev, *out, TS_STR("tiny"), rt_float(tiny), EV_PLAIN));
    return ev_field_set(ev, *out, TS_STR("bits"), rt_int((int64_t)rt_dtype_size(d) * 8), EV_PLAIN);
}

static ts_status do_iinfo(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "iinfo", 1, 1));
    rt_dtype d = (rt_dtype)dtype_argument(ARG(0)).as.i;
    int64_t bits = (int64_t)rt_dtype_size(d) * 8;
    int64_t max = d == RT_uint8 ? 255 : bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
    TS_TRY(record(ev, "iinfo", out));
    TS_TRY(ev_field_set(ev, *out, TS_STR("max"), rt_int(max), EV_PLAIN));
    TS_TRY(ev_field_set(ev, *out, TS_STR("min"), rt_int(d == RT_uint8 ? 0 : -max - 1), EV_PLAIN));
    return ev_field_set(ev, *out, TS_STR("bits"), rt_int(bits), EV_PLAIN);
}

static ts_status do_size(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_builtin(ev, TS_STR("builtins.tuple"), args, out));
    out->as.counted->flags |= EV_FLAG_SIZE;
    return NULL;
}

static ts_status first_argument(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "this function", 1, 16));
    *out = rt_retain(ARG(0));
    return NULL;
}

static ts_status second_argument(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "this function", 2, 2));
    *out = rt_retain(ARG(1));
    return NULL;
}

static ts_status nothing(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    (void)args;
    *out = rt_none();
    return NULL;
}

static ts_status is_false(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    (void)args;
    *out = rt_bool(false);
    return NULL;
}

static ts_status do_is_tensor(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "is_tensor", 1, 1));
    *out = rt_bool(ARG(0).tag == RT_TAG_TENSOR);
    return NULL;
}

static ts_status do_tensor(evaluator *ev, ev_arguments *args, rt_value *out) {
    return make_tensor(ev, args, true, out);
}
static ts_status do_as_tensor(evaluator *ev, ev_arguments *args, rt_value *out) {
    return make_tensor(ev, args, false, out);
}
static ts_status do_nn_parameter(evaluator *ev, ev_arguments *args, rt_value *out) {
    return do_parameter(ev, args, EV_FLAG_PARAMETER, out);
}
static ts_status do_nn_buffer(evaluator *ev, ev_arguments *args, rt_value *out) {
    return do_parameter(ev, args, EV_FLAG_BUFFER, out);
}

static ts_status do_set_grad_enabled(evaluator *ev, ev_arguments *args, rt_value *out) {
    bool on;
    TS_TRY(ev_wants(args, "set_grad_enabled", 1, 1));
    TS_TRY(ev_truth(ev, ARG(0), &on));
    ev->fe->runtime.grad_enabled = on;
    return name_value(ev, "torch.set_grad_enabled", out);
}

static ts_status do_is_grad_enabled(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)args;
    *out = rt_bool(ev->fe->runtime.grad_enabled);
    return NULL;
}

static ts_status do_default_dtype(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    (void)args;
    *out = rt_int(RT_float32);
    return NULL;
}

static ts_status do_set_default_dtype(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    (void)out;
    TS_TRY(ev_wants(args, "set_default_dtype", 1, 1));
    if (dtype_argument(ARG(0)).as.i == RT_float32)
        return NULL;
    return ts_error_make(TS_ERR_UNSUPPORTED, "a default dtype other than float32 is not supported");
}

static ts_status do_get_logger(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)args;
    return name_value(ev, "logging.logger", out);
}

/* ---- copy, functools, collections, dataclasses, itertools ---- */

static ts_status do_deepcopy(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "deepcopy", 1, 2));
    return ev_deep_copy(ev, ARG(0), true, out);
}
static ts_status do_copy(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "copy", 1, 1));
    return ev_deep_copy(ev, ARG(0), false, out);
}

static ts_status do_partial(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "partial", 1, 64));
    return ev_partial_make(ARG(0), args, out);
}

static ts_status do_reduce(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value list;
    TS_TRY(ev_wants(args, "reduce", 2, 3));
    TS_TRY(ev_to_list(ev, ARG(1), &list));
    size_t at = 0;
    rt_value total = rt_none();
    ts_status status = NULL;
    if (args->count > 2)
        total = rt_retain(ARG(2));
    else if (list.as.list->count)
        total = rt_retain(list.as.list->items[at++]);
    else
        status = ts_raise("TypeError", "reduce() of empty iterable with no initial value");
    for (; at < list.as.list->count && !status; at++) {
        rt_value pair[2] = {total, list.as.list->items[at]}, next;
        status = ev_call_with(ev, ARG(0), pair, 2, &next);
        rt_assign(&total, next);
    }
    rt_release(list);
    *out = total;
    return status;
}

static ts_status do_ordered_dict(evaluator *ev, ev_arguments *args, rt_value *out) {
    return ev_builtin(ev, TS_STR("builtins.dict"), args, out);
}

/* A dict of counts: those of a mapping, or how often each item is there. */
static ts_status do_counter(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value list;
    if (!args->count || args->items[0].name.length || ARG(0).tag == RT_TAG_DICT)
        return ev_builtin(ev, TS_STR("builtins.dict"), args, out);
    TS_TRY(ev_wants(args, "Counter", 1, 1));
    TS_TRY(rt_dict_make(out));
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    ts_status status = NULL;
    for (size_t i = 0; i < list.as.list->count && !status; i++) {
        rt_dict_entry *e;
        status = rt_dict_find(out->as.dict, list.as.list->items[i], &e);
        int64_t n = !status && e ? e->value.as.i : 0;
        if (!status)
            status = rt_dict_set(out->as.dict, list.as.list->items[i], rt_int(n + 1));
    }
    rt_release(list);
    return status;
}

static ts_status do_deque(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value length = ev_take_keyword(args, "maxlen");
    bool has_length = ev_is_given(length) && !rt_is_none(length);
    rt_release(length);
    if (has_length || args->count > 1)
        return ts_error_make(TS_ERR_UNSUPPORTED, "deque with maxlen is not supported");
    return ev_builtin(ev, TS_STR("builtins.list"), args, out);
}

static ts_status do_field(evaluator *ev, ev_arguments *args, rt_value *out) {
    return ev_builtin(ev, TS_STR("builtins.dict"), args, out);
}

static ts_status do_asdict(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "asdict", 1, 1));
    rt_value copy;
    TS_TRY(ev_deep_copy(ev, ARG(0), true, &copy));
    ts_status status = ev_get_attribute(ev, copy, TS_STR("__dict__"), out);
    rt_release(copy);
    return status;
}

static ts_status do_replace(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "replace", 1, 64));
    TS_TRY(ev_deep_copy(ev, ARG(0), false, out));
    for (size_t i = 1; i < args->count; i++)
        TS_TRY(ev_set_attribute(ev, *out, args->items[i].name, ARG(i)));
    return NULL;
}

static const struct {
    const char *path;
    ev_builtin_function run;
} functions[] = {
    {"torch.tensor", do_tensor}, {"torch.as_tensor", do_as_tensor}, {"torch.device", do_device},
    {"torch.nn.Parameter", do_nn_parameter}, {"torch.nn.Buffer", do_nn_buffer},
    {"torch.finfo", do_finfo}, {"torch.iinfo", do_iinfo}, {"torch.Size", do_size},
    {"torch.is_tensor", do_is_tensor}, {"torch.set_grad_enabled", do_set_grad_enabled},
    {"torch.is_grad_enabled", do_is_grad_enabled}, {"torch.get_default_dtype", do_default_dtype},
    {"torch.set_default_dtype", do_set_default_dtype}, {"torch.jit.script", first_argument},
    {"torch.jit.export", first_argument}, {"torch.jit.ignore", first_argument},
    {"torch.jit.unused", first_argument}, {"torch.jit.script_if_tracing", first_argument},
    {"torch.jit.interface", first_argument}, {"torch.compile", first_argument},
    {"torch.jit.is_scripting", is_false}, {"torch.jit.is_tracing", is_false},
    {"torch._jit_internal.is_scripting", is_false}, {"torch.jit.annotate", second_argument},
    {"torch.jit.Attribute", first_argument}, {"torch.cuda.is_available", is_false},
    {"torch.backends.mps.is_available", is_false}, {"torch.set_num_threads", nothing},
    {"torch.set_printoptions", nothing}, {"torch.use_deterministic_algorithms", nothing},
    {"torch.set_float32_matmul_precision", nothing}, {"torch.cuda.manual_seed", nothing},
    {"torch.cuda.manual_seed_all", nothing}, {"torch._assert", nothing},
    {"torch._C._log_api_usage_once", nothing}, {"warnings.warn", nothing},
    {"warnings.filterwarnings", nothing}, {"warnings.simplefilter", nothing},
    {"logging.getLogger", do_get_logger}, {"typing.cast", second_argument},
    {"copy.deepcopy", do_deepcopy}, {"copy.copy", do_copy}, {"functools.partial", do_partial},
    {"functools.reduce", do_reduce}, {"functools.lru_cache", first_argument},
    {"functools.cache", first_argument}, {"collections.OrderedDict", do_ordered_dict},
    {"typing.OrderedDict", do_ordered_dict}, {"collections.Counter", do_counter},
    {"collections.deque", do_deque},
    {"collections.namedtuple", ev_namedtuple}, {"typing.NamedTuple", ev_namedtuple}, {"dataclasses.field", do_field},
    {"dataclasses.asdict", do_asdict}, {"dataclasses.replace", do_replace},
    {"dataclasses.dataclass", first_argument}, {"itertools.chain", ev_chain},
    {"itertools.chain.from_iterable", ev_chain_from}, {"itertools.product", ev_product},
    {"itertools.repeat", ev_repeat}, {"itertools.accumulate", ev_accumulate}};

/* ---- methods of tensors that are no operators ---- */

static ts_status cast_to(rt_value t, rt_dtype dtype, rt_value *out) {
    rt_tensor *made;
    TS_TRY(rt_tensor_cast(t.as.tensor, dtype, false, &made));
    *out = rt_from_tensor(made);
    return NULL;
}

static ts_status nested_list(const rt_tensor *t, const char *data, int dim, rt_value *out) {
    if (dim == t->rank) {
        *out = rt_dtype_is_complex((rt_dtype)t->dtype) ? rt_none()
                                                        : rt_load_number((rt_dtype)t->dtype, data);
        if (rt_dtype_is_complex((rt_dtype)t->dtype)) {
            rt_complex128 c = rt_load_complex((rt_dtype)t->dtype, data);
            return rt_complex_make(c.re, c.im, out);
        }
        return NULL;
    }
    rt_value list;
    TS_TRY(rt_list_make((size_t)t->sizes[dim], &list));
    size_t width = rt_dtype_size((rt_dtype)t->dtype);
    ts_status status = NULL;
    for (int64_t i = 0; i < t->sizes[dim] && !status; i++) {
        rt_value item;
        status = nested_list(t, data + i * t->strides[dim] * (int64_t)width, dim + 1, &item);
        if (!status)
            status = rt_list_append(list.as.list, item);
        rt_release(item);
    }
    *out = list;
    return status;
}

static ts_status tensor_to(evaluator *ev, rt_value self, ev_arguments *args, rt_value *out) {
    rt_dtype dtype = (rt_dtype)self.as.tensor->dtype;
    bool copy = false;
    for (size_t i = 1; i < args->count; i++) {
        rt_value v = dtype_argument(ARG(i));
        if (ts_str_is(args->items[i].name, "copy"))
            TS_TRY(ev_truth(ev, v, &copy));
        else if (v.tag == RT_TAG_INT && (!args->items[i].name.length || ts_str_is(args->items[i].name, "dtype")))
            dtype = (rt_dtype)v.as.i;
        else if (v.tag == RT_TAG_TENSOR)
            dtype = (rt_dtype)v.as.tensor->dtype;
    }
    if (rt_dtype_size(dtype) == 0)
        return ts_raise("RuntimeError", "to(): unknown dtype");
    rt_tensor *made;
    TS_TRY(rt_tensor_cast(self.as.tensor, dtype, copy, &made));
    *out = rt_from_tensor(made);
    return NULL;
}

static ts_status tensor_method(evaluator *ev, ts_str name, ev_arguments *args, bool *out_found,
                               rt_value *out) {
    static const struct {
        const char *name;
        rt_dtype dtype;
    } casts[] = {{"float", RT_float32}, {"double", RT_float64}, {"half", RT_float16},
                 {"bfloat16", RT_bfloat16}, {"long", RT_int64}, {"int", RT_int32},
                 {"short", RT_int16}, {"char", RT_int8}, {"byte", RT_uint8}, {"bool", RT_bool},
                 {"cfloat", RT_complex64}, {"cdouble", RT_complex128}};
    rt_value self = ARG(0);
    rt_tensor *t = self.as.tensor;
    *out_found = true;
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        if (ts_str_is(name, casts[i].name))
            return cast_to(self, casts[i].dtype, out);
    if (ts_str_is(name, "to") || ts_str_is(name, "type"))
        return tensor_to(ev, self, args, out);
    if (ts_str_is(name, "cpu") || ts_str_is(name, "cuda") || ts_str_is(name, "pin_memory") ||
        ts_str_is(name, "share_memory_")) {
        *out = rt_retain(self);
        return NULL;
    }
    if (ts_str_is(name, "item"))
        return rt_tensor_item(t, out);
    if (ts_str_is(name, "tolist"))
        return nested_list(t, t->data, 0, out);
    if (ts_str_is(name, "size") || ts_str_is(name, "stride")) {
        const int64_t *list = ts_str_is(name, "size") ? t->sizes : t->strides;
        if (args->count == 1) {
            TS_TRY(rt_tuple_make((size_t)t->rank, out));
            if (list == t->sizes)
                out->as.counted->flags |= EV_FLAG_SIZE;
            for (int i = 0; i < t->rank; i++)
                out->as.tuple->items[i] = rt_int(list[i]);
            return NULL;
        }
        int64_t dim = ev_is_int(ARG(1)) ? ARG(1).as.i : 0;
        if (dim < -t->rank || dim >= t->rank)
            return ts_raise("IndexError",
                            "Dimension out of range (expected to be in range of [%d, %d], but got %lld)",
                            -(int)t->rank, (int)t->rank - 1, (long long)dim);
        *out = rt_int(list[dim < 0 ? dim + t->rank : dim]);
        return NULL;
    }
    if (ts_str_is(name, "dim") || ts_str_is(name, "ndimension") || ts_str_is(name, "numel") ||
        ts_str_is(name, "nelement") || ts_str_is(name, "element_size")) {
        *out = rt_int(ts_str_is(name, "element_size") ? (int64_t)rt_dtype_size((rt_dtype)t->dtype)
                      : name.data[0] == 'n' && name.data[1] != 'd' ? t->element_count
                                                                    : t->rank);
        return NULL;
    }
    if (ts_str_is(name, "requires_grad_")) {
        bool on = true;
        if (args->count > 1)
            TS_TRY(ev_truth(ev, ARG(1), &on));
        t->requires_grad = on;
        *out = rt_retain(self);
        return NULL;
    }
    if (ts_str_is(name, "detach") || ts_str_is(name, "detach_"))
        return ev_parameter_make(ev, self, false, 0, out);
    if (ts_str_is(name, "clone")) {
        rt_tensor *copy;
        TS_TRY(rt_tensor_clone(t, &copy));
        *out = rt_from_tensor(copy);
        return NULL;
    }
    if (ts_str_is(name, "is_floating_point") || ts_str_is(name, "is_complex")) {
        *out = rt_bool(ts_str_is(name, "is_complex") ? rt_dtype_is_complex((rt_dtype)t->dtype)
                                                     : rt_dtype_is_float((rt_dtype)t->dtype));
        return NULL;
    }
    if (ts_str_is(name, "numpy") || ts_str_is(name, "backward") || ts_str_is(name, "register_hook"))
        return ts_error_make(TS_ERR_UNSUPPORTED, "Tensor.%.*s() is not available when a script is compiled",
                             TS_STR_ARG(name));
    *out_found = false;
    return NULL;
}

/* ---- the way in ---- */

static const struct {
    const char *name;
    rt_dtype dtype;
} typed[] = {{"torch.Tensor", RT_float32}, {"torch.FloatTensor", RT_float32},
             {"torch.DoubleTensor", RT_float64}, {"torch.LongTensor", RT_int64},
             {"torch.IntTensor", RT_int32}, {"torch.ShortTensor", RT_int16},
             {"torch.CharTensor", RT_int8}, {"torch.ByteTensor", RT_uint8},
             {"torch.BoolTensor", RT_bool}, {"torch.HalfTensor", RT_float16}};

static ts_status operator_call(evaluator *ev, ts_str name, ev_arguments *args, rt_value *out) {
    /* Values live in memory of the host here; where the model runs is decided later. */
    rt_release(ev_take_keyword(args, "device"));
    rt_release(ev_take_keyword(args, "pin_memory"));
    rt_release(ev_take_keyword(args, "layout"));
    rt_value grad = ev_take_keyword(args, "requires_grad");
    for (size_t i = 0; i < args->count; i++) {
        if (ts_str_is(args->items[i].name, "dtype")) {
            rt_value v = dtype_argument(ARG(i));
            if (v.tag != ARG(i).tag) {
                rt_release(ARG(i));
                args->items[i].value = v;
            }
        }
    }
    ts_status status = ev_dispatch(ev, name, args, out);
    if (!status && ev_is_given(grad) && out->tag == RT_TAG_TENSOR)
        out->as.tensor->requires_grad = grad.as.i != 0;
    rt_release(grad);
    return status;
}

ts_status ev_torch(evaluator *ev, ts_str path, ev_arguments *args, rt_value *out) {
    bool found = false;
    *out = rt_none();
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (ts_str_is(path, functions[i].path)) {
            ts_status status = functions[i].run(ev, args, out);
            if (status)
                rt_assign(out, rt_none());
            return status;
        }
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++)
        if (ts_str_is(path, typed[i].name))
            return typed_tensor(ev, typed[i].dtype, args, out);
    if (ts_str_ends_with(path, "no_grad") || ts_str_ends_with(path, "enable_grad") ||
        ts_str_ends_with(path, "inference_mode") || ts_str_ends_with(path, ".autocast"))
        return fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_NAME, .path = path}, out);
    if (ts_str_starts_with(path, "logging.") || ts_str_starts_with(path, "torch._C._log_api"))
        return NULL;
    if (ts_str_starts_with(path, "typing.")) /* TypeVar("T") and the like: a type */
        return fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_NAME, .path = path}, out);
    if (ts_str_starts_with(path, "operator.")) {
        TS_TRY(ev_operator_function(ev, (ts_str){path.data + 9, path.length - 9}, args, &found, out));
        if (found)
            return NULL;
    }
    ts_str name = path;
    bool is_method = ts_str_starts_with(path, "Tensor.") || ts_str_starts_with(path, "torch.Tensor.");
    if (is_method) {
        size_t skip = path.data[0] == 'T' ? 7 : 13;
        name = (ts_str){path.data + skip, path.length - skip};
        if (args->count && ARG(0).tag == RT_TAG_TENSOR) {
            ts_status status = tensor_method(ev, name, args, &found, out);
            if (status || found) {
                if (status)
                    rt_assign(out, rt_none());
                return status;
            }
        }
        if (!fe_operator_exists(ev->fe, name) && args->count)
            return ts_raise("AttributeError", "'%.*s' object has no attribute '%.*s'",
                            TS_STR_ARG(ev_type_name(ARG(0))), TS_STR_ARG(name));
    } else if (ts_str_starts_with(path, "torch.")) {
        name = (ts_str){path.data + 6, path.length - 6};
        if (args->count && ARG(0).tag == RT_TAG_TENSOR &&
            (ts_str_is(name, "clone") || ts_str_is(name, "detach") || ts_str_is(name, "numel") ||
             ts_str_is(name, "is_floating_point") || ts_str_is(name, "is_complex"))) {
            TS_TRY(tensor_method(ev, name, args, &found, out));
            if (found)
                return NULL;
        }
    } else {
        return ts_error_make(TS_ERR_UNSUPPORTED, "%.*s() is not available when a script is compiled",
                             TS_STR_ARG(path));
    }
    if (memchr(name.data, '.', name.length)) {
        /* torch.linalg.qr is the operator linalg_qr */
        char *copy = ts_arena_copy(ev->arena, name.data, name.length);
        for (size_t i = 0; i < name.length; i++)
            if (copy[i] == '.')
                copy[i] = '_';
        name.data = copy;
    }
    ts_status status = operator_call(ev, name, args, out);
    if (status && !fe_operator_exists(ev->fe, name) && ts_status_code(status) == TS_ERR_UNSUPPORTED) {
        ts_status_release(status);
        status = ts_error_make(TS_ERR_UNSUPPORTED, "%.*s() is not available when a script is compiled",
                               TS_STR_ARG(path));
    }
    return status;
}
