/* frontend/emit_builtin.c - Python's builtin functions and the helpers of torch.jit and the archives'
 * dialect. What is a plain operator goes through the operator table (overload.c).
 *
 * Long: one function for each builtin and the table that names them, which would be torn apart. */
#include "frontend/emit_internal.h"

static size_t positional_count(const em_arguments *args) {
    size_t n = 0;
    while (n < args->count && !args->items[n].name.length)
        n++;
    return n;
}

static em_argument *named(em_arguments *args, const char *name) {
    for (size_t i = 0; i < args->count; i++)
        if (ts_str_is(args->items[i].name, name))
            return &args->items[i];
    return NULL;
}

static ir_value *argument(emitter *E, em_arguments *args, size_t i, const ast_node *node) {
    if (i >= args->count) {
        EM_ERR(E, node, "an argument is missing");
        return NULL;
    }
    ir_value *v = em_ir(E, args->items[i].v, args->items[i].node ? args->items[i].node : node, NULL);
    if (v && v->type->kind == IR_OPTIONAL)
        v = em_check_cast(E, v, v->type->args[0]);
    return v;
}

static bool is_number(const ir_type *t) {
    return t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL || t->kind == IR_COMPLEX ||
           t->kind == IR_NUMBER;
}

/* ---- lists out of anything ---- */

static ir_value *tuple_to_list(emitter *E, em v, const ast_node *node) {
    em_iteration it;
    if (!em_iterate(E, v, node, &it) || !it.is_unrolled)
        return NULL;
    ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, it.count + 1);
    const ir_type *t = NULL;
    for (size_t i = 0; i < it.count; i++) {
        em item = it.items[i];
        if (item.kind == EM_TUPLE && node == NULL)
            item = em_value(tuple_to_list(E, item, node));
        items[i] = em_ir(E, item, node, NULL);
        if (!items[i])
            return NULL;
        const ir_type *one = ir_type_forget(E->m, items[i]->type);
        t = t ? ir_type_join(E->m, t, one) : one;
    }
    if (t && t->kind == IR_UNION && t->arg_count == 2 && is_number(t->args[0]) && is_number(t->args[1])) {
        t = em_simple(E, IR_FLOAT);
        for (size_t i = 0; i < it.count; i++)
            items[i] = em_coerce(E, items[i], t, 0, node, "the item");
    }
    return em_list_of(E, items, it.count, t ? t : ir_type_any_tensor(E->m));
}

/* A list of v's items: itself where it is one (no copy). */
static ir_value *as_list(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_ERROR)
        return NULL;
    if (v.kind == EM_TUPLE)
        return tuple_to_list(E, v, node);
    ir_value *x;
    if (v.kind == EM_BINDING && v.binding->kind == FE_CLASS && v.binding->class_->kind == RT_CLASS_ENUM)
        return tuple_to_list(E, v, node);
    x = em_ir(E, v, node, NULL);
    if (!x)
        return NULL;
    if (x->type->kind == IR_OPTIONAL)
        x = em_check_cast(E, x, x->type->args[0]);
    switch (x->type->kind) {
    case IR_LIST:
        return x;
    case IR_TUPLE:
        return tuple_to_list(E, em_value(x), node);
    case IR_DICT:
        return em_op(E, "keys", node, 1, x);
    case IR_STR:
        return em_op(E, "list", node, 1, x);
    case IR_TENSOR:
        return em_op(E, "unbind", node, 2, x, ir_build_int(&E->b, 0));
    default:
        if (x->type->kind == IR_CLASS && x->type->class_->base.kind == RT_CLASS_MODULE)
            return tuple_to_list(E, em_value(x), node);
        EM_UNSUPPORTED(E, node, "a list of %s is not supported yet", em_type_text(E, x->type));
        return NULL;
    }
}

/* ---- list building with a function of each item ---- */

typedef struct mapper {
    em callee;
    ir_value *result;
    bool is_filter, has_type;
    bool with_index; /* (key, index) pairs */
    bool negate_index;
    ir_value *counter_list;
    const ast_node *node;
} mapper;

