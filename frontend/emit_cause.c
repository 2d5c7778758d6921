/* frontend/emit_cause.c - `raise X from e` and X.__cause__: the cause lies in a state of the session, beside the name
 * and the text of what it was given to. */
#include "frontend/emit_builtin.h"

static const char state_name[] = "raised cause";

static const ir_type *state_type(emitter *E) {
    return ir_type_optional(E->m, ir_type_list(E->m, em_simple(E, IR_ANY)));
}

/* What stands behind `from`, as Any; NULL after an error. */
ir_value *em_cause(emitter *E, const ast_node *node) {
    em v = em_expression(E, node, NULL);
    if (v.kind == EM_BINDING && v.binding->kind == FE_CLASS && v.binding->class_->kind == RT_CLASS_EXCEPTION)
        v = em_construct(E, v.binding->class_, &(em_arguments){0}, node);
    bool is_exception = em_is_any_exception(v);
    if (is_exception) {
        v = em_plain_exception(E, v, node);
        if (v.keys) {
            fe_binding *b = TS_NEW(E->arena, fe_binding);
            *b = (fe_binding){.kind = FE_CLASS, .class_ = fe_builtin_class(E->fe, TS_STR("builtins.Exception"))};
            v.binding = b;
        }
    }
    ir_value *x = is_exception ? em_exception_object(E, v) : em_ir(E, v, node, NULL);
    if (x && !is_exception && x->type->kind != IR_NONE) {
        EM_ERR(E, node, "exception causes must derive from BaseException");
        return NULL;
    }
    return x ? em_cast(E, x, em_simple(E, IR_ANY)) : NULL;
}

void em_note_cause(emitter *E, ir_value *name, ir_value *text, ir_value *cause) {
    const ir_type *any = em_simple(E, IR_ANY);
    if (!em_make_state(E, ts_str_of(state_name), TS_STR("cause"), state_type(E)))
        return;
    ir_value *state = em_state_of(E, ts_str_of(state_name));
    if (!state)
        return;
    ir_value *items[3] = {em_cast(E, name, any), em_cast(E, text, any), cause};
    ir_value *operands[2] = {state, em_cast(E, em_list_of(E, items, 3, any), state_type(E))};
    ir_build_op(&E->b, IR_OP_SET_ATTR, operands, 2, NULL, 0)->name = TS_STR("value");
}

/* e.__cause__: an exception, or None. */
em em_cause_of(emitter *E, em e, const ast_node *node) {
    ir_value *state = em_state_of(E, ts_str_of(state_name));
    ir_class *c = fe_class_ir(E->fe, fe_builtin_class(E->fe, TS_STR("builtins.Exception")));
    if (!state || !c)
        return em_value(ir_build_none(&E->b));
    const ir_type *type = state_type(E);
    ir_op *op = ir_build_op(&E->b, IR_OP_GET_ATTR, &state, 1, &type, 1);
    op->name = TS_STR("value");
    em operands[3] = {em_value(op->results[0]), em_value(em_exception_name(E, e)), em_value(em_exception_text(E, e, node))};
    ir_value *found = em_ir(E, em_call_python(E, "builtins.exception_cause", operands, 3, node), node, NULL);
    return em_value(found ? em_cast(E, found, ir_type_optional(E->m, c->type)) : NULL);
}
