/* frontend/emit_methods.c - methods of tensors, strings, lists, dicts and other builtin types. */
#include "frontend/emit_builtin.h"

static em with_self(emitter *E, ts_str name, ir_value *self, em_arguments *args, const ast_node *node) {
    em_arguments all = {0};
    em_argument first = {.v = em_value(self), .node = node};
    TS_APPEND(E->arena, all.items, all.count, all.capacity, first);
    for (size_t i = 0; i < args->count; i++)
        TS_APPEND(E->arena, all.items, all.count, all.capacity, args->items[i]);
    if (self->type->kind != IR_TENSOR && !fe_operator_exists(E->fe, name)) {
        EM_ERR(E, node, "%s has no method '%.*s'", em_type_text(E, self->type), TS_STR_ARG(name));
        return em_error();
    }
    /* x.where(c, y) is where(c, x, y), x.polygamma(n) is polygamma(n, x). */
    if (ts_str_is(name, "where") || ts_str_is(name, "polygamma")) {
        if (all.count > 1 && !all.items[1].name.length) {
            all.items[0] = all.items[1];
            all.items[1] = first;
        } else {
            all.items[0].name = TS_STR("self");
        }
    }
    bool known = false;
    em r = em_call_by_flags(E, name, &all, node, &known);
    return known ? r : em_operator(E, name, &all, node);
}

static ir_value *plain(emitter *E, em_arguments *args, size_t i, const ast_node *node, const ir_type *hint) {
    return i < args->count ? em_ir(E, args->items[i].v, node, hint) : NULL;
}

static em_argument *named(em_arguments *args, const char *name) {
    for (size_t i = 0; i < args->count; i++)
        if (ts_str_is(args->items[i].name, name))
            return &args->items[i];
    return NULL;
}

static em tensor_method(emitter *E, ir_value *x, ts_str name, em_arguments *args, const ast_node *node,
                        const ir_type *hint) {
    static const struct { const char *name; rt_dtype dtype; } casts[] = {
        {"float", RT_float32}, {"double", RT_float64}, {"half", RT_float16}, {"bfloat16", RT_bfloat16},
        {"long", RT_int64}, {"int", RT_int32}, {"short", RT_int16}, {"char", RT_int8},
        {"byte", RT_uint8}, {"bool", RT_bool}, {"cfloat", RT_complex64}, {"cdouble", RT_complex128}};
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        if (ts_str_is(name, casts[i].name))
            return em_value(em_op(E, "to", node, 2, x, ir_build_int(&E->b, casts[i].dtype)));
    if (ts_str_is(name, "tolist")) {
        ir_value *v = em_row(E, "prim_tolist", node, 1, x);
        const ir_type *item = hint;
        while (item && item->kind == IR_LIST)
            item = item->args[0];
        if (hint && hint != item && item->kind == IR_NUMBER)
            return em_value(em_known_numbers(E, v, x, hint));
        return em_value(v && hint && hint->kind != IR_ANY ? em_check_cast(E, v, hint) : v);
    }
    if (ts_str_is(name, "item") && !args->count && node->source && !node->source->is_archive && !node->source->is_library)
        return em_value(em_known_numbers(E, em_op(E, "item", node, 1, x), x, NULL));
    if (ts_str_is(name, "type") && args->count == 1)
        return with_self(E, TS_STR("to"), x, args, node);
    if (ts_str_is(name, "size") && args->count == 1 && args->items[0].v.kind == EM_VALUE &&
        args->items[0].v.value->type->kind == IR_NONE)
        args->count = 0;
    if (ts_str_is(name, "cuda")) {
        EM_UNSUPPORTED(E, node, "Tensor.cuda is not supported yet: the target decides where a model runs");
        return em_error();
    }
    if (ts_str_is(name, "__len__"))
        return em_value(em_op(E, "len", node, 1, x));
    if (ts_str_is(name, "numpy")) {
        EM_UNSUPPORTED(E, node, "Tensor.numpy is not supported yet");
        return em_error();
    }
    if ((ts_str_is(name, "size") || ts_str_is(name, "stride")) && !args->count) {
        em shape = em_value(em_row(E, ts_str_is(name, "size") ? "size" : "stride", node, 1, x));
        bool is_script = node->source && !node->source->is_archive;
        shape.is_size = is_script && ts_str_is(name, "size");
        shape.is_tuple = is_script && !shape.is_size;
        return shape;
    }
    /* In-place forms and x.expand((2, 3)): tuples go as lists through the conversions. */
    if (ts_str_is(name, "new_tensor") && args->count) {
        em_argument dtype = {.name = TS_STR("dtype"), .node = node,
                             .v = em_value(em_op(E, "prim_dtype", node, 1, x))};
        if (!named(args, "dtype"))
            TS_APPEND(E->arena, args->items, args->count, args->capacity, dtype);
        bool known;
        return em_call_builtin(E, TS_STR("torch.tensor"), args, node, hint, &known);
    }
    return with_self(E, name, x, args, node);
}

