/* frontend/emit_builtin.c - Python's builtin functions and the helpers of torch.jit and the archives'
 * dialect. What is a plain operator goes through the operator table (overload.c). */
#include "frontend/emit_builtin.h"

size_t em_positional_count(const em_arguments *args) {
    size_t n = 0;
    while (n < args->count && !args->items[n].name.length)
        n++;
    return n;
}

em_argument *em_named(em_arguments *args, const char *name) {
    for (size_t i = 0; i < args->count; i++)
        if (ts_str_is(args->items[i].name, name))
            return &args->items[i];
    return NULL;
}

ir_value *em_argument_ir(emitter *E, em_arguments *args, size_t i, const ast_node *node) {
    if (i >= args->count) {
        EM_ERR(E, node, "an argument is missing");
        return NULL;
    }
    ir_value *v = em_ir(E, args->items[i].v, args->items[i].node ? args->items[i].node : node, NULL);
    if (v && v->type->kind == IR_OPTIONAL)
        v = em_check_cast(E, v, v->type->args[0]);
    return v;
}

/* ---- conversions ---- */

static em builtin_int(emitter *E, em_arguments *args, const ast_node *node) {
    if (!args->count)
        return em_value(ir_build_int(&E->b, 0));
    args->items[0].v = em_enum_value(E, args->items[0].v, node);
    ir_value *v = em_argument_ir(E, args, 0, node);
    if (!v)
        return em_error();
    if (args->count == 2)
        return em_value(em_op(E, "Int", node, 2, v, em_argument_ir(E, args, 1, node)));
    if (v->type->kind == IR_INT)
        return em_value(v);
    if (em_class_has_method(v->type, "__int__"))
        return em_call_method0(E, v, "__int__", NULL, 0, node);
    if (em_class_has_method(v->type, "__index__"))
        return em_value(em_index_of(E, v, node));
    return em_value(em_op(E, "Int", node, 1, v));
}

static em builtin_float(emitter *E, em_arguments *args, const ast_node *node) {
    if (!args->count)
        return em_value(ir_build_float(&E->b, 0.0));
    ir_value *v = em_argument_ir(E, args, 0, node);
    if (!v)
        return em_error();
    if (v->type->kind == IR_FLOAT)
        return em_value(v);
    rt_value c;
    if (ir_const_value(v, &c)) {
        if (c.tag == RT_TAG_INT)
            return em_value(ir_build_float(&E->b, (double)c.as.i));
        if (c.tag == RT_TAG_STR) {
            ts_str s = rt_str_text(c.as.str);
            if (ts_str_is(s, "inf") || ts_str_is(s, "infinity"))
                return em_value(ir_build_float(&E->b, __builtin_inf()));
            if (ts_str_is(s, "-inf"))
                return em_value(ir_build_float(&E->b, -__builtin_inf()));
            if (ts_str_is(s, "nan"))
                return em_value(ir_build_float(&E->b, __builtin_nan("")));
        }
    }
    if (em_class_has_method(v->type, "__float__"))
        return em_call_method0(E, v, "__float__", NULL, 0, node);
    v = em_index_of(E, v, node);
    return em_value(em_op(E, "Float", node, 1, v));
}

static em builtin_len(emitter *E, em_arguments *args, const ast_node *node) {
    if (args->count != 1)
        return em_error();
    em v = args->items[0].v;
    if (v.kind == EM_TUPLE)
        return em_value(ir_build_int(&E->b, (int64_t)v.count));
    if (v.kind == EM_RANGE)
        return em_value(em_row(E, "__range_length", node, 3, v.items[0].value, v.items[1].value,
                               v.items[2].value));
    if (v.kind == EM_ITEMS)
        v = em_value(v.value);
    if (v.kind == EM_CHILDREN || (v.kind == EM_BINDING && v.binding->kind == FE_CLASS)) {
        em_iteration it;
        return em_iterate(E, v, node, &it) ? em_value(ir_build_int(&E->b, (int64_t)it.count)) : em_error();
    }
    ir_value *x = em_ir(E, v, node, NULL);
    if (!x)
        return em_error();
    if (x->type->kind == IR_OPTIONAL)
        x = em_check_cast(E, x, x->type->args[0]);
    if (x->type->kind == IR_TUPLE)
        return em_value(ir_build_int(&E->b, (int64_t)x->type->arg_count));
    if (em_class_has_method(x->type, "__len__"))
        return em_call_method0(E, x, "__len__", NULL, 0, node);
    if (x->type->kind == IR_CLASS && x->type->class_->base.kind == RT_CLASS_MODULE) {
        em_iteration it;
        return em_iterate(E, em_value(x), node, &it) ? em_value(ir_build_int(&E->b, (int64_t)it.count))
                                                     : em_error();
    }
    if (em_is_number(x->type)) { /* no tensor is made of it */
        EM_ERR(E, node, "expected something that has a length, found %s", em_type_text(E, x->type));
        return em_error();
    }
    if (x->type->kind == IR_ANY || x->type->kind == IR_UNION)
        return em_value(em_row(E, "prim_len", node, 1, x));
    return em_value(em_op(E, "len", node, 1, x));
}

