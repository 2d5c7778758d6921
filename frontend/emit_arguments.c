/* frontend/emit_arguments.c - the arguments of a call: evaluated, and bound to the parameters of a
 * function of the IR. */
#include <stdio.h>

#include "frontend/emit_builtin.h"

/* ---- evaluated, with what the parameter declares as a hint ---- */

static const ir_type *hint_from(em_signature *s, size_t skip, size_t position, ts_str name) {
    if (!s)
        return NULL;
    if (name.length) {
        for (size_t i = 0; i < s->count; i++)
            if (ts_str_equal(s->parameters[i].name, name))
                return s->parameters[i].type;
        return NULL;
    }
    return position + skip < s->count && !s->parameters[position + skip].is_star
               ? s->parameters[position + skip].type : NULL;
}

typedef struct hints {
    em_signature *signature;
    size_t skip;
    const ir_class *fields; /* NamedTuple, dataclass: field types */
    const ir_type *item;    /* list.append and its like: the last argument */
    bool item_is_list;
} hints;

static ir_class *class_of_callee(emitter *E, em callee, fe_class **out) {
    if (callee.kind != EM_BINDING || callee.binding->kind != FE_CLASS)
        return NULL;
    *out = callee.binding->class_;
    return (*out)->kind == RT_CLASS_EXCEPTION ? NULL : fe_class_ir(E->fe, *out);
}

static hints hints_of(emitter *E, em callee) {
    hints h = {0};
    fe_class *c = NULL;
    ir_class *ir = class_of_callee(E, callee, &c);
    if (callee.kind == EM_BINDING && callee.binding->kind == FE_FUNCTION) {
        h.signature = em_signature_of(E->fe, callee.binding->function, NULL);
    } else if (ir) {
        fe_function *init = fe_class_method(c, TS_STR("__init__"));
        if (init) {
            h.signature = em_signature_of(E->fe, init, ir);
            h.skip = 1;
        } else {
            h.fields = ir;
        }
    } else if (callee.kind == EM_METHOD && callee.function) {
        h.signature = em_signature_of(E->fe, callee.function, callee.class_);
        h.skip = callee.function->is_static || callee.function->is_class_method ? 0 : 1;
    } else if (callee.kind == EM_METHOD && callee.value && callee.value->type->kind == IR_LIST) {
        ts_str n = callee.name;
        if (ts_str_is(n, "append") || ts_str_is(n, "insert") || ts_str_is(n, "index") ||
            ts_str_is(n, "remove") || ts_str_is(n, "count"))
            h.item = callee.value->type->args[0];
        else if (ts_str_is(n, "extend"))
            h.item = callee.value->type;
    } else if (callee.kind == EM_METHOD && callee.value && callee.value->type->kind == IR_DICT) {
        ts_str n = callee.name;
        if (ts_str_is(n, "setdefault") || ts_str_is(n, "get") || ts_str_is(n, "pop"))
            h.item = callee.value->type->args[1];
        else if (ts_str_is(n, "update"))
            h.item = callee.value->type;
    } else if (callee.kind == EM_VALUE && callee.value->type->kind == IR_CLASS) {
        fe_class *vc = fe_class_of(callee.value->type->class_);
        bool module = vc && vc->kind == RT_CLASS_MODULE;
        fe_function *f = vc ? fe_class_method(vc, module ? TS_STR("forward") : TS_STR("__call__")) : NULL;
        if (f) {
            h.signature = em_signature_of(E->fe, f, (ir_class *)callee.value->type->class_);
            h.skip = 1;
        }
    }
    return h;
}

static const ir_type *hint_for(const hints *h, size_t position, size_t count, ts_str name) {
    if (h->item)
        return position + 1 == count ? h->item : NULL;
    if (h->fields) {
        for (size_t i = 0; i < h->fields->field_count; i++)
            if (name.length ? ts_str_equal(h->fields->fields[i].name, name) : i == position)
                return h->fields->fields[i].type;
        return NULL;
    }
    return hint_from(h->signature, h->skip, position, name);
}

