/* frontend/init_eval_module.c - the evaluator of scripts: torch.nn.Module.
 *
 * A module's parameters, buffers and children are its fields, told apart by ev_field.kind; each
 * kind is walked in the order of assignment, as in PyTorch's own dictionaries. */
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "runtime/values/tensor.h"

#define ARG(i) (args->items[i].value)

bool ev_is_module(rt_value v) {
    fe_class *c = v.tag == RT_TAG_OBJECT ? ev_class_of(v) : NULL;
    return c && c->kind == RT_CLASS_MODULE;
}

ts_status ev_module_init(evaluator *ev, rt_value self) {
    ev_instance *i = ev_instance_of(self);
    if (!i || ev_field_find(i, TS_STR("training")) >= 0)
        return NULL;
    return ev_field_set(ev, self, TS_STR("training"), rt_bool(true), EV_PLAIN);
}

ts_status ev_module_set_attribute(evaluator *ev, rt_value self, ts_str name, rt_value value) {
    ev_instance *i = ev_instance_of(self);
    if (!i)
        return ev_field_set(ev, self, name, value, EV_PLAIN);
    int64_t field = ev_field_find(i, name);
    ev_field_kind kind = field >= 0 ? i->fields[field].kind : EV_PLAIN;
    bool is_none = rt_is_none(value);
    bool is_ready = ev_field_find(i, TS_STR("training")) >= 0;
    if (value.tag == RT_TAG_TENSOR && (value.as.counted->flags & EV_FLAG_PARAMETER)) {
        if (!is_ready)
            return ts_raise("AttributeError", "cannot assign parameters before Module.__init__() call");
        return ev_field_set(ev, self, name, value, EV_PARAMETER);
    }
    if (kind == EV_PARAMETER && !is_none)
        return ts_raise("TypeError", "cannot assign '%.*s' as parameter '%.*s' (torch.nn.Parameter or None expected)",
                        TS_STR_ARG(ev_type_name(value)), TS_STR_ARG(name));
    if (ev_is_module(value) && !fe_class_is_optimizer(ev_class_of(value))) {
        if (!is_ready)
            return ts_raise("AttributeError", "cannot assign module before Module.__init__() call");
        return ev_field_set(ev, self, name, value, EV_MODULE);
    }
    if (kind == EV_MODULE && !is_none)
        return ts_raise("TypeError", "cannot assign '%.*s' as child module '%.*s' (torch.nn.Module or None expected)",
                        TS_STR_ARG(ev_type_name(value)), TS_STR_ARG(name));
    if (value.tag == RT_TAG_TENSOR && (value.as.counted->flags & EV_FLAG_BUFFER))
        kind = EV_BUFFER;
    if (kind == EV_BUFFER && !is_none && value.tag != RT_TAG_TENSOR)
        return ts_raise("TypeError", "cannot assign '%.*s' as buffer '%.*s' (torch.nn.Buffer, torch.Tensor or None expected)",
                        TS_STR_ARG(ev_type_name(value)), TS_STR_ARG(name));
    return ev_field_set(ev, self, name, value, kind);
}

/* ---- walks ---- */

typedef struct walk { /* what to collect of a tree */
    evaluator *ev;
    rt_value list;       /* of values, or of (name, value) */
    bool has_names, recurses, removes_duplicates;
    ev_field_kind kind;  /* EV_MODULE: the modules themselves */
    rt_value seen;       /* dict of ids */
} walk;

static ts_status is_seen(walk *w, rt_value v, bool *out) {
    rt_dict_entry *e;
    rt_value key = rt_int((int64_t)(intptr_t)v.as.pointer);
    *out = false;
    if (!w->removes_duplicates)
        return NULL;
    TS_TRY(rt_dict_find(w->seen.as.dict, key, &e));
    *out = e != NULL;
    return e ? NULL : rt_dict_set(w->seen.as.dict, key, rt_none());
}

