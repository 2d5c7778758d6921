/* frontend/init_eval_attribute.c - the evaluator of scripts: attributes of whatever has some. */
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "runtime/values/tensor.h"

ts_str ev_type_name(rt_value v) {
    fe_class *c = ev_class_of(v);
    if (c)
        return c->bare_name;
    if (ev_is_set(v))
        return TS_STR("set");
    if (ev_as_range(v))
        return TS_STR("range");
    if (ev_as_iterator(v))
        return TS_STR("generator");
    if (v.tag == RT_TAG_NONE)
        return TS_STR("NoneType");
    if (v.tag == RT_TAG_FUNCTION) {
        fe_binding b = fe_binding_of_value(v);
        return b.kind == FE_CLASS       ? TS_STR("type")
               : b.kind == FE_NAMESPACE ? TS_STR("module")
               : b.kind == FE_METHOD    ? TS_STR("method")
                                        : TS_STR("function");
    }
    return ts_str_of(rt_tag_name(v));
}

static ts_status string_value(ts_str text, bool *out_found, rt_value *hold) {
    *out_found = true;
    return rt_str_make(text, hold);
}

static ts_status class_attribute(evaluator *ev, fe_class *c, ts_str name, bool *out_found,
                                 fe_binding *out, rt_value *hold) {
    *out_found = true;
    if (c->kind == RT_CLASS_ENUM) {
        ir_class *ir = fe_class_ir(ev->fe, c);
        for (size_t i = 0; ir && i < ir->enum_member_count; i++)
            if (ts_str_equal(ir->enum_members[i].as.enumeration->name, name)) {
                *hold = rt_retain(ir->enum_members[i]);
                *out = (fe_binding){.kind = FE_VALUE, .value = *hold};
                return NULL;
            }
        if (ir && ts_str_is(name, "__members__")) {
            TS_TRY(rt_dict_make(hold));
            for (size_t i = 0; i < ir->enum_member_count; i++) {
                rt_value key;
                TS_TRY(rt_str_make(ir->enum_members[i].as.enumeration->name, &key));
                ts_status status = rt_dict_set(hold->as.dict, key, ir->enum_members[i]);
                rt_release(key);
                TS_TRY(status);
            }
            *out = (fe_binding){.kind = FE_VALUE, .value = *hold};
            return NULL;
        }
    }
    fe_class_variable *v = fe_class_find_variable(c, name);
    if (v && v->initial) {
        if (!v->is_evaluated) {
            rt_value value;
            if (!fe_evaluate_expression(ev->fe, c->scope, v->initial, &value))
                return fe_diagnostics_status(ev->fe->diagnostics);
            ir_module_retain(ev->fe->module, value);
            rt_release(value);
            v->value = value;
            v->is_evaluated = true;
        }
        *hold = rt_retain(v->value);
        *out = fe_binding_of_value(*hold);
        return NULL;
    }
    fe_function *f = fe_class_method(c, name);
    if (f) {
        *out = (fe_binding){.kind = FE_FUNCTION, .function = f};
        if (f->is_class_method) {
            rt_value self;
            TS_TRY(fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_CLASS, .class_ = c}, &self));
            ir_module_retain(ev->fe->module, self);
            rt_release(self);
            *out = (fe_binding){.kind = FE_METHOD, .value = self, .function = f};
        }
        return NULL;
    }
    *out = (fe_binding){.kind = FE_VALUE};
    if (ts_str_is(name, "__name__") || ts_str_is(name, "__qualname__")) {
        ts_status status = string_value(c->bare_name, out_found, hold);
        out->value = *hold;
        return status;
    }
    /* Module.__init__(self) and the like: a method of a built-in class as a function. */
    if (c->kind == RT_CLASS_MODULE || c->kind == RT_CLASS_EXCEPTION || ts_str_is(name, "__init__")) {
        *out = (fe_binding){.kind = FE_NAME,
                            .path = ts_arena_format(ev->arena, "unbound.%.*s", (int)name.length,
                                                    name.data)};
        return NULL;
    }
    *out_found = false;
    return NULL;
}