bool em_evaluate_arguments(emitter *E, const ast_node *node, em callee, em_arguments *out) {
    hints h = hints_of(E, callee);
    bool ok = true;
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *a = node->list.items[i];
        if (a->kind == AST_STARRED) {
            em v = em_expression(E, a->left, NULL);
            ir_value **literal;
            size_t literal_count;
            if (v.kind == EM_VALUE && em_is_list_literal(v.value, &literal, &literal_count)) {
                for (size_t k = 0; k < literal_count; k++) {
                    em_argument item = {.v = em_value(literal[k]), .node = a};
                    TS_APPEND(E->arena, out->items, out->count, out->capacity, item);
                }
                continue;
            }
            if (v.kind == EM_VALUE && v.value->type->kind == IR_LIST) {
                em_argument list = {.name = TS_STR("*"), .v = v, .node = a};
                TS_APPEND(E->arena, out->items, out->count, out->capacity, list);
                continue;
            }
            em_iteration it;
            if (v.kind == EM_ERROR || !em_iterate(E, v, a, &it))
                return false;
            if (!it.is_unrolled) {
                em_argument list = {.name = TS_STR("*"), .v = em_value(em_as_list(E, v, a)), .node = a};
                if (list.v.kind == EM_ERROR)
                    return false;
                TS_APPEND(E->arena, out->items, out->count, out->capacity, list);
                continue;
            }
            for (size_t k = 0; k < it.count; k++) {
                em_argument item = {.v = it.items[k], .node = a};
                TS_APPEND(E->arena, out->items, out->count, out->capacity, item);
            }
            continue;
        }
        bool is_keyword = a->kind == AST_KEYWORD;
        if (is_keyword && !a->text.length) {
            if (!em_spread_dict(E, a, out))
                return false;
            continue;
        }
        const ast_node *expression = is_keyword ? a->left : a;
        em_argument arg = {.name = is_keyword ? a->text : (ts_str){0}, .node = expression};
        arg.v = em_expression(E, expression, hint_for(&h, out->count, node->list.count, arg.name));
        ok = ok && arg.v.kind != EM_ERROR;
        TS_APPEND(E->arena, out->items, out->count, out->capacity, arg);
    }
    return ok;
}

/* ---- bound to parameters ---- */

static ir_value *pack_star(emitter *E, em_argument *args, const bool *used, size_t count,
                           const ir_type *list_type, const ast_node *node, bool *out_used) {
    ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, count + 1);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (used[i] || (args[i].name.length && !ts_str_is(args[i].name, "*")))
            continue;
        if (ts_str_is(args[i].name, "*")) {
            out_used[i] = true;
            return em_coerce(E, em_ir(E, args[i].v, node, list_type), list_type, 0, node, "the arguments");
        }
        out_used[i] = true;
        items[n] = em_coerce(E, em_ir(E, args[i].v, args[i].node, list_type->args[0]), list_type->args[0],
                             0, node, "the argument");
        if (!items[n++])
            return NULL;
    }
    return em_list_of(E, items, n, list_type->args[0]);
}

static bool has_parameter(const em_signature *s, ts_str name) {
    for (size_t i = 0; i < s->count; i++)
        if (ts_str_equal(s->parameters[i].name, name))
            return true;
    return false;
}