static ts_status take(walk *w, ts_str prefix, ts_str name, rt_value v) {
    if (!w->has_names)
        return rt_list_append(w->list.as.list, v);
    rt_value pair[2] = {rt_none(), v}, tuple;
    TS_TRY(prefix.length
               ? rt_str_format(&pair[0], "%.*s%s%.*s", (int)prefix.length, prefix.data,
                               name.length ? "." : "", (int)name.length, name.data)
               : rt_str_make(name, &pair[0]));
    ts_status status = ev_tuple(pair, 2, &tuple);
    if (!status)
        status = rt_list_append(w->list.as.list, tuple);
    rt_release(pair[0]);
    rt_release(tuple);
    return status;
}

static ts_status collect(walk *w, rt_value module, ts_str prefix, int depth) {
    ev_instance *i = ev_instance_of(module);
    bool seen;
    if (depth > 500)
        return ts_raise("RecursionError", "modules are nested too deeply");
    if (!i)
        return NULL;
    if (w->kind == EV_MODULE) {
        TS_TRY(is_seen(w, module, &seen));
        if (seen)
            return NULL;
        TS_TRY(take(w, prefix, (ts_str){0}, module));
    }
    for (size_t k = 0; k < i->count && w->kind != EV_MODULE; k++) {
        rt_value v = module.as.object->fields[k];
        if (i->fields[k].kind != w->kind || rt_is_none(v))
            continue;
        TS_TRY(is_seen(w, v, &seen));
        if (!seen)
            TS_TRY(take(w, prefix, i->names[k], v));
    }
    for (size_t k = 0; k < i->count && w->recurses; k++) {
        if (i->fields[k].kind != EV_MODULE || rt_is_none(module.as.object->fields[k]))
            continue;
        ts_str name = prefix.length ? ts_arena_format(w->ev->arena, "%.*s.%.*s", (int)prefix.length,
                                                      prefix.data, (int)i->names[k].length,
                                                      i->names[k].data)
                                    : i->names[k];
        TS_TRY(collect(w, module.as.object->fields[k], name, depth + 1));
    }
    return NULL;
}

static ts_status walk_tree(evaluator *ev, rt_value self, ev_field_kind kind, bool has_names,
                           bool recurses, bool removes_duplicates, ts_str prefix, rt_value *out) {
    walk w = {.ev = ev, .has_names = has_names, .recurses = recurses,
              .removes_duplicates = removes_duplicates, .kind = kind};
    TS_TRY(rt_list_make(0, &w.list));
    ts_status status = rt_dict_make(&w.seen);
    if (!status && kind == EV_PARAMETER) {
        /* Parameters are told once however many modules hold them; modules are walked once, too. */
        status = collect(&w, self, prefix, 0);
    } else if (!status) {
        status = collect(&w, self, prefix, 0);
    }
    rt_release(w.seen);
    if (status)
        rt_release(w.list);
    else
        *out = w.list;
    return status;
}

static ts_status children(evaluator *ev, rt_value self, bool has_names, rt_value *out) {
    ev_instance *i = ev_instance_of(self);
    walk w = {.ev = ev, .has_names = has_names, .removes_duplicates = true};
    TS_TRY(rt_list_make(0, &w.list));
    TS_TRY(rt_dict_make(&w.seen));
    ts_status status = NULL;
    for (size_t k = 0; i && k < i->count && !status; k++) {
        rt_value v = self.as.object->fields[k];
        bool seen;
        if (i->fields[k].kind != EV_MODULE || rt_is_none(v))
            continue;
        status = is_seen(&w, v, &seen);
        if (!status && !seen)
            status = take(&w, (ts_str){0}, i->names[k], v);
    }
    rt_release(w.seen);
    *out = w.list;
    return status;
}