ts_status ev_binding_attribute(evaluator *ev, fe_binding b, ts_str name, bool *out_found,
                               fe_binding *out, rt_value *hold) {
    *out_found = false;
    *hold = rt_none();
    *out = (fe_binding){.kind = FE_VALUE};
    switch (b.kind) {
    case FE_NAMESPACE:
        *out = fe_namespace_get(ev->fe, b.path, name);
        *out_found = out->kind != FE_UNBOUND;
        if (out->kind == FE_VALUE)
            *hold = rt_retain(out->value);
        return NULL;
    case FE_NAME:
        *out = (fe_binding){.kind = FE_NAME,
                            .path = ts_arena_format(ev->arena, "%.*s.%.*s", (int)b.path.length,
                                                    b.path.data, (int)name.length, name.data)};
        *out_found = true;
        if (ts_str_is(name, "__name__")) {
            size_t dot = b.path.length;
            while (dot && b.path.data[dot - 1] != '.')
                dot--;
            *out = (fe_binding){.kind = FE_VALUE};
            return string_value((ts_str){b.path.data + dot, b.path.length - dot}, out_found, hold);
        }
        return NULL;
    case FE_CLASS: return class_attribute(ev, b.class_, name, out_found, out, hold);
    case FE_FUNCTION:
    case FE_METHOD:
        if (ts_str_is(name, "__name__") || ts_str_is(name, "__qualname__"))
            return string_value(b.function->bare_name, out_found, hold);
        if (ts_str_is(name, "__doc__")) {
            *out_found = true;
            return NULL;
        }
        return NULL;
    default: return NULL;
    }
}

static ts_status property(evaluator *ev, fe_function *f, rt_value self, rt_value *out) {
    ev_arguments none = {0};
    return ev_call_function(ev, f, &self, &none, out);
}

/* A method of a class as an attribute of its instance. */
static ts_status bind_method(evaluator *ev, fe_class *c, fe_function *f, rt_value self,
                             rt_value *out) {
    if (f->is_property)
        return property(ev, f, self, out);
    fe_binding b = {.kind = FE_METHOD, .function = f, .value = self};
    if (f->is_static)
        b = (fe_binding){.kind = FE_FUNCTION, .function = f};
    if (f->is_class_method) {
        rt_value class_value;
        TS_TRY(fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_CLASS, .class_ = c},
                                   &class_value));
        b.value = class_value;
        ts_status status = fe_binding_to_value(ev->fe, b, out);
        rt_release(class_value);
        return status;
    }
    return fe_binding_to_value(ev->fe, b, out);
}

static ts_status exception_attribute(rt_value v, ts_str name, bool *out_found, rt_value *out) {
    int64_t field = rt_class_field(v.as.object->class_, name);
    *out_found = field >= 0;
    if (*out_found)
        *out = rt_retain(v.as.object->fields[field]);
    return NULL;
}

static ts_status object_attribute(evaluator *ev, rt_value v, ts_str name, bool *out_found,
                                  rt_value *out) {
    const rt_object *o = v.as.object;
    fe_class *c = ev_class_of(v);
    fe_function *f = c ? fe_class_method(c, name) : NULL;
    *out_found = true;
    if (f && f->is_property)
        return property(ev, f, v, out);
    int64_t field = rt_class_field(o->class_, name);
    if (field >= 0 && ev_is_given(o->fields[field])) {
        *out = rt_retain(o->fields[field]);
        return NULL;
    }
    if (f)
        return bind_method(ev, c, f, v, out);
    if (ts_str_is(name, "__class__") && c)
        return fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_CLASS, .class_ = c}, out);
    if (ts_str_is(name, "__dict__")) {
        TS_TRY(rt_dict_make(out));
        for (size_t i = 0; i < o->class_->field_count; i++) {
            rt_value key;
            TS_TRY(rt_str_make(o->class_->fields[i], &key));
            ts_status status = rt_dict_set(out->as.dict, key, o->fields[i]);
            rt_release(key);
            TS_TRY(status);
        }
        return NULL;
    }
    if (c) {
        bool found;
        fe_binding b;
        rt_value hold;
        TS_TRY(class_attribute(ev, c, name, &found, &b, &hold));
        if (found && !(b.kind == FE_NAME && ts_str_starts_with(b.path, "unbound."))) {
            if (b.kind == FE_VALUE) {
                *out = hold;
                return NULL;
            }
            rt_release(hold);
            return fe_binding_to_value(ev->fe, b, out);
        }
    }
    if (c && c->kind == RT_CLASS_EXCEPTION)
        return exception_attribute(v, name, out_found, out);
    if (ev_is_module(v)) {
        if (ts_str_is(name, "_modules") || ts_str_is(name, "_parameters") ||
            ts_str_is(name, "_buffers")) {
            TS_TRY(rt_dict_make(out));
            ev_instance *instance = ev_instance_of(v);
            ev_field_kind kind = name.data[1] == 'm'   ? EV_MODULE
                                 : name.data[1] == 'p' ? EV_PARAMETER
                                                       : EV_BUFFER;
            for (size_t i = 0; instance && i < instance->count; i++) {
                if (instance->fields[i].kind != kind)
                    continue;
                rt_value key;
                TS_TRY(rt_str_make(instance->names[i], &key));
                ts_status status = rt_dict_set(out->as.dict, key, o->fields[i]);
                rt_release(key);
                TS_TRY(status);
            }
            return NULL;
        }
        if (ev_module_has_method(v, name) || ev_container_kind(ev, v) != EV_NO_CONTAINER)
            return ev_bound_make(v, name, out);
    }
    *out_found = false;
    return NULL;
}

