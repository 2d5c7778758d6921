/* frontend/emit_attr.c - attributes: fields of objects, methods, properties, names in namespaces.
 *
 * One file although it is long: what x.name means is one search in an order that matters (field, method, property,
 * class variable, __getattr__), with a few lines for each kind of x, read and written. */
#include "frontend/emit_builtin.h"
#include "frontend/init_eval.h"

static em method_of(ir_value *receiver, ts_str name) {
    return (em){.kind = EM_METHOD, .value = receiver, .name = name};
}

static em get_field(emitter *E, ir_value *object, const ir_field *f) {
    if (f->is_constant)
        return em_of_value(E, f->constant);
    if (f->type->kind == IR_NONE)
        return em_value(ir_build_none(&E->b));
    ir_op *op = ir_build_op(&E->b, IR_OP_GET_ATTR, &object, 1, &f->type, 1);
    op->name = f->name;
    return em_value(op->results[0]);
}

static bool class_value(emitter *E, fe_class *c, ts_str name, em *out) {
    fe_class_variable *v = fe_class_find_variable(c, name);
    if (!v)
        return false;
    if (c->kind == RT_CLASS_ENUM)
        fe_class_ir(E->fe, c);
    if (!v->is_evaluated) {
        if (!v->initial)
            return false;
        fe_binding b = fe_resolve_dotted(E->fe, c->scope, v->initial);
        if (b.kind == FE_FUNCTION || b.kind == FE_CLASS || b.kind == FE_NAME) {
            *out = em_binding(E, b);
            return true;
        }
        if (!fe_evaluate_expression(E->fe, c->scope, v->initial, &v->value)) {
            E->failed = true;
            return false;
        }
        ir_module_retain(E->m, v->value);
        rt_release(v->value);
        v->is_evaluated = true;
    }
    for (size_t i = 0; i <= c->ancestor_count && E->fe->globals.count; i++) {
        ir_value *state = em_class_state(E, i ? c->ancestors[i - 1] : c, name);
        if (state) {
            *out = em_attribute_of(E, em_value(state), TS_STR("value"), NULL, false);
            return true;
        }
    }
    *out = em_of_value(E, v->value);
    return true;
}

/* The getter of a property, or NULL. */
static fe_function *getter_of(emitter *E, fe_class *c, ts_str name, ts_str *out_key) {
    fe_function *f = fe_class_method(c, name);
    *out_key = name;
    if (f && f->is_property)
        return f;
    if (f || !c->is_archive)
        return NULL;
    *out_key = ts_arena_format(E->arena, "__%.*s_getter", (int)name.length, name.data);
    return fe_class_method(c, *out_key);
}

static const char module_methods[] =
    " children named_children modules named_modules parameters named_parameters buffers "
    "named_buffers items keys values train eval requires_grad_ state_dict zero_grad __len__ ";

static bool is_module_method(ts_str name) {
    char text[64];
    if (name.length > 40)
        return false;
    text[0] = ' ';
    memcpy(text + 1, name.data, name.length);
    text[name.length + 1] = ' ';
    text[name.length + 2] = 0;
    return strstr(module_methods, text) != NULL;
}

static em own_value(emitter *E, ir_value *part, const void *context, const ast_node *node) {
    const ts_str *name = context;
    ir_class *c = (ir_class *)(uintptr_t)part->type->class_;
    const ir_field *f = em_find_field(c, *name);
    em out = em_error();
    if (f)
        return get_field(E, part, f);
    if (!class_value(E, fe_class_of(c), *name, &out))
        EM_ERR(E, node, "%.*s has no attribute '%.*s'", TS_STR_ARG(c->base.bare_name), TS_STR_ARG(*name));
    return out;
}

