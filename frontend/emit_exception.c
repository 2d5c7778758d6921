/* frontend/emit_exception.c - exceptions as objects.
 *
 * What is raised is a name and a text (IR_OP_RAISE). A class of the user's with an __init__, methods or
 * attributes is an object beside them: `raise` leaves it in a state of the session, and the except clause that
 * catches the name finds it there. Other exceptions become objects only where they are values: in a list, or
 * returned. */
#include "frontend/emit_builtin.h"

#define TEXT_FIELD TS_STR("exception_text")
#define NAME_FIELD TS_STR("exception_name")
#define ARGUMENTS_FIELD TS_STR("args")

void em_exception_fields(fe_context *fe, ir_class *c) {
    em_add_field(fe, c, TEXT_FIELD, ir_type_simple(fe->module, IR_STR));
    em_add_field(fe, c, NAME_FIELD, ir_type_simple(fe->module, IR_STR));
    em_add_field(fe, c, ARGUMENTS_FIELD, ir_type_list(fe->module, ir_type_simple(fe->module, IR_ANY)));
}

bool em_is_exception(const ir_type *t) { return t->kind == IR_CLASS && t->class_->base.kind == RT_CLASS_EXCEPTION; }

bool em_is_object_exception(const fe_class *c) {
    bool has_own = false;
    for (size_t i = 0; c->kind == RT_CLASS_EXCEPTION && i <= c->ancestor_count && !has_own; i++) {
        const fe_class *a = i ? c->ancestors[i - 1] : c;
        has_own = a->node && (a->methods.count || a->variable_count);
    }
    return has_own;
}

static ir_value *field(emitter *E, ir_value *object, ts_str name) {
    const ir_type *type = em_find_field(object->type->class_, name)->type;
    ir_op *op = ir_build_op(&E->b, IR_OP_GET_ATTR, &object, 1, &type, 1);
    op->name = name;
    return op->results[0];
}

static void set_field(emitter *E, ir_value *object, ts_str name, ir_value *v) {
    ir_value *operands[2] = {object, v};
    ir_build_op(&E->b, IR_OP_SET_ATTR, operands, 2, NULL, 0)->name = name;
}

/* What str() gives of BaseException(args...); NULL after an error. */
ir_value *em_exception_message(emitter *E, const fe_class *c, const em_arguments *args, const ast_node *node) {
    if (!args->count)
        return ir_build_str(&E->b, (ts_str){"", 0});
    if (args->count == 1) {
        if (!ts_str_is(c->bare_name, "KeyError"))
            return em_to_str(E, args->items[0].v, node);
        ir_value *v = em_ir(E, args->items[0].v, node, NULL);
        return v ? em_row(E, "prim_repr", node, 1, v) : NULL;
    }
    em *items = TS_NEW_ARRAY(E->arena, em, args->count);
    for (size_t i = 0; i < args->count; i++)
        items[i] = args->items[i].v;
    return em_to_str(E, (em){.kind = EM_TUPLE, .items = items, .count = args->count}, node);
}

static ir_value *list_of_any(emitter *E, ir_value *first, const em *items, size_t count, const ast_node *node) {
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, count + 1);
    size_t n = 0;
    if (first)
        values[n++] = em_cast(E, first, em_simple(E, IR_ANY));
    for (size_t i = 0; i < count; i++) {
        ir_value *v = em_as_python(E, items[i], node);
        if (!v)
            return NULL;
        values[n++] = em_cast(E, v, em_simple(E, IR_ANY));
    }
    return em_list_of(E, values, n, em_simple(E, IR_ANY));
}

/* BaseException.__new__ keeps the arguments, and so does super().__init__(). */
bool em_exception_init(emitter *E, ir_value *object, const em_arguments *args, const ast_node *node) {
    ir_value *text = em_exception_message(E, fe_class_of(object->type->class_), args, node);
    em *items = TS_NEW_ARRAY(E->arena, em, args->count + 1);
    for (size_t i = 0; i < args->count; i++)
        items[i] = args->items[i].v;
    ir_value *list = text ? list_of_any(E, NULL, items, args->count, node) : NULL;
    if (!list)
        return false;
    set_field(E, object, TEXT_FIELD, text);
    set_field(E, object, ARGUMENTS_FIELD, list);
    return true;
}