static em builtin_round(emitter *E, em_arguments *args, const ast_node *node) {
    ir_value *v = em_argument_ir(E, args, 0, node);
    if (!v)
        return em_error();
    if (v->type->kind == IR_TENSOR)
        return em_operator(E, TS_STR("round"), args, node);
    if (em_class_has_method(v->type, "__round__")) {
        em digits = args->count == 2 ? args->items[1].v : em_error();
        return em_call_method0(E, v, "__round__", &digits, args->count - 1, node);
    }
    if (args->count == 2) {
        ir_value *digits = em_argument_ir(E, args, 1, node);
        if (digits && v->type->kind == IR_NUMBER)
            return em_value(em_row(E, "prim_round.Scalar_int", node, 2, v, digits));
        return em_value(digits ? em_op(E, "prim_round", node, 2, v, digits) : NULL);
    }
    if (v->type->kind == IR_INT)
        return em_value(v);
    v = em_coerce(E, v, em_simple(E, IR_FLOAT), 0, node, "the number");
    return em_value(v ? em_row(E, "prim_round_to_int", node, 1, v) : NULL);
}

static em builtin_print(emitter *E, em_arguments *args, const ast_node *node) {
    size_t count = em_positional_count(args);
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, count + 1);
    em_argument *sep = em_named(args, "sep"), *end = em_named(args, "end");
    for (size_t i = 0; i < count; i++) {
        em v = args->items[i].v;
        values[i] = sep || end ? em_to_str(E, v, node) : em_shown(E, v, node);
        if (!values[i])
            return em_error();
    }
    for (size_t i = count; i < args->count; i++) {
        ts_str name = args->items[i].name;
        if (!ts_str_is(name, "sep") && !ts_str_is(name, "end") && !ts_str_is(name, "file") && !ts_str_is(name, "flush")) {
            EM_ERR(E, node, "print has no parameter '%.*s'", TS_STR_ARG(name));
            return em_error();
        }
    }
    em none = em_value(ir_build_none(&E->b));
    if (!sep && !end) {
        em_row(E, "prim_print", node, 1, em_tuple_of(E, values, count));
        return none;
    }
    ir_value *between = sep ? em_ir(E, sep->v, node, NULL) : ir_build_str(&E->b, TS_STR(" "));
    ir_value *last = end ? em_ir(E, end->v, node, NULL) : ir_build_str(&E->b, TS_STR("\n"));
    ir_value *text = count ? values[0] : ir_build_str(&E->b, (ts_str){"", 0});
    for (size_t i = 1; i < count; i++)
        text = em_row(E, "add.str", node, 2, em_row(E, "add.str", node, 2, text, between), values[i]);
    em_row(E, "prim_print_text", node, 1, em_row(E, "add.str", node, 2, text, last));
    return none;
}

static em wrap(emitter *E, em_kind kind, em_arguments *args, ir_value *start) {
    em *items = TS_NEW_ARRAY(E->arena, em, args->count + 1);
    for (size_t i = 0; i < args->count; i++)
        items[i] = args->items[i].v;
    return (em){.kind = kind, .items = items, .count = args->count, .value = start};
}

static em name_of_part(emitter *E, ir_value *part, const void *context, const ast_node *node) {
    (void)context, (void)node;
    return em_value(ir_build_str(&E->b, fe_class_of(part->type->class_)->bare_name));
}

/* type(x) of a class with subclasses: its name is asked. */
static em class_at_run_time(emitter *E, ir_value *x, const ast_node *node) {
    em out = {.kind = EM_EXCEPTION};
    out.keys = TS_NEW_ARRAY(E->arena, ir_value *, 1);
    out.keys[0] = em_by_class(E, x, name_of_part, NULL, node).value;
    return out.keys[0] ? out : em_error();
}

/* Of numbers, strings and None only. */
static bool is_plain_union(const ir_type *t) {
    bool is_plain = t->kind == IR_UNION || t->kind == IR_OPTIONAL;
    for (size_t i = 0; is_plain && i < t->arg_count; i++) {
        ir_kind k = t->args[i]->kind;
        is_plain = k == IR_INT || k == IR_FLOAT || k == IR_BOOL || k == IR_STR || k == IR_NONE;
    }
    return is_plain;
}

/* copy.copy, copy.deepcopy */
static em em_copied(emitter *E, em_arguments *args, bool is_deep, const ast_node *node) {
    em given = args->count ? args->items[0].v : em_error();
    ir_value *v = em_argument_ir(E, args, 0, node);
    const ir_type *t = v ? v->type : NULL;
    if (!t)
        return em_error();
    if (em_class_has_method(t, is_deep ? "__deepcopy__" : "__copy__") ||
        (t->kind == IR_CLASS && t->class_->base.kind == RT_CLASS_MODULE)) {
        EM_UNSUPPORTED(E, node, "%s of %s is not supported yet", is_deep ? "copy.deepcopy" : "copy.copy",
                       em_type_text(E, t));
        return em_error();
    }
    if (t->kind == IR_TENSOR) /* a copy shares the memory */
        return em_value(is_deep ? em_op(E, "clone", node, 1, v) : v);
    if (t->kind == IR_LIST || t->kind == IR_DICT || t->kind == IR_TUPLE || t->kind == IR_CLASS ||
        t->kind == IR_OPTIONAL || t->kind == IR_UNION || t->kind == IR_ANY)
        given.value = is_deep ? em_row(E, "prim_deepcopy", node, 1, v)
                      : t->kind == IR_LIST || t->kind == IR_DICT ? em_op(E, "copy", node, 1, v)
                      : t->kind == IR_TUPLE ? v : em_row(E, "prim_copy", node, 1, v);
    else
        given.value = v;
    given.kind = EM_VALUE;
    return given.value ? given : em_error();
}

