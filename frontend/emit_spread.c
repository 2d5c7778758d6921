/* frontend/emit_spread.c - *args and **kwargs: a function that takes what is given is made for what one call gives.
 *
 *   def f(*args, **kw): BODY   called f(1, "a", k=2)   =>   def f(args$0, args$1, *, kw$k): args = (args$0, args$1,)
 *                                                           kw = {"k": kw$k}; BODY
 * so items of different types keep them, and handing them on (g(*args, **kw)) is a plain call. */
#include "frontend/emit_builtin.h"
#include "frontend/rewrite.h"

static void add_parameter(emitter *E, ast_node *f, ts_str name, const ast_parameter *like) {
    ast_parameter p = *like;
    p.name = name;
    p.is_star = p.is_double_star = false;
    TS_APPEND(E->arena, f->parameters.items, f->parameters.count, f->parameters.capacity, p);
}

static bool has_parameter(const ast_node *f, ts_str name) {
    for (size_t i = 0; i < f->parameters.count; i++)
        if (ts_str_equal(f->parameters.items[i].name, name) && !f->parameters.items[i].is_star &&
            !f->parameters.items[i].is_double_star && !f->parameters.items[i].is_positional_only)
            return true;
    return false;
}

/* The function for a call with these arguments; itself where it takes no stars. The arguments are renamed. */
/* kw = {...}; where no keyword was given, its declaration says of what: kw: Dict[str, int] = {} */
static ast_node *dict_of_rest(emitter *E, const ast_parameter *p, ast_node *dict, const ast_node *node) {
    ast_node *assign = rw_assign(E->arena, rw_name(E->arena, p->name, node), dict, node);
    if (!p->annotation || dict->list.count)
        return assign;
    ast_node *declared = rw_node(E->arena, AST_SUBSCRIPT, node), *parts = rw_node(E->arena, AST_TUPLE, node);
    declared->left = rw_name(E->arena, TS_STR("Dict"), node);
    declared->right = parts;
    rw_append(E->arena, &parts->list, rw_name(E->arena, TS_STR("str"), node));
    rw_append(E->arena, &parts->list, (ast_node *)(uintptr_t)p->annotation);
    ast_node *annotated = rw_node(E->arena, AST_ANN_ASSIGN, node);
    annotated->left = assign->list.items[0];
    annotated->third = declared;
    annotated->right = dict;
    return annotated;
}

fe_function *em_spread_function(emitter *E, fe_function *f, size_t skipped, em_arguments *args) {
    const ast_node *node = f->node;
    const ast_parameter *star = NULL, *double_star = NULL;
    size_t plain = 0;
    for (size_t i = 0; i < node->parameters.count; i++) {
        const ast_parameter *p = &node->parameters.items[i];
        if (p->is_star)
            star = p;
        else if (p->is_double_star)
            double_star = p;
        else if (!p->is_keyword_only)
            plain++;
    }
    bool is_typed = star && star->annotation && !double_star;
    if ((!star && !double_star) || is_typed || node->kind != AST_FUNCTION || (f->is_library && !em_is_generic(f)))
        return f;
    plain -= skipped;
    size_t positional = em_positional_count(args), extra = positional > plain ? positional - plain : 0;
    em_argument *list = NULL; /* of a length known at run time: def f(a, *rest) is f(a, rest) then */
    for (size_t i = 0; i < args->count; i++)
        if (ts_str_is(args->items[i].name, "*"))
            list = &args->items[i];
    if (list && (!star || positional != plain))
        return f;
    ts_buffer key = {0};
    ts_buffer_format(&key, "spread%s %p %zu", list ? " list" : "", (const void *)f, star ? extra : 0);
    for (size_t i = positional; i < args->count; i++)
        if (!has_parameter(node, args->items[i].name) && &args->items[i] != list)
            ts_buffer_format(&key, " %.*s", TS_STR_ARG(args->items[i].name));
    ts_str k = ts_arena_str(E->arena, (ts_str){key.data, key.length});
    ts_buffer_deinit(&key);
    fe_function *made = fe_map_get(&E->fe->spread_functions, k);
    if (!made) {
        ast_node *copy = TS_NEW(E->arena, ast_node);
        *copy = *node;
        copy->parameters = (ast_parameters){0};
        copy->body = (ast_list){0};
        ast_node *tuple = rw_node(E->arena, AST_TUPLE, node), *dict = rw_node(E->arena, AST_DICT, node);
        for (size_t i = 0; i < node->parameters.count; i++) {
            const ast_parameter *p = &node->parameters.items[i];
            if ((!p->is_star && !p->is_double_star) || (p->is_star && list)) {
                add_parameter(E, copy, p->name, p);
                continue;
            }
            for (size_t n = 0; p->is_star && n < extra; n++) {
                ts_str name = ts_arena_format(E->arena, "%.*s$%zu", TS_STR_ARG(p->name), n);
                add_parameter(E, copy, name, p);
                rw_append(E->arena, &tuple->list, rw_name(E->arena, name, node));
            }
            for (size_t n = positional; p->is_double_star && n < args->count; n++) {
                if (has_parameter(node, args->items[n].name) || &args->items[n] == list)
                    continue;
                ts_str name = ts_arena_format(E->arena, "%.*s$%.*s", TS_STR_ARG(p->name), TS_STR_ARG(args->items[n].name));
                ast_parameter one = *p;
                one.is_keyword_only = true;
                add_parameter(E, copy, name, &one);
                ast_node *text = rw_node(E->arena, AST_STRING, node);
                text->text = args->items[n].name;
                rw_append(E->arena, &dict->list, text);
                rw_append(E->arena, &dict->list, rw_name(E->arena, name, node));
            }
        }
        if (star && !list)
            rw_append(E->arena, &copy->body, rw_assign(E->arena, rw_name(E->arena, star->name, node), tuple, node));
        if (double_star)
            rw_append(E->arena, &copy->body, dict_of_rest(E, double_star, dict, node));
        for (size_t i = 0; i < node->body.count; i++)
            rw_append(E->arena, &copy->body, node->body.items[i]);
        made = TS_NEW(E->arena, fe_function);
        *made = *f;
        made->node = copy;
        made->name = ts_arena_format(E->arena, "%.*s$%zu", TS_STR_ARG(f->name), E->fe->spread_functions.count);
        made->ir = NULL;
        made->signature = NULL;
        made->is_emitting = false;
        made->variants = (fe_map){0};
        fe_map_set(E->arena, &E->fe->spread_functions, k, made);
    }
    for (size_t i = positional; i < args->count && double_star; i++)
        if (!has_parameter(node, args->items[i].name) && &args->items[i] != list)
            args->items[i].name = ts_arena_format(E->arena, "%.*s$%.*s", TS_STR_ARG(double_star->name),
                                                  TS_STR_ARG(args->items[i].name));
    if (list)
        list->name = (ts_str){0};
    return made;
}