static void map_item(emitter *E, em item, void *user) {
    mapper *m = user;
    em_argument arg = {.v = item, .node = m->node};
    em_arguments args = {.items = &arg, .count = 1};
    em r = em_call_value(E, m->callee, &args, m->node, NULL);
    if (r.kind == EM_ERROR)
        return;
    if (m->is_filter) {
        ir_value *test = em_truth(E, r, m->node);
        ir_value *v = em_ir(E, item, m->node, NULL);
        if (!test || !v)
            return;
        if (!m->has_type)
            m->result->type = ir_type_list(E->m, ir_type_forget(E->m, v->type));
        m->has_type = true;
        ir_op *op = ir_build_if(&E->b, test);
        ir_block *here = em_enter(E, op->regions[0]);
        em_row(E, "append.t", m->node, 2, m->result, v);
        ir_build_yield(&E->b, NULL, 0);
        em_enter(E, op->regions[1]);
        ir_build_yield(&E->b, NULL, 0);
        em_leave(E, here);
        return;
    }
    ir_value *v = em_ir(E, r, m->node, NULL);
    if (!v)
        return;
    if (m->with_index) {
        ir_value *index = em_op(E, "len", m->node, 1, m->result);
        if (m->negate_index)
            index = em_op(E, "neg", m->node, 1, index);
        ir_value *pair[2] = {v, index};
        v = em_tuple_of(E, pair, 2);
    }
    if (!m->has_type)
        m->result->type = ir_type_list(E->m, ir_type_forget(E->m, v->type));
    m->has_type = true;
    em_row(E, "append.t", m->node, 2, m->result, v);
}

static ir_value *map_list(emitter *E, em callee, em source, const ast_node *node, bool is_filter) {
    mapper m = {.callee = callee, .is_filter = is_filter, .node = node};
    m.result = em_list_of(E, NULL, 0, ir_type_any_tensor(E->m));
    return em_for_each(E, source, node, map_item, &m) ? m.result : NULL;
}

typedef struct picker {
    ir_value *source, *result;
    bool negate_index;
    const ast_node *node;
} picker;

static void pick_item(emitter *E, em item, void *user) {
    picker *p = user;
    const ir_type *int_type = em_simple(E, IR_INT);
    ir_op *op = ir_build_op(&E->b, IR_OP_TUPLE_GET, &item.value, 1, &int_type, 1);
    op->integer = 1;
    ir_value *index = op->results[0];
    if (p->negate_index)
        index = em_op(E, "neg", p->node, 1, index);
    em_row(E, "append.t", p->node, 2, p->result, em_op(E, "__getitem__", p->node, 2, p->source, index));
}

/* sorted(list, key=..., reverse=...): pairs of key and position keep the sort stable. */
static ir_value *sorted_by(emitter *E, ir_value *list, em key, ir_value *reverse, const ast_node *node) {
    bool is_reverse = false;
    if (!reverse)
        return NULL;
    if (!ir_const_bool(reverse, &is_reverse)) {
        EM_UNSUPPORTED(E, node, "sorting with key and an unknown reverse is not supported yet");
        return NULL;
    }
    mapper m = {.callee = key, .node = node, .with_index = true, .negate_index = is_reverse};
    m.result = em_list_of(E, NULL, 0, ir_type_any_tensor(E->m));
    if (!em_for_each(E, em_value(list), node, map_item, &m))
        return NULL;
    if (!m.has_type)
        return NULL;
    ir_value *pairs = em_row(E, "prim_sorted", node, 2, m.result, reverse);
    picker p = {.source = list, .negate_index = is_reverse, .node = node};
    p.result = em_list_of(E, NULL, 0, list->type->args[0]);
    return pairs && em_for_each(E, em_value(pairs), node, pick_item, &p) ? p.result : NULL;
}

