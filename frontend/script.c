/* frontend/script.c - loads a model script: runs it, picks its model, gives it its weights. */
#include <stdlib.h>

#include "frontend/archive/archive.h"
#include "frontend/init_eval_internal.h"
#include "runtime/ops/generator.h"

static ts_status seed(evaluator *ev) {
    rt_context *context = &ev->fe->runtime;
    const fe_options *options = ev->fe->options;
    context->grad_enabled = true;
    if (!context->generator) {
        rt_value g;
        TS_TRY(rt_generator_make(RT_DEFAULT_SEED, &g));
        ir_module_retain(ev->fe->module, g);
        rt_release(g);
        context->generator = g.as.generator;
    }
    if (options->has_seed)
        rt_generator_seed(context->generator, options->seed);
    return NULL;
}

static ts_str stem(ts_str path) {
    size_t begin = path.length;
    while (begin && path.data[begin - 1] != '/')
        begin--;
    ts_str name = {path.data + begin, path.length - begin};
    if (ts_str_ends_with(name, ".py"))
        name.length -= 3;
    return name;
}

/* ---- identifiers of a tree ---- */

static void note_names(const ast_node *node, fe_map *names, ts_arena *arena);

static void note_list(const ast_list *list, fe_map *names, ts_arena *arena) {
    for (size_t i = 0; i < list->count; i++)
        note_names(list->items[i], names, arena);
}

/* Depth is the tree's. */
static void note_names(const ast_node *node, fe_map *names, ts_arena *arena) {
    if (!node)
        return;
    if (node->kind == AST_NAME && !fe_map_get(names, node->text))
        fe_map_set(arena, names, node->text, names);
    note_names(node->left, names, arena);
    note_names(node->right, names, arena);
    note_names(node->third, names, arena);
    note_names(node->test, names, arena);
    note_list(&node->list, names, arena);
    note_list(&node->body, names, arena);
    note_list(&node->orelse, names, arena);
    note_list(&node->finally_body, names, arena);
    note_list(&node->decorators, names, arena);
    for (size_t i = 0; i < node->parameters.count; i++) {
        note_names(node->parameters.items[i].annotation, names, arena);
        note_names(node->parameters.items[i].default_value, names, arena);
    }
}

static ts_status run(evaluator *ev, const fe_source *source, const ast_node *tree) {
    rt_value name;
    TS_TRY(rt_str_make(stem(source->name), &name));
    ev_scope_assign(ev, ev->fe->scope, TS_STR("__name__"), name);
    rt_release(name);
    ev_frame frame = {.scope = ev->fe->scope, .globals = ev->fe->scope, .module = ev->fe->scope};
    ev_flow flow;
    fe_map *names = TS_NEW(ev->arena, fe_map);
    note_names(tree, names, ev->arena);
    ev->names = names;
    ev->tree = tree;
    ts_status status = ev_block(ev, &frame, &tree->body, &flow);
    ev_frame_deinit(&frame);
    return status;
}

/* ---- which module ---- */

static bool takes_nothing(fe_class *c) {
    fe_function *init = fe_class_method(c, TS_STR("__init__"));
    if (!init)
        return true;
    const ast_parameters *p = &init->node->parameters;
    for (size_t i = 1; i < p->count; i++)
        if (!p->items[i].default_value && !p->items[i].is_star && !p->items[i].is_double_star)
            return false;
    return true;
}

static ts_status from_expression(evaluator *ev, ts_str text, rt_value *out) {
    fe_source *source;
    TS_TRY(fe_source_make(ev->arena, TS_STR("--model"), text, &source));
    const ast_node *node = fe_parse_expression(ev->arena, source, ev->fe->diagnostics);
    if (!node)
        return fe_diagnostics_status(ev->fe->diagnostics);
    ev_frame frame = {.scope = ev->fe->scope, .globals = ev->fe->scope, .module = ev->fe->scope};
    ts_status status = ev_expression(ev, &frame, node, out);
    ev_frame_deinit(&frame);
    return ts_status_context(status, "evaluating --model");
}

static bool are_functions(evaluator *ev) {
    const fe_options *options = ev->fe->options;
    for (size_t i = 0; i < options->entry_count; i++) {
        fe_binding *b = fe_map_get(&ev->fe->scope->names, options->entries[i]);
        if (!b || b->kind != FE_FUNCTION)
            return false;
    }
    return options->entry_count > 0;
}

/* The script's own module classes that can be made without arguments. */
static ts_status only_class(evaluator *ev, const fe_source *source, fe_class **out) {
    ts_buffer names = {0};
    size_t count = 0, all = 0;
    *out = NULL;
    const fe_map *map = &ev->fe->scope->names;
    for (size_t i = 0; i < map->count; i++) {
        const fe_binding *b = map->values[i];
        if (b->kind != FE_CLASS || b->class_->kind != RT_CLASS_MODULE || !b->class_->node ||
            b->class_->node->source != source)
            continue;
        all++;
        if (!takes_nothing(b->class_))
            continue;
        ts_buffer_format(&names, "%s%.*s", count ? ", " : "", TS_STR_ARG(b->class_->bare_name));
        *out = b->class_;
        count++;
    }
    ts_status status = NULL;
    if (count > 1)
        status = ts_error_make(TS_ERR_INVALID_INPUT,
                               "expected one module class that takes no arguments, found %zu (%.*s): "
                               "choose with --model or define `model`",
                               count, (int)(names.length > 200 ? 200 : names.length), names.data);
    else if (!count && all)
        status = ts_error_make(TS_ERR_INVALID_INPUT,
                               "every module class of the script takes arguments: give --model "
                               "'Name(...)' or define `model`");
    else if (!count)
        status = ts_error_make(TS_ERR_INVALID_INPUT,
                               "the script defines no module: expected `model = ...`, a class derived "
                               "from torch.nn.Module, or --entry with the name of a function");
    ts_buffer_deinit(&names);
    return status;
}

