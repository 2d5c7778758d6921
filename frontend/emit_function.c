/* frontend/emit_function.c - signatures, and the frame of a function's emission. */
#include <stdarg.h>
#include <stdio.h>

#include "frontend/emit_internal.h"
#include "frontend/init_eval.h"

void em_report(emitter *E, ts_code code, const ast_node *node, const char *format, ...) {
    char text[900];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    E->failed = true;
    if (!node && E->function)
        node = E->function->node;
    /* The names of a script's own classes and functions as it writes them. */
    bool is_script = node && node->source && !node->source->is_archive;
    static const char *const prefixes[] = {"__main__.", "__torch__."};
    for (size_t i = 0; i < 2 && is_script; i++)
        for (char *at; (at = strstr(text, prefixes[i]));)
            memmove(at, at + strlen(prefixes[i]), strlen(at + strlen(prefixes[i])) + 1);
    fe_report(E->fe->diagnostics, FE_ERROR, code, node, "%s", text);
}

const char *em_type_text(emitter *E, const ir_type *t) {
    if (em_is_set_type(t)) {
        ts_str item = ts_arena_format(E->arena, em_is_frozen_type(t) ? "FrozenSet[%s]" : "Set[%s]", em_type_text(E, t->args[0]));
        return ts_arena_copy(E->arena, item.data, item.length);
    }
    ts_str s = ir_type_text(E->m, t);
    return ts_arena_copy(E->arena, s.data, s.length);
}

void em_place(emitter *E, const ast_node *node) {
    if (node && node->source)
        E->b.place = ast_place(node);
}

const ir_type *em_annotation(emitter *E, const ast_node *node) {
    const ir_type *t = fe_annotation_type(E->fe, E->scope, node);
    if (!t)
        E->failed = true;
    return t;
}

/* ---- slots ---- */

size_t em_add_slot(emitter *E, ts_str name) {
    size_t known = (size_t)fe_map_get(&E->variables, name);
    if (known)
        return known - 1;
    fe_map_set(E->arena, &E->variables, name, (void *)(E->slot_count + 1));
    return E->slot_count++;
}

static void collect_target(emitter *E, const ast_node *target) {
    switch (target->kind) {
    case AST_NAME:
        if (!fe_map_get(&E->global_names, target->text))
            em_add_slot(E, target->text);
        break;
    case AST_TUPLE:
    case AST_LIST:
        for (size_t i = 0; i < target->list.count; i++)
            collect_target(E, target->list.items[i]);
        break;
    case AST_STARRED:
        collect_target(E, target->left);
        break;
    default:
        em_collect_expression(E, target);
        break;
    }
}

static void collect_list(emitter *E, const ast_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i])
            em_collect_expression(E, list->items[i]);
}

/* Walrus targets. */
void em_collect_expression(emitter *E, const ast_node *node) {
    if (!node || node->kind == AST_LAMBDA)
        return;
    if (node->kind == AST_WALRUS)
        em_add_slot(E, node->text);
    em_collect_expression(E, node->left);
    em_collect_expression(E, node->right);
    em_collect_expression(E, node->third);
    em_collect_expression(E, node->test);
    collect_list(E, &node->list);
}

static void collect_nested(emitter *E, const ast_node *function) {
    /* Its own names become slots "function.name": calls are made in place. */
    emitter inner = {.arena = E->arena};
    for (size_t i = 0; i < function->parameters.count; i++)
        em_add_slot(&inner, function->parameters.items[i].name);
    em_collect(&inner, &function->body);
    for (size_t i = 0; i < inner.variables.count; i++)
        em_add_slot(E, ts_arena_format(E->arena, "%.*s.%.*s", (int)function->text.length,
                                       function->text.data, (int)inner.variables.keys[i].length,
                                       inner.variables.keys[i].data));
}