/* The text of a constant format with every field numbered: {} {name} {0} as {0} {2} {0}. */
static ir_value *numbered(emitter *E, ir_value *format, em_arguments *args, const ast_node *node) {
    rt_value c;
    if (!ir_const_value(format, &c) || c.tag != RT_TAG_STR) {
        EM_UNSUPPORTED(E, node, "str.format with named arguments of a text known only at run time is not supported yet");
        return NULL;
    }
    ts_str s = rt_str_text(c.as.str);
    ts_buffer out = {0};
    size_t next = 0;
    for (size_t i = 0; i < s.length; i++) {
        ts_buffer_char(&out, s.data[i]);
        if (s.data[i] != '{' || i + 1 == s.length)
            continue;
        if (s.data[i + 1] == '{') {
            ts_buffer_char(&out, s.data[++i]);
            continue;
        }
        size_t end = i + 1;
        while (end < s.length && !strchr(".[!:}", s.data[end]))
            end++;
        ts_str name = {s.data + i + 1, end - i - 1};
        size_t at = 0;
        while (at < args->count && !(name.length && ts_str_equal(args->items[at].name, name)))
            at++;
        if (at < args->count)
            ts_buffer_format(&out, "%zu", at);
        else if (!name.length)
            ts_buffer_format(&out, "%zu", next++);
        else
            ts_buffer_str(&out, name);
        i = end - 1;
    }
    ir_value *v = ir_build_str(&E->b, (ts_str){out.data, out.length});
    ts_buffer_deinit(&out);
    return v;
}

static bool is_utf8_only(emitter *E, em_arguments *args, const ast_node *node) {
    static const char *const names[] = {"utf-8", "utf8", "UTF-8", "UTF8", "utf_8"};
    if (!args->count || ts_str_is(args->items[0].name, "errors")) /* none can be wrong */
        return true;
    ir_value *v = em_argument_ir(E, args, 0, node);
    rt_value c;
    bool found = false;
    for (size_t i = 0; v && ir_const_value(v, &c) && c.tag == RT_TAG_STR && i < sizeof names / sizeof *names; i++)
        found = found || ts_str_is(rt_str_text(c.as.str), names[i]);
    return found;
}

/* The call of encode() whose result this call of decode() takes. */
const ast_node *em_encoded_before(const ast_node *node) {
    const ast_node *f = node && node->kind == AST_CALL ? node->left : NULL;
    if (!f || f->kind != AST_ATTRIBUTE || !ts_str_is(f->text, "decode"))
        return NULL;
    const ast_node *inner = f->left;
    bool is_encode = inner->kind == AST_CALL && inner->left->kind == AST_ATTRIBUTE && ts_str_is(inner->left->text, "encode");
    return is_encode ? inner : NULL;
}