void em_exception_begin(emitter *E, ir_value *object, const fe_class *c, const em_arguments *args) {
    /* Another number of arguments than __init__ has for a text gives none that anybody sees. */
    em_arguments positional = {0};
    for (size_t i = 0; i < args->count; i++)
        if (!args->items[i].name.length)
            TS_APPEND(E->arena, positional.items, positional.count, positional.capacity, args->items[i]);
    set_field(E, object, NAME_FIELD, ir_build_str(&E->b, c->bare_name));
    em_exception_init(E, object, &positional, c->node);
}

ir_value *em_exception_name(emitter *E, em v) {
    if (v.kind == EM_VALUE)
        return field(E, v.value, NAME_FIELD);
    return v.keys ? v.keys[0] : ir_build_str(&E->b, v.binding->class_->bare_name);
}

ir_value *em_exception_text(emitter *E, em v, const ast_node *node) {
    if (v.kind != EM_VALUE)
        return v.value ? v.value : ir_build_str(&E->b, (ts_str){"", 0});
    return em_class_has_method(v.value->type, "__str__") ? em_to_str(E, v, node) : field(E, v.value, TEXT_FIELD);
}

/* What `except ... as e` calls e. */
em em_caught(emitter *E, em_handling raised) {
    em v = {.kind = EM_EXCEPTION, .value = raised.message};
    v.keys = TS_NEW_ARRAY(E->arena, ir_value *, 1);
    v.keys[0] = raised.exception;
    fe_binding *b = TS_NEW(E->arena, fe_binding);
    *b = (fe_binding){.kind = FE_CLASS, .class_ = fe_builtin_class(E->fe, TS_STR("builtins.Exception"))};
    v.binding = b;
    return v;
}

/* Name and text only, as a caught exception of a builtin class is. */
em em_plain_exception(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_EXCEPTION)
        return v;
    em out = {.kind = EM_EXCEPTION, .value = em_exception_text(E, v, node)};
    out.keys = TS_NEW_ARRAY(E->arena, ir_value *, 1);
    out.keys[0] = em_exception_name(E, v);
    fe_binding *b = TS_NEW(E->arena, fe_binding);
    *b = (fe_binding){.kind = FE_CLASS, .class_ = fe_class_of(v.value->type->class_)};
    out.binding = b;
    return out;
}

/* ---- args ---- */

static const char arguments_name[] = "raised arguments";

/* Arguments that the text does not tell go beside it, into a state of the session: [text, *args]. */
void em_note_arguments(emitter *E, ir_value *message, const em *items, size_t count, const ast_node *node) {
    bool is_text = count == 1 && items[0].kind == EM_VALUE && items[0].value->type->kind == IR_STR;
    if (is_text || E->b.block == NULL || (node->source && (node->source->is_archive || node->source->is_library)))
        return;
    const ir_type *list = ir_type_list(E->m, em_simple(E, IR_ANY)), *type = ir_type_optional(E->m, list);
    if (!em_make_state(E, ts_str_of(arguments_name), TS_STR("arguments"), type))
        return;
    ir_value *state = em_state_of(E, ts_str_of(arguments_name)), *all = list_of_any(E, message, items, count, node);
    if (state && all)
        set_field(E, state, TS_STR("value"), em_cast(E, all, type));
}

/* The list of a caught exception's; NULL: none was raised whose text does not tell them. */
static ir_value *caught_arguments(emitter *E, em v, const ast_node *node) {
    ir_value *state = em_state_of(E, ts_str_of(arguments_name));
    if (!state)
        return NULL;
    const ir_type *type = ir_type_optional(E->m, ir_type_list(E->m, em_simple(E, IR_ANY)));
    ir_op *op = ir_build_op(&E->b, IR_OP_GET_ATTR, &state, 1, &type, 1);
    op->name = TS_STR("value");
    em operands[3] = {em_value(op->results[0]), em_value(em_exception_name(E, v)), em_value(v.value)};
    return em_ir(E, em_call_python(E, "builtins.exception_args", operands, 3, node), node, NULL);
}