static ts_status pick(evaluator *ev, const fe_source *source, rt_value *out) {
    const fe_options *options = ev->fe->options;
    *out = rt_none();
    if (options->model_expression.length) {
        TS_TRY(from_expression(ev, options->model_expression, out));
    } else {
        fe_binding *b = fe_map_get(&ev->fe->scope->names, TS_STR("model"));
        if (b && b->kind == FE_VALUE && ev_is_module(b->value)) {
            *out = rt_retain(b->value);
            return NULL;
        }
        if (are_functions(ev))
            return NULL;
        fe_class *c = b && b->kind == FE_CLASS ? b->class_ : NULL;
        if (!c)
            TS_TRY(only_class(ev, source, &c));
        TS_TRY(fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_CLASS, .class_ = c}, out));
    }
    fe_binding b = fe_binding_of_value(*out);
    if (b.kind == FE_CLASS) {
        ev_arguments none = {0};
        rt_value made;
        ts_status status = ev_call(ev, b, &none, &made);
        rt_assign(out, made);
        TS_TRY(ts_status_context(status, "making %.*s()", TS_STR_ARG(b.class_->bare_name)));
    }
    if (ev_is_module(*out))
        return NULL;
    ts_status status = ts_error_make(TS_ERR_INVALID_INPUT, "expected the model to be a module, found %.*s",
                                     TS_STR_ARG(ev_type_name(*out)));
    rt_assign(out, rt_none());
    return status;
}

/* ---- weights ---- */

/* Every name begins with "module.": what DataParallel writes. */
static bool has_prefix(const fe_weights *weights) {
    for (size_t i = 0; i < weights->count; i++)
        if (!ts_str_starts_with(weights->items[i].name, "module."))
            return false;
    return weights->count > 0;
}

/* The weights as a state dict, names without their first `skip` bytes, into the module. */
static ts_status load_named(evaluator *ev, rt_value root, const fe_weights *weights, size_t skip) {
    rt_value state, ignored;
    ts_status status = rt_dict_make(&state);
    for (size_t i = 0; i < weights->count && !status; i++) {
        ts_str name = weights->items[i].name;
        rt_value key;
        status = rt_str_make((ts_str){name.data + skip, name.length - skip}, &key);
        if (!status)
            status = rt_dict_set(state.as.dict, key,
                                 (rt_value){.tag = RT_TAG_TENSOR, .as.tensor = weights->items[i].tensor});
        rt_release(key);
    }
    if (!status)
        status = ev_load_state(ev, root, state, true, &ignored);
    rt_release(state);
    return status;
}

static ts_status load_weights(evaluator *ev, rt_value root) {
    const fe_options *options = ev->fe->options;
    fe_weights weights = {0};
    if (!options->weights_path.length)
        return NULL;
    TS_TRY(fe_weights_load(ev->arena, options->weights_path, options->ignore_crc, &weights));
    ts_status status = load_named(ev, root, &weights, has_prefix(&weights) ? strlen("module.") : 0);
    if (status && has_prefix(&weights)) { /* the model has a part of that name itself */
        ts_status_release(status);
        status = load_named(ev, root, &weights, 0);
    }
    fe_weights_deinit(&weights);
    return ts_status_context(status, "loading weights from %.*s", TS_STR_ARG(options->weights_path));
}

/* ---- globals that methods read ---- */

static void note_functions(const ast_node *node, fe_map *names, ts_arena *arena) {
    if (node->kind == AST_FUNCTION && !ts_str_is(node->text, "__init__")) {
        note_list(&node->body, names, arena);
        return;
    }
    if (node->kind == AST_CLASS || node->kind == AST_MODULE || node->kind == AST_IF)
        for (size_t i = 0; i < node->body.count; i++)
            note_functions(node->body.items[i], names, arena);
}

static ts_status finish_globals(evaluator *ev, const ast_node *tree) {
    fe_map names = {0};
    note_functions(tree, &names, ev->arena);
    fe_map *scope = &ev->fe->scope->names;
    for (size_t i = 0; i < scope->count; i++) {
        fe_binding *b = scope->values[i];
        if (b->kind == FE_VALUE && fe_map_get(&names, scope->keys[i]))
            TS_TRY(ts_status_context(ev_finish(ev, &b->value), "typing the global %.*s",
                                     TS_STR_ARG(scope->keys[i])));
    }
    return NULL;
}

ts_status fe_script_load(struct fe_context *fe, const fe_source *source) {
    evaluator *ev = ev_of(fe);
    const ast_node *tree = fe_parse(fe->arena, source, fe->diagnostics);
    if (!tree)
        return fe_diagnostics_status(fe->diagnostics);
    fe->scope = fe_scope_make(fe->arena, NULL, source, TS_STR("__main__"));
    ev_scope_track(ev, fe->scope);
    TS_TRY(seed(ev));
    TS_TRY(run(ev, source, tree));
    rt_value root;
    TS_TRY(pick(ev, source, &root));
    if (rt_is_none(root))
        return finish_globals(ev, tree);
    ts_status status = load_weights(ev, root);
    if (!status && fe->options->training >= 0)
        status = ev_module_train(ev, root, fe->options->training == 1);
    if (!status)
        status = ev_finish(ev, &root);
    if (!status)
        status = finish_globals(ev, tree);
    if (!status) {
        ir_module_retain(fe->module, root);
        fe->module->root = root;
    }
    rt_release(root);
    return status;
}
