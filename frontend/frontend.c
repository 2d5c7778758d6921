/* frontend/frontend.c - files to a module: context, loading, entry functions. */
#include "frontend/emit_internal.h"

#include "frontend/archive/archive.h"
#include "runtime/base/stack.h"

enum { CALL_BUDGET = 200000000, CALL_DEPTH = 500, MAX_ATTEMPTS = 200, STACK_RESERVE = 512 << 10 };

fe_context *fe_context_make(ir_module *module, const fe_options *options,
                            fe_diagnostics *diagnostics) {
    fe_context *fe = TS_NEW(module->arena, fe_context);
    fe->arena = module->arena;
    fe->module = module;
    fe->options = options;
    fe->diagnostics = diagnostics;
    fe->stack_limit = ts_stack_limit(STACK_RESERVE);
    fe->runtime.grad_enabled = true;
    fe->runtime.thread_budget = 1;
    fe->module_class = fe_builtin_class(fe, TS_STR("torch.nn.Module"));
    return fe;
}

void fe_context_deinit(fe_context *fe) {
    if (!fe)
        return;
    while (fe->cleanup_count)
        fe->cleanup[--fe->cleanup_count](fe);
}

void fe_forget_files(const fe_context *fe) { fe_torchscript_forget(fe->archive); }

/* ---- running at compile time ---- */

static ts_status run(fe_context *fe, const ir_function *f, const rt_value *args, size_t count,
                     rt_value *out) {
    ir_evaluator_options options = {.context = &fe->runtime, .op_budget = CALL_BUDGET,
                                    .depth_limit = CALL_DEPTH};
    return ir_evaluate(fe->module, f, args, count, &options, out);
}

static ir_function *function_for(fe_context *fe, fe_function *function, const rt_value *args, size_t count) {
    bool is_method = function->owner && !function->is_static && count && args[0].tag == RT_TAG_OBJECT;
    if (is_method && args[0].as.object->class_->info)
        return fe_method_ir(fe, (ir_class *)(uintptr_t)args[0].as.object->class_->info, function->bare_name);
    return fe_function_ir(fe, function);
}

/* What a file gives to its own code was never checked by types. */
static ts_status check_arguments(const ir_function *f, const rt_value *args, size_t count) {
    size_t budget = FE_ARCHIVE_MAX_VISITS;
    for (size_t i = 0; i < count && i < f->body->parameter_count; i++)
        if (!fe_archive_value_fits(f->body->parameters[i]->type, args[i], &budget))
            return ts_error_make(TS_ERR_INVALID_FILE,
                                 "argument %zu of %.*s holds %s, which is not of the declared type", i,
                                 TS_STR_ARG(f->name), rt_tag_name(args[i]));
    return NULL;
}

ts_status fe_call_function(fe_context *fe, fe_function *function, const rt_value *args,
                           size_t count, rt_value *out) {
    *out = rt_none();
    ir_function *f = NULL;
    size_t saved_count = fe->diagnostics->count, saved_errors = fe->diagnostics->error_count;
    for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        f = function_for(fe, function, args, count);
        if (!fe->relearn || fe->emit_depth) /* inside another's emission: that begins anew, too */
            break;
        fe->diagnostics->count = saved_count;
        fe->diagnostics->error_count = saved_errors;
        fe_forget_functions(fe);
    }
    if (!f) {
        ts_status status = fe_diagnostics_status(fe->diagnostics);
        return status ? status : ts_error_make(TS_ERR_TYPE, "%.*s has errors", TS_STR_ARG(function->name));
    }
    TS_TRY(check_arguments(f, args, count));
    return run(fe, f, args, count, out);
}