static bool is_archive_node(const ast_node *node) { return node->source && node->source->is_archive; }

static em ordered_dict(emitter *E, em_arguments *args, const ast_node *node, const ir_type *hint) {
    em made = em_builtin_dict(E, args, node, hint);
    if (made.kind == EM_VALUE && made.value && made.value->type->kind == IR_DICT)
        em_row(E, "prim_mark.dict", node, 2, made.value, ir_build_int(&E->b, RT_MARK_ORDERED));
    return made;
}

static em python_builtin(emitter *E, ts_str name, em_arguments *args, const ast_node *node,
                         const ir_type *hint, bool *known) {
    *known = true;
#define IS(text) ts_str_is(name, text)
    em columns;
    size_t starred = 0; /* *list of a length known only at run time */
    for (size_t i = 0; i < args->count; i++)
        starred += ts_str_is(args->items[i].name, "*");
    if (starred && IS("zip") && args->count == 1 && em_zip_columns(E, args->items[0].v, node, &columns))
        return columns;
    if (starred && IS("zip") && args->count == 1)
        return em_call_python(E, "builtins.zip_star", &args->items[0].v, 1, node);
    if (starred && args->items[0].name.length == 1 && (IS("max") || IS("min") || IS("print"))) {
        size_t positional = 0;
        for (size_t i = 1; i < args->count; i++)
            positional += !args->items[i].name.length || ts_str_is(args->items[i].name, "*");
        if (!positional) {
            args->items[0].name = (ts_str){0};
            starred = 0;
            em_argument *sep = em_named(args, "sep");
            em operands[2] = {args->items[0].v, sep ? sep->v : em_value(ir_build_str(&E->b, TS_STR(" ")))};
            if (IS("print"))
                args->items[0].v = em_call_python(E, "builtins.join_star", operands, 2, node);
        }
    }
    if (starred) {
        EM_UNSUPPORTED(E, node, "a starred argument of unknown length is not supported yet");
        return em_error();
    }
    static const char *const unnamed[] = {"len", "abs", "ord", "chr", "hex", "oct", "bin", "hash", "divmod", "any", "all",
                                          "callable", "id", "repr", "isinstance", "range", "reversed", "iter", "next"};
    for (size_t k = 0; k < sizeof unnamed / sizeof *unnamed; k++)
        for (size_t i = 0; IS(unnamed[k]) && i < args->count && em_is_script(node); i++)
            if (args->items[i].name.length && args->items[i].name.data[0] != '*') {
                EM_ERR(E, node, "%s() takes no keyword arguments, found '%.*s'", unnamed[k], TS_STR_ARG(args->items[i].name));
                return em_error();
            }
    if (IS("len"))
        return builtin_len(E, args, node);
    if (IS("int"))
        return builtin_int(E, args, node);
    if (IS("float"))
        return builtin_float(E, args, node);
    if (IS("bool"))
        return em_value(args->count ? em_truth(E, args->items[0].v, node) : ir_build_bool(&E->b, false));
    if (IS("str"))
        return em_value(args->count ? em_to_str(E, args->items[0].v, node)
                                    : ir_build_str(&E->b, (ts_str){"", 0}));
    if (IS("repr") && args->count == 1 && em_is_any_exception(args->items[0].v) &&
        !(args->items[0].v.kind == EM_VALUE && em_class_has_method(args->items[0].v.value->type, "__repr__")))
        return em_value(em_exception_repr(E, args->items[0].v, node));
    if (IS("repr")) {
        ir_value *view = args->count ? em_view_text(E, args->items[0].v, node) : NULL;
        if (view)
            return em_value(view);
        bool is_tuple = args->count && (args->items[0].v.is_tuple || args->items[0].v.kind == EM_TUPLE);
        ir_value *v = is_tuple ? em_as_python(E, args->items[0].v, node) : em_argument_ir(E, args, 0, node);
        return em_value(v ? em_repr(E, v, node) : NULL);
    }
    if (IS("complex")) {
        ir_value *a = em_argument_ir(E, args, 0, node);
        ir_value *b = args->count > 1 ? em_argument_ir(E, args, 1, node) : ir_build_int(&E->b, 0);
        if (a && a->type->kind == IR_COMPLEX && args->count == 1)
            return em_value(a);
        if (a && a->type->kind == IR_STR && args->count == 1)
            return em_call_python(E, "builtins.complex_of_text", &args->items[0].v, 1, node);
        return em_value(a && b ? em_op(E, "Complex", node, 2, a, b) : NULL);
    }
    if (IS("abs")) {
        ir_value *v = em_argument_ir(E, args, 0, node);
        if (v && em_class_has_method(v->type, "__abs__"))
            return em_call_method0(E, v, "__abs__", NULL, 0, node);
        if (v && em_is_number_or_tensor(em_value(v)))
            return em_unary_by_part(E, v, true, node);
        return em_value(v ? em_op(E, v->type->kind == IR_TENSOR ? "abs" : "prim_abs", node, 1, v) : NULL);
    }
    if (IS("min") || IS("max"))
        return em_builtin_extreme(E, IS("max"), args, node);
    if (IS("sum"))
        return em_builtin_sum(E, args, node);
    if (IS("any") || IS("all"))
        return em_builtin_any_all(E, IS("any"), args, node);
    if (IS("sorted"))
        return em_sure_list(em_builtin_sorted(E, args, node));
    if (IS("round"))
        return builtin_round(E, args, node);
    if (IS("pow") && args->count == 2)
        return em_binary(E, AST_POW, args->items[0].v, args->items[1].v, false, node);
    if (IS("pow") && args->count == 3) {
        em operands[3] = {args->items[0].v, args->items[1].v, args->items[2].v};
        return em_call_python(E, "builtins.pow__mod", operands, 3, node);
    }
    if (IS("range"))
        return em_builtin_range(E, args, node);
    if (IS("slice"))
        return em_slice_call(E, args, node);
    if (IS("enumerate")) {
        ir_value *start = NULL;
        if (args->count > 1) {
            start = em_argument_ir(E, args, 1, node);
            args->count = 1;
        }
        return wrap(E, EM_ENUMERATE, args, start);
    }
    if (IS("zip") && em_named(args, "strict")) {
        bool strict = false;
        ir_value *v = em_ir(E, em_named(args, "strict")->v, node, NULL);
        args->count = em_positional_count(args);
        if (v && ir_const_bool(v, &strict) && strict)
            em_check_strict(E, args, args->count, node);
    }
    if (IS("zip"))
        return wrap(E, EM_ZIP, args, NULL);
    if (IS("reversed") && args->count == 1 && args->items[0].v.kind == EM_VALUE &&
        em_class_has_method(args->items[0].v.value->type, "__reversed__"))
        return em_call_method0(E, args->items[0].v.value, "__reversed__", NULL, 0, node);
    if (IS("reversed"))
        return wrap(E, EM_REVERSED, args, NULL);
    if (IS("list"))
        return em_sure_list(em_builtin_list(E, args, node, hint));
    if (IS("tuple")) {
        if (!args->count)
            return (em){.kind = EM_TUPLE};
        em v = args->items[0].v;
        em_iteration it;
        if (v.kind == EM_TUPLE || (v.kind == EM_VALUE && v.value->type->kind == IR_TUPLE))
            return v;
        if (v.kind != EM_VALUE && v.kind != EM_GENERATOR && em_iterate(E, v, node, &it) && it.is_unrolled)
            return (em){.kind = EM_TUPLE, .items = it.items, .count = it.count};
        if (v.is_tuple)
            return v;
        ir_value **items;
        size_t count;
        const ast_node *written = args->items[0].node;
        if (written && written->kind == AST_LIST && v.kind == EM_VALUE && em_is_list_literal(v.value, &items, &count)) {
            em *parts = TS_NEW_ARRAY(E->arena, em, count + 1);
            for (size_t i = 0; i < count; i++)
                parts[i] = em_value(items[i]);
            return (em){.kind = EM_TUPLE, .items = parts, .count = count};
        }
        ir_value *list = em_as_list(E, v, node);
        bool is_fresh = v.kind != EM_VALUE || v.value->type->kind != IR_LIST;
        if (!list || (node->source && (node->source->is_archive || node->source->is_library)))
            return em_value(list);
        return (em){.kind = EM_VALUE, .value = is_fresh ? list : em_row(E, "list.t", node, 1, list), .is_tuple = true};
    }
    if (IS("frozenset"))
        return em_frozen_set(E, args, node, hint);
    if (IS("set")) {
        if (args->count)
            return em_value(em_set_from(E, args->items[0].v, node, hint));
        const ir_type *t = ir_type_dict(E->m, em_simple(E, IR_INT), em_simple(E, IR_NONE));
        bool is_given = hint && em_is_set_type(hint);
        ir_value *empty = em_dict_of(E, NULL, 0, is_given ? hint : em_empty_type(E, node, t));
        if (!is_given)
            em_note_empty(E, empty, node);
        return em_value(empty);
    }
    if (IS("dict"))
        return em_builtin_dict(E, args, node, hint);
    if (IS("print"))
        return builtin_print(E, args, node);
    if ((IS("map") || IS("filter")) && args->count < 2)
        EM_ERR(E, node, "%.*s() must have at least two arguments", TS_STR_ARG(name));
    if (IS("map") && args->count == 2)
        return em_mapped(em_value(em_map_list(E, args->items[0].v, args->items[1].v, node, false)));
    if (IS("map") && args->count > 2)
        return em_mapped(em_map_many(E, args, node));
    if (IS("filter") && args->count == 2 && args->items[0].v.kind == EM_VALUE &&
        args->items[0].v.value->type->kind == IR_NONE)
        args->items[0].v = em_binding(E, (fe_binding){.kind = FE_NAME, .path = TS_STR("builtins.bool")});
    if (IS("filter") && args->count == 2)
        return em_mapped(em_value(em_map_list(E, args->items[0].v, args->items[1].v, node, true)));
    if (IS("iter") && args->count == 1)
        return em_value(is_archive_node(node) ? em_as_list(E, args->items[0].v, node)
                                              : em_iterator(E, args->items[0].v, node));
    if (IS("next") && (args->count == 1 || args->count == 2))
        return em_builtin_next(E, args, node);
    if (IS("format") && args->count == 1)
        return em_value(em_format_default(E, args->items[0].v, node));
    if (IS("format") && args->count == 2) {
        return em_value(em_format_value(E, args->items[0].v, em_argument_ir(E, args, 1, node), node));
    }
    if (IS("type") && args->count == 1) {
        em v = args->items[0].v;
        if (v.kind == EM_VALUE && v.value->type->kind == IR_OPTIONAL && em_is_exception(v.value->type->args[0]))
            v.value = em_check_cast(E, v.value, v.value->type->args[0]);
        if (v.kind == EM_VALUE && em_is_exception(v.value->type))
            v = em_plain_exception(E, v, node);
        if (v.kind == EM_VALUE && em_is_set_type(v.value->type))
            return em_binding(E, (fe_binding){.kind = FE_NAME, .path = em_is_frozen_type(v.value->type)
                                                                           ? TS_STR("builtins.frozenset")
                                                                           : TS_STR("builtins.set")});
        if (v.kind == EM_VALUE && v.value->type->kind == IR_CLASS && fe_class_of(v.value->type->class_) &&
            fe_class_of(v.value->type->class_)->has_subclasses)
            return class_at_run_time(E, v.value, node);
        if (v.kind == EM_VALUE && v.value->type->class_ && fe_class_of(v.value->type->class_))
            return em_binding(E, (fe_binding){.kind = FE_CLASS, .class_ = fe_class_of(v.value->type->class_)});
        if (v.kind == EM_EXCEPTION && v.keys)
            return v; /* its __name__ is asked */
        if (v.kind == EM_TUPLE)
            return em_binding(E, (fe_binding){.kind = FE_NAME, .path = TS_STR("builtins.tuple")});
        ir_value *x = em_ir(E, v, node, NULL);
        static const struct { ir_kind kind; const char *path; } types[] = {
            {IR_INT, "builtins.int"}, {IR_FLOAT, "builtins.float"}, {IR_BOOL, "builtins.bool"},
            {IR_STR, "builtins.str"}, {IR_LIST, "builtins.list"}, {IR_DICT, "builtins.dict"},
            {IR_TUPLE, "builtins.tuple"}, {IR_COMPLEX, "builtins.complex"},
            {IR_TENSOR, "torch.Tensor"}, {IR_NONE, "builtins.NoneType"}};
        for (size_t i = 0; x && i < sizeof types / sizeof *types; i++)
            if (x->type->kind == types[i].kind)
                return em_binding(E, (fe_binding){.kind = FE_NAME, .path = ts_str_of(types[i].path)});
        if (x && (x->type->kind == IR_NUMBER || is_plain_union(x->type))) { /* its __name__ is asked */
            em out = {.kind = EM_EXCEPTION, .keys = TS_NEW_ARRAY(E->arena, ir_value *, 1)};
            em given = em_value(x);
            out.keys[0] = em_ir(E, em_call_python(E, "builtins.type_name", &given, 1, node), node, NULL);
            return out.keys[0] ? out : em_error();
        }
        EM_UNSUPPORTED(E, node, "type() of %s is not supported yet", x ? em_type_text(E, x->type) : "this");
        return em_error();
    }
    if (IS("issubclass") && args->count == 2 && args->items[0].v.kind == EM_VALUE && args->items[1].node) { /* of __exit__ */
        ir_value *exception = em_argument_ir(E, args, 0, node);
        if (exception && exception->type->kind == IR_STR)
            return em_value(em_exception_test(E, (em){.kind = EM_EXCEPTION, .keys = &exception}, args->items[1].node));
    }
    if (IS("issubclass") && args->count == 2 && args->items[0].v.kind == EM_BINDING &&
        args->items[0].v.binding->kind == FE_CLASS && args->items[1].v.kind == EM_BINDING &&
        args->items[1].v.binding->kind == FE_CLASS)
        return em_value(ir_build_bool(&E->b, fe_class_is_a(args->items[0].v.binding->class_,
                                                           args->items[1].v.binding->class_)));
    if (IS("setattr") && args->count == 3)
        return em_setattr(E, args, node);
    if (IS("vars") && args->count == 1 && args->items[0].v.kind == EM_VALUE)
        return em_vars(E, args->items[0].v.value, node);
    if (IS("callable"))
        return em_value(ir_build_bool(&E->b, args->count && args->items[0].v.kind != EM_VALUE));
    if (IS("id") && args->count == 1)
        return em_operator(E, TS_STR("prim_id"), args, node);
    if (IS("hash") && args->count == 1) {
        ir_value *v = em_ir(E, args->items[0].v, node, NULL);
        return em_value(v ? em_hash(E, v, node) : NULL);
    }
    if ((IS("hex") || IS("oct") || IS("bin") || IS("chr")) && args->count == 1 && args->items[0].v.kind == EM_VALUE)
        args->items[0].v = em_value(em_index_of(E, args->items[0].v.value, node));
    if (IS("divmod") || IS("ord") || IS("chr") || IS("hex") || IS("oct") || IS("bin") || IS("hash"))
        return em_operator(E, name, args, node);
    em found = em_python_path(E, ts_arena_format(E->arena, "builtins.%.*s", TS_STR_ARG(name)), args, node, hint, known);
    if (*known)
        return found;
    *known = true;
    EM_UNSUPPORTED(E, node, "the function %.*s is not supported yet", TS_STR_ARG(name));
    return em_error();
#undef IS
}