ts_status ev_find_attribute(evaluator *ev, rt_value v, ts_str name, bool *out_found,
                            rt_value *out) {
    *out_found = false;
    *out = rt_none();
    const ev_super *super = ev_as_super(v);
    if (super) {
        fe_class *owner;
        fe_function *f = ev_find_method_after(super->class_, super->after, name, &owner);
        if (f) {
            *out_found = true;
            return bind_method(ev, super->class_, f, super->self, out);
        }
        *out_found = true;
        return ev_bound_make(v, name, out);
    }
    switch (v.tag) {
    case RT_TAG_OBJECT: return object_attribute(ev, v, name, out_found, out);
    case RT_TAG_TENSOR:
        TS_TRY(ev_tensor_attribute(ev, v, name, out_found, out));
        if (*out_found)
            return NULL;
        break;
    case RT_TAG_ENUM:
        *out_found = true;
        if (ts_str_is(name, "name") || ts_str_is(name, "_name_"))
            return rt_str_make(v.as.enumeration->name, out);
        if (ts_str_is(name, "value") || ts_str_is(name, "_value_")) {
            *out = rt_retain(v.as.enumeration->value);
            return NULL;
        }
        break;
    case RT_TAG_TUPLE: {
        int64_t field = v.as.tuple->class_ ? rt_class_field(v.as.tuple->class_, name) : -1;
        if (field >= 0 && (size_t)field < v.as.tuple->count) {
            *out_found = true;
            *out = rt_retain(v.as.tuple->items[field]);
            return NULL;
        }
        break;
    }
    case RT_TAG_COMPLEX:
        *out_found = true;
        if (ts_str_is(name, "real")) {
            *out = rt_float(v.as.complex->re);
            return NULL;
        }
        if (ts_str_is(name, "imag")) {
            *out = rt_float(v.as.complex->im);
            return NULL;
        }
        *out_found = false;
        break;
    case RT_TAG_INT:
        /* dtypes are ints: torch.float32.is_floating_point */
        if (ts_str_is(name, "is_floating_point") || ts_str_is(name, "is_complex") ||
            ts_str_is(name, "itemsize")) {
            rt_dtype d = (rt_dtype)v.as.i;
            *out_found = true;
            *out = ts_str_is(name, "itemsize") ? rt_int((int64_t)rt_dtype_size(d))
                   : ts_str_is(name, "is_complex") ? rt_bool(rt_dtype_is_complex(d))
                                                   : rt_bool(rt_dtype_is_float(d));
            return NULL;
        }
        if (ts_str_is(name, "real")) {
            *out_found = true;
            *out = rt_int(v.as.i);
            return NULL;
        }
        break;
    case RT_TAG_DEVICE:
        if (ts_str_is(name, "type") || ts_str_is(name, "index")) {
            *out_found = true;
            static const char *const types[] = {"cpu", "cuda", "opencl", "meta"};
            if (ts_str_is(name, "type"))
                return rt_str_make(ts_str_of(types[v.aux < 4 ? v.aux : 0]), out);
            *out = v.as.i < 0 ? rt_none() : rt_int(v.as.i);
            return NULL;
        }
        break;
    case RT_TAG_FUNCTION: {
        fe_binding b;
        rt_value hold;
        TS_TRY(ev_binding_attribute(ev, fe_binding_of_value(v), name, out_found, &b, &hold));
        if (!*out_found)
            return NULL;
        if (b.kind == FE_VALUE || !rt_is_none(hold)) {
            *out = hold;
            return NULL;
        }
        return fe_binding_to_value(ev->fe, b, out);
    }
    default: break;
    }
    fe_class *c = ev_class_of(v);
    fe_function *f = c ? fe_class_method(c, name) : NULL;
    if (f) {
        *out_found = true;
        return bind_method(ev, c, f, v, out);
    }
    if (ts_str_is(name, "__class__")) {
        *out_found = true;
        ts_str type = ev_type_name(v);
        fe_binding b = {.kind = FE_NAME,
                        .path = ts_arena_format(ev->arena, "builtins.%.*s", (int)type.length,
                                                type.data)};
        if (c)
            b = (fe_binding){.kind = FE_CLASS, .class_ = c};
        return fe_binding_to_value(ev->fe, b, out);
    }
    if (ev_value_has_method(ev, v, name)) {
        *out_found = true;
        return ev_bound_make(v, name, out);
    }
    return NULL;
}