ts_status fe_call_operator(fe_context *fe, ts_str name, const fe_value_argument *args, size_t count,
                           rt_value *out) {
    *out = rt_none();
    ir_function *f = ir_function_make(fe->module, TS_STR("$call"));
    emitter *E = TS_NEW(fe->arena, emitter);
    em_begin(E, fe, f, fe->scope);
    em_finish_slots(E);
    em_arguments list = {0};
    rt_value *values = TS_NEW_ARRAY(fe->arena, rt_value, count + 1);
    rt_value none = {.tag = RT_TAG_UNINITIALIZED};
    for (size_t i = 0; i < count; i++) {
        values[i] = args[i].value;
        em_argument a = {.name = args[i].name};
        a.v = em_value(ir_function_add_parameter(f, TS_STR("a"), ir_type_of_value(fe->module, values[i]), none));
        TS_APPEND(fe->arena, list.items, list.count, list.capacity, a);
    }
    size_t errors = fe->diagnostics->error_count, saved = fe->diagnostics->count;
    em r = em_operator(E, name, &list, NULL);
    ts_status status = NULL;
    if (r.kind != EM_VALUE) {
        ts_str why = TS_STR("no overload fits");
        for (size_t i = saved; i < fe->diagnostics->count; i++)
            if (fe->diagnostics->items[i].severity == FE_ERROR) {
                why = fe->diagnostics->items[i].message;
                break;
            }
        status = ts_raise("TypeError", "%.*s", (int)why.length, why.data);
        fe->diagnostics->count = saved;
        fe->diagnostics->error_count = errors;
    } else {
        f->return_type = r.value->type;
        ir_build_return(&E->b, &r.value, 1);
        status = run(fe, f, values, count, out);
    }
    ir_function_remove(fe->module, f);
    return status;
}

/* ---- entries ---- */

static const ir_type *input_type(fe_context *fe, ts_str entry, bool is_first, ts_str name,
                                 size_t position, const ir_type *parameter, ts_status *status) {
    size_t at = 0;
    for (size_t i = 0; i < fe->options->input_count; i++) {
        const fe_input_type *in = &fe->options->inputs[i];
        bool fits = in->entry.length ? ts_str_equal(in->entry, entry) : is_first;
        if (!fits)
            continue;
        bool wanted = in->name.length ? ts_str_equal(in->name, name) : at == position;
        if (!in->name.length)
            at++;
        if (!wanted)
            continue;
        const ir_type *type = NULL;
        *status = ir_type_parse(fe->module, in->type_text, &type);
        if (*status)
            *status = ts_status_context(*status, "reading --input of '%.*s'", TS_STR_ARG(name));
        else if (in->is_example && type->rank == 0 && ir_type_is_scalar(parameter))
            return NULL;
        return *status ? NULL : type;
    }
    ts_str declared = fe_archive_input(fe, entry, name); /* what an exported program says itself */
    const ir_type *type = NULL;
    if (declared.length)
        *status = ir_type_parse(fe->module, declared, &type);
    return *status ? NULL : type;
}

static const char *given_by(const fe_input_type *in) { return in->is_example ? "--example" : "--input"; }

static ts_status check_inputs(fe_context *fe, ts_str entry, bool is_first, const ir_function *f,
                              size_t skip) {
    size_t in_order = 0;
    for (size_t i = 0; i < fe->options->input_count; i++) {
        const fe_input_type *in = &fe->options->inputs[i];
        if (!(in->entry.length ? ts_str_equal(in->entry, entry) : is_first))
            continue;
        if (!in->name.length) {
            if (skip + ++in_order > f->body->parameter_count)
                return ts_error_make(TS_ERR_INVALID_INPUT, "%s gives %zu types in order, but "
                                     "%.*s has %zu parameters", given_by(in), in_order, TS_STR_ARG(entry),
                                     f->body->parameter_count - skip);
            continue;
        }
        bool found = false;
        for (size_t k = skip; k < f->body->parameter_count; k++)
            found = found || ts_str_equal(f->parameter_names[k], in->name);
        if (!found)
            return ts_error_make(TS_ERR_INVALID_INPUT, "%s names '%.*s', but %.*s has no such parameter",
                                 given_by(in), TS_STR_ARG(in->name), TS_STR_ARG(entry));
    }
    return NULL;
}

/* What no entry takes would be passed over in silence. */
static ts_status check_input_entries(fe_context *fe, const ts_str *entries, size_t count) {
    for (size_t i = 0; i < fe->options->input_count; i++) {
        ts_str wanted = fe->options->inputs[i].entry;
        bool found = !wanted.length;
        for (size_t k = 0; k < count && !found; k++)
            found = ts_str_equal(entries[k], wanted);
        if (!found)
            return ts_error_make(TS_ERR_INVALID_INPUT,
                                 "--input names the entry '%.*s', which is not compiled: --entry "
                                 "says which are", TS_STR_ARG(wanted));
    }
    return NULL;
}

static bool input_fits(const ir_type *given, const ir_type *declared) {
    if (ir_type_is_subtype(given, declared))
        return true;
    return declared->kind == IR_NUMBER && (given->kind == IR_INT || given->kind == IR_FLOAT);
}