/* ---- torch ---- */

static em raise_exception(emitter *E, em_arguments *args, const ast_node *node) {
    ir_value *message = em_argument_ir(E, args, 0, node);
    ts_str type = TS_STR("RuntimeError");
    if (!message)
        return em_error();
    rt_value c;
    if (args->count > 1) {
        ir_value *class_ = em_argument_ir(E, args, 1, node);
        if (class_ && ir_const_value(class_, &c) && c.tag == RT_TAG_STR) {
            type = rt_str_text(c.as.str);
            for (size_t i = type.length; i-- > 0;)
                if (type.data[i] == '.') {
                    type = (ts_str){type.data + i + 1, type.length - i - 1};
                    break;
                }
        }
        /* Python's text of a KeyError is its argument's repr; what str() made was no str. */
        bool is_empty = ir_const_value(message, &c) && c.tag == RT_TAG_STR && !c.as.str->length;
        bool was_str = !message->def || message->def->opcode != IR_OP_CORE ||
                       !ts_str_is(rt_op_name(message->def->core), "str");
        if (ts_str_is(type, "KeyError") && was_str && !is_empty)
            message = em_row(E, "prim_repr", node, 1, message);
    } else {
        static const char prefix[] = "AssertionError: ";
        size_t n = sizeof prefix - 1;
        ir_op *def = message->def;
        if (ir_const_value(message, &c) && c.tag == RT_TAG_STR) {
            ts_str s = rt_str_text(c.as.str);
            if (ts_str_starts_with(s, prefix)) {
                type = TS_STR("AssertionError");
                message = ir_build_str(&E->b, (ts_str){s.data + n, s.length - n});
            }
        } else if (def && def->opcode == IR_OP_CORE && def->operand_count == 2 &&
                   ir_const_value(def->operands[0], &c) && c.tag == RT_TAG_STR) {
            ts_str s = rt_str_text(c.as.str);
            if (ts_str_starts_with(s, prefix) && def->operands[1]->type->kind == IR_STR) {
                type = TS_STR("AssertionError");
                message = def->operands[1];
                if (s.length > n)
                    message = em_row(E, "add.str", node, 2,
                                     ir_build_str(&E->b, (ts_str){s.data + n, s.length - n}), message);
            }
        }
    }
    em_place(E, node);
    em_raise_named(E, ts_arena_str(E->arena, type), message);
    return em_value(ir_build_none(&E->b));
}