static em string_method(emitter *E, ir_value *s, ts_str name, em_arguments *args, const ast_node *node) {
    if (ts_str_is(name, "format")) {
        bool has_names = false;
        ir_value *text;
        if (em_format_call(E, s, args, node, &text))
            return em_value(text);
        ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, args->count + 1);
        for (size_t i = 0; i < args->count; i++) {
            em v = args->items[i].v;
            has_names = has_names || args->items[i].name.length;
            values[i] = em_shown(E, v, node);
            if (!values[i])
                return em_error();
        }
        if (has_names)
            s = numbered(E, s, args, node);
        return em_value(s ? em_row(E, "format", node, 2, s, em_tuple_of(E, values, args->count)) : NULL);
    }
    if (ts_str_is(name, "join") && args->count == 1) {
        em v = args->items[0].v;
        em_argument arg = {.v = v, .node = node};
        em_arguments one = {.items = &arg, .count = 1};
        bool known;
        fe_binding unused = {0};
        (void)unused;
        em list = v.kind == EM_VALUE && v.value->type->kind == IR_LIST
                      ? v : em_call_builtin(E, TS_STR("builtins.list"), &one, node, NULL, &known);
        return list.kind == EM_VALUE ? em_value(em_op(E, "join", node, 2, s, list.value)) : em_error();
    }
    bool starts = ts_str_is(name, "startswith"), ends = ts_str_is(name, "endswith");
    if ((starts || ends) && args->count == 1 && args->items[0].v.kind == EM_TUPLE) {
        em t = args->items[0].v;
        ir_value *any = ir_build_bool(&E->b, false);
        for (size_t i = 0; i < t.count; i++)
            any = em_row(E, "__or__.bool", node, 2, any,
                         em_op(E, starts ? "startswith" : "endswith", node, 2, s, em_ir(E, t.items[i], node, NULL)));
        return em_value(any);
    }
    for (size_t i = 0; i < args->count; i++) /* the operators' own names */
        if (ts_str_is(args->items[i].name, "maxsplit"))
            args->items[i].name = TS_STR("max");
    bool encodes = ts_str_is(name, "encode");
    if (encodes || (ts_str_is(name, "decode") && em_encoded_before(node))) {
        bool is_utf8 = is_utf8_only(E, args, node);
        if (is_utf8 && (!encodes || node == E->encoded))
            return em_value(s); /* text stays text: bytes exist only between the two */
        EM_UNSUPPORTED(E, node, is_utf8 ? "str.encode without a decode() behind it is not supported yet: there are no bytes"
                                        : "encodings other than UTF-8 are not supported");
        return em_error();
    }
    return with_self(E, name, s, args, node);
}

static bool has_own_rows(const ir_type *t) {
    return t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL || t->kind == IR_STR ||
           t->kind == IR_TENSOR;
}

static bool is_number(const ir_type *t) {
    return t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL || t->kind == IR_COMPLEX;
}