static void collect_statement(emitter *E, const ast_node *s) {
    switch (s->kind) {
    case AST_ASSIGN:
        for (size_t k = 0; k < s->list.count; k++)
            collect_target(E, s->list.items[k]);
        break;
    case AST_ANN_ASSIGN:
    case AST_AUG_ASSIGN:
    case AST_FOR:
        collect_target(E, s->left);
        break;
    case AST_WITH:
        for (size_t k = 0; k < s->list.count; k++)
            if (s->list.items[k]->right)
                collect_target(E, s->list.items[k]->right);
        break;
    case AST_FUNCTION:
        em_add_slot(E, s->text);
        collect_nested(E, s);
        return;
    case AST_CLASS:
        em_add_slot(E, s->text);
        return;
    case AST_GLOBAL:
        for (size_t k = 0; k < s->list.count; k++)
            fe_map_set(E->arena, &E->global_names, s->list.items[k]->text, E);
        return;
    case AST_TRY:
        for (size_t k = 0; k < s->list.count; k++) {
            if (s->list.items[k]->text.length)
                em_add_slot(E, s->list.items[k]->text);
            em_collect(E, &s->list.items[k]->body);
        }
        break;
    case AST_IMPORT:
    case AST_IMPORT_FROM:
        for (size_t k = 0; k < s->list.count; k++) {
            const ast_node *alias = s->list.items[k];
            ts_str name = alias->other.length ? alias->other : alias->text;
            for (size_t n = 0; n < name.length; n++)
                if (name.data[n] == '.')
                    name.length = n;
            em_add_slot(E, name);
        }
        return;
    default:
        break;
    }
    em_collect_expression(E, s->left);
    em_collect_expression(E, s->right);
    em_collect_expression(E, s->third);
    em_collect_expression(E, s->test);
    if (s->kind != AST_TRY && s->kind != AST_GLOBAL && s->kind != AST_NONLOCAL)
        collect_list(E, &s->list);
    em_collect(E, &s->body);
    em_collect(E, &s->orelse);
    em_collect(E, &s->finally_body);
}

void em_collect(emitter *E, const ast_list *statements) {
    for (size_t i = 0; i < statements->count; i++)
        collect_statement(E, statements->items[i]);
}

/* Where names are read for the last time; in nested functions: always. */
static void note_reads(emitter *E, const ast_node *node, bool nested);

static void note_list(emitter *E, const ast_list *list, bool nested) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i])
            note_reads(E, list->items[i], nested);
}

static void note_target(emitter *E, const ast_node *target, bool nested) {
    if (target->kind == AST_NAME)
        return;
    if (target->kind == AST_TUPLE || target->kind == AST_LIST) {
        for (size_t i = 0; i < target->list.count; i++)
            note_target(E, target->list.items[i], nested);
        return;
    }
    note_reads(E, target, nested);
}

static void note_reads(emitter *E, const ast_node *node, bool nested) {
    if (!node)
        return;
    if (node->kind == AST_NAME || node->kind == AST_WALRUS) {
        size_t slot = (size_t)fe_map_get(&E->variables, node->text);
        if (slot && (nested || node->offset > E->last_read[slot - 1]))
            E->last_read[slot - 1] = nested ? UINT32_MAX : node->offset;
    }
    if (node->kind == AST_LAMBDA || node->kind == AST_FUNCTION)
        nested = true;
    if (node->kind == AST_ASSIGN) {
        for (size_t i = 0; i < node->list.count; i++)
            note_target(E, node->list.items[i], nested);
    } else {
        if (node->kind == AST_FOR || node->kind == AST_ANN_ASSIGN)
            note_target(E, node->left, nested);
        else
            note_reads(E, node->left, nested);
        note_list(E, &node->list, nested);
    }
    note_reads(E, node->right, nested);
    note_reads(E, node->test, nested);
    if (node->kind != AST_ANN_ASSIGN)
        note_reads(E, node->third, nested);
    note_list(E, &node->body, nested);
    note_list(E, &node->orelse, nested);
    note_list(E, &node->finally_body, nested);
    for (size_t i = 0; i < node->parameters.count; i++)
        note_reads(E, node->parameters.items[i].default_value, nested);
}