static bool object_attribute(emitter *E, ir_value *object, ts_str name, const ast_node *node,
                             em *out) {
    ir_class *c = (ir_class *)object->type->class_;
    fe_class *class_ = fe_class_of(c);
    if (class_ && class_->ir == c && class_->ir_state == 0)
        fe_class_ir(E->fe, class_);
    const ir_field *f = em_find_field(c, name);
    if (f) {
        *out = get_field(E, object, f);
        return true;
    }
    rt_value known;
    if (fe_static_attribute(E->fe, c, name, &known)) {
        *out = em_of_value(E, known);
        return true;
    }
    if (!class_)
        return false;
    ts_str key;
    if (getter_of(E, class_, name, &key)) {
        em_arguments none = {0};
        *out = em_call_method(E, object, key, &none, node);
        return true;
    }
    fe_function *method = fe_class_method(class_, name);
    if (method) {
        *out = method_of(object, name);
        out->function = method;
        out->class_ = c;
        return true;
    }
    if (fe_class_find_variable(class_, name) && em_is_overridden(E, class_, name)) {
        *out = em_by_class(E, object, own_value, &name, node);
        return out->kind != EM_ERROR;
    }
    if (class_value(E, class_, name, out))
        return true;
    if (ts_str_is(name, "__class__")) {
        *out = em_binding(E, (fe_binding){.kind = FE_CLASS, .class_ = class_});
        return true;
    }
    if (ts_str_is(name, "__dict__") && c->base.kind == RT_CLASS_PLAIN) {
        *out = em_vars(E, object, node);
        return true;
    }
    rt_value fixed;
    if (fe_static_attribute(E->fe, c, name, &fixed)) { /* a function, a list of functions */
        *out = em_of_value(E, fixed);
        return true;
    }
    if (c->base.kind == RT_CLASS_MODULE && is_module_method(name)) {
        *out = method_of(object, name);
        out->class_ = c;
        return true;
    }
    return false;
}