static em list_method(emitter *E, ir_value *list, ts_str name, em_arguments *args, const ast_node *node) {
    const ir_type *t = list->type->args[0];
    bool is_put = ts_str_is(name, "append") || ts_str_is(name, "insert");
    if (is_put && args->count)
        args->items[args->count - 1].v = em_kept(E, args->items[args->count - 1].v, node, t);
    if (ts_str_is(name, "append") && args->count == 1) {
        ir_value *v = plain(E, args, 0, node, t);
        if (em_retype_list(E, list, v))
            return em_value(ir_build_none(&E->b));
        if (v && t->kind == IR_TENSOR && is_number(v->type)) {
            EM_ERR(E, node, "expected Tensor for the appended item, found %s", em_type_text(E, v->type));
            return em_error();
        }
        v = em_coerce(E, v, t, 0, node, "the appended item");
        if (v)
            em_row(E, "append.t", node, 2, list, em_cast(E, v, t));
        return v ? em_value(ir_build_none(&E->b)) : em_error();
    }
    if (ts_str_is(name, "insert") && args->count == 2) {
        ir_value *v = plain(E, args, 1, node, t);
        if (em_retype_list(E, list, v))
            return em_value(ir_build_none(&E->b));
        v = em_coerce(E, v, t, 0, node, "the inserted item");
        ir_value *at = em_coerce(E, plain(E, args, 0, node, NULL), em_simple(E, IR_INT), 0, node, "the index");
        if (v && at)
            em_row(E, "insert.t", node, 3, list, at, em_cast(E, v, t));
        return em_value(ir_build_none(&E->b));
    }
    if (ts_str_is(name, "extend") && args->count == 1) {
        bool known;
        em v = args->items[0].v;
        if (v.kind != EM_VALUE || v.value->type->kind != IR_LIST)
            v = em_call_builtin(E, TS_STR("builtins.list"), args, node, list->type, &known);
        ir_value *more = em_ir(E, v, node, list->type);
        if (more && !ir_type_is_subtype(more->type, list->type) && em_retype_empty(E, list, more->type))
            return em_value(ir_build_none(&E->b));
        more = em_coerce(E, more, list->type, 0, node, "the new items");
        if (more)
            em_row(E, "extend.t", node, 2, list, more);
        return em_value(ir_build_none(&E->b));
    }
    if (ts_str_is(name, "sort")) {
        em_argument *key = named(args, "key"), *reverse = named(args, "reverse");
        if (key || !has_own_rows(t)) {
            em_arguments all = {0};
            em_argument self = {.v = em_value(list), .node = node};
            TS_APPEND(E->arena, all.items, all.count, all.capacity, self);
            for (size_t i = 0; i < args->count; i++)
                TS_APPEND(E->arena, all.items, all.count, all.capacity, args->items[i]);
            bool known;
            em sorted = em_call_builtin(E, TS_STR("builtins.sorted"), &all, node, NULL, &known);
            if (sorted.kind != EM_VALUE)
                return em_error();
            em_row(E, "prim_list_set_slice", node, 5, list, ir_build_none(&E->b), ir_build_none(&E->b),
                   ir_build_int(&E->b, 1), sorted.value);
        } else {
            ir_value *r = reverse ? em_ir(E, reverse->v, node, NULL)
                          : args->count ? em_ir(E, args->items[0].v, node, NULL) : ir_build_bool(&E->b, false);
            em_op(E, "sort", node, 2, list, r);
        }
        return em_value(ir_build_none(&E->b));
    }
    if (args->count == 1 && em_has_own_equality(t, 8) &&
        (ts_str_is(name, "index") || ts_str_is(name, "count") || ts_str_is(name, "remove"))) {
        em operands[2] = {em_value(list), args->items[0].v};
        return em_call_python(E, ts_str_is(name, "index") ? "builtins.list_index_equal"
                                 : ts_str_is(name, "count") ? "builtins.list_count_equal" : "builtins.list_remove_equal",
                              operands, 2, node);
    }
    if (ts_str_is(name, "index") && args->count >= 1) {
        ir_value *v = em_coerce(E, plain(E, args, 0, node, t), t, 0, node, "the item");
        ir_value *start = args->count > 1 ? plain(E, args, 1, node, NULL) : ir_build_int(&E->b, 0);
        ir_value *end = args->count > 2 ? plain(E, args, 2, node, NULL) : ir_build_int(&E->b, INT64_MAX);
        return em_value(v ? em_row(E, "prim_list_index", node, 4, list, v, start, end) : NULL);
    }
    if ((ts_str_is(name, "count") || ts_str_is(name, "remove")) && args->count == 1 && !has_own_rows(t)) {
        ir_value *v = em_coerce(E, plain(E, args, 0, node, t), t, 0, node, "the item");
        return em_value(em_row(E, ts_str_is(name, "count") ? "prim_list_count" : "prim_list_remove", node, 2,
                               list, v));
    }
    if (ts_str_is(name, "numel") && t->kind == IR_INT) {
        em_iteration it;
        ir_value *one = ir_build_int(&E->b, 1);
        if (!em_iterate(E, em_value(list), node, &it))
            return em_error();
        ir_op *op = ir_build_loop(&E->b, it.trip, ir_build_bool(&E->b, true), &one, 1);
        ir_value *p = ir_block_add_parameter(E->m, op->regions[0], one->type, (ts_str){0});
        ir_block *here = em_enter(E, op->regions[0]);
        em item = em_iteration_item(E, &it, op->regions[0]->parameters[0], node);
        ir_value *yields[2] = {ir_build_bool(&E->b, true), em_row(E, "mul.int", node, 2, p, item.value)};
        ir_build_yield(&E->b, yields, 2);
        em_leave(E, here);
        return em_value(ir_op_add_result(E->m, op, one->type, (ts_str){0}));
    }
    return with_self(E, name, list, args, node);
}