em em_exception_arguments(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_VALUE)
        return (em){.kind = EM_VALUE, .value = field(E, v.value, ARGUMENTS_FIELD), .is_tuple = true};
    if (!v.keys)
        return (em){.kind = EM_TUPLE, .items = v.items, .count = v.count};
    ir_value *list = caught_arguments(E, v, node);
    if (list)
        return (em){.kind = EM_VALUE, .value = list, .is_tuple = true};
    em *items = TS_NEW_ARRAY(E->arena, em, 1), operands[2] = {em_value(v.keys[0]), em_value(v.value)};
    items[0] = em_call_python(E, "builtins.exception_argument", operands, 2, node);
    return (em){.kind = EM_TUPLE, .items = items, .count = 1};
}

/* A list of Any. */
static ir_value *exception_list(emitter *E, em v, const ast_node *node) {
    em given = em_exception_arguments(E, v, node);
    return given.kind == EM_VALUE ? given.value : list_of_any(E, NULL, given.items, given.count, node);
}

ir_value *em_exception_repr(emitter *E, em v, const ast_node *node) {
    ir_value *list = v.kind == EM_VALUE ? field(E, v.value, ARGUMENTS_FIELD)
                     : v.keys           ? caught_arguments(E, v, node)
                                        : list_of_any(E, NULL, v.items, v.count, node);
    em operands[2] = {em_value(em_exception_name(E, v)), em_value(list ? list : v.value)};
    const char *function = list ? "builtins.exception_repr" : "builtins.exception_text_repr";
    return em_ir(E, em_call_python(E, function, operands, 2, node), node, NULL);
}

ir_value *em_exception_object(emitter *E, em v) {
    ir_class *c = fe_class_ir(E->fe, v.binding->class_);
    if (!c)
        return NULL;
    ir_value *object = em_new_object(E, c);
    set_field(E, object, NAME_FIELD, em_exception_name(E, v));
    set_field(E, object, TEXT_FIELD, em_exception_text(E, v, NULL));
    set_field(E, object, ARGUMENTS_FIELD, exception_list(E, v, NULL));
    return object;
}

/* ---- the one that was raised last ---- */

static const char state_name[] = "raised exception";

void em_raise_object(emitter *E, ir_value *object, const ast_node *node) {
    if (!em_make_state(E, ts_str_of(state_name), TS_STR("raised"), em_simple(E, IR_ANY)))
        return;
    ir_value *state = em_state_of(E, ts_str_of(state_name));
    em v = em_value(object);
    ir_value *text = em_exception_text(E, v, node), *name = em_exception_name(E, v);
    if (text)
        em_raise_again(E, (em_handling){name, text, state ? em_cast(E, object, em_simple(E, IR_ANY)) : NULL});
}

ir_value *em_raised_object(emitter *E) {
    ir_value *state = em_state_of(E, ts_str_of(state_name));
    const ir_type *any = em_simple(E, IR_ANY);
    if (!state)
        return NULL;
    ir_op *op = ir_build_op(&E->b, IR_OP_GET_ATTR, &state, 1, &any, 1);
    op->name = TS_STR("value");
    return op->results[0];
}

void em_raise_again(emitter *E, em_handling e) {
    if (e.object)
        set_field(E, em_state_of(E, ts_str_of(state_name)), TS_STR("value"), e.object);
    ir_value *operands[2] = {e.message, e.exception};
    ir_build_op(&E->b, IR_OP_RAISE, operands, 2, NULL, 0);
    E->env.state = EM_UNREACHABLE;
}

/* `except T as e`: the object, where all of T are classes of objects; else ERROR. */
em em_caught_object(emitter *E, ir_value *object, const ast_node *type) {
    const ir_type *types[16];
    size_t count = type->kind == AST_TUPLE ? type->list.count : 1;
    if (!object || count > 16)
        return em_error();
    for (size_t i = 0; i < count; i++) {
        fe_binding b = fe_resolve_dotted(E->fe, E->scope, type->kind == AST_TUPLE ? type->list.items[i] : type);
        ir_class *c = b.kind == FE_CLASS && em_is_object_exception(b.class_) ? fe_class_ir(E->fe, b.class_) : NULL;
        if (!c)
            return em_error();
        types[i] = c->type;
    }
    return em_value(em_cast(E, object, ir_type_union(E->m, types, count)));
}