void em_begin(emitter *E, struct fe_context *fe, ir_function *f, fe_scope *scope) {
    *E = (emitter){.fe = fe, .m = fe->module, .arena = fe->arena, .f = f, .scope = scope};
    E->b = (ir_builder){.module = fe->module, .block = f->body};
    em_add_slot(E, TS_STR("$exited"));
    em_add_slot(E, TS_STR("$break"));
    em_add_slot(E, TS_STR("$returned"));
    em_add_slot(E, TS_STR("$result"));
    em_add_slot(E, TS_STR("$value"));
}

static void finish_slots(emitter *E, const ast_node *node) {
    E->last_read = TS_NEW_ARRAY(E->arena, uint32_t, E->slot_count);
    E->slot_names = TS_NEW_ARRAY(E->arena, ts_str, E->slot_count);
    E->env.slots = TS_NEW_ARRAY(E->arena, em_slot, E->slot_count);
    for (size_t i = 0; i < E->slot_count; i++) {
        ts_str name = E->variables.keys[i];
        E->slot_names[i] = i < EM_SLOT_FIRST ? (ts_str){0} : name;
        if (memchr(name.data, '.', name.length)) {
            E->last_read[i] = UINT32_MAX;
            E->slot_names[i] = (ts_str){0};
        }
    }
    if (!node)
        return;
    if (node->kind == AST_LAMBDA)
        note_reads(E, node->left, false);
    note_list(E, &node->body, false);
}

void em_finish_slots(emitter *E) { finish_slots(E, NULL); }

/* ---- signatures ---- */

/* "# type: (Tensor, int) -> Tensor" */
static void read_type_comment(fe_context *fe, fe_function *f, em_signature *s, size_t skip) {
    ts_str text = f->node->type_comment;
    if (!text.length)
        return;
    size_t arrow = 0;
    while (arrow + 1 < text.length && memcmp(text.data + arrow, "->", 2) != 0)
        arrow++;
    if (arrow + 1 >= text.length)
        return;
    ts_str parts[2] = {{text.data, arrow}, {text.data + arrow + 2, text.length - arrow - 2}};
    ast_node *nodes[2];
    for (int i = 0; i < 2; i++) {
        fe_source *source;
        ts_status status = fe_source_make(fe->arena, f->node->source->name, parts[i], &source);
        if (status) {
            ts_status_release(status);
            return;
        }
        nodes[i] = fe_parse_expression(fe->arena, source, fe->diagnostics);
        if (!nodes[i])
            return;
    }
    const ast_node *first = nodes[0];
    if (first->kind == AST_TUPLE) {
        for (size_t i = 0; i < first->list.count && i + skip < s->count; i++) {
            const ir_type *t = fe_annotation_type(fe, f->scope, first->list.items[i]);
            if (t)
                s->parameters[i + skip].type = t;
        }
    } else if (skip < s->count) {
        const ir_type *t = fe_annotation_type(fe, f->scope, first);
        if (t)
            s->parameters[skip].type = t;
    }
    s->returns = fe_annotation_type(fe, f->scope, nodes[1]);
}