static bool tensor_attribute(emitter *E, ir_value *x, ts_str name, const ast_node *node, em *out) {
    static const struct { const char *name, *op; } table[] = {
        {"shape", "size"}, {"dtype", "prim_dtype"}, {"device", "prim_device"}, {"ndim", "dim"},
        {"layout", "prim_layout"}, {"requires_grad", "prim_requires_grad"}, {"grad", "prim_grad"},
        {"data", "prim_data"}, {"is_cuda", "prim_is_cuda"}, {"is_sparse", "prim_is_sparse"},
        {"is_quantized", "prim_is_quantized"}, {"is_meta", "prim_is_meta"}, {"itemsize", "prim_itemsize"},
        {"nbytes", "prim_nbytes"}, {"is_cpu", "prim_is_cpu"}, {"is_mkldnn", "prim_is_mkldnn"},
        {"is_nested", "prim_is_nested"}, {"is_sparse_csr", "prim_is_sparse_csr"},
        {"is_xpu", "prim_is_xpu"}, {"is_mps", "prim_is_mps"}, {"T", "numpy_T"}, {"mT", "mT"},
        {"H", "matrix_H"}, {"mH", "mH"}, {"real", "real"}, {"imag", "imag"}, {"is_leaf", "is_leaf"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (ts_str_is(name, table[i].name)) {
            *out = em_value(em_op(E, table[i].op, node, 1, x));
            out->is_size = ts_str_is(name, "shape") && out->kind == EM_VALUE && node->source && !node->source->is_archive;
            if (out->kind == EM_VALUE && node->source && !node->source->is_archive && ts_str_is(name, "dtype"))
                out->value->type = ir_type_meant(E->m, RT_MEANING_DTYPE);
            if (out->kind == EM_VALUE && node->source && !node->source->is_archive && ts_str_is(name, "layout"))
                out->value->type = ir_type_meant(E->m, RT_MEANING_LAYOUT);
            return true;
        }
    *out = method_of(x, name);
    return true;
}

/* torch.float32.itemsize and its like: an item of a list of all such. */
static bool dtype_fact(emitter *E, ir_value *dtype, ts_str name, const ast_node *node, em *out) {
    ir_value *items[RT_DTYPE_COUNT];
    bool is_size = ts_str_is(name, "itemsize"), is_float = ts_str_is(name, "is_floating_point");
    bool is_complex = ts_str_is(name, "is_complex"), is_signed = ts_str_is(name, "is_signed");
    if (!is_size && !is_float && !is_complex && !is_signed)
        return false;
    for (int i = 0; i < RT_DTYPE_COUNT; i++) {
        rt_dtype d = (rt_dtype)i;
        items[i] = is_size ? ir_build_int(&E->b, (int64_t)rt_dtype_size(d))
                           : ir_build_bool(&E->b, is_float     ? rt_dtype_is_float(d)
                                                  : is_complex ? rt_dtype_is_complex(d)
                                                               : d != RT_uint8 && d != RT_bool);
    }
    ir_value *list = em_list_of(E, items, RT_DTYPE_COUNT, items[0]->type);
    *out = em_value(em_op(E, "__getitem__", node, 2, list, dtype));
    return true;
}

/* x.max(dim=0).indices: the operator's schema names its results. */
static ir_value *named_result(const ir_value *tuple, ts_str name) {
    const ir_op *made = tuple->def;
    const ir_op *op = made && made->opcode == IR_OP_TUPLE && made->operand_count ? made->operands[0]->def : NULL;
    if (!op || op->opcode != IR_OP_CORE || op->result_count != made->operand_count)
        return NULL;
    const char *at = strstr(rt_op_get(op->core)->schema, "-> (");
    for (size_t i = 0; at && i < op->result_count; i++) {
        at += strcspn(at, " (") + 1;      /* before the type */
        const char *end = at + strcspn(at, ",)");
        const char *word = end;
        while (word > at && word[-1] != ' ')
            word--;
        if (made->operands[i] == op->results[i] && ts_str_equal(name, (ts_str){word, (size_t)(end - word)}))
            return op->results[i];
        at = end + 1;
    }
    return NULL;
}

static bool tuple_attribute(emitter *E, ir_value *v, ts_str name, const ast_node *node, em *out) {
    const ir_type *t = v->type;
    for (size_t i = 0; t->class_ && i < t->class_->field_count; i++)
        if (ts_str_equal(t->class_->fields[i].name, name)) {
            ir_op *op = ir_build_op(&E->b, IR_OP_TUPLE_GET, &v, 1, &t->args[i], 1);
            op->integer = (int64_t)i;
            *out = em_value(op->results[0]);
            return true;
        }
    fe_class *c = t->class_ ? fe_class_of(t->class_) : NULL;
    ir_value *result = t->class_ ? NULL : named_result(v, name);
    if (result) {
        *out = em_value(result);
        return true;
    }
    if (c && ts_str_is(name, "_fields")) {
        *out = em_field_names(E, c);
        return true;
    }
    if (c && fe_class_method(c, name) && fe_class_method(c, name)->is_property) {
        em_arguments none = {0};
        *out = em_call_method(E, v, name, &none, node);
        return true;
    }
    *out = method_of(v, name);
    if (c && fe_class_method(c, name)) {
        out->function = fe_class_method(c, name);
        out->class_ = (ir_class *)t->class_;
    }
    return true;
}

/* v, of which None has no attribute. */
static ir_value *not_none(emitter *E, ir_value *v, const ir_type *type, ts_str name, const ast_node *node) {
    if (!em_is_script(node))
        return em_check_cast(E, v, type);
    ir_op *op = ir_build_if(&E->b, em_row(E, "__is__", node, 2, v, ir_build_none(&E->b)));
    ir_block *here = em_enter(E, op->regions[0]);
    em_state state = E->env.state;
    ts_str text = ts_arena_format(E->arena, "'NoneType' object has no attribute '%.*s'", TS_STR_ARG(name));
    em_raise_named(E, TS_STR("AttributeError"), ir_build_str(&E->b, text));
    E->env.state = state;
    ir_build_yield(&E->b, NULL, 0);
    em_enter(E, op->regions[1]);
    ir_build_yield(&E->b, NULL, 0);
    em_leave(E, here);
    return em_cast(E, v, type);
}

static bool value_attribute(emitter *E, ir_value *v, ts_str name, const ast_node *node, em *out) {
    const ir_type *t = v->type;
    switch (t->kind) {
    case IR_TENSOR:
        return tensor_attribute(E, v, name, node, out);
    case IR_CLASS:
        return object_attribute(E, v, name, node, out);
    case IR_TUPLE:
        return tuple_attribute(E, v, name, node, out);
    case IR_ENUM: {
        const ir_class *c = t->class_;
        if (ts_str_is(name, "name")) {
            *out = em_value(em_op(E, "prim_EnumName", node, 1, v));
            return true;
        }
        if (ts_str_is(name, "value")) {
            rt_value member;
            if (ir_const_value(v, &member) && member.tag == RT_TAG_ENUM) {
                *out = em_value(ir_build_const(&E->b, member.as.enumeration->value));
                return true;
            }
            rt_tag tag = c->enum_member_count
                             ? (rt_tag)c->enum_members[0].as.enumeration->value.tag : RT_TAG_INT;
            for (size_t i = 1; i < c->enum_member_count; i++)
                if (c->enum_members[i].as.enumeration->value.tag != tag) {
                    EM_UNSUPPORTED(E, node, "the value of a member of %.*s, whose members have values of several types, is not "
                                            "supported yet", TS_STR_ARG(c->base.bare_name));
                    *out = em_error();
                    return true;
                }
            *out = em_value(em_row(E, tag == RT_TAG_STR ? "prim_EnumValue.str"
                                      : tag == RT_TAG_FLOAT ? "prim_EnumValue.float"
                                                            : "prim_EnumValue.int", node, 1, v));
            return true;
        }
        fe_class *class_ = fe_class_of(c);
        fe_function *f = class_ ? fe_class_method(class_, name) : NULL;
        if (f) {
            *out = method_of(v, name);
            out->function = f;
            out->class_ = (ir_class *)c;
            if (f->is_property) {
                em_arguments none = {0};
                *out = em_call_method(E, v, name, &none, node);
            }
            return true;
        }
        return class_ && class_value(E, class_, name, out);
    }
    case IR_DEVICE:
        if (ts_str_is(name, "type") || ts_str_is(name, "index")) {
            *out = em_value(em_op(E, ts_str_is(name, "type") ? "prim_type" : "prim_index", node, 1, v));
            return true;
        }
        return false;
    case IR_COMPLEX:
        if (ts_str_is(name, "real") || ts_str_is(name, "imag")) {
            *out = em_value(em_op(E, ts_str_is(name, "real") ? "prim_real" : "prim_imag", node, 1, v));
            return true;
        }
        *out = method_of(v, name);
        return true;
    case IR_OPTIONAL:
        return value_attribute(E, not_none(E, v, t->args[0], name, node), name, node, out);
    case IR_UNION: {
        const ir_type *plain = ir_type_without_none(E->m, t);
        if (plain != t)
            return value_attribute(E, not_none(E, v, plain, name, node), name, node, out);
        return em_union_attribute(E, v, name, node, out);
    }
    case IR_INT:
        if (ts_str_is(name, "real") || ts_str_is(name, "numerator")) {
            *out = em_value(v);
            return true;
        }
        if (ts_str_is(name, "imag") || ts_str_is(name, "denominator")) {
            *out = em_value(ir_build_int(&E->b, ts_str_is(name, "denominator")));
            return true;
        }
        if (ir_type_meaning(v->type) == RT_MEANING_DTYPE && dtype_fact(E, v, name, node, out))
            return true;
        *out = method_of(v, name);
        return true;
    case IR_FLOAT:
    case IR_BOOL:
    case IR_NUMBER:
        if ((ts_str_is(name, "real") || ts_str_is(name, "imag")) && v->type->kind != IR_NUMBER) {
            bool is_bool = v->type->kind == IR_BOOL, is_real = ts_str_is(name, "real");
            ir_value *part = is_real ? v : is_bool ? ir_build_bool(&E->b, false) : ir_build_float(&E->b, 0.0);
            *out = em_value(is_bool ? em_op(E, "Int", node, 1, part) : part);
            return true;
        }
        *out = method_of(v, name);
        return true;
    case IR_STR:
    case IR_LIST:
    case IR_DICT:
    case IR_FUTURE:
    case IR_GENERATOR:
    case IR_CAPSULE:
        *out = method_of(v, name);
        return true;
    default:
        return false;
    }
}

static bool binding_attribute(emitter *E, const fe_binding *b, ts_str name, em *out) {
    fe_binding r = {0};
    switch (b->kind) {
    case FE_NAMESPACE:
        r = fe_namespace_get(E->fe, b->path, name);
        /* An archive's torch.X is an operator, whether we have it or not. */
        if (r.kind == FE_UNBOUND && ts_str_is(b->path, "torch") && E->function && E->function->node->source &&
            E->function->node->source->is_archive)
            r = (fe_binding){.kind = FE_NAME,
                             .path = ts_arena_format(E->arena, "torch.%.*s", (int)name.length, name.data)};
        break;
    case FE_NAME:
        if (ts_str_is(name, "__name__")) {
            size_t at = b->path.length;
            while (at && b->path.data[at - 1] != '.')
                at--;
            *out = em_value(ir_build_str(&E->b, (ts_str){b->path.data + at, b->path.length - at}));
            return true;
        }
        r = (fe_binding){.kind = FE_NAME,
                         .path = ts_arena_format(E->arena, "%.*s.%.*s", (int)b->path.length,
                                                 b->path.data, (int)name.length, name.data)};
        if (ts_str_is(b->path, "archive.CONSTANTS") && name.length > 1 && name.data[0] == 'c') {
            size_t index = 0;
            for (size_t i = 1; i < name.length; i++)
                index = index * 10 + (size_t)(name.data[i] - '0');
            bool found;
            rt_value v = fe_archive_constant(E->fe, index, &found);
            if (!found)
                return false;
            *out = em_of_value(E, v);
            return true;
        }
        break;
    case FE_CLASS: {
        if (class_value(E, b->class_, name, out))
            return true;
        fe_function *f = fe_class_method(b->class_, name);
        if (f) {
            if (f->is_class_method)
                f = em_class_method_of(E, b->class_, f);
            *out = em_binding(E, (fe_binding){.kind = FE_FUNCTION, .function = f});
            return true;
        }
        if (b->class_->kind == RT_CLASS_NAMED_TUPLE && ts_str_is(name, "_fields")) {
            *out = em_field_names(E, b->class_);
            return true;
        }
        if (ts_str_is(name, "__new__") || (b->class_->kind == RT_CLASS_NAMED_TUPLE && ts_str_is(name, "_make"))) {
            *out = (em){.kind = EM_METHOD, .binding = b, .name = name};
            return true;
        }
        if (ts_str_is(name, "__name__")) {
            *out = em_value(ir_build_str(&E->b, b->class_->bare_name));
            return true;
        }
        return false;
    }
    default:
        return false;
    }
    if (r.kind == FE_UNBOUND)
        return false;
    *out = em_binding(E, r);
    return true;
}

/* torch.finfo(dtype).max and its like: a constant, or a choice among the dtypes. */
static bool dtype_attribute(emitter *E, ir_value *dtype, ts_str name, const ast_node *node, em *out) {
    static const struct { int dtype; double min, max, eps, tiny; int bits; } floats[] = {
        {RT_float32, -3.4028234663852886e+38, 3.4028234663852886e+38, 1.1920928955078125e-07, 1.1754943508222875e-38, 32},
        {RT_float64, -1.7976931348623157e+308, 1.7976931348623157e+308, 2.220446049250313e-16, 2.2250738585072014e-308, 64},
        {RT_float16, -65504.0, 65504.0, 0.0009765625, 6.103515625e-05, 16},
        {RT_bfloat16, -3.3895313892515355e+38, 3.3895313892515355e+38, 0.0078125, 1.1754943508222875e-38, 16}};
    static const struct { int dtype; int64_t min, max; int bits; } ints[] = {
        {RT_int64, INT64_MIN, INT64_MAX, 64}, {RT_int32, INT32_MIN, INT32_MAX, 32},
        {RT_int16, INT16_MIN, INT16_MAX, 16}, {RT_int8, INT8_MIN, INT8_MAX, 8}, {RT_uint8, 0, 255, 8}};
    enum { MIN, MAX, EPS, TINY, BITS } what;
    if (ts_str_is(name, "min"))
        what = MIN;
    else if (ts_str_is(name, "max"))
        what = MAX;
    else if (ts_str_is(name, "eps") || ts_str_is(name, "resolution"))
        what = EPS;
    else if (ts_str_is(name, "tiny") || ts_str_is(name, "smallest_normal"))
        what = TINY;
    else if (ts_str_is(name, "bits"))
        what = BITS;
    else
        return false;
    int64_t known = -1;
    bool is_known = ir_const_int(dtype, &known);
    ir_value *values[9];
    int dtypes[9];
    size_t count = 0;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        if (is_known && floats[i].dtype != known)
            continue;
        double f = what == MIN ? floats[i].min : what == MAX ? floats[i].max
                   : what == EPS ? floats[i].eps : floats[i].tiny;
        dtypes[count] = floats[i].dtype;
        values[count++] = what == BITS ? ir_build_int(&E->b, floats[i].bits) : ir_build_float(&E->b, f);
    }
    for (size_t i = 0; is_known && i < sizeof ints / sizeof *ints && what != EPS && what != TINY; i++) {
        if (ints[i].dtype != known)
            continue;
        dtypes[count] = ints[i].dtype;
        values[count++] = ir_build_int(&E->b, what == MIN ? ints[i].min : what == MAX ? ints[i].max : ints[i].bits);
    }
    if (!count)
        return false;
    ir_value *v = values[0];
    for (size_t i = 1; i < count; i++) { /* float32 unless the dtype says another */
        em_choice choice;
        em_choose(E, &choice, em_row(E, "eq.int", node, 2, dtype, ir_build_int(&E->b, dtypes[i])));
        em_choose_other(E, &choice, values[i]);
        v = em_choose_end(E, &choice, v, node);
    }
    *out = em_value(v);
    return true;
}

static bool find_attribute(emitter *E, em object, ts_str name, const ast_node *node, em *out) {
    switch (object.kind) {
    case EM_BINDING:
        if (object.binding->kind != FE_VALUE)
            return binding_attribute(E, object.binding, name, out);
        break;
    case EM_SUPER: {
        fe_class *owner;
        fe_function *method = em_super_method(E, object.after, name, &owner);
        if (method && method->is_property) {
            em_arguments none = {0};
            *out = em_call_method_of(E, object.value, owner, method, &none, node);
            return true;
        }
        *out = (em){.kind = EM_METHOD, .value = object.value, .name = name, .after = object.after};
        return true;
    }
    case EM_ERROR:
        *out = em_error();
        return true;
    case EM_CHOICE:
        *out = em_attribute_of_choice(E, object, name, node);
        return true;
    case EM_ITEMS:
        if (!ts_str_is(name, "isdisjoint"))
            break;
        *out = method_of(em_set_from(E, object, node, NULL), name);
        return true;
    case EM_DTYPE_INFO:
        return dtype_attribute(E, object.value, name, node, out);
    case EM_EXCEPTION:
        if (ts_str_is(name, "__name__")) {
            *out = em_value(object.keys ? object.keys[0]
                                        : ir_build_str(&E->b, object.binding->class_->bare_name));
            return true;
        }
        if (ts_str_is(name, "__class__")) {
            *out = object;
            return true;
        }
        if (ts_str_is(name, "args") || ts_str_is(name, "__cause__")) {
            *out = ts_str_is(name, "args") ? em_exception_arguments(E, object, node) : em_cause_of(E, object, node);
            return true;
        }
        return false;
    default:
        break;
    }
    ir_value *v = em_ir(E, object, node, NULL);
    if (!v) {
        *out = em_error();
        return true;
    }
    if (v->type->kind == IR_STR && ts_str_is(name, "__name__")) { /* the class that __exit__ is given */
        *out = em_value(v);
        return true;
    }
    if (em_is_exception(v->type) && ts_str_is(name, "args")) {
        *out = em_exception_arguments(E, em_value(v), node);
        return true;
    }
    if (em_is_exception(v->type) && ts_str_is(name, "__cause__")) {
        *out = em_cause_of(E, em_value(v), node);
        return true;
    }
    return value_attribute(E, v, name, node, out);
}

em em_attribute_of(emitter *E, em object, ts_str name, const ast_node *node, bool quiet) {
    em out = em_error();
    object = quiet ? object : em_tensor_part(E, object);
    if (find_attribute(E, object, name, node, &out))
        return out;
    if (quiet)
        return em_error();
    if (em_note_missing(E, object, name, node))
        return em_error();
    if (object.kind == EM_BINDING && object.binding->kind == FE_NAMESPACE)
        EM_UNSUPPORTED(E, node, "%.*s.%.*s is not supported yet", TS_STR_ARG(object.binding->path),
                       TS_STR_ARG(name));
    else if (object.kind == EM_BINDING && object.binding->kind == FE_CLASS)
        EM_ERR(E, node, "class %.*s has no attribute '%.*s'",
               TS_STR_ARG(object.binding->class_->bare_name), TS_STR_ARG(name));
    else if (object.kind == EM_VALUE)
        EM_ERR(E, node, "%s has no attribute '%.*s'", em_type_text(E, object.value->type),
               TS_STR_ARG(name));
    else
        EM_ERR(E, node, "this has no attribute '%.*s'", TS_STR_ARG(name));
    return em_error();
}

/* Point(x, y) in a match statement: the name that the class's __match_args__ has at a position. */
static bool match_argument(emitter *E, em object, ts_str *name, const ast_node *node) {
    size_t prefix = sizeof FE_MATCH_ARGUMENT - 1, index = 0;
    if (object.kind != EM_VALUE)
        return false;
    for (size_t i = prefix; i < name->length; i++)
        index = 10 * index + (size_t)(name->data[i] - '0');
    const ir_type *t = object.value->type;
    fe_class *c = t->class_ && (t->kind == IR_CLASS || t->kind == IR_TUPLE) ? fe_class_of(t->class_) : NULL;
    fe_class_variable *given = c ? fe_class_find_variable(c, TS_STR("__match_args__")) : NULL;
    if (given && given->initial && given->initial->kind == AST_TUPLE && index < given->initial->list.count &&
        given->initial->list.items[index]->kind == AST_STRING) {
        *name = given->initial->list.items[index]->text;
        return true;
    }
    if (!given && c && (c->is_dataclass || t->kind == IR_TUPLE) && index < t->class_->field_count) {
        *name = t->class_->fields[index].name;
        return true;
    }
    EM_ERR(E, node, "%s has no attribute for part %zu of the pattern", em_type_text(E, t), index + 1);
    return false;
}

em em_attribute(emitter *E, const ast_node *node) {
    em object = em_expression(E, node->left, NULL);
    em_place(E, node);
    if (ts_str_starts_with(node->text, FE_MATCH_ARGUMENT)) {
        ts_str name = node->text;
        return match_argument(E, object, &name, node) ? em_attribute_of(E, object, name, node, false) : em_error();
    }
    return em_attribute_of(E, object, node->text, node, false);
}

bool em_has_attribute(emitter *E, em object, ts_str name) {
    if (object.kind == EM_BINDING && object.binding->kind == FE_NAMESPACE)
        return fe_namespace_get(E->fe, object.binding->path, name).kind != FE_UNBOUND;
    if (object.kind == EM_VALUE && object.value->type->kind == IR_CLASS) {
        const ir_class *c = object.value->type->class_;
        fe_class *class_ = fe_class_of(c);
        rt_value known;
        return em_find_field(c, name) || fe_static_attribute(E->fe, c, name, &known) ||
               (class_ && (fe_class_method(class_, name) || fe_class_find_variable(class_, name)));
    }
    if (object.kind == EM_BINDING && object.binding->kind == FE_CLASS)
        return fe_class_method(object.binding->class_, name) ||
               fe_class_find_variable(object.binding->class_, name);
    if (object.kind == EM_VALUE && object.value->type->kind == IR_TENSOR)
        return fe_operator_exists(E->fe, name) || ts_str_is(name, "shape") || ts_str_is(name, "dtype");
    return false;
}

bool em_class_has_method(const ir_type *t, const char *name) {
    if (t->kind != IR_CLASS && t->kind != IR_TUPLE && t->kind != IR_ENUM)
        return false;
    fe_class *c = t->class_ ? fe_class_of(t->class_) : NULL;
    return c && fe_class_method(c, ts_str_of(name)) != NULL;
}