/* Operands given one by one where the operator takes a list. */
static void pack_rest(emitter *E, em_arguments *args, size_t from) {
    size_t count = em_positional_count(args);
    if (count <= from)
        return;
    em first = args->items[from].v;
    if (first.kind == EM_TUPLE || (first.kind == EM_VALUE && (first.value->type->kind == IR_LIST ||
                                                              first.value->type->kind == IR_TUPLE)))
        return;
    em *items = TS_NEW_ARRAY(E->arena, em, count - from);
    for (size_t i = from; i < count; i++)
        items[i - from] = args->items[i].v;
    args->items[from].v = em_value(em_as_list(E, (em){.kind = EM_TUPLE, .items = items, .count = count - from},
                                           args->items[from].node));
    for (size_t i = count; i < args->count; i++)
        args->items[from + 1 + i - count] = args->items[i];
    args->count -= count - from - 1;
}

static em nested_list(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_VALUE && v.value->type->kind == IR_TUPLE) {
        em_iteration it;
        if (em_iterate(E, v, node, &it) && it.is_unrolled)
            v = (em){.kind = EM_TUPLE, .items = it.items, .count = it.count};
    }
    if (v.kind != EM_TUPLE)
        return v;
    em *items = TS_NEW_ARRAY(E->arena, em, v.count + 1);
    for (size_t i = 0; i < v.count; i++)
        items[i] = nested_list(E, v.items[i], node);
    return em_value(em_tuple_to_list(E, (em){.kind = EM_TUPLE, .items = items, .count = v.count}, node));
}