/* Objects go by their __lt__: an insertion sort, stable both ways, made for the class. */
static em sort_objects(emitter *E, ir_value *list, ir_value *reverse, const ast_node *node) {
    static const char text[] =
        "def sorted_objects(xs: List[T], reverse: bool) -> List[T]:\n"
        "    out = xs[:]\n"
        "    for i in range(1, len(out)):\n"
        "        x = out[i]\n"
        "        j = i - 1\n"
        "        while j >= 0:\n"
        "            if reverse:\n"
        "                moves = out[j] < x\n"
        "            else:\n"
        "                moves = x < out[j]\n"
        "            if not moves:\n"
        "                break\n"
        "            out[j + 1] = out[j]\n"
        "            j -= 1\n"
        "        out[j + 1] = x\n"
        "    return out\n";
    const ir_type *t = list->type->args[0];
    fe_class *c = fe_class_of(t->class_);
    if (!c || !fe_class_method(c, TS_STR("__lt__"))) {
        EM_UNSUPPORTED(E, node, "sorting %s without __lt__ is not supported yet", em_type_text(E, t));
        return em_error();
    }
    ts_str key = ts_arena_format(E->arena, "sorted.%.*s", (int)c->name.length, c->name.data);
    fe_binding *known = fe_map_get(&E->fe->builtin_functions, key);
    if (!known) {
        fe_source *source;
        ts_status status = fe_source_make(E->arena, TS_STR("library/sorted"), TS_STR(text), &source);
        if (status) {
            ts_status_release(status);
            return em_error();
        }
        source->is_library = true;
        ast_node *module = fe_parse(E->arena, source, E->fe->diagnostics);
        if (!module || !module->body.count)
            return em_error();
        fe_scope *scope = fe_scope_make(E->arena, NULL, source, TS_STR("library"));
        fe_scope_set(E->arena, scope, TS_STR("T"), (fe_binding){.kind = FE_CLASS, .class_ = c});
        known = TS_NEW(E->arena, fe_binding);
        *known = (fe_binding){.kind = FE_FUNCTION,
                              .function = fe_function_declare(E->fe, scope, module->body.items[0], key, NULL)};
        fe_map_set(E->arena, &E->fe->builtin_functions, key, known);
    }
    em_arguments args = {0};
    em_argument first = {.v = em_value(list), .node = node}, second = {.v = em_value(reverse), .node = node};
    TS_APPEND(E->arena, args.items, args.count, args.capacity, first);
    TS_APPEND(E->arena, args.items, args.count, args.capacity, second);
    return em_call_function(E, known->function, &args, node);
}

static em builtin_sorted(emitter *E, em_arguments *args, const ast_node *node) {
    if (!args->count)
        return em_error();
    ir_value *list = as_list(E, args->items[0].v, node);
    if (!list)
        return em_error();
    em_argument *key = named(args, "key"), *reverse = named(args, "reverse");
    ir_value *r = reverse ? em_ir(E, reverse->v, node, NULL) : ir_build_bool(&E->b, false);
    if (key && !(key->v.kind == EM_VALUE && key->v.value->type->kind == IR_NONE))
        return em_value(sorted_by(E, list, key->v, r, node));
    const ir_type *t = list->type->args[0];
    if (t->kind == IR_CLASS)
        return sort_objects(E, list, r, node);
    return em_value(em_row(E, "prim_sorted", node, 2, list, r));
}

static em builtin_extreme(emitter *E, bool is_max, em_arguments *args, const ast_node *node) {
    size_t count = positional_count(args);
    const char *name = is_max ? "prim_max" : "prim_min";
    em_argument *key = named(args, "key"), *fallback = named(args, "default");
    if (count == 1 || key) {
        ir_value *list = count == 1 ? as_list(E, args->items[0].v, node) : NULL;
        if (count > 1) {
            em *items = TS_NEW_ARRAY(E->arena, em, count);
            for (size_t i = 0; i < count; i++)
                items[i] = args->items[i].v;
            list = as_list(E, (em){.kind = EM_TUPLE, .items = items, .count = count}, node);
        }
        if (!list)
            return em_error();
        em_choice choice;
        if (fallback) {
            ir_value *empty = em_op(E, "eq", node, 2, em_op(E, "len", node, 1, list), ir_build_int(&E->b, 0));
            em_choose(E, &choice, empty);
            em_choose_other(E, &choice, em_ir(E, fallback->v, node, NULL));
        }
        ir_value *v;
        const ir_type *t = list->type->args[0];
        if (key) {
            ir_value *sorted = sorted_by(E, list, key->v, ir_build_bool(&E->b, is_max), node);
            v = sorted ? em_op(E, "__getitem__", node, 2, sorted, ir_build_int(&E->b, 0)) : NULL;
        } else if (t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL || t->kind == IR_STR) {
            v = em_op(E, name, node, 1, list);
        } else {
            ir_value *sorted = em_row(E, "prim_sorted", node, 2, list, ir_build_bool(&E->b, is_max));
            v = em_op(E, "__getitem__", node, 2, sorted, ir_build_int(&E->b, 0));
        }
        if (fallback)
            v = em_choose_end(E, &choice, v, node);
        return em_value(v);
    }
    ir_value *v = argument(E, args, 0, node);
    for (size_t i = 1; i < count && v; i++) {
        ir_value *w = argument(E, args, i, node);
        if (!w)
            return em_error();
        if (v->type->kind == IR_TENSOR || w->type->kind == IR_TENSOR) {
            /* Python's max: the first unless the other is greater. */
            ir_value *test = em_compare_two(E, is_max ? AST_GT : AST_LT, em_value(w), em_value(v), node);
            em_choice choice;
            em_choose(E, &choice, em_truth(E, em_value(test), node));
            em_choose_other(E, &choice, w);
            v = em_choose_end(E, &choice, v, node);
        } else {
            v = em_op(E, name, node, 2, v, w);
        }
    }
    return em_value(v);
}