ts_status ev_module_train(evaluator *ev, rt_value module, bool mode) {
    rt_value all;
    TS_TRY(walk_tree(ev, module, EV_MODULE, false, true, true, (ts_str){0}, &all));
    ts_status status = NULL;
    for (size_t i = 0; i < all.as.list->count && !status; i++)
        status = ev_field_set(ev, all.as.list->items[i], TS_STR("training"), rt_bool(mode), EV_PLAIN);
    rt_release(all);
    return status;
}

/* ---- state ---- */

static void add_state(struct fe_context *fe, rt_value module, ts_str prefix, int depth,
                      fe_named_tensors *out) {
    ev_instance *i = ev_instance_of(module);
    if (!i || depth > 500)
        return;
    static const ev_field_kind order[] = {EV_PARAMETER, EV_BUFFER, EV_MODULE};
    for (size_t pass = 0; pass < 3; pass++)
        for (size_t k = 0; k < i->count; k++) {
            rt_value v = module.as.object->fields[k];
            if (i->fields[k].kind != order[pass] || rt_is_none(v) ||
                (order[pass] == EV_BUFFER && !i->fields[k].is_persistent))
                continue;
            ts_str name = prefix.length ? ts_arena_format(fe->arena, "%.*s.%.*s", (int)prefix.length,
                                                          prefix.data, (int)i->names[k].length,
                                                          i->names[k].data)
                                        : i->names[k];
            if (order[pass] == EV_MODULE) {
                add_state(fe, v, name, depth + 1, out);
                continue;
            }
            fe_named_tensor item = {name, module.as.object, k};
            TS_APPEND(fe->arena, out->items, out->count, out->capacity, item);
        }
}

void fe_collect_state(struct fe_context *fe, rt_value module, fe_named_tensors *out) {
    add_state(fe, module, (ts_str){0}, 0, out);
}

static ts_status state_dict(evaluator *ev, rt_value self, rt_value *out) {
    fe_named_tensors state = {0};
    fe_collect_state(ev->fe, self, &state);
    TS_TRY(rt_dict_make(out));
    for (size_t i = 0; i < state.count; i++) {
        rt_value key, alias;
        TS_TRY(rt_str_make(state.items[i].name, &key));
        ts_status status = ev_parameter_make(
            ev, state.items[i].owner->fields[state.items[i].field], false, 0, &alias);
        if (!status)
            status = rt_dict_set(out->as.dict, key, alias);
        rt_release(key);
        rt_release(alias);
        TS_TRY(status);
    }
    return NULL;
}

static void shape_text(const rt_tensor *t, ts_buffer *out) {
    ts_buffer_text(out, "torch.Size([");
    for (int i = 0; i < t->rank; i++)
        ts_buffer_format(out, "%s%lld", i ? ", " : "", (long long)t->sizes[i]);
    ts_buffer_text(out, "])");
}

static void list_text(ts_buffer *out, const ts_buffer *names, const char *what) {
    if (names->length)
        ts_buffer_format(out, "\n    %s key(s) in state_dict: %.*s. ", what, (int)names->length, names->data);
}

static void add_name(ts_buffer *out, ts_str name) {
    ts_buffer_format(out, "%s\"%.*s\"", out->length ? ", " : "", (int)name.length, name.data);
}