em_signature *em_signature_of(fe_context *fe, fe_function *f, ir_class *self_class) {
    if (f->signature && !self_class)
        return f->signature;
    em_signature *s = TS_NEW(fe->arena, em_signature);
    s->function = f;
    if (!self_class)
        f->signature = s;
    const ast_parameters *p = &f->node->parameters;
    size_t first = f->is_class_method && p->count ? 1 : 0;
    s->parameters = TS_NEW_ARRAY(fe->arena, em_parameter, p->count + 1);
    for (size_t i = first; i < p->count; i++) {
        const ast_parameter *a = &p->items[i];
        em_parameter *out = &s->parameters[s->count++];
        *out = (em_parameter){.name = a->name, .place = a->place, .is_keyword_only = a->is_keyword_only,
                              .is_positional_only = a->is_positional_only,
                              .is_star = a->is_star, .is_double_star = a->is_double_star};
        if (s->count == 1 && self_class && !f->is_static && !f->is_class_method) {
            out->type = self_class->type;
            continue;
        }
        if (a->default_value) {
            out->has_default = fe_function_default(fe, f, i, &out->default_value);
            if (out->has_default)
                rt_retain(out->default_value);
            else
                out->has_default = fe_evaluate_expression(fe, f->scope, a->default_value,
                                                          &out->default_value);
            if (out->has_default) {
                ir_module_retain(fe->module, out->default_value);
                rt_release(out->default_value);
            } else {
                s->failed = true;
            }
        }
        if (a->annotation) {
            out->type = fe_annotation_type(fe, f->scope, a->annotation);
            const ast_node *n = a->annotation;
            if (n->kind == AST_SUBSCRIPT && n->left->kind == AST_NAME &&
                ts_str_starts_with(n->left->text, "BroadcastingList"))
                out->fixed_length = n->left->text.data[n->left->text.length - 1] - '0';
            if (f->is_library && out->type && !out->fixed_length &&
                ir_type_without_none(fe->module, out->type)->kind == IR_LIST)
                out->fixed_length = -1; /* x.view(2): an int for a list of one */
            if (!out->type)
                s->failed = true;
            else if (out->has_default && rt_is_none(out->default_value))
                out->type = ir_type_optional(fe->module, out->type);
        } else if (out->has_default && !rt_is_none(out->default_value)) {
            out->type = ir_type_forget(fe->module, ir_type_of_value(fe->module, out->default_value));
        }
        if (!a->annotation && f->given_types && f->given_types[i])
            out->type = f->given_types[i];
        if (!out->type) {
            out->type = ir_type_any_tensor(fe->module);
            if (out->has_default && rt_is_none(out->default_value) && ts_str_starts_with(f->name, "python."))
                out->type = ir_type_simple(fe->module, IR_NONE);
            else if (out->has_default && rt_is_none(out->default_value)) /* targets=None */
                out->type = ir_type_optional(fe->module, out->type);
        }
        if (out->has_default && out->type->kind == IR_FLOAT && out->default_value.tag == RT_TAG_INT)
            out->default_value = rt_float((double)out->default_value.as.i);
        if (a->is_star)
            out->type = ir_type_list(fe->module, a->annotation || (f->given_types && f->given_types[i])
                                                     ? out->type : ir_type_any_tensor(fe->module));
        if (a->is_double_star)
            out->type = ir_type_dict(fe->module, ir_type_simple(fe->module, IR_STR), out->type);
    }
    if (f->node->kind == AST_FUNCTION) {
        read_type_comment(fe, f, s, f->owner && !f->is_static ? 1 : 0);
        if (f->node->third) {
            s->returns = fe_annotation_type(fe, f->scope, f->node->third);
            if (!s->returns)
                s->failed = true;
        }
        if (ts_str_is(f->bare_name, "__init__"))
            s->returns = ir_type_simple(fe->module, IR_NONE);
    }
    return s;
}

/* ---- emission ---- */

static void fall_off_end(emitter *E) {
    if (E->declared_return && !ir_type_admits_none(E->declared_return)) {
        const ast_node *node = E->function ? E->function->node : NULL;
        /* What PyTorch writes always ends in a return; a script may rely on another way out. */
        if (node && node->source && node->source->is_archive)
            EM_ERR(E, node, "the function %.*s ends without a return", TS_STR_ARG(node->text));
        ir_value *text = ir_build_str(&E->b, TS_STR("the function ended without a result"));
        em_raise_named(E, TS_STR("RuntimeError"), text);
        return;
    }
    ir_value *none = ir_build_none(&E->b);
    em_give_result(E, E->declared_return ? em_cast(E, none, E->declared_return) : none);
}