/* ---- sum ---- */

static em builtin_sum(emitter *E, em_arguments *args, const ast_node *node) {
    if (!args->count)
        return em_error();
    em source = args->items[0].v;
    em start = args->count > 1 ? args->items[1].v : em_value(ir_build_int(&E->b, 0));
    em_iteration it;
    if (source.kind == EM_GENERATOR || source.kind == EM_ITEMS || source.kind == EM_RANGE)
        source = em_value(as_list(E, source, node));
    if (!em_iterate(E, source, node, &it))
        return em_error();
    if (it.is_unrolled) {
        em total = start;
        for (size_t i = 0; i < it.count; i++)
            total = em_binary(E, AST_ADD, total, it.items[i], false, node);
        return total;
    }
    if (source.kind == EM_VALUE && source.value->type->kind == IR_TENSOR && args->count == 1)
        return em_value(em_op(E, "sum", node, 2, source.value,
                              em_list_of(E, (ir_value *[]){ir_build_int(&E->b, 0)}, 1, em_simple(E, IR_INT))));
    ir_value *list = as_list(E, source, node);
    if (!list)
        return em_error();
    const ir_type *t = list->type->args[0];
    if (t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL || t->kind == IR_COMPLEX) {
        ir_value *v = em_op(E, "sum", node, 1, list);
        return args->count > 1 ? em_binary(E, AST_ADD, start, em_value(v), false, node) : em_value(v);
    }
    ir_value *initial = em_ir(E, start, node, t->kind == IR_LIST ? t : NULL);
    if (initial && t->kind == IR_TENSOR)
        initial = em_coerce(E, initial, t, 0, node, "the start");
    if (initial && t->kind == IR_LIST)
        initial = em_coerce(E, initial, t, 0, node, "the start");
    if (!initial)
        return em_error();
    em_env saved = em_env_copy(E);
    ir_op *op = ir_build_loop(&E->b, it.trip, ir_build_bool(&E->b, true), &initial, 1);
    ir_value *carried = ir_block_add_parameter(E->m, op->regions[0], initial->type, (ts_str){0});
    ir_block *here = em_enter(E, op->regions[0]);
    em item = em_iteration_item(E, &it, op->regions[0]->parameters[0], node);
    em next = em_binary(E, AST_ADD, em_value(carried), item, false, node);
    ir_value *yields[2] = {ir_build_bool(&E->b, true), next.kind == EM_VALUE ? next.value : carried};
    ir_build_yield(&E->b, yields, 2);
    em_leave(E, here);
    E->env = saved;
    return em_value(ir_op_add_result(E->m, op, initial->type, (ts_str){0}));
}

static em builtin_any_all(emitter *E, bool is_any, em_arguments *args, const ast_node *node) {
    if (args->count != 1)
        return em_error();
    em v = args->items[0].v;
    if (v.kind == EM_VALUE && v.value->type->kind == IR_TENSOR)
        return em_value(em_op(E, is_any ? "any" : "all", node, 1, v.value));
    ir_value *list = as_list(E, v, node);
    if (!list)
        return em_error();
    const ir_type *t = list->type->args[0];
    if (t->kind != IR_BOOL && t->kind != IR_INT && t->kind != IR_FLOAT) {
        static const ast_node no_place;
        (void)no_place;
        fe_binding b = {.kind = FE_NAME, .path = TS_STR("builtins.bool")};
        list = map_list(E, em_binding(E, b), em_value(list), node, false);
        if (list)
            list->type = ir_type_list(E->m, em_simple(E, IR_BOOL));
    }
    return em_value(em_op(E, is_any ? "any" : "all", node, 1, list));
}

/* ---- conversions ---- */