ts_status ev_get_attribute(evaluator *ev, rt_value v, ts_str name, rt_value *out) {
    bool found;
    TS_TRY(ev_find_attribute(ev, v, name, &found, out));
    if (found)
        return NULL;
    return ts_raise("AttributeError", "'%.*s' object has no attribute '%.*s'",
                    TS_STR_ARG(ev_type_name(v)), TS_STR_ARG(name));
}

ts_status ev_set_attribute(evaluator *ev, rt_value v, ts_str name, rt_value value) {
    if (v.tag == RT_TAG_TENSOR)
        return ev_tensor_set_attribute(ev, v, name, value);
    if (v.tag == RT_TAG_FUNCTION) {
        fe_binding b = fe_binding_of_value(v);
        fe_class_variable *variable =
            b.kind == FE_CLASS ? fe_class_find_variable(b.class_, name) : NULL;
        if (variable) {
            ir_module_retain(ev->fe->module, value);
            variable->value = value;
            variable->is_evaluated = true;
            return NULL;
        }
        if (b.kind == FE_FUNCTION)
            return NULL; /* function attributes mean nothing to us */
    }
    if (v.tag != RT_TAG_OBJECT)
        return ts_raise("AttributeError", "'%.*s' object has no attribute '%.*s'",
                        TS_STR_ARG(ev_type_name(v)), TS_STR_ARG(name));
    fe_class *c = ev_class_of(v);
    if (c) {
        ts_str setter = ts_arena_format(ev->arena, "%.*s.setter", (int)name.length, name.data);
        fe_function *f = fe_class_method(c, setter);
        if (!f)
            f = fe_class_method(c, TS_STR("__setattr__"));
        else {
            ev_arguments args = {0};
            rt_value none = rt_none();
            ev_arguments_add(ev, &args, (ts_str){0}, rt_retain(value));
            ts_status status = ev_call_function(ev, f, &v, &args, &none);
            ev_arguments_release(&args);
            rt_release(none);
            return status;
        }
        fe_function *getter = fe_class_method(c, name);
        if (getter && getter->is_property)
            return ts_raise("AttributeError", "property '%.*s' of '%.*s' object has no setter",
                            TS_STR_ARG(name), TS_STR_ARG(c->bare_name));
    }
    if (ev_is_module(v))
        return ev_module_set_attribute(ev, v, name, value);
    return ev_field_set(ev, v, name, value, EV_PLAIN);
}

ts_status ev_delete_attribute(evaluator *ev, rt_value v, ts_str name) {
    ev_instance *instance = ev_instance_of(v);
    int64_t field = instance ? ev_field_find(instance, name) : -1;
    (void)ev;
    if (field < 0)
        return ts_raise("AttributeError", "'%.*s' object has no attribute '%.*s'",
                        TS_STR_ARG(ev_type_name(v)), TS_STR_ARG(name));
    ev_field_remove(v, field);
    return NULL;
}