/* Module.load_state_dict, with PyTorch's own list of what does not fit. */
ts_status ev_load_state(evaluator *ev, rt_value module, rt_value state, bool is_strict, rt_value *out) {
    fe_named_tensors own = {0};
    ts_buffer missing = {0}, unexpected = {0}, shapes = {0}, text = {0};
    rt_value known;
    *out = rt_none();
    if (state.tag != RT_TAG_DICT)
        return ts_raise("TypeError", "Expected state_dict to be dict-like, got %.*s",
                        TS_STR_ARG(ev_type_name(state)));
    fe_collect_state(ev->fe, module, &own);
    TS_TRY(rt_dict_make(&known));
    ts_status status = NULL;
    for (size_t i = 0; i < own.count && !status; i++) {
        rt_value key;
        rt_dict_entry *e = NULL;
        status = rt_str_make(own.items[i].name, &key);
        if (!status)
            status = rt_dict_set(known.as.dict, key, rt_none());
        if (!status)
            status = rt_dict_find(state.as.dict, key, &e);
        rt_release(key);
        if (status)
            break;
        if (!e) {
            add_name(&missing, own.items[i].name);
            continue;
        }
        rt_tensor *to = own.items[i].owner->fields[own.items[i].field].as.tensor;
        const rt_tensor *from = e->value.tag == RT_TAG_TENSOR ? e->value.as.tensor : NULL;
        bool fits = from && from->rank == to->rank;
        for (int k = 0; fits && k < to->rank; k++)
            fits = from->sizes[k] == to->sizes[k];
        bool is_scalar = from && to->rank == 0 && from->rank == 1 && from->sizes[0] == 1;
        if (!from) {
            ts_buffer_format(&shapes, "\n    while copying the parameter named \"%.*s\": expected a tensor, found %.*s. ",
                             TS_STR_ARG(own.items[i].name), TS_STR_ARG(ev_type_name(e->value)));
        } else if (!fits && !is_scalar) {
            ts_buffer_format(&shapes, "\n    size mismatch for %.*s: copying a param with shape ",
                             TS_STR_ARG(own.items[i].name));
            shape_text(from, &shapes);
            ts_buffer_text(&shapes, " from checkpoint, the shape in current model is ");
            shape_text(to, &shapes);
            ts_buffer_text(&shapes, ".");
        } else {
            status = rt_tensor_copy_into(to, from);
        }
    }
    rt_dict_entry *e, *found;
    for (size_t at = 0; !status && (e = rt_dict_next(state.as.dict, &at));) {
        status = rt_dict_find(known.as.dict, e->key, &found);
        if (!status && !found && ev_is_str(e->key))
            add_name(&unexpected, ev_text(e->key));
    }
    rt_release(known);
    if (!status && (shapes.length || (is_strict && (missing.length || unexpected.length)))) {
        fe_class *c = ev_class_of(module);
        ts_buffer_format(&text, "Error(s) in loading state_dict for %.*s:",
                         TS_STR_ARG(c ? c->bare_name : TS_STR("Module")));
        if (is_strict) {
            list_text(&text, &unexpected, "Unexpected");
            list_text(&text, &missing, "Missing");
        }
        ts_buffer_append(&text, shapes.data, shapes.length);
        status = ts_raise_str(TS_STR("RuntimeError"), (ts_str){text.data, text.length});
    }
    ts_buffer_deinit(&missing);
    ts_buffer_deinit(&unexpected);
    ts_buffer_deinit(&shapes);
    ts_buffer_deinit(&text);
    return status;
}

/* ---- conversions: module.double(), module.to(torch.float16) ---- */
static ts_status convert(evaluator *ev, rt_value self, rt_dtype dtype, rt_value *out) {
    rt_value all;
    TS_TRY(walk_tree(ev, self, EV_MODULE, false, true, true, (ts_str){0}, &all));
    ts_status status = NULL;
    for (size_t m = 0; m < all.as.list->count && !status; m++) {
        rt_value module = all.as.list->items[m];
        ev_instance *i = ev_instance_of(module);
        for (size_t k = 0; k < i->count && !status; k++) {
            rt_value v = module.as.object->fields[k];
            bool is_state = i->fields[k].kind == EV_PARAMETER || i->fields[k].kind == EV_BUFFER;
            if (!is_state || v.tag != RT_TAG_TENSOR || !rt_dtype_is_float((rt_dtype)v.as.tensor->dtype))
                continue;
            rt_tensor *cast;
            status = rt_tensor_cast(v.as.tensor, dtype, false, &cast);
            if (status)
                break;
            rt_value made = rt_from_tensor(cast);
            if (i->fields[k].kind == EV_PARAMETER) /* the same Parameter with other data */
                status = ev_tensor_set_attribute(ev, v, TS_STR("data"), made);
            else
                rt_assign(&module.as.object->fields[k], rt_retain(made));
            rt_release(made);
        }
    }
    rt_release(all);
    *out = rt_retain(self);
    return status;
}