static em builtin_int(emitter *E, em_arguments *args, const ast_node *node) {
    if (!args->count)
        return em_value(ir_build_int(&E->b, 0));
    ir_value *v = argument(E, args, 0, node);
    if (!v)
        return em_error();
    if (args->count == 2)
        return em_value(em_op(E, "Int", node, 2, v, argument(E, args, 1, node)));
    if (v->type->kind == IR_INT)
        return em_value(v);
    if (em_class_has_method(v->type, "__int__"))
        return em_call_method0(E, v, "__int__", NULL, 0, node);
    return em_value(em_op(E, "Int", node, 1, v));
}

static em builtin_float(emitter *E, em_arguments *args, const ast_node *node) {
    if (!args->count)
        return em_value(ir_build_float(&E->b, 0.0));
    ir_value *v = argument(E, args, 0, node);
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
    if (x->type->kind == IR_ANY || x->type->kind == IR_UNION)
        return em_value(em_row(E, "prim_len", node, 1, x));
    return em_value(em_op(E, "len", node, 1, x));
}

static em builtin_round(emitter *E, em_arguments *args, const ast_node *node) {
    ir_value *v = argument(E, args, 0, node);
    if (!v)
        return em_error();
    if (v->type->kind == IR_TENSOR)
        return em_operator(E, TS_STR("round"), args, node);
    if (args->count == 2) {
        ir_value *digits = argument(E, args, 1, node);
        return em_value(digits ? em_op(E, "prim_round", node, 2, v, digits) : NULL);
    }
    if (v->type->kind == IR_INT)
        return em_value(v);
    v = em_coerce(E, v, em_simple(E, IR_FLOAT), 0, node, "the number");
    return em_value(v ? em_row(E, "prim_round_to_int", node, 1, v) : NULL);
}

static em builtin_range(emitter *E, em_arguments *args, const ast_node *node) {
    em *items = TS_NEW_ARRAY(E->arena, em, 3);
    ir_value *v[3] = {NULL, NULL, NULL};
    for (size_t i = 0; i < args->count && i < 3; i++) {
        v[i] = em_coerce(E, argument(E, args, i, node), em_simple(E, IR_INT), 0, node, "range");
        if (!v[i])
            return em_error();
    }
    if (!args->count) {
        EM_ERR(E, node, "range expects at least one argument");
        return em_error();
    }
    items[0] = em_value(args->count == 1 ? ir_build_int(&E->b, 0) : v[0]);
    items[1] = em_value(args->count == 1 ? v[0] : v[1]);
    items[2] = em_value(args->count == 3 ? v[2] : ir_build_int(&E->b, 1));
    return (em){.kind = EM_RANGE, .items = items, .count = 3};
}

static em builtin_list(emitter *E, em_arguments *args, const ast_node *node, const ir_type *hint) {
    if (!args->count) {
        if (hint && hint->kind == IR_OPTIONAL)
            hint = hint->args[0];
        return em_value(em_list_of(E, NULL, 0, hint && hint->kind == IR_LIST ? hint->args[0]
                                                                            : ir_type_any_tensor(E->m)));
    }
    em v = args->items[0].v;
    if (v.kind == EM_TUPLE) { /* of functions or modules: known one by one */
        for (size_t i = 0; i < v.count; i++)
            if (v.items[i].kind != EM_VALUE && v.items[i].kind != EM_TUPLE)
                return v;
    }
    ir_value *list = as_list(E, v, node);
    if (!list)
        return em_error();
    bool is_fresh = v.kind != EM_VALUE || v.value->type->kind != IR_LIST;
    return em_value(is_fresh ? list : em_op(E, "list", node, 1, list));
}

