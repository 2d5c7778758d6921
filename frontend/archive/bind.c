/* frontend/archive/bind.c - the archive reader behind the front end's own interface: classes and
 * functions by qualified name, constants, and the root object. */
#include "frontend/archive/exported.h"
#include "frontend/frontend_internal.h"

/* One file of code/: parsed when a name in it is first asked for. */
typedef struct code_module {
    const fe_code_file *file;
    bool is_parsed;
    fe_map names; /* -> ast_node*, class and function statements */
} code_module;

typedef struct archive_binding {
    fe_map modules; /* "__torch__.a.b" -> code_module* */
} archive_binding;

static void release_archive(fe_context *fe) {
    fe_torchscript_release(fe->archive);
    fe->archive = NULL;
}

static void bind_modules(fe_context *fe, fe_archive *archive) {
    archive_binding *binding = TS_NEW(fe->arena, archive_binding);
    for (size_t i = 0; i < archive->code_count; i++) {
        code_module *module = TS_NEW(fe->arena, code_module);
        module->file = &archive->code[i];
        fe_map_set(fe->arena, &binding->modules, module->file->module, module);
    }
    archive->binding = binding;
}

static void parse_module(fe_context *fe, code_module *module) {
    module->is_parsed = true;
    ast_node *tree = fe_parse(fe->arena, module->file->source, fe->diagnostics);
    if (!tree)
        return;
    for (size_t i = 0; i < tree->body.count; i++) {
        ast_node *n = tree->body.items[i];
        /* Up to torch 1.4 each file began with `op_version_set = 1`. */
        if (n->kind == AST_ASSIGN && n->list.count == 1 && n->list.items[0]->kind == AST_NAME &&
            ts_str_is(n->list.items[0]->text, "op_version_set"))
            continue;
        if (n->kind != AST_CLASS && n->kind != AST_FUNCTION) {
            fe_report(fe->diagnostics, FE_ERROR, TS_ERR_SYNTAX, n,
                      "expected a class or a function, found %s", ast_kind_name(n->kind));
            continue;
        }
        const ast_node *before = fe_map_get(&module->names, n->text);
        if (before) {
            fe_report(fe->diagnostics, FE_ERROR, TS_ERR_SYNTAX, n, "%.*s is defined twice",
                      TS_STR_ARG(n->text));
            fe_report(fe->diagnostics, FE_NOTE, TS_ERR_SYNTAX, before, "defined here before");
            continue;
        }
        fe_map_set(fe->arena, &module->names, n->text, n);
    }
}

const ast_node *fe_archive_find_node(fe_context *fe, ts_str name) {
    archive_binding *binding = fe->archive ? fe->archive->binding : NULL;
    size_t dot = name.length;
    while (dot && name.data[dot - 1] != '.')
        dot--;
    if (!binding || dot < 2)
        return NULL;
    code_module *module = fe_map_get(&binding->modules, (ts_str){name.data, dot - 1});
    if (!module)
        return NULL;
    if (!module->is_parsed)
        parse_module(fe, module);
    return fe_map_get(&module->names, (ts_str){name.data + dot, name.length - dot});
}

static ts_status find_class(void *user, ts_str name, const ir_class **out) {
    fe_context *fe = user;
    size_t errors = fe->diagnostics->error_count;
    fe_class *class_ = fe_archive_class(fe, name);
    *out = class_ ? fe_class_ir(fe, class_) : NULL;
    return fe->diagnostics->error_count > errors ? fe_diagnostics_status(fe->diagnostics) : NULL;
}

static bool has_method(void *user, const ir_class *c, ts_str name) {
    (void)user;
    const fe_class *class_ = fe_class_of(c);
    return class_ && fe_class_method(class_, name);
}

/* Classes with __getstate__ restore themselves: their own code runs, as at torch.jit.load. */
static ts_status run_setstate(fe_context *fe, const fe_torchscript_objects *objects) {
    for (size_t i = 0; i < objects->pending_count; i++) {
        rt_value args[2] = {objects->pending[i].object, objects->pending[i].state};
        const ir_class *c = args[0].as.object->class_->info;
        fe_function *function = fe_class_method(fe_class_of(c), TS_STR("__setstate__"));
        rt_value result = rt_none();
        TS_TRY(ts_status_context(fe_call_function(fe, function, args, 2, &result),
                                 "restoring an object of %.*s", TS_STR_ARG(c->base.name)));
        rt_release(result);
    }
    return NULL;
}

ts_status fe_archive_load(fe_context *fe, ts_str path) {
    TS_TRY(fe_torchscript_open(fe->arena, path, fe->options->model_expression, fe->options->ignore_crc,
                               fe->diagnostics, &fe->archive));
    fe->cleanup[fe->cleanup_count++] = release_archive;
    bind_modules(fe, fe->archive);
    fe_torchscript_classes classes = {fe, find_class, has_method};
    fe_torchscript_objects objects = {0};
    TS_TRY(fe_torchscript_load(fe->archive, &classes, &objects));
    ir_module_retain(fe->module, objects.root);
    fe->module->root = objects.root;
    return run_setstate(fe, &objects);
}

rt_value fe_archive_constant(fe_context *fe, size_t index, bool *out_found) {
    rt_value constants = fe->archive ? fe->archive->objects.constants : rt_none();
    *out_found = constants.tag == RT_TAG_TUPLE && index < constants.as.tuple->count;
    return *out_found ? constants.as.tuple->items[index] : rt_none();
}

ts_str fe_archive_input(fe_context *fe, ts_str entry, ts_str name) {
    const fe_exported *e = fe->archive ? fe->archive->exported : NULL;
    for (size_t i = 0; e && i < e->input_count; i++)
        if (ts_str_equal(e->inputs[i].entry, entry) && ts_str_equal(e->inputs[i].name, name))
            return e->inputs[i].type_text;
    return (ts_str){0};
}

int fe_archive_version(fe_context *fe) {
    return fe->archive ? fe_torchscript_version(fe->archive) : FE_ARCHIVE_MAX_VERSION;
}