static ir_value *format_row(emitter *E, const char *row, em_arguments *args, const ast_node *node) {
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, args->count + 1);
    for (size_t i = 0; i < args->count; i++) {
        em v = args->items[i].v;
        values[i] = i && strcmp(row, "format") == 0 ? em_shown(E, v, node) : em_ir(E, v, node, NULL);
        if (!values[i])
            return NULL;
    }
    bool is_tuple = args->count == 2 && values[1]->type->kind == IR_TUPLE && strcmp(row, "percentFormat") == 0;
    return em_row(E, row, node, 2, values[0],
                  is_tuple ? values[1] : em_tuple_of(E, values + 1, args->count - 1));
}

static em wait_for(emitter *E, em_arguments *args, const ast_node *node) {
    ir_value *v = em_argument_ir(E, args, 0, node);
    if (v && v->type->kind == IR_FUTURE)
        v = em_cast(E, v, v->type->args[0]);
    return em_value(v);
}

static em fork(emitter *E, em_arguments *args, const ast_node *node) {
    if (!args->count)
        return em_error();
    em_arguments rest = {.items = args->items + 1, .count = args->count - 1};
    ir_value *v = em_ir(E, em_call_value(E, args->items[0].v, &rest, node, NULL), node, NULL);
    return em_value(v ? em_cast(E, v, ir_type_future(E->m, v->type)) : NULL);
}