static em dict_method(emitter *E, ir_value *dict, ts_str name, em_arguments *args, const ast_node *node) {
    const ir_type *value = dict->type->args[1];
    if (em_is_set_type(dict->type))
        return em_set_method(E, dict, name, args, node);
    if ((ts_str_is(name, "keys") || ts_str_is(name, "values") || ts_str_is(name, "items")) && !args->count)
        return (em){.kind = EM_ITEMS, .value = dict, .name = name};
    bool has_default = ts_str_is(name, "get") || ts_str_is(name, "pop") || ts_str_is(name, "setdefault");
    if (has_default && args->count) {
        em key = em_key(E, args->items[0].v, node);
        if (key.kind == EM_VALUE && key.value && em_has_own_equality(dict->type->args[0], 8))
            key = em_value(em_same_key(E, dict, key.value, node));
        args->items[0].v = key;
    }
    if (has_default && args->count == 2) {
        ir_value *v = em_ir(E, args->items[1].v, node, value);
        if (!v)
            return em_error();
        ir_value *key = em_ir(E, args->items[0].v, node, NULL);
        if (v->type->kind != IR_NONE && em_retype_dict(E, dict, key, v))
            return em_value(em_uninitialized(E, v->type));
        if (v->type->kind == IR_NONE && ts_str_is(name, "pop") && !ir_type_admits_none(value)) {
            em operands[2] = {em_value(dict), em_value(key)};
            return em_call_python(E, "builtins.dict_pop_or_none", operands, 2, node);
        }
        if (v->type->kind == IR_NONE && ts_str_is(name, "get")) {
            args->count = 1;
        } else if (em_conversion_cost(E, v, value, 0) >= 0) {
            v = em_coerce(E, v, value, 0, node, "the default");
            args->items[1].v = em_value(v ? em_cast(E, v, value) : NULL);
        } else {
            EM_ERR(E, node, "expected %s for the default, found %s", em_type_text(E, value),
                   em_type_text(E, v->type));
            return em_error();
        }
    }
    if (ts_str_is(name, "fromkeys") && args->count) {
        em operands[2] = {args->items[0].v, args->count > 1 ? args->items[1].v : em_error()};
        return em_call_python(E, "builtins.dict_fromkeys", operands, args->count, node);
    }
    if (ts_str_is(name, "popitem") && args->count) {
        em operands[2] = {em_value(dict), args->items[0].v};
        return em_call_python(E, "builtins.dict_popitem__last", operands, 2, node);
    }
    if (ts_str_is(name, "update") && args->count > 1 && !args->items[0].name.length) { /* update(other, key=value) */
        em_arguments first = {.items = args->items, .count = 1}, rest = {.items = args->items + 1, .count = args->count - 1};
        em done = dict_method(E, dict, name, &first, node);
        return done.kind == EM_ERROR ? done : dict_method(E, dict, name, &rest, node);
    }
    if (ts_str_is(name, "update") && args->count && args->items[0].v.kind != EM_ERROR && !args->items[0].name.length) {
        em other = args->items[0].v;
        bool known;
        if (!(other.kind == EM_VALUE && other.value->type->kind == IR_DICT)) {
            em_arguments one = {.items = args->items, .count = 1};
            other = em_call_builtin(E, TS_STR("builtins.dict"), &one, node, NULL, &known);
            args->items[0].v = other;
        }
        if (other.kind == EM_VALUE && !ir_type_is_subtype(other.value->type, dict->type) &&
            em_retype_empty(E, dict, other.value->type))
            return em_value(ir_build_none(&E->b));
        if (other.kind == EM_VALUE && em_update_by_keys(E, dict, other.value, node))
            return em_value(ir_build_none(&E->b));
    }
    if (ts_str_is(name, "update") && args->count && args->items[0].name.length) {
        for (size_t i = 0; i < args->count; i++)
            em_op(E, "_set_item", node, 3, dict, ir_build_str(&E->b, args->items[i].name),
                  em_ir(E, args->items[i].v, node, value));
        return em_value(ir_build_none(&E->b));
    }
    return with_self(E, name, dict, args, node);
}

