/* frontend/emit_builtin_sequence.c - Python's builtin functions over what is iterable, and those that make
 * lists and dicts. */
#include "frontend/emit_builtin.h"
#include "runtime/ops/ref_kernel.h"

/* ---- lists out of anything ---- */

ir_value *em_tuple_to_list(emitter *E, em v, const ast_node *node) {
    em_iteration it;
    if (!em_iterate(E, v, node, &it) || !it.is_unrolled)
        return NULL;
    ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, it.count + 1);
    const ir_type *t = NULL;
    for (size_t i = 0; i < it.count; i++) {
        em item = it.items[i];
        if (item.kind == EM_TUPLE && node == NULL)
            item = em_value(em_tuple_to_list(E, item, node));
        items[i] = em_ir(E, item, node, NULL);
        if (!items[i])
            return NULL;
        const ir_type *one = ir_type_forget(E->m, items[i]->type);
        t = t ? ir_type_join(E->m, t, one) : one;
    }
    if (t && t->kind == IR_UNION && t->arg_count == 2 && em_is_number(t->args[0]) && em_is_number(t->args[1]) &&
        t->args[0]->kind != IR_BOOL && t->args[1]->kind != IR_BOOL && em_is_script(node)) {
        t = em_simple(E, IR_NUMBER);
        for (size_t i = 0; i < it.count; i++)
            items[i] = em_cast(E, items[i], t);
    } else if (t && t->kind == IR_UNION && t->arg_count == 2 && em_is_number(t->args[0]) && em_is_number(t->args[1])) {
        t = em_simple(E, IR_FLOAT);
        for (size_t i = 0; i < it.count; i++)
            items[i] = em_coerce(E, items[i], t, 0, node, "the item");
    }
    return em_list_of(E, items, it.count, t ? t : ir_type_any_tensor(E->m));
}