static void assert_true(emitter *E, ir_value *test, ir_value *message, const ast_node *node) {
    ir_op *op = ir_build_if(&E->b, test);
    ir_block *here = em_enter(E, op->regions[1]);
    ir_op *raise = ir_build_op(&E->b, IR_OP_RAISE, &message, 1, NULL, 0);
    raise->name = TS_STR("AssertionError");
    ir_build_yield(&E->b, NULL, 0);
    em_enter(E, op->regions[0]);
    ir_build_yield(&E->b, NULL, 0);
    em_leave(E, here);
    (void)node;
}

em em_call_builtin(emitter *E, ts_str path, em_arguments *args, const ast_node *node,
                   const ir_type *hint, bool *out_known) {
    *out_known = false;
    if (ts_str_starts_with(path, "builtins."))
        return python_builtin(E, (ts_str){path.data + 9, path.length - 9}, args, node, hint, out_known);
    *out_known = true;
#define IS(text) ts_str_is(path, text)
    if (IS("torch.jit.is_scripting") || IS("torch.jit._script.is_scripting"))
        return em_value(ir_build_bool(&E->b, true));
    if (IS("torch.jit.is_tracing") || IS("torch.overrides.has_torch_function") ||
        IS("torch.is_autocast_enabled") || IS("torch.cuda.is_available") ||
        IS("torch.overrides.has_torch_function_unary") || IS("torch._C._get_tracing_state"))
        return em_value(ir_build_bool(&E->b, false));
    if (IS("torch.jit.fork") || IS("archive.fork") || IS("torch.jit._fork"))
        return fork(E, args, node);
    if (IS("torch.jit.wait") || IS("torch.wait") || IS("torch.jit._wait"))
        return wait_for(E, args, node);
    if (IS("torch.jit.script") || IS("torch.jit.export") || IS("torch.nn.Parameter") ||
        IS("torch.nn.parameter.Parameter"))
        return args->count ? args->items[0].v : em_error();
    if (IS("ops.prim.RaiseException"))
        return raise_exception(E, args, node);
    if (IS("ops.prim.unchecked_unwrap_optional") || IS("torch._unwrap_optional") ||
        IS("torch.jit._unwrap_optional")) {
        if (args->count != 1)
            return em_error();
        ir_value *v = em_ir(E, args->items[0].v, node, NULL);
        return em_value(v ? em_check_cast(E, v, ir_type_without_none(E->m, v->type)) : NULL);
    }
    if ((IS("torch.format") || IS("torch.percentFormat")) && args->count)
        return em_value(format_row(E, IS("torch.format") ? "format" : "percentFormat", args, node));
    if (IS("torch.__contains__") && args->count == 2)
        return em_value(em_compare_two(E, AST_IN, args->items[1].v, args->items[0].v, node));
    if ((IS("torch.sort") || IS("torch.sorted") || IS("archive.sorted")) && args->count &&
        args->items[0].v.kind == EM_VALUE && args->items[0].v.value->type->kind == IR_LIST &&
        args->items[0].v.value->type->args[0]->kind == IR_CLASS) {
        ir_value *list = args->items[0].v.value;
        ir_value *r = args->count > 1 ? em_argument_ir(E, args, 1, node) : ir_build_bool(&E->b, false);
        em sorted = r ? em_sort_objects(E, list, r, node) : em_error();
        if (sorted.kind != EM_VALUE || !IS("torch.sort"))
            return sorted;
        em_row(E, "prim_list_set_slice", node, 5, list, ir_build_none(&E->b), ir_build_none(&E->b),
               ir_build_int(&E->b, 1), sorted.value);
        return em_value(ir_build_none(&E->b));
    }
    if (IS("torch.get_default_dtype") && !args->count)
        return em_of_value(E, rt_int_meaning(RT_float32, RT_MEANING_DTYPE));
    if (IS("torch.len"))
        return builtin_len(E, args, node);
    if (IS("torch.Size") || IS("torch.jit.List")) {
        em list = em_value(args->count ? em_as_list(E, args->items[0].v, node) : NULL);
        list.is_size = IS("torch.Size") && list.kind == EM_VALUE;
        return list;
    }
    if ((IS("torch.finfo") || IS("torch.iinfo")) && args->count <= 1) {
        ir_value *dtype = args->count ? em_argument_ir(E, args, 0, node) : ir_build_int(&E->b, RT_float32);
        return dtype ? (em){.kind = EM_DTYPE_INFO, .value = dtype} : em_error();
    }
    if (IS("torch.is_tensor") && args->count == 1)
        return em_value(ir_build_bool(&E->b, args->items[0].v.kind == EM_VALUE &&
                                                 args->items[0].v.value->type->kind == IR_TENSOR));
    if (IS("torch._assert") && args->count >= 1) {
        ir_value *test = em_truth(E, args->items[0].v, node);
        ir_value *message = args->count > 1 ? em_argument_ir(E, args, 1, node) : ir_build_str(&E->b, (ts_str){"", 0});
        if (test && message)
            assert_true(E, test, message, node);
        return em_value(ir_build_none(&E->b));
    }
    if (IS("torch.tensor") || IS("torch.as_tensor") || IS("torch.asarray")) {
        if (!args->count) {
            EM_ERR(E, node, "torch.tensor expects data");
            return em_error();
        }
        args->items[0].v = nested_list(E, args->items[0].v, node);
        em v = args->items[0].v;
        if (v.kind == EM_VALUE && v.value->type->kind == IR_NUMBER && args->count == 1) { /* its dtype is found in lists */
            ir_value *list = em_list_of(E, &v.value, 1, v.value->type);
            ir_value *t = em_op(E, "tensor", node, 1, list);
            return em_value(t ? em_op(E, "squeeze", node, 2, t, ir_build_int(&E->b, 0)) : NULL);
        }
        if (v.kind == EM_VALUE && v.value->type->kind == IR_TENSOR) {
            bool copies = IS("torch.tensor");
            ir_value *t = v.value;
            em_argument *dtype = em_named(args, "dtype");
            if (dtype)
                t = em_op(E, "to", node, 2, t, em_ir(E, dtype->v, node, NULL));
            return em_value(copies && !dtype ? em_op(E, "clone", node, 1, t) : t);
        }
        return em_operator(E, TS_STR("tensor"), args, node);
    }
    if (IS("torch.einsum"))
        pack_rest(E, args, 1);
    if (IS("torch.broadcast_tensors") || IS("torch.meshgrid") || IS("torch.cartesian_prod") ||
        IS("torch.block_diag") || IS("torch.chain_matmul") || IS("torch.linalg_multi_dot") ||
        (args->count > 1 && (IS("torch.atleast_1d") || IS("torch.atleast_2d") || IS("torch.atleast_3d"))))
        pack_rest(E, args, 0);
    if (IS("warnings.warn"))
        return em_value(ir_build_none(&E->b));
    if (IS("copy.copy") || IS("copy.deepcopy")) {
        return em_copied(E, args, IS("copy.deepcopy"), node);
    }
    if (IS("math.exp2") && args->count == 1) /* torch.exp2 is another function */
        return em_binary(E, AST_POW, em_value(ir_build_float(&E->b, 2.0)), args->items[0].v, false, node);
    if (IS("collections.OrderedDict") || IS("typing.OrderedDict"))
        return ordered_dict(E, args, node, hint);
    if (IS("math.trunc") && args->count == 1)
        return builtin_int(E, args, node);
    if (IS("math.remainder") || IS("math.pow"))
        return em_operator(E, IS("math.pow") ? TS_STR("mathpow") : TS_STR("mathremainder"), args, node);
    if (IS("archive.int") || IS("archive.float"))
        return python_builtin(E, (ts_str){path.data + 8, path.length - 8}, args, node, hint, out_known);
#undef IS
    *out_known = false;
    return em_error();
}