static void finish_type(emitter *E, ir_value **v, bool has_result) {
    fe_function *f = E->function;
    ir_function *out = E->f;
    if (f && !E->declared_return && f->is_asked) {
        const ir_type *found = ir_type_forget(E->m, (*v)->type);
        if (has_result && E->env.state != EM_UNREACHABLE &&
            !(f->learned_return && ir_type_is_subtype(found, f->learned_return)))
            em_learn_result(E, f, found);
        if (f->learned_return && ir_type_is_subtype((*v)->type, f->learned_return))
            *v = em_cast(E, *v, f->learned_return);
        else
            *v = em_uninitialized(E, (*v)->type);
    }
    if (!out->return_type)
        out->return_type = ir_type_forget(E->m, (*v)->type);
}

static void finish_function(emitter *E) {
    if (E->env.state == EM_LIVE) {
        em_slot *exited = &E->env.slots[EM_SLOT_EXITED];
        bool known = false;
        bool is_dynamic = exited->is_set && !ir_const_bool(exited->v.value, &known);
        if (!is_dynamic) {
            fall_off_end(E);
        } else {
            em_env before = em_env_copy(E);
            ir_op *op = ir_build_if(&E->b, exited->v.value);
            em_branch a = {.block = op->regions[0], .env = em_env_copy(E)};
            a.env.state = EM_EXITED;
            ir_block *here = em_enter(E, op->regions[1]);
            E->env.slots[EM_SLOT_RESULT].is_set = false;
            fall_off_end(E);
            em_branch b = {.block = op->regions[1], .env = em_env_copy(E)};
            em_leave(E, here);
            em_merge(E, op, &before, &a, &b, UINT32_MAX);
        }
    }
    em_slot *result = &E->env.slots[EM_SLOT_RESULT];
    ir_value *v;
    if (result->is_set && result->v.kind == EM_VALUE && E->env.state != EM_UNREACHABLE)
        v = result->v.value;
    else
        v = em_uninitialized(E, E->declared_return ? E->declared_return : em_simple(E, IR_NONE));
    finish_type(E, &v, result->is_set);
    ir_build_return(&E->b, &v, 1);
}

static void bind_parameters(emitter *E, em_signature *s) {
    ir_function *f = E->f;
    for (size_t i = 0; i < s->count; i++) {
        em_parameter *p = &s->parameters[i];
        rt_value none = {.tag = RT_TAG_UNINITIALIZED};
        if (f->body->parameter_count == i)
            ir_function_add_parameter(f, p->name, p->type, p->has_default ? p->default_value : none);
        em_add_slot(E, p->name);
    }
}

static const ast_node *annotation_of(const ast_node *function, ts_str parameter) {
    for (size_t i = 0; i < function->parameters.count; i++)
        if (ts_str_equal(function->parameters.items[i].name, parameter))
            return function->parameters.items[i].annotation;
    return NULL;
}

/* True: the type of an empty display was found out, and the body is to be emitted anew. */
static bool emit_once(fe_context *fe, fe_function *function, ir_class *self_class, em_signature *s,
                      ir_function *f) {
    emitter *E = TS_NEW(fe->arena, emitter);
    em_begin(E, fe, f, function->scope);
    E->function = function;
    E->self_class = self_class;
    E->declared_return = s->returns;
    em_place(E, function->node);
    bind_parameters(E, s);
    const ast_node *node = em_with_cells(E, function);
    if (node->kind == AST_FUNCTION)
        em_collect(E, &node->body);
    else
        em_collect_expression(E, node->left);
    finish_slots(E, node);
    for (size_t i = 0; i < s->count; i++) {
        size_t slot = (size_t)fe_map_get(&E->variables, s->parameters[i].name) - 1;
        em v = em_open_tuple(fe, function->scope, annotation_of(function->node, s->parameters[i].name));
        v.kind = EM_VALUE;
        bool is_known = function->known_flags && i < function->node->parameters.count && function->known_flags[i] >= 0;
        v.value = is_known ? ir_build_bool(&E->b, function->known_flags[i] > 0) : f->body->parameters[i];
        E->env.slots[slot] = (em_slot){.is_set = true, .v = v, .declared = s->parameters[i].type};
    }
    function->is_emitting = true;
    if (function->is_ignored) {
        ir_value *text = ir_build_str(
            &E->b, ts_arena_format(fe->arena, "%.*s is marked as unused or ignored: it was not compiled",
                                   TS_STR_ARG(function->name)));
        em_raise_named(E, TS_STR("RuntimeError"), text);
        if (!f->return_type)
            E->declared_return = f->return_type = ir_type_any_tensor(fe->module);
    } else if (node->kind == AST_LAMBDA) {
        ir_value *v = em_expression_ir(E, node->left, NULL);
        em_give_result(E, v ? v : ir_build_none(&E->b));
    } else {
        em_statements(E, &node->body, 0);
    }
    finish_function(E);
    if (node->source && !node->source->is_archive && !function->is_library)
        em_note_changed_constants(E, f->body);
    function->is_emitting = false;
    em_find_missing(E);
    return E->restart;
}