/* ---- methods ---- */

static const char *const method_names[] = {
    "register_buffer", "register_parameter", "add_module", "register_module", "parameters",
    "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules",
    "named_modules", "apply", "train", "eval", "requires_grad_", "state_dict", "load_state_dict", "to",
    "cpu", "cuda", "float", "double", "half", "bfloat16", "type", "zero_grad", "get_parameter",
    "get_submodule", "get_buffer", "extra_repr", "register_forward_hook", "register_forward_pre_hook",
    "register_state_dict_pre_hook", "register_load_state_dict_post_hook",
    "_register_load_state_dict_pre_hook", "register_full_backward_hook", "share_memory", "compile",
    "_get_name", "__init__", "_init_weights"};

bool ev_module_has_method(rt_value self, ts_str name) {
    (void)self;
    for (size_t i = 0; i + 1 < sizeof method_names / sizeof *method_names; i++)
        if (ts_str_is(name, method_names[i]))
            return true;
    return false;
}

static ts_status flag(evaluator *ev, rt_value v, bool fallback, bool *out) {
    *out = fallback;
    return ev_is_given(v) ? ev_truth(ev, v, out) : NULL;
}

static ts_status register_field(evaluator *ev, rt_value self, ts_str method, ev_arguments *args) {
    rt_value slots[3];
    bool is_buffer = ts_str_is(method, "register_buffer");
    bool is_parameter = ts_str_is(method, "register_parameter");
    TS_TRY(ev_take(args, "register", is_buffer      ? "name,tensor,persistent"
                                     : is_parameter ? "name,param"
                                                    : "name,module", slots));
    if (!ev_is_given(slots[0]) || !ev_is_given(slots[1]) || !ev_is_str(slots[0]))
        return ts_raise("TypeError", "%.*s() needs a name and a value", TS_STR_ARG(method));
    ts_str name = ts_arena_str(ev->arena, ev_text(slots[0]));
    ev_instance *i = ev_instance_of(self);
    if (!name.length)
        return ts_raise("KeyError", "'%s name can't be empty string \"\"'",
                        is_buffer ? "buffer" : is_parameter ? "parameter" : "module");
    if (memchr(name.data, '.', name.length))
        return ts_raise("KeyError", "'%s name can't contain \".\"'",
                        is_buffer ? "buffer" : is_parameter ? "parameter" : "module");
    if (!i || ev_field_find(i, TS_STR("training")) < 0)
        return ts_raise("AttributeError", "cannot assign %s before Module.__init__() call",
                        is_buffer ? "buffer" : is_parameter ? "parameter" : "module");
    if (is_buffer || is_parameter) {
        if (!rt_is_none(slots[1]) && slots[1].tag != RT_TAG_TENSOR)
            return ts_raise("TypeError", "cannot assign '%.*s' object to %s '%.*s' (Tensor or None required)",
                            TS_STR_ARG(ev_type_name(slots[1])), is_buffer ? "buffer" : "parameter",
                            TS_STR_ARG(name));
        TS_TRY(ev_field_set(ev, self, name, slots[1], is_buffer ? EV_BUFFER : EV_PARAMETER));
        if (is_buffer) {
            bool persistent;
            TS_TRY(flag(ev, slots[2], true, &persistent));
            i->fields[ev_field_find(i, name)].is_persistent = persistent;
        }
        return NULL;
    }
    if (!rt_is_none(slots[1]) && !ev_is_module(slots[1]))
        return ts_raise("TypeError", "%.*s is not a Module subclass", TS_STR_ARG(ev_type_name(slots[1])));
    return ev_field_set(ev, self, name, slots[1], EV_MODULE);
}