static em builtin_dict(emitter *E, em_arguments *args, const ast_node *node, const ir_type *hint) {
    size_t count = positional_count(args);
    if (hint && hint->kind == IR_OPTIONAL)
        hint = hint->args[0];
    ir_value *dict = NULL;
    if (count) {
        em v = args->items[0].v;
        ir_value *x = v.kind == EM_VALUE && v.value->type->kind == IR_DICT ? v.value : as_list(E, v, node);
        if (!x)
            return em_error();
        dict = em_op(E, "dict", node, 1, x);
        if (dict && x->type->kind == IR_LIST && x->type->args[0]->kind == IR_TUPLE &&
            x->type->args[0]->arg_count == 2)
            dict->type = ir_type_dict(E->m, x->type->args[0]->args[0], x->type->args[0]->args[1]);
    }
    ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, 2 * args->count + 1);
    size_t n = 0;
    for (size_t i = count; i < args->count; i++) {
        items[n++] = ir_build_str(&E->b, args->items[i].name);
        items[n] = em_ir(E, args->items[i].v, node, NULL);
        if (!items[n++])
            return em_error();
        if (dict)
            em_op(E, "_set_item", node, 3, dict, items[n - 2], items[n - 1]);
    }
    if (dict)
        return em_value(dict);
    const ir_type *t = hint && hint->kind == IR_DICT
                           ? hint
                           : ir_type_dict(E->m, em_simple(E, IR_STR),
                                          n ? ir_type_forget(E->m, items[1]->type) : ir_type_any_tensor(E->m));
    return em_value(em_dict_of(E, items, n, t));
}