em em_call_ir(emitter *E, ir_function *f, em_signature *s, ir_value *self, em_arguments *args,
              const ast_node *node) {
    ir_value **operands = TS_NEW_ARRAY(E->arena, ir_value *, s->count + 1);
    bool *used = TS_NEW_ARRAY(E->arena, bool, args->count + 1);
    size_t next = 0;
    for (size_t i = 0; i < s->count; i++) {
        em_parameter *p = &s->parameters[i];
        if (i == 0 && self) {
            operands[0] = em_cast(E, self, p->type);
            continue;
        }
        if (p->is_star) {
            operands[i] = pack_star(E, args->items, used, args->count, p->type, node, used);
            if (!operands[i])
                return em_error();
            continue;
        }
        if (p->is_double_star) {
            ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, 2 * args->count + 1);
            size_t n = 0;
            for (size_t k = 0; k < args->count; k++)
                if (!used[k] && args->items[k].name.length) {
                    used[k] = true;
                    items[n++] = ir_build_str(&E->b, args->items[k].name);
                    items[n] = em_coerce(E, em_ir(E, args->items[k].v, node, NULL), p->type->args[1], 0, node,
                                         "the argument");
                    if (!items[n++])
                        return em_error();
                }
            operands[i] = em_dict_of(E, items, n, p->type);
            continue;
        }
        size_t at = args->count;
        while (next < args->count && args->items[next].name.length)
            next++;
        if (!p->is_keyword_only && next < args->count && !used[next]) {
            at = next++;
        } else if (!p->is_positional_only) {
            for (size_t k = 0; k < args->count; k++)
                if (!used[k] && ts_str_equal(args->items[k].name, p->name))
                    at = k;
        }
        if (at == args->count) {
            if (!p->has_default) {
                EM_ERR(E, node, p->is_positional_only ? "%.*s: the positional-only argument '%.*s' is missing"
                                                      : "%.*s: argument '%.*s' is missing",
                       TS_STR_ARG(f->name), TS_STR_ARG(p->name));
                return em_error();
            }
            const ir_type *t = ir_type_of_value(E->m, p->default_value);
            bool is_empty = p->default_value.tag == RT_TAG_LIST || p->default_value.tag == RT_TAG_DICT;
            ir_value *v = ir_build_const_typed(&E->b, p->default_value,
                                               is_empty ? ir_type_without_none(E->m, p->type) : t);
            operands[i] = em_coerce(E, v, p->type, p->fixed_length, node, "the default value");
            if (!operands[i])
                return em_error();
            operands[i] = em_cast(E, operands[i], p->type);
            continue;
        }
        used[at] = true;
        em_argument *a = &args->items[at];
        char what[120];
        snprintf(what, sizeof what, "argument '%.*s'", TS_STR_ARG(p->name));
        ir_value *v = em_ir(E, a->v, a->node ? a->node : node, p->type);
        const ir_type *wanted = em_wanted_parameter(E, s->function, i);
        if (v && wanted && !ir_type_is_subtype(v->type, wanted) && em_retype_empty(E, v, wanted))
            return em_value(em_uninitialized(E, f->return_type ? f->return_type : em_simple(E, IR_NONE)));
        size_t errors = E->fe->diagnostics->error_count;
        v = em_coerce(E, v, p->type, p->fixed_length, a->node ? a->node : node, what);
        if (!v) {
            if (p->place && E->fe->diagnostics->error_count > errors)
                fe_report(E->fe->diagnostics, FE_NOTE, TS_ERR_TYPE, p->place, "declared here");
            return em_error();
        }
        operands[i] = em_cast(E, v, p->type);
    }
    for (size_t k = 0; k < args->count; k++)
        if (!used[k]) {
            if (args->items[k].name.length)
                EM_ERR(E, args->items[k].node, has_parameter(s, args->items[k].name)
                                                   ? "%.*s: argument '%.*s' is given twice"
                                                   : "%.*s has no parameter '%.*s'",
                       TS_STR_ARG(f->name), TS_STR_ARG(args->items[k].name));
            else
                EM_ERR(E, node, "%.*s takes %zu argument%s, %zu were given", TS_STR_ARG(f->name),
                       s->count - (self ? 1 : 0), s->count - (self ? 1 : 0) == 1 ? "" : "s", args->count);
            return em_error();
        }
    if (!f->return_type) { /* found from the paths that do not come here, then all is emitted anew */
        E->fe->guessing = true;
        E->fe->asked = s->function;
        s->function->is_asked = true;
        return em_error();
    }
    em_place(E, node);
    ir_op *op = ir_build_op(&E->b, IR_OP_CALL, operands, s->count, &f->return_type, 1);
    op->function = f;
    em out = em_value(op->results[0]);
    const fe_function *called = s->function;
    if (f->return_type->kind == IR_LIST && called) {
        em declared = em_open_tuple(E->fe, called->scope, called->node->third);
        out.is_tuple = declared.is_tuple || (called->gives_tuple && !called->gives_size && !called->gives_list);
        out.is_size = declared.is_size || (called->gives_size && !called->gives_tuple && !called->gives_list);
    }
    return out;
}