static ts_status iterate(evaluator *ev, rt_value self, ts_str name, ev_arguments *args, rt_value *out) {
    rt_value slots[3], list;
    bool has_names = ts_str_starts_with(name, "named_"), recurses = true, unique = true;
    ts_str what = has_names ? (ts_str){name.data + 6, name.length - 6} : name;
    if (ts_str_is(what, "children")) {
        TS_TRY(children(ev, self, has_names, &list));
    } else {
        bool are_modules = ts_str_is(what, "modules");
        TS_TRY(ev_take(args, "this method",
                       are_modules ? (has_names ? "memo,prefix,remove_duplicate" : "")
                       : has_names ? "prefix,recurse,remove_duplicate"
                                   : "recurse",
                       slots));
        rt_value prefix = has_names ? slots[are_modules ? 1 : 0] : (rt_value){.tag = RT_TAG_UNINITIALIZED};
        if (!are_modules)
            TS_TRY(flag(ev, slots[has_names ? 1 : 0], true, &recurses));
        if (has_names)
            TS_TRY(flag(ev, slots[2], true, &unique));
        TS_TRY(walk_tree(ev, self,
                         are_modules                       ? EV_MODULE
                         : ts_str_is(what, "parameters") ? EV_PARAMETER
                                                           : EV_BUFFER,
                         has_names, recurses, unique,
                         ev_is_given(prefix) && ev_is_str(prefix) ? ev_text(prefix) : (ts_str){0}, &list));
    }
    ts_status status = ev_iterator_make(list, out);
    rt_release(list);
    return status;
}

static ts_status apply(evaluator *ev, rt_value self, rt_value callee, int depth) {
    rt_value kids, ignored = rt_none();
    if (depth > 500)
        return ts_raise("RecursionError", "modules are nested too deeply");
    TS_TRY(children(ev, self, false, &kids));
    ts_status status = NULL;
    for (size_t i = 0; i < kids.as.list->count && !status; i++)
        status = apply(ev, kids.as.list->items[i], callee, depth + 1);
    rt_release(kids);
    if (!status)
        status = ev_call_with(ev, callee, &self, 1, &ignored);
    rt_release(ignored);
    return status;
}

static ts_status by_path(evaluator *ev, rt_value self, ts_str path, rt_value *out) {
    rt_value v = rt_retain(self);
    while (path.length) {
        const char *dot = memchr(path.data, '.', path.length);
        size_t n = dot ? (size_t)(dot - path.data) : path.length;
        rt_value next;
        ts_status status = ev_get_attribute(ev, v, (ts_str){path.data, n}, &next);
        rt_release(v);
        TS_TRY(status);
        v = next;
        path.data += n + (dot != NULL);
        path.length -= n + (dot != NULL);
    }
    *out = v;
    return NULL;
}

static ts_status add_hook(evaluator *ev, rt_value self, bool is_pre, ev_arguments *args, rt_value *out) {
    ev_instance *i = ev_instance_of(self);
    if (args->count != 1 || !i)
        return ts_error_make(TS_ERR_UNSUPPORTED, "hooks take no options here");
    ev_hook hook = {is_pre, ARG(0)};
    ir_module_retain(ev->fe->module, ARG(0));
    TS_APPEND(ev->arena, i->hooks, i->hook_count, i->hook_capacity, hook);
    return fe_binding_to_value(
        ev->fe, (fe_binding){.kind = FE_NAME, .path = TS_STR("logging.hook")}, out);
}