static em builtin_print(emitter *E, em_arguments *args, const ast_node *node) {
    size_t count = positional_count(args);
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, count + 1);
    em_argument *sep = named(args, "sep"), *end = named(args, "end");
    for (size_t i = 0; i < count; i++) {
        em v = args->items[i].v;
        bool own_text = v.kind == EM_VALUE && (em_class_has_method(v.value->type, "__str__") ||
                                               em_class_has_method(v.value->type, "__repr__"));
        values[i] = own_text || sep || end ? em_to_str(E, v, node) : em_ir(E, v, node, NULL);
        if (!values[i])
            return em_error();
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

static em python_builtin(emitter *E, ts_str name, em_arguments *args, const ast_node *node,
                         const ir_type *hint, bool *known) {
    *known = true;
#define IS(text) ts_str_is(name, text)
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
    if (IS("repr")) {
        ir_value *v = argument(E, args, 0, node);
        if (v && em_class_has_method(v->type, "__repr__"))
            return em_call_method0(E, v, "__repr__", NULL, 0, node);
        return em_value(v ? em_row(E, "prim_repr", node, 1, v) : NULL);
    }
    if (IS("complex")) {
        ir_value *a = argument(E, args, 0, node);
        ir_value *b = args->count > 1 ? argument(E, args, 1, node) : ir_build_int(&E->b, 0);
        if (a && a->type->kind == IR_COMPLEX && args->count == 1)
            return em_value(a);
        return em_value(a && b ? em_op(E, "Complex", node, 2, a, b) : NULL);
    }
    if (IS("abs")) {
        ir_value *v = argument(E, args, 0, node);
        if (v && em_class_has_method(v->type, "__abs__"))
            return em_call_method0(E, v, "__abs__", NULL, 0, node);
        return em_value(v ? em_op(E, v->type->kind == IR_TENSOR ? "abs" : "prim_abs", node, 1, v) : NULL);
    }
    if (IS("min") || IS("max"))
        return builtin_extreme(E, IS("max"), args, node);
    if (IS("sum"))
        return builtin_sum(E, args, node);
    if (IS("any") || IS("all"))
        return builtin_any_all(E, IS("any"), args, node);
    if (IS("sorted"))
        return builtin_sorted(E, args, node);
    if (IS("round"))
        return builtin_round(E, args, node);
    if (IS("pow") && args->count == 2)
        return em_binary(E, AST_POW, args->items[0].v, args->items[1].v, false, node);
    if (IS("range"))
        return builtin_range(E, args, node);
    if (IS("enumerate")) {
        ir_value *start = NULL;
        if (args->count > 1) {
            start = argument(E, args, 1, node);
            args->count = 1;
        }
        return wrap(E, EM_ENUMERATE, args, start);
    }
    if (IS("zip"))
        return wrap(E, EM_ZIP, args, NULL);
    if (IS("reversed"))
        return wrap(E, EM_REVERSED, args, NULL);
    if (IS("list"))
        return builtin_list(E, args, node, hint);
    if (IS("tuple")) {
        if (!args->count)
            return (em){.kind = EM_TUPLE};
        em v = args->items[0].v;
        em_iteration it;
        if (v.kind == EM_TUPLE || (v.kind == EM_VALUE && v.value->type->kind == IR_TUPLE))
            return v;
        if (v.kind != EM_VALUE && v.kind != EM_GENERATOR && em_iterate(E, v, node, &it) && it.is_unrolled)
            return (em){.kind = EM_TUPLE, .items = it.items, .count = it.count};
        ir_value *list = as_list(E, v, node);
        return em_value(list);
    }
    if (IS("dict"))
        return builtin_dict(E, args, node, hint);
    if (IS("print"))
        return builtin_print(E, args, node);
    if (IS("map") && args->count == 2)
        return em_value(map_list(E, args->items[0].v, args->items[1].v, node, false));
    if (IS("filter") && args->count == 2)
        return em_value(map_list(E, args->items[0].v, args->items[1].v, node, true));
    if (IS("iter") && args->count == 1)
        return em_value(as_list(E, args->items[0].v, node));
    if (IS("next") && args->count == 1) {
        ir_value *list = as_list(E, args->items[0].v, node);
        return em_value(list ? em_op(E, "__getitem__", node, 2, list, ir_build_int(&E->b, 0)) : NULL);
    }
    if (IS("format") && args->count == 2) {
        ir_value *v = argument(E, args, 0, node), *spec = argument(E, args, 1, node);
        return em_value(v && spec ? em_row(E, "prim_format_spec", node, 2, v, spec) : NULL);
    }
    if (IS("type") && args->count == 1) {
        em v = args->items[0].v;
        if (v.kind == EM_VALUE && v.value->type->class_ && fe_class_of(v.value->type->class_))
            return em_binding(E, (fe_binding){.kind = FE_CLASS, .class_ = fe_class_of(v.value->type->class_)});
        EM_UNSUPPORTED(E, node, "type() of this is not supported yet");
        return em_error();
    }
    if (IS("callable"))
        return em_value(ir_build_bool(&E->b, args->count && args->items[0].v.kind != EM_VALUE));
    if (IS("id") && args->count == 1)
        return em_operator(E, TS_STR("prim_id"), args, node);
    if (IS("divmod") || IS("ord") || IS("chr") || IS("hex") || IS("oct") || IS("bin") || IS("hash"))
        return em_operator(E, name, args, node);
    EM_UNSUPPORTED(E, node, "the function %.*s is not supported yet", TS_STR_ARG(name));
    return em_error();
#undef IS
}

/* ---- torch ---- */

static em raise_exception(emitter *E, em_arguments *args, const ast_node *node) {
    ir_value *message = argument(E, args, 0, node);
    ts_str type = TS_STR("RuntimeError");
    if (!message)
        return em_error();
    rt_value c;
    if (args->count > 1) {
        ir_value *class_ = argument(E, args, 1, node);
        if (class_ && ir_const_value(class_, &c) && c.tag == RT_TAG_STR) {
            type = rt_str_text(c.as.str);
            for (size_t i = type.length; i-- > 0;)
                if (type.data[i] == '.') {
                    type = (ts_str){type.data + i + 1, type.length - i - 1};
                    break;
                }
        }
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
    size_t count = positional_count(args);
    if (count <= from)
        return;
    em first = args->items[from].v;
    if (first.kind == EM_TUPLE || (first.kind == EM_VALUE && (first.value->type->kind == IR_LIST ||
                                                              first.value->type->kind == IR_TUPLE)))
        return;
    em *items = TS_NEW_ARRAY(E->arena, em, count - from);
    for (size_t i = from; i < count; i++)
        items[i - from] = args->items[i].v;
    args->items[from].v = em_value(as_list(E, (em){.kind = EM_TUPLE, .items = items, .count = count - from},
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
    return em_value(tuple_to_list(E, (em){.kind = EM_TUPLE, .items = items, .count = v.count}, node));
}

static ir_value *format_row(emitter *E, const char *row, em_arguments *args, const ast_node *node) {
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, args->count + 1);
    for (size_t i = 0; i < args->count; i++) {
        em v = args->items[i].v;
        bool own = i && v.kind == EM_VALUE && (em_class_has_method(v.value->type, "__str__"));
        values[i] = own ? em_to_str(E, v, node) : em_ir(E, v, node, NULL);
        if (!values[i])
            return NULL;
    }
    bool is_tuple = args->count == 2 && values[1]->type->kind == IR_TUPLE && strcmp(row, "percentFormat") == 0;
    return em_row(E, row, node, 2, values[0],
                  is_tuple ? values[1] : em_tuple_of(E, values + 1, args->count - 1));
}

static em wait_for(emitter *E, em_arguments *args, const ast_node *node) {
    ir_value *v = argument(E, args, 0, node);
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
    em_env before = em_env_copy(E);
    ir_op *op = ir_build_if(&E->b, test);
    ir_block *here = em_enter(E, op->regions[1]);
    ir_op *raise = ir_build_op(&E->b, IR_OP_RAISE, &message, 1, NULL, 0);
    raise->name = TS_STR("AssertionError");
    ir_build_yield(&E->b, NULL, 0);
    em_enter(E, op->regions[0]);
    ir_build_yield(&E->b, NULL, 0);
    em_leave(E, here);
    E->env = before;
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
        ir_value *r = args->count > 1 ? argument(E, args, 1, node) : ir_build_bool(&E->b, false);
        em sorted = r ? sort_objects(E, list, r, node) : em_error();
        if (sorted.kind != EM_VALUE || !IS("torch.sort"))
            return sorted;
        em_row(E, "prim_list_set_slice", node, 5, list, ir_build_none(&E->b), ir_build_none(&E->b),
               ir_build_int(&E->b, 1), sorted.value);
        return em_value(ir_build_none(&E->b));
    }
    if (IS("torch.len"))
        return builtin_len(E, args, node);
    if (IS("torch.Size") || IS("torch.jit.List"))
        return em_value(args->count ? as_list(E, args->items[0].v, node) : NULL);
    if ((IS("torch.finfo") || IS("torch.iinfo")) && args->count <= 1) {
        ir_value *dtype = args->count ? argument(E, args, 0, node) : ir_build_int(&E->b, RT_float32);
        return dtype ? (em){.kind = EM_DTYPE_INFO, .value = dtype} : em_error();
    }
    if (IS("torch.is_tensor") && args->count == 1)
        return em_value(ir_build_bool(&E->b, args->items[0].v.kind == EM_VALUE &&
                                                 args->items[0].v.value->type->kind == IR_TENSOR));
    if (IS("torch._assert") && args->count >= 1) {
        ir_value *test = em_truth(E, args->items[0].v, node);
        ir_value *message = args->count > 1 ? argument(E, args, 1, node) : ir_build_str(&E->b, (ts_str){"", 0});
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
        if (v.kind == EM_VALUE && v.value->type->kind == IR_TENSOR) {
            bool copies = IS("torch.tensor");
            ir_value *t = v.value;
            em_argument *dtype = named(args, "dtype");
            if (dtype)
                t = em_op(E, "to", node, 2, t, em_ir(E, dtype->v, node, NULL));
            return em_value(copies && !dtype ? em_op(E, "clone", node, 1, t) : t);
        }
        return em_operator(E, TS_STR("tensor"), args, node);
    }
    if (IS("torch.einsum"))
        pack_rest(E, args, 1);
    if (IS("torch.broadcast_tensors") || IS("torch.meshgrid") || IS("torch.cartesian_prod") ||
        IS("torch.block_diag") || IS("torch.chain_matmul") || IS("torch.linalg_multi_dot"))
        pack_rest(E, args, 0);
    if (IS("warnings.warn"))
        return em_value(ir_build_none(&E->b));
    if (IS("copy.copy") || IS("copy.deepcopy")) {
        ir_value *v = argument(E, args, 0, node);
        if (v && v->type->kind == IR_TENSOR)
            return em_value(em_op(E, "clone", node, 1, v));
        if (v && IS("copy.copy") && (v->type->kind == IR_LIST || v->type->kind == IR_DICT))
            return em_value(em_op(E, "copy", node, 1, v));
        EM_UNSUPPORTED(E, node, "%.*s of this is not supported yet", TS_STR_ARG(path));
        return em_error();
    }
    if (IS("math.trunc") && args->count == 1)
        return builtin_int(E, args, node);
    if (IS("math.remainder"))
        return em_operator(E, TS_STR("mathremainder"), args, node);
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
        if (a->items[1]->kind != AST_STRING) {
            EM_UNSUPPORTED(E, node, "%s with a name known only at run time is not supported yet",
                           has ? "hasattr" : "getattr");
            return em_error();
        }
        em object = em_expression(E, a->items[0], NULL);
        ts_str name = a->items[1]->text;
        if (has)
            return em_value(ir_build_bool(&E->b, em_has_attribute(E, object, name)));
        if (a->count == 3 && !em_has_attribute(E, object, name))
            return em_expression(E, a->items[2], hint);
        return em_attribute_of(E, object, name, node, false);
    }
#undef IS
    return em_error();
}