/* ---- calls with types as arguments ---- */

static bool path_of(emitter *E, const ast_node *f, ts_str *out) {
    if (f->kind != AST_NAME && f->kind != AST_ATTRIBUTE)
        return false;
    const ast_node *root = f;
    while (root->kind == AST_ATTRIBUTE)
        root = root->left;
    if (root->kind != AST_NAME || fe_map_get(&E->variables, root->text))
        return false;
    fe_binding b = fe_resolve_dotted(E->fe, E->scope, f);
    *out = b.path;
    return b.kind == FE_NAME;
}

em em_call_special(emitter *E, const ast_node *node, const ir_type *hint, bool *out_done) {
    *out_done = false;
    ts_str last = node->left->text;
    static const char *const names[] = {"annotate", "unchecked_cast", "uninitialized", "hasattr",
                                        "getattr", "cast"};
    bool candidate = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        candidate = candidate || ts_str_is(last, names[i]);
    ts_str path;
    if (!candidate || !path_of(E, node->left, &path))
        return em_error();
    const ast_list *a = &node->list;
#define IS(text) ts_str_is(path, text)
    bool annotate = IS("archive.annotate") || IS("torch.jit.annotate") || IS("torch.jit._annotate");
    if ((annotate || IS("archive.unchecked_cast") || IS("typing.cast")) && a->count == 2) {
        *out_done = true;
        const ir_type *t = em_annotation(E, a->items[0]);
        if (!t)
            return em_error();
        em v = em_expression(E, a->items[1], t);
        ir_value *x = em_ir(E, v, node, t);
        if (!x)
            return em_error();
        if (IS("archive.unchecked_cast"))
            return em_value(em_cast(E, x, t));
        em_place(E, node);
        return em_value(em_coerce(E, x, t, 0, a->items[1], "the annotated value"));
    }
    if (IS("archive.uninitialized") && a->count == 1) {
        *out_done = true;
        const ir_type *t = em_annotation(E, a->items[0]);
        return em_value(t ? em_uninitialized(E, t) : NULL);
    }
    bool has = IS("builtins.hasattr");
    if ((has || IS("builtins.getattr")) && a->count >= 2) {
        *out_done = true;
        return em_getattr(E, node, has, hint);
    }
#undef IS
    return em_error();
}