ts_status ev_module_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                           bool *out_found, rt_value *out) {
    bool on = true;
    *out_found = true;
    *out = rt_none();
    if (ts_str_is(name, "__init__"))
        return ev_module_init(ev, self);
    if (ts_str_is(name, "register_buffer") || ts_str_is(name, "register_parameter") ||
        ts_str_is(name, "add_module") || ts_str_is(name, "register_module"))
        return register_field(ev, self, name, args);
    if (ts_str_is(name, "parameters") || ts_str_is(name, "named_parameters") ||
        ts_str_is(name, "buffers") || ts_str_is(name, "named_buffers") ||
        ts_str_is(name, "children") || ts_str_is(name, "named_children") ||
        ts_str_is(name, "modules") || ts_str_is(name, "named_modules"))
        return iterate(ev, self, name, args, out);
    if (ts_str_is(name, "apply") && args->count == 1) {
        *out = rt_retain(self);
        return apply(ev, self, ARG(0), 0);
    }
    if (ts_str_is(name, "train") || ts_str_is(name, "eval")) {
        if (args->count)
            TS_TRY(ev_truth(ev, ARG(0), &on));
        *out = rt_retain(self);
        return ev_module_train(ev, self, name.data[0] == 't' && on);
    }
    if (ts_str_is(name, "requires_grad_")) {
        rt_value all;
        if (args->count)
            TS_TRY(ev_truth(ev, ARG(0), &on));
        TS_TRY(walk_tree(ev, self, EV_PARAMETER, false, true, true, (ts_str){0}, &all));
        for (size_t i = 0; i < all.as.list->count; i++)
            all.as.list->items[i].as.tensor->requires_grad = on;
        rt_release(all);
        *out = rt_retain(self);
        return NULL;
    }
    if (ts_str_is(name, "state_dict"))
        return state_dict(ev, self, out);
    if (ts_str_is(name, "load_state_dict")) {
        rt_value slots[3];
        TS_TRY(ev_take(args, "load_state_dict", "state_dict,strict,assign", slots));
        TS_TRY(flag(ev, slots[1], true, &on));
        return ev_load_state(ev, self, ev_is_given(slots[0]) ? slots[0] : rt_none(), on, out);
    }
    static const struct {
        const char *name;
        rt_dtype dtype;
    } casts[] = {{"float", RT_float32}, {"double", RT_float64}, {"half", RT_float16},
                 {"bfloat16", RT_bfloat16}};
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        if (ts_str_is(name, casts[i].name))
            return convert(ev, self, casts[i].dtype, out);
    if (ts_str_is(name, "to") || ts_str_is(name, "type")) {
        for (size_t i = 0; i < args->count; i++)
            if (ARG(i).tag == RT_TAG_INT)
                return convert(ev, self, (rt_dtype)ARG(i).as.i, out);
        *out = rt_retain(self);
        return NULL;
    }
    if (ts_str_is(name, "cpu") || ts_str_is(name, "cuda") || ts_str_is(name, "share_memory") ||
        ts_str_is(name, "compile")) {
        *out = rt_retain(self);
        return NULL;
    }
    if ((ts_str_is(name, "get_parameter") || ts_str_is(name, "get_submodule") ||
         ts_str_is(name, "get_buffer")) && args->count == 1 && ev_is_str(ARG(0)))
        return by_path(ev, self, ev_text(ARG(0)), out);
    if (ts_str_is(name, "extra_repr"))
        return rt_str_make(TS_STR(""), out);
    if (ts_str_is(name, "_get_name"))
        return rt_str_make(ev_type_name(self), out);
    if (ts_str_is(name, "register_forward_hook") || ts_str_is(name, "register_forward_pre_hook"))
        return add_hook(ev, self, ts_str_ends_with(name, "pre_hook"), args, out);
    if (ts_str_is(name, "zero_grad") || ts_str_ends_with(name, "state_dict_pre_hook") ||
        ts_str_ends_with(name, "state_dict_post_hook") || ts_str_ends_with(name, "backward_hook"))
        return NULL; /* nothing of it can be seen in a compiled module */
    *out_found = false;
    return NULL;
}

/* ---- copies ---- */

static ts_status copy_at(evaluator *ev, rt_value v, bool is_deep, int depth, rt_value memo, rt_value *out);