/* A list of v's items: itself where it is one (no copy). */
ir_value *em_as_list(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_ERROR)
        return NULL;
    if (v.kind == EM_TUPLE)
        return em_tuple_to_list(E, v, node);
    ir_value *x;
    if (v.kind == EM_GENERATOR)
        v = em_comprehension(E, em_whole_generator(E, v.node), NULL);
    if (em_is_lazy(E, v))
        return em_list_by_loop(E, v, node);
    if (v.kind == EM_BINDING && v.binding->kind == FE_CLASS && v.binding->class_->kind == RT_CLASS_ENUM)
        return em_tuple_to_list(E, v, node);
    x = em_ir(E, v, node, NULL);
    if (!x)
        return NULL;
    if (x->type->kind == IR_OPTIONAL)
        x = em_check_cast(E, x, x->type->args[0]);
    switch (x->type->kind) {
    case IR_LIST:
        return x;
    case IR_TUPLE:
        return em_tuple_to_list(E, em_value(x), node);
    case IR_DICT:
        return em_is_set_type(x->type) ? em_set_items(E, x, node) : em_op(E, "keys", node, 1, x);
    case IR_STR:
        return em_op(E, "list", node, 1, x);
    case IR_TENSOR:
        return em_op(E, "unbind", node, 2, x, ir_build_int(&E->b, 0));
    case IR_ANY: /* tolist(): numbers, unless something else is said */
        return em_check_cast(E, x, ir_type_list(E->m, em_simple(E, IR_NUMBER)));
    default:
        if (x->type->kind == IR_CLASS && x->type->class_->base.kind == RT_CLASS_MODULE)
            return em_tuple_to_list(E, em_value(x), node);
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

ir_value *em_map_list(emitter *E, em callee, em source, const ast_node *node, bool is_filter) {
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
    bool of_objects = m.result->type->args[0]->args[0]->kind == IR_CLASS;
    em operands[2] = {em_value(m.result), em_value(reverse)};
    ir_value *pairs = of_objects ? em_ir(E, em_call_python(E, "builtins.pairs_by_less", operands, 2, node), node, NULL)
                                 : em_row(E, "prim_sorted", node, 2, m.result, reverse);
    picker p = {.source = list, .negate_index = is_reverse, .node = node};
    p.result = em_list_of(E, NULL, 0, list->type->args[0]);
    return pairs && em_for_each(E, em_value(pairs), node, pick_item, &p) ? p.result : NULL;
}

/* Objects go by their __lt__: an insertion sort, stable both ways, made for the class. */
em em_sort_objects(emitter *E, ir_value *list, ir_value *reverse, const ast_node *node) {
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
    if (!c || (!fe_class_method(c, TS_STR("__lt__")) && !c->is_dataclass)) {
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

/* The key by which members of an IntEnum go. */
static em value_of_member(emitter *E) { return em_binding(E, em_python_binding(E, TS_STR("builtins.member_value"))); }

em em_builtin_sorted(emitter *E, em_arguments *args, const ast_node *node) {
    if (!args->count)
        return em_error();
    ir_value *list = em_as_list(E, args->items[0].v, node);
    if (!list)
        return em_error();
    em_argument *key = em_named(args, "key"), *reverse = em_named(args, "reverse");
    ir_value *r = reverse ? em_ir(E, reverse->v, node, NULL) : ir_build_bool(&E->b, false);
    if (key && !(key->v.kind == EM_VALUE && key->v.value->type->kind == IR_NONE))
        return em_value(sorted_by(E, list, key->v, r, node));
    const ir_type *t = list->type->args[0];
    if (t->kind == IR_CLASS)
        return em_sort_objects(E, list, r, node);
    if (t->kind == IR_ENUM)
        return em_value(sorted_by(E, list, value_of_member(E), r, node));
    return em_value(em_row(E, "prim_sorted", node, 2, list, r));
}

static void check_not_empty(emitter *E, bool is_max, ir_value *list, const ast_node *node) {
    em operands[2] = {em_value(em_op(E, "len", node, 1, list)), em_value(ir_build_bool(&E->b, is_max))};
    em_call_python(E, "builtins.check_not_empty", operands, 2, node);
}

/* Numbers of several types: Python gives one of the operands, as it is. */
static bool is_mixed(const ir_type *a, const ir_type *b) {
    return em_is_number(a) && em_is_number(b) && a->kind != IR_COMPLEX && b->kind != IR_COMPLEX &&
           (a->kind != b->kind || a->kind == IR_NUMBER);
}

static ir_value *mixed_extreme(emitter *E, bool is_max, ir_value *a, ir_value *b, const ast_node *node) {
    rt_value x, y;
    if (ir_const_value(a, &x) && ir_const_value(b, &y)) {
        bool takes_b = false;
        ts_status status = is_max ? rt_less(x, y, &takes_b) : rt_less(y, x, &takes_b);
        if (!status)
            return takes_b ? b : a;
        ts_status_release(status);
    }
    const ir_type *number = em_simple(E, IR_NUMBER);
    return em_row(E, is_max ? "prim_max" : "prim_min", node, 2, em_cast(E, a, number), em_cast(E, b, number));
}

em em_builtin_extreme(emitter *E, bool is_max, em_arguments *args, const ast_node *node) {
    size_t count = em_positional_count(args);
    em_argument *key = em_named(args, "key"), *fallback = em_named(args, "default");
    if (count == 1 && !key && args->count == 1 && args->items[0].v.kind == EM_TUPLE) {
        em_arguments spread = {0};
        em v = args->items[0].v;
        bool is_plain = v.count > 1;
        for (size_t i = 0; i < v.count; i++) {
            em_argument one = {.v = v.items[i], .node = node};
            is_plain = is_plain && one.v.kind == EM_VALUE && em_is_number(one.v.value->type);
            TS_APPEND(E->arena, spread.items, spread.count, spread.capacity, one);
        }
        if (is_plain)
            return em_builtin_extreme(E, is_max, &spread, node);
    }
    if (key && count > 1 && em_is_script(node))
        for (size_t i = 1; i < count; i++) {
            ir_value *a = em_argument_ir(E, args, 0, node), *b = em_argument_ir(E, args, i, node);
            if (a && b && is_mixed(a->type, b->type)) {
                EM_UNSUPPORTED(E, node, "%s of an int and a float by a key is not supported yet",
                               is_max ? "max" : "min");
                return em_error();
            }
        }
    const char *name = is_max ? "prim_max" : "prim_min";
    ir_value *front = count > 1 && !key ? em_argument_ir(E, args, 0, node) : NULL;
    bool of_objects = front && (front->type->kind == IR_CLASS || front->type->kind == IR_TUPLE ||
                                front->type->kind == IR_LIST || front->type->kind == IR_ENUM);
    if (count == 1 || key || of_objects) {
        ir_value *list = count == 1 ? em_as_list(E, args->items[0].v, node) : NULL;
        if (count > 1) {
            em *items = TS_NEW_ARRAY(E->arena, em, count);
            for (size_t i = 0; i < count; i++)
                items[i] = args->items[i].v;
            list = em_as_list(E, (em){.kind = EM_TUPLE, .items = items, .count = count}, node);
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
        bool has_kernel = t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL || t->kind == IR_STR;
        if (!fallback && (key || !has_kernel))
            check_not_empty(E, is_max, list, node);
        if (key || t->kind == IR_ENUM) {
            ir_value *sorted = sorted_by(E, list, key ? key->v : value_of_member(E), ir_build_bool(&E->b, is_max), node);
            v = sorted ? em_op(E, "__getitem__", node, 2, sorted, ir_build_int(&E->b, 0)) : NULL;
        } else if (has_kernel) {
            v = em_op(E, name, node, 1, list);
        } else if (em_class_has_method(t, "__lt__") || em_class_has_method(t, "__gt__") || em_has_own_equality(t, 0)) {
            em operands[2] = {em_value(list), em_value(ir_build_bool(&E->b, is_max))};
            v = em_ir(E, em_call_python(E, "builtins.extreme_by_less", operands, 2, node), node, NULL);
        } else {
            ir_value *sorted = em_row(E, "prim_sorted", node, 2, list, ir_build_bool(&E->b, is_max));
            v = em_op(E, "__getitem__", node, 2, sorted, ir_build_int(&E->b, 0));
        }
        if (fallback)
            v = em_choose_end(E, &choice, v, node);
        return em_value(v);
    }
    ir_value *v = em_argument_ir(E, args, 0, node);
    for (size_t i = 1; i < count && v; i++) {
        ir_value *w = em_argument_ir(E, args, i, node);
        if (!w)
            return em_error();
        if (v->type->kind == IR_TENSOR || w->type->kind == IR_TENSOR) {
            /* Python's max: the first unless the other is greater. */
            ir_value *test = em_compare_two(E, is_max ? AST_GT : AST_LT, em_value(w), em_value(v), node);
            em_choice choice;
            em_choose(E, &choice, em_truth(E, em_value(test), node));
            em_choose_other(E, &choice, w);
            v = em_choose_end(E, &choice, v, node);
        } else if (em_is_script(node) && is_mixed(v->type, w->type)) {
            v = mixed_extreme(E, is_max, v, w, node);
        } else {
            v = em_op(E, name, node, 2, v, w);
        }
    }
    return em_value(v);
}

/* ---- sum ---- */

em em_builtin_sum(emitter *E, em_arguments *args, const ast_node *node) {
    if (!args->count)
        return em_error();
    em source = args->items[0].v;
    em start = args->count > 1 ? args->items[1].v : em_value(ir_build_int(&E->b, 0));
    em_iteration it;
    const ir_op *made = source.kind == EM_ITEMS ? source.value->def : NULL;
    if (made && made->opcode == IR_OP_DICT && !made->operand_count && !source.value->use_count)
        return start; /* **kw that nobody gave */
    if (source.kind == EM_GENERATOR || source.kind == EM_ITEMS || source.kind == EM_RANGE || em_is_lazy(E, source))
        source = em_value(em_as_list(E, source, node));
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
    ir_value *list = em_as_list(E, source, node);
    if (!list)
        return em_error();
    const ir_type *t = list->type->args[0];
    ir_value **literal;
    size_t literal_count;
    if (em_is_list_literal(list, &literal, &literal_count) && !literal_count)
        return start;
    if (t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL || t->kind == IR_COMPLEX) {
        ir_value *v = em_op(E, "sum", node, 1, list);
        return args->count > 1 ? em_binary(E, AST_ADD, start, em_value(v), false, node) : em_value(v);
    }
    if (t->kind == IR_CLASS || t->kind == IR_NUMBER || t->kind == IR_TUPLE) {
        em operands[2] = {em_value(list), start};
        return em_call_python(E, t->kind == IR_NUMBER ? "builtins.sum_numbers" : "builtins.sum_objects", operands, 2, node);
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
    em_env_release(E, &E->env);
    E->env = saved;
    return em_value(ir_op_add_result(E->m, op, initial->type, (ts_str){0}));
}

em em_builtin_any_all(emitter *E, bool is_any, em_arguments *args, const ast_node *node) {
    if (args->count != 1)
        return em_error();
    em v = args->items[0].v;
    if (v.kind == EM_VALUE && v.value->type->kind == IR_TENSOR) {
        ir_value *found = em_op(E, is_any ? "any" : "all", node, 1, v.value);
        return em_value(found && em_is_script(node) ? em_op(E, "Bool", node, 1, found) : found);
    }
    if (v.kind == EM_GENERATOR && em_is_script(node) && em_asks_in_turn(v.node))
        return em_any_of(E, v.node, is_any);
    ir_value *list = em_as_list(E, v, node);
    if (!list)
        return em_error();
    const ir_type *t = list->type->args[0];
    if (t->kind != IR_BOOL && t->kind != IR_INT && t->kind != IR_FLOAT) {
        static const ast_node no_place;
        (void)no_place;
        fe_binding b = {.kind = FE_NAME, .path = TS_STR("builtins.bool")};
        list = em_map_list(E, em_binding(E, b), em_value(list), node, false);
        if (list)
            list->type = ir_type_list(E->m, em_simple(E, IR_BOOL));
    }
    return em_value(em_op(E, is_any ? "any" : "all", node, 1, list));
}

em em_builtin_range(emitter *E, em_arguments *args, const ast_node *node) {
    em *items = TS_NEW_ARRAY(E->arena, em, 3);
    ir_value *v[3] = {NULL, NULL, NULL};
    for (size_t i = 0; i < args->count && i < 3; i++) {
        v[i] = em_coerce(E, em_argument_ir(E, args, i, node), em_simple(E, IR_INT), 0, node, "range");
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

em em_builtin_list(emitter *E, em_arguments *args, const ast_node *node, const ir_type *hint) {
    if (!args->count) {
        if (hint && hint->kind == IR_OPTIONAL)
            hint = hint->args[0];
        const ir_type *given = hint && hint->kind == IR_LIST ? hint : NULL;
        const ir_type *t = given ? given : em_empty_type(E, node, ir_type_list(E->m, ir_type_any_tensor(E->m)));
        ir_value *empty = em_list_of(E, NULL, 0, t->args[0]);
        if (!given)
            em_note_empty(E, empty, node);
        return em_value(empty);
    }
    em v = args->items[0].v;
    if (v.kind == EM_TUPLE) { /* of functions or modules: known one by one */
        for (size_t i = 0; i < v.count; i++)
            if (v.items[i].kind != EM_VALUE && v.items[i].kind != EM_TUPLE)
                return v;
    }
    ir_value *list = em_as_list(E, v, node);
    if (!list)
        return em_error();
    bool is_fresh = v.kind != EM_VALUE || v.value->type->kind != IR_LIST;
    return em_value(is_fresh ? list : em_op(E, "list", node, 1, list));
}

em em_dict_behind(emitter *E, em v, const ast_node *node) {
    bool is_over_dict = v.kind == EM_VALUE && v.value && em_class_has_method(v.value->type, "as_python");
    return is_over_dict ? em_call_method0(E, v.value, "as_python", NULL, 0, node) : v;
}

em em_builtin_dict(emitter *E, em_arguments *args, const ast_node *node, const ir_type *hint) {
    size_t count = em_positional_count(args);
    if (hint && hint->kind == IR_OPTIONAL)
        hint = hint->args[0];
    ir_value *dict = NULL;
    if (count) {
        em v = args->items[0].v;
        v = em_dict_behind(E, v, node);
        ir_value *x = v.kind == EM_VALUE && v.value->type->kind == IR_DICT ? v.value : em_as_list(E, v, node);
        if (!x)
            return em_error();
        if (x->type->kind == IR_LIST && x->type->args[0]->kind == IR_LIST) {
            em rows = em_value(x);
            x = em_ir(E, em_call_python(E, "builtins.pairs_of", &rows, 1, node), node, NULL);
            if (!x)
                return em_error();
        }
        bool is_pairs = x->type->kind == IR_LIST && x->type->args[0]->kind == IR_TUPLE && x->type->args[0]->arg_count == 2;
        if (is_pairs && em_has_own_equality(x->type->args[0]->args[0], 8)) {
            em pairs = em_value(x);
            return em_call_python(E, "builtins.dict_by_keys", &pairs, 1, node);
        }
        dict = em_op(E, "dict", node, 1, x);
        if (dict && is_pairs)
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
    if (!n && !(hint && hint->kind == IR_DICT)) {
        ir_value *empty = em_dict_of(E, NULL, 0, em_empty_type(E, node, t));
        em_note_empty(E, empty, node);
        return em_value(empty);
    }
    for (size_t i = 3; i < n && !(hint && hint->kind == IR_DICT); i += 2)
        t = ir_type_dict(E->m, t->args[0], ir_type_join(E->m, t->args[1], ir_type_forget(E->m, items[i]->type)));
    for (size_t i = 1; i < n; i += 2)
        items[i] = em_cast(E, em_coerce(E, items[i], t->args[1], 0, node, "the value"), t->args[1]);
    return em_value(em_dict_of(E, items, n, t));
}

/* ---- zip(*rows) ---- */

typedef struct column {
    ir_value *list;
    size_t at;
    const ast_node *node;
} column;

static void add_to_column(emitter *E, em item, void *user) {
    column *c = user;
    em_iteration row;
    if (em_iterate(E, item, c->node, &row) && row.is_unrolled && c->at < row.count)
        em_op(E, "append", c->node, 2, c->list, em_ir(E, row.items[c->at], c->node, NULL));
}

bool em_zip_columns(emitter *E, em rows, const ast_node *node, em *out) {
    ir_value *list = em_as_list(E, rows, node);
    const ir_type *row = list && list->type->kind == IR_LIST ? list->type->args[0] : NULL;
    if (!row || row->kind != IR_TUPLE || !row->arg_count)
        return false;
    em check[2] = {em_value(em_op(E, "len", node, 1, list)), em_value(ir_build_int(&E->b, (int64_t)row->arg_count))};
    em_call_python(E, "builtins.need_rows", check, 2, node);
    *out = (em){.kind = EM_TUPLE, .count = row->arg_count, .items = TS_NEW_ARRAY(E->arena, em, row->arg_count)};
    for (size_t i = 0; i < row->arg_count; i++) {
        column c = {.list = em_list_of(E, NULL, 0, row->args[i]), .at = i, .node = node};
        em_for_each(E, em_value(list), node, add_to_column, &c);
        out->items[i] = (em){.kind = EM_VALUE, .value = c.list, .is_tuple = true};
    }
    return true;
}
