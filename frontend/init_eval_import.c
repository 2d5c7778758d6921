/* frontend/init_eval_import.c - the evaluator of scripts: import statements. */
#include "frontend/init_eval_internal.h"

static ts_status no_module(const ast_node *node, ts_str path) {
    return ts_status_set_place(
        ts_raise("ModuleNotFoundError", "No module named '%.*s'", TS_STR_ARG(path)),
        ev_place(node));
}

static ts_status bind_namespace(evaluator *ev, ev_frame *frame, ts_str name, ts_str path) {
    rt_value v;
    TS_TRY(fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_NAMESPACE, .path = path}, &v));
    ts_status status = ev_store_name(ev, frame, name, v);
    rt_release(v);
    return status;
}

ts_status ev_import(evaluator *ev, ev_frame *frame, const ast_node *node) {
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *alias = node->list.items[i];
        ts_str path = alias->text;
        if (!fe_namespace_exists(ev->fe, path))
            return no_module(alias, path);
        if (alias->other.length) {
            TS_TRY(bind_namespace(ev, frame, alias->other, path));
            continue;
        }
        const char *dot = memchr(path.data, '.', path.length);
        if (dot)
            path.length = (size_t)(dot - path.data);
        TS_TRY(bind_namespace(ev, frame, path, path));
    }
    return NULL;
}

/* `from math import *`: those names of the file that the namespace has. */
static ts_status import_all(evaluator *ev, ev_frame *frame, ts_str path) {
    for (size_t i = 0; ev->names && i < ev->names->count; i++) {
        ts_str name = ev->names->keys[i];
        fe_binding b = name.data[0] == '_' ? (fe_binding){.kind = FE_UNBOUND}
                                           : fe_namespace_get(ev->fe, path, name);
        if (b.kind == FE_UNBOUND || b.kind == FE_NAMESPACE)
            continue;
        rt_value v;
        TS_TRY(fe_binding_to_value(ev->fe, b, &v));
        ts_status status = ev_store_name(ev, frame, name, v);
        rt_release(v);
        TS_TRY(status);
    }
    return NULL;
}

ts_status ev_import_from(evaluator *ev, ev_frame *frame, const ast_node *node) {
    if (node->text.length && node->text.data[0] == '.')
        return ev_unsupported(node, "relative imports are not supported: a model script is one file");
    if (ts_str_is(node->text, "__future__"))
        return NULL;
    if (!fe_namespace_exists(ev->fe, node->text))
        return no_module(node, node->text);
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *alias = node->list.items[i];
        if (ts_str_is(alias->text, "*")) {
            TS_TRY(import_all(ev, frame, node->text));
            continue;
        }
        fe_binding b = fe_namespace_get(ev->fe, node->text, alias->text);
        if (b.kind == FE_UNBOUND)
            return ts_status_set_place(ts_raise("ImportError",
                                                "cannot import name '%.*s' from '%.*s'",
                                                TS_STR_ARG(alias->text), TS_STR_ARG(node->text)),
                                       ev_place(alias));
        rt_value v;
        TS_TRY(fe_binding_to_value(ev->fe, b, &v));
        ts_status status =
            ev_store_name(ev, frame, alias->other.length ? alias->other : alias->text, v);
        rt_release(v);
        TS_TRY(status);
    }
    return NULL;
}