ir_function *em_emit_function(fe_context *fe, fe_function *function, ir_class *self_class,
                              em_signature *s, ts_str name, ir_function **early_out) {
    ir_function *f = ir_function_make(fe->module, ir_function_free_name(fe->module, name));
    f->is_library = function->is_library;
    f->place = ast_place(function->node);
    f->return_type = s->returns ? s->returns : function->learned_return;
    fe_note_emitted(fe, function);
    if (early_out)
        *early_out = f;
    fe->emit_depth++;
    fe_diagnostics *diagnostics = fe->diagnostics;
    size_t saved_count = diagnostics->count, saved_errors = diagnostics->error_count;
    for (int attempt = 0; emit_once(fe, function, self_class, s, f) && attempt < 40; attempt++) {
        while (f->body->last)
            ir_op_remove(f->body->last);
        f->return_type = s->returns ? s->returns : function->learned_return;
        diagnostics->count = saved_count;
        diagnostics->error_count = saved_errors;
    }
    fe->emit_depth--;
    return f;
}

ir_function *fe_function_ir(fe_context *fe, fe_function *function) {
    if (function->ir)
        return function->ir;
    size_t errors = fe->diagnostics->error_count;
    em_signature *s = em_signature_of(fe, function, NULL);
    if (s->failed) {
        if (fe->diagnostics->error_count == errors)
            fe_report(fe->diagnostics, FE_ERROR, TS_ERR_TYPE, function->node,
                      "the signature of %.*s has errors", TS_STR_ARG(function->name));
        return NULL;
    }
    em_emit_function(fe, function, NULL, s, function->name, &function->ir);
    return fe->diagnostics->error_count > errors ? NULL : function->ir;
}

ir_function *em_method_as(fe_context *fe, ir_class *c, ts_str key, fe_function *method) {
    for (size_t i = 0; i < c->method_count; i++)
        if (ts_str_equal(c->methods[i].name, key))
            return c->methods[i].function;
    if (!method)
        return NULL;
    size_t at = c->method_count;
    ir_method entry = {.name = ts_arena_str(fe->arena, key)};
    TS_APPEND(fe->arena, c->methods, c->method_count, c->method_capacity, entry);
    ts_str name = ts_arena_format(fe->arena, "%.*s.%.*s", (int)c->base.name.length,
                                  c->base.name.data, (int)key.length, key.data);
    size_t errors = fe->diagnostics->error_count;
    em_signature *s = em_signature_of(fe, method, c);
    if (s->failed) {
        if (fe->diagnostics->error_count == errors)
            fe_report(fe->diagnostics, FE_ERROR, TS_ERR_TYPE, method->node,
                      "the signature of %.*s has errors", TS_STR_ARG(method->name));
        return NULL;
    }
    /* The entry is filled before the body is made, for recursion; the array may move meanwhile. */
    ir_function *f = em_emit_function(fe, method, c, s, name, &c->methods[at].function);
    c->methods[at].function = fe->diagnostics->error_count > errors ? NULL : f;
    return c->methods[at].function;
}

ir_function *fe_method_ir(fe_context *fe, ir_class *c, ts_str name) {
    fe_class *class_ = fe_class_of(c);
    return em_method_as(fe, c, name, class_ ? fe_class_method(class_, name) : NULL);
}