/* **value: a dict whose keys are known. False after an error. */
bool em_spread_dict(emitter *E, const ast_node *node, em_arguments *out) {
    ir_value *dict = em_expression_ir(E, node->left, NULL);
    if (!dict)
        return false;
    rt_value constant;
    if (ir_const_value(dict, &constant) && constant.tag == RT_TAG_DICT) {
        rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(constant.as.dict, &at));) {
            em_argument a = {.node = node, .v = em_of_value(E, e->value)};
            if (e->key.tag != RT_TAG_STR)
                return false;
            a.name = ts_arena_str(E->arena, rt_str_text(e->key.as.str));
            TS_APPEND(E->arena, out->items, out->count, out->capacity, a);
        }
        return true;
    }
    const ir_op *made = dict->def;
    while (made && (made->opcode == IR_OP_CAST || made->opcode == IR_OP_CHECK_CAST))
        made = made->operands[0]->def;
    bool is_known = made && made->opcode == IR_OP_DICT;
    for (size_t i = 0; is_known && i < made->operand_count; i += 2)
        is_known = ir_const_value(made->operands[i], &constant) && constant.tag == RT_TAG_STR;
    for (size_t i = 0; is_known && i < made->results[0]->use_count; i++)
        is_known = !(ir_effects(made->results[0]->uses[i].op) & IR_EFFECT_WRITES);
    if (!is_known) {
        EM_UNSUPPORTED(E, node, "an argument **dict whose keys are known only at run time is not supported yet");
        return false;
    }
    for (size_t i = 0; i < made->operand_count; i += 2) {
        em_argument a = {.node = node};
        ir_const_value(made->operands[i], &constant);
        a.name = ts_arena_str(E->arena, rt_str_text(constant.as.str));
        ir_value *value = made->operands[i + 1]; /* before it was made like the others */
        while (value->def && value->def->opcode == IR_OP_CAST)
            value = value->def->operands[0];
        a.v = em_value(value);
        TS_APPEND(E->arena, out->items, out->count, out->capacity, a);
    }
    return true;
}

/* A class method for the class it is called by: `cls` is that one. */
fe_function *em_class_method_of(emitter *E, fe_class *c, fe_function *f) {
    if (f->owner == c)
        return f;
    ts_str key = ts_arena_format(E->arena, "class method %p %p", (const void *)c, (const void *)f);
    fe_function *made = fe_map_get(&E->fe->spread_functions, key);
    if (made)
        return made;
    made = TS_NEW(E->arena, fe_function);
    *made = *f;
    made->owner = c;
    made->name = ts_arena_format(E->arena, "%.*s.%.*s", TS_STR_ARG(c->name), TS_STR_ARG(f->bare_name));
    made->ir = NULL;
    made->signature = NULL;
    made->is_emitting = false;
    made->variants = (fe_map){0};
    fe_map_set(E->arena, &E->fe->spread_functions, key, made);
    return made;
}