em em_call_builtin_type_method(emitter *E, em method, em_arguments *args, const ast_node *node,
                               const ir_type *hint) {
    ir_value *self = method.value;
    ts_str name = method.name;
    bool is_known;
    if (!self)
        return em_error();
    if (self->type->kind != IR_TENSOR && (!fe_operator_exists(E->fe, name) || ts_str_starts_with(name, "__"))) {
        em found = em_python_method(E, self, name, args, node, &is_known);
        if (is_known || em_dunder(E, self, name, args, node, &found))
            return found;
    }
    switch (self->type->kind) {
    case IR_TENSOR:
        return tensor_method(E, self, name, args, node, hint);
    case IR_STR:
        return string_method(E, self, name, args, node);
    case IR_LIST:
        return list_method(E, self, name, args, node);
    case IR_DICT:
        return dict_method(E, self, name, args, node);
    case IR_FUTURE:
        if (ts_str_is(name, "wait") || ts_str_is(name, "value"))
            return em_value(em_cast(E, self, self->type->args[0]));
        break;
    case IR_TUPLE:
        if (ts_str_is(name, "index") || ts_str_is(name, "count")) {
            em_argument arg = {.v = em_value(self), .node = node};
            em_arguments one = {.items = &arg, .count = 1};
            bool known;
            em list = em_call_builtin(E, TS_STR("builtins.list"), &one, node, NULL, &known);
            return list.kind == EM_VALUE ? list_method(E, list.value, name, args, node) : em_error();
        }
        if (self->type->class_ && (ts_str_is(name, "_asdict") || ts_str_is(name, "_replace")))
            return em_named_tuple_method(E, self, name, args, node);
        break;
    case IR_COMPLEX:
        if (ts_str_is(name, "conjugate"))
            return em_value(em_row(E, "prim_conjugate", node, 1, self));
        break;
    case IR_CLASS:
        if (self->type->class_->base.kind == RT_CLASS_MODULE) {
            if (ts_str_is(name, "__len__")) {
                em_argument arg = {.v = em_value(self), .node = node};
                em_arguments one = {.items = &arg, .count = 1};
                bool known;
                return em_call_builtin(E, TS_STR("builtins.len"), &one, node, NULL, &known);
            }
            if (!ts_str_is(name, "train") && !ts_str_is(name, "eval") && !ts_str_is(name, "state_dict") &&
                !ts_str_is(name, "zero_grad") && !ts_str_is(name, "requires_grad_"))
                return (em){.kind = EM_CHILDREN, .value = self, .name = name};
        }
        break;
    case IR_INT:
        if (ts_str_is(name, "is_floating_point") || ts_str_is(name, "is_complex")) {
            /* of a dtype */
            static const int floats[] = {5, 6, 7, 15}, complexes[] = {8, 9, 10};
            bool f = ts_str_is(name, "is_floating_point");
            ir_value *any = ir_build_bool(&E->b, false);
            for (size_t i = 0; i < (f ? 4u : 3u); i++)
                any = em_row(E, "__or__.bool", node, 2, any,
                             em_row(E, "eq.int", node, 2, self, ir_build_int(&E->b, f ? floats[i] : complexes[i])));
            return em_value(any);
        }
        if (ts_str_is(name, "__abs__"))
            return em_value(em_row(E, "prim_abs.int", node, 1, self));
        if (ts_str_is(name, "bit_length"))
            return with_self(E, name, self, args, node);
        break;
    case IR_GENERATOR:
        if (ts_str_is(name, "manual_seed") && args->count == 1)
            return em_value(em_row(E, "manual_seed.generator", node, 2, self, em_argument_ir(E, args, 0, node)));
        if (ts_str_is(name, "initial_seed") || ts_str_is(name, "seed"))
            return with_self(E, name, self, args, node);
        break;
    case IR_FLOAT:
        if (ts_str_is(name, "is_integer"))
            return with_self(E, name, self, args, node);
        break;
    default:
        break;
    }
    EM_UNSUPPORTED(E, node, "%s.%.*s is not supported yet", em_type_text(E, self->type), TS_STR_ARG(name));
    return em_error();
}