static ts_status copy_contents(evaluator *ev, rt_value v, bool is_deep, int depth, rt_value memo,
                               rt_value made) {
    size_t n = 0;
    rt_value item;
    ts_status status = NULL;
    if (v.tag == RT_TAG_LIST) {
        rt_value *items = ev_items(v, &n);
        for (size_t i = 0; i < n && !status; i++) {
            status = copy_at(ev, items[i], is_deep, depth + 1, memo, &item);
            if (!status)
                status = rt_list_append(made.as.list, item);
            rt_release(item);
        }
    } else if (v.tag == RT_TAG_DICT) {
        rt_dict_entry *e;
        for (size_t at = 0; !status && (e = rt_dict_next(v.as.dict, &at));) {
            status = copy_at(ev, e->value, is_deep, depth + 1, memo, &item);
            if (!status)
                status = rt_dict_set(made.as.dict, e->key, item);
            rt_release(item);
        }
    } else {
        ev_instance *i = ev_instance_of(v), *copy = ev_instance_of(made);
        for (size_t k = 0; i && k < i->count && !status; k++) {
            status = copy_at(ev, v.as.object->fields[k], is_deep, depth + 1, memo, &item);
            if (!status)
                status = ev_field_set(ev, made, i->names[k], item, i->fields[k].kind);
            if (!status)
                copy->fields[k] = i->fields[k];
            rt_release(item);
        }
        if (i && copy) {
            copy->hooks = i->hooks;
            copy->hook_count = copy->hook_capacity = i->hook_count;
        }
    }
    return status;
}

static ts_status copy_at(evaluator *ev, rt_value v, bool is_deep, int depth, rt_value memo,
                         rt_value *out) {
    *out = rt_none();
    if (depth > 500)
        return ts_raise("RecursionError", "values are nested too deeply to be copied");
    if (!rt_is_counted(v) || (!is_deep && depth)) {
        *out = rt_retain(v);
        return NULL;
    }
    rt_value key = rt_int((int64_t)(intptr_t)v.as.pointer);
    rt_dict_entry *e;
    TS_TRY(rt_dict_find(memo.as.dict, key, &e));
    if (e) {
        *out = rt_retain(e->value);
        return NULL;
    }
    ts_status status = NULL;
    switch (v.tag) {
    case RT_TAG_TENSOR: {
        rt_tensor *copy;
        TS_TRY(rt_tensor_clone(v.as.tensor, &copy));
        copy->requires_grad = v.as.tensor->requires_grad;
        copy->base.flags |= v.as.counted->flags;
        *out = rt_from_tensor(copy);
        break;
    }
    case RT_TAG_LIST: TS_TRY(rt_list_make(v.as.list->count, out)); break;
    case RT_TAG_DICT:
        TS_TRY(rt_dict_make(out));
        out->as.counted->flags |= v.as.counted->flags & EV_FLAG_SET;
        break;
    case RT_TAG_TUPLE:
        TS_TRY(rt_tuple_make(v.as.tuple->count, out));
        out->as.tuple->class_ = v.as.tuple->class_;
        for (size_t i = 0; i < v.as.tuple->count && !status; i++)
            status = copy_at(ev, v.as.tuple->items[i], is_deep, depth + 1, memo, &out->as.tuple->items[i]);
        return status;
    case RT_TAG_OBJECT:
        if (!ev_instance_of(v)) {
            *out = rt_retain(v);
            return NULL;
        }
        TS_TRY(ev_instance_make(ev, ev_class_of(v), out));
        break;
    default: *out = rt_retain(v); return NULL;
    }
    /* Known before its contents: what refers to itself ends. */
    status = rt_dict_set(memo.as.dict, key, *out);
    if (!status && v.tag != RT_TAG_TENSOR)
        status = copy_contents(ev, v, is_deep, depth, memo, *out);
    return status;
}

ts_status ev_deep_copy(evaluator *ev, rt_value v, bool is_deep, rt_value *out) {
    rt_value memo;
    TS_TRY(rt_dict_make(&memo));
    ts_status status = copy_at(ev, v, is_deep, 0, memo, out);
    rt_release(memo);
    if (status)
        rt_assign(out, rt_none());
    return status;
}