/* Tuple[T, ...] is a list inside the program, and a tuple outside. */
static bool entry_gives_tuple(fe_context *fe, const fe_class *class_, const ir_function *target, ts_str name) {
    const fe_binding *b = !class_ && fe->scope ? fe_map_get(&fe->scope->names, name) : NULL;
    const fe_function *f = class_ ? fe_class_method(class_, name) : b && b->kind == FE_FUNCTION ? b->function : NULL;
    bool gives_tuples_only = f && f->gives_tuple && !f->gives_list && !f->gives_size;
    return f && target->return_type->kind == IR_LIST &&
           (gives_tuples_only || em_open_tuple(fe, f->scope, f->node->third).is_tuple);
}

static ts_status make_entry(fe_context *fe, ts_str name, bool is_first) {
    ir_module *m = fe->module;
    ir_function *target = NULL;
    ir_value *self = NULL;
    size_t errors = fe->diagnostics->error_count;
    bool has_root = fe->module->root.tag == RT_TAG_OBJECT;
    ir_class *c = has_root ? (ir_class *)(uintptr_t)fe->module->root.as.object->class_->info : NULL;
    fe_class *class_ = c ? fe_class_of(c) : NULL;
    if (class_ && fe_class_method(class_, name)) {
        target = fe_method_ir(fe, c, name);
    } else if (fe->scope) {
        fe_binding *b = fe_map_get(&fe->scope->names, name);
        if (b && b->kind == FE_FUNCTION)
            target = fe_function_ir(fe, b->function);
        class_ = NULL;
    } else {
        class_ = NULL;
    }
    if (fe->diagnostics->error_count > errors)
        return fe_diagnostics_status(fe->diagnostics);
    if (!target) {
        if (has_root)
            return ts_error_make(TS_ERR_INVALID_INPUT, "%.*s has no method '%.*s' to compile",
                                 TS_STR_ARG(c->base.bare_name), TS_STR_ARG(name));
        return ts_error_make(TS_ERR_INVALID_INPUT, "there is no function '%.*s' to compile: name one with --entry",
                             TS_STR_ARG(name));
    }
    size_t skip = class_ ? 1 : 0;
    const fe_function *method = class_ ? fe_class_method(class_, name) : NULL;
    if (method && !method->node->parameters.count && !method->is_static) {
        fe_report(fe->diagnostics, FE_ERROR, TS_ERR_TYPE, method->node,
                  "%.*s has no parameter for the object that it is called on: expected self", TS_STR_ARG(name));
        return fe_diagnostics_status(fe->diagnostics);
    }
    ts_str unique = name;
    for (int i = 1; ir_function_find(m, unique); i++) {
        ir_function *other = ir_function_find(m, unique);
        if (other == target) { /* a free function of that name: it makes room */
            ir_function_rename(other, ts_arena_format(fe->arena, "%.*s.body", (int)name.length, name.data));
            break;
        }
        unique = ts_arena_format(fe->arena, "%.*s_%d", (int)name.length, name.data, i);
    }
    ir_function *entry = ir_function_make(m, unique);
    entry->is_entry = true;
    entry->place = target->place;
    entry->return_type = target->return_type;
    ir_builder b = {.module = m, .block = entry->body, .place = target->place};
    size_t count = target->body->parameter_count;
    ir_value **operands = TS_NEW_ARRAY(fe->arena, ir_value *, count + 1);
    TS_TRY(check_inputs(fe, name, is_first, target, skip));
    for (size_t i = skip; i < count; i++) {
        ts_status status = NULL;
        const ir_type *declared = target->body->parameters[i]->type;
        const ir_type *given = input_type(fe, name, is_first, target->parameter_names[i], i - skip,
                                          declared, &status);
        TS_TRY(status);
        if (given && !input_fits(given, declared)) {
            ts_str a = ir_type_text(m, given), d = ir_type_text(m, declared);
            return ts_error_at(TS_ERR_INVALID_INPUT, target->place,
                               "--input gives '%.*s' the type %.*s, but it is declared as %.*s",
                               TS_STR_ARG(target->parameter_names[i]), TS_STR_ARG(a), TS_STR_ARG(d));
        }
        rt_value none = {.tag = RT_TAG_UNINITIALIZED};
        operands[i] = ir_function_add_parameter(entry, target->parameter_names[i], given ? given : declared,
                                                target->defaults ? target->defaults[i] : none);
    }
    if (class_) {
        self = ir_build_const_typed(&b, fe->module->root, c->type);
        operands[0] = self;
    }
    for (size_t i = skip; i < count; i++) {
        const ir_type *declared = target->body->parameters[i]->type;
        if (!ir_type_same_shape_of(operands[i]->type, declared))
            operands[i] = ir_build_op(&b, IR_OP_CAST, &operands[i], 1, &declared, 1)->results[0];
    }
    ir_op *call = ir_build_op(&b, IR_OP_CALL, operands, count, &target->return_type, 1);
    call->function = target;
    ir_value *result = call->results[0];
    if (entry_gives_tuple(fe, class_, target, name)) {
        result = ir_build_core1(&b, OP_prim_list_to_tuple, &result, 1);
        entry->return_type = result->type;
    }
    ir_build_return(&b, &result, 1);
    return NULL;
}

/* Methods called by the object's own class are needed of every class that may stand there. */
static void emit_dynamic_methods(fe_context *fe) {
    for (size_t n = 0; n < fe->dynamic_methods.count; n++)
        for (size_t i = 0; i < fe->module->class_count; i++) {
            ir_class *c = fe->module->classes[i];
            fe_class *class_ = fe_class_of(c);
            if (!class_ || c->base.kind == RT_CLASS_INTERFACE)
                continue;
            fe_function *f = fe_class_method(class_, fe->dynamic_methods.keys[n]);
            if (f && !f->is_static)
                fe_method_ir(fe, c, fe->dynamic_methods.keys[n]);
        }
}

/* Emits all; anew as long as something is found out about types (emit_learn.c). */
static ts_status make_entries(fe_context *fe, const ts_str *entries, size_t count) {
    size_t saved_count = fe->diagnostics->count, saved_errors = fe->diagnostics->error_count;
    for (int attempt = 0;; attempt++) {
        ts_status status = NULL;
        for (size_t i = 0; i < count && !status && !fe->relearn; i++)
            status = make_entry(fe, entries[i], i == 0);
        if (!status && !fe->relearn)
            emit_dynamic_methods(fe);
        if (fe->guessing && !fe->relearn && fe->missing_class &&
            !(fe->missing_name.data[0] == '$' && fe->diagnostics->error_count > saved_errors)) /* no name of the script's */
            fe_report(fe->diagnostics, FE_ERROR, TS_ERR_TYPE, fe->missing_node, "the variable '%.*s' is used before it is assigned",
                      TS_STR_ARG(fe->missing_name));
        else if (fe->guessing && !fe->relearn && fe->asked)
            fe_report(fe->diagnostics, FE_ERROR, TS_ERR_TYPE, fe->asked->node,
                      "%.*s calls itself: its return type must be annotated", TS_STR_ARG(fe->asked->bare_name));
        if (!fe->relearn || attempt == MAX_ATTEMPTS)
            return status;
        ts_status_release(status);
        fe->diagnostics->count = saved_count;
        fe->diagnostics->error_count = saved_errors;
        fe_forget_functions(fe);
    }
}

static ts_status load_source(fe_context *fe, ts_str path, const ts_mapped_file *file) {
    ts_str text = ts_arena_str(fe->arena, (ts_str){(const char *)file->data, file->length});
    fe_source *source;
    TS_TRY(fe_source_make(fe->arena, path, text, &source));
    return fe_script_load(fe, source);
}

ts_status fe_load(fe_context *fe) {
    ts_str path = ts_arena_str(fe->arena, fe->options->path);
    const char *name = ts_arena_copy(fe->arena, path.data, path.length);
    ts_mapped_file file;
    TS_TRY(ts_file_map(name, &file));
    bool is_archive = file.length >= 2 && memcmp(file.data, "PK", 2) == 0;
    bool is_script = ts_str_ends_with(path, ".py");
    ts_status status = is_archive || !is_script ? fe_archive_load(fe, path) : load_source(fe, path, &file);
    ts_file_unmap(&file);
    TS_TRY(status);
    if (fe->diagnostics->error_count)
        return fe_diagnostics_status(fe->diagnostics);
    static const ts_str forward = {"forward", 7};
    const ts_str *entries = fe->options->entry_count ? fe->options->entries : &forward;
    size_t count = fe->options->entry_count ? fe->options->entry_count : 1;
    TS_TRY(check_input_entries(fe, entries, count));
    TS_TRY(make_entries(fe, entries, count));
    if (fe->diagnostics->error_count)
        return fe_diagnostics_status(fe->diagnostics);
    return ir_verify_module(fe->module);
}
